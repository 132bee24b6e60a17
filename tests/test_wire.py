"""The wire: what is written comes back, what is damaged is never a table, what is written is whole or not there."""

from __future__ import annotations

import gzip
import io
from argparse import Namespace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchkit import decode, encode, wire
from benchkit.errors import InputError
from benchkit.tables import PARAMETERS, RESPONSES, Table
from benchkit.text import View

FORMATS = ("arrow", "parquet", "json", "ndjson", "csv", "tsv")
MARKER = bytes.fromhex("ffffffff00000000")


def call(**options: Any) -> Namespace:
    base = {"command": "bk-test", "file": None, "from_": "auto", "to": "arrow", "output": None, "argv": [], "seed": 0}
    flags = {"allow_unterminated": False, "no_provenance": False, "quiet": True, "verbose": False}
    return Namespace(**base | flags | options)


def table(rows: list[dict[str, Any]], spec: Table = RESPONSES) -> pa.Table:
    schema = spec.schema()
    return pa.table([pa.array([r.get(f.name) for r in rows], f.type) for f in schema], schema=schema)


ROWS = [
    {"model": m, "item": f"q{k}", "attempts": 4, "correct": float(c), "cluster": "x" if k < 2 else None}
    for m, counts in (("a", (4, 3, 0)), ("b", (1, 2, 2)))
    for k, c in enumerate(counts)
]


def stream(t: pa.Table, batch: int = 2) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, t.schema) as writer:
        for b in t.to_batches(max_chunksize=batch):
            writer.write_batch(b)
    return sink.getvalue().to_pybytes()


def encoded(to: str, rows: list[dict[str, Any]] = ROWS, **meta: Any) -> bytes:
    document = {"responses": table(rows), **meta, "warnings": meta.get("warnings", []), "history": [{"cmd": "bk-test"}]}
    return encode.serialise(document, RESPONSES, to, lambda: View([], []))


def frame(data: bytes, spec: Table = RESPONSES, **options: Any) -> wire.Frame:
    raw = decode.decode(data, options.pop("from_", "auto"), spec, **options)
    return wire.to_frame(raw, spec, "<stdin>")


def refused(data: bytes, spec: Table = RESPONSES, **options: Any) -> str:
    with pytest.raises(InputError) as e:
        frame(data, spec, **options)
    text = str(e.value)
    assert "\n" not in text and len(text) < 400, text
    return text


# Any text a JSON or CSV file can hold: no lone surrogates. NUL and line ends inside identifiers are legal.
ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


@st.composite
def responses(draw: Any) -> list[dict[str, Any]]:
    keys = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=8, unique=True))
    clusters = {item: draw(st.none() | ids) for _, item in keys}
    rows = []
    for m, j in keys:
        n = draw(st.integers(1, 2**31 - 1))
        y = draw(st.integers(0, n).map(float) | st.floats(0, n))
        rows.append({"model": m, "item": j, "attempts": n, "correct": y, "cluster": clusters[j]})
    return rows


