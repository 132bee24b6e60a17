"""Long tables of attempts: one row an attempt, with a score in [0,1]."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.casting import NUMBER
from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Choices, Named, Names, Untried, used
from benchkit.formats.clusters import of_items
from benchkit.formats.coding import Codes, attempt_name, attempt_numbers, encoded, indices, is_text
from benchkit.formats.columns import Roles, shown
from benchkit.formats.native import choose
from benchkit.formats.tabular import Tabular, check_identifier
from benchkit.formats.tally import Pairs, Sums, Tally
from benchkit.text import count

UNSCORED = ("", "na", "n/a", "#n/a", "nan", "null", "none")
"""Words in a score column that mean: not scored."""

WORDS = dict.fromkeys(
    ("true", "t", "yes", "y", "pass", "passed", "correct", "right", "✓", "✔", "✅"), 1.0
) | dict.fromkeys(("false", "f", "no", "n", "fail", "failed", "incorrect", "wrong", "✗", "✘", "❌"), 0.0)
"""Words in a score column that are scores."""

ANSWERS = frozenset(("t", "f", "yes", "no", "y", "n"))
"""Those of the words that may be what a model answered, too."""

MOST = 20
"""Columns of which a message says whether they tell two rows apart."""

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def sniff(tab: Tabular, roles: Roles) -> bool:
    """Whether the columns are those of a long table of attempts."""
    return bool(roles.model and roles.item and roles.score)


class Rows(NamedTuple):
    """A batch of rows, arrays of shape (rows,).

    start: the index of the first among all rows. model, item: codes, -1 where missing. score: NaN where there is none.
    none: the attempt has no score. columns: as they came. others: how many rows are not of the values that were chosen;
    those are as if they were empty.
    """

    start: int
    model: Ints
    item: Ints
    score: Array
    none: Flags
    columns: dict[str, pa.Array]
    others: int


class Reading:
    """The rows of a long table, with codes that stay the same from pass to pass."""

    def __init__(self, tab: Tabular, roles: Roles) -> None:
        assert roles.model and roles.item and roles.score
        self.tab = tab
        self.names = {
            role: name for role in ("model", "item", "score", "attempt", "cluster") if (name := getattr(roles, role))
        } | roles.choices
        self.only: dict[str, str] = {}  # role -> the value that was chosen
        self.chosen: Flags | None = None  # which rows stand for their attempt; None where all do
        self.models, self.items = Codes(), Codes()
        self._check()

    def _check(self) -> None:
        """InputError where a column holds what it can't; kinds of values may come to light as rows are read."""
        for role, name in self.names.items():
            if role in ("model", "item", "cluster"):
                check_identifier(self.tab, name)
            elif "nested" in self.tab.kinds.get(name, ()):
                raise InputError(f"column '{name}' holds lists or objects")

    def rows(self) -> Iterator[Rows]:
        start = 0
        for batch in self.tab.batches(list(dict.fromkeys(self.names.values()))):
            if self.tab.whole is not None:
                self._check()
            columns = {role: batch.column(name) for role, name in self.names.items()}
            model, item = self.models.of(columns["model"]), self.items.of(columns["item"])
            score, none = scores(columns["score"], self.names["score"])
            others = 0
            for role, value in self.only.items():
                other = ~_is(columns[role], value) & ((model >= 0) | (item >= 0) | ~none)
                model, item, none = np.where(other, -1, model), np.where(other, -1, item), none | other
                score = np.where(other, np.nan, score)
                others += int(other.sum())
            if len(batch):
                yield Rows(start, model, item, score, none, columns, others)
            start += len(batch)

    def kept(self, rows: Rows) -> Flags:
        """Which rows stand for their attempt, as --duplicates has it."""
        size = len(rows.item)
        return np.ones(size, bool) if self.chosen is None else self.chosen[rows.start : rows.start + size]


