"""The sampler's log density and its map against the model written out, and against padding and rounding."""

import math
from functools import partial

import numpy as np
import pytest

from benchkit.irt import geometry as geometries
from benchkit.irt.dispersion import disperse
from benchkit.irt.geometry import KNOTS, REACH, Geometry, bucket, geometry, needs_double, padded, sigma_curve
from benchkit.irt.laplace import laplace, models_first
from benchkit.irt.model import Priors, check_data, sigmoid
from benchkit.irt.sampler import Sampler, Target

PRIORS = Priors(3.0, 2.0, 1.5)


def small(shape, seed=1):
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 5, shape)
    return check_data(n, rng.binomial(n, rng.beta(2, 1, shape)).astype(float))


def simulated(shape, attempts, seed=2, level=0.5):
    rng = np.random.default_rng(seed)
    n = np.full(shape, attempts)
    p = sigmoid(rng.normal(level, 1, shape[0])[:, None] - rng.normal(0, 1.5, shape[1]))
    return check_data(n, rng.binomial(n, p).astype(float))


def made(data, beta, pad=None):
    mode, over = disperse(data, PRIORS) if beta else (laplace(data, PRIORS), None)
    return geometry(data, PRIORS, mode, over, pad)


def written_out(data, theta, b, mu, sigma_theta, sigma_b, logit_rho=None):
    """The model's joint log density of (theta, b, mu_b, log sigmas (, logit rho)), up to a constant."""
    from scipy.stats import betabinom, binom

    def normal(x, m, s):
        return float((-0.5 * ((x - m) / s) ** 2 - np.log(s)).sum())

    total = normal(theta, 0, sigma_theta) + normal(b, mu, sigma_b) - 0.5 * (mu / PRIORS.mu_b) ** 2
    total += -0.5 * (sigma_theta / PRIORS.sigma_theta) ** 2 - 0.5 * (sigma_b / PRIORS.sigma_b) ** 2
    total += math.log(sigma_theta) + math.log(sigma_b)
    tried = data.attempts > 0
    n, y = data.attempts[tried], data.correct[tried]
    p = (1 / (1 + np.exp(b[None, :] - theta[:, None])))[tried]
    if logit_rho is None:
        return total + float(binom.logpmf(y, n, p).sum())
    rho = 1 / (1 + math.exp(-logit_rho))
    kappa = (1 - rho) / rho
    total += math.log(rho) + math.log1p(-rho)  # a uniform rho on the scale of its logit
    return total + float(betabinom.logpmf(y, n, p * kappa, (1 - p) * kappa).sum())


