"""JSON rows: a list of objects, a document that holds one under its table's plural, or one object a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from benchkit.csvtext import Open
from benchkit.errors import InputError
from benchkit.tables import DOCUMENTS, RESPONSES, TABLES, Table


class Rows(NamedTuple):
    """`each()` gives (number for messages, object) of every row, anew at each call.

    `meta` is what a document holds beside its rows. Lines are numbered by line, rows of a document from 1.
    """

    each: Callable[[], Iterator[tuple[int, dict[str, Any]]]]
    meta: dict[str, Any]
    format: str


def rows(source: Open, from_: str, spec: Table | None) -> Rows:
    """Find the rows. `from_` is json, ndjson or auto; `spec` is the table wanted, None where raw results are.

    A document of another table keeps its tag in `meta`, for the message.
    """
    if from_ == "ndjson" or (from_ == "auto" and is_lines(source)):
        return Rows(lambda: lines(source), {}, "ndjson")
    with source() as f:
        data = f.read()
    try:
        doc = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as e:
        raise InputError(f"damaged or cut JSON: {e.msg} at line {e.lineno}, column {e.colno}") from None
    found, meta = doc, {}
    if isinstance(doc, dict):
        table = _table(doc, spec)
        found = [doc]
        if table is not None:
            meta = {k: doc[k] for k in (*DOCUMENTS, "history") if doc.get(k) is not None} | {"table": table.tag}
            found = doc.get(table.rows, [doc])
    if not isinstance(found, list):
        raise InputError("JSON that is neither a document with rows nor a list of rows")
    for k, row in enumerate(found, 1):
        if not isinstance(row, dict):
            raise InputError(f"row {k}: not a JSON object")
    return Rows(lambda: iter(enumerate(found, 1)), meta, "json")


def _table(doc: dict[str, Any], spec: Table | None) -> Table | None:
    """The table whose document this is, by the key that only it has; raw results may look like all but responses."""
    own = [t for t in TABLES if t.mark in doc and isinstance(doc.get(t.rows, []), list)]
    if spec is None:
        own = [t for t in own if "history" in doc or (t is RESPONSES and _objects(doc[t.rows]))]
    return spec if spec in own else own[0] if own else None


def _objects(rows: list[Any]) -> bool:
    return bool(rows) and isinstance(rows[0], dict)


def is_lines(source: Open, parse: Callable[[bytes], Any] = orjson.loads) -> bool:
    """Whether the first line is an object of its own and another line follows."""
    with source() as f:
        filled = (line for line in f if line.removeprefix(b"\xef\xbb\xbf").strip())
        first, second = next(filled, b""), next(filled, None)
    try:
        return second is not None and isinstance(parse(first.removeprefix(b"\xef\xbb\xbf")), dict)
    except (ValueError, InputError):
        return False


def lines(source: Open, parse: Callable[[bytes, str], Any] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of every line that is not blank, with the line's number.

    parse(text, place): another way to read a line than strict JSON; its messages begin with the place.
    """
    with source() as f:
        for n, line in enumerate(f, 1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip() if n == 1 else line.strip()
            if not text:
                continue
            row = (parse or _strict)(text, f"line {n}: ")
            if not isinstance(row, dict):
                raise InputError(f"line {n}: not a JSON object")
            yield n, row


def _strict(text: bytes, place: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise InputError(f"{place}damaged or cut JSON: {e.msg} at column {e.colno}") from None
