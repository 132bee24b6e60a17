"""EvalPlus results of HumanEval and MBPP: samples by task, with the status of the base tests and of the extra ones.

BigCodeBench has the same layout with one status, which is its only metric.

Metrics are base (the base tests pass) and plus (these and the extra tests pass). A time-out is a failure, as there.
In the older layout a task holds two lists of [status, details], base and plus. The model is in the file's name only.

Source: evalplus/evaluate.py, evalplus/eval/__init__.py, of 0.1 also; bigcodebench/evaluate.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import kind, members
from benchkit.formats.native import Attempts, Document, choose

NAME = "EvalPlus and BigCodeBench results (*eval_results.json)"

STATUS = {"pass": True, "fail": False, "timeout": False, "success": True, "failed": False, "timed out": False}


def sniff(doc: Document) -> bool:
    tasks = doc.first.get("eval") if doc.kind == "json" and isinstance(doc.first, dict) else None
    if not isinstance(tasks, dict):
        return False
    task = next(iter(tasks.values()), None)
    if isinstance(task, dict):
        return isinstance(task.get("base"), list) and "plus" in task
    if isinstance(task, list) and task:
        return isinstance(task[0], dict) and ("base_status" in task[0] or {"solution", "status"} <= task[0].keys())
    return "date" in doc.first and "hash" in doc.first


def read(doc: Document, choices: Choices) -> Attempts | None:
    tasks = doc.first["eval"]
    one = next((t[0] for t in tasks.values() if isinstance(t, list) and t and isinstance(t[0], dict)), {})
    if "status" in one:
        return _bigcodebench(tasks, choices)
    samples = list(_samples(tasks))
    extra = any(plus is not None for *_, plus in samples)
    metric = choose(choices.metric, ["base", "plus"] if extra else ["base"], "--metric", "metric")
    out = Attempts("evalplus")
    for n, task, attempt, base, plus in samples:
        score = base if metric == "base" or base is False else None if base is None else plus
        out.add(task, score, attempt=attempt, line=n)
    return out


def _bigcodebench(tasks: dict[str, Any], choices: Choices) -> Attempts:
    choose(choices.metric, ["status"], "--metric", "metric")
    out = Attempts("bigcodebench")
    for n, (task, value) in enumerate(tasks.items(), 1):
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
