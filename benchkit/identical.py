"""Rows of results that are the same in every cell, and whether that can be chance.

Rows are models and columns items, or, transposed, rows are items and columns models.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.irt.model import sigmoid

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_REACH = 8.0  # in sqrt(n): two counts of n attempts differ by more with probability below exp(-64) (Hoeffding)
_BLOCK = 1 << 21  # values held at a time


class Group(NamedTuple):
    """Rows with the same attempts and correct in every column.

    rows: their indices, rising. chance: probability that two rows answer alike if attempts are independent with the
    success rates of the fit, taken over the columns where scores are whole numbers; NaN without a fit.
    """

    rows: Ints
    chance: float


def groups(attempts: Ints, correct: Array, row: Array | None = None, column: Array | None = None) -> tuple[Group, ...]:
    """Groups of two and more identical rows of attempts and correct (R, K), in the order of their first rows.

    row (R,), column (K,): success rates are sigmoid(row - column), as abilities and difficulties in logits (of items
    as rows: minus the difficulties and minus the abilities). None leaves `chance` undefined.

    Rows with all attempts right, or all wrong, are in no group: they are alike for being good or bad, or easy or hard,
    which they show in no other way. Nor are rows without attempts.
    """
    at: dict[bytes, list[int]] = defaultdict(list)
    mixed = (correct > 0).any(axis=1) & (correct < attempts).any(axis=1)
    for i in np.flatnonzero(mixed).tolist():
        content = hashlib.blake2b(attempts[i].tobytes())
        content.update((correct[i] + 0.0).tobytes())  # -0.0 becomes 0.0
        at[content.digest()].append(i)
    found = [rows for rows in at.values() if len(rows) > 1]
    first = [rows[0] for rows in found]
    chance = np.full(len(found), np.nan)
    if row is not None and column is not None and found:
        y = correct[first]
        n = np.where(y == np.rint(y), attempts[first], 0)  # a fraction has no probability in the fit
        chance = np.exp(np.log(agreement(n, sigmoid(row[first][:, None] - column))).sum(axis=1))
    return tuple(Group(np.array(r, dtype=np.int64), float(c)) for r, c in zip(found, chance, strict=True))


def agreement(n: npt.NDArray[Any], p: npt.NDArray[Any]) -> Array:
    """P(X = Y) of independent X, Y ~ Binomial(n, p), in each cell; 1 where n is 0.

    The characteristic function of X - Y is (1 - 2 p (1-p) (1 - cos t))^n, a polynomial of degree n in cos t, so that
    its mean over n + 1 equally spaced t is P(X = Y) itself. For large n fewer t do: the error is the probability that
    X and Y differ by their number or more.
    """
    out = np.ones(n.shape)
    twice = 2 * p * (1 - p)
    for size in np.unique(n[n > 0]).tolist():
        here = n == size
        points = int(min(size, np.ceil(_REACH * np.sqrt(size)))) + 1
        turn = 1 - np.cos(2 * np.pi * np.arange(points) / points)
        values = twice[here]
        step = max(1, _BLOCK // points)
        parts = [((1 - values[k : k + step, None] * turn) ** size).mean(axis=1) for k in range(0, len(values), step)]
        out[here] = np.concatenate(parts)
    return out
