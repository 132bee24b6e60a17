"""The whitening map of the 1PL posterior: constants from the mode, and the reference implementation in float64.

With u the smaller side, v the larger one (see ``laplace``), and z ~ about N(0, I) the sampler's coordinates:

    log sigma_u = lsu + z_0 e_u,   log sigma_v = lsv + z_1 e_v            e: from the curvature at the mode
    mu  = mu^ + z_2 s,      s^2 = k_u sigma_u^2 + k_v sigma_v^2 + k_0     mu's posterior variance follows both
    c_j = sum_i W_ij + tau_v,     x_j = (G_j - (v^_j - m_v) tau_v) / c_j           tau = 1/sigma^2
    u   = u^ + Q [ (Q^T r) / d + z_u / sqrt(d) ],   r = g - (u^ - m_u) tau_u + W x,   d = lambda(tau_v) + tau_u
    v_j = v^_j + (sum_i W_ij (u_i - u^_i)) / c_j + x_j + z_j / sqrt(c_j)
    log |dx/dz| = log s - 1/2 sum log d - 1/2 sum log c  + constant

W = n p (1-p), G and g the likelihood's gradients in v and u, all at the mode. Q Lambda Q^T is the Schur complement
diag(sum_j W) - W C^-1 W^T, whose eigenvalues follow tau_v to first order in the logarithm. So v given everything
else, and u given the hyperparameters, are whitened exactly where the likelihood is quadratic; three coordinates are
left that the step size alone must serve. Any positive d and s give a valid map: only the speed depends on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchkit.irt.laplace import Laplace, orient, precision_u_mu
from benchkit.irt.model import Array, Data, Priors, sigmoid

# scalars of Geometry.h, in order
H = ("mu", "lsu", "lsv", "e_u", "e_v", "k_u", "k_v", "k_0", "a_u", "a_v", "s_mu", "s_u", "s_v")


class Geometry(NamedTuple):
    """Everything the log density in z needs. S, L: padded sizes; padding has mask 0 and no attempts.

    h (13,): scalars, named in ``H``; a_u, a_v say whose mean mu is; s_mu, s_u, s_v are the prior scales.
    u0, g, lam, ela, y_u, mask_u (S,): mode, gradient, eigenvalues and their elasticities in tau_v, sum_j y, mask.
    v0, G, wl, y_v, ref, mask_v (L,): mode, gradient, sum_i W, -sum_i y, minus the log density's columns at the mode.
    q (S, S): eigenvectors in columns. w, n (S, L): W and the attempts.
    """

    h: Array
    u0: Array
    g: Array
    lam: Array
    ela: Array
    y_u: Array
    mask_u: Array
    v0: Array
    G: Array
    wl: Array
    y_v: Array
    ref: Array
    mask_v: Array
    q: Array
    w: Array
    n: Array


def bucket(size: int) -> int:
    """The padded size: at most an eighth larger (8 at least), so that one compiled program serves many data sets."""
    step = 8
    while size > 16 * step:
        step *= 2
    return -(-size // step) * step


def geometry(data: Data, priors: Priors, mode: Laplace, pad: tuple[int, int] | None = None) -> Geometry:
    """Constants of the map, in float64. pad: padded sizes (S, L); by default ``bucket`` of each."""
    o = orient(data)
    rows = o.models_are_rows
    size_u, size_v = o.n.shape
    u, v = (mode.theta, mode.b) if rows else (mode.b, mode.theta)
    sig = np.array([mode.sigma_theta, mode.sigma_b] if rows else [mode.sigma_b, mode.sigma_theta])
    e_u, e_v = (mode.sd_log_sigma_theta, mode.sd_log_sigma_b)[:: 1 if rows else -1]
    s_u, s_v = (priors.sigma_theta, priors.sigma_b)[:: 1 if rows else -1]
    a_u, a_v = (0.0, 1.0) if rows else (1.0, 0.0)
    tau_u, tau_v = (float(t) for t in sig**-2)

    eta = u[:, None] - v[None, :]
    p = sigmoid(eta)
    w = o.n * p * (1 - p)
    y_u, y_v = o.y.sum(1), -o.y.sum(0)
    grad_u, grad_v = y_u - (o.n * p).sum(1), y_v + (o.n * p).sum(0)
    wl = w.sum(0)

    h, c = precision_u_mu(w, tau_u, tau_v, a_v, priors.mu_b)
    schur = h[:-1, :-1] - tau_u * np.eye(size_u)
    lam, q = np.linalg.eigh(schur)
    lam = np.maximum(lam, 1e-10 * max(float(lam[-1]), 1.0))
    ela = np.clip(tau_v * (((q.T @ w) / c) ** 2).sum(1) / lam, 0.0, 1.0)

    # how mu's variance moves with the two variances: dV/d sigma^2 = tau^2 sum cov(mu, x - m)^2
    k_mu = np.linalg.solve(h, np.append(np.zeros(size_u), 1.0))
    cov_u = k_mu[:-1] - a_u * k_mu[-1]
    cov_v = (k_mu[:-1] @ w + a_v * tau_v * k_mu[-1]) / c - a_v * k_mu[-1]
    k_u, k_v = tau_u**2 * float((cov_u**2).sum()), tau_v**2 * float((cov_v**2).sum())
    k_0 = max(float(k_mu[-1]) - k_u * sig[0] ** 2 - k_v * sig[1] ** 2, 1e-3 * float(k_mu[-1]))

    softplus = np.maximum(eta, 0) + np.log1p(np.exp(-np.abs(eta)))
    ref = (o.n * softplus).sum(0)
    pad_u, pad_v = pad or (bucket(size_u), bucket(size_v))

    def wide(x: Array, size: int, value: float = 0.0) -> Array:
        return np.append(x, np.full(size - x.size, value))

    def block(x: Array, rows_: int, cols: int) -> Array:
        out = np.zeros((rows_, cols))
        out[: x.shape[0], : x.shape[1]] = x
        return out

    scalars = dict(mu=mode.mu_b, lsu=np.log(sig[0]), lsv=np.log(sig[1]), e_u=e_u, e_v=e_v, k_u=k_u, k_v=k_v, k_0=k_0)
    scalars |= dict(a_u=a_u, a_v=a_v, s_mu=priors.mu_b, s_u=s_u, s_v=s_v)
    return Geometry(
        h=np.array([scalars[name] for name in H]),
        u0=wide(u, pad_u),
        g=wide(grad_u, pad_u),
        lam=wide(lam, pad_u, 1.0),
        ela=wide(ela, pad_u),
        y_u=wide(y_u, pad_u),
        mask_u=wide(np.ones(size_u), pad_u),
        v0=wide(v, pad_v),
        G=wide(grad_v, pad_v),
        wl=wide(wl, pad_v),
        y_v=wide(y_v, pad_v),
        ref=wide(ref, pad_v),
        mask_v=wide(np.ones(size_v), pad_v),
        q=block(q, pad_u, pad_u),
        w=block(w, pad_u, pad_v),
        n=block(o.n, pad_u, pad_v),
    )
