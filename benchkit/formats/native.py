"""Result files as evaluation tools write them: what a reader is given, and what it gives.

A reader is a module of this package with

    NAME                     what it reads, as `bk-matrix --formats` lists it
    sniff(doc)               whether the document is this tool's, by its content
    read(doc, choices)       its attempts, or None for a file that only goes with others (results beside samples)

`read` raises InputError, with the option that decides, where a choice would change the numbers. Before, it says of
which task the file is (`Attempts.of_task`), so that nothing has to be chosen in files of other tasks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from benchkit import decode, jsontext
from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.tabular import Tabular, of_batch
from benchkit.formats.zips import Archive
from benchkit.jsontext import parse as parse
from benchkit.wire import read_bytes

ZIP = b"PK\x03\x04"
T = TypeVar("T")


class Document(NamedTuple):
    """One source, looked at.

    kind: ``json`` (one value), ``ndjson`` (an object a line), ``zip`` or ``parquet``. first: the JSON value, the first
    line's, the Archive, or the schema. data: the unpacked bytes, None where `path` is to be opened.
    """

    path: str | None
    kind: str
    first: Any
    data: bytes | None

    @property
    def where(self) -> str:
        return self.path or "<stdin>"

    @property
    def columns(self) -> list[str]:
        """The columns of Parquet."""
        return list(self.first.names) if self.kind == "parquet" else []

    def source(self) -> BinaryIO:
        """The unpacked bytes as a file."""
        return decode.reopened(self.path, self.data)

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of an ``ndjson`` document, each with its line."""
        return jsontext.lines(self.source, parse)

    def sibling(self, name: str) -> Any:
        """The JSON value of another file in the same folder, or None where there is none."""
        path = None if self.path is None else os.path.join(os.path.dirname(self.path), name)
        if path is None or not os.path.isfile(path):
            return None
        return parse(decode.unpack(read_bytes(path)), f"{path}: ")

    def siblings(self, prefix: str, suffix: str) -> list[str]:
        """Names of the files of the same folder that begin and end so, sorted."""
        folder = None if self.path is None else os.path.dirname(self.path) or "."
        if folder is None:
            return []
        return sorted(n for n in os.listdir(folder) if n.startswith(prefix) and n.endswith(suffix))


class OtherTask(Exception):
    """A source of other tasks than the one that is wanted; args: their names, () where it names none."""


class Attempts:
    """A reader's result: one row an attempt.

    model: the name that the file records for all its rows, or None. settings: what else tells this run from others of
    the model (effort, agent), appended to the name only where two runs would collide. task: the benchmark's name,
    where the file holds one. arguments: those of the task, which may choose its items. folder: the run's own, where
    that is not the file's. format: as reported. skipped: what was left out, by reason. unfinished: of a run that did
    not end, its status and how far it came.
    """

    def __init__(self, format: str, model: str | None = None, settings: str | None = None) -> None:
        self.format, self.model, self.settings = format, model, settings
        self.task: str | None = None
        self.arguments: str | None = None
        self.folder: str | None = None
        self.models: list[str | None] = []
        self.items: list[str] = []
        self.numbers: list[str | None] = []
        self.scores: list[float | None] = []
        self.clusters: list[str | None] = []
        self.errors: list[bool] = []
        self.lines: list[int] = []
        self.skipped: dict[str, int] = {}
        self.unfinished: str | None = None

    def of_task(self, name: str | None, choices: Choices) -> None:
        """The benchmark's name, None where the file holds none. Raises OtherTask where another one is wanted."""
        self.task = name
        if choices.task is not None and name != choices.task:
            raise OtherTask(*([name] if name else []))

    def add(
        self,
        item: Any,
        score: float | bool | None,
        *,
        attempt: Any = None,
        model: str | None = None,
        cluster: str | None = None,
        error: bool = False,
        line: int | None = None,
    ) -> None:
        """One attempt. score: None where it was not scored. error: the attempt failed before it could be scored, or
        was scored 0 for it. attempt: its number or name; None where attempts have none. line: for messages."""
        self.models.append(model)
        self.items.append(identifier(item, "item", line))
        self.numbers.append(None if attempt is None else identifier(attempt, "attempt", line))
        self.scores.append(None if score is None or score != score else float(score))
        self.clusters.append(cluster)
        self.errors.append(error)
        self.lines.append(len(self.lines) + 1 if line is None else line)

    def skip(self, reason: str, count: int = 1) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + count


