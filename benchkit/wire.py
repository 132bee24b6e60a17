"""How tables enter and leave a command: read whole and checked, written once and whole.

`decode` turns bytes into columns and `encode` a result into bytes; here they meet the contract, the files and the
history.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from benchkit import cli
from benchkit.casting import to_contract
from benchkit.decode import Raw, decode
from benchkit.encode import serialise
from benchkit.errors import InputError
from benchkit.tables import CHECKS, SORT, TABLES, Table


class Frame(NamedTuple):
    """A table that keeps its contract, and what travelled with it.

    `where` names the input in messages. `notes` are warnings about the input itself.
    """

    table: pa.Table
    history: list[dict[str, Any]]
    warnings: list[str]
    fit: dict[str, Any] | None
    sources: list[dict[str, Any]] | None
    where: str
    notes: list[str]


# ---- reading ------------------------------------------------------------------------------------------------------


def read(args: Namespace, spec: Table, *, name: str | None = None) -> Frame:
    """Read the command's input, or the file `name`, as the table `spec`: cast, checked and sorted."""
    source = name or args.file
    where = "<stdin>" if source in (None, "-") else source
    try:
        raw = decode(read_bytes(source), args.from_, spec, unterminated=args.allow_unterminated)
        return to_frame(raw, spec, where, args.command)
    except InputError as e:
        raise InputError(str(e), where=where) from None


def to_frame(raw: Raw, spec: Table, where: str, command: str) -> Frame:
    """Cast to the contract, check every row, sort by the key."""
    tag = raw.meta.get("table")
    if tag not in (None, spec.tag):
        known = {t.tag: t.maker for t in TABLES}
        made = f" (from {known[tag]})" if tag in known else ""
        raise InputError(f"a table '{tag}'{made} where '{spec.tag}' (from {spec.maker}) is needed")
    if not raw.rows:
        raise InputError(f"no rows: an empty {spec.name} table")

    def instead(column: str) -> str:
        hint = ""
        if spec.name == "responses" and "attempts" not in raw.columns and command != "bk-matrix":
            hint = "; bk-matrix makes a responses table from raw results"
        found = ", ".join(list(raw.columns)[:8]) + (", ..." if len(raw.columns) > 8 else "")
        return f"no column '{column}' (found: {found}){hint}"

    table = to_contract(raw.columns, raw.rows, spec, raw.line, instead)
    CHECKS[spec.name](table, raw.line)
    table = table.sort_by([(key, "ascending") for key in SORT[spec.name]])
    meta = raw.meta
    return Frame(
        table,
        _expect(meta, "history", list) or [],
        [str(w) for w in _expect(meta, "warnings", list) or []],
        _expect(meta, "fit", dict),
        _expect(meta, "sources", list),
        where,
        raw.notes,
    )


def _expect(meta: dict[str, Any], key: str, kind: type) -> Any:
    value = meta.get(key)
    if value is not None and not isinstance(value, kind):
        raise InputError(f"'{key}' is not a JSON {'list' if kind is list else 'object'}")
    return value


def read_bytes(source: str | None) -> bytes:
    """A file, or standard input, whole. Raises InputError where it is empty or can't be read."""
    try:
        if source in (None, "-"):
            data = sys.stdin.buffer.read()
        else:
            with open(str(source), "rb") as f:
                data = f.read()
    except OSError as e:
        raise InputError((e.strerror or str(e)).lower()) from None
    if not data:
        raise InputError("empty input: did the command before it fail?" if source in (None, "-") else "empty file")
    return data


# ---- writing ------------------------------------------------------------------------------------------------------


def write(
    args: Namespace,
    spec: Table,
    document: dict[str, Any],
    view: Callable[[], Any],
    *,
    history: Sequence[dict[str, Any]],
    warnings: Sequence[str] = (),
    inherited: Sequence[str] = (),
) -> None:
    """Write one result in the format asked for, serialised whole before the first byte leaves.

    `document` holds the fields of the JSON document in their order, the rows among them under `spec.rows` (a list of
    dicts, or an Arrow table), or no rows at all where the document itself is the only row. `view()` makes the text
    table for people. `warnings` are this command's own and go to stderr too; `inherited` came with its input.
    """
    document = dict(document)
    document["warnings"] = [*inherited, *warnings]
    document["history"] = [] if args.no_provenance else [*history, cli.history_entry(args)]
    terminal = args.output in (None, "-") and sys.stdout.isatty()
    emit(args.output, serialise(document, spec, args.to, view, indent=terminal))
    cli.warn(args, warnings)


def emit(output: str | None, data: bytes) -> None:
    """Write to standard output, or to a file: whole, or not at all."""
    if output in (None, "-"):
        cli.write_all(1, data)
        return
    name = str(output)
    path = os.path.realpath(name)
    if name.startswith("/dev/") or (os.path.exists(path) and not os.path.isfile(path)):
        try:
            fd = os.open(name, os.O_WRONLY)
        except OSError as e:
            raise InputError(f"-o {name}: {(e.strerror or str(e)).lower()}", where="") from None
        try:
            cli.write_all(fd, data)
        finally:
            os.close(fd)
        return
    try:
        _replace(path, data)
    except InputError as e:
        raise InputError(f"-o {name}: {e}", where="") from None
    except OSError as e:
        raise InputError(f"-o {name}: {(e.strerror or str(e)).lower()}", where="") from None


def _replace(path: str, data: bytes) -> None:
    """A temporary file in the same folder, synced, then renamed over `path`; its mode is kept."""
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".bk-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with cli.clean_on_signal(temporary):
            if os.path.exists(path):
                os.fchmod(fd, os.stat(path).st_mode & 0o7777)
            cli.write_all(fd, data)
            os.fsync(fd)
            os.close(fd)
            os.rename(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    parent = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(parent)
    except OSError:  # some file systems can't sync a folder; the file itself is safe
        pass
    finally:
        os.close(parent)
