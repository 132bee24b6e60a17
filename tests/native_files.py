"""Shared by the tests of readers: documents as sources, what is read from them, and damaged ones."""

from __future__ import annotations

import json
from collections import defaultdict
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.formats import Choices, long, registry
from benchkit.formats.native import Attempts, look, tabular
from benchkit.formats.tabular import unpacked

LONG = long.Roles("model", "item", "score", "attempt", None, None, "cluster")

HOSTILE: tuple[Any, ...] = (
    None, True, 0, -1, 3, 2**63, 0.5, 1e308, float("nan"), float("inf"), "", "x", "10", "\x00", "ü" * 300, [], [[]],
    [None], {}, {"a": {}}, [{}], {"": None},
)  # fmt: skip
"""Values to stand where a tool's file has another."""


def write(path: Path, document: Any) -> Path:
    """A JSON document as a file; NaN and Infinity as Python writes them. Lines are written as NDJSON for .jsonl."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in document))
    else:
        path.write_text(json.dumps(document))
    return path


def attempts(path: Path, **choices: Any) -> Attempts | None:
    """What the reader that recognises the file reads from it."""
    doc = look(str(path), "auto", unpacked(str(path)))
    assert doc is not None
    reader = registry.find(doc)
    assert reader is not None, "no reader recognises it"
    return reader.read(doc, Choices({}, **choices))


def reader(path: Path) -> str | None:
    """The name of the module that recognises the file."""
    doc = look(str(path), "auto", unpacked(str(path)))
    found = registry.find(doc) if doc else None
    return None if found is None else found.__name__.rpartition(".")[2]  # type: ignore[attr-defined]


def scores(found: Attempts | None) -> dict[str, list[float | None]]:
    """Scores by item, in the order of the file."""
    assert found is not None
    out: dict[str, list[float | None]] = defaultdict(list)
    for item, score in zip(found.items, found.scores, strict=True):
        out[item].append(score)
    return dict(out)


def survives(path: Path, **choices: Any) -> None:
    """The file is read, or refused in one line, or nobody's; a table that is read holds scores in [0,1]."""
    try:
        doc = look(str(path), "auto", unpacked(str(path)))
        found = registry.find(doc) if doc else None
        if not doc or not found:
            return
        chosen = Choices({}, **choices)
        got = found.read(doc, chosen)
        if got is None:
            return
        cells = long.read(tabular(got, doc, chosen, "m")[0], LONG, chosen)
        assert (cells.correct <= cells.attempts).all() and (cells.correct >= 0).all()
        assert all(cells.items) and all(cells.models)
    except InputError as e:
        assert str(e).strip() and "\n" not in str(e), repr(str(e))


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three of its values replaced by hostile ones, dropped, or repeated."""
    copy = deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(copy))
        if not places:
            return deepcopy(draw(st.sampled_from(HOSTILE)))
        holder, key = draw(st.sampled_from(places))
        action = draw(st.sampled_from(("replace", "replace", "drop", "repeat")))
        if action == "replace":
            holder[key] = deepcopy(draw(st.sampled_from(HOSTILE)))
        elif action == "drop":
            del holder[key]
        elif isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        else:
            holder[key + "x"] = deepcopy(holder[key])
    return copy


def _places(value: Any) -> Any:
    """Every (holder, key) of a document."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
