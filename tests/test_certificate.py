from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import certificate
from benchkit.certificate import certify, curves
from benchkit.errors import InputError
from benchkit.targets import Beta, Sample, TruncatedNormal, Uniform

DATA = Path(__file__).parent / "data"
TARGETS = [Uniform(), Beta(2, 5), TruncatedNormal(0.4, 0.2), Sample([0.0, 0.1, 0.5, 1.3], beyond=True)]


def simulated(seed, models=6, items=20, attempts=3, crossing=0.5):
    """Attempts and correct of models with slopes of their own, and the items' difficulties."""
    rng = np.random.default_rng(seed)
    b, theta = rng.normal(0, 2, items), rng.normal(0, 1, models)
    alpha = np.exp(crossing * rng.standard_normal(models))
    n = np.full((models, items), attempts)
    return n, rng.binomial(n, 1 / (1 + np.exp(alpha[:, None] * (b - theta[:, None])))).astype(float), b


def log_posterior(x, n, y, b, sigma):
    eta = x[0] - x[1] * b
    return (y * eta - n * np.logaddexp(0, eta)).sum() - x[0] ** 2 / (2 * sigma**2) - (x[1] - 1) ** 2 / (2 * 0.5**2)


class TestValidation:
    def test_missing_cells(self):
        n, y, b = simulated(0)
        n[1, 2] = y[1, 2] = 0
        with pytest.raises(InputError, match="models that have every item"):
            certify(n, y, b, None, Uniform(), sigma=1.0)

    def test_equal_difficulties(self):
        n, y, b = simulated(0)
        with pytest.raises(InputError, match="all difficulties are equal"):
            certify(n, y, np.zeros(len(b)), None, Uniform(), sigma=1.0)


