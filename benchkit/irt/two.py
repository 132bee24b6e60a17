"""The two-parameter logistic model (2PL): its centre, curvature and empirical-Bayes hyperparameters. Numpy only.

    y_ij ~ Binomial(n_ij, p_ij),  p_ij = sigmoid(a_j (theta_i - b_j))
    log a_j ~ N(0, sigma_a),  sigma_a ~ HalfNormal(s_a)

and the rest as in ``model`` (Birnbaum 1968). That log a has mean 0 fixes the scale, as theta's mean 0 fixes its origin.

The joint mode of all parameters is far from the posterior's bulk: a_j is fitted to abilities that are shrunk, and the
more of them there are, the surer it is of the wrong place (Neyman and Scott 1948). So the side with more parameters is
integrated out: each gradient is an expectation over its values, normal given the other side, by cubature. What comes
out is the mode of one side's marginal posterior, and the other side's mean given it.

An item's coordinates are x_j and alpha_j = log a_j; hats are at the centre, where x_j = 0:

    b_j = t_j + (b^_j - t_j + x_j + kappa_j (b^_j - t_j) s_j) exp(-kappa_j s_j),   s_j = alpha_j - alpha^_j

kappa_j = F_j / (F_j + 1/sigma_b^2), F_j = sum_i a_j^2 W_ij, W = n p (1-p), t_j = sum_i W_ij theta_i / sum_i W_ij.
To first order x_j is b_j - b^_j. But where the data say more of b than the prior does, they say it of a_j (t_j - b_j),
along which the posterior is bent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchkit.irt.laplace import Laplace, inverse, models_first
from benchkit.irt.marginal import Marginal, marginal
from benchkit.irt.model import Array, Data, Priors, sigmoid

_MAX_ITERATIONS = 500

# empirical reliability of log a below which discriminations are hardly told apart: simulated data of at most three
# models, and of items that discriminate equally, are mostly below; 16 models by 15 items with sd(log a) = .4 above
RELIABLE = 0.25

# Gauss-Hermite with three nodes, exact to degree 5
_NODES, _WEIGHTS = (0.0, 3**0.5, -(3**0.5)), (2 / 3, 1 / 6, 1 / 6)


class Taus(NamedTuple):
    """1/sigma^2 of theta, b and alpha."""

    theta: float
    b: float
    a: float


class Place(NamedTuple):
    """A point: theta (N,), b, alpha (M,), mu; and the items' chart there, t and kappa (M,)."""

    theta: Array
    b: Array
    alpha: Array
    mu: float
    turn: Array
    kappa: Array


class Blocks(NamedTuple):
    """Information of (theta, b, alpha) from the likelihood: theta (N,); b, cross, alpha (M,), the items' 2x2 blocks.

    to_b, to_alpha (N, M): between models and items.
    """

    theta: Array
    b: Array
    cross: Array
    alpha: Array
    to_b: Array
    to_alpha: Array


class Items(NamedTuple):
    """Precision of an item given the rest, factored: of b given alpha, with slope -ratio, and of alpha; (M,)."""

    b: Array
    alpha: Array
    ratio: Array


class Centre(NamedTuple):
    """Where the posterior is, how wide, and what its curvature is made of. N models, M items.

    at: theta, b, alpha, mu_b and the items' chart. sigma: empirical-Bayes sigma_theta, sigma_b, sigma_a.
    marginals: the posteriors of their logarithms. sd_*: from the inverse of the precision of all else.
    w, r (N, M): E[n p (1-p)] and E[y - n p]; r as far as it counts in the information.
    by_models: whether theta's marginal mode is sought (else that of b and alpha is).
    precision: of (theta, mu); or that of (b, alpha) from the likelihood alone, abilities integrated out.
    bend (2M,): what the items' gradient gains with log sigma_theta; empty where ``by_models``.
    iterations: steps taken. converged: whether every update fell below the tolerance.
    """

    at: Place
    sigma: tuple[float, float, float]
    marginals: tuple[Marginal, ...]
    sd_theta: Array
    sd_b: Array
    sd_alpha: Array
    sd_mu: float
    w: Array
    r: Array
    by_models: bool
    precision: Array
    bend: Array
    iterations: int
    converged: bool


