import math

import numpy as np
import pytest

from benchkit.intervals import attempts_half_width, difference_interval, items_half_width, z_two_sided


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
        got = difference_interval(30, 0, 0)
        assert got.upper == pytest.approx(z_two_sided("0.95") * math.sqrt(2) / 32) and got.lower == -got.upper

    def test_is_the_plain_interval_of_the_two_items_longer_list(self):
        d = np.array([1, 0, 0.5, -0.25, 0, 1, 0])
        longer = np.append(d, [1, -1])
        half = z_two_sided("0.9") * longer.std() / 3
        got = difference_interval(7, d.sum(), (d**2).sum(), "0.9")
        assert got.lower == pytest.approx(longer.mean() - half) and got.upper == pytest.approx(longer.mean() + half)

    def test_bounds_are_possible_differences(self):
        got = difference_interval([1, 1], [1, -1], [1, 1])
        assert got.upper[0] == 1 and got.lower[1] == -1


class TestReference:
    def test_aime_example(self):
        # 113 of 120 attempts is +-4.19 points over attempts; misses 4, 2, 1 on three of 30 problems +-7.31 over items
        assert 100 * attempts_half_width(113 / 120, 120) == pytest.approx(4.19, abs=0.005)
        rates = np.ones(30)
        rates[:3] = 0, 0.5, 0.75
        assert 100 * items_half_width(rates) == pytest.approx(7.31, abs=0.005)


class TestCoverage:
    def test_difference_interval_covers(self):
        rng = np.random.default_rng(5)
        reps, n = 4000, 30
        probabilities = np.array([0.25, 0.65, 0.10])  # of d = -1, 0, 1
        d = rng.choice([-1, 0, 1], p=probabilities, size=(reps, n))
        got = difference_interval(n, d.sum(axis=1), (d**2).sum(axis=1))
        covered = np.mean((got.lower <= -0.15) & (got.upper >= -0.15))
        assert abs(covered - 0.95) < 0.02
