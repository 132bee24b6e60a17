"""All readers together: what --formats lists, and what none of them takes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import HOSTILE, reader, write

from benchkit import known_formats
from benchkit.formats import registry
from benchkit.formats.native import Document


class TestList:
    def test_every_reader_in_its_order(self) -> None:
        assert tuple(r.NAME for r in registry.READERS) == known_formats.TOOLS

    def test_every_reader_s_module_is_registered(self) -> None:
        folder = Path(registry.__file__).parent
        named = {p.stem for p in folder.glob("*.py") if "\ndef sniff(doc: Document)" in p.read_text()}
        assert named == {module.__name__.rpartition(".")[2] for module in registry.MODULES}
        assert all(importlib.import_module(f"benchkit.formats.{name}") in registry.MODULES for name in named)

    def test_printed_without_input_tables_first(self, sh: Shell) -> None:
        lines = sh("bk-matrix --formats < /dev/null").out.decode().splitlines()
        assert [line.split(":")[0] for line in lines[:4]] == ["long", "counts", "wide", "transposed"]
        assert lines[4:] == [r.NAME for r in registry.READERS]
        assert sh("bk-matrix --formats > /dev/full", rc=2).err.count("\n") == 1

    def test_nothing_heavy_is_imported(self) -> None:
        code = "import sys, benchkit.known_formats; print(sorted({'polars', 'pyarrow', 'numpy'} & sys.modules.keys()))"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


class TestNobody:
    @pytest.mark.parametrize(
        "row",
        (
            {"model": "a", "item": "q", "score": 1},
            {"model": "a", "question_id": "q", "score": 1, "category": "math"},
            {"model": "a", "task_id": "q", "trial": 0, "score": 1},
            {"model_id": "a", "item": "q", "attempts": 2, "correct": 1},
            {"model": "a", "q1": 1, "q2": 0},
            {"item": "q", "a": 1, "b": 0},
            {"subject_id": "a", "item_id": "q", "response": 1},
            {"results": 1, "details": 0, "simulations": 1},
        ),
    )
    def test_rows_of_tables(self, tmp_path: Path, row: dict[str, Any]) -> None:
        assert reader(write(tmp_path / "a.json", [row, row])) is None
        assert reader(write(tmp_path / "a.jsonl", [row, row])) is None
        pl.DataFrame([row, row]).write_parquet(tmp_path / "a.parquet")
        assert reader(tmp_path / "a.parquet") is None

    KEYS = (
        "results", "version", "simulations", "simulation_index", "details", "testCases", "testRunData", "testPassed",
        "responses", "subject_id", "question_id", "model", "score", "tstamp", "category", "task_id", "reward", "trial",
        "eval", "plan", "resolved", "task_name", "verifier_result", "trial_name", "is_resolved", "info", "tasks",
        "n_resolved", "n_unresolved", "doc_id", "resps", "instance_id", "stats", "idx", "correct", "answers", "name",
        "language", "prompt", "tests", "completions", "test_results", "metrics_data", "success", "test_result", "dps",
        "metadata", "error", "report", "git_patch", "patch", "args", "model_configs", "logs", "config", "prompts", "0",
        "persisted", "origin_prompt", "prediction", "eval_set_id", "pass@1", "solution", "status", "date", "agent_info",
    )  # fmt: skip

    @settings(max_examples=300)
    @given(st.data())
    def test_looking_never_fails(self, data: Any) -> None:
        """Objects with the keys that readers look for and values of every kind: an answer, for every reader."""
        values = st.sampled_from(HOSTILE)
        one = st.dictionaries(
            st.sampled_from(self.KEYS), st.one_of(values, st.dictionaries(st.sampled_from(self.KEYS), values))
        )
        first = data.draw(st.one_of(values, one, st.lists(one, max_size=2)))
        kind = data.draw(st.sampled_from(("json", "ndjson"))) if isinstance(first, dict) else "json"
        doc = Document(None, kind, first, json.dumps(first).encode())
        for r in registry.READERS:
            assert isinstance(r.sniff(doc), bool), r.NAME
