"""The Laplace approximation against brute force."""

import numpy as np
import pytest

from benchkit.irt.laplace import laplace
from benchkit.irt.model import Data, Priors, check_data, sigmoid


def simulate(seed, models, items, attempts=4, level=0.5, sd_theta=1.0, sd_b=1.5, missing=0.0):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(level, sd_theta, models), rng.normal(0, sd_b, items)
    n = np.full((models, items), attempts)
    n[rng.random(n.shape) < missing] = 0
    return check_data(n, rng.binomial(n, sigmoid(theta[:, None] - b)).astype(float))


def log_posterior(x, data: Data, priors: Priors, sigma_theta, sigma_b):
    """Straight from the model: theta, b, mu_b at fixed standard deviations."""
    n_models, n_items = data.attempts.shape
    theta, b, mu = x[:n_models], x[n_models:-1], x[-1]
    total = -0.5 * (theta**2).sum() / sigma_theta**2 - 0.5 * ((b - mu) ** 2).sum() / sigma_b**2
    total -= 0.5 * mu**2 / priors.mu_b**2
    for i in range(n_models):
        for j in range(n_items):
            e = theta[i] - b[j]
            total += data.correct[i, j] * e - data.attempts[i, j] * np.logaddexp(0, e)
    return total


def derivatives(f, x, h=1e-4):
    """Gradient and Hessian by central differences."""
    size = len(x)
    e = np.eye(size) * h
    gradient = np.array([(f(x + e[k]) - f(x - e[k])) / (2 * h) for k in range(size)])
    hessian = np.array(
        [
            [
                (f(x + e[a] + e[b]) - f(x + e[a] - e[b]) - f(x - e[a] + e[b]) + f(x - e[a] - e[b])) / (4 * h * h)
                for b in range(size)
            ]
            for a in range(size)
        ]
    )
    return gradient, hessian


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 5), (1, 4), (4, 1)])
class TestTheory:
    def test_mode_and_curvature_against_brute_force(self, shape):
        data, priors = simulate(1, *shape, missing=0.15 if min(shape) > 1 else 0), Priors(3.0, 2.0, 1.5)
        fit = laplace(data, priors)
        assert fit.converged
        x = np.concatenate([fit.theta, fit.b, [fit.mu_b]])
        gradient, hessian = derivatives(lambda x: log_posterior(x, data, priors, fit.sigma_theta, fit.sigma_b), x)
        assert np.abs(gradient).max() < 1e-6
        sd = np.sqrt(np.diag(np.linalg.inv(-hessian)))
        np.testing.assert_allclose(np.concatenate([fit.sd_theta, fit.sd_b, [fit.sd_mu_b]]), sd, rtol=1e-4)

    def test_standard_deviations_solve_their_equation(self, shape):
        data, priors = simulate(2, *shape), Priors()
        fit = laplace(data, priors)
        x = np.concatenate([fit.theta, fit.b, [fit.mu_b]])
        _, hessian = derivatives(lambda x: log_posterior(x, data, priors, fit.sigma_theta, fit.sigma_b), x)
        cov = np.linalg.inv(-hessian)
        n = shape[0]
        ss_theta = (fit.theta**2).sum() + np.trace(cov[:n, :n])
        v, m = cov[n:-1, n:-1], cov[n:-1, -1]
        ss_b = ((fit.b - fit.mu_b) ** 2).sum() + (np.diag(v) - 2 * m + cov[-1, -1]).sum()
        for sigma, ss, size, s in (
            (fit.sigma_theta, ss_theta, shape[0], priors.sigma_theta),
            (fit.sigma_b, ss_b, shape[1], priors.sigma_b),
        ):
            assert sigma**4 / s**2 + (size - 1) * sigma**2 == pytest.approx(ss, rel=2e-3)


