"""How ranks move when the items, or the clusters of items, are drawn anew.

Every resample takes G of the G units with replacement, the same for all models, and ranks the models by their sums:
1 + number of strictly greater sums, compared exactly.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.levels import order_statistic
from benchkit.scores import Floats, Ints

CHUNK_CELLS = 2**18  # counts held at once by default: they stay in the cache
HELD = 2**25  # ranks held until they are counted
EXACT = 53  # bits a float64 sum of integers keeps


class Fill(NamedTuple):
    """sums(counts, start): what missing cells add to the sums (B, R) of resamples start, start + 1, ..., from how often
    each unit was drawn, counts (B, G). top: bound of the sums with it, below 2^53."""

    sums: Callable[[NDArray[Any], int], NDArray[Any]]
    top: int


def competition_ranks(sums: list[int], tolerance: int = 0) -> Ints:
    """1 + number of sums larger by more than the tolerance, for exact integers (chains of near ties share a rank)."""
    order = sorted(range(len(sums)), key=lambda i: -sums[i])
    out = np.empty(len(sums), dtype=np.int64)
    rank, last = 1, None
    for position, i in enumerate(order, 1):
        if last is not None and last - sums[i] > tolerance:
            rank = position
        out[i], last = rank, sums[i]
    return out


def _limbs(values: NDArray[Any], draws: int) -> list[Floats]:
    """values (R, G) >= 0 as float64 digits, highest first, such that a sum of `draws` digits is exact in float64."""
    width = EXACT - draws.bit_length()
    count = max(1, -(-int(values.max(initial=0)).bit_length() // width))
    digits = [(values >> (width * i)) & ((1 << width) - 1) for i in range(count)]
    return [x.astype(np.float64) for x in reversed(digits)]


def _sorted_rows(sums: list[Floats], draws: int, tolerance: int, top: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Models by falling score in each row, and where a score is strictly below the one before: both (B, R).

    sums: digits of the sums (B, R), highest first; top: bound of a single-digit sum.
    """
    rows, n = sums[0].shape
    bits = max(1, (n - 1).bit_length())
    below = np.zeros((rows, n), dtype=bool)
    if len(sums) == 1 and top.bit_length() + bits < 63:  # score and index packed in one integer: one plain sort
        keys = ((top - sums[0].astype(np.int64)) << bits) | np.arange(n)
        keys.sort(axis=1)
        score = keys >> bits
        below[:, 1:] = (score[:, 1:] - score[:, :-1]) > tolerance
        return keys & ((1 << bits) - 1), below
    width = EXACT - draws.bit_length()
    for high, low in zip(sums[-2::-1], sums[:0:-1], strict=True):  # carry, from the lowest digit up
        carry = np.floor(np.ldexp(low, -width))
        low -= np.ldexp(carry, width)
        high += carry
    order = np.lexsort(tuple(-x for x in reversed(sums)), axis=1)
    for digit in sums:
        ordered = np.take_along_axis(digit, order, axis=1)
        below[:, 1:] |= (
            (ordered[:, :-1] - ordered[:, 1:]) > tolerance if len(sums) == 1 else (ordered[:, :-1] != ordered[:, 1:])
        )
    return order, below


def resampled_ranks(
    values: NDArray[Any], reps: int, seed: int, tolerance: int = 0, chunk: int | None = None, filled: Fill | None = None
) -> NDArray[Any]:
    """How often each model has each rank when the G columns are drawn G times with replacement.

    values: (R, G) integers >= 0, int64 or object: a model's total on each item or cluster. All models share the
    columns, so the sum of totals orders them as the sum of totals over the sum of sizes does.
    tolerance: sums closer than this are ties (0 for exact values).
    filled: what missing cells add to the sums, resample by resample.
    Returns (R, R) int32 (int64 from 2^31 resamples on), [i, r - 1] the number of resamples in which model i has rank
    r. The random stream does not depend on `chunk`, the resamples held at once.
    """
    n, units_ = values.shape
    low, top = values, filled.top if filled else 0
    if not filled:
        low = values - values.min(axis=0)  # the same shift for every model
        low = low // max(1, math.gcd(*[int(x) for x in np.unique(low)])) if tolerance == 0 else low
        top = int(low.max(initial=0)) * units_
        if tolerance and top.bit_length() > EXACT:
            shift = top.bit_length() - EXACT
            low, top, tolerance = low >> shift, top >> shift, (tolerance >> shift) + units_ + 1
    digits = _limbs(low, units_)
    single = len(digits) == 1 and top < 2**24  # float32 and float64 are both exact below their bound
    dtype = np.dtype(np.float32 if single else np.float64)
    columns: list[NDArray[Any]] = [np.ascontiguousarray(x.T, dtype=dtype) for x in digits]
    step = max(1, min(reps, chunk or CHUNK_CELLS // max(units_, n)))
    rng = np.random.default_rng(seed)
    out = np.zeros((n, n), dtype=np.int32 if reps < 2**31 else np.int64)
    held = np.empty((min(reps, max(step, HELD // n)), n), dtype=np.int16 if n < 2**15 else np.int32)
    full = 0
    position = np.arange(n)
    for start in range(0, reps, step):
        rows = min(step, reps - start)
        drawn = rng.integers(0, units_, size=(rows, units_), dtype=np.int64)
        drawn += (np.arange(rows) * units_)[:, None]
        counts: NDArray[Any] = np.bincount(drawn.ravel(), minlength=rows * units_).reshape(rows, units_).astype(dtype)
        sums = [counts @ x for x in columns]
        if filled:
            sums[-1] += filled.sums(counts, start)
        order, below = _sorted_rows(sums, units_, tolerance, top)
        if full + rows > len(held):
            _tally(held[:full], out)
            full = 0
        place = np.maximum.accumulate(np.where(below, position, 0), axis=1).astype(held.dtype)
        np.put_along_axis(held[full : full + rows], order, place, axis=1)
        full += rows
    _tally(held[:full], out)
    return out


def _tally(places: NDArray[Any], out: NDArray[Any]) -> None:
    """Add places (B, R), one resample a row, to out (R, R), some models at a time so that memory is walked in order."""
    n = places.shape[1]
    step = max(1, CHUNK_CELLS // max(n, len(places)))
    for start in range(0, n, step):
        some = places[:, start : start + step].T.astype(np.int64)
        some += (np.arange(len(some)) * n)[:, None]
        out[start : start + step] += np.bincount(some.ravel(), minlength=len(some) * n).reshape(-1, n).astype(out.dtype)


def rank_quantile(frequency: NDArray[Any], q: Fraction) -> Ints:
    """Inverted-CDF q-quantile of the ranks, (R,), from their frequency (R, R)."""
    least = order_statistic(q, int(frequency[0].sum()))
    out = np.empty(len(frequency), dtype=np.int64)
    step = max(1, 2**22 // frequency.shape[1])
    for start in range(0, len(out), step):
        some = slice(start, start + step)
        out[some] = np.argmax(np.cumsum(frequency[some], axis=1, dtype=np.int64) >= least, axis=1) + 1
    return out
