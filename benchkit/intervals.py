"""How far a score, or a difference of two, may be off: intervals over attempts, over items and over clusters."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchkit.levels import Level, as_fraction, normal_quantile
from benchkit.scores import Floats, Ints

ONE_ITEM = "one item has no spread"
FARTHEST = 1e300  # a quantile that floats can't hold
ONE_CLUSTER = "one cluster has no spread"


def z_two_sided(level: Level) -> float:
    """Standard normal quantile z with P(|Z| <= z) = level: 1.96 at 0.95."""
    return normal_quantile((1 + as_fraction(level)) / 2)


def t_two_sided(level: Level, groups: ArrayLike) -> Floats:
    """The same of Student's t with G - 1 degrees of freedom, of the shape of `groups`; NaN for G < 2.

    A normal quantile takes the spread between few clusters for known: of 95% intervals over 2, 5 and 10 clusters it
    left .65, .84 and .91.
    """
    from scipy.special import stdtrit  # 0.1 s, for clusters only

    df = np.asarray(groups, dtype=np.float64) - 1
    tail = float((1 - as_fraction(level)) / 2)
    with np.errstate(invalid="ignore"):
        quantile = -stdtrit(np.maximum(df, 1.0), tail)
    return np.asarray(np.where(df >= 1, np.where(np.isfinite(quantile), quantile, FARTHEST), np.nan))


def attempts_half_width(score: ArrayLike, attempts: ArrayLike, level: Level = "0.95") -> Floats:
    """Half-width over attempts, z sqrt(p (1-p) / attempts) (Wald): the same items, asked again.

    score p in 0..1 and total attempts, of one shape. 0 at p = 0 and p = 1, where it says too little.
    """
    p, n = np.asarray(score, dtype=np.float64), np.asarray(attempts, dtype=np.float64)
    return np.asarray(z_two_sided(level) * np.sqrt(np.maximum(p * (1.0 - p), 0.0) / n))


def items_half_width(rates: ArrayLike, level: Level = "0.95") -> Floats:
    """Half-width over items, z sd / sqrt(M): other items of the same kind.

    rates: (..., M) success rates by item; sd with ddof 1. NaN for M = 1 (ONE_ITEM is the reason).
    """
    values = np.asarray(rates, dtype=np.float64)
    m = values.shape[-1]
    if m < 2:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(z_two_sided(level) * values.std(axis=-1, ddof=1) / math.sqrt(m))


def clusters_half_width(rates: ArrayLike, codes: NDArray[np.int64], level: Level = "0.95") -> Floats:
    """Half-width over clusters of items, t sqrt(G/(G-1) sum_g (sum_{j in g} (r_j - mean))^2)/M: other clusters.

    rates: (..., M), codes: (M,) cluster 0..G-1 of each item. The cluster-robust variance of a mean (Liang and Zeger
    1986, with the factor G/(G-1)) and Student's t with G - 1 degrees of freedom. NaN for G = 1 (ONE_CLUSTER).
    """
    values = np.asarray(rates, dtype=np.float64)
    groups = int(codes.max()) + 1
    if groups < 2:
        return np.full(values.shape[:-1], np.nan)
    centred = values - values.mean(axis=-1, keepdims=True)
    sums = np.zeros((groups, *values.shape[:-1]))
    np.add.at(sums, codes, np.moveaxis(centred, -1, 0))
    variance = groups / (groups - 1) * np.square(sums).sum(axis=0)
    return np.asarray(np.minimum(t_two_sided(level, groups) * np.sqrt(variance) / values.shape[-1], 1.0))


class Interval(NamedTuple):
    """lower, upper: bounds, of one shape."""

    lower: Floats
    upper: Floats


def wilson(score: ArrayLike, attempts: ArrayLike, level: Level = "0.95") -> Interval:
    """Interval over attempts that is no point at scores of 0 and 1 (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212).

    score p in 0..1, total attempts n, of one shape: the p0 with |p - p0| <= z sqrt(p0 (1-p0)/n). n may be any count of
    independent attempts.
    """
    p, n = np.asarray(score, dtype=np.float64), np.asarray(attempts, dtype=np.float64)
    z2 = z_two_sided(level) ** 2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2) * np.sqrt(np.maximum(p * (1 - p), 0.0) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    lower, upper = np.where(p <= 0.0, 0.0, middle - half), np.where(p >= 1.0, 1.0, middle + half)
    return Interval(np.maximum(lower, 0.0), np.minimum(upper, 1.0))


class Sums(NamedTuple):
    """What a paired difference's interval needs, over P pairs and their units g (items, or clusters of n_g items).

    With u_g the sum of d_j over a unit, (P,) each: items = sum n_g, total = sum u_g, squares = sum u_g^2,
    cross = sum n_g u_g, sizes = sum n_g^2. For single items squares = sum d^2, cross = total and sizes = items.
    groups (P,): number of clusters; None where items are by themselves.
    """

    items: Floats
    total: Floats
    squares: Floats
    cross: Floats
    sizes: Floats
    groups: Ints | None = None


def difference_interval(of: Sums, level: Level = "0.95") -> Interval:
    """Interval of a paired difference of scores (Bonett and Price 2012, J. Educ. Behav. Stat. 37, 479-488).

    Two items d = +1 and d = -1 are appended; with m the mean over the n + 2 items and s^2 = sum (d - m)^2/(n + 2), it
    is m +- z s/sqrt(n + 2), cut at +-1. It covers where the plain Wald interval has width 0 or too little.

    With clusters the two items are clusters of their own, s^2 = sum_g (u_g - n_g m)^2/(n + 2), and z is Student's t
    with G - 1 degrees of freedom: NaN for one cluster.
    """
    n = of.items + 2.0
    m = of.total / n
    variance = np.maximum(of.squares + 2.0 - 2.0 * m * of.cross + m * m * (of.sizes + 2.0), 0.0) / n
    quantile = z_two_sided(level) if of.groups is None else t_two_sided(level, of.groups)
    half = quantile * np.sqrt(variance / n)
    return Interval(np.maximum(m - half, -1.0), np.minimum(m + half, 1.0))
