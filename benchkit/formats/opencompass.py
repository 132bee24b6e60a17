"""Results of OpenCompass with details: an example's verdicts, one a replica.

No model is recorded: it is the name of the folder.

Source: opencompass/openicl/icl_evaluator/icl_base_evaluator.py.
"""

from __future__ import annotations

import os
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import members, place
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "OpenCompass results with details"

VERDICTS = ("correct", "is_correct", "cascade_correct")


def sniff(doc: Document) -> bool:
    details = doc.first.get("details") if doc.kind == "json" and isinstance(doc.first, dict) else None
    return isinstance(details, list) and bool(details) and isinstance(details[0], dict) and "example_abbr" in details[0]


def read(doc: Document, choices: Choices) -> Attempts | None:
    details = list(members(doc.first["details"], "example"))
    found = [v for v in VERDICTS if any(v in d for _, d in details)]
    verdict = choose(choices.metric, found, "--metric", "metric")
    out = Attempts("opencompass")
    out.task = _dataset(doc.path)
    for n, detail in details:
        values: Any = detail.get(verdict)
        values = values if isinstance(values, list) else [values]
        if not values:
            raise InputError(f"{place(n)}an example without a verdict")
        for k, value in enumerate(values):
            out.add(detail.get("example_abbr"), number(value, verdict, n), attempt=k, line=n)
    return out


def _dataset(path: str | None) -> str | None:
    """The dataset by the tool's own layout, results/<model>/<dataset>.json."""
    folder, name = os.path.split(os.path.abspath(path)) if path else ("", "")
    return name.split(".json")[0] if os.path.basename(os.path.dirname(folder)) == "results" else None
