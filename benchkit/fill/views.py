"""What people see of bk-fill's results on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchkit.text import Show, View, nested

WIDTH = 40
"""Characters of a question that are shown."""


def requests(document: Mapping[str, Any], about: Sequence[Mapping[str, Any]]) -> View:
    """How many requests there are, and what each is for."""
    summary = [f"{len(about)} requests for {document['gaps']} gaps of {document['items']} items, round "
               f"{document['round']}"]  # fmt: skip
    if document["answered"]:
        summary.append(f"answered already: {document['answered']}")
    heads = {"gap": "gap", "width": "width", "target": "target", "target_logit": "logit", "parent": "parent",
             "custom_id": "custom_id"}  # fmt: skip
    return View(summary, [Show(k, h) for k, h in heads.items()], about)


def candidates(document: Mapping[str, Any]) -> View:
    """How many replies became candidates, then these; then why the others did not."""
    summary = [f"{len(document['candidates'])} candidates of {document['replies']} replies"]
    summary += [f"refused: {row['custom_id']}: {row['reason']}" for row in document["rejected"]]
    rows = [row | {"short": _short(row["question"])} for row in document["candidates"]]
    heads = {"id": "id", "target": "target", "ancestor": "ancestor", "short": "question"}
    return View(summary, [Show(k, h) for k, h in heads.items()], rows)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def chosen(document: Mapping[str, Any]) -> View:
    """What is added and how the metrics change, then the items in the order of their choice."""
    before, after = document["before"], document["after"]
    summary = [f"{len(document['chosen'])} of {document['candidates']} candidates added to {document['items']} items"]
    for key, label in (("ddm", "DDM"), ("max_gap", "max gap"), ("top_gap_sum", f"top-{document['top']} gap sum")):
        said = f"{label} {_number(before[key])} -> {_number(after[key])}"
        bounds = nested(after, "intervals", key)
        if bounds:
            said += f", posterior {_number(bounds['lower'])} to {_number(bounds['upper'])}"
        summary.append(said)
    summary.append(f"stopped: {document['stopped'] or document.get('stopped_reason')}")
    heads = {"item": "item", "lower": "from", "upper": "to", "difficulty": "place", "difficulty_logit": "logit",
             "sd": "sd", "target": "target", "ancestor": "ancestor"}  # fmt: skip
    return View(summary, [Show(k, h) for k, h in heads.items()])


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
