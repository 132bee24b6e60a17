"""Cells of several sources -> one responses table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from benchkit.errors import InputError
from benchkit.formats import Cells
from benchkit.tables import RESPONSES, check_responses

MOST = 2**31 - 1


def merge(parts: Sequence[Cells], *, add: bool, duplicates: str | None) -> pa.Table:
    """One row a model and item, sorted by code point.

    Two sources may share a pair where their attempts' numbers differ. Otherwise the pair stands twice, and InputError
    names both sources, unless it was said that sums are to be added (`add`) or that rows are attempts (`duplicates`).
    """
    frames = [p.frame.with_columns(pl.lit(n, pl.Int64).alias("part")) for n, p in enumerate(parts)]
    rows = pl.concat(frames)
    if not add and duplicates != "attempt":
        _refuse_overlap(rows, parts)
    spans = rows.filter(pl.col("cluster").is_not_null()).group_by("item")
    torn = spans.agg(pl.col("cluster").min().alias("a"), pl.col("cluster").max().alias("b"))
    torn = torn.filter(pl.col("a") != pl.col("b")).sort("item")
    if not torn.is_empty():
        item, a, b = torn.row(0)
        raise InputError(f"item '{item}' is in cluster '{a}' and in cluster '{b}'")
    out = (
        rows.filter(pl.col("attempts") > 0)
        .group_by("model", "item")
        .agg(pl.col("attempts").sum(), pl.col("correct"))
        .with_columns(pl.col("correct").list.sort().list.sum())  # in one order: float sums depend on it
        .join(spans.agg(pl.col("cluster").first()), on="item", how="left")
        .sort("model", "item")
    )
    if out.is_empty():
        raise InputError("no scored attempt is left")
    many = out.filter(pl.col("attempts") > MOST)
    if not many.is_empty():
        raise InputError(f"model '{many['model'][0]}', item '{many['item'][0]}': more than {MOST} attempts")
    table = pa.table(
        {
            "model": out["model"].to_arrow(),
            "item": out["item"].to_arrow(),
            "attempts": out["attempts"].to_arrow(),
            "correct": out["correct"].to_arrow(),
            "cluster": out["cluster"].to_arrow(),
        }
    ).cast(RESPONSES.schema())
    check_responses(table, lambda i: i + 1)
    return table


def _refuse_overlap(rows: pl.DataFrame, parts: Sequence[Cells]) -> None:
    """Raise where a pair stands in several rows without attempt numbers, or with a number in common."""
    union = pl.col("bits").bitwise_or().bitwise_count_ones()
    shared = (
        rows.group_by("model", "item")
        .agg(
            pl.len(),
            pl.col("part").min().alias("first"),
            pl.col("part").max().alias("last"),
            (pl.col("bits").is_null().any() | (union < pl.col("bits").bitwise_count_ones().sum())).alias("clash"),
        )
        .filter((pl.col("len") > 1) & pl.col("clash"))
        .sort("model", "item")
    )
    if shared.is_empty():
        return
    found = shared.row(0, named=True)
    a, b = parts[found["first"]].where, parts[found["last"]].where
    both = f"in {a} and in {b}" if a != b else f"twice in {a}"
    raise InputError(
        f"model '{found['model']}', item '{found['item']}' stand {both} ({shared.height} such pairs): "
        "--merge sum adds them up",
        where="",
    )


def sources(parts: Sequence[Cells]) -> list[dict[str, Any]]:
    """What was read, for `benchkit.sources`: one entry a source."""
    out = []
    for p in parts:
        f = p.frame
        out.append(
            {
                "source": p.where.rsplit("/", 1)[-1],
                "format": p.format,
                "rows": p.rows,
                "models": f["model"].n_unique(),
                "items": f["item"].n_unique(),
                "attempts": int(f["attempts"].sum()),
                "unscored": int(f["unscored"].sum()),
            }
        )
    return out
