"""What bk-matrix says of the sources it read: each status by its own count, and what was left out, with reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Shell
from native_files import LONG, attempts, write

from benchkit.errors import InputError
from benchkit.formats import Choices, long, registry
from benchkit.formats.merge import merge
from benchkit.formats.native import look, tabular


def inspect(*samples: dict[str, Any], status: str = "success") -> dict[str, Any]:
    about = {"task": "gsm8k", "model": "m", "task_id": "T"}
    return {"version": 2, "status": status, "eval": about, "plan": {}, "samples": list(samples)}


def sample(n: int, value: Any = "C", **more: Any) -> dict[str, Any]:
    return {"id": n, "epoch": 1, "scores": {"match": {"value": value}}} | more


def stat(split: str, **more: Any) -> dict[str, Any]:
    name = {"name": "em", "split": split} | more
    return {"instance_id": split, "train_trial_index": 0, "stats": [{"name": name, "count": 1, "sum": 1}]} | more


TYPOS = {"perturbation": {"name": "typos"}}
REPORT = {"submitted_ids": ["a__a-1"], "completed_ids": [], "incomplete_ids": ["c__c-3"], "resolved_ids": []}


class TestNothingLeft:
    @pytest.mark.parametrize(
        ("document", "said"),
        [
            (inspect(sample(1, invalidation={}), sample(2, invalidation={"author": "x"})), None),
            (inspect(sample(1, invalidation={"author": "x"})), "invalidated sample (1)"),
            (inspect(), "log without samples (1)"),
            ([stat("test", **TYPOS), stat("valid", **TYPOS)], "perturbed instance (2)"),
            (REPORT, "instance not submitted (1), submitted instance in no other list (1)"),
            ([{"question_id": q, "output_list": [], "graded_list": []} for q in "ab"], "question without answers (2)"),
            ([{"doc_id": 0, "doc": {}, "resps": [], "filtered_resps": []}], "sample without a score of its own (1)"),
            ({"details": [{"example_abbr": "a", "pred": ["4"]}]}, "example without a verdict (1)"),
        ],
    )
    def test_the_error_says_what_was_left_out(self, tmp_path: Path, document: Any, said: str | None) -> None:
        path = write(tmp_path / "a.json", document)
        found, doc = attempts(path), look(str(path), "auto", None)
        assert found is not None and doc is not None
        cells = long.read(tabular(found, doc, Choices({}), "m")[0], LONG, Choices({}))._replace(skipped=found.skipped)
        if said is None:
            assert len(merge([cells], add=False, duplicates=None)) == 1
            return
        with pytest.raises(InputError) as error:
            merge([cells], add=False, duplicates=None)
        assert str(error.value) == f"no scored attempt is left; left out: {said}"

    def test_every_reader_that_leaves_out_is_among_them_or_always_keeps_one(self) -> None:
        """Of gradings and of repeats one is always kept. Details of lighteval are Parquet: its own tests have them."""
        skipping = {
            m.__name__.rpartition(".")[2] for m in registry.MODULES if ".skip(" in Path(m.__file__ or "").read_text()
        }
        assert skipping == {
            "inspect_ai", "lm_eval", "helm", "swebench", "livecodebench", "livebench", "promptfoo", "lighteval",
            "opencompass",
        }  # fmt: skip

    def test_a_retried_log_alone_in_the_call(self, sh: Shell, tmp_path: Path) -> None:
        write(tmp_path / "1_T.json", inspect(sample(1), status="cancelled"))
        write(tmp_path / "2_T.json", inspect(sample(1), sample(2)))
        said = sh("bk-matrix 1_T.json", rc=2).err
        assert said.endswith("no scored attempt is left; left out: sample of a log that was retried (1)\n")


class TestStatuses:
    SAMPLES = (sample(1), sample(2, "I"), sample(3, None), sample(4, None, error={"message": "x"}, scores={}),
               sample(5, "I"), sample(6, invalidation={"author": "x"}))  # fmt: skip

    @pytest.mark.parametrize(
        ("errors", "unscored", "attempts", "correct"),
        [("drop", "drop", 3, 1), ("wrong", "drop", 4, 1), ("drop", "wrong", 4, 1), ("wrong", "wrong", 5, 1)],
    )
    def test_kept_apart(
        self, sh: Shell, tmp_path: Path, errors: str, unscored: str, attempts: int, correct: int
    ) -> None:
        """Wrong, failed, unscored and left out are counted each by itself, whatever they count as."""
        write(tmp_path / "a.json", inspect(*self.SAMPLES))
        done = sh(f"bk-matrix --errors {errors} --unscored {unscored} -v -t json a.json")
        document = json.loads(done.out)
        (source,) = document["sources"]
        assert (source["rows"], source["attempts"], source["unscored"], source["failed"]) == (5, attempts, 1, 1)
        assert source["skipped"] == {"invalidated sample": 1} and source["task"] == "gsm8k"
        assert sum(r["correct"] for r in document["responses"]) == correct
        assert done.err == (
            f"bk-matrix: a.json: inspect, task gsm8k: 5 rows, 1 model, {attempts} items, {attempts} attempts, "
            "1 unscored, 1 failed, left out: invalidated sample (1)\n"
        ) + "".join(f"bk-matrix: warning: {w}\n" for w in document["warnings"])
        lost = [item for item, how in (("3", unscored), ("4", errors)) if how == "drop"]
        said = f"no scored attempt of {len(lost)} item{'s' if len(lost) > 1 else ''}: {', '.join(lost)}"
        assert document["warnings"] == ([said] if lost else [])

    def test_a_file_that_goes_with_others(self, sh: Shell, tmp_path: Path) -> None:
        write(tmp_path / "r" / "a.json", inspect(*self.SAMPLES[:2]))
        write(tmp_path / "r" / "results_1.json", {"results": {}, "configs": {}, "versions": {}})
        said = sh("bk-matrix -v r -t csv").err
        assert "bk-matrix: r/results_1.json: nothing by itself: it goes with other files\n" in said
