"""What a fit says of the cells of a responses table: its draws, for the table's models and items."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from benchkit.errors import InputError
from benchkit.irt.conditional import sample
from benchkit.irt.pointwise import Draws
from benchkit.parameters import fit_draws, named
from benchkit.responses import Wide, digest
from benchkit.wire import Frame


def draws(fit: Frame, data: Wide, seed: int) -> tuple[Draws, list[str]]:
    """Joint posterior draws of the abilities and difficulties of the table, N models and M items; and warnings.

    A fit keeps the draws of its models, but those of its items only with --keep-draws. Where `data` is the very table
    that a 1PL fit was made from, the difficulties are drawn anew given each draw of the abilities: the same joint
    posterior. Raises InputError for models or items that are not in the fit, and where draws are lacking.
    """
    document = fit.fit or {}
    if document.get("method") == "laplace":
        raise InputError("a fit by laplace has no draws: fit it by nuts", where=fit.where)
    rows = {k: fit.table.filter(pc.equal(fit.table["kind"], k)) for k in ("model", "item", "item_a")}
    for kind, ids in (("model", data.models), ("item", data.items)):
        if strange := sorted(set(ids) - set(rows[kind]["id"].to_pylist())):
            raise InputError(f"{named(kind, strange)} not in the fit {fit.where}")
    theta = fit_draws(fit, "model", data.models)
    beta = document.get("dispersion") == "beta"
    two = bool(rows["item_a"].num_rows)
    rho = fit_draws(fit, "hyper", ["rho"])[:, 0] if beta else None
    a = fit_draws(fit, "item_a", data.items) if two else None
    same = document.get("responses") == digest(data) and not document.get("anchored")
    said = [] if same else [f"{fit.where} was not made from these very results: its posterior is of others"]
    if rows["item"]["draws"].null_count and not (beta or two) and same:
        hyper = fit_draws(fit, "hyper", ["mu_b", "sigma_b"]).astype(np.float64)
        keys = [f"item {name}" for name in data.items]
        found = sample(data.attempts, data.correct.sum(0), theta, hyper[:, 0], hyper[:, 1], keys, seed=seed)
        return Draws(theta, found.T), said
    return Draws(theta, fit_draws(fit, "item", data.items), a, rho), said
