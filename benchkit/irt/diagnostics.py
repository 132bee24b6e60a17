"""MCMC diagnostics: rank-normalised split R-hat, bulk and tail effective sample size, E-BFMI. Numpy only.

Vehtari, Gelman, Simpson, Carpenter, Buerkner 2021, "Rank-normalization, folding, and localization", Bayesian
Analysis 16(2); the sample size by Geyer's initial monotone sequence (Geyer 1992); E-BFMI: Betancourt 2016,
arXiv:1604.00695. Numbers equal those of ``blackjax.diagnostics``, without its compilation.

Draws have shape (chains, draws, P); results have shape (P,). A parameter with a draw that is not finite has NaN. One
that never moves has ESS 0 and R-hat NaN.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.irt.model import Array

# values handled at a time: they stay in the processor's cache
_CHUNK_VALUES = 250_000


class Diagnostics(NamedTuple):
    """rhat, ess_bulk, ess_tail, each (P,)."""

    rhat: Array
    ess_bulk: Array
    ess_tail: Array


def diagnose(draws: NDArray[np.floating]) -> Diagnostics:
    """All three diagnostics of draws (chains, draws, P); NaN below 4 draws a chain. Of one chain, the halves."""
    chains, n, size = draws.shape
    if n < 4:
        nan = np.full(size, np.nan)
        return Diagnostics(nan, nan, nan)
    step = max(1, _CHUNK_VALUES // (chains * n))
    chunks = (np.moveaxis(draws[:, :, k : k + step], 2, 0) for k in range(0, size, step))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(_diagnose, chunks))
    return Diagnostics(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def e_bfmi(energy: Array) -> Array:
    """Energy Bayesian fraction of missing information of each chain: sum (E_t - E_{t-1})^2 / sum (E_t - mean)^2.

    energy (chains, draws) -> (chains,). Below 0.3 the momentum can't carry a chain through its energies.
    """
    moves = (np.diff(energy, axis=1) ** 2).sum(1)
    spread = ((energy - energy.mean(1, keepdims=True)) ** 2).sum(1)
    out = np.full(len(spread), np.nan)
    np.divide(moves, spread, out=out, where=spread > 0)
    return out


def _diagnose(draws: NDArray[np.floating]) -> tuple[Array, Array, Array]:
    """draws (P, chains, n) -> rhat, bulk, tail, each (P,)."""
    half = draws.shape[2] // 2
    split = np.concatenate([draws[:, :, :half], draws[:, :, half : 2 * half]], axis=1)
    flat = split.reshape(len(split), -1).astype(np.float64)
    bad = ~np.isfinite(flat).all(1)
    flat[bad] = 0.0

    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, 1)
    scores = _scores(ordered, order).reshape(split.shape)
    # folded draws, taken in the order of the draws, fall and then rise: a merge sorts them
    fold = np.abs(ordered - _quantile(ordered, 0.5)[:, None])
    fold_order = np.argsort(fold, axis=1, kind="stable")
    fold_scores = _scores(np.take_along_axis(fold, fold_order, 1), np.take_along_axis(order, fold_order, 1))
    rhat = np.maximum(_rhat(scores), _rhat(fold_scores.reshape(split.shape)))

    low, high = _quantile(ordered, 0.05)[:, None], _quantile(ordered, 0.95)[:, None]
    tails = [_ess((x.reshape(split.shape)).astype(np.float64)) for x in (flat <= low, flat >= high)]
    results = rhat, _ess(scores), np.minimum(*tails)
    for x in results:
        x[bad] = np.nan
    return results


def _quantile(ordered: Array, q: float) -> Array:
    """Linear-interpolation quantile of sorted rows."""
    at = q * (ordered.shape[1] - 1)
    k = int(at)
    low, high = ordered[:, k], ordered[:, min(k + 1, ordered.shape[1] - 1)]
    return np.asarray(low * (1 - (at - k)) + high * (at - k))


@lru_cache(maxsize=4)
def _blom(n: int) -> Array:
    """Normal scores of the ranks 1, 1.5, 2, ... n of n values: Phi^-1((r - 3/8)/(n + 1/4)), (2n - 1,)."""
    inverse = NormalDist().inv_cdf
    lower = np.array([inverse((1 + k / 2 - 0.375) / (n + 0.25)) for k in range(n)])
    lower[-1] = 0.0
    return np.concatenate([lower, -lower[-2::-1]])


def _scores(ordered: Array, order: NDArray[np.intp]) -> Array:
    """Normal scores of the average ranks: sorted rows (P, n) and the sorting permutation -> (P, n), unsorted."""
    size, n = ordered.shape
    table = _blom(n)
    scores = np.empty((size, n))
    scores[:] = table[::2]
    row, column = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    if row.size:
        tied = row * n + column  # each equals its right neighbour
        breaks = np.flatnonzero(np.diff(tied) != 1)
        first = tied[np.append(0, breaks + 1)]
        last = tied[np.append(breaks, tied.size - 1)] + 1
        length = last - first + 1
        within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        scores.ravel()[np.repeat(first, length) + within] = np.repeat(table[first % n + last % n], length)
    out = np.empty((size, n))
    np.put_along_axis(out, order, scores, 1)
    return out


def _rhat(x: Array) -> Array:
    """Potential scale reduction of (P, chains, n)."""
    n = x.shape[2]
    within = x.var(2, ddof=1).mean(1)
    between = n * x.mean(2).var(1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((between / within + n - 1) / n))


def _ess(x: Array) -> Array:
    """Effective sample size of (P, chains, n) by Geyer's initial monotone sequence; 0 where nothing moves."""
    size, chains, n = x.shape
    means = x.mean(2)
    moves = (x != x[:, :, :1]).any((1, 2))
    spectrum = np.fft.rfft(x - means[:, :, None], n=_fast_length(2 * n), axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(1)
    covariance = np.fft.irfft(power, n=_fast_length(2 * n), axis=1)[:, :n] / n
    var0 = covariance[:, 0] * n / (n - 1)
    moves &= var0 > 0
    total = covariance[:, 0] + (means.var(1, ddof=1) if chains > 1 else 0.0)
    total = np.where(moves, total, 1.0)
    rho = 1 - (var0[:, None] - covariance) / total[:, None]
    rho[:, 0] = 1.0

    pairs = n // 2
    even, odd = rho[:, 0 : 2 * pairs : 2], rho[:, 1 : 2 * pairs : 2]
    tau = np.full(size, -1.0)
    least = np.full(size, np.inf)
    active = np.arange(size)  # parameters whose sequence is still positive
    for t in range(pairs):
        e, both = even[active, t], even[active, t] + odd[active, t]
        if t == 0:
            least[active] = both
        go = both > 0
        least[active[go]] = np.minimum(least[active[go]], both[go])
        tau[active[go]] += 2 * least[active[go]]
        # the pair after the last one adds its even part once, cut to the pair before it
        ends = active[~go]
        e = np.maximum(e[~go], 0.0)
        cut = e > least[ends]
        tau[ends] += np.where(cut & (t > 0), 1.5 * least[ends], e)
        active = active[go]
        if not active.size:
            break
    else:  # positive to the end: the last even part counts once
        last = even[active, pairs - 1]
        cut = last + odd[active, pairs - 1] > least[active]
        tau[active] -= np.where(cut, least[active] / 2, last)
    count = chains * n
    ess = count / np.maximum(tau, 1 / np.log10(count))
    return np.where(moves, ess, 0.0)


def _fast_length(n: int) -> int:
    """The smallest m >= n without prime factors above 5."""
    while True:
        m = n
        for p in (2, 3, 5):
            while m % p == 0:
                m //= p
        if m == 1:
            return n
        n += 1
