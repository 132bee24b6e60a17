"""The 2PL: its centre, its map and log density against the model written out, and its posterior on known data."""

import csv
import math

import numpy as np
import pytest
from conftest import DATA

from benchkit.errors import InputError
from benchkit.irt import geometry_two, two
from benchkit.irt.fit import fit
from benchkit.irt.laplace import laplace
from benchkit.irt.marginal import marginal, moments
from benchkit.irt.model import Priors, check_data, sigmoid


def simulate(n_models, n_items, attempts, *, sigma_a=0.4, sigma_theta=1.0, seed=1, missing=0.0):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, sigma_theta, n_models), rng.normal(0.3, 1.2, n_items)
    a = np.exp(rng.normal(0, sigma_a, n_items))
    n = np.where(rng.random((n_models, n_items)) < missing, 0, attempts)
    data = check_data(n, rng.binomial(n, sigmoid(a * (theta[:, None] - b))).astype(float))
    return data, theta, b, a


def lsat(name):
    with open(DATA / f"{name}_patterns.csv", newline="") as f:
        rows = np.array(list(csv.reader(f))[1:], float)
    return np.repeat(rows[:, :5], rows[:, 5].astype(int), axis=0)


def target_of(data, priors=None, pad=None):
    priors = priors or Priors()
    centre = two.centre(data, priors, laplace(data, priors))
    made = geometry_two.target(data, priors, centre)
    return made._replace(constants=geometry_two.geometry(data, priors, centre, pad)) if pad else made


def settled(found):
    d = found.diagnostics
    return d["divergences"] == 0 and d["max_rhat"] < 1.01 and d["min_ess_bulk"] > 400


def written_out(data, priors, x):
    """The joint log density of everything, with the logarithms of the standard deviations, up to a constant."""
    n_models, n_items = data.attempts.shape
    sigma_t, sigma_b, sigma_a, mu = x[:4]
    theta, b, a = np.split(x[4:], [n_models, n_models + n_items])

    def normal(v, m, s):
        return float((-0.5 * ((v - m) / s) ** 2 - np.log(s)).sum())

    total = normal(theta, 0, sigma_t) + normal(b, mu, sigma_b) + normal(np.log(a), 0, sigma_a)
    total -= 0.5 * (mu / priors.mu_b) ** 2
    for sigma, scale in ((sigma_t, priors.sigma_theta), (sigma_b, priors.sigma_b), (sigma_a, priors.sigma_a)):
        total += math.log(sigma) - 0.5 * (sigma / scale) ** 2
    for i in range(n_models):
        for j in range(n_items):
            p = 1 / (1 + math.exp(-a[j] * (theta[i] - b[j])))
            y, n = data.correct[i, j], data.attempts[i, j]
            total += y * math.log(p) + (n - y) * math.log1p(-p)
    return total


class TestValidation:
    def test_messages(self):
        y = np.ones((3, 4))
        with pytest.raises(InputError, match="model must be 1pl or 2pl, not 3pl"):
            fit(y, y, model="3pl")
        with pytest.raises(InputError, match="--dispersion beta is of --model 1pl only"):
            fit(y, y, model="2pl", dispersion="beta")
        with pytest.raises(InputError, match="prior scale of sigma_a must be between"):
            fit(y, y, model="2pl", priors=Priors(sigma_a=0.0))


