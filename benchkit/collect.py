"""Files and folders of raw results -> one responses table, with what was read; the work of bk-matrix."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from benchkit import cli, decode, naming, suspect, wire, workers
from benchkit.errors import InputError, Unrecognised
from benchkit.formats import Cells, Choices, long, open_source, read, registry
from benchkit.formats.cells import FEW, Named, Untried, Watched
from benchkit.formats.columns import NAMES, Roles
from benchkit.formats.fields import canonical
from benchkit.formats.merge import merge, said, source
from benchkit.formats.native import OtherTask, look, tabular
from benchkit.formats.tabular import NOTHING, Tabular, can_reopen, unpacked
from benchkit.paths import expand
from benchkit.tables import RATES, doubts
from benchkit.text import count

MANY = 64  # files, and
LARGE = 1 << 23  # bytes of all of them, that are worth processes of their own
ATTEMPTS = 100_000  # of a source, that are kept one by one in case that another source has the same
DOUBTS = (RATES, *suspect.ENDINGS)  # how warnings end that are of a whole table
UNTRIED = "no scored attempt of "
LONG = Roles("model", "item", "score", "attempt", None, None, "cluster")


class Collected(NamedTuple):
    """The table, where it came from, and the history and warnings of the tables among its sources.

    items: all that there are, as told by --items or where the table lacks some of the sources', or None. untried:
    models that no row is of.
    """

    table: pa.Table
    sources: list[dict[str, Any]]
    history: list[dict[str, Any]]
    warnings: list[str]
    notes: list[str]
    items: frozenset[str] | None
    untried: Sequence[str]


class _Source(NamedTuple):
    """One source, read. meta, notes: what it said of itself. task: the benchmark's name, where it holds one.

    unfinished: of a run that did not end, its status and how far it came. uses: the choices that its reader knows.
    arguments: of the task, as the run was told.
    """

    cells: Cells
    meta: dict[str, Any]
    notes: list[str]
    task: str | None
    unfinished: str | None = None
    uses: frozenset[str] = frozenset()
    arguments: str | None = None


class _Read(NamedTuple):
    """All sources, read, and what was left out.

    unknown: files of a folder that nobody recognises, and why. others: tasks that are not wanted. taskless: sources
    that name no task, where one is wanted.
    """

    found: list[_Source]
    unknown: dict[str, str]
    others: set[str]
    taskless: list[str]


def collect(args: Namespace) -> Collected:
    """Read every source that the command was given and merge them. Errors name the source."""
    columns = {role: getattr(args, f"{role}_col") for role in NAMES if getattr(args, f"{role}_col") is not None}
    named = {role: tuple(dict.fromkeys(columns.pop(role))) for role in ("model", "item") if role in columns}
    columns |= {role: names[0] for role, names in named.items() if len(names) == 1}
    joined: dict[str, tuple[str, ...]] = {role: names for role, names in named.items() if len(names) > 1}
    items = naming.item_list(args.items)
    choices = Choices(columns, args.unscored, args.duplicates, args.merge == "sum", args.attempts, args.errors,
                      args.filter, args.metric, args.scorer, args.split, items, args.task,
                      frozenset(args.leave_out or ()), joined)  # fmt: skip
    sources = _read_all(args, choices)
    _check_uses(sources.found, args)
    found, parts = _tasks(sources, args)
    if items is not None:
        naming.check_items(parts, items, args.items)
    parts = naming.rename(naming.tell_apart(parts), naming.model_map(args))
    table = merge(parts, add=choices.merge, duplicates=choices.duplicates)
    own = doubts(table) + suspect.doubts(table)
    inherited = list(dict.fromkeys(str(w) for s in found for w in s.meta.get("warnings") or []))
    # said of a part, it may not hold of all
    inherited = [w for w in inherited if w in own or not (w.endswith(DOUBTS) or w.startswith(UNTRIED))]
    histories = [s.meta["history"] for s in found if s.meta.get("history")]
    notes = [note for s in found for note in s.notes] + [w for w in own if w not in inherited] + _left(sources, args)
    notes += _arguments(found)
    if any(h != histories[0] for h in histories):
        notes.append("the sources differ in history: the first one's is kept")
    untried = _untried(table, parts)
    if untried.items and items is None:
        items = frozenset(table["item"].unique().to_pylist()).union(untried.items)
    notes += [
        f"{UNTRIED}{count(len(names), what)}: {_few(names)}"
        for what, names in (("model", untried.models), ("item", untried.items))
        if names
    ]
    told = _told(found, parts)
    if args.prefix_task:  # the items say it
        told = [{key: x[key] for key in x if key != "task"} for x in told]
    return Collected(table, told, histories[0] if histories else [], inherited, notes, items, untried.models)


def _read_all(args: Namespace, choices: Choices) -> _Read:
    """Every source, read by one process or several."""
    names, walked = expand(args.file)
    reads = workers.each(partial(_attempt, args, choices), names, _workers(names))
    show = cli.progress(args.command, "reading") if len(names) > 1 else None
    out = _Read([], {}, set(), [])
    held = 0  # rows of which the attempts may be kept one by one
    for n, name in enumerate(names):
        where = "<stdin>" if name in (None, "-") else str(name)
        try:
            sources = next(reads)
        except workers.Died as e:
            raise InputError(str(e), where=where) from None
        if isinstance(sources, Unrecognised) and name in walked:
            out.unknown[where] = str(sources)
            if args.verbose:
                cli.message(f"{args.command}: {where}: left out: {sources}")
            continue
        if isinstance(sources, OtherTask):
            out.others.update(sources.args)
            if not sources.args:
                out.taskless.append(where)
            if args.verbose:
                cli.message(f"{args.command}: {where}: {_other(sources)}")
            continue
        if isinstance(sources, InputError):
            raise InputError(str(sources), where=where if sources.where is None else sources.where)
        if isinstance(sources, Exception):
            raise sources
        if not sources and name not in walked and len(names) == 1:
            raise InputError(
                "no single attempts in this file: name the folder, or the file of the samples", where=where
            )
        if args.verbose:
            for line in [_said(s) for s in sources] or ["nothing by itself: it goes with other files"]:
                cli.message(f"{args.command}: {where}: {line}")
        held += sum(s.cells.rows for s in sources)
        out.found.extend(
            _reachable(s, k, name, args, choices, keep=held <= 20 * ATTEMPTS) for k, s in enumerate(sources)
        )
        if show:
            show(n + 1, len(names))
    if not out.found and not out.others and not out.taskless:
        if len(out.unknown) < len(names):
            raise InputError("only files that go with others: name the folder that holds these too", str(args.file[0]))
        first, why = next(iter(out.unknown.items()))
        raise InputError(
            f"no results recognised in this folder: see bk-matrix --formats ({first}: {why})", args.file[0]
        )
    return out


def _left(read: _Read, args: Namespace) -> list[str]:
    """What of the sources and the options is not in the table, in words."""
    notes = []
    if args.model is not None and not any(args.model in s.cells.models for s in read.found):
        notes.append("--model: of no use, since every source records its model (--model-map renames)")
    kept = [s for s in read.found if args.task in (None, s.task)]
    taskless = read.taskless + [s.cells.where for s in read.found if args.task is not None and not s.task]
    unfinished = [f"{s.cells.where} ({s.unfinished})" for s in kept if s.unfinished]
    if unfinished:
        notes.append(f"{count(len(unfinished), 'run')} did not end: {_few(unfinished)}")
    if read.unknown:
        notes.append(
            f"{count(len(read.unknown), 'file')} not recognised and left out (-v says why): {_few(list(read.unknown))}"
        )
    if taskless:
        notes.append(f"left out by --task, since no task is named: {_few(taskless)}")
    return notes


def _arguments(found: list[_Source]) -> list[str]:
    """Tasks that were run with different arguments, which may choose other items of the same names, in words."""
    told: dict[str, dict[str, None]] = {}
    for s in found:
        if s.task and len(s.cells.model):
            told.setdefault(s.task, {})[s.arguments or "none"] = None
    return [
        f"task '{task}' was run with different arguments, which may choose other items: "
        + "; ".join(x[:60] for x in sorted(each)[:3])
        for task, each in told.items()
        if len(each) > 1
    ]


def _untried(table: pa.Table, parts: Sequence[Cells]) -> Untried:
    """Models and items of which no source has an attempt left."""
    if not any(chain.from_iterable(p.untried for p in parts)):
        return Untried()
    models, items = (set(table[name].unique().to_pylist()) for name in ("model", "item"))
    return Untried(
        sorted({m for p in parts for m in p.untried.models} - models),
        sorted({j for p in parts for j in p.untried.items} - items),
    )


def _told(found: list[_Source], parts: list[Cells]) -> list[dict[str, Any]]:
    """What was read, for `benchkit.sources`; a table of benchkit's says it itself. parts: the sources' cells by now."""
    names = naming.shortest([p.where for p in parts])
    told: list[dict[str, Any]] = []
    for s, part, name in zip(found, parts, names, strict=True):
        more = {"unfinished": s.unfinished, "arguments": s.arguments}
        told += s.meta.get("sources") or [source(part, s.task, name) | {k: v for k, v in more.items() if v}]
    return told


def _workers(names: Sequence[str | None]) -> int:
    """How many processes to read with: one for few small files, and where one is no file that can be opened again."""
    if not all(map(_reopens, names)):
        return 1
    size = sum(os.path.getsize(str(name)) for name in names)
    return workers.cores() if len(names) >= MANY or size >= LARGE else 1


def _reopens(name: str | None) -> bool:
    return name not in (None, "-") and can_reopen(str(name))


def _attempt(args: Namespace, choices: Choices, name: str | None) -> list[_Source] | Exception:
    """What one name holds, or why it can't be read, in a form that another process can be sent."""
    try:
        found = _read(name, args, choices)
        for source in found:
            _check_text(source)
        # what can't be opened again keeps its attempts; it is read by this process
        return [_portable(source) for source in found] if _reopens(name) else found
    except Exception as e:
        return e


