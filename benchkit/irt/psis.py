"""Pareto-smoothed importance sampling, leave one out: many cells at a time. Numpy only.

Vehtari, Simpson, Gelman, Yao, Gabry 2024, "Pareto smoothed importance sampling", JMLR 25(72), for the smoothing and
its threshold; Vehtari, Gelman, Gabry 2017, Statistics and Computing 27, for its use here; Zhang and Stephens 2009,
Technometrics 51(3), for the generalised Pareto fit.

The draws s of the whole posterior are weighted by 1/p_s, p_s = p(y_c | s), to stand for the posterior without cell c.
The T largest weights are replaced by quantiles of a generalised Pareto distribution fitted to them, never above the
largest of them. Numbers equal those of arviz-stats and of R's loo. Weights are not needed one by one: below the tail
weight times p_s is 1, so that  elpd = log (S - T + sum_tail w_t p_t) / (sum_body 1/p_s + sum_tail w_t).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from benchkit.irt.model import Array

# fewest draws with a tail of five, the least that a Pareto distribution is fitted to
MIN_DRAWS = 25

# Log weights this close are equal: whatever the shape of their tail, elpd moves by less.
_EQUAL = 1e-8


class Pointwise(NamedTuple):
    """One value per cell, (C,).

    elpd: log predictive density of the cell given all the others. lpd: given all, itself among them; lpd - elpd is the
    cell's share of p_loo. k: shape of the weights' tail; 0 where the weights are equal, inf where no tail can be
    fitted (a quarter of it are ties).
    """

    elpd: Array
    lpd: Array
    k: Array


def threshold(draws: int) -> float:
    """The largest k at which S draws are enough: min(1 - 1/log10 S, 0.7) (Vehtari et al. 2024, section 3.2.4)."""
    return min(1 - 1 / math.log10(draws), 0.7)


def tail_length(draws: int, relative_efficiency: float = 1.0) -> int:
    """How many weights are smoothed: min(S/5, 3 sqrt(S/r_eff)), rounded down, at least 5."""
    return max(5, int(min(draws // 5, 3 * math.sqrt(draws / relative_efficiency))))


def psis_loo(loglik: Array, relative_efficiency: float = 1.0) -> Pointwise:
    """Leave-one-out predictive densities from log likelihoods (C, S), S >= 25, which are overwritten.

    A constant may be missing from each row; it is then missing from elpd and lpd. relative_efficiency: effective sample
    size / S, scalar; it only sets the tail's length.
    """
    draws = loglik.shape[1]
    tail_size = tail_length(draws, relative_efficiency)
    body_size = draws - tail_size
    with np.errstate(all="ignore"):
        # log weights, the largest 0
        low = loglik.min(1, keepdims=True)
        high = loglik.max(1, keepdims=True)
        ratio = np.subtract(low, loglik, out=loglik)
        ratio.partition(body_size - 1, axis=1)
        cut = ratio[:, body_size - 1, None].copy()
        tail = np.sort(ratio[:, body_size:], axis=1)
        lpd = high[:, 0] + np.log(np.exp((low - high) - ratio).mean(1))
        body = np.exp(ratio[:, :body_size]).sum(1)

        # exceedances in units of the largest one
        weight = np.exp(tail)
        largest = -np.expm1(cut)
        k, sigma = _fit_pareto(weight * -np.expm1(cut - tail) / largest)
        equal = cut[:, 0] > -_EQUAL
        k[equal] = 0.0
        p = (np.arange(tail_size) + 0.5) / tail_size
        smoothed = np.exp(cut) + largest * sigma[:, None] * _pareto_quantile(p, k)
        smoothed = np.minimum(smoothed, 1.0)
        usable = np.isfinite(k) & ~equal
        weight[usable] = smoothed[usable]
        k[~np.isfinite(k)] = np.inf
        # the exponent is only cut in cells whose k is far beyond use
        numerator = body_size + np.exp(np.minimum(np.log(weight) - tail, 700.0)).sum(1)
        elpd = low[:, 0] + np.log(numerator / (body + weight.sum(1)))
    return Pointwise(elpd, lpd, k)


def _fit_pareto(x: Array) -> tuple[Array, Array]:
    """Shape k and scale sigma of a generalised Pareto distribution for each sorted row of x (C, T), whose last is 1.

    Zhang and Stephens' posterior mean over a grid of 1/scale; k then gets a prior worth ten draws at 0.5 (Vehtari et
    al. 2024, appendix C). NaN where the lower quartile is 0.
    """
    rows, n = x.shape
    grid = 30 + int(math.sqrt(n))
    quartile = x[:, int(n / 4 + 0.5) - 1]
    steps = 1 - np.sqrt(grid / (np.arange(grid) + 0.5))
    b = steps / (3 * quartile[:, None]) + 1
    mean_log = np.empty((rows, grid))
    work = np.empty_like(x)
    for g in range(grid):
        np.multiply(x, -b[:, g, None], out=work)
        np.log1p(work, out=work)
        mean_log[:, g] = work.mean(1)
    profile = n * (np.log(-b / mean_log) - mean_log - 1)
    w = np.exp(profile - profile.max(1, keepdims=True))
    best = (w * b).sum(1) / w.sum(1)
    k = np.log1p(-best[:, None] * x).mean(1)
    sigma = -k / best
    return (n * k + 5) / (n + 10), sigma


def _pareto_quantile(p: Array, k: Array) -> Array:
    """(1 - (1-p)^-k) / -k for p (T,), k (C,): quantiles of the distribution of scale 1, (C, T)."""
    exponent = -np.log1p(-p)
    shape = np.where(np.abs(k) < 1e-10, 1e-10, k)[:, None]
    return np.asarray(np.expm1(shape * exponent) / shape)
