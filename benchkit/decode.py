"""Bytes -> columns: detect the format by content, verify that the data is whole, decode.

Arrow streams are verified by walking their messages. The readers of pyarrow and polars take a stream that was cut
between two batches for a shorter table, stop at the first of two streams, and ignore what follows the end marker;
here the first is an error, the second is one table, and the third is an error.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc

from benchkit import cli
from benchkit.casting import json_columns
from benchkit.errors import InputError
from benchkit.tables import DOCUMENTS, RESPONSES, TABLES, Line, Table

END_MARKER = 8
"""Bytes of the end-of-stream marker: ff ff ff ff 00 00 00 00."""


class Raw(NamedTuple):
    """Columns as they stood in the input, before any contract. `meta` holds benchkit's own metadata, decoded."""

    columns: dict[str, pa.ChunkedArray]
    rows: int
    line: Line
    meta: dict[str, Any]
    format: str
    notes: list[str]


def detect(data: bytes) -> str:
    """The format of unpacked bytes, by content: arrow (stream), feather (Arrow file), parquet, json or csv."""
    if data[:4] == b"\xff\xff\xff\xff":
        return "arrow"
    if data[:6] == b"ARROW1":
        return "feather"
    if data[:4] == b"PAR1":
        return "parquet"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("UTF-16 text: save it as UTF-8")
    if b"\0" in data[:4096]:
        kind = "a zip archive" if data[:2] == b"PK" else "binary data"
        raise InputError(f"{kind} in no known table format")
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise InputError("empty input: only white space")
    return "json" if text[:1] in (b"{", b"[") else "csv"


def unpack(data: bytes) -> bytes:
    """Undo gzip and zstd, as often as they were applied (three times at most)."""
    for _ in range(3):
        try:
            if data[:2] == b"\x1f\x8b":
                data = gzip.decompress(data)
            elif data[:4] == b"\x28\xb5\x2f\xfd":
                data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
            else:
                return data
        except (OSError, EOFError, zlib.error):  # BadGzipFile is an OSError
            raise InputError("damaged or cut compressed data") from None
        if not data:
            raise InputError("empty input inside the compression: did the command before it fail?")
    return data


def decode(data: bytes, from_: str, spec: Table | None, *, unterminated: bool = False) -> Raw:
    """Bytes to columns. `from_` is a format or `auto`; `spec` says which JSON document is expected."""
    data = unpack(data)
    found = detect(data)
    wanted = from_ if from_ != "auto" else found
    if wanted == "arrow" and found == "feather":
        wanted = "feather"
    if (wanted in ("arrow", "feather", "parquet") or found in ("arrow", "feather", "parquet")) and wanted != found:
        raise InputError(f"not {from_}: it looks like {'an Arrow file' if found == 'feather' else found}")
    if wanted in ("arrow", "feather", "parquet"):
        table, notes = {"arrow": _arrow, "feather": _feather, "parquet": _parquet}[wanted](data, unterminated)
        return _from_arrow(table, "arrow" if wanted == "feather" else wanted, notes)
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as e:
        raise InputError(f"line {data.count(10, 0, e.start) + 1}: not UTF-8 text") from None
    if wanted in ("json", "ndjson"):
        return _json(data, wanted if from_ != "auto" else "auto", spec)
    return _csv(data, "\t" if from_ == "tsv" else "," if from_ == "csv" and b"," in data.split(b"\n", 1)[0] else None)


def _from_arrow(table: pa.Table, format: str, notes: list[str]) -> Raw:
    try:
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, ValueError) as e:
        raise InputError(f"damaged {format} data: {_short(e)}") from None
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"column '{twice[0]}' stands twice")
    meta: dict[str, Any] = {}
    for key, value in (table.schema.metadata or {}).items():
        if not key.startswith(b"benchkit."):
            continue
        name = key.decode(errors="replace").removeprefix("benchkit.")
        try:
            meta[name] = value.decode() if name == "table" else orjson.loads(value)
        except ValueError:
            raise InputError(f"damaged metadata: benchkit.{name} is not JSON") from None
    return Raw(dict(zip(names, table.columns, strict=True)), table.num_rows, lambda i: i + 1, meta, format, notes)


def _short(e: BaseException) -> str:
    return cli.printable(" ".join(str(e).split()))[:160]


def _arrow(data: bytes, unterminated: bool) -> tuple[pa.Table, list[str]]:
    """One or more IPC streams, each walked message by message to its end marker.

    The reader's position moves by 8 where it meets the marker and by 0 where the bytes end before it. The last eight
    bytes prove nothing: a body may end in the same ones.
    """
    buffer = pa.py_buffer(data)
    tables, start = [], 0
    while start < len(data):
        if data[start : start + 4] != b"\xff\xff\xff\xff":
            raise InputError(f"{len(data) - start} bytes of junk after the Arrow stream's end (byte {start})")
        part = buffer.slice(start)
        source = pa.BufferReader(part)
        try:
            messages = pa.ipc.MessageReader.open_stream(source)
            while True:
                before = source.tell()
                try:
                    messages.read_next_message()
                except StopIteration:
                    break
            after = source.tell()
            if after - before != END_MARKER and not unterminated:
                raise InputError("cut Arrow stream: it has no end marker (did the command before it fail?)")
            tables.append(pa.ipc.open_stream(part.slice(0, after)).read_all())
        except (pa.ArrowException, OSError, ValueError, IndexError) as e:
            raise InputError(f"damaged or cut Arrow stream: {_short(e)}") from None
        start += after
    first = tables[0]
    notes = []
    for other in tables[1:]:
        if not other.schema.equals(first.schema, check_metadata=False):
            raise InputError("concatenated Arrow streams with different columns")
        mine, theirs = ((t.schema.metadata or {}) for t in (first, other))
        if mine.get(b"benchkit.table") != theirs.get(b"benchkit.table"):
            raise InputError("concatenated Arrow streams of different tables")
        if mine.get(b"benchkit.table", b"").startswith(b"parameters/"):
            raise InputError("concatenated parameters tables: fit the responses together instead")
        if mine.get(b"benchkit.history") != theirs.get(b"benchkit.history"):
            notes = ["concatenated streams differ in history: the first one's is kept"]
    if len(tables) > 1:
        first = pa.concat_tables([t.replace_schema_metadata(first.schema.metadata) for t in tables])
    return first, notes


