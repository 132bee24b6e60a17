"""Target measures of difficulty on [0,1] and the Wasserstein-1 distance to them.

A benchmark of n items puts mass 1/n on each normalised difficulty z_(1) <= ... <= z_(n). A target mu is the measure
that the benchmark should have. With Q the target's quantile function and F its distribution function,

    W1 = integral_0^1 |F_n(x) - F(x)| dx = sum_i integral_{(i-1)/n}^{i/n} |z_(i) - Q(u)| du

(Vallender 1974). Each term splits at c = F(z_(i)), where Q crosses z_(i), so that only P(u) = integral_0^u Q(v) dv is
needed. P has a closed form for every target here: no quadrature takes place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from benchkit.errors import InputError
from benchkit.numerals import decimal

Array = npt.NDArray[np.float64]


def _special() -> Any:
    """scipy.special, on first use: the uniform target does without it and starts 0.2 s sooner."""
    import scipy.special

    return scipy.special


class Target:
    """A probability measure on [0,1]. Arguments and results are float64 arrays of any shape.

    name       as the user wrote it
    """

    name: str

    def cdf(self, x: Array) -> Array:
        """F(x) for x in [0,1]."""
        raise NotImplementedError

    def quantile(self, u: Array) -> Array:
        """Q(u), the least x with F(x) >= u, for u in [0,1]."""
        raise NotImplementedError

    def lower_mean(self, x: Array) -> Array:
        """P(F(x)) = integral over [0,x] of t dF(t)."""
        raise NotImplementedError

    def integral(self, u: Array) -> Array:
        """P(u) = integral_0^u Q(v) dv."""
        return self.lower_mean(self.quantile(u))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Independent draws from the target."""
        return self.quantile(rng.random(shape))

    def reference(self, n: int) -> Array | None:
        """The ideal benchmark of n items, ascending: the quantiles at (i - 1/2)/n. None where there is none."""
        return self.quantile((np.arange(n) + 0.5) / n)

    def nodes(self, count: int) -> tuple[Array, Array]:
        """Values and weights (K,), which add to 1, for integrals over the target: `count` quantiles of equal weight."""
        return self.quantile((np.arange(count) + 0.5) / count), np.full(count, 1 / count)

    def support(self) -> tuple[float, float]:
        """The ends of an interval that holds [0,1] and the target."""
        return 0.0, 1.0

    def distance(self, z: Array) -> Array:
        """W1 between the empirical measure of z (ascending on the last axis, values in [0,1]) and the target.

        Shape (..., n) gives (...). Exact up to rounding: below 1e-9 for n up to 10^6.
        """
        n = z.shape[-1]
        edge = np.arange(n + 1) / n
        part = self.integral(edge)
        a, b, pa, pb = edge[:-1], edge[1:], part[:-1], part[1:]
        c = np.clip(self.cdf(z), a, b)
        pc = np.clip(self.lower_mean(z), pa, pb)  # P is monotone, so the clip of P(F(z)) is P of the clip
        total: Array = (z * (2 * c - a - b) - 2 * pc + pa + pb).sum(-1)
        return np.maximum(total, 0.0)


class Uniform(Target):
    """The uniform measure on [0,1]. Its ideal benchmark of n items is the even grid (i-1)/(n-1), both ends included."""

    name = "uniform"

    def cdf(self, x: Array) -> Array:
        return x

    def quantile(self, u: Array) -> Array:
        return u

    def lower_mean(self, x: Array) -> Array:
        return x * x / 2

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.random(shape)

    def reference(self, n: int) -> Array | None:
        return np.arange(n) / (n - 1) if n > 1 else None

    def distance(self, z: Array) -> Array:
        n = z.shape[-1]
        edge = np.arange(n + 1) / n
        a, b = edge[:-1], edge[1:]
        c = np.clip(z, a, b)
        total: Array = (((c - a) ** 2 + (b - c) ** 2) / 2 + np.abs(z - c) / n).sum(-1)
        return total


class Beta(Target):
    """Beta(a, b). F = I_x(a, b) and P(F(x)) = a/(a+b) I_x(a+1, b), I the regularised incomplete beta function."""

    def __init__(self, a: float, b: float, name: str | None = None) -> None:
        if not (0 < a < math.inf and 0 < b < math.inf):
            raise InputError(f"target beta:{a:g},{b:g}: both parameters must be positive")
        self.a, self.b, self.name = a, b, name or f"beta:{a:g},{b:g}"

    def cdf(self, x: Array) -> Array:
        out: Array = _special().betainc(self.a, self.b, x)
        return out

    def quantile(self, u: Array) -> Array:
        out: Array = _special().betaincinv(self.a, self.b, u)
        return out

    def lower_mean(self, x: Array) -> Array:
        out: Array = self.a / (self.a + self.b) * _special().betainc(self.a + 1, self.b, x)
        return out

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return rng.beta(self.a, self.b, shape)


