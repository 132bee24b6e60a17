"""Scores of the Berkeley Function-Calling Leaderboard: what failed is listed, what was right is not.

The layouts are those of bfcl_eval's eval_runner.py; the values are invented.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from hypothesis import given
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

ITEMS = frozenset(f"simple_python_{n}" for n in range(4)) | {"live_simple_0-0-0", "live_simple_1-1-0"}


def failure(item: str, category: str = "simple_python", **more: Any) -> dict[str, Any]:
    return {"id": item, "model_name": "org_m", "test_category": category, "valid": False,
            "error": ["Wrong number of functions."], "error_type": "simple_function_checker:wrong_count",
            "prompt": {"id": item}, "model_result_raw": [], "possible_answer": []} | more  # fmt: skip


def counts(right: int, total: int) -> dict[str, Any]:
    return {"accuracy": right / total, "correct_count": right, "total_count": total}


def score(tmp_path: Path, rows: list[dict[str, Any]], category: str = "simple_python", group: str = "non_live") -> Path:
    path = tmp_path / "score" / "org_m" / group / f"BFCL_v4_{category}_score.json"
    write(path.with_suffix(".jsonl"), rows).rename(path)
    return path


class TestScores:
    def test_all_but_the_failures_were_right(self, tmp_path: Path) -> None:
        path = score(tmp_path, [counts(2, 4), failure("simple_python_1"), failure("simple_python_3")])
        with pytest.raises(InputError, match="right are in no line of this file: name all of them with --items FILE"):
            attempts(path)
        found = attempts(path, items=ITEMS)
        assert scores(found) == {"simple_python_0": [1], "simple_python_1": [0], "simple_python_2": [1],
                                 "simple_python_3": [0]}  # fmt: skip
        assert found and (found.model, found.folder) == ("org_m", str(tmp_path / "score" / "org_m"))

    @pytest.mark.parametrize(
        ("item", "category"),
        [("live_simple_23-5-1", "live_simple"), ("memory_kv_3-customer-7", "memory_kv"), ("simple_9", "simple"),
         ("format_sensitivity_0:ret_fmt=python&case=a:live_simple_23-5-1", "format_sensitivity")],
    )  # fmt: skip
    def test_the_category_begins_an_identifier(self, tmp_path: Path, item: str, category: str) -> None:
        path = score(tmp_path, [counts(0, 1), failure(item, category)], category)
        assert scores(attempts(path, items=frozenset({item, "x_1"}))) == {item: [0]}

    def test_without_a_failure_the_file_s_name_is_the_category(self, tmp_path: Path) -> None:
        for group in ("live", "."):  # before version 4 without groups
            path = score(tmp_path, [counts(2, 2)], "live_simple", group)
            found = attempts(path, items=ITEMS)
            assert found and scores(found) == {"live_simple_0-0-0": [1], "live_simple_1-1-0": [1]}
            assert (found.model, found.folder) == (None, str(tmp_path / "score" / "org_m"))
        assert reader(write(tmp_path / "counts.json", counts(1, 2))) is None

    def test_an_interface_that_raised_is_an_error(self, tmp_path: Path) -> None:
        """In several turns such an item stands twice, as raised and as ended by force."""
        raised = failure("simple_python_0", model_result="Error during inference: 500")
        del raised["model_result_raw"]
        rows = [counts(2, 4), raised, failure("simple_python_0"), failure("simple_python_1")]
        found = attempts(score(tmp_path, rows), items=ITEMS)
        assert found and found.errors == [True, False, False, False]
        assert scores(found)["simple_python_0"] == [0]

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ([counts(3, 4), failure("simple_python_0"), failure("simple_python_1")], "2 failures, but 3 of 4 were"),
            ([counts(2, 3), failure("simple_python_0")],
             "3 items of simple_python were tried, of 4 in --items: no line says which"),
            ([counts(4, 5), failure("simple_python_9")], "item 'simple_python_9' is not in --items"),
            ([counts(2, 4), failure("simple_python_0"), failure("live_simple_0-0-0", "live_simple")],
             r"failures of several categories \(live_simple, simple_python\)"),
            ([counts(2, 4), failure("simple_python_0"), failure("simple_python_1", valid=True)], "row 3: no failure"),
            ([counts(2, 4) | {"total_count": "4"}, failure("simple_python_0")], "is no whole number"),
        ],
    )  # fmt: skip
    def test_what_does_not_add_up_is_refused(self, tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(score(tmp_path, rows), items=ITEMS)

    def test_several_categories_and_models(self, sh: Shell, tmp_path: Path) -> None:
        """The items of all of them are one list; a model without a failure has the folder's name."""
        (tmp_path / "all.txt").write_text("\n".join(sorted(ITEMS)))
        score(tmp_path, [counts(3, 4), failure("simple_python_1")])
        score(tmp_path, [counts(2, 2)], "live_simple", "live")
        assert "records no model" in sh("bk-matrix --items all.txt score", rc=2).err
        got = sh("bk-matrix --items all.txt --model-from path --require-complete score -t csv").out.decode().split()
        assert got[1:3] == ["org_m,live_simple_0-0-0,1,1,", "org_m,live_simple_1-1-0,1,1,"] and len(got) == 7


@given(damaged([counts(1, 2), failure("live_simple_0-0-0", "live_simple")]))
def test_damaged(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    if isinstance(document, list):
        survives(score(tmp_path_factory.mktemp("bfcl"), document, "live_simple"), items=ITEMS)
