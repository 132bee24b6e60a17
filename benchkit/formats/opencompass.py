"""Results of OpenCompass with details: an example's verdicts, one a replica.

Older details have no names of examples: they are an object by the example's number from 0, or a list. No model is
recorded: it is the name of the folder. Evaluators without a verdict may give each example other numbers, of which the
user may choose one. A data set that repeats its examples (num_repeats, of HumanEval) names each repeat as one more
example; what they are repeats of is their task_id. The cascade of rules and a judge writes no verdict in a replica
where the rules find every example right. The predictions in the folder beside results/ add nothing.

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
    repeats: Counter[str] | None = Counter() if _repeat([d for _, d in details]) else None
    for n, detail in details:
        values = _replicas(detail, verdict)
        if not values:
            raise InputError(f"{place(n)}an example without a verdict")
        item, first = detail["example_abbr"], 0
        if repeats is not None:
            item = _task(detail)
            first = repeats[item]
            repeats[item] += len(values)
        for k, value in enumerate(values, first):
            out.add(item, number(value, verdict, n), attempt=k, line=n)
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


def _task(detail: dict[str, Any]) -> Any:
    value = detail.get("task_id")
    return value[0] if isinstance(value, list) and value else value


def _repeat(details: list[dict[str, Any]]) -> bool:
    """Whether examples with names of their own are repeats of tasks."""
    tasks = [_task(d) for d in details]
    return all(isinstance(t, str) and t for t in tasks) and len(set(tasks)) < len(tasks)


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
