"""Difficulties on the logit scale, put on [0,1].

Five normalisations, b_j the difficulty of item j (logits, higher is harder), theta_i the ability of model i:

    minmax     z = (b - min b)/(max b - min b)
    failure    z = 1 - mean_i sigmoid(theta_i - b), the failure probability averaged over the models
    logistic   z = sigmoid(b), the failure probability of a model of ability 0
    rank       z = (midrank - 1)/(n - 1), tied items share the mean of their ranks
    none       z = b, which must lie in [0,1] already

All are nondecreasing in b, so the order of the items is the order of b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.errors import InputError

Array = npt.NDArray[np.float64]

NORMALIZATIONS = ("minmax", "failure", "logistic", "rank", "none")

_TABLE = 4096  # grid points of the failure curve in draws of more than twice as many items
_BLOCK = 1 << 16  # elements a pass, so that the work stays in the cache


class Scale(NamedTuple):
    """What the normalisation needs to go from logits to [0,1] and back.

    method     one of NORMALIZATIONS
    low, high  logits; the least and the greatest difficulty
    theta      float64 (N,), abilities, or None
    """

    method: str
    low: float
    high: float
    theta: Array | None


class Normalized(NamedTuple):
    """Difficulties on [0,1].

    z       float64 (M,), in the order of the input; None where the normalisation is undefined
    scale   the way back; None where there are no items
    reason  why z is None, else None
    """

    z: Array | None
    scale: Scale | None
    reason: str | None


def check_difficulties(b: npt.ArrayLike) -> Array:
    """b as float64 (M,). Raises InputError on a value that is not finite."""
    out = np.asarray(b, dtype=np.float64)
    if out.ndim != 1:
        raise InputError(f"difficulties must be one list, not an array of {out.ndim} dimensions")
    bad = np.flatnonzero(~np.isfinite(out))
    if bad.size:
        raise InputError(f"the difficulty of item number {bad[0] + 1} of {out.size} is not a finite number")
    return out


def normalize(b: npt.ArrayLike, method: str = "minmax", theta: npt.ArrayLike | None = None) -> Normalized:
    """Put difficulties b (M,), logits, on [0,1]. `theta` (N,) is needed for ``failure`` only.

    Undefined (z None, with a reason): no item; one item or equal difficulties under minmax and rank.
    Raises InputError: unknown method; b not finite; ``failure`` without models; ``none`` outside [0,1].
    """
    if method not in NORMALIZATIONS:
        raise InputError(f"normalisation {method!r} is not known: use {', '.join(NORMALIZATIONS)}")
    b = check_difficulties(b)
    ability = None if theta is None else np.asarray(theta, dtype=np.float64).ravel()
    if ability is not None and not np.isfinite(ability).all():
        raise InputError("the ability of a model is not a finite number")
    if method == "failure" and (ability is None or ability.size == 0):
        raise InputError("--normalize failure averages over the models, and the table has none")
    n = b.size
    if n == 0:
        return Normalized(None, None, "no items")
    low, high = float(b.min()), float(b.max())
    scale = Scale(method, low, high, ability)
    if method in ("minmax", "rank"):
        if n == 1:
            return Normalized(None, scale, f"one item: {method} needs two different difficulties")
        if high / 2 - low / 2 == 0:
            return Normalized(None, scale, f"all difficulties are equal: {method} is undefined")
    if method == "none" and (low < 0 or high > 1):
        j = int(np.flatnonzero((b < 0) | (b > 1))[0])
        raise InputError(f"--normalize none needs difficulties in [0,1], not {b[j]:g} (item number {j + 1} of {n})")
    return Normalized(_to_unit(b, scale), scale, None)


def _to_unit(b: Array, scale: Scale) -> Array:
    if scale.method == "minmax":
        # Halves keep the range finite for any finite b; the quotient is the same.
        out: Array = (b / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2)
        return out
    if scale.method == "failure":
        assert scale.theta is not None
        return failure_probability(b, scale.theta)
    if scale.method == "logistic":
        return (1 + np.tanh(b / 2)) / 2
    if scale.method == "rank":
        ordered = np.sort(b)
        below = np.searchsorted(ordered, b, side="left")
        through = np.searchsorted(ordered, b, side="right")
        return (below + through - 1) / 2 / (b.size - 1)
    return b.copy()


def place(b: Array, scale: Scale) -> Array:
    """Other difficulties b (K,), logits, on the scale of a benchmark (not ``rank``); beyond its ends outside [0,1]."""
    return _to_unit(b, scale)


def failure_probability(b: Array, theta: Array) -> Array:
    """1 - mean_i sigmoid(theta_i - b_j), shape of b (M,). Computed as mean_i (1 + tanh((b_j - theta_i)/2))/2."""
    out: Array = np.empty_like(b)
    for start in range(0, b.size, _BLOCK):
        half = b[start : start + _BLOCK] / 2
        total = np.zeros_like(half)
        for t in theta / 2:
            total += np.tanh(half - t)
        out[start : start + _BLOCK] = total
    return (1 + out / theta.size) / 2


def slope(b: Array, scale: Scale) -> Array | None:
    """dz/db at b, shape (M,), per logit; None for ``rank``, which has none. For minmax the ends count as fixed."""
    if scale.method == "minmax":
        return np.full(b.size, 0.5 / (scale.high / 2 - scale.low / 2))
    if scale.method == "logistic":
        return (1 - np.tanh(b / 2) ** 2) / 4
    if scale.method == "failure":
        assert scale.theta is not None
        total = np.zeros_like(b)
        for t in scale.theta:
            total += 1 - np.tanh((b - t) / 2) ** 2
        return total / (4 * scale.theta.size)
    return np.ones(b.size) if scale.method == "none" else None


def to_logit(z: float, scale: Scale) -> tuple[float | None, str | None]:
    """The difficulty in logits that is normalised to z in (0,1), and why there is none (one of the two is None)."""
    if scale.method == "minmax":
        return (1 - z) * scale.low + z * scale.high, None
    if scale.method in ("logistic", "failure"):
        if not 0 < z < 1:
            return None, "0 and 1 are reached at no finite difficulty"
        logit = float(np.log(z) - np.log1p(-z))
        if scale.method == "logistic":
            return logit, None
        assert scale.theta is not None
        # With all abilities at one end of their range the root would be logit + that end: it lies between the two.
        left, right = logit + float(scale.theta.min()), logit + float(scale.theta.max())
        while (middle := (left + right) / 2) not in (left, right):
            above = float(np.mean(np.tanh((middle - scale.theta) / 2))) > 2 * z - 1
            left, right = (left, middle) if above else (middle, right)
        return middle, None
    if scale.method == "rank":
        return None, "ranks have no scale between two items"
    return None, "the difficulties were taken as they are: there is no logit scale"


def normalize_draws(b: npt.NDArray[np.float32], method: str, theta: npt.NDArray[np.float32] | None) -> Array:
    """Normalise each draw by itself: b (c, M), ascending or not, with theta (c, N) for ``failure``; float64 (c, M).

    A draw whose difficulties are all equal is NaN under minmax. Above 8192 items the failure curve of a draw is
    interpolated on 4096 points: at a range of 20 logits the error is below 3e-7.
    """
    wide = b.astype(np.float64)
    if method == "minmax":
        low, high = wide.min(1, keepdims=True), wide.max(1, keepdims=True)
        wide -= low
        span = high - low
        span[span == 0] = np.nan
        wide /= span
        return wide
    if method == "logistic":
        unit: Array = (1 + np.tanh(wide / 2)) / 2
        return unit
    if method == "failure":
        assert theta is not None
        if b.shape[1] <= 2 * _TABLE:
            half, ability = b / np.float32(2), theta / np.float32(2)
            total = np.zeros_like(half)
            for i in range(theta.shape[1]):
                total += np.tanh(half - ability[:, i, None])
            mean: Array = (1 + total.astype(np.float64) / theta.shape[1]) / 2
            return mean
        for row, ability in zip(wide, theta.astype(np.float64), strict=True):
            grid = np.linspace(row.min(), row.max(), _TABLE)
            row[:] = np.interp(row, grid, failure_probability(grid, ability))
        return wide
    if method == "rank":
        order = np.argsort(np.argsort(wide, axis=1, kind="stable"), axis=1, kind="stable")
        wide = order / (wide.shape[1] - 1)
    return wide
