"""The whitening map of the 2PL posterior: constants from its centre, in float64.

z ~ about N(0, I) are the sampler's coordinates, hats the centre of ``two``, tau = 1/sigma^2, x and alpha the items'
coordinates there, s = alpha - alpha^. log sigma of theta, b and log a are splines through the quantiles of sketches of
their marginals (``marginal``). lin is what the priors pull more than at the centre.

Where models are the smaller side (N <= 2M), (theta, mu) come first, by a Cholesky factor of their precision with the
items integrated out (``exact``), or

    mu     = mu^ + z m,   m^2 = k_t sigma_theta^2 + k_b sigma_b^2 + k_0
    theta  = theta^ + Q [(Q^T lin) / d + z / sqrt(d)],   d = lambda(tau_b, tau_a) + tau_theta

with Q Lambda Q^T the information of theta, whose eigenvalues follow tau_b and tau_a to first order in the logarithm.
Then (x, alpha)_j = C_j^-1 (lin_j - B_j^T (theta - theta^)) + C_j^-1/2 z, C_j = F_j + priors, F_j and B_j the item's
information and its cross block; t_j follows theta. The last part of x_j, its own z, leans with the likelihood as
in ``geometry``. And it shrinks by exp(-kappa s) not with the kappa of the centre, but on either side with that of the
information 1.5 standard deviations away: b of an item that nobody solved has a cliff on the side of the abilities, as
steep as a_j, and only the prior on the other.

Where there are more than twice as many models as items, alpha, mu and x come first, one after the other, along the
eigenvectors of their precision with theta integrated out. Then

    theta_i = (sum_j a_j (W_ij (eta_ij + a_j b_j) + r_ij)) / c_i + z_i / sqrt(c_i),   c_i = sum_j a_j^2 W_ij + tau_theta

which is exact where the likelihood is quadratic in eta, whatever the items: r = y - n p, with W and r at the centre.
All a times k, and theta, b, mu and their standard deviations divided by k, have the same likelihood. Few items leave k
uncertain, by the prior of log a alone. So the map works at the mean of log a that the centre has, and divides all of
these by k = exp(mean(alpha - alpha^)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.irt.geometry import bucket, pad_to, quantile_spline
from benchkit.irt.model import Array, Data, Priors, sigmoid
from benchkit.irt.sampler import Target
from benchkit.irt.two import Blocks, Centre, Taus, factor, information, with_priors

Parts = dict[str, Array]
Spread = tuple[float, float, float]

# scalars of Geometry.h, in order: the centre, k_t, k_b, k_0 of mu's variance, and the prior scales
H = ("mu", "lst", "lsb", "lsa", "k_t", "k_b", "k_0", "s_mu", "s_t", "s_b", "s_a")

# largest N of models, the smaller side, at which their precision is factored anew at every gradient: where few values
# leave the standard deviations uncertain the map must follow them far
EXACT = 16

# fields of Geometry that one kind of map or the other leaves empty, and their dimensions
OPTIONAL = {"cross": 1, "seen_a": 1, "third_b": 1, "fourth_b": 1, "below": 1, "above": 1, "to_alpha": 2}
OPTIONAL |= {"q": 2, "lam": 1, "ela_b": 1, "ela_a": 1, "k": 2}
OPTIONAL |= {"q_a": 2, "lam_a": 1, "q_b": 2, "lam_b": 1, "from_alpha": 2, "mu_alpha": 1, "bend_a": 1, "bend_b": 1}


class Geometry(NamedTuple):
    """Everything the log density in z needs; padding has mask 0 and no attempts. S x L = padded N x M.

    z: log sigma_theta, log sigma_b, log sigma_a, mu, theta (S,), b (L,), alpha (L,).

    h: scalars, named in ``H``. curve_*: splines of log sigma. theta, mask_t (S,). b, alpha, turn, seen_b, mask_i (L,).
    n, y, w (S, L): attempts, successes, W. y_i (L,): successes of each item.
    cross, seen_a, third_b, fourth_b, to_alpha, q, lam, ela_b, ela_a: where models are the smaller side, else empty.
    third_b, fourth_b (L,): derivatives of the log likelihood in b. below, above:
    information of b a standard deviation and a half away.
    k (S, L): W eta^ + r; q_a, lam_a, q_b, lam_b: eigenvectors and eigenvalues of alpha's precision, and of b's given
    alpha; from_alpha (L, L): between b and alpha; mu_alpha (L,): mu's regression on alpha; bend_a, bend_b (L,): what
    the gradients gain with log sigma_theta. All empty where models are the smaller side.
    """

    h: Array
    curve_t: Array
    curve_b: Array
    curve_a: Array
    theta: Array
    mask_t: Array
    b: Array
    alpha: Array
    turn: Array
    seen_b: Array
    mask_i: Array
    n: Array
    y: Array
    w: Array
    y_i: Array
    cross: Array
    seen_a: Array
    third_b: Array
    fourth_b: Array
    below: Array
    above: Array
    to_alpha: Array
    q: Array
    lam: Array
    ela_b: Array
    ela_a: Array
    k: Array
    q_a: Array
    lam_a: Array
    q_b: Array
    lam_b: Array
    from_alpha: Array
    mu_alpha: Array
    bend_a: Array
    bend_b: Array

    def mask(self) -> Array:
        """1 for the coordinates of z that are parameters, 0 for padding."""
        return np.concatenate([np.ones(4), self.mask_t, self.mask_i, self.mask_i])


def geometry(data: Data, priors: Priors, c: Centre, pad: tuple[int, int] | None = None) -> Geometry:
    """Constants of the map. pad: padded sizes of models and items."""
    n_models, n_items = data.attempts.shape
    size_t, size_i = pad or (bucket(n_models, 4), bucket(n_items, 4))
    tau = Taus(*(s**-2 for s in c.sigma))
    k = information(c.at, c.w, c.r)
    empty = {name: np.zeros((0,) * dimensions) for name, dimensions in OPTIONAL.items()}
    if c.by_models:
        parts, spread = _by_models(k, c, data.attempts, tau, size_t, size_i)
    else:
        parts, spread = _by_items(k, c, tau, priors, size_t, size_i)
    scalars = {"mu": c.at.mu} | dict(zip(("lst", "lsb", "lsa"), np.log(c.sigma).tolist(), strict=True))
    scalars |= dict(zip(("k_t", "k_b", "k_0"), spread, strict=True))
    scalars |= {"s_mu": priors.mu_b, "s_t": priors.sigma_theta, "s_b": priors.sigma_b, "s_a": priors.sigma_a}
    curves = [quantile_spline(m.grid, m.density) for m in c.marginals]
    return Geometry(
        h=np.array([scalars[name] for name in H]),
        curve_t=curves[0],
        curve_b=curves[1],
        curve_a=curves[2],
        theta=pad_to(c.at.theta, size_t),
        mask_t=pad_to(np.ones(n_models), size_t),
        b=pad_to(c.at.b, size_i),
        alpha=pad_to(c.at.alpha, size_i),
        turn=pad_to(c.at.turn if c.by_models else _turn(c, tau, priors), size_i),
        seen_b=pad_to(k.b, size_i),
        mask_i=pad_to(np.ones(n_items), size_i),
        n=pad_to(data.attempts.astype(float), size_t, size_i),
        y=pad_to(data.correct, size_t, size_i),
        w=pad_to(c.w, size_t, size_i),
        y_i=pad_to(data.correct.sum(0), size_i),
        **(empty | parts),
    )


def _by_models(k: Blocks, c: Centre, n: NDArray[np.int64], tau: Taus, size_t: int, size_i: int) -> tuple[Parts, Spread]:
    """Constants where models are the smaller side."""
    items = factor(k, tau)
    size = c.at.theta.size
    lam, q = np.linalg.eigh(c.precision[:-1, :-1] - tau.theta * np.eye(size))
    lam = np.maximum(lam, 1e-10 * max(float(lam[-1]), 1.0))
    # B C^-1: what a change of tau_b, tau_a does to the information goes by its squares
    from_a = (k.to_alpha - k.to_b * items.ratio) / items.alpha
    from_b = k.to_b / items.b - items.ratio * from_a
    ela_b, ela_a = (np.clip(t * ((q.T @ x) ** 2).sum(1) / lam, 0, 1) for t, x in ((tau.b, from_b), (tau.a, from_a)))
    cov_mu = np.linalg.solve(c.precision, np.append(np.zeros(size), 1.0))
    # cov(mu, b_j - mu), by the items' regression on theta and mu
    own = tau.b * (1 / items.b + items.ratio**2 / items.alpha)
    cov_b = -(cov_mu[:-1] @ from_b) + cov_mu[-1] * (own - 1)
    spread = _spread(float(cov_mu[-1]), tau, cov_mu[:-1], cov_b)
    parts = {"cross": pad_to(k.cross, size_i), "seen_a": pad_to(k.alpha, size_i)}
    parts |= {name: pad_to(x, size_i) for name, x in zip(("third_b", "fourth_b"), _skew(c), strict=True)}
    for name, way in (("below", -1.5), ("above", 1.5)):
        p = sigmoid(np.exp(c.at.alpha) * (c.at.theta[:, None] - c.at.b - way / np.sqrt(items.b)))
        parts[name] = pad_to((n * p * (1 - p)).sum(0) * np.exp(2 * c.at.alpha), size_i)
    parts |= {"to_alpha": pad_to(k.to_alpha, size_t, size_i), "q": pad_to(q, size_t, size_t)}
    parts |= {"lam": pad_to(lam, size_t, value=1.0), "ela_b": pad_to(ela_b, size_t), "ela_a": pad_to(ela_a, size_t)}
    return parts, spread


def _skew(c: Centre) -> tuple[Array, Array]:
    """Third and fourth derivatives of the log likelihood in b."""
    a = np.exp(c.at.alpha)
    p = sigmoid(a * (c.at.theta[:, None] - c.at.b))
    return a**3 * (c.w * (1 - 2 * p)).sum(0), a**4 * (c.w * (6 * p * (1 - p) - 1)).sum(0)


def _turn(c: Centre, tau: Taus, priors: Priors) -> Array:
    """t_j that makes db_j/dalpha_j = -kappa_j (b_j - t_j) the regression of b_j on alpha_j."""
    m = c.at.b.size
    half = np.eye(2 * m)
    half[m:, m:] -= 1 / m
    cov = np.linalg.inv(with_priors(half @ c.precision @ half, tau, priors.mu_b))
    at = np.arange(m)
    slope = cov[at, m + at] / cov[m + at, m + at]
    return np.where(c.at.kappa > 0.1, c.at.b + slope / np.maximum(c.at.kappa, 0.1), c.at.turn)


def _spread(total: float, tau: Taus, cov_t: Array, cov_b: Array) -> Spread:
    """k_t, k_b, k_0: how mu's variance moves with the two variances, dV/d sigma^2 = tau^2 sum cov(mu, x - m)^2."""
    k_t, k_b = tau.theta**2 * float((cov_t**2).sum()), tau.b**2 * float((cov_b**2).sum())
    return k_t, k_b, max(total - k_t / tau.theta - k_b / tau.b, 1e-3 * total)


