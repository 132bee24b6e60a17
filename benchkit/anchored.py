"""New items, or new models, beside a fit that stays as it is: one parameters table of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.errors import InputError
from benchkit.irt import anchor
from benchkit.parameters import Keep, Made, fit_draws, floats, lists, named
from benchkit.responses import Wide
from benchkit.tables import PARAMETERS, SORT
from benchkit.wire import Frame

OTHER = {"item": "model", "model": "item"}
OPTION = {"item": "--anchor", "model": "--anchor-items"}
HYPER = {"item": ("mu_b", "sigma_b"), "model": ("sigma_theta",)}


def place(kind: str, fit: Frame, data: Wide, *, keep: Keep, seed: int) -> Made:
    """Place the new rows of `kind` (item or model) by `fit`, a parameters table with draws.

    Gives the fit's rows and the new ones, sorted, and the fit's document with one more entry in `anchored`. The new
    rows have draws as the fit's rows of their kind do, and with `keep` all, or for models some, in any case; with
    `keep` none no row has. Raises InputError where the fit lacks a model (item) of the data or has a new item (model)
    already, where it has not the draws, and for a fit by another model than the 1PL.
    """
    document = dict(fit.fit or {})
    _check_model(document, fit.where)
    new, old = (data.items, data.models) if kind == "item" else (data.models, data.items)
    known = {k: set(fit.table.filter(pc.equal(fit.table["kind"], k))["id"].to_pylist()) for k in OTHER}
    if again := [x for x in new if x in known[kind]]:
        raise InputError(
            f"{named(kind, again)} in the fit {fit.where} already: new results of old {kind}s need a new fit"
        )
    if strange := [x for x in old if x not in known[OTHER[kind]]]:
        raise InputError(
            f"{named(OTHER[kind], strange)} not in {fit.where}: fit the {OTHER[kind]}s together, or place the new "
            f"ones first by {OPTION[OTHER[kind]]}"
        )
    beta = document.get("dispersion") == "beta"
    hyper = fit_draws(fit, "hyper", [*HYPER[kind], *(["rho"] if beta else [])]).astype(np.float64)
    rho, chains = hyper[:, -1] if beta else None, _chains(document)
    if beta and (data.correct != np.round(data.correct)).any():
        raise InputError(f"scores that are fractions have no beta-binomial likelihood, which {fit.where} has")
    counts = data.attempts, data.correct
    fixed = fit_draws(fit, OTHER[kind], old)
    try:
        if kind == "item":
            found = anchor.items(*counts, fixed, hyper[:, 0], hyper[:, 1], new, rho=rho, chains=chains, seed=seed)
        else:
            found = anchor.models(*counts, fixed, hyper[:, 0], new, rho=rho, chains=chains, seed=seed)
    except InputError as e:
        raise InputError(str(e), where=fit.where) from None

    drawn = fit.table.filter(pc.equal(fit.table["kind"], kind))["draws"]
    as_before = len(drawn) > 0 and drawn.null_count == 0
    held = keep == "all" or (keep == "some" and (as_before or kind == "model"))
    table = pa.concat_tables([fit.table, _rows(kind, new, data, found, held)])
    table = table.combine_chunks().sort_by([(key, "ascending") for key in SORT[PARAMETERS.name]])
    if keep == "none":
        column = table.schema.get_field_index("draws")
        table = table.set_column(column, table.field(column), pa.nulls(table.num_rows, table.field(column).type))
        document |= {k: None for k in ("thin", "kept_draws") if k in document}
    entry = {"kind": kind, "count": len(new), "fixed": len(old), "draws": len(hyper), "seed": seed,
             "pearson_phi": found.pearson_phi}  # fmt: skip
    if found.pearson_phi_reason:
        entry["pearson_phi_reason"] = found.pearson_phi_reason
    before = document.get("anchored")
    document["anchored"] = [*(before if isinstance(before, list) else []), entry]
    return Made(table, document, found.warnings)


def _check_model(document: dict[str, Any], where: str) -> None:
    if document.get("method") == "laplace":
        raise InputError("a fit by laplace has no draws: fit it by nuts, and with --keep-draws", where=where)
    if document.get("model", "1pl") != "1pl":
        raise InputError(
            f"a fit of the model {document['model']}: only fits of the 1pl can be anchored to", where=where
        )
    if document.get("dispersion") not in (None, "none", "binomial", "beta"):
        raise InputError(f"a fit with dispersion {document['dispersion']}, which is unknown", where=where)


def _chains(document: dict[str, Any]) -> int | None:
    chains = document.get("chains")
    return chains if isinstance(chains, int) and chains > 0 else None


def _rows(kind: str, new: Sequence[str], data: Wide, found: anchor.Anchored, held: bool) -> pa.Table:
    size, axis = len(new), 0 if kind == "item" else 1
    columns: dict[str, Any] = {
        "kind": [kind] * size,
        "id": new,
        "attempts": data.attempts.sum(axis),
        "correct": data.correct.sum(axis),
        "boundary": found.boundary,
        "origin": ["anchored"] * size,
    }
    for name in ("mean", "sd", "lower", "upper", "rhat", "ess_bulk", "ess_tail"):
        columns[name] = floats(getattr(found.summary, name))
    if held:
        columns["draws"] = lists(found.draws, np.ones(size, bool))
    schema = PARAMETERS.schema()
    return pa.table(
        [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(size, f.type) for f in schema],
        schema=schema,
    )
