"""JSON objects as columns: in one pass and on several cores as in the plain way."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import Shell
from hypothesis import given
from hypothesis import strategies as st

from benchkit import jsontext, workers
from benchkit.formats import objects
from benchkit.formats.objects import LateColumn, of_lines, of_rows

VALUES = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.sampled_from((0.5, 1.0)),
                   st.text(max_size=3))  # fmt: skip


def table(found: objects.Objects, names: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in found.batches(names):
        rows += batch.to_pylist()
    return rows


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks and ranges of little files, in two processes."""
    monkeypatch.setattr(jsontext, "BLOCK", 64)
    monkeypatch.setattr(objects, "RANGE", 100)
    monkeypatch.setattr(workers, "cores", lambda: 2)


class TestColumns:
    @given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1, max_size=9))
    def test_values_keep_their_kind_or_become_text(self, rows: list[dict[str, Any]]) -> None:
        found = of_rows(rows)
        names = list(dict.fromkeys(n for row in rows for n in row))
        assert list(found.kinds) == names
        for name in names:
            values = [row.get(name) for row in rows]
            kinds = {type(v) for v in values if v is not None}
            got = [row[name] for row in table(found, [name])]
            same = [v if v is None or isinstance(v, str) else str(v).lower() if isinstance(v, bool) else repr(v)
                    for v in values]  # fmt: skip
            assert got == (same if any(isinstance(v, str) for v in got) else values)
            assert len(kinds) > 1 or found.kinds[name] <= {"text", "flag", "whole", "number", "null"}

    def test_records(self) -> None:
        assert list(of_rows([{"a": 1}, {"b": [2]}]).records()) == [{"a": 1}, {"b": [2]}]

    def test_very_many_columns(self) -> None:
        found = of_rows([{f"q{k}-{j}": 1 for j in range(40)} for k in range(40)])
        assert len(found.kinds) == 1600


class TestLines:
    def test_parts_of_a_file_are_the_file(self, tmp_path: Path, small: None) -> None:
        rows = [{"model": f"m{k % 3}", "item": k, "score": k % 2 == 0, "note": "x" * (k % 50)} for k in range(200)]
        path = lines(tmp_path / "a.jsonl", rows)
        names = ["model", "item", "score"]
        plain, parts = of_lines(partial(open, path, "rb")), of_lines(partial(open, path, "rb"), str(path))
        assert len(objects._ranges(str(path))) > 20
        assert table(parts, names) == table(plain, names) == [{n: row[n] for n in names} for row in rows]
        assert parts.line(0) == 1 and parts.line(150) == 151

    def test_blank_lines_marks_and_nan(self, tmp_path: Path, small: None) -> None:
        (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"a":NaN}\n{"a":2}')
        path = str(tmp_path / "a.jsonl")
        for found in (of_lines(partial(open, path, "rb")), of_lines(partial(open, path, "rb"), path)):
            assert str([float(row["a"]) for row in table(found, ["a"])]) == "[1.0, nan, 2.0]"
            assert [found.line(k) for k in range(3)] == [1, 4, 5]

    def test_a_column_that_could_play_a_part_begins_late(self, tmp_path: Path, small: None) -> None:
        rows: list[dict[str, Any]] = [{"model": "a", "item": k, "score": 1} for k in range(30)]
        path = lines(tmp_path / "a.jsonl", [*rows, {"model": "a", "item": 30, "score": 0, "Resolved": 1}])
        with pytest.raises(LateColumn):
            table(of_lines(partial(open, path, "rb"), str(path)), ["score"])
        lines(path, [*rows, {"model": "a", "item": 30, "score": 0, "note": 1}])
        assert len(table(of_lines(partial(open, path, "rb"), str(path)), ["score"])) == 31


class TestCommand:
    """Files whose first block, 4 MiB, does not tell what comes."""

    LONG = [{"model": "a", "item": f"q{k}", "score": k % 2, "note": "x" * 4000} for k in range(1100)]  # noqa: RUF012

    def run(self, sh: Shell, last: dict[str, Any], rc: int = 2) -> str:
        lines(sh.folder / "a.jsonl", [*self.LONG, last])
        by_pipe = sh("bk-matrix < a.jsonl", rc=rc)
        by_name = sh("bk-matrix a.jsonl", rc=rc)
        assert by_name.err.replace("a.jsonl", "<stdin>") == by_pipe.err
        return by_name.err

    def test_errors_are_those_of_the_whole(self, sh: Shell) -> None:
        assert "item 'q0' stand twice" in self.run(sh, {"model": "a", "item": "q0", "score": 1})
        assert "score and resolved could be the score" in self.run(
            sh, {"model": "a", "item": "z", "score": 1, "resolved": 1}
        )
        assert "column 'item' holds floating-point numbers" in self.run(sh, {"model": "a", "item": 0.5, "score": 1})
        assert "column 'score' holds lists or objects" in self.run(sh, {"model": "a", "item": "z", "score": [1]})
        assert "row 1101: score ('2') is outside [0,1]" in self.run(sh, {"model": "a", "item": "z", "score": 2})
        assert "row 1101: the model or the item is missing" in self.run(sh, {"model": "a", "score": 1})

    def test_a_wide_table_has_late_items(self, sh: Shell) -> None:
        rows: list[dict[str, Any]] = [{"model": f"m{k}", "q1": 1, "q2": 0} for k in range(200_000)]
        lines(sh.folder / "a.jsonl", [*rows, {"model": "z", "q3": 1}])
        got = json.loads(sh("bk-matrix a.jsonl --to json | jq -c '[.responses[-1].item, .sources[0].items]'").out)
        assert got == ["q3", 3]

    def test_text_that_pyarrow_can_t_hold(self, sh: Shell) -> None:
        (sh.folder / "a.jsonl").write_text('{"model":"\\ud800","item":1,"score":1}\n{"model":"b","item":1,"score":1}\n')
        assert "text that is no Unicode" in sh("bk-matrix a.jsonl", rc=2).err


def test_columns_are_arrow_arrays() -> None:
    (batch,) = of_rows([{"a": 2**64, "b": True}, {"a": 1, "b": None}]).batches(["b", "a"])
    assert batch.schema.types == [pa.bool_(), pa.utf8()]