def _check_text(source: _Source) -> None:
    """InputError for what can't be written: half of a surrogate pair, which JSON may hold, and lists without end."""
    c = source.cells
    said = [
        source.task,
        source.unfinished,
        source.arguments,
        *c.settings,
        *c.settings.values(),
        *c.skipped,
        *c.clusters,
    ]
    try:
        "".join([*c.models, *c.items, *filter(None, said), *source.notes]).encode()
    except UnicodeEncodeError:
        raise InputError("text that is no Unicode (half of a surrogate pair)") from None
    canonical(source.meta, "its metadata")


def _portable(source: _Source) -> _Source:
    cells = source.cells
    if cells.named is not None:
        now = cells.rows <= ATTEMPTS and bool((cells.numbers < 0).any())  # numbers tell nearly always, names never
        cells = cells._replace(named=partial(_given, cells.named()) if now else _later)
    return source._replace(cells=cells)


def _given(named: Named) -> Named:
    return named


def _later() -> Named:
    """Stands for attempts that are too many to be sent."""
    raise NotImplementedError


def _reachable(source: _Source, k: int, name: str | None, args: Namespace, choices: Choices, *, keep: bool) -> _Source:
    """The source with attempts that are read again where they are needed. keep: those that were sent may stay."""

    def again() -> Named:
        named = _read(name, args, choices)[k].cells.named
        assert named is not None
        return named()

    named = source.cells.named
    if named is None or not _reopens(name) or (keep and named is not _later):
        return source
    return source._replace(cells=source.cells._replace(named=again))


