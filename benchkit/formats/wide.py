"""Wide tables: a row a model and a column an item, or transposed: a row an item and a column a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from benchkit.errors import InputError, Unrecognised
from benchkit.formats.cells import Cells, Choices, Ints, Untried, used
from benchkit.formats.coding import is_simple
from benchkit.formats.columns import NAMES, Roles, plain
from benchkit.formats.long import ANSWERS, UNSCORED, WORDS
from benchkit.formats.tabular import Tabular, check_identifier

OF = re.compile(r"(\d{1,10})\s*/\s*(\d{1,10})", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+[.]?\d*|[.]\d+)(e[+-]?\d+)?", re.ASCII)
EMPTY, NONE = -1, -2  # codes of cells: not tried; without a score
INDEX = re.compile(r"__index_level_\d+__")
PANDAS = re.compile(rf"Unnamed: \d+|{INDEX.pattern}")
"""What pandas calls a column without a name when it reads it, and an index without one when it writes it."""
LEVELS = re.compile(r"\('.*'\)")  # what pandas makes of names in several levels
ELSE = {n for role in ("attempt", "attempts", "correct") for n in NAMES[role] if len(n) > 1}
"""Names of columns that are neither models nor items."""

Reason = Callable[[str], str]


def sniff(tab: Tabular, roles: Roles) -> bool:
    """Whether there is a column of models, or of items, and nothing else that a long table has."""
    one = (roles.model is None) != (roles.item is None)
    return one and len(tab.schema) > 1 and not (roles.score or roles.attempts)


def read(tab: Tabular, roles: Roles, choices: Choices) -> Cells:
    """Cells are 0 or 1, true or false, pass or fail, '3/4', or rates of as many attempts as `choices.attempts` says.

    An empty cell is a pair that was not tried; NA and the like have no score, and `choices.unscored` says what that
    means. Errors: a cell that is none of these; a row whose name stands before.
    Rows are read one by one: the time depends on the number of cells, not on how many of them are columns.
    """
    tab = tab if tab.whole is None else tab.whole()
    if choices.duplicates:
        raise InputError("--duplicates is for attempts; a wide table has a cell for each pair")
    key, role = (roles.model, "model") if roles.model else (roles.item, "item")
    assert key is not None
    if roles.cluster and role == "model":
        raise InputError(f"column '{roles.cluster}': a cluster is of items, and rows here are models; leave it out")
    reason = partial(_reason, key, role)
    columns = _columns(tab, key, roles.cluster, reason)
    meanings = _Meanings(choices)
    rows: dict[str, int] = {}
    unscored = 0
    clusters: list[str | None] = []
    places, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for n, (name, cluster, place, values) in enumerate(_rows(tab, key, roles.cluster, columns)):
        try:
            codes = np.fromiter(map(meanings.__getitem__, values), np.int32, len(values))
        except ValueError:
            raise _fault(tab, n, columns, place, values, meanings, reason) from None
        if name is None:
            if cluster is None and (codes == EMPTY).all():
                continue
            raise InputError(f"row {tab.line(n)}: the {role} is missing")
        if name in rows:
            raise InputError(f"rows {tab.line(rows[name])} and {tab.line(n)}: {role} '{name}' stands twice")
        clusters.append(cluster)
        filled = codes >= 0
        unscored += int((codes == meanings.none).sum())
        places.append(place[filled] + len(rows) * len(columns))
        found.append(codes[filled])
        rows[name] = n
    if unscored and choices.unscored == "wrong" and choices.attempts is None and max(meanings.attempts) > 1:
        raise InputError("--unscored wrong: a cell without a score beside 3/4, say, is of how many attempts?")
    unscored *= choices.attempts or 1
    place, codes = np.concatenate(places), np.concatenate(found)
    row, column = np.divmod(place, len(columns))
    own, others = used(list(rows), row), used(columns, column)
    attempts, correct = np.array(meanings.attempts, np.int64)[codes], np.array(meanings.correct, np.float64)[codes]
    sums = (attempts, correct, np.full(len(codes), -1, np.int64))
    about = (f"wide{'' if role == 'model' else ', transposed'} ({tab.format})", len(rows), tab.where)
    if role == "model":
        none: list[str | None] = [None] * len(others.names)
        cells = Cells(own.names, others.names, none, own.codes[row], others.codes[column], *sums, *about, unscored)
        return cells._replace(untried=Untried.of(rows, columns, cells))
    of_row = dict(zip(rows, clusters, strict=True))
    cells = Cells(others.names, own.names, [of_row[name] for name in own.names], others.codes[column], own.codes[row],
                  *sums, *about, unscored)  # fmt: skip
    return cells._replace(untried=Untried.of(columns, rows, cells))


def _reason(key: str, role: str, name: str) -> str:
    """Why the table was read as wide, and what to do where it is none, or where column `name` holds no results."""
    other, lacks = ("item", "--item-col") if role == "model" else ("model", "--model-col")
    return (
        f"; read as a wide table, since only column '{key.strip()}' is known, as that of {role}s: where a row is one "
        f"attempt name its columns with {lacks} and --score-col; where '{name}' is no {other} --leave-out it"
    )


def _columns(tab: Tabular, key: str, cluster: str | None, reason: Reason) -> list[str]:
    """The columns of cells; InputError where one can't hold results, or `key` and `cluster` no identifiers."""
    columns = [n for n in tab.names if not _nameless(n) and n not in (key, cluster)]
    nameless = [n for n in tab.names if _nameless(n) and n not in (key, cluster)]
    index = tab.names[0] if tab.names[0].strip() in ("", "Unnamed: 0") else None
    _check_unnamed(tab, [n for n in nameless if n != index and not INDEX.fullmatch(n)])
    strange = next((n for n in columns if len(n) < 20 and plain(n) in ELSE), None)
    if strange is not None:
        raise Unrecognised(
            f"column '{strange}' is no result, by its name: --leave-out '{strange}', or rename it; "
            "an attempt has a row of its own"
        )
    for name in columns:
        if name[0] == "(" and LEVELS.fullmatch(name):
            raise InputError(f'column "{name}" has a name in several levels: join them to one name each')
        if "nested" in tab.kinds.get(name, ()):
            raise Unrecognised(f"column '{name}' holds lists or objects{reason(name)}")
        if not is_simple(tab.schema[name]):
            kind = tab.schema[name]
            raise InputError(
                f"column '{name}' holds {kind} values; a cell is 0, 1, true, false, pass, fail, 3/4 or a rate"
            )
    if not columns:
        raise InputError(f"no column beside '{key}' has a name")
    for name in (key, cluster) if cluster else (key,):
        check_identifier(tab, name)
    return columns


