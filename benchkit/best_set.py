"""The set of models that may be the best: those that no other model is proven to beat.

Of the N (N - 1) ordered pairs hardly any needs its p-value. With D = sum d > 0 the lead of k over j, s^2 = sum d^2 and
z = D/s, most pairs are settled by z alone, all z at once by a matrix product; the sign-flip test counts the others.

    single differences     |d| all equal: p = P(Bin(n, 1/2) <= down), n = D + 2 down, rises with `down` at a given D, so
                           there is a greatest `down` for each D, and no pair is left over
    p <= 3.1787 Phi(-z)    for every d (Bentkus and Dzindzalieta 2015, Lith. Math. J. 55, 185-213): j is beaten
    p > a bound            by the exponential change of measure below: k does not beat j
"""

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchkit.flips import binomial_tails, sign_flip
from benchkit.levels import Level, as_fraction, floor_float
from benchkit.scores import INT64, Differences, Floats, Ints, Scores, differences, sum_by

Bools = NDArray[np.bool_]

BLOCK = 256  # rivals at a time
ROWS = 2**20  # differences held at a time
TAIL_CONSTANT = 3.1787  # 1/(4 Phi(-sqrt 2)) = 3.17867 rounded up
BERRY_ESSEEN = 0.56  # for terms that differ (Shevtsova 2010)


def best_set(scores: Scores, sums: list[int], level: Level, codes: Ints | None = None, seed: int = 0) -> Bools:
    """Keep model j unless some k has a one-sided sign-flip p(k > j) <= (1 - level) / (N - 1).

    scores: of N complete models. sums: (N,) total scores. codes: (M,) units whose signs flip together, or None.
    Returns (N,) bool. A best model is compared with N - 1 others, so by Bonferroni it is dropped with probability at
    most 1 - level where differences against it are symmetric or favour it: the set covers it with `level`.
    """
    n = len(sums)
    keep = np.ones(n, dtype=bool)
    if n == 1:
        return keep
    threshold: Fraction = (1 - as_fraction(level)) / (n - 1)
    limit = floor_float(threshold)
    if limit == 0.0:  # below the least p-value there is
        return keep
    if threshold >= Fraction(1, 2):  # two models, and then an equal or better j can be dropped too
        d = differences(scores, np.array([0, 1]), np.array([1, 0]), None, codes)
        return np.asarray(sign_flip(d, "greater", seed=seed).p[::-1] > limit)
    values = scores.values
    if codes is not None and (values.dtype == object or scores.denominator * values.shape[1] >= INT64):
        values = values.astype(object)
    values = sum_by(values, codes)
    values = values - values.min(axis=0)
    unit = values.max()
    if unit == 0:
        return keep
    # p(k > j) >= 1/2 where k scores no more than j, so only better models can drop j. The strongest come first.
    order = np.array(sorted(range(n), key=lambda i: -sums[i]), dtype=np.int64)
    if scores.exact and bool(np.all((values == 0) | (values == unit))):
        keep[order] = _single(values[order] == unit, limit)
    else:
        keep[order] = _general(scores, sums, values, order, codes, threshold, seed)
    return keep


def _single(right: Bools, limit: float) -> Bools:
    """Which of the models (N, G), best first, stay where each unit is either right or wrong."""
    n, units = right.shape
    x: NDArray[Any] = right.astype(np.dtype(np.float32 if units < 2**24 else np.float64))
    totals = right.sum(axis=1)
    keep = np.ones(n, dtype=bool)
    most = np.full(units + 1, -2, dtype=np.int64)  # most[D]: greatest `down` that rejects; -2 where not known yet
    start, size = 0, 8
    while start < n:
        stop = min(start + size, n)
        below = start + np.flatnonzero(keep[start:])
        lead = totals[start:stop, None] - totals[below]
        down = totals[below] - (x[start:stop] @ x[below].T).astype(np.int64)
        for d in np.unique(lead[lead > 0]).tolist():
            if most[d] == -2:
                most[d] = greatest_down(d, units, limit)
        beaten = (lead > 0) & (down <= most[np.maximum(lead, 0)])
        keep[below[beaten.any(axis=0)]] = False
        start, size = stop, min(2 * size, BLOCK)
    return keep


