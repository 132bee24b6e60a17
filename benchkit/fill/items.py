"""Questions and answers of items: JSON lines, or any other format that tables are read in."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchkit import decode, jsontext, wire
from benchkit.errors import InputError
from benchkit.tables import CANDIDATES


class Item(NamedTuple):
    """What a person or a model would see of an item."""

    id: str
    question: str
    answer: str


def read(name: str) -> dict[str, Item]:
    """The items of a file by identifier. Only id, question and answer are looked at; numbers become their text.

    Raises InputError, naming the row, for one that is missing, empty or no text or number, and for an id that stands
    twice.
    """
    out: dict[str, Item] = {}
    seen: dict[str, int] = {}
    try:
        for number, row in _rows(decode.unpack(wire.read_bytes(name))):
            item = _item(row, number)
            if item.id in out:
                raise InputError(f"rows {seen[item.id]} and {number}: item '{item.id}' stands twice")
            out[item.id], seen[item.id] = item, number
        if not out:
            raise InputError("no items")
    except InputError as e:
        raise InputError(str(e), where="<stdin>" if name == "-" else name) from None
    return out


def _rows(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    if decode.choose(data, "auto") == "json":
        yield from jsontext.rows(lambda: io.BytesIO(data), "auto", CANDIDATES).each()
        return
    raw = decode.decode(data, "auto", CANDIDATES)
    found = {k: raw.columns[k].to_pylist() for k in Item._fields if k in raw.columns}
    for at in range(raw.rows):
        yield raw.line(at), {k: values[at] for k, values in found.items()}


def _item(row: dict[str, Any], number: int) -> Item:
    parts = []
    for key in Item._fields:
        value = row.get(key)
        if value is None:
            raise InputError(f"row {number}: no {key}: items have id, question and answer")
        said = text(value)
        if said is None:
            raise InputError(f"row {number}: {key} is neither text nor a number that is exact: write it as text")
        if not said.strip():
            raise InputError(f"row {number}: {key} is empty")
        parts.append(said)
    return Item(*parts)


def text(value: Any) -> str | None:
    """Text, or a number as text; None for anything else, and for a whole number that a float can't hold exactly."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and (not math.isfinite(value) or abs(value) >= 2**53):
        return None
    return str(value)