class TestCaveats:
    def test_no_item_by_two_models(self):
        text = "no item was tried by two models: the data can't tell discriminations; fit with --model 1pl"
        one = fit(np.full((1, 6), 3), np.array([[0.0, 1, 1, 2, 2, 3]]), model="2pl", method="laplace")
        assert text in one.warnings
        n = np.array([[2, 2, 0, 0], [0, 0, 2, 2]])
        assert text in fit(n, n / 2.0, model="2pl", method="laplace").warnings
        n[0, 3] = 1
        assert text not in fit(n, n / 2.0, model="2pl", method="laplace").warnings
        assert not any("discrimination" in w for w in fit(n, n / 2.0, method="laplace").warnings)

    def test_a_centre_that_is_not_found(self, monkeypatch):
        data = simulate(8, 6, 4)[0]

        def said():
            found = fit(data.attempts, data.correct, model="2pl", method="laplace")
            return [w for w in found.warnings if "was not found to full precision" in w]

        assert said() == []
        monkeypatch.setattr(two, "_MAX_ITERATIONS", 2)
        (text,) = said()
        assert text.startswith("the centre of the 2pl's") and "--prior-sigma-a" in text and "--model 1pl" in text

    def test_reliability(self):
        # var(mean) = 2/3 with one degree of freedom less than items, mean(sd^2) = 2/3
        assert two.reliability(np.array([0.0, 1, 1, 2]), np.sqrt([0.5, 0.5, 1.0, 2 / 3])) == pytest.approx(0.5)
        assert two.reliability(np.zeros(3), np.ones(3)) == two.reliability(np.array([0.7]), np.ones(1)) == 0

    @pytest.mark.parametrize("method", ["laplace", "nuts"])
    def test_discriminations_that_are_hardly_told_apart(self, method):
        def said(data):
            found = fit(data.attempts, data.correct, model="2pl", method=method, draws=100)
            return [w for w in found.warnings if "hardly tell" in w]

        (text,) = said(simulate(3, 60, 1, sigma_a=0.5)[0])
        assert text.startswith("the data hardly tell the items' discriminations apart (reliability 0.")
        assert text.endswith(", wanted 0.25): fit with --model 1pl, or compare both fits by --loo")
        assert said(simulate(31, 30, 4, sigma_a=0.0)[0])
        assert not said(simulate(31, 30, 4, sigma_a=0.5)[0])


# the kinds of map: models first, by a Cholesky factor or by eigenvectors; items first
MAPS = {"models": ((4, 6), True), "spectral": ((4, 6), False), "items": ((14, 4), False)}


