"""What difference between two models a number of items could show."""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchkit.flips import Alternative
from benchkit.levels import Level, as_fraction, normal_quantile
from benchkit.scores import Floats

TO = 1e-7  # precision of a detectable difference
EDGE = 1e-12  # how close to 0 and 1 sums of floats tell powers apart
NEVER_DIFFER = "the two models never differ, so nothing is known of the spread of a difference"
OUT_OF_REACH = "no difference up to the discordance is found with the power asked for"
MOST_PLANNED = 1e15
BEYOND = f"more than {MOST_PLANNED:g} items"
MOST_ITEMS = 1000  # for the exact power, whose work grows faster than items^2; there the approximation serves
CLUSTERED = "items come in clusters: detectable_difference takes them into account"
MORE_THAN_DIFFERS = "larger than the mean absolute difference: a benchmark like this one can't show it"
TOO_MANY = f"not computed beyond {MOST_ITEMS} items, where detectable_difference serves"


def detectable_difference(
    discordance: ArrayLike,
    items: ArrayLike,
    alpha: Level = "0.05",
    power: Level = "0.8",
    alternative: Alternative = "two-sided",
) -> Floats:
    """(z_{1-alpha/2} + z_power) sqrt(discordance / items), the difference of scores found with the given power; or 0.

    discordance: mean d^2 (share of discordant items for single attempts), or with clusters sum_g u_g^2/items, u_g the
    sum of d over a cluster. One-sided: z_{1-alpha}. It is the normal approximation (Lachenbruch 1992) and may exceed
    what is possible. NaN at discordance 0 (NEVER_DIFFER).
    """
    a = as_fraction(alpha, "alpha")
    a = a / 2 if alternative == "two-sided" else a
    z = max(0.0, normal_quantile(1 - a) + normal_quantile(as_fraction(power, "power")))
    d, n = np.asarray(discordance, dtype=np.float64), np.asarray(items, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(d > 0, z * np.sqrt(d / n), np.nan))


def items_needed(
    spread: ArrayLike,
    difference: Level,
    alpha: Level = "0.05",
    power: Level = "0.8",
    alternative: Alternative = "two-sided",
) -> Floats:
    """(z_{1-alpha/2} + z_power)^2 spread / difference^2, rounded up: items at which `difference` is found.

    The inverse of `detectable_difference`, at the same spread of differences an item. NaN at spread 0, and beyond
    MOST_PLANNED.
    """
    d = np.asarray(spread, dtype=np.float64)
    root = detectable_difference(d, 1.0, alpha, power, alternative) / float(as_fraction(difference, "difference"))
    needed = np.maximum(1.0, np.ceil(np.square(root) * (1 - 1e-12)))
    return np.asarray(np.where(np.isnan(root) | (needed > MOST_PLANNED), np.nan, needed))


@functools.lru_cache(maxsize=8192)
def critical_value(k: int, alpha: Fraction, two_sided: bool) -> int:
    """Largest c such that the exact test of k items rejects at min(up, down) <= c; -1 if it can't reject."""
    limit = alpha / 2 if two_sided else alpha
    term, total, c = 1, 0, -1
    bound = math.floor(limit * (1 << k))
    for t in range(k + 1):
        total += term
        if total > bound:
            break
        c = t
        term = term * (k - t) // (t + 1)
    return c


class ExactPower:
    """Power of the exact sign-flip test of single attempts: n items, each discordant with probability `discordance`.

    The number discordant is K ~ Bin(n, discordance); of those, Bin(K, (1 + difference/discordance)/2) favour the
    better model. ``power(difference)`` adds P(reject) over both.
    """

    def __init__(self, items: int, discordance: float, alpha: Level = "0.05", two_sided: bool = True) -> None:
        self.discordance = discordance
        exact = as_fraction(alpha, "alpha")
        log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, items + 1)))])
        k = np.arange(items + 1)
        mass = self._pmf(log_factorial[items] - log_factorial - log_factorial[::-1], k, items - k, discordance)
        keep = np.flatnonzero(mass > 1e-15)
        critical = np.array([critical_value(x, exact, two_sided) for x in keep.tolist()], dtype=np.int64)
        keep, critical = keep[critical >= 0], critical[critical >= 0]
        self.mass: NDArray[np.float64] = mass[keep]
        self.two_sided = two_sided
        width = int(critical.max(initial=-1)) + 1
        lost = np.arange(width)[None, :]
        self.k = keep[:, None]
        self.lost = lost
        self.inside = lost <= critical[:, None]
        self.log_choose = np.where(
            self.inside,
            log_factorial[self.k] - log_factorial[lost] - log_factorial[np.maximum(self.k - lost, 0)],
            -np.inf,
        )

    @staticmethod
    def _pmf(log_choose: Floats, hits: NDArray[np.int64], misses: NDArray[np.int64], p: float) -> Floats:
        if p >= 1.0:
            return np.asarray(np.exp(np.where(misses == 0, log_choose, -np.inf)))
        return np.asarray(np.exp(log_choose + hits * math.log(p) + misses * math.log1p(-p)))

    def __call__(self, difference: float) -> float:
        if self.mass.size == 0:
            return 0.0
        better = min(1.0, (1.0 + difference / self.discordance) / 2.0)
        won = np.where(self.inside, self.k - self.lost, 0)
        reject = self._pmf(self.log_choose, won, self.lost, better).sum(axis=1)
        if self.two_sided and better < 1.0:
            reject = reject + self._pmf(self.log_choose, self.lost, won, better).sum(axis=1)
        return float(self.mass @ reject)


@functools.lru_cache(maxsize=8192)
def detectable_exact(
    discordance: float,
    items: int,
    alpha: Level = "0.05",
    power: Level = "0.8",
    alternative: Alternative = "two-sided",
) -> float | None:
    """The least difference <= discordance that the exact test finds with the power asked for, to 1e-7; None if none.

    NEVER_DIFFER (discordance 0), OUT_OF_REACH and TOO_MANY (items) are the reasons for None; a power above 1 - EDGE
    is out of reach.
    """
    target = float(as_fraction(power, "power"))
    if not 0.0 < discordance <= 1.0 or not 1 <= items <= MOST_ITEMS:
        return None
    of = ExactPower(items, discordance, alpha, alternative == "two-sided")
    low, high = 0.0, discordance
    if of(high) < target or target > 1 - EDGE:
        return None
    if of(low) >= target:
        return 0.0
    probit = NormalDist().inv_cdf  # of it the power is nearly a straight line
    return _crossing(lambda x: probit(min(max(of(x), EDGE), 1 - EDGE)) - probit(target), low, high)


def _crossing(f: Callable[[float], float], low: float, high: float) -> float:
    """The least x with f(x) >= 0, to TO, where f rises from below 0 at low to above it at high.

    False position by the Illinois rule (Dowell and Jarratt 1971), kept TO/2 away from the ends so that it closes in
    from both sides; bisection where it is slow.
    """
    at_low, at_high = f(low), f(high)
    last = 0
    for step in range(200):
        if high - low <= TO:
            break
        x = (low + high) / 2.0
        if step < 40:
            x = low - at_low * (high - low) / (at_high - at_low)
            x = min(max(x, low + TO / 2), high - TO / 2)
        y = f(x)
        side = 1 if y >= 0 else -1
        if side > 0:
            high, at_high, at_low = x, y, at_low / 2 if last == side else at_low
        else:
            low, at_low, at_high = x, y, at_high / 2 if last == side else at_high
        last = side
    return high
