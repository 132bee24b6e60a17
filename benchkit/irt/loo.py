"""How well a fitted model predicts a cell that it has not seen: PSIS leave-one-out, to compare models. Numpy only.

    elpd_loo = sum over cells (i, j), n_ij > 0, of log p(y_ij | all other cells),  log C(n, y) included

p is the posterior predictive probability of the cell's count, all its attempts left out together (Vehtari, Gelman,
Gabry 2017). Higher is better; differences between models on the same cells are what counts (`compare`).

Cells of one item are not independent given the abilities, so the standard error is that of a sum over items,
e_j = sum_i elpd_ij:  se = sqrt(M/(M-1) sum_j (e_j - mean e)^2). It describes other items for the same models.

Draws count as independent (relative efficiency 1): the sampler's effective sample size is near or above the number
of draws, and a quarter or twice that moved elpd by less than its Monte Carlo error. That error fell from 0.2 to 0.9
with 1000 draws to 0.1 to 0.25 with 4000 (8 x 200 to 100 x 60 cells, 1 to 4 attempts each), where the standard error by
item was 20 to 100: all draws are used, except on tables so large that the time counts.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from benchkit.errors import InputError
from benchkit.irt.model import Array, Data
from benchkit.irt.pointwise import Draws, cell_loglik, check_draws, log_choose
from benchkit.irt.psis import MIN_DRAWS, psis_loo, threshold

# values of one chunk: it and its copies stay in the processor's cache
CHUNK_VALUES = 200_000

# Above so many log likelihoods (about half a minute on two cores) draws are thinned evenly, to no fewer than these.
MAX_VALUES, LEAST_DRAWS = 10**9, 1000

# More threads than this only raise the memory.
_THREADS = 8

# Below this difference the normal approximation of its error fails (Sivula, Magnusson, Matamoros, Vehtari 2020,
# arXiv:2008.10296); with fewer clusters than this their standard error is too small (Cameron and Miller 2015, Journal
# of Human Resources 50(2)).
SMALL_DIFFERENCE, FEW_ITEMS = 4.0, 20


class Loo(NamedTuple):
    """PSIS-LOO of one fit.

    elpd, se, p_loo: sum over cells, its standard error by item, effective number of parameters; nats. None with a
    reason: `reason` says why there is nothing at all, `se_reason` why there is no standard error.
    items: (M,) sums of elpd over an item's cells, NaN for an item without cells; None with `reason`.
    cells: how many are summed. draws: S, those used. k_threshold: the largest Pareto k that S draws can bear;
    k_above: the number of cells beyond it; k_max: the largest k, inf where a tail could not be fitted.
    """

    elpd: float | None
    se: float | None
    p_loo: float | None
    items: Array | None
    cells: int
    draws: int
    k_threshold: float | None
    k_above: int | None
    k_max: float | None
    reason: str | None
    se_reason: str | None
    warnings: tuple[str, ...]

    def report(self) -> dict[str, Any]:
        """What a document says: no NaN, no infinity, a reason beside what is undefined."""
        out: dict[str, Any] = {"elpd_loo": self.elpd}
        if self.reason:
            out["elpd_loo_reason"] = self.reason
        out["se"] = self.se
        if self.se_reason and not self.reason:
            out["se_reason"] = self.se_reason
        finite = self.k_max is not None and np.isfinite(self.k_max)
        out |= {
            "p_loo": self.p_loo,
            "cells": self.cells,
            "draws": self.draws,
            "pareto_k_threshold": self.k_threshold,
            "pareto_k_above": self.k_above,
            "pareto_k_max": self.k_max if finite else None,
        }
        if self.k_max is not None and not finite:
            out["pareto_k_max_reason"] = "on some cell a quarter of the largest weights are ties: no tail can be fitted"
        return out


class Comparison(NamedTuple):
    """elpd_loo of the first fit minus that of the second, its standard error by item, the number of items; nats."""

    difference: float
    se: float | None
    items: int
    se_reason: str | None
    warnings: tuple[str, ...]


def loo(
    data: Data,
    draws: Draws,
    *,
    relative_efficiency: float = 1.0,
    max_values: int = MAX_VALUES,
    chunk_values: int = CHUNK_VALUES,
) -> Loo:
    """PSIS-LOO of the cells of `data` under `draws` of a posterior given all of them.

    The model is what the draws hold: `a` makes it the 2PL, `rho` beta-binomial. With more than max_values pairs of a
    cell and a draw, evenly spaced draws are used, at least 1000 of them. Memory is bounded: chunks of cells with about
    chunk_values log likelihoods, on a few threads; results depend on neither.
    Raises InputError: draws of another shape, relative efficiency not positive.
    """
    count = check_draws(draws, data.attempts.shape)
    if not 0 < relative_efficiency < np.inf:
        raise InputError(f"relative efficiency must be positive, not {relative_efficiency}")
    # item by item
    j, i = (x.copy() for x in np.nonzero(data.attempts.T > 0))
    n, y = data.attempts[i, j], data.correct[i, j]
    if (y != np.floor(y)).any():
        reason = "some scores are fractions: their quasi-likelihood is no probability to predict with"
        return _nothing(reason, n.size, count)
    if count < MIN_DRAWS:
        return _nothing(f"{count} draws are too few for a Pareto fit: at least {MIN_DRAWS}", n.size, count)

    draws = _thin(draws, max(LEAST_DRAWS, max_values // n.size))
    count = len(draws.theta)
    elpd, lpd, k = np.empty((3, n.size))
    step = max(1, chunk_values // count)

    def work(start: int) -> None:
        at = slice(start, start + step)
        with np.errstate(all="ignore"):  # what is not finite is found below
            loglik = cell_loglik(draws, n[at], y[at], i[at], j[at])
        elpd[at], lpd[at], k[at] = psis_loo(loglik, relative_efficiency)
        elpd[at] += (constant := log_choose(n[at], y[at]))
        lpd[at] += constant

    with ThreadPoolExecutor(min(os.cpu_count() or 1, _THREADS)) as pool:
        for _ in pool.map(work, range(0, n.size, step)):
            pass
    if not np.isfinite(elpd).all():
        return _nothing("some draws are not finite", n.size, count)

    items: Array = np.bincount(j, elpd, data.attempts.shape[1]).astype(np.float64)
    items[~(data.attempts > 0).any(0)] = np.nan
    limit = threshold(count)
    above = int((k > limit).sum())
    se, se_reason = _clustered(items[~np.isnan(items)])
    warnings: tuple[str, ...] = ()
    if above:
        beta = "--dispersion beta" if draws.a is None else "--model 1pl --dispersion beta"
        remedy = "" if draws.rho is not None or n.max() == 1 else f", or try {beta}"
        warnings = (
            f"elpd_loo is unreliable on {above} of {n.size} cells (Pareto k above {limit:.2f}, the largest "
            f"{k.max():.2f}), which the model hardly expects or which weigh too much: raise --draws{remedy}",
        )
    return Loo(
        elpd=float(elpd.sum()),
        se=se,
        p_loo=float((lpd - elpd).sum()),
        items=items,
        cells=n.size,
        draws=count,
        k_threshold=limit,
        k_above=above,
        k_max=float(k.max()),
        reason=None,
        se_reason=se_reason,
        warnings=warnings,
    )


def compare(first: Array, second: Array) -> Comparison:
    """Compare two fits to the same cells by their items' sums of elpd_loo, each (M,), NaN for an item without cells.

    The difference is first minus second, positive where the first predicts better; its standard error is by item, of
    the differences. The caller sees to it that the cells are the same.
    Raises InputError: other shapes, other items without cells, no item at all.
    """
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"elpd_loo of {first.shape} and {second.shape} items: the two fits must have the same items")
    used = ~np.isnan(first)
    if (used != ~np.isnan(second)).any():
        raise InputError("elpd_loo is missing for different items: the two fits must be to the same cells")
    if not used.any():
        raise InputError("no item has an elpd_loo: nothing to compare")
    d = first[used] - second[used]
    difference = float(d.sum())
    se, reason = _clustered(d)
    warnings = []
    if abs(difference) < SMALL_DIFFERENCE:
        warnings.append(
            f"the elpd_loo differ by less than {SMALL_DIFFERENCE:g}: the models predict about equally well, and the "
            "standard error is unreliable; prefer the simpler model"
        )
    if se is not None and d.size < FEW_ITEMS:
        warnings.append(
            f"only {d.size} items: the standard error of the difference is too small; compare on more items"
        )
    return Comparison(difference, se, d.size, reason, tuple(warnings))


def _thin(draws: Draws, most: int) -> Draws:
    """At most `most` draws, evenly spaced."""
    count = len(draws.theta)
    if count <= most:
        return draws
    rows = np.arange(most) * count // most
    a, rho = (None if x is None else x[rows] for x in (draws.a, draws.rho))
    return Draws(draws.theta[rows], draws.b[rows], a, rho)


def _clustered(sums: Array) -> tuple[float | None, str | None]:
    """Standard error of the sum of M clusters' sums, or None and the reason."""
    if sums.size < 2:
        return None, "a standard error by item needs at least two items"
    return float(np.sqrt(sums.size) * sums.std(ddof=1)), None


def _nothing(reason: str, cells: int, draws: int) -> Loo:
    return Loo(None, None, None, None, cells, draws, None, None, None, reason, reason, ())