class Faults:
    """Rows of one kind: how many, and the indices of the first three."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []

    def add(self, flags: Flags, start: int) -> None:
        if flags.any():
            self.count += int(flags.sum())
            if len(self.first) < 3:
                self.first += (start + np.flatnonzero(flags)[:3]).tolist()[: 3 - len(self.first)]


def read(tab: Tabular, roles: Roles, choices: Choices) -> Cells:
    """Add the attempts up by model and item, in one pass; raise InputError where that would lose or guess.

    Errors: an identifier is missing, a score is no number in [0,1], an attempt has no score (and `choices.unscored`
    doesn't say what that means), an attempt stands twice (and `choices.duplicates` doesn't say which counts), a pair
    has rows of several conditions (and `choices` doesn't say of which).
    """
    if choices.attempts is not None:
        raise InputError("--attempts is for rates in a wide table; here a row is one attempt")
    reading = Reading(tab, roles)
    for option, column in roles.choices.items():
        _choose(reading, option, column, choices)
    if choices.duplicates in ("first", "last"):
        reading.chosen = _chosen(reading, choices)
    unnamed, invalid, unscored = Faults(), Faults(), Faults()
    tally, clusters = Tally(), Codes()
    pairs: set[tuple[int, int]] = set()
    read = repeated = others = 0
    shown = ""
    dropped: tuple[set[int], set[int]] = set(), set()  # codes of models and items
    for rows in reading.rows():
        missing = (rows.model < 0) | (rows.item < 0)
        blank = (rows.model < 0) & (rows.item < 0) & rows.none
        outside = ~rows.none & ~((rows.score >= 0) & (rows.score <= 1))
        read += len(missing) - int(blank.sum())
        others += rows.others
        keep = reading.kept(rows)
        unnamed.add(missing & ~blank, rows.start)
        if not invalid.count and outside.any():
            shown = _shown(rows, int(np.flatnonzero(outside)[0]))
        invalid.add(outside, rows.start)
        none = rows.none & ~blank & keep
        unscored.add(none, rows.start)
        if choices.unscored == "drop" and none.any():
            for codes, of in zip((rows.model, rows.item), dropped, strict=True):
                of.update(np.unique(codes[none]).tolist())
        counts = _attempts(rows, choices) & ~outside
        repeated += int((counts & ~keep).sum())
        counts &= keep
        model, item, score = rows.model, rows.item, np.where(rows.none, 0.0, rows.score)
        number = attempt_numbers(rows.columns["attempt"]) if roles.attempt else None
        if "cluster" in rows.columns:
            _note_clusters(pairs, item, clusters.of(rows.columns["cluster"]), counts)
        if not counts.all():
            model, item, score = model[counts], item[counts], score[counts]
            number = None if number is None else number[counts]
        tally.add(model, item, score, number)
    if unnamed.count:
        raise InputError(f"row {tab.line(unnamed.first[0])}: the model or the item is missing")
    if invalid.count:
        raise InputError(f"row {tab.line(invalid.first[0])}: {roles.score} {shown}")
    if unscored.count and choices.unscored is None:
        lines = ", ".join(str(tab.line(i)) for i in unscored.first) + (", ..." if unscored.count > 3 else "")
        raise InputError(
            f"{unscored.count} of {read} attempts have no score (row{'s' if unscored.count > 1 else ''} {lines}): "
            "choose --unscored drop (not an attempt) or --unscored wrong (score 0)"
        )
    sums = tally.sums()
    if choices.duplicates is None and sums.again.any():
        _check_duplicates(reading, sums, choices)
    skipped = {"attempt that stands twice": repeated} if repeated else {}
    if others:
        skipped[f"row of another {' or '.join(roles.choices[option] for option in reading.only)}"] = others
    models, items = used(reading.models.names, sums.model), used(reading.items.names, sums.item)
    found = _clusters(pairs, reading.items.names, clusters.names)
    named = partial(_named, reading, choices, models, items) if roles.attempt else None
    cells = Cells(
        models.names, items.names, [found.get(name) for name in items.names], models.codes[sums.model],
        items.codes[sums.item], sums.attempts, sums.correct, sums.numbers, f"long ({tab.format})", read, tab.where,
        unscored.count, skipped=skipped, named=named,
    )  # fmt: skip
    lost = ([of.names[k] for k in d] for of, d in zip((reading.models, reading.items), dropped, strict=True))
    return cells._replace(untried=Untried.of(next(lost), next(lost), cells))


def _choose(reading: Reading, option: str, column: str, choices: Choices) -> None:
    """Restrict the rows to one value of a column, where that is wanted, or needed because a pair has several."""
    found: set[str] = set()
    for batch in reading.tab.batches([column]):
        found.update(word for word, used in zip(*_words(batch.column(column)), strict=True) if used)
    wanted = getattr(choices, option)
    if found <= {"none"}:
        return
    if wanted is None and (len(found) < 2 or choices.duplicates is not None or not _mixed(reading, option)):
        return
    reading.only[option] = choose(wanted, sorted(found), f"--{option}", column)


def _mixed(reading: Reading, role: str) -> bool:
    """Whether a model and an item have rows of several values."""
    pairs, values = Pairs(), Codes()
    first = np.zeros(0, np.int64)  # pair -> the code of a value + 2, 0 before there is one
    for rows in reading.rows():
        known = (rows.model >= 0) & (rows.item >= 0)
        if known.any():
            at = pairs.of(rows.model[known], rows.item[known])
            value = values.of(rows.columns[role])[known] + 2
            first = np.append(first, np.zeros(max(0, 2 * pairs.count - len(first)), np.int64))
            first[at] = np.where(first[at] == 0, value, first[at])
            if (first[at] != value).any():
                return True
    return False


def _is(column: pa.Array, value: str) -> Flags:
    """Where a column has a value."""
    words, _ = _words(column)
    return np.array([word == value for word in words])[indices(encoded(column))]


def _words(column: pa.Array) -> tuple[list[str], list[bool]]:
    """The values of a dictionary as text, with 'none' for what is missing as the last one, and which are used."""
    column = encoded(column)
    words = [word or "none" for word in column.dictionary.to_pylist()] + ["none"]
    used = np.zeros(len(words), bool)
    used[indices(column)] = True
    return words, used.tolist()


def scores(column: pa.Array, name: str) -> tuple[Array, Flags]:
    """Scores as numbers, and where there is none; a text that is no number is NaN without being none.

    Raises InputError for values that are neither numbers nor flags nor text.
    """
    kind = column.type
    if is_text(kind):
        column = encoded(column)
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column.dictionary))
        none = np.append(np.asarray(pc.is_in(words, pa.array([*UNSCORED, None], pa.utf8()))), True)
        values = np.full(len(none), np.nan)
        fits = pc.match_substring_regex(words, NUMBER).fill_null(False)
        values[:-1][np.asarray(fits)] = np.asarray(words.filter(fits).cast(pa.float64()))
        word = np.asarray(pc.index_in(words, pa.array([*WORDS])).fill_null(-1))
        values[:-1] = np.where(word >= 0, np.array([*WORDS.values()])[word], values[:-1])
        at = indices(column)
        return values.take(at), none.take(at)
    if pa.types.is_boolean(kind):
        whole = column.cast(pa.uint8())
        return np.asarray(whole.fill_null(0), np.float64), np.asarray(column.is_null())
    simple = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (simple or pa.types.is_null(kind)):
        raise InputError(f"column '{name}' holds {kind} values; a score is a number or a flag")
    column = column.cast(pa.float32()) if pa.types.is_float16(kind) else column
    values = np.array(column.cast(pa.float64(), safe=False).fill_null(np.nan))
    return values, np.isnan(values)


def _shown(rows: Rows, k: int) -> str:
    score = rows.score[k]
    what = "no score: a number in [0,1], true or false, pass or fail" if np.isnan(score) else "outside [0,1]"
    hint = " (a count needs one of attempts, --attempts-col)" if 1 < score < np.inf and score % 1 == 0 else ""
    return f"('{rows.columns['score'][k].as_py()}') is {what}{hint}"


def _note_clusters(pairs: set[tuple[int, int]], item: Ints, cluster: Ints, counts: Flags) -> None:
    """Add the pairs (item, cluster) of the rows that count."""
    keys = np.unique((item << 32 | (cluster + 1))[counts])
    pairs.update(zip((keys >> 32).tolist(), ((keys & 0xFFFFFFFF) - 1).tolist(), strict=True))


def _clusters(pairs: set[tuple[int, int]], items: list[str], clusters: list[str]) -> dict[str, str | None]:
    """The cluster of each item, from codes of both; {} where there is none."""
    if not clusters:
        return {}
    return of_items((items[j], clusters[c] if c >= 0 else None) for j, c in sorted(pairs))


def _attempts(rows: Rows, choices: Choices) -> Flags:
    """Which rows are attempts, unless another one stands for them."""
    named = (rows.model >= 0) & (rows.item >= 0)
    return named & ~rows.none if choices.unscored == "drop" else named


def _named(reading: Reading, choices: Choices, models: Names, items: Names) -> Named:
    """The attempts that count, one by one."""
    codes: list[Ints] = []
    texts: list[str | None] = []
    for rows in reading.rows():
        there = np.flatnonzero(_attempts(rows, choices) & reading.kept(rows))
        codes.append(np.stack([models.codes[rows.model[there]], items.codes[rows.item[there]]]))
        every = _names(rows.columns["attempt"])
        texts += [every[k] for k in there.tolist()]
    model, item = np.concatenate([np.zeros((2, 0), np.int64), *codes], axis=1)
    return Named(model, item, texts)


def _keys(reading: Reading, choices: Choices) -> Iterator[tuple[Rows, Flags, Ints, Ints]]:
    """Of each batch the rows, which of them are attempts, their pairs and their attempts as whole numbers."""
    names = Codes(attempt_name)
    for rows in reading.rows():
        column = rows.columns.get("attempt")
        attempt = np.zeros(len(rows.item), np.int64) if column is None else names.of(column)
        yield rows, _attempts(rows, choices), rows.model << 32 | rows.item, attempt


def _chosen(reading: Reading, choices: Choices) -> Flags:
    """Which rows are the first, or the last, of their attempt; also True for rows that are none."""
    parts = [(counts, pair, attempt) for _, counts, pair, attempt in _keys(reading, choices)]
    if not parts:
        return np.zeros(0, bool)
    counts, pair, attempt = (np.concatenate(p) for p in zip(*parts, strict=True))
    row = np.flatnonzero(counts)
    if choices.duplicates == "last":
        row = row[::-1]
    order = row[np.lexsort((attempt[row], pair[row]))]
    again = (pair[order][1:] == pair[order][:-1]) & (attempt[order][1:] == attempt[order][:-1])
    out = np.ones(len(counts), bool)
    out[order[1:][again]] = False
    return out


def _check_duplicates(reading: Reading, sums: Sums, choices: Choices) -> None:
    """Whether an attempt of the pairs that are suspect really stands twice, compared by value."""
    suspects = np.sort((sums.model << 32 | sums.item)[sums.again])
    found = []
    for rows, counts, pair, attempt in _keys(reading, choices):
        at = np.flatnonzero(counts)
        place = np.minimum(np.searchsorted(suspects, pair[at]), len(suspects) - 1)
        at = at[suspects[place] == pair[at]]
        found.append((rows.start + at, pair[at], attempt[at]))
    row, pair, attempt = (np.concatenate(p) for p in zip(*found, strict=True))
    order = np.lexsort((row, attempt, pair))
    row, pair, attempt = row[order], pair[order], attempt[order]
    again = (pair[1:] == pair[:-1]) & (attempt[1:] == attempt[:-1])
    if not again.any():
        return
    second = np.flatnonzero(again & ~np.append(False, again[:-1]))  # of each key the second row that holds it
    k = second[np.argmin(row[second + 1])]
    tab, models, items = reading.tab, reading.models.names, reading.items.names
    which = ""
    if "attempt" in reading.names:
        name = _name(reading, int(row[k + 1]))
        which = "" if name is None else f", attempt '{name}',"
    several = "first or last" if "attempt" in reading.names else "first, last or attempt (each row is one more attempt)"
    raise InputError(
        f"rows {tab.line(int(row[k]))} and {tab.line(int(row[k + 1]))}: model '{models[pair[k] >> 32]}', "
        f"item '{items[pair[k] & 0xFFFFFFFF]}'{which} stand twice ({count(len(second), 'such key')}): "
        f"choose --duplicates {several}{_differing(reading, int(row[k]), int(row[k + 1]))}"
    )


def _differing(reading: Reading, a: int, b: int) -> str:
    """Which columns that play no part differ between two rows, as the end of a message; '' where none does."""
    others = [n for n in reading.tab.names if n not in reading.names.values() and n.isprintable()]
    differ = [n for n in others[:MOST] if _value(reading.tab, n, a) != _value(reading.tab, n, b)]
    if not differ:
        return ""
    return (
        f"; the rows differ in {shown(differ)}: one that numbers the attempts is for --attempt-col, "
        "one that tells items apart for a further --item-col"
    )


def _value(tab: Tabular, name: str, index: int) -> Any:
    """What one row has in a column."""
    start = 0
    for batch in tab.batches([name]):
        if index < start + len(batch):
            found = batch.column(0)[index - start]  # no value of Python's, which some types have none for
            return found.value if isinstance(found, pa.DictionaryScalar) else found
        start += len(batch)
    return None


def _name(reading: Reading, index: int) -> str | None:
    """What the attempt of one row is called."""
    for rows in reading.rows():
        column = rows.columns["attempt"]
        if index < rows.start + len(column):
            return _names(column)[index - rows.start]
    return None


def _names(column: pa.Array) -> list[str | None]:
    """What each row's attempt is called; a name that stands often is read once."""
    column = encoded(column)
    words = [*map(attempt_name, column.dictionary.to_pylist()), None]
    return [words[k] for k in indices(column).tolist()]
