"""Lines of JSON objects as clients of the batch format leave them: whole, or cut where a client was interrupted."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from benchkit.errors import InputError


class Lines(NamedTuple):
    """The objects with their line numbers, from 1, and the number of the last line where it was cut and passed over."""

    rows: list[tuple[int, dict[str, Any]]]
    cut: int | None


def parse(data: bytes, *, allow_cut: bool = False) -> Lines:
    """One JSON object a line; blank lines are passed over.

    A line is cut where it is the last, has no line end and is no JSON: an error, unless `allow_cut`. Any other line
    that is no JSON object is an error in any case. Messages name the line.
    """
    rows: list[tuple[int, dict[str, Any]]] = []
    texts = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            row = orjson.loads(text)
        except orjson.JSONDecodeError as e:
            if number < len(texts):
                raise InputError(f"line {number}: damaged JSON: {e.msg} at column {e.colno}") from None
            if not allow_cut:
                raise InputError(f"line {number}: the last line is cut (--allow-cut passes it over)") from None
            return Lines(rows, number)
        if not isinstance(row, dict):
            raise InputError(f"line {number}: not a JSON object")
        rows.append((number, row))
    return Lines(rows, None)
