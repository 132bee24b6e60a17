"""Exact draws of difficulties given abilities, against the density on a fine grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.irt import conditional
from benchkit.irt.conditional import sample


def repeated(n: Any, y: float, theta: Any, mean: float, sd: float, count: int, seed: int = 0) -> np.ndarray:
    """Many draws at one and the same draw of the abilities."""
    n, theta = np.asarray(n), np.asarray(theta, float)
    given = np.tile(theta, (count, 1))
    draws = sample(n[:, None], np.array([y]), given, np.full(count, mean), np.full(count, sd), ["x"], seed=seed)
    return draws[0].astype(float)


def distribution(n: Any, y: float, theta: Any, mean: float, sd: float, x: np.ndarray) -> np.ndarray:
    """The distribution function at sorted x by the trapezoidal rule, from the density as the docstring has it."""
    n, theta = np.asarray(n), np.asarray(theta, float)
    log = -y * x - (n[:, None] * np.logaddexp(0, theta[:, None] - x)).sum(0) - (x - mean) ** 2 / (2 * sd**2)
    p = np.exp(log - log.max())
    area = np.concatenate([[0], np.cumsum((p[1:] + p[:-1]) / 2 * np.diff(x))])
    return area / area[-1]


def distance(n: Any, y: float, theta: Any, mean: float, sd: float, count: int = 20_000, seed: int = 0) -> float:
    """Kolmogorov's sqrt(S) sup |F_S - F|, which exceeds 1.95 with probability .001."""
    draws = np.sort(repeated(n, y, theta, mean, sd, count, seed))
    wide = draws[-1] - draws[0]
    x = np.linspace(draws[0] - wide, draws[-1] + wide, 60_001)
    f = np.interp(draws, x, distribution(n, y, theta, mean, sd, x))
    k = np.arange(count)
    return float(np.sqrt(count) * max(np.abs(f - k / count).max(), np.abs(f - (k + 1) / count).max()))


TWELVE = np.linspace(-2, 3, 12)


class TestTheory:
    @pytest.mark.parametrize(
        ("n", "y", "theta", "mean", "sd"),
        [
            ([4] * 12, 20, TWELVE, 0.5, 3.0),
            ([4] * 12, 0, TWELVE, 0.5, 3.0),  # all wrong: skewed, held by the prior
            ([4] * 12, 48, TWELVE, 0.5, 3.0),  # all right
            ([4] * 12, 47.3, TWELVE, 0.5, 30.0),  # fractions, a wide prior
            ([10**6] * 12, 3 * 10**6, TWELVE, 0.5, 3.0),  # millions of attempts: sd .0008
            ([10**6] * 12, 0, TWELVE, 0.5, 3.0),
            ([10**6] * 12, 12 * 10**6, TWELVE, 0.5, 100.0),
            ([2**31 - 1] * 3, 2**31, [-2, 0, 1], 0.5, 3.0),
            ([1], 1, [0.0], 0.0, 100.0),
            ([1], 0, [0.0], 0.0, 1e-3),  # the prior alone
            ([4, 0, 1], 3, [-300, 0, 300], 0.0, 200.0),  # far apart, one cell absent
            ([3, 3], 3, [-6, 6], 0.0, 5.0),  # flat between two abilities
        ],
    )  # fmt: skip
    def test_the_distribution_is_that_of_the_density(self, n, y, theta, mean, sd):
        assert distance(n, y, theta, mean, sd) < 1.95

    def test_the_distance_would_notice(self):
        """The normal approximation of an item that all got wrong is told apart by these draws."""
        draws = repeated([4] * 12, 0, TWELVE, 0.5, 3.0, 20_000)
        x = np.linspace(-10, 30, 60_001)
        f = distribution([4] * 12, 0, TWELVE, 0.5, 3.0, x)
        p = np.diff(f)
        centre = (x[1:] + x[:-1]) / 2
        mean = (p * centre).sum()
        sd = np.sqrt((p * (centre - mean) ** 2).sum())
        assert draws.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(20_000))
        assert draws.std() == pytest.approx(sd, rel=0.03)
        normal = np.sort(np.random.default_rng(0).normal(mean, sd, 20_000))
        gap = np.abs(np.interp(normal, x, f) - np.arange(20_000) / 20_000).max()
        assert np.sqrt(20_000) * gap > 3

    @given(
        st.lists(st.tuples(st.integers(0, 20), st.floats(-8, 8), st.floats(0, 1)), min_size=1, max_size=6),
        st.floats(-5, 5), st.floats(0.01, 20), st.integers(0, 2**32),
    )  # fmt: skip
    @settings(max_examples=60)
    def test_any_density(self, cells, mean, sd, seed):
        n = np.array([c[0] for c in cells])
        y = float(sum(round(c[0] * c[2]) for c in cells))
        assert distance(n, y, [c[1] for c in cells], mean, sd, count=2000, seed=seed) < 2.6  # probability 3e-6

    def test_nothing_tried_is_the_prior(self):
        draws = repeated([0, 0], 0, [1.0, 2.0], -1.0, 2.0, 20_000)
        assert draws.mean() == pytest.approx(-1, abs=0.06) and draws.std() == pytest.approx(2, rel=0.03)

    def test_each_draw_has_its_own_abilities_and_prior(self):
        """Abilities that jump, and a prior that is loose for them and tight at zero for the others."""
        count = 3000
        theta = np.where(np.arange(count) % 2, 40.0, -40.0)[:, None]
        sd = np.where(np.arange(count) % 3, 1e3, 1e-2)
        draws = sample(np.array([[100]]), np.array([50.0]), theta, np.zeros(count), sd, ["x"], seed=1)[0]
        loose = np.arange(count) % 3 > 0
        np.testing.assert_allclose(draws[loose], theta[loose, 0], atol=1)
        np.testing.assert_allclose(draws[~loose], 0, atol=0.06)


