import math

import numpy as np
import pytest

from benchkit.intervals import (
    Sums,
    attempts_half_width,
    clusters_half_width,
    difference_interval,
    items_half_width,
    wilson,
    z_two_sided,
)


def bonett_price(d, level="0.95", codes=None):
    """The interval from differences of items (..., M); codes: (M,) clusters."""
    if codes is None:
        u, size = d, np.ones(d.shape)
    else:
        which = codes[:, None] == np.arange(codes.max() + 1)
        u, size = d @ which, np.broadcast_to(which.sum(axis=0), (*d.shape[:-1], which.shape[1]))
    sums = [x.sum(axis=-1) for x in (u * u, size * u, size * size)]
    groups = None if codes is None else np.asarray(u.shape[-1])
    return difference_interval(Sums(np.asarray(float(d.shape[-1])), d.sum(axis=-1), *sums, groups), level)


class TestTheory:
    def test_z(self):
        assert z_two_sided("0.95") == pytest.approx(1.959963984540054, rel=1e-12)

    def test_widths_follow_the_level(self):
        rates = np.array([[0.0, 0.5, 1.0, 0.75]])
        for f in (lambda v: items_half_width(rates, v)[0], lambda v: attempts_half_width(0.7, 40, v)):
            assert f("0.99") / f("0.95") == pytest.approx(2.5758293035489004 / 1.959963984540054)

    def test_items_is_z_times_the_standard_error(self):
        rates = np.array([0.2, 0.4, 0.9])
        se = math.sqrt(((rates - 0.5) ** 2).sum() / 2 / 3)
        assert items_half_width(rates) == pytest.approx(z_two_sided("0.95") * se)

    def test_one_item_has_no_width(self):
        assert np.isnan(items_half_width(np.array([[0.5], [1.0]]))).all()

    def test_identical_models(self):
        # m = 0, s^2 = 2/32 over 32 items
        got = bonett_price(np.zeros(30))
        assert got.upper == pytest.approx(z_two_sided("0.95") * math.sqrt(2) / 32) and got.lower == -got.upper

    def test_is_the_plain_interval_of_the_two_items_longer_list(self):
        d = np.array([1, 0, 0.5, -0.25, 0, 1, 0])
        longer = np.append(d, [1, -1])
        half = z_two_sided("0.9") * longer.std() / 3
        got = bonett_price(d, "0.9")
        assert got.lower == pytest.approx(longer.mean() - half) and got.upper == pytest.approx(longer.mean() + half)

    def test_of_clusters_is_the_cluster_robust_interval_of_the_longer_list(self):
        d, codes = np.array([1, 0, 0.5, -0.25, 0, 1, 0]), np.array([0, 0, 1, 1, 1, 2, 3])
        longer, clusters = np.append(d, [1, -1]), np.append(codes, [4, 5])
        m = longer.mean()
        variance = sum((longer[clusters == g] - m).sum() ** 2 for g in range(6)) / 9
        half = 3.182446305284263 * math.sqrt(variance / 9)  # R 4.2.2: qt(.975, 3), four clusters
        got = bonett_price(d, codes=codes)
        assert got.lower == pytest.approx(m - half) and got.upper == pytest.approx(min(1, m + half))

    def test_clusters(self):
        rates, codes = np.array([[1.0, 1, 0, 0.5, 0, 0], [0.0, 1, 0, 1, 0, 1]]), np.array([0, 0, 1, 1, 2, 2])
        centred = rates - rates.mean(axis=1, keepdims=True)
        sums = np.stack([centred[:, codes == g].sum(axis=1) for g in range(3)])
        want = 2.919985580353726 * np.sqrt(3 / 2 * (sums**2).sum(axis=0)) / 6  # R 4.2.2: qt(.95, 2)
        np.testing.assert_allclose(clusters_half_width(rates, codes, "0.9"), want)
        single = clusters_half_width(rates, np.arange(6), "0.9")
        t = 2.015048373333023 / z_two_sided("0.9")  # qt(.95, 5)
        np.testing.assert_allclose(single, t * items_half_width(rates, "0.9"))
        assert np.isnan(clusters_half_width(rates, np.zeros(6, dtype=int))).all()

    def test_wilson_solves_its_equation(self):
        z = z_two_sided("0.95")
        for p, n in ((0.3, 40), (0.0, 12), (1.0, 7), (0.95, 1)):
            got = wilson(p, n)
            for bound in (got.lower, got.upper):
                if 0 < bound < 1:
                    assert (p - bound) ** 2 == pytest.approx(z * z * bound * (1 - bound) / n, rel=1e-9)
        assert wilson(1.0, 60).upper == 1 and wilson(1.0, 60).lower == pytest.approx(1 / (1 + z * z / 60))
        assert wilson(0.0, 60).lower == 0

    def test_bounds_are_possible_differences(self):
        got = bonett_price(np.array([[1.0], [-1.0]]))
        assert got.upper[0] == 1 and got.lower[1] == -1


class TestReference:
    def test_aime_example(self):
        # 113 of 120 attempts is +-4.19 points over attempts; misses 4, 2, 1 on three of 30 problems +-7.31 over items
        assert 100 * attempts_half_width(113 / 120, 120) == pytest.approx(4.19, abs=0.005)
        rates = np.ones(30)
        rates[:3] = 0, 0.5, 0.75
        assert 100 * items_half_width(rates) == pytest.approx(7.31, abs=0.005)

    def test_wilson(self):
        # R 4.2.2: prop.test(81, 263, correct=FALSE)$conf.int (the example of Newcombe 1998, Statistics in Medicine 17)
        got = wilson(81 / 263, 263)
        assert got.lower == pytest.approx(0.2553, abs=5e-5) and got.upper == pytest.approx(0.3662, abs=5e-5)


class TestCoverage:
    @pytest.mark.parametrize("groups", [3, 5, 10])
    def test_few_clusters(self, groups):
        rng = np.random.default_rng(groups)
        reps, size = 3000, 8
        shift = 0.25 * rng.standard_normal((reps, groups, 1))
        d = rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1], size=(reps, groups, size)) + shift
        got = bonett_price(d.reshape(reps, -1), codes=np.repeat(np.arange(groups), size))
        assert np.mean((got.lower <= 0) & (got.upper >= 0)) > 0.95 - 0.02

    def test_difference_interval_covers(self):
        rng = np.random.default_rng(5)
        reps, n = 4000, 30
        probabilities = np.array([0.25, 0.65, 0.10])  # of d = -1, 0, 1
        d = rng.choice([-1, 0, 1], p=probabilities, size=(reps, n))
        got = bonett_price(d)
        covered = np.mean((got.lower <= -0.15) & (got.upper >= -0.15))
        assert abs(covered - 0.95) < 0.02
