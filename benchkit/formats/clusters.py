"""An item belongs to one cluster, whichever model tried it and whichever source says so."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from benchkit.errors import InputError


def check_clusters(parts: Sequence[pl.DataFrame], where: str | None = None) -> None:
    """Raise InputError where the rows (item, cluster) of all parts give one item two clusters, or one and none."""
    seen = pl.concat([p.select("item", "cluster") for p in parts]).unique()
    if seen["cluster"].null_count() == seen.height:
        return
    torn = seen.group_by("item").agg(pl.len(), pl.col("cluster").sort()).filter(pl.col("len") > 1).sort("item")
    if not torn.is_empty():
        item, _, clusters = torn.row(0)
        shown = [
            "no cluster" if c is None else f"cluster '{c}'" for c in sorted(clusters, key=lambda c: (c is None, c))
        ]
        raise InputError(f"item '{item}' is in {shown[0]} and in {shown[1]}", where=where)
