"""MathArena: published outputs (Parquet, or NDJSON as saved locally) and the run files of one model and problem.

Of outputs only the columns of models, problems, attempts and scores are read; the messages are most of the bytes.
Competitions with proofs have points by judge instead of `correct`: the score is points / max_points of one judge. Their
run files have both, where `correct` is the mean of the judges; it is what counts there, unless nobody averaged them.
A run file records no model; its problem is the file's name, as in MathArena, since `idx` was one too low for a time.

Source: scripts/curation/upload_outputs.py, scripts/judge/judge.py, src/matharena/runs.py of MathArena.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, kind, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number

NAME = "MathArena outputs (Parquet, NDJSON) and run files (N.json, N.json.zst)"

OUTPUTS = {"problem_idx", "model_name", "idx_answer"}
RUN = {"idx", "correct", "answers", "pass_at_1"}
JUDGE = re.compile(r"points_(judge_\d+)", re.ASCII)
UNGRADED = "TODO Grading"


def sniff(doc: Document) -> bool:
    if doc.kind == "parquet":
        return set(doc.columns) >= OUTPUTS
    if doc.kind == "ndjson":
        return first(doc).keys() >= OUTPUTS | {"model_config"}
    return doc.kind == "json" and isinstance(doc.first, dict) and doc.first.keys() >= RUN


def read(doc: Document, choices: Choices) -> Attempts | None:
    return _run(doc, choices) if doc.kind == "json" else _outputs(doc, choices)


def _run(doc: Document, choices: Choices) -> Attempts:
    out = Attempts("matharena run")
    row = doc.first
    correct, answers = row["correct"], row["answers"]
    for name, value in (("correct", correct), ("answers", answers)):
        if not isinstance(value, list):
            raise InputError(f"{name} is {kind(value)}, not a list")
    judges = _judges(row.get("judgment"))
    graded = any(c is not None and c != UNGRADED for c in correct)
    scorers = [*(["correct"] if graded or not judges else []), *judges]
    default = "correct" if "correct" in scorers else None
    scorer = choose(choices.scorer or default, scorers, "--scorer", "scorer")
    if scorer != "correct":
        correct = [_share(one, "points", "max_points", k) for k, one in enumerate(judges[scorer], 1)]
    if len(correct) > len(answers):
        raise InputError(f"{len(correct)} grades for {len(answers)} answers")
    item = _problem(doc)
    for k in range(len(answers)):
        score = _score(correct[k], "correct", k + 1) if k < len(correct) else None
        out.add(item, score, attempt=k, line=k + 1)
    return out


def _judges(judgment: Any) -> dict[str, list[dict[str, Any]]]:
    """Judge -> its judgment of each answer, {} where it gave none. Without judges the list is of answers, all null."""
    slots = judgment if isinstance(judgment, list) else []
    found = {f"judge_{n}": [one if isinstance(one, dict) else {} for one in slot]
             for n, slot in enumerate(slots, 1) if isinstance(slot, list)}  # fmt: skip
    return {judge: given for judge, given in found.items() if any("points" in one for one in given)}


def _share(row: dict[str, Any], points: str, most: str, line: int) -> float | None:
    """The share of the points that a judge gave, None where it gave none."""
    score = _score(row.get(points), points, line)
    if score is None:
        return None
    limit = number(row.get(most), most, line)
    if not limit or not limit > 0:
        raise InputError(f"row {line}: {most} is no positive number")
    return score / limit


def _problem(doc: Document) -> str:
    idx = identifier(doc.first["idx"], "idx")
    named = os.path.basename(doc.path or "").partition(".")[0]
    problem = int(named) if re.fullmatch(r"\d{1,9}", named, re.ASCII) else None
    if problem is None or idx == str(problem):
        return idx
    if idx == str(problem - 1):
        return str(problem)
    raise InputError(f"idx is {idx}, but the file is of problem {problem}")


def _outputs(doc: Document, choices: Choices) -> Attempts:
    out = Attempts("matharena outputs")
    columns = doc.columns or tuple(first(doc))
    judges = {m[1]: n for n in columns if (m := JUDGE.fullmatch(n))}
    scorers = [*(["correct"] if "correct" in columns else []), *sorted(judges)]
    scorer = choose(choices.scorer, scorers, "--scorer", "scorer")
    scores = ["correct"] if scorer == "correct" else [judges[scorer], f"max_{judges[scorer]}"]
    lacking = [n for n in scores if n not in columns]
    if lacking:
        raise InputError(f"no column {lacking[0]}")
    rows = list(_rows(doc, [*sorted(OUTPUTS), *(n for n in ["model_config"] if n in columns), *scores]))
    configs: dict[Any, set[Any]] = {}
    for n, row in rows:
        configs.setdefault(text(row, "model_name", n), set()).add(text(row, "model_config", n))
    for n, row in rows:
        model, config = row["model_name"], row.get("model_config")
        name = f"{model} ({config})" if model and config and len(configs[model]) > 1 else model
        score = _share(row, scores[0], scores[1], n) if len(scores) == 2 else _score(row.get(scores[0]), scores[0], n)
        out.add(row.get("problem_idx"), score, attempt=row.get("idx_answer"), model=name, line=n)
    return out


def _rows(doc: Document, columns: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    if doc.kind == "ndjson":
        yield from ((n, {c: row.get(c) for c in columns}) for n, row in doc.rows())
        return
    found = [parquet.values(doc, c) for c in columns]
    if len({len(c) for c in found}) > 1:
        raise InputError("damaged Parquet data: columns of different lengths")
    yield from ((n, dict(zip(columns, row, strict=True))) for n, row in enumerate(zip(*found, strict=True), 1))


def _score(value: Any, what: str, row: int) -> float | None:
    return None if value == UNGRADED else number(value, what, row)
