import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.estimators import best_complete
from benchkit.scores import (
    check,
    common_denominator,
    differences,
    integers,
    shrink,
    sum_by,
    totals,
    units,
)


def table(rows):
    return np.array(rows)


class TestValidation:
    def test_names_the_cell(self):
        with pytest.raises(InputError, match=r"model 1, item 0: correct \(5\) is not within 0..attempts \(4\)"):
            check(table([[4], [4]]), table([[1.0], [5.0]]))

    @pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf])
    def test_no_score(self, bad):
        with pytest.raises(InputError, match="model 0, item 1"):
            check(table([[1, 1]]), table([[1.0, bad]]))

    def test_shapes(self):
        with pytest.raises(InputError, match="one shape"):
            check(np.ones((2, 3)), np.ones((3, 2)))
        with pytest.raises(InputError, match="no models or no items"):
            check(np.ones((2, 0)), np.ones((2, 0)))
        with pytest.raises(InputError, match="cluster has 2 codes for 3 items"):
            check(np.ones((2, 3)), np.ones((2, 3)), np.zeros(2))
        with pytest.raises(InputError, match="whole numbers"):
            check(np.full((1, 1), 1.5), np.ones((1, 1)))

    def test_no_complete_model_has_no_best(self):
        with pytest.raises(InputError, match="no model has attempts on every item"):
            best_complete(table([[1, 0], [0, 1]]), table([[1, 0], [0, 1]]))


class TestTheory:
    @given(
        st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), min_size=4, max_size=4),
    )
    def test_mixed_attempts_are_exact(self, cells):
        n = np.array([c[0] for c in cells]).reshape(2, 2)
        y = np.array([min(c) for c in cells], dtype=float).reshape(2, 2)
        s = integers(n, y)
        assert s.exact
        for i in range(2):
            for j in range(2):
                assert Fraction(int(s.values[i, j]), s.denominator) == Fraction(int(y[i, j]), int(n[i, j]))

    @given(st.integers(1, 10**4), st.lists(st.integers(0, 10**4), min_size=1, max_size=8))
    @settings(max_examples=40, deadline=None)
    def test_the_least_denominator_is_found(self, q, numerators):
        values = np.array([min(k, q) / q for k in numerators])
        assert common_denominator(values) == math.lcm(*[Fraction(min(k, q), q).denominator for k in numerators])

    def test_denominators(self):
        assert common_denominator(np.array([0.0, 3.0])) == 1
        assert common_denominator(np.array([0.1, 0.25, 1 / 3])) == 60
        assert common_denominator(np.array([0.123457, 0.654321, 0.000001])) == 10**6
        assert common_denominator(np.array([0.1 + 0.2, 0.7])) == 10
        assert common_denominator(np.array([2**-0.5, 3**-0.5, 0.5, 5**-0.5])) is None

    def test_no_denominator_means_a_grid(self):
        y = np.array([[2**-0.5, 3**-0.5, 5**-0.5, 0.5]])
        s = integers(np.ones((1, 4), dtype=int), y)
        assert not s.exact
        np.testing.assert_allclose(s.values / s.denominator, y, atol=1 / s.denominator)

    def test_large_common_multiples_are_python_integers(self):
        n = np.arange(1, 101).reshape(2, 50)
        y = np.floor(n * 0.6)
        s = integers(n, y)
        assert s.exact and math.lcm(*range(1, 101)) % s.denominator == 0 and s.values.dtype == object
        assert Fraction(s.values[1, 7], s.denominator) == Fraction(int(y[1, 7]), int(n[1, 7]))
        total = sum(Fraction(int(a), int(b)) for a, b in zip(y[0], n[0], strict=True))
        assert totals(s.values)[0] == total * s.denominator

    def test_a_hopeless_multiple_is_a_grid(self):
        primes = [p for p in range(2, 6000) if all(p % q for q in range(2, math.isqrt(p) + 1))]
        n = np.array([primes])
        assert not integers(n, n / 1.0).exact

    def test_differences_of_python_integers_keep_their_proportions(self):
        n = np.array([[97, 89, 83, 79, 73, 71, 67, 61, 59, 53, 47], [1] * 11])
        y = np.array([[50.0, 1, 80, 0, 0, 0, 0, 0, 0, 0, 0], [0.0] * 11])
        s = integers(n * 1, y)
        d = differences(s, np.array([0]), np.array([1]), None, None)
        assert d.tolerance[0] == 0
        unit = Fraction(50, 97) / int(d.values[0, 0])
        assert [unit * int(x) for x in d.values[0, :3]] == [Fraction(50, 97), Fraction(1, 89), Fraction(80, 83)]

    def test_shrink_rounds_only_what_does_not_fit(self):
        row, rounded = shrink(np.array([3 * 10**40, -(10**40), 0], dtype=object))
        assert row.tolist() == [3, -1, 0] and not rounded
        row, rounded = shrink(np.array([3 * 10**40 + 1, -(10**40)], dtype=object))
        assert rounded and abs(row[0] / row[1] + 3) < 1e-12

    def test_best_complete_takes_the_first_on_ties(self):
        n = table([[1, 0], [4, 4], [8, 8], [4, 4]])
        y = table([[1, 0], [1, 2], [2, 4], [0, 1]])
        assert best_complete(n, y) == 1

    def test_units(self):
        codes, sizes = units(np.array([5, -1, 5, 2, -1]), 5)
        assert codes.tolist() == [1, 2, 1, 0, 3] and sizes.tolist() == [1, 2, 1, 1]
        assert sum_by(np.array([[1, 10, 2, 3, 20]]), codes).tolist() == [[3, 3, 10, 20]]
        assert sum_by(np.array([[1, 10**30]], dtype=object), np.array([0, 0])).tolist() == [[10**30 + 1]]
