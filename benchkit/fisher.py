"""Fisher's exact test of two success counts: attempts as if independent, on these very items.

It answers another question than a paired test over items: would the same problems, asked again, tell the two apart?

Work is bounded at any number of attempts. Only the part of the support is summed where a float64 differs from 0; and
beyond SMOOTH standard deviations a sum is an integral (Euler and Maclaurin) of the probability, taken from Stirling's
series without cancellation: there the relative error is below 1e-9.
"""

import functools
import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RELATIVE = 1.0 + 1e-7  # probabilities this close are equal, as in R's fisher.test
TINY = 5e-324  # a p-value is never 0: below the least float it is reported as that
WHOLE = 2**16  # supports up to this size are summed whole
SMOOTH = 2.0**11  # sd from which sums are integrals

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = np.arange(80)


def hypergeometric(x_min: int, x_max: int, drawn: int, other: int, successes: int) -> Floats:
    """P(X = x) for x = x_min..x_max, X = successes among `drawn` of drawn + other trials.

    The range is the whole support, or as much of it as matters. From the mode outwards by the ratio of neighbours, so
    that the relative error is about 1e-16 a step.
    """
    x = np.arange(x_min, x_max, dtype=np.float64)
    ratio = (successes - x) * (drawn - x) / ((x + 1.0) * (other - successes + x + 1.0))  # P(x+1) / P(x)
    mode = int(np.count_nonzero(ratio > 1.0))
    up, down = np.cumprod(ratio[mode:]), np.cumprod(1.0 / ratio[:mode][::-1])[::-1]
    mass = np.concatenate([down, [1.0], up])
    return np.asarray(mass / mass.sum())


class Smooth:
    """P(X = mode + t) / P(X = mode) as a smooth function of t, for standard deviations of thousands.

    With the four cells a + t, b - t, c - t, d + t at t = 0 in the mode and phi(u) = (1 + u) log(1 + u) - u, its log is
    -t log(ad/(bc)) - sum_cells (cell phi(+-t/cell) + log(1 +- t/cell)/2), up to terms of order t/cell^2. Each cell is
    larger than the variance, so t/cell is small wherever the probability is not 0, and a few powers give phi.
    """

    def __init__(self, mode: int, drawn: int, other: int, successes: int) -> None:
        a, b, c, d = mode, drawn - mode, successes - mode, other - successes + mode
        self.cells = ((a, 1.0), (b, -1.0), (c, -1.0), (d, 1.0))
        self.slope = math.log1p((a * d - b * c) / (b * c))
        self.sd = math.sqrt(1.0 / (1 / a + 1 / b + 1 / c + 1 / d))

    def log(self, t: Floats) -> Floats:
        """The log of the ratio at t (any shape)."""
        out = -self.slope * t
        for cell, sign in self.cells:
            u = sign * t / cell
            phi = u * u * (1 / 2 - u * (1 / 6 - u * (1 / 12 - u * (1 / 20 - u * (1 / 30 - u / 42)))))
            out = out - cell * phi - np.log1p(u) / 2
        return np.asarray(out)

    def reach(self, level: float, side: int, low: int) -> int:
        """The least t >= low on this side (+1, -1) of the mode with log <= level."""
        high = low + 1
        while float(self.log(np.array(float(side * high)))) > level:
            high = 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if float(self.log(np.array(float(side * middle)))) > level:
                low = middle
            else:
                high = middle
        return high

    def tail(self, t: int, side: int) -> tuple[float, float]:
        """(s, r): the sum over t, t + 1, ... (t, t - 1, ... on side -1) is r exp(s).

        The integral from t - 1/2 on, plus a 24th of the derivative there.
        """
        start = t - side / 2
        ends = np.array([start - side / 2, start, start + side / 2])
        shift = float(self.log(ends[1:2])[0])
        derivative = float(np.diff(np.exp(self.log(ends[::2]) - shift))[0])
        width = self.sd / 2
        points = start + side * width * (_PANELS[:, None] + (_NODES + 1) / 2)
        values = np.exp(self.log(points) - shift)
        return shift, float((values @ _WEIGHTS).sum()) * width / 2 + derivative / 24


