"""Test runs of DeepEval: test cases by name, scores by metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError


def metric(name: Any = "Relevancy", score: Any = 0.8, **more: Any) -> dict[str, Any]:
    return {"name": name, "threshold": 0.5, "success": True, "score": score, "strictMode": False} | more


def case(name: Any, *metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "input": "..", "actualOutput": "..", "success": True, "order": 0,
            "metricsData": list(metrics)} | more  # fmt: skip


def run(*cases: Any, **more: Any) -> dict[str, Any]:
    return {
        "testFile": None, "identifier": "run-a", "hyperparameters": {"model": "gpt-x"}, "testCases": list(cases),
        "conversationalTestCases": [], "metricsScores": [], "testPassed": 1, "testFailed": 0, "runDuration": 1.0,
    } | more  # fmt: skip


class TestCases:
    def test_by_name(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", run(case("case_0", metric()), case("case_1", metric(score=1))))
        got = attempts(path)
        assert reader(path) == "deepeval" and scores(got) == {"case_0": [0.8], "case_1": [1.0]}
        assert got and (got.model, got.settings) == ("gpt-x", "run-a")

    def test_repeats_of_a_case_are_attempts(self, tmp_path: Path) -> None:
        rows = [case("a", metric(score=s), order=k) for k, s in enumerate((1, 0))]
        got = attempts(write(tmp_path / "a.json", run(*rows)))
        assert scores(got) == {"a": [1.0, 0.0]} and got and got.numbers == ["1", "2"]

    def test_cases_of_one_name_that_ask_other_things(self, tmp_path: Path) -> None:
        """A test function with parameters gives all its cases one name."""
        rows = [case("a", metric(score=s), input=q) for q, s in (("x", 1), ("y", 0), ("x", 0))] + [case("b", metric())]
        got = scores(attempts(write(tmp_path / "a.json", run(*rows))))
        assert list(got.values()) == [[1.0, 0.0], [0.0], [0.8]]
        assert [i[:2] for i in got] == ["a ", "a ", "b"]

    def test_conversations(self, tmp_path: Path) -> None:
        talks = [case("talk", metric(score=0.5), scenario=s) for s in "xy"]
        got = scores(attempts(write(tmp_path / "a.json", run(conversationalTestCases=talks))))
        assert list(got.values()) == [[0.5], [0.5]]

    def test_wrapped(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", {"testRunData": run(case("a", metric())), "testRunLink": None})
        assert scores(attempts(path)) == {"a": [0.8]}

    @pytest.mark.parametrize("total", ("metricScores", "metricsScores"))  # of 0.20, of 0.21
    def test_before_version_1(self, tmp_path: Path, total: str) -> None:
        old = {k: v for k, v in metric().items() if k != "name"} | {"metric": "Relevancy"}
        one = case("a", metricsMetadata=[old])
        del one["metricsData"]
        path = write(tmp_path / "a.json", {"testCases": [one], "model": "gpt-z", total: []})
        got = attempts(path)
        assert reader(path) == "deepeval" and scores(got) == {"a": [0.8]} and got and got.model == "gpt-z"

    def test_what_evaluate_returned(self, tmp_path: Path) -> None:
        """model_dump() of its result: keys in snake case, no hyperparameters."""
        one = {"name": "a", "success": True, "metrics_data": [metric()], "conversational": False, "input": "x"}
        path = write(tmp_path / "a.json", {"test_results": [one], "confident_link": None})
        got = attempts(path)
        assert reader(path) == "deepeval" and scores(got) == {"a": [0.8]} and got and got.model is None
        assert reader(write(path, {"test_results": [{"name": "a", "success": True}]})) is None

    def test_the_identifier_is_no_model(self, sh: Shell) -> None:
        write(sh.folder / "a.json", run(case("a", metric()), hyperparameters=None))
        assert "the file records no model" in sh("bk-matrix a.json", rc=2).err
        assert json.loads(sh("bk-matrix a.json --model m -t json").out)["responses"][0]["model"] == "m"


class TestMetrics:
    def test_several_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", run(case("a", metric(), metric("Bias", 0.25)), case("b", metric())))
        with pytest.raises(InputError, match=r"several metrics \(Bias, Relevancy\): choose one with --metric"):
            attempts(path)
        assert scores(attempts(path, metric="Bias")) == {"a": [0.25], "b": [None]}

    def test_success_of_the_whole_case(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "a.json", run(case("a", metric(), metric("Bias", 0.25), success=False), case("b", metric()))
        )
        assert scores(attempts(path, metric="success")) == {"a": [0.0], "b": [1.0]}

    def test_metrics_of_one_name(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", run(case("a", metric("G", 1), metric("G", 0), metric())))
        with pytest.raises(InputError, match="row 1: metric 'G' stands twice: choose another one, or success"):
            attempts(path, metric="G")
        assert scores(attempts(path, metric="Relevancy")) == {"a": [0.8]}

    def test_a_metric_that_failed(self, tmp_path: Path) -> None:
        rows = [case("a", metric(score=None, success=False, error="429"), success=False), case("b", metric(score=None))]
        got = attempts(write(tmp_path / "a.json", run(*rows)))
        assert got and (got.errors, got.scores) == ([True, False], [None, None])
        got = attempts(tmp_path / "a.json", metric="success")
        assert got and (got.errors, got.scores) == ([True, False], [None, 1.0])


class TestHostile:
    @pytest.mark.parametrize(
        ("document", "said"),
        (
            (run(3), "test case 1 is a number, not an object"),
            (run(case(None, metric())), "row 1: a test case's name is null"),
            (run(case("a", metric(score="1"))), 'row 1: the score of Relevancy is "1", which is no score'),
            (run(case("a", metric(name=3.5))), "row 1: a metric's name is 3.5"),
            (run(case("a", metric(), metric())), "row 1: metric 'Relevancy' stands twice"),
            (run(case("a") | {"metricsData": {"x": 1}}), "row 1: metrics are an object, not a list"),
            (run(case("a", metric()), hyperparameters=[1]), "hyperparameters is a list, not an object"),
            (run(case("a")), "no metric found, only the verdict of a whole case: choose it with --metric success"),
            (run(), "no metric found"),
            ({"testRunLink": "https://x.invalid"}, "only a link to the run: its scores are in .latest_run_full.json"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, document: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", document))

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        document = data.draw(
            damaged(run(case("a", metric(), metric("Bias")), case("a", metric(score=None, error="x"))))
        )
        path = write(tmp_path_factory.mktemp("d") / "a.json", document)
        survives(path, metric="Relevancy", errors="wrong", unscored="drop")
        survives(path, metric="success", errors="drop", unscored="drop")
