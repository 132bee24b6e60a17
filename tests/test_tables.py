"""The contract's row checks and casts: what is refused, and which row the message names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit import parameters, responses
from benchkit.casting import to_contract
from benchkit.errors import InputError
from benchkit.tables import (
    PARAMETERS,
    RESPONSES,
    TABLES,
    TYPES,
    Table,
    check_parameters,
    check_responses,
    codes,
    first_duplicate,
)

GOOD = {"model": "a", "item": "q", "attempts": 4, "correct": 2.0}
ITEM = {"kind": "item", "id": "q", "mean": 0.0, "sd": 1.0, "lower": -2.0, "upper": 2.0}


def table(rows: list[dict[str, Any]], spec: Table) -> pa.Table:
    schema = spec.schema()
    return pa.table([pa.array([r.get(f.name) for r in rows], f.type) for f in schema], schema=schema)


def cast(spec: Table, **columns: Any) -> pa.Table:
    arrays = {k: v if isinstance(v, pa.ChunkedArray) else pa.chunked_array([v]) for k, v in columns.items()}
    rows = len(next(iter(arrays.values())))
    return to_contract(arrays, rows, spec, lambda i: i + 2, lambda c: f"no column '{c}'")


class TestValidation:
    @pytest.mark.parametrize(
        ("change", "said"),
        (
            ({"model": ""}, "row 3: model is empty"),
            ({"item": ""}, "row 3: item is empty"),
            ({"attempts": 0}, r"row 3: attempts \(0\) is below 1"),
            ({"attempts": -1}, r"row 3: attempts \(-1\) is below 1"),
            ({"correct": 4.5}, r"row 3: correct \(4.5\) is larger than attempts \(4\)"),
            ({"correct": -0.5}, r"row 3: correct \(-0.5\) is below 0"),
            ({"correct": float("nan")}, r"row 3: correct \(nan\) is not a finite number"),
            ({"correct": float("inf")}, r"row 3: correct \(inf\) is not a finite number"),
            ({}, "rows 2 and 3: model 'a' and item 'q' stand twice"),
            ({"model": "b", "cluster": "x"}, "rows 2 and 3: item 'q' is in no cluster and in 'x'"),
        ),
    )
    def test_responses(self, change: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            check_responses(table([GOOD, GOOD | change], RESPONSES), lambda i: i + 2)

    @pytest.mark.parametrize(
        ("change", "said"),
        (
            ({"kind": "thing"}, "row 3: kind 'thing' is none of hyper, item, item_a, model"),
            ({"id": ""}, "row 3: id is empty"),
            ({"mean": float("nan")}, r"row 3: mean \(nan\) is not a finite number"),
            ({"sd": -1.0}, r"row 3: sd \(-1\) is below 0"),
            ({"lower": 3.0}, r"row 3: lower \(3\) is above upper \(2\)"),
            ({}, "rows 2 and 3: item 'q' stands twice"),
        ),
    )
    def test_parameters(self, change: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            check_parameters(table([ITEM, ITEM | change], PARAMETERS), lambda i: i + 2)

    def test_draws_are_finite_and_as_many_everywhere(self) -> None:
        rows: list[dict[str, Any]] = [ITEM | {"draws": [0.0, 1.0]}, ITEM | {"id": "r"}]
        for bad in (float("nan"), float("inf"), None):
            rows[1]["draws"] = [0.0, bad]
            with pytest.raises(InputError, match="row 1: a draw is not a finite number"):
                check_parameters(table(rows, PARAMETERS), lambda i: i)
        with pytest.raises(InputError, match="row 1: 1 draws where other rows have 2"):
            check_parameters(table([rows[0], ITEM | {"id": "r", "draws": [0.0]}], PARAMETERS), lambda i: i)
        check_parameters(table([rows[0], ITEM | {"id": "r"}], PARAMETERS), lambda i: i)  # a row may have none

    def test_numbers_are_cast_by_value_or_refused(self) -> None:
        ids = pa.array(["a", "b"])
        good = {"model": ids, "item": ids, "correct": pa.array([1, 0])}
        for attempts in (
            pa.array([1.0, 2.0]),
            pa.array(["1", " 2 "]),
            pa.array(["1.0", "2e0"]),
            pa.array([1, 2], pa.uint8()),
        ):
            assert cast(RESPONSES, attempts=attempts, **good)["attempts"].to_pylist() == [1, 2]
        for attempts, said in (
            (pa.array([1.0, 2.5]), r"row 3: attempts \(2.5\) is not a whole number"),
            (pa.array([1, 2**31]), r"row 3: attempts \(2147483648\) is not a whole number below 2\^31"),
            (pa.array(["1", "1_0"]), "row 3: attempts .'1_0'. is not a whole number"),
            (pa.array(["1", "inf"]), "row 3: attempts .'inf'. is not a whole number"),
            (pa.array(["1", ""]), "row 3: attempts is missing"),
            (pa.array([1, None]), "row 3: attempts is missing"),
            (pa.array([True, False]), "column 'attempts' holds bool values where a whole number is needed"),
            (pa.array([b"1", b"2"]), "column 'attempts' holds binary values"),
        ):
            with pytest.raises(InputError, match=said):
                cast(RESPONSES, attempts=attempts, **good)
        with pytest.raises(InputError, match="no column 'attempts'"):
            cast(RESPONSES, **good)

    def test_identifiers_are_text_or_whole_numbers(self) -> None:
        rest = {"item": pa.array(["q"]), "attempts": pa.array([1]), "correct": pa.array([1])}
        assert cast(RESPONSES, model=pa.array([7]), **rest)["model"].to_pylist() == ["7"]
        for bad in (pa.array([7.0]), pa.array([True]), pa.array([["a"]])):
            with pytest.raises(InputError, match="identifiers are text"):
                cast(RESPONSES, model=bad, **rest)


class TestTheory:
    @given(st.lists(st.text(max_size=3) | st.none(), min_size=1, max_size=30))
    def test_codes_sort_by_code_point(self, values: list[str | None]) -> None:
        chunks = pa.chunked_array([pa.array(values[:5], pa.utf8()), pa.array(values[5:], pa.utf8())])
        at, names = codes(chunks)
        assert names == sorted({v for v in values if v is not None})
        assert [names[k] if k >= 0 else None for k in at] == values

    @given(st.lists(st.integers(0, 9), max_size=12))
    def test_first_duplicate(self, keys: list[int]) -> None:
        again = [(keys.index(k), i) for i, k in enumerate(keys) if k in keys[:i]]
        found = first_duplicate(np.array(keys, np.int64))
        assert (found is None) == (not again)
        if found:
            a, b = found
            assert keys[a] == keys[b] and a < b and b == again[0][1]


class TestArrays:
    def test_wide(self) -> None:
        rows = [GOOD | {"cluster": "x"}, GOOD | {"item": "r"}, GOOD | {"model": "B", "item": "r", "correct": 3.5}]
        w = responses.wide(table(rows, RESPONSES))
        assert w.models == ["B", "a"] and w.items == ["q", "r"]
        assert w.attempts.tolist() == [[0, 4], [4, 4]] and w.correct.tolist() == [[0, 3.5], [2, 2]]
        assert w.cluster is not None and len(set(w.cluster.tolist())) == 2
        assert responses.wide(table(rows[1:], RESPONSES)).cluster is None

    def test_group(self) -> None:
        rows = [ITEM | {"id": i, "draws": [1.0 * k, 2.0 * k], "boundary": k > 1} for k, i in enumerate("abc")]
        g = parameters.group(table(rows, PARAMETERS), "item")
        assert g.ids == ["a", "b", "c"] and g.boundary is not None and g.boundary.tolist() == [False, False, True]
        assert g.draws is not None and g.draws.tolist() == [[0, 1, 2], [0, 2, 4]]
        assert parameters.group(table(rows, PARAMETERS), "model").ids == []
        with pytest.raises(InputError, match="no row of kind 'item'"):
            parameters.group(table([ITEM | {"kind": "model"}], PARAMETERS), "item")


def test_every_column_has_a_known_type_and_a_meaning() -> None:
    for spec in TABLES:
        names = [c.name for c in spec.columns]
        assert len(set(names)) == len(names) and all(c.type in TYPES and c.meaning for c in spec.columns)
