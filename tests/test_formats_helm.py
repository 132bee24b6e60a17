"""Runs of HELM: which statistics count, and whose they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

REAL = DATA / "native" / "helm"


def stat(metric: str, value: float, split: str = "test", count: int = 1, **name: Any) -> dict[str, Any]:
    return {"name": {"name": metric, "split": split, **name}, "count": count, "sum": value * count, "mean": value}


def entry(instance: str, *stats: dict[str, Any], trial: int = 0, **more: Any) -> dict[str, Any]:
    return {"instance_id": instance, "train_trial_index": trial, "stats": list(stats), **more}


TYPOS = {"name": "typos", "robustness": True, "computed_on": "perturbed"}
RUN = [
    entry("id147", stat("exact_match", 1.0), stat("num_bytes", 7.0)),
    entry("id147", stat("exact_match", 0.0, perturbation=TYPOS), perturbation=TYPOS),
    entry("id9", stat("exact_match", 1.0, "valid")),
    entry("id11", stat("exact_match", 0.25, count=4)),
]
SPEC = {
    "name": "mmlu:subject=philosophy,method=joint,model=openai_gpt2",
    "scenario_spec": {},
    "adapter_spec": {"model": "openai/gpt2", "model_deployment": "huggingface/gpt2", "max_train_instances": 5},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path / "run_spec.json", SPEC)
    return write(tmp_path / "per_instance_stats.json", RUN)


class TestReal:
    """MMLU philosophy by GPT-2: nine test instances and one of the split valid, one correct in test."""

    def test_the_metric_must_be_chosen(self, sh: Shell) -> None:
        assert sh(f"bk-matrix {REAL}", rc=2).err == (
            f"bk-matrix: {REAL}/per_instance_stats.json: several metrics (exact_match, quasi_exact_match): "
            "choose one with --metric\n"
        )
        got = json.loads(sh(f"bk-matrix {REAL} --metric exact_match -t json").out)
        assert [(r["model"], r["attempts"]) for r in got["responses"]] == [("openai/gpt2", 1)] * 9
        want = {
            r["instance_id"]: s["sum"]
            for r in json.loads((REAL / "per_instance_stats.json").read_text())
            for s in r["stats"]
            if s["name"] == {"name": "exact_match", "split": "test"}
        }
        assert {r["item"]: r["correct"] for r in got["responses"]} == want and len(want) == 9
        assert got["sources"][0]["skipped"] == {"instance of another split": 1}

    def test_another_split(self, sh: Shell) -> None:
        got = json.loads(sh(f"bk-matrix {REAL} --metric exact_match --split valid -t json").out)["responses"]
        assert [r["item"] for r in got] == ["id11"]


class TestRead:
    def test_test_split_unperturbed_by_default(self, run: Path) -> None:
        got = attempts(run)
        assert got is not None and scores(got) == {"id147": [1.0], "id11": [0.25]}
        assert got.skipped == {"instance of another split": 1, "perturbed instance": 1}
        assert (got.model, got.task) == ("openai/gpt2", "mmlu:subject=philosophy,method=joint")
        assert got.settings == "model_deployment=huggingface/gpt2, max_train_instances=5"

    def test_splits(self, run: Path, tmp_path: Path) -> None:
        assert scores(attempts(run, split="valid")) == {"id9": [1.0]}
        with pytest.raises(InputError, match=r"no split 'train' \(found: test, valid\)"):
            attempts(run, split="train")
        only = [entry("a", stat("exact_match", 1.0, "valid"))]
        assert scores(attempts(write(tmp_path / "a.json", only))) == {"a": [1.0]}
        two = [*only, entry("b", stat("exact_match", 1.0, "train"))]
        with pytest.raises(InputError, match=r"several splits \(train, valid\): choose one with --split"):
            attempts(write(tmp_path / "b.json", two))

    def test_bookkeeping_is_no_metric_unless_named(self, tmp_path: Path) -> None:
        rows = [entry("a", stat("finish_reason_stop", 1.0), stat("f1", 0.5), stat("num_bytes", 9.0))]
        path = write(tmp_path / "a.json", rows)
        assert scores(attempts(path)) == {"a": [0.5]}
        assert scores(attempts(path, metric="finish_reason_stop")) == {"a": [1.0]}
        with pytest.raises(InputError, match=r"no metric 'x' \(found: f1\)"):
            attempts(path, metric="x")

    def test_statistics_of_several_metrics_repeat_an_instance(self, tmp_path: Path) -> None:
        rows = [entry("a", stat("bleu", 0.5)), entry("a", stat("exact_match", 1.0)), entry("b", stat("bleu", 0.1))]
        got = attempts(write(tmp_path / "a.json", rows), metric="exact_match")
        assert scores(got) == {"a": [1.0], "b": [None]}  # b has no such statistic: it was not a number

    def test_no_count_is_no_score(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / "a.json", [entry("a", stat("f1", 0.0, count=0))]))) == {"a": [None]}

    def test_trials_are_not_attempts_unless_told(self, sh: Shell) -> None:
        rows = [entry("a", stat("f1", float(trial == 2)), trial=trial) for trial in range(3)]
        path = write(sh.folder / "a.json", rows)
        with pytest.raises(InputError, match=r"3 trials \(0, 1, 2\), which are draws .*--duplicates first"):
            attempts(path)
        for choice, want in (("first", (1, 0)), ("last", (1, 1)), ("attempt", (3, 1))):
            got = json.loads(sh(f"bk-matrix a.json --model m --duplicates {choice} -t json").out)["responses"]
            assert [(r["attempts"], r["correct"]) for r in got] == [want]

    def test_the_model_is_that_of_the_run_specification(self, run: Path) -> None:
        (run.parent / "run_spec.json").unlink()
        got = attempts(run)
        assert got is not None and got.model is None and got.task is None
        write(run.parent / "run_spec.json", {"adapter_spec": {"model": 3}})
        with pytest.raises(InputError, match="model is a number, not a text") as e:
            attempts(run)
        assert str(e.value.where).endswith("run_spec.json")

    def test_subjects_are_tasks(self, sh: Shell) -> None:
        for subject in ("law", "logic"):
            name = {"name": f"mmlu:model=openai_gpt2,subject={subject}"}
            write(sh.folder / subject / "run_spec.json", SPEC | name)
            write(sh.folder / subject / "per_instance_stats.json", [entry("id1", stat("f1", 1.0))])
        assert "several tasks (mmlu:subject=law, mmlu:subject=logic)" in sh("bk-matrix .", rc=2).err
        got = json.loads(sh("bk-matrix . --prefix-task -t json").out)["responses"]
        assert [r["item"] for r in got] == ["mmlu:subject=law/id1", "mmlu:subject=logic/id1"]

    def test_how_a_model_is_asked_is_no_task(self, sh: Shell) -> None:
        """HELM adds stop=hash to the runs of models that can't write line ends, and they have the same instances."""
        for at, (model, more) in enumerate((("openai_gpt2", ""), ("t5", ",stop=hash"), ("t5", ",stop=none"))):
            spec = SPEC | {"name": f"boolq:model={model},data_augmentation=canonical{more}"}
            write(sh.folder / str(at) / "run_spec.json", spec | {"adapter_spec": {"model": model}})
            write(sh.folder / str(at) / "per_instance_stats.json", [entry("id1", stat("f1", 1.0))])
        got = json.loads(sh("bk-matrix . -t json").out)
        assert {s["task"] for s in got["sources"]} == {"boolq"} and [r["model"] for r in got["responses"]] == [
            "openai_gpt2", "t5 (data_augmentation=canonical, stop=hash)", "t5 (data_augmentation=canonical, stop=none)",
        ]  # fmt: skip


