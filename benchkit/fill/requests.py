"""A fit and the texts of its items -> requests for the items that would fill its gaps; the work of bk-fill requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit import parameters
from benchkit.errors import InputError
from benchkit.fill import ids
from benchkit.fill.items import Item
from benchkit.fill.plan import Plan, plan
from benchkit.fill.prompt import Example, prompt, request


class Requests(NamedTuple):
    """`document` without its end, `about` a row a request for people, and warnings."""

    document: dict[str, Any]
    about: list[dict[str, Any]]
    warnings: list[str]


def anchored(table: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """bool (M,): which items of a parameters table were calibrated later, in the table's order."""
    rows = table.filter(pc.equal(table["kind"], "item"))
    return np.asarray(pc.equal(rows["origin"], "anchored").fill_null(False))


def requests(
    table: pa.Table,
    texts: Mapping[str, Item],
    answered: Collection[str] = (),
    *,
    normalize: str,
    round: int,
    model: str | None,
    temperature: float | None,
    **options: Any,
) -> Requests:
    """Requests for a parameters table, without those whose custom_id has an answer already.

    `options` are those of `plan.plan`. Items without a text are passed over where they were calibrated later; raises
    InputError where one of the benchmark is needed as parent or reference.
    """
    items, models = parameters.group(table, "item"), parameters.group(table, "model")
    new = anchored(table)
    loose = np.zeros(len(new), bool) if items.boundary is None else new & items.boundary
    known = ~new | np.array([i in texts for i in items.ids])
    theta = models.mean if models.ids else None
    found = plan(items.mean, new, known, theta, loose, normalize=normalize, **options)
    needed = {j for w in found.wanted for j in (w.parent, *w.easier, *w.harder)}
    if lacking := [items.ids[j] for j in sorted(needed) if items.ids[j] not in texts]:
        raise InputError(f"--items: {parameters.named('item', lacking)} missing, which the fit has", where="")

    def solved(b: float) -> float | None:
        return None if theta is None else float(np.mean((1 + np.tanh((theta - b) / 2)) / 2))

    def example(j: int) -> Example:
        item = texts[items.ids[j]]
        return Example(item.question, item.answer, float(found.z[j]), solved(float(items.mean[j])))

    rows, about = [], []
    for w in found.wanted:
        parent = items.ids[w.parent]
        name = ids.custom_id(round, w.gap, w.candidate, w.target, w.target_logit, parent)
        if name in answered:
            continue
        easier, harder = ([example(j) for j in side] for side in (w.easier, w.harder))
        text = prompt(example(w.parent), w.target, solved(w.target_logit), easier, harder, normalize)
        rows.append(request(name, text, model, temperature))
        about.append({"custom_id": name, "gap": w.gap, "width": w.width, "target": w.target,
                      "target_logit": w.target_logit, "parent": parent})  # fmt: skip
    document = {"items": len(items.ids), "normalize": normalize, "round": round, "gaps": _gaps(found),
                "answered": len(found.wanted) - len(rows), "requests": rows}  # fmt: skip
    return Requests(document, about, _warnings(found, answered, len(rows), items.ids))


def _gaps(found: Plan) -> int:
    return len({w.gap for w in found.wanted})


def _warnings(found: Plan, answered: Collection[str], open_: int, names: list[str]) -> list[str]:
    out = []
    if found.outside:
        out.append(
            f"{parameters.named('item', [names[j] for j in found.outside])} passed over: outside the benchmark's "
            "scale, or all right or all wrong"
        )
    if answered and found.wanted and open_ == len(found.wanted):
        out.append("none of the replies belongs to these requests: another fit, --round or choice of gaps?")
    return out
