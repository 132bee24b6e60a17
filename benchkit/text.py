"""Rows as an aligned text table for people, with the summary above it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchkit.cli import printable

P = "p"  # how p-values are written: .012, never 0.000


class Show(NamedTuple):
    """One column of a text table: the row's key, the heading, and how a float is written (a format spec, or P)."""

    key: str
    heading: str
    spec: str = ".3f"


class View(NamedTuple):
    """What a person sees of a result: a few lines, then the rows (the document's own, where `rows` is None).

    `order` sorts the rows, by the key that it makes of each. `most` is how many of them are shown, the first; the
    summary says then where the others are.
    """

    summary: Sequence[str]
    columns: Sequence[Show]
    rows: Sequence[Mapping[str, Any]] | None = None
    order: Callable[[Mapping[str, Any]], Any] | None = None
    most: int | None = None


def count(n: int, what: str) -> str:
    """1 item, 2 items."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def nested(document: Mapping[str, Any], *keys: str) -> Any:
    """The value under nested keys, or None where one of them is missing or null."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def cell(value: Any, spec: str) -> str:
    """One value as text: '-' where there is none, and no control characters."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if spec == P:
            return format(value, ".3f") if value >= 0.001 else "<0.001"
        return format(value, spec)
    if isinstance(value, list | tuple):
        return ", ".join(cell(v, spec) for v in value)
    return printable(str(value))


def natural(text: str) -> list[str | tuple[int, str]]:
    """A key that sorts numbers inside text by their value: q2 before q10."""
    parts = re.split("0*([0-9]+)", text)
    return [(len(part), part) if n % 2 else part for n, part in enumerate(parts)]


def width(text: str) -> int:
    """The columns that text takes on a terminal: wide East Asian characters two, combining marks none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me") for c in text)


def wrap(text: str, columns: int) -> list[str]:
    """The text in lines of at most so many columns, broken at spaces; all but the first are indented."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(lines[-1]) + 1 + width(word) <= columns:
            lines[-1] += " " + word
        else:
            lines.append("  " + word if lines else word)
    return [line.rstrip() for line in lines]


def render(view: View, rows: Sequence[Mapping[str, Any]], columns: int = 80) -> str:
    """The summary, at most `columns` wide, and the aligned table, as wide as it is. Numbers stand to the right."""
    lines = [line for s in view.summary for line in wrap(printable(s), columns)]
    rows = rows if view.rows is None else view.rows
    rows = (sorted(rows, key=view.order) if view.order else rows)[: view.most]
    if rows and view.columns:
        if lines:
            lines.append("")
        cells = [[c.heading, *(cell(row.get(c.key), c.spec) for row in rows)] for c in view.columns]
        right = [_numeric(row.get(c.key) for row in rows) for c in view.columns]
        wanted = [max(map(width, column)) for column in cells]
        for parts in zip(*cells, strict=True):
            blanks = (" " * (w - width(p)) for p, w in zip(parts, wanted, strict=True))
            padded = (b + p if r else p + b for p, b, r in zip(parts, blanks, right, strict=True))
            lines.append("  ".join(padded).rstrip())
    return "".join(s + "\n" for s in lines)


def _numeric(values: Any) -> bool:
    known = [v for v in values if v is not None]
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)  # undefined ones too
