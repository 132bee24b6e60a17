"""EvalPlus results of HumanEval and MBPP: samples by task, with the status of the base tests and of the extra ones.

BigCodeBench has the same layout with one status, which is its only metric. EvalPerf's results say which samples passed.

Metrics are base (the base tests pass) and plus (these and the extra tests pass). A time-out is a failure, as there.
In the older layout a task holds two lists of [status, details], base and plus. The model is in the file's name only,
but for BigCodeBench's, where the pass_at_k.json beside it names it, and whether it completed code or followed
instructions: other tasks, whose items have the same names. Samples, which were not run yet, go with the results.

Source: evalplus/evaluate.py, evalplus/eval/__init__.py, of 0.1 also; evalplus/evalperf.py; bigcodebench/evaluate.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, kind, members, text
from benchkit.formats.native import Attempts, Document, choose

NAME = "EvalPlus, EvalPerf and BigCodeBench results (*eval_results.json, *evalperf_results.json)"

STATUS = {"pass": True, "fail": False, "timeout": False, "success": True, "failed": False, "timed out": False}
SAMPLE = {"task_id", "solution", "completion", "raw_solution", "prompt", "_identifier"}
PASS_AT_K = {"model", "split", "subset", "calibrated"}


def sniff(doc: Document) -> bool:
    return _beside(first(doc)) or _kind(doc) is not None


def _beside(row: dict[str, Any]) -> bool:
    """Whether it goes with results: a sample and nothing else, or BigCodeBench's pass rates."""
    sample = "task_id" in row and bool({"solution", "completion"} & row.keys()) and row.keys() <= SAMPLE
    return sample or (row.keys() >= PASS_AT_K and any(key.startswith("pass@") for key in row))


def _kind(doc: Document) -> str | None:
    """Whose results it holds; brief: EvalPerf's summary, which goes with its results."""
    tasks = doc.first.get("eval") if doc.kind == "json" and isinstance(doc.first, dict) else None
    if not isinstance(tasks, dict):
        return None
    task = next(iter(tasks.values()), None)
    if isinstance(task, dict):
        if "dps" in task and "pass@1" in task:
            return "evalperf" if "results" in task else "brief"
        return "evalplus" if isinstance(task.get("base"), list) and "plus" in task else None
    if isinstance(task, list) and task:
        sample = task[0] if isinstance(task[0], dict) else {}
        if {"solution", "status"} <= sample.keys():
            return "bigcodebench"
        return "evalplus" if "base_status" in sample else None
    return "evalplus" if "date" in doc.first and "hash" in doc.first else None


def read(doc: Document, choices: Choices) -> Attempts | None:
    found = _kind(doc)
    if found in (None, "brief"):
        return None
    if found == "bigcodebench":
        return _bigcodebench(doc, choices)
    return _evalperf(doc.first["eval"], choices) if found == "evalperf" else _evalplus(doc.first["eval"], choices)


def _evalplus(tasks: dict[str, Any], choices: Choices) -> Attempts:
    samples = list(_samples(tasks))
    extra = any(plus is not None for *_, plus in samples)
    metric = choose(choices.metric, ["base", "plus"] if extra else ["base"], "--metric", "metric")
    out = Attempts("evalplus")
    for n, task, attempt, base, plus in samples:
        score = base if metric == "base" or base is False else None if base is None else plus
        out.add(task, score, attempt=attempt, line=n)
    return out


def _evalperf(tasks: dict[str, Any], choices: Choices) -> Attempts:
    choose(choices.metric, ["pass"], "--metric", "metric")
    out = Attempts("evalperf")
    for n, (task, value) in enumerate(tasks.items(), 1):
        if not isinstance(value, dict):
            raise InputError(f"row {n}: {task} is {kind(value)}, not an object")
        for k, (_, sample) in enumerate(members(value.get("results"), f"row {n}: sample")):
            passed = sample.get("pass")
            if not isinstance(passed, bool | None):
                raise InputError(f"row {n}: pass is {kind(passed)}, not a flag")
            out.add(task, passed, attempt=k, line=n)
    return out


def _bigcodebench(doc: Document, choices: Choices) -> Attempts:
    stem, results, _ = os.path.basename(doc.path or "").partition("eval_results.json")
    about = doc.sibling(f"{stem}pass_at_k.json") if results else None
    about = about if isinstance(about, dict) and about.keys() >= PASS_AT_K else {}
    out = Attempts("bigcodebench", text(about, "model"), f"calibrated={about['calibrated']}" if about else None)
    said = [text(about, key) for key in ("subset", "split")]
    out.of_task("-".join(["bigcodebench", *(x for x in said if x and x != "full")]) if about else None, choices)
    choose(choices.metric, ["status"], "--metric", "metric")
    for n, (task, value) in enumerate(doc.first["eval"].items(), 1):
        for k, (_, sample) in enumerate(members(value, f"row {n}: sample")):
            out.add(task, _passed(sample.get("status"), "status", n), attempt=k, line=n)
    return out


def _samples(tasks: dict[str, Any]) -> Iterator[tuple[int, str, int, bool | None, bool | None]]:
    """Row (of the task), task, number of the sample, and whether its base and its extra tests pass."""
    for n, (task, value) in enumerate(tasks.items(), 1):
        if isinstance(value, dict):
            base, plus = (_old(value.get(key), key, n) for key in ("base", "plus"))
            if len(plus) not in (0, len(base)):
                raise InputError(f"row {n}: {len(base)} base results and {len(plus)} plus results of {task}")
            for k, b in enumerate(base):
                yield n, task, k, b, plus[k] if plus else None
        else:
            for k, (_, sample) in enumerate(members(value, f"row {n}: sample")):
                b, p = (_passed(sample.get(key), key, n) for key in ("base_status", "plus_status"))
                yield n, task, k, b, p


def _old(value: Any, key: str, n: int) -> list[bool | None]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"row {n}: {key} is {kind(value)}, not a list")
    return [_passed(one[0] if isinstance(one, list) and one else one, key, n) for one in value]


def _passed(status: Any, key: str, n: int) -> bool | None:
    if status is None:
        return None
    if not isinstance(status, str):
        raise InputError(f"row {n}: {key} is {kind(status)}, not a status")
    if status not in STATUS:
        raise InputError(f"row {n}: {key} is '{status[:40]}', not one of {', '.join(STATUS)}")
    return STATUS[status]
