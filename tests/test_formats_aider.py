"""Results of Aider's benchmark in the layout of its benchmark/benchmark.py; the values are invented."""

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

NAME = ".aider.results.json"


def result(*outcomes: Any, case: str = "bowling", language: str = "python", **more: Any) -> dict[str, Any]:
    return {"testdir": f"/benchmarks/run/{language}/exercises/practice/{case}", "testcase": case, "model": "gpt-x",
            "edit_format": "diff", "tests_outcomes": list(outcomes), "cost": 0.1} | more  # fmt: skip


class TestTries:
    @pytest.mark.parametrize(
        ("outcomes", "first", "second"),
        [([True], 1, 1), ([False, True], 0, 1), ([False, False], 0, 0), ([False], 0, 0)],
    )
    def test_one_of_the_first_k(self, tmp_path: Path, outcomes: list[bool], first: float, second: float) -> None:
        path = write(tmp_path / NAME, result(*outcomes))
        assert scores(attempts(path, metric="pass_rate_1")) == {"python/bowling": [first]}
        assert scores(attempts(path, metric="pass_rate_2")) == {"python/bowling": [second]}
        if first == second:
            assert scores(attempts(path)) == {"python/bowling": [first]}

    def test_where_they_differ_one_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / NAME, result(False, True))
        with pytest.raises(InputError, match=r"several metrics \(pass_rate_1, pass_rate_2\): choose one with --metric"):
            attempts(path)
        with pytest.raises(InputError, match=r"no metric 'pass_rate_3' \(found: pass_rate_1, pass_rate_2\)"):
            attempts(path, metric="pass_rate_3")
        with pytest.raises(InputError, match=r"no metric 'cost' \(found: pass_rate_1\)"):
            attempts(write(tmp_path / NAME, result(True)), metric="cost")

    def test_no_tests_no_score(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / NAME, result()))) == {"python/bowling": [None]}


class TestNames:
    def test_one_exercise_in_two_languages_is_two_items(self, sh: Shell) -> None:
        for language, passed in (("python", True), ("rust", False)):
            folder = sh.folder / "run" / language / "exercises" / "practice" / "bowling"
            write(folder / NAME, result(passed, language=language))
        got = json.loads(sh(f"bk-matrix run/*/exercises/practice/*/{NAME} -t json").out)["responses"]
        assert [(r["model"], r["item"], r["correct"]) for r in got] == [
            ("gpt-x", "python/bowling", 1), ("gpt-x", "rust/bowling", 0),
        ]  # fmt: skip

    def test_older_runs_have_one_language(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "run" / "bowling" / NAME, result(True, testdir="tmp.benchmarks/run/bowling")))
        assert got and (got.items, got.folder, got.settings) == (["bowling"], str(tmp_path / "run"), "edit_format=diff")

    def test_an_exception_is_known_by_its_folder(self, tmp_path: Path) -> None:
        path = tmp_path / "run" / "rust" / "exercises" / "practice" / "bowling" / NAME
        got = attempts(write(path, {"exception": "No config file found"}))
        assert got and (got.items, got.errors, got.model) == (["rust/bowling"], [True], None)
        assert got.folder == str(tmp_path / "run")
        assert reader(write(tmp_path / "other.json", {"exception": "x"})) is None


@pytest.mark.parametrize(
    ("document", "said"),
    [(result() | {"tests_outcomes": "x"}, "tests_outcomes is a text, not a list"),
     (result(1), "tests_outcomes are no flags"), (result(True, testcase=None), "testcase is null")],
)  # fmt: skip
def test_one_clear_line(tmp_path: Path, document: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        attempts(write(tmp_path / NAME, document))


@settings(max_examples=100)
@given(st.data())
def test_damaged(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    path = tmp_path_factory.mktemp("aider") / NAME
    survives(write(path, data.draw(damaged(result(False, True)))), metric="pass_rate_2", unscored="drop")
