"""benchkit.identical: rows of results that are the same, and whether that can be chance."""

import csv
import gzip
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.identical import agreement, groups

DATA = Path(__file__).parent / "data"


def naive(n, y):
    """Groups by comparing every pair of rows cell by cell."""
    rows, columns = n.shape
    mixed = [any(y[i] > 0) and any(y[i][j] < n[i][j] for j in range(columns)) for i in range(rows)]
    found, placed = [], set()
    for i in range(rows):
        if i in placed or not mixed[i]:
            continue
        alike = [k for k in range(i, rows) if all(n[i][j] == n[k][j] and y[i][j] == y[k][j] for j in range(columns))]
        placed |= set(alike)
        if len(alike) > 1:
            found.append(alike)
    return found


@st.composite
def tables(draw):
    shape = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    size = shape[0] * shape[1]
    n = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    y = np.array([draw(st.integers(0, int(k))) for k in n], dtype=float)
    return n.reshape(shape), y.reshape(shape)


class TestTheory:
    @given(table=tables())
    def test_groups_by_the_definition(self, table):
        n, y = table
        assert [g.rows.tolist() for g in groups(n, y)] == naive(n, y)
        assert all(math.isnan(g.chance) for g in groups(n, y))

    def test_all_right_all_wrong_and_nothing_are_no_groups(self):
        n = np.array([[2, 2], [2, 2], [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], [2, 2]])
        y = np.array([[2, 2], [2, 2], [0, 0], [0, 0], [0, 0], [0, 0], [1, 2], [1, 2.0]])
        assert [g.rows.tolist() for g in groups(n, y)] == [[6, 7]]

    def test_same_rates_of_other_attempts_and_other_holes_differ(self):
        n = np.array([[2, 2, 0], [4, 4, 0], [2, 2, 2], [2, 2, 0]])
        y = np.array([[1, 0, 0], [2, 0, 0], [1, 0, 0], [1, -0.0, 0]])
        assert [g.rows.tolist() for g in groups(n, y)] == [[0, 3]]

    @pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 9, 30])
    @pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(99, 100), Fraction(1)])
    def test_agreement_is_the_sum_of_squared_probabilities(self, size, p):
        exact = sum((math.comb(size, k) * p**k * (1 - p) ** (size - k)) ** 2 for k in range(size + 1))
        assert agreement(np.array([size]), np.array([float(p)]))[0] == pytest.approx(float(exact), rel=1e-12)

    @pytest.mark.parametrize("size", [63, 64, 65, 200, 5000])
    def test_agreement_of_many_attempts_needs_fewer_points(self, size):
        for p in (0.5, 0.03):
            logs = [math.lgamma(size + 1) - math.lgamma(k + 1) - math.lgamma(size - k + 1) + k * math.log(p)
                    + (size - k) * math.log1p(-p) for k in range(size + 1)]  # fmt: skip
            exact = math.fsum(math.exp(2 * x) for x in logs)
            assert agreement(np.array([size]), np.array([p]))[0] == pytest.approx(exact, rel=1e-9)

    def test_chance_by_listing_all_answers(self):
        n = np.array([[2, 1, 0], [2, 1, 0], [1, 1, 1]])
        y = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0.0]])
        theta, b = np.array([0.5, 0.5, -1.0]), np.array([0.2, -0.7, 3.0])
        p = 1 / (1 + np.exp(b[:2] - 0.5))
        expected = 0.0
        for answers in product((0, 1), repeat=6):  # two attempts on the first item and one on the second, twice
            x, z = answers[:3], answers[3:]
            if x[0] + x[1] == z[0] + z[1] and x[2] == z[2]:
                rates = [p[0], p[0], p[1]] * 2
                expected += math.prod(r if a else 1 - r for a, r in zip(answers, rates, strict=True))
        (group,) = groups(n, y, theta, b)
        assert group.rows.tolist() == [0, 1] and group.chance == pytest.approx(expected, rel=1e-12)

    def test_fractional_cells_are_left_out_of_the_chance(self):
        n, y = np.ones((2, 3), int), np.array([[1, 0.25, 0.5], [1, 0.25, 0.5]])
        (group,) = groups(n, y, np.zeros(2), np.zeros(3))
        assert group.chance == pytest.approx(0.5)

    def test_items_are_rows_of_the_table_turned(self):
        rng = np.random.default_rng(3)
        theta, b = rng.normal(size=6), np.array([0.3, 0.3, -1.0])
        n = np.full((6, 3), 2)
        y = np.array([[1, 1, 2], [0, 0, 1], [2, 2, 2], [1, 1, 0], [0, 0, 2], [2, 2, 2.0]])
        (group,) = groups(np.ascontiguousarray(n.T), np.ascontiguousarray(y.T), -b, -theta)
        p = 1 / (1 + np.exp(0.3 - theta))
        q = 1 - p
        assert group.rows.tolist() == [0, 1]
        assert group.chance == pytest.approx(np.prod(p**4 + (2 * p * q) ** 2 + q**4), rel=1e-12)


class TestReference:
    def test_math500_has_13_rows_that_repeat_another(self):
        # the count is also that of `tail -n +2 math500.csv | cut -d, -f2- | sort | uniq -d | wc -l`
        with gzip.open(DATA / "math500.csv.gz", "rt") as f:
            rows = list(csv.reader(f))[1:]
        y = np.array([[float(x) for x in row[1:]] for row in rows])
        found = groups(np.ones(y.shape, int), y)
        assert len(found) == 13 and all(len(g.rows) == 2 for g in found)
        for g in found:
            first, second = (rows[i][0] for i in g.rows)
            assert first.removesuffix("_one_shot") == second.removesuffix("_zero_shot")


class TestCoverage:
    def test_chance_is_how_often_models_of_these_abilities_are_alike(self):
        rng = np.random.default_rng(1)
        theta, b = 0.4, np.array([-1.0, 0.0, 0.5])
        n = np.array([1, 2, 3])
        draws = rng.binomial(n, 1 / (1 + np.exp(b - theta)), size=(300, 3)).astype(float)
        sizes = np.unique(draws, axis=0, return_counts=True)[1]
        share = (sizes * (sizes - 1)).sum() / (300 * 299)
        y = np.array([[1, 1, 1.0], [1, 1, 1]])
        (group,) = groups(np.tile(n, (2, 1)), y, np.full(2, theta), b)
        assert share == pytest.approx(group.chance, abs=0.02)