class TestRunFolder:
    @pytest.mark.parametrize(
        ("name", "document"),
        (
            ("run_spec.json", SPEC),
            ("scenario_state.json", {"adapter_spec": {}, "request_states": []}),
            ("scenario.json", {"name": "mmlu", "description": "", "tags": [], "definition_path": ""}),
            ("stats.json", [{"name": {"name": "exact_match"}, "count": 1, "sum": 1.0}]),
            ("display_predictions.json", [{"instance_id": "a", "predicted_text": "", "stats": {}}]),
            ("display_requests.json", [{"instance_id": "a", "train_trial_index": 0, "request": {}}]),
            ("instances.json", [{"input": {"text": ""}, "references": [], "split": "test", "id": "a"}]),
            ("instances.json", [{"id": "a", "split": "test"}]),
            ("scenario.json", {"name": "mmlu"}),
            ("stats.json", []),
        ),
    )  # fmt: skip
    def test_files_that_go_with_it(self, run: Path, name: str, document: Any) -> None:
        path = write(run.parent / name, document)
        assert reader(path) == "helm" and attempts(path) is None

    def test_predictions_where_there_are_no_statistics(self, run: Path) -> None:
        """As downloaded for a look: the means of the main metrics, and the splits in another file."""
        run.unlink()
        rows = [{"instance_id": i, "train_trial_index": 0, "predicted_text": "", "stats": {"f1": x, "num_bytes": 3}}
                for i, x in (("a", 0.5), ("b", 1), ("c", 0))]  # fmt: skip
        path = write(run.parent / "display_predictions.json", [*rows, rows[0], rows[0] | {"perturbation": TYPOS}])
        with pytest.raises(InputError, match=r"get per_instance_stats\.json too, or instances\.json"):
            attempts(path)
        splits = [{"id": i, "split": "valid" if i == "b" else "test", "input": {}, "references": []} for i in "abc"]
        write(run.parent / "instances.json", splits)
        got = attempts(path)
        assert scores(got) == {"a": [0.5], "c": [0.0]} and got and got.model == "openai/gpt2"
        assert got.skipped == {"perturbed instance": 1, "instance of another split": 1}
        (run.parent / "per_instance_stats.json.gz").touch()
        assert attempts(path) is None

    @pytest.mark.parametrize(
        "document",
        (
            [{"instance_id": "a", "model": "m", "score": 1}],
            [{"name": "a", "count": 1, "sum": 1}],
            {"name": "a", "description": "b", "tags": []},
            [{"input": "", "references": [], "id": "a"}],
        ),
    )
    def test_rows_of_others_are_not(self, tmp_path: Path, document: Any) -> None:
        assert reader(write(tmp_path / "a.json", document)) != "helm"
        assert reader(write(tmp_path / "stats.json", document)) != "helm"


