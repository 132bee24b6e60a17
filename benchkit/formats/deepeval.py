"""Test runs of DeepEval: a score a test case and metric; and what evaluate() returned, saved as JSON.

The model is recorded only where the run's hyperparameters name it.

Source: deepeval/test_run/{test_run,api}.py of 0.20 to 4.3, deepeval/evaluate/types.py.
"""

from __future__ import annotations

from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import canonical, digest, inner, members, place, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number

NAME = "DeepEval test runs (test_run_*.json, .latest_run_full.json)"

CASES = ("testCases", "conversationalTestCases", "test_results")
METRICS = ("metricsData", "metricsMetadata", "metrics_data")
"""Of a run, of one before version 1, of a result of evaluate()."""
PASSED = "success"
LINK = "testRunLink"  # .latest_test_run.json of a run that was uploaded holds nothing else


def sniff(doc: Document) -> bool:
    value = _run(doc)
    if value.keys() == {LINK}:
        return True
    results = value.get("test_results")
    if isinstance(results, list) and results:
        return isinstance(results[0], dict) and {"name", "success", "metrics_data"} <= results[0].keys()
    return isinstance(value.get("testCases"), list) and bool(
        {"metricsScores", "metricScores", "testPassed"} & value.keys()
    )


def _run(doc: Document) -> dict[str, Any]:
    """The run, which some versions wrap."""
    value = doc.first if doc.kind == "json" and isinstance(doc.first, dict) else {}
    wrapped = value.get("testRunData")
    return wrapped if isinstance(wrapped, dict) else value


def read(doc: Document, choices: Choices) -> Attempts | None:
    run = _run(doc)
    if run.keys() == {LINK}:
        raise InputError("only a link to the run: its scores are in .latest_run_full.json")
    cases = [case for key in CASES for _, case in members(run.get(key) or [], "test case")]
    scores = [_scores(case, n) for n, case in enumerate(cases, 1)]
    names = sorted({name for found in scores for name in found})
    if not names and choices.metric is None:
        raise InputError("no metric found, only the verdict of a whole case: choose it with --metric success")
    metric = choices.metric if choices.metric == PASSED else choose(choices.metric, names, "--metric", "metric")
    out = Attempts("deepeval", _model(run), text(run, "identifier"))
    attempts: dict[str, int] = {}
    for n, (case, item) in enumerate(zip(cases, _items(cases), strict=True), 1):
        attempts[item] = attempts.get(item, 0) + 1
        if metric == PASSED:
            broken = any(one[1] for found in scores[n - 1].values() for one in found)
            score, failed = number(case.get(PASSED), PASSED, n), broken
        else:
            found = scores[n - 1].get(metric, [(None, False)])
            if len(found) > 1:
                raise InputError(f"{place(n)}metric '{metric}' stands twice: choose another one, or success")
            score, failed = found[0]
        out.add(item, None if failed else score, attempt=attempts[item], error=failed, line=n)
    return out


def _scores(case: dict[str, Any], line: int) -> dict[str, list[tuple[float | None, bool]]]:
    """Metric -> its score, and whether computing it failed; several where metrics of a case share a name."""
    found: dict[str, list[tuple[float | None, bool]]] = {}
    given: Any = next((case[key] for key in METRICS if case.get(key) is not None), [])
    for _, metric in members(given, f"{place(line)}metric"):
        name = identifier(metric.get("name", metric.get("metric")), "a metric's name", line)
        score = number(metric.get("score"), f"the score of {name}", line)
        found.setdefault(name, []).append((score, score is None and bool(metric.get("error"))))
    return found


def _model(run: dict[str, Any]) -> str | None:
    value = inner(run, "hyperparameters").get("model") or run.get("model")
    return value if isinstance(value, str) and value else None


def _items(cases: list[dict[str, Any]]) -> list[str]:
    """Test cases by name; those that share a name, by what was asked too. Repeats of one are its attempts."""
    names = [identifier(case.get("name"), "a test case's name", n) for n, case in enumerate(cases, 1)]
    asked = [canonical([c.get(k) for k in ("input", "scenario")], "input", n) for n, c in enumerate(cases, 1)]
    inputs: dict[str, set[str]] = {}
    for name, said in zip(names, asked, strict=True):
        inputs.setdefault(name, set()).add(said)
    return [n if len(inputs[n]) == 1 else f"{n} {digest(said)}" for n, said in zip(names, asked, strict=True)]
