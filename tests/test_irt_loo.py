"""PSIS leave-one-out: the cells' likelihoods, the smoothed weights, the sums over items, the comparison of models."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from benchkit.errors import InputError
from benchkit.irt.loo import FEW_ITEMS, LEAST_DRAWS, compare, loo
from benchkit.irt.model import Data
from benchkit.irt.pointwise import Draws, cell_loglik, log_choose
from benchkit.irt.psis import MIN_DRAWS, psis_loo, tail_length, threshold


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def example(models=5, items=7, draws=200, seed=0, two=False, beta=False):
    """Counts with absent cells, and draws that surround the values which made them."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=models), rng.normal(size=items)
    n = rng.integers(0, 5, (models, items))
    n[0], n[:, 0] = 3, 2
    y = rng.binomial(n, sigmoid(theta[:, None] - b)).astype(float)
    sampled = Draws(
        theta + 0.3 * rng.normal(size=(draws, models)),
        b + 0.4 * rng.normal(size=(draws, items)),
        np.exp(0.3 * rng.normal(size=(draws, items))) if two else None,
        rng.uniform(0.05, 0.3, draws) if beta else None,
    )
    return Data(n, y), sampled


def logliks(data, draws):
    """One row a cell, item by item, log C(n, y) included; by scipy."""
    rows = []
    for j in range(data.attempts.shape[1]):
        for i in np.flatnonzero(data.attempts[:, j]):
            n, y = data.attempts[i, j], data.correct[i, j]
            eta = (draws.theta[:, i] - draws.b[:, j]) * (1 if draws.a is None else draws.a[:, j])
            p = sigmoid(eta)
            if draws.rho is None:
                rows.append(stats.binom.logpmf(y, n, p))
            else:
                kappa = (1 - draws.rho) / draws.rho
                rows.append(stats.betabinom.logpmf(y, n, p * kappa, (1 - p) * kappa))
    return np.array(rows)


class TestValidation:
    def test_draws_of_another_shape(self):
        data, draws = example()
        with pytest.raises(InputError, match=r"draws of b have shape \(200, 6\), not \(200, 7\)"):
            loo(data, draws._replace(b=draws.b[:, :6]))
        with pytest.raises(InputError, match=r"draws of theta have shape \(200, 4\), not \(200, 5\)"):
            loo(data, draws._replace(theta=draws.theta[:, :4]))
        with pytest.raises(InputError, match=r"draws of rho have shape \(3,\), not \(200,\)"):
            loo(data, draws._replace(rho=np.ones(3)))
        with pytest.raises(InputError, match=r"draws of a "):
            loo(data, draws._replace(a=np.ones((200, 1))))

    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
    def test_relative_efficiency(self, value):
        with pytest.raises(InputError, match="relative efficiency must be positive"):
            loo(*example(), relative_efficiency=value)

    def test_fractions_have_no_predictive_density(self):
        data, draws = example()
        data.correct[0, 0] = 1.5
        found = loo(data, draws)
        assert found.elpd is None and found.items is None and "fractions" in found.reason
        report = found.report()
        assert list(report)[:2] == ["elpd_loo", "elpd_loo_reason"]
        assert report["se"] is None and report["pareto_k_max"] is None and report["cells"] == found.cells > 0

    def test_too_few_draws(self):
        data, draws = example(draws=MIN_DRAWS - 1)
        assert loo(data, draws).reason == "24 draws are too few for a Pareto fit: at least 25"
        assert loo(*example(draws=MIN_DRAWS)).elpd is not None

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_draws_that_are_not_finite(self, value):
        data, draws = example(two=True)
        draws.b[3, 2] = value
        found = loo(data, draws)
        assert found.elpd is None and found.reason == "some draws are not finite"

    def test_one_item_has_no_standard_error(self):
        data, draws = example(items=1)
        found = loo(data, draws)
        assert found.elpd is not None and found.se is None
        assert found.report()["se_reason"] == "a standard error by item needs at least two items"

    def test_report_is_json_without_nan_and_infinity(self):
        report = loo(*example()).report()
        assert json.loads(json.dumps(report, allow_nan=False)) == report
        assert not any(key.endswith("_reason") for key in report)
        stuck = Draws(np.zeros((400, 1)), np.where(np.arange(400) < 380, 0.0, 2.0)[:, None])
        report = loo(Data(np.array([[1]]), np.array([[1.0]])), stuck).report()
        assert report["pareto_k_max"] is None and "ties" in report["pareto_k_max_reason"]
        assert report["pareto_k_above"] == 1 and json.dumps(report, allow_nan=False)

    def test_high_k_is_said_with_the_remedy_that_is_left(self):
        data, draws = example(draws=100)
        data = Data(data.attempts * 100, data.correct * 100)
        found = loo(data, draws)
        assert found.k_above > 0 and found.k_max > found.k_threshold == 0.5
        (text,) = found.warnings
        assert f"unreliable on {found.k_above} of {found.cells} cells" in text and "or try --dispersion beta" in text
        # the 2pl refuses it
        ones = np.ones_like(draws.b)
        assert "or try --model 1pl --dispersion beta" in loo(data, draws._replace(a=ones)).warnings[0]
        assert "--dispersion" not in loo(data, draws._replace(rho=np.full(100, 0.001))).warnings[0]
        single = Data(np.minimum(data.attempts, 1), np.minimum(data.correct, 1))
        wild = draws._replace(b=8 * draws.b)
        assert "--dispersion" not in loo(single, wild).warnings[0]
        assert loo(*example(draws=1000)).warnings == ()

    def test_compare_refuses_other_items(self):
        with pytest.raises(InputError, match="must have the same items"):
            compare(np.zeros(3), np.zeros(4))
        with pytest.raises(InputError, match="missing for different items"):
            compare(np.array([0.0, np.nan]), np.zeros(2))
        with pytest.raises(InputError, match="nothing to compare"):
            compare(np.array([np.nan]), np.array([np.nan]))

    def test_compare_says_when_the_error_is_not_to_be_trusted(self):
        e = np.linspace(-30.0, -1.0, FEW_ITEMS)
        assert compare(e + np.linspace(0, 2, FEW_ITEMS), e).warnings == ()
        (text,) = compare(e, e - 0.1).warnings
        assert "differ by less than 4" in text
        (text,) = compare(e[1:] + 1, e[1:]).warnings
        assert f"only {FEW_ITEMS - 1} items" in text
        assert compare(e[:1] + 9, e[:1])[1:4] == (None, 1, "a standard error by item needs at least two items")


