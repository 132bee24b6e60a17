"""benchkit.detection: the intervals of difficulty in which an improvement hides."""

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit

from benchkit.detection import Improvement, covered_sets, detection, minimal, success_probabilities
from benchkit.errors import InputError
from benchkit.rerun import least_power
from benchkit.spread import gaps

units = st.lists(st.integers(0, 60).map(lambda k: k / 60), min_size=1, max_size=9)
widths = st.integers(1, 60).map(lambda k: k / 60)


def improvement(width=0.2, lift=0.2, attempts=2, alpha=0.05, success=None, of="made up"):
    return Improvement(width, lift, attempts, alpha, None if success is None else np.asarray(success), of)


def covered(z, start, width):
    """The items of the open interval, where an end that meets an item up to rounding leaves it out."""
    return frozenset(j for j, x in enumerate(z) if start + 1e-9 < x < start + width - 1e-9)


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"width": 0}, "width of an improvement"),
            ({"width": 1.1}, "at most 1"),
            ({"lift": 0}, "lift of an improvement"),
            ({"lift": 1}, "between 0 and 1"),
            ({"attempts": 0}, "attempts must be"),
            ({"alpha": 0}, "alpha must lie"),
        ],
    )
    def test_messages(self, options, words):
        with pytest.raises(InputError, match=words):
            detection([0.1, 0.5], improvement(**options))

    def test_a_model_that_is_not_there(self):
        with pytest.raises(InputError, match="--ability: no model 'x' in the input"):
            success_probabilities(np.zeros(2), np.zeros(1), ["m"], "x")


class TestInvariance:
    @given(z=units, width=widths, seed=st.integers(0, 9))
    def test_order_of_items(self, z, width, seed):
        z = np.array(sorted(set(z)))
        p = 0.05 + 0.7 * (1 - z)
        order = np.random.default_rng(seed).permutation(z.size)
        ids = [f"q{j}" for j in range(z.size)]
        first = detection(z, improvement(width, success=p)).document(ids)
        second = detection(z[order], improvement(width, success=p[order])).document([ids[j] for j in order])
        assert first == second


