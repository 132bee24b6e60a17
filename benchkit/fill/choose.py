"""An anchored fit and what is known of its candidates -> the items to add; the work of bk-fill choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchkit import parameters
from benchkit.errors import InputError
from benchkit.fill import choice
from benchkit.fill.requests import anchored
from benchkit.fill.scale import Mask
from benchkit.wire import Frame

NOT_LISTED = "the item is in no file of --candidates"
ABSENT = "not in the fit: it has no results"


class Chosen(NamedTuple):
    """The document without its end, the maximum gap afterwards (None where undefined), and warnings."""

    document: dict[str, Any]
    max_gap: float | None
    warnings: list[str]


def choose(table: pa.Table, original: Frame | None, candidates: Sequence[Mapping[str, Any]], **options: Any) -> Chosen:
    """Choose among the items of a parameters table that are candidates; `options` are those of `choice.choose`.

    original     the fit whose items are the benchmark; without it these are the items that are not anchored
    candidates   rows of candidates tables. An item that they don't list is a candidate too, but its ancestor unknown
    """
    items, models = parameters.group(table, "item"), parameters.group(table, "model")
    new = _candidates(table, items, original)
    found = choice.choose(
        items.mean, new, models.mean if models.ids else None, items.boundary, items.draws, models.draws, **options
    )
    listed = {row["id"]: row for row in candidates}
    place = [None] * len(items.ids) if found.z is None else found.z.tolist()
    not_chosen = [_left(items.ids[j], place[j], why) for j, why in found.left]
    there = set(items.ids)
    not_chosen += [_left(name, None, ABSENT) for name in sorted(listed) if name not in there]
    document: dict[str, Any] = {
        "items": found.before.items,
        "candidates": int(new.sum()),
        "normalize": options["normalize"],
        "top": options["top"],
        "before": _measured(found.before),
        "after": _measured(found.after),
        "stopped": found.stopped,
    }
    if found.reason:
        document["stopped_reason"] = found.reason
    document["chosen"] = [_row(s, items, place, listed) for s in found.steps]
    document["not_chosen"] = not_chosen
    return Chosen(document, found.after.max_gap, _warnings(found, items, new))


def _candidates(table: pa.Table, items: parameters.Group, original: Frame | None) -> Mask:
    """bool (M,): which items are candidates. InputError where the table is not anchored to the original."""
    new: Mask = anchored(table)
    if original is not None:
        before = parameters.group(original.table, "item")
        mean = dict(zip(before.ids, before.mean.tolist(), strict=True))
        there = set(items.ids)
        if lacking := [i for i in before.ids if i not in there]:
            raise InputError(f"{parameters.named('item', lacking)} missing, which {original.where} has")
        both = [(i, b, mean[i]) for i, b in zip(items.ids, items.mean.tolist(), strict=True) if i in mean]
        if moved := [i for i, b, was in both if not np.isclose(b, was, rtol=1e-9, atol=1e-9)]:
            raise InputError(
                f"not anchored to {original.where}: {parameters.named('item', moved)} at another difficulty there"
            )
        strange = [i for i, late in zip(items.ids, new, strict=True) if i not in mean and not late]
        if strange:
            raise InputError(
                f"{parameters.named('item', strange)} neither in {original.where} nor anchored: calibrate candidates "
                "by bk-irt --anchor"
            )
        new = np.array([i not in mean for i in items.ids])
    if new.all():
        raise InputError("all items are anchored: name the fit of the benchmark by --original")
    return new


def _left(item: str, z: float | None, why: str) -> dict[str, Any]:
    row: dict[str, Any] = {"item": item, "difficulty": z}
    if z is None:
        row["difficulty_reason"] = why
    return row | {"reason": why}


def _measured(m: choice.Measured) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key in ("items", "ddm", "max_gap", "top_gap_sum", "intervals"):
        value = getattr(m, key)
        if key == "intervals" and value is not None:
            value = {k: None if v is None else v._asdict() for k, v in value._asdict().items()}
            if value["ddm"] is None:
                value["ddm_reason"] = m.reasons.get("ddm", "undefined for so few items")
        out[key] = value
        if value is None:
            out[f"{key}_reason"] = m.reasons[key]
    return out


def _row(
    s: choice.Step, items: parameters.Group, place: Sequence[Any], listed: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    name = items.ids[s.item]
    row: dict[str, Any] = {
        "item": name,
        "gap": s.gap,
        "lower": s.lower,
        "upper": s.upper,
        "midpoint": s.midpoint,
        "difficulty": place[s.item],
        "difficulty_logit": float(items.mean[s.item]),
        "sd": float(items.sd[s.item]),
        "max_gap": s.max_gap,
    }
    about = listed.get(name)
    for key in ("target", "target_logit", "ancestor"):
        row[key] = None if about is None else about.get(key)
        if row[key] is None:
            row[f"{key}_reason"] = NOT_LISTED if about is None else "the candidate's row has none"
    return row


def _warnings(found: choice.Choice, items: parameters.Group, new: Mask) -> list[str]:
    if found.reason:
        return [f"nothing can be chosen: {found.reason}"]
    out = []
    if not new.any():
        out.append("there is no candidate: no item of the fit is anchored, or all are in --original")
    if found.steps:
        known = found.after.intervals
        median = (
            f"; the posterior median of max_gap is {known.max_gap.posterior_median:.3g}, not {found.after.max_gap:.3g}"
            if known is not None
            else ""
        )
        out.append(
            "items were chosen by difficulties that are uncertain, so the metrics afterwards look better than they "
            f"are{median}"
        )
    if found.stopped == choice.NONE_INSIDE and items.boundary is not None:
        assert found.z is not None and found.widest is not None
        ends = items.boundary & ~new & np.isin(found.z, found.widest)
        if ends.any():
            name = items.ids[int(np.flatnonzero(ends)[0])]
            out.append(
                f"the widest gap that remains ends at boundary item '{name}': candidates need more attempts to be "
                "placed inside it, or --normalize failure to make it narrow"
            )
    return out
