"""Results of Aider's benchmark: a file an exercise, with the outcomes of its tries.

A second try sees the errors of the first, so tries are no attempts: pass_rate_1 says whether the first try passed,
pass_rate_2 whether the first or the second did. An exercise that passes is not tried again. Aider counts one that ended
in an exception as failed.

Source: benchmark/benchmark.py of Aider.
"""

from __future__ import annotations

import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, kind, text
from benchkit.formats.native import Attempts, Document, choose, identifier

NAME = "Aider benchmark results (.aider.results.json)"

FILE = ".aider.results.json"
EXERCISE = re.compile(r"([^/\\]+)[/\\]exercises[/\\]practice[/\\]([^/\\]+)$")


def sniff(doc: Document) -> bool:
    if doc.kind not in ("json", "ndjson") or isinstance(doc.first, list):
        return False
    keys = first(doc).keys()
    return {"testcase", "tests_outcomes"} <= keys or (keys == {"exception"} and _name(doc) == FILE)


def _name(doc: Document) -> str:
    return os.path.basename(doc.path or "")


def read(doc: Document, choices: Choices) -> Attempts | None:
    row = first(doc)
    folder = os.path.dirname(os.path.abspath(doc.path)) if doc.path else ""
    found = EXERCISE.search(text(row, "testdir") or "") or EXERCISE.search(folder)
    case = identifier(row["testcase"] if "testcase" in row else os.path.basename(folder), "testcase")
    said = text(row, "edit_format")
    out = Attempts("aider", text(row, "model"), f"edit_format={said}" if said else None)
    if folder:
        out.folder = os.path.normpath(os.path.join(folder, *[os.pardir] * (4 if EXERCISE.search(folder) else 1)))
    item = f"{found[1]}/{case}" if found else case
    if "exception" in row:
        out.add(item, None, error=True)
    else:
        out.add(item, _score(row["tests_outcomes"], choices.metric))
    return out


def _score(outcomes: Any, metric: str | None) -> float | None:
    """Whether one of the first k tries passed. Where that is the same for every k nothing has to be chosen."""
    if not isinstance(outcomes, list):
        raise InputError(f"tests_outcomes is {kind(outcomes)}, not a list")
    if not all(isinstance(o, bool) for o in outcomes):
        raise InputError("tests_outcomes are no flags")
    if not outcomes:
        return None
    if metric is not None and not re.fullmatch(r"pass_rate_[1-9]\d{0,3}", metric, re.ASCII):
        raise InputError(
            f"no metric '{metric}' (found: {', '.join(f'pass_rate_{k + 1}' for k in range(len(outcomes)))})"
        )
    if len({any(outcomes[: k + 1]) for k in range(len(outcomes))}) == 1:
        return float(outcomes[0])
    chosen = choose(metric, [f"pass_rate_{k + 1}" for k in range(len(outcomes))], "--metric", "metric")
    return float(any(outcomes[: int(chosen.rpartition("_")[2])]))
