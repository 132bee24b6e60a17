"""Details of lighteval and the Open LLM Leaderboard: documents, metrics, and where the model's name is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, reader, scores, survives, write

from benchkit.errors import InputError

DATE = "2026-01-02T03-04-05.678901"
NAME = f"details_lighteval|gsm8k|0_{DATE}.parquet"


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def new(item: Any, /, **metrics: Any) -> dict[str, Any]:
    doc = {"query": "..", "choices": ["A", "B"], "gold_index": 0, "id": item}
    return {"__doc__": doc, "__metric__": metrics, "__model_response__": {"text": ["x"]}}


def general(**about: Any) -> dict[str, Any]:
    return {"config_general": about, "results": {}, "versions": {}, "config_tasks": {}}


LEADERBOARD = [
    {
        "example": q,
        "hashes": {"example": h, "full_prompt": "x"},
        "predictions": [a],
        "metrics": {"acc": a, "acc_norm": b},
    }
    for q, h, a, b in (("2+2", "h1", 1.0, 0.0), ("1+1", "h2", 0.0, 1.0))
]


class TestDetails:
    def test_documents_by_their_identifier(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", [new("0", em=0.0), new("10", em=1.0), new("2", em=None)])
        assert reader(path) == "lighteval" and scores(attempts(path)) == {"0": [0.0], "10": [1.0], "2": [None]}

    def test_columns_before_they_had_underscores(self, tmp_path: Path) -> None:
        rows = [{"doc": {"id": "7"}, "metric": {"em": 1}, "model_response": "x"}]
        assert scores(attempts(parquet(tmp_path / "a.parquet", rows))) == {"7": [1.0]}

    def test_several_metrics(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", [new("0", em=0.0, qem=True, judge=[1.0], note="x")])
        with pytest.raises(InputError, match=r"several metrics \(em, qem\): choose one with --metric"):
            attempts(path)
        assert scores(attempts(path, metric="qem")) == {"0": [1.0]}
        with pytest.raises(InputError, match=r"no metric 'judge' \(found: em, qem\)"):
            attempts(path, metric="judge")

    def test_metrics_of_the_corpus_only_are_left_out(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", [new(str(n), bleu=["x", "y"]) for n in range(3)])
        for metric in (None, "em"):
            found = attempts(path, metric=metric)
            assert found and (found.items, found.skipped) == ([], {"document without a score of its own": 3})

    def test_without_identifiers_place_and_hash(self, tmp_path: Path) -> None:
        rows = [{"full_prompt": f"q{k}", "metrics": {"em": float(k)}, "predictions": ["x"]} for k in range(2)]
        want = [f"{k}-{hashlib.sha256(f'q{k}'.encode()).hexdigest()[:12]}" for k in range(2)]
        assert list(scores(attempts(parquet(tmp_path / "a.parquet", rows)))) == want
        nameless = [new("", em=0.0), new("", em=1.0)]
        assert len(scores(attempts(parquet(tmp_path / "b.parquet", nameless)))) == 2

    def test_leaderboard(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "a.parquet", LEADERBOARD)
        assert scores(attempts(path, metric="acc")) == {"0-h1": [1.0], "1-h2": [0.0]}
        with pytest.raises(InputError, match="acc, acc_norm"):
            attempts(path)


class TestPrinted:
    """lighteval 0.6.2 casts every column to text with str()."""

    def test_metrics_as_python_prints_them(self, tmp_path: Path) -> None:
        values: list[Any] = [0.0, 1, True, None, float("nan"), 5e-05, 1e-07]
        metrics = [{"logits": [0.5, "x"], "em": v, "note": "a, b"} for v in values]
        rows = [{"full_prompt": str(k), "metrics": str(m), "predictions": "['x']"} for k, m in enumerate(metrics)]
        got = scores(attempts(parquet(tmp_path / "a.parquet", rows)))
        assert [s for [s] in got.values()] == [0.0, 1.0, 1.0, None, None, 5e-05, 1e-07]

    def test_numbers_of_numpy(self, tmp_path: Path) -> None:
        rows = [{"full_prompt": "q", "metrics": "{'em': np.float64(0.5), 'f1': 1.0}", "predictions": "[]"}]
        assert scores(attempts(parquet(tmp_path / "a.parquet", rows), metric="em")) == {
            f"0-{hashlib.sha256(b'q').hexdigest()[:12]}": [0.5]
        }

    @pytest.mark.parametrize(
        "said", ["", "{", "{}x", "{'em': 1", "{'em': {'a': 1}}", "{'em': f()}", "[1]", "{'em': 1 'f1': 2}"]
    )
    def test_other_texts_are_refused(self, tmp_path: Path, said: str) -> None:
        rows = [{"full_prompt": "q", "metrics": said, "predictions": "[]"}]
        with pytest.raises(InputError, match="row 1: metrics is no struct of metrics, and no printed one"):
            attempts(parquet(tmp_path / "a.parquet", rows))

    @given(st.text("{}'[](), :.0123456789aenmp\\", max_size=60))
    def test_any_text(self, tmp_path_factory: pytest.TempPathFactory, said: str) -> None:
        rows = [{"full_prompt": "q", "metrics": said, "predictions": "[]"}]
        survives(parquet(tmp_path_factory.mktemp("a") / "a.parquet", rows), unscored="drop")


class TestNames:
    def test_the_results_name_the_model(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "details" / "org" / "folder" / DATE / NAME, [new("0", em=1.0)])
        results = tmp_path / "results" / "org" / "folder" / f"results_{DATE}.json"
        write(results, general(model_name="org/Model", model_sha="0123456789abcdef"))
        got = attempts(path)
        assert got and (got.model, got.task) == ("org/Model", "lighteval|gsm8k|0")
        assert got.settings == f"revision 0123456789ab, details of {DATE}"
        write(results, general(model_config={"model_name": "org/Other"}))
        got = attempts(path)
        assert got and (got.model, got.settings) == ("org/Other", f"details of {DATE}")
        assert reader(results) == "lighteval" and attempts(results) is None

    def test_else_the_folder_that_lighteval_named(self, tmp_path: Path) -> None:
        got = attempts(parquet(tmp_path / "details" / "org" / "model" / DATE / NAME, [new("0", em=1.0)]))
        assert got and got.model == "org/model"

    def test_leaderboard_results_lie_above(self, tmp_path: Path) -> None:
        path = parquet(tmp_path / "details_org__m" / DATE / NAME, LEADERBOARD)
        got = attempts(path, metric="acc")
        assert got and got.model is None and got.folder == str(tmp_path / "details_org__m")
        write(tmp_path / "details_org__m" / f"results_{DATE}.json", general(model_name="org/m"))
        got = attempts(path, metric="acc")
        assert got and got.model == "org/m"

    def test_a_folder_of_tasks_and_models(self, sh: Shell) -> None:
        for model in ("org/a", "org/b"):
            for task in ("x", "y"):
                folder = sh.folder / "out" / "details" / model / DATE
                parquet(folder / f"details_{task}|0_{DATE}.parquet", [new("0", em=float(model == "org/a"))])
            write(sh.folder / "out" / "results" / model / f"results_{DATE}.json", general(model_name=model))
        assert "several tasks (x|0, y|0): choose one with --task" in sh("bk-matrix out", rc=2).err
        got = json.loads(sh("bk-matrix out --task 'x|0' -t json").out)["responses"]
        assert [(r["model"], r["item"], r["correct"]) for r in got] == [("org/a", "0", 1), ("org/b", "0", 0)]

    def test_a_renamed_file_has_no_model(self, sh: Shell) -> None:
        parquet(sh.folder / "a.parquet", [new("0", em=1.0)])
        assert "the file records no model" in sh("bk-matrix a.parquet", rc=2).err
        assert sh("bk-matrix --model m -t csv < a.parquet").out.decode().splitlines()[1] == "m,0,1,1,"


class TestHostile:
    def test_no_documents(self, tmp_path: Path) -> None:
        rows = [{"__doc__": 3, "__metric__": {"em": 1.0}}]
        with pytest.raises(InputError, match="documents without id, hash or text"):
            attempts(parquet(tmp_path / "a.parquet", rows))

    def test_no_rows(self, tmp_path: Path) -> None:
        table = pa.Table.from_pylist([new("0", em=1.0)]).slice(0, 0)
        pq.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(InputError, match="no metric found"):
            attempts(tmp_path / "a.parquet")

    def test_a_cut_file(self, sh: Shell) -> None:
        data = parquet(sh.folder / "a.parquet", [new(str(k), em=1.0) for k in range(50)]).read_bytes()
        (sh.folder / "a.parquet").write_bytes(data[:-20])
        assert "damaged or cut Parquet data" in sh("bk-matrix a.parquet", rc=2).err

    @settings(max_examples=60)
    @given(st.data())
    def test_columns_of_any_kind(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        values = st.sampled_from((1, "x", None, [1.0], {"id": "a"}, {"id": 3}, {"em": 1.0}, {"em": "x"}, True, b"\xff"))
        names = st.sampled_from(("__doc__", "__metric__", "metrics", "predictions", "hashes", "full_prompt", "example"))
        row = data.draw(st.dictionaries(names, values, min_size=2)) | {"__metric__": data.draw(values)}
        path = parquet(tmp_path_factory.mktemp("l") / "a.parquet", [row])
        survives(path, unscored="drop")
