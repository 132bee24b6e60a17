"""Attempts added up by pair of a model and an item, batch by batch, in memory that grows with pairs and not with rows.

Sums do not depend on the order of the rows, nor on how they are cut into batches or sources: scores between 0 and 1 are
added as whole multiples of 1/UNIT, the nearest ones. A score that is alone keeps its value.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

N = TypeVar("N", np.int64, np.float64)
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

NUMBERED = 1023
"""Attempt numbers up to this one are told apart in one pass."""

WORD = 31  # attempt numbers an int64 counts: a sum of up to 2^32 powers below 2^31 does not overflow
UNIT = 360_360 * 10**7
"""Decimals to the 8th place, and fractions with denominators up to 16, are whole multiples of 1/UNIT: three times 1/3
is 1."""

CARRY = 1 << 21  # rows whose fractions an int64 holds
EMPTY: Ints = np.zeros(0, np.int64)
TABLE = 1 << 26  # entries of the table of pairs, 4 bytes each

POWERS = np.zeros((NUMBERED // WORD + 1, NUMBERED + 2), np.int64)  # word k, number -> 2^(number - 31 k), or 0; -1 -> 0
POWERS[np.arange(NUMBERED + 1) // WORD, np.arange(NUMBERED + 1)] = 1 << np.arange(NUMBERED + 1) % WORD


class Sums(NamedTuple):
    """One value a pair, shape (P,).

    model, item  codes
    attempts     rows added
    correct      sum of their scores
    numbers      the set of attempt numbers 0..62 as bits; -1 where an attempt has no such number, or one stands twice
    again        an attempt may stand twice: its number does, or there are attempts without numbers up to `NUMBERED`
    """

    model: Ints
    item: Ints
    attempts: Ints
    correct: Array
    numbers: Ints
    again: npt.NDArray[np.bool_]


class Pairs:
    """A number (0, 1, ...) for each pair of codes, which stays as more pairs come.

    A table of all pairs while that has up to `TABLE` entries; beyond, the sorted keys of the pairs there are.
    """

    def __init__(self) -> None:
        self.table: npt.NDArray[np.int32] | None = np.zeros((1, 1), np.int32)  # number + 1; 0 where no pair is
        self.sorted, self.recent = (EMPTY, EMPTY), (EMPTY, EMPTY)  # instead: keys, most and newest, their numbers
        self.model, self.item = EMPTY, EMPTY  # by number, with room for more
        self.count = 0

    def of(self, model: Ints, item: Ints) -> npt.NDArray[Any]:
        """The numbers of pairs, new ones where they were not seen before. model, item: codes, at least one."""
        self._room(int(model.max()) + 1, int(item.max()) + 1)
        if self.table is None:
            return self._search(model, item)
        width = self.table.shape[1]
        flat = self.table.reshape(-1)
        keys = model * width + item
        found: npt.NDArray[np.int32] = flat.take(keys)
        new = found == 0
        if new.any():
            keys_new = keys[new]
            mark = -1 - np.arange(len(keys_new), dtype=np.int32)
            flat[keys_new] = mark  # of equal keys one mark is left
            fresh = keys_new[flat.take(keys_new) == mark]
            flat[fresh] = np.arange(self.count + 1, self.count + 1 + len(fresh))
            self._append(fresh // width, fresh % width)
            found = flat.take(keys)
        found -= 1
        return found

    def _append(self, model: Ints, item: Ints) -> None:
        before, self.count = self.count, self.count + len(model)
        self.model, self.item = _grown(self.model, self.count), _grown(self.item, self.count)
        self.model[before : self.count], self.item[before : self.count] = model, item

    def _room(self, models: int, items: int) -> None:
        if self.table is None or (models <= self.table.shape[0] and items <= self.table.shape[1]):
            return
        rows, columns = self.table.shape
        shape = (_double(rows, models), _double(columns, items))
        if shape[0] * shape[1] > TABLE:
            keys = self.model[: self.count] << 32 | self.item[: self.count]
            self.sorted, self.table = _together((keys, np.arange(self.count)), (EMPTY, EMPTY)), None
            return
        table = np.zeros(shape, np.int32)
        table[:rows, :columns] = self.table
        self.table = table

    def _search(self, model: Ints, item: Ints) -> Ints:
        keys, at = np.unique(model << 32 | item, return_inverse=True)
        numbers = np.maximum(_found(keys, *self.sorted), _found(keys, *self.recent))
        fresh = numbers < 0
        numbers[fresh] = np.arange(self.count, self.count + int(fresh.sum()))
        self._append(keys[fresh] >> 32, keys[fresh] & 0xFFFFFFFF)
        self.recent = _together(self.recent, (keys[fresh], numbers[fresh]))
        if len(self.recent[0]) > max(len(self.sorted[0]) // 8, 1 << 16):
            self.sorted, self.recent = _together(self.sorted, self.recent), (EMPTY, EMPTY)
        out: Ints = numbers[at]
        return out


def _found(keys: Ints, among: Ints, numbers: Ints) -> Ints:
    """The number of each key, -1 where it is not among the sorted ones."""
    if not len(among):
        return np.full(len(keys), -1)
    place = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return np.where(among[place] == keys, numbers[place], -1)


def _together(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Two lists of different keys with their numbers as one, sorted by key."""
    keys, numbers = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])
    order = np.argsort(keys, kind="stable")
    return keys[order], numbers[order]


