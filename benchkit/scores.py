"""Success rates as exact integers over a common denominator, so that ties are ties and never a matter of rounding.

Shapes: N models, M items. ``attempts`` int64 (N, M), 0 where the pair was not tried. ``correct`` float64 (N, M), the
sum of the scores, 0..attempts. ``cluster`` int64 (M,), a negative code marks an item that is a cluster by itself.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_DENOMINATOR = 10**6
FITS = (1e-12, 1e-9)  # a denominator fits a value if some numerator comes this close
MAX_BITS = 4096  # beyond it exact arithmetic costs more than it tells
INT64 = 2**62  # sums and differences below it can't overflow


class Scores(NamedTuple):
    """Success rates x denominator.

    values: (N, M) int64, or Python integers (dtype object) where int64 could overflow; 0 where there are no attempts.
    denominator: the integer that stands for a rate of 1.
    exact: False if no small denominator fits; the values are then rounded to the grid 1/denominator, each by half a
        unit at most, and comparisons need that tolerance.
    """

    values: NDArray[Any]
    denominator: int
    exact: bool


class Differences(NamedTuple):
    """Differences of success rates, one row per pair, in units of the row's own.

    values: (P, G) int64, G items or clusters; proportional to the differences within a row.
    tolerance: (P,) int64, how far the sum of a row may be off, in the row's units; 0 where exact.
    """

    values: Ints
    tolerance: Ints


def check(attempts: NDArray[Any], correct: NDArray[Any], cluster: NDArray[Any] | None = None) -> tuple[Ints, Floats]:
    """The two arrays as int64 and float64, checked; InputError says which cell is wrong."""
    n, y = np.asarray(attempts), np.asarray(correct, dtype=np.float64)
    if n.ndim != 2 or n.shape != y.shape:
        raise InputError(f"attempts {n.shape} and correct {y.shape} must be tables of one shape")
    if n.shape[1] == 0 or n.shape[0] == 0:
        raise InputError("no models or no items")
    if not np.all(np.equal(np.mod(n, 1), 0)):
        raise InputError("attempts must be whole numbers")
    counts = n.astype(np.int64)
    if cluster is not None and np.shape(cluster) != (counts.shape[1],):
        raise InputError(f"cluster has {np.size(cluster)} codes for {counts.shape[1]} items")
    bad = ~((counts >= 0) & (y >= 0) & (y <= counts))  # a NaN is bad too
    if bad.any():
        i, j = (int(x) for x in np.argwhere(bad)[0])
        raise InputError(f"model {i}, item {j}: correct ({y[i, j]:g}) is not within 0..attempts ({counts[i, j]})")
    return counts, y


def common_denominator(values: Floats) -> int | None:
    """The least q <= 10^6 such that every value lies within 1e-12, else 1e-9, of a multiple of 1/q, or None.

    The closer fit comes first: near q = 10^6 a wrong denominator can fit a few decimals to 1e-9 by chance.
    """
    distinct = np.unique(values)
    for fit in FITS:
        if np.all(np.abs(distinct - np.rint(distinct)) <= fit):
            return 1
    for fit in FITS:
        survivors = np.arange(2, MAX_DENOMINATOR + 1, dtype=np.float64)
        while survivors.size:
            q = survivors[0]
            off = np.abs(distinct * q - np.rint(distinct * q))
            worst = int(np.argmax(off))
            if off[worst] <= fit * q:
                return int(q)
            scaled = survivors * distinct[worst]
            survivors = survivors[np.abs(scaled - np.rint(scaled)) <= fit * survivors]
    return None


def integers(attempts: Ints, correct: Floats) -> Scores:
    """Success rates over the common denominator: lcm of the attempts x the denominator of fractional scores."""
    tried = attempts > 0
    q = common_denominator(correct[tried]) if tried.any() else 1
    lcm = math.lcm(*np.unique(attempts[tried]).tolist())
    if q is None or (lcm * q).bit_length() > MAX_BITS:
        return on_grid(np.divide(correct, attempts, out=np.zeros(correct.shape), where=tried), attempts.shape[1])
    denominator = lcm * q
    numerator = np.where(tried, np.rint(correct * q), 0).astype(np.int64)
    if denominator >= INT64:
        sizes, where = np.unique(attempts, return_inverse=True)
        factor = np.array([lcm // int(n) if n else 0 for n in sizes], dtype=object)[where.reshape(attempts.shape)]
        return reduced(numerator.astype(object) * factor, denominator)
    return reduced(numerator * (lcm // np.maximum(attempts, 1)), denominator)


def on_grid(rates: Floats, items: int) -> Scores:
    """Rates (N, M) rounded to a grid so fine that sums over the items are exact in float64; not exact."""
    grid = 2 ** max(1, min(40, 52 - int(items).bit_length()))
    return Scores(np.rint(rates * grid).astype(np.int64), grid, False)


def reduced(values: NDArray[Any], denominator: int) -> Scores:
    """Exact scores in lowest terms, as int64 where it holds them."""
    shared = math.gcd(denominator, int(np.gcd.reduce(values, axis=None)))
    values, denominator = values // shared, denominator // shared
    return Scores(values.astype(np.int64) if denominator < INT64 else values, denominator, True)


def units(cluster: Ints | None, items: int) -> tuple[Ints | None, Ints]:
    """What is resampled or flipped: codes 0..G-1 of the items (None if each item is a unit) and the G sizes."""
    if cluster is None:
        return None, np.ones(items, dtype=np.int64)
    codes = np.asarray(cluster, dtype=np.int64).copy()
    alone = codes < 0
    codes[alone] = codes.max(initial=0) + 1 + np.arange(int(alone.sum()))
    _, codes = np.unique(codes, return_inverse=True)
    return codes.astype(np.int64), np.bincount(codes).astype(np.int64)


def sum_by(values: NDArray[Any], codes: Ints | None) -> NDArray[Any]:
    """(P, M) values added up within units: (P, G). Python integers (object) stay exact."""
    if codes is None:
        return values
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    return np.asarray(np.add.reduceat(values[:, order], starts, axis=1))


def shrink(row: NDArray[Any]) -> tuple[Ints, bool]:
    """One row of Python integers in its largest unit, as int64; True if it was rounded to fit."""
    whole = [int(x) for x in row]
    unit = math.gcd(*whole) or 1
    whole = [x // unit for x in whole]
    size = sum(map(abs, whole))
    if size < INT64:
        return np.array(whole, dtype=np.int64), False
    shift = size.bit_length() - 52
    return np.array([(x + (1 << (shift - 1))) >> shift for x in whole], dtype=np.int64), True


def differences(scores: Scores, a: Ints, b: Ints, shared: NDArray[np.bool_] | None, codes: Ints | None) -> Differences:
    """Rates of models a minus those of models b on the items both have, summed within units.

    a, b: (P,) model indices. shared: (P, M) or None for all items. codes: (M,) unit of an item, or None.
    """
    d = scores.values[a] - scores.values[b]
    if shared is not None:
        d = np.where(shared, d, 0)
    off = np.zeros(len(d), dtype=np.int64) if scores.exact else np.count_nonzero(d, axis=1).astype(np.int64)
    if d.dtype != object and scores.denominator * d.shape[1] < INT64:
        return Differences(sum_by(d, codes), off)
    wide = sum_by(d.astype(object), codes)
    rows = [shrink(row) for row in wide]
    rounded = np.array([r for _, r in rows], dtype=bool)
    return Differences(
        np.array([row for row, _ in rows], dtype=np.int64).reshape(wide.shape),
        np.where(rounded, off + wide.shape[1], off),
    )


def totals(values: NDArray[Any]) -> list[int]:
    """Row sums as Python integers, exact whatever their size."""
    if values.dtype != object and int(values.max(initial=0)) * values.shape[1] < INT64:
        return [int(x) for x in values.sum(axis=1)]
    return [sum(int(x) for x in row) for row in values]


def complete(attempts: Ints) -> NDArray[np.bool_]:
    """(N,) True for models with attempts on every item."""
    return np.asarray(np.all(attempts > 0, axis=1))
