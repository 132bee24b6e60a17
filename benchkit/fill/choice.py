"""Calibrated candidates -> the items to add to a benchmark, by a greedy rule, and what they change.

The widest gap that holds a candidate is split by the candidate nearest to its midpoint, again and again. Gaps are those
of the benchmark with what was added so far, on the benchmark's own scale (see `scale`); only its `top` widest gaps
count, since no other one changes the maximum gap or the top gap sum. Boundary candidates are left out: nothing but the
prior says where they lie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import Array
from benchkit.errors import InputError
from benchkit.fill.plan import widest
from benchkit.fill.scale import Mask, placed
from benchkit.posterior import Draws, Intervals, posterior
from benchkit.spread import ROUNDING, gaps, spread
from benchkit.targets import Uniform

_DECIMALS = 12  # distances that agree to so many decimals are tied

MAX_GAP, BUDGET, NONE_INSIDE = "max-gap", "budget", "no-candidate"
"""Why a choice ends: the widest gap is narrow enough, the budget is spent, no candidate lies in a gap that counts."""


class Step(NamedTuple):
    """One item added.

    item                     its index
    gap                      the split gap's place among the widest, 1 for the widest
    lower, upper, midpoint   of that gap, normalised difficulty
    max_gap                  of the benchmark with this item
    """

    item: int
    gap: int
    lower: float
    upper: float
    midpoint: float
    max_gap: float


class Measured(NamedTuple):
    """The metrics of a set of items against the uniform target, as bk-metrics has them; None where undefined.

    intervals  posterior intervals, each draw normalised by itself; None without draws
    """

    items: int
    ddm: float | None
    max_gap: float | None
    top_gap_sum: float | None
    intervals: Intervals | None
    reasons: dict[str, str]


class Choice(NamedTuple):
    """What was chosen and what that changes.

    z        float64 (M,), all items on the benchmark's scale; None where it is undefined
    steps    the items added, in the order of their choice
    left     (index, why) of each candidate that was not chosen, in the order of b
    widest   the ends of the widest gap that remains, None where the scale is undefined
    stopped  MAX_GAP, BUDGET or NONE_INSIDE; None where the scale is undefined
    """

    z: Array | None
    before: Measured
    after: Measured
    steps: tuple[Step, ...]
    left: tuple[tuple[int, str], ...]
    widest: tuple[float, float] | None
    stopped: str | None
    reason: str | None


def choose(
    b: npt.ArrayLike,
    new: Mask,
    theta: npt.ArrayLike | None = None,
    boundary: Mask | None = None,
    draws: Draws | None = None,
    theta_draws: Draws | None = None,
    *,
    normalize: str = "minmax",
    top: int = 5,
    margin: float = 0.1,
    max_gap: float | None = None,
    budget: int | None = None,
    level: float = 0.95,
) -> Choice:
    """Choose among the items that are `new`, bool (M,), with difficulties b (M,), posterior means in logits.

    boundary            bool (M,), items with all attempts right, or all wrong
    draws, theta_draws  float32 (S, M) and (S, N), of b and of theta (N,), draw by draw together
    top                 the gaps that count, and those that are added up
    margin              a candidate nearer to an end of its gap than this share of the width hardly splits it, and is
                        left out unless both parts are as narrow as `max_gap`
    max_gap             gaps no wider than this are left alone; the choice ends when none is wider
    budget              items added at most

    Raises InputError as `difficulty.normalize` does, and on options out of range.
    """
    b = np.asarray(b, dtype=np.float64)
    if top < 1 or (budget is not None and budget < 0) or not 0 < level < 1 or not 0 <= margin <= 0.5:
        raise InputError("--top is 1 or more, --budget 0 or more, --level in 0 to 1 and --margin in 0 to 0.5")
    ability = None if theta is None else np.asarray(theta, dtype=np.float64)
    on = placed(b, new, ability, normalize)
    if on.z is None:
        nothing = _undefined(int((~new).sum()), str(on.reason))
        left = tuple((int(j), "the benchmark's scale is undefined") for j in np.flatnonzero(new))
        return Choice(None, nothing, nothing, (), left, None, None, on.reason)

    loose = np.zeros(b.size, dtype=bool) if boundary is None else new & boundary
    rule = _Rule(top, margin, max_gap, budget)
    steps, stopped = _greedy(on.z, new, on.inside() & ~loose, rule)
    added = np.zeros(b.size, dtype=bool)
    added[[s.item for s in steps]] = True
    before, after = (_measure(on.z, keep, draws, theta_draws, normalize, top, level) for keep in (~new, ~new | added))
    ordered = np.sort(on.z[~new | added])
    left = _left(on.z, new & ~added, loose, ordered, rule, stopped)
    return Choice(on.z, before, after, steps, left, widest(ordered, 1)[0], stopped, None)


class _Rule(NamedTuple):
    top: int
    margin: float
    max_gap: float | None
    budget: int | None

    def narrow(self, width: float) -> bool:
        return self.max_gap is not None and width <= self.max_gap + ROUNDING


def _greedy(z: Array, new: Mask, usable: Mask, rule: _Rule) -> tuple[tuple[Step, ...], str]:
    ordered = np.sort(z[~new])
    free = np.flatnonzero(new & usable)
    free = free[np.argsort(z[free], kind="stable")]
    steps: list[Step] = []
    while True:
        if rule.narrow(float(gaps(ordered).max())):
            return tuple(steps), MAX_GAP
        if rule.budget is not None and len(steps) >= rule.budget:
            return tuple(steps), BUDGET
        found = _split(z, free, ordered, rule)
        if found is None:
            return tuple(steps), NONE_INSIDE
        at, step = found
        free = np.delete(free, at)
        value = z[step.item]
        ordered = np.insert(ordered, int(np.searchsorted(ordered, value)), value)
        steps.append(step._replace(max_gap=float(gaps(ordered).max())))


def _split(z: Array, free: npt.NDArray[np.intp], ordered: Array, rule: _Rule) -> tuple[int, Step] | None:
    """The position in `free`, ascending in z, of the next item, and its step; None where no gap that counts has one."""
    for number, (lower, upper) in enumerate(widest(ordered, rule.top), 1):
        if rule.narrow(upper - lower):
            return None
        first, last = np.searchsorted(z[free], lower, side="right"), np.searchsorted(z[free], upper, side="left")
        if first < last:
            middle = (lower + upper) / 2
            distance = np.round(np.abs(z[free[first:last]] - middle), _DECIMALS)
            at = int(first) + int(np.lexsort((free[first:last], distance))[0])
            if _splits(z[free[at]], lower, upper, rule):
                return at, Step(int(free[at]), number, lower, upper, middle, np.nan)
    return None


def _splits(z: float, lower: float, upper: float, rule: _Rule) -> bool:
    """Whether an item there splits the gap: it is clear of both ends, or leaves no gap that is too wide."""
    parts = z - lower, upper - z
    return min(parts) >= rule.margin * (upper - lower) - ROUNDING or rule.narrow(max(parts))


def _left(z: Array, left: Mask, loose: Mask, ordered: Array, rule: _Rule, stopped: str) -> tuple[tuple[int, str], ...]:
    """Why each candidate was left out, given the places of the benchmark's items and of those added."""
    ends = np.concatenate([[0.0], ordered, [1.0]])
    out = []
    for j in np.flatnonzero(left):
        at = int(np.searchsorted(ends, z[j], side="left"))
        if loose[j]:
            why = "all attempts right or all wrong: only the prior says where it lies"
        elif z[j] < 0:
            why = "easier than all items of the benchmark: outside its scale"
        elif z[j] > 1:
            why = "harder than all items of the benchmark: outside its scale"
        elif ends[min(at, ends.size - 1)] == z[j]:
            why = "as difficult as an item that is there"
        else:
            lower, upper = float(ends[at - 1]), float(ends[at])
            if rule.narrow(upper - lower):
                why = f"its gap, {upper - lower:.3g} wide, is no wider than asked for"
            elif not _splits(z[j], lower, upper, rule):
                why = f"too near to an end of its gap, {upper - lower:.3g} wide"
            elif stopped == BUDGET:
                why = "the budget was spent"
            else:
                why = f"its gap, {upper - lower:.3g} wide, is none of the {rule.top} widest"
        out.append((int(j), why))
    return tuple(out)


