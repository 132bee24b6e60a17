"""Fields of the JSON objects that tools write, checked: a value of another kind is an InputError that names its row."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache
from typing import Any

import orjson

from benchkit.errors import InputError
from benchkit.formats.columns import LESSER, NAMES
from benchkit.formats.native import Document

SCORES = {*NAMES["score"], *LESSER["score"]}
KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a flag", int: "a number", float: "a number"}


def records(doc: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a document with their rows: lines of NDJSON, members of a list, or the one object that it is."""
    if doc.kind == "ndjson":
        yield from doc.rows()
    else:
        yield from members(doc.first if isinstance(doc.first, list) else [doc.first], "row")


def first(doc: Document) -> dict[str, Any]:
    """The first object of a JSON document, {} where there is none: what `sniff` looks at."""
    value = doc.first[0] if isinstance(doc.first, list) and doc.first else doc.first
    return value if doc.kind in ("json", "ndjson") and isinstance(value, dict) else {}


def goes_along(row: dict[str, Any], layouts: Iterable[Set[str]]) -> bool:
    """Whether an object has all keys of one of the layouts: those of a tool's files that hold no results.

    One that holds a score too is a row of a table, where columns can be named.
    """
    return any(keys <= row.keys() for keys in layouts) and not SCORES & row.keys()


def common(path: str) -> Any:
    """The JSON value of a file that many others ask for, None where there is none. It must not be changed.

    It is parsed once as long as the file stays as it is.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return _parsed(path, found.st_mtime_ns, found.st_size)


def common_object(path: str) -> dict[str, Any]:
    """The same where an object is looked for: {} where there is none, or the file is damaged."""
    try:
        value = common(path)
    except InputError:
        return {}  # said where that file itself is read
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=4)
def _parsed(path: str, *_changed: int) -> Any:
    return Document(path, "json", None, None).sibling(os.path.basename(path))


def members(value: Any, what: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list, numbered from 1. what: one of them, in words."""
    if not isinstance(value, list):
        raise InputError(f"{what}s are {kind(value)}, not a list")
    for n, one in enumerate(value, 1):
        if not isinstance(one, dict):
            raise InputError(f"{what} {n} is {kind(one)}, not an object")
        yield n, one


def inner(row: dict[str, Any], key: str, line: int | None = None) -> dict[str, Any]:
    """The object under a key, {} where it is absent or null."""
    value = row.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{place(line)}{key} is {kind(value)}, not an object")
    return value


def text(row: dict[str, Any], key: str, line: int | None = None) -> str | None:
    """The text under a key, None where it is absent, null or empty."""
    value = row.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InputError(f"{place(line)}{key} is {kind(value)}, not a text")
    return value


def place(line: int | None) -> str:
    return "" if line is None else f"row {line}: "


def kind(value: Any) -> str:
    """What a value is, in words."""
    return "null" if value is None else KINDS.get(type(value), "something else")


def canonical(value: Any, what: str, line: int | None = None) -> str:
    """A JSON value as text, the same for equal values: keys sorted, no spaces."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:  # nested deeper than 254, or not Unicode
        raise InputError(f"{place(line)}{what} is nested too deeply, or no Unicode") from None


def digest(value: str) -> str:
    """A short hash of a text, to tell items apart."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
