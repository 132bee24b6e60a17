"""Every ordered pair of models tested one-sided over items, and the ranks that follow from who beats whom.

If k is better than j wherever the test says so, j's rank is at least 1 + the number of models that beat it and at most
N - the number that it beats. With the probability of any false win held at 1 - level over all N (N - 1) pairs, these
intervals hold all ranks at once with that level, in samples of any size (the argument of Mogstad, Romano, Shaikh and
Wilhelm 2024, section 3, with exact tests in place of asymptotic ones).
"""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit import multiplicity
from benchkit.flips import DRAWS, one_sided_pair
from benchkit.levels import floor_float
from benchkit.scores import Floats, Ints, Scores, differences

Bools = NDArray[np.bool_]
BLOCK_CELLS = 2**21


class OneSided(NamedTuple):
    """One-sided sign-flip tests of all ordered pairs; [k, j] asks whether k is better than j. The diagonal is 1.

    p, smallest: (N, N), the p-value and the least attainable one. differ: (N, N), whether the two differ anywhere.
    drawn: how many p came from random signs, because counting would take too long.
    """

    p: Floats
    smallest: Floats
    differ: Bools
    drawn: int


def one_sided(
    scores: Scores, codes: Ints | None, shared: Bools | None = None, seed: int = 0, draws: int = DRAWS
) -> OneSided:
    """Test every ordered pair of the N models of `scores` on the items that both have.

    shared: (N, M), True where a model has the item; None if all have all. codes: (M,), then signs flip per cluster.
    A pair without a common item has p = 1.
    """
    n, m = scores.values.shape
    p, smallest, differ = np.ones((n, n)), np.ones((n, n)), np.zeros((n, n), dtype=bool)
    first, second = np.triu_indices(n, 1)
    drawn = 0
    step = max(1, BLOCK_CELLS // m)
    for start in range(0, len(first), step):
        a, b = first[start : start + step], second[start : start + step]
        both = None if shared is None else shared[a] & shared[b]
        d = differences(scores, a, b, both, codes)
        ahead, behind = one_sided_pair(d, draws, seed)
        for k, j, test in ((a, b, ahead), (b, a, behind)):
            p[k, j], smallest[k, j], differ[k, j] = test.p, test.smallest, test.flips > 0
            drawn += int(np.count_nonzero(~np.isnan(test.se)))
    return OneSided(p, smallest, differ, drawn)


def wins(tests: OneSided, level: Fraction) -> Bools:
    """(N, N), [k, j] whether k beats j; the probability of any false win is at most 1 - level.

    Holm's method by Tarone over all pairs: plain Holm over 930 can reject nothing on 14 items, and pairs that could
    never reject need not be paid for.
    """
    n = len(tests.p)
    off = ~np.eye(n, dtype=bool)
    out = np.zeros((n, n), dtype=bool)
    if n > 1:
        alpha = 1 - level
        found = multiplicity.adjust(tests.p[off], tests.differ[off], "tarone", tests.smallest[off], alpha)
        out[off] = found.p <= floor_float(alpha)
    return out


def undefeated(tests: OneSided, level: Fraction) -> Bools:
    """(N,) the best set: models j that no k beats with p(k > j) <= (1 - level)/(N - 1), as in `best_set`."""
    n = len(tests.p)
    if n == 1:
        return np.ones(1, dtype=bool)
    return np.asarray(~np.any(tests.p <= floor_float((1 - level) / (n - 1)), axis=0))


def rank_bounds(won: NDArray[Any]) -> tuple[Ints, Ints]:
    """Best and worst rank (N,) of each model, from who beats whom (N, N)."""
    beaten = np.asarray(won, dtype=bool)
    return 1 + beaten.sum(axis=0, dtype=np.int64), len(beaten) - beaten.sum(axis=1, dtype=np.int64)