def _nameless(name: str) -> bool:
    """Whether a column has no name, or the one that pandas gives to those without."""
    return not name.strip() or PANDAS.fullmatch(name) is not None


def _check_unnamed(tab: Tabular, names: list[str]) -> None:
    """InputError where a column without a name holds cells: left out, they would be lost. names: of such columns."""
    what = "in a column without a name: name it, or take it out"
    found = tab.unnamed()
    if found:
        raise InputError(f"row {tab.line(found[0])}, column {found[1]}: '{found[2]}' {what}")
    start = 0
    for batch in tab.batches(names) if names else ():
        for name, column in zip(names, batch.columns, strict=True):
            for k, value in enumerate(column.to_pylist()):
                if value is not None and value == value and str(value).strip():
                    raise InputError(f"row {tab.line(start + k)}, column '{name}': '{value}' {what} (--leave-out)")
        start += len(batch)


def _rows(
    tab: Tabular, key: str, cluster: str | None, columns: list[str]
) -> Iterator[tuple[str | None, str | None, Ints, Sequence[Any]]]:
    """The name and the cluster of each row, which of the columns it has, and its cells."""
    names = tab.names
    every = np.arange(len(columns))
    at = {name: k for k, name in enumerate(columns)}
    cells = [k for k, name in enumerate(names) if name in at]
    pick = itemgetter(*cells) if len(cells) > 1 else lambda row: (row[cells[0]],)
    own, group = names.index(key), names.index(cluster) if cluster else None
    for row in tab.records():
        if isinstance(row, dict):
            has = [name for name in row if name in at]
            place = np.fromiter(map(at.__getitem__, has), np.int64, len(has))
            yield _text(row.get(key)), _text(row.get(cluster)) if cluster else None, place, [row[name] for name in has]
        else:
            yield _text(row[own]), None if group is None else _text(row[group]), every, pick(row)


