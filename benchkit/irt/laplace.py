"""The Laplace approximation of the 1PL posterior, at empirical-Bayes hyperparameters. Numpy only.

One side, v (index j, length L), is eliminated from every linear system (Schur complement): only the other
side u (index i, length S) and mu_b remain, so a Newton step costs O(S^2 L). Signs are turned so that the log odds of
a success are always u_i - v_j. v is the larger side, since that is cheaper, but the items also where there are up to
twice as many models: their posteriors are the more skewed ones, and the sampler serves v better (see ``geometry``).
Where v = theta and u = b, successes count failures.

For given standard deviations, (u, v, mu) is the joint mode. The standard deviations are fixed points of EM for the
marginal likelihood, with their half-normal prior and the Jacobian of log sigma:
sigma^4/s^2 + (n-1) sigma^2 - SS = 0, SS = sum E (x - m)^2, which stays away from sigma = 0. They are reached by Fisher
scoring on log sigma, whose information is 2 sum (1 - var_k/sigma^2)^2 + 1, not by EM's slow steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchkit.irt.model import Array, Data, Priors, sigmoid

_MAX_ITERATIONS = 3000


class Oriented(NamedTuple):
    """Data with u in rows.

    n, y: float64 (S, L), attempts and successes of u_i over v_j.
    models_are_rows: whether u is theta (else u is b).
    """

    n: Array
    y: Array
    models_are_rows: bool


class Laplace(NamedTuple):
    """Mode, curvature and hyperparameters. All in logits.

    theta (N,), b (M,), mu_b: joint mode given the standard deviations.
    sd_theta (N,), sd_b (M,), sd_mu_b: from the inverse of the negative Hessian in (theta, b, mu_b).
    sigma_theta, sigma_b: empirical-Bayes values. sd_log_sigma_theta, sd_log_sigma_b: their curvature's sds, log scale.
    iterations: Newton steps taken. converged: whether every update fell below the tolerance.
    """

    theta: Array
    b: Array
    mu_b: float
    sigma_theta: float
    sigma_b: float
    sd_theta: Array
    sd_b: Array
    sd_mu_b: float
    sd_log_sigma_theta: float
    sd_log_sigma_b: float
    iterations: int
    converged: bool


class _Scales(NamedTuple):
    """Means' owner and scales, side by side: a_u, a_v say whose mean mu is."""

    a_u: float
    a_v: float
    s_u: float
    s_v: float
    s_mu: float


def models_first(n_models: int, n_items: int) -> bool:
    """Whether u is theta and v is b."""
    return n_models <= 2 * n_items


def orient(data: Data, weights: Array | None = None) -> Oriented:
    """Put u in rows and count successes of u over v.

    weights (N, M): what an attempt of the cell counts for; 1 if None.
    """
    n, y = data.attempts.astype(np.float64), data.correct
    if weights is not None:
        n, y = n * weights, y * weights
    if models_first(*n.shape):
        return Oriented(n, y, True)
    return Oriented(np.ascontiguousarray(n.T), np.ascontiguousarray((n - y).T), False)


def precision_u_mu(weights: Array, tau_u: float, tau_v: float, a_v: float, s_mu: float) -> tuple[Array, Array]:
    """Precision of (u, mu) with v integrated out, (S+1, S+1), and c = sum_i W_ij + tau_v, (L,).

    weights: W (S, L). tau = 1/sigma^2. a_v: 1 where mu is the mean of v, 0 where it is the mean of u.
    """
    size_u = weights.shape[0]
    c = weights.sum(0) + tau_v
    root = weights / np.sqrt(c)
    h = np.empty((size_u + 1, size_u + 1))
    np.negative(root @ root.T, out=h[:-1, :-1])  # a matrix times its own transpose is half the work
    h[np.arange(size_u), np.arange(size_u)] += weights.sum(1) + tau_u
    if a_v:
        h[:-1, -1] = h[-1, :-1] = -tau_v * (weights @ (1 / c))
        # tau_v sum (1 - tau_v/c), written without cancellation
        h[-1, -1] = tau_v * float((weights.sum(0) / c).sum()) + s_mu**-2
    else:
        h[:-1, -1] = h[-1, :-1] = -tau_u
        h[-1, -1] = size_u * tau_u + s_mu**-2
    return h, c


def laplace(
    data: Data,
    priors: Priors,
    start: Laplace | None = None,
    tolerance: float = 1e-7,
    weights: Array | None = None,
) -> Laplace:
    """Mode by damped Newton steps, empirical-Bayes standard deviations, curvature.

    start: an earlier result of the same shape to begin from. tolerance: logits; the last Newton step is below it.
    weights (N, M): what an attempt of the cell counts for (see ``dispersion``); 1 if None.
    """
    o = orient(data, weights)
    rows = o.models_are_rows
    s_u, s_v = (priors.sigma_theta, priors.sigma_b) if rows else (priors.sigma_b, priors.sigma_theta)
    sc = _Scales(0.0 if rows else 1.0, 1.0 if rows else 0.0, s_u, s_v, priors.mu_b)
    if start is None:
        u, v, mu, log_s = np.zeros(o.n.shape[0]), np.zeros(o.n.shape[1]), 0.0, np.zeros(2)
    else:
        u, v = (start.theta, start.b) if rows else (start.b, start.theta)
        sig = (start.sigma_theta, start.sigma_b) if rows else (start.sigma_b, start.sigma_theta)
        mu, log_s = start.mu_b, np.log(np.array(sig))
    u, v, mu, log_s, var, info, steps, ok = _climb(o, sc, u, v, mu, log_s, tolerance)
    sig_u, sig_v = (float(x) for x in np.exp(log_s))
    sd_u, sd_v, sd_mu = (np.sqrt(x) for x in var)
    sd_log_u, sd_log_v = (float(x) for x in 1 / np.sqrt(info))
    if rows:
        return Laplace(u, v, mu, sig_u, sig_v, sd_u, sd_v, float(sd_mu), sd_log_u, sd_log_v, steps, ok)
    return Laplace(v, u, mu, sig_v, sig_u, sd_v, sd_u, float(sd_mu), sd_log_v, sd_log_u, steps, ok)


