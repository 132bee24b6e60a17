"""The marginal posterior of a standard deviation whose values are known with errors. Numpy only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchkit.irt.model import Array


class Marginal(NamedTuple):
    """Posterior of log sigma on a rising grid (K,): density up to a constant; log mean of sigma; sd."""

    grid: Array
    density: Array
    middle: float
    sd: float


def masses(grid: Array, density: Array) -> Array:
    """Shares (K - 1,) of the intervals of a rising grid (K,) under a density, by trapezoids."""
    mass = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
    return np.asarray(mass / mass.sum())


def marginal(x: Array, var: Array, sigma: float, prior: float) -> Marginal:
    """Marginal posterior of log sigma, with the x_j ~ N(m, sigma) integrated out, whatever their level m is.

    x, var (n,): posterior means, and variances about their mean, at ``sigma``. They are those of an observation with
    precision l = 1/var - 1/sigma^2 at x (l + 1/sigma^2)/l, whose density for any sigma is normal. The level costs one
    degree of freedom.
    """
    tau = sigma**-2
    x = x - x.mean()
    noise = 1 / np.maximum(1 / var - tau, 1e-3 * tau)
    seen2 = (x * (1 + tau * noise)) ** 2
    # Where little is seen the difference of precisions is rough, of a bent posterior even negative: no such value says
    # more than a few standard deviations do.
    seen2 = np.where(tau * noise > 5, np.minimum(seen2, np.where(tau * noise > 999, 4, 12) * noise), seen2)

    def log_density(t: Array) -> Array:
        s2 = np.exp(2 * t)[:, None]
        out = t - 0.5 * s2[:, 0] / prior**2
        for k in range(0, x.size, 4096):
            total = s2 + noise[k : k + 4096]
            out -= 0.5 * ((1 - 1 / x.size) * np.log(total) + seen2[k : k + 4096] / total).sum(1)
        return np.asarray(out)

    low, high = np.log(prior) - 14, np.log(prior) + 1.5
    for count in (63, 63, 255):
        grid = np.linspace(low, high, count)
        value = log_density(grid)
        inside = np.flatnonzero(value > value.max() - 30)
        low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, count - 1)]
    density = np.exp(value - value.max())
    mass = masses(grid, density)
    between = 0.5 * (grid[1:] + grid[:-1])
    mean = float(mass @ between)
    middle = float(np.log(mass @ np.exp(between)))
    return Marginal(grid, density, middle, float(np.sqrt(mass @ (between - mean) ** 2)))


def moments(m: Marginal) -> tuple[float, float, float, float]:
    """Mean, sd and 95% bounds of sigma."""
    mass = masses(m.grid, m.density)
    middle = np.exp(0.5 * (m.grid[1:] + m.grid[:-1]))
    mean = float(mass @ middle)
    lower, upper = np.exp(np.interp([0.025, 0.975], np.append(0.0, np.cumsum(mass)), m.grid)).tolist()
    return mean, float(np.sqrt(mass @ (middle - mean) ** 2)), lower, upper
