"""Where new items should lie, and which items to start from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import Array, to_logit
from benchkit.errors import InputError
from benchkit.fill.scale import Mask, placed
from benchkit.spread import ROUNDING, gaps

_DECIMALS = 12  # widths and distances that agree to so many decimals are tied


class Wanted(NamedTuple):
    """One item that is wanted.

    gap, candidate       the gap's number, 1 for the widest, and the candidate's among those for this gap
    width                of the gap, normalised difficulty
    target, target_logit the gap's midpoint, normalised and in logits
    parent               index of the item to rewrite
    easier, harder       indices of items on either side of the target, nearest first, without the parent
    """

    gap: int
    candidate: int
    width: float
    target: float
    target_logit: float
    parent: int
    easier: tuple[int, ...]
    harder: tuple[int, ...]


class Plan(NamedTuple):
    """All items wanted, by gap and candidate.

    z        float64 (M,), where all items lie on the benchmark's scale, perhaps outside [0,1]
    outside  indices of new items that cover nothing: outside [0,1], or loose
    """

    wanted: tuple[Wanted, ...]
    z: Array
    outside: tuple[int, ...]


def plan(
    b: npt.ArrayLike,
    new: Mask,
    known: Mask,
    theta: npt.ArrayLike | None = None,
    loose: Mask | None = None,
    *,
    normalize: str = "minmax",
    top: int = 5,
    wider_than: float = 0.0,
    per_gap: int = 1,
    parents: int = 2,
    references: int = 3,
) -> Plan:
    """Candidates for the `top` widest gaps between difficulties b (M,), logits.

    new          bool (M,), items calibrated later: they cover difficulties within the benchmark's scale, but don't
                 change it
    known        bool (M,), items that can be parents or references
    theta        (N,), abilities, for the normalisation ``failure`` only
    loose        bool (M,), new items that nothing but the prior places: they are passed over
    wider_than   gaps no wider than this are left alone
    per_gap      candidates a gap; they take turns among the `parents` items nearest to its midpoint
    references   items named on either side

    Items tied in distance come in the order of b. Raises InputError where the scale is undefined, where no item is
    known, and on options below their least.
    """
    for name, value, least in (("top", top, 1), ("per-gap", per_gap, 1), ("parents", parents, 1),
                               ("references", references, 0)):  # fmt: skip
        if value < least:
            raise InputError(f"--{name} must be {least} or more, not {value}")
    on = placed(b, new, theta, normalize)
    if on.z is None or on.scale is None:
        raise InputError(f"the gaps are undefined: {on.reason}")
    inside = on.inside()
    if loose is not None:
        inside &= ~loose
    usable = np.flatnonzero(known & inside)
    ordered = np.sort(on.z[inside])
    wanted = []
    for number, (lower, upper) in enumerate(widest(ordered, top), 1):
        if upper - lower <= wider_than + ROUNDING:
            break
        middle = (lower + upper) / 2
        logit, why = to_logit(middle, on.scale)
        if logit is None:
            raise InputError(f"gap {number} has no midpoint in logits: {why}")
        if not usable.size:
            raise InputError("no item to start from")
        near = _nearest(on.z, usable, middle)
        easier, harder = near[on.z[near] < middle], near[on.z[near] >= middle]
        for k in range(per_gap):
            parent = int(near[k % min(parents, near.size)])
            sides = (tuple(int(j) for j in side[: references + 1] if j != parent) for side in (easier, harder))
            shown = (side[:references] for side in sides)
            wanted.append(Wanted(number, k + 1, upper - lower, middle, logit, parent, *shown))
    return Plan(tuple(wanted), on.z, tuple(int(j) for j in np.flatnonzero(new & ~inside)))


def widest(ordered: Array, top: int) -> list[tuple[float, float]]:
    """The ends of the `top` widest gaps of ascending z, widest first, then from easy to hard; none of width 0."""
    width = np.round(gaps(ordered), _DECIMALS)
    at = np.lexsort((np.arange(width.size), -width))[:top]
    ends = np.concatenate([[0.0], ordered, [1.0]])
    return [(float(ends[j]), float(ends[j + 1])) for j in at if width[j] > 0]


def _nearest(z: Array, among: npt.NDArray[np.intp], middle: float) -> npt.NDArray[np.intp]:
    """The items `among` by their distance from `middle`; of equal ones the easier first, then in their order."""
    distance = np.round(np.abs(z[among] - middle), _DECIMALS)
    return among[np.lexsort((among, z[among], distance))]
