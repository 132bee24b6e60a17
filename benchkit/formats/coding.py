"""Columns of identifiers and attempts as whole numbers: codes that stay the same from batch to batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.errors import InputError
from benchkit.formats.tally import NUMBERED

Ints = npt.NDArray[np.int64]
TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text, also where they stand in a dictionary."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in TEXT)


def is_simple(kind: pa.DataType) -> bool:
    """Whether values are single texts, numbers or flags."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(kind) or any(is_kind(kind) for is_kind in NUMBERS)


def encoded(column: pa.Array) -> pa.DictionaryArray:
    """The column as indices into its distinct values, which are text; InputError where they can't be."""
    try:
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.utf8()) if pa.types.is_string_view(column.type) else column
            column = column.dictionary_encode()
        if column.type.value_type == pa.utf8():
            return column
        return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.utf8()))
    except pa.ArrowException:
        raise InputError(f"values of the type {column.type} are neither names nor numbers") from None


def indices(column: pa.DictionaryArray) -> Ints:
    """Each row's place in the dictionary, its length where the row is null."""
    at = column.indices.cast(pa.int64())
    return np.asarray(at.fill_null(len(column.dictionary)) if at.null_count else at)


class Codes:
    """Codes 0, 1, ... of texts, in the order in which they come; -1 is null and the empty text.

    meant: how a text is read before it gets its code; two that are read alike share one.
    """

    def __init__(self, meant: Callable[[str | None], str | None] | None = None) -> None:
        self.known: dict[str, int] = {}
        self.meant = meant
        self._words: pa.Array | None = None
        self._codes = np.zeros(0, np.int64)

    @property
    def names(self) -> list[str]:
        """The texts in the order of their codes, a new list at each call."""
        return list(self.known)

    def of(self, column: pa.Array) -> Ints:
        """The codes of a column of text or whole numbers, shape (rows,)."""
        column = encoded(column)
        if self._words is None or not column.dictionary.equals(self._words):  # row groups and batches repeat theirs
            self._words = column.dictionary
            texts: list[str | None] = column.dictionary.to_pylist()
            known = self.known
            if self.meant is not None:
                texts = [self.meant(t) for t in texts]
            codes = [known.setdefault(t, len(known)) if t else -1 for t in texts]
            self._codes = np.array([*codes, -1], np.int64)
        out: Ints = self._codes.take(indices(column))
        return out


def attempt_name(text: str | None) -> str | None:
    """An attempt's number or name, equal where they mean the same: 1, 01 and 1.0."""
    text = "" if text is None else text.strip()
    if not text or not text.isascii() or not (text[0].isdigit() or text[0] in "+-."):
        return text or None
    try:
        number = float(text) if "_" not in text else float("nan")
    except ValueError:
        return text
    return str(int(number)) if number == number // 1 and abs(number) < 2**53 else text


def attempt_numbers(column: pa.Array) -> Ints:
    """Each attempt's number where it is a whole one from 0 to NUMBERED, -1 where it is another or a name."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = np.asarray(column.cast(pa.float64(), safe=False).fill_null(-1))
        return _small(values)
    column = encoded(column)
    words = column.dictionary
    numbers = np.full(len(words) + 1, -1, np.int64)
    may_be = np.flatnonzero(np.asarray(pc.match_substring_regex(words, r"^\s*[+.0-9]").fill_null(False)))
    for k in may_be.tolist():
        name = attempt_name(words[k].as_py()) or ""
        numbers[k] = int(name) if len(name) < 5 and name.isascii() and name.isdigit() and int(name) <= NUMBERED else -1
    return numbers.take(indices(column))


def _small(values: npt.NDArray[np.float64]) -> Ints:
    with np.errstate(invalid="ignore"):
        fits = (values >= 0) & (values <= NUMBERED) & (values == np.floor(values))
        return np.where(fits, values, -1).astype(np.int64)
