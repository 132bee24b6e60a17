"""Cells of several sources -> one responses table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchkit import text
from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Ints
from benchkit.formats.clusters import of_items
from benchkit.formats.tally import EMPTY, add_up
from benchkit.tables import RESPONSES
from benchkit.text import count

MOST = 2**31 - 1


def merge(parts: Sequence[Cells], *, add: bool, duplicates: str | None) -> pa.Table:
    """One row a model and item, sorted by code point.

    Two sources may share a pair where their attempts' numbers differ. Otherwise the pair stands twice, and InputError
    names both sources, unless it was said that sums are to be added (`add`) or that rows are attempts (`duplicates`).
    """
    models = sorted(set(chain.from_iterable(p.models for p in parts)))
    items = sorted(set(chain.from_iterable(p.items for p in parts)))
    pairs = _pairs(parts, models, items)
    attempts = np.concatenate([p.attempts for p in parts])
    correct = np.concatenate([p.correct for p in parts])
    if not add and duplicates != "attempt":
        again = _repeated(pairs)  # also of one source, in which two models got one name
        if again.any():
            _refuse_overlap(parts, models, items, pairs, again, hint=duplicates is not None)
    clusters = of_items(chain.from_iterable(zip(p.items, p.clusters, strict=True) for p in parts), where="")
    tried = attempts > 0
    if not tried.all():
        pairs, attempts, correct = pairs[tried], attempts[tried], correct[tried]
    if not len(pairs):
        skipped = Counter[str]()
        for p in parts:
            skipped.update(p.skipped)
        why = f"; left out: {reasons(skipped)}" if skipped else ""
        raise InputError(f"no scored attempt is left{why}" if why or any(p.rows for p in parts) else "no rows")
    order = np.argsort(pairs, kind="stable")
    pairs, attempts, correct = pairs[order], attempts[order], correct[order]
    new = np.append(True, pairs[1:] != pairs[:-1])
    if not new.all():
        at = np.cumsum(new) - 1
        alone = new & np.append(new[1:], True)
        sums = add_up(correct, at, int(at[-1]) + 1)
        sums[at[alone]] = correct[alone]  # as it stood
        attempts, correct, pairs = np.bincount(at, attempts).astype(np.int64), sums, pairs[new]
    model, item = pairs // len(items), pairs % len(items)
    many = np.flatnonzero(attempts > MOST)
    if len(many):
        raise InputError(f"model '{models[model[many[0]]]}', item '{items[item[many[0]]]}': more than {MOST} attempts")
    columns = {
        "model": pa.array(models, pa.utf8()).take(pa.array(model)),
        "item": pa.array(items, pa.utf8()).take(pa.array(item)),
        "attempts": pa.array(attempts),
        "correct": pa.array(correct),
        "cluster": pa.array([clusters[name] for name in items], pa.utf8()).take(pa.array(item)),
    }
    return pa.table(columns).cast(RESPONSES.schema())


def _pairs(parts: Sequence[Cells], models: list[str], items: list[str]) -> Ints:
    """The model and item of every row as one whole number, which has the order of the names."""
    of_model = {name: k * len(items) for k, name in enumerate(models)}
    of_item = {name: k for k, name in enumerate(items)}
    keys = [
        np.array([of_model[m] for m in p.models], np.int64)[p.model]
        + np.array([of_item[j] for j in p.items], np.int64)[p.item]
        for p in parts
    ]
    return np.concatenate(keys)


def _repeated(pairs: Ints) -> npt.NDArray[np.bool_]:
    """Which rows share their pair with another."""
    order = np.argsort(pairs, kind="stable")
    same = pairs[order][1:] == pairs[order][:-1]
    out = np.zeros(len(pairs), bool)
    out[order] = np.append(False, same) | np.append(same, False)
    return out


def _refuse_overlap(
    parts: Sequence[Cells], models: list[str], items: list[str], pairs: Ints, again: npt.NDArray[np.bool_], *,
    hint: bool,
) -> None:  # fmt: skip
    """Raise where a pair that several rows hold is not made of different attempts."""
    part = np.repeat(np.arange(len(parts)), [len(p.model) for p in parts])[again]
    numbers = np.concatenate([p.numbers for p in parts])[again]
    keys, at = np.unique(pairs[again], return_inverse=True)
    unnumbered = np.zeros(len(keys), bool)
    unnumbered[at[numbers < 0]] = True
    union, size = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    np.bitwise_or.at(union, at, np.maximum(numbers, 0))
    np.add.at(size, at, np.bitwise_count(np.maximum(numbers, 0)))
    clash = unnumbered | (np.bitwise_count(union) < size)
    if not clash.any():
        return
    among: dict[int, list[int]] = {}  # pair -> the parts that hold it
    for k, n in zip(at[clash[at]].tolist(), part[clash[at]].tolist(), strict=True):
        among.setdefault(int(keys[k]), []).append(n)
    told = {key: held for key, held in among.items() if all(parts[n].named for n in held)}
    named = _same_attempts(parts, models, items, told)
    clashes = sorted((key, held, named.get(key)) for key, held in among.items() if key not in told or key in named)
    if not clashes:
        return
    key, held, same = clashes[0]
    attempt, held = (None, held) if same is None else same
    a, b = (parts[n].where for n in sorted(held)[:2])
    both = f"in {a} and in {b}" if a != b else f"twice in {a}"
    which = f", attempt '{attempt}'," if attempt is not None else ""
    more = "; --duplicates chooses within one source only" if hint else ""
    raise InputError(
        f"model '{models[key // len(items)]}', item '{items[key % len(items)]}'{which} stand {both} "
        f"({count(len(clashes), 'such pair')}): leave out a copy; --merge sum adds them up as further attempts, "
        f"--model-from and --model-map tell models apart{more}",
        where="",
    )


def _same_attempts(
    parts: Sequence[Cells], models: list[str], items: list[str], suspects: dict[int, list[int]]
) -> dict[int, tuple[str | None, list[int]]]:
    """Those of the pairs where one attempt stands in two sources, by number or name: the first such one, and where."""
    wanted = np.array(sorted(suspects), np.int64)
    codes: dict[str | None, int] = {}
    found = [(EMPTY, EMPTY, EMPTY)]
    for n in sorted({n for held in suspects.values() for n in held}):
        named = parts[n].named
        if named is None:
            continue
        got = named()
        keys = _pairs([parts[n]._replace(model=got.model, item=got.item)], models, items)
        code = np.fromiter((codes.setdefault(a, len(codes)) for a in got.attempt), np.int64, len(keys))
        here = np.isin(keys, wanted)
        found.append((keys[here], code[here], np.full(int(here.sum()), n)))
    key, code, part = (np.concatenate(p) for p in zip(*found, strict=True))
    order = np.lexsort((part, code, key))
    key, code, part = key[order], code[order], part[order]
    start = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (code[1:] != code[:-1]))[: len(key)])
    end = np.append(start[1:], len(key))
    names = list(codes)
    out: dict[int, tuple[str | None, list[int]]] = {}
    for k in np.flatnonzero(end - start > 1).tolist():
        pair, attempt = int(key[start[k]]), names[code[start[k]]]
        before = out.get(pair)
        if before is None or (attempt is None, attempt or "") < (before[0] is None, before[0] or ""):
            out[pair] = attempt, part[start[k] : end[k]].tolist()
    return out


def source(part: Cells, task: str | None, name: str = "") -> dict[str, Any]:
    """What was read from one source, for `benchkit.sources`. task: of which its items are, where no name says it."""
    more: dict[str, Any] = {"failed": part.failed, "skipped": part.skipped, "task": task, "settings": part.settings}
    more["untried"] = {key: list(names) for key, names in part.untried._asdict().items() if names}
    return {
        "source": name.encode(errors="backslashreplace").decode(),  # it may be any bytes
        "format": part.format,
        "rows": part.rows,
        "models": len(set(part.models)),
        "items": len(set(part.items)),
        "attempts": int(part.attempts.sum()),
        "unscored": part.unscored,
    } | {key: value for key, value in more.items() if value}


def said(part: Cells, task: str | None) -> str:
    """The same in a line, without the source's name and the settings."""
    told = source(part, task)
    counts = [text.count(told[f"{what}s"], what) for what in ("row", "model", "item", "attempt")]
    counts += [f"{told[status]} {status}" for status in ("unscored", "failed") if told.get(status)]
    counts += [f"left out: {reasons(part.skipped)}"] if part.skipped else []
    return f"{part.format}{f', task {task}' if task else ''}: {', '.join(counts)}"


def reasons(skipped: Mapping[str, int]) -> str:
    """What was left out, with how many of each."""
    return ", ".join(f"{reason} ({n})" for reason, n in skipped.items())
