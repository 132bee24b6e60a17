"""A parameters table as arrays, for the statistics of difficulty; and the other way, from a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.cli import BINARY
from benchkit.errors import InputError
from benchkit.responses import Wide
from benchkit.tables import PARAMETERS

if TYPE_CHECKING:
    from benchkit.irt.fit import Fit
    from benchkit.irt.stability import Stability
    from benchkit.wire import Frame

Floats = np.ndarray[Any, np.dtype[np.float64]]
Draws = np.ndarray[Any, np.dtype[np.float32]]
Keep = Literal["all", "some", "none"]
"""Which draws a table keeps: every draw of every row; at most `SOME` of each hyperparameter and model, evenly spaced in
the chains, which is what new items can be calibrated by; or none."""
SOME = 1000


class Made(NamedTuple):
    """What bk-irt writes: the rows, the document `fit`, and new warnings."""

    table: pa.Table
    fit: dict[str, Any]
    warnings: tuple[str, ...]


class Group(NamedTuple):
    """The rows of one kind, sorted by identifier.

    `mean`, `sd` (K,) in logits. `boundary` (K,) bool, None where the table has no such column. `draws` float32 (S, K),
    a view of the table's memory; None unless all rows of the kind have draws.
    """

    ids: list[str]
    mean: Floats
    sd: Floats
    boundary: np.ndarray[Any, np.dtype[np.bool_]] | None
    draws: Draws | None


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


def caveats(table: pa.Table) -> list[str]:
    """What the statistics of difficulty leave out of a parameters table, in words."""
    if pc.any(pc.equal(table["kind"], "item_a")).as_py():
        return [
            "a fit of the 2pl: failure probabilities (companion, --normalize failure) leave out its discriminations"
        ]
    return []


def thinning(chains: int, draws: int, keep: Keep) -> tuple[int, int]:
    """k and n: every k-th draw of each chain is kept, n of them a chain; the least k that leaves `SOME` in all."""
    step = draws // (SOME // chains + 1) + 1 if keep == "some" else 1
    return step, draws // step


def kept(fit: Fit, keep: Keep) -> dict[str, int | None]:
    """What the fit document says of the draws in the table: `thin` and `kept_draws`, of each chain."""
    if fit.draws is None or keep == "none":
        return {"thin": None, "kept_draws": None}
    chains = fit.diagnostics["chains"]
    return dict(zip(("thin", "kept_draws"), thinning(chains, len(fit.draws) // chains, keep), strict=True))


def keeping(keep_draws: bool, to: str) -> Keep:
    """Binary formats keep some draws by themselves; text would grow unwieldy."""
    return "all" if keep_draws else "some" if to in BINARY else "none"


def of_fit(
    fit: Fit, data: Wide, *, keep: Keep = "none", stability: Stability | None = None, elpd_loo: Floats | None = None
) -> pa.Table:
    """The parameters table of a fit to `data`: hyper, item, item_a and model rows, each kind sorted by identifier.

    elpd_loo (M,): sums over the items' cells.
    """
    slopes = [] if fit.discriminations is None else data.items
    axes = (0, 0, 1) if slopes else (0, 1)
    hyper = len(fit.names)
    sizes = {"hyper": hyper, "item": len(data.items), "item_a": len(slopes), "model": len(data.models)}
    count = sum(sizes.values())
    unknown, rest = [None] * hyper, [None] * (len(slopes) + len(data.models))
    columns: dict[str, Any] = {
        "kind": [kind for kind, size in sizes.items() for _ in range(size)],
        "id": [*fit.names, *data.items, *slopes, *data.models],
        "attempts": unknown + [int(n) for axis in axes for n in data.attempts.sum(axis)],
        "correct": unknown + [float(y) for axis in axes for y in data.correct.sum(axis)],
        "boundary": unknown + [bool(f) for axis in axes for f in (fit.boundary_models if axis else fit.boundary_items)],
        "origin": unknown + ["fit"] * (count - hyper),
    }
    parts = [part for part in (fit.hyper, fit.items, fit.discriminations, fit.models) if part is not None]
    for name in ("mean", "sd", "lower", "upper", "rhat", "ess_bulk", "ess_tail"):
        values = [getattr(part, name) for part in parts]
        columns[name] = pa.nulls(count, pa.float64()) if values[0] is None else floats(np.concatenate(values))
    shift, cause = [None] * len(data.items), [None] * len(data.items)
    if stability is not None:
        shift = floats(stability.shift).to_pylist()
        cause = [data.models[i] if i >= 0 else None for i in stability.shift_model.tolist()]
    columns["stability_shift"] = unknown + shift + rest
    columns["stability_model"] = unknown + cause + rest
    elpd = [None] * len(data.items) if elpd_loo is None else floats(elpd_loo).to_pylist()
    columns["elpd_loo"] = unknown + elpd + rest
    columns["draws"] = _kept_draws(fit, np.array([kind in ("hyper", "model") for kind in columns["kind"]]), keep)
    schema = PARAMETERS.schema()
    return pa.table([pa.array(columns[f.name], f.type, from_pandas=False) for f in schema], schema=schema)


def _kept_draws(fit: Fit, enough: np.ndarray[Any, np.dtype[np.bool_]], keep: Keep) -> pa.Array:
    """The column `draws`. `enough` says which rows have draws where some are kept."""
    if fit.draws is None or keep == "none":
        return pa.nulls(len(enough), PARAMETERS.schema().field("draws").type)
    chains: int = fit.diagnostics["chains"]
    step, _ = thinning(chains, len(fit.draws) // chains, keep)
    held = enough if keep == "some" else np.ones(len(enough), bool)
    thinned = fit.draws.reshape(chains, -1, len(enough))[:, step - 1 :: step].reshape(-1, len(enough))
    return lists((thinned if held.all() else thinned[:, held]).T, held)


def lists(values: Draws, held: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Array:
    """A list column: the rows of `values`, in their order, where `held` is true, and null elsewhere."""
    size = values.shape[1] if len(values) else 0
    if int(held.sum()) * size >= 2**31:
        raise InputError("more than 2^31 draws to keep: keep fewer, or fit fewer items at a time", where="")
    offsets = np.concatenate([[0], np.cumsum(held * size)]).astype(np.int32)
    flat = pa.array(np.ascontiguousarray(values, np.float32).ravel())
    return pa.ListArray.from_arrays(pa.array(offsets), flat, mask=pa.array(~held))


def fit_draws(fit: Frame, kind: str, ids: Sequence[str]) -> Draws:
    """The draws of these rows of a fit, float32 (S, K); InputError names the ids without a row or without draws."""
    rows = fit.table.filter(pc.equal(fit.table["kind"], kind)).combine_chunks()
    at = pc.index_in(pa.array(ids, pa.utf8()), rows["id"].combine_chunks())
    column = rows["draws"].combine_chunks().take(at)
    if column.null_count:
        lacking = pa.array(ids, pa.utf8()).filter(column.is_null()).to_pylist()
        how = "make the fit with --keep-draws" + (", or as Arrow or Parquet" if kind in ("hyper", "model") else "")
        what = {"hyper": "row", "item_a": "discrimination"}.get(kind, kind)
        raise InputError(f"no draws of {listed(what, lacking)}: {how}", where=fit.where)
    return np.asarray(pc.list_flatten(column).to_numpy().reshape(len(ids), -1).T)


def listed(kind: str, names: Sequence[str]) -> str:
    """Three names at most: items 'a', 'b', 'c' and 2 more."""
    shown = ", ".join(f"'{x}'" for x in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{kind}{'s' if len(names) > 1 else ''} {shown}{more}"


def named(kind: str, names: Sequence[str]) -> str:
    """The same as the subject of a sentence: items 'a', 'b' are."""
    return f"{listed(kind, names)} {'is' if len(names) == 1 else 'are'}"


def floats(values: Floats) -> pa.Array:
    """Undefined (NaN) as null."""
    return pa.array(values, mask=np.isnan(values))
