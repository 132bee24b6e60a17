"""Draws of difficulties given abilities and rho, against the beta-binomial density on a fine grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from benchkit.errors import InputError
from benchkit.irt.conditional import sample
from benchkit.irt.conditional_beta import sample_beta


def repeated(n: Any, y: Any, theta: Any, mean: float, sd: float, rho: float, count: int) -> np.ndarray:
    same = np.full(count, 1.0)
    n, y = np.asarray(n)[:, None], np.asarray(y, float)[:, None]
    given = np.tile(np.asarray(theta, float), (count, 1))
    return sample_beta(n, y, given, mean * same, sd * same, rho * same, ["x"], seed=0)[0].astype(float)


def distance(n: Any, y: Any, theta: Any, mean: float, sd: float, rho: float, count: int = 4000) -> float:
    """Kolmogorov's sqrt(S) sup |F_S - F|, which exceeds 1.95 with probability .001."""
    draws = np.sort(repeated(n, y, theta, mean, sd, rho, count))
    n, y, theta = (np.asarray(z, float)[:, None] for z in (n, y, theta))
    wide = draws[-1] - draws[0]
    x = np.linspace(draws[0] - wide, draws[-1] + wide, 40_001)
    kappa = (1 - rho) / rho
    a, b = kappa / (1 + np.exp(x - theta)), kappa / (1 + np.exp(theta - x))
    log = (gammaln(y + a) - gammaln(a) + gammaln(n - y + b) - gammaln(b)).sum(0) - (x - mean) ** 2 / (2 * sd**2)
    p = np.exp(log - log.max())
    area = np.concatenate([[0], np.cumsum((p[1:] + p[:-1]) / 2 * np.diff(x))])
    f = np.interp(draws, x, area / area[-1])
    k = np.arange(count)
    return float(np.sqrt(count) * max(np.abs(f - k / count).max(), np.abs(f - (k + 1) / count).max()))


TWELVE = np.linspace(-2, 3, 12)
MIXED = [4, 3, 4, 2, 0, 1, 2, 0, 0, 1, 0, 4]


class TestTheory:
    @pytest.mark.parametrize("rho", [0.001, 0.1, 0.5, 0.95])
    @pytest.mark.parametrize(
        ("n", "y", "theta", "sd"),
        [
            ([4] * 12, MIXED, TWELVE, 3.0),
            ([4] * 12, [0] * 12, TWELVE, 3.0),
            ([100] * 12, [90, 3, 4, 52, 0, 1, 2, 0, 0, 1, 0, 4], TWELVE, 3.0),  # cells that contradict each other
            ([10**6] * 3, [10**5, 10, 10**6], [0, 0, 0], 3.0),
            ([5, 5], [5, 0], [-9, 9], 20.0),  # two modes, or a plateau
            ([5, 5], [0, 5], [-9, 9], 20.0),
        ],
    )
    def test_the_distribution_is_that_of_the_density(self, n, y, theta, sd, rho):
        assert distance(n, y, theta, 0.5, sd, rho) < 1.95

    def test_without_over_dispersion_it_is_the_binomial(self):
        count = 20_000
        got = repeated([4] * 12, MIXED, TWELVE, 0.5, 3.0, 1e-9, count)
        given, same = np.tile(TWELVE, (count, 1)), np.full(count, 1.0)
        want = sample(np.full((12, 1), 4), np.array([sum(MIXED)]), given, 0.5 * same, 3 * same, ["x"], seed=1)[0]
        assert got.mean() == pytest.approx(want.mean(), abs=0.02) and got.std() == pytest.approx(want.std(), rel=0.03)

    def test_nothing_tried_is_the_prior(self):
        draws = repeated([0, 0], [0, 0], [1.0, 2.0], -1.0, 2.0, 0.3, 20_000)
        assert draws.mean() == pytest.approx(-1, abs=0.06) and draws.std() == pytest.approx(2, rel=0.03)


class TestInvariance:
    def test_other_items_in_the_table(self):
        r = np.random.default_rng(0)
        n = r.integers(0, 5, (5, 6))
        y = r.binomial(n, 0.4).astype(float)
        theta, rho = r.normal(0, 2, (1100, 5)), r.uniform(0.05, 0.5, 1100)
        rest = theta, np.zeros(1100), np.full(1100, 2.0), rho
        names = [f"q{j}" for j in range(6)]
        want = sample_beta(n, y, *rest, names, seed=3)
        got = sample_beta(n[:, [4, 1]], y[:, [4, 1]], *rest, ["q4", "q1"], seed=3)
        np.testing.assert_array_equal(got, want[[4, 1]])


class TestValidation:
    def test_messages(self):
        ok = np.zeros((4, 1)), np.zeros(4), np.ones(4)
        with pytest.raises(InputError, match="fractions"):
            sample_beta(np.array([[2]]), np.array([[0.5]]), *ok, np.full(4, 0.1), ["a"], seed=0)
        for rho in (0.0, 1.0, np.nan):
            with pytest.raises(InputError, match="not between 0 and 1"):
                sample_beta(np.array([[2]]), np.array([[1.0]]), *ok, np.full(4, rho), ["a"], seed=0)
