"""benchkit.best_set: the models that no other is proven to beat; the twin here counts every pair."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import best_set as module
from benchkit.best_set import beaten_from, best_set, greatest_down, unbeaten_up_to
from benchkit.flips import binomial_tails, sign_flip
from benchkit.levels import floor_float
from benchkit.scores import differences, integers, totals


def every_pair(scores, level, codes=None):
    """The definition: all ordered pairs, one sign-flip test each."""
    n = len(scores.values)
    limit = floor_float((1 - Fraction(level)) / (n - 1))
    j, k = (x.ravel() for x in np.indices((n, n)))
    p = sign_flip(differences(scores, k, j, None, codes), "greater").p.reshape(n, n)
    np.fill_diagonal(p, 1.0)
    return ~(p <= limit).any(axis=1)


def table(seed, models, items, most, spread, kind="equal"):
    rng = np.random.default_rng(seed)
    n = np.full((models, items), most) if kind == "equal" else rng.integers(1, most + 1, (models, items))
    p = 1 / (1 + np.exp(rng.normal(0, 1.5, items) - rng.normal(0, spread, models)[:, None]))
    y = rng.binomial(n, p).astype(float)
    return n, y * 0.25 if kind == "fractions" else y


class TestTheory:
    @pytest.mark.parametrize("kind", ["equal", "unequal", "fractions"])
    @pytest.mark.parametrize(("most", "spread"), [(1, 0.0), (1, 0.6), (3, 0.3), (4, 1.0)])
    @pytest.mark.parametrize("clustered", [False, True])
    def test_is_every_pair_tested(self, kind, most, spread, clustered):
        for seed, items in itertools.product(range(3), (6, 25, 80)):
            scores = integers(*table(seed, 14, items, most, spread, kind))
            codes = np.arange(items) // 2 if clustered else None
            for level in ("0.5", "0.9", "0.99999"):
                got = best_set(scores, totals(scores.values), level, codes)
                np.testing.assert_array_equal(got, every_pair(scores, level, codes))

    def test_many_near_equal_models(self):
        scores = integers(*table(0, 300, 60, 1, 0.4))
        got = best_set(scores, totals(scores.values), "0.95")
        np.testing.assert_array_equal(got, every_pair(scores, "0.95"))
        assert 0 < got.sum() < 300

    @given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.data())
    @settings(max_examples=200, deadline=None)
    def test_bounds_hold(self, sizes, data):
        """Wherever z alone decides, the p-value agrees."""
        signs = data.draw(st.lists(st.sampled_from([1, 1, 1, -1]), min_size=len(sizes), max_size=len(sizes)))
        d = np.array(sizes) * signs
        p = sign_flip(differences(integers(np.full((2, d.size), 9), np.array([np.maximum(d, 0), np.maximum(-d, 0)])),
                                  np.array([0]), np.array([1]), None, None), "greater").p[0]  # fmt: skip
        s2 = float((d * d).sum())
        z, kappa = d.sum() / math.sqrt(s2), float((d**4).sum()) / s2**2
        for t in (Fraction(1, 3), Fraction(1, 20), Fraction(1, 10**4), Fraction(1, 10**12)):
            kappas, safe = unbeaten_up_to(t)
            if z >= beaten_from(t) * (1 + 1e-12):
                assert p <= t
            if z <= safe[np.searchsorted(kappas[:-1], kappa * (1 + 1e-12))]:
                assert p > t

    def test_the_lower_bound_is_of_use(self):
        """At 1e-5, where a normal tail has z = 4.26: most pairs of 200 and of 2000 equal terms need no counting."""
        kappas, safe = unbeaten_up_to(Fraction(1, 10**5))
        assert safe[np.searchsorted(kappas, 1 / 200)] > 2.8 and safe[np.searchsorted(kappas, 1 / 2000)] > 3.4
        assert beaten_from(Fraction(1, 10**5)) < 4.52

    @pytest.mark.parametrize("limit", [0.3, 0.05, 1e-5, 1e-40])
    def test_greatest_down(self, limit):
        for units, lead in itertools.product((1, 7, 60, 300), (1, 2, 5, 30, 120)):
            want = -1
            for c in range((units - lead) // 2 + 1 if lead <= units else 0):
                if binomial_tails(lead + 2 * c, [c])[c] <= limit:
                    want = c
            assert greatest_down(lead, units, limit) == want


class TestInvariance:
    def test_blocks(self, monkeypatch):
        scores = integers(*table(1, 120, 40, 4, 0.3))
        sums = totals(scores.values)
        whole = best_set(scores, sums, "0.9")
        monkeypatch.setattr(module, "BLOCK", 8)
        monkeypatch.setattr(module, "ROWS", 200)
        np.testing.assert_array_equal(best_set(scores, sums, "0.9"), whole)

    def test_order_of_models_and_items(self):
        n, y = table(2, 40, 30, 4, 0.5)
        rng = np.random.default_rng(0)
        rows, columns = rng.permutation(40), rng.permutation(30)
        a, b = integers(n, y), integers(n[rows][:, columns], y[rows][:, columns])
        first = best_set(a, totals(a.values), "0.95")
        np.testing.assert_array_equal(best_set(b, totals(b.values), "0.95"), first[rows])


class TestValidation:
    def test_a_level_that_no_test_can_reach_keeps_everyone(self):
        n, y = np.ones((2, 30), dtype=int), np.array([[1.0] * 30, [0.0] * 30])
        scores = integers(n, y)
        for level in ("0." + "9" * 300, 1 - Fraction(1, 2**31)):
            assert best_set(scores, [30, 0], level).tolist() == [True, True]
        assert best_set(scores, [30, 0], 1 - Fraction(1, 2**30)).tolist() == [True, False]

    def test_numbers_too_large_for_int64(self):
        primes = [p for p in range(2, 200) if all(p % q for q in range(2, p))]
        n = np.array([primes, primes[::-1], primes])
        y = np.array([n[0], n[1] // 2, n[2] // 3], dtype=float)
        scores = integers(n, y)
        assert scores.values.dtype == object
        assert best_set(scores, totals(scores.values), "0.95").tolist() == [True, False, False]
