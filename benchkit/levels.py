"""Levels taken as the decimal a person wrote: 0.95 is 19/20, not the nearest binary fraction.

``(1 - 0.95) / 2`` in binary floating point is a little more than 1/40, and then ``ceil(4000 q)`` is 101, not 100.
"""

import math
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

from benchkit.errors import InputError

Level = str | float | Decimal | Fraction

DIGITS = 4_000  # exponents up to this size are worth a fraction
LEAST = Fraction(1, 10**300)  # tails of a level: halved and shared among tests they are still floats


def as_fraction(value: Level, name: str = "level") -> Fraction:
    """The exact value of a probability strictly between 0 and 1.

    A float stands for its shortest decimal (0.95 for ``0.95``). Raises InputError outside (0, 1), if it is no number,
    and closer to 0 or 1 than LEAST, which floats can't hold.
    """
    text = str(value)
    try:
        exact = Fraction(value) if isinstance(value, Fraction) or "/" in text else _of_decimal(Decimal(text))
    except (ArithmeticError, ValueError):
        raise InputError(f"{name} must be a number between 0 and 1, not {value}", "") from None
    if not 0 < exact < 1:
        raise InputError(f"{name} must lie between 0 and 1, not {value}", "")
    if not LEAST <= exact <= 1 - LEAST:
        raise InputError(f"{name} is closer to {0 if exact < LEAST else 1} than 1e-300: {text[:20]}", "")
    return exact


def _of_decimal(number: Decimal) -> Fraction:
    """The number; of one out of all proportion only its side of 0 and 1, as 1e-999999999 would fill the memory."""
    if number.is_finite() and (number == 0 or abs(number.adjusted()) < DIGITS):
        return Fraction(number)
    return LEAST / 2 if number > 0 and number.adjusted() < 0 else Fraction(-1)


def normal_quantile(exact: Fraction) -> float:
    """z with P(Z <= z) = exact, standard normal; from the smaller tail, so that it is finite up to 1 - LEAST."""
    if exact > Fraction(1, 2):
        return -NormalDist().inv_cdf(float(1 - exact))
    return NormalDist().inv_cdf(float(exact))


def floor_float(exact: Fraction) -> float:
    """The largest float64 that is <= `exact`: for a float p, ``p <= floor_float(x)`` is the exact ``p <= x``."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def order_statistic(q: Fraction, n: int) -> int:
    """1-based index of the inverted-CDF q-quantile of n sorted values: the least k >= 1 with k/n >= q.

    Definition 1 of Hyndman and Fan (1996), with exact arithmetic.
    """
    return max(1, math.ceil(q * n))
