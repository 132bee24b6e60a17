"""Any source as named columns, lazily where the source allows it.

A named file of text or Parquet is read in batches, so that it never has to fit in memory; standard input, packed files
and Arrow are read whole. Either way the same parser reads the same bytes: a file gives the same rows, and the same
messages, by name and through a pipe.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from benchkit import csvtext, decode, jsontext, output
from benchkit.errors import InputError
from benchkit.tables import Line
from benchkit.wire import read_bytes

HEAD = 1 << 16
BATCH = 1 << 15
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class Tabular(NamedTuple):
    """One source as columns. Fields of CSV and values of JSON are text; other formats keep their types.

    `line` maps a row's index in `frame` to the number that messages give it. `meta` is benchkit's own metadata, where
    the source is one of its tables. `kinds`: what kinds of values a column holds, where its type does not tell.
    """

    frame: pl.LazyFrame
    names: list[str]
    line: Line
    format: str
    where: str
    meta: dict[str, Any]
    notes: list[str]
    kinds: dict[str, set[str]]


def unpacked(name: str | None) -> bytes | None:
    """The unpacked bytes of standard input (None or '-'), a pipe or a packed file; None for a file to be opened."""
    if name in (None, "-") or not _can_reopen(str(name)):
        return decode.unpack(read_bytes(name))
    with open(str(name), "rb") as f:
        head = f.read(4)
    return decode.unpack(read_bytes(name)) if not head or head.startswith(PACKED) else None


def open_source(name: str | None, from_: str, data: bytes | None, *, unterminated: bool = False) -> Tabular:
    """A source as columns, by its content. data: what `unpacked` gave."""
    where = "<stdin>" if name in (None, "-") else str(name)
    if data is not None:
        head = data[:HEAD]
    else:
        with open(str(name), "rb") as f:
            head = f.read(HEAD)
    kind = decode.choose(head, from_)

    def source() -> BinaryIO:
        return io.BytesIO(data) if data is not None else open(str(name), "rb")

    if kind in ("csv", "tsv"):
        return _csv(source, kind, where)
    if kind in ("json", "ndjson"):
        return _json(source, from_, where)
    if kind == "parquet" and data is None:
        found = _parquet(str(name))
        if found is not None:
            return found
    raw = decode.decode_binary(data or read_bytes(name), kind, unterminated=unterminated)
    frame = pl.from_arrow(pa.table(raw.columns))
    assert isinstance(frame, pl.DataFrame)
    return Tabular(frame.lazy(), raw.names, raw.line, raw.format, where, raw.meta, raw.notes, _nested(frame.lazy()))


def _can_reopen(name: str) -> bool:
    """Whether the name is that of a file, which opened again starts at its first byte."""
    return stat.S_ISREG(os.stat(name).st_mode) and output.descriptor(name) is None


def _scan(names: list[str], batches: Callable[[list[str]], Iterator[pl.DataFrame]]) -> pl.LazyFrame:
    """A lazy frame of text columns over `batches(columns)`."""

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for frame in batches(names if columns is None else columns):
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                return

    return register_io_source(io_source=source, schema=dict.fromkeys(names, pl.String), is_pure=True)


def _csv(source: csvtext.Open, kind: str, where: str) -> Tabular:
    shape = csvtext.look_over(source, {"tsv": "\t"}.get(kind))
    names = list(shape.named)

    def batches(columns: list[str]) -> Iterator[pl.DataFrame]:
        # without columns only the number of rows is asked for
        for batch in csvtext.batches(source, shape, columns or names[:1]):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame.select(columns) if columns else frame

    line = partial(csvtext.line_of, source, shape)
    return Tabular(_scan(names, batches), names, line, "tsv" if shape.separator == "\t" else "csv", where, {}, [], {})


def _json(source: csvtext.Open, from_: str, where: str) -> Tabular:
    found = jsontext.rows(source, from_, None)
    kinds: dict[str, set[str]] = {}
    for _, row in found.each():
        for key, value in row.items():
            kinds.setdefault(key, set()).add(_kind(value))

    def batches(columns: list[str]) -> Iterator[pl.DataFrame]:
        block: list[dict[str, Any]] = []
        for _, row in found.each():
            block.append(row)
            if len(block) == BATCH:
                yield _text(block, columns)
                block = []
        if block:
            yield _text(block, columns)

    def line(i: int) -> int:
        return next(n for k, (n, _) in enumerate(found.each()) if k == i)

    names = list(kinds)
    return Tabular(_scan(names, batches), names, line, found.format, where, found.meta, [], kinds)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    names = {str: "text", int: "whole", float: "number", type(None): "null"}
    return names.get(type(value), "nested")


def _text(rows: list[dict[str, Any]], columns: list[str]) -> pl.DataFrame:
    def cell(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return str(value).lower() if isinstance(value, bool) else repr(value)

    series = {name: [cell(row.get(name)) for row in rows] for name in columns}
    return pl.DataFrame(series, schema=dict.fromkeys(columns, pl.String))


def _parquet(name: str) -> Tabular | None:
    """A lazy scan; None where the file is one of benchkit's tables (which are small), or polars can't take its name."""
    with open(name, "rb") as f:
        schema = decode.check_parquet(pa.PythonFile(f, mode="r"))
    twice = sorted({n for n in schema.names if schema.names.count(n) > 1})
    if twice:
        raise InputError(f"column '{twice[0]}' stands twice")
    try:
        name.encode()
    except UnicodeEncodeError:
        return None
    if any(key.startswith(b"benchkit.") for key in schema.metadata or {}):
        return None
    frame = pl.scan_parquet(name, glob=False)
    return Tabular(frame, schema.names, lambda i: i + 1, "parquet", name, {}, [], _nested(frame))


def _nested(frame: pl.LazyFrame) -> dict[str, set[str]]:
    """The columns whose values are no single text, number or flag."""
    types = frame.collect_schema().items()
    return {name: {"nested"} for name, kind in types if kind.is_nested() or kind in (pl.Binary, pl.Object)}


def identifier(tab: Tabular, name: str) -> pl.Expr:
    """A column of identifiers as text, the empty one as null."""
    for odd, what in (("number", "floating-point numbers"), ("flag", "flags"), ("nested", "lists or objects")):
        if odd in tab.kinds.get(name, ()):
            raise InputError(f"column '{name}' holds {what}; identifiers are text")
    kind = tab.frame.collect_schema()[name]
    if not (kind in (pl.String, pl.Categorical, pl.Enum, pl.Null) or kind.is_integer()):
        raise InputError(f"column '{name}' holds {kind} values; identifiers are text")
    text = pl.col(name).cast(pl.String)
    return pl.when(text == "").then(None).otherwise(text)
