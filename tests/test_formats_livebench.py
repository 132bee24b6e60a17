"""Judgments of LiveBench: the latest grading counts, failed evaluations are kept apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import DATA, Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

REAL = DATA / "native" / "livebench" / "ground_truth_judgment.jsonl"


def row(item: str = "q1", score: Any = 1, at: Any = 1.0, model: str = "m", **more: Any) -> dict[str, Any]:
    return {"question_id": item, "task": "zebra_puzzle", "model": model, "score": score, "tstamp": at,
            "category": "reasoning", "answer_id": "x"} | more  # fmt: skip


class TestReal:
    def test_forty_questions_with_partial_credit(self, sh: Shell) -> None:
        got = json.loads(sh(f"bk-matrix {REAL} -t json").out)
        lines = [json.loads(line) for line in REAL.read_text().splitlines()]
        assert {r["item"]: r["correct"] for r in got["responses"]} == {r["question_id"]: r["score"] for r in lines}
        assert {r["model"] for r in got["responses"]} == {"zft-community-8b-bs4"} and len(got["responses"]) == 40
        assert got["sources"][0]["format"] == "livebench" and "skipped" not in got["sources"][0]


class TestRead:
    def test_the_latest_grading_counts_wherever_it_stands(self, tmp_path: Path) -> None:
        rows = [
            row(score=0.5, at=2),
            row(score=0, at=1),
            row("q2", 0, 1),
            row(model="n", score=0, at=3),
            row("q2", 1, 1),
        ]
        got = attempts(write(tmp_path / "a.jsonl", rows))
        assert got and list(zip(got.models, got.items, got.scores, got.lines, strict=True)) == [
            ("m", "q1", 0.5, 1), ("m", "q2", 1.0, 5), ("n", "q1", 0.0, 4),
        ]  # fmt: skip
        assert got.skipped == {"earlier grading": 2}

    def test_failed_evaluations(self, tmp_path: Path) -> None:
        rows = [
            row("a", 0, eval_status="eval_error", error_msg="x"), row("b", 0, eval_status="ok"), row("c", 0, error="x"),
            row("d", 1, eval_status="eval_error", at=1), row("d", 1, at=2),
        ]  # fmt: skip
        got = attempts(write(tmp_path / "a.jsonl", rows))
        assert got and got.errors == [True, False, True, False]

    def test_parquet(self, tmp_path: Path) -> None:
        """As the judgments of all models are published."""
        rows = [row(score=0, at=1.0), row(score=0.5, at=2.0), row("q2", -1.0, 1.0, model="n")]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
        got = attempts(tmp_path / "a.parquet")
        assert got and (got.models, got.items, got.scores) == (["m", "n"], ["q1", "q2"], [0.5, None])
        assert got.skipped == {"earlier grading": 1} and got.format == "livebench"

    def test_minus_one_is_no_score(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / "a.jsonl", [row(score=-1), row("q2")]))) == {"q1": [None], "q2": [1.0]}

    def test_one_line_and_a_list(self, tmp_path: Path) -> None:
        for name, document in (("a.jsonl", [row()]), ("a.json", [row()]), ("b.json", row())):
            path = write(tmp_path / name, document)
            assert reader(path) == "livebench" and scores(attempts(path)) == {"q1": [1.0]}

    def test_files_around_the_judgments(self, sh: Shell) -> None:
        folder = sh.folder / "live_bench" / "simplify"
        strict = {"follow_all_instructions": False, "follow_instruction_list": [False], "instruction_id_list": ["a"],
                  "prompt": "", "question_id": "q1", "response": ""}  # fmt: skip
        alone = write(folder / "other" / "m_strict.jsonl", [strict] * 2)
        assert reader(alone) is None
        alone.unlink()
        write(folder / "model_judgment" / "ground_truth_judgment.jsonl", [row(), row("q2", 0)])
        write(folder / "model_judgment" / "m_strict.jsonl", [strict] * 2)
        question = {"question_id": "q1", "category": "math", "task": "simplify", "turns": ["?"], "ground_truth": "1"}
        assert reader(write(folder.parent / "a.jsonl", [question | {"model": "m", "score": 1}])) is None
        (folder.parent / "a.jsonl").unlink()
        write(folder / "question.jsonl", [question, question | {"question_id": "q2"}])
        answer = {"question_id": "q1", "answer_id": "x", "model_id": "m", "choices": [], "tstamp": 1.0}
        write(folder / "model_answer" / "m.jsonl", [answer, answer | {"question_id": "q2"}])
        got = sh("bk-matrix live_bench --to csv")
        assert got.out.splitlines()[1:] == [b"m,q1,1,1,", b"m,q2,1,0,"] and not got.err


class TestHostile:
    @pytest.mark.parametrize(
        ("wrong", "said"),
        (
            ({"tstamp": "yesterday"}, "row 2: tstamp is no time"),
            ({"tstamp": float("nan")}, "row 2: tstamp is no time"),
            ({"score": "1"}, 'row 2: score is "1", which is no score'),
            ({"question_id": None}, "row 2: question_id is null, which is no identifier"),
            ({"model": ["m"]}, r'row 2: model is \["m"\], which is no identifier'),
            ({"eval_status": 3}, "row 2: eval_status is a number, not a text"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.jsonl", [row(), row() | wrong]))

    def test_a_score_above_one(self, sh: Shell) -> None:
        write(sh.folder / "a.jsonl", [row(), row("q2", 20)])
        assert "row 2: score ('20.0') is outside [0,1]" in sh("bk-matrix a.jsonl", rc=2).err

    def test_a_cut_line(self, sh: Shell) -> None:
        (sh.folder / "a.jsonl").write_text(json.dumps(row()) + "\n" + json.dumps(row("q2"))[:40])
        assert sh("bk-matrix a.jsonl", rc=2).err.startswith("bk-matrix: a.jsonl: line 2: damaged or cut JSON")

    @settings(max_examples=100)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        rows = data.draw(damaged([row(), row("q2", eval_status="eval_error"), row(at=2)]))
        path = tmp_path_factory.mktemp("l") / "a.json"
        survives(write(path, rows), errors="drop", unscored="wrong")
