import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.levels import as_fraction
from benchkit.power import MOST_ITEMS, ExactPower, critical_value, detectable_difference, detectable_exact


def brute_power(n, discordance, difference, alpha, two_sided=True):
    """All (up, down) counts of n single-attempt items."""
    up_rate, down_rate = (discordance + difference) / 2, (discordance - difference) / 2
    total = 0.0
    for up in range(n + 1):
        for down in range(n + 1 - up):
            k = up + down
            tail = sum(math.comb(k, t) for t in range((min(up, down) if two_sided else down) + 1)) / 2**k
            if min(1, 2 * tail if two_sided else tail) <= alpha:
                ways = math.comb(n, k) * math.comb(k, up)
                total += ways * up_rate**up * down_rate**down * (1 - discordance) ** (n - k)
    return total


class TestValidation:
    def test_power(self):
        with pytest.raises(InputError, match="power must lie between 0 and 1"):
            detectable_difference(0.1, 30, power=1)


class TestReference:
    @pytest.mark.parametrize(
        ("discordance", "points"), [(0.1, (16.2, 12.2, 6.3, 4.0, 1.8)), (0.2, (22.9, 17.2, 8.9, 5.6, 2.5))]
    )
    def test_points_at_80_percent(self, discordance, points):
        got = 100 * detectable_difference(discordance, [30, 53, 198, 500, 2500])
        np.testing.assert_allclose(got, points, atol=0.05)


class TestTheory:
    def test_one_sided_is_easier(self):
        assert detectable_difference(0.1, 30, alternative="greater") == pytest.approx(
            detectable_difference(0.1, 30, alpha="0.1")
        )

    def test_identical_models_tell_nothing(self):
        assert np.isnan(detectable_difference(0.0, 30))
        assert detectable_exact(0.0, 30) is None

    @given(st.integers(0, 80), st.sampled_from(["0.05", "0.0625", "0.5"]), st.booleans())
    def test_critical_value(self, k, alpha, two_sided):
        a = as_fraction(alpha)
        c = critical_value(k, a, two_sided)

        def rejects(t):
            return sum(math.comb(k, i) for i in range(t + 1)) * (2 if two_sided else 1) <= a * 2**k

        assert (c < 0 or rejects(c)) and not rejects(c + 1)

    @given(st.integers(1, 14), st.floats(0.05, 1), st.floats(0, 1), st.booleans())
    @settings(max_examples=40, deadline=None)
    def test_power_is_the_sum_over_all_outcomes(self, n, discordance, share, two_sided):
        difference = share * discordance
        got = ExactPower(n, discordance, "0.1", two_sided)(difference)
        assert got == pytest.approx(brute_power(n, discordance, difference, 0.1, two_sided), abs=1e-10)

    @pytest.mark.parametrize(("n", "discordance"), [(30, 0.5), (198, 0.2), (900, 0.1)])
    def test_least_difference_has_the_power(self, n, discordance):
        least = detectable_exact(discordance, n)
        of = ExactPower(n, discordance)
        assert of(least) >= 0.8 > of(least - 1e-6)
        assert least > 0.9 * detectable_difference(discordance, n)

    def test_out_of_reach(self):
        # 5 items can't reach p <= .05: 2 / 2^5 > .05; 30 items at discordance .1 have 3 discordant ones
        assert detectable_exact(1.0, 5) is None
        assert detectable_exact(0.1, 30) is None
        assert detectable_exact(1.0, 6) is not None

    def test_power_that_floats_do_not_tell_from_1(self):
        assert detectable_exact(1.0, 200, power="0.999999999999") is not None
        for digits in (13, 16, 20):
            assert detectable_exact(1.0, 200, power="0." + "9" * digits) is None

    def test_at_the_largest_difference_power_is_a_binomial_tail(self):
        # all discordant items one way: rejection needs K >= 6
        tail = 1 - sum(math.comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(6))
        assert ExactPower(20, 0.3)(0.3) == pytest.approx(tail, rel=1e-12)


class TestLimits:
    def test_beyond_the_largest_size_nothing_is_computed(self):
        assert detectable_exact(0.1, MOST_ITEMS) is not None and detectable_exact(0.1, MOST_ITEMS + 1) is None
