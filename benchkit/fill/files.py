"""The files of bk-fill that are no tables: replies and votes; and candidates from several files."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from benchkit import decode, wire
from benchkit.errors import InputError
from benchkit.fill import lines
from benchkit.fill.replies import Reply, reply
from benchkit.fill.votes import Votes, count
from benchkit.tables import CANDIDATES


def replies(args: Namespace, names: Sequence[str]) -> tuple[list[Reply], list[str]]:
    """All replies of these files, in order, and a note on each line that was passed over."""
    rows, notes = _rows(args, names)
    out = []
    for where, number, row in rows:
        try:
            out.append(reply(row))
        except InputError as e:
            raise InputError(f"line {number}: {e}", where=where) from None
    return out, notes


def votes(args: Namespace, names: Sequence[str]) -> tuple[Votes, list[str]]:
    """The votes of these files, and a note on each line that was passed over."""
    rows, notes = _rows(args, names)
    return count(row for _, _, row in rows), notes


def _rows(args: Namespace, names: Sequence[str]) -> tuple[list[tuple[str, int, dict[str, Any]]], list[str]]:
    """(file, line, object) of every line of these files."""
    out, notes = [], []
    for name in names:
        where = "<stdin>" if name == "-" else name
        if args.allow_cut and _empty(name):
            notes.append(f"{where}: empty, and passed over")
            continue
        try:
            data = wire.read_bytes(name)
            found = lines.parse(decode.unpack(data), allow_cut=args.allow_cut)
        except InputError as e:
            raise InputError(str(e), where=where) from None
        out += [(where, number, row) for number, row in found.rows]
        if found.cut:
            notes.append(f"{where}: line {found.cut} is cut, and passed over")
    return out, notes


def candidates(args: Namespace, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of candidates tables, each candidate once. An empty file holds none: where all replies were refused."""
    out: dict[str, dict[str, Any]] = {}
    for name in (n for n in names if not _empty(n)):
        frame = wire.read(args, CANDIDATES, name=name)
        for row in frame.table.to_pylist():
            if row["id"] in out:
                raise InputError(f"candidate '{row['id']}' stands in another of these files too", where=frame.where)
            out[row["id"]] = row
    return list(out.values())


def _empty(name: str) -> bool:
    return os.path.isfile(name) and not os.path.getsize(name)


def ndjson(rows: Iterable[dict[str, Any]]) -> bytes:
    """One JSON object a line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
