"""Columns of Parquet files: only those that are asked for are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchkit.csvtext import Open
from benchkit.errors import InputError
from benchkit.formats.coding import is_text

if TYPE_CHECKING:
    from benchkit.formats.native import Document

BATCH = 1 << 18
DAMAGE = (pa.ArrowException, OSError, ValueError)  # UnicodeDecodeError is a ValueError


def batches(source: Open, schema: pa.Schema, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns in record batches, text as dictionaries. schema: the file's, in which no name stands twice."""
    text = [n for n in names if is_text(schema.field(n).type)]
    with source() as file:
        try:
            found = pq.ParquetFile(file, read_dictionary=text)
            with ThreadPoolExecutor(1) as pool:  # reads the next batch while this one is added up
                rest = found.iter_batches(BATCH, columns=list(names))
                ahead = pool.submit(next, rest, None)
                while (batch := ahead.result()) is not None:
                    ahead = pool.submit(next, rest, None)
                    batch.validate(full=True)  # text that is UTF-8, indices that are within their dictionary
                    yield batch.select(list(names))  # 's' stands for 's.t' too, and would bring it along
        except DAMAGE as e:
            raise damaged(e) from None


def damaged(e: BaseException) -> InputError:
    return InputError(f"damaged Parquet data: {' '.join(str(e).split())[:160]}")


def has_field(found: pa.Schema, column: str, field: str) -> bool:
    """Whether a column holds structs with this field."""
    if found.get_field_index(column) < 0:
        return False
    kind = found.field(column).type
    return bool(pa.types.is_struct(kind) and kind.get_field_index(field) >= 0)


def rows(doc: Document, names: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """The values of some columns as objects, each with its row."""
    columns = [values(doc, n) for n in names]
    if len({len(c) for c in columns}) > 1:
        raise InputError("damaged Parquet data: columns of different lengths")
    return [(n, dict(zip(names, row, strict=True))) for n, row in enumerate(zip(*columns, strict=True), 1)]


def values(doc: Document, name: str) -> list[Any]:
    """The values of a column, or, by 'column.field', of a field of its structs (None where the struct is null)."""
    column, _, field = name.partition(".") if "." in name and name not in doc.columns else (name, "", "")
    try:
        with doc.source() as file:
            found = pq.ParquetFile(file).read(columns=[name]).column(column).to_pylist()
    except DAMAGE as e:
        raise damaged(e) from None
    return [None if v is None else v[field] for v in found] if field else found
