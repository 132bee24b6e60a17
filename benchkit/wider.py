"""The posterior probability that a gap is wider than a threshold, from draws of the difficulties.

From draw to draw items change places, so a gap has no fixed ends. It has a place: its midpoint at the posterior means.
In each draw, normalised by itself, the gap is the interval without an item that holds this midpoint, from the hardest
item at or below it (or 0) to the easiest item above it (or 1).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import normalize_draws
from benchkit.errors import InputError

Array = npt.NDArray[np.float64]
Draws = npt.NDArray[np.float32]

_BLOCK = 1 << 20  # values of the draws held at a time
_LEAST_DRAWS = 16  # draws a chunk at least: a transposed array is then read by whole cache lines
_ROUNDING = 1e-12  # a gap is wider than the threshold from here on


def empty_widths(draws: Draws, theta_draws: Draws | None, method: str, points: Array) -> Array:
    """The width of the interval without an item that holds each point, in each draw: float64 (S, K).

    draws, theta_draws   float32 (S, M) and (S, N), of any strides; the second for ``failure`` only
    points               (K,), in [0,1]

    NaN for a draw that can't be normalised. Memory: a few float64 arrays of max(16 M, 2^20) values, and the result;
    `draws` is never copied whole. Raises InputError on a draw that is not finite.
    """
    count, m = draws.shape
    out = np.empty((count, points.size))
    step = max(_LEAST_DRAWS, _BLOCK // max(m, 1))
    for start in range(0, count, step):
        chunk = np.ascontiguousarray(draws[start : start + step])
        if not np.isfinite(chunk).all():
            raise InputError("a draw of a difficulty is not a finite number")
        ability = None if theta_draws is None else theta_draws[start : start + step]
        z = normalize_draws(np.sort(chunk, axis=1), method, ability)  # it keeps the order, and float32 sorts faster
        for row, values in enumerate(z, start=start):
            if np.isnan(values[0]):
                out[row] = np.nan
                continue
            at = np.searchsorted(values, points, side="right")
            lower = np.where(at > 0, values[at - 1], 0.0)
            upper = np.where(at < m, values[np.minimum(at, m - 1)], 1.0)
            out[row] = np.minimum(upper, 1.0) - np.maximum(lower, 0.0)
    return out


def probability_wider(
    draws: Draws, theta_draws: Draws | None, method: str, points: Array, threshold: float
) -> Array | None:
    """The share of draws in which the gap at each point is wider than `threshold`: (K,).

    None where some draw can't be normalised. Arguments and errors as in `empty_widths`.
    """
    width = empty_widths(draws, theta_draws, method, points)
    return None if np.isnan(width).any() else np.asarray((width > threshold + _ROUNDING).mean(0))
