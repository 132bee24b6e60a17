"""Gradings of itemeval: a row a grading of a solution, by a grader or a scorer.

Source: itemeval/store/_export.py.
"""

from __future__ import annotations

from typing import Any

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.cells import Choices
from benchkit.formats.native import Attempts, Document, choose, identifier, number, of_wanted

NAME = "itemeval gradings (gradings_long.parquet)"

NEEDED = ("study", "item_id", "model", "prompt_name", "replication", "grader_name", "score", "parse_ok")
COLUMNS = frozenset(NEEDED)
GRADER = ("grader_name", "rubric_name", "scorer_name")
GENERATION = ("prompt_name", "model_config_name")


def sniff(doc: Document) -> bool:
    return doc.kind == "parquet" and COLUMNS.issubset(doc.columns)


def read(doc: Document, choices: Choices) -> Attempts | None:
    columns = [c for c in dict.fromkeys((*NEEDED, *GRADER, *GENERATION)) if c in doc.columns]
    read = {c: parquet.values(doc, c) for c in columns}
    rows = [(n, dict(zip(columns, row, strict=True))) for n, row in enumerate(zip(*read.values(), strict=True), 1)]
    rows = of_wanted(rows, read["study"], choices)
    graders = [_words(row, GRADER) or "none" for _, row in rows]
    grader = choose(choices.scorer, sorted(set(graders)), "--scorer", "scorer")
    kept = [numbered for numbered, g in zip(rows, graders, strict=True) if g == grader]
    conditions: dict[str, dict[str, None]] = {}
    for n, row in kept:
        conditions.setdefault(identifier(row["model"], "model", n), {})[_words(row, GENERATION)] = None
    out = Attempts("itemeval")
    studies = {row["study"] for _, row in kept if isinstance(row["study"], str)}
    out.of_task(studies.pop() if len(studies) == 1 else None, choices)
    for n, row in kept:
        model = identifier(row["model"], "model", n)
        if len(conditions[model]) > 1:  # one model asked in several ways
            model = f"{model} ({_words(row, GENERATION) or 'none'})"
        if not isinstance(row["parse_ok"], bool | None):
            raise InputError(f"row {n}: parse_ok is no flag")
        score = number(row["score"], "score", n) if row["parse_ok"] else None  # a reply that gave no score
        out.add(row["item_id"], score, attempt=row["replication"], model=model, line=n)
    return out


def _words(row: dict[str, Any], columns: tuple[str, ...]) -> str:
    """What these columns say of a row, in one text."""
    return "/".join(str(row[c]) for c in columns if row.get(c) not in (None, ""))
