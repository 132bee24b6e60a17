"""Which models differ over attempts on these very items: signs flipped attempt by attempt.

Leaderboards that ask every item K times pair the attempts of two models one by one and flip the sign of each pair's
difference (so does MathArena's own site). It answers whether the same items, asked again, would tell the two apart.

Which attempt meets which is not in a table of counts. With c and e right of K, a random pairing leaves H pairs with
both right, H hypergeometric, and D = c + e - 2H that differ; each flips by itself, so the item adds a sum with

    E exp(i t S) = E cos(t)^D

and the product over items is inverted on a grid of t. The p-value is thus the mean over all ways to pair the attempts.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.fisher import hypergeometric
from benchkit.scores import Floats, Ints

MOST = 2**22  # weighted attempts of one model, beyond which the grid is too large
FAR = 12.0  # standard deviations beyond which p is 0 up to 1e-30
HELD = 2**25  # values of transforms kept for the next pairs


def attempt_p(
    attempts: Ints, correct: Floats, models: Sequence[str] | None = None, items: Sequence[str] | None = None
) -> Floats:
    """(N, N) two-sided p-values, 1 on the diagonal, absolute error about 1e-12.

    attempts, correct: (N, M), complete. The statistic is the difference of scores: on an item of n attempts each counts
    1/n. Raises InputError where scores are fractions, or attempts on an item differ between models: single attempts can
    then not be paired; and where the items' attempts have no common multiple of a usable size.
    """
    if np.any(correct != np.rint(correct)):
        raise InputError("attempts can't be paired: some scores are fractions")
    odd = np.argwhere(attempts != attempts[0])
    if len(odd):
        i, j = (int(x) for x in odd[0])
        names = [str(models[x]) if models else f"model {x}" for x in (0, i)]
        item = items[j] if items else j
        raise InputError(
            f"attempts can't be paired: {names[0]} has {attempts[0, j]} on item {item}, {names[1]} has {attempts[i, j]}"
        )
    n, (trials, right) = len(attempts), (attempts[0], correct.astype(np.int64))
    multiple = math.lcm(*np.unique(trials).tolist())
    if multiple * trials.size > MOST:
        raise InputError(
            f"the attempts of the items have the common multiple {multiple}: too large to flip the signs of attempts "
            f"on {trials.size} items"
        )
    weights = multiple // trials
    totals = right @ weights
    chance = _Transforms()
    p = np.ones((n, n))
    for a in range(n):
        for b in range(a + 1, n):
            observed = abs(int(totals[a] - totals[b]))
            low, high = np.minimum(right[a], right[b]), np.maximum(right[a], right[b])
            rate_low, rate_high = low / trials, high / trials
            differ = trials * (rate_low * (1 - rate_high) + rate_high * (1 - rate_low))  # E D
            sd = math.sqrt(float(np.square(weights) @ differ))
            if observed == 0:
                continue
            if observed > FAR * sd:
                p[a, b] = p[b, a] = 0.0
                continue
            # a shorter grid folds what lies beyond FAR standard deviations, and nothing does
            whole = 2 * (multiple * trials.size + 1)
            size = min(whole, 1 << math.ceil(math.log2(2 * (observed + FAR * sd) + 2)))
            kinds, counts = np.unique(np.column_stack([trials, low, high]), axis=0, return_counts=True)
            transform = np.ones(size // 2 + 1)
            for (k, c, e), times in zip(kinds.tolist(), counts.tolist(), strict=True):
                part = chance.of(k, c, e, multiple // k, size)
                transform *= part if times == 1 else part**times
            p[a, b] = p[b, a] = _two_sided(transform, size, observed)
    return p


class _Transforms:
    """E cos(t w)^D of an item's kinds, kept while they take no more than HELD values."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], Floats] = {}
        self.held = 0

    def of(self, trials: int, c: int, e: int, weight: int, size: int) -> Floats:
        """c and e of `trials` attempts right, paired at random, each counting `weight`, on a grid of `size`."""
        key = (trials, c, e, weight, size)
        if key not in self.known:
            if self.held + size > HELD:
                self.known.clear()
                self.held = 0
            self.known[key] = _transform(trials, c, e, np.cos(2.0 * math.pi * weight * np.arange(size // 2 + 1) / size))
            self.held += size // 2 + 1
        return self.known[key]


def _transform(trials: int, c: int, e: int, cosines: Floats) -> Floats:
    """E cosines^D, D = c + e - 2H, H hypergeometric; up to 1e-18 of its probability."""
    least, most = max(0, c + e - trials), min(c, e)
    mode = (c + 1) * (e + 1) // (trials + 2)
    sd = math.sqrt(c * e * (trials - c) * (trials - e) / (trials**2 * max(1, trials - 1)))
    least, most = max(least, mode - math.ceil(9 * sd) - 9), min(most, mode + math.ceil(9 * sd) + 9)
    out, square = np.zeros(cosines.size), np.square(cosines)
    for mass in hypergeometric(least, most, e, trials - e, c).tolist():  # Horner: the power falls by two as h grows
        out *= square
        out += mass
    return out * cosines ** (c + e - 2 * most)


def _two_sided(transform: NDArray[np.float64], size: int, observed: int) -> float:
    """P(|S| >= observed), S symmetric with this characteristic function at 2 pi t/size."""
    mass = np.fft.irfft(transform, size)
    inside = float(mass[0]) + 2.0 * float(mass[1:observed].sum())
    return min(1.0, max(0.0, 1.0 - inside))
