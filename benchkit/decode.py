"""Bytes -> columns: detect the format by content, verify that the data is whole, decode.

Arrow streams are verified by walking their messages. The readers of pyarrow and polars take a stream that was cut
between two batches for a shorter table, stop at the first of two streams, and ignore what follows the end marker;
here the first is an error, the second is one table, and the third is an error.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.ipc

from benchkit import cli, csvtext, jsontext
from benchkit.casting import json_columns
from benchkit.errors import InputError
from benchkit.parquet_footer import data_end
from benchkit.tables import Line, Table

LISTS = dict.fromkeys(("history", "warnings", "sources"), list)
"""Metadata that hold lists."""

LARGEST = 1 << 32
"""Bytes of packed data, unpacked, that are held in memory."""

GROWTH, LEAST = 2000, 1 << 28
"""Packed data may unpack to LEAST bytes, and GROWTH times their size: gzip reaches 1,032, tables some hundreds."""

EXCEL = "an Excel workbook: save the sheet as CSV UTF-8"

GZIP, ZSTD = PACKED = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""How packed data begin."""

UNREAD = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x04\x22\x4d\x18": "lz4"}
"""How data begin that other programs packed."""

HEAD = 1 << 16

LONG_FOOTER = 1 << 22
"""Bytes of a Parquet footer that speaks of tens of thousands of pieces."""

END_MARKER = 8
"""Bytes of the end-of-stream marker: ff ff ff ff 00 00 00 00."""


class Raw(NamedTuple):
    """Columns as they stood in the input, before any contract.

    `names`: of all columns there, also where only those of the wanted table were taken. `meta`: benchkit's own
    metadata, decoded.
    """

    columns: dict[str, pa.ChunkedArray]
    names: list[str]
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
    if data.startswith(b"\xd0\xcf\x11\xe0") or (data[:2] == b"PK" and b"xl/workbook" in data):
        raise InputError(EXCEL)
    packer = next((name for head, name in UNREAD.items() if data.startswith(head)), None)
    if packer:
        raise InputError(f"packed by {packer}: unpack it with {packer} -dc")
    if data[257:262] == b"ustar":
        raise InputError("a tar archive: unpack it, and name its folder or files")
    if data.startswith(b"version https://git-lfs.github.com/spec/"):
        raise InputError("a Git LFS pointer in place of the file: fetch it with git lfs pull")
    if b"\0" in data[:4096]:
        kind = "a zip archive" if data[:2] == b"PK" else "binary data"
        raise InputError(f"{kind} in no known table format")
    text = data[:65536].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise InputError("empty input: only white space")
    return "json" if text[:1] in (b"{", b"[") else "csv"


class _Unpacking(io.RawIOBase):
    """The bytes of packed data. size: of the file that is packed, by which a bomb is told."""

    def __init__(self, file: BinaryIO, stream: Any, size: int) -> None:
        self.file, self.stream, self.left = file, stream, LEAST + size * GROWTH

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.stream.read(len(buffer))
        except (OSError, EOFError, zlib.error):  # BadGzipFile is an OSError
            raise InputError("damaged or cut compressed data") from None
        self.left -= len(data)
        if self.left < 0:
            raise InputError(f"compressed data of more than {GROWTH} times their size: unpack them first")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.file.close()
        super().close()


def unpacking(file: BinaryIO, size: int) -> BinaryIO:
    """A file with gzip and zstd undone while it is read, as often as they were applied (three times at most).

    size: of the file in bytes.
    """
    out = io.BufferedReader(file) if not isinstance(file, io.BufferedReader) else file  # type: ignore[type-var]
    for _ in range(3):
        mark = out.peek(4)
        if mark.startswith(GZIP):
            stream: Any = gzip.GzipFile(fileobj=out)
        elif mark.startswith(ZSTD):
            stream = pa.CompressedInputStream(pa.PythonFile(out, mode="r"), "zstd")
        else:
            break
        out = io.BufferedReader(_Unpacking(out, stream, size), 1 << 18)
        if not out.peek(1):
            raise InputError("empty input inside the compression: did the command before it fail?")
    return out


