"""Results of MultiPL-E: a file a problem, with what became of each of its completions.

A completion is right where its program ran and exited with 0, as in MultiPL-E's own pass rates. The languages of a
problem are other tasks. The model is in the name of the folder, with data set, language and temperature. Completions
that were not run yet go with the results; where they say that some lack, as after --stop-on-success, the file is told
to be unfinished: then rates are those of the completions before the first that was right.

Source: evaluation/src/main.py, pass_k.py of nuprl/MultiPL-E.
"""

from __future__ import annotations

import os
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import kind, members, text
from benchkit.formats.native import Attempts, Document

NAME = "MultiPL-E results (*.results.json)"

PROBLEM = {"name", "language", "prompt", "tests"}
RESULT = {"status", "exit_code"}


def sniff(doc: Document) -> bool:
    problem = doc.first if doc.kind == "json" and isinstance(doc.first, dict) else {}
    return problem.keys() >= PROBLEM and any(isinstance(problem.get(key), list) for key in ("results", "completions"))


def read(doc: Document, choices: Choices) -> Attempts | None:
    problem = doc.first
    if "results" not in problem:
        return None
    temperature = problem.get("temperature")
    out = Attempts("multipl-e", settings=None if temperature is None else f"temperature={temperature}")
    out.of_task(text(problem, "language"), choices)
    for n, row in members(problem["results"], "result"):
        out.add(problem["name"], _passed(row, n), attempt=n - 1, line=n)
    planned = _planned(doc)
    if planned > len(out.items):
        out.unfinished = f"{len(out.items)} of {planned} completions"
    return out


def _passed(row: dict[str, Any], n: int) -> bool | None:
    """Whether a program ran and exited with 0; None where nothing is said: it was still running elsewhere."""
    if not row.keys() & RESULT:
        return None
    status, code = text(row, "status", n), row.get("exit_code")
    if code is not None and type(code) is not int:
        raise InputError(f"row {n}: exit_code is {kind(code)}, not a number")
    return status == "OK" and code == 0


def _planned(doc: Document) -> int:
    """How many completions the file beside it has, NAME.json of NAME.results.json; 0 where there is none."""
    name = os.path.basename(doc.path or "").replace(".results.json", ".json")
    beside = doc.sibling(name) if ".results.json" in (doc.path or "") else None
    found = beside.get("completions") if isinstance(beside, dict) else None
    return len(found) if isinstance(found, list) else 0
