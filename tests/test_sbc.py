"""The sampler's calibration on small data sets, and the tests of uniformity that judge it."""

import numpy as np
import pytest
import sbc
from sbc import KEPT, PRIORS, Shape, calibrate, chi_squared, envelope, log_prior, rank, simulate
from scipy import stats

from benchkit.irt.model import Priors
from benchkit.multiplicity import holm


class TestSimulation:
    @pytest.mark.parametrize("kind", ["1pl", "beta", "2pl"])
    def test_hard_data_occur(self, kind):
        """Absent pairs, ties and boundary items, but no empty row or column."""
        absent, boundary, ties, ones = [], 0, 0, 0
        for k in range(200):
            n, y, truth = simulate(np.random.default_rng(k), kind, Shape(6, 7), PRIORS["default"])
            assert n.any(0).all() and n.any(1).all() and (y <= n).all() and np.isfinite(truth.b).all()
            assert kind != "beta" or n.max() > 1
            absent.append((n == 0).mean())
            boundary += int(((y.sum(0) == 0) | (y.sum(0) == n.sum(0))).any())
            ties += int(len(set(y.sum(0) / n.sum(0))) < 7)
            ones += int((n == 1).any())
        assert 0.25 < np.mean(absent) < 0.35 and min(absent) < 0.15 and max(absent) > 0.45
        assert min(boundary, ties, ones) > 50

    def test_parameters_follow_the_priors(self):
        """Kolmogorov-Smirnov for what was drawn, standardised."""
        priors = Priors(2.0, 0.5, 3.0, 0.7)
        drawn = [simulate(np.random.default_rng(k), "2pl", Shape(2, 3), priors).truth for k in range(600)]
        hyper = {name: np.concatenate([t.hyper[name] for t in drawn]) for name in drawn[0].hyper}
        assert stats.kstest(hyper["mu_b"] / 2.0, "norm").pvalue > 1e-3
        for name, scale in (("sigma_theta", 0.5), ("sigma_b", 3.0), ("sigma_a", 0.7)):
            assert stats.kstest(hyper[name] / scale, "halfnorm").pvalue > 1e-3
        theta, b, a = (np.concatenate(x) for x in zip(*((t.theta, t.b, t.a) for t in drawn), strict=True))
        for x in (
            theta / hyper["sigma_theta"][:, None],
            (b - hyper["mu_b"][:, None]) / hyper["sigma_b"][:, None],
            np.log(a) / hyper["sigma_a"][:, None],
        ):
            assert stats.kstest(x.ravel(), "norm").pvalue > 1e-3

    def test_log_prior(self):
        priors = PRIORS["tight"]
        values = []
        for k in range(5):
            truth = simulate(np.random.default_rng(k), "2pl", Shape(4, 3), priors).truth
            h = {name: float(x[0]) for name, x in truth.hyper.items()}
            wanted = stats.norm.logpdf(h["mu_b"], 0, priors.mu_b)
            wanted += sum(stats.halfnorm.logpdf(h[s], 0, getattr(priors, s)) for s in h if s != "mu_b")
            wanted += stats.norm.logpdf(truth.theta, 0, h["sigma_theta"]).sum()
            wanted += stats.norm.logpdf(truth.b, h["mu_b"], h["sigma_b"]).sum()
            wanted += stats.norm.logpdf(np.log(truth.a), 0, h["sigma_a"]).sum()
            values.append(log_prior(truth, priors)[0] - wanted)
        np.testing.assert_allclose(np.diff(values), 0, atol=1e-4)

    def test_ties_count_at_random(self):
        rng = np.random.default_rng(0)
        found = [rank(rng, np.array([0.0, 1.0, 1.0, 2.0]), 1.0) for _ in range(300)]
        assert set(found) == {1, 2, 3}


class TestUniformity:
    def test_envelope_by_enumeration(self):
        """All 4^5 samples of five ranks among three draws: the p-value is a probability under uniformity."""
        every = np.indices((4,) * 5).reshape(5, -1).T
        p = np.array([envelope(x, 3) for x in every])
        assert p.min() < 0.01 and p.max() > 1 - 1e-9
        for value in np.unique(p.round(9)):
            assert (p <= value + 1e-8).mean() == pytest.approx(value, abs=1e-7)

    def test_p_values_are_uniform_under_uniformity(self):
        rng = np.random.default_rng(1)
        sample = rng.integers(0, KEPT + 1, (400, 100))
        for test in (chi_squared, envelope):
            p = np.array([test(x) for x in sample])
            for level in (0.05, 0.2, 0.5):
                assert abs((p <= level).mean() - level) < 4 * np.sqrt(level * (1 - level) / 400) + 0.01

    @pytest.mark.parametrize("size", [100, 600, 3000])
    def test_deviations_are_found(self, size):
        """Ranks heaped at one end, in the middle, at both ends."""
        rng = np.random.default_rng(2)
        for a, b in ((1.0, 2.2), (2.5, 2.5), (0.4, 0.4)):
            ranks = np.floor(rng.beta(a, b, size) * (KEPT + 1)).astype(int)
            assert max(envelope(ranks), chi_squared(ranks)) < (0.01 if size == 100 else 1e-6)


@pytest.mark.slow
class TestCoverage:
    @pytest.mark.parametrize(("kind", "sets"), [("1pl", 60), ("beta", 40)])
    def test_ranks_are_uniform(self, kind, sets):
        found = calibrate(kind, Shape(6, 7), PRIORS["tight"], sets, 1)
        assert found.boundary > 10 and found.ties > 10 and found.absent > 0.2
        p = [value for both in sbc.tests(found.ranks).values() for value in both]
        assert min(holm(p)) > 0.01

    def test_a_wrong_prior_is_found(self):
        """Fitted with a prior of sigma_theta less than half as wide as the one the truth came from."""
        found = calibrate("1pl", Shape(6, 7), PRIORS["tight"], 50, 1, fitted_with=Priors(1.0, 0.4, 1.0))
        p = sbc.tests(found.ranks)
        assert min(p["sigma_theta"]) < 1e-3 and min(holm([v for both in p.values() for v in both])) < 0.01
