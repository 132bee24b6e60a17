"""A parameters table as arrays, for the statistics of difficulty; and the other way, from a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.errors import InputError
from benchkit.responses import Wide
from benchkit.tables import PARAMETERS

if TYPE_CHECKING:
    from benchkit.irt.fit import Fit
    from benchkit.irt.summary import Summary

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


def of_fit(fit: Fit, data: Wide, *, keep_draws: bool = False) -> pa.Table:
    """The parameters table of a fit to `data`: hyper, item and model rows, each kind sorted by identifier."""
    from benchkit.irt.fit import HYPER

    totals = [data.attempts.sum(axis) for axis in (0, 1)], [data.correct.sum(axis) for axis in (0, 1)]
    hyper, count = len(HYPER), len(HYPER) + len(data.items) + len(data.models)
    unknown = [None] * hyper
    columns: dict[str, Any] = {
        "kind": ["hyper"] * hyper + ["item"] * len(data.items) + ["model"] * len(data.models),
        "id": [*HYPER, *data.items, *data.models],
        "attempts": unknown + [int(n) for n in np.concatenate(totals[0])],
        "correct": unknown + [float(y) for y in np.concatenate(totals[1])],
        "boundary": unknown + [bool(f) for f in np.concatenate([fit.boundary_items, fit.boundary_models])],
        "origin": unknown + ["fit"] * (count - hyper),
    }
    parts: tuple[Summary, ...] = (fit.hyper, fit.items, fit.models)
    for name in ("mean", "sd", "lower", "upper", "rhat", "ess_bulk", "ess_tail"):
        values = [getattr(part, name) for part in parts]
        columns[name] = pa.nulls(count, pa.float64()) if values[0] is None else _floats(np.concatenate(values))
    if keep_draws and fit.draws is not None:
        size = len(fit.draws)
        flat = pa.array(np.ascontiguousarray(fit.draws.T).ravel())
        columns["draws"] = pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * size, flat)
    else:
        columns["draws"] = pa.nulls(count, PARAMETERS.schema().field("draws").type)
    schema = PARAMETERS.schema()
    return pa.table([pa.array(columns[f.name], f.type, from_pandas=False) for f in schema], schema=schema)


def _floats(values: Floats) -> pa.Array:
    """Undefined (NaN) as null."""
    return pa.array(values, mask=np.isnan(values))