class TestRoundTrip:
    @pytest.mark.parametrize("to", FORMATS)
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(rows=responses())
    def test_responses_come_back_sorted_and_whole(self, to: str, rows: list[dict[str, Any]]) -> None:
        got = frame(encoded(to, rows), from_=to).table
        assert got.schema.equals(RESPONSES.schema())
        assert got.to_pylist() == sorted(rows, key=lambda r: (r["model"], r["item"]))

    @pytest.mark.parametrize("to", FORMATS)
    def test_parameters_with_draws(self, to: str) -> None:
        rows = [
            {"kind": "item", "id": "b", "mean": 0.1, "sd": 0.25, "lower": -1.5, "upper": 2.0, "rhat": None,
             "attempts": 2**40, "correct": 3.5, "boundary": True, "origin": "fit", "draws": [0.5, -0.25]},
            {"kind": "hyper", "id": "mu_b", "mean": 1e-300, "sd": 0.0, "lower": 0.0, "upper": 1.0, "rhat": 1.01,
             "draws": [1.0, 3.0]},
        ]  # fmt: skip
        document = {"fit": {"method": "nuts"}, "parameters": table(rows, PARAMETERS), "warnings": ["w"], "history": []}
        got = frame(encode.serialise(document, PARAMETERS, to, lambda: View([], [])), PARAMETERS)
        want = table([rows[1], rows[0]], PARAMETERS)
        assert got.table.to_pylist() == want.to_pylist()
        if to in ("arrow", "parquet", "json"):
            assert got.fit == {"method": "nuts"} and got.warnings == ["w"]

    @pytest.mark.parametrize("to", ("arrow", "parquet", "json"))
    def test_what_travels_with_the_rows(self, to: str) -> None:
        got = frame(encoded(to, sources=[{"source": "x.csv"}], warnings=["careful"]))
        assert got.history == [{"cmd": "bk-test"}]
        assert got.sources == [{"source": "x.csv"}] and got.warnings == ["careful"]

    def test_equal_input_in_any_order_and_chunking_gives_equal_bytes(self) -> None:
        shuffled = pa.concat_tables([table([r]) for r in reversed(ROWS)])
        sorted_again = frame(stream(shuffled, 1)).table
        document = {"responses": sorted_again, "warnings": [], "history": [{"cmd": "bk-test"}]}
        assert encode.serialise(document, RESPONSES, "arrow", lambda: View([], [])) == encoded("arrow")

    def test_arrow_on_the_wire_is_plain_and_tagged(self) -> None:
        data = encoded("arrow")
        assert data[:4] == b"\xff\xff\xff\xff" and data.endswith(MARKER)
        schema = pa.ipc.open_stream(data).schema
        assert [str(f.type) for f in schema] == ["string", "string", "int32", "double", "string"]
        assert [f.nullable for f in schema] == [False, False, False, False, True]
        assert schema.metadata[b"benchkit.table"] == b"responses/1"
        assert orjson.loads(schema.metadata[b"benchkit.history"]) == [{"cmd": "bk-test"}]

    def test_json_writes_whole_sums_as_integers_and_keeps_fractions(self) -> None:
        assert b'"correct":4,' in encoded("json")
        half = [ROWS[0] | {"correct": 3.5}, ROWS[1]]
        assert b'"correct":3.5,' in encoded("json", half)


class TestForeignWriters:
    """The same rows as other programs write them."""

    def test_any_arrow_types(self) -> None:
        t = table(ROWS).drop(["cluster"])
        for kind in (pa.large_utf8(), pa.string_view(), pa.dictionary(pa.int8(), pa.utf8())):
            for number in (pa.uint8(), pa.int64(), pa.float32()):
                odd = t.set_column(0, "model", t["model"].cast(kind)).set_column(
                    2, "attempts", t["attempts"].cast(number)
                )
                assert frame(stream(odd)).table.to_pylist() == [
                    r | {"cluster": r["cluster"]} for r in _without_cluster()
                ]

    def test_compressed_batches_columns_in_any_order_and_extra_columns(self) -> None:
        t = table(ROWS).select(["correct", "item", "attempts", "model", "cluster"]).append_column("note", [["x"] * 6])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, t.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(t)
        assert frame(sink.getvalue().to_pybytes()).table.to_pylist() == ROWS

    def test_arrow_file_parquet_gzip_zstd(self) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table(ROWS).schema) as writer:
            writer.write_table(table(ROWS))
        parquet = pa.BufferOutputStream()
        pq.write_table(table(ROWS), parquet)
        csv = encoded("csv")
        for data in (
            sink.getvalue().to_pybytes(),
            parquet.getvalue().to_pybytes(),
            gzip.compress(csv),
            gzip.compress(csv[:30]) + gzip.compress(csv[30:]),
            pa.compress(stream(table(ROWS)), codec="zstd", asbytes=True),
            gzip.compress(pa.compress(csv, codec="zstd", asbytes=True)),
        ):
            assert frame(data).table.to_pylist() == ROWS

    def test_polars(self) -> None:
        import polars as pl

        out = io.BytesIO()
        pl.DataFrame(table(ROWS)).write_ipc_stream(out)
        assert frame(out.getvalue()).table.to_pylist() == ROWS
        out = io.BytesIO()
        names = pl.col("model", "item").cast(pl.Categorical)
        pl.DataFrame(table(ROWS)).with_columns(names).write_ipc_stream(out)
        assert frame(out.getvalue()).table.to_pylist() == ROWS

    def test_hand_made_text(self) -> None:
        want = [{"model": "a", "item": "q", "attempts": 2, "correct": 1.0, "cluster": None}]
        for text in (
            "model,item,attempts,correct\na,q,2,1\n",
            "model,item,attempts,correct\na,q,2,1",
            "\ufeffmodel,item,attempts,correct\r\na,q,2,1\r\n",
            "item;model;correct;attempts\nq;a;1;2\n",
            "model\titem\tattempts\tcorrect\na\tq\t2.0\t1.0\n",
            "model, item, attempts, correct\n\n\na,q, 2 , 1\n\n",
            '"model","item","attempts","correct"\n"a","q","2","1"\n',
            '[{"model":"a","item":"q","attempts":2,"correct":1}]',
            '{"responses":[{"model":"a","item":"q","attempts":"2","correct":"1"}]}',
            '{"model":"a","item":"q","attempts":2,"correct":1}',
            '\n\n{"model":"a","item":"q","attempts":2.0,"correct":1,"more":{"x":[1]}}\n\n',
        ):
            assert frame(text.encode()).table.to_pylist() == want, text

    def test_identifiers_stay_as_they_are(self) -> None:
        pairs = [tuple(r.split(",")) for r in ("007,1", "7,1", "1e3,2", "NA,4", "null,5")]
        text = "model,item,attempts,correct\n" + "".join(f"{m},{j},1,1\n" for m, j in pairs)
        got = frame(text.encode()).table
        assert [(r["model"], r["item"]) for r in got.to_pylist()] == sorted(pairs)


