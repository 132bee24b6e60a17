"""benchkit.difficulty: normalisations of difficulty and their inverses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchkit.difficulty import (
    NORMALIZATIONS,
    failure_probability,
    normalize,
    normalize_draws,
    slope,
    to_logit,
)
from benchkit.errors import InputError

logits = st.lists(st.floats(-30, 30, allow_subnormal=False), min_size=2, max_size=30)
THETA = np.array([-1.5, 0.25, 3.0])


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


class TestValidation:
    def test_names_the_methods(self):
        with pytest.raises(InputError, match="'zscore' is not known: use minmax, failure, logistic, rank, none"):
            normalize([0, 1], "zscore")

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_says_which_item_is_not_finite(self, bad):
        with pytest.raises(InputError, match="item number 3 of 4 is not a finite number"):
            normalize([0, 1, bad, 2])

    def test_ability_must_be_finite(self):
        with pytest.raises(InputError, match="ability"):
            normalize([0, 1], "failure", [np.nan])

    @pytest.mark.parametrize("theta", [None, []])
    def test_failure_needs_models(self, theta):
        with pytest.raises(InputError, match="the table has none"):
            normalize([0, 1], "failure", theta)

    def test_none_needs_the_unit_interval(self):
        with pytest.raises(InputError, match=r"in \[0,1\], not 1.5 \(item number 2 of 2\)"):
            normalize([0, 1.5], "none")

    def test_two_dimensions(self):
        with pytest.raises(InputError, match="2 dimensions"):
            normalize([[0.0, 1.0]])

    @pytest.mark.parametrize("method", NORMALIZATIONS)
    def test_no_items_is_undefined(self, method):
        z, scale, reason = normalize([], method, THETA)
        assert z is None and scale is None and reason == "no items"

    @pytest.mark.parametrize("method", ["minmax", "rank"])
    @pytest.mark.parametrize(("b", "words"), [([0.3], "one item"), ([0.3, 0.3, 0.3], "all difficulties are equal")])
    def test_no_range_is_undefined_with_a_reason(self, method, b, words):
        z, _, reason = normalize(b, method)
        assert z is None and reason.startswith(words)

    @pytest.mark.parametrize("method", ["failure", "logistic", "none"])
    def test_no_range_is_no_trouble_elsewhere(self, method):
        z, _, reason = normalize([0.3, 0.3], method, THETA)
        assert reason is None and z[0] == z[1] and 0 < z[0] < 1


class TestInvariance:
    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic", "rank"])
    @given(b=logits, seed=st.integers(0, 99))
    def test_order_of_items(self, method, b, seed):
        order = np.random.default_rng(seed).permutation(len(b))
        z, shuffled = normalize(b, method, THETA).z, normalize(np.array(b)[order], method, THETA).z
        if z is None:
            assert shuffled is None
        else:
            assert np.array_equal(z[order], shuffled)

    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic", "rank"])
    @given(b=logits)
    def test_within_bounds_and_in_the_order_of_b(self, method, b):
        z = normalize(b, method, THETA).z
        if z is not None:
            assert z.min() >= 0 and z.max() <= 1
            assert (np.diff(z[np.argsort(b, kind="stable")]) >= -1e-15).all()

    def test_blocks_of_the_failure_curve(self):
        b = np.linspace(-9, 9, 70_001)
        z = failure_probability(b, THETA)
        assert np.array_equal(z[-5:], failure_probability(b[-5:], THETA))

    @given(b=arrays(np.float64, 5, elements=st.floats(-1e308, 1e308)))
    def test_minmax_of_any_finite_numbers(self, b):
        z = normalize(b).z
        assert z is None or (np.isfinite(z).all() and z.min() == 0 and z.max() == 1)


class TestTheory:
    def test_minmax(self):
        assert normalize([0, 0, 0, 1, 4]).z.tolist() == [0, 0, 0, 0.25, 1]

    def test_failure_is_the_mean_failure_probability(self):
        b = np.array([-2.0, 0.1, 5.0])
        expected = [1 - np.mean(sigmoid(THETA - x)) for x in b]
        np.testing.assert_allclose(normalize(b, "failure", THETA).z, expected, rtol=1e-14)

    def test_failure_of_extreme_difficulties_neither_overflows_nor_warns(self):
        with np.errstate(all="raise", under="ignore"):
            z = normalize([-1e4, 1e4], "failure", [0.0, 1e4 + 1]).z
        assert z[0] == 0 and z[1] == pytest.approx((1 + sigmoid(-1)) / 2)

    def test_logistic(self):
        np.testing.assert_allclose(normalize([-1, 2], "logistic").z, sigmoid([-1, 2]), rtol=1e-15)

    def test_rank_shares_midranks(self):
        # midranks 1, 2.5, 2.5, 4 of four items
        assert normalize([-1, 7, 7, 9], "rank").z.tolist() == [0, 0.5, 0.5, 1]

    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic"])
    @given(share=st.floats(0.001, 0.999))
    def test_to_logit_inverts(self, method, share):
        b = np.array([-3.0, 0.5, 4.0])
        scale = normalize(b, method, THETA).scale
        logit, reason = to_logit(share, scale)
        assert reason is None
        if method == "minmax":
            back = (logit + 3) / 7
        elif method == "logistic":
            back = sigmoid(logit)
        else:
            back = np.mean(sigmoid(logit - THETA))
        assert back == pytest.approx(share, abs=1e-12)

    def test_to_logit_of_one_ability(self):
        assert to_logit(0.5, normalize([0, 1], "failure", [2.0]).scale)[0] == pytest.approx(2, abs=1e-12)

    @pytest.mark.parametrize("method", ["rank", "none"])
    def test_to_logit_without_inverse_has_a_reason(self, method):
        logit, reason = to_logit(0.5, normalize([0, 1], method).scale)
        assert logit is None and reason

    def test_to_logit_at_the_end_has_a_reason(self):
        logit, reason = to_logit(1.0, normalize([0, 1], "logistic").scale)
        assert logit is None and "finite" in reason

    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic"])
    def test_slope_is_the_derivative(self, method):
        b, h = np.array([-3.0, 0.5, 1.0, 4.0]), 1e-6
        scale = normalize(b, method, THETA).scale
        moved = {
            "minmax": lambda x: (x + 3) / 7,
            "failure": lambda x: failure_probability(x, THETA),
            "logistic": sigmoid,
        }[method]
        np.testing.assert_allclose(slope(b, scale), (moved(b + h) - moved(b - h)) / (2 * h), rtol=1e-7)

    def test_slope_of_the_others(self):
        assert slope(np.array([0.0, 1.0]), normalize([0, 1], "none").scale).tolist() == [1, 1]
        assert slope(np.array([0.0, 1.0]), normalize([0, 1], "rank").scale) is None

    @pytest.mark.parametrize("method", NORMALIZATIONS)
    def test_draws_are_normalised_one_by_one(self, method):
        rng = np.random.default_rng(3)
        b = rng.random((4, 50)).astype(np.float32) if method == "none" else rng.normal(0, 3, (4, 50)).astype(np.float32)
        theta = rng.normal(size=(4, 7)).astype(np.float32)
        expected = [normalize(row, method, t).z for row, t in zip(b.astype(float), theta.astype(float), strict=True)]
        np.testing.assert_allclose(normalize_draws(b, method, theta), expected, atol=2e-7)

    def test_interpolated_failure_curve_of_many_items(self):
        rng = np.random.default_rng(4)
        b = rng.uniform(-10, 10, (2, 9000)).astype(np.float32)
        theta = rng.normal(size=(2, 5)).astype(np.float32)
        exact = [failure_probability(row, t) for row, t in zip(b.astype(float), theta.astype(float), strict=True)]
        np.testing.assert_allclose(normalize_draws(b, "failure", theta), exact, atol=3e-7)

    def test_a_draw_without_range_is_nan_under_minmax(self):
        z = normalize_draws(np.array([[1, 1], [0, 2]], np.float32), "minmax", None)
        assert np.isnan(z[0]).all() and z[1].tolist() == [0, 1]