def opened(path: str) -> BinaryIO:
    """A file, unpacked while it is read."""
    file = open(path, "rb")  # noqa: SIM115
    return unpacking(file, os.fstat(file.fileno()).st_size)


def reopened(path: str | None, data: bytes | None) -> BinaryIO:
    """Unpacked bytes as a file, from their start: `data`, or those of the file `path` where it is None."""
    return io.BytesIO(data) if data is not None else opened(str(path))


def head(path: str | None, data: bytes | None) -> bytes:
    """The first of these bytes, enough to tell what they are."""
    with reopened(path, data) as f:
        return f.read(HEAD)


def unpack(data: bytes) -> bytes:
    """The bytes of packed data whole; InputError where they are more than LARGEST."""
    if not data.startswith(PACKED):
        return data
    with unpacking(io.BytesIO(data), len(data)) as file:
        out = file.read(LARGEST + 1)
    if len(out) > LARGEST:
        raise InputError(f"compressed data of more than {LARGEST >> 30} GiB: unpack them first")
    return out


def choose(head: bytes, from_: str) -> str:
    """The format to read by: `from_`, or what the content says; an error where the two can't both be."""
    found = detect(head)
    binary = ("arrow", "feather", "parquet")
    if from_ == "auto" or (from_ == "arrow" and found == "feather"):
        return found
    if from_ != found and (from_ in binary or found in binary):
        raise InputError(f"not {from_}: it looks like {'an Arrow file' if found == 'feather' else found}")
    return from_


def decode(data: bytes, from_: str, spec: Table, *, unterminated: bool = False) -> Raw:
    """Bytes to columns. `from_` is a format or `auto`; `spec` says which table is wanted."""
    data = unpack(data)
    kind = choose(data, from_)
    if kind in ("arrow", "feather", "parquet"):
        return _join(decode_binary(data, kind, unterminated=unterminated))
    if kind in ("json", "ndjson"):
        found = jsontext.rows(lambda: io.BytesIO(data), from_, spec)
        numbered = list(found.each())
        numbers = [n for n, _ in numbered]
        columns = json_columns([row for _, row in numbered], numbers.__getitem__, spec)
        held = list(dict.fromkeys(k for _, row in numbered for k in row))
        return Raw(columns, held, len(numbered), numbers.__getitem__, found.meta, found.format, [])
    table, shape, source = csvtext.read(data, {"tsv": "\t"}.get(kind))
    line = partial(csvtext.line_of, source, shape)
    names = [n.strip() for n in table.column_names]
    return Raw(dict(zip(names, table.columns, strict=True)), names, table.num_rows, line, {}, kind, [])


def decode_binary(data: bytes, kind: str, *, unterminated: bool = False) -> list[Raw]:
    """The columns of an Arrow file, of Parquet, or of each of the Arrow streams one after another, verified."""
    if kind == "arrow":
        return [_from_arrow(table, "arrow") for table in _arrow(data, unterminated)]
    return [_from_arrow(_feather(data) if kind == "feather" else _parquet(data), kind.replace("feather", "arrow"))]


