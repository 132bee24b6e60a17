"""Rows as an aligned text table for people, with the summary above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchkit.cli import printable


class Show(NamedTuple):
    """One column of a text table: the row's key, the heading, and how a float is written (a format spec)."""

    key: str
    heading: str
    spec: str = ".3f"


class View(NamedTuple):
    """What a person sees of a result: a few lines, then the rows (the document's own, where `rows` is None)."""

    summary: Sequence[str]
    columns: Sequence[Show]
    rows: Sequence[Mapping[str, Any]] | None = None


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
        return format(value, spec)
    if isinstance(value, list | tuple):
        return ", ".join(cell(v, spec) for v in value)
    return printable(str(value))


def render(view: View, rows: Sequence[Mapping[str, Any]]) -> str:
    """The summary, a blank line, and the aligned table. Numbers stand to the right, text to the left."""
    lines = [printable(s) for s in view.summary]
    rows = rows if view.rows is None else view.rows
    if rows and view.columns:
        if lines:
            lines.append("")
        cells = [[cell(row.get(c.key), c.spec) for row in rows] for c in view.columns]
        right = [_numeric(row.get(c.key) for row in rows) for c in view.columns]
        widths = [max(len(c.heading), *map(len, col)) for c, col in zip(view.columns, cells, strict=True)]

        def line(parts: Sequence[str]) -> str:
            padded = (p.rjust(w) if r else p.ljust(w) for p, w, r in zip(parts, widths, right, strict=True))
            return "  ".join(padded).rstrip()

        lines.append(line([c.heading for c in view.columns]))
        lines += [line(parts) for parts in zip(*cells, strict=True)]
    return "".join(s + "\n" for s in lines)


def _numeric(values: Any) -> bool:
    known = [v for v in values if v is not None]
    return bool(known) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)
