import math
from decimal import Decimal
from fractions import Fraction

import pytest

from benchkit.errors import InputError
from benchkit.levels import as_fraction, floor_float, normal_quantile, order_statistic


class TestValidation:
    @pytest.mark.parametrize("bad", ["0", "1", 1.5, "-0.1", "x", "1/0", math.nan, math.inf])
    def test_outside(self, bad):
        with pytest.raises(InputError, match="alpha must"):
            as_fraction(bad, "alpha")

    @pytest.mark.parametrize("bad", ["-1e-999999999", "1e999999999", "1e400"])
    def test_outside_by_far(self, bad):
        with pytest.raises(InputError, match="alpha must lie between 0 and 1"):
            as_fraction(bad, "alpha")

    @pytest.mark.parametrize(("bad", "end"), [("1e-301", 0), ("1e-999999999", 0), ("0." + "9" * 301, 1)])
    def test_closer_to_an_end_than_floats_reach(self, bad, end):
        with pytest.raises(InputError, match=f"alpha is closer to {end} than 1e-300"):
            as_fraction(bad, "alpha")


class TestTheory:
    @pytest.mark.parametrize("text", ["1e-300", "1e-17", "0.025", "0.5"])
    def test_normal_quantile_in_both_tails(self, text):
        """Also where 1 - p is 1 as a float."""
        p = as_fraction(text)
        z = normal_quantile(p)
        assert normal_quantile(1 - p) == -z and math.isfinite(z)
        assert math.erfc(-z / math.sqrt(2)) / 2 == pytest.approx(float(p), rel=1e-11)

    @pytest.mark.parametrize("level", ["0.95", 0.95, Decimal("0.95"), Fraction(19, 20)])
    def test_a_level_is_its_decimal(self, level):
        assert as_fraction(level) == Fraction(19, 20)

    def test_tail_of_4000_is_the_100th_value(self):
        assert order_statistic((1 - as_fraction(0.95)) / 2, 4000) == 100
        assert math.ceil((1 - 0.95) / 2 * 4000) == 101  # what binary floating point picks
        assert order_statistic((1 + as_fraction(0.95)) / 2, 4000) == 3900
        assert order_statistic(Fraction(1, 40), 1) == 1

    @pytest.mark.parametrize("x", [Fraction(1, 20), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(7, 10)])
    def test_floor_float_is_the_largest_below(self, x):
        f = floor_float(x)
        assert Fraction(f) <= x < Fraction(math.nextafter(f, 1))