def information(at: Place, w: Array, r: Array) -> Blocks:
    """Sums of W times the products of eta's derivatives: a in theta, -a in b, eta in alpha.

    Between theta_i and alpha_j the residual r = y - n p counts too, as in the observed information: what the model
    can't fit. The share of it that the item's level takes is left out: a shift of theta and b together has none.
    """
    a = np.exp(at.alpha)
    eta = a * (at.theta[:, None] - at.b)
    weighted, total = w * eta, w.sum(0)
    rest = r - w * np.divide(r.sum(0), total, out=np.zeros(a.size), where=total > 0)
    return Blocks(
        theta=w @ a**2,
        b=a**2 * total,
        cross=-a * weighted.sum(0),
        alpha=(weighted * eta).sum(0),
        to_b=-w * a**2,
        to_alpha=(weighted - rest) * a,
    )


def factor(k: Blocks, tau: Taus) -> Items:
    """The items' blocks with the priors of b and alpha."""
    b = k.b + tau.b
    return Items(b, k.alpha + tau.a - k.cross**2 / b, k.cross / b)


class Gradient(NamedTuple):
    """Expected gradients, priors included: theta (N,), b, alpha (M,), mu; expected n p (1-p) and y - n p, (N, M)."""

    theta: Array
    b: Array
    alpha: Array
    mu: float
    w: Array
    r: Array


class Score(NamedTuple):
    """The items' information with theta integrated out, (2M+1, 2M+1), of b, alpha and log sigma_theta.

    whole: where theta is known, of b and alpha alone. missing: the covariance of the gradient (Louis 1982).
    """

    whole: Array
    missing: Array


def over_items(n: Array, y: Array, at: Place, k: Blocks, tau: Taus) -> Gradient:
    """Expectations over (b_j, alpha_j), normal in the chart given theta and mu."""
    theta, b, alpha, mu, turn, kappa = at
    items = factor(k, tau)
    share = -k.to_b / np.maximum(k.b, 1e-300)  # t_j is this mean of theta
    off = b - turn
    g_t, g_b, g_a, g_mu = -tau.theta * theta, np.zeros(b.size), -tau.a * alpha - kappa, 0.0
    w, r = np.zeros(n.shape), np.zeros(n.shape)
    for z, weight_z in zip(_NODES, _WEIGHTS, strict=True):
        s = z / np.sqrt(items.alpha)
        a, shrink = np.exp(alpha + s), np.exp(-kappa * s)
        for x, weight in zip(_NODES, np.multiply(weight_z, _WEIGHTS), strict=True):
            wide = off + x / np.sqrt(items.b) + (kappa * off - items.ratio) * s
            there = turn + wide * shrink
            eta = a * (theta[:, None] - there)
            p = sigmoid(eta)
            rest = y - n * p
            w += weight * n * p * (1 - p)
            r += weight * rest
            pull = -a * rest.sum(0) - tau.b * (there - mu)  # in b
            g_t += weight * (rest @ a + share @ ((1 - shrink) * pull))
            g_mu += weight * tau.b * float((there - mu).sum())
            g_b += weight * pull * shrink
            g_a += weight * ((rest * eta).sum(0) + pull * kappa * (off - wide) * shrink)
    return Gradient(g_t, g_b, g_a, g_mu, w, r)


def over_models(n: Array, y: Array, at: Place, k: Blocks, tau: Taus) -> tuple[Gradient, Score]:
    """Expectations over theta_i, normal given the items."""
    theta, b, alpha, mu, _, kappa = at
    a, spread = np.exp(alpha), 1 / np.sqrt(k.theta + tau.theta)
    m = b.size
    w, r, g_t = np.zeros(n.shape), np.zeros(n.shape), -tau.theta * theta
    blocks = np.zeros((3, m))
    mean, square = np.zeros((theta.size, 2 * m + 1)), np.zeros((2 * m + 1,) * 2)
    for x, weight in zip(_NODES, _WEIGHTS, strict=True):
        there = theta + x * spread
        eta = a * (there[:, None] - b)
        p = sigmoid(eta)
        rest, variance = y - n * p, n * p * (1 - p)
        w += weight * variance
        r += weight * rest
        g_t += weight * (rest @ a)
        weighted = variance * eta
        blocks += weight * np.stack([variance.sum(0) * a**2, -a * weighted.sum(0), (weighted * eta).sum(0)])
        score = np.hstack([-a * rest, rest * eta, tau.theta * there[:, None] ** 2])
        mean += weight * score
        square += weight * (score.T @ score)
    whole = np.zeros((2 * m, 2 * m))
    at_b, at_a = np.arange(m), np.arange(m, 2 * m)
    whole[at_b, at_b], whole[at_a, at_a] = blocks[0], blocks[2]
    whole[at_b, at_a] = whole[at_a, at_b] = blocks[1]
    total = mean.sum(0)
    pull = -tau.b * (b - mu)
    gradient = Gradient(g_t, total[:m] + pull, total[m:-1] - kappa - tau.a * alpha, -float(pull.sum()), w, r)
    return gradient, Score(whole, square - mean.T @ mean)


