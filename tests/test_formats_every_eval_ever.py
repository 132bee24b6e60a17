"""Samples of Every Eval Ever: one line a sample and metric."""

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


def sample(item: Any = "gsm8k_1", score: Any = 1.0, name: Any = "gsm8k", **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.3.0", "evaluation_id": "gsm8k/org_m/1", "model_id": "org/m", "evaluation_name": name,
        "sample_id": item, "interaction_type": "single_turn", "input": {"raw": "..", "reference": ["4"]},
        "output": {"raw": ["4"]}, "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1.0}, "metadata": {"epoch": "1"},
    } | more  # fmt: skip


class TestRead:
    def test_epochs_are_attempts(self, tmp_path: Path) -> None:
        rows = [sample(), sample(score=0.0, metadata={"epoch": "2"}), sample("gsm8k_2", 0.5)]
        path = write(tmp_path / "u_samples.jsonl", rows)
        got = attempts(path)
        assert reader(path) == "every_eval_ever" and scores(got) == {"gsm8k_1": [1.0, 0.0], "gsm8k_2": [0.5]}
        assert got and got.numbers == ["1", "2", "1"] and set(got.models) == {"org/m"}
        assert (got.task, got.settings) == ("gsm8k", "gsm8k/org_m/1")

    def test_without_epochs(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "a.jsonl", [sample(metadata=None), sample("b", metadata={"subject": "x"})]))
        assert got and got.numbers == [None, None]

    def test_one_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [sample()])
        assert reader(path) == "every_eval_ever" and scores(attempts(path)) == {"gsm8k_1": [1.0]}

    def test_several_evaluations_must_be_chosen(self, tmp_path: Path) -> None:
        rows = [sample(name="gsm8k/strict-match", score=0.0), sample(name="gsm8k/flexible-extract")]
        path = write(tmp_path / "a.jsonl", rows)
        with pytest.raises(
            InputError,
            match=r"several metrics \(gsm8k/flexible-extract, gsm8k/strict-match\): choose one with --metric",
        ):
            attempts(path)
        got = attempts(path, metric="gsm8k/strict-match")
        assert scores(got) == {"gsm8k_1": [0.0]} and got and got.task == "gsm8k/strict-match"

    def test_results_of_one_evaluation_too(self, tmp_path: Path) -> None:
        """A sample that several metrics score stands once for each, under one name and several results."""
        rows = [sample(evaluation_result_id="acc"), sample(evaluation_result_id="acc_norm", score=0.0)]
        path = write(tmp_path / "a.jsonl", rows)
        with pytest.raises(InputError, match=r"several metrics \(gsm8k:acc, gsm8k:acc_norm\)"):
            attempts(path)
        assert scores(attempts(path, metric="gsm8k:acc_norm")) == {"gsm8k_1": [0.0]}
        alone = write(tmp_path / "b.jsonl", rows[:1])
        assert scores(attempts(alone)) == scores(attempts(alone, metric="gsm8k")) == {"gsm8k_1": [1.0]}

    def test_a_failed_sample_belongs_to_every_result(self, tmp_path: Path) -> None:
        """As the converter of Inspect logs writes it: a line a metric, and one without a result."""
        rows = [sample(r, evaluation_result_id=m) for r in "ab" for m in ("acc", "f1")]
        rows += [sample("c", 0.0, evaluation_result_id=None, error="x")]
        path = write(tmp_path / "a.jsonl", rows)
        with pytest.raises(InputError, match=r"several metrics \(gsm8k:acc, gsm8k:f1\)"):
            attempts(path)
        for metric, name in (("gsm8k:acc", path), ("gsm8k", write(tmp_path / "b.jsonl", rows[::2]))):
            got = attempts(name, metric=metric)
            assert got and (got.items, got.errors) == (["a", "b", "c"], [False, False, True])
        got = attempts(tmp_path / "b.jsonl", metric="gsm8k:acc")  # the same choice for files with more results
        assert got and got.items == ["a", "b", "c"]
        unscored = [*rows, sample("d", 0.0, evaluation_result_id=None)]
        with pytest.raises(InputError, match=r"several metrics \(gsm8k:acc, gsm8k:f1, gsm8k:none\)"):
            attempts(write(tmp_path / "c.jsonl", unscored))
        failed = attempts(write(tmp_path / "d.jsonl", rows[-1:]))
        assert failed and failed.errors == [True]

    def test_errors(self, sh: Shell) -> None:
        write(sh.folder / "a.jsonl", [sample(), sample("b", 0.0, error="timeout")])
        assert "1 of 2 attempts ended in an error (the first in row 2)" in sh("bk-matrix a.jsonl", rc=2).err
        got = json.loads(sh("bk-matrix a.jsonl --errors drop -t json").out)["responses"]
        assert [r["item"] for r in got] == ["gsm8k_1"]

    def test_the_aggregate_beside_the_samples(self, sh: Shell) -> None:
        aggregate = {"schema_version": "0.3.0", "evaluation_id": "gsm8k/org_m/1", "evaluation_results": [],
                     "model_info": {}, "source_metadata": {}}  # fmt: skip
        write(sh.folder / "data" / "u.json", aggregate)
        write(sh.folder / "data" / "u_samples.jsonl", [sample()])
        done = sh("bk-matrix data -t json")
        assert len(json.loads(done.out)["responses"]) == 1 and done.err == ""


class TestHostile:
    @pytest.mark.parametrize(
        ("wrong", "said"),
        (
            ({"sample_id": 0.5}, "row 2: sample_id is 0.5"),
            ({"model_id": None}, "row 2: model_id is null"),
            ({"evaluation": 1.0}, "row 2: evaluation is a number, not an object"),
            ({"evaluation": {"score": "1"}}, 'row 2: score is "1", which is no score'),
            ({"metadata": []}, "row 2: metadata is a list, not an object"),
            ({"metadata": {"epoch": {}}}, "row 2: attempt is {}"),
            ({"evaluation_name": []}, r"row 2: evaluation_name is \[\]"),
            ({"error": True}, "row 2: error is a flag, not a text"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.jsonl", [sample(), sample("b") | wrong]))

    def test_a_line_of_something_else(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="row 2: lacks evaluation, evaluation_id, evaluation_name"):
            attempts(write(tmp_path / "a.jsonl", [sample(), {"model_id": "m", "sample_id": "x", "schema_version": ""}]))

    @settings(max_examples=100)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        rows = data.draw(damaged([sample(), sample("b", 0.0, error="x"), sample("c", evaluation_result_id=None)]))
        path = write(tmp_path_factory.mktemp("e") / "a.json", rows)
        survives(path, errors="drop", unscored="wrong", duplicates="last")
