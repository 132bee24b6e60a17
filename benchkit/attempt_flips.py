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
from benchkit.scores import Floats, Ints

MOST = 2**22  # attempts on all items of one model, beyond which the grid is too large


def attempt_p(
    attempts: Ints, correct: Floats, models: Sequence[str] | None = None, items: Sequence[str] | None = None
) -> Floats:
    """(N, N) two-sided p-values, 1 on the diagonal, absolute error about 1e-12.

    attempts, correct: (N, M), complete. Raises InputError where scores are fractions, or attempts on an item differ
    between models: single attempts can then not be paired.
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
    most = int(trials.sum())
    if most > MOST:
        raise InputError(f"{most} attempts of a model are more than {MOST}, the most whose signs are flipped")
    size = 2 * (most + 1)
    angles = np.cos(2.0 * math.pi * np.arange(size // 2 + 1) / size)
    totals = right.sum(axis=1)
    known: dict[tuple[int, int, int], Floats] = {}
    p = np.ones((n, n))
    for a in range(n):
        for b in range(a + 1, n):
            low, high = np.minimum(right[a], right[b]), np.maximum(right[a], right[b])
            kinds, counts = np.unique(np.column_stack([trials, low, high]), axis=0, return_counts=True)
            transform = np.ones(angles.size)
            for (k, c, e), times in zip(kinds.tolist(), counts.tolist(), strict=True):
                if (k, c, e) not in known:
                    known[k, c, e] = _transform(k, c, e, angles)
                transform *= known[k, c, e] if times == 1 else known[k, c, e] ** times
            p[a, b] = p[b, a] = _two_sided(transform, size, abs(int(totals[a] - totals[b])))
    return p


def _transform(trials: int, c: int, e: int, cosines: Floats) -> Floats:
    """E cos^D where c and e of `trials` attempts are right and are paired at random."""
    least, most = max(0, c + e - trials), min(c, e)
    out, square = np.zeros(cosines.size), np.square(cosines)
    for h in range(least, most + 1):  # Horner's scheme: the power of the cosine falls by two as h grows by one
        out = out * square + math.comb(c, h) * math.comb(trials - c, e - h) / math.comb(trials, e)
    return out * cosines ** (c + e - 2 * most)


def _two_sided(transform: NDArray[np.float64], size: int, observed: int) -> float:
    """P(|S| >= observed), S symmetric with this characteristic function at 2 pi t/size."""
    if observed == 0:
        return 1.0
    mass = np.fft.irfft(transform, size)
    inside = float(mass[0]) + 2.0 * float(mass[1:observed].sum())
    return min(1.0, max(0.0, 1.0 - inside))