def precision_models(k: Blocks, tau: Taus, s_mu: float) -> tuple[Array, Array, Array]:
    """Precision of (theta, mu), items integrated out, (N+1, N+1): a diagonal minus U U^T + V V^T; U and V (N+1, M)."""
    items = factor(k, tau)
    u = np.vstack([k.to_b, np.full(k.b.shape, -tau.b)])
    v = np.vstack([k.to_alpha, np.zeros(k.b.shape)]) - items.ratio * u
    u /= np.sqrt(items.b)
    v /= np.sqrt(items.alpha)
    h = -(u @ u.T) - v @ v.T
    h[np.diag_indices(len(h))] += np.append(k.theta + tau.theta, k.b.size * tau.b + s_mu**-2)
    return h, u, v


def with_priors(seen: Array, tau: Taus, s_mu: float) -> Array:
    """Precision of (b, alpha, mu), (2M+1, 2M+1), from that of (b, alpha) by the likelihood alone."""
    m = len(seen) // 2
    h = np.zeros((2 * m + 1,) * 2)
    h[:-1, :-1] = seen
    h[np.diag_indices(2 * m + 1)] += np.repeat([tau.b, tau.a, m * tau.b + s_mu**-2], [m, m, 1])
    h[:m, -1] = h[-1, :m] = -tau.b
    return h


def centre(data: Data, priors: Priors, start: Laplace, tolerance: float = 1e-6) -> Centre:
    """The centre by damped scoring steps, empirical-Bayes standard deviations, curvature.

    start: the 1PL's mode. tolerance: logits; the last step is below it.
    """
    n, y = data.attempts.astype(float), data.correct
    n_models, n_items = n.shape
    by_models = models_first(n_models, n_items)
    theta, b, alpha, mu = start.theta, start.b, np.zeros(n_items), start.mu_b
    log_s = np.log([start.sigma_theta, start.sigma_b, min(0.3, priors.sigma_a)])
    scales = (priors.sigma_theta, priors.sigma_b, priors.sigma_a)
    p = sigmoid(theta[:, None] - b)
    w, r, lean = n * p * (1 - p), np.zeros(n.shape), 1.0
    pace, last_move, damping, last = np.ones(3), np.zeros(3), 1.0, Step(0 * theta, 0 * b, 0 * b, np.zeros(1))
    converged = moved_a = False
    steps = 0
    while steps < _MAX_ITERATIONS:
        steps += 1
        tau = Taus(*np.exp(-2 * log_s).tolist())
        at = Place(theta, b, alpha, mu, *_chart(theta, alpha, w, tau.b))
        # expectations with the precision of the last step's weights
        k = information(at, w, lean * r)
        side: _Models | _Items
        if by_models:
            g = over_items(n, y, at, k, tau)
            w, r = g.w, g.r
            side, lean = _models(at, w, r, lean, tau, priors.mu_b)
        else:
            g, score = over_models(n, y, at, k, tau)
            w, r = g.w, g.r
            side = _items(information(at, w, r), score, tau, priors.mu_b)
        g = g._replace(mu=g.mu - mu / priors.mu_b**2)
        d = side.solve(g)
        # the scale, which only the prior of alpha holds, stays where that has it: alpha's mean is 0
        free = side.solve(Gradient(0 * theta, 0 * b, np.ones(n_items), 0.0, w, r))
        d = Step(*(x - (d.alpha.mean() + alpha.mean()) / free.alpha.mean() * z for x, z in zip(d, free, strict=True)))

        largest = max(float(np.abs(x).max()) for x in d)
        turned = sum(float(x @ y) for x, y in zip(d, last, strict=True)) < 0
        damping, last = max(0.7 * damping, 0.1) if turned else min(1.2 * damping, 1.0), d
        damp = damping * min(1.0, 2.0 / max(largest, 1e-300), 0.5 / max(float(np.abs(d.alpha).max()), 1e-300))
        theta, mu, alpha = theta + damp * d.theta, float(mu + damp * d.mu[0]), alpha + damp * d.alpha
        b = moved(at, damp * d.b, damp * d.alpha)

        where = zip((theta, b, alpha), side.contrasts(), np.exp(log_s), scales, strict=True)
        marginals = tuple(marginal(*x) for x in where)
        move = np.clip([m.middle - x for m, x in zip(marginals, log_s, strict=True)], -0.5, 0.5)
        # sigma_a hardly depends on the value it is made at, but by a rough approximation where items have few attempts,
        # which iteration would build up: it moves once
        if not moved_a and largest < 1e-2 and np.abs(move[:2]).max() < 1e-2:
            moved_a, log_s[2] = True, marginals[2].middle
        move[2] = 0.0
        if moved_a and largest < tolerance and np.abs(move).max() < 1e-5:
            converged = True
            break
        if largest < 1.0:  # far from the centre the variances mean little
            pace = np.where(move * last_move < 0, 0.5 * pace, np.minimum(1.0, 1.3 * pace))
            last_move = move
            log_s = log_s + pace * move
    sd_t, sd_b, sd_a, sd_mu = (np.sqrt(x) for x in side.variances())
    sigma = (float(np.exp(log_s[0])), float(np.exp(log_s[1])), float(np.exp(log_s[2])))
    bend = side.bend if isinstance(side, _Items) else np.zeros(0)
    rest = lean * r if by_models else r
    return Centre(
        at, sigma, marginals, sd_t, sd_b, sd_a, float(sd_mu), w, rest, by_models, side.seen, bend, steps, converged
    )


