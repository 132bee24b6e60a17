"""Step-down adjustment by the largest statistic under joint sign flips (Westfall and Young 1993, algorithm 4.1).

One pattern of signs flips the items (clusters) of all pairs at once, so that the adjustment knows how the pairs depend:

    T = |sum_j d_j| / sqrt(sum_j d_j^2)

for each pair, and the same with signs e_j d_j. With the pairs ordered by falling T, an adjusted p is the share of sign
patterns whose largest T among this pair and those after it is at least its own, made monotone. Jointly flipped signs
are no exchange of single models, so with unequal pairs in the family the control of the family-wise error is asymptotic
(.065 at .05 with 20 models in a simulation).
"""

import numpy as np
from numpy.typing import NDArray

from benchkit.flips import Alternative
from benchkit.scores import Floats, Ints, Scores, sum_by

PAIRS = 64  # pairs at a time
COLUMNS = 4096  # units whose signs are unpacked at a time
SAME = 1e-9  # statistics this close are equal: the conservative side
ZERO = 1e-12  # differences below it are rounding


class Signs:
    """`draws` patterns of G signs, the same for every pair; packed, an eighth of a byte each."""

    def __init__(self, draws: int, units: int, seed: int) -> None:
        self.draws, self.units = draws, units
        self.packed = np.random.default_rng(seed).integers(0, 256, (draws, -(-units // 8)), dtype=np.uint8)

    def sums(self, values: NDArray[np.float64]) -> Floats:
        """(draws, P) signed sums of the columns of `values` (G, P)."""
        out = np.zeros((self.draws, values.shape[1]))
        for start in range(0, self.units, COLUMNS):
            stop = min(start + COLUMNS, self.units)
            bits = np.unpackbits(self.packed[:, start // 8 : -(-stop // 8)], axis=1)[:, : stop - start]
            out += bits.astype(np.float64) @ values[start:stop]
        return np.asarray(2.0 * out - values.sum(axis=0))


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
    Memory: draws x max(N, 64) numbers and draws x G bits.
    """
    rates = (scores.values / scores.denominator).astype(np.float64)

    def units(a: Ints, b: Ints) -> Floats:
        """(P, G) differences of pairs on their units."""
        d = rates[a] - rates[b]
        return np.asarray(sum_by(d if shared is None else np.where(shared[a] & shared[b], d, 0.0), codes))

    groups = rates.shape[1] if codes is None else int(codes.max()) + 1
    signs = Signs(draws, groups, seed)
    side = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    # where all have all items, a pair's signed sum is a difference of two models' signed sums
    single = None if shared is not None else signs.sums(np.asarray(sum_by(rates, codes)).T)
    norm, observed = np.zeros(len(pairs)), np.zeros(len(pairs))
    for start in range(0, len(pairs), PAIRS):
        a, b = pairs[start : start + PAIRS].T
        d = units(a, b)
        d[np.abs(d) < ZERO] = 0.0
        norm[start : start + PAIRS] = np.sqrt(np.square(d).sum(axis=1))
        observed[start : start + PAIRS] = side(d.sum(axis=1))
    family = np.flatnonzero(norm > 0)
    t = observed[family] / norm[family]
    rising = family[np.argsort(t, kind="stable")]
    largest = np.full(draws, -np.inf)
    out = np.ones(len(pairs))
    for start in range(0, len(rising), PAIRS):
        some = rising[start : start + PAIRS]
        a, b = pairs[some].T
        sums = signs.sums(units(a, b).T) if single is None else single[:, a] - single[:, b]
        values = side(sums) / norm[some]
        np.maximum(values[:, 0], largest, out=values[:, 0])
        np.maximum.accumulate(values, axis=1, out=values)
        largest = values[:, -1]
        own = observed[some] / norm[some]
        hits = np.count_nonzero(values >= own - SAME * np.maximum(1.0, np.abs(own)), axis=0)
        out[some] = (1.0 + hits) / (1.0 + draws)
    falling = rising[::-1]
    out[falling] = np.maximum.accumulate(out[falling])
    return out
