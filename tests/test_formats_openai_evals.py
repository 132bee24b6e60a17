"""Logs of OpenAI evals: which event of a sample is its score."""

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

SPEC = {
    "completion_fns": ["gpt-4"], "eval_name": "arith.dev.v0", "base_eval": "arith", "split": "dev",
    "run_config": {"seed": 1}, "created_by": "", "run_id": "2401", "created_at": "2026-01-01",
}  # fmt: skip


def event(n: int, sample: str, type: str, **data: Any) -> dict[str, Any]:
    return {"run_id": "2401", "event_id": n, "sample_id": sample, "type": type, "data": data, "created_by": "",
            "created_at": ""}  # fmt: skip


LOG = [
    {"spec": SPEC},
    {"final_report": {"accuracy": 0.5}},
    event(0, "arith.dev.0", "sampling", prompt="2+2", sampled=["4"]),
    event(1, "arith.dev.0", "match", correct=True, expected="4", picked="4"),
    event(2, "arith.dev.1", "raw_sample", input=""),
    event(3, "arith.dev.1", "match", correct=False, expected="5", picked=None),
]
METRICS = [
    {"spec": SPEC},
    event(0, "a", "metrics", score=0.5, accuracy=True, choice="B"),
    event(1, "b", "metrics", score=None, accuracy=False, choice="C"),
]


class TestScores:
    def test_match_events(self, sh: Shell) -> None:
        write(sh.folder / "log.jsonl", LOG)
        got = json.loads(sh("bk-matrix log.jsonl -t json").out)["responses"]
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got] == [
            ("gpt-4", "arith.dev.0", 1, 1),
            ("gpt-4", "arith.dev.1", 1, 0),
        ]

    def test_metrics_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", METRICS)
        with pytest.raises(InputError, match=r"several metrics \(accuracy, score\): choose one with --metric"):
            attempts(path)
        assert scores(attempts(path, metric="accuracy")) == {"a": [1.0], "b": [0.0]}
        assert scores(attempts(path, metric="score")) == {"a": [0.5], "b": [None]}
        with pytest.raises(InputError, match=r"no metric 'choice' \(found: accuracy, score\)"):
            attempts(path, metric="choice")

    def test_choices_of_a_grader_without_scores(self, tmp_path: Path) -> None:
        rows = [{"spec": SPEC}, *[event(n, str(n), "metrics", choice=c, score=None) for n, c in enumerate("BAB")]]
        with pytest.raises(InputError, match=r"no scores, only choices of a grader \(A, B\)"):
            attempts(write(tmp_path / "a.jsonl", rows))
        rows += [event(9, "9", "metrics", choice="A", score=None, metascore=True)]
        with pytest.raises(InputError, match=r"several metrics \(metascore, score\)"):
            attempts(write(tmp_path / "b.jsonl", rows))

    def test_match_before_metrics(self, tmp_path: Path) -> None:
        rows = [*LOG, *[event(9 + k, f"arith.dev.{k}", "metrics", f1=0.25) for k in range(2)]]
        path = write(tmp_path / "a.jsonl", rows)
        for metric in (None, "match"):
            assert scores(attempts(path, metric=metric)) == {"arith.dev.0": [1.0], "arith.dev.1": [0.0]}
        assert scores(attempts(path, metric="f1")) == {"arith.dev.0": [0.25], "arith.dev.1": [0.25]}

    def test_a_run_without_a_final_report_did_not_end(self, sh: Shell) -> None:
        found = attempts(write(sh.folder / "a.jsonl", LOG))
        assert found and found.unfinished is None
        write(sh.folder / "b.jsonl", [row for row in LOG if "final_report" not in row])
        assert "1 run did not end: b.jsonl (no final report, 2 samples)" in sh("bk-matrix b.jsonl -t csv").err

    def test_samples_without_a_score(self, sh: Shell) -> None:
        rows = [
            *LOG,
            event(4, "c", "sampling", sampled=""),
            event(5, "d", "sampling"),
            event(6, "d", "error", message="x"),
        ]
        rows += [event(7, "arith.dev.0", "error", message="was tried again")]
        path = write(sh.folder / "a.jsonl", rows)
        got = attempts(path)
        assert scores(got) == {"arith.dev.0": [1.0], "arith.dev.1": [0.0], "c": [None], "d": [None]}
        assert got is not None and got.errors == [False, False, False, True]
        assert "1 of 4 attempts ended in an error (the first in row 8)" in sh("bk-matrix a.jsonl", rc=2).err
        assert "1 of 3 attempts have no score (row 7)" in sh("bk-matrix a.jsonl --errors drop", rc=2).err

    def test_two_scores_of_a_sample(self, sh: Shell) -> None:
        write(sh.folder / "a.jsonl", [*LOG, event(4, "arith.dev.0", "match", correct=False)])
        assert "rows 4 and 7: model 'gpt-4', item 'arith.dev.0' stand twice" in sh("bk-matrix a.jsonl", rc=2).err
        got = json.loads(sh("bk-matrix a.jsonl --duplicates attempt -t json").out)["responses"]
        assert [(r["attempts"], r["correct"]) for r in got] == [(2, 1), (1, 0)]


