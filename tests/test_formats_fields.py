"""Checked fields of JSON objects, and columns of Parquet files."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from native_files import write

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.fields import canonical, common, digest, first, goes_along, inner, members, records, text
from benchkit.formats.native import Document, identifier, look, parse


def document(path: Path) -> Document:
    doc = look(str(path), "auto", None)
    assert doc is not None
    return doc


class TestRecords:
    def test_lines_a_list_or_one_object(self, tmp_path: Path) -> None:
        rows = [{"a": 1}, {"a": 2}]
        assert list(records(document(write(tmp_path / "a.jsonl", rows)))) == [(1, rows[0]), (2, rows[1])]
        assert list(records(document(write(tmp_path / "a.json", rows)))) == [(1, rows[0]), (2, rows[1])]
        assert list(records(document(write(tmp_path / "b.json", rows[0])))) == [(1, rows[0])]
        assert list(records(document(write(tmp_path / "b.jsonl", rows[:1])))) == [(1, rows[0])]

    def test_first(self, tmp_path: Path) -> None:
        for value, want in (([{"a": 1}], {"a": 1}), ({"a": 1}, {"a": 1}), ([], {}), ([[]], {})):
            assert first(document(write(tmp_path / "a.json", value))) == want

    def test_files_that_go_along(self) -> None:
        layouts = ({"a", "b"}, {"c"})
        for keys, want in (("ab", True), ("abx", True), ("c", True), ("ax", False), ("", False)):
            assert goes_along(dict.fromkeys(keys), layouts) is want
        for score in ("score", "is_correct", "passed"):
            assert not goes_along({"a": 1, "b": 1, score: 1}, layouts)

    def test_a_file_that_many_ask_for_is_parsed_once(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", {"a": 1})
        found = common(str(path))
        assert found == {"a": 1} and common(str(path)) is found
        write(path, {"a": [1, 2]})
        assert common(str(path)) == {"a": [1, 2]}
        path.write_text("{")
        with pytest.raises(InputError, match=str(path)):
            common(str(path))
        path.unlink()
        assert common(str(path)) is None and common(str(tmp_path)) is None

    def test_others_are_named(self) -> None:
        with pytest.raises(InputError, match="trials are an object, not a list"):
            list(members({}, "trial"))
        with pytest.raises(InputError, match="trial 2 is null, not an object"):
            list(members([{}, None], "trial"))


class TestValues:
    def test_absent_and_null(self) -> None:
        assert inner({}, "a") == inner({"a": None}, "a") == {}
        assert text({}, "a") is text({"a": None}, "a") is text({"a": ""}, "a") is None
        assert inner({"a": {"b": 1}}, "a") == {"b": 1} and text({"a": "b"}, "a") == "b"

    def test_other_kinds(self) -> None:
        with pytest.raises(InputError, match="row 3: a is a flag, not an object"):
            inner({"a": True}, "a", 3)
        with pytest.raises(InputError, match="a is a number, not a text"):
            text({"a": 0.5}, "a")

    def test_canonical_text_is_the_same_for_equal_values(self) -> None:
        assert canonical({"b": [1], "a": "ü"}, "x") == canonical({"a": "ü", "b": [1]}, "x") == '{"a":"ü","b":[1]}'
        deep: list[object] = []
        for _ in range(300):
            deep = [deep]
        for odd in (deep, "\ud800", 10**30):
            with pytest.raises(InputError, match="row 1: vars is nested too deeply"):
                canonical(odd, "vars", 1)

    def test_digest(self) -> None:
        assert digest("abc") == hashlib.sha256(b"abc").hexdigest()[:12] and len(digest("\ud800")) == 12


class TestParse:
    def test_words_that_python_writes_for_numbers(self) -> None:
        got = parse(b'\xef\xbb\xbf{"a": [NaN, -Infinity, 1], "NaN": "\\"NaN Infinity", "n": 9007199254740993}')
        assert math.isnan(got["a"][0]) and got["a"][1:] == [-math.inf, 1]
        assert got["NaN"] == '"NaN Infinity' and got["n"] == 9007199254740993

    @pytest.mark.parametrize("nan", ("1", "NaN"))
    @pytest.mark.parametrize(
        "value",
        (b"1" + b"0" * 400, b"1" * 5000, b"1e999", b"[" * 99999, b'"a', b"nan", b"01", b"", b'"\xff"'),
    )
    def test_all_else_is_as_strict_with_them(self, nan: str, value: bytes) -> None:
        with pytest.raises(InputError, match=r"damaged or cut JSON: .* at line 1, column") as e:
            parse(b'{"a": %s, "b": %s}' % (nan.encode(), value))
        assert "\n" not in str(e.value)

    @pytest.mark.parametrize("nan", ("1", "NaN"))
    def test_large_numbers(self, nan: str) -> None:
        got = parse(b"[%s, 18446744073709551615, 18446744073709551616, -9223372036854775808]" % nan.encode())[1:]
        assert got == [2**64 - 1, 2.0**64, -(2**63)] and [type(x) for x in got] == [int, float, int]

    @pytest.mark.parametrize("nan", ("1", "NaN"))
    def test_halves_of_surrogate_pairs(self, nan: str) -> None:
        got = parse(rb'{"a": %s, "b": "x\ud83d", "c": "\ud83d\ude00", "d": "\\ud83d"}' % nan.encode())
        assert (got["b"], got["c"], got["d"]) == ("x\ud83d", "\U0001f600", "\\ud83d")

    def test_lines_that_begin_with_them(self, tmp_path: Path) -> None:
        doc = document(write(tmp_path / "a.jsonl", [{"a": math.nan}, {"a": 1}]))
        assert doc.kind == "ndjson" and len(list(doc.rows())) == 2

    def test_an_identifier_without_end(self) -> None:
        deep: list[object] = []
        for _ in range(3000):
            deep = [deep]
        with pytest.raises(InputError, match="row 1: item is lists in lists without end, which is no identifier"):
            identifier(deep, "item", 1)


class TestParquet:
    def test_only_what_is_asked_for(self, tmp_path: Path) -> None:
        table = pa.table({"a": [1, 2], "s": [{"x": "p", "y": 1}, None], "text": ["long", "longer"]})
        pq.write_table(table, tmp_path / "a.parquet")
        doc = document(tmp_path / "a.parquet")
        assert parquet.values(doc, "a") == [1, 2]
        assert parquet.values(doc, "s.x") == ["p", None]
        assert parquet.values(doc, "s") == [{"x": "p", "y": 1}, None]
        found = doc.first
        assert parquet.has_field(found, "s", "y") and not parquet.has_field(found, "s", "z")
        assert not parquet.has_field(found, "a", "x") and not parquet.has_field(found, "b", "x")

    def test_a_column_twice(self, tmp_path: Path) -> None:
        pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "a.parquet")
        with pytest.raises(InputError, match="column 'a' stands twice"):
            parquet.values(document(tmp_path / "a.parquet"), "a")

    def test_damaged_pages(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"a": [json.dumps({"k": k}) for k in range(500)]}), path, compression="zstd")
        data = bytearray(path.read_bytes())
        data[40:200] = b"\xff" * 160
        path.write_bytes(data)
        with pytest.raises(InputError, match="damaged"):
            parquet.values(document(path), "a")
