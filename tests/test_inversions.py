"""benchkit.inversions: pairs that two orders rank oppositely."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit import inversions


def brute(x, y):
    comparable = inverted = 0
    for a in range(len(x)):
        for b in range(len(x)):
            if x[a] > x[b] and y[a] != y[b]:
                comparable += 1
                inverted += y[a] < y[b]
    return comparable, inverted


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=0, max_size=20)


class TestTheory:
    @given(pairs=pairs, long=st.booleans())
    def test_brute_force(self, pairs, long):
        x, y = np.array([p[0] for p in pairs], dtype=int), np.array([p[1] for p in pairs], dtype=float)
        expected = brute(x, y)
        if long and len(pairs) > 0:
            assert [int(k[0]) for k in inversions._long(x[None], y[None])] == list(expected)
        got = inversions.count(x[None], y[None])
        assert (int(got.comparable[0]), int(got.inverted[0])) == expected

    def test_long_rows_with_many_distinct_values(self):
        rng = np.random.default_rng(0)
        x, y = rng.integers(0, 150, (2, 300)), rng.random((2, 300)).round(2)
        got = inversions.count(x, y)
        for k in range(2):
            assert (got.comparable[k], got.inverted[k]) == brute(x[k], y[k])

    def test_reversed_order(self):
        x = np.arange(500)[None]
        assert inversions.count(x, -x) == inversions.Pairs(np.array([124750]), np.array([124750]))
        assert inversions.count(x, x).inverted[0] == 0

    def test_python_integers_beyond_int64(self):
        big = 10**30
        x = np.array([[big, big + 1, big]], dtype=object)
        got = inversions.count(x, np.array([[0.0, 0.0, 1.0]]))
        assert (got.comparable[0], got.inverted[0]) == (1, 1)
        wide = np.tile(x, (1, 100))
        assert inversions.count(wide, np.tile([[0.0, 0.0, 1.0]], (1, 100))).comparable[0] == 100 * 100

    @pytest.mark.parametrize("bits", [60, 80, 1100, 4000])
    def test_python_integers_that_floats_can_t_tell_apart(self, bits):
        rng = np.random.default_rng(bits)
        x = np.array([[2**bits + int(k) for k in row] for row in rng.integers(0, 60, (3, 240))], dtype=object)
        y = rng.integers(0, 5, (3, 240))
        got = inversions.count(x, y)
        for k in range(3):
            assert (got.comparable[k], got.inverted[k]) == brute(x[k], y[k])

    def test_many_rows_at_once(self):
        rng = np.random.default_rng(7)
        x, y = rng.integers(0, 30, (9, 210)), rng.integers(0, 3, (9, 210))
        got = inversions.count(x, y)
        for k in range(9):
            assert (got.comparable[k], got.inverted[k]) == brute(x[k], y[k])


class TestInvariance:
    @pytest.mark.parametrize("n", [40, 400])
    def test_order_of_the_row(self, n):
        rng = np.random.default_rng(n)
        x, y = rng.integers(0, 9, (3, n)), rng.integers(0, 4, (3, n))
        order = rng.permutation(n)
        first, second = inversions.count(x, y), inversions.count(x[:, order], y[:, order])
        assert np.array_equal(first.comparable, second.comparable) and np.array_equal(first.inverted, second.inverted)

    def test_blocks(self, monkeypatch):
        rng = np.random.default_rng(1)
        x, y = rng.integers(0, 9, (50, 12)), rng.integers(0, 4, (50, 12))
        whole = inversions.count(x, y)
        monkeypatch.setattr(inversions, "_BLOCK", 300)
        assert np.array_equal(inversions.count(x, y).inverted, whole.inverted)