def _without_cluster() -> list[dict[str, Any]]:
    return [r | {"cluster": None} for r in ROWS]


class TestDamage:
    """No cut, no junk and no hole is ever read as a table."""

    def test_a_stream_cut_at_any_byte(self) -> None:
        data = stream(table(ROWS))
        assert frame(data).table.num_rows == 6
        for cut in range(len(data)):
            refused(data[:cut]) if cut else None

    def test_a_stream_cut_at_any_byte_unterminated_allowed(self) -> None:
        """The escape hatch accepts a missing marker between messages, and nothing else."""
        data = stream(table(ROWS))
        rows = set()
        for cut in range(8, len(data)):
            try:
                rows.add(frame(data[:cut], unterminated=True).table.num_rows)
            except InputError:
                pass
        assert rows == {2, 4, 6}

    def test_a_body_that_ends_like_the_marker(self) -> None:
        """32 trues: a bit-packed body of ff ff ff ff, padded with zeros, looks like the end of the stream."""
        t = pa.table({"flag": pa.array([True] * 32)})
        data = stream(t, 32)
        cut = data[:-8]
        assert cut.endswith(MARKER)
        with pytest.raises(InputError, match="no end marker"):
            decode.decode(cut, "auto", None)

    def test_second_stream_cut_at_any_byte(self) -> None:
        one, two = stream(table(ROWS[:3])), stream(table(ROWS[3:]))
        assert frame(one + two).table.to_pylist() == ROWS
        for cut in range(1, len(two)):
            refused(one + two[:cut])

    @pytest.mark.parametrize("to", ("arrow", "parquet"))
    def test_junk_after_or_between(self, to: str) -> None:
        data = encoded(to)
        for junk in (b"x", b"junk", b"\n", b"\0" * 8, MARKER, b"\xff" * 4):
            refused(data + junk)
        if to == "arrow":
            refused(data + b"junk" + data)
            assert "junk" in refused(data + b"\n")

    @pytest.mark.parametrize("pack", (gzip.compress, lambda b: pa.compress(b, codec="zstd", asbytes=True)))
    def test_packed_data_cut_at_any_byte_or_followed_by_junk(self, pack: Any) -> None:
        data = pack(encoded("csv"))
        for cut in range(4, len(data)):
            refused(data[:cut])
        refused(data + b"junk")
        refused(pack(b""))

    def test_parquet_and_arrow_file_cut_at_any_byte(self) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table(ROWS).schema) as writer:
            writer.write_table(table(ROWS))
        for data in (encoded("parquet"), sink.getvalue().to_pybytes()):
            for cut in range(6, len(data)):
                refused(data[:cut])

    def test_json_cut_at_any_byte(self) -> None:
        data = encoded("json")
        for cut in range(1, len(data) - 1):
            refused(data[:cut])

    def test_ndjson_cut_inside_a_line(self) -> None:
        data = encoded("ndjson")
        ends = {k for k in range(len(data)) if data[k : k + 1] == b"\n"}
        for cut in range(1, len(data)):
            if cut not in ends and cut - 1 not in ends:
                refused(data[:cut])

    @settings(max_examples=300, deadline=None)
    @given(st.integers(0, 10**9), st.integers(1, 255))
    def test_a_flipped_byte_is_an_error_or_a_table_that_keeps_the_contract(self, at: int, change: int) -> None:
        data = bytearray(stream(table(ROWS)))
        data[at % len(data)] ^= change
        try:
            got = frame(bytes(data)).table
        except InputError:
            return
        assert got.schema.equals(RESPONSES.schema()) and got.num_rows > 0
        for r in got.to_pylist():
            assert r["attempts"] >= 1 and 0 <= r["correct"] <= r["attempts"]

    @settings(max_examples=300, deadline=None)
    @given(st.binary(min_size=1, max_size=64))
    def test_random_bytes(self, data: bytes) -> None:
        refused(data)
        for head in (b"\xff\xff\xff\xff", b"ARROW1", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"{", b"["):
            refused(head + data)

    def test_messages_say_what_is_wrong(self, tmp_path: Path) -> None:
        (tmp_path / "void").touch()
        with pytest.raises(InputError, match="empty file"):
            wire.read_bytes(str(tmp_path / "void"))
        assert "UTF-16" in refused("model,item\n".encode("utf-16"))
        assert "zip archive" in refused(b"PK\x03\x04" + b"\0" * 40)
        assert "line 3: not UTF-8" in refused(b"model,item,attempts,correct\na,q,1,1\na,\xff,1,1\n")
        assert "row 3: 3 fields where the header has 4" in refused(b"model,item,attempts,correct\na,q,1,1\na,r,1\n")
        assert "not closed" in refused(b'model,item,attempts,correct\na,"q,1,1\n')
        assert "'item' stands twice" in refused(b"model,item,item\na,q,1\n")
        assert "line 2" in refused(b'{"model":"a"}\n{"model":\n')
        assert "looks like csv" in refused(b"model,item\n", from_="arrow")
        assert "no rows" in refused(b"model,item,attempts,correct\n")