class Reader(Protocol):
    """A module that reads one tool's files."""

    NAME: str

    def sniff(self, doc: Document) -> bool: ...

    def read(self, doc: Document, choices: Choices) -> Attempts | None: ...


def of_wanted(rows: list[T], tasks: Sequence[Any], choices: Choices) -> list[T]:
    """Of a file of several tasks, one a row, the rows of the task that is wanted; all where none is.

    Raises OtherTask where no row is of it.
    """
    if choices.task is None:
        return rows
    kept = [row for row, task in zip(rows, tasks, strict=True) if task == choices.task]
    if not kept:
        raise OtherTask(*sorted({task for task in tasks if isinstance(task, str)}))
    return kept


def identifier(value: Any, what: str, line: int | None = None) -> str:
    """An identifier as text: 7 is '7'. InputError for what is none."""
    if type(value) is str and value:
        return value
    if type(value) is int:
        return str(value)
    place = "" if line is None else f"row {line}: "
    raise InputError(f"{place}{what} is {_shown(value)}, which is no identifier")


def number(value: Any, what: str, line: int | None = None) -> float | None:
    """A score as a number: flags are 0 and 1, null and NaN are None. InputError for anything else."""
    if value is None or isinstance(value, bool | int | float):
        return None if value is None or value != value else float(value)
    place = "" if line is None else f"row {line}: "
    raise InputError(f"{place}{what} is {_shown(value)}, which is no score")


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, default=str)[:40]
    except RecursionError:
        return "lists in lists without end"


def choose(wanted: str | None, found: list[str], option: str, what: str) -> str:
    """The one of `found` that is wanted, or the only one; InputError lists them where none or several would do."""
    if wanted is not None:
        if wanted in found:
            return wanted
        raise InputError(f"no {what} '{wanted}' (found: {', '.join(found)})")
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"no {what} found")
    raise InputError(f"several {what}s ({', '.join(found)}): choose one with {option}")


def look(name: str | None, from_: str, data: bytes | None) -> Document | None:
    """A source as a document, or None where it is a table of another kind (CSV, Arrow): nothing a tool writes.

    data: the unpacked bytes, None where the file `name` is to be opened.
    """
    path = None if name in (None, "-") else str(name)
    head = decode.head(path, data)
    if head.startswith(ZIP):
        return Document(path, "zip", Archive(partial(decode.reopened, path, data)), data)
    if head[:4] == b"PAR1":
        with decode.reopened(path, data) as f:
            return Document(path, "parquet", decode.check_parquet(pa.PythonFile(f, mode="r")), data)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if from_ in ("csv", "tsv") or text[:1] not in (b"{", b"["):
        return None
    doc = Document(path, "ndjson", None, data)
    if from_ != "json" and text[:1] == b"{" and jsontext.is_lines(doc.source, parse):
        return doc._replace(first=next(doc.rows())[1])
    with doc.source() as whole:
        return doc._replace(kind="json", first=parse(whole.read(jsontext.LARGEST + 1)))


def tabular(found: Attempts, doc: Document, choices: Choices, fallback: str | None) -> tuple[Tabular, int]:
    """The attempts as columns, and how many failed. fallback: the model's name where none is recorded.

    Raises InputError for rows without a model's name, and for failed attempts that nobody decided about.
    """
    failed = sum(found.errors)
    if failed and choices.errors is None:
        line = found.lines[found.errors.index(True)]
        raise InputError(
            f"{failed} of {len(found.errors)} attempts ended in an error (the first in row {line}): choose "
            "--errors drop (not an attempt) or --errors wrong (score 0)"
        )
    models = [m or found.model or fallback for m in found.models]
    if None in models:
        raise InputError("the file records no model: name it with --model NAME, or --model-from path or file")
    scores = [0.0 if e else s for s, e in zip(found.scores, found.errors, strict=True)] if failed else found.scores
    columns = {"model": models, "item": found.items, "attempt": found.numbers, "cluster": found.clusters}
    try:
        arrays = {name: pa.array(values, pa.utf8()) for name, values in columns.items()}
    except UnicodeEncodeError:
        raise InputError("an identifier that is no Unicode (half of a surrogate pair)") from None
    batch = pa.RecordBatch.from_pydict(arrays | {"score": pa.array(scores, pa.float64())})
    lines = found.lines
    if failed and choices.errors == "drop":
        batch = batch.filter(pa.array([not e for e in found.errors]))
        lines = [n for n, e in zip(lines, found.errors, strict=True) if not e]
    return of_batch(batch, lines.__getitem__, found.format, doc.where), failed