class TestInvariance:
    @pytest.mark.parametrize(("two", "beta"), [(False, False), (True, False), (False, True)])
    def test_chunks_change_nothing(self, two, beta):
        data, draws = example(two=two, beta=beta)
        whole = loo(data, draws)
        for size in (1, 200, 900, 10**7):
            found = loo(data, draws, chunk_values=size)
            assert_array_equal(found.items, whole.items)
            assert found._replace(items=None) == whole._replace(items=None)

    def test_order_of_models_items_and_draws(self):
        data, draws = example(two=True, beta=True)
        whole = loo(data, draws)
        rng = np.random.default_rng(1)
        r, i, j = (rng.permutation(k) for k in (200, 5, 7))
        shuffled = Draws(draws.theta[r][:, i], draws.b[r][:, j], draws.a[r][:, j], draws.rho[r])
        found = loo(Data(data.attempts[i][:, j], data.correct[i][:, j]), shuffled)
        assert_allclose(found.items, whole.items[j], rtol=1e-12)
        assert_allclose([found.elpd, found.se, found.p_loo], [whole.elpd, whole.se, whole.p_loo], rtol=1e-10)
        assert found.k_above == whole.k_above and found.k_max == pytest.approx(whole.k_max, abs=1e-9)

    def test_right_and_wrong_may_be_swapped(self):
        data, draws = example(two=True, beta=True)
        found = loo(Data(data.attempts, data.attempts - data.correct), Draws(-draws.theta, -draws.b, *draws[2:]))
        assert_allclose(found.items, loo(data, draws).items, rtol=1e-12)

    def test_single_precision_draws(self):
        data, draws = example()
        single = Draws(draws.theta.astype(np.float32), draws.b.astype(np.float32))
        assert_allclose(loo(data, single).items, loo(data, draws).items, rtol=1e-5)

    def test_a_of_one_is_the_1pl(self):
        data, draws = example()
        assert_array_equal(loo(data, draws._replace(a=np.ones((200, 7)))).items, loo(data, draws).items)

    def test_an_item_without_cells(self):
        data, draws = example()
        data.attempts[:, 3] = 0
        data.correct[:, 3] = 0
        found = loo(data, draws)
        kept = [0, 1, 2, 4, 5, 6]
        alone = loo(Data(data.attempts[:, kept], data.correct[:, kept]), draws._replace(b=draws.b[:, kept]))
        assert np.isnan(found.items[3])
        assert (found.elpd, found.se, found.cells) == (alone.elpd, alone.se, alone.cells)
        assert compare(found.items, found.items - 1).items == 6

    def test_large_tables_use_evenly_spaced_draws(self):
        data, draws = example(draws=3 * LEAST_DRAWS)
        found = loo(data, draws, max_values=1)
        assert found.draws == LEAST_DRAWS
        third = loo(data, Draws(draws.theta[::3], draws.b[::3]))
        assert found.elpd == third.elpd and found.k_threshold == threshold(LEAST_DRAWS)
        assert loo(data, draws, max_values=found.cells * 2500).draws == 2500
        assert loo(data, draws).draws == 3 * LEAST_DRAWS

    @settings(max_examples=30)
    @given(st.integers(0, 10**6), st.floats(-1e3, 1e3), st.floats(0.01, 3))
    def test_a_constant_passes_through(self, seed, constant, spread):
        rng = np.random.default_rng(seed)
        x = spread * rng.normal(size=(3, 150))
        a, b = psis_loo(x.copy()), psis_loo(x + constant)
        assert_allclose(b.elpd, a.elpd + constant, rtol=1e-11, atol=1e-9)
        assert_allclose(b.lpd, a.lpd + constant, rtol=1e-11, atol=1e-9)
        assert_allclose(b.k, a.k, rtol=1e-6, atol=1e-6)


