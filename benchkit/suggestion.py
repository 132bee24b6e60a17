"""Where new items would shrink the maximum gap most.

A gap of width g that takes k new items is best divided evenly, into k + 1 gaps of g/(k + 1); the gaps next to 0 and 1
are divided like the others. N items can bring every gap down to w if sum_j (ceil(g_j/w) - 1) <= N, and the least such
w is the (N + 1)-th largest of the quotients g_j/i, i = 1, 2, ... That is the rule of highest quotients (D'Hondt): give
one item after the other to the gap that is the widest by then. It is exact, and no width is bisected to a tolerance.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import Scale, to_logit
from benchkit.errors import InputError
from benchkit.spread import gaps

Array = npt.NDArray[np.float64]

MOST = 10_000
_DECIMALS = 12  # widths that agree to so many decimals are tied: the easier gap comes first


class Place(NamedTuple):
    """The difficulty of a new item, normalised and in logits (None, with the reason, where there are none)."""

    difficulty: float
    logit: float | None
    logit_reason: str | None


class Suggestion(NamedTuple):
    """Places for `items` new items.

    needed     as many of them would do for the same maximum gap; the others divide gaps that are no wider
    max_gap    the maximum gap with all of them, had they these difficulties exactly
    positions  from easy to hard
    """

    items: int
    needed: int
    max_gap: float
    positions: tuple[Place, ...]

    def document(self) -> dict[str, Any]:
        """Plain values in key order, null beside its reason."""
        out: dict[str, Any] = {"items": self.items, "needed": self.needed, "max_gap": self.max_gap}
        rows = [place._asdict() for place in self.positions]
        out["positions"] = [{k: v for k, v in row.items() if k != "logit_reason" or v is not None} for row in rows]
        return out


def suggest(z: Array, items: int, scale: Scale) -> Suggestion:
    """The best places for `items` new items beside those of normalised difficulty z (M,), ascending.

    Raises InputError for `items` outside of 1 to 10,000.
    """
    if not 1 <= items <= MOST:
        raise InputError(f"--suggest takes a whole number from 1 to {MOST}, not {items}", where="")
    width = gaps(z)
    given = divide(width, items)
    pieces = width / (given + 1)
    ends = np.concatenate([[0.0], z])
    places = [ends[j] + pieces[j] * np.arange(1, given[j] + 1) for j in np.flatnonzero(given)]
    positions = np.concatenate(places).tolist()
    most = float(pieces.max())
    needed = int(np.maximum(np.ceil(width / most - 10.0**-_DECIMALS) - 1, 0).sum())
    return Suggestion(items, needed, most, tuple(Place(x, *to_logit(x, scale)) for x in positions))


def divide(width: Array, items: int) -> npt.NDArray[np.int64]:
    """How many of `items` new items go into each gap, so that the widest piece is as narrow as can be."""
    given = np.zeros(width.size, np.int64)
    rounded = np.round(width, _DECIMALS)
    # a gap that is not among the `items` widest is never the widest: it gets none
    widest = np.lexsort((np.arange(width.size), -rounded))[:items] if width.size > items else np.arange(width.size)
    heap = [(-float(rounded[j]), int(j)) for j in widest]
    heapq.heapify(heap)
    for _ in range(items):
        j = heap[0][1]
        given[j] += 1
        heapq.heapreplace(heap, (-round(float(width[j]) / (int(given[j]) + 1), _DECIMALS), j))
    return given
