"""The set of models that may be the best: those that no other model is proven to beat."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchkit.flips import sign_flip
from benchkit.levels import Level, as_fraction, floor_float
from benchkit.scores import Ints, Scores, differences


def best_set(
    scores: Scores, sums: list[int], level: Level, codes: Ints | None = None, seed: int = 0
) -> NDArray[np.bool_]:
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
    # p(k > j) >= 1/2 where k scores no more than j, so below 1/2 only better models can drop j
    everyone = threshold >= Fraction(1, 2)
    place = np.empty(n, dtype=np.int64)
    place[sorted(range(n), key=lambda i: -sums[i])] = np.arange(n)
    step = max(1, 2**22 // scores.values.shape[1])
    for k in np.argsort(place):  # the strongest rivals first: most models need one comparison
        rest = np.flatnonzero(keep & (place > place[k])) if not everyone else np.flatnonzero(keep)
        rest = rest[rest != k]
        for start in range(0, len(rest), step):
            some = rest[start : start + step]
            d = differences(scores, np.full(len(some), k), some, None, codes)
            keep[some[sign_flip(d, "greater", seed=seed).p <= limit]] = False
    return keep
