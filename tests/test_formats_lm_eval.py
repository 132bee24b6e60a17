"""Samples of lm-evaluation-harness in the layouts of its versions, and of lmms-eval.

The layouts are those that lm_eval 0.4.0, 0.4.2, 0.4.5 and 0.4.13 and lmms_eval 0.7.3 write; the values are invented.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError
from benchkit.formats.native import OtherTask

STAMP = "2026-01-21T03-44-18.458309"
GSM8K = {"filter_list": [{"name": "strict-match", "filter": []}, {"name": "flexible-extract", "filter": []}]}


def row(doc: Any, filter: str | None = "none", names: bool = True, **metrics: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"filter": filter} if filter else {}
    said |= {"metrics": list(metrics)} if names else {}
    return {"doc_id": doc, "doc": {"q": "2+2"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "x"}},
            "resps": [["4"]], "filtered_resps": ["4"], **said, "doc_hash": "h", "prompt_hash": "p",
            "target_hash": "t", **metrics}  # fmt: skip


def results(model: str | None = "org/m", **more: Any) -> dict[str, Any]:
    named = {"model_name": model} if model else {}
    return {"results": {}, "configs": {"gsm8k": {}}, "versions": {}, "config": {}} | named | more


class TestFilters:
    def test_of_several_filters_one_must_be_chosen(self, tmp_path: Path) -> None:
        rows = [row(0, f, exact_match=v) for f, v in (("strict-match", 0.0), ("flexible-extract", 1.0))]
        path = write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", rows)
        with pytest.raises(InputError, match=r"several filters \(flexible-extract, strict-match\): choose one with"):
            attempts(path)
        assert scores(attempts(path, filter="flexible-extract")) == {"0": [1]}

    def test_a_task_without_filters_needs_no_choice(self, tmp_path: Path) -> None:
        """The choice is for other tasks of the same folder."""
        path = write(tmp_path / "a.jsonl", [row(0, acc=1.0)])
        assert scores(attempts(path, filter="strict-match")) == {"0": [1]}
        with pytest.raises(InputError, match=r"no filter 'flexible' \(found: strict-match\)"):
            attempts(write(tmp_path / "b.jsonl", [row(0, "strict-match", acc=1.0)]), filter="flexible")

    def test_old_samples_stand_in_the_order_of_the_filters(self, tmp_path: Path) -> None:
        """Before 0.4.8 all documents by the first filter come first, then all by the second, without a name."""
        rows = [row(d, None, names=False, exact_match=v) for d, v in ((0, 0.0), (1, 0.0), (0, 1.0), (1, 0.0))]
        path = write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", rows)
        write(tmp_path / f"results_{STAMP}.json", results(configs={"gsm8k": GSM8K}))
        with pytest.raises(InputError, match=r"several filters \(flexible-extract, strict-match\)"):
            attempts(path)
        assert scores(attempts(path, filter="strict-match")) == {"0": [0], "1": [0]}
        assert scores(attempts(path, filter="flexible-extract")) == {"0": [1], "1": [0]}

    def test_without_the_configuration_they_stay_what_they_are(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [row(0, None, exact_match=v) for v in (0.0, 1.0)])
        assert scores(attempts(path)) == {"0": [0, 1]}  # a document twice, which is refused later


class TestMetrics:
    def test_of_several_metrics_one_must_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [row(0, acc=1.0, acc_norm=0.0), row(1, acc=0.0, acc_norm=1.0)])
        with pytest.raises(InputError, match=r"several metrics \(acc, acc_norm\)"):
            attempts(path)
        assert scores(attempts(path, metric="acc_norm")) == {"0": [0], "1": [1]}

    def test_parts_of_a_corpus_metric_are_no_choice(self, tmp_path: Path) -> None:
        """As glue's mrpc, whose f1 is of all documents together."""
        path = write(tmp_path / "a.jsonl", [row(0, acc=1.0, f1=[1, 1]), row(1, acc=0.0, f1=[0, 1])])
        assert scores(attempts(path)) == {"0": [1], "1": [0]}
        with pytest.raises(InputError, match="row 1: f1 is a list, a part of a corpus metric"):
            attempts(path, metric="f1")
        rows = [row(0, exact_match=1.0, chart={"pred": "D", "answer": "D"})]  # of lmms-eval
        path = write(tmp_path / "b.jsonl", rows)
        assert scores(attempts(path)) == {"0": [1]}
        with pytest.raises(InputError, match="row 1: chart is an object, a part of a corpus metric"):
            attempts(path, metric="chart")

    @pytest.mark.parametrize(
        "metrics",
        [{"word_perplexity": [-9.5, 4], "bits_per_byte": [-9.5, 9]}, {"bypass": None}, {"bypass": 0}, {}],
    )
    def test_samples_without_a_score_of_their_own_are_left_out(self, tmp_path: Path, metrics: dict[str, Any]) -> None:
        """Perplexity of a corpus, and answers only (--predict_only); no choice is of use."""
        path = write(tmp_path / "a.jsonl", [row(0, f, **metrics) for f in ("strict-match", "flexible-extract")])
        for metric in (None, "acc"):
            found = attempts(path, metric=metric)
            assert found and (found.items, found.skipped) == ([], {"sample without a score of its own": 2})

    def test_older_files_list_no_metrics(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [row(0, None, names=False, acc=1.0)])
        assert scores(attempts(path)) == {"0": [1]}

    def test_flags_and_numbers_of_numpy_stood_as_texts(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [row(n, acc=v) for n, v in enumerate(("True", "False", "0.25"))])
        assert scores(attempts(path)) == {"0": [1], "1": [0], "2": [0.25]}
        with pytest.raises(InputError, match='row 1: acc is "high", which is no score'):
            attempts(write(tmp_path / "b.jsonl", [row(0, acc="high")]))