def greatest_down(lead: int, units: int, limit: float) -> int:
    """Greatest c with lead + 2 c <= units and P(Bin(lead + 2 c, 1/2) <= c) <= limit; -1 if there is none.

    The probability rises with c, as two more steps of a symmetric walk make a distant end more likely.
    """
    last = (units - lead) // 2

    def rejects(c: int) -> bool:
        return binomial_tails(lead + 2 * c, [c])[c] <= limit

    if last < 0 or not rejects(0):
        return -1
    z2 = max(2.0 * -math.log(limit), 1.0)
    low, high, step = 0, last + 1, 1  # rejects(low), not rejects(high)
    middle = min(max(int((lead * lead / z2 - lead) / 2), 1), last)  # near it, from the normal tail
    while high - low > 1:
        if not low < middle < high:
            middle = (low + high) // 2
        if rejects(middle):
            low, middle = middle, middle + step
        else:
            high, middle = middle, middle - step
        step *= 2
    return low


def log_of(x: Fraction) -> float:
    """log x, also where x is below the least float."""
    return math.log(x.numerator) - math.log(x.denominator)


@functools.lru_cache(maxsize=64)
def beaten_from(threshold: Fraction) -> float:
    """z from which p <= threshold for all d: 3.1787 Phi(-z) <= threshold, or else exp(-z^2/2) <= threshold."""
    high = math.sqrt(-2.0 * log_of(threshold)) * (1 + 1e-12)
    if threshold < Fraction(1, 10**290):
        return high
    low, t = 0.0, float(threshold) * (1 - 1e-12)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if TAIL_CONSTANT * math.erfc(middle / math.sqrt(2)) / 2 <= t else (middle, high)
    return high


@functools.lru_cache(maxsize=64)
def unbeaten_up_to(threshold: Fraction) -> tuple[Floats, Floats]:
    """(kappa, z), ascending in kappa: p > threshold for all d with sum d^4 / (sum d^2)^2 <= kappa and D/s <= z.

    Let S = sum e_j d_j have law P, and P_l the law with density exp(l S/s) / M, log M = sum log cosh(l d_j/s)
    >= l^2/2 - l^4 kappa/12. Under P_l, S/s has mean between l - l^3 kappa/3 and l and variance between 1 - l^2 kappa
    and 1, and

        P(S >= D) >= M exp(-l b) P_l(D <= S <= b s),   b = l + y, D <= (l - l^3 kappa/3 - x) s.

    The last probability is at least 1 - c(x) - c(y), c the smaller of Cantelli's 1/(1 + x^2) and Hoeffding's
    exp(-x^2/2), and by Berry and Esseen at least Phi(x) + Phi(y) - 1 - 1.12 sqrt(kappa)/(1 - l^2 kappa)^1.5.
    """
    goal = log_of(threshold) + 1e-9
    kappas = 2.0 ** np.arange(-24, 0.5, 0.5)
    side = np.linspace(0.05, 2.5, 25)
    phi = np.array([(1 + math.erf(x / math.sqrt(2))) / 2 for x in side])
    off = np.minimum(1 / (1 + side**2), np.exp(-(side**2) / 2))
    plain = 1 - off[:, None] - off[None, :]
    normal = phi[:, None] + phi[None, :] - 1
    tilt = np.linspace(0.0, math.sqrt(-2.0 * log_of(threshold)) + 1, 200)[:, None, None]
    found = np.full(kappas.size, -np.inf)
    for at, kappa in enumerate(kappas.tolist()):
        spare = np.maximum(1 - tilt**2 * kappa, 1e-100)
        error = 2 * BERRY_ESSEEN * math.sqrt(kappa) / spare**1.5
        inside = np.maximum(np.maximum(plain, normal - error), 1e-300)
        log_p = -(tilt**2) / 2 - tilt**4 * kappa / 12 - tilt * side[None, None, :] + np.log(inside)
        z = np.where(log_p > goal, tilt - tilt**3 * kappa / 3 - side[None, :, None], -np.inf)
        found[at] = z.max()
    return kappas, found


