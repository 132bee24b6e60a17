"""JSON rows: a list of objects, a document that holds one under its table's plural, or one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from benchkit.csvtext import Open
from benchkit.errors import InputError, Unrecognised
from benchkit.tables import DOCUMENTS, RESPONSES, TABLES, Table

LARGEST = 1 << 30  # bytes of one JSON document, unpacked
MOST = 1 << 24  # lists and objects in it
NOT_JSON = re.compile(rb'"(?:[^"\\]|\\.)*+"?|NaN|Infinity', re.DOTALL)  # or a text, where these words may stand
HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")  # half of a surrogate pair
BLOCK = 1 << 22  # bytes of lines that are parsed at once


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
    found, meta = members(doc, spec)
    return Rows(lambda: iter(enumerate(found, 1)), meta, "json")


def members(doc: Any, spec: Table | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of a JSON value, and what a document holds beside them. spec: as of `rows`."""
    found, meta = doc, {}
    if isinstance(doc, dict):
        table = _table(doc, spec)
        found = [doc]
        if table is not None:
            meta = {k: doc[k] for k in (*DOCUMENTS, "history") if doc.get(k) is not None} | {"table": table.tag}
            found = doc.get(table.rows, [doc])
    if not isinstance(found, list):
        raise Unrecognised("JSON that is neither a document with rows nor a list of rows")
    for k, row in enumerate(found, 1):
        if not isinstance(row, dict):
            raise Unrecognised(f"row {k}: not a JSON object")
    return found, meta


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
        filled = (line for line in _split(f) if line.removeprefix(b"\xef\xbb\xbf").strip())
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
        for n, line in enumerate(_split(f), 1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip() if n == 1 else line.strip()
            if not text:
                continue
            row = (parse or _strict)(text, f"line {n}: ")
            yield n, _object(row, n)


def _split(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, in pieces where one is longer than a document may be: `parse` refuses such a piece."""
    return iter(lambda: file.readline(LARGEST + 1), b"")


def blocks(source: Open) -> Iterator[list[dict[str, Any]]]:
    """The objects of `lines(source, parse)`, in lists of many: a fifth of the time where nothing is wrong."""
    with source() as f:
        start, rest = 1, f.read(3).removeprefix(b"\xef\xbb\xbf")
        while True:
            data = f.read(max(BLOCK, len(rest)))
            text, end, rest = (rest + data).rpartition(b"\n") if data else (rest, b"", b"")
            if len(rest) > LARGEST:
                text, end, rest = rest, b"", b""  # parse refuses it
            if text.strip():
                yield block(text, start)
            if not data:
                return
            start += text.count(b"\n") + len(end)


def block(text: bytes, start: int) -> list[dict[str, Any]]:
    """The objects of whole lines, of which the first has the number `start`."""
    texts = text.rstrip(b"\n").split(b"\n")
    try:
        if max(map(len, texts)) <= MOST:  # longer lines may hold more lists than `parse` takes
            rows = list(map(orjson.loads, texts))
            if set(map(type, rows)) == {dict}:
                return rows
    except orjson.JSONDecodeError:
        pass  # a blank line, NaN, or damage
    rows = []
    for n, line in enumerate(texts, start):
        if line.strip():
            rows.append(_object(parse(line.strip(), f"line {n}: "), n))
    return rows


def _object(row: Any, line: int) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f"line {line}: not a JSON object")
    return row


def parse(data: bytes, place: str = "") -> Any:
    """A JSON value. NaN, Infinity and halves of surrogate pairs, which writers leave in, are read as such."""
    if len(data) > LARGEST:
        raise InputError(f"{place}a JSON document of more than {LARGEST >> 20} MiB")
    if len(data) > MOST and data.count(b"[") + data.count(b"{") > MOST:  # some 100 bytes each
        raise InputError(f"{place}a JSON document of more than {MOST} lists and objects")
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        strict = e
    if HALF.search(text) or any(word in text for word in (b"NaN", b"Infinity")):
        try:
            orjson.loads(NOT_JSON.sub(_zero, HALF.sub(rb"\\ufffd", text)))  # all else is as strict as without these
            return json.loads(text, parse_int=_whole)
        except orjson.JSONDecodeError as e:
            strict = e
        except (ValueError, RecursionError):
            pass
    where = f"column {strict.colno}" if place.startswith("line") else f"line {strict.lineno}, column {strict.colno}"
    raise InputError(f"{place}damaged or cut JSON: {strict.msg} at {where}") from None


def _zero(word: re.Match[bytes]) -> bytes:
    """A number as long as the word that is none; a text as it is."""
    return word[0] if word[0].startswith(b'"') else b"0".ljust(len(word[0]))


def _whole(digits: str) -> int | float:
    """An integer as orjson reads it: a float beyond 64 bits."""
    value = int(digits)
    return value if -(2**63) <= value < 2**64 else float(value)


def _strict(text: bytes, place: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise InputError(f"{place}damaged or cut JSON: {e.msg} at column {e.colno}") from None
