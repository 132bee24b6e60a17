"""Names that differ only in how they are written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from conftest import Shell

from benchkit import suspect
from benchkit.tables import RESPONSES


def table(*pairs: tuple[str, str]) -> pa.Table:
    """A responses table in which these models tried these items, once each."""
    columns = {"model": [m for m, _ in pairs], "item": [j for _, j in pairs]}
    columns |= {"attempts": [1] * len(pairs), "correct": [1.0] * len(pairs), "cluster": [None] * len(pairs)}
    return pa.table(columns, RESPONSES.schema())


class TestModels:
    @pytest.mark.parametrize("other", ("gpt-4o", "GPT 4o", "GPT_4o", " GPT-4o ", "gpt\u00a04O", "GPT--4o"))
    def test_case_and_separators(self, other: str) -> None:
        pairs = sorted((m, j) for m in ("GPT-4o", other) for j in "xy")
        first, second = sorted(("GPT-4o", other))
        assert suspect.doubts(table(*pairs)) == [f"'{first}' and '{second}' {suspect.MODELS}"]

    @pytest.mark.parametrize("other", ("GPT4o", "GPT-4", "GPT-4o-mini", "GPT-04o", "openai/GPT-4o", "GPT-4o.0"))
    def test_others_are_others(self, other: str) -> None:
        assert suspect.doubts(table(("GPT-4o", "x"), (other, "x"))) == []


class TestItems:
    @pytest.mark.parametrize(("a", "b"), (("7", "7.0"), ("007", "7"), ("q07", "q7"), ("Q 7", "q_7"), ("x/010", "x/10")))
    def test_no_model_tried_both(self, a: str, b: str) -> None:
        assert suspect.doubts(table(("m", a), ("n", b))) == [f"'{a}' and '{b}' {suspect.ITEMS}"]
        assert suspect.doubts(table(("m", a), ("n", a), ("n", b))) == []

    @pytest.mark.parametrize(("a", "b"), (("7", "70"), ("1.05", "1.5"), ("10", "1"), ("0", "00.5"), ("a", "aa"),
                                        ("-1", "1"), ("v1.0", "v1"), ("1.5.0", "1.5")))  # fmt: skip
    def test_others_are_others(self, a: str, b: str) -> None:
        assert suspect.doubts(table(("m", a), ("n", b))) == []

    def test_how_many_there_are(self) -> None:
        one = [("m", str(k)) for k in range(1, 4)] + [("m", "x")]
        other = [("n", f"0{k}") for k in range(1, 4)] + [("n", "y")]
        assert suspect.doubts(table(*one, *other)) == [f"'01' and '1' (and 2 more such groups) {suspect.ITEMS}"]


class TestNames:
    @pytest.mark.parametrize("name", ("total", "Average", "ALL", "Overall", "rank", " mean "))
    def test_summaries(self, name: str) -> None:
        assert suspect.doubts(table(("m", name), ("m", "x"))) == [f"item '{name}' {suspect.NAMES}"]
        pairs = sorted([("m", "x"), (name, "x"), (name, "sum")])
        assert suspect.doubts(table(*pairs)) == [f"model '{name}' (and 1 more) {suspect.NAMES}"]

    @pytest.mark.parametrize("name", ("NA", "NaN", "None", "<NA>", " "))
    def test_missing(self, name: str) -> None:
        assert suspect.doubts(table((name, "x"))) == [f"model '{name}' {suspect.NO_NAMES}"]

    def test_others_are_names(self) -> None:
        assert suspect.doubts(table(("total-1", "averages"), ("total-1", "summary"), ("total-1", "n"))) == []


class TestCommand:
    def test_of_the_whole_and_not_of_a_part(self, sh: Shell) -> None:
        """In the first part no model tried both items; in the second one did."""
        (sh.folder / "a.csv").write_text("model,item,score\nm,7,1\nn,7.0,0\nN,x,1\n")
        (sh.folder / "b.csv").write_text("model,item,score\nm,7.0,1\n")
        said = f"bk-matrix: warning: 'N' and 'n' {suspect.MODELS}"
        part = sh("bk-matrix a.csv -o a.arrow").err.splitlines()
        assert part == [said, f"bk-matrix: warning: '7' and '7.0' {suspect.ITEMS}"]
        one, parts = (
            sh(c) for c in ("bk-matrix a.csv b.csv -t json", "bk-matrix -q --merge sum a.arrow b.csv -t json")
        )
        assert one.err.splitlines() == [said]
        assert json.loads(one.out)["warnings"] == json.loads(parts.out)["warnings"] == [said.split("warning: ")[1]]