def moved(at: Place, x: Array, s: Array) -> Array:
    """b of the items' coordinates x and s = alpha - alpha^, (M,)."""
    off = at.b - at.turn
    return np.asarray(at.turn + (off + x + at.kappa * off * s) * np.exp(-at.kappa * s))


def _chart(theta: Array, alpha: Array, w: Array, tau_b: float) -> tuple[Array, Array]:
    """t and kappa, (M,) each."""
    total = w.sum(0)
    turn = np.divide(theta @ w, total, out=np.zeros(alpha.size), where=total > 0)
    seen = np.exp(2 * alpha) * total
    return turn, seen / (seen + tau_b)


class Step(NamedTuple):
    """A move of everything but the standard deviations; mu (1,)."""

    theta: Array
    b: Array
    alpha: Array
    mu: Array


class _Models(NamedTuple):
    """Linear algebra with the items eliminated. seen: the precision of (theta, mu); cov: its inverse."""

    k: Blocks
    items: Items
    tau_b: float
    seen: Array
    cov: Array
    u: Array
    v: Array

    def solve(self, g: Gradient) -> Step:
        """The precision of everything to the power -1, times a gradient."""
        f = g.b / np.sqrt(self.items.b)
        h = (g.alpha - self.items.ratio * g.b) / np.sqrt(self.items.alpha)
        d = self.cov @ (np.append(g.theta, g.mu) - self.u @ f - self.v @ h)
        alpha = (h - d @ self.v) / np.sqrt(self.items.alpha)
        return Step(d[:-1], (f - d @ self.u) / np.sqrt(self.items.b) - self.items.ratio * alpha, alpha, d[-1:])

    def _items(self) -> tuple[Array, Array, Array]:
        """Regressions of b and alpha on (theta, mu), turned, (N+1, M), and b's variance given them, (M,)."""
        alpha = -self.v / np.sqrt(self.items.alpha)
        b = -self.u / np.sqrt(self.items.b) - self.items.ratio * alpha
        return b, alpha, 1 / self.items.b + self.items.ratio**2 / self.items.alpha

    def variances(self) -> tuple[Array, Array, Array, float]:
        """Of theta, b, alpha, mu."""
        b, alpha, own = self._items()
        var = np.diag(self.cov)
        return var[:-1], own + _quadratic(b, self.cov), 1 / self.items.alpha + _quadratic(alpha, self.cov), var[-1]

    def contrasts(self) -> tuple[Array, Array, Array]:
        """Variances of theta, b and alpha about their own mean, as if it were known.

        What b has by alpha is damped: where an item is far from all models it is bent, and more than b's prior.
        """
        b, alpha, own = self._items()
        b, alpha = (x - x.mean(1, keepdims=True) for x in (b, alpha))
        bent = own - 1 / self.items.b + _quadratic(b, self.cov) - _quadratic(b + self.items.ratio * alpha, self.cov)
        bent = np.maximum(bent, 0)
        return (
            _about_mean(self.cov[:-1, :-1]),
            own + _quadratic(b, self.cov) - bent + bent / (1 + 2 * self.tau_b * bent),
            1 / self.items.alpha + _quadratic(alpha, self.cov),
        )


