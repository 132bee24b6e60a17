"""Results of MultiPL-E, in the layout that its evaluation/src/main.py writes; the values are invented."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from hypothesis import given
from native_files import attempts, damaged, scores, survives, write

from benchkit.errors import InputError


def result(status: Any = "OK", code: Any = 0) -> dict[str, Any]:
    return {"program": "", "timestamp": 1, "stdout": "", "stderr": "", "exit_code": code, "status": status}


def problem(*results: dict[str, Any], language: Any = "lua", **more: Any) -> dict[str, Any]:
    return {"name": "HumanEval_0_has", "language": language, "temperature": 0.2, "top_p": 0.95, "prompt": "",
            "tests": "", "stop_tokens": []} | ({"results": list(results)} if results else {}) | more  # fmt: skip


class TestResults:
    def test_a_program_that_exits_with_0_is_right(self, tmp_path: Path) -> None:
        path = tmp_path / "humaneval-lua-m-0.2" / "HumanEval_0_has.results.json"
        rows = [result(), result("Exception", 1), result("Timeout", -1), result("OK", 1), {}]
        found = attempts(write(path, problem(*rows)))
        assert found and scores(found) == {"HumanEval_0_has": [1, 0, 0, 0, None]}
        assert found.numbers == ["0", "1", "2", "3", "4"] and found.unfinished is None
        assert (found.model, found.task, found.settings) == (None, "lua", "temperature=0.2")

    def test_folders_are_models_and_languages_tasks(self, sh: Shell) -> None:
        for folder, language in (("lua-m-0.2", "lua"), ("lua-n-0.2", "lua"), ("rkt-m-0.2", "rkt")):
            path = write(sh.folder / folder / "a", problem(result(), language=language))
            path.with_name("HumanEval_0_has.results.json.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        assert "several tasks (lua, rkt)" in sh("bk-matrix . --model-from path", rc=2).err
        got = json.loads(sh("bk-matrix . --model-from path --task lua -t json").out)["responses"]
        assert [(r["model"], r["correct"]) for r in got] == [("lua-m-0.2", 1), ("lua-n-0.2", 1)]

    def test_completions_that_were_not_run_are_told(self, tmp_path: Path) -> None:
        """With --stop-on-success the first that is right is the last that is run."""
        beside = write(tmp_path / "HumanEval_0_has.json", problem(completions=["", "", ""]))
        assert attempts(beside) is None
        found = attempts(write(tmp_path / "HumanEval_0_has.results.json", problem(result("Exception", 1), result())))
        assert found and found.unfinished == "2 of 3 completions"

    @pytest.mark.parametrize(
        ("row", "said"),
        (
            (result(code="0"), "row 1: exit_code is a text, not a number"),
            (result(3), "row 1: status is a number, not a text"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, row: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.results.json", problem(row)))


@given(damaged(problem(result(), result("Exception", 1))))
def test_damaged(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    survives(write(tmp_path_factory.mktemp("mpe") / "a.results.json", document), unscored="drop")