def _climb(
    o: Oriented, sc: _Scales, u: Array, v: Array, mu: float, log_s: Array, tolerance: float
) -> tuple[Array, Array, float, Array, tuple[Array, Array, Array], Array, int, bool]:
    size_u, size_v = o.n.shape
    y_u, y_v = o.y.sum(1), -o.y.sum(0)
    prior_s2 = np.array([sc.s_u, sc.s_v]) ** 2
    sizes = np.array([size_u, size_v], float)
    converged = False
    pace, last_move = np.ones(2), np.zeros(2)
    u, v = u.copy(), v.copy()
    # written anew in each step: to allocate them takes longer than to fill them
    expected, q, rest, spare = (np.empty((size_u + k, size_v)) for k in (0, 0, 1, 1))
    cross = np.empty((size_u + 1, size_v))
    w = cross[:-1]
    steps = 0
    while steps < _MAX_ITERATIONS:
        steps += 1
        tau_u, tau_v = (float(x) for x in np.exp(-2 * log_s))
        _chances(u, v, expected, q)
        expected *= o.n
        np.multiply(expected, q, out=w)
        g_u = y_u - expected.sum(1) - tau_u * (u - sc.a_u * mu)
        g_v = y_v + expected.sum(0) - tau_v * (v - sc.a_v * mu)
        g_mu = sc.a_u * tau_u * float((u - mu).sum()) + sc.a_v * tau_v * float((v - mu).sum()) - mu / sc.s_mu**2
        h, c = precision_u_mu(w, tau_u, tau_v, sc.a_v, sc.s_mu)
        cov = inverse(h)
        # v given (u, mu): dv = (g_v + W^T du + a_v tau_v dmu) / c
        cross[-1] = sc.a_v * tau_v
        d = cov @ (np.append(g_u, g_mu) + cross @ (g_v / c))
        dv = (g_v + d @ cross) / c
        largest = float(max(np.abs(d).max(), np.abs(dv).max()))
        damp = min(1.0, 2.0 / max(largest, 1e-300))
        u, v, mu = u + damp * d[:-1], v + damp * dv, mu + damp * float(d[-1])

        np.divide(cross, c, out=rest)
        rest[-1] -= sc.a_v
        var_v = 1 / c + np.einsum("ij,ij->j", rest, np.matmul(cov, rest, out=spare))  # of v_j - m_v
        var_u = np.diag(cov)[:-1] + sc.a_u * (cov[-1, -1] - 2 * cov[-1, :-1])  # of u_i - m_u
        ss = np.array([((u - sc.a_u * mu) ** 2 + var_u).sum(), ((v - sc.a_v * mu) ** 2 + var_v).sum()])
        sigma2 = np.exp(2 * log_s)
        kept = np.array([_squares(1 - var_u * tau_u), _squares(1 - var_v * tau_v)])
        info = 2 * kept + 1
        slope = ss / sigma2 - (sizes - 1) - sigma2 / prior_s2
        move = np.clip(slope / (2 * kept + 2 * sigma2 / prior_s2 + 0.1), -0.5, 0.5)
        if damp == 1 and largest < tolerance and np.abs(move).max() < 1e-5:
            converged = True
            break
        if largest < 1.0:  # far from the mode the variances mean little
            turned = move * last_move < 0
            pace = np.where(turned, 0.5 * pace, np.minimum(1.0, 1.3 * pace))
            last_move = move
            log_s = log_s + pace * move
    rest[-1] += sc.a_v
    var_v_abs = 1 / c + np.einsum("ij,ij->j", rest, np.matmul(cov, rest, out=spare))
    variances = (np.diag(cov)[:-1], var_v_abs, cov[-1, -1])
    return u, v, mu, log_s, variances, info, steps, converged


def _chances(u: Array, v: Array, p: Array, q: Array) -> None:
    """Write p_ij = 1/(1 + exp(v_j - u_i)) and q = 1 - p, both (S, L), from S + L exponentials instead of S L."""
    if max(np.abs(u).max(), np.abs(v).max()) > 300:  # the product of two exponentials might overflow
        difference = u[:, None] - v[None, :]
        p[:], q[:] = sigmoid(difference), sigmoid(-difference)
        return
    np.multiply(np.exp(-u)[:, None], np.exp(v)[None, :], out=q)  # the odds of a failure
    np.add(q, 1, out=p)
    np.divide(1, p, out=p)
    q *= p


def _squares(kept: Array) -> float:
    return float((np.clip(kept, 0.0, 1.0) ** 2).sum())


def inverse(h: Array) -> Array:
    """The inverse of a positive definite matrix."""
    half = np.linalg.inv(np.linalg.cholesky(h))
    return np.asarray(half.T @ half)