def _join(parts: list[Raw]) -> Raw:
    """Streams one after another as one table, with the sources and the warnings of all and the first one's history."""
    first = parts[0]
    if len(parts) == 1:
        return first
    types = {name: column.type for name, column in first.columns.items()}
    for other in parts[1:]:
        if {name: column.type for name, column in other.columns.items()} != types or other.names != first.names:
            raise InputError("concatenated Arrow streams with different columns")
        if other.meta.get("table") != first.meta.get("table"):
            raise InputError("concatenated Arrow streams of different tables")
    if str(first.meta.get("table", "")).startswith("parameters/"):
        raise InputError("concatenated parameters tables: fit the responses together instead")
    differ = any(p.meta.get("history") != first.meta.get("history") for p in parts)
    notes = ["concatenated streams differ in history: the first one's is kept"] if differ else []
    chunks = {name: [chunk for p in parts for chunk in p.columns[name].chunks] for name in types}
    columns = {name: pa.chunked_array(chunks[name], kind) for name, kind in types.items()}
    said = list(dict.fromkeys(str(w) for p in parts for w in p.meta.get("warnings", [])))
    sources = [x for p in parts for x in p.meta.get("sources", [])]
    meta = first.meta | ({"warnings": said} if said else {}) | ({"sources": sources} if sources else {})
    return Raw(columns, first.names, sum(p.rows for p in parts), first.line, meta, first.format, notes)


def _from_arrow(table: pa.Table, format: str) -> Raw:
    try:
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, ValueError) as e:
        raise InputError(f"damaged {format} data: {_short(e)}") from None
    csvtext.check_twice(names)
    meta: dict[str, Any] = {}
    for key, value in (table.schema.metadata or {}).items():
        if not key.startswith(b"benchkit."):
            continue
        name = key.decode(errors="replace").removeprefix("benchkit.")
        try:
            meta[name] = value.decode() if name == "table" else orjson.loads(value)
        except ValueError:
            raise InputError(f"damaged metadata: benchkit.{name} is not JSON") from None
        if not isinstance(meta[name], LISTS.get(name, object)):
            raise InputError(f"'{name}' is not a JSON list")
    columns = dict(zip(names, table.columns, strict=True))
    return Raw(columns, names, table.num_rows, lambda i: i + 1, meta, format, [])


def _short(e: BaseException) -> str:
    return cli.printable(" ".join(str(e).split()))[:160]


def _arrow(data: bytes, unterminated: bool) -> list[pa.Table]:
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
    return tables


def _feather(data: bytes) -> pa.Table:
    if data[-6:] != b"ARROW1":
        raise InputError("damaged or cut Arrow file: it has no footer")
    try:
        return pa.ipc.open_file(pa.py_buffer(data)).read_all()
    except (pa.ArrowException, OSError, ValueError, IndexError) as e:
        raise InputError(f"damaged or cut Arrow file: {_short(e)}") from None


def _parquet(data: bytes) -> pa.Table:
    import pyarrow.parquet as pq

    source = pa.BufferReader(data)
    check_parquet(source)
    try:
        return pq.read_table(source)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise InputError(f"damaged or cut Parquet data: {_short(e)}") from None


def check_parquet(source: pa.NativeFile) -> pa.Schema:
    """The schema of a Parquet file that is whole; InputError where it is damaged, or two files one after another.

    The last footer speaks for its own file alone, and its offsets would point into the first. Between what it names and
    itself a whole file has nothing; only where there is something the joint of two files is looked for.
    """
    import pyarrow.parquet as pq

    try:
        size = source.size()
        source.seek(max(size - 8, 0))
        footer = int.from_bytes(source.read(4), "little")
        source.seek(0)
        schema = pq.read_schema(source)  # refuses a file without a footer of this size
        source.seek(size - 8 - footer)
        end = data_end(source.read(footer)) if footer <= LONG_FOOTER else 4  # slower to read than the file
        joint = size - 8 - footer > end and _holds(source, b"PAR1PAR1")
    except (pa.ArrowException, OSError, ValueError) as e:
        raise InputError(f"damaged or cut Parquet data: {_short(e)}") from None
    finally:
        source.seek(0)
    if joint:
        raise InputError("damaged Parquet data: two files one after another")
    csvtext.check_twice(schema.names)
    return schema


def _holds(source: pa.NativeFile, mark: bytes) -> bool:
    source.seek(0)
    last = b""
    while block := source.read(1 << 22):
        if mark in last + block:
            return True
        last = block[1 - len(mark) :]
    return False
