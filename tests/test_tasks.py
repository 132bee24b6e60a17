"""--task: sources of other tasks are left out before anything has to be chosen in them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Shell
from native_files import attempts, write

from benchkit.errors import InputError
from benchkit.formats import registry
from benchkit.formats.native import OtherTask

STAMP = "2026-01-21T03-44-18.458309"


def inspect(task: str) -> dict[str, Any]:
    scored = {"id": 1, "epoch": 1, "scores": {"a": {"value": "C"}, "b": {"value": "I"}}}
    return {"version": 2, "status": "success", "eval": {"task": task, "model": "m"}, "plan": {}, "samples": [scored]}


def lm_eval(**metrics: float) -> dict[str, Any]:
    return {"doc_id": 0, "doc": {}, "resps": [], "filtered_resps": [], "metrics": list(metrics), **metrics}


def helm(*metrics: str) -> dict[str, Any]:
    stats = [{"name": {"name": m, "split": "test"}, "count": 1, "sum": 1.0} for m in metrics]
    return {"instance_id": "i", "train_trial_index": 0, "stats": stats}


def event(**data: float) -> dict[str, Any]:
    return {"run_id": "r", "event_id": 0, "sample_id": "s", "type": "metrics", "data": data}


def trial(source: str) -> dict[str, Any]:
    rewards = {"verifier_result": {"rewards": {"a": 1, "b": 0}}}
    return {"task_name": "t", "trial_name": f"t_{source}", "source": source, "config": {}, **rewards}


def sample(name: str, result: str) -> dict[str, Any]:
    return {"schema_version": "0.3.0", "evaluation_id": "e", "model_id": "m", "evaluation_name": name,
            "sample_id": "s", "evaluation_result_id": result, "evaluation": {"score": 1.0}}  # fmt: skip


def grading(study: str, grader: str) -> dict[str, Any]:
    return {"study": study, "item_id": "i", "model": "m", "prompt_name": "p", "replication": 1,
            "grader_name": grader, "score": 1.0, "parse_ok": True}  # fmt: skip


def test_a_task_of_which_no_sample_is_left_asks_for_no_choice(sh: Shell) -> None:
    samples = [lm_eval(bleu=0.5), lm_eval(acc=1.0)]
    samples[0] |= {"bleu": [["a"], "b"]}  # of the whole corpus
    for name, sample in zip(("x", "y"), samples, strict=True):
        write(sh.folder / "d" / "m" / f"samples_{name}_{STAMP}.jsonl", [sample])
    write(sh.folder / "d" / "m" / f"results_{STAMP}.json", {"results": {}, "model_name": "m"})
    assert sh("bk-matrix d -t csv").out.endswith(b"\nm,0,1,1,\n")


def test_a_task_that_was_run_with_different_arguments(sh: Shell) -> None:
    """They may choose other items of the same names."""
    for k, more in enumerate(({"task_args_passed": {"subset": "easy", "api_key": "x"}, "task_args": {"shots": 0}},
                              {"task_args": {"subset": "hard"}}, {})):  # fmt: skip
        log = inspect("t")
        log["eval"] |= {"model": f"m{k}"} | more
        write(sh.folder / f"{k}.json", log)
    for names, found in (
        ("0 1 2", 'none; {"subset":"easy"}; {"subset":"hard"}'),
        ("0 1", '{"subset":"easy"}; {"subset":"hard"}'),
    ):
        files = " ".join(f"{k}.json" for k in names.split())
        said = f"task 't' was run with different arguments, which may choose other items: {found}"
        assert sh(f"bk-matrix --scorer a {files} > x").err == f"bk-matrix: warning: {said}\n"
        sh(f"for k in {names}; do bk-matrix --scorer a $k.json -o $k.arrow; done")
        assert said in sh(f"bk-matrix --merge sum {files.replace('.json', '.arrow')} > x").err
    assert sh("bk-matrix --scorer a 0.json > x").err == ""


class TestTask:
    """Files of another task than --task's, in which something would have to be chosen."""

    @pytest.mark.parametrize(
        ("name", "document", "beside"),
        (
            ("a.json", inspect("x"), {}),
            (f"samples_x_{STAMP}.jsonl", [lm_eval(acc=1, f1=0)], {}),
            (f"samples_x_{STAMP}.jsonl.gz", [lm_eval(acc=1, f1=0)], {}),
            ("run_x.json", [lm_eval(acc=1, f1=0)], {"results.json": {"results": {}, "configs": {"x": {}}}}),
            ("a.json", {"results": {}, "configs": {}, "versions": {}, "samples": {"x": [lm_eval(acc=1, f1=0)]}}, {}),
            ("per_instance_stats.json", [helm("em", "f1")],
             {"run_spec.json": {"name": "x:model=m", "adapter_spec": {"model": "m"}}}),
            ("a.jsonl", [{"spec": {"eval_name": "x", "completion_fns": ["m"]}}, event(acc=1, f1=0)], {}),
            ("Scenario.x_1_0.2_eval_all.json", [{"question_id": "q", "output_list": [""], "graded_list": ["bad"]}], {}),
            ("results/m/x.json", {"details": [{"pred": "", "correct": True, "is_correct": False}]}, {}),
            (f"details_x_{STAMP}.parquet", [{"metrics": {"acc": 1.0, "f1": 0.0}, "predictions": "", "hashes": ""}], {}),
            ("a.json", {"simulations": [{"task_id": 0, "trial": 0, "reward_info": 1}],
                        "info": {"environment_info": {"domain_name": "x"}}}, {}),
            ("result.json", trial("x"), {}),
            ("results.json", {"results": [{"trial_name": "", "task_id": "", "is_resolved": "?"}]},
             {"run_metadata.json": {"dataset_name": "x"}}),
            ("a_samples.jsonl", [sample("x", "1"), sample("x", "2")], {}),
            ("gradings_long.parquet", [grading("x", "a"), grading("x", "b")], {}),
        ),
    )  # fmt: skip
    def test_is_left_out_by_every_reader_that_knows_it(
        self, tmp_path: Path, name: str, document: Any, beside: dict[str, Any]
    ) -> None:
        path = tmp_path / name
        if name.endswith(".parquet"):
            pl.DataFrame(document).write_parquet(path)
        else:
            write(tmp_path / name.removesuffix(".gz"), document)
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress((tmp_path / name.removesuffix(".gz")).read_bytes()))
        for other, value in beside.items():
            write(tmp_path / other, value)
        with pytest.raises(InputError):
            attempts(path)
        with pytest.raises(InputError):
            attempts(path, task="x")
        with pytest.raises(OtherTask) as left:
            attempts(path, task="y")
        assert left.value.args == ("x",)

    def test_a_reader_that_sets_it_states_it_first(self) -> None:
        """No reader sets the name past the method that leaves other tasks out."""
        for module in registry.MODULES:
            assert ".task = " not in Path(module.__file__ or "").read_text()

    def test_of_one_file_with_several_the_rows_of_the_one_are_read(self, tmp_path: Path) -> None:
        lines = write(tmp_path / "a.jsonl", [sample("x", "1"), sample("x", "2"), sample("y", "3")])
        job = {"n_total_trials": 2, "stats": {}, "trial_results": [trial("x"), trial("y")]}
        pl.DataFrame([grading("x", "a"), grading("x", "b"), grading("y", "c")]).write_parquet(tmp_path / "a.parquet")
        job["trial_results"][1]["verifier_result"]["rewards"] = {"c": 0}
        for path in (lines, write(tmp_path / "a.json", job), tmp_path / "a.parquet"):
            found = attempts(path, task="y")
            assert found and (found.task, len(found.items)) == ("y", 1)
            with pytest.raises(OtherTask) as left:
                attempts(path, task="z")
            assert left.value.args == ("x", "y")

    def test_in_a_folder(self, sh: Shell, tmp_path: Path) -> None:
        write(tmp_path / "r" / f"samples_easy_{STAMP}.jsonl", [lm_eval(acc=1)])
        write(tmp_path / "r" / f"samples_hard_{STAMP}.jsonl", [lm_eval(acc=1, f1=0)])
        write(
            tmp_path / "r" / f"results_{STAMP}.json", {"results": {}, "configs": {}, "versions": {}, "model_name": "m"}
        )
        (tmp_path / "r" / "table.csv").write_text("model,item,score\nm,0,1\n")
        done = sh("bk-matrix --task easy r -v -t csv")
        assert done.out == b"model,item,attempts,correct,cluster\nm,0,1,1,\n"
        assert f"r/samples_hard_{STAMP}.jsonl: left out: of task hard\n" in done.err
        assert "left out by --task, since no task is named: r/table.csv" in done.err
        assert "several metrics (acc, f1)" in sh("bk-matrix --task hard r", rc=2).err
        for folder in ("r", f"r/samples_hard_{STAMP}.jsonl r/samples_easy_{STAMP}.jsonl"):
            assert "no task 'x' (found: easy, hard)" in sh(f"bk-matrix --task x {folder}", rc=2).err
        assert "no task 'x' (found: none)" in sh("bk-matrix --task x r/table.csv", rc=2).err
