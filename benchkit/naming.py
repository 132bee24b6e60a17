"""What models and items are called: names that a source lacks, maps of names, and the list of all items."""

from __future__ import annotations

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence

from benchkit import csvtext, wire
from benchkit.endings import stem
from benchkit.errors import InputError
from benchkit.formats.cells import Cells
from benchkit.tables import Column, Table

MAP = Table(
    "model map",
    "models",
    (Column("model", "utf8", "the name in the results", True), Column("name", "utf8", "the name wanted", True)),
    "you",
)


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
    """The identifiers of --items: one a line, or the column `item` (`id`, `instance_id`) of a table with a header."""
    if name is None:
        return None
    try:
        text = wire.read_bytes(name).decode("utf-8-sig", "strict")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", where=name) from None
    lines = [line.strip() for line in text.splitlines()]
    ids = [line for line in lines if line]
    if not ids:
        raise InputError("no items", where=name)
    if "," in ids[0] or ids[0] in ("item", "id", "instance_id"):
        table, _, _ = csvtext.read(text.encode(), None)
        column = next((c for c in ("item", "id", "instance_id") if c in table.column_names), None)
        if column is None:
            raise InputError("no column item, id or instance_id", where=name)
        ids = [str(x) for x in table[column].to_pylist() if x]
    twice = next((x for x, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"item '{twice}' stands twice", where=name)
    return frozenset(ids)


def check_items(parts: Sequence[Cells], items: frozenset[str]) -> None:
    """InputError where a source has an item that is not in the list."""
    for part in parts:
        strange = sorted(set(part.items) - items)
        if strange:
            more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
            raise InputError(f"item '{strange[0]}'{more} not in --items", where=part.where)


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
    known = {m for p in parts for m in p.models}
    lost = sorted(set(names) - known)
    if lost:
        raise InputError(f"--model-map: no model '{lost[0]}' in the sources", where="")
    return [
        p._replace(
            models=[names.get(m, m) for m in p.models],
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
