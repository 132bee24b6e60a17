"""Text for people: aligned by what a terminal shows, wrapped, in natural order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.text import Show, View, natural, render, width, wrap


class TestWidth:
    @pytest.mark.parametrize(
        ("text", "columns"),
        (("", 0), ("abc", 3), ("naïve", 5), ("nai\u0308ve", 5), ("模型", 4), ("ｶﾅ", 2), ("한국", 4), ("a\u20dd", 1)),
    )
    def test_columns(self, text: str, columns: int) -> None:
        assert width(text) == columns

    def test_columns_are_aligned(self) -> None:
        rows = [{"id": name, "n": n} for name, n in (("模型", 1), ("nai\u0308ve", 20), ("plain text", 3))]
        lines = render(View([], [Show("id", "id"), Show("n", "n")]), rows).splitlines()
        assert [width(line) for line in lines] == [14] * 4
        assert lines[1] == "模型         1"


class TestWrap:
    @given(st.text("ab 模", max_size=60), st.integers(8, 40))
    def test_words_stay_whole_and_lines_fit(self, text: str, columns: int) -> None:
        lines = wrap(text, columns)
        assert " ".join(line.strip() for line in lines).split() == text.split()
        for line in lines:
            assert width(line) <= columns or len(line.split()) == 1
            assert line == line.rstrip()

    def test_continued_lines_are_indented_and_full(self) -> None:
        assert wrap("one two three four", 10) == ["one two", "  three", "  four"]
        assert wrap("one two three four", 18) == ["one two three four"]
        assert wrap("nothing: ", 80) == ["nothing:"]

    def test_a_summary_without_rows(self) -> None:
        assert render(View(["a " * 60], []), []) == "a " * 39 + "a\n  " + "a " * 19 + "a\n"


class TestOrder:
    def test_numbers_by_value(self) -> None:
        names = ["q10", "q2", "q1", "q02", "2", "10", "a", "q", "q1b", "q1a10", "q1a9", "9" * 5000]
        want = ["2", "10", "9" * 5000, "a", "q", "q1", "q1a9", "q1a10", "q1b", "q2", "q02", "q10"]
        assert sorted(names, key=natural) == want

    @given(st.lists(st.text("a0१1-")))
    def test_any_text_can_be_sorted(self, names: list[str]) -> None:
        assert sorted(sorted(names, key=natural)) == sorted(names)
