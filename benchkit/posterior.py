"""Posterior intervals of the spread metrics from draws of the difficulties, in bounded memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import Array, normalize_draws
from benchkit.errors import InputError
from benchkit.spread import METRICS, spread
from benchkit.targets import Target

Draws = npt.NDArray[np.float32]

_BLOCK = 1 << 20  # values of the draws held at a time
_LEAST_DRAWS = 16  # draws a chunk at least: a transposed array is then read by whole cache lines


class Interval(NamedTuple):
    """Equal-tailed posterior bounds of a metric and its posterior median."""

    lower: float
    upper: float
    posterior_median: float


class Intervals(NamedTuple):
    """Posterior intervals. Noise in the difficulties opens small gaps and closes large ones, so an interval belongs
    to its posterior median and may exclude the value computed at the posterior means."""

    ddm: Interval | None
    max_gap: Interval
    top_gap_sum: Interval


class Posterior(NamedTuple):
    """`intervals` is None where some draw can't be normalised; `sd` float64 (M,), of z, where a centre was given."""

    intervals: Intervals | None
    sd: Array | None


def posterior(
    draws: Draws,
    theta_draws: Draws | None,
    *,
    method: str,
    target: Target,
    reference: str = "same-size",
    top: int = 5,
    level: float = 0.95,
    keep: npt.NDArray[np.bool_] | None = None,
    center: Array | None = None,
) -> Posterior:
    """Normalise and measure each draw by itself.

    draws, theta_draws   float32 (S, M) and (S, N), of any strides; the second for ``failure`` only
    keep                 bool (M,), the items to measure; None for all
    center               (items kept,), values of z near which its posterior sd is accumulated; None: no sd

    Memory: a few float64 arrays of max(16 M, 2^20) values and three numbers a draw; `draws` is never copied whole.
    Raises InputError on a draw that is not finite.
    """
    count, m = draws.shape
    step = max(_LEAST_DRAWS, _BLOCK // max(m, 1))
    values = np.empty((len(METRICS), count))
    first = second = np.zeros(0)
    if center is not None:
        first, second = np.zeros(center.size), np.zeros(center.size)
    for start in range(0, count, step):
        chunk = np.ascontiguousarray(draws[start : start + step])
        if not np.isfinite(chunk).all():
            raise InputError("a draw of a difficulty is not a finite number")
        if keep is not None:
            chunk = np.compress(keep, chunk, axis=1)
        if center is None:
            chunk = np.sort(chunk, axis=1)  # all normalisations keep the order, and float32 sorts faster
        ability = None if theta_draws is None else theta_draws[start : start + step]
        z = normalize_draws(chunk, method, ability)
        if center is not None:
            off = z - center
            first += off.sum(0)
            second += np.einsum("ij,ij->j", off, off)
            z.sort(axis=1)
        for row, value in zip(values, spread(z, target, reference, top), strict=True):
            row[start : start + step] = value
    sd = None
    if center is not None:
        sd = np.sqrt(np.maximum(second - first**2 / count, 0) / (count - 1))
    if np.isnan(values[1:]).any():
        return Posterior(None, None)
    tail = (1 - level) / 2
    bounds = np.quantile(values, [tail, 1 - tail, 0.5], axis=1).T
    found = [Interval(float(lo), float(hi), float(mid)) for lo, hi, mid in bounds]
    return Posterior(Intervals(None if np.isnan(bounds[0, 0]) else found[0], found[1], found[2]), sd)