class TestTheory:
    @pytest.mark.parametrize("kind", MAPS)
    def test_density_is_the_models_times_the_jacobian(self, jax64, kind):
        from benchkit.irt import density_two

        shape, exact = MAPS[kind]
        np_, priors = jax64.numpy, Priors(3.0, 2.0, 1.5, 0.7)
        data = simulate(*shape, 3, missing=0.2)[0]
        constants = []
        for pad in (shape, (16, 8)):
            made = target_of(data, priors, pad)
            kept = np.flatnonzero(made.constants.mask())
            geo = type(made.constants)(*(np_.asarray(v) for v in made.constants))
            size = made.constants.mask().size

            def flat(z, geo=geo, kept=kept, size=size):
                x = density_two.parameters(np_.zeros(size).at[kept].set(z), geo, exact)[kept]
                return np_.concatenate([np_.log(x[:3]), x[3 : -shape[1]], np_.log(x[-shape[1] :])])

            flat, slope = jax64.jit(flat), jax64.jit(jax64.jacfwd(flat))
            both = jax64.jit(jax64.value_and_grad(lambda z, geo=geo: density_two.log_density(z, geo, exact)))
            for seed in range(3):
                z = np.zeros(size)
                z[kept] = np.random.default_rng(seed).normal(size=kept.size)
                x = np.array(flat(z[kept]))
                log_det = np.linalg.slogdet(np.asarray(slope(z[kept])))[1]
                x[:3], x[-shape[1] :] = np.exp(x[:3]), np.exp(x[-shape[1] :])
                value, gradient = both(z)
                constants.append(float(value) - written_out(data, priors, x) - log_det)
                for k in kept[:: max(1, len(kept) // 5)]:
                    h = 1e-5 * (np.arange(size) == k)
                    numeric = (float(both(z + h)[0]) - float(both(z - h)[0])) / 2e-5
                    assert float(gradient[k]) == pytest.approx(numeric, abs=2e-5, rel=2e-5)
                assert np.abs(np.delete(np.asarray(gradient), kept)).max(initial=0) == 0
        # one constant for all points, with padding and without
        np.testing.assert_allclose(constants, constants[0], atol=1e-8)

    @pytest.mark.parametrize("case", [(30, 50, 4), (300, 10, 1), (80, 120, 1)])
    def test_whitened_at_the_centre(self, jax64, case):
        from benchkit.irt import density_two

        made = target_of(simulate(*case)[0])
        geo = type(made.constants)(*(jax64.numpy.asarray(v) for v in made.constants))
        slope = jax64.jit(jax64.grad(lambda z: density_two.log_density(z, geo, made.exact)))
        rng, kept = np.random.default_rng(0), np.flatnonzero(made.mask)
        curvature = []
        for k in range(40):
            way = np.zeros(made.mask.size)
            way[kept] = rng.normal(size=kept.size)
            if k < 20:  # one group of parameters alone
                edges = np.cumsum([0, 4, *(geo.theta.size, geo.b.size, geo.b.size)])
                way[: edges[k % 4]], way[edges[k % 4 + 1] :] = 0, 0
            h = 1e-5 * way / np.sqrt(way @ way)
            curvature.append(-float((slope(h) - slope(-h)) @ h) / (2 * float(h @ h)))
        assert min(curvature) > 0.3 and max(curvature) < 2
        assert min(curvature[20:]) > 0.8 and max(curvature[20:]) < 1.25

    def test_marginal_of_a_standard_deviation(self):
        # values without error: sigma's density is closed, x about its mean with n - 1 degrees of freedom
        x = np.random.default_rng(0).normal(0, 0.5, 12)
        x -= x.mean()
        sigma, tiny = 0.5, 1e-9
        found = moments(marginal(x, np.full(12, tiny), sigma, 1.0))
        grid = np.linspace(0.05, 3, 200_001)
        density = np.exp(-11 * np.log(grid) - (x @ x) / (2 * grid**2) - grid**2 / 2)
        mean = (grid * density).sum() / density.sum()
        assert found[0] == pytest.approx(mean, rel=1e-3)
        below = np.interp([0.025, 0.975], np.cumsum(density) / density.sum(), grid)
        np.testing.assert_allclose(found[2:], below, rtol=5e-3)


class TestInvariance:
    def test_order_of_models_and_items(self):
        data = simulate(9, 14, 3, missing=0.1)[0]
        rows, columns = np.random.default_rng(5).permutation(9), np.random.default_rng(6).permutation(14)
        one = fit(data.attempts, data.correct, model="2pl", method="laplace")
        other = fit(
            data.attempts[np.ix_(rows, columns)], data.correct[np.ix_(rows, columns)], model="2pl", method="laplace"
        )
        np.testing.assert_allclose(other.items.mean, one.items.mean[columns], atol=1e-4)
        np.testing.assert_allclose(other.discriminations.upper, one.discriminations.upper[columns], atol=1e-4)
        np.testing.assert_allclose(other.models.sd, one.models.sd[rows], atol=1e-4)

    def test_padding_moves_no_draw(self):
        from benchkit.irt.sampler import Sampler

        data = simulate(5, 12, 3)[0]
        runs = []
        for pad in ((5, 12), (8, 16)):
            made = target_of(data, pad=pad)
            made = made._replace(mask=made.constants.mask())
            run = Sampler(made, chains=1, warmup=20, target_accept=0.9, max_treedepth=6, seed=3).draw(10)
            runs.append(run.x)
        np.testing.assert_allclose(runs[0], runs[1], atol=2e-5)

    def test_laplace_imports_no_jax(self):
        import subprocess
        import sys

        code = (
            "import sys, numpy as np; from benchkit.irt.fit import fit; y = np.eye(6, 7);"
            "fit(np.ones((6, 7)), y, model='2pl', method='laplace'); assert 'jax' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def marginal_ml(y):
    """2PL by marginal maximum likelihood, theta ~ N(0, 1), 61 nodes: discriminations and difficulties."""
    from scipy.optimize import minimize

    theta, weight = np.polynomial.hermite_e.hermegauss(61)
    patterns, count = np.unique(y, axis=0, return_counts=True)

    def minus(x):
        a, d = np.exp(x[:5]), x[5:]
        eta = np.outer(theta, a) + d
        like = np.exp(patterns @ eta.T - np.logaddexp(0, eta).sum(1))
        return -count @ np.log(like @ weight)

    x = minimize(minus, np.zeros(10), method="BFGS", options={"gtol": 1e-4}).x
    return np.exp(x[:5]), -x[5:] / np.exp(x[:5])


class TestReference:
    def test_marginal_ml_twin_is_that_of_ltm(self):
        # ltm::ltm(LSAT ~ z1) 1.2-0 (Rizopoulos 2006, Journal of Statistical Software 17(5)), documentation's example
        a, b = marginal_ml(lsat("lsat6"))
        np.testing.assert_allclose(a, [0.8254, 0.7229, 0.8905, 0.6886, 0.6575], atol=0.003)
        np.testing.assert_allclose(b, [-3.3597, -1.3696, -0.2799, -1.8659, -3.1236], atol=0.01)

    @pytest.mark.parametrize("name", ["lsat6", "lsat7"])
    def test_lsat(self, name):
        y = lsat(name)
        found = fit(np.ones(y.shape), y, model="2pl", seed=1, draws=700)
        d = found.diagnostics
        assert d["max_rhat"] < 1.015 and d["min_ess_bulk"] > 400 and d["divergences"] <= 2
        a, b = marginal_ml(y)
        draws = found.draws.astype(float)
        sigma = draws[:, [found.names.index("sigma_theta")]]
        # the scale of theta is 1 there; the prior of log a draws the discriminations to each other
        slope, place = draws[:, 9:14] * sigma, draws[:, 4:9] / sigma
        assert (np.abs(slope.mean(0) - a) < 1.6 * slope.std(0)).all()
        assert (np.abs(place.mean(0) - b) < 1.6 * place.std(0)).all()
        # what both say of the answers: the share that solves each item
        theta, weight = np.polynomial.hermite_e.hermegauss(31)
        chance = sigmoid(slope.mean(0) * (theta[:, None] - place.mean(0)))
        np.testing.assert_allclose(weight @ chance / weight.sum(), y.mean(0), atol=0.01)

    def test_laplace_is_near_the_posterior(self):
        data = simulate(29, 51, 4, seed=3)[0]
        near = fit(data.attempts, data.correct, model="2pl", method="laplace")
        found = fit(data.attempts, data.correct, model="2pl", draws=400)
        assert near.draws is None and near.items.rhat is None
        for part in ("items", "models", "discriminations"):
            x, y = getattr(near, part), getattr(found, part)
            assert (np.abs(x.mean - y.mean) < 0.5 * y.sd).all(), part
            assert np.median(np.abs(x.sd / y.sd - 1)) < 0.15, part
        assert (np.abs(near.hyper.mean - found.hyper.mean) < 0.5 * found.hyper.sd).all()


class TestCoverage:
    def test_one_parameter_data_have_equal_discriminations(self):
        data = simulate(30, 50, 4, sigma_a=0.0, seed=2)[0]
        found = fit(data.attempts, data.correct, model="2pl")
        assert settled(found)
        assert found.hyper.mean[found.names.index("sigma_a")] < 0.15
        assert np.abs(found.discriminations.mean - 1).max() < 0.2
        one = fit(data.attempts, data.correct, method="laplace")
        np.testing.assert_allclose(found.items.mean, one.items.mean, atol=0.3)

    def test_truth_is_in_the_intervals(self):
        data, theta, b, a = simulate(30, 50, 4, seed=4)
        found = fit(data.attempts, data.correct, model="2pl")
        assert settled(found)
        parts = zip((theta, b, a), (found.models, found.items, found.discriminations), strict=True)
        inside = [((x.lower < t) & (t < x.upper)).mean() for t, x in parts]
        assert min(inside) > 0.85
        assert found.diagnostics["priors"]["sigma_a"] == 1.0 and found.diagnostics["model"] == "2pl"

    @pytest.mark.slow
    @pytest.mark.parametrize("case", [(100, 200, 1), (200, 20, 1), (8, 30, 4)])
    def test_shapes_sample_well(self, case):
        data = simulate(*case, seed=6, missing=0.1)[0]
        found = fit(data.attempts, data.correct, model="2pl", seed=2)
        assert settled(found), found.diagnostics

    def test_results_of_aime(self, aime):
        with open(aime, newline="") as f:
            rows = list(csv.DictReader(f))
        models, items = (sorted({row[k] for row in rows}) for k in ("model", "item"))
        n, y = np.zeros((2, len(models), len(items)))
        for row in rows:
            at = models.index(row["model"]), items.index(row["item"])
            n[at], y[at] = float(row["attempts"]), float(row["correct"])
        found = fit(n, y, model="2pl")
        assert settled(found), found.diagnostics
        assert found.warnings == ()

    @pytest.mark.slow
    def test_ranks_of_the_truth_are_uniform(self):
        """Simulation-based calibration (Talts and others 2018): the true value's rank among the draws."""
        priors = Priors(1.0, 1.0, 1.0, 0.5)
        rng = np.random.default_rng(11)
        ranks = []
        for _ in range(60):
            mu = rng.normal(0, priors.mu_b)
            sigma_t, sigma_b, sigma_a = np.abs(rng.normal(0, [priors.sigma_theta, priors.sigma_b, priors.sigma_a]))
            theta, b = rng.normal(0, sigma_t, 8), rng.normal(mu, sigma_b, 12)
            a = np.exp(rng.normal(0, sigma_a, 12))
            n = rng.integers(0, 4, (8, 12))
            y = rng.binomial(n, sigmoid(a * (theta[:, None] - b))).astype(float)
            found = fit(n, y, model="2pl", priors=priors, chains=2, draws=250)
            truth = np.concatenate([[mu, sigma_a, sigma_b, sigma_t], b[:1], a[:1], theta[:1]])
            at = [0, 1, 2, 3, 4, 16, 28]
            ranks.append((found.draws[:, at] < truth).mean(0))
        ranks = np.array(ranks)
        # Kolmogorov's distance from uniform: P(D > 0.25) = 0.001 for 60 values
        grid = np.sort(ranks, axis=0)
        steps = np.arange(61)[:, None] / 60
        distance = np.maximum(np.abs(grid - steps[:-1]), np.abs(grid - steps[1:])).max(0)
        assert (distance < 0.25).all(), distance


class TestTable:
    def test_rows_of_discriminations(self):
        import pyarrow.compute as pc

        from benchkit.parameters import group, of_fit
        from benchkit.responses import Wide
        from benchkit.tables import check_parameters

        data = simulate(4, 3, 2)[0]
        found = fit(data.attempts, data.correct, model="2pl", chains=2, draws=50)
        table = of_fit(found, Wide(list("ABCD"), list("xyz"), data.attempts, data.correct, None), keep="all")
        check_parameters(table, lambda k: k)
        assert table["kind"].to_pylist() == ["hyper"] * 4 + ["item"] * 3 + ["item_a"] * 3 + ["model"] * 4
        assert table["id"].to_pylist()[:4] == ["mu_b", "sigma_a", "sigma_b", "sigma_theta"]
        slopes = table.filter(pc.equal(table["kind"], "item_a")).to_pylist()
        for k, row in enumerate(slopes):
            assert row["id"] == "xyz"[k] and row["attempts"] == data.attempts[:, k].sum()
            assert row["mean"] == pytest.approx(np.mean(row["draws"]), rel=1e-4) and row["lower"] > 0
        # the difficulties are what the other commands see
        assert group(table, "item").ids == list("xyz")
        np.testing.assert_allclose(group(table, "item").mean, found.items.mean)