class TestTheory:
    @given(z=units, width=widths)
    def test_every_interval_holds_one_of_the_sets_compared(self, z, width):
        """Starts on a fine grid, which the difficulties and the width lie on too, and between its points."""
        ordered = np.array(sorted(z))
        starts, sets = covered_sets(ordered, width)
        found = {frozenset(range(lo, hi)) for lo, hi in sets}
        assert len(found) == len(sets)
        for start, (lo, hi) in zip(starts, sets, strict=True):
            assert 0 <= start <= 1 - width + 1e-12 and covered(ordered, start, width) == frozenset(range(lo, hi))
        least = {frozenset(range(lo, hi)) for lo, hi in sets[minimal(sets)]} if all(found) else {frozenset()}
        assert least <= found
        for k in range(241):
            if k / 240 <= 1 - width + 1e-12:
                here = covered(ordered, k / 240, width)
                assert any(one <= here for one in least)
        if all(found):
            assert all(not other < one for one in least for other in found)

    @given(z=units, width=widths, lift=st.sampled_from([0.1, 0.5]), attempts=st.integers(1, 3))
    def test_least_power_by_trying_every_interval(self, z, width, lift, attempts):
        z = np.array(sorted(z))
        p = (1 - lift) * np.random.default_rng(len(z)).random(z.size)
        found = detection(z, improvement(width, lift, attempts, success=p))
        tried = {covered(z, k / 240, width) for k in range(241) if k / 240 <= 1 - width + 1e-12}
        for case, rates in ((found.fitted, p), (found.even, np.full(z.size, (1 - lift) / 2))):
            powers = [
                least_power(rates, lift, attempts, np.array([[min(one), max(one) + 1]])).power if one else 0.05
                for one in tried
            ]
            assert case.power == pytest.approx(min(powers), abs=1e-12)
            assert frozenset(case.covered) in tried and case.infeasible == 0
            assert covered(z, case.lower, width) == set(case.covered)
            assert case.upper == pytest.approx(case.lower + width, abs=1e-12)

    @given(z=units, width=widths, attempts=st.sampled_from([1, 3, 50, 1000]), alpha=st.sampled_from([0.01, 0.05]))
    def test_alpha_at_any_number_of_attempts_where_the_width_fits_a_gap(self, z, width, attempts, alpha):
        z = np.array(sorted(z))
        assume(width <= gaps(z).max() + 1e-12)
        p = np.full(z.size, 0.5)
        found = detection(z, improvement(width, 0.3, attempts, alpha, success=p))
        for case in (found.fitted, found.even):
            assert (case.power, case.power_se, case.method, case.covered) == (alpha, 0, "exact", ())

    @given(z=units, width=widths)
    def test_above_alpha_where_it_does_not(self, z, width):
        z = np.array(sorted(z))
        assume(width > gaps(z).max() + 1e-9)
        p = np.random.default_rng(0).uniform(0.01, 0.69, z.size)
        found = detection(z, improvement(width, 0.3, 2, success=p))
        assert found.fitted.power > 0.0501 and found.even.power > 0.0501
        assert found.fitted.covered and found.even.covered

    def test_the_maximum_gap_as_it_is_printed(self):
        """The width of a gap, as a sum of decimals, fits into it."""
        for seed in range(20):
            z = np.sort(np.random.default_rng(seed).random(30))
            widest = float(gaps(z).max())
            assert detection(z, improvement(widest)).even.power == 0.05
            assert detection(z, improvement(widest + 1e-9)).even.power > 0.05

    def test_goes_to_one_with_the_attempts(self):
        z = np.array([0.1, 0.35, 0.6, 0.9])
        powers = []
        for attempts in (1, 5, 30, 150, 400):
            found = detection(z, improvement(0.35, 0.3, attempts, success=[0.6, 0.5, 0.4, 0.2]))
            powers.append((found.fitted.power, found.even.power))
        assert powers == sorted(powers) and min(powers[-1]) > 0.99 and max(powers[0]) < 0.12

    def test_sets_of_one_size_differ(self):
        """Where every interval holds one item, the fitted power is that of the item which hides best."""
        z, p = np.array([0.2, 0.5, 0.8]), np.array([0.7, 0.4, 0.05])
        found = detection(z, improvement(0.4, 0.2, 3, success=p))
        each = [least_power(p, 0.2, 3, np.array([[j, j + 1]])).power for j in range(3)]
        assert found.fitted.power == pytest.approx(min(each), abs=1e-13) and found.fitted.covered == (2,)
        assert found.fitted.sets == found.even.sets == 3

    def test_infeasible_sets(self):
        z = np.array([0.1, 0.4, 0.7, 0.9])
        found = detection(z, improvement(0.35, 0.2, 2, success=[0.95, 0.9, 0.8, 0.5]))
        assert found.fitted.covered == (2,) and found.fitted.infeasible == 2 and found.even.infeasible == 0
        none = detection(z, improvement(0.35, 0.2, 2, success=[0.95] * 4)).document("abcd")["fitted"]
        assert none["power"] is None and "above 1 - lift" in none["power_reason"] and "lower" not in none
        assert none["sets"] == 0 and none["infeasible"] == len(covered_sets(z, 0.35)[1])

    def test_the_whole_scale(self):
        found = detection(np.array([0.0, 0.3, 1.0]), improvement(1.0, 0.3, 2))
        assert found.even.covered == (1,) and (found.even.lower, found.even.upper) == (0, 1)

    def test_success_probabilities(self):
        b, theta, a = np.array([-1.0, 0.5, 3]), np.array([0.2, -2]), np.array([0.5, 1, 2])
        p, what = success_probabilities(b, theta, ["m", "n"])
        assert p == pytest.approx(expit(theta[:, None] - b).mean(0), abs=1e-15) and "2 models" in what
        p, what = success_probabilities(b, theta, ["m", "n"], "n", a)
        assert p == pytest.approx(expit(a * (-2 - b)), abs=1e-15) and what.endswith("of n")
        assert success_probabilities(b, np.zeros(0), [])[0] is None

    def test_document(self):
        z = np.array([0.2, 0.5, 0.8])
        out = detection(z, improvement(0.4, 0.2, 3)).document(["a", "b", "c"])
        json.dumps(out, allow_nan=False)
        assert list(out) == ["width", "lift", "attempts", "alpha", "test", "fitted", "fitted_reason", "even"]
        assert out["fitted"] is None and "no models" in out["fitted_reason"] and "power of this test" in out["test"]
        assert list(out["even"]) == (
            ["success", "power", "power_se", "method", "lower", "upper", "covered", "sets", "infeasible"]
        )
        assert out["even"]["covered"] == ["a"] and out["even"]["success"].startswith("(1 - lift)/2 = 0.4")

    def test_many_items(self):
        """500 items, ten attempts: simulated, with a standard error."""
        rng = np.random.default_rng(2)
        z = np.sort(rng.random(500))
        found = detection(z, improvement(0.05, 0.2, 10, success=0.05 + 0.75 * (1 - z)))
        for case in (found.fitted, found.even):
            assert case.method == "simulation" and 0 < case.power_se < 0.001 and 0.05 < case.power < 1
            assert len(case.covered) == pytest.approx(25, abs=24) and len(case.covered) >= 1
        # of K |S| lift, in standard deviations of the difference where p = .4 and q = .6
        size = len(found.even.covered)
        near = 0.5 * math.erfc((1.6449 - 10 * 0.2 * size / math.sqrt(20 * 0.24 * 500)) / math.sqrt(2))
        assert found.even.power == pytest.approx(near, abs=0.005)
