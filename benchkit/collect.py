"""Files and folders of raw results -> one responses table, with what was read; the work of bk-matrix."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from benchkit import cli
from benchkit.errors import InputError
from benchkit.formats import Cells, Choices, Tabular, open_source, read
from benchkit.formats.columns import NAMES
from benchkit.formats.merge import merge, sources
from benchkit.tables import doubts

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow")
PACKED = (".gz", ".zst")


class Collected(NamedTuple):
    """The table, where it came from, and the history and warnings of the tables among its sources."""

    table: pa.Table
    sources: list[dict[str, Any]]
    history: list[dict[str, Any]]
    warnings: list[str]
    notes: list[str]


def collect(args: Namespace) -> Collected:
    """Read every source that the command was given and merge them. Errors name the source."""
    columns = {role: getattr(args, f"{role}_col") for role in NAMES if getattr(args, f"{role}_col") is not None}
    choices = Choices(columns, args.unscored, args.duplicates, args.merge == "sum", args.attempts)
    names = expand(args.file)
    show = cli.progress(args.command, "reading") if len(names) > 1 else None
    parts: list[Cells] = []
    tables: list[Tabular] = []
    for n, name in enumerate(names):
        where = "<stdin>" if name in (None, "-") else str(name)
        try:
            cells, tab = _read(name, args, choices)
        except InputError as e:
            raise InputError(str(e), where=where if e.where is None else e.where) from None
        if args.verbose:
            cli.message(f"{args.command}: {where}: {cells.format}, {cells.rows} rows, {cells.frame.height} cells")
        parts.append(cells)
        tables.append(tab)
        if show:
            show(n + 1, len(names))
    table = merge(parts, add=choices.merge, duplicates=choices.duplicates)
    inherited = [w for t in tables for w in t.meta.get("warnings") or []]
    histories = [t.meta["history"] for t in tables if t.meta.get("history")]
    notes = [note for t in tables for note in t.notes]
    notes += [w for w in doubts(table) if w not in inherited]
    if any(h != histories[0] for h in histories):
        notes.append("the sources differ in history: the first one's is kept")
    carried = [s for t in tables for s in t.meta.get("sources") or []]
    plain = [p for p, t in zip(parts, tables, strict=True) if not t.meta.get("sources")]
    return Collected(table, carried + sources(plain), histories[0] if histories else [], inherited, notes)


def _read(name: str | None, args: Namespace, choices: Choices) -> tuple[Cells, Tabular]:
    tab = open_source(name, args.from_, unterminated=args.allow_unterminated)
    try:
        return read(tab, choices), tab
    except pl.exceptions.PolarsError as e:
        fault = e.__context__ if isinstance(e.__context__, InputError) else None
        raise fault or InputError(
            f"damaged {tab.format} data: {cli.printable(' '.join(str(e).split()))[:160]}"
        ) from None


def expand(names: Sequence[str]) -> list[str | None]:
    """The files to read, folders walked in order of their names; [None] is standard input."""
    out: list[str | None] = []
    for name in names:
        if not os.path.isdir(name):
            out.append(name)
            continue
        found = _walk(name)
        if not found:
            raise InputError(f"no result files ({', '.join(ENDINGS)}, or these packed) in this folder", where=name)
        out += sorted(found)
    if out.count("-") > 1:
        raise InputError("'-' (standard input) is named twice", where="")
    return out or [None]


def _walk(folder: str) -> list[str]:
    """Result files below a folder. Hidden files and folders are left out; a linked folder is entered once."""
    found, entered = [], set()
    for at, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        folders[:] = [f for f in folders if f[0] != "." and real not in entered]
        if real not in entered:
            found += [os.path.join(at, f) for f in files if f[0] != "." and _known(f)]
        entered.add(real)
    return found


def _known(name: str) -> bool:
    stem = name.lower()
    for packed in PACKED:
        stem = stem.removesuffix(packed)
    return stem.endswith(ENDINGS)


def missing(table: pa.Table) -> int:
    """Pairs of a model and an item of the table that were not tried."""
    return len(table["model"].unique()) * len(table["item"].unique()) - int(table.num_rows)