def _undefined(items: int, reason: str) -> Measured:
    return Measured(
        items, None, None, None, None, dict.fromkeys(("ddm", "max_gap", "top_gap_sum", "intervals"), reason)
    )


def _measure(
    z: Array, keep: Mask, draws: Draws | None, theta_draws: Draws | None, normalize: str, top: int, level: float
) -> Measured:
    """The metrics of the items to `keep`, bool (M,).

    They lie on [0,1] and the benchmark's items among them, so that under minmax too this is their own scale.
    """
    point = spread(np.sort(z[keep]), Uniform(), top=top)
    reasons: dict[str, str] = {}
    ddm = None if np.isnan(point.ddm) else float(point.ddm)
    if ddm is None:
        reasons["ddm"] = "one item has no same-size uniform reference"
    intervals = None
    if draws is None:
        reasons["intervals"] = "not all items have draws: make the fit with --keep-draws"
    elif normalize == "failure" and theta_draws is None:
        reasons["intervals"] = "the models have no draws"
    else:
        intervals, _ = posterior(
            draws, theta_draws, method=normalize, target=Uniform(), top=top, level=level,
            keep=None if keep.all() else keep,
        )  # fmt: skip
        if intervals is None:
            reasons["intervals"] = "in some draws all difficulties are equal"
    return Measured(int(keep.sum()), ddm, float(point.max_gap), float(point.top_gap_sum), intervals, reasons)