class TestHostile:
    @pytest.mark.parametrize(
        ("rows", "said"),
        (
            ([entry("a", stat("f1", 1.0)), 3], "entry 2 is a number, not an object"),
            ([entry("a", stat("f1", 1.0)), entry("b") | {"stats": {}}], "row 2: statistics are an object, not a list"),
            ([entry("a", stat("f1", 1.0)), entry("b") | {"stats": [3]}], "row 2: statistic 1 is a number"),
            ([entry("a", stat("f1", 1.0) | {"name": "f1"})], "row 1: name is a text, not an object"),
            ([entry("a", stat("f1", 1.0) | {"name": {"name": []}})], "row 1: name is a list, not a text"),
            ([entry("a", stat("f1", 1.0) | {"count": -1})], "row 1: f1 has no count"),
            ([entry("a", stat("f1", 1.0) | {"sum": "1"})], 'row 1: f1: sum is "1", which is no score'),
            ([entry([], stat("f1", 1.0))], r"row 1: instance_id is \[\], which is no identifier"),
            ([entry("a", stat("f1", 1.0)) | {"train_trial_index": 0.5}], "row 1: train_trial_index is a number, not a"),
            ([entry("a")], "no statistics of single instances"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, rows: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", rows))

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged_runs(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        folder = tmp_path_factory.mktemp("helm")
        write(folder / "run_spec.json", data.draw(damaged(SPEC)))
        path = write(folder / "per_instance_stats.json", data.draw(damaged(RUN)))
        survives(path, metric="exact_match", unscored="drop", duplicates="first")