class TestInvariance:
    @pytest.fixture
    def data(self):
        r = np.random.default_rng(0)
        n = r.integers(0, 5, (7, 23))
        y = r.binomial(n, 0.4).sum(0).astype(float)
        theta = r.normal(0, 2, (2500, 7)).astype(np.float32)
        return n, y, theta, r.normal(0, 0.1, 2500), r.uniform(1, 3, 2500), [f"q{j}" for j in range(23)]

    @pytest.mark.parametrize("values", [1, 3000, 10**7])
    def test_size_of_the_blocks(self, data, values, monkeypatch):
        n, y, *rest = data
        want = sample(n, y, *rest, seed=3)
        monkeypatch.setattr(conditional, "_VALUES", values)
        np.testing.assert_array_equal(sample(n, y, *rest, seed=3), want)

    def test_number_of_threads(self, data, monkeypatch):
        n, y, *rest = data
        want = sample(n, y, *rest, seed=3)
        monkeypatch.setattr("os.cpu_count", lambda: 7)
        np.testing.assert_array_equal(sample(n, y, *rest, seed=3), want)

    def test_other_items_in_the_table(self, data):
        n, y, *rest, names = data
        want = sample(n, y, *rest, names, seed=3)
        some = [20, 3, 11]
        got = sample(n[:, some], y[some], *rest, [names[j] for j in some], seed=3)
        np.testing.assert_array_equal(got, want[some])

    def test_models_without_attempts(self, data):
        n, y, theta, *rest = data
        more = np.concatenate([theta, theta[:, :1]], axis=1)
        got = sample(np.concatenate([n, np.zeros((1, 23), int)]), y, more, *rest, seed=3)
        np.testing.assert_array_equal(got, sample(n, y, theta, *rest, seed=3))

    def test_seed_and_name(self, data):
        n, y, *rest, names = data
        one = sample(n, y, *rest, names, seed=3)
        assert not (one == sample(n, y, *rest, names, seed=4)).any(1).all()
        same = sample(n[:, [0, 0]], y[[0, 0]], *rest, ["a", "b"], seed=3)
        assert abs(np.corrcoef(same - same.mean(0))[0, 1] + 1) < 1e-3  # of two: opposite deviations
        assert (same[0] != same[1]).mean() > 0.99


class TestValidation:
    def test_messages(self):
        ok: tuple[Any, ...] = (np.array([[1]]), np.array([1.0]))
        with pytest.raises(InputError, match="not above 0"):
            sample(*ok, np.zeros((4, 1)), np.zeros(4), np.array([1, 1, 0, 1.0]), ["a"], seed=0)
        with pytest.raises(InputError, match="not a finite"):
            sample(*ok, np.full((4, 1), np.nan), np.zeros(4), np.ones(4), ["a"], seed=0)
        with pytest.raises(InputError, match="350 logits"):
            sample(*ok, np.full((4, 1), 352.0), np.ones(4), np.ones(4), ["a"], seed=0)
