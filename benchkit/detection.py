"""Improvements that a benchmark can't see: the intervals of difficulty in which they hide.

Let a model's success probability rise by `lift` on all difficulties of an open interval of width w, and let every item
be attempted K times before and K times after. Where the interval holds no item nothing that is observed changes, and
no test does better than its level, however large K is: every interval no wider than the maximum gap G is such a one.
Where it holds items, the power of the test of `benchkit.rerun` goes to 1 as K grows. Here the least power over all
intervals is computed. It is the power of that one test, a lower bound on what the best test could do.

Intervals (a, a + w), 0 <= a <= 1 - w. As a moves, an item enters after a = z_j - w and leaves at a = z_j, so the
intervals that start at 0, at a z_j, at a z_j - w or at 1 - w hold every set that is minimal: any other set contains
one of these. The power does not fall when a set grows (`benchkit.rerun`), so of these sets only those that contain no
other are compared. Two sets of one size are two sets: the power depends on the success probabilities too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.errors import InputError
from benchkit.rerun import least_power
from benchkit.spread import gaps

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # an item this near to an end of the interval lies on it, and outside
TEST = (
    "the sum of the right answers after, given each item's total of right answers before and after: exact, one-sided, "
    "randomised to size alpha; it is the power of this test, another one may do better"
)


class Improvement(NamedTuple):
    """What is to be detected: success probabilities rise by `lift` on an interval of `width`; each item is attempted
    `attempts` times before and again after, and tested at level alpha.

    success   float64 (M,), success probabilities before; None: none are known
    of        whose they are, in words
    """

    width: float
    lift: float
    attempts: int
    alpha: float
    success: Array | None
    of: str


def success_probabilities(
    b: Array, theta: Array, models: Sequence[str], ability: str | None = None, slope: Array | None = None
) -> tuple[Array | None, str]:
    """sigmoid(a_j (theta - b_j)) on each item, of the model `ability` or else averaged over the models; and in words.

    b, slope   (M,), logits and the discriminations a, None for 1
    theta      (N,), of `models`; with none of them the probabilities are None

    Raises InputError where `ability` is not among the models.
    """
    if ability is not None:
        if ability not in models:
            raise InputError(f"--ability: no model '{ability}' in the input", where="")
        theta = theta[[models.index(ability)]]
    if not theta.size:
        return None, "none"
    total = np.zeros_like(b)
    for t in theta:
        total += np.tanh((t - b) / 2 if slope is None else slope * (t - b) / 2)
    what = f"fitted, averaged over {theta.size} models" if ability is None else f"fitted, of {ability}"
    return (1 + total / theta.size) / 2, what


class Weakest(NamedTuple):
    """The interval in which the test finds an improvement least often.

    success       success probability before: what it is, in words
    power         None where no interval is feasible, with the `reason`
    power_se      its standard error, 0 where exact
    method        ``exact`` or ``simulation``
    lower, upper  the interval's ends, normalised difficulty
    covered       indices of the items that it holds, from easy to hard
    sets          distinct sets of items that feasible intervals hold
    infeasible    those left out, as the success probability of one of their items is above 1 - lift
    """

    success: str
    power: float | None
    reason: str | None
    power_se: float | None
    method: str | None
    lower: float | None
    upper: float | None
    covered: tuple[int, ...]
    sets: int
    infeasible: int

    def document(self, ids: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order, items by their identifiers."""
        out: dict[str, Any] = {"success": self.success, "power": self.power}
        if self.reason is not None:
            out["power_reason"] = self.reason
        else:
            out |= {key: getattr(self, key) for key in ("power_se", "method", "lower", "upper")}
            out["covered"] = [ids[j] for j in self.covered]
        return out | {"sets": self.sets, "infeasible": self.infeasible}


