"""Counts of inverted pairs: how often a second ranking contradicts a first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_DIRECT = 128  # up to this length all pairs at once are cheaper than sorting
_BLOCK = 1 << 21  # pairs held at a time
_SORTED = 1 << 17  # values sorted at a time: what the processor's cache holds


class Pairs(NamedTuple):
    """For each row: pairs that differ in x and in y, and those of them that the two order oppositely. int64 (K,)."""

    comparable: Ints
    inverted: Ints


def count(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Pairs:
    """Comparable and inverted pairs in each row of x and y, both (K, n), integers or floats, compared exactly.

    Pairs (a, b) with x_a > x_b and y_a != y_b are comparable; inverted if also y_a < y_b. Short rows are compared
    pair by pair, long ones in O(n log n): in the order of x, then y, inversions of y are counted by the bits of its
    ranks (the merge-sort count of Knight 1966, from the highest bit down, in all rows at once).
    """
    rows, n = x.shape
    comparable, inverted = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    step = max(1, _SORTED // n if n > _DIRECT else _BLOCK // max(n * n, 1))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        if n > _DIRECT:
            comparable[part], inverted[part] = _long(x[part], y[part])
            continue
        above = x[part, :, None] > x[part, None, :]
        below = y[part, :, None] < y[part, None, :]
        inverted[part] = np.count_nonzero(above & below, axis=(1, 2))
        comparable[part] = inverted[part] + np.count_nonzero(above & below.transpose(0, 2, 1), axis=(1, 2))
    return Pairs(comparable, inverted)


def _long(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    n = x.shape[1]
    group, rank = _ranks(x), _ranks(y)
    both = np.sort(group * n + rank, axis=1)  # ties in x go by rising y, so that they hold no inversion
    comparable = n * (n - 1) // 2 - _ties(np.sort(group, axis=1)) - _ties(np.sort(rank, axis=1)) + _ties(both)
    return comparable, _inversions(both % n)


def _ranks(values: npt.NDArray[Any]) -> Ints:
    """(K, n) dense ranks from 0 within each row."""
    order = _order(values)
    ordered = np.take_along_axis(values, order, axis=1)
    steps = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=steps[:, 1:])
    out = np.empty_like(steps)
    np.put_along_axis(out, order, steps, axis=1)
    return out


def _order(values: npt.NDArray[Any]) -> Ints:
    """(K, n) what sorts each row."""
    if values.dtype != object:
        return np.argsort(values, axis=1)
    # Python integers sort slowly; as floats they keep their order, but for those that become equal.
    size = int(np.abs(values).max()).bit_length()
    order = np.argsort((values >> max(0, size - 1000)).astype(np.float64), axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    wrong = (ordered[:, 1:] < ordered[:, :-1]).any(axis=1)
    order[wrong] = np.argsort(values[wrong], axis=1)
    return order


def _ties(ordered: Ints) -> Ints:
    """(K,) pairs of equal values in each sorted row."""
    at = np.broadcast_to(np.arange(ordered.shape[1]), ordered.shape)
    first = np.where(np.diff(ordered, axis=1, prepend=-1) != 0, at, 0)
    out: Ints = (at - np.maximum.accumulate(first, axis=1)).sum(axis=1)
    return out


def _inversions(codes: Ints) -> Ints:
    """(K,) pairs of each row in which a greater value stands before a smaller one; codes (K, n), 0 and up.

    Values in one block have equal higher bits. Within a block a 1 before a 0 is an inversion found at this bit; then
    the zeros go before the ones, each in their order, and are blocks of their own.
    """
    rows, n = codes.shape
    code = codes.reshape(-1)
    at = np.arange(code.size)
    start = np.repeat(np.arange(rows) * n, n)
    end = start + n
    found = np.zeros(rows, dtype=np.int64)
    ones = np.zeros(code.size + 1, dtype=np.int64)
    for bit in range(int(codes.max(initial=0)).bit_length() - 1, -1, -1):
        one = (code >> bit) & 1
        np.cumsum(one, out=ones[1:])
        before = ones[:-1] - ones[start]
        found += (before * (1 - one)).reshape(rows, n).sum(axis=1)
        middle = end - (ones[end] - ones[start])
        high = one == 1
        place = np.where(high, middle + before, at - before)
        start, end = np.where(high, middle, start), np.where(high, end, middle)
        moved = np.empty((3, code.size), dtype=np.int64)
        moved[:, place] = code, start, end
        code, start, end = moved
    return found