class TestModel:
    def test_results_of_the_same_stamp(self, tmp_path: Path) -> None:
        path = write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", [row(0, acc=1.0)])
        write(tmp_path / f"results_{STAMP}.json", results("org/a"))
        write(tmp_path / "results_2026-01-22T03-44-18.458309.json", results("org/b"))
        found = attempts(path)
        assert found and (found.model, found.task, found.settings) == ("org/a", "gsm8k", f"results of {STAMP}")

    def test_an_output_path_that_is_a_file_names_the_results(self, tmp_path: Path) -> None:
        path = write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", [row(0, acc=1.0)])
        write(tmp_path / f"mine_{STAMP}.json", results("org/a"))
        found = attempts(path)
        assert found and found.model == "org/a"

    def test_results_of_other_stamps_serve_where_they_agree(self, tmp_path: Path) -> None:
        path = write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", [row(0, acc=1.0)])
        for day, model in ((22, "org/a"), (23, "org/a"), (24, "org/b")):
            found = attempts(path)
            assert found and found.model == (None if day == 22 else "org/a")
            write(tmp_path / f"results_2026-01-{day}T03-44-18.458309.json", results(model))
        found = attempts(path)
        assert found and found.model is None

    @pytest.mark.parametrize(
        ("arguments", "model"),
        [("pretrained=org/m,dtype=float16", "org/m"), ("model=gpt-x", "gpt-x"), ({"pretrained": "org/m"}, "org/m"),
         ("pretrained=org/m,peft=org/adapter", "org/adapter"), ("dtype=float16", None)],
    )  # fmt: skip
    def test_older_results_have_the_arguments_only(self, tmp_path: Path, arguments: Any, model: str | None) -> None:
        path = write(tmp_path / f"samples_gsm8k_{STAMP}.jsonl", [row(0, acc=1.0)])
        write(tmp_path / f"results_{STAMP}.json", results(None, config={"model": "hf", "model_args": arguments}))
        found = attempts(path)
        assert found and found.model == model


