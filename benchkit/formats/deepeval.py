"""Test runs of DeepEval: a score a test case and metric.

The model is recorded only where the run's hyperparameters name it.

Source: deepeval/test_run/test_run.py, deepeval/test_run/api.py.
"""

from __future__ import annotations

from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import canonical, digest, inner, members, place, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number

NAME = "DeepEval test runs (test_run_*.json, .latest_run_full.json)"

CASES = ("testCases", "conversationalTestCases")
PASSED = "success"


def sniff(doc: Document) -> bool:
    value = _run(doc)
    return isinstance(value.get("testCases"), list) and bool({"metricsScores", "testPassed"} & value.keys())


def _run(doc: Document) -> dict[str, Any]:
    """The run, which some versions wrap."""
    value = doc.first if doc.kind == "json" and isinstance(doc.first, dict) else {}
    wrapped = value.get("testRunData")
    return wrapped if isinstance(wrapped, dict) else value


def read(doc: Document, choices: Choices) -> Attempts | None:
    run = _run(doc)
    cases = [case for key in CASES for _, case in members(run.get(key) or [], "test case")]
    scores = [_scores(case, n) for n, case in enumerate(cases, 1)]
    names = sorted({name for found in scores for name in found})
    metric = choices.metric if choices.metric == PASSED else choose(choices.metric, names, "--metric", "metric")
    out = Attempts("deepeval", _model(run), text(run, "identifier"))
    attempts: dict[str, int] = {}
    for n, (case, item) in enumerate(zip(cases, _items(cases), strict=True), 1):
        attempts[item] = attempts.get(item, 0) + 1
        if metric == PASSED:
            score, failed = number(case.get(PASSED), PASSED, n), any(broken for _, broken in scores[n - 1].values())
        else:
            score, failed = scores[n - 1].get(metric, (None, False))
        out.add(item, None if failed else score, attempt=attempts[item], error=failed, line=n)
    return out


def _scores(case: dict[str, Any], line: int) -> dict[str, tuple[float | None, bool]]:
    """Metric -> its score, and whether computing it failed."""
    found: dict[str, tuple[float | None, bool]] = {}
    for _, metric in members(case.get("metricsData") or [], f"{place(line)}metric"):
        name = identifier(metric.get("name"), "a metric's name", line)
        if name in found:
            raise InputError(f"{place(line)}metric '{name}' stands twice")
        score = number(metric.get("score"), f"the score of {name}", line)
        found[name] = score, score is None and bool(metric.get("error"))
    return found


def _model(run: dict[str, Any]) -> str | None:
    value = inner(run, "hyperparameters").get("model")
    return value if isinstance(value, str) and value else None


def _items(cases: list[dict[str, Any]]) -> list[str]:
    """Test cases by name; those that share a name, by what was asked too. Repeats of one are its attempts."""
    names = [identifier(case.get("name"), "a test case's name", n) for n, case in enumerate(cases, 1)]
    asked = [canonical([c.get(k) for k in ("input", "scenario")], "input", n) for n, c in enumerate(cases, 1)]
    inputs: dict[str, set[str]] = {}
    for name, said in zip(names, asked, strict=True):
        inputs.setdefault(name, set()).add(said)
    return [n if len(inputs[n]) == 1 else f"{n} {digest(said)}" for n, said in zip(names, asked, strict=True)]