class TestTheory:
    @pytest.mark.parametrize("two", [False, True])
    @pytest.mark.parametrize("beta", [False, True])
    def test_likelihoods_are_those_of_scipy(self, two, beta):
        data, draws = example(draws=50, two=two, beta=beta)
        j, i = np.nonzero(data.attempts.T)
        n, y = data.attempts[i, j], data.correct[i, j]
        found = cell_loglik(draws, n, y, i, j) + log_choose(n, y)[:, None]
        assert_allclose(found, logliks(data, draws), rtol=1e-11, atol=1e-12)

    @pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 18, 100, 5000, 10**6])
    def test_many_attempts(self, n):
        rng = np.random.default_rng(n)
        y = np.unique(np.clip([0, 1, n // 3, n // 2, n - 1, n, 16, 17], 0, n)).astype(float)
        c = y.size
        theta, rho = rng.normal(0, 2, (40, 1)), rng.uniform(0.001, 0.999, 40)
        draws = Draws(theta, np.zeros((40, c)))
        cells = np.full(c, n), y, np.zeros(c, int), np.arange(c)
        p, kappa = sigmoid(theta[:, 0]), (1 - rho) / rho
        constant = log_choose(cells[0], y)[:, None]
        assert_allclose(
            cell_loglik(draws, *cells) + constant, stats.binom.logpmf(y[:, None], n, p), rtol=1e-9, atol=1e-8
        )
        expected = stats.betabinom.logpmf(y[:, None], n, p * kappa, (1 - p) * kappa)
        assert_allclose(cell_loglik(draws._replace(rho=rho), *cells) + constant, expected, rtol=1e-8, atol=1e-8)

    def test_beta_binomial_sums_to_one(self):
        n = 40
        draws = Draws(np.array([[-3.0], [0.2], [9.0]]), np.zeros((3, 1)), None, np.array([0.01, 0.4, 0.99]))
        y = np.arange(n + 1.0)
        zero = np.zeros(n + 1, int)
        logs = cell_loglik(draws, np.full(n + 1, n), y, zero, zero) + log_choose(np.full(n + 1, n), y)[:, None]
        assert_allclose(np.exp(logs).sum(0), 1, rtol=1e-12)

    @pytest.mark.parametrize("n", [4, 16, 200, 10**6])
    def test_rho_to_zero_is_the_binomial(self, n):
        y = np.array([0.0, n // 4, n])
        cells = np.full(3, n), y, np.zeros(3, int), np.zeros(3, int)
        draws = Draws(np.array([[-1.0], [0.5], [3.0], [1.0]]), np.zeros((4, 1)))
        small = draws._replace(rho=np.array([0.0, 1e-300, 1e-18, 1e-15]))
        assert_allclose(cell_loglik(small, *cells), cell_loglik(draws, *cells), rtol=1e-8)

    def test_certain_cells_keep_relative_precision(self):
        draws = Draws(np.array([[40.0], [700.0], [-40.0], [-700.0]]), np.zeros((4, 1)))
        one, zero = np.array([3]), np.array([0])
        right = cell_loglik(draws, one, np.array([3.0]), zero, zero)[0]
        wrong = cell_loglik(draws, one, np.array([0.0]), zero, zero)[0]
        assert_allclose(right, [-3 * math.exp(-40), -3 * math.exp(-700), -120, -2100], rtol=1e-14)
        assert_array_equal(wrong, right[[2, 3, 0, 1]])

    @pytest.mark.parametrize("rho", [None, 0.2])
    @pytest.mark.parametrize("n", [1, 3])
    def test_exact_leave_one_out_by_quadrature(self, rho, n):
        """2 models x 4 items: p(y_c | the rest) is a ratio of two marginal likelihoods, both summed on a grid."""
        y = np.array([[1, 0, n, n], [n, 0, 1, 0]], float)
        grid = np.linspace(-3, 3, 41)
        prior = np.exp(-2 * grid**2)
        kappa = None if rho is None else (1 - rho) / rho
        p = sigmoid(grid[:, None] - grid)  # theta, b
        pmf = [
            stats.binom.pmf(k, n, p) if rho is None else stats.betabinom.pmf(k, n, p * kappa, (1 - p) * kappa)
            for k in range(n + 1)
        ]

        def marginal(without=None):
            """Unnormalised posterior of the two abilities, b summed out, and of each b given them."""
            total, given = prior[:, None] * prior, []
            for j in range(4):
                first, second = (
                    np.ones_like(p) if (i, j) == without else pmf[int(y[i, j])] for i in range(2)
                )  # each theta, b
                both = first[:, None, :] * second[None, :, :] * prior
                given.append(both)
                total = total * both.sum(2)
            return total, given

        total, given = marginal()
        exact = np.array([[math.log(total.sum() / marginal((i, j))[0].sum()) for j in range(4)] for i in range(2)])

        rng = np.random.default_rng(7)
        draws = 100_000
        pairs = rng.choice(total.size, draws, p=(total / total.sum()).ravel())
        at = np.divmod(pairs, grid.size)
        b = np.empty((draws, 4))
        for j in range(4):
            cumulative = given[j][at].cumsum(1)
            b[:, j] = grid[(cumulative < rng.random((draws, 1)) * cumulative[:, -1:]).sum(1)]
        theta = grid[np.stack(at, 1)]
        # off the grid's points, or the largest weights are ties
        theta, b = (x + (grid[1] - grid[0]) * (rng.random(x.shape) - 0.5) for x in (theta, b))
        sampled = Draws(theta, b, None, None if rho is None else np.full(draws, rho))
        found = loo(Data(np.full((2, 4), n), y), sampled)
        assert found.k_above == 0
        assert_allclose(found.items, exact.sum(0), atol=0.03)
        assert found.elpd == pytest.approx(exact.sum(), abs=0.05)
        # the in-sample density is far from it: the test can tell
        assert found.p_loo > 0.3

    def test_standard_error_is_that_of_items(self):
        data, draws = example(two=True)
        found = loo(data, draws)
        deviation = found.items - found.items.mean()
        assert found.se == pytest.approx(math.sqrt(7 / 6 * (deviation**2).sum()))
        other = loo(data, draws._replace(a=None))
        d = found.items - other.items
        pair = compare(found.items, other.items)
        assert pair.difference == pytest.approx(found.elpd - other.elpd)
        assert pair.se == pytest.approx(math.sqrt(7 / 6 * ((d - d.mean()) ** 2).sum()))

    def test_copies_of_models_within_items_do_not_shrink_the_relative_error(self):
        data, draws = example()
        once = loo(data, draws)
        four = loo(Data(*(np.tile(x, (4, 1)) for x in data)), draws._replace(theta=np.tile(draws.theta, 4)))
        assert four.elpd == pytest.approx(4 * once.elpd) and four.se == pytest.approx(4 * once.se)

    def test_equal_weights(self):
        found = psis_loo(np.full((1, 100), -0.7))
        assert found.elpd[0] == pytest.approx(-0.7) and found.lpd[0] == pytest.approx(-0.7) and found.k[0] == 0

    def test_tied_tail_has_no_shape_and_plain_weights(self):
        x = np.where(np.arange(400) < 380, 0.0, -5.0)[None]
        found = psis_loo(x.copy())
        assert found.k[0] == math.inf
        assert found.elpd[0] == pytest.approx(-math.log(np.exp(-x).mean()))

    def test_harmonic_mean_where_the_tail_is_light(self):
        x = np.log(np.random.default_rng(0).uniform(0.5, 1, (1, 4000)))
        found = psis_loo(x.copy())
        assert found.elpd[0] == pytest.approx(-math.log(np.exp(-x).mean()), abs=1e-3)
        assert found.k[0] < 0

    def test_huge_ranges_stay_finite(self):
        x = np.random.default_rng(0).normal(size=(2, 500)) * np.array([[1e3], [1e6]])
        found = psis_loo(x)
        assert np.isfinite(found.elpd).all() and np.isfinite(found.lpd).all() and (found.k > 1).all()

    @pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
    def test_k_of_pareto_weights(self, k):
        u = (np.arange(20_000) + 0.5) / 20_000
        found = psis_loo(k * np.log(u)[None])  # weights u^-k
        assert found.k[0] == pytest.approx(k, abs=0.05)

    def test_thresholds(self):
        # Vehtari et al. 2024: 0.7 from about 2200 draws on
        assert threshold(100) == pytest.approx(0.5) and threshold(1000) == pytest.approx(2 / 3)
        assert threshold(2100) < 0.7 == threshold(2200) == threshold(10**6)
        assert [tail_length(s) for s in (25, 100, 225, 4000)] == [5, 20, 45, 189]
        assert tail_length(4000, 0.25) == 379 and tail_length(4000, 1e6) == 5


def golden_loglik():
    s, c = np.arange(400), np.arange(6)[:, None]
    u = (0.5 + (s + 1) * 0.6180339887498949 + 0.1 * c) % 1.0
    eta = 1.0 - 0.5 * c + np.array([[0.1], [0.3], [0.5], [0.3], [0.5], [0.2]]) * np.log(u / (1 - u))
    n, y = np.array([[1], [1], [1], [4], [4], [30]]), np.array([[1], [0], [1], [2], [4], [12]])
    return -y * np.log1p(np.exp(-eta)) - (n - y) * np.log1p(np.exp(eta))


class TestReference:
    # arviz-stats 0.8.0 with numpy 2.4.6 and scipy 1.17.1, on the matrix of golden_loglik:
    #   from arviz_stats.base import array_stats
    #   elpd, k, p_loo = array_stats.loo(loglik[:, None, :])
    #   for row in zip(elpd.tolist(), p_loo.tolist(), k.tolist()): print(row)
    ARVIZ = (
        (-0.3184244796181108, 0.002564407824966697, 0.2083276627230245),
        (-1.0629210597143164, 0.11157387557824927, 0.2303212391126485),
        (-0.9221311793347375, 0.23035912705277228, 0.42274504295121174),
        (-3.114564738123028, 0.12591531218927088, 0.540334873702822),
        (-11.129390694315514, 7.577887338870954, 1.7972333456775846),
        (-28.511570781089006, 5.843077710786659, 1.5042650290188284),
    )

    def test_arviz(self):
        found = psis_loo(golden_loglik())
        mine = np.stack([found.elpd, found.lpd - found.elpd, found.k], 1)
        assert_allclose(mine, self.ARVIZ, rtol=0, atol=1e-9)

    def test_blackjax(self):
        """The same k; the same weights where blackjax smooths them (k >= 1/3, the rule of 2017)."""
        diagnostics = pytest.importorskip("blackjax.diagnostics")
        if not hasattr(diagnostics, "psis_weights"):
            pytest.skip("needs blackjax 1.6")
        import jax

        from benchkit.irt import sampler

        loglik = golden_loglik()
        with sampler._precision(True):
            logs, k = (np.asarray(x) for x in jax.jit(jax.vmap(diagnostics.psis_weights))(-loglik))
        elpd = np.log(np.exp(logs + loglik).sum(1))
        found = psis_loo(loglik.copy())
        assert_allclose(found.k, k, atol=1e-9)
        smoothed = k >= 1 / 3
        assert smoothed.any() and not smoothed.all()
        assert_allclose(found.elpd[smoothed], elpd[smoothed], atol=1e-9)
        assert_allclose(found.elpd, elpd, atol=0.02)


def metropolis(data, *, two, seed, sweeps=1600, warmup=400, every=2):
    """Draws of a 1PL or 2PL posterior: theta ~ N(0, 1.5), b ~ N(0, 1.5), log a ~ N(0, 0.5).

    Abilities in turn with items, each accepted by itself, their steps tuned in the warm-up.
    """
    rng = np.random.default_rng(seed)
    n, y = data
    n_models, n_items = n.shape

    def cells(theta, b, log_a):
        eta = np.exp(log_a) * (theta[:, None] - b)
        return y * eta - n * np.logaddexp(0, eta)

    theta, b, log_a = np.zeros(n_models), np.zeros(n_items), np.zeros(n_items)
    steps = np.full(n_models, 0.5), np.full(n_items, 0.5)
    now = cells(theta, b, log_a)
    kept = []
    for t in range(sweeps):
        new = theta + steps[0] * rng.normal(size=n_models)
        proposed = cells(new, b, log_a)
        gain = (proposed - now).sum(1) + (theta**2 - new**2) / (2 * 1.5**2)
        yes = np.log(rng.random(n_models)) < gain
        theta, now = np.where(yes, new, theta), np.where(yes[:, None], proposed, now)
        if t < warmup:
            steps[0][:] *= np.exp(np.where(yes, 0.6, -0.4) / 5)

        new, slope = b + steps[1] * rng.normal(size=n_items), log_a + two * steps[1] * rng.normal(size=n_items)
        proposed = cells(theta, new, slope)
        gain = (proposed - now).sum(0) + (b**2 - new**2) / (2 * 1.5**2) + (log_a**2 - slope**2) / (2 * 0.5**2)
        yes = np.log(rng.random(n_items)) < gain
        b, log_a, now = np.where(yes, new, b), np.where(yes, slope, log_a), np.where(yes, proposed, now)
        if t < warmup:
            steps[1][:] *= np.exp(np.where(yes, 0.65, -0.35) / 5)
        elif t % every == 0:
            kept.append((theta, b, np.exp(log_a)))
    theta, b, a = (np.array(x) for x in zip(*kept, strict=True))
    return Draws(theta, b, a if two else None)


def simulate(spread, seed, models=60, items=25, attempts=2):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 1.5, models), rng.normal(0, 1, items)
    a = np.exp(spread * rng.normal(size=items))
    n = np.full((models, items), attempts)
    return Data(n, rng.binomial(n, sigmoid(a * (theta[:, None] - b))).astype(float))


class TestCoverage:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_data_of_the_2pl_prefer_the_2pl(self, seed):
        data = simulate(0.7, seed)
        one, two = (loo(data, metropolis(data, two=k, seed=seed)) for k in (False, True))
        # of 1500 cells; the draws of this sampler are far from independent
        assert one.k_above <= two.k_above < 30
        # 60 abilities, 25 difficulties, 25 discriminations
        assert 60 < one.p_loo < two.p_loo < 110
        pair = compare(two.items, one.items)
        assert pair.difference > 3 * pair.se > 0 and pair.warnings == ()

    def test_data_of_the_1pl_do_not(self):
        data = simulate(0.0, 3)
        one, two = (loo(data, metropolis(data, two=k, seed=3)) for k in (False, True))
        pair = compare(one.items, two.items)
        # 25 parameters more for nothing
        assert 0 < pair.difference < 25
        assert one.p_loo < 85 < two.p_loo

    def test_elpd_foretells_new_attempts(self):
        """elpd_loo estimates the mean log density of fresh counts from the same truth.

        Both as differences to the true model's, of the observed and of the fresh counts: most of the noise is theirs.
        """
        gaps, p_loo = [], []
        for seed in range(12):
            data = simulate(0.0, 10 + seed, models=30, items=20)
            draws = metropolis(data, two=False, seed=seed, sweeps=1000)
            found = loo(data, draws)
            truth = np.random.default_rng(10 + seed)
            p = sigmoid(truth.normal(0, 1.5, 30)[:, None] - truth.normal(0, 1, 20))
            eta = draws.theta[:, :, None] - draws.b[:, None, :]
            fresh = 0.0
            for y in range(3):
                chance = stats.binom.pmf(y, 2, p)
                predicted = stats.binom.pmf(y, 2, sigmoid(eta)).mean(0)
                fresh += float((chance * np.log(predicted / chance)).sum())
            gaps.append(found.elpd - stats.binom.logpmf(data.correct, 2, p).sum() - fresh)
            p_loo.append(found.p_loo)
        # one simulation has sd 11 (60 simulations: mean 1.4); the density of the same counts would be off by p_loo
        assert abs(np.mean(gaps)) < 13 and np.mean(p_loo) > 40

    def test_error_shrinks_with_draws(self):
        errors = []
        for draws in (100, 1000, 10_000):
            u = np.random.default_rng(draws).random((200, draws))
            # density p = u^0.4: 1/E[1/p] = 0.6
            errors.append(np.abs(psis_loo(0.4 * np.log(u)).elpd - math.log(0.6)).mean())
        assert all(a > 2 * b for a, b in pairwise(errors))