class TestLayouts:
    def test_lists_beside_results_json(self, tmp_path: Path) -> None:
        """0.4.0 to 0.4.2: <arguments>_<task>.jsonl holds an indented list; the task is known from the results."""
        path = tmp_path / "pretrained__org__m_arc_easy.jsonl"
        path.write_text(json.dumps([row(0, None, names=False, acc=1.0), row(1, None, names=False, acc=0.0)], indent=2))
        old = results(None, config={"model_args": "pretrained=org/m"}, configs={"easy": {}, "arc_easy": {}})
        write(tmp_path / "results.json", old)
        found = attempts(path)
        assert found and (found.model, found.task, scores(found)) == ("org/m", "arc_easy", {"0": [1], "1": [0]})

    def test_the_results_of_another_model_do_not_name_this_one(self, tmp_path: Path) -> None:
        """Before 0.4.3 a second run in a folder overwrites results.json."""
        for model in ("b", "a_b", "a"):
            path = write(tmp_path / f"pretrained__org__{model}_easy.jsonl", [row(0, None, names=False, acc=1.0)])
            arguments = {"model_args": f"pretrained=org/{model}"}
            write(tmp_path / "results.json", results(None, config=arguments, configs={"easy": {}}))
            found = attempts(path)
            assert found and found.model == f"org/{model}"
        for other in ("b", "a_b"):
            found = attempts(tmp_path / f"pretrained__org__{other}_easy.jsonl")
            assert found and found.model is None

    def test_results_of_an_output_path_that_is_a_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "pretrained__org__a_easy.jsonl", [row(0, None, names=False, acc=1.0)])
        write(tmp_path / "mine.json", results(None, config={"model_args": "pretrained=org/a"}, configs={"easy": {}}))
        found = attempts(path)
        assert found and (found.model, found.task) == ("org/a", "easy")
        write(tmp_path / "mine.json", {"model_name": "org/b"})
        found = attempts(path)
        assert found and found.model is None

    def test_samples_within_the_results(self, tmp_path: Path) -> None:
        whole = results("org/m", samples={"gsm8k": [row(0, acc=1.0)]})
        found = attempts(write(tmp_path / "a.json", whole))
        assert found and (found.model, found.task, scores(found)) == ("org/m", "gsm8k", {"0": [1]})
        both = whole | {"samples": {"gsm8k": [row(0, acc=1.0)], "arc_easy": [row(0, acc=0.0, acc_norm=1.0)]}}
        path = write(tmp_path / "b.json", both)
        with pytest.raises(InputError, match=r"samples of several tasks \(gsm8k, arc_easy\): choose one with --task"):
            attempts(path)
        found = attempts(path, task="gsm8k")
        assert found and (found.task, scores(found)) == ("gsm8k", {"0": [1]})
        with pytest.raises(OtherTask) as other:
            attempts(path, task="mmlu")
        assert other.value.args == ("arc_easy", "gsm8k")

    def test_parquet(self, tmp_path: Path) -> None:
        """As published: no name of a task or a model, and a column that is null where a sample lacks it."""
        rows = [row(n, "none", names=False, acc=v, acc_norm=1.0, f1=[1, 0]) for n, v in ((0, 1.0), (1, 0.0))]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
        with pytest.raises(InputError, match=r"several metrics \(acc, acc_norm\)"):
            attempts(tmp_path / "a.parquet")
        found = attempts(tmp_path / "a.parquet", metric="acc")
        assert found and (found.model, found.task, scores(found)) == (None, None, {"0": [1], "1": [0]})

    def test_results_alone_add_nothing(self, tmp_path: Path) -> None:
        assert attempts(write(tmp_path / f"results_{STAMP}.json", results())) is None

    def test_lmms_eval(self, tmp_path: Path) -> None:
        """No document, and no responses where the filtered ones are the same; a metric may be an object."""
        least = {"target": "A", "filtered_resps": "A", "doc_hash": "h", "token_counts": [None], "input": "?"}
        rows = [least | {"doc_id": n, "mme_score": {"question_id": "q", "score": v}} for n, v in ((0, 1.0), (1, 0.0))]
        path = write(tmp_path / "20260121_034418_samples_mme.jsonl", rows)
        write(tmp_path / "20260121_034418_results.json", results("org/m"))
        found = attempts(path)
        assert found and (found.model, found.task, scores(found)) == ("org/m", "mme", {"0": [1], "1": [0]})

    def test_lmms_eval_before_0_3(self, tmp_path: Path) -> None:
        logs = [row(n, None, names=False, acc=v, sub={"pred": "A"}) for n, v in ((0, 1.0), (1, 0.0))]
        whole = {"args": {"model": "llava", "model_args": "pretrained=org/m"}, "model_configs": {"task": "mme"},
                 "logs": logs, "time": "0101_0000"}  # fmt: skip
        path = write(tmp_path / "mme.json", whole)
        found = attempts(path)
        assert reader(path) == "lm_eval" and found
        assert (found.model, found.task, found.settings) == ("org/m", "mme", "results of 0101_0000")
        assert scores(found) == {"0": [1], "1": [0]}


@given(damaged([row(0, "a", acc=1.0, f1=[1, 0]), row(0, "b", acc="True", f1=[1, 0])]))
def test_damaged_samples(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    path = tmp_path_factory.mktemp("damaged") / "a.jsonl"
    path.write_text(json.dumps(document, indent=1))
    survives(path, filter="a", unscored="drop")


@given(damaged(results(configs={"gsm8k": GSM8K}, config={"model_args": "pretrained=org/m"})))
def test_damaged_results(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    path = write(tmp_path_factory.mktemp("damaged") / f"samples_gsm8k_{STAMP}.jsonl", [row(0, None, acc=1.0)] * 2)
    write(path.parent / f"results_{STAMP}.json", document)
    survives(path, filter="strict-match")


def test_recognised_by_content(tmp_path: Path) -> None:
    assert reader(write(tmp_path / "any.jsonl", [row(0, acc=1.0)])) == "lm_eval"
    assert reader(write(tmp_path / "any.json", results())) == "lm_eval"
