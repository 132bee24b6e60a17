"""Models that lack items: what a mean over the others is worth, how hard the missing ones are, what they could do."""

import math
from typing import NamedTuple

import numpy as np

from benchkit.scores import Floats, Ints, Scores, complete, totals


class Incomplete(NamedTuple):
    """A model without attempts on every item.

    model: its index. missing: indices of the items it lacks. score_on_own_items: its score on the others, NaN if it
    has none.
    """

    model: int
    missing: Ints
    score_on_own_items: float


class Others(NamedTuple):
    """How hard a model's items are for the others: mean over items of the other models' mean rate on the item.

    missing: over the items it lacks. tried: over those it tried. Items that no other model tried are left out; NaN
    where none is left.
    """

    missing: float
    tried: float


class Bound(NamedTuple):
    """A model's score and rank if every missing item were wrong or right, its own and those of the others.

    model: its index. missing: how many items it lacks. The others are the extremes.
    """

    model: int
    missing: int
    score_lower: float
    score_upper: float
    rank_lower: int
    rank_upper: int


def incomplete(counts: Ints, rates: Floats) -> tuple[Incomplete, ...]:
    """The models without attempts on every item; counts and rates (N, M)."""
    found = []
    for i in np.flatnonzero(~complete(counts)):
        own = counts[i] > 0
        score = float(rates[i, own].mean()) if own.any() else math.nan
        found.append(Incomplete(int(i), np.flatnonzero(~own), score))
    return tuple(found)


def others_rates(counts: Ints, rates: Floats, models: Ints) -> list[Others]:
    """Of each of `models` (indices): did it lack hard items or easy ones? counts and rates (N, M)."""
    tried = counts > 0
    known, total = tried.sum(axis=0), np.where(tried, rates, 0.0).sum(axis=0)
    found = []
    for i in models:
        own = tried[i]
        others = known - own
        rate = np.divide(total - np.where(own, rates[i], 0.0), others, out=np.zeros(total.shape), where=others > 0)
        parts = (rate[part & (others > 0)] for part in (~own, own))
        found.append(Others(*(float(part.mean()) if part.size else math.nan for part in parts)))
    return found


def bounds(counts: Ints, scores: Scores) -> tuple[Bound, ...]:
    """Of all N models, ordered by their best and then their worst rank; a missing item counts 0, or a whole item."""
    m = counts.shape[1]
    lacks = np.count_nonzero(counts == 0, axis=1).tolist()
    low = totals(scores.values)
    high = [s + k * scores.denominator for s, k in zip(low, lacks, strict=True)]
    slack = 0 if scores.exact else m
    found = []
    for i, (least, most) in enumerate(zip(low, high, strict=True)):
        best = 1 + sum(x - most > slack for x in low)  # never true of the model itself
        worst = 1 + sum(x - least > slack for x in high) - (most - least > slack)
        ends = (least / (scores.denominator * m), most / (scores.denominator * m))
        found.append(Bound(i, lacks[i], *ends, best, worst))
    return tuple(sorted(found, key=lambda b: (b.rank_lower, b.rank_upper, b.model)))
