"""Any source as named columns, in batches where the source allows it.

A named file of text or Parquet is read in batches, so that it never has to fit in memory; standard input, packed files
and Arrow are read whole. Either way the same parser reads the same bytes: a file gives the same rows, and the same
messages, by name and through a pipe.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit import csvtext, decode, jsontext, output
from benchkit.casting import decoded
from benchkit.errors import InputError
from benchkit.formats import objects, parquet
from benchkit.formats.coding import is_text
from benchkit.formats.columns import shown
from benchkit.tables import Line
from benchkit.wire import read_bytes

NARROW = 16  # columns; text of so many is worth a dictionary
BINARY = (b"PK", b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
NOTHING = object()

Batches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


def _none() -> None:
    """Of a source that has no columns without names."""


class Tabular(NamedTuple):
    """One source as columns. Fields of CSV are text; other formats keep their types.

    `batches(names)` gives the rows anew at each call, as record batches of exactly these columns. `records()` gives
    them as Python values in the order of `schema`, or as JSON objects, for tables of very many columns. `schema`: the
    type of each column; text for JSON, whose batches may differ in type. `line` maps a row's index to the number that
    messages give it. `meta` is benchkit's own metadata, where the source is one of its tables. `kinds`: what kinds of
    values a column holds, where its type does not tell. `whole`: of a source of which only the beginning was looked at,
    the same looked at to its end; `kinds` then grow as it is read, and a column that begins late is a LateColumn.
    `unnamed`: row index, column from 1 and text of a field in a column of CSV that has no name and is not the first.
    """

    batches: Batches
    records: Callable[[], Iterator[Sequence[Any] | dict[str, Any]]]
    schema: dict[str, pa.DataType]
    line: Line
    format: str
    where: str
    meta: dict[str, Any]
    notes: list[str]
    kinds: dict[str, set[str]]
    whole: Callable[[], Tabular] | None = None
    unnamed: Callable[[], tuple[int, int, str] | None] = _none

    @property
    def names(self) -> list[str]:
        return list(self.schema)

    def table(self, names: Sequence[str]) -> pa.Table:
        """The columns whole; text where batches differ in type."""
        got = list(self.batches(names))
        types = {n: {b.schema.field(n).type for b in got} for n in names}
        wanted = pa.schema([(n, next(iter(t)) if len(t) == 1 else pa.utf8()) for n, t in types.items()])
        return pa.Table.from_batches([b.cast(wanted) for b in got], wanted)

    def constant(self, name: str, value: str) -> Tabular:
        """The same rows with one column more, which holds one value. For `batches` only."""
        try:
            words = pa.array([value])
        except UnicodeEncodeError:
            raise InputError("a model's name that is not UTF-8: name it with --model") from None

        def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            for batch in self.batches([n for n in names if n != name]):
                same = pa.DictionaryArray.from_arrays(np.zeros(len(batch), np.int32), words)
                columns = [same if n == name else batch.column(n) for n in names]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))

        whole = None if self.whole is None else partial(_then, self.whole, lambda tab: tab.constant(name, value))
        return self._replace(batches=batches, schema={**self.schema, name: pa.utf8()}, whole=whole)

    def joined(self, names: Sequence[str], name: str) -> Tabular:
        """The same rows with one column more: the identifiers of several, with slashes between. For `batches` only."""
        if self.whole is not None:
            return self.whole().joined(names, name)  # which kinds of values they hold is known then
        for part in names:
            check_identifier(self, part)

        def batches(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
            for batch in self.batches(list(dict.fromkeys([n for n in wanted if n != name] + list(names)))):
                parts = [_filled_text(batch.column(n)) for n in names]
                made = pc.binary_join_element_wise(*parts, "/", null_handling="emit_null")
                columns = [made if n == name else batch.column(n) for n in wanted]
                yield pa.RecordBatch.from_arrays(columns, names=list(wanted))

        return self._replace(batches=batches, schema={**self.schema, name: pa.utf8()})

    def without(self, names: frozenset[str]) -> Tabular:
        """The same rows without some columns; InputError where one is not there."""
        strange = sorted(names - self.schema.keys())
        if strange:
            raise InputError(f"no column '{strange[0]}' for --leave-out (found: {shown(self.names)})")
        kept = [k for k, n in enumerate(self.schema) if n not in names]

        def records() -> Iterator[Sequence[Any] | dict[str, Any]]:
            for row in self.records():
                yield row if isinstance(row, dict) else [row[k] for k in kept]

        schema = {n: kind for n, kind in self.schema.items() if n not in names}
        whole = None if self.whole is None else partial(_then, self.whole, lambda tab: tab.without(names))
        return self._replace(records=records, schema=schema, whole=whole) if names else self


def _filled_text(column: pa.Array) -> pa.Array:
    """Identifiers as text, null where they are empty."""
    text = decoded(pa.chunked_array([column])).combine_chunks().cast(pa.utf8())
    return pc.if_else(pc.equal(text, ""), None, text)


def _then(whole: Callable[[], Tabular], change: Callable[[Tabular], Tabular]) -> Tabular:
    return change(whole())


def unpacked(name: str | None) -> bytes | None:
    """The unpacked bytes of standard input (None or '-'), a pipe, or a packed file that is no text.

    None for a file to be opened, by `decode.opened`.
    """
    if name in (None, "-") or not can_reopen(str(name)):
        return decode.unpack(read_bytes(name))
    with open(str(name), "rb") as f:
        head = f.read(4)
    if not head:
        return read_bytes(name)  # says that it is empty
    if not head.startswith(decode.PACKED):
        return None
    with decode.opened(str(name)) as f:
        head = f.read(8)
    return decode.unpack(read_bytes(name)) if head.startswith(BINARY) else None


def _packed(name: str) -> bool:
    with open(name, "rb") as f:
        return f.read(4).startswith(decode.PACKED)


def open_source(
    name: str | None, from_: str, data: bytes | None, *, value: Any = NOTHING, unterminated: bool = False
) -> list[Tabular]:
    """A source as columns, by its content; several where it is Arrow streams one after another.

    data: what `unpacked` gave. value: of a JSON text that was parsed, or the schema of Parquet that was checked.
    """
    where = "<stdin>" if name in (None, "-") else str(name)
    kind = decode.choose(decode.head(name, data), from_)
    source = partial(decode.reopened, name, data)
    if kind in ("csv", "tsv"):
        return [_csv(source, kind, where)]
    if kind in ("json", "ndjson"):
        return [_json(source, from_, where, None if data is not None or _packed(str(name)) else str(name), value)]
    if kind == "parquet":
        found = _parquet(source, where, value)
        if found is not None:
            return [found]
    raws = decode.decode_binary(data or read_bytes(name), kind, unterminated=unterminated)
    return [_of_raw(raw, where) for raw in raws]


def _of_raw(raw: decode.Raw, where: str) -> Tabular:
    table = pa.table({n: c if is_text(c.type) else decoded(c) for n, c in raw.columns.items()})
    made = _typed(lambda names: iter(table.select(list(names)).to_batches()), table.schema, raw.format, where)
    return made._replace(line=raw.line, meta=raw.meta, notes=raw.notes)


def of_batch(batch: pa.RecordBatch, line: Line, format: str, where: str) -> Tabular:
    """Rows that are in memory."""
    return _typed(lambda names: iter([batch.select(list(names))]), batch.schema, format, where)._replace(line=line)


def can_reopen(name: str) -> bool:
    """Whether the name is that of a file, which opened again starts at its first byte."""
    return stat.S_ISREG(os.stat(name).st_mode) and output.descriptor(name) is None


def _csv(source: csvtext.Open, kind: str, where: str) -> Tabular:
    shape = csvtext.look_over(source, {"tsv": "\t"}.get(kind))
    schema = dict.fromkeys(shape.named, pa.utf8())

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return csvtext.batches(source, shape, names, dictionary=len(names) <= NARROW)

    return Tabular(
        batches, partial(csvtext.records, source, shape), schema, partial(csvtext.line_of, source, shape),
        "tsv" if shape.separator == "\t" else "csv", where, {}, [], {}, None,
        partial(csvtext.unnamed_cell, source, shape),
    )  # fmt: skip


def _json(source: csvtext.Open, from_: str, where: str, path: str | None, value: Any) -> Tabular:
    if value is NOTHING and (from_ == "ndjson" or (from_ == "auto" and jsontext.is_lines(source, jsontext.parse))):

        def seen(found: objects.Objects, whole: Callable[[], Tabular] | None) -> Tabular:
            schema = dict.fromkeys(found.kinds, pa.utf8())
            return Tabular(
                found.batches, found.records, schema, found.line, "ndjson", where, {}, [], found.kinds, whole
            )

        return seen(objects.of_lines(source, path), lambda: seen(objects.of_lines(source), None))
    if value is NOTHING:
        with source() as f:
            value = jsontext.parse(f.read(jsontext.LARGEST + 1))
    rows, meta = jsontext.members(value, None)
    found = objects.of_rows(rows)
    schema = dict.fromkeys(found.kinds, pa.utf8())
    return Tabular(found.batches, found.records, schema, found.line, "json", where, meta, [], found.kinds)


def _typed(batches: Batches, schema: pa.Schema, format: str, where: str) -> Tabular:
    """A source whose columns have types of their own."""
    types = dict(zip(schema.names, schema.types, strict=True))

    def records() -> Iterator[Sequence[Any]]:
        for batch in batches(schema.names):
            yield from zip(*(c.to_pylist() for c in batch.columns), strict=True)

    odd = {n: {"nested"} for n, t in types.items() if pa.types.is_nested(t) or _is_bytes(t)}
    return Tabular(batches, records, types, lambda i: i + 1, format, where, {}, [], odd)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _parquet(source: csvtext.Open, where: str, schema: Any) -> Tabular | None:
    """None where the file is one of benchkit's tables, which are read whole. schema: NOTHING if it was not checked."""
    if schema is NOTHING:
        with source() as f:
            schema = decode.check_parquet(pa.PythonFile(f, mode="r"))
    if any(key.startswith(b"benchkit.") for key in schema.metadata or {}):
        return None
    return _typed(partial(parquet.batches, source, schema), schema, "parquet", where)


def check_identifier(tab: Tabular, name: str) -> None:
    """InputError where a column can't hold identifiers, which are text or whole numbers."""
    for odd, what in (("number", "floating-point numbers"), ("flag", "flags"), ("nested", "lists or objects")):
        if odd in tab.kinds.get(name, ()):
            raise InputError(f"column '{name}' holds {what}; identifiers are text")
    kind = tab.schema[name]
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputError(f"column '{name}' holds {kind} values; identifiers are text")
