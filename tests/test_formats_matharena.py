"""MathArena: outputs of many models, and run files of one model and problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Shell
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError

ROWS = [
    {"model_name": m, "model_config": c, "problem_idx": p, "idx_answer": k, "correct": ok, "all_messages": "x" * 50}
    for m, c, p, k, ok in (
        ("GPT-5.5 (xhigh)", "openai/gpt-55", "1", 0, True),
        ("GPT-5.5 (xhigh)", "openai/gpt-55", "1", 1, True),
        ("GPT-5.5 (xhigh)", "openai/gpt-55", "10", 0, False),
        ("Qwen3.5-4B", "qwen/qwen35-4b", "2", 0, False),
    )
]
PROOFS = [
    {"model_name": "m", "model_config": "c", "problem_idx": str(p), "idx_answer": 0, "answer": "",
     "points_judge_1": a, "max_points_judge_1": 7, "points_judge_2": b, "max_points_judge_2": 7.0,
     "error_judge_1": "Logic", "error_judge_2": None}
    for p, a, b in ((1, 7.0, 3.5), (2, 0.0, None))
]  # fmt: skip
RUN = {
    "idx": 3, "problem": "", "gold_answer": "7", "source": "None", "types": [], "N": 3, "cost": {}, "pass_at_1": 0.5,
    "answers": ["7", "8", "None"], "correct": [True, False, "TODO Grading"], "warnings": [0, 0, 0],
    "messages": [[], [], []], "judgment": [None, None, None], "detailed_costs": [],
}  # fmt: skip


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pl.DataFrame(rows).write_parquet(path)
    return path


class TestOutputs:
    def test_attempts_by_model(self, sh: Shell) -> None:
        parquet(sh.folder / "a.parquet", ROWS)
        got = json.loads(sh("bk-matrix a.parquet -t json").out)
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got["responses"]] == [
            ("GPT-5.5 (xhigh)", "1", 2, 2),
            ("GPT-5.5 (xhigh)", "10", 1, 0),
            ("Qwen3.5-4B", "2", 1, 0),
        ]
        assert got["sources"][0]["format"] == "matharena outputs"

    def test_other_columns_are_not_read(self, sh: Shell) -> None:
        """The messages' pages may be damaged: they are never looked at."""
        path = parquet(sh.folder / "a.parquet", [r | {"all_messages": f"{k}" * 999} for k, r in enumerate(ROWS)])
        chunks = [pq.read_metadata(path).row_group(0).column(c) for c in range(6)]
        chunk = next(c for c in chunks if c.path_in_schema == "all_messages")
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        data = bytearray(path.read_bytes())
        data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
        path.write_bytes(data)
        with pytest.raises(OSError):
            pq.read_table(path)
        assert len(json.loads(sh("bk-matrix a.parquet -t json").out)["responses"]) == 3

    def test_lines(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", ROWS)
        assert reader(path) == "matharena"
        assert scores(attempts(path)) == {"1": [1.0, 1.0], "10": [0.0], "2": [0.0]}

    def test_judges_must_be_chosen(self, tmp_path: Path) -> None:
        for path in (parquet(tmp_path / "a.parquet", PROOFS), write(tmp_path / "a.jsonl", PROOFS)):
            with pytest.raises(InputError, match=r"several scorers \(judge_1, judge_2\): choose one with --scorer"):
                attempts(path)
            assert scores(attempts(path, scorer="judge_1")) == {"1": [1.0], "2": [0.0]}
            assert scores(attempts(path, scorer="judge_2")) == {"1": [0.5], "2": [None]}

    def test_configurations_of_one_name_are_models(self, tmp_path: Path) -> None:
        rows = [ROWS[0], ROWS[0] | {"model_config": "openai/gpt-55--low"}, ROWS[3]]
        got = attempts(parquet(tmp_path / "a.parquet", rows))
        assert got is not None and got.models == [
            "GPT-5.5 (xhigh) (openai/gpt-55)", "GPT-5.5 (xhigh) (openai/gpt-55--low)", "Qwen3.5-4B",
        ]  # fmt: skip

    def test_attempts_that_stand_twice(self, sh: Shell) -> None:
        parquet(sh.folder / "a.parquet", [*ROWS, ROWS[1]])
        err = sh("bk-matrix a.parquet", rc=2).err
        assert "rows 2 and 5: model 'GPT-5.5 (xhigh)', item '1', attempt '1', stand twice" in err


class TestRuns:
    def test_a_run_file(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "gpt-55" / "3.json", RUN))
        assert scores(got) == {"3": [1.0, 0.0, None]}
        assert got is not None and got.model is None and got.numbers == ["0", "1", "2"]

    def test_packed_files_of_several_models(self, sh: Shell) -> None:
        for model in ("gpt-55", "qwen"):
            for problem in (1, 2):
                document = RUN | {"idx": problem, "correct": [model == "qwen", problem == 1, 0.25]}
                path = write(sh.folder / "aime" / model / f"{problem}.json", document)
                with pa.CompressedOutputStream(f"{path}.zst", "zstd") as packed:
                    packed.write(path.read_bytes())
                path.unlink()
        assert "--model-from path" in sh("bk-matrix aime", rc=2).err
        got = json.loads(sh("bk-matrix aime --model-from path -t json").out)["responses"]
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got] == [
            ("gpt-55", "1", 3, 1.25), ("gpt-55", "2", 3, 0.25), ("qwen", "1", 3, 2.25), ("qwen", "2", 3, 1.25),
        ]  # fmt: skip

    def test_the_problem_is_the_files_name(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / "4.json", RUN))).keys() == {"4"}  # idx was one too low for a time
        assert scores(attempts(write(tmp_path / "003.json", RUN))).keys() == {"3"}
        assert scores(attempts(write(tmp_path / "run.json", RUN))).keys() == {"3"}
        with pytest.raises(InputError, match="idx is 3, but the file is of problem 9"):
            attempts(write(tmp_path / "9.json", RUN))

    def test_proofs(self, tmp_path: Path) -> None:
        """`correct` is the mean of the judges, which are a list each; before they were averaged one must be chosen."""
        judges = [[{"points": p, "max_points": 7} if p is not None else None for p in given]
                  for given in ((7, 0, None), (3.5, 0, 7))]  # fmt: skip
        path = write(tmp_path / "3.json", RUN | {"judgment": judges, "correct": [0.75, 0, 1.0]})
        assert scores(attempts(path)) == {"3": [0.75, 0.0, 1.0]}
        assert scores(attempts(path, scorer="judge_1")) == {"3": [1.0, 0.0, None]}
        with pytest.raises(InputError, match=r"no scorer 'x' \(found: correct, judge_1, judge_2\)"):
            attempts(path, scorer="x")
        path = write(path, RUN | {"judgment": judges, "correct": ["TODO Grading"] * 3})
        with pytest.raises(InputError, match=r"several scorers \(judge_1, judge_2\): choose one with --scorer"):
            attempts(path)
        assert scores(attempts(path, scorer="judge_2")) == {"3": [0.5, 0.0, 1.0]}
        with pytest.raises(InputError, match="3 grades for 2 answers"):
            attempts(write(path, RUN | {"judgment": judges, "correct": [], "answers": ["a", "b"]}), scorer="judge_2")
        path = write(path, RUN | {"judgment": judges[1:], "correct": ["TODO Grading"] * 3})
        assert scores(attempts(path)) == {"3": [0.5, 0.0, 1.0]}

    def test_answers_without_a_grade_are_not_scored(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / "a.json", RUN | {"correct": [True]}))) == {"3": [1.0, None, None]}
        with pytest.raises(InputError, match="4 grades for 3 answers"):
            attempts(write(tmp_path / "a.json", RUN | {"correct": [True] * 4}))