class TestInvariance:
    def test_order_of_rows_and_columns(self):
        data = simulate(3, 7, 12, missing=0.2)
        rng = np.random.default_rng(0)
        rows, columns = rng.permutation(7), rng.permutation(12)
        a = laplace(data, Priors())
        b = laplace(Data(data.attempts[rows][:, columns], data.correct[rows][:, columns]), Priors())
        np.testing.assert_allclose(b.theta, a.theta[rows], atol=1e-5)
        np.testing.assert_allclose(b.sd_b, a.sd_b[columns], atol=1e-5)

    @pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
    def test_both_sides_of_the_schur_complement_agree(self, shape):
        # with mu_b pinned to 0 the model is symmetric: b of the swapped table is theta, failures are successes
        data = simulate(4, *shape)
        swapped = Data(data.attempts.T.copy(), (data.attempts - data.correct).T.copy())
        a, b = laplace(data, Priors(0.01, 2.0, 1.0)), laplace(swapped, Priors(0.01, 1.0, 2.0))
        np.testing.assert_allclose(a.b, b.theta, atol=2e-3)
        np.testing.assert_allclose(a.sd_b, b.sd_theta, rtol=2e-3)

    def test_absent_pairs_are_not_wrong_answers(self):
        data = simulate(5, 6, 8)
        n, y = data.attempts.copy(), data.correct.copy()
        n[2, 3] = y[2, 3] = 0
        absent = laplace(Data(n, y), Priors())
        n[2, 3] = 4
        wrong = laplace(Data(n, y), Priors())
        assert wrong.theta[2] < absent.theta[2] - 0.02 and wrong.b[3] > absent.b[3] + 0.1

    def test_attempts_in_one_cell_or_spread_over_equal_items(self):
        # one item with 3 attempts and the same item with 3 million: the estimate comes to the rate
        n, y = np.array([[3_000_000, 3], [3_000_000, 3]]), np.array([[1_500_000.0, 1], [1_200_000, 2]])
        fit = laplace(check_data(n, y), Priors())
        rate = sigmoid(fit.theta - fit.b[0])
        np.testing.assert_allclose(rate, [0.5, 0.4], atol=1e-4)

    def test_warm_start_ends_at_the_same_place(self):
        data = simulate(6, 10, 30)
        a = laplace(data, Priors())
        b = laplace(data, Priors(), start=a)
        assert b.iterations < a.iterations
        np.testing.assert_allclose(a.theta, b.theta, atol=1e-4)


class TestValidation:
    @pytest.mark.parametrize(
        "data",
        [
            simulate(1, 8, 30, sd_b=0.05),
            simulate(1, 3, 500, attempts=1),
            simulate(1, 8, 30, level=6),
            simulate(1, 8, 30, level=-6),
            simulate(1, 1, 1, attempts=1),
            check_data(np.ones((5, 5)), np.ones((5, 5))),
            check_data(np.ones((5, 5)), np.zeros((5, 5))),
            check_data(np.eye(4), np.eye(4)),
        ],
        ids=["flat items", "3x500", "nearly all right", "nearly all wrong", "1x1", "all right", "all wrong", "apart"],
    )
    def test_hard_data_converge(self, data):
        fit = laplace(data, Priors())
        assert fit.converged and fit.iterations < 200
        for x in (fit.theta, fit.b, fit.sd_theta, fit.sd_b):
            assert np.isfinite(x).all()
        assert min(fit.sigma_theta, fit.sigma_b) > 0.05


class TestPriors:
    def test_every_prior_that_may_be_given_is_converged_with(self):
        rng = np.random.default_rng(3)
        assert laplace(simulate(3, 1, 3), Priors(0.1, 100, 0.02)).converged
        for k in range(20):
            scales = 10 ** rng.uniform(-2, 2, 3)
            assert laplace(simulate(k, 2, 5), Priors(*scales)).converged


class TestCoverage:
    def test_hyperparameters_are_found(self):
        fit = laplace(simulate(8, 200, 300, level=0, sd_theta=0.8, sd_b=1.7), Priors())
        assert fit.sigma_theta == pytest.approx(0.8, abs=0.12)
        assert fit.sigma_b == pytest.approx(1.7, abs=0.2)

    def test_difficulties_are_covered(self):
        rng = np.random.default_rng(9)
        theta, b = rng.normal(0, 1, 60), rng.normal(0, 1.5, 400)
        theta -= theta.mean()
        n = np.full((60, 400), 2)
        fit = laplace(check_data(n, rng.binomial(n, sigmoid(theta[:, None] - b)).astype(float)), Priors())
        inside = np.abs(fit.b - b) < 1.96 * fit.sd_b
        assert 0.91 < inside.mean() < 0.98
