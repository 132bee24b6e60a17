"""What a score is: the mean, or how often one of K attempts, or all of K, succeed.

With n attempts of which c are right, the share of the C(n, K) choices of K attempts that hold a right one, or nothing
else, is an unbiased estimator of the probability that K attempts do (Chen and others 2021, arXiv:2107.03374, for
pass@K; Yao and others 2024, arXiv:2406.12045, write pass^K for all@K):

    mean    c / n
    pass@K  1 - C(n - c, K) / C(n, K)      E = 1 - (1 - p)^K
    all@K   C(c, K) / C(n, K)              E = p^K

All are rational, so scores stay exact integers over a common denominator.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.scores import (
    INT64,
    MAX_BITS,
    Floats,
    Ints,
    Scores,
    check,
    complete,
    integers,
    on_grid,
    reduced,
    totals,
)


class Estimator(NamedTuple):
    """kind: ``mean``, ``pass`` or ``all``. k: attempts, 1 for the mean."""

    kind: str = "mean"
    k: int = 1

    def __str__(self) -> str:
        return self.kind if self.kind == "mean" else f"{self.kind}@{self.k}"


MEAN = Estimator()


def estimator(text: str) -> Estimator:
    """``mean``, ``pass@K`` or ``all@K``; InputError for anything else."""
    if text == "mean":
        return MEAN
    found = re.fullmatch(r"(pass|all)@([1-9][0-9]{0,5})", text)
    if not found:
        raise InputError(f"'{text}' is not mean, pass@K or all@K with K a whole number from 1")
    return Estimator(found[1], int(found[2]))


def numerators(of: Estimator, n: int) -> list[int]:
    """The score at c = 0..n right of n attempts, times C(n, K)."""
    if of.kind == "mean":
        return list(range(n + 1))
    ways = [math.comb(c, of.k) for c in range(n + 1)]
    return ways if of.kind == "all" else [ways[n] - ways[n - c] for c in range(n + 1)]


def whole(of: Estimator, n: int) -> int:
    """What stands for 1 beside `numerators`: n for the mean, else C(n, K)."""
    return n if of.kind == "mean" else math.comb(n, of.k)


def scores(
    attempts: Ints,
    correct: Floats,
    of: Estimator = MEAN,
    models: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
) -> Scores:
    """Scores of every cell (N, M) over a common denominator; 0 where there are no attempts.

    models, items: names for messages. Raises InputError, for K above 1, at scores that are fractions and at cells with
    fewer than K attempts: there is no unbiased estimate from them.
    """
    if of.kind == "mean" or of.k == 1:  # pass@1 and all@1 are the mean
        return integers(attempts, correct)
    if np.any(correct != np.rint(correct)):
        raise InputError(f"{of} needs attempts that are right or wrong: some scores are fractions")
    few = (attempts > 0) & (attempts < of.k)
    if few.any():
        i, j = (int(x) for x in np.argwhere(few)[0])
        cell = f"model {models[i] if models else i}, item {items[j] if items else j}"
        raise InputError(f"{cell}: {of} can't be estimated from {attempts[i, j]} attempts")
    sizes, where = np.unique(attempts, return_inverse=True)
    where = where.reshape(attempts.shape)
    wholes = [whole(of, int(n)) for n in sizes]
    one = math.lcm(*[w for n, w in zip(sizes, wholes, strict=True) if n])
    if one.bit_length() > MAX_BITS:
        return on_grid(rates(attempts, correct, of), attempts.shape[1])
    kind = np.dtype(np.int64) if one < INT64 else np.dtype(object)
    values = np.zeros(attempts.shape, kind)
    for at, (n, w) in enumerate(zip(sizes.tolist(), wholes, strict=True)):
        if n:
            cells = where == at
            table = np.array([x * (one // w) for x in numerators(of, n)], kind)
            values[cells] = table[correct[cells].astype(np.int64)]
    return reduced(values, one)


def rates(attempts: Ints, correct: Floats, of: Estimator = MEAN) -> Floats:
    """The same as floats (N, M), 0 where there are no attempts, NaN where there are fewer than K. Checks nothing."""
    out = np.divide(correct, attempts, out=np.zeros(correct.shape), where=attempts > 0)
    if of.kind == "mean" or of.k == 1:
        return out
    hits = correct if of.kind == "all" else attempts - correct
    share = np.ones(correct.shape)
    for t in range(of.k):  # C(h, K) / C(n, K), a factor at a time
        share *= np.divide(np.maximum(hits - t, 0.0), attempts - t, out=np.zeros(correct.shape), where=attempts > t)
    value = np.where(attempts < of.k, np.nan, share if of.kind == "all" else 1.0 - share)
    return np.where(attempts > 0, value, 0.0)


def expected(p: NDArray[np.floating], of: Estimator = MEAN, rho: NDArray[np.floating] | None = None) -> Floats:
    """The expected score of cells with success probability p (any shape).

    rho: of the beta-binomial model, broadcast against p, in [0,1): attempts on one cell share a probability that is
    Beta(p kappa, (1-p) kappa), kappa = (1 - rho)/rho, so E P^K = prod_t (p kappa + t)/(kappa + t), t = 0..K-1.
    """
    chance: Floats = np.asarray(p, dtype=np.float64)
    if of.kind == "mean":
        return chance
    base = chance if of.kind == "all" else 1.0 - chance
    if rho is None:
        power = base**of.k
    else:
        r, power = np.asarray(rho, dtype=np.float64), np.ones(np.broadcast_shapes(chance.shape, np.shape(rho)))
        for t in range(of.k):
            power = power * (base * (1.0 - r) + t * r) / (1.0 - r + t * r)
    return np.asarray(power if of.kind == "all" else 1.0 - power)


def best_complete(attempts: Ints, correct: Floats, of: Estimator = MEAN) -> int:
    """Index of the best score among complete models, the first on ties; the default reference of paired tests."""
    counts, y = check(attempts, correct)
    full = np.flatnonzero(complete(counts))
    if full.size == 0:
        raise InputError("no model has attempts on every item, so there is no best one: name the reference")
    sums = totals(scores(counts[full], y[full], of).values)
    return int(full[sums.index(max(sums))])