def _fault(
    tab: Tabular, n: int, columns: list[str], place: Ints, values: Sequence[Any], meanings: _Meanings, reason: Reason
) -> InputError:
    """What is wrong with the first cell of a row that is no result. Where the first row has none, the table is none."""
    for k, value in sorted(zip(place.tolist(), values, strict=True), key=itemgetter(0)):
        try:
            meanings[value]
        except ValueError as e:
            at = f"row {tab.line(n)}, column '{columns[k]}'"
            word = str(value).strip().lower()
            if word in UNSCORED:
                return InputError(f"{at}: {e}")
            rate = NUMBER.fullmatch(word) and 0 <= float(word) <= 1
            return (InputError if n or rate else Unrecognised)(f"{at}: {e}{reason(columns[k])}")
    raise AssertionError


class _Meanings(dict[Any, int]):
    """The value of a cell -> its place in `attempts` and `correct`, EMPTY for a pair that was not tried.

    `none` is the place of cells without a score. A value that is no result raises ValueError, with the reason.
    """

    def __init__(self, choices: Choices) -> None:
        self.of, self.unscored = choices.attempts, choices.unscored
        self.attempts: list[int] = []
        self.correct: list[float] = []
        self.none = NONE
        if self.unscored == "wrong":
            self.none = self._place(self.of or 1, 0.0)

    def __missing__(self, value: Any) -> int:
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if not text.strip():
            self[value] = EMPTY
        elif text.strip().lower() in UNSCORED:
            if self.unscored is None:
                raise ValueError(
                    f"'{text}' is no score: choose --unscored drop (not an attempt) or --unscored wrong (score 0); "
                    "a pair that was not tried has an empty cell"
                )
            self[value] = self.none
        else:
            self[value] = self._place(*cell(text, self.of))
        return self[value]

    def _place(self, attempts: int, correct: float) -> int:
        self.attempts.append(attempts)
        self.correct.append(correct)
        return len(self.attempts) - 1


def _text(value: Any) -> str | None:
    """A name as text, None where it is missing."""
    return None if value is None or value == "" else str(value)


def cell(text: str, attempts: int | None) -> tuple[int, float]:
    """Attempts and correct of one cell; ValueError with the reason where it is no result.

    >>> cell("1", None), cell("3/4", None), cell("0.75", 4)
    ((1, 1.0), (4, 3.0), (4, 3.0))
    """
    word = text.strip().lower()
    of = OF.fullmatch(word)
    if of:
        k, n = int(of[1]), int(of[2])
        if not (1 <= n < 2**31 and k <= n):
            raise ValueError(f"'{text}' is not so many of so many attempts")
        return n, float(k)
    if word in WORDS and word not in ANSWERS:
        rate = WORDS[word]
    elif NUMBER.fullmatch(word):
        rate = float(word)
    else:
        raise ValueError(f"'{text}' is no score: 0, 1, true, false, pass, fail, 3/4 or a rate")
    if not 0 <= rate <= 1:
        raise ValueError(f"'{text}' is outside [0,1]")
    if attempts is None:
        if rate not in (0.0, 1.0):
            raise ValueError(f"'{text}' is a rate: of how many attempts? (--attempts N; 1 for partial credit)")
        return 1, rate
    if attempts == 1:
        return 1, rate
    whole = round(rate * attempts)
    unit = 10.0 ** int(Decimal(word).as_tuple().exponent)  # of the last digit; where attempts are fewer one count fits
    rounded = attempts * unit < 0.9999 and abs(whole / attempts - rate) <= 0.5001 * unit
    if abs(rate * attempts - whole) > min(1e-6 * attempts, 0.01) and not rounded:
        raise ValueError(f"'{text}' is no whole number out of {attempts} attempts")
    return attempts, float(whole)