class Tally:
    """Adds attempts up; `sums` gives the result so far."""

    def __init__(self) -> None:
        self.pairs = Pairs()
        self.attempts = np.zeros(0, np.int64)
        self.ones = np.zeros(0, np.int64)  # whole scores, and whole units from the fractions
        self.fractions = np.zeros(0, np.int64)  # in 1/UNIT
        self.alone = np.zeros(0, np.float64)  # the fraction itself, where it is the only one
        self.since = 0  # rows since they were last below UNIT
        self.numbered = np.zeros(0, np.int64)  # attempts with a number up to NUMBERED
        self.words: dict[int, Ints] = {}  # k: sums of 2^(a - 31 k) over attempt numbers a from 31 k to 31 k + 30

    def add(self, model: Ints, item: Ints, score: Array, number: Ints | None = None) -> None:
        """Add rows. model, item: codes. score: in [0, 1]. number: of the attempt, -1 where it has none up to NUMBERED;
        None where no attempt has one."""
        if not len(model):
            return
        at = self.pairs.of(model, item)
        size = self.pairs.count
        self.attempts, self.ones, self.numbered = (_grown(a, size) for a in (self.attempts, self.ones, self.numbered))
        np.add.at(self.attempts, at, 1)
        full = np.floor(score)
        np.add.at(self.ones, at, full.astype(np.int64))
        if (full != score).any():
            self._fractions(at, score - full, size)
        if number is not None:
            self._numbers(at, number, size)

    def _fractions(self, at: npt.NDArray[Any], rest: Array, size: int) -> None:
        self.fractions, self.alone = _grown(self.fractions, size), _grown(self.alone, size)
        np.add.at(self.alone, at, rest)
        for k in range(0, len(at), CARRY):
            self.since += len(at[k : k + CARRY])
            if self.since > CARRY:
                self._carry()
                self.since = len(at[k : k + CARRY])
            np.add.at(self.fractions, at[k : k + CARRY], whole(rest[k : k + CARRY]))

    def _carry(self) -> None:
        """Move whole ones out of the fractions, before those overflow."""
        size = min(len(self.fractions), len(self.ones))
        self.ones[:size] += self.fractions[:size] // UNIT
        self.fractions %= UNIT

    def _numbers(self, at: npt.NDArray[Any], number: Ints, size: int) -> None:
        np.add.at(self.numbered, at, 1 if number.min() >= 0 else (number >= 0).astype(np.int64))
        first, last = int(np.where(number < 0, NUMBERED, number).min()) // WORD, int(number.max()) // WORD
        for k in range(first, last + 1):
            here, which = at, number
            if last - first > 3:  # else it is faster to add zeros for the others
                mine = (number >= WORD * k) & (number < WORD * (k + 1))
                here, which = at[mine], number[mine]
            if len(here):
                self.words[k] = _grown(self.words.get(k, EMPTY), size)
                np.add.at(self.words[k], here, POWERS[k].take(which))

    def sums(self) -> Sums:
        size = self.pairs.count
        words = {k: _grown(w, size)[:size] for k, w in self.words.items()}
        attempts, numbered = self.attempts[:size], self.numbered[:size]
        # k powers of two add up to a number of k bits exactly where they all differ
        bits = sum((np.bitwise_count(w).astype(np.int64) for w in words.values()), np.zeros(size, np.int64))
        unknown = numbered < attempts
        twice = bits < numbered
        again = twice | (unknown & (attempts > 1))
        numbers = np.zeros(size, np.int64)
        high = np.zeros(size, bool)
        for k, w in words.items():
            low = w if k < 2 else w & 1 if k == 2 else np.int64(0)  # 62 is the first number of word 2
            numbers |= low << (WORD * min(k, 2))
            high |= w != low
        self._carry()
        correct = total(self.ones[:size], _grown(self.fractions, size)[:size])
        alone = _grown(self.alone, size)[:size]
        correct = np.where((attempts == 1) & (alone > 0), alone, correct)
        return Sums(self.pairs.model[:size], self.pairs.item[:size], attempts, correct,
                    np.where(unknown | high | twice, np.int64(-1), numbers), again)  # fmt: skip


def whole(fraction: Array) -> Ints:
    """Fractions of scores in [0, 1) as whole multiples of 1/UNIT, the nearest ones."""
    return np.rint(fraction * UNIT).astype(np.int64)


def total(ones: Ints, fractions: Ints) -> Array:
    """ones + fractions/UNIT, with fractions below UNIT: the nearest double while the sum is below 2048.

    Up to there doubles are closer than 1/UNIT, so that `add_up` reads the same whole numbers from them.
    """
    small = ones < 2048
    exact = np.where(small, ones, 0) * UNIT + fractions
    out: Array = np.where(small, exact / UNIT, ones + fractions / UNIT)
    return out


def add_up(sums: Array, at: Ints, size: int) -> Array:
    """Sums of scores added by place 0..size-1, shape (size,): what `Tally` gives for all the scores together."""
    ones, fractions = np.zeros(size, np.int64), np.zeros(size, np.int64)
    full = np.floor(sums)
    np.add.at(ones, at, full.astype(np.int64))
    rest = whole(sums - full)
    for k in range(0, len(at), CARRY):
        np.add.at(fractions, at[k : k + CARRY], rest[k : k + CARRY])
        ones += fractions // UNIT
        fractions %= UNIT
    return total(ones, fractions)


def _grown(values: npt.NDArray[N], size: int) -> npt.NDArray[N]:
    """The array with room for at least `size` values, zeros where it was shorter."""
    if len(values) >= size:
        return values
    out = np.zeros(max(size, len(values) * 3 // 2), values.dtype)
    out[: len(values)] = values
    return out


def _double(have: int, needed: int) -> int:
    while have < needed:
        have *= 2
    return have
