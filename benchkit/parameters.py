"""A parameters table as arrays, for the statistics of difficulty; and the other way, from a fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.errors import InputError

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Group(NamedTuple):
    """The rows of one kind, sorted by identifier.

    `mean`, `sd` (K,) in logits. `boundary` (K,) bool, None where the table has no such column. `draws` float32 (S, K),
    a view of the table's memory; None where the table keeps no draws.
    """

    ids: list[str]
    mean: Floats
    sd: Floats
    boundary: np.ndarray[Any, np.dtype[np.bool_]] | None
    draws: np.ndarray[Any, np.dtype[np.float32]] | None


def group(table: pa.Table, kind: str) -> Group:
    """The rows of `kind` of a parameters table that `wire.read` has checked; InputError for a table without items."""
    rows = table.filter(pc.equal(table["kind"], kind)).combine_chunks()
    if kind == "item" and not rows.num_rows:
        raise InputError("no row of kind 'item': there are no difficulties")
    flag, draws = rows["boundary"], rows["draws"]
    known = flag.null_count < rows.num_rows
    kept = rows.num_rows and draws.null_count == 0
    values = pc.list_flatten(draws).to_numpy() if kept else None
    return Group(
        rows["id"].to_pylist(),
        rows["mean"].to_numpy(),
        rows["sd"].to_numpy(),
        np.asarray(flag.fill_null(False)) if known else None,
        values.reshape(rows.num_rows, -1).T if values is not None and len(values) else None,
    )
