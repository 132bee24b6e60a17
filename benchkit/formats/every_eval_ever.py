"""Samples in the schema of Every Eval Ever: a line a sample and metric.

An evaluation's name does not tell its metrics apart where it has several; the identifier of the result does. A sample
that failed before it was scored names no result: it belongs to all of its evaluation.

Source: every_eval_ever/instance_level_types.py, every_eval_ever/converters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, inner, place, records, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number, of_wanted

NAME = "Every Eval Ever samples (*_samples.jsonl)"

NEEDED = {"schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "evaluation"}
AGGREGATE = {"schema_version", "evaluation_id", "evaluation_results", "model_info"}


class _Sample(NamedTuple):
    """What is kept of a line: the prompts and answers are most of a file."""

    line: int
    model: str
    item: str
    attempt: Any
    score: float | None
    failed: bool
    name: str
    result: str | None


def sniff(doc: Document) -> bool:
    keys = first(doc).keys()
    return keys >= NEEDED or (doc.kind == "json" and keys >= AGGREGATE)


def read(doc: Document, choices: Choices) -> Attempts | None:
    if NEEDED - first(doc).keys():
        return None  # the aggregate results beside the samples
    runs: set[str] = set()
    samples = [_sample(n, row, runs) for n, row in records(doc)]
    samples = of_wanted(samples, [s.name for s in samples], choices)
    labels = _labels(samples)
    wanted = choices.metric and {f"{name}:{r}": label for (name, r), label in labels.items()}.get(choices.metric)
    chosen = choose(wanted or choices.metric, sorted(set(labels.values())), "--metric", "metric")
    names = {name for (name, _), label in labels.items() if label == chosen}
    kept = [s for s in samples if labels.get((s.name, s.result)) == chosen or (s.name in names and _of_all(s, labels))]
    out = Attempts("every eval ever", settings=runs.pop() if len(runs) == 1 else None)
    out.of_task(kept[0].name, choices)
    for s in kept:
        out.add(s.item, s.score, attempt=s.attempt, model=s.model, error=s.failed, line=s.line)
    return out


def _sample(line: int, row: dict[str, Any], runs: set[str]) -> _Sample:
    if NEEDED - row.keys():
        raise InputError(f"{place(line)}lacks {', '.join(sorted(NEEDED - row.keys()))}")
    runs.add(identifier(row["evaluation_id"], "evaluation_id", line))
    return _Sample(
        line,
        identifier(row["model_id"], "model_id", line),
        identifier(row["sample_id"], "sample_id", line),
        inner(row, "metadata", line).get("epoch"),
        number(inner(row, "evaluation", line).get("score"), "score", line),
        text(row, "error", line) is not None,
        identifier(row["evaluation_name"], "evaluation_name", line),
        text(row, "evaluation_result_id", line),
    )


def _of_all(sample: _Sample, labels: dict[tuple[str, str | None], str]) -> bool:
    """Whether a sample belongs to every result of its evaluation."""
    return (sample.name, sample.result) not in labels


def _labels(samples: list[_Sample]) -> dict[tuple[str, str | None], str]:
    """(evaluation, result) -> what --metric calls it: the evaluation, with the result where it has several.

    Failed samples without a result have no label where others of the evaluation have one.
    """
    results: dict[str, dict[str | None, None]] = {}
    for s in sorted(samples, key=lambda s: s.failed and s.result is None):
        if s.name not in results or not (s.failed and s.result is None):
            results.setdefault(s.name, {})[s.result] = None
    return {
        (name, result): name if len(found) == 1 else f"{name}:{result or 'none'}"
        for name, found in results.items()
        for result in found
    }
