"""benchkit.spread: DDM, max gap, top-K gap sum, and what chance gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchkit import spread as module
from benchkit.spread import Spread, chance, gaps, spread
from benchkit.targets import Beta, Sample, TruncatedNormal, Uniform

unit = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=25)
ZERO = Spread(np.array(0.0), np.array(0.0), np.array(0.0))


def brute(z, top=5):
    z = sorted(z)
    n = len(z)
    edges = [0.0, *z, 1.0]
    widths = sorted((edges[j + 1] - edges[j] for j in range(n + 1)), reverse=True)
    return sum(abs(x - i / (n - 1)) for i, x in enumerate(z)) / n, widths[0], sum(widths[:top])


class TestTheory:
    def test_even_grid(self):
        got = spread(np.arange(11) / 10, Uniform())
        assert float(got.ddm) == pytest.approx(0, abs=1e-15)
        assert float(got.max_gap) == pytest.approx(0.1, abs=1e-15)
        assert float(got.top_gap_sum) == pytest.approx(0.5, abs=1e-15)

    def test_three_tied(self):
        got = spread(np.array([0, 0, 0, 0.25, 1]), Uniform())
        assert (float(got.ddm), float(got.max_gap), float(got.top_gap_sum)) == (0.25, 0.75, 1)

    @given(z=unit, top=st.integers(1, 30))
    def test_brute_force(self, z, top):
        got = spread(np.sort(z), Uniform(), top=top)
        np.testing.assert_allclose([float(v) for v in got], brute(z, top), atol=1e-12)

    def test_a_batch_is_its_rows(self):
        z = np.sort(np.random.default_rng(0).random((4, 9)))
        got = spread(z, Beta(2, 2))
        for k, row in enumerate(z):
            one = spread(row, Beta(2, 2))
            np.testing.assert_allclose([v[k] for v in got], [float(v) for v in one], rtol=1e-14)

    def test_other_targets_use_their_midpoint_quantiles(self):
        z = np.array([0.1, 0.2, 0.7])
        ideal = stats.beta(2, 5).ppf([1 / 6, 3 / 6, 5 / 6])
        assert float(spread(z, Beta(2, 5)).ddm) == pytest.approx(np.abs(z - ideal).mean(), abs=1e-12)

    def test_continuous_reference_is_the_distance(self):
        z = np.array([0.1, 0.2, 0.7])
        assert float(spread(z, Beta(2, 5), "continuous").ddm) == float(Beta(2, 5).distance(z))

    def test_one_item(self):
        got = spread(np.array([0.3]), Uniform())
        assert np.isnan(got.ddm) and float(got.max_gap) == 0.7 and float(got.top_gap_sum) == 1

    @given(z=unit)
    def test_gaps_add_to_one(self, z):
        assert gaps(np.sort(z)).sum() == pytest.approx(1, abs=1e-12)

    def test_mean_largest_of_random_gaps(self):
        # Two fixed ends leave m = n - 1 gaps; the largest of m has mean H_m/m (Levy 1939; David and Nagaraja, Order
        # Statistics, 6.4), the sum of the largest k has mean (k + sum_{i=k+1}^m k/i)/m.
        m = 29
        got = chance(ZERO, 30, Uniform(), reps=20_000)
        h = 1 / np.arange(1, m + 1)
        assert got.max_gap.mean == pytest.approx(h.sum() / m, rel=0.01)
        assert got.top_gap_sum.mean == pytest.approx((5 + 5 * h[5:].sum()) / m, rel=0.01)

    def test_rank_baseline_is_the_even_grid(self):
        got = chance(ZERO, 11, Uniform(), method="rank", reps=10)
        assert got.ddm.mean == pytest.approx(0, abs=1e-15) and got.max_gap.q95 == pytest.approx(0.1)

    def test_p_counts_the_observed_value_itself(self):
        beyond = Spread(np.array(2.0), np.array(2.0), np.array(2.0))
        assert chance(beyond, 30, Uniform(), reps=99).max_gap.p == 0.01
        assert chance(ZERO, 30, Uniform(), reps=99).max_gap.p == 1

    def test_undefined_ddm_has_no_baseline(self):
        observed = spread(np.array([0.3]), Uniform())
        got = chance(observed, 1, Uniform(), method="none", reps=50)
        assert got.ddm is None and got.top_gap_sum.mean == pytest.approx(1)


class TestInvariance:
    def test_seed(self):
        assert chance(ZERO, 30, Uniform(), seed=1) == chance(ZERO, 30, Uniform(), seed=1)
        assert chance(ZERO, 30, Uniform(), seed=1) != chance(ZERO, 30, Uniform(), seed=2)

    @pytest.mark.parametrize("target", [Uniform(), Beta(2, 5), TruncatedNormal(0.5, 0.2), Sample([0.2, 0.6])])
    def test_block_size(self, target, monkeypatch):
        whole = chance(ZERO, 12, target, reps=300)
        monkeypatch.setattr(module, "_BLOCK", 100)
        assert chance(ZERO, 12, target, reps=300) == whole


class TestCoverage:
    def test_thirty_uniform_difficulties_are_flagged_by_chance(self):
        # "30 uniform random difficulties: 88% and 100%" reach .10 and, for the five widest, .30
        z = np.random.default_rng(7).random((20_000, 30))
        z.sort(axis=1)
        low, high = z[:, :1], z[:, -1:]
        got = spread((z - low) / (high - low), Uniform())
        assert (got.max_gap >= 0.1).mean() == pytest.approx(0.88, abs=0.015)
        assert (got.top_gap_sum >= 0.3).mean() > 0.995
        at = Spread(np.array(0.1), np.array(0.1), np.array(0.3))
        assert chance(at, 30, Uniform()).max_gap.p == pytest.approx(0.88, abs=0.02)

    @pytest.mark.parametrize("method", ["minmax", "none"])
    @pytest.mark.parametrize("target", [Uniform(), Beta(2, 5), TruncatedNormal(0.3, 0.3)], ids=lambda t: t.name)
    @pytest.mark.parametrize("reference", ["same-size", "continuous"])
    def test_baseline_against_plain_simulation(self, method, target, reference):
        rng, n = np.random.default_rng(11), 15
        rows = []
        for _ in range(6000):
            z = np.sort(target.quantile(rng.random(n)))
            if method == "minmax":
                z = (z - z[0]) / (z[-1] - z[0])
            rows.append([float(v) for v in spread(z, target, reference)])
        plain = np.array(rows)
        observed = Spread(*np.quantile(plain, 0.7, axis=0))
        got = chance(observed, n, target, method=method, reference=reference)
        for k, name in enumerate(module.METRICS):
            one = getattr(got, name)
            assert one.mean == pytest.approx(plain[:, k].mean(), rel=0.02)
            assert one.q95 == pytest.approx(np.quantile(plain[:, k], 0.95), rel=0.04)
            assert one.p == pytest.approx(0.3, abs=0.035)

    @pytest.mark.parametrize("method", ["minmax", "none"])
    def test_the_rule_for_large_benchmarks_agrees_with_the_full_simulation(self, method):
        n = module.EXACT_SIZE + 452
        z = np.random.default_rng(5).random((3000, n))
        z.sort(axis=1)
        if method == "minmax":
            z = (z - z[:, :1]) / (z[:, -1:] - z[:, :1])
        plain = spread(z, Uniform())
        got = chance(Spread(*(np.quantile(v, 0.7) for v in plain)), n, Uniform(), method=method)
        for name in module.METRICS:
            values, one = getattr(plain, name), getattr(got, name)
            assert one.mean == pytest.approx(values.mean(), rel=0.03)
            assert one.q95 == pytest.approx(np.quantile(values, 0.95), rel=0.05)
            assert one.p == pytest.approx(0.3, abs=0.04)

    @pytest.mark.parametrize("top", [1, 5, 1500, 9999])
    def test_large_benchmarks_with_any_top(self, top):
        m = 4999
        got = chance(ZERO, 5000, Uniform(), top=top, reps=400)
        k = min(top, m)
        expected = (k + k * (1 / np.arange(k + 1, m + 1)).sum()) / m
        assert got.top_gap_sum.mean == pytest.approx(expected, rel=0.03)
        assert got.reps == 400

    def test_other_targets_have_fewer_repetitions_above_the_limit(self):
        assert chance(ZERO, 10_000, Beta(2, 2), reps=4000).reps == 2000
        assert chance(ZERO, 1000, Beta(2, 2), reps=500).reps == 500

    def test_discrete_target_whose_draws_may_be_equal(self):
        got = chance(ZERO, 2, Sample([0.2, 0.6]), reps=400)
        assert got.max_gap.mean == 1  # of two items that differ
        assert 0 <= got.ddm.mean <= 1