def _from_table(tab: Tabular, cells: Cells) -> _Source:
    """A table; one of benchkit's knows from its sources of which task it is, and with what settings its models ran."""
    for key in ("sources", "warnings", "history"):
        wire.expect(tab.meta, key, list)
    told = [x for x in tab.meta.get("sources") or [] if isinstance(x, dict)]
    tasks = sorted({str(x["task"]) for x in told if x.get("task")})
    if len(tasks) > 1:
        raise InputError(f"one table of several tasks ({', '.join(tasks)}): make its parts with --prefix-task")
    runs: dict[str, set[str]] = {}
    for each in (x["settings"] for x in told if isinstance(x.get("settings"), dict)):
        for model, settings in each.items():
            runs.setdefault(model, set()).add(str(settings))
    named = {m: " or ".join(sorted(settings)) for m, settings in runs.items() if m in set(cells.models)}
    lost = [cells.untried._asdict(), *(x["untried"] for x in told if isinstance(x.get("untried"), dict))]
    models, items = ([str(n) for names in (x.get(what) for x in lost) if isinstance(names, list) for n in names]
                     for what in Untried._fields)  # fmt: skip
    cells = cells._replace(settings=named, untried=Untried.of(models, items, cells))
    arguments = " or ".join(sorted({str(x["arguments"]) for x in told if x.get("arguments")})) or None
    return _Source(cells, tab.meta, tab.notes, tasks[0] if tasks else None, arguments=arguments)


