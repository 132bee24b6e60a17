"""LiveCodeBench: the graded answers of a model, _eval_all.json; its other outputs go with it.

_eval.json has results by position only, without the questions' identifiers, so it is no source by itself. Items are
questions; in code execution, samples; in test output prediction, a question's tests. A failed run of an answer's code
counts as wrong, as there. The model's name is the folder's; the file's name tells scenario, n and temperature. Outputs
of other programs that were given to be graded (code_list, pred_list) go with it too.

Source: lcb_runner/runner/main.py, lcb_runner/benchmarks, lcb_runner/utils/path_utils.py.
"""

from __future__ import annotations

import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, goes_along, kind, members
from benchkit.formats.native import Attempts, Document, identifier, number

NAME = "LiveCodeBench graded answers (*_eval_all.json)"

FILE = re.compile(r"(?:Scenario\.)?(?P<scenario>[a-z]+)_(?P<n>\d+)_(?P<temperature>[\d.]+)_eval_all\.json", re.ASCII)
OUTPUTS = tuple({question, answers} for question in ("question_id", "id") for answers in ("code_list", "pred_list"))


def sniff(doc: Document) -> bool:
    if doc.kind != "json" or not isinstance(doc.first, list):
        return False
    row = first(doc)
    graded = {"question_id", "output_list"} <= row.keys() or {"question_id", "graded_list"} <= row.keys()
    return graded or goes_along(row, OUTPUTS) or _eval(doc)


def _eval(doc: Document) -> bool:
    """Whether it is _eval.json: metrics, results by position, metadata."""
    metrics = first(doc)
    if "pass@1" not in metrics or "question_id" in metrics:
        return False
    return 2 <= len(doc.first) <= 3 and isinstance(doc.first[1], dict)


def read(doc: Document, choices: Choices) -> Attempts | None:
    if _eval(doc):
        name = os.path.basename(doc.path or "").replace("_eval.json", "_eval_all.json")
        if name in doc.siblings("", "_eval_all.json"):  # of this run: a folder may hold other scenarios and settings
            return None
        raise InputError("results without the questions' identifiers: read the _eval_all.json of the same run")
    if not any("graded_list" in row for _, row in members(doc.first, "row")):
        return None
    named = FILE.match(os.path.basename(doc.path or ""))
    out = Attempts("livecodebench", settings=f"n={named['n']}, temperature={named['temperature']}" if named else None)
    out.of_task(named["scenario"] if named else None, choices)
    for n, row in members(doc.first, "row"):
        item, graded = _item(row, n), _list(row, "graded_list", n)
        answers = max(len(_list(row, "output_list", n)), len(graded))
        if not answers:
            out.skip("question without answers")
        for k in range(answers):
            out.add(item, number(graded[k], "a grade", n) if k < len(graded) else None, attempt=k, line=n)
    return out


def _item(row: dict[str, Any], n: int) -> str:
    """The question, or the sample of it: code execution has an id of its own, test output prediction numbers tests."""
    if "pred_list" in row and "id" in row:
        return identifier(row["id"], "id", n)
    question = identifier(row.get("question_id"), "question_id", n)
    return f"{question}/{identifier(row['test_id'], 'test_id', n)}" if "test_id" in row else question


def _list(row: dict[str, Any], key: str, n: int) -> list[Any]:
    value = row.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"row {n}: {key} is {kind(value)}, not a list")
    return value