class TestConcatenation:
    def test_differing_histories_keep_the_first_and_say_so(self) -> None:
        one = table(ROWS[:3]).replace_schema_metadata(
            {"benchkit.table": "responses/1", "benchkit.history": '[{"cmd":"a"}]'}
        )
        two = table(ROWS[3:]).replace_schema_metadata(
            {"benchkit.table": "responses/1", "benchkit.history": '[{"cmd":"b"}]'}
        )
        got = frame(stream(one) + stream(two))
        assert got.history == [{"cmd": "a"}] and "differ in history" in got.notes[0]
        assert not frame(stream(one) + stream(two.replace_schema_metadata(one.schema.metadata))).notes

    def test_what_must_not_be_concatenated(self) -> None:
        one = encoded("arrow")
        assert "stand twice" in refused(one + one)
        other = stream(table(ROWS).drop(["cluster"]))
        assert "different columns" in refused(stream(table(ROWS)) + other)
        rows = [{"kind": "item", "id": "a", "mean": 0.0, "sd": 1.0, "lower": -1.0, "upper": 1.0}]
        p = stream(table(rows, PARAMETERS).replace_schema_metadata({"benchkit.table": "parameters/1"}))
        assert "concatenated parameters" in refused(p + p, PARAMETERS)

    def test_a_table_of_another_kind_is_named(self) -> None:
        assert "'responses/1' (from bk-matrix)" in refused(encoded("arrow"), PARAMETERS)
        assert "'responses/1' (from bk-matrix)" in refused(encoded("json"), PARAMETERS)
