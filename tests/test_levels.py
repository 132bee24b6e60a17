import math
from decimal import Decimal
from fractions import Fraction

import pytest

from benchkit.errors import InputError
from benchkit.levels import as_fraction, floor_float, order_statistic


class TestValidation:
    @pytest.mark.parametrize("bad", ["0", "1", 1.5, "-0.1", "x", "1/0", math.nan, math.inf])
    def test_outside(self, bad):
        with pytest.raises(InputError, match="alpha must"):
            as_fraction(bad, "alpha")


class TestTheory:
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
