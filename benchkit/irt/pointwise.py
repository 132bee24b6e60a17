"""The log likelihood of every cell under every draw, of the 1PL, the 2PL and their beta-binomial forms. Numpy only.

    eta_ij = theta_i - b_j                  1PL (Rasch 1960)
    eta_ij = a_j (theta_i - b_j)            2PL (Birnbaum 1968)
    y_ij ~ Binomial(n_ij, p_ij), p_ij = sigmoid(eta_ij)
    y_ij ~ BetaBinomial(n_ij, p kappa, (1-p) kappa), kappa = (1-rho)/rho        where rho is given

Values come without log C(n, y), which is `log_choose`: it is the same for every draw, and adding it early would hide
the small differences between draws on cells that are nearly certain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt.model import Array

Floats = NDArray[np.floating]
Whole = NDArray[np.integer]

# factors of a rising factorial that are taken one by one; beyond them Stirling's series, exact to 1e-14 from 16 on
_FACTORS = 16


class Draws(NamedTuple):
    """S draws from a posterior, any float type.

    theta (S, N), b (S, M) in logits. a (S, M), positive discriminations; None means 1 (1PL). rho (S,), between 0 and 1,
    the correlation between attempts on one cell; None means 0 (binomial).
    """

    theta: Floats
    b: Floats
    a: Floats | None = None
    rho: Floats | None = None


def check_draws(draws: Draws, shape: tuple[int, ...]) -> int:
    """The number of draws S; raises InputError unless the draws fit a table of N x M cells."""
    count = len(draws.theta)
    expected = {"theta": (count, shape[0]), "b": (count, shape[1]), "a": (count, shape[1]), "rho": (count,)}
    for name, want in expected.items():
        x: Floats | None = getattr(draws, name)
        if x is not None and x.shape != want:
            raise InputError(f"draws of {name} have shape {x.shape}, not {want}")
    return count


def cell_loglik(draws: Draws, n: Whole, y: Floats, i: Whole, j: Whole) -> Array:
    """log p(y_c | draw s) - log C(n_c, y_c) of the cells c = (model i_c, item j_c).

    n, y, i, j: (C,), attempts >= 1, whole successes, rows and columns. Returns (C, S). Relative precision holds also
    where a cell is nearly certain.
    """
    eta = _rows(draws.theta, i)
    eta -= _rows(draws.b, j)
    if draws.a is not None:
        eta *= _rows(draws.a, j)
    right, wrong = y[:, None], (n - y)[:, None]
    if draws.rho is None:
        return _binomial(eta, right, wrong)
    return beta_binomial(eta, right[:, 0], wrong[:, 0], np.asarray(draws.rho, np.float64))


def log_choose(n: Whole, y: Floats) -> Array:
    """log C(n, y), elementwise, for whole 0 <= y <= n."""
    return _log_factorial(n) - _log_factorial(y) - _log_factorial(n - y)


def _log_factorial(x: Whole | Floats) -> Array:
    values, where = np.unique(x, return_inverse=True)
    return np.array([math.lgamma(v + 1.0) for v in values.tolist()])[where].reshape(x.shape)


def _rows(x: Floats, columns: Whole) -> Array:
    """x (S, P) -> the asked columns as rows (C, S) of float64; each column is read once."""
    used, where = np.unique(columns, return_inverse=True)
    return np.ascontiguousarray(x[:, used].T, np.float64)[where]


def _binomial(eta: Array, right: Floats, wrong: Floats) -> Array:
    """-right log(1 + e^-eta) - wrong log(1 + e^eta), overwriting eta (C, S)."""
    size = np.abs(eta)
    np.negative(size, out=size)
    np.exp(size, out=size)
    np.log1p(size, out=size)
    size *= right + wrong
    side = np.maximum(eta, 0.0)
    side *= wrong
    size += side
    np.minimum(eta, 0.0, out=side)
    side *= right
    size -= side
    return np.negative(size, out=size)


def beta_binomial(eta: Array, right: Floats, wrong: Floats, rho: Array) -> Array:
    """log of  prod_{r<right} (u + r rho)  prod_{r<wrong} (v + r rho) / prod_{r<n} (1 - rho + r rho),
    u = (1-rho) p, v = (1-rho)(1-p).

    The gamma functions' ratios as products (Skellam 1948): no cancellation, and the binomial as rho -> 0.
    """
    rho = np.clip(rho, 1e-300, 1 - 2.0**-53)
    rest = np.log1p(-rho)
    # log p and log (1-p)
    softplus = np.log1p(np.exp(-np.abs(eta)))
    out = _log_rising(right, np.minimum(eta, 0.0) - softplus + rest, rho)
    out += _log_rising(wrong, -np.maximum(eta, 0.0) - softplus + rest, rho)
    total, where = np.unique(right + wrong, return_inverse=True)
    out -= _log_rising(total, np.broadcast_to(rest, (total.size, rho.size)), rho)[where]
    return out


def _log_rising(count: Floats, log_start: Array, step: Array) -> Array:
    """sum_{r < count_c} log(start_cs + r step_s): count (C,), log_start (C, S), step (S,) -> (C, S)."""
    out = np.where(count[:, None] > 0, log_start, 0.0)
    start = np.exp(log_start)
    for r in range(1, min(int(count.max(initial=0)), _FACTORS)):
        more = np.flatnonzero(count > r)
        if more.size == count.size:
            out += np.log(start + r * step)
        else:
            out[more] += np.log(start[more] + r * step)
    long = np.flatnonzero(count > _FACTORS)
    if long.size:
        # log Gamma(x+m) - log Gamma(x) + m log step by Stirling's series, x = first/step >= 16
        first = start[long] + _FACTORS * step
        m = count[long][:, None] - _FACTORS
        x = first / step
        out[long] += m * np.log(first + m * step) + (x - 0.5) * np.log1p(m / x) - m + _stirling(x + m) - _stirling(x)
    return out


def _stirling(x: Array) -> Array:
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2 for x >= 16 (Abramowitz and Stegun 1964, 6.1.41)."""
    z = 1 / x
    s = z * z
    return np.asarray(z * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680))))