def _smooth(x: int, mode: int, drawn: int, other: int, successes: int, alternative: str) -> float:
    of = Smooth(mode, drawn, other, successes)
    parts = {side: of.tail(side, side) for side in (1, -1)}
    whole = 1.0 + sum(r * math.exp(s) for s, r in parts.values())

    def share(t: int, side: int) -> float:
        """P(X >= mode + t) on side 1, P(X <= mode + t) on side -1, for t beyond the mode on that side."""
        s, r = of.tail(t, side)
        return math.exp(s + math.log(r / whole)) if s > -800 else 0.0

    t = x - mode
    if abs(t) > 50 * of.sd:  # the probability is 0 as a float
        return {"greater": t < 0, "less": t > 0}.get(alternative, False) * 1.0
    if alternative != "two-sided":
        side = 1 if alternative == "greater" else -1
        return share(t, side) if t * side > 0 else 1.0 - share(t - side, -side)
    level = float(of.log(np.array(float(t)))) + math.log(RELATIVE)
    if level >= 0:
        return 1.0
    return sum(share(side * of.reach(level, side, 0), side) for side in (1, -1))


@functools.lru_cache(maxsize=65536)
def fisher_exact(
    x: int, n: int, y: int, m: int, alternative: Literal["two-sided", "greater", "less"] = "two-sided"
) -> float:
    """p-value of x successes in n against y in m, given x + y (Fisher 1935).

    Two-sided: the probabilities not larger than the observed one, added. ``greater``: x/n larger than y/m.
    """
    total = x + y
    low, high = max(0, total - m), min(n, total)
    if high - low > WHOLE:
        trials = n + m
        mode = (n + 1) * (total + 1) // (trials + 2)
        sd = math.sqrt(n / trials * (m / trials) * (total / trials) * (trials - total))
        if sd >= SMOOTH:
            return min(1.0, max(_smooth(x, mode, n, m, total, alternative), TINY))
        reach = math.ceil(500 + 60 * sd)  # farther out it is below 1e-323 (Bernstein's inequality)
        low, high = max(low, mode - reach), min(high, mode + reach)
    mass = hypergeometric(low, high, n, m, total)
    at = x - low
    if alternative == "greater":
        p = mass[max(at, 0) :].sum()
    elif alternative == "less":
        p = mass[: max(at + 1, 0)].sum()
    else:
        p = mass[mass <= mass[at] * RELATIVE].sum() if 0 <= at < len(mass) else 0.0
    return min(1.0, max(float(p), TINY))


def hypergeometric_quantile(u: float, drawn: int, other: int, successes: int) -> int:
    """The least x with P(X <= x) >= u: a draw of X for u uniform on (0,1), of any number of trials."""
    trials = drawn + other
    low, high = max(0, successes - other), min(drawn, successes)
    mode = (drawn + 1) * (successes + 1) // (trials + 2)
    sd = math.sqrt(drawn / trials * (other / trials) * (successes / trials) * (trials - successes))
    if sd < SMOOTH:
        low, high = max(low, mode - math.ceil(60 + 12 * sd)), min(high, mode + math.ceil(60 + 12 * sd))
        cumulated = np.cumsum(hypergeometric(low, high, drawn, other, successes))
        return low + min(int(np.searchsorted(cumulated, u * cumulated[-1])), high - low)
    low, high = mode - math.ceil(12 * sd), mode + math.ceil(12 * sd)
    of = Smooth(mode, drawn, other, successes)
    s, r = of.tail(-1, -1)
    below = r * math.exp(s)
    s, r = of.tail(0, 1)
    whole = below + r * math.exp(s)
    while high - low > 1:
        middle = (low + high) // 2
        side = 1 if middle >= mode else -1
        s, r = of.tail(middle - mode + (side > 0), side)
        part = r * math.exp(s)
        low, high = (low, middle) if (whole - part if side > 0 else part) >= u * whole else (middle, high)
    return high
