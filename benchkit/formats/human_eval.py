"""Results of OpenAI's human-eval, and of others in its layout: a line a completion, and whether its tests passed.

The completions of a task are its attempts, in the order of the file, as human-eval numbers them. One that timed out
counts as wrong, as there. No model is recorded, unless the samples that were evaluated named it. HumanEval-X calls
completions generations, and they stand in the order in which they were evaluated: their numbers are written.

Source: human_eval/evaluation.py; codegeex/benchmark/evaluate_humaneval_x.py and execution.py.
"""

from __future__ import annotations

from collections import Counter

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.columns import NAMES
from benchkit.formats.fields import first, kind, place, records, text
from benchkit.formats.native import Attempts, Document, identifier

NAME = "human-eval and HumanEval-X results (*_results.jsonl)"

ROW = {"task_id", "result", "passed"}
ANSWER = {"completion", "generation"}
OTHERS = {*NAMES["score"], *NAMES["attempt"]}  # what else a row may hold is a table's, where columns can be named


def sniff(doc: Document) -> bool:
    keys = first(doc).keys()
    return keys >= ROW and bool(ANSWER & keys) and not OTHERS & keys


def read(doc: Document, choices: Choices) -> Attempts | None:
    out = Attempts("human-eval")
    seen: Counter[tuple[str | None, str]] = Counter()
    for n, row in records(doc):
        if not row.keys() >= ROW:
            raise InputError(f"{place(n)}lacks {', '.join(sorted(ROW - row.keys()))}")
        item, passed = identifier(row["task_id"], "task_id", n), row["passed"]
        if not isinstance(passed, bool | None):
            raise InputError(f"{place(n)}passed is {kind(passed)}, not a flag")
        model = next((text(row, key, n) for key in NAMES["model"] if key in row), None)
        out.add(item, passed, attempt=row.get("completion_id", seen[model, item]), model=model, line=n)
        seen[model, item] += 1
    return out