class TruncatedNormal(Target):
    """The normal distribution with the given mean and sd, conditioned on [0,1] (cut off, not piled up at the ends).

    With t = (x - mean)/sd, Phi and phi the standard normal distribution and density, and mass = Phi(t_1) - Phi(t_0),

        F(x) = (Phi(t) - Phi(t_0))/mass,    P(F(x)) = mean F(x) - sd (phi(t) - phi(t_0))/mass.

    Raises InputError where less than 1e-6 of the normal lies on [0,1]: the division would lose the digits.
    """

    def __init__(self, mean: float, sd: float, name: str | None = None) -> None:
        if not (math.isfinite(mean) and 0 < sd < math.inf):
            raise InputError(f"target normal:{mean:g},{sd:g}: the sd must be positive")
        self.mean, self.sd, self.name = mean, sd, name or f"normal:{mean:g},{sd:g}"
        self._low = float(_special().ndtr(-mean / sd))
        self._mass = float(_special().ndtr((1 - mean) / sd)) - self._low
        if self._mass < 1e-6:
            raise InputError(f"target normal:{mean:g},{sd:g}: almost none of it lies on [0,1]")

    def cdf(self, x: Array) -> Array:
        out: Array = np.clip((_special().ndtr((x - self.mean) / self.sd) - self._low) / self._mass, 0.0, 1.0)
        return out

    def quantile(self, u: Array) -> Array:
        out: Array = np.clip(self.mean + self.sd * _special().ndtri(self._low + u * self._mass), 0.0, 1.0)
        return out

    def lower_mean(self, x: Array) -> Array:
        density = np.exp(-(((x - self.mean) / self.sd) ** 2) / 2) - math.exp(-((self.mean / self.sd) ** 2) / 2)
        return self.mean * self.cdf(x) - self.sd / math.sqrt(2 * math.pi) * density / self._mass


class Sample(Target):
    """A weighted sample, such as another benchmark's difficulties on the scale of this one.

    values     (K,) in [0,1], unless `beyond`
    weights    (K,) nonnegative, not all zero; None for equal weights
    beyond     values outside [0,1] are let in: another benchmark may have easier and harder items
    """

    def __init__(
        self,
        values: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        name: str = "sample",
        beyond: bool = False,
    ) -> None:
        x, w = _weighted(values, weights, name)
        if not beyond and (x.min() < 0 or x.max() > 1):
            worst = x.min() if x.min() < 0 else x.max()
            raise InputError(f"target {name}: the values must lie in [0,1], not {worst:g}")
        order = np.argsort(x, kind="stable")
        self.values, self.weights, self.name = x[order], w[order] / w.sum(), name
        self._cdf = np.concatenate([[0.0], np.cumsum(self.weights)])
        self._cdf /= self._cdf[-1]
        self._part = np.concatenate([[0.0], np.cumsum(self.weights * self.values)])

    def cdf(self, x: Array) -> Array:
        return self._cdf[np.searchsorted(self.values, x, side="right")]

    def quantile(self, u: Array) -> Array:
        index = np.searchsorted(self._cdf[1:], u, side="left")
        return self.values[np.minimum(index, self.values.size - 1)]

    def lower_mean(self, x: Array) -> Array:
        return self._part[np.searchsorted(self.values, x, side="right")]

    def integral(self, u: Array) -> Array:
        out: Array = np.interp(u, self._cdf, self._part)
        return out

    def nodes(self, count: int) -> tuple[Array, Array]:
        return self.values, self.weights

    def support(self) -> tuple[float, float]:
        return min(0.0, float(self.values[0])), max(1.0, float(self.values[-1]))


def parse_target(text: str) -> Target:
    """``uniform``, ``beta:A,B`` or ``normal:MEAN,SD``. Raises InputError with the forms that are understood."""
    kind, _, rest = text.partition(":")
    if kind == "uniform" and not rest:
        return Uniform()
    forms: dict[str, tuple[str, type[Beta] | type[TruncatedNormal]]] = {
        "beta": ("beta:A,B", Beta),
        "normal": ("normal:MEAN,SD", TruncatedNormal),
    }
    if kind not in forms:
        raise InputError(f"target {text!r} is not known: use uniform, beta:A,B or normal:MEAN,SD")
    form, make = forms[kind]
    try:
        first, second = (decimal(part.strip()) for part in rest.split(","))
    except ValueError:
        raise InputError(f"target {text!r} should read {form}, with two numbers") from None
    return make(first, second, text)


def _weighted(values: npt.ArrayLike, weights: npt.ArrayLike | None, what: str) -> tuple[Array, Array]:
    x = np.asarray(values, dtype=np.float64).ravel()
    w = np.ones_like(x) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    if x.size == 0:
        raise InputError(f"{what}: no values")
    if x.shape != w.shape:
        raise InputError(f"{what}: {x.size} values but {w.size} weights")
    if not np.isfinite(x).all():
        raise InputError(f"{what}: a value is not a finite number")
    if not np.isfinite(w).all() or (w < 0).any() or w.sum() <= 0:
        raise InputError(f"{what}: weights must be finite, not negative, and not all zero")
    return x, w


def wasserstein1(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    x_weights: npt.ArrayLike | None = None,
    y_weights: npt.ArrayLike | None = None,
) -> float:
    """W1 between two weighted samples on the real line: integral of |F_x - F_y| (Vallender 1974). O(n log n).

    x, y                  values, shapes (n,) and (m,)
    x_weights, y_weights  nonnegative, each is divided by its sum; None for equal weights
    """
    a, wa = _weighted(x, x_weights, "first sample")
    b, wb = _weighted(y, y_weights, "second sample")
    points = np.concatenate([a, b])
    step = np.concatenate([wa / wa.sum(), -wb / wb.sum()])
    order = np.argsort(points, kind="stable")
    difference = np.cumsum(step[order])[:-1]
    return float(np.abs(difference) @ np.diff(points[order]))
