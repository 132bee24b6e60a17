"""The widest intervals of difficulty that no item covers, and the items to start from when filling them.

With z_(1) <= ... <= z_(n) the normalised difficulties, z_(0) = 0 and z_(n+1) = 1, gap j is the open interval
(z_(j), z_(j+1)), 0 <= j <= n. An item placed at its midpoint halves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.detection import Detection, Improvement, detection
from benchkit.difficulty import Array, to_logit
from benchkit.difficulty import normalize as to_unit
from benchkit.errors import InputError
from benchkit.spread import gaps as gap_widths
from benchkit.spread import spread
from benchkit.suggestion import Suggestion, suggest
from benchkit.targets import Uniform
from benchkit.wider import Draws, probability_wider

_DECIMALS = 12  # widths and distances that agree to so many decimals are tied


class Reference(NamedTuple):
    """An item beside a gap: its index, its normalised difficulty and that in logits."""

    item: int
    difficulty: float
    logit: float


class Gap(NamedTuple):
    """One uncovered interval.

    gap                     its number, 1 for the widest
    width, lower, upper     normalised difficulty; width = upper - lower
    midpoint                (lower + upper)/2
    midpoint_logit          the midpoint in logits, None where the normalisation has no inverse there
    midpoint_logit_reason   why it is None
    lower_item, upper_item  index of the item at either end (the first of those tied), None at 0 and 1
    parents                 indices of the items nearest to the midpoint. Both ends are equally near: the lower comes
                            first, and a second item of the same difficulty after the first of each other
    easier, harder          the items next below and next above it, nearest first, those tied in their order in b
    p_wider                 posterior probability that it is wider than the threshold; None without one, or undefined
    """

    gap: int
    width: float
    lower: float
    upper: float
    midpoint: float
    midpoint_logit: float | None
    midpoint_logit_reason: str | None
    lower_item: int | None
    upper_item: int | None
    parents: tuple[int, ...]
    easier: tuple[Reference, ...]
    harder: tuple[Reference, ...]
    p_wider: float | None = None

    def document(self, ids: Sequence[str], *, flat: bool = False) -> dict[str, Any]:
        """Plain values in key order with items by their identifiers. Of the references `flat` keeps only these."""
        out: dict[str, Any] = {}
        for key, value in self._asdict().items():
            if key in ("lower_item", "upper_item"):
                out[key] = None if value is None else ids[value]
            elif key == "parents":
                out[key] = [ids[j] for j in value]
            elif key in ("easier", "harder"):
                to = out if flat else out.setdefault("references", {})
                to[key] = [ids[r.item] if flat else r._asdict() | {"item": ids[r.item]} for r in value]
            elif key not in ("midpoint_logit_reason", "p_wider") or value is not None:
                out[key] = value
        return out


class Gaps(NamedTuple):
    """The `top` widest gaps of a benchmark, widest first, then from easy to hard. Gaps of width 0 are left out.

    items                  number of items
    normalize              as given
    max_gap, top_gap_sum   the widest, and the `top` widest added; None where the normalisation is undefined
    gaps                   at most `top` of them
    wider                  the threshold of `Gap.p_wider`, None where none was asked for
    suggestion, detection  None where not asked for, or undefined
    warnings               plain sentences
    reasons                for each field that is undefined, why; also for p_wider, where it is for all gaps
    """

    items: int
    normalize: str
    max_gap: float | None
    top_gap_sum: float | None
    gaps: tuple[Gap, ...]
    wider: float | None
    suggestion: Suggestion | None
    detection: Detection | None
    warnings: tuple[str, ...]
    reasons: dict[str, str]

    def document(self, ids: Sequence[str], *, flat: bool = False) -> dict[str, Any]:
        """Plain values in key order, items by their identifiers, each null beside its reason.

        What was not asked for has no key. `flat`: rows without objects in them.
        """
        out: dict[str, Any] = {"items": self.items, "normalize": self.normalize}
        out |= self._known("max_gap", self.max_gap) | self._known("top_gap_sum", self.top_gap_sum)
        rows = [gap.document(ids, flat=flat) for gap in self.gaps]
        if self.wider is not None:
            out["wider"] = self.wider
            rows = [row | self._known("p_wider", row.get("p_wider")) for row in rows]
        out["gaps"] = rows
        if self.suggestion is not None or "suggestion" in self.reasons:
            out |= self._known("suggestion", self.suggestion and self.suggestion.document())
        if self.detection is not None or "detection" in self.reasons:
            out |= self._known("detection", self.detection and self.detection.document(ids))
        out["warnings"] = list(self.warnings)
        return out

    def _known(self, key: str, value: Any) -> dict[str, Any]:
        """A key and its value, with the reason where that is undefined."""
        return {key: value} | ({f"{key}_reason": self.reasons[key]} if value is None else {})


def widest(
    b: npt.ArrayLike,
    theta: npt.ArrayLike | None = None,
    boundary: npt.ArrayLike | None = None,
    *,
    normalize: str = "minmax",
    top: int = 5,
    parents: int = 2,
    references: int = 3,
    wider: float | None = None,
    draws: Draws | None = None,
    theta_draws: Draws | None = None,
    suggested: int | None = None,
    improvement: Improvement | None = None,
    seed: int = 0,
) -> Gaps:
    """The `top` widest gaps between difficulties b (M,), logits.

    theta      (N,), abilities, for the normalisation ``failure`` only
    boundary   bool (M,), items whose place rests on the prior, or None; a gap that ends at one is warned of
    parents    items named for each gap
    references items named below and above each gap
    wider      threshold on the scale of the widths: how probable each gap is wider, from `draws`, float32 (S, M), and
               for ``failure`` `theta_draws`, float32 (S, N)
    suggested  how many new items to place
    improvement   what is to be detected
    seed       for detection, where its power is simulated

    Items tied in difficulty are told apart by their order in b: sort b by identifier, and the result does not depend
    on the order of the rows. Raises InputError as `difficulty.normalize` does and on options below 1.
    """
    if top < 1:
        raise InputError(f"--top must be 1 or more, not {top}")
    if parents < 1:
        raise InputError(f"--parents must be 1 or more, not {parents}")
    if references < 0:
        raise InputError(f"--references must be 0 or more, not {references}")
    z, scale, undefined = to_unit(b, normalize, theta)
    n = int(np.size(np.asarray(b)))
    edge = None if boundary is None else np.asarray(boundary, dtype=np.bool_)
    if edge is not None and edge.shape != (n,):
        raise InputError(f"boundary: {edge.size} values for {n} items")
    if z is None or scale is None:
        asked = {"suggestion": suggested, "detection": improvement}
        lacking = ["max_gap", "top_gap_sum", *(key for key, value in asked.items() if value is not None)]
        reasons = dict.fromkeys(lacking, str(undefined))
        return Gaps(n, normalize, None, None, (), wider, None, None, (f"the gaps are undefined: {undefined}",), reasons)
    order = np.argsort(z, kind="stable")
    ordered = z[order]
    width = gap_widths(ordered)
    # Widest first. The rounding keeps an even grid in its order; lexsort settles ties by position.
    tied = np.round(width, _DECIMALS)
    chosen = np.flatnonzero(tied > 0)
    if chosen.size > top:
        least = np.partition(tied[chosen], chosen.size - top)[chosen.size - top]
        chosen = chosen[tied[chosen] >= least]
    chosen = chosen[np.lexsort((chosen, -tied[chosen]))][:top]
    logits = np.asarray(b, dtype=np.float64)
    rows: list[Gap] = []
    for number, j in enumerate(chosen.tolist(), start=1):
        lower = float(ordered[j - 1]) if j > 0 else 0.0
        upper = float(ordered[j]) if j < n else 1.0
        middle = (lower + upper) / 2
        logit, why = to_logit(middle, scale)
        first = int(np.searchsorted(ordered, lower, side="left"))
        rows.append(
            Gap(
                gap=number,
                width=float(width[j]),
                lower=lower,
                upper=upper,
                midpoint=middle,
                midpoint_logit=logit,
                midpoint_logit_reason=why,
                lower_item=int(order[first]) if j > 0 else None,
                upper_item=int(order[j]) if j < n else None,
                parents=_nearest(ordered, order, j, middle, parents),
                easier=_references(ordered, order, logits, j, references, -1),
                harder=_references(ordered, order, logits, j, references, 1),
            )
        )
    reasons = {}
    if wider is not None and rows:
        rows, why = _with_probability(rows, draws, theta_draws, normalize, wider)
        reasons = {"p_wider": why} if why else {}
    total = spread(ordered, Uniform(), top=top)
    return Gaps(
        items=n,
        normalize=normalize,
        max_gap=float(total.max_gap),
        top_gap_sum=float(total.top_gap_sum),
        gaps=tuple(rows),
        wider=wider,
        suggestion=None if suggested is None else suggest(ordered, suggested, scale),
        detection=None if improvement is None else detection(z, improvement, seed=seed),
        warnings=tuple(_warnings(rows, edge, z)),
        reasons=reasons,
    )


def _with_probability(
    rows: list[Gap], draws: Draws | None, theta_draws: Draws | None, normalize: str, wider: float
) -> tuple[list[Gap], str | None]:
    """The gaps with the posterior probability that they are wider, or why there is none."""
    if draws is None:
        return rows, "the fit has no draws of difficulties: make it with bk-irt --keep-draws"
    if normalize == "failure" and theta_draws is None:
        return rows, "the fit has no draws of abilities: make it with bk-irt --keep-draws"
    share = probability_wider(draws, theta_draws, normalize, np.array([row.midpoint for row in rows]), wider)
    if share is None:
        return rows, f"some draw has only equal difficulties: {normalize} is undefined there"
    return [row._replace(p_wider=p) for row, p in zip(rows, share.tolist(), strict=True)], None


def _references(
    ordered: Array, order: npt.NDArray[np.intp], logits: Array, j: int, count: int, side: int
) -> tuple[Reference, ...]:
    """The `count` items nearest below (side -1) or above (side 1) the gap between sorted positions j - 1 and j."""
    if side > 0:
        near = list(range(j, min(j + count, ordered.size)))
    else:
        near, end = [], j
        while end > 0 and len(near) < count:  # a run of ties at a time: its first come first
            first = int(np.searchsorted(ordered, ordered[end - 1], side="left"))
            near += range(first, min(end, first + count - len(near)))
            end = first
    return tuple(Reference(int(order[k]), float(ordered[k]), float(logits[order[k]])) for k in near)


def _nearest(ordered: Array, order: npt.NDArray[np.intp], j: int, middle: float, count: int) -> tuple[int, ...]:
    """Indices of the `count` items nearest to `middle`, which lies between sorted positions j - 1 and j.

    Sorted by distance, then by the place among items of equal difficulty, then from easy to hard.
    """
    left = max(0, j - count)
    right = min(ordered.size, j + count)
    if j > 0:
        left = int(np.searchsorted(ordered, ordered[left], side="left"))  # all of a run of ties: its first come first
    near = np.arange(left, right)
    distance = np.round(np.abs(ordered[near] - middle), _DECIMALS)
    place = near - np.searchsorted(ordered, ordered[near], side="left")
    best = near[np.lexsort((near, place, distance))][:count]
    return tuple(int(order[k]) for k in best)


def _warnings(rows: list[Gap], edge: npt.NDArray[np.bool_] | None, z: Array) -> list[str]:
    if edge is None or not edge.any():
        return []
    loose = z[edge]
    prior = [
        row.gap
        for row in rows
        if (row.lower_item is not None and (loose == row.lower).any())
        or (row.upper_item is not None and (loose == row.upper).any())
    ]
    if not prior:
        return []
    which = f"gap {prior[0]} ends" if len(prior) == 1 else f"gaps {', '.join(map(str, prior))} end"
    return [f"{which} at a boundary item (all attempts right, or all wrong), whose place rests on the prior"]
