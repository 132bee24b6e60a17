import numpy as np
import pytest

from benchkit.estimators import MEAN, estimator, expected
from benchkit.imputation import Imputer, expected_scores, missing_cells, pooled, probabilities
from benchkit.irt.pointwise import Draws
from benchkit.resampling import resampled_ranks


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def draws(count=50, models=3, items=4, seed=0, **more):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 1, (count, models)), rng.normal(0, 1, (count, items))
    return Draws(theta.astype(np.float32), b.astype(np.float32), **more)


TABLE = np.array([[4, 0, 4, 4], [2, 2, 0, 0], [1, 1, 1, 3]])


class TestTheory:
    def test_missing_cells_get_the_usual_attempts(self):
        cells = missing_cells(TABLE)
        assert cells.models.tolist() == [0, 1, 1] and cells.items.tolist() == [1, 2, 3]
        assert cells.attempts.tolist() == [4, 2, 2]

    def test_probabilities(self):
        d = draws(a=np.exp(np.random.default_rng(1).normal(0, 0.3, (50, 4))).astype(np.float32))
        got = probabilities(d, slice(10, 12), np.array([2, 0]), np.array([3, 1]))
        for row, s in enumerate((10, 11)):
            for e, (i, j) in enumerate(((2, 3), (0, 1))):
                assert got[row, e] == pytest.approx(sigmoid(d.a[s, j] * (d.theta[s, i] - d.b[s, j])), rel=1e-6)

    @pytest.mark.parametrize("text", ["mean", "pass@2", "all@2"])
    def test_expected_scores_and_pooled(self, text, monkeypatch):
        d, of, cells = draws(rho=np.full(50, 0.2)), estimator(text), missing_cells(TABLE)
        p = sigmoid(d.theta[:, :, None].astype(float) - d.b[:, None, :])
        want = expected(p, of, d.rho[:, None, None])
        np.testing.assert_allclose(
            expected_scores(d, cells, of), want.mean(axis=0)[cells.models, cells.items], rtol=1e-9
        )
        mean, lower, upper = pooled(d, np.array([2, 0]), np.array([0, 1, 3]), of, (0.1, 0.9))
        each = np.sort(want[:, [2, 0]][:, :, [0, 1, 3]].mean(axis=2), axis=0)
        np.testing.assert_allclose(mean, each.mean(axis=0))
        np.testing.assert_allclose([lower, upper], [each[4], each[44]])
        monkeypatch.setattr("benchkit.imputation.VALUES", 7)
        np.testing.assert_allclose(pooled(d, np.array([2, 0]), np.array([0, 1, 3]), of, (0.1, 0.9))[0], mean)

    @pytest.mark.parametrize("rho", [None, 0.3])
    @pytest.mark.parametrize("text", ["mean", "pass@2"])
    def test_draws_have_the_expected_score(self, text, rho):
        d, of, cells = draws(rho=None if rho is None else np.full(50, rho)), estimator(text), missing_cells(TABLE)
        imputer = Imputer(d, cells, of, 12, seed=3)
        got = np.concatenate([x for _, x in imputer.take(0, 20_000)])
        assert set(np.unique(got)) <= set(range(13))
        np.testing.assert_allclose(got.mean(axis=0) / 12, expected_scores(d, cells, of), atol=0.015)

    def test_binomial_spread_and_overdispersion(self):
        """At one draw the variance of the mean of n attempts is p (1 - p) (1 + (n - 1) rho)/n."""
        cells = missing_cells(TABLE)
        for rho in (0.0, 0.5):
            d = Draws(*(np.zeros((1, k), np.float32) for k in (3, 4)), rho=np.full(1, rho) if rho else None)
            got = np.concatenate([x for _, x in Imputer(d, cells, MEAN, 4, seed=1).take(0, 40_000)])[:, 0] / 4
            assert got.var() == pytest.approx(0.25 * (1 + 3 * rho) / 4, rel=0.05)

    def test_a_certain_fit_is_no_resampling_at_all(self):
        """With probabilities of 0 and 1 the imputed table is ranked as if it had been complete."""
        n = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]])
        y = np.array([[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]])
        sure = Draws(np.zeros((5, 3)), np.tile([900.0, -900.0, -900.0, 0.0], (5, 1)))
        full = y.copy()
        full[0, 2] = full[1, 1] = 1
        fill = Imputer(sure, missing_cells(n), MEAN, 1, 0).fill(3, None, 4)
        got = resampled_ranks(y, 500, 7, filled=fill)
        np.testing.assert_array_equal(got, resampled_ranks(full, 500, 7))

    def test_clusters(self):
        n = np.array([[1, 1, 0, 1], [1, 1, 1, 1]])
        sure = Draws(np.zeros((5, 2)), np.full((5, 4), -900.0))
        codes = np.array([0, 0, 1, 1])
        fill = Imputer(sure, missing_cells(n), MEAN, 1, 0).fill(2, codes, 4)
        sums = np.array([[1, 1], [1, 1]])
        got = resampled_ranks(sums, 400, 3, filled=fill)
        np.testing.assert_array_equal(got, resampled_ranks(np.array([[1, 2], [1, 1]]), 400, 3))


class TestInvariance:
    def test_chunks(self, monkeypatch):
        d = draws(rho=np.full(50, 0.2))
        cells = missing_cells(TABLE)
        whole = np.concatenate([x for _, x in Imputer(d, cells, MEAN, 12, 0).take(0, 100)])
        monkeypatch.setattr("benchkit.imputation.VALUES", 10)
        again = Imputer(d, cells, MEAN, 12, 0)
        parts = [x for start in (0, 30, 35) for _, x in again.take(start, {0: 30, 30: 5, 35: 65}[start])]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
