"""Levels taken as the decimal a person wrote: 0.95 is 19/20, not the nearest binary fraction.

``(1 - 0.95) / 2`` in binary floating point is a little more than 1/40, and then ``ceil(4000 q)`` is 101, not 100.
"""

import math
from decimal import Decimal
from fractions import Fraction

from benchkit.errors import InputError

Level = str | float | Decimal | Fraction


def as_fraction(value: Level, name: str = "level") -> Fraction:
    """The exact value of a probability strictly between 0 and 1.

    A float stands for its shortest decimal (0.95 for ``0.95``). Raises InputError outside (0, 1) or if it is no number.
    """
    try:
        exact = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{name} must be a number between 0 and 1, not {value}") from None
    if not 0 < exact < 1:
        raise InputError(f"{name} must lie between 0 and 1, not {value}")
    return exact


def floor_float(exact: Fraction) -> float:
    """The largest float64 that is <= `exact`: for a float p, ``p <= floor_float(x)`` is the exact ``p <= x``."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def order_statistic(q: Fraction, n: int) -> int:
    """1-based index of the inverted-CDF q-quantile of n sorted values: the least k >= 1 with k/n >= q.

    Definition 1 of Hyndman and Fan (1996), with exact arithmetic.
    """
    return max(1, math.ceil(q * n))
