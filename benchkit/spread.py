"""How a benchmark of n items is spread over difficulty: DDM, max gap and top-K gap sum, and what chance gives.

With z_(1) <= ... <= z_(n) the normalised difficulties, z_(0) = 0 and z_(n+1) = 1,

    DDM          mean_i |z_(i) - r_i|, r the target's ideal benchmark of n items (same-size), or W1 to the target
    max gap      max over 0 <= j <= n of z_(j+1) - z_(j)
    top-K sum    the K largest of these n + 1 gaps, added

Small benchmarks have wide gaps by chance, so each number is compared with those of random benchmarks of the same
size, drawn from the target and normalised the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.targets import Target, Uniform

Array = npt.NDArray[np.float64]

METRICS = ("ddm", "max_gap", "top_gap_sum")

ROUNDING = 1e-12  # two values of a metric closer than this are equal: sums of differences carry rounding
EXACT_SIZE = 2048  # up to this many items the random benchmarks are drawn item by item
_KNOTS = 1024  # points of the path, and of the largest gaps, that larger ones are drawn with
_DRAWN = 20_000_000  # values drawn in all for large benchmarks and a target that is not uniform
_BLOCK = 1 << 20  # values held at a time


class Spread(NamedTuple):
    """The three metrics of one or many benchmarks, float64 of the batch's shape; ddm is NaN where it is undefined."""

    ddm: Array
    max_gap: Array
    top_gap_sum: Array


class Chance(NamedTuple):
    """A metric over random benchmarks.

    mean, q95  mean and 95% quantile
    p          (1 + number of random benchmarks that reach the observed value)/(1 + reps), Davison and Hinkley 1997
    """

    mean: float
    q95: float
    p: float


class Baseline(NamedTuple):
    """Chance for each metric (None where the metric is undefined), from `reps` random benchmarks."""

    ddm: Chance | None
    max_gap: Chance | None
    top_gap_sum: Chance | None
    reps: int


def gaps(z: Array) -> Array:
    """The n + 1 gaps of z (..., n), ascending on the last axis: shape (..., n + 1)."""
    out = np.empty((*z.shape[:-1], z.shape[-1] + 1))
    out[..., 0] = z[..., 0]
    np.subtract(z[..., 1:], z[..., :-1], out=out[..., 1:-1])
    np.subtract(1.0, z[..., -1], out=out[..., -1])
    return out


def spread(z: Array, target: Target, reference: str = "same-size", top: int = 5) -> Spread:
    """The metrics of each benchmark in z, shape (..., n), ascending on the last axis, n >= 1, values in [0,1].

    reference   ``same-size`` or ``continuous``. ddm is NaN for one item against the uniform same-size reference,
                which needs two.
    """
    n = z.shape[-1]
    if reference == "continuous":
        ddm = target.distance(z)
    else:
        ideal = target.reference(n)
        ddm = np.full(z.shape[:-1], np.nan) if ideal is None else np.abs(z - ideal).mean(-1)
    width = gaps(z)
    if top <= n:
        width.partition(n + 1 - top, axis=-1)
        width = width[..., n + 1 - top :]
    return Spread(np.asarray(ddm), width.max(-1), width.sum(-1))