class Detection(NamedTuple):
    """The least power to see an improvement by `lift` on an interval of `width`.

    fitted   from the success probabilities given; None, with the `reason`, where there are none
    even     where every item has success probability (1 - lift)/2 before, at which chance hides most
    """

    width: float
    lift: float
    attempts: int
    alpha: float
    fitted: Weakest | None
    reason: str | None
    even: Weakest

    def document(self, ids: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order, items by their identifiers, null beside its reason."""
        out: dict[str, Any] = {key: getattr(self, key) for key in ("width", "lift", "attempts", "alpha")}
        out["test"] = TEST
        out["fitted"] = None if self.fitted is None else self.fitted.document(ids)
        if self.fitted is None:
            out["fitted_reason"] = self.reason
        out["even"] = self.even.document(ids)
        return out


def detection(z: npt.ArrayLike, improvement: Improvement, *, seed: int = 0) -> Detection:
    """Least power over the intervals for M items of normalised difficulty z (M,), in [0,1].

    seed   of the draws, where a power is simulated

    Raises InputError on options out of range.
    """
    width, lift, attempts, alpha, success, of = improvement
    if not 0 < width <= 1:
        raise InputError(f"the width of an improvement must be above 0 and at most 1, not {width:g}", where="")
    if not 0 < lift < 1:
        raise InputError(f"the lift of an improvement must lie between 0 and 1, not {lift:g}", where="")
    place = np.asarray(z, dtype=np.float64)
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    start, sets = covered_sets(ordered, width)

    def weakest(p: Array, what: str) -> Weakest:
        return _weakest(ordered, order, p, what, start, sets, width, lift, attempts, alpha, seed)

    half = (1 - lift) / 2
    even = weakest(np.full(place.size, half), f"(1 - lift)/2 = {half:.6g} on every item")
    if success is None:
        why = "there are no models, so no success probabilities"
        return Detection(width, lift, attempts, alpha, None, why, even)
    fitted = weakest(np.asarray(success, dtype=np.float64)[order], of)
    return Detection(width, lift, attempts, alpha, fitted, None, even)


def covered_sets(ordered: Array, width: float) -> tuple[Array, Ints]:
    """The distinct sets of items in the candidate intervals, for difficulties in ascending order.

    Starts float64 (S,), ascending, and runs lo <= j < hi of sorted items, int (S, 2). Intervals without items are one
    set; the start given is that in the widest gap (the first of those tied).
    """
    last = max(1 - width, 0.0)
    starts = np.concatenate([[0.0], ordered, ordered - width, [last]])
    starts = np.sort(np.clip(starts[(starts >= -_ROUNDING) & (starts <= last + _ROUNDING)], 0.0, last))
    lo = np.searchsorted(ordered, starts + _ROUNDING, side="right")
    hi = np.maximum(np.searchsorted(ordered, starts + width - _ROUNDING, side="left"), lo)
    empty = np.flatnonzero(lo == hi)
    kept = np.ones(starts.size, np.bool_)
    kept[1:] = (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1])
    kept[empty] = False
    if empty.size:
        room = np.round(gaps(ordered)[lo[empty]], 12)
        kept[empty[np.argmax(room)]] = True
    return starts[kept], np.stack([lo[kept], hi[kept]], axis=1)


def minimal(sets: Ints) -> npt.NDArray[np.bool_]:
    """Which of the runs, distinct and nondecreasing in both ends, contain no other one: bool (S,)."""
    lo, hi = sets[:, 0], sets[:, 1]
    return np.asarray(np.append(hi[1:] > hi[:-1], True) & np.append(True, lo[:-1] < lo[1:]))


def _weakest(
    ordered: Array,
    order: npt.NDArray[np.intp],
    p: Array,
    what: str,
    start: Array,
    sets: Ints,
    width: float,
    lift: float,
    attempts: int,
    alpha: float,
    seed: int,
) -> Weakest:
    """Arguments as in `detection`; p belongs to the sorted items."""
    over = np.concatenate([[0], np.cumsum(p > 1 - lift + _ROUNDING)])
    feasible = over[sets[:, 1]] == over[sets[:, 0]]
    left_out = int((~feasible).sum())
    if not feasible.any():
        why = "every interval holds an item whose success probability is above 1 - lift"
        return Weakest(what, None, why, None, None, None, None, (), 0, left_out)
    tried = np.flatnonzero(feasible)
    size = sets[:, 1] - sets[:, 0]
    none = tried[size[tried] == 0]
    if none.size:
        tried = none
    else:
        tried = tried[minimal(sets)[tried]]
        if p.min() == p.max():  # the power depends on the number of items only
            tried = tried[[np.argmin(size[tried])]]
    found = least_power(p, lift, attempts, sets[tried], alpha, seed=seed)
    at = tried[found.at]
    return Weakest(
        success=what,
        power=found.power,
        reason=None,
        power_se=found.se,
        method="exact" if found.exact else "simulation",
        lower=float(start[at]),
        upper=min(float(start[at]) + width, 1.0),
        covered=tuple(order[sets[at, 0] : sets[at, 1]].tolist()),
        sets=int(feasible.sum()),
        infeasible=left_out,
    )
