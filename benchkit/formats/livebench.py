"""Judgments of LiveBench, as lines or as Parquet. Grading again appends: of a question and a model the latest counts.

A score is from 0 to 1, or -1 where there is none. Questions, answers and the verdicts on single instructions, which lie
in the folders around the judgments, are no results by themselves.

Source: livebench/gen_ground_truth_judgment.py, livebench/show_livebench_result.py,
livebench/process_results/instruction_following/utils.py.
"""

from __future__ import annotations

from typing import Any

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, goes_along, place, records, text
from benchkit.formats.native import Attempts, Document, identifier, number

NAME = "LiveBench judgments (ground_truth_judgment.jsonl, or published as Parquet)"

FINE = {None, "ok", "success", "completed"}  # of eval_status
UNSCORED = -1
NEEDED = ("question_id", "model", "score", "tstamp", "category")
STATUS = ("eval_status", "error", "error_msg")
AROUND = (
    {"question_id", "category", "task", "turns"},  # question.jsonl
    {"question_id", "answer_id", "model_id", "choices"},  # model_answer/MODEL.jsonl
)
STRICT = {"question_id", "follow_all_instructions", "instruction_id_list"}  # model_judgment/MODEL_strict.jsonl


def sniff(doc: Document) -> bool:
    beside = goes_along(first(doc), (STRICT,)) and bool(doc.siblings("ground_truth_judgment", ".jsonl"))
    return _is_judgment(doc) or beside or goes_along(first(doc), AROUND)


def _is_judgment(doc: Document) -> bool:
    return set(NEEDED) <= (set(doc.columns) if doc.kind == "parquet" else first(doc).keys())


def read(doc: Document, choices: Choices) -> Attempts | None:
    if not _is_judgment(doc):
        return None
    out = Attempts("livebench")
    last: dict[tuple[str, str], tuple[float, float | None, bool, int]] = {}
    count = 0
    parts = [n for n in (*NEEDED, *STATUS) if n in doc.columns]
    for n, row in parquet.rows(doc, parts) if doc.kind == "parquet" else records(doc):
        key = identifier(row.get("question_id"), "question_id", n), identifier(row.get("model"), "model", n)
        at = row.get("tstamp")
        if isinstance(at, bool) or not isinstance(at, int | float) or at != at:
            raise InputError(f"{place(n)}tstamp is no time, so which grading is the latest is unknown")
        score = number(row.get("score"), "score", n)
        count += 1
        if key not in last or at >= last[key][0]:
            last[key] = at, None if score == UNSCORED else score, _failed(row, n), n
    for (item, model), (_, score, failed, n) in last.items():
        out.add(item, score, model=model, error=failed, line=n)
    if count > len(last):
        out.skip("earlier grading", count - len(last))
    return out


def _failed(row: dict[str, Any], line: int) -> bool:
    return text(row, "eval_status", line) not in FINE or bool(row.get("error") or row.get("error_msg"))
