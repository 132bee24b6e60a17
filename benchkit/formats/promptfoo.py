"""Results of promptfoo: a row a provider, prompt and test case.

A repeated test case gets another number each time, and which repeat it was is not exported. So an item is the test's
description and variables, with a hash of its assertions where tests differ in these only, and its rows are the attempts
of a provider on it in their order. The results are one document, or a row a line (--output FILE.jsonl), or what the
library's evaluate() gave, saved as JSON: a summary, or in later versions a record, which may have left its rows in
promptfoo's database.

Source: promptfoo's src/types/index.ts, src/evaluator.ts, src/models/{eval,evalResult}.ts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import canonical, digest, first, inner, members, place, records, text
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "promptfoo results (results.json, .jsonl)"

ERROR = 2  # failureReason: 0 none, 1 an assertion, 2 an error
LONGEST = 100  # characters of an item's name
ROW = {"promptIdx", "testIdx", "success", "score", "testCase"}
TALK = "_conversation"  # a variable that holds what the model answered before
RECORD = {"config", "prompts", "persisted", "results"}


def sniff(doc: Document) -> bool:
    return bool(_summary(doc)) or first(doc).keys() >= ROW


def _summary(doc: Document) -> dict[str, Any]:
    """The object with the list of rows, {} where there is none."""
    value = doc.first if doc.kind == "json" and isinstance(doc.first, dict) else {}
    found = value.get("results")
    if isinstance(found, dict):
        return found if {"version", "results"} <= found.keys() else {}
    summary = "version" in value and isinstance(value.get("stats"), dict) and "successes" in value["stats"]
    return value if isinstance(found, list) and (summary or value.keys() >= RECORD) else {}


def read(doc: Document, choices: Choices) -> Attempts | None:
    rows, run = _rows(doc)
    failed = {n: _failed(row, n) for n, row in rows}
    metric = _metric([(n, row) for n, row in rows if not failed[n]], choices.metric)
    names = _models(rows)
    items = _items(rows)
    out = Attempts("promptfoo", settings=run)
    answers: dict[tuple[str, str], list[str]] = {}
    for n, row in rows:
        model, item = names[n], items[n]
        response = row.get("response")
        answer = canonical(response.get("output") if isinstance(response, dict) else None, "the output", n)
        earlier = answers.setdefault((model, item), [])
        if answer in earlier and isinstance(response, dict) and response.get("cached") is True:
            out.skip("repeat taken from the cache")
            continue
        earlier.append(answer)
        score = None if failed[n] else number(_value(row, metric, n), metric, n)
        out.add(item, score, attempt=len(earlier), model=model, error=failed[n], line=n)
    return out


def _rows(doc: Document) -> tuple[list[tuple[int, dict[str, Any]]], str | None]:
    """The rows, and the run's name."""
    summary = _summary(doc)
    if not summary:
        return list(records(doc)), None
    if "version" in summary and summary["version"] not in (2, 3):
        raise InputError(f"results of promptfoo's version {str(summary['version'])[:20]}: known are 2 and 3")
    rows = list(members(summary["results"], "result"))
    if not rows and summary.get("persisted") is True:
        raise InputError("a record without its rows: save what its toEvaluateSummary() gives, or export the evaluation")
    if any(row.get("promptIdx") is None for _, row in rows):
        _check_columns(summary)
    return rows, text(doc.first, "evalId") or (text(summary, "id") if "persisted" in summary else None)


def _check_columns(summary: dict[str, Any]) -> None:
    """InputError where rows without the number of their column may be of two: one provider with two settings."""
    head = inner(inner(summary, "table"), "head")
    columns = Counter((str(c.get("provider")), _label(c)) for _, c in members(head.get("prompts") or [], "prompt"))
    twice = next((provider for (provider, _), times in columns.items() if times > 1), None)
    if twice is not None:
        raise InputError(
            f"several columns of provider '{twice[:LONGEST]}' with one prompt, and no row says which it is of: "
            "evaluate again with a later version of promptfoo"
        )


