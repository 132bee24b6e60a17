"""Step-down adjustment by the largest statistic under joint sign flips (Westfall and Young 1993, algorithm 4.1).

One pattern of signs flips the items (clusters) of all pairs at once, so that the adjustment knows how the pairs depend:

    T = |sum_j d_j| / sqrt(sum_j d_j^2)

for each pair, and the same with signs e_j d_j. With the pairs ordered by falling T, an adjusted p is the share of sign
patterns whose largest T among this pair and those after it is at least its own, made monotone. Jointly flipped signs
are no exchange of single models, so with unequal pairs in the family the control of the family-wise error is asymptotic
(.065 at .05 with 20 models in a simulation).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchkit.flips import Alternative
from benchkit.scores import Floats, Ints, Scores, sum_by

DRAWS = 2**14  # sign patterns at a time: a pair's statistics stay in the cache
PAIRS = 64  # pairs at a time
SAME = 1e-9  # statistics this close are equal: the conservative side
ZERO = 1e-12  # differences below it are rounding


def signs(draws: int, units: int, seed: int) -> Iterator[Floats]:
    """Random signs (some draws, G), the same for every pair, some draws at a time."""
    rng = np.random.default_rng(seed)
    for start in range(0, draws, DRAWS):
        packed = rng.integers(0, 256, (min(DRAWS, draws - start), -(-units // 8)), dtype=np.uint8)
        yield 2.0 * np.unpackbits(packed, axis=1)[:, :units].astype(np.float64) - 1.0


def maxt(
    scores: Scores,
    pairs: Ints,
    shared: NDArray[np.bool_] | None,
    codes: Ints | None,
    alternative: Alternative,
    draws: int,
    seed: int,
) -> Floats:
    """Adjusted p (P,) of pairs (P, 2), (1 + hits)/(1 + draws); 1 for pairs that never differ.

    shared: (N, M), True where a model has the item, or None: pairs are compared on the items that both have.
    codes: (M,), then signs flip per cluster. greater: model a is better.
    Memory: 2^14 x (N + G + 64) numbers.
    """
    rates = (scores.values / scores.denominator).astype(np.float64)

    def units(some: Ints) -> Floats:
        """(P, G) differences of pairs on their units."""
        a, b = some.T
        d = rates[a] - rates[b]
        return np.asarray(sum_by(d if shared is None else np.where(shared[a] & shared[b], d, 0.0), codes))

    side = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    norm, observed = np.zeros(len(pairs)), np.zeros(len(pairs))
    for start in range(0, len(pairs), PAIRS):
        d = units(pairs[start : start + PAIRS])
        d[np.abs(d) < ZERO] = 0.0
        norm[start : start + PAIRS] = np.sqrt(np.square(d).sum(axis=1))
        observed[start : start + PAIRS] = side(d.sum(axis=1))
    family = np.flatnonzero(norm > 0)
    own = observed[family] / norm[family]
    rising = np.argsort(own, kind="stable")
    family, own = family[rising], own[rising]
    enough = own - SAME * np.maximum(1.0, np.abs(own))
    hits = np.zeros(len(family), dtype=np.int64)
    by_unit = np.asarray(sum_by(rates, codes))
    for e in signs(draws, by_unit.shape[1], seed):
        # where all have all items, a pair's signed sum is a difference of two models' signed sums
        single = by_unit @ e.T if shared is None else None
        largest, t = np.full(len(e), -np.inf), np.empty(len(e))
        for start in range(0, len(family), PAIRS):
            some = family[start : start + PAIRS]
            sums = None if single is not None else units(pairs[some]) @ e.T
            for at, pair in enumerate(some.tolist(), start):
                if single is not None:
                    a, b = pairs[pair]
                    np.subtract(single[a], single[b], out=t)
                elif sums is not None:
                    t = sums[at - start]
                side(t, out=t)
                t /= norm[pair]
                np.maximum(largest, t, out=largest)
                hits[at] += np.count_nonzero(largest >= enough[at])
    out = np.ones(len(pairs))
    out[family[::-1]] = np.maximum.accumulate((1.0 + hits[::-1]) / (1.0 + draws))
    return out
