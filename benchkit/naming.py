"""What models and items are called: names that a source lacks, maps of names, and the list of all items."""

from __future__ import annotations

import io
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from benchkit import csvtext, decode, jsontext, wire
from benchkit.endings import stem
from benchkit.errors import InputError
from benchkit.formats.cells import Cells
from benchkit.formats.columns import LESSER, NAMES, plain, shown
from benchkit.formats.native import identifier
from benchkit.tables import RESPONSES, Column, Table
from benchkit.text import count

MAP = Table(
    "model map",
    "models",
    (Column("model", "utf8", "the name in the results", True), Column("name", "utf8", "the name wanted", True)),
    "you",
)

ITEM = (*NAMES["item"], *LESSER["item"], "id")
"""What a column of items may be called in the file of --items."""


def fallback(args: Namespace, path: str | None, folder: str | None = None) -> str | None:
    """The model's name where a source records none: --model, or a part of its path; None where nothing was said.

    folder: the run's, where it is not the one that holds the file.
    """
    if args.model is not None or args.model_from is None:
        return None if args.model is None else str(args.model)
    if path in (None, "-"):
        raise InputError("--model-from: standard input has no path", where="")
    whole = os.path.abspath(str(path))
    if args.model_from == "path":
        return os.path.basename(os.path.dirname(whole) if folder is None else os.path.abspath(folder)) or None
    return stem(whole)


def item_list(name: str | None) -> frozenset[str] | None:
    """The identifiers of --items: those of a table's column of items, of a JSON list, or one a line."""
    if name is None:
        return None
    try:
        ids = _ids(decode.unpack(wire.read_bytes(name)))
        if not ids:
            raise InputError("no items")
        twice = next((x for x, times in Counter(ids).items() if times > 1), None)
        if twice is not None:
            raise InputError(f"item '{twice}' stands twice")
    except InputError as e:
        raise InputError(str(e), where=name) from None
    return frozenset(ids)


def _ids(data: bytes) -> list[str]:
    """The identifiers in a file. A table of results has an item once a model: there each counts once."""
    kind = decode.detect(data)
    if kind == "csv" and not _has_header(data):
        return [line.strip() for line in _text(data).splitlines() if line.strip()]
    if kind == "json":
        value = jsontext.parse(data) if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[") else None
        if isinstance(value, list) and not any(isinstance(x, dict) for x in value):
            return [identifier(x, "item", k) for k, x in enumerate(value, 1)]
        rows = list(jsontext.rows(lambda: io.BytesIO(data), "auto", None).each())
        names = list(dict.fromkeys(key for _, row in rows for key in row))
        column = _item_column(names)
        found = [(n, row.get(column)) for n, row in rows]
    else:
        raw = decode.decode(data, "auto", RESPONSES)
        names, column = raw.names, _item_column(raw.names)
        found = [(k + 1, x) for k, x in enumerate(raw.columns[column].to_pylist())]
    ids = [identifier(x, column, n) for n, x in found if x not in (None, "")]
    return list(dict.fromkeys(ids)) if any(plain(n) in NAMES["model"] for n in names) else ids


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text: save it as UTF-8") from None


def _has_header(data: bytes) -> bool:
    """Whether the first line names a column of items; else every line is an item, with its commas."""
    lines = list(islice((line for line in _text(data).splitlines() if line.strip()), 2))
    names = lines[0].split(csvtext.separator_of(*lines)) if lines else []
    return any(plain(n.strip().strip('"')) in ITEM for n in names)


def _item_column(names: Sequence[str]) -> str:
    """The column of items: `item`, or the one that is called as items are."""
    found = [n for n in names if plain(n) == "item"] or [n for n in names if plain(n) in ITEM]
    if not found:
        raise InputError(f"no column {', '.join(ITEM[:-1])} or {ITEM[-1]} (found: {shown(names)})")
    if len(found) > 1:
        raise InputError(f"columns {' and '.join(found)} could be the items: keep one")
    return found[0]


def check_items(parts: Sequence[Cells], items: frozenset[str], name: str) -> None:
    """InputError where a source has an item that is not in the list, which came from the file `name`."""
    for part in parts:
        strange = sorted(set(part.items) - items)
        if strange:
            more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            held = f"{count(len(items), 'item')}, such as '{min(items)}'"
            raise InputError(f"item '{strange[0]}'{more} not in --items {name} ({held})", where=part.where)


def model_map(args: Namespace) -> dict[str, str]:
    """The renaming of --model-map, {} without: a table with the columns model and name."""
    if args.model_map is None:
        return {}
    frame = wire.read(args, MAP, name=args.model_map)
    found: dict[str, str] = {}
    for model, name in zip(frame.table["model"].to_pylist(), frame.table["name"].to_pylist(), strict=True):
        if model in found:
            raise InputError(f"model '{model}' stands twice", where=args.model_map)
        found[model] = name
    return found


def rename(parts: list[Cells], names: dict[str, str]) -> list[Cells]:
    """Models by the names wanted; two that get one name are then one model."""
    if not names:
        return parts
    known = {m for p in parts for m in (*p.models, *p.untried.models)}
    lost = sorted(set(names) - known)
    if lost:
        raise InputError(f"--model-map: no model '{lost[0]}' in the sources", where="")
    return [
        p._replace(
            models=[names.get(m, m) for m in p.models],
            untried=p.untried._replace(models=[names.get(m, m) for m in p.untried.models]),
            settings={names.get(m, m): settings for m, settings in p.settings.items()},
        )
        for p in parts
    ]


def tell_apart(parts: list[Cells]) -> list[Cells]:
    """Append the settings of runs to their models' names where runs of one model share an attempt."""
    runs: dict[str, list[int]] = {}
    for n, part in enumerate(parts):
        for model in part.settings:
            runs.setdefault(model, []).append(n)
    collide: dict[int, dict[str, str]] = {}
    for model, at in runs.items():
        if len({parts[n].settings[model] for n in at}) > 1 and _share(model, [parts[n] for n in at]):
            for n in at:
                collide.setdefault(n, {})[model] = f"{model} ({parts[n].settings[model]})"
    out = list(parts)
    for n, names in collide.items():
        rest = {m: settings for m, settings in parts[n].settings.items() if m not in names}  # the names say the others
        out[n] = parts[n]._replace(models=[names.get(m, m) for m in parts[n].models], settings=rest)
    return out


def _share(model: str, runs: list[Cells]) -> bool:
    """Whether two runs may hold the same attempt of the model."""
    seen: dict[str, int] = {}
    for run in runs:
        mine = run.model == run.models.index(model)
        for item, numbers in zip(run.item[mine].tolist(), run.numbers[mine].tolist(), strict=True):
            name = run.items[item]
            if name in seen and (numbers < 0 or seen[name] < 0 or numbers & seen[name]):
                return True
            seen[name] = numbers if name not in seen or numbers < 0 else seen[name] | numbers
    return False


def shortest(paths: Sequence[str]) -> list[str]:
    """Of each path the file's name, with as many of its folders as tell it from the others of that name."""
    ends = dict.fromkeys(paths, "")
    pending, depth = list(ends), 0
    while pending:
        depth += 1
        for path in pending:
            ends[path] = "/".join(path.split("/")[-depth:])
        times = Counter(ends[path] for path in pending)
        pending = [p for p in pending if times[ends[p]] > 1 and ends[p] != p]
    return [ends[path] for path in paths]
