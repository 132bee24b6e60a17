"""Any file as named columns, lazily where the file allows it.

Named CSV, TSV, NDJSON and Parquet files are scanned by polars, so that they never have to fit in memory. Everything
else (standard input, Arrow, JSON documents, compressed files) is read whole and verified.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import polars as pl

from benchkit import decode
from benchkit.errors import InputError
from benchkit.tables import Line
from benchkit.wire import read_bytes

HEAD = 1 << 16


class Tabular(NamedTuple):
    """One source as columns. Fields of CSV and NDJSON are text; other formats keep their types.

    `line` maps a row's index in `frame` to the number that messages give it. `meta` is benchkit's own metadata, where
    the source is one of its tables. What is `lazy` can be read again `whole`, for sharper messages.
    """

    frame: pl.LazyFrame
    names: list[str]
    line: Line
    format: str
    where: str
    meta: dict[str, Any]
    notes: list[str]
    lazy: bool


def open_source(name: str | None, from_: str, *, unterminated: bool = False) -> Tabular:
    """Open a named file, or standard input (None or '-'), by its content."""
    if name not in (None, "-"):
        with open(str(name), "rb") as f:
            head = f.read(HEAD)
        if head and head[:2] != b"\x1f\x8b" and head[:4] != b"\x28\xb5\x2f\xfd":
            kind = decode.detect(head) if from_ == "auto" else from_
            if kind == "parquet":
                return _parquet(str(name))
            if kind in ("csv", "tsv"):
                return _csv(str(name), head, kind if from_ != "auto" else None)
            if kind in ("json", "ndjson"):
                found = _ndjson(str(name))
                if found:
                    return found
    return whole(name, from_, unterminated=unterminated)


def whole(name: str | None, from_: str, *, unterminated: bool = False) -> Tabular:
    """Read and verify the source whole."""
    raw = decode.decode(read_bytes(name), from_, None, unterminated=unterminated)
    import pyarrow as pa

    table = pa.table(raw.columns) if raw.columns else pa.table({})
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    where = "<stdin>" if name in (None, "-") else str(name)
    return Tabular(frame.lazy(), list(raw.columns), raw.line, raw.format, where, raw.meta, raw.notes, False)


def _parquet(name: str) -> Tabular:
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(name)
    except (OSError, ValueError) as e:
        raise InputError(f"damaged or cut Parquet file: {decode._short(e)}") from None
    if any(key.startswith(b"benchkit.") for key in schema.metadata or {}):
        return whole(name, "parquet")
    return Tabular(pl.scan_parquet(name), schema.names, lambda i: i + 1, "parquet", name, {}, [], True)


def _csv(name: str, head: bytes, kind: str | None) -> Tabular:
    text = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    separator = {"tsv": "\t", "csv": ","}.get(kind or "") or decode.delimiter(text)
    names = _records(name, separator)
    try:
        header = next(names, [])
    except (UnicodeDecodeError, csv.Error):
        return whole(name, kind or "auto")
    if len({h.strip() for h in header}) < len(header):
        return whole(name, kind or "auto")  # which says what stands twice
    frame = pl.scan_csv(name, separator=separator, infer_schema=False).rename(
        {h: h.strip() for h in header if h != h.strip()}
    )

    def line(i: int) -> int:
        start, at = 1, -1  # polars counts an empty line as a row
        with open(name, encoding="utf-8", newline="") as f:
            reader = csv.reader(f, delimiter=separator)
            for _ in reader:
                if at == i:
                    return start
                at += 1
                start = reader.line_num + 1
        return start

    shown = "tsv" if separator == "\t" else "csv"
    return Tabular(frame, [h.strip() for h in header], line, shown, name, {}, [], True)


def _records(name: str, separator: str) -> Iterator[list[str]]:
    with open(name, encoding="utf-8-sig", newline="") as f:
        yield from csv.reader(f, delimiter=separator)


def _ndjson(name: str) -> Tabular | None:
    """Scan lazily, every value as text, where the first lines are objects; else None, and the file is read whole."""
    keys: dict[str, None] = {}
    nested: set[str] = set()
    count = 0
    with open(name, "rb") as f:
        for text in f:
            try:
                row = orjson.loads(text)
            except orjson.JSONDecodeError:
                return None
            if not isinstance(row, dict):
                return None
            keys.update(dict.fromkeys(row))
            nested |= {k for k, v in row.items() if isinstance(v, dict | list)}
            count += 1
            if count == 1000:
                break
    if count < 2:
        return None  # may be a document on one line
    names = [k for k in keys if k not in nested]
    frame = pl.scan_ndjson(name, schema=dict.fromkeys(names, pl.String))

    def line(i: int) -> int:
        with open(name, "rb") as f:
            filled = (n for n, text in enumerate(f, 1) if text.strip())
            return next(itertools.islice(filled, i, None))

    return Tabular(frame, names, line, "ndjson", name, {}, [], True)
