"""Columns as they come (Arrow types of any writer, text, JSON values) -> columns of the contract.

A value that can't be what its column says is an InputError that names the row; nothing is rounded or guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.errors import InputError
from benchkit.tables import TYPES, Column, Line, Table

WHOLE = {"int32": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false"}
FIT: dict[str, set[type]] = {
    "utf8": {str, int},
    "bool": {bool},
    "list<float32>": {list, str},
    "list<utf8>": {list, str},
}
KINDS_OF = {"utf8": "an identifier (text)", "int32": "a number", "int64": "a number", "float64": "a number",
            "bool": "true or false"}  # fmt: skip
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def to_contract(
    columns: dict[str, pa.ChunkedArray], rows: int, spec: Table, line: Line, instead: Callable[[str], str]
) -> pa.Table:
    """The table with exactly the columns of `spec`, in its order and types.

    `columns` maps names to Arrow columns of `rows` values; names that `spec` doesn't know are left out, a nullable
    column that is not there is null. `instead(name)` gives the message for a required column that is missing.
    """
    out = []
    for c in spec.columns:
        if c.name in columns:
            out.append(_column(columns[c.name], c, line))
        elif c.required:
            raise InputError(instead(c.name))
        else:
            out.append(pa.chunked_array([pa.nulls(rows, TYPES[c.type])]))
    return pa.table(out, schema=spec.schema())


def _column(data: pa.ChunkedArray, c: Column, line: Line) -> pa.ChunkedArray:
    data = decoded(data)
    if c.type == "utf8":
        data = identifiers(data, c.name)
    elif c.type.startswith("list"):
        data = _lists(data, c, line)
    elif _is_text(data.type):
        data = _parse(data, c, line)
    else:
        data = _numbers(data, c, line)
    if c.required and data.null_count:
        row = int(np.flatnonzero(np.asarray(data.is_null()))[0])
        raise InputError(f"row {line(row)}: {c.name} is missing")
    return data


def decoded(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary; Arrow's own cast does not know the text of polars' categorical columns."""
    if not pa.types.is_dictionary(data.type):
        return data
    kind = pa.utf8() if _is_text(data.type.value_type) else data.type.value_type
    return pa.chunked_array([c.dictionary.cast(kind).take(c.indices) for c in data.chunks], kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def identifiers(data: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Identifiers as text. Whole numbers become their digits; a float or a flag is no identifier."""
    if _is_text(data.type) or pa.types.is_integer(data.type) or pa.types.is_null(data.type):
        return data.cast(pa.utf8())
    raise InputError(f"column '{name}' holds {data.type} values; identifiers are text")


def _numbers(data: pa.ChunkedArray, c: Column, line: Line) -> pa.ChunkedArray:
    """Arrow numbers to the contract's type, by value: 4.0 is a whole number, 4.5 and 2^31 are not an int32."""
    kind, target = data.type, TYPES[c.type]
    if pa.types.is_null(kind) or kind == target:
        return data.cast(target)
    simple = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not simple:
        raise InputError(f"column '{c.name}' holds {kind} values where {WHOLE[c.type]} is needed")
    if pa.types.is_float16(kind):
        data = data.cast(pa.float32())
    try:
        return data.cast(target)
    except pa.ArrowInvalid:
        for i, v in enumerate(data.to_pylist()):
            try:
                pa.scalar(v, data.type).cast(target)
            except pa.ArrowInvalid:
                raise InputError(f"row {line(i)}: {c.name} ({v}) is not {_what(c)}") from None
        raise


def _what(c: Column) -> str:
    return "a whole number below 2^31" if c.type == "int32" else WHOLE[c.type]


NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


def _parse(data: pa.ChunkedArray, c: Column, line: Line) -> pa.ChunkedArray:
    """Text to numbers or flags; an empty field is null. Arrow's own parser takes 0x4 too, Python's 1_0."""
    text = pc.utf8_trim_whitespace(data.cast(pa.utf8()))
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.utf8()), text)
    if c.type == "bool":
        values = [None if v is None else FLAGS.get(v.lower(), v) for v in text.to_pylist()]
        bad = np.array([isinstance(v, str) for v in values])
        if not bad.any():
            return pa.chunked_array([pa.array(values, pa.bool_())])
    else:
        bad = ~np.asarray(pc.match_substring_regex(text, NUMBER).fill_null(True))
        if not bad.any():
            target = TYPES[c.type]
            try:
                return text.cast(target)
            except pa.ArrowInvalid:
                numbers = text.cast(pa.float64())  # 4.0 and 1e2 are whole numbers
            bad = np.asarray(pc.not_equal(numbers, pc.floor(numbers)).fill_null(False))
            bad |= np.abs(np.nan_to_num(numbers.to_numpy())) >= (2**31 if c.type == "int32" else 2**53)
            if not bad.any():
                return numbers.cast(target)
    row = int(np.flatnonzero(bad)[0])
    raise InputError(f"row {line(row)}: {c.name} ('{text[row].as_py()}') is not {_what(c)}")


def _lists(data: pa.ChunkedArray, c: Column, line: Line) -> pa.ChunkedArray:
    """Lists, or lists written as JSON in a text field."""
    target = TYPES[c.type]
    if not _is_text(data.type):
        if not (pa.types.is_list(data.type) or pa.types.is_large_list(data.type) or pa.types.is_null(data.type)):
            raise InputError(f"column '{c.name}' holds {data.type} values where lists are needed")
        try:
            return data.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"column '{c.name}' holds {data.type}, which is not {target}") from None
    values = []
    for i, v in enumerate(data.to_pylist()):
        try:
            values.append(pa.scalar(orjson.loads(v), target) if v else pa.scalar(None, target))
        except (ValueError, TypeError, pa.ArrowInvalid):
            raise InputError(f"row {line(i)}: {c.name} is not a JSON list") from None
    return pa.chunked_array([pa.array([v.as_py() for v in values], target)])


def json_columns(rows: Sequence[dict[str, Any]], line: Line, spec: Table) -> dict[str, pa.ChunkedArray]:
    """The columns of `spec` that JSON row objects hold, as Arrow columns.

    Values of one column may be numbers or their text; a whole number beyond int64 and an object where a value is
    needed are errors.
    """
    columns = [c for c in spec.columns if any(c.name in row for row in rows)]
    return {c.name: _json_column([row.get(c.name) for row in rows], c, line) for c in columns}


def _json_column(values: list[Any], c: Column, line: Line) -> pa.ChunkedArray:
    kinds = {type(v) for v in values} - {type(None)}
    fit = FIT.get(c.type, {str, int, float})
    if kinds - fit:
        at = next(i for i, v in enumerate(values) if v is not None and type(v) not in fit)
        raise InputError(f"row {line(at)}: {c.name} ({_short(values[at])}) is not {KINDS_OF.get(c.type, 'a list')}")
    if kinds == {int, float}:
        values = [None if v is None else float(v) for v in values]
    elif len(kinds) > 1:  # '4' beside 4, and identifiers of both kinds
        values = [v if v is None or isinstance(v, str) else repr(v) for v in values]
    try:
        return pa.chunked_array([pa.array(values)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise InputError(f"column '{c.name}' holds values of several types, or numbers beyond 64 bits") from None


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."
