"""CSV and TSV: what the separator and the columns are, whether the text is whole, and on which line a record starts.

pyarrow parses; it counts the fields of every record, but takes a quote that is never closed, or text after a closing
one, without a word. Python's strict parser looks over texts with quotes first.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.csv

from benchkit.errors import InputError

LONGEST = 1 << 27
"""Bytes of a line, or of a field: memory needed is about 20 times as much."""

csv.field_size_limit(LONGEST)

Open = Callable[[], BinaryIO]
"""Opens the text anew, at its start."""

BLOCK = 1 << 22

NAMELESS = " "
"""What the first column is called where its name is empty: a name that no other column can have."""


class Shape(NamedTuple):
    """A CSV text that was looked over.

    `names`: the columns as the header has them. `skip`: lines up to
    the header's end. `empty`: no record follows.
    """

    separator: str
    names: list[str]
    skip: int
    quoted: bool
    empty: bool

    @property
    def named(self) -> dict[str, str]:
        """Column name -> pyarrow's name for it. A first column without a name (an index) is NAMELESS; other such ones
        (Excel's empty ones) are left out."""
        return {n if n.strip() else NAMELESS: f"c{k}" for k, n in enumerate(self.names) if n.strip() or k == 0}


def separator_of(header: str = "", record: str = "") -> str:
    """Tab, comma or semicolon: the first of them that the header line has outside quotes.

    Of several that it has, the first one that the first record has as often; with a comma in a name, say, and none in
    numbers.
    """
    outside = ["".join(line.split('"')[::2]) for line in (header, record)]
    there = [d for d in "\t,;" if d in outside[0]]
    return next((d for d in there if outside[0].count(d) == outside[1].count(d)), there[0] if there else ",")


def look_over(source: Open, separator: str | None = None) -> Shape:
    """Find the columns; raise InputError where the text is not UTF-8, not whole, or has no usable header."""
    quoted = _check_bytes(source)
    if separator is None:
        with _text(source) as f:
            separator = separator_of(*islice((line for line in f if line.strip()), 2))
    records = _records(source, separator)
    _, last, names = next(records, (1, 1, []))
    if re.fullmatch("sep=.?", separator.join(names)):
        raise InputError(f"line 1: '{separator.join(names)}' is a hint for Excel, not data: remove the line")
    check_twice(n.strip() for n in names)
    empty = next(records, None) is None
    if quoted:
        for _ in records:  # raises where quotes go wrong
            pass
    return Shape(separator, names, last, quoted, empty)


def check_twice(names: Iterable[str]) -> None:
    """InputError where two columns have one name; unnamed ones may."""
    twice = {n for n, count in Counter(names).items() if n and count > 1}
    if twice:
        raise InputError(f"column '{min(twice)}' stands twice")


def _check_bytes(source: Open) -> bool:
    """Whether there are quotes; raises where the bytes are no UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    quoted, line, since = False, 1, 0
    with source() as f:
        while True:
            block = f.read(BLOCK)
            if b"\0" in block:
                raise InputError(f"line {line + block.count(10, 0, block.index(0))}: binary data in a text table")
            quoted = quoted or b'"' in block
            try:
                if not block or not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block, final=not block)
            except UnicodeDecodeError as e:
                raise InputError(
                    f"line {line + e.object.count(10, 0, e.start)}: not UTF-8 text: save it as UTF-8"
                ) from None
            if not block:
                return quoted
            end = max(block.rfind(b"\n"), block.rfind(b"\r"))
            since = since + len(block) if end < 0 else len(block) - end - 1
            line += block.count(10)
            if since > LONGEST:
                raise InputError(f"line {line}: more than {LONGEST >> 20} MiB")


def _text(source: Open) -> io.TextIOWrapper:
    return io.TextIOWrapper(source(), encoding="utf-8-sig", newline="")


def _records(source: Open, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """(first line, last line, fields) of every record that is not empty."""
    with _text(source) as f:
        reader = csv.reader(f, delimiter=separator, strict=True)
        start = 1
        try:
            for fields in reader:
                if fields:
                    yield start, reader.line_num, fields
                start = reader.line_num + 1
        except csv.Error as e:
            whys = {"end of data": "a quoted field is not closed", "limit": f"a field of more than {LONGEST >> 20} MiB"}
            why = next((why for words, why in whys.items() if words in str(e)), "text after a closing quote")
            raise InputError(f"line {start}: {why}") from None


def line_of(source: Open, shape: Shape, index: int) -> int:
    """The line where record `index` (0 is the first after the header) starts."""
    for k, (start, _, _) in enumerate(_records(source, shape.separator)):
        if k == index + 1:
            return start
    return shape.skip + 1 + index


def records(source: Open, shape: Shape) -> Iterator[list[str]]:
    """The fields of the named columns, a list a record."""
    kept = [k for k, n in enumerate(shape.names) if n.strip() or k == 0]
    every = len(kept) == len(shape.names)
    each = _records(source, shape.separator)
    next(each, None)
    for start, _, fields in each:
        if len(fields) != len(shape.names):
            raise InputError(f"row {start}: {len(fields)} fields where the header has {len(shape.names)}")
        yield fields if every else [fields[k] for k in kept]


def unnamed_cell(source: Open, shape: Shape) -> tuple[int, int, str] | None:
    """Row index, column from 1 and text of the first field in a column without a name that is not the first column."""
    unnamed = [k for k, n in enumerate(shape.names) if not n.strip() and k]
    if unnamed:
        for row, (_, _, fields) in enumerate(islice(_records(source, shape.separator), 1, None)):
            for k in unnamed:
                if k < len(fields) and fields[k].strip():
                    return row, k + 1, fields[k]
    return None


def batches(
    source: Open, shape: Shape, columns: Sequence[str] | None = None, *, dictionary: bool = False
) -> Iterator[pa.RecordBatch]:
    """The named columns (all of them by default) as text, in batches; an empty field without quotes is null.

    dictionary: as indices into the distinct texts of a batch.
    """
    named = shape.named
    wanted = list(named) if columns is None else list(columns)
    if shape.empty or not wanted:
        return
    size, given = BLOCK, 0
    while True:
        try:
            before = given  # rows to pass over, given out by an earlier try
            with source() as f:
                for batch in pa.csv.open_csv(f, *_options(shape, [named[n] for n in wanted], size, dictionary)):
                    new = batch.slice(min(before, batch.num_rows))
                    before -= batch.num_rows - new.num_rows
                    given += new.num_rows
                    yield new.rename_columns(wanted)
            return
        except pa.ArrowInvalid as e:
            if ("straddl" in str(e) or "block size" in str(e)) and size < 1 << 30:
                size *= 16  # a record, or the header, is longer than the block
                continue
            raise InputError(_fault(source, shape) or f"damaged CSV: {' '.join(str(e).split())[:160]}") from None


def _options(
    shape: Shape, wanted: list[str], size: int, dictionary: bool
) -> tuple[pa.csv.ReadOptions, pa.csv.ParseOptions, pa.csv.ConvertOptions]:
    return (
        pa.csv.ReadOptions(
            column_names=[f"c{k}" for k in range(len(shape.names))], skip_rows=shape.skip, block_size=size
        ),
        pa.csv.ParseOptions(delimiter=shape.separator, newlines_in_values=shape.quoted),
        pa.csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.utf8()) if dictionary else pa.utf8()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _fault(source: Open, shape: Shape) -> str | None:
    try:
        for _ in records(source, shape):
            pass
    except InputError as e:
        return str(e)
    return None


def read(data: bytes, separator: str | None) -> tuple[pa.Table, Shape, Open]:
    """The whole text as a table of text columns."""

    def source() -> BinaryIO:
        return io.BytesIO(data)

    shape = look_over(source, separator)
    schema = pa.schema([(n, pa.utf8()) for n in shape.named if n != NAMELESS])
    return pa.Table.from_batches(list(batches(source, shape, schema.names)), schema), shape, source