class TestHostile:
    @pytest.mark.parametrize(
        ("rows", "said"),
        (
            ([ROWS[0], ROWS[1] | {"idx_answer": None}, ROWS[2] | {"problem_idx": None}], "row 3: item is null"),
            ([PROOFS[0] | {"max_points_judge_1": 0.0}], "row 1: max_points_judge_1 is no positive number"),
            ([{k: v for k, v in ROWS[0].items() if k != "correct"}], "no scorer found"),
            ([{k: v for k, v in PROOFS[0].items() if "2" not in k and "max" not in k}], "no column max_points_judge_1"),
        ),
    )  # fmt: skip
    def test_one_clear_line(self, tmp_path: Path, rows: Any, said: str) -> None:
        path = parquet(tmp_path / "a.parquet", rows)
        with pytest.raises(InputError, match=said):
            attempts(path, scorer="judge_1" if "judge" in said else None)

    @pytest.mark.parametrize("cut", (0.3, 0.7, 0.99))
    def test_cut_files(self, tmp_path: Path, cut: float) -> None:
        path = parquet(tmp_path / "a.parquet", ROWS)
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * cut)])
        with pytest.raises(InputError, match="damaged or cut Parquet data"):
            attempts(path)

    @settings(max_examples=150)
    @example(b"\x01", 249)  # columns of different lengths
    @given(st.binary(min_size=1, max_size=4), st.integers(4, 1 << 16))
    def test_damaged_columns(self, tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int) -> None:
        path = parquet(tmp_path_factory.mktemp("ma") / "a.parquet", ROWS)
        data = bytearray(path.read_bytes())
        at = 4 + at % (len(data) - 12)
        data[at : at + len(junk)] = junk
        path.write_bytes(data)
        survives(path, duplicates="first", unscored="drop")

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged_documents(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        folder = tmp_path_factory.mktemp("ma")
        survives(write(folder / "3.json", data.draw(damaged(RUN))), unscored="drop")
        lines = data.draw(damaged(data.draw(st.sampled_from((ROWS, PROOFS)))))
        if isinstance(lines, list):
            survives(write(folder / "a.jsonl", lines), unscored="drop", duplicates="last")
