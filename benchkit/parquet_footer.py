"""Where a Parquet file's data end, by its footer.

pyarrow can tell too, but ends the process where a footer is damaged in some ways. A footer is a struct FileMetaData
(parquet.thrift of apache/parquet-format) in Thrift's compact protocol.
"""

from __future__ import annotations

from typing import Any

from benchkit.errors import InputError

BOOLEANS, BYTE, WHOLE, DOUBLE, BINARY, LISTS, MAP, STRUCT, UUID = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12, 13
DEEPEST = 32
ROW_GROUPS, COLUMNS, META, DATA_PAGE, DICTIONARY_PAGE, SIZE = 4, 1, 3, 9, 11, 7
INDEXES = ((4, 5), (6, 7))  # of a column: offset and length of its offset index, and of its column index
BLOOM = (14, 15)  # of its metadata


def data_end(footer: bytes) -> int:
    """The byte after the last one that the footer speaks of; InputError where the footer is damaged."""
    end = 4
    try:
        found, _ = _struct(footer, 0, 0)
        for group in found.get(ROW_GROUPS, []):
            for column in group.get(COLUMNS, []):
                meta = column.get(META, {})
                spans = [(meta.get(DICTIONARY_PAGE) or meta.get(DATA_PAGE, 0), meta.get(SIZE, 0))]
                spans += [(column.get(at, 0), column.get(size, 0)) for at, size in INDEXES]
                spans += [(meta.get(BLOOM[0], 0), meta.get(BLOOM[1], 0))]
                end = max(end, *(at + size for at, size in spans))
    except (IndexError, ValueError, TypeError, AttributeError):
        raise InputError("damaged or cut Parquet data: a footer that can't be read") from None
    return end


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Fields by their ids."""
    if depth > DEEPEST:
        raise ValueError
    out: dict[int, Any] = {}
    field = 0
    while True:
        head = data[at]
        at += 1
        if not head:
            return out, at
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _whole(data, at)
        if kind in BOOLEANS:
            out[field] = kind == BOOLEANS[0]
        else:
            out[field], at = _value(data, at, kind, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in WHOLE:
        return _whole(data, at)
    if kind == BINARY:
        size, at = _varint(data, at)
        return None, _passed(data, at, size)
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind in LISTS:
        head = data[at]
        size, at = (head >> 4, at + 1) if head >> 4 < 15 else _varint(data, at + 1)
        out = []
        for _ in range(size):
            value, at = _value(data, at, head & 15, depth + 1)
            out.append(value)
        return out, at
    if kind == MAP:
        size, at = _varint(data, at)
        kinds, at = (data[at], at + 1) if size else (0, at)
        for _ in range(size):
            _, at = _value(data, at, kinds >> 4, depth + 1)
            _, at = _value(data, at, kinds & 15, depth + 1)
        return None, at
    sizes = {BYTE: 1, DOUBLE: 8, UUID: 16, **dict.fromkeys(BOOLEANS, 1)}
    return None, _passed(data, at, sizes[kind]) if kind in sizes else _passed(data, at, -1)


def _passed(data: bytes, at: int, size: int) -> int:
    if not 0 <= size <= len(data) - at:
        raise ValueError
    return at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError


def _whole(data: bytes, at: int) -> tuple[int, int]:
    """A whole number in zigzag: 0, -1, 1, -2, ..."""
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at
