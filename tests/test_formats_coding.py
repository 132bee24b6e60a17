"""Codes of identifiers and numbers of attempts, against plain Python."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.formats.coding import Codes, attempt_name, attempt_numbers
from benchkit.formats.tally import NUMBERED

TEXT = st.one_of(st.none(), st.sampled_from(("", "a", "b", "007", "7", "\u00e9")), st.text(max_size=3))
KINDS = (pa.utf8(), pa.large_utf8(), pa.string_view(), pa.dictionary(pa.int8(), pa.utf8()),
         pa.dictionary(pa.int32(), pa.large_utf8()))  # fmt: skip


def column(values: list[str | None], kind: pa.DataType) -> pa.Array:
    plain = pa.array(values, pa.utf8())
    return plain.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else plain.cast(kind)


class TestCodes:
    @given(st.lists(st.lists(TEXT, max_size=20), max_size=4), st.sampled_from(KINDS))
    def test_as_a_dictionary_gives_them(self, batches: list[list[str | None]], kind: pa.DataType) -> None:
        codes = Codes()
        for values in batches:
            got = codes.of(column(values, kind)).tolist()
            assert [None if c < 0 else codes.names[c] for c in got] == [v or None for v in values]
        assert len(set(codes.names)) == len(codes.names)

    def test_whole_numbers_and_slices(self) -> None:
        codes = Codes()
        assert codes.of(pa.array([7, None, 8, 7])).tolist() == [0, -1, 1, 0] and codes.names == ["7", "8"]
        assert codes.of(pa.array(["x", "7", "y"]).dictionary_encode()[1:]).tolist() == [0, 3]
        assert codes.of(pa.nulls(2)).tolist() == [-1, -1]

    def test_read_alike(self) -> None:
        assert Codes(attempt_name).of(pa.array(["1", "01", "1.0", " 1", "b", "B"])).tolist() == [0, 0, 0, 0, 1, 2]


class TestAttempts:
    @pytest.mark.parametrize(
        ("text", "name"),
        (("1", "1"), ("01", "1"), ("1.0", "1"), ("1e1", "10"), ("-2", "-2"), ("1.5", "1.5"), ("1_0", "1_0"),
         ("inf", "inf"), ("+3", "3"), ("9007199254740993", "9007199254740993"), ("", None), (" ", None), (None, None),
         ("run 1", "run 1"), ("\u0661", "\u0661")),
    )  # fmt: skip
    def test_names(self, text: str | None, name: str | None) -> None:
        assert attempt_name(text) == name

    def test_numbers(self) -> None:
        want = [0, 1, NUMBERED, -1, -1, -1]
        assert attempt_numbers(pa.array([0, 1, NUMBERED, NUMBERED + 1, -5, None])).tolist() == want
        assert attempt_numbers(pa.array([0.0, 1.0, float(NUMBERED), 1.5, float("nan"), None])).tolist() == want
        assert attempt_numbers(pa.array(["0", " 01", str(NUMBERED), "a", "1.5", None])).tolist() == want
        assert attempt_numbers(pa.array([2**63, 3], pa.uint64())).tolist() == [-1, 3]
