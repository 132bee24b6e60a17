"""MCMC diagnostics against blackjax.diagnostics, and at their edges."""

import numpy as np
import pytest

from benchkit.irt.diagnostics import diagnose, e_bfmi


def autoregressive(seed, rho, chains, draws, size):
    x = np.random.default_rng(seed).normal(size=(chains, draws, size))
    for t in range(1, draws):
        x[:, t] += rho * x[:, t - 1]
    return x


class TestReference:
    """Expected values: blackjax.diagnostics in float64 (its own numbers follow Vehtari et al. 2021)."""

    @pytest.mark.parametrize(
        ("rho", "chains", "draws"),
        [(-0.5, 4, 400), (0.9, 4, 400), (0.99, 4, 501), (0.0, 4, 7), (-0.9, 1, 200), (0.5, 2, 333), (0.0, 3, 8)],
    )
    def test_equal_to_blackjax(self, rho, chains, draws):
        import jax
        from blackjax import diagnostics as theirs

        x = autoregressive(chains * draws, rho, chains, draws, 12)
        x[:, :, 0] = np.round(2 * x[:, :, 0])  # ties
        x[:, :, 1] += np.arange(chains)[:, None]  # chains that disagree
        x[:, :, 2] *= 1 + np.arange(chains)[:, None]  # in scale
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        try:
            expected = [np.asarray(f(x)) for f in (theirs.rhat, theirs.ess_bulk, theirs.ess_tail)]
        finally:
            jax.config.update("jax_enable_x64", before)
        for got, want in zip(diagnose(x), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)


class TestTheory:
    def test_independent_draws(self):
        d = diagnose(np.random.default_rng(0).normal(size=(4, 1000, 200)))
        assert 3800 < d.ess_bulk.mean() < 4200 and 3600 < d.ess_tail.mean() < 4200
        assert d.rhat.max() < 1.01

    def test_first_order_autoregression(self):
        # ESS of an AR(1) mean: n (1 - rho)/(1 + rho)
        d = diagnose(autoregressive(1, 0.6, 4, 2000, 50))
        assert d.ess_bulk.mean() == pytest.approx(8000 * 0.25, rel=0.06)

    def test_e_bfmi_of_independent_energies_is_2(self):
        energy = np.random.default_rng(2).normal(size=(3, 20000))
        np.testing.assert_allclose(e_bfmi(energy), 2, atol=0.05)

    def test_e_bfmi_by_hand(self):
        # moves 1, 4, 1 over spread around the mean 2: 1 + 0 + 1 + 0... of (1, 2, 4, 1): mean 2, spread 1+0+4+1
        assert e_bfmi(np.array([[1.0, 2.0, 4.0, 1.0]]))[0] == pytest.approx((1 + 4 + 9) / 6)


class TestValidation:
    def test_constant_and_infinite_parameters(self):
        x = np.random.default_rng(3).normal(size=(4, 100, 3))
        x[:, :, 0] = 1.5
        x[2, 7, 1] = np.nan
        d = diagnose(x)
        assert d.ess_bulk[0] == 0 and np.isnan(d.rhat[0])
        assert all(np.isnan(v[1]) for v in d)
        alone = diagnose(x[:, :, 2:])
        assert [v[2] for v in d] == [v[0] for v in alone]

    def test_too_few_draws(self):
        assert all(np.isnan(v).all() for v in diagnose(np.zeros((4, 3, 2))))
        assert np.isnan(e_bfmi(np.ones((1, 5)))[0])


class TestInvariance:
    def test_parameters_do_not_touch_each_other(self):
        # 400 parameters are handled in several pieces
        x = autoregressive(4, 0.5, 4, 500, 400).astype(np.float32)
        whole, some = diagnose(x), diagnose(x[:, :, [3, 250, 399]])
        for a, b in zip(whole, some, strict=True):
            np.testing.assert_array_equal(a[[3, 250, 399]], b)

    def test_monotone_maps_leave_bulk_and_tail_alone(self):
        x = autoregressive(5, 0.5, 4, 500, 5)
        a, b = diagnose(x), diagnose(np.exp(x))
        np.testing.assert_allclose(a.ess_bulk, b.ess_bulk)
        np.testing.assert_allclose(a.ess_tail, b.ess_tail)