def _failed(row: dict[str, Any], line: int) -> bool:
    """Whether there was no answer to score. Before there was a failureReason, only such rows had no gradingResult."""
    reason = row.get("failureReason")
    if reason is None:
        return bool(row.get("error")) and not row.get("gradingResult")
    if reason not in (0, 1, ERROR):
        raise InputError(f"{place(line)}failureReason is {str(reason)[:20]}: known are 0, 1 and 2")
    return bool(reason == ERROR)


def _metric(rows: list[tuple[int, dict[str, Any]]], wanted: str | None) -> str:
    """success, score or a named score. Where success and score say the same nothing has to be chosen."""
    named = sorted({name for n, row in rows for name in inner(row, "namedScores", n)} - {"success", "score"})
    same = all(number(row.get("success"), "success", n) == number(row.get("score"), "score", n) for n, row in rows)
    if wanted is None and same:
        return "success"
    return choose(wanted, ["success", "score", *named], "--metric", "metric")


def _value(row: dict[str, Any], metric: str, line: int) -> Any:
    return row.get(metric) if metric in ("success", "score") else inner(row, "namedScores", line).get(metric)


def _models(rows: list[tuple[int, dict[str, Any]]]) -> dict[int, str]:
    """Row -> provider; with the prompt where a provider has several columns of the report (of one id, two settings)."""
    at: dict[int, tuple[str, tuple[str, str]]] = {}
    columns: dict[str, dict[tuple[str, str], str]] = {}
    for n, row in rows:
        provider = row.get("provider")
        if isinstance(provider, dict):
            provider = text(provider, "label", n) or text(provider, "id", n)
        if not isinstance(provider, str) or not provider:
            raise InputError(f"{place(n)}no provider")
        prompt = inner(row, "prompt", n)
        label = _label(prompt, n)
        column = text(row, "promptId", n) or label, str(row.get("promptIdx"))[:20]
        at[n] = provider, column
        columns.setdefault(provider, {})[column] = label
    return {n: provider + _prompt(columns[provider], column) for n, (provider, column) in at.items()}


def _label(prompt: dict[str, Any], line: int | None = None) -> str:
    return text(prompt, "label", line) or text(prompt, "display", line) or ""  # display: before there was a label


def _prompt(columns: dict[tuple[str, str], str], column: tuple[str, str]) -> str:
    """What tells a provider's column from its others: the prompt's label, or its number."""
    if len(columns) == 1:
        return ""
    label, labels = columns[column], list(columns.values())
    short = 0 < len(label) <= LONGEST and "\n" not in label and labels.count(label) == 1
    return f" ({label if short else f'prompt {column[1]}, {digest(column[0])}'})"


def _items(rows: list[tuple[int, dict[str, Any]]]) -> dict[int, str]:
    """Row -> the test's name, with a hash of its assertions where tests of one name differ in them."""
    answers = {TALK} | {_stored(row, n) for n, row in rows}
    names = {n: _item(row, answers, n) for n, row in rows}
    asserted = {n: canonical(inner(row, "testCase", n).get("assert"), "assert", n) for n, row in rows}
    found: dict[str, set[str]] = {}
    for n, name in names.items():
        found.setdefault(name, set()).add(asserted[n])
    return {n: name if len(found[name]) == 1 else f"{name} {digest(asserted[n])}" for n, name in names.items()}


def _stored(row: dict[str, Any], line: int) -> str | None:
    """The variable of later tests that a test's answer is kept in."""
    return text(inner(inner(row, "testCase", line), "options", line), "storeOutputAs", line)


def _item(row: dict[str, Any], answers: set[str | None], line: int) -> str:
    """The description and the variables of a test, whole where they are short, else cut and with a hash.

    answers: variables that hold what a model answered, and so tell no test from others.
    """
    case = inner(row, "testCase", line)
    values = inner(row, "vars", line) or inner(case, "vars", line)
    values = {name: value for name, value in values.items() if name not in answers}
    named = text(case, "description", line)
    whole = " ".join([*([named] if named else []), *([canonical(values, "vars", line)] if values or not named else [])])
    if len(whole) <= LONGEST and "\n" not in whole:
        return whole
    return f"{' '.join(whole.split())[:80]}... {digest(whole)}"
