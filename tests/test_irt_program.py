"""The sampler's log density and its map against the model written out, and against padding."""

import math
from functools import partial

import numpy as np
import pytest

from benchkit.irt import sampler
from benchkit.irt.geometry import KNOTS, REACH, Geometry, bucket, geometry, padded, sigma_curve
from benchkit.irt.laplace import laplace
from benchkit.irt.model import Priors, check_data, sigmoid


@pytest.fixture(scope="module")
def jax64():
    jax = sampler.preload()
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def small(shape, seed=1):
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 5, shape)
    return check_data(n, rng.binomial(n, 0.6).astype(float))


def written_out(data, priors, theta, b, mu, sigma_theta, sigma_b):
    """The model's joint log density of (theta, b, mu_b, log sigma_theta, log sigma_b), up to a constant."""

    def normal(x, m, s):
        return float((-0.5 * ((x - m) / s) ** 2 - np.log(s)).sum())

    total = normal(theta, 0, sigma_theta) + normal(b, mu, sigma_b) - 0.5 * (mu / priors.mu_b) ** 2
    total += -0.5 * (sigma_theta / priors.sigma_theta) ** 2 - 0.5 * (sigma_b / priors.sigma_b) ** 2
    total += math.log(sigma_theta) + math.log(sigma_b)
    for i in range(len(theta)):
        for j in range(len(b)):
            p = 1 / (1 + math.exp(b[j] - theta[i]))
            y, n = data.correct[i, j], data.attempts[i, j]
            total += y * math.log(p) + (n - y) * math.log1p(-p)
    return total


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("shape", [(3, 5), (6, 4)])
class TestTheory:
    """Both sides of the Schur complement, both kinds of map."""

    def test_density_is_the_models_times_the_jacobian(self, jax64, shape, exact):
        from benchkit.irt import program

        np_, data, priors = jax64.numpy, small(shape), Priors(3.0, 2.0, 1.5)
        mode = laplace(data, priors)
        size_u, size_v = sorted(shape)
        constants = []
        for pad in ((size_u, size_v), padded(*shape)):
            geo = geometry(data, priors, mode, pad)
            kept = np.flatnonzero(np.concatenate([np.ones(3), geo.mask_u, geo.mask_v]))
            geo = Geometry(*(np_.asarray(x) for x in geo))

            def flat(z_kept, geo=geo, kept=kept, pad=pad):
                z = np_.zeros(3 + sum(pad)).at[kept].set(z_kept)
                mu, lsu, lsv, dev_u, dev_v, _ = program.unwhiten(z, geo, exact)
                return np_.concatenate([np_.stack([mu, lsu, lsv]), dev_u, dev_v])[kept]

            flat, slope = jax64.jit(flat), jax64.jit(jax64.jacfwd(flat))
            both = jax64.jit(jax64.value_and_grad(partial(program.log_density, exact=exact)))
            for seed in range(3):
                z_kept = np.random.default_rng(seed).normal(size=3 + size_u + size_v)
                z = np.zeros(3 + sum(pad))
                z[kept] = z_kept
                x = np.asarray(flat(z_kept))
                # u - m_u, v - m_v have the same Jacobian as u, v
                log_det = np.linalg.slogdet(np.asarray(slope(z_kept)))[1]
                mu, sigma_u, sigma_v = float(x[0]), math.exp(x[1]), math.exp(x[2])
                u, v = x[3 : 3 + size_u], x[3 + size_u :]
                args = (u, v + mu, mu, sigma_u, sigma_v)
                if shape[0] > shape[1]:
                    args = (v, u + mu, mu, sigma_v, sigma_u)
                value, gradient = both(z, geo)
                constants.append(float(value) - written_out(data, priors, *args) - log_det)
                h = 1e-5
                for k in kept[:: max(1, len(kept) // 7)]:
                    move = h * (np.arange(len(z)) == k)
                    up, down = (float(both(z + s * move, geo)[0]) for s in (1, -1))
                    assert float(gradient[k]) == pytest.approx((up - down) / (2 * h), abs=1e-5, rel=1e-5)
                assert np.abs(np.delete(np.asarray(gradient), kept)).max(initial=0) == 0
        # one constant for all points, with padding and without
        np.testing.assert_allclose(constants, constants[0], atol=1e-9)


class TestInvariance:
    def test_padding_moves_no_draw(self):
        """Masked cells change the order of float sums at most: over few steps the draws are the same."""
        data = small((5, 40))
        mode = laplace(data, Priors())
        runs = [
            sampler.sample(
                geometry(data, Priors(), mode, pad),
                chains=1,
                warmup=20,
                draws=20,
                target_accept=0.8,
                max_treedepth=8,
                seed=3,
                double=True,
            )
            for pad in ((5, 40), (8, 56))
        ]
        np.testing.assert_allclose(runs[0].x, runs[1].x, atol=1e-6)
        np.testing.assert_array_equal(runs[0].gradients, runs[1].gradients)

    def test_buckets(self):
        for n in range(1, 3000, 7):
            assert n <= bucket(n) <= max(8, 1.13 * n + 8)
        assert padded(31, 30) == padded(30, 32) == (32, 32)


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

    def test_sigma_curve_of_a_half_normal(self):
        # one value alone says nothing: sigma has its prior, whose quantiles are known
        from scipy.stats import halfnorm, norm

        pieces = sigma_curve(1, 2.0, 1.0, 2.0)
        z = np.linspace(-REACH, REACH, KNOTS)[:-1]
        inner = np.abs(z) <= 4
        np.testing.assert_allclose(np.exp(pieces[inner, 0]), halfnorm(scale=2.0).ppf(norm.cdf(z[inner])), rtol=2e-3)

    def test_resonant_steps_move_to_the_nearest_safe_one(self):
        # trajectories of 7 steps end before pi, of 15 after 2 pi: steps between 2 pi/15 and pi/7
        assert sampler.off_resonance(0.43) == pytest.approx(0.96 * 2 * math.pi / 15)
        assert sampler.off_resonance(0.445) == pytest.approx(1.07 * math.pi / 7)
        for step in (0.08, 0.12, 0.3, 0.36, 0.6, 0.8):
            assert sampler.off_resonance(step) == step


class TestCoverage:
    @pytest.mark.parametrize(("shape", "attempts"), [((30, 40), 4), ((20, 5000), 1), ((40, 60), 100)])
    def test_float32_keeps_the_energy(self, jax64, shape, attempts):
        from benchkit.irt import program

        rng = np.random.default_rng(2)
        n = np.full(shape, attempts)
        p = sigmoid(rng.normal(0.5, 1, shape[0])[:, None] - rng.normal(0, 1.5, shape[1]))
        data = check_data(n, rng.binomial(n, p).astype(float))
        geo = geometry(data, Priors(), laplace(data, Priors()))
        assert not sampler.needs_double(geo)
        value = jax64.jit(partial(program.log_density, exact=False))
        errors = []
        for seed in range(4):
            z = np.random.default_rng(seed).normal(size=(2, 3 + geo.u0.size + geo.v0.size))
            z[:, np.concatenate([np.ones(3), geo.mask_u, geo.mask_v]) == 0] = 0
            differences = []
            for real in (np.float32, np.float64):
                g = Geometry(*(x.astype(real) for x in geo))
                a, b = (float(value(x.astype(np.float32).astype(real), g)) for x in z)
                differences.append(a - b)
            errors.append(differences[0] - differences[1])
        assert np.abs(errors).max() < 0.03

    def test_large_counts_are_sampled_in_double(self):
        n = np.full((20, 30), 10**6)
        data = check_data(n, np.round(n * 0.5))
        assert sampler.needs_double(geometry(data, Priors(), laplace(data, Priors())))
