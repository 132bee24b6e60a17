"""Results of OpenCompass with details: the replicas of an example are its attempts."""

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


def results(*details: Any, **more: Any) -> dict[str, Any]:
    return {"accuracy": 50.0, "details": list(details)} | more


def example(item: Any = "math_0", *verdicts: Any, key: str = "correct", **more: Any) -> dict[str, Any]:
    return {"example_abbr": item, "pred": ["1"] * len(verdicts), key: list(verdicts)} | more


class TestRead:
    def test_replicas_are_attempts(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", results(example("math_0", True, False), example("math_1", 1, 1)))
        got = attempts(path)
        assert reader(path) == "opencompass" and scores(got) == {"math_0": [1.0, 0.0], "math_1": [1.0, 1.0]}
        assert got and got.numbers == ["0", "1"] * 2 and got.task is None

    @pytest.mark.parametrize("key", ("correct", "is_correct", "cascade_correct"))
    def test_verdicts(self, tmp_path: Path, key: str) -> None:
        document = results({"example_abbr": "a", key: True}, example("b", None, key=key))
        assert scores(attempts(write(tmp_path / "a.json", document))) == {"a": [1.0], "b": [None]}

    def test_examples_without_names(self, tmp_path: Path) -> None:
        """Older details: an object with a type, whose keys are the examples' numbers, or a list."""
        old = [{"prompt": "?", "predictions": "4", "references": "4", "correct": v} for v in (True, False)]
        for details in ({"type": "GEN"} | {str(n): d for n, d in enumerate(old)}, old):
            path = write(tmp_path / "a.json", {"accuracy": 50.0, "details": details})
            assert reader(path) == "opencompass" and scores(attempts(path)) == {"0": [1.0], "1": [0.0]}

    def test_details_without_verdicts_are_nobody_s(self, tmp_path: Path) -> None:
        details = {"type": "GEN", "0": {"prompt": "?", "predictions": "4", "references": "4"}}
        assert reader(write(tmp_path / "a.json", {"accuracy": 50.0, "details": details})) is None

    def test_several_verdicts_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", results(example("a", False, is_correct=[True])))
        with pytest.raises(InputError, match=r"several metrics \(correct, is_correct\): choose one with --metric"):
            attempts(path)
        assert scores(attempts(path, metric="is_correct")) == {"a": [1.0]}

    def test_without_a_verdict_other_numbers_may_be_chosen(self, tmp_path: Path) -> None:
        rows = [{"example_abbr": f"a_{n}", "pred": ["x"], "score": [n / 2], "label": [n]} for n in range(2)]
        path = write(tmp_path / "a.json", results(*rows))
        with pytest.raises(InputError, match=r"no correct, .* choose one with --metric \(label, score\)"):
            attempts(path)
        assert scores(attempts(path, metric="score")) == {"a_0": [0.0], "a_1": [0.5]}
        found = attempts(write(tmp_path / "b.json", results({"example_abbr": "a", "pred": ["1"]})))
        assert found and (found.items, found.skipped) == ([], {"example without a verdict": 1})

    def test_repeats_of_a_task_are_its_attempts(self, tmp_path: Path) -> None:
        """HumanEval with num_repeats: names go on counting, in old details and in new ones."""
        lines = [{"task_id": f"HumanEval/{n // 2}", "prompt": "?", "is_correct": n != 1} for n in range(4)]
        new = [{"example_abbr": f"humaneval_{n}"} | {k: [v] for k, v in x.items()} for n, x in enumerate(lines)]
        for details in ({str(n): x for n, x in enumerate(lines)}, new):
            got = attempts(write(tmp_path / "a.json", {"details": details}))
            assert scores(got) == {"HumanEval/0": [1.0, 0.0], "HumanEval/1": [1.0, 1.0]}
            assert got and got.numbers == ["0", "1"] * 2
        got = attempts(write(tmp_path / "b.json", {"details": new[::2]}))
        assert got and got.items == ["HumanEval/0", "HumanEval/1"]  # as those of a model that was asked more often

    def test_examples_that_share_a_task_unevenly_are_no_repeats(self, tmp_path: Path) -> None:
        rows = [{"example_abbr": f"a_{n}", "task_id": task, "correct": [True]} for n, task in enumerate("xxy")]
        got = attempts(write(tmp_path / "a.json", results(*rows)))
        assert got and got.items == ["a_0", "a_1", "a_2"]

    def test_a_cascade_that_needed_no_judge(self, tmp_path: Path) -> None:
        """Its verdicts lack in the replicas where the rules find every example right."""
        right, wrong = {"correct": True}, {"correct": False}
        judged = [
            {"example_abbr": "a", "rule_evaluation": [right, right], "cascade_correct": [True]},
            {"example_abbr": "b", "rule_evaluation": [wrong, right], "cascade_correct": [False]},
        ]
        path = write(tmp_path / "a.json", {"details": judged})
        assert scores(attempts(path)) == {"a": [1.0, 1.0], "b": [0.0, 1.0]}
        alone = [{"example_abbr": "a", "rule_evaluation": [right]}, {"example_abbr": "b", "rule_evaluation": [right]}]
        assert scores(attempts(write(tmp_path / "b.json", {"details": alone}))) == {"a": [1.0], "b": [1.0]}
        odd = {"example_abbr": "a", "rule_evaluation": [wrong]}
        with pytest.raises(InputError, match="row 1: an example without a verdict"):
            attempts(write(tmp_path / "c.json", {"details": [odd]}))

    def test_predictions_go_with_results(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", {"0": {"origin_prompt": "?", "prediction": "4", "gold": "4"}})
        assert reader(path) == "opencompass" and attempts(path) is None

    def test_folders_name_the_model_and_the_dataset(self, sh: Shell) -> None:
        for model in "ab":
            for data in ("aime_v1.1", "math"):
                write(sh.folder / "out" / "results" / model / f"{data}.json", results(example("x_0", model == "a")))
        assert "several tasks (aime_v1.1, math)" in sh("bk-matrix out --model-from path", rc=2).err
        got = json.loads(sh("bk-matrix out --model-from path --task math -t json").out)["responses"]
        assert [(r["model"], r["correct"]) for r in got] == [("a", 1), ("b", 0)]


class TestHostile:
    @pytest.mark.parametrize(
        ("document", "said"),
        (
            (results(example("a", True), 3), "example 2 is a number, not an object"),
            (results(example("a", "yes")), 'row 1: correct is "yes", which is no score'),
            (results(example("a")), "row 1: an example without a verdict"),
            (results(example(None, True)), "row 1: item is null"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, document: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", document))

    @settings(max_examples=100)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        document = data.draw(damaged(results(example("a", True, False), example("b", True))))
        path = write(tmp_path_factory.mktemp("o") / "a.json", document)
        survives(path, unscored="drop", duplicates="first")
