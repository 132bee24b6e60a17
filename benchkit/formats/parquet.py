"""Columns of Parquet files as Python values: only those that are asked for are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchkit.errors import InputError
from benchkit.formats.native import Document


def schema(doc: Document) -> pa.Schema:
    with doc.source() as file:
        return pq.read_schema(file)


def has_field(found: pa.Schema, column: str, field: str) -> bool:
    """Whether a column holds structs with this field."""
    if found.get_field_index(column) < 0:
        return False
    kind = found.field(column).type
    return bool(pa.types.is_struct(kind) and kind.get_field_index(field) >= 0)


def values(doc: Document, name: str) -> list[Any]:
    """The values of a column, or, by 'column.field', of a field of its structs (None where the struct is null)."""
    column, _, field = name.partition(".")
    if doc.columns.count(column) > 1:
        raise InputError(f"column '{column}' stands twice")
    try:
        with doc.source() as file:
            found = pq.ParquetFile(file).read(columns=[name]).column(column).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as e:  # UnicodeDecodeError is a ValueError
        raise InputError(f"damaged Parquet data: {' '.join(str(e).split())[:160]}") from None
    return [None if v is None else v[field] for v in found] if field else found
