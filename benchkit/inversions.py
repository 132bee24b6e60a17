"""Counts of inverted pairs: how often a second ranking contradicts a first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_DIRECT = 192  # up to this length all pairs at once are cheaper than sorting
_BLOCK = 1 << 21  # pairs held at a time


class Pairs(NamedTuple):
    """For each row: pairs that differ in x and in y, and those of them that the two order oppositely. int64 (K,)."""

    comparable: Ints
    inverted: Ints


def count(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Pairs:
    """Comparable and inverted pairs in each row of x and y, both (K, n), integers or floats, compared exactly.

    Pairs (a, b) with x_a > x_b and y_a != y_b are comparable; inverted if also y_a < y_b. Short rows are compared
    pair by pair, long ones in O(n log n): in the order of x, then y, inversions of y are counted by the bits of its
    ranks (the merge-sort count of Knight 1966, level by level).
    """
    rows, n = x.shape
    comparable, inverted = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    if n > _DIRECT:
        for k in range(rows):
            comparable[k], inverted[k] = _long(x[k], y[k])
        return Pairs(comparable, inverted)
    step = max(1, _BLOCK // max(n * n, 1))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        above = x[part, :, None] > x[part, None, :]
        below = y[part, :, None] < y[part, None, :]
        inverted[part] = np.count_nonzero(above & below, axis=(1, 2))
        comparable[part] = inverted[part] + np.count_nonzero(above & below.transpose(0, 2, 1), axis=(1, 2))
    return Pairs(comparable, inverted)


def _pairs(sizes: npt.NDArray[Any]) -> int:
    return int((sizes.astype(np.int64) * (sizes - 1) // 2).sum())


def _long(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[int, int]:
    n = x.size
    _, rank, y_sizes = np.unique(y, return_inverse=True, return_counts=True)
    _, group, x_sizes = np.unique(x, return_inverse=True, return_counts=True)
    _, both = np.unique(group.astype(np.int64) * y_sizes.size + rank, return_counts=True)
    comparable = n * (n - 1) // 2 - _pairs(x_sizes) - _pairs(y_sizes) + _pairs(both)
    # Ties in x go by rising y, so that they hold no inversion.
    code = rank[np.lexsort((rank, group))].astype(np.int64)
    inverted = 0
    for bit in range(int(y_sizes.size - 1).bit_length() - 1, -1, -1):
        # Within a block of equal higher bits, a 1 before a 0 is an inversion found at this bit.
        high = code >> (bit + 1)
        order = np.argsort(high, kind="stable")
        one = (code[order] >> bit) & 1
        block = high[order]
        ones = np.cumsum(one)
        first = np.searchsorted(block, block, side="left")
        before = ones - np.where(first > 0, ones[first - 1], 0)
        inverted += int(before[one == 0].sum())
    return comparable, inverted
