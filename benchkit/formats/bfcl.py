"""Scores of the Berkeley Function-Calling Leaderboard, a file a model and category: counts, then the failures.

An item that was right stands in no line, so all items must be told (--items). Those of a file are the ones of its
category, which an identifier begins with: simple_python_12. There must be as many as were tried, for nothing says which
were not. Without an answer, because the model's interface raised, a failure is an error; where no call is the right
answer (irrelevance) such an item counts as right there. A failure may stand twice: one without an answer is also
written as one that was ended by force.

Source: bfcl_eval/eval_checker/eval_runner.py, bfcl_eval/utils.py, bfcl_eval/_llm_response_generation.py.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, place, records, text
from benchkit.formats.native import Attempts, Document, identifier

NAME = "BFCL scores (BFCL_*_score.json)"

COUNTS = {"accuracy", "correct_count", "total_count"}
FAILURE = {"id", "model_name", "test_category", "valid"}
FILE = re.compile(r"(?:BFCL_v\d+_)?(\w+)_score\.json", re.ASCII)
RAISED = "Error during inference"
GROUPS = {"non_live", "live", "multi_turn", "agentic", "format_sensitivity", "memory", "kv", "vector", "rec_sum"}
"""Folders within a model's."""


def sniff(doc: Document) -> bool:
    if isinstance(doc.first, list) or not first(doc).keys() >= COUNTS:
        return False
    if doc.kind == "json":
        return _named(doc) is not None
    return all(row.keys() >= FAILURE for _, row in islice(doc.rows(), 1, 2))


def _named(doc: Document) -> str | None:
    """The category by the file's name."""
    found = FILE.match(os.path.basename(doc.path or ""))
    return found[1] if found else None


def read(doc: Document, choices: Choices) -> Attempts | None:
    (_, counts), *failures = records(doc)
    categories: set[str | None] = {_category(row, n) for n, row in failures} or {_named(doc)}
    if len(categories) > 1:
        raise InputError(f"failures of several categories ({', '.join(sorted(map(str, categories)))})")
    category = categories.pop()
    out = Attempts("bfcl", next((text(row, "model_name", n) for n, row in failures), None))
    out.folder = _model_folder(doc.path)
    if choices.items is None:
        raise InputError("items that were right are in no line of this file: name all of them with --items FILE")
    wrong: dict[str, tuple[bool, int]] = {}
    for n, row in failures:
        item = identifier(row["id"], "id", n)
        wrong[item] = wrong.get(item, (False, n))[0] or _raised(row), n
    items = sorted(i for i in choices.items if i.split(":")[0].rpartition("_")[0] == category)
    _check(counts, wrong, items, f"{category}")
    for item in items:
        failed, line = wrong.get(item, (False, None))
        out.add(item, item not in wrong, error=failed, line=line)
    return out


def _category(row: dict[str, Any], line: int) -> str:
    if not row.keys() >= FAILURE or row["valid"] is not False:
        raise InputError(f"{place(line)}no failure: it lacks id, model_name or test_category, or is valid")
    return identifier(row["test_category"], "test_category", line)


def _raised(row: dict[str, Any]) -> bool:
    answer = row.get("model_result_raw", row.get("model_result"))
    return isinstance(answer, str) and answer.startswith(RAISED)


def _check(counts: dict[str, Any], wrong: dict[str, Any], items: list[str], category: str) -> None:
    """InputError where the counts don't say that every item was tried, and all but those of `wrong` were right."""
    right, total = counts["correct_count"], counts["total_count"]
    if type(right) is not int or type(total) is not int:
        raise InputError("correct_count or total_count is no whole number")
    if total - right != len(wrong):
        raise InputError(f"{len(wrong)} failures, but {right} of {total} were right")
    strange = next((i for i in wrong if i not in items), None)
    if strange is not None:
        raise InputError(f"item '{strange}' is not in --items")
    if len(items) != total:
        raise InputError(f"{total} items of {category} were tried, of {len(items)} in --items: no line says which")


def _model_folder(path: str | None) -> str | None:
    """The model's folder: score/<model>/, before version 4, or score/<model>/<group>/..."""
    folder = os.path.dirname(os.path.abspath(path)) if path else None
    while folder and os.path.basename(folder) in GROUPS:
        folder = os.path.dirname(folder)
    return folder
