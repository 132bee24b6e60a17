"""Over-dispersed attempts: rho beside the mode, the posterior with it, against other software and simulated truth."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_irt_fit import read_aime

from benchkit.errors import InputError
from benchkit.irt import dispersion
from benchkit.irt.dispersion import disperse, summary
from benchkit.irt.fit import HYPER_BETA, fit
from benchkit.irt.model import Priors, check_data, sigmoid

DATA = Path(__file__).parent / "data"


def alike(seed, models, items, attempts, rho):
    """Attempts with correlation rho on each cell."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0.3, 1, models), rng.normal(0, 1.3, items)
    p = sigmoid(theta[:, None] - b)
    if rho > 0:
        p = rng.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho)
    n = np.full((models, items), attempts)
    return n, rng.binomial(n, p).astype(float), b


class TestTheory:
    def test_log_density_is_the_beta_binomial_s_with_a_uniform_prior(self):
        rng = np.random.default_rng(0)
        n = rng.integers(2, 40, 50)
        eta, y = rng.normal(0, 2, 50), rng.binomial(n, 0.5)
        t = np.array([-6.0, -2, 0, 3])
        found = dispersion._log_density(t, eta, n.astype(float), y.astype(float))
        rho = sigmoid(t)
        kappa, p = (1 - rho) / rho, sigmoid(eta)[:, None]
        wanted = stats.betabinom.logpmf(y[:, None], n[:, None], p * kappa, (1 - p) * kappa).sum(0)
        wanted = wanted + np.log(rho * (1 - rho))
        np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-9)

    def test_the_value_is_the_grid_s_mode_and_the_weights_follow(self):
        n, y, _ = alike(1, 15, 40, 6, 0.3)
        data = check_data(n, y)
        _, over = disperse(data, Priors())
        best = over.logit[np.argmax(over.density)]
        assert np.log(over.rho / (1 - over.rho)) == pytest.approx(best, abs=2 * np.diff(over.logit).max())
        np.testing.assert_allclose(over.weights, 1 / (1 + 5 * over.rho))
        mean, sd, lower, upper = summary(over)
        assert lower < mean < upper and 0 < sd < 0.1 and lower < 0.3 < upper

    def test_independent_attempts_have_no_correlation(self):
        n, y, _ = alike(2, 20, 50, 20, 0.0)
        plain, beta = (fit(n, y, method="laplace", dispersion=d) for d in (None, "beta"))
        assert beta.hyper.upper[1] < 0.02
        np.testing.assert_allclose(beta.items.mean, plain.items.mean, atol=0.02)
        np.testing.assert_allclose(beta.items.sd, plain.items.sd, rtol=0.05)

    def test_one_attempt_counts_in_full_and_many_as_one_over_rho(self):
        n, y, _ = alike(3, 10, 30, 100, 0.5)
        n[:, :5] = 1
        y[:, :5] = (y[:, :5] > 50) * 1.0
        _, over = disperse(check_data(n, y), Priors())
        assert (over.weights[:, :5] == 1).all()
        np.testing.assert_allclose(100 * over.weights[:, 5:], 1 / over.rho, rtol=0.02)


class TestReference:
    def test_aime_posterior_of_numpyro(self):
        """tests/data/aime2025_I.beta.json holds the model, the software and its versions."""
        models, items, n, y = read_aime()
        got = fit(n, y, dispersion="beta", models=models, items=items)
        d = got.diagnostics
        assert d["divergences"] == 0 and d["max_rhat"] < 1.01 and d["min_ess_bulk"] > 1000
        found = {("hyper", k): (got.hyper.mean[i], got.hyper.sd[i]) for i, k in enumerate(HYPER_BETA)}
        found |= {("item", k): (got.items.mean[i], got.items.sd[i]) for i, k in enumerate(items)}
        found |= {("model", k): (got.models.mean[i], got.models.sd[i]) for i, k in enumerate(models)}
        wanted = json.loads((DATA / "aime2025_I.beta.json").read_text())["parameters"]
        assert len(wanted) == len(found)
        for p in wanted:
            mean, sd = found[p["kind"], p["id"]]
            assert abs(mean - p["mean"]) < 0.15 * p["sd"], p
            assert 0.88 < sd / p["sd"] < 1.12, p


class TestCoverage:
    def test_bounds_hold_where_attempts_are_alike(self):
        """The binomial's bounds are too narrow for such data; the beta-binomial's are not."""
        inside = {None: [], "beta": []}
        for seed in range(8):
            n, y, b = alike(seed, 12, 25, 30, 0.25)
            for d, seen in inside.items():
                draws = fit(n, y, dispersion=d, chains=2, draws=300, warmup=150).draws
                first = 3 if d is None else 4
                x = draws[:, first : first + 25]
                # without the level of all, which is the abilities' affair
                lower, upper = np.quantile(x - x.mean(1, keepdims=True), [0.025, 0.975], axis=0)
                seen.append((lower < b - b.mean()) & (b - b.mean() < upper))
        assert np.mean(inside["beta"]) > 0.9
        assert np.mean(inside[None]) < 0.7

    @pytest.mark.parametrize(
        "shape", [(20, 30, 2, 0.0), (20, 30, 2, 0.6), (8, 30, 4, 0.9), (34, 118, 100, 0.4), (30, 8, 10, 0.05)]
    )
    def test_hard_data(self, shape):
        n, y, _ = alike(5, *shape)
        d = fit(n, y, dispersion="beta").diagnostics
        assert d["divergences"] == 0 and d["max_rhat"] < 1.01 and d["min_ess_bulk"] > 400 and d["min_ess_tail"] > 400


class TestValidation:
    @pytest.mark.parametrize("method", ["nuts", "laplace"])
    def test_single_attempts_tell_nothing(self, method):
        with pytest.raises(InputError, match="two attempts or more"):
            fit(np.ones((4, 5), int), np.eye(4, 5), method=method, dispersion="beta")

    def test_fractions_have_no_beta_binomial(self):
        with pytest.raises(InputError, match="whole numbers"):
            fit(np.full((3, 3), 2), np.full((3, 3), 0.5), dispersion="beta")

    def test_name(self):
        with pytest.raises(InputError, match="dispersion must be beta"):
            fit(np.full((3, 3), 2), np.ones((3, 3)), dispersion="gamma")
