"""How tables enter and leave a command: read whole and checked, written once and whole.

`decode` turns bytes into columns and `encode` a result into bytes; here they meet the contract, the files and the
history.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from benchkit import cli, output
from benchkit.casting import to_contract
from benchkit.decode import Raw, decode
from benchkit.encode import serialise
from benchkit.errors import InputError
from benchkit.tables import CHECKS, RESPONSES, SORT, TABLES, Table, doubts


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
    """Read the command's input, or the file `name`, as the table `spec`: cast, checked and sorted.

    --from speaks of the command's input; the format of `name` is found by its content.
    """
    return _read(args, (spec,), name or args.file, "auto" if name else args.from_)[1]


def read_several(args: Namespace, spec: Table) -> list[Frame]:
    """Read each of the command's inputs as the table `spec`."""
    return [_read(args, (spec,), source, args.from_)[1] for source in args.file or [None]]


def read_one_of(args: Namespace, specs: Sequence[Table], name: str) -> tuple[Table, Frame]:
    """Read the file `name` as the first of these tables whose required columns it has."""
    return _read(args, specs, name, "auto")


def _read(args: Namespace, specs: Sequence[Table], source: str | None, from_: str) -> tuple[Table, Frame]:
    where = "<stdin>" if source in (None, "-") else str(source)
    try:
        data = read_bytes(source)
        for spec in specs[:-1]:
            try:
                raw = decode(data, from_, spec, unterminated=args.allow_unterminated)
            except InputError:  # a JSON document without these rows: perhaps it has the others
                continue
            if all(c.name in raw.names for c in spec.columns if c.required):
                return spec, to_frame(raw, spec, where)
        raw = decode(data, from_, specs[-1], unterminated=args.allow_unterminated)
        return specs[-1], to_frame(raw, specs[-1], where)
    except InputError as e:
        raise InputError(str(e), where=where) from None


def to_frame(raw: Raw, spec: Table, where: str) -> Frame:
    """Cast to the contract, check every row, sort by the key."""
    tag = raw.meta.get("table")
    if tag not in (None, spec.tag):
        known = {t.tag: t.maker for t in TABLES}
        made = f" (from {known[tag]})" if tag in known else ""
        raise InputError(f"a table '{tag}'{made} where '{spec.tag}' (from {spec.maker}) is needed")
    if not raw.rows:
        raise InputError(f"no rows: an empty {spec.name} table")

    def instead(column: str) -> str:
        found = ", ".join(raw.names[:8]) + (", ..." if len(raw.names) > 8 else "")
        needed = f"a {spec.name} table" + (f", which {spec.maker} makes" if spec.maker.startswith("bk-") else "")
        needed += " from raw results" if spec is RESPONSES else ""
        if spec.maker == "you":
            wanted = [c.name for c in spec.columns if c.required]
            needed += f" with the {'columns' if len(wanted) > 1 else 'column'} {' and '.join(wanted)}"
        return f"no column '{column}' (found: {found}): needed is {needed}"

    table = to_contract(raw.columns, raw.rows, spec, raw.line, instead)
    CHECKS[spec.name](table, raw.line)
    table = table.sort_by([(key, "ascending") for key in SORT[spec.name]])
    meta = raw.meta
    said = [str(w) for w in expect(meta, "warnings", list) or []]
    new = [w for w in doubts(table) if w not in said] if spec is RESPONSES else []
    return Frame(
        table,
        expect(meta, "history", list) or [],
        said,
        expect(meta, "fit", dict),
        expect(meta, "sources", list),
        where,
        [*raw.notes, *new],
    )


def expect(meta: dict[str, Any], key: str, kind: type) -> Any:
    """The value of the metadata `key`, or None; InputError where it is no list or object, whichever `kind` says."""
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
            held = output.descriptor(str(source))  # /dev/stdin opened anew would start again from the first byte
            with open(str(source) if held is None else held, "rb", closefd=held is None) as f:
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
    if args.no_provenance and "sources" in document:
        document["sources"] = []
    output.emit(args.output, serialise(document, spec, args.to, view, output.find(args.output).width))
    cli.warn(args, warnings)
