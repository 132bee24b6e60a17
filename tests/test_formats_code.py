"""LiveCodeBench and EvalPlus: samples of programs, run against tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

GRADED = [
    {"question_id": "1873_A", "platform": "codeforces", "difficulty": "easy", "output_list": ["", ""],
     "code_list": ["", ""], "graded_list": [True, False], "pass@1": 0.5, "metadata": ["{}", '{"error_code": -4}']},
    {"question_id": "abc301_a", "output_list": ["", ""], "code_list": ["", ""], "graded_list": [False, False],
     "pass@1": 0.0},
]  # fmt: skip
RESULTS = {
    "date": "2026-01-01 10:00", "hash": "d41d",
    "eval": {
        "HumanEval/0": [
            {"task_id": "HumanEval/0", "solution": "", "base_status": "pass", "plus_status": "pass"},
            {"task_id": "HumanEval/0", "solution": "", "base_status": "pass", "plus_status": "fail"},
        ],
        "HumanEval/1": [
            {"task_id": "HumanEval/1", "solution": "", "base_status": "timeout", "plus_status": "pass"},
            {"task_id": "HumanEval/1", "solution": "", "base_status": "pass", "plus_status": "pass"},
        ],
    },
    "pass_at_k": {"base": {"pass@1": 0.75}, "plus": {"pass@1": 0.5}},
}  # fmt: skip
OLD = {
    "date": "2023-05-01 10:00", "hash": "d41d",
    "eval": {
        "HumanEval/0": {"nfiles": 2, "base": [["success", [True]], ["success", [True]]],
                        "plus": [["success", [True]], ["failed", [False]]]},
        "HumanEval/1": {"files": ["0.py"], "base": [["timed out", []]], "plus": [["success", []]]},
    },
}  # fmt: skip
MODEL = "Scenario.codegeneration_2_0.2"


class TestLiveCodeBench:
    def test_graded_answers(self, sh: Shell) -> None:
        write(sh.folder / "out" / "GPT-4o" / f"{MODEL}_eval_all.json", GRADED)
        assert "records no model" in sh("bk-matrix out", rc=2).err
        got = json.loads(sh("bk-matrix out --model-from path -t json").out)["responses"]
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got] == [
            ("GPT-4o", "1873_A", 2, 1),
            ("GPT-4o", "abc301_a", 2, 0),
        ]

    def test_pass_at_1_is_the_mean_of_what_is_read(self, tmp_path: Path) -> None:
        got = scores(attempts(write(tmp_path / "a_eval_all.json", GRADED)))
        assert {row["question_id"]: row["pass@1"] for row in GRADED} == {
            item: sum(s or 0 for s in values) / len(values) for item, values in got.items()
        }

    @pytest.mark.parametrize("prefix", ("Scenario.", ""))
    def test_the_files_name_tells_scenario_and_settings(self, tmp_path: Path, prefix: str) -> None:
        got = attempts(write(tmp_path / f"{prefix}selfrepair_1_0.2_eval_all.json", GRADED))
        assert got is not None and (got.task, got.settings) == ("selfrepair", "n=1, temperature=0.2")

    def test_its_other_outputs_go_with_it(self, tmp_path: Path) -> None:
        outputs = [{k: v for k, v in row.items() if k not in ("graded_list", "pass@1")} for row in GRADED]
        results = write(tmp_path / f"{MODEL}_eval.json", [{"pass@1": 0.5, "detail": {}}, {"0": [[True, -1]]}, []])
        with pytest.raises(InputError, match=r"without the questions' identifiers: read the _eval_all\.json"):
            attempts(results)
        write(tmp_path / "Scenario.selfrepair_1_0.2_eval_all.json", GRADED)  # of another run
        with pytest.raises(InputError, match="without the questions' identifiers"):
            attempts(results)
        write(tmp_path / f"{MODEL}_eval_all.json", GRADED)
        assert attempts(results) is None
        assert attempts(write(tmp_path / f"{MODEL}.json", outputs)) is None

    @pytest.mark.parametrize(
        ("row", "want"),
        [({"question_id": "1", "code_list": [""]}, "livecodebench"),
         ({"id": "sample_1", "pred_list": [""]}, "livecodebench"),
         ({"question_id": "1", "code_list": [""], "correct": True}, None)],
    )  # fmt: skip
    def test_outputs_of_other_programs_go_with_their_grades(
        self, tmp_path: Path, row: dict[str, Any], want: str | None
    ) -> None:
        path = write(tmp_path / "m.json", [row])
        assert reader(path) == want and (want is None or attempts(path) is None)

    def test_items_of_other_scenarios(self, tmp_path: Path) -> None:
        row = {"question_id": "1", "output_list": [""], "pred_list": [""], "graded_list": [True]}
        execution = [row | {"id": f"sample_{k}"} for k in range(2)]
        assert scores(attempts(write(tmp_path / "a.json", execution))).keys() == {"sample_0", "sample_1"}
        prediction = [row | {"test_id": k} for k in range(2)]
        assert scores(attempts(write(tmp_path / "a.json", prediction))).keys() == {"1/0", "1/1"}

    def test_answers_without_a_grade(self, tmp_path: Path) -> None:
        rows = [GRADED[0] | {"graded_list": [True]}, {"question_id": "x", "output_list": [], "graded_list": []}]
        got = attempts(write(tmp_path / "a.json", rows))
        assert scores(got) == {"1873_A": [1.0, None]}
        assert got is not None and got.skipped == {"question without answers": 1}

    @pytest.mark.parametrize(
        ("document", "said"),
        (
            ([GRADED[0], 3], "row 2 is a number, not an object"),
            ([GRADED[0] | {"graded_list": "x"}], "row 1: graded_list is a text, not a list"),
            ([GRADED[0] | {"graded_list": [[1]]}], r"row 1: a grade is \[1\], which is no score"),
            ([GRADED[0] | {"question_id": None}], "row 1: question_id is null"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, document: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", document))

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged_files(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        path = tmp_path_factory.mktemp("lcb") / f"{MODEL}_eval_all.json"
        survives(write(path, data.draw(damaged(GRADED))), unscored="drop", duplicates="first")


class TestEvalPlus:
    def test_base_or_plus_must_be_chosen(self, sh: Shell) -> None:
        write(sh.folder / "m.eval_results.json", RESULTS)
        assert "several metrics (base, plus): choose one with --metric" in sh("bk-matrix . --model m", rc=2).err
        for metric, want in (("base", [2, 1]), ("plus", [1, 1])):
            got = json.loads(sh(f"bk-matrix . --model m --metric {metric} -t json").out)["responses"]
            assert [(r["attempts"], r["correct"]) for r in got] == [(2, c) for c in want]

    def test_means_are_those_of_the_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", RESULTS)
        for metric, want in RESULTS["pass_at_k"].items():  # type: ignore[attr-defined]
            values = [s for got in scores(attempts(path, metric=metric)).values() for s in got]
            assert sum(v or 0 for v in values) / len(values) == want["pass@1"]

    def test_the_older_layout(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", OLD)
        assert scores(attempts(path, metric="base")) == {"HumanEval/0": [1.0, 1.0], "HumanEval/1": [0.0]}
        assert scores(attempts(path, metric="plus")) == {"HumanEval/0": [1.0, 0.0], "HumanEval/1": [0.0]}

    def test_base_only(self, tmp_path: Path) -> None:
        new = {"HumanEval/0": [{"task_id": "HumanEval/0", "base_status": "pass", "plus_status": None}]}
        old = {"HumanEval/0": {"nfiles": 1, "base": [["success", None]], "plus": []}}
        for tasks in (new, old):
            path = write(tmp_path / "a.json", RESULTS | {"eval": tasks})
            assert scores(attempts(path)) == {"HumanEval/0": [1.0]}
            with pytest.raises(InputError, match=r"no metric 'plus' \(found: base\)"):
                attempts(path, metric="plus")

    def test_samples_without_extra_tests_are_not_scored_in_plus(self, tmp_path: Path) -> None:
        pairs = (("pass", "pass"), ("pass", None), ("fail", None), (None, "pass"))
        samples = [{"base_status": base, "plus_status": plus} for base, plus in pairs]
        path = write(tmp_path / "a.json", {"eval": {"Mbpp/2": samples}})
        assert scores(attempts(path, metric="plus")) == {"Mbpp/2": [1.0, None, 0.0, None]}

    @pytest.mark.parametrize(
        ("tasks", "said"),
        (
            ({"a": [{"base_status": "ok"}]}, "row 1: base_status is 'ok', not one of pass, fail"),
            ({"a": [{"base_status": 1}]}, "row 1: base_status is a number, not a status"),
            ({"a": [{"base_status": "pass"}], "b": 3}, "row 2: samples are a number, not a list"),
            ({"a": [{"base_status": "pass"}], "b": [3]}, "row 2: sample 1 is a number, not an object"),
            ({"a": {"base": [["success"]] * 2, "plus": [["failed"]]}}, "row 1: 2 base results and 1 plus results of a"),
            ({"a": {"base": [[]], "plus": []}}, "row 1: base is a list, not a status"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, tasks: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", {"eval": tasks}), metric="base")

    def test_other_documents_are_not(self, tmp_path: Path) -> None:
        for document in ({"eval": {}}, {"eval": {"a": [1]}}, {"eval": {"a": {"acc": 1}}}, {"eval": []}):
            assert reader(write(tmp_path / "a.json", document)) != "evalplus"

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged_files(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        document = data.draw(damaged(data.draw(st.sampled_from((RESULTS, OLD)))))
        path = write(tmp_path_factory.mktemp("ep") / "a.json", document)
        survives(path, metric=data.draw(st.sampled_from(("base", "plus", None))), unscored="drop")


class TestEvalPerf:
    """The layout of evalplus/evalperf.py 0.3.1."""

    FULL: ClassVar[dict[str, Any]] = {
        "date": "2026-01-01 10:00", "n_samples": 2, "temperature": 1.0, "min_correct": 1, "max_profile": 1,
        "eval": {
            "HumanEval/0": {"task_id": "HumanEval/0", "ref": [], "dps": 90.0, "dps_norm": 80.0, "pass@1": 50.0,
                            "n_profiled": 1, "results": [{"solution": "", "pass": True, "dps": 90.0, "profiled": True},
                                                         {"solution": "", "pass": False, "dps": None}]},
            "HumanEval/1": {"task_id": "HumanEval/1", "ref": [], "dps": None, "dps_norm": None, "pass@1": 0.0,
                            "n_profiled": None, "results": [{"pass": False}, {"pass": False}]},
        },
    }  # fmt: skip

    def test_samples_that_passed(self, tmp_path: Path) -> None:
        found = attempts(write(tmp_path / "m_evalperf_results.json", self.FULL))
        assert found and scores(found) == {"HumanEval/0": [1, 0], "HumanEval/1": [0, 0]}
        assert (found.format, found.numbers) == ("evalperf", ["0", "1", "0", "1"])

    def test_the_brief_results_go_with_them(self, tmp_path: Path) -> None:
        brief = {"date": "", "summary": {}, "eval": {"HumanEval/0": {"dps": 9.0, "pass@1": 50.0, "profiled": []}}}
        assert attempts(write(tmp_path / "a.json", brief)) is None

    @settings(max_examples=50)
    @given(st.data())
    def test_damaged_files(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        survives(write(tmp_path_factory.mktemp("perf") / "a.json", data.draw(damaged(self.FULL))), unscored="drop")


class TestBigCodeBench:
    """The layout of bigcodebench/evaluate.py 0.2.5: that of EvalPlus with one status."""

    TASKS: ClassVar[dict[str, Any]] = {
        f"BigCodeBench/{n}": [
            {"task_id": f"BigCodeBench/{n}", "solution": "", "status": status, "details": {"ALL": "..."}}
            for status in found
        ]
        for n, found in enumerate((("pass", "fail"), ("timeout", "pass")))
    }

    def test_samples_are_attempts(self, tmp_path: Path) -> None:
        found = attempts(write(tmp_path / "a_eval_results.json", {"date": "2026-01-01 10:00", "eval": self.TASKS}))
        assert scores(found) == {"BigCodeBench/0": [1, 0], "BigCodeBench/1": [0, 1]}
        assert found and (found.format, found.numbers) == ("bigcodebench", ["0", "1", "0", "1"])

    def test_the_rates_beside_it_name_model_and_task(self, sh: Shell) -> None:
        """Of version 0.2; code completed and instructions followed are items of the same names."""
        rates = {"pass@1": 0.5, "model": "org/m", "subset": "full", "calibrated": True, "gt_pass_rate": 1.0}
        for split, calibrated in (("complete", True), ("instruct", True), ("instruct", False)):
            stem = f"org--m--{split}{'_calibrated' * calibrated}"
            write(sh.folder / f"{stem}_eval_results.json", {"date": "2026-01-01 10:00", "eval": self.TASKS})
            about = rates | {"split": split, "calibrated": calibrated}
            beside = write(sh.folder / f"{stem}_pass_at_k.json", about)
            assert attempts(beside) is None
        said = sh("bk-matrix .", rc=2).err
        assert "several tasks (bigcodebench-complete, bigcodebench-instruct): choose one with --task" in said
        got = json.loads(sh("bk-matrix . --task bigcodebench-instruct -t json").out)["responses"]
        assert {r["model"] for r in got} == {"org/m (calibrated=True)", "org/m (calibrated=False)"}
        write(beside, about | {"subset": "hard"})
        found = attempts(sh.folder / f"{stem}_eval_results.json")
        assert found and found.task == "bigcodebench-hard-instruct"

    def test_it_has_one_metric(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a_eval_results.json", {"date": "2026-01-01 10:00", "eval": self.TASKS})
        with pytest.raises(InputError, match=r"no metric 'plus' \(found: status\)"):
            attempts(path, metric="plus")

    @settings(max_examples=50)
    @given(st.data())
    def test_damaged_files(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        path = tmp_path_factory.mktemp("bcb") / "a_eval_results.json"
        survives(write(path, data.draw(damaged({"date": "", "eval": self.TASKS}))), unscored="drop")


@pytest.mark.parametrize(
    ("row", "want"),
    [({"task_id": "HumanEval/0", "solution": ""}, "evalplus"),
     ({"task_id": "HumanEval/0", "completion": "", "_identifier": "a"}, "evalplus"),
     ({"task_id": "HumanEval/0", "solution": "", "passed": True}, None)],
)  # fmt: skip
def test_samples_that_were_not_run_go_with_results(tmp_path: Path, row: dict[str, Any], want: str | None) -> None:
    path = write(tmp_path / "samples.jsonl", [row, row])
    assert reader(path) == want and (want is None or attempts(path) is None)
