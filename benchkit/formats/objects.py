"""JSON objects as columns: a list of them, or one a line.

Of lines only the first block is looked at before they are read: the names of the columns, and which kinds of values
they hold. A column that begins later and could play a part is found when it comes, and all lines are looked at then.
Large files are parsed by processes on all cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from benchkit import jsontext, workers
from benchkit.csvtext import Open
from benchkit.errors import InputError
from benchkit.formats.columns import KNOWN, plain

BATCH = 1 << 15  # rows
RANGE = 1 << 23  # bytes of a file that a process parses at once
FEW = 16  # sets of names that rows are compared with at once
KINDS = {str: "text", bool: "flag", int: "whole", float: "number", type(None): "null"}
TYPES = {
    frozenset({bool}): pa.bool_(), frozenset({int}): pa.int64(), frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(), frozenset({str}): pa.utf8(), frozenset(): pa.utf8(),
}  # fmt: skip

Block = list[dict[str, Any]]
Kinds = dict[str, set[str]]


class LateColumn(InputError):
    """A column that could play a part begins after the part of the source that was looked at."""


class Objects(NamedTuple):
    """The rows of a source, as of Tabular.

    kinds: name -> the kinds of its values (text, flag, whole, number, null, nested), of what was looked at so far.
    """

    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
    records: Callable[[], Iterator[dict[str, Any]]]
    line: Callable[[int], int]
    kinds: Kinds


def of_rows(rows: Block) -> Objects:
    """Rows that are in memory, numbered from 1."""
    return _looked_at(lambda: (rows[k : k + BATCH] for k in range(0, len(rows), BATCH)), lambda i: i + 1)


def of_lines(source: Open, path: str | None = None) -> Objects:
    """One object a line; numbers are those of the lines.

    path: of the file, to look at its beginning only and to parse it on all cores; None to look at all of it first.
    """

    def line(i: int) -> int:
        return next(n for n, _ in islice(jsontext.lines(source, jsontext.parse), i, None))

    if path is None:
        return _looked_at(partial(jsontext.blocks, source), line)
    kinds: Kinds = {}
    for block in islice(jsontext.blocks(source), 1):
        note_kinds(block, kinds)

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in workers.each(partial(_parsed, path, names), _ranges(path), workers.cores()):
            if isinstance(part, Exception):
                raise part
            columns, later = part
            if any(plain(n) in KNOWN for n in later.keys() - kinds.keys()):
                raise LateColumn("a column that begins late")
            for name in names:
                kinds.setdefault(name, set()).update(later.get(name, ()))
            yield pa.RecordBatch.from_arrays(columns, names=list(names))

    def records() -> Iterator[dict[str, Any]]:
        raise LateColumn("columns that may begin late")

    return Objects(batches, records, line, kinds)


def _looked_at(blocks: Callable[[], Iterator[Block]], line: Callable[[int], int]) -> Objects:
    kinds: Kinds = {}
    for block in blocks():
        note_kinds(block, kinds)

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for block in blocks():
            yield pa.RecordBatch.from_arrays([_column(block, n) for n in names], names=list(names))

    def records() -> Iterator[dict[str, Any]]:
        return chain.from_iterable(blocks())

    return Objects(batches, records, line, kinds)


def _ranges(path: str) -> list[tuple[int, int]]:
    """Where the parts of a file begin and end, each with whole lines."""
    out, size, end = [], os.path.getsize(path), 0
    with open(path, "rb") as file:
        while end < size:
            start = end
            file.seek(min(start + RANGE, size))
            file.readline(jsontext.LARGEST)
            end = file.tell()
            out.append((start, end))
    return out


def _parsed(path: str, names: Sequence[str], span: tuple[int, int]) -> tuple[list[pa.Array], Kinds] | Exception:
    """The columns of a part of a file, text as dictionaries, and all its columns with the kinds of those asked for."""
    try:
        with open(path, "rb") as file:
            file.seek(span[0])
            text = file.read(span[1] - span[0])
        block = jsontext.block(text.removeprefix(b"\xef\xbb\xbf") if span[0] == 0 else text, 1)
        kinds: Kinds = {}
        note_kinds(block, kinds, names)
        columns = [_column(block, n) for n in names]
        return [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in columns], kinds
    except Exception as e:
        return e


def note_kinds(block: Block, kinds: Kinds, of: Sequence[str] | None = None) -> None:
    """Add the columns of a block and the kinds of their values; of: of these columns only, without it of all."""
    layouts = dict.fromkeys(map(tuple, block))
    if len(layouts) > FEW:
        for row in block:
            for name, value in row.items():
                kinds.setdefault(name, set()).add(KINDS.get(type(value), "nested"))
        return
    for name in dict.fromkeys(chain.from_iterable(layouts)):
        found = kinds.setdefault(name, set())
        if of is None or name in of:
            everywhere = all(name in layout for layout in layouts)
            values = map(itemgetter(name), block) if everywhere else (row[name] for row in block if name in row)
            found.update(KINDS.get(t, "nested") for t in set(map(type, values)))


def _column(block: Block, name: str) -> pa.Array:
    """JSON values of one kind by this kind's type; of several, and whole numbers beyond 64 bits, as text."""
    try:
        values = list(map(itemgetter(name), block))
    except KeyError:
        values = [row.get(name) for row in block]
    kind = TYPES.get(frozenset(set(map(type, values)) - {type(None)}))
    try:
        if kind is not None:
            try:
                return pa.array(values, kind)
            except (pa.ArrowInvalid, OverflowError):
                pass
        return pa.array([v if v is None or isinstance(v, str) else _shown(v) for v in values], pa.utf8())
    except UnicodeEncodeError:
        raise InputError("text that is no Unicode (half of a surrogate pair)") from None


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
