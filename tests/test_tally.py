"""Attempts added up by pair, against plain dictionaries of fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit.formats import tally
from benchkit.formats.tally import NUMBERED, UNIT, Pairs, Tally, add_up, total, whole

ROW = st.tuples(
    st.integers(0, 4), st.integers(0, 5), st.one_of(st.sampled_from((0.0, 1.0, 0.5, 0.1)), st.floats(0, 1)),
    st.one_of(st.integers(0, 70), st.sampled_from((-1, 0, 62, 63, 93, NUMBERED))),
)  # fmt: skip


def added(rows: list[tuple[int, int, float, int]], cuts: list[int]) -> Tally:
    out = Tally()
    edges = [0, *sorted(c % (len(rows) + 1) for c in cuts), len(rows)]
    for a, b in pairwise(edges):
        part = rows[a:b]
        out.add(np.array([r[0] for r in part], np.int64), np.array([r[1] for r in part], np.int64),
                np.array([r[2] for r in part]), np.array([r[3] for r in part], np.int64))  # fmt: skip
    return out


class TestReference:
    @given(st.lists(ROW, min_size=1, max_size=60), st.lists(st.integers(0, 60), max_size=4))
    @settings(max_examples=300)
    def test_plain_sums(self, rows: list[tuple[int, int, float, int]], cuts: list[int]) -> None:
        scores: dict[tuple[int, int], list[float]] = defaultdict(list)
        numbers: dict[tuple[int, int], list[int]] = defaultdict(list)
        for m, j, score, number in rows:
            scores[m, j].append(score)
            numbers[m, j].append(number)
        sums = added(rows, cuts).sums()
        keys = list(zip(sums.model.tolist(), sums.item.tolist(), strict=True))
        assert sorted(keys) == sorted(scores)
        for k, key in enumerate(keys):
            mine, named = scores[key], numbers[key]
            exact = sum(Fraction(round(Fraction(s) * UNIT), UNIT) for s in mine)
            assert sums.attempts[k] == len(mine)
            assert sums.correct[k] == (mine[0] if len(mine) == 1 else float(exact))
            assert sums.correct[k] == pytest.approx(math.fsum(mine), abs=1e-12 * len(mine))
            bits = sum(1 << n for n in set(named)) if all(0 <= n <= 62 for n in named) else -1
            assert sums.numbers[k] == (bits if len(set(named)) == len(named) else -1)
            known = [n for n in named if n >= 0]
            unsure = len(known) < len(named) and len(named) > 1
            assert sums.again[k] == (len(set(known)) < len(known) or unsure)


class TestInvariance:
    @given(st.lists(ROW, min_size=1, max_size=40), st.randoms(), st.lists(st.integers(0, 40), max_size=4))
    def test_order_and_batches(self, rows: list[tuple[int, int, float, int]], draw: object, cuts: list[int]) -> None:
        def told(t: Tally) -> list[tuple[float, ...]]:
            s = t.sums()
            return sorted(zip(*(np.asarray(x).tolist() for x in s), strict=True))

        other = list(rows)
        draw.shuffle(other)  # type: ignore[attr-defined]
        assert told(added(rows, [])) == told(added(other, cuts))

    @given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=9), min_size=1, max_size=5))
    def test_sums_of_parts(self, parts: list[list[float]]) -> None:
        """What tables of parts hold adds up to what one table holds."""
        sums = [added([(0, 0, s, -1) for s in p], []).sums().correct[0] for p in parts]
        whole_sum = added([(0, 0, s, -1) for p in parts for s in p], []).sums().correct[0]
        got = add_up(np.array(sums), np.zeros(len(sums), np.int64), 1)[0]
        assert got == (whole_sum if sum(map(len, parts)) > 1 else pytest.approx(whole_sum, abs=5e-13))

    def test_fractions_are_carried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An int64 would overflow after nine million fractions of one pair; they are carried before."""
        monkeypatch.setattr(tally, "CARRY", 16)
        one = added([(0, 0, 0.75, -1)] * 1000, [100, 117, 600])
        assert one.sums().correct.tolist() == [750.0] and one.fractions.max() < 20 * UNIT

    def test_very_many_fractions_of_one_pair(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nine million of them overflow an int64 unless they are carried."""
        monkeypatch.setattr(tally, "CARRY", 1 << 10)
        count = 10_000_000
        got = add_up(np.full(count, 0.999999), np.zeros(count, np.int64), 1)
        assert got == pytest.approx(9_999_990, rel=1e-12)


class TestPairs:
    @given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=80), st.integers(1, 9))
    def test_numbers_stay(self, pairs: list[tuple[int, int]], step: int) -> None:
        for limit in (1 << 28, 0, 64):  # a table, sorted keys, a table that becomes sorted keys
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(tally, "TABLE", limit)
                found, seen = Pairs(), {}
                for k in range(0, len(pairs), step):
                    part = np.array(pairs[k : k + step], np.int64)
                    for pair, number in zip(pairs[k : k + step], found.of(*part.T).tolist(), strict=True):
                        assert seen.setdefault(pair, number) == number
                assert sorted(seen.values()) == list(range(found.count))
                for (m, j), n in seen.items():
                    assert (found.model[n], found.item[n]) == (m, j)

    def test_sparse_pairs_take_little_memory(self) -> None:
        found = Pairs()
        assert found.of(np.array([1 << 20, 3]), np.array([1 << 20, 5])).tolist() == [1, 0] and found.table is None


class TestTheory:
    def test_decimals_add_up_to_decimals(self) -> None:
        """0.1 + 0.2 is 0.3, and ten times 0.1 is 1."""
        assert added([(0, 0, 0.1, -1), (0, 0, 0.2, -1)], []).sums().correct.tolist() == [0.3]
        assert added([(0, 0, 0.1, -1)] * 10, []).sums().correct.tolist() == [1.0]
        assert added([(0, 0, 0.12345678, -1)] * 3, []).sums().correct.tolist() == [0.37037034]

    @pytest.mark.parametrize("n", range(1, 17))
    def test_parts_add_up_to_the_whole(self, n: int) -> None:
        assert added([(0, 0, 1 / n, -1)] * n, []).sums().correct.tolist() == [1.0]
        assert add_up(np.full(n, 1 / n), np.zeros(n, np.int64), 1).tolist() == [1.0]

    @given(st.integers(0, 2047), st.integers(0, UNIT - 1))
    def test_a_sum_below_2048_gives_its_numbers_back(self, ones: int, rest: int) -> None:
        value = total(np.array([ones]), np.array([rest]))
        assert value[0] == Fraction(ones * UNIT + rest, UNIT).__float__()
        full = np.floor(value)
        back = int(full[0]) * UNIT + int(whole(value - full)[0])
        assert back == ones * UNIT + rest