def chance(
    observed: Spread,
    n: int,
    target: Target,
    *,
    method: str = "minmax",
    reference: str = "same-size",
    top: int = 5,
    reps: int = 4000,
    seed: int = 0,
) -> Baseline:
    """Compare the observed metrics of n items with `reps` random benchmarks of n items from the target.

    Under ``minmax`` and ``rank`` the random difficulties are normalised likewise; the other normalisations have
    [0,1] as their scale, and the target lives on it.

    Cost is bounded by two rules. Uniform target, more than 2048 items: the gaps of n uniform values are exponentials
    over their sum (Pyke 1965), so the largest are drawn from the Renyi representation, and the DDM from the path at
    1024 of the n order statistics (gamma increments); both differ from the full simulation by far less than 4000
    repetitions resolve. Any other target, more than 2048 items: reps = 2 x 10^7/n, but 40 at least and `reps` at most.
    """
    rng = np.random.default_rng(seed)
    uniform = isinstance(target, Uniform)
    if n > EXACT_SIZE and method != "rank" and not uniform:
        reps = min(reps, max(40, _DRAWN // n))
    if method == "rank":
        even = np.arange(n)[None] / max(n - 1, 1)
        parts = [Spread(*(np.repeat(v, reps) for v in spread(even, target, reference, top)))]
    elif uniform and n > EXACT_SIZE:
        spacings = n - 1 if method == "minmax" else n + 1
        parts = [_large_uniform(rng, rows, spacings, n, top) for rows in _chunks(reps, _KNOTS)]
    else:
        parts = [
            spread(_random_benchmarks(rng, rows, n, target, method), target, reference, top)
            for rows in _chunks(reps, n)
        ]
    found: list[Chance | None] = []
    for name in METRICS:
        values = np.concatenate([getattr(part, name) for part in parts])
        values = values[~np.isnan(values)]  # a draw of equal values from a discrete target has no minmax
        value = float(getattr(observed, name))
        if values.size == 0 or np.isnan(value):
            found.append(None)
            continue
        p = (1 + int((values >= value - ROUNDING).sum())) / (1 + values.size)
        found.append(Chance(float(values.mean()), float(np.quantile(values, 0.95)), p))
    return Baseline(found[0], found[1], found[2], reps)


def _chunks(reps: int, n: int) -> Iterator[int]:
    size = max(1, _BLOCK // n)
    while reps > 0:
        yield min(size, reps)
        reps -= size


def _random_benchmarks(rng: np.random.Generator, rows: int, n: int, target: Target, method: str) -> Array:
    """Ascending, normalised difficulties of `rows` random benchmarks, shape (rows, n)."""
    if isinstance(target, Uniform) and (method != "minmax" or n > 1):
        # Order statistics of uniform values are partial sums of exponentials over the total: nothing to sort.
        fixed = method == "minmax"
        path = rng.standard_exponential((rows, n - 1 if fixed else n + 1))
        np.cumsum(path, axis=1, out=path)
        path /= path[:, -1:].copy()
        return np.concatenate([np.zeros((rows, 1)), path], axis=1) if fixed else path[:, :-1]
    z = target.draw(rng, (rows, n))
    z.sort(axis=1)
    if method == "minmax":
        span = z[:, -1:] - z[:, :1]
        span[span == 0] = np.nan
        z = (z - z[:, :1]) / span
    return z


def _large_uniform(rng: np.random.Generator, rows: int, spacings: int, n: int, top: int) -> Spread:
    """The metrics of `rows` random uniform benchmarks from a bounded number of draws, m = `spacings` gaps each.

    Gaps: with G_i independent Exp(1), the j-th largest of m exponentials is sum_{i>=j} G_i/i and their sum is
    sum_i G_i (Renyi 1953). The first 1024 G_i are drawn; of the rest, the sum is Gamma(m - 1024), and sum G_i/i given
    it is normal with the exact conditional mean and variance of a linear regression.
    """
    place = np.linspace(0, spacings, _KNOTS + 1).astype(np.int64)
    size, place = place[1:] - place[:-1], place[1:]
    path = np.cumsum(rng.standard_gamma(size, (rows, _KNOTS)), axis=1)
    path /= path[:, -1:].copy()
    # The m-th partial sum is item m + 1 when the first item lies at 0, else item m: the grid is (item - 1)/(n - 1).
    grid = (place if spacings == n - 1 else place - 1) / (n - 1)
    ddm = np.abs(path - grid)[:, :-1].mean(1)

    kept = min(spacings, max(_KNOTS, top))
    index = np.arange(1, spacings + 1, dtype=np.float64)
    g = rng.standard_exponential((rows, kept))
    total = g.sum(1)
    rest = np.zeros(rows)
    if kept < spacings:
        late, inverse = spacings - kept, 1 / index[kept:]
        beyond = rng.standard_gamma(late, rows)
        total += beyond
        residual = max(float((inverse**2).sum() - inverse.sum() ** 2 / late), 0.0)
        rest = inverse.sum() * beyond / late + np.sqrt(residual) * rng.standard_normal(rows)
    # The j-th largest gap holds the terms i >= j, so the sum of the first `top` counts term i min(i, top) times.
    g /= index[:kept]
    largest = g.sum(1) + rest
    shared = g @ np.minimum(index[:kept], top) + min(top, spacings) * rest
    return Spread(ddm, largest / total, np.minimum(shared / total, 1.0))