class TestTheory:
    def test_curves_are_the_mode_with_its_curvature(self):
        n, y, b = simulated(1)
        y[0], y[1] = n[0], 0  # all right, all wrong
        found = curves(n, y, np.stack([b, b + 0.3]), 1.5)
        for s, shift in enumerate((0.0, 0.3)):
            for i in range(6):
                f = lambda x, i=i, shift=shift: log_posterior(x, n[i], y[i], b + shift, 1.5)  # noqa: E731
                at, h = np.array([found.c[s, i], found.alpha[s, i]]), 1e-4
                eye = np.eye(2) * h
                gradient = [(f(at + e) - f(at - e)) / (2 * h) for e in eye]
                np.testing.assert_allclose(gradient, 0, atol=1e-6)
                hessian = [[(f(at + e + d) - f(at + e - d) - f(at - e + d) + f(at - e - d)) / (4 * h * h) for d in eye]
                           for e in eye]  # fmt: skip
                l11, l21, l22 = found.root[s, i]
                root = np.array([[l11, 0], [l21, l22]])
                np.testing.assert_allclose(root @ root.T @ -np.array(hessian), np.eye(2), atol=2e-4)

    def test_where_to_begin_does_not_matter(self):
        n, y, b = simulated(2)
        a = curves(n, y, b[None, :], 1.0)
        z = curves(n, y, b[None, :], 1.0, (np.full(6, 3.0), np.full(6, 2.0)))
        np.testing.assert_allclose(a.c, z.c, atol=1e-7)
        np.testing.assert_allclose(a.alpha, z.alpha, atol=1e-7)

    @pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
    def test_differences_are_sums_and_integrals_of_the_curves(self, target):
        n, y, b = simulated(3)
        got = certify(n, y, b, None, target, sigma=1.0)
        one = curves(n, y, b[None, :], 1.0)
        c, alpha, low, span = one.c[0], one.alpha[0], b.min(), b.max() - b.min()
        s = lambda i, z: 1 / (1 + np.exp(alpha[i] * (low + span * z) - c[i]))  # noqa: E731
        u = (np.arange(200_000) + 0.5) / 200_000
        q = target.quantile(u)
        z = (b - low) / span
        grid = np.linspace(*target.support(), 20_001)
        for p, (i, k) in enumerate(got.pairs):
            assert got.d_benchmark[p] == pytest.approx((s(i, z) - s(k, z)).mean(), abs=1e-12)
            assert got.d_target[p] == pytest.approx((s(i, q) - s(k, q)).mean(), abs=2e-6)
            slope = np.abs(np.diff(s(i, grid) - s(k, grid)) / np.diff(grid)).max()
            assert slope <= got.lipschitz[p] <= slope + 0.001  # never below, and not far above
            assert got.d_observed[p] == pytest.approx((y[i] / n[i] - y[k] / n[k]).mean())
        np.testing.assert_allclose(got.bound, got.lipschitz * float(target.distance(np.sort(z))))

    @given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 5), st.sampled_from(TARGETS))
    @settings(max_examples=60, deadline=None)
    def test_theorem(self, seed, items, models, target):
        """|D_B - D_mu| <= L W1 on any benchmark, so what is safe at the means has one sign everywhere."""
        n, y, b = simulated(seed, models, items, crossing=1.0)
        got = certify(n, y, b, np.tile(b, (3, 1)).astype(np.float32), target, sigma=1.0, seed=seed)
        assert np.all(np.abs(got.d_benchmark - got.d_target) <= got.bound + 2e-6)
        sure = np.abs(got.d_target) > got.bound + np.abs(got.d_observed - got.d_benchmark) + 1e-9
        assert np.all(np.sign(got.d_target[sure]) == np.sign(got.d_observed[sure]))
        assert not got.flips[sure].any()

    def test_safe_in_every_draw_is_what_the_definition_says(self):
        n, y, b = simulated(5, models=5, items=60, attempts=40)
        y[0], y[1] = n[0] * 0.95, n[1] * 0.05
        rng = np.random.default_rng(0)
        draws = (b + 0.1 * rng.standard_normal((40, 60))).astype(np.float32)
        got = certify(n, y, b, draws, Uniform(), sigma=2.0, seed=3)
        share = np.zeros(len(got.pairs))
        noise = np.random.default_rng(3).standard_normal((40, 5, 2))
        for s in range(40):
            one = curves(n, y, draws[s][None, :].astype(float), 2.0)
            root = one.root[0]
            c = one.c[0] + root[:, 0] * noise[s, :, 0]
            alpha = one.alpha[0] + root[:, 1] * noise[s, :, 0] + root[:, 2] * noise[s, :, 1]
            low, high = draws[s].min().astype(float), draws[s].max().astype(float)
            grid = np.linspace(0, 1, 5001)
            curve = 1 / (1 + np.exp(alpha[:, None] * (low + (high - low) * grid) - c[:, None]))
            at_items = 1 / (1 + np.exp(alpha[:, None] * draws[s].astype(float) - c[:, None]))
            distance = float(Uniform().distance(np.sort((draws[s].astype(float) - low) / (high - low))))
            for p, (i, k) in enumerate(got.pairs):
                d_mu = np.trapezoid(curve[i] - curve[k], grid)
                slope = np.abs(np.diff(curve[i] - curve[k])).max() * 5000
                off = abs(got.d_observed[p] - (at_items[i] - at_items[k]).mean())
                share[p] += abs(d_mu) > slope * distance + off
        assert got.draws == 40 and np.all(got.safe_share <= share / 40 + 1e-12)  # the bound of the slope errs upwards
        assert np.abs(got.safe_share - share / 40).max() <= 0.05 and got.rank_safe[0] and 0 < got.rank_safe.sum() < 10

    def test_without_draws_nothing_is_certain(self):
        n, y, b = simulated(6)
        got = certify(n, y, b, None, Uniform(), sigma=1.0)
        assert got.draws == 0 and np.isnan(got.safe_share).all() and not got.rank_safe.any()
        document = got.document(list("abcdef"))
        assert document["safe"] is None and "--keep-draws" in document["safe_reason"]
        assert document["comparisons"][0]["rank_safe"] is None and len(document["comparisons"]) == 15


class TestInvariance:
    def test_order_of_items(self):
        n, y, b = simulated(7)
        draws = np.stack([b, b + 0.1 * np.sin(b)]).astype(np.float32)
        order = np.random.default_rng(0).permutation(len(b))
        a = certify(n, y, b, draws, Uniform(), sigma=1.0)
        z = certify(n[:, order], y[:, order], b[order], draws[:, order], Uniform(), sigma=1.0)
        for name in ("d_benchmark", "d_target", "lipschitz", "safe_share"):
            np.testing.assert_allclose(getattr(a, name), getattr(z, name), atol=1e-6)

    def test_blocks(self, monkeypatch):
        n, y, b = simulated(8)
        draws = (b + 0.05 * np.random.default_rng(1).standard_normal((30, len(b)))).astype(np.float32)
        whole = certify(n, y, b, draws, Uniform(), sigma=1.0)
        monkeypatch.setattr(certificate, "_BLOCK", 500)
        np.testing.assert_allclose(
            certify(n, y, b, draws, Uniform(), sigma=1.0).safe_share, whole.safe_share, atol=0.04
        )


class TestReference:
    def test_equal_slopes_never_flip(self):
        """Under a 1PL the curves do not cross: with all slopes 1 D_B and D_mu have the sign of the abilities."""
        n, y, b = simulated(9, models=8, items=40, attempts=50, crossing=0.0)
        got = certify(n, y, b, None, Beta(5, 1), sigma=2.0)
        apart = np.abs(got.d_benchmark) > 0.08
        assert apart.any() and not got.flips[apart].any()