def _by_items(k: Blocks, c: Centre, tau: Taus, priors: Priors, size_t: int, size_i: int) -> tuple[Parts, Spread]:
    """Constants where items are."""
    m = c.at.b.size
    half = np.eye(2 * m)
    half[m:, m:] -= 1 / m  # the level of alpha is k's
    seen, bend = half @ c.precision @ half, half @ c.bend
    parts = {"k": pad_to(c.w * (np.exp(c.at.alpha) * (c.at.theta[:, None] - c.at.b)) + c.r, size_t, size_i)}
    h = with_priors(seen, tau._replace(a=0.0), priors.mu_b)
    rest = np.append(np.arange(m), 2 * m)
    alphas = np.arange(m, 2 * m)
    inner, cross = h[np.ix_(rest, rest)], h[np.ix_(alphas, rest)]
    back = np.linalg.solve(inner, cross.T).T  # alpha's regression on the rest, turned
    lam_a, q_a = np.linalg.eigh(h[np.ix_(alphas, alphas)] - back @ cross.T)
    lam_b, q_b = np.linalg.eigh(seen[:m, :m])
    cov_mu = np.linalg.solve(inner, np.append(np.zeros(m), 1.0))
    spread = _spread(float(cov_mu[-1]), tau, np.zeros(1), cov_mu[:-1] - cov_mu[-1])
    parts |= {"q_a": pad_to(q_a, size_i, size_i), "lam_a": pad_to(np.maximum(lam_a, 0), size_i, value=1.0)}
    parts |= {"q_b": pad_to(q_b, size_i, size_i), "lam_b": pad_to(np.maximum(lam_b, 0), size_i, value=1.0)}
    parts |= {"from_alpha": pad_to(seen[:m, m:], size_i, size_i), "mu_alpha": pad_to(-back[:, -1], size_i)}
    parts |= {"bend_a": pad_to(bend[m:] - back[:, :-1] @ bend[:m], size_i), "bend_b": pad_to(bend[:m], size_i)}
    return parts, spread


def target(data: Data, priors: Priors, c: Centre) -> Target:
    """The posterior in whitened coordinates, ready for the sampler."""
    geo = geometry(data, priors, c)
    exact = c.by_models and geo.theta.size <= EXACT
    return Target("density_two", geo, geo.mask(), exact, True)


def order(n_models: int, n_items: int) -> NDArray[np.intp]:
    """Where the sampler's columns have mu_b, sigma_a, sigma_b, sigma_theta, b, a, theta."""
    models = 4 + np.arange(n_models)
    items = 4 + n_models + np.arange(2 * n_items)
    return np.concatenate([[3, 2, 1, 0], items, models])
