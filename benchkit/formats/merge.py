"""Cells of several sources -> one responses table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from benchkit.errors import InputError
from benchkit.formats.cells import Cells
from benchkit.formats.clusters import check_clusters
from benchkit.formats.tally import Ints, add_up
from benchkit.tables import RESPONSES, check_responses, codes

MOST = 2**31 - 1


def merge(parts: Sequence[Cells], *, add: bool, duplicates: str | None) -> pa.Table:
    """One row a model and item, sorted by code point.

    Two sources may share a pair where their attempts' numbers differ. Otherwise the pair stands twice, and InputError
    names both sources, unless it was said that sums are to be added (`add`) or that rows are attempts (`duplicates`).
    """
    rows = pl.concat([p.frame.with_columns(pl.lit(n, pl.Int64).alias("part")) for n, p in enumerate(parts)])
    pairs = _pairs(rows) if len(parts) > 1 or add else np.arange(rows.height)
    again = _repeated(pairs)
    if again.any() and not add and duplicates != "attempt":
        _refuse_overlap(rows.filter(again), parts, duplicates)
    if len(parts) > 1:
        check_clusters([p.frame for p in parts], where="")
    tried = (rows["attempts"] > 0).to_numpy()
    rows, pairs = rows.filter(tried).select("model", "item", "attempts", "correct", "cluster"), pairs[tried]
    again = _repeated(pairs)
    if again.any():
        _, first, at = np.unique(pairs[again], return_index=True, return_inverse=True)
        shared = rows.filter(again)
        attempts = np.zeros(len(first), np.int64)
        np.add.at(attempts, at, shared["attempts"].to_numpy())
        correct = add_up(shared["correct"].to_numpy(), at, len(first))
        sums = shared[first].with_columns(attempts=pl.Series(attempts), correct=pl.Series(correct))
        rows = pl.concat([rows.filter(~again), sums])
    if rows.is_empty():
        raise InputError("no scored attempt is left" if any(p.rows for p in parts) else "no rows")
    many = rows.filter(pl.col("attempts") > MOST)
    if not many.is_empty():
        raise InputError(f"model '{many['model'][0]}', item '{many['item'][0]}': more than {MOST} attempts")
    table = pa.table({name: rows[name].to_arrow() for name in RESPONSES.schema().names}).cast(RESPONSES.schema())
    table = table.sort_by([("model", "ascending"), ("item", "ascending")])
    check_responses(table, lambda i: i + 1, unique=False)
    return table


def _pairs(rows: pl.DataFrame) -> Ints:
    """The model and item of each row as one whole number."""
    model, _ = codes(pa.chunked_array([rows["model"].to_arrow().cast(pa.utf8())]))
    item, items = codes(pa.chunked_array([rows["item"].to_arrow().cast(pa.utf8())]))
    out: Ints = model * len(items) + item
    return out


def _repeated(pairs: Ints) -> npt.NDArray[np.bool_]:
    """Which rows share their pair with another."""
    _, at, count = np.unique(pairs, return_inverse=True, return_counts=True)
    out: npt.NDArray[np.bool_] = count[at] > 1
    return out


def _refuse_overlap(rows: pl.DataFrame, parts: Sequence[Cells], duplicates: str | None) -> None:
    """Raise where a pair that several rows hold is not made of different attempts."""
    union = pl.col("bits").bitwise_or().bitwise_count_ones()
    suspects = (
        rows.group_by("model", "item")
        .agg(
            pl.col("part").sort(),
            (pl.col("bits").is_null().any() | (union < pl.col("bits").bitwise_count_ones().sum())).alias("clash"),
        )
        .filter("clash")
    )
    told = [n for n, p in enumerate(parts) if p.attempts is not None]
    known = suspects["part"].list.eval(pl.element().is_in(told)).list.all()  # every attempt's number is there to see
    sure = suspects.filter(~known).select("model", "item", "part", attempt=pl.lit(None, pl.String))
    clashes = pl.concat([sure, _same_attempts(suspects.filter(known), parts)]).sort("model", "item")
    if clashes.is_empty():
        return
    found = clashes.row(0, named=True)
    a, b = (parts[n].where for n in found["part"][:2])
    both = f"in {a} and in {b}" if a != b else f"twice in {a}"
    which = f" attempt '{found['attempt']}'" if found["attempt"] is not None else ""
    hint = "; --duplicates chooses within one source only" if duplicates else ""
    raise InputError(
        f"model '{found['model']}', item '{found['item']}'{which} stand {both} ({clashes.height} such pairs): "
        f"--merge sum adds them up{hint}",
        where="",
    )


def _same_attempts(suspects: pl.DataFrame, parts: Sequence[Cells]) -> pl.DataFrame:
    """Those of the pairs where one attempt's number or name really stands in two sources."""
    wanted = suspects.select("model", "item").lazy()
    seen = [
        p.attempts.join(wanted, on=["model", "item"], how="semi")
        .unique()
        .with_columns(pl.lit(n, pl.Int64).alias("part"))
        for n, p in enumerate(parts)
        if p.attempts is not None
    ]
    if not seen or suspects.is_empty():
        return suspects.select("model", "item", "part", attempt=pl.lit(None, pl.String)).clear()
    twice = pl.concat(seen).group_by("model", "item", "attempt").agg(pl.col("part").sort())
    twice = twice.filter(pl.col("part").list.len() > 1).sort("attempt")
    first = twice.group_by("model", "item", maintain_order=True).first()
    return first.select("model", "item", "part", "attempt").collect()


def source(part: Cells, task: str | None) -> dict[str, Any]:
    """What was read from one source, for `benchkit.sources`. task: of which its items are, where no name says it."""
    more = {"failed": part.failed, "skipped": part.skipped, "task": task, "settings": part.settings}
    return {
        "source": part.where.rsplit("/", 1)[-1],
        "format": part.format,
        "rows": part.rows,
        "models": part.frame["model"].n_unique(),
        "items": part.frame["item"].n_unique(),
        "attempts": int(part.frame["attempts"].sum()),
        "unscored": part.unscored,
    } | {key: value for key, value in more.items() if value}
