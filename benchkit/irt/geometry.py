"""The whitening map of the 1PL posterior: constants from the mode, and the reference implementation in float64.

With u and v the two sides (see ``laplace``; v is mostly the items), and z ~ about N(0, I) the sampler's coordinates:

    log sigma_u = l_u(z_0),   log sigma_v = l_v(z_1)        l: splines through the quantiles of a sketch of the marginal
    mu  = mu^ + z_2 s,      s^2 = k_u sigma_u^2 + k_v sigma_v^2 + k_0     mu's posterior variance follows both
    c_j = sum_i W_ij + tau_v,     x_j = (G_j - (v^_j - m_v) tau_v) / c_j           tau = 1/sigma^2
    u   = u^ + Q [ (Q^T r) / d + z_u / sqrt(d) ],   r = g - (u^ - m_u) tau_u + W x,   d = lambda(tau_v) + tau_u
    v_j = v^_j + (sum_i W_ij (u_i - u^_i)) / c_j + x_j + t_j(z_j) / sqrt(c_j)
    log |dx/dz| = log l_u' + log l_v' + log s - 1/2 sum log d - 1/2 sum log c + sum log t' + constant

W = n p (1-p), G and g the likelihood's gradients in v and u, all at the mode. Q Lambda Q^T is the Schur complement
diag(sum_j W) - W C^-1 W^T, whose eigenvalues follow tau_v to first order in the logarithm. So v given everything
else, and u given the hyperparameters, are whitened exactly where the likelihood is quadratic; three coordinates are
left that the step size alone must serve.

A v_j has few attempts and a skewed posterior. t_j is a normal quantile turned into that of a density
exp(-x^2/2 + k x^3/6 + l x^4/24), k = third/c^1.5 and l = fourth/c^2 from the likelihood's derivatives at the mode: the
first terms of its Cornish-Fisher expansion, as a g-and-h curve (Tukey 1977; Hoaglin 1985), which is monotone:

    t(z) = a + s exp(h z^2/2) (exp(a z) - 1)/a,   a = k/3 (at most LEAN),  s = 1 + l/8 + .264 k^2,  h = l/12 + .102 k^2

Over-dispersed attempts count as n/(1 + (n-1) rho) at the empirical-Bayes rho, and logit rho has a spline as log sigma.
Any positive d, s, c and monotone t give a valid map: only the speed depends on them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.irt.dispersion import Dispersion
from benchkit.irt.laplace import Laplace, models_first, orient, precision_u_mu
from benchkit.irt.model import Array, Data, Priors, sigmoid
from benchkit.irt.sampler import LONGEST, Target

# scalars of Geometry.h, in order
H = ("mu", "lsu", "lsv", "k_u", "k_v", "k_0", "a_u", "a_v", "s_mu", "s_u", "s_v")

# logits beyond which the likelihood is taken as flat: half the logarithm of the largest float32, float64
LIMIT_SINGLE, LIMIT_DOUBLE = 43, 350

# the largest a of a g-and-h curve, approached smoothly, and the largest h; beyond, the expansion says little
LEAN, HEAVY = 0.35, 0.1

# sides up to this size have their sigma's sketch made contrast by contrast
FEW = 64

# radians: the longest step where both sides together have at most FEW values that say little of the sigmas. Such a
# posterior has steep corners, where longer steps diverge or stay; its trees of 15 gradients cost next to nothing
SHORT = 0.4

# knots of the splines of log sigma: z = -REACH .. REACH; straight lines beyond
KNOTS, REACH = 49, 6.0


class Geometry(NamedTuple):
    """Everything the log density in z needs. S, L: padded sizes; padding has mask 0 and no attempts.

    The coordinates are those of mu and log sigma_u, log sigma_v (and logit rho), then u, then v.

    h (11,): scalars, named in ``H``; a_u, a_v say whose mean mu is; s_mu, s_u, s_v are the prior scales.
    u0, g, lam, ela, y_u, mask_u (S,): mode, gradient, eigenvalues and their elasticities in tau_v, sum_j y, mask.
    v0, G, wl, y_v, ref, mask_v (L,): mode, gradient, sum_i W, -sum_i y, minus the log density's columns at the mode.
    third, fourth (L,): derivatives of the log likelihood in v at the mode.
    curve_u, curve_v, curve_r (KNOTS - 1, 4): cubic pieces of l_u, l_v on the knots, lowest power first; of logit rho.
    q (S, S): eigenvectors in columns. w, n (S, L): W and the attempts. y (S, L): successes of u over v.
    curve_r (0, 4) and y (0, 0) where the likelihood is binomial.
    """

    h: Array
    curve_u: Array
    curve_v: Array
    curve_r: Array
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
    third: Array
    fourth: Array
    q: Array
    w: Array
    n: Array
    y: Array

    def mask(self) -> Array:
        """1 for the coordinates of z that are parameters, 0 for padding."""
        return np.concatenate([np.ones(4 if len(self.curve_r) else 3), self.mask_u, self.mask_v])


def wants_exact(geo: Geometry) -> bool:
    """Whether to factor the precision of (u, mu) anew at every gradient (see ``density``).

    Worth it where few values leave the standard deviations uncertain, so that the map must follow them far.
    """
    size_u, size_v = geo.n.shape
    uncertain = max(float(curve[(KNOTS - 1) // 2, 1]) for curve in (geo.curve_u, geo.curve_v))
    return (size_u <= 8 and size_v <= 4096) or (size_u <= 40 and size_u**2 * size_v <= 300_000 and uncertain > 0.25)


def needs_double(geo: Geometry) -> bool:
    """Whether to work in float64: where it costs nothing, where values may be extreme, where float32 loses the energy.

    Float32's error in the energy is about 2^-24 sqrt(S/12 sum_j l_j^2 + sum_i y_i^2 + sum_j y_j^2): sums down the
    columns' log likelihoods l, and the rounding of exp(u) and exp(v), which a row's or column's cells share. Measured
    along trajectories: 31 x 30 < .0001, 12 x 41,871 .005, 1000 x 1000 .02, 3000 x 3000 .18; of 100 attempts a cell
    34 x 118 .007, 100 x 100 .02, 12 x 8333 .11, 316 x 316 .24. At .1 it costs .04 of the acceptance, at .4 the step
    size collapses; posteriors don't move. The limit is .05.
    """
    if len(geo.curve_r) or (geo.v0.size <= FEW and wants_exact(geo)):
        return True
    scales = dict(zip(H, geo.h.tolist(), strict=True))
    extreme = max(float(np.abs(geo.u0).max()), float(np.abs(geo.v0).max()), 4 * scales["s_u"], 4 * scales["s_v"])
    if extreme + 2 * scales["s_mu"] > LIMIT_SINGLE:
        return True
    squares = geo.u0.size / 12 * (geo.ref**2).sum() + (geo.y_u**2).sum() + (geo.y_v**2).sum()
    return float(2.0**-24 * np.sqrt(squares)) > 0.05


def bucket(size: int, step: int = 8) -> int:
    """The padded size, at most an eighth larger beyond 16 steps, so that one compiled program serves many data sets."""
    while size > 16 * step:
        step *= 2
    return -(-size // step) * step


def padded(size_u: int, size_v: int) -> tuple[int, int]:
    """The padded shape (S, L)."""
    return bucket(size_u, 4), bucket(size_v, 8)


def pad_to(x: Array, *shape: int, value: float = 0.0) -> Array:
    """x in the corner of an array of this shape, the rest of it filled."""
    out = np.full(shape, value)
    out[tuple(slice(0, k) for k in x.shape)] = x
    return out


def geometry(
    data: Data,
    priors: Priors,
    mode: Laplace,
    over: Dispersion | None = None,
    pad: tuple[int, int] | None = None,
) -> Geometry:
    """Constants of the map, in float64. over: what is known of rho; None where the likelihood is binomial.

    pad: padded sizes (S, L); by default ``padded``.
    """
    o = orient(data, None if over is None else over.weights)
    raw = o if over is None else orient(data)
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
    third, fourth = (w * (1 - 2 * p)).sum(0), (w * (6 * p * (1 - p) - 1)).sum(0)

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

    seen_u = seen_v = None
    if min(size_u, size_v) <= FEW:
        cov: Array = np.asarray(np.linalg.inv(h))
        if size_u <= FEW:
            seen_u = contrasts(cov[:-1, :-1], u, float(sig[0]))
        if size_v <= FEW:
            cross = np.vstack([w, np.full(size_v, a_v * tau_v)]) / c
            seen_v = contrasts(np.diag(1 / c) + cross.T @ cov @ cross, v, float(sig[1]))

    softplus = np.maximum(eta, 0) + np.log1p(np.exp(-np.abs(eta)))
    ref = (o.n * softplus).sum(0)
    pad_u, pad_v = pad or padded(size_u, size_v)

    scalars = {"mu": mode.mu_b, "lsu": np.log(sig[0]), "lsv": np.log(sig[1]), "k_u": k_u, "k_v": k_v, "k_0": k_0}
    scalars |= {"a_u": a_u, "a_v": a_v, "s_mu": priors.mu_b, "s_u": s_u, "s_v": s_v}
    return Geometry(
        h=np.array([scalars[name] for name in H]),
        curve_u=sigma_curve(size_u, float(sig[0]), e_u, s_u, seen_u),
        curve_v=sigma_curve(size_v, float(sig[1]), e_v, s_v, seen_v),
        curve_r=np.zeros((0, 4)) if over is None else quantile_spline(over.logit, over.density),
        u0=pad_to(u, pad_u),
        g=pad_to(grad_u, pad_u),
        lam=pad_to(lam, pad_u, value=1.0),
        ela=pad_to(ela, pad_u),
        y_u=pad_to(y_u, pad_u),
        mask_u=pad_to(np.ones(size_u), pad_u),
        v0=pad_to(v, pad_v),
        G=pad_to(grad_v, pad_v),
        wl=pad_to(wl, pad_v),
        y_v=pad_to(y_v, pad_v),
        ref=pad_to(ref, pad_v),
        mask_v=pad_to(np.ones(size_v), pad_v),
        third=pad_to(third, pad_v),
        fourth=pad_to(fourth, pad_v),
        q=pad_to(q, pad_u, pad_u),
        w=pad_to(w, pad_u, pad_v),
        n=pad_to(raw.n, pad_u, pad_v),
        y=np.zeros((0, 0)) if over is None else pad_to(raw.y, pad_u, pad_v),
    )


def contrasts(covariance: Array, x: Array, sigma: float) -> tuple[Array, Array]:
    """What the data say of a side's contrasts: their errors' variances and squares, (n - 1,) each.

    covariance (n, n), x (n,): posterior of the side at sigma, normal. Along an eigenvector of the contrasts' posterior
    covariance the data's weight is k = 1 - variance/sigma^2, so they see x/k with variance sigma^2 (1 - k)/k.
    """
    n = len(x)
    if n == 1:
        return np.zeros(0), np.zeros(0)
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
    variances, axes = np.linalg.eigh(basis.T @ covariance @ basis)
    k = np.clip(1 - variances / sigma**2, 1e-4, 1 - 1e-9)
    return sigma**2 * (1 - k) / k, ((axes.T @ (basis.T @ x)) / k) ** 2


def sigma_curve(size: int, sigma: float, sd_log: float, prior: float, seen: tuple[Array, Array] | None = None) -> Array:
    """z -> log sigma whose normal quantiles are those of a sketch of sigma's marginal posterior; (KNOTS - 1, 4).

    The sketch is that of n = size - 1 contrasts (the level is mu's) seen with errors of variance e: density of
    l = log sigma: -1/2 sum log(sigma^2 + e) - 1/2 sum x^2/(sigma^2 + e) + l - sigma^2/(2 prior^2), with (e, x^2) from
    ``contrasts``; or all e equal, from the information, and sum x^2 from the place of the mode. Both its cliffs (in
    log sigma they rise like exponentials of exponentials) become parabolas.
    """
    count = 1
    if seen is None:
        count = size - 1
        information = max(1 / sd_log**2 - 1, 0.0)  # 2 sum kept^2
        k = min(max(math.sqrt(information / 2 * size) / count, 1e-3), 1 - 1e-9) if count else 1.0
        ss = max(sigma**2 * (count * k - 1 + (sigma / prior) ** 2) / k**2, 0.0) if count else 0.0
        seen = np.array([sigma**2 * (1 - k) / k]), np.array([ss])
    log_sigma = np.log(sigma)
    width = min(sd_log, 1.0)
    # fine near the mode, out to where a half-normal or an exponential tail has lost all its mass
    grid = log_sigma + np.concatenate(
        [np.linspace(-45, -8 * width, 3000)[:-1], np.linspace(-8 * width, 8 * width, 6001)]
    )
    variance = np.exp(2 * grid)
    density = grid - 0.5 * variance / prior**2
    for noise, square in zip(*seen, strict=True):
        density -= 0.5 * (count * np.log(variance + noise) + square / (variance + noise))
    density = np.exp(density - density.max())
    return quantile_spline(grid, density)


def quantile_spline(grid: Array, density: Array) -> Array:
    """z -> x whose normal quantiles are those of a density on a rising grid; (KNOTS - 1, 4)."""
    mass = 0.5 * (density[1:] + density[:-1]) * np.diff(grid)
    below = np.append(0.0, np.cumsum(mass))
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    z = np.linspace(-REACH, REACH, KNOTS)
    tail = np.array([0.5 * math.erfc(abs(x) / math.sqrt(2)) for x in z]) * below[-1]
    values = np.where(
        z <= 0,
        np.interp(np.log(tail), np.log(np.maximum(below, 1e-300)), grid),
        np.interp(-np.log(tail), -np.log(np.maximum(above, 1e-300)), grid),
    )
    return _spline(z, values)


def _spline(x: Array, y: Array) -> Array:
    """Cubic pieces (n - 1, 4) through (x, y), equally spaced, twice differentiable, straight at the ends."""
    step = x[1] - x[0]
    n = len(x)
    system = np.diag(np.full(n, 4.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    right = np.zeros(n)
    right[1:-1] = 6 * np.diff(y, 2) / step**2
    system[0, :2], system[-1, -2:] = (1, 0), (0, 1)
    bend = np.linalg.solve(system, right)  # second derivatives
    slope = np.diff(y) / step - step * (2 * bend[:-1] + bend[1:]) / 6
    return np.stack([y[:-1], slope, bend[:-1] / 2, np.diff(bend) / (6 * step)], axis=1)


def target(data: Data, priors: Priors, mode: Laplace, over: Dispersion | None = None) -> Target:
    """The posterior in whitened coordinates, ready for the sampler."""
    geo = geometry(data, priors, mode, over)
    exact = wants_exact(geo)
    longest = SHORT if exact and geo.u0.size + geo.v0.size <= FEW else LONGEST
    return Target("density", geo, geo.mask(), exact, needs_double(geo), longest)


def order(n_models: int, n_items: int, dispersed: bool) -> NDArray[np.intp]:
    """Where the sampler's columns mu, sigma_u, sigma_v (, rho), u, v have mu_b, rho, sigma_b, sigma_theta, b, theta."""
    first = 4 if dispersed else 3
    rows = models_first(n_models, n_items)  # u is theta
    sizes = (n_models, n_items) if rows else (n_items, n_models)
    u, v = np.split(first + np.arange(sum(sizes)), [sizes[0]])
    sigma = [2, 1] if rows else [1, 2]
    hyper = [0, *([3] if dispersed else []), *sigma]
    return np.concatenate([hyper, *((v, u) if rows else (u, v))])