def _general(
    scores: Scores,
    sums: list[int],
    values: NDArray[Any],
    order: Ints,
    codes: Ints | None,
    threshold: Fraction,
    seed: int,
) -> Bools:
    """Which of the models, in `order` (best first), stay. values: (N, G) totals of the units, in table order."""
    n, items = len(order), scores.values.shape[1]
    one = scores.denominator
    x = (values[order] / one).astype(np.float64)
    squares = np.einsum("ij,ij->i", x, x)
    widest = float(x.max()) ** 2
    totals = np.array([sums[i] / one for i in order.tolist()])
    blur = 1e-15 * float(totals[0])
    slack = 0.0 if scores.exact else 2.0 * (items + values.shape[1]) / one
    sure = beaten_from(threshold)
    kappas, safe = unbeaten_up_to(threshold)
    keep = np.ones(n, dtype=bool)
    start, size = 0, 8
    while start < n:
        stop = min(start + size, n)
        below = start + np.flatnonzero(keep[start:])
        lead = totals[start:stop, None] - totals[below]
        s2 = squares[start:stop, None] + squares[below] - 2 * (x[start:stop] @ x[below].T)
        error = 1e-12 * (squares[start:stop, None] + squares[below]) + 1e-300
        ahead = lead - blur - slack
        beaten = (ahead > 0) & (ahead >= sure * np.sqrt(np.maximum(s2, 0) + error))
        keep[below[beaten.any(axis=0)]] = False
        least = np.maximum(s2 - error, 1e-300)
        z = (lead + blur) / np.sqrt(least)
        open_ = (lead > -blur) & keep[below] & (z > safe[np.searchsorted(kappas[:-1], widest / least)])
        k, j = np.nonzero(open_)
        by_z = np.argsort(-z[k, j], kind="stable")
        _count(scores, order, start + k[by_z], below[j[by_z]], codes, threshold, seed, keep)
        start, size = stop, min(2 * size, BLOCK)
    return keep


def _count(
    scores: Scores, order: Ints, k: Ints, j: Ints, codes: Ints | None, threshold: Fraction, seed: int, keep: Bools
) -> None:
    """Drop from `keep` the models j that k beats, the clearest pairs first; both are places in `order`."""
    limit, sure = floor_float(threshold), beaten_from(threshold)
    kappas, safe = unbeaten_up_to(threshold)
    step = max(1, ROWS // scores.values.shape[1])
    while len(k):
        some, k, j = (k[:step], j[:step]), k[step:], j[step:]
        d, tolerance = differences(scores, order[some[0]], order[some[1]], None, codes)
        x = np.square(d.astype(np.float64))
        s2 = np.maximum(x.sum(axis=1), 1.0)
        z = d.sum(axis=1) / np.sqrt(s2)
        kappa = np.einsum("ij,ij->i", x, x) / s2**2 * (1 + 1e-9)
        beaten = z - 2 * tolerance / np.sqrt(s2) >= sure * (1 + 1e-9)
        unclear = ~beaten & (z * (1 + 1e-9) > safe[np.searchsorted(kappas[:-1], kappa)])
        if unclear.any():
            part = Differences(d[unclear], tolerance[unclear])
            beaten[unclear] = sign_flip(part, "greater", seed=seed).p <= limit
        keep[some[1][beaten]] = False
        left = keep[j]
        k, j = k[left], j[left]