@pytest.mark.parametrize("beta", [False, True])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("shape", [(3, 5), (9, 4)])
class TestTheory:
    """Both sides of the Schur complement, both kinds of map, both likelihoods."""

    def test_density_is_the_models_times_the_jacobian(self, jax64, shape, exact, beta):
        from benchkit.irt import density

        np_, data = jax64.numpy, small(shape)
        rows = models_first(*shape)
        size_u, size_v = shape if rows else shape[::-1]
        first = 4 if beta else 3
        plain, wide = made(data, beta, (size_u, size_v)), made(data, beta)
        assert plain.mask().all() and len(plain.mask()) == first + sum(shape)
        assert wide.mask().sum() == first + sum(shape) and len(wide.mask()) == first + sum(padded(size_u, size_v))
        kept = np.flatnonzero(wide.mask())

        def flat(z, geo):
            mu, lsu, lsv, dev_u, dev_v, _ = density.unwhiten(z, geo, exact)
            rho = [density._curve(z[3], geo.curve_r)[0]] if beta else []
            x = np_.concatenate([np_.stack([mu, lsu, lsv, *rho]), dev_u, dev_v])
            return x, (x, density.parameters(z, geo, exact))

        slope = jax64.jit(jax64.jacfwd(flat, has_aux=True))
        both = jax64.jit(jax64.value_and_grad(partial(density.log_density, exact=exact)))
        constants, paddings = [], []
        for seed in range(4):
            z = np.random.default_rng(seed).normal(size=len(kept))
            jacobian, (x, shown) = (jax64.tree.map(np.asarray, y) for y in slope(z, plain))
            # u - m_u, v - m_v have the same Jacobian as u, v
            log_det = np.linalg.slogdet(jacobian)[1]
            mu, sigma_u, sigma_v = float(x[0]), math.exp(x[1]), math.exp(x[2])
            u, v = x[first : first + size_u], x[first + size_u :]
            rho = (float(x[3]),) if beta else ()
            theta, b, sigma = (u, v + mu, (sigma_u, sigma_v)) if rows else (v, u + mu, (sigma_v, sigma_u))
            value, gradient = both(z, plain)
            constants.append(float(value) - written_out(data, theta, b, mu, *sigma, *rho) - log_det)
            for k in range(0, len(z), max(1, len(z) // 7)):
                move = 1e-5 * (np.arange(len(z)) == k)
                up, down = (float(both(z + s * move, plain)[0]) for s in (1, -1))
                assert float(gradient[k]) == pytest.approx((up - down) / 2e-5, abs=1e-5, rel=1e-5)
            # what is kept of a draw, in the order of the table
            hyper = [mu, *(1 / (1 + math.exp(-t)) for t in rho), sigma[1], sigma[0]]
            table = shown[geometries.order(*shape, beta)]
            np.testing.assert_allclose(table, np.concatenate([hyper, b, theta]), atol=1e-10)
            # padding adds nothing and is pulled nowhere
            z_wide = np.zeros(len(wide.mask()))
            z_wide[kept] = z
            value_wide, gradient_wide = both(z_wide, wide)
            paddings.append(float(value_wide) - float(value))
            np.testing.assert_allclose(np.asarray(gradient_wide)[kept], gradient, atol=1e-9)
            assert np.abs(np.delete(np.asarray(gradient_wide), kept)).max(initial=0) < 1e-12
        # one constant for all points
        np.testing.assert_allclose(constants, constants[0], atol=1e-8)
        np.testing.assert_allclose(paddings, paddings[0], atol=1e-9)


class TestFunctions:
    """Parts that have a closed form."""

    def test_log_gamma_and_digamma(self, jax64):
        from scipy.special import digamma, gammaln

        from benchkit.irt.density import _log_gamma

        x = np.geomspace(1e-8, 1e8, 400)
        value, slope = (np.asarray(a) for a in _log_gamma(jax64.numpy.asarray(x)))
        np.testing.assert_allclose(value, gammaln(x), rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(slope, digamma(x), rtol=1e-12, atol=1e-11)

    def test_skewed_curve_rises_and_knows_its_slope(self, jax64):
        from benchkit.irt.density import _lean

        np_ = jax64.numpy
        z = np.linspace(-8, 8, 801)
        for third in (-50, -1, -0.2, 0, 1e-4, 0.5, 50):
            for fourth in (-5, -0.5, 0, 0.5, 20):
                t, log_slope = _lean(np_.asarray(z), third, fourth, 1.0, 1.0)
                assert (np.diff(t) > 0).all() and np.isfinite(log_slope).all()
                np.testing.assert_allclose(np.gradient(t, z)[1:-1], np.exp(log_slope)[1:-1], rtol=2e-2)
        # no skewness, no bend: the identity
        t, log_slope = _lean(np_.asarray(z), 0.0, 0.0, 1.0, 1.0)
        np.testing.assert_allclose(t, z, atol=0.05)

    def test_skewed_curve_has_the_densitys_quantiles(self, jax64):
        """Successes of one v: t(z) is near the quantile of exp(-x^2/2 + k x^3/6 + l x^4/24) at Phi(z)."""
        from scipy.stats import norm

        from benchkit.irt.density import _lean

        k, bend = 0.3, -0.1
        x = np.linspace(-6, 6, 20001)
        mass = np.exp(-(x**2) / 2 + k * x**3 / 6 + bend * x**4 / 24)
        mass[(x > 4.5) | (x < -4.5)] = 0
        below = np.cumsum(mass) / mass.sum()
        for z in (-2, -1, 0, 1, 2):
            wanted = float(np.interp(norm.cdf(z), below, x))
            got = float(_lean(jax64.numpy.asarray(float(z)), k, bend, 1.0, 1.0)[0])
            assert abs(got - wanted) < 0.3 * abs(z - wanted) + 0.01


class TestInvariance:
    @pytest.mark.parametrize("beta", [False, True])
    def test_padding_moves_no_draw(self, beta):
        """Masked cells change the order of float sums at most: over few steps the draws are the same."""
        data = small((5, 40))
        runs = []
        for pad in ((5, 40), (8, 56)):
            geo = made(data, beta, pad)
            target = Target("density", geo, geo.mask(), False, True)
            chain = Sampler(target, chains=1, warmup=20, target_accept=0.8, max_treedepth=8, seed=3)
            runs.append(chain.draw(20))
        np.testing.assert_allclose(runs[0].x, runs[1].x, atol=1e-6)
        np.testing.assert_array_equal(runs[0].gradients, runs[1].gradients)

    def test_buckets(self):
        for n in range(1, 3000, 7):
            assert n <= bucket(n) <= max(8, 1.13 * n + 8)
        assert padded(31, 30) == padded(30, 32) == (32, 32) and padded(9, 100) == (12, 104)

    @pytest.mark.parametrize("dispersed", [False, True])
    def test_order_is_a_permutation(self, dispersed):
        for shape in ((3, 5), (9, 3), (1, 1), (1, 4)):
            order = geometries.order(*shape, dispersed)
            assert sorted(order) == list(range(sum(shape) + 3 + dispersed))


class TestReference:
    @pytest.mark.parametrize(
        "case",
        [(3, 1.0, 0.6, 2.5), (30, 1.2, 0.15, 2.5), (8, 0.2, 0.6, 2.5), (1, 1.5, 0.9, 2.5), (40000, 1.3, 0.004, 2.5)],
    )
    def test_sigma_curve_rises_and_is_smooth(self, case):
        pieces = sigma_curve(*case)
        step = 2 * REACH / (KNOTS - 1)
        a, b, c, d = pieces.T
        end = a + step * (b + step * (c + step * d))
        slope = b + step * (2 * c + step * 3 * d)
        np.testing.assert_allclose(end[:-1], a[1:], atol=1e-8)
        np.testing.assert_allclose(slope[:-1], b[1:], atol=1e-7)
        assert b.min() > 0 and slope.min() > 0
        # the middle lies near the empirical-Bayes value, within its own uncertainty
        middle = float(np.interp(0, np.linspace(-REACH, REACH, KNOTS)[:-1], a))
        assert abs(middle - math.log(case[1])) < case[2]

    def test_contrasts_are_what_was_seen(self):
        """Values seen with equal errors: their posterior at sigma gives back the errors and the squares."""
        seen, error, sigma = np.array([1.0, -0.5, 2.0, 0.3]), 0.4, 1.3
        variance = 1 / (1 / error + sigma**-2)
        errors, squares = geometries.contrasts(np.diag(np.full(4, variance)), variance / error * seen, sigma)
        np.testing.assert_allclose(errors, error)
        assert squares.sum() == pytest.approx(((seen - seen.mean()) ** 2).sum())
        assert [x.size for x in geometries.contrasts(np.eye(1), np.ones(1), 1.0)] == [0, 0]

    def test_sigma_curve_of_two_values(self):
        """One contrast x seen with variance e: the density is known, and its left tail is the prior's alone."""
        from scipy.stats import norm

        grid = np.linspace(-25, 6, 200_001)
        variance = np.exp(2 * grid)
        density = np.exp(grid - variance / (2 * 2.5**2) - 0.8 / (2 * (variance + 0.1))) / np.sqrt(variance + 0.1)
        below = np.cumsum(density) / density.sum()
        pieces = sigma_curve(2, 1.0, 0.7, 2.5, (np.array([0.1]), np.array([0.8])))
        for z, value in zip(np.linspace(-REACH, REACH, KNOTS)[:-1], pieces[:, 0], strict=True):
            if abs(z) <= 4:
                assert value == pytest.approx(np.interp(norm.cdf(z), below, grid), abs=0.01)

    def test_sigma_curve_of_a_half_normal(self):
        # one value alone says nothing: sigma has its prior, whose quantiles are known
        from scipy.stats import halfnorm, norm

        pieces = sigma_curve(1, 2.0, 1.0, 2.0)
        z = np.linspace(-REACH, REACH, KNOTS)[:-1]
        inner = np.abs(z) <= 4
        np.testing.assert_allclose(np.exp(pieces[inner, 0]), halfnorm(scale=2.0).ppf(norm.cdf(z[inner])), rtol=2e-3)


def energy_errors(jax, geo, beta=False):
    """Float32's error in the differences of log density between points of the typical set."""
    from benchkit.irt import density

    value = jax.jit(partial(density.log_density, exact=False))
    mask = geo.mask()
    errors = []
    for seed in range(4):
        z = np.random.default_rng(seed).normal(size=(2, mask.size)) * mask
        differences = []
        for real in (np.float32, np.float64):
            g = Geometry(*(x.astype(real) for x in geo))
            a, b = (float(value(x.astype(np.float32).astype(real), g)) for x in z)
            differences.append(a - b)
        errors.append(differences[0] - differences[1])
    return np.abs(errors)


class TestPrecision:
    @pytest.mark.parametrize(
        ("shape", "attempts"), [((30, 40), 4), ((20, 5000), 1), ((40, 60), 100), ((12, 3000), 100)]
    )
    def test_float32_keeps_the_energy(self, jax64, shape, attempts):
        geo = made(simulated(shape, attempts), False)
        assert not needs_double(geo)
        assert energy_errors(jax64, geo).max() < 0.15

    @pytest.mark.parametrize(("shape", "attempts"), [((12, 9000), 100), ((300, 300), 100), ((60, 80), 3000)])
    def test_float64_where_float32_loses_it(self, jax64, shape, attempts):
        """Tall sums lose it, and so do long rows, whose cells share the rounding of one exponential."""
        geo = made(simulated(shape, attempts), False)
        assert needs_double(geo)
        assert energy_errors(jax64, geo).max() > 0.05

    def test_large_counts_are_sampled_in_double(self, jax64):
        n = np.full((20, 30), 10**6)
        geo = made(check_data(n, np.round(n * 0.5)), False)
        assert needs_double(geo) and energy_errors(jax64, geo).max() > 0.05

    def test_over_dispersed_and_extreme_values_are_sampled_in_double(self):
        data = small((40, 200))
        assert not needs_double(made(data, False)) and needs_double(made(data, True))
        far = geometry(data, Priors(5, 30, 30), laplace(data, Priors(5, 30, 30)))
        assert needs_double(far)

    @pytest.mark.parametrize("double", [False, True])
    @pytest.mark.parametrize("level", [-6.0, 5.0, 30.0])
    def test_density_stays_finite(self, jax64, level, double):
        """Data without a single success or failure, and points that no trajectory should reach."""
        from benchkit.irt import density

        real = np.float64 if double else np.float32
        data = simulated((12, 30), 4, level=level)
        geo = made(data, False)
        mask = geo.mask()
        both = jax64.jit(jax64.value_and_grad(partial(density.log_density, exact=False)))
        g = Geometry(*(x.astype(real) for x in geo))
        for scale in (1, 6):
            z = scale * np.random.default_rng(0).normal(size=mask.size) * mask
            value, gradient = both(z.astype(real), g)
            assert np.isfinite(value) and np.isfinite(gradient).all(), scale
