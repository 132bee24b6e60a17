"""Wide tables: a row a model and a column an item, or transposed: a row an item and a column a model."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Any

import numpy as np

from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Choices, used
from benchkit.formats.coding import is_simple
from benchkit.formats.columns import Roles
from benchkit.formats.long import UNSCORED
from benchkit.formats.tabular import Tabular, check_identifier

OF = re.compile(r"(\d{1,10})\s*/\s*(\d{1,10})", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+[.]?\d*|[.]\d+)(e[+-]?\d+)?", re.ASCII)
EMPTY = -1


def sniff(tab: Tabular, roles: Roles) -> bool:
    """Whether there is a column of models, or of items, and nothing else that a long table has."""
    one = (roles.model is None) != (roles.item is None)
    return one and len(tab.schema) > 1 and not (roles.score or roles.attempts)


def read(tab: Tabular, roles: Roles, choices: Choices) -> Cells:
    """Cells are 0 or 1, true or false, '3/4', or a rate where `choices.attempts` says of how many attempts.

    An empty cell is a pair that was not tried. Errors: a cell that is none of these; a row whose name stands before.
    Rows are read one by one: the time depends on the number of cells, not on how many of them are columns.
    """
    tab = tab if tab.whole is None else tab.whole()
    if choices.duplicates:
        raise InputError("--duplicates is for attempts; a wide table has a cell for each pair")
    if choices.unscored:
        raise InputError("--unscored is for attempts; in a wide table an empty cell is a pair that was not tried")
    key, role = (roles.model, "model") if roles.model else (roles.item, "item")
    assert key is not None
    if roles.cluster and role == "model":
        raise InputError(f"column '{roles.cluster}': a cluster is of items, and rows here are models; leave it out")
    names = tab.names
    cells = [k for k, n in enumerate(names) if n.strip() and n not in (key, roles.cluster)]
    nested = next((names[k] for k in cells if "nested" in tab.kinds.get(names[k], ())), None)
    if nested is not None:
        raise InputError(f"column '{nested}' holds lists or objects")
    odd = next((names[k] for k in cells if not is_simple(tab.schema[names[k]])), None)
    if odd is not None:
        raise InputError(f"column '{odd}' holds {tab.schema[odd]} values; a cell is 0, 1, true, false, 3/4 or a rate")
    for column in (key, roles.cluster):
        if column:
            check_identifier(tab, column)
    at, cluster_at = names.index(key), names.index(roles.cluster) if roles.cluster else None
    pick = itemgetter(*cells) if len(cells) > 1 else lambda values: [values[cells[0]]]
    meanings = _Meanings(choices.attempts)
    rows: dict[str, int] = {}
    clusters: list[str | None] = []
    found: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    for n, values in enumerate(tab.records()):
        name = _identifier(values[at])
        if name is None:
            raise InputError(f"row {tab.line(n)}: the {role} is missing")
        if name in rows:
            raise InputError(f"rows {tab.line(rows[name])} and {tab.line(n)}: {role} '{name}' stands twice")
        rows[name] = n
        clusters.append(None if cluster_at is None else _identifier(values[cluster_at]))
        try:
            found.append(np.fromiter(map(meanings.__getitem__, pick(values)), np.int32, len(cells)))
        except ValueError:
            for k in cells:
                try:
                    meanings[values[k]]
                except ValueError as e:
                    raise InputError(f"row {tab.line(n)}, column '{names[k]}': {e}") from None
    codes = np.concatenate([np.zeros(0, np.int32), *found])
    filled = np.flatnonzero(codes != EMPTY)
    codes, width = codes[filled], max(len(cells), 1)
    own, others = used(list(rows), filled // width), used([names[k] for k in cells], filled % width)
    own_codes, other_codes = own.codes[filled // width], others.codes[filled % width]
    of_row = dict(zip(rows, clusters, strict=True))
    attempts, correct = np.array(meanings.attempts, np.int64)[codes], np.array(meanings.correct, np.float64)[codes]
    rest = (attempts, correct, np.full(len(codes), -1, np.int64))
    if role == "model":
        none: list[str | None] = [None] * len(others.names)
        return Cells(own.names, others.names, none, own_codes, other_codes, *rest, f"wide ({tab.format})", len(rows),
                     tab.where)  # fmt: skip
    return Cells(others.names, own.names, [of_row[name] for name in own.names], other_codes, own_codes, *rest,
                 f"wide, transposed ({tab.format})", len(rows), tab.where)  # fmt: skip


class _Meanings(dict[Any, int]):
    """The value of a cell -> its place in `attempts` and `correct`, EMPTY for a pair that was not tried.

    A value that is no result raises ValueError, with the reason.
    """

    def __init__(self, attempts_of_rates: int | None) -> None:
        self.attempts_of_rates = attempts_of_rates
        self.attempts: list[int] = []
        self.correct: list[float] = []

    def __missing__(self, value: Any) -> int:
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if not text.strip():
            self[value] = EMPTY
            return EMPTY
        attempts, correct = cell(text, self.attempts_of_rates)
        self[value] = len(self.attempts)
        self.attempts.append(attempts)
        self.correct.append(correct)
        return self[value]


def _identifier(value: Any) -> str | None:
    """A name as text, None where it is missing."""
    return None if value is None or value == "" else str(value)


def cell(text: str, attempts: int | None) -> tuple[int, float]:
    """Attempts and correct of one cell; ValueError with the reason where it is no result.

    >>> cell("1", None), cell("3/4", None), cell("0.75", 4)
    ((1, 1.0), (4, 3.0), (4, 3.0))
    """
    word = text.strip().lower()
    if word in UNSCORED:
        raise ValueError(f"'{text}' is no score; leave the cell empty where the pair was not tried")
    of = OF.fullmatch(word)
    if of:
        k, n = int(of[1]), int(of[2])
        if not (1 <= n < 2**31 and k <= n):
            raise ValueError(f"'{text}' is not so many of so many attempts")
        return n, float(k)
    if word in ("true", "false"):
        rate = float(word == "true")
    elif NUMBER.fullmatch(word):
        rate = float(word)
    else:
        raise ValueError(f"'{text}' is no score: 0, 1, true, false, 3/4 or a rate")
    if not 0 <= rate <= 1:
        raise ValueError(f"'{text}' is outside [0,1]")
    if attempts is None:
        if rate not in (0.0, 1.0):
            raise ValueError(f"'{text}' is a rate: of how many attempts? (--attempts N; 1 for partial credit)")
        return 1, rate
    correct = rate * attempts
    if attempts > 1 and abs(correct - round(correct)) > 0.01:
        raise ValueError(f"'{text}' is no whole number out of {attempts} attempts")
    return attempts, float(round(correct)) if attempts > 1 else correct
