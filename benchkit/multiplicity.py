"""Adjusted p-values for a family of tests: reject where the adjusted p is at most alpha.

Holm (1979), Hochberg (1988), Benjamini and Hochberg (1995), Bonferroni, and Tarone (1990) for discrete tests.
"""

from fractions import Fraction
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from benchkit.errors import InputError
from benchkit.levels import Level, as_fraction
from benchkit.scores import Floats

Rule = Literal["holm", "hochberg", "bh", "bonferroni", "tarone", "none"]
RULES: tuple[str, ...] = get_args(Rule)
Method = Rule | Literal["maxt"]
"""``maxt`` needs more than p-values: see the module of that name."""

CONTROLS: dict[Method, str] = {
    "holm": "the probability of any false rejection, whatever the dependence",
    "hochberg": "the probability of any false rejection, for independent or positively dependent tests",
    "bh": "the share of false rejections, for independent or positively dependent tests",
    "bonferroni": "the probability of any false rejection, whatever the dependence",
    "tarone": "the probability of any false rejection, whatever the dependence, at this alpha only",
    "none": "nothing: each test stands by itself",
    "maxt": "the probability of any false rejection, asymptotically",
}
"""What each method holds at alpha."""


def holm(p: ArrayLike) -> Floats:
    """max over i <= h of (m - i + 1) p_(i), at most 1: controls the family-wise error under any dependence."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    out = np.empty_like(values)
    out[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1)))
    return out


def _step_up(p: ArrayLike, factors: Floats) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    out = np.empty_like(values)
    out[order] = np.minimum(1.0, np.minimum.accumulate(values[order] * factors))
    return out


def hochberg(p: ArrayLike) -> Floats:
    """min over i >= h of (m - i + 1) p_(i): family-wise error for independent or positively dependent tests."""
    return _step_up(p, np.arange(1.0, np.size(p) + 1))


def bh(p: ArrayLike) -> Floats:
    """min over i >= h of (m / i) p_(i): the false discovery rate, under positive dependence."""
    m = np.size(p)
    return _step_up(p, m / np.arange(m, 0.0, -1))


def bonferroni(p: ArrayLike) -> Floats:
    """m p, at most 1."""
    values = np.asarray(p, dtype=np.float64)
    return np.minimum(1.0, values * values.size)


def tarone_factor(smallest: ArrayLike, alpha: Level) -> int:
    """Tarone's K: the least integer with m(K) = #{h: smallest_h <= alpha / K} <= K.

    smallest: (m,) least attainable p of each test. alpha is taken as its decimal.
    """
    exact = as_fraction(alpha, "alpha")
    least = np.sort(np.asarray(smallest, dtype=np.float64)).tolist()
    k = 1
    while k < len(least) and Fraction(least[k]) * k <= exact:  # the (k+1)-th smallest counts too: m(k) > k
        k += 1
    return k


def tarone(p: ArrayLike, smallest: ArrayLike, alpha: Level) -> Floats:
    """Holm within the tests that could be rejected at alpha / K, K Tarone's factor; 1 for the others.

    The choice uses only the least attainable p-values, which do not depend on the signs, so the family-wise error
    is controlled at `alpha` (and only there: an adjusted p is to be compared with this alpha).
    """
    values, least = np.asarray(p, dtype=np.float64), np.asarray(smallest, dtype=np.float64)
    exact = as_fraction(alpha, "alpha")
    k = tarone_factor(least, alpha)
    chosen = np.array([Fraction(float(x)) * k <= exact for x in least], dtype=bool)
    out = np.ones_like(values)
    out[chosen] = holm(values[chosen])
    return out


class Adjusted(NamedTuple):
    """p: (P,) adjusted p-values. family_size: number of tests adjusted together."""

    p: Floats
    family_size: int


def adjust(p: ArrayLike, family: ArrayLike, method: Rule, smallest: ArrayLike, alpha: Level) -> Adjusted:
    """Adjust the tests where `family` (P,) is True among themselves; the others have p = 1 and stay there.

    NaN (a test that could not be made) is not in the family and stays NaN.
    """
    if method not in RULES:
        raise InputError(f"adjust must be one of {', '.join(RULES)}, not {method}")
    values, least = np.asarray(p, dtype=np.float64), np.asarray(smallest, dtype=np.float64)
    inside = np.asarray(family, dtype=bool) & ~np.isnan(values)
    out = np.where(np.isnan(values), np.nan, 1.0)
    if method == "none":
        out[inside] = values[inside]
    elif method == "tarone":
        out[inside] = tarone(values[inside], least[inside], alpha)
    else:
        rule = {"holm": holm, "hochberg": hochberg, "bh": bh, "bonferroni": bonferroni}[method]
        out[inside] = rule(values[inside])
    return Adjusted(out, int(inside.sum()))