def _models(at: Place, w: Array, r: Array, lean: float, tau: Taus, s_mu: float) -> tuple[_Models, float]:
    """The precision, with as much of the residuals in it as leaves it positive."""
    while True:
        k = information(at, w, lean * r)
        h, u, v = precision_models(k, tau, s_mu)
        wide = Taus(*(t / 9 for t in tau))  # three times the standard deviations: the map goes there
        if lean == 0 or np.linalg.eigvalsh(precision_models(k, wide, s_mu)[0][:-1, :-1])[0] > 0.5 * wide.theta:
            return _Models(k, factor(k, tau), tau.b, h, inverse(h), u, v), lean
        lean = 0.7 * lean if lean > 0.1 else 0.0


class _Items(NamedTuple):
    """Linear algebra with the abilities eliminated. seen: precision of (b, alpha) without priors; bend: see ``Centre``.

    cov: covariance of (b, alpha, mu). c (N,): precision of theta given them; cross (N, 2M).
    """

    seen: Array
    bend: Array
    cov: Array
    cross: Array
    c: Array

    def solve(self, g: Gradient) -> Step:
        """As ``_Models.solve``; the items' gradient is that of their marginal already."""
        m = g.b.size
        d = self.cov @ np.concatenate([g.b, g.alpha, [g.mu]])
        return Step((g.theta - self.cross @ d[:-1]) / self.c, d[:m], d[m:-1], d[-1:])

    def variances(self) -> tuple[Array, Array, Array, float]:
        """As ``_Models.variances``."""
        var, m = np.diag(self.cov), len(self.cov) // 2
        theta = 1 / self.c + _quadratic(self.cross.T, self.cov[:-1, :-1]) / self.c**2
        return theta, var[:m], var[m:-1], var[-1]

    def contrasts(self) -> tuple[Array, Array, Array]:
        """As ``_Models.contrasts``."""
        m = len(self.cov) // 2
        return self.variances()[0], _about_mean(self.cov[:m, :m]), _about_mean(self.cov[m:-1, m:-1])


def _items(k: Blocks, score: Score, tau: Taus, s_mu: float) -> _Items:
    """The precision, with as much information missing as leaves it positive."""
    for part in (1.0, 0.95, 0.8, 0.5, 0.0):
        seen = score.whole - part * score.missing[:-1, :-1]
        h = with_priors(seen, tau, s_mu)
        if np.linalg.eigvalsh(h)[0] > 0:
            break
    return _Items(seen, score.missing[:-1, -1], inverse(h), np.hstack([k.to_b, k.to_alpha]), k.theta + tau.theta)


def reliability(mean: Array, sd: Array) -> float:
    """Empirical reliability of log a: how much of its spread over the items the data tell, 0..1.

    mean, sd (M,): posterior means and standard deviations. var(mean) / (var(mean) + mean(sd^2)), as mirt has it for
    abilities (Chalmers 2012, Journal of Statistical Software 48(6), ``empirical_rxx``); 0 of one item.
    """
    between = float(((mean - mean.mean()) ** 2).sum()) / max(mean.size - 1, 1)
    return between / (between + float((sd**2).mean()))


def caveats(data: Data, mean: Array, sd: Array) -> list[str]:
    """What a reader of the discriminations must know: whether the data tell them. mean, sd (M,): of log a."""
    if (data.attempts > 0).sum(0).max() < 2:
        return ["no item was tried by two models: the data can't tell discriminations; fit with --model 1pl"]
    told = reliability(mean, sd)
    if told >= RELIABLE:
        return []
    return [
        f"the data hardly tell the items' discriminations apart (reliability {told:.3f}, wanted {RELIABLE}): fit with "
        "--model 1pl, or compare both fits by --loo"
    ]


def _about_mean(cov: Array) -> Array:
    """Variances of n values about their mean, times n/(n - 1); as they are where n = 1."""
    n = len(cov)
    if n == 1:
        return np.diag(cov)
    mean = cov.mean(0)
    return np.asarray((np.diag(cov) - 2 * mean + mean.mean()) * (n / (n - 1)))


def _quadratic(x: Array, cov: Array) -> Array:
    """x_j^T cov x_j over the columns of x."""
    return np.asarray(np.einsum("ij,ij->j", x, cov @ x))
