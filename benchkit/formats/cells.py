"""What every reader takes beside its source, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]


class Choices(NamedTuple):
    """What the user decided where a guess would change the numbers; None is not decided.

    `columns`: role -> column name. `joined`: model or item -> the columns that name it together. `unscored`, `errors`:
    what attempts without a score, and failed ones, count as. `merge`: tables that share a pair are added up.
    `attempts`: how many a rate is of. `filter`, `metric`, `scorer`, `split`: which of several. `items`: all items that
    there are, where a source may not list the unsolved ones. `task`: the one benchmark that is wanted. `leave_out`:
    columns that a table is read without.
    """

    columns: dict[str, str]
    unscored: str | None = None
    duplicates: str | None = None
    merge: bool = False
    attempts: int | None = None
    errors: str | None = None
    filter: str | None = None
    metric: str | None = None
    scorer: str | None = None
    split: str | None = None
    items: frozenset[str] | None = None
    task: str | None = None
    leave_out: frozenset[str] = frozenset()
    joined: dict[str, tuple[str, ...]] = {}  # noqa: RUF012


class Watched(Choices):
    """Choices that note which of them a reader looks at, in `seen`."""

    seen: set[str]

    @classmethod
    def of(cls, choices: Choices) -> Watched:
        made = cls(*choices)
        made.seen = set()
        return made

    def __getattribute__(self, name: str) -> Any:
        if name in FEW:
            self.seen.add(name)
        return super().__getattribute__(name)


FEW = {
    "filter": "filters to choose from",
    "metric": "metrics to choose from",
    "scorer": "scorers to choose from",
    "split": "splits to choose from",
    "errors": "attempts that may have failed",
}
"""Choices that only some formats know, and what their sources have."""


class Named(NamedTuple):
    """Attempts one by one: codes of model and item, shape (A,), and what each attempt is called."""

    model: Ints
    item: Ints
    attempt: list[str | None]


class Untried(NamedTuple):
    """Models and items of which no attempt is left: their cells are empty, or were dropped. Sorted names."""

    models: Sequence[str] = ()
    items: Sequence[str] = ()

    @classmethod
    def of(cls, models: Iterable[str], items: Iterable[str], cells: Cells) -> Untried:
        """Those of the names that have no row."""
        return cls(sorted(set(models) - set(cells.models)), sorted(set(items) - set(cells.items)))


class Cells(NamedTuple):
    """One source, added up: a row a model and item; with `Choices.merge` counts may repeat one.

    models, items  names, in the order of their codes; each has a row
    clusters       of each item, or None
    model, item    codes, shape (C,)
    attempts       scored attempts
    correct        sum of their scores
    numbers        the set of attempt numbers 0..62 as bits, or -1 where attempts have no such numbers
    rows           rows read
    unscored       attempts without a score
    failed         attempts that ended in an error
    skipped        what was left out, by reason
    settings       model -> what tells this run from others of it
    untried        models and items that have no row
    named          gives the attempts one by one, where they are numbered or named
    """

    models: list[str]
    items: list[str]
    clusters: list[str | None]
    model: Ints
    item: Ints
    attempts: Ints
    correct: Array
    numbers: Ints
    format: str
    rows: int
    where: str
    unscored: int = 0
    failed: int = 0
    skipped: dict[str, int] = {}  # noqa: RUF012
    settings: dict[str, str] = {}  # noqa: RUF012
    untried: Untried = Untried()
    named: Callable[[], Named] | None = None


class Names(NamedTuple):
    """Those of many names that are used, in the order of code points. codes: each name's new code, -1 if not used."""

    names: list[str]
    codes: Ints


def used(names: Sequence[str], codes: Ints) -> Names:
    """The names that stand in `codes`, sorted."""
    there = np.zeros(len(names), bool)
    there[codes] = True
    order = sorted(np.flatnonzero(there).tolist(), key=names.__getitem__)
    new = np.full(len(names), -1, np.int64)
    new[order] = np.arange(len(order))
    return Names([names[k] for k in order], new)
