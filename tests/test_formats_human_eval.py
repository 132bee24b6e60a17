"""Results of human-eval: the sample with its result, a line each, as human_eval/evaluation.py writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from hypothesis import given
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError


def row(task: int, passed: bool | None, result: str = "passed", **more: Any) -> dict[str, Any]:
    return {"task_id": f"HumanEval/{task}", "completion": "    return 1\n", "result": result, "passed": passed} | more


ROWS = [row(0, True), row(0, False, "failed: "), row(1, False, "timed out"), row(0, True)]


class TestResults:
    def test_completions_are_attempts_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        found = attempts(write(tmp_path / "samples_results.jsonl", ROWS))
        assert scores(found) == {"HumanEval/0": [1, 0, 1], "HumanEval/1": [0]}
        assert found and (found.numbers, found.model) == (["0", "1", "0", "2"], None)
        assert not any(found.errors)

    def test_a_model_that_the_samples_named(self, tmp_path: Path) -> None:
        rows = [row(0, True, model="a"), row(0, None, model="b")]
        found = attempts(write(tmp_path / "a.jsonl", rows))
        assert found and (found.models, found.numbers, found.scores) == (["a", "b"], ["0", "0"], [1, None])

    @pytest.mark.parametrize("name", ("score", "correct", "trial"))
    def test_rows_with_other_known_columns_are_a_table(self, tmp_path: Path, name: str) -> None:
        assert reader(write(tmp_path / "a.jsonl", [row(0, True, **{name: 1})] * 2)) is None

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [({"passed": 1}, "row 2: passed is a number, not a flag"), ({"task_id": None}, "row 2: task_id is null")],
    )
    def test_refused(self, tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.jsonl", [row(0, True), row(0, True) | wrong]))
        with pytest.raises(InputError, match="row 2: lacks passed"):
            attempts(
                write(tmp_path / "b.jsonl", [row(0, True), {k: v for k, v in row(0, True).items() if k != "passed"}])
            )

    def test_command(self, sh: Shell, tmp_path: Path) -> None:
        write(tmp_path / "m_results.jsonl", ROWS)
        got = sh("bk-matrix --model m m_results.jsonl -t csv").out.decode().split()
        assert got[1:] == ["m,HumanEval/0,3,2,", "m,HumanEval/1,1,0,"]


@given(damaged(ROWS[:2]))
def test_damaged(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    if isinstance(document, list):
        survives(write(tmp_path_factory.mktemp("human") / "a.jsonl", document))


def test_humaneval_x(tmp_path: Path) -> None:
    """As they came back: their numbers are written (codegeex/benchmark/execution.py)."""
    rows = [{"task_id": "CPP/0", "completion_id": k, "test_code": "", "prompt": "", "generation": "", "result": "",
             "passed": k == 2, "finish": -1, "file": ""} for k in (2, 0)]  # fmt: skip
    found = attempts(write(tmp_path / "a_results.jsonl", rows))
    assert found and (found.items, found.numbers, found.scores) == (["CPP/0"] * 2, ["2", "0"], [1, 0])
