"""How far a score, or a difference of two, may be off: normal intervals over attempts and over items."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchkit.levels import Level, as_fraction, normal_quantile
from benchkit.scores import Floats

ONE_ITEM = "one item has no spread"


def z_two_sided(level: Level) -> float:
    """Standard normal quantile z with P(|Z| <= z) = level: 1.96 at 0.95."""
    return normal_quantile((1 + as_fraction(level)) / 2)


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


class Interval(NamedTuple):
    """lower, upper: bounds, of one shape."""

    lower: Floats
    upper: Floats


def difference_interval(items: ArrayLike, total: ArrayLike, squares: ArrayLike, level: Level = "0.95") -> Interval:
    """Interval of a paired difference of scores (Bonett and Price 2012, J. Educ. Behav. Stat. 37, 479-488).

    Two items d = +1 and d = -1 are appended; with m and s (ddof 0) over the n + 2, m +- z s / sqrt(n + 2), cut at
    +-1. items: n. total: sum of d over the items. squares: sum of d^2. It covers where the plain Wald interval has
    width 0 or too little.
    """
    n = np.asarray(items, dtype=np.float64) + 2.0
    m = np.asarray(total, dtype=np.float64) / n
    variance = (np.asarray(squares, dtype=np.float64) + 2.0) / n - m * m
    half = z_two_sided(level) * np.sqrt(variance / n)
    return Interval(np.maximum(m - half, -1.0), np.minimum(m + half, 1.0))