def _feather(data: bytes, _: bool) -> tuple[pa.Table, list[str]]:
    if data[-6:] != b"ARROW1":
        raise InputError("damaged or cut Arrow file: it has no footer")
    try:
        return pa.ipc.open_file(pa.py_buffer(data)).read_all(), []
    except (pa.ArrowException, OSError, ValueError, IndexError) as e:
        raise InputError(f"damaged or cut Arrow file: {_short(e)}") from None


def _parquet(data: bytes, _: bool) -> tuple[pa.Table, list[str]]:
    import pyarrow.parquet as pq

    try:
        return pq.read_table(pa.BufferReader(data)), []
    except (pa.ArrowException, OSError, ValueError) as e:
        raise InputError(f"damaged or cut Parquet data: {_short(e)}") from None


def _json(data: bytes, wanted: str, spec: Table | None) -> Raw:
    """A document with the rows under their plural, a list of rows, or one row a line."""
    if wanted != "ndjson":
        try:
            doc = orjson.loads(data)
        except orjson.JSONDecodeError as e:
            first = data.lstrip().split(b"\n", 1)[0]
            if wanted == "json" or not _is_json(first):
                raise InputError(f"damaged or cut JSON: {e.msg} at line {e.lineno}, column {e.colno}") from None
        else:
            return _document(doc, spec)
    rows, numbers = [], []
    for n, text in enumerate(data.split(b"\n"), 1):
        if text.strip():
            try:
                rows.append(orjson.loads(text))
            except orjson.JSONDecodeError as e:
                raise InputError(f"line {n}: damaged or cut JSON: {e.msg} at column {e.colno}") from None
            numbers.append(n)

    def line(i: int) -> int:
        return numbers[i]

    return Raw(json_columns(rows, line, spec), len(rows), line, {}, "ndjson", [])


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _document(doc: Any, spec: Table | None) -> Raw:
    def line(i: int) -> int:
        return i + 1

    meta: dict[str, Any] = {}
    rows = doc
    if isinstance(doc, dict):
        known = TABLES if spec is not None else (RESPONSES,)
        held = [t for t in known if isinstance(doc.get(t.rows), list)]
        if held:
            table = spec if spec in held else held[0]
            meta = {k: doc[k] for k in (*DOCUMENTS, "history") if doc.get(k) is not None} | {"table": table.tag}
            rows = doc[table.rows]
        else:
            rows = [doc]  # one row of NDJSON
    if not isinstance(rows, list):
        raise InputError("JSON that is neither a document with rows nor a list of rows")
    return Raw(json_columns(rows, line, spec), len(rows), line, meta, "json", [])


def delimiter(header: str) -> str:
    """Tab, comma or semicolon: the first of them that the header line has outside quotes."""
    outside = "".join(header.split('"')[::2])
    return next((d for d in "\t,;" if d in outside), ",")


def _csv(data: bytes, separator: str | None) -> Raw:
    """Text with a header; every field is text, an empty one (without quotes) is null."""
    if data.count(b'"') % 2:
        raise InputError("a quoted field is not closed (an odd number of '\"')")
    separator = separator or delimiter(data.split(b"\n", 1)[0].decode())
    names, count = _header(data, separator)
    if not count:
        return Raw({n: pa.chunked_array([pa.array([], pa.utf8())]) for n in names}, 0, lambda i: i + 2, {}, "csv", [])
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            pa.csv.ReadOptions(block_size=max(1 << 20, 2 * len(data.split(b"\n", 1)[0]))),
            pa.csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in data),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.utf8()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as e:
        raise InputError(_csv_fault(data, separator, len(names)) or f"damaged CSV: {_short(e)}") from None
    columns = dict(zip((n.strip() for n in names), table.columns, strict=True))

    def line(i: int) -> int:
        return next(itertools.islice(_csv_lines(data, separator), i + 1, None))[0]

    return Raw(columns, table.num_rows, line, {}, "tsv" if separator == "\t" else "csv", [])


def _csv_lines(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """(line where it starts, fields) of every record, empty lines left out."""
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    csv.field_size_limit(1 << 30)
    start = 1
    for fields in reader:
        if fields:
            yield start, fields
        start = reader.line_num + 1


def _header(data: bytes, separator: str) -> tuple[list[str], int]:
    """The column names as they stand, and whether any record follows."""
    records = _csv_lines(data, separator)
    names = next(records, (1, [""]))[1]
    stripped = [n.strip() for n in names]
    twice = sorted({n for n in stripped if stripped.count(n) > 1}) if len(set(stripped)) < len(stripped) else []
    if twice:
        raise InputError(f"column '{twice[0]}' stands twice in the header")
    return names, 1 if next(records, None) else 0


def _csv_fault(data: bytes, separator: str, width: int) -> str | None:
    for n, fields in _csv_lines(data, separator):
        if len(fields) != width:
            return f"row {n}: {len(fields)} fields where the header has {width}"
    return None
