"""Draws, or a Laplace approximation, to the rows of a parameter table. Numpy only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.irt import dispersion
from benchkit.irt.diagnostics import Diagnostics
from benchkit.irt.dispersion import Dispersion
from benchkit.irt.laplace import Laplace
from benchkit.irt.marginal import moments
from benchkit.irt.model import Array
from benchkit.irt.two import Centre

_Z95 = 1.959963984540054


class Summary(NamedTuple):
    """One entry per parameter, logits: posterior mean, sd, 2.5% and 97.5% points; MCMC columns or None."""

    mean: Array
    sd: Array
    lower: Array
    upper: Array
    rhat: Array | None
    ess_bulk: Array | None
    ess_tail: Array | None

    def take(self, where: NDArray[np.intp] | slice) -> Summary:
        """The entries at ``where``."""
        rhat, bulk, tail = (None if x is None else x[where] for x in (self.rhat, self.ess_bulk, self.ess_tail))
        return Summary(self.mean[where], self.sd[where], self.lower[where], self.upper[where], rhat, bulk, tail)


def of_draws(draws: NDArray[np.float32], diagnostics: Diagnostics) -> Summary:
    """Summary of draws (S, P): sd with S-1, bounds by linear interpolation between order statistics."""
    n, size = draws.shape
    out = np.empty((4, size))
    step = max(1, 4_000_000 // n)
    for k in range(0, size, step):
        x = draws[:, k : k + step].T.astype(np.float64)
        out[0, k : k + step] = x.mean(1)
        out[1, k : k + step] = x.std(1, ddof=1) if n > 1 else np.nan
        out[2:, k : k + step] = np.quantile(x, [0.025, 0.975], axis=1)
    return Summary(out[0], out[1], out[2], out[3], diagnostics.rhat, diagnostics.ess_bulk, diagnostics.ess_tail)


def of_laplace(mode: Laplace, over: Dispersion | None = None) -> Summary:
    """Summary in the order mu_b (, rho), sigma_b, sigma_theta, items, models.

    mu_b, b and theta are normal at the empirical-Bayes standard deviations; the standard deviations themselves are
    log-normal: mean exp(m + s^2/2), sd mean sqrt(exp(s^2) - 1). rho's are those of its density on the grid.
    """
    centre = np.concatenate([[mode.mu_b], mode.b, mode.theta])
    sd = np.concatenate([[mode.sd_mu_b], mode.sd_b, mode.sd_theta])
    log_s = np.log([mode.sigma_b, mode.sigma_theta])
    se = np.array([mode.sd_log_sigma_b, mode.sd_log_sigma_theta])
    mean_s = np.exp(log_s + se**2 / 2)

    def join(x: Array, y: Array) -> Array:
        return np.concatenate([x[:1], y, x[1:]])

    columns = [
        join(centre, mean_s),
        join(sd, mean_s * np.sqrt(np.expm1(se**2))),
        join(centre - _Z95 * sd, np.exp(log_s - _Z95 * se)),
        join(centre + _Z95 * sd, np.exp(log_s + _Z95 * se)),
    ]
    if over is not None:
        columns = [np.insert(x, 1, value) for x, value in zip(columns, dispersion.summary(over), strict=True)]
    mean, sd, lower, upper = columns
    return Summary(mean, sd, lower, upper, None, None, None)


def of_centre(c: Centre) -> Summary:
    """Summary of the 2PL's approximation, in the order mu_b, sigma_a, sigma_b, sigma_theta, b, a, theta.

    mu_b, b and theta are normal, discriminations log-normal, at the empirical-Bayes standard deviations; these have the
    moments and quantiles of their marginal posteriors.
    """

    def normal(m: Array, s: Array) -> Array:
        return np.stack([m, s, m - _Z95 * s, m + _Z95 * s])

    a = np.exp(c.at.alpha + c.sd_alpha**2 / 2)
    slopes = [a, a * np.sqrt(np.expm1(c.sd_alpha**2)), *(np.exp(c.at.alpha + z * c.sd_alpha) for z in (-_Z95, _Z95))]
    of_theta, of_b, of_a = (np.array(moments(m))[:, None] for m in c.marginals)
    parts = [normal(np.array([c.at.mu]), np.array([c.sd_mu])), of_a, of_b, of_theta]
    parts += [normal(c.at.b, c.sd_b), np.stack(slopes), normal(c.at.theta, c.sd_theta)]
    mean, sd, lower, upper = np.concatenate(parts, axis=1)
    return Summary(mean, sd, lower, upper, None, None, None)