def _said(s: _Source) -> str:
    """What was read from a source, in a line."""
    return said(s.cells, s.task) + (f", unfinished: {s.unfinished}" if s.unfinished else "")


def _check_uses(found: list[_Source], args: Namespace) -> None:
    """InputError where a choice was made that no source has. 'none' says that there are none."""
    used = frozenset[str]().union(*(s.uses for s in found))
    for name, what in FEW.items():
        if found and getattr(args, name) not in (None, "none") and name not in used:
            raise InputError(f"--{name}: of no use, since no source has {what}", where="")


def _few(names: Sequence[str]) -> str:
    said = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return said.encode(errors="backslashreplace").decode()  # a file's name is any bytes


def _other(task: OtherTask) -> str:
    return f"left out: of task {', '.join(task.args)}" if task.args else "left out: no task is named"


def _tasks(read: _Read, args: Namespace) -> tuple[list[_Source], list[Cells]]:
    """Sources of several benchmarks: those of --task, or all with --prefix-task, which names items TASK/ITEM."""
    found = read.found
    if args.task is not None:
        tasks = sorted({s.task for s in found if s.task} | read.others)
        if args.task not in tasks:
            raise InputError(f"--task: no task '{args.task}' (found: {', '.join(tasks) or 'none'})", where="")
        found = [s for s in found if s.task == args.task]
    tasks = sorted({s.task for s in found if s.task and len(s.cells.model)})
    if len(tasks) > 1 and args.task is None and not args.prefix_task:
        raise InputError(
            f"several tasks ({', '.join(tasks)}): choose one with --task, or keep all with --prefix-task", ""
        )
    if not args.prefix_task:
        return found, [s.cells for s in found]
    parts = []
    for s in found:
        items, lost = ([f"{s.task}/{j}" for j in names] for names in (s.cells.items, s.cells.untried.items))
        untried = s.cells.untried._replace(items=lost)
        parts.append(s.cells._replace(items=items, untried=untried) if s.task else s.cells)
    return found, parts


def _read(name: str | None, args: Namespace, choices: Choices) -> list[_Source]:
    """One source by the reader that recognises it; none for a file that only goes with others, several where it is
    Arrow streams one after another."""
    data = unpacked(name)
    doc = look(name, args.from_, data)
    reader = registry.find(doc) if doc else None
    if doc and reader:
        if choices.columns or choices.joined:
            role = next(iter(choices.columns | choices.joined))
            raise InputError(f"--{role}-col: of no use for {reader.NAME}", where="")
        if choices.leave_out:
            raise InputError(f"--leave-out: of no use for {reader.NAME}", where="")
        watched = Watched.of(choices)
        got = reader.read(doc, watched)
        if got is None:
            return []
        fallback = naming.fallback(args, name, got.folder)
        tab, failed = tabular(got, doc, choices, fallback)
        cells = long.read(tab, LONG, choices)
        untried = Untried.of({m or got.model or fallback or "" for m in got.models}, got.items, cells)
        settings = dict.fromkeys(cells.models, got.settings) if got.settings else {}
        skipped = got.skipped | cells.skipped
        cells = cells._replace(
            format=got.format, rows=len(got.items), failed=failed, skipped=skipped, settings=settings, untried=untried
        )
        return [_Source(cells, {}, [], got.task, got.unfinished, frozenset(watched.seen | {"errors"}), got.arguments)]
    if doc and doc.kind == "zip":
        excel = any(n.startswith("xl/workbook") for n in doc.first.names)
        raise Unrecognised(decode.EXCEL if excel else "a zip archive of no known tool: see bk-matrix --formats")
    known = doc and (doc.kind == "parquet" or (doc.kind == "json" and args.from_ != "ndjson"))
    value = doc.first if doc and known else NOTHING
    tabs = open_source(name, args.from_, data, value=value, unterminated=args.allow_unterminated)
    out = []
    for tab in tabs:
        watched = Watched.of(choices)
        source = _from_table(tab, read(tab, watched, naming.fallback(args, name)))
        out.append(source._replace(uses=frozenset(watched.seen)))
    return out


def missing(got: Collected) -> int:
    """Pairs of a model and an item, of the table or of --items, that were not tried."""
    items = len(got.table["item"].unique()) if got.items is None else len(got.items)
    models = len(got.table["model"].unique()) + len(got.untried)
    return models * items - int(got.table.num_rows)
