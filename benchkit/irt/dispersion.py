"""Over-dispersion of the attempts on one cell: the beta-binomial likelihood's rho, found beside the mode. Numpy only.

    y_ij ~ BetaBinomial(n_ij, p_ij kappa, (1 - p_ij) kappa),  kappa = (1 - rho)/rho,  rho ~ U(0, 1)

rho is the correlation of two attempts on one cell; 0: binomial. The variance of y grows by 1 + (n - 1) rho, so for
the mode and its curvature an attempt counts 1/(1 + (n - 1) rho) (quasi-likelihood: McCullagh and Nelder 1989, ch. 9).
Given the probabilities at that mode, rho's likelihood is known on a grid; the two are found in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchkit.errors import InputError
from benchkit.irt.laplace import Laplace, laplace
from benchkit.irt.marginal import masses
from benchkit.irt.model import Array, Data, Priors
from benchkit.irt.pointwise import beta_binomial

# logit rho: below -18 the beta-binomial is the binomial, above 12 every cell is all or nothing
LOW, HIGH = -18.0, 12.0
_ROUNDS = 30
_CHUNK = 2_000_000


class Dispersion(NamedTuple):
    """What is known of rho at the mode.

    rho: empirical-Bayes value. weights (N, M): 1/(1 + (n - 1) rho). logit, density (K,): a rising grid of logit rho and
    its posterior density there, given the probabilities at the mode, up to a constant.
    """

    rho: float
    weights: Array
    logit: Array
    density: Array


def disperse(data: Data, priors: Priors) -> tuple[Laplace, Dispersion]:
    """The mode of the 1PL with over-dispersed attempts, and rho.

    Raises InputError where no cell has two attempts: nothing shows how alike they are.
    """
    several = data.attempts >= 2
    if not several.any():
        raise InputError("--dispersion beta needs cells with two attempts or more: here every cell has one")
    if (data.correct != np.round(data.correct)).any():
        raise InputError("--dispersion beta needs whole numbers of correct attempts: some scores are fractions")
    i, j = np.nonzero(several)
    n, y = data.attempts[i, j].astype(float), data.correct[i, j]
    rho, mode = 0.05, None
    for _ in range(_ROUNDS):
        mode = laplace(data, priors, start=mode, tolerance=1e-4, weights=_weights(data, rho))
        eta = mode.theta[i] - mode.b[j]
        t = np.linspace(LOW, HIGH, 31)
        for _ in range(3):  # each grid is a fourth as wide, around the best point
            best = float(t[np.argmax(_log_density(t, eta, n, y))])
            t = np.linspace(best - 2 * (t[1] - t[0]), best + 2 * (t[1] - t[0]), 17)
        new = 1 / (1 + np.exp(-best))
        done = abs(new - rho) < 1e-3 * rho
        rho = new
        if done:
            break
    weights = _weights(data, rho)
    mode = laplace(data, priors, start=mode, weights=weights)
    eta = mode.theta[i] - mode.b[j]
    coarse = np.linspace(LOW, HIGH, 121)
    values = _log_density(coarse, eta, n, y)
    inside = np.flatnonzero(values > values.max() - 40)
    fine = np.linspace(coarse[max(inside[0] - 1, 0)], coarse[min(inside[-1] + 1, 120)], 241)
    values = _log_density(fine, eta, n, y)
    return mode, Dispersion(rho, weights, fine, np.exp(values - values.max()))


def _weights(data: Data, rho: float) -> Array:
    return np.asarray(1 / (1 + np.maximum(data.attempts - 1.0, 0.0) * rho))


def _log_density(t: Array, eta: Array, n: Array, y: Array) -> Array:
    """Log posterior density of logit rho (K,) given the cells' log odds, up to a constant."""
    rho = 1 / (1 + np.exp(-t))
    out = np.log(rho) + np.log1p(-rho)
    step = max(1, _CHUNK // len(t))
    for k in range(0, len(eta), step):
        part = slice(k, k + step)
        cells = np.repeat(eta[part, None], len(t), axis=1)
        out += beta_binomial(cells, y[part], (n - y)[part], rho).sum(0)
    return np.asarray(out)


def summary(over: Dispersion) -> tuple[float, float, float, float]:
    """Mean, sd and 95% bounds of rho under the grid's density."""
    rho = 1 / (1 + np.exp(-over.logit))
    mass = masses(over.logit, over.density)
    middle = 0.5 * (rho[1:] + rho[:-1])
    mean = float(mass @ middle)
    below = np.append(0.0, np.cumsum(mass))
    lower, upper = (float(np.interp(q, below, rho)) for q in (0.025, 0.975))
    return mean, float(np.sqrt(mass @ (middle - mean) ** 2)), lower, upper
