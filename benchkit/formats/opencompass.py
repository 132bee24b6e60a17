"""Results of OpenCompass with details: an example's verdicts, one a replica.

Older details have no names of examples: they are an object by the example's number from 0, or a list. No model is
recorded: it is the name of the folder. Evaluators without a verdict may give each example other numbers, of which the
user may choose one. A data set that repeats its examples (num_repeats, of HumanEval) names each repeat as one more
example, so that examples are called by their task_id, where there is one, as they are without repeats. The cascade of
rules and a judge writes no verdict in a replica where the rules find every example right. The predictions in the folder
beside results/ add nothing.

Source: opencompass/openicl/icl_evaluator/icl_base_evaluator.py, opencompass/tasks/openicl_eval.py, of 0.2.6 to 0.5.4,
opencompass/evaluator/cascade_evaluator.py.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import members, place
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "OpenCompass results with details"

CASCADE, RULES = "cascade_correct", "rule_evaluation"
VERDICTS = ("correct", "is_correct", CASCADE)
ANSWERS = {"pred", "predictions", "origin_prediction", "prompt"}  # of which an older example has one at least


def sniff(doc: Document) -> bool:
    if doc.kind != "json" or not isinstance(doc.first, dict):
        return False
    if _is_predictions(doc.first):
        return True
    details = doc.first.get("details")
    values = details.values() if isinstance(details, dict) else details if isinstance(details, list) else ()
    example = next((v for v in values if isinstance(v, dict)), {})
    return "example_abbr" in example or (any(v in example for v in VERDICTS) and bool(ANSWERS & example.keys()))


def _is_predictions(value: dict[str, Any]) -> bool:
    first = value.get("0")
    return isinstance(first, dict) and {"origin_prompt", "prediction"} <= first.keys() and "details" not in value


def read(doc: Document, choices: Choices) -> Attempts | None:
    if _is_predictions(doc.first):
        return None
    out = Attempts("opencompass")
    out.of_task(_dataset(doc.path), choices)
    details = list(members(_examples(doc.first["details"]), "example"))
    found = [v for v in VERDICTS if any(v in d or (v == CASCADE and RULES in d) for _, d in details)]
    if not found:
        found = _numbers([d for _, d in details])
        if not found:
            out.skip("example without a verdict", len(details))
            return out
        if choices.metric is None:
            raise InputError(
                f"no {', '.join(VERDICTS)}, but other numbers of examples: choose one with --metric "
                f"({', '.join(found)})"
            )
    verdict = choose(choices.metric, found, "--metric", "metric")
    tasks = _tasks([d for _, d in details])
    seen: Counter[str] = Counter()
    for (n, detail), task in zip(details, tasks, strict=True):
        values = _replicas(detail, verdict)
        if not values:
            raise InputError(f"{place(n)}an example without a verdict")
        for k, value in enumerate(values, seen[task] if task else 0):
            out.add(task or detail["example_abbr"], number(value, verdict, n), attempt=k, line=n)
        seen[task] += len(values)
    return out


def _replicas(detail: dict[str, Any], verdict: str) -> list[Any]:
    """The verdict of each replica of an example."""
    values = detail.get(verdict)
    values = values if isinstance(values, list) else [values]
    rules = detail.get(RULES)
    if verdict != CASCADE or not isinstance(rules, list):
        return values
    values = values if verdict in detail else []
    right = sum(isinstance(r, dict) and r.get("correct") is True for r in rules)
    return values + [True] * max(0, min(right, len(rules) - len(values)))


def _tasks(details: list[dict[str, Any]]) -> list[str]:
    """The task of each example, '' where not every one names its own, or some are repeated more often than others."""
    given: list[Any] = [detail.get("task_id") for detail in details]
    tasks = [value[0] if isinstance(value, list) and value else value for value in given]
    named = all(isinstance(task, str) and task for task in tasks)
    return tasks if named and len(set(Counter(tasks).values())) == 1 else [""] * len(details)


def _numbers(details: list[dict[str, Any]]) -> list[str]:
    """What examples hold that is a flag or a number in every replica, but for those without it."""
    found: dict[str, set[type]] = {}
    for detail in details:
        for key, value in detail.items():
            found.setdefault(key, set()).update(map(type, value if isinstance(value, list) else [value]))
    return sorted(k for k, types in found.items() if types - {type(None)} and types <= {bool, int, float, type(None)})


def _examples(details: Any) -> list[Any]:
    """The examples, each with its name; in an object `type` (PPL, GEN) and other values are none."""
    named = details.items() if isinstance(details, dict) else ((str(n), d) for n, d in enumerate(details))
    found = [(n, d) for n, d in named if isinstance(d, dict) or isinstance(details, list)]
    return [{"example_abbr": n} | d if isinstance(d, dict) else d for n, d in found]


def _dataset(path: str | None) -> str | None:
    """The dataset by the tool's own layout, results/<model>/<dataset>.json."""
    folder, name = os.path.split(os.path.abspath(path)) if path else ("", "")
    return name.split(".json")[0] if os.path.basename(os.path.dirname(folder)) == "results" else None
