"""Rank intervals that hold all ranks at once for many items: step-down studentised differences.

Mogstad, Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91, 476-518, as in their package csranks. With
D_kj = score_k - score_j and its standard error se_kj over items, k beats j where D_kj/se_kj > c. c is the quantile of

    max over the pairs (k, j) not yet decided of (Z_k - Z_j)/se_kj,    Z ~ N(0, covariance of the scores)

and is found anew without the pairs decided, until none is added (Romano and Wolf 2005). Here Z = sum_g e_g x_kg, e_g
standard normal and x_kg the centred sum of unit g: the covariance needs no matrix and clusters count as one.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchkit.levels import order_statistic
from benchkit.scores import Floats, Ints

Bools = NDArray[np.bool_]
HELD = 2**24  # values of the maximum's pairs held at a time


def influence(rates: Floats, codes: Ints | None, sizes: Ints) -> Floats:
    """(N, G) x with score_k - its mean = sum_g x_kg: a unit's centred sum over M, scaled by sqrt(G/(G-1)).

    rates (N, M). codes (M,) and sizes (G,): the units (`scores.units`). G = 1 gives zeros.
    """
    n, m = rates.shape
    groups = len(sizes)
    centred = rates - rates.mean(axis=1, keepdims=True)
    if codes is not None:
        by_unit = np.zeros((groups, n))
        np.add.at(by_unit, codes, centred.T)
        centred = by_unit.T
    if groups < 2:
        return np.zeros((n, groups))
    return np.asarray(centred * (np.sqrt(groups / (groups - 1)) / m))


def standard_errors(rates: Floats, codes: Ints | None, sizes: Ints) -> Floats:
    """(N, N) standard errors of differences of scores over units.

    Where two models differ by the same amount on every unit the spread is 0 and says nothing of the next unit: there
    two more units are added, one with a difference of +1 and one with -1 (Bonett and Price 2012).
    """
    x = influence(rates, codes, sizes)
    n, groups = x.shape
    out = np.empty((n, n))
    for k in range(n):
        out[k] = np.sqrt(np.square(x[k] - x).sum(axis=1))
    mean = rates.mean(axis=1)
    difference = mean[:, None] - mean[None, :]
    none = out <= 1e-12
    if none.any():
        total = groups + 2.0
        shift = groups * difference / total
        spread = (groups * np.square(difference) + 2.0) / total - np.square(shift)
        out = np.where(none, np.sqrt(spread / total), out)
    return out


def simultaneous(
    rates: Floats, codes: Ints | None, sizes: Ints, level: Fraction, reps: int = 4000, seed: int = 0
) -> Bools:
    """(N, N), [k, j] whether k beats j; the probability of any false win is about 1 - level.

    rates (N, M) success rates of complete models. reps: random draws for each quantile, the same at every step.
    Memory: reps x N values, and HELD more.
    """
    n = len(rates)
    se = standard_errors(rates, codes, sizes)
    mean = rates.mean(axis=1)
    t = (mean[:, None] - mean[None, :]) / se
    z = np.random.default_rng(seed).standard_normal((reps, len(sizes))) @ influence(rates, codes, sizes).T
    won = np.zeros((n, n), dtype=bool)
    open_ = ~np.eye(n, dtype=bool)
    at = order_statistic(level, reps) - 1
    while open_.any():
        critical = float(np.sort(_largest(z, se, open_))[at])
        more = open_ & (t > critical + 1e-9)  # equal values are no win
        if not more.any():
            break
        won |= more
        open_ &= ~more
    return won


def _largest(z: Floats, se: Floats, open_: Bools) -> Floats:
    """(reps,) the largest (z_k - z_j)/se_kj over the open pairs."""
    out = np.full(len(z), -np.inf)
    k, j = np.nonzero(open_)
    step = max(1, HELD // len(z))
    for start in range(0, len(k), step):
        some = slice(start, start + step)
        values = (z[:, k[some]] - z[:, j[some]]) / se[k[some], j[some]]
        np.maximum(out, values.max(axis=1), out=out)
    return out
