"""Logs of OpenAI evals: one event a line, after the run's specification, which names the model.

A sample's score is `correct` of its match event; in evals without such events, a number of its metrics events. A sample
with other events only was not scored, or ended in an error where one is recorded for it. A model-graded eval whose
choices have no scores writes score null. The final report is written when the run has ended.

Source: evals/record.py, evals/base.py, evals/elsuite/modelgraded/classify.py.
"""

from __future__ import annotations

from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, inner, kind, records, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number
from benchkit.text import count

NAME = "OpenAI evals logs (.jsonl)"

EVENT = {"run_id", "event_id", "sample_id", "type", "data"}
SPEC = ("completion_fns", "base_eval", "eval_name", "model_name", "model_names")


def sniff(doc: Document) -> bool:
    if doc.kind not in ("ndjson", "json") or isinstance(doc.first, list):
        return False
    row = first(doc)
    spec = row.get("spec")
    return row.keys() >= EVENT or (isinstance(spec, dict) and any(k in spec for k in SPEC))


def read(doc: Document, choices: Choices) -> Attempts | None:
    specs: list[dict[str, Any]] = []
    ended = False
    events: list[tuple[int, str, str, dict[str, Any]]] = []
    for n, row in records(doc):
        if isinstance(row.get("spec"), dict):
            specs.append(row["spec"])
        elif "final_report" in row:
            ended = True
        else:
            sample = identifier(row.get("sample_id"), "sample_id", n)
            data = inner(row, "data", n) if row.get("type") in ("match", "metrics") else {}
            events.append((n, sample, text(row, "type", n) or "", data))
    if len(specs) > 1:
        raise InputError(f"{len(specs)} runs in one file: a run is a file of its own")
    out = _attempts(specs[0] if specs else {}, choices)
    if not ended:
        out.unfinished = f"no final report, {count(len({sample for _, sample, *_ in events}), 'sample')}"
    metric = _metric(events, choices)
    scored = set()
    for n, sample, event, data in events:
        if metric is None and event == "match":
            score = number(data.get("correct"), "correct", n)
        elif metric is not None and event == "metrics" and metric in data:
            score = number(data[metric], metric, n)
        else:
            continue
        scored.add(sample)
        out.add(sample, score, line=n)
    failed = {sample for _, sample, event, _ in events if event == "error"}
    rest: dict[str, int] = {}
    for n, sample, *_ in events:
        if sample not in scored:
            rest.setdefault(sample, n)
    for sample, n in rest.items():
        out.add(sample, None, error=sample in failed, line=n)
    return out


def _metric(events: list[tuple[int, str, str, dict[str, Any]]], choices: Choices) -> str | None:
    """The number of metrics events that counts; None where match events do."""
    matched = any(event == "match" for _, _, event, _ in events)
    if matched and choices.metric in (None, "match"):
        return None
    metrics = [data for *_, event, data in events if event == "metrics"]
    numbers = {k for data in metrics for k, v in data.items() if _is_number(v)}
    if not numbers and not matched and choices.metric is None:
        graded = dict.fromkeys(str(data["choice"])[:40] for data in metrics if data.get("choice") is not None)
        if graded:
            raise InputError(
                f"no scores, only choices of a grader ({', '.join(sorted(graded)[:5])}): run it again with "
                "choice_scores in its specification, or make a table of these choices with a score each"
            )
        return None  # nothing was scored
    numbers |= {"score"} if any("score" in data for data in metrics) else set()  # null beside metascore
    return choose(choices.metric, [*(["match"] if matched else []), *sorted(numbers)], "--metric", "metric")


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _attempts(spec: dict[str, Any], choices: Choices) -> Attempts:
    """An empty result with the model, the eval and the run. Before completion_fns, models stood in model_names."""
    found = spec.get("completion_fns") or inner(spec, "model_names").get("completions") or text(spec, "model_name")
    names = [found] if isinstance(found, str) else found
    if names is not None and not (isinstance(names, list) and all(isinstance(m, str) and m for m in names)):
        raise InputError(f"completion_fns is {kind(found)}, not a list of models")
    run = text(spec, "run_id")
    out = Attempts("openai evals", ",".join(names) if names else None, f"run {run}" if run else None)
    out.of_task(text(spec, "eval_name"), choices)
    return out
