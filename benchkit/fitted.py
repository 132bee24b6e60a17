"""A fit and what may go with it (stability, predictive comparison) as a parameters table and its document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc

from benchkit import parameters
from benchkit.errors import InputError
from benchkit.irt import fit as irt
from benchkit.irt.model import Data
from benchkit.irt.pointwise import Draws
from benchkit.responses import Wide, digest
from benchkit.wire import Frame

Progress = Callable[[str], Callable[[int, int], None] | None]


def fitted(
    data: Wide,
    *,
    keep: parameters.Keep,
    stability: bool = False,
    loo: bool = False,
    against: Frame | None = None,
    progress: Progress,
    **options: Any,
) -> parameters.Made:
    """Fit `data` with the options of `irt.fit`, refit without each model, predict each cell from the others.

    against: a fit with `elpd_loo` to compare with. progress(what) gives a bar, or None.
    Raises InputError for unusable data or options, and where `against` is not a fit of the same counts with --loo.
    """
    other = None if against is None else _elpd_of(against, data)
    found = irt.fit(
        data.attempts, data.correct, progress=progress("sampling"), models=data.models, items=data.items, **options
    )
    counts = Data(data.attempts, data.correct)
    document, warnings = dict(found.diagnostics), list(found.warnings)
    document |= {"responses": digest(data), "stability": None, "loo": None}
    steady = elpd = None
    if stability:
        from benchkit.irt.stability import leave_one_out

        weights = None if found.over is None else found.over.weights
        steady = leave_one_out(counts, options["priors"], found.mode, progress=progress("refitting"), weights=weights)
        document |= steady.document(data.models, data.items)
        warnings += steady.warnings(data.models)
    if loo:
        from benchkit.irt import loo as predictive

        out_of_sample = predictive.loo(counts, _pointwise(found))
        report, elpd = out_of_sample.report(), out_of_sample.items
        warnings += out_of_sample.warnings
        if other is not None and elpd is not None:
            contrast = predictive.compare(elpd, other)
            report["comparison"] = {"difference": contrast.difference, "se": contrast.se, "items": contrast.items}
            warnings += contrast.warnings
        document["loo"] = report
    document |= parameters.kept(found, keep)
    table = parameters.of_fit(found, data, keep=keep, stability=steady, elpd_loo=elpd)
    return parameters.Made(table, document, tuple(warnings))


def _pointwise(found: irt.Fit) -> Draws:
    """The fit's draws, by what they are of."""
    assert found.draws is not None
    first, n_items = len(found.names), len(found.items.mean)
    rho = found.draws[:, found.names.index("rho")] if "rho" in found.names else None
    last = first + n_items
    a = None if found.discriminations is None else found.draws[:, last : last + n_items]
    theta = found.draws[:, found.draws.shape[1] - len(found.models.mean) :]
    return Draws(theta=theta, b=found.draws[:, first:last], a=a, rho=rho)


def _elpd_of(fit: Frame, data: Wide) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The column elpd_loo of another fit's items, which must be those of `data` with the same totals."""
    rows = fit.table.filter(pc.equal(fit.table["kind"], "item"))
    elpd = rows["elpd_loo"]
    if not len(elpd) or elpd.null_count:
        raise InputError("the fit has no elpd_loo to compare with: make it with --loo", where=fit.where)
    same = rows["id"].to_pylist() == list(data.items)
    same = same and rows["attempts"].to_pylist() == data.attempts.sum(0).tolist()
    if not (same and np.allclose(rows["correct"].to_numpy(), data.correct.sum(0), rtol=0, atol=1e-9)):
        raise InputError(
            "this is a fit of other results: only fits of the same results can be compared", where=fit.where
        )
    return np.asarray(elpd.to_numpy(), np.float64)