class TestModel:
    @pytest.mark.parametrize(
        ("spec", "want"),
        (
            ({"completion_fns": ["gpt-4"]}, "gpt-4"),
            ({"completion_fns": ["gpt-3.5-turbo", "gpt-4"]}, "gpt-3.5-turbo,gpt-4"),
            ({"eval_name": "e", "model_names": {"completions": ["davinci"]}, "model_name": "x"}, "davinci"),
            ({"eval_name": "e", "model_name": "davinci"}, "davinci"),
            ({"eval_name": "e"}, None),
        ),
    )
    def test_names(self, tmp_path: Path, spec: Any, want: str | None) -> None:
        got = attempts(write(tmp_path / "a.jsonl", [{"spec": spec}, *LOG[2:]]))
        assert got is not None and got.model == want

    def test_runs_of_one_model_are_told_apart_by_their_run(self, sh: Shell) -> None:
        for run in ("r1", "r2"):
            write(sh.folder / f"{run}.jsonl", [{"spec": SPEC | {"run_id": run}}, *LOG[1:]])
        got = json.loads(sh("bk-matrix . -t json").out)["responses"]
        assert {r["model"] for r in got} == {"gpt-4 (run r1)", "gpt-4 (run r2)"}

    def test_two_runs_in_one_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="2 runs in one file"):
            attempts(write(tmp_path / "a.jsonl", [*LOG, *LOG]))

    def test_a_log_without_its_specification(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", LOG[2:])
        got = attempts(path)
        assert reader(path) == "openai_evals" and got is not None and got.model is None


class TestHostile:
    @pytest.mark.parametrize(
        ("rows", "said"),
        (
            ([*LOG, {"a": 1}], "row 7: sample_id is null, which is no identifier"),
            ([*LOG, event(9, "x", "match", correct="yes")], 'row 7: correct is "yes", which is no score'),
            ([*LOG, event(9, "x", "match") | {"data": 3}], "row 7: data is a number, not an object"),
            ([*LOG, event(9, "x", "match") | {"type": []}], "row 7: type is a list, not a text"),
            ([{"spec": SPEC | {"completion_fns": [3]}}, *LOG[2:]], "completion_fns is a list, not a list of models"),
            ([{"spec": SPEC | {"completion_fns": {"a": 1}}}, *LOG[2:]], "completion_fns is an object, not a list"),
        ),
    )  # fmt: skip
    def test_one_clear_line(self, tmp_path: Path, rows: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.jsonl", rows))

    def test_a_cut_log(self, sh: Shell) -> None:
        text = write(sh.folder / "a.jsonl", LOG).read_text()
        (sh.folder / "a.jsonl").write_text(text[:-30])
        assert "line 6: damaged or cut JSON" in sh("bk-matrix a.jsonl", rc=2).err
        (sh.folder / "a.jsonl").write_text(text.splitlines()[0] + "\n")  # the run had only begun
        assert sh("bk-matrix a.jsonl", rc=2).err == "bk-matrix: a.jsonl: no rows\n"

    def test_rows_of_others_are_not(self, tmp_path: Path) -> None:
        for row in ({"run_id": "r", "sample_id": "a", "score": 1}, {"spec": {"name": "x"}}, {"spec": "x"}):
            assert reader(write(tmp_path / "a.jsonl", [row, row])) != "openai_evals"

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged_logs(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        rows = data.draw(damaged(data.draw(st.sampled_from((LOG, METRICS)))))
        if isinstance(rows, list):
            path = write(tmp_path_factory.mktemp("oe") / "a.jsonl", rows)
            metric = data.draw(st.sampled_from((None, "score")))
            survives(path, metric=metric, unscored="drop", errors="drop", duplicates="first")
