"""The log density of the 2PL in whitened coordinates, in JAX.

z = (log sigma_theta, log sigma_b, log sigma_a, mu, theta, b, alpha), as in ``geometry_two``. The likelihood brings its
own gradient: value and gradients come from one pass over the cells.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchkit.irt.density import _curve, _lean
from benchkit.irt.geometry import LEAN
from benchkit.irt.geometry_two import Geometry, H


@jax.custom_vjp  # type: ignore[untyped-decorator]
def likelihood(theta: Any, a: Any, d: Any, n: Any, y: Any, y_i: Any) -> Any:
    """Binomial log likelihood at log odds a_j theta_i - d_j; no binomial coefficients."""
    return _likelihood(theta, a, d, n, y, y_i)[0]


def _likelihood(theta: Any, a: Any, d: Any, n: Any, y: Any, y_i: Any) -> Any:
    eta = theta[:, None] * a[None, :] - d[None, :]
    e = jnp.exp(-jnp.abs(eta))
    q = 1 / (1 + e)
    rest = y - n * jnp.where(eta > 0, q, e * q)
    # sums as products with ones: XLA's own sum over the short side of a wide array is ten times slower
    ones_t, ones_i = jnp.ones_like(theta), jnp.ones_like(a)
    softplus = ones_t @ (n * (jnp.maximum(eta, 0) - jnp.log(q))) @ ones_i
    value = (theta @ y) @ a - y_i @ d - softplus
    return value, (rest @ a, theta @ rest, -(ones_t @ rest))


def _backward(gradients: Any, cotangent: Any) -> Any:
    return (*(cotangent * g for g in gradients), None, None, None)


likelihood.defvjp(_likelihood, _backward)


# how fast the one side of b goes over into the other, in standard deviations to the power -1
SHARP = 1.5


def unwhiten(z: Any, geo: Geometry, exact: bool) -> Any:
    """z -> log sigma (3,), mu, theta, b, alpha, log k, log |dx/dz| without its constant.

    All but alpha are multiplied by k, as the map has them (see ``geometry_two``).
    """
    k = {name: geo.h[i] for i, name in enumerate(H)}
    size_t, size_i = geo.theta.shape[0], geo.b.shape[0]
    z_t, z_b, z_a = z[4 : 4 + size_t], z[4 + size_t : 4 + size_t + size_i], z[4 + size_t + size_i :]
    logs, slopes = zip(*(_curve(z[i], c) for i, c in enumerate((geo.curve_t, geo.curve_b, geo.curve_a))), strict=True)
    taus = [jnp.exp(-2 * x) for x in logs]
    at_centre = [jnp.exp(-2 * k[name]) for name in ("lst", "lsb", "lsa")]
    args = (z[3], z_t, z_b, z_a, geo, k, logs, taus, at_centre)
    how = partial(_from_models, exact=exact) if geo.q.shape[0] else _from_items
    mu, theta, b, alpha, scale, log_jacobian = how(*args)
    return jnp.stack(logs), mu, theta, b, alpha, scale, log_jacobian + sum(jnp.log(s) for s in slopes)


def _from_models(
    z_mu: Any, z_t: Any, z_b: Any, z_a: Any, geo: Geometry, k: Any, logs: Any, taus: Any, centre: Any, exact: bool
) -> tuple[Any, ...]:
    """mu, abilities, items given them."""
    tau_t, tau_b, tau_a = taus
    c_t, c_b, c_a = centre
    prec_b = geo.seen_b + tau_b
    ratio = geo.cross / prec_b
    prec_a = geo.seen_a + tau_a - ratio**2 * prec_b
    kappa = geo.seen_b / prec_b
    to_b = -geo.w * jnp.exp(2 * geo.alpha)
    # what the priors pull more than at the centre, of an item, with mu at the centre
    off = geo.mask_i * (geo.b - k["mu"])
    lin_b, lin_a = (c_b - tau_b) * off, (c_a - tau_a) * geo.alpha + geo.seen_b / (geo.seen_b + c_b) - kappa
    lin_t = (c_t - tau_t) * geo.theta

    def given(lin_b: Any, lin_a: Any) -> tuple[Any, Any]:
        s = (lin_a - ratio * lin_b) / prec_a
        return lin_b / prec_b - ratio * s, s

    if exact:
        u = jnp.concatenate([to_b, -tau_b * geo.mask_i[None, :]])
        v = jnp.concatenate([geo.to_alpha, jnp.zeros_like(geo.mask_i)[None, :]]) - ratio * u
        u, v = u / jnp.sqrt(prec_b), v / jnp.sqrt(prec_a)
        own = jnp.where(geo.mask_t > 0, geo.w @ jnp.exp(2 * geo.alpha) + tau_t, 1.0)
        h = jnp.diag(jnp.append(own, geo.mask_i.sum() * tau_b + k["s_mu"] ** -2)) - u @ u.T - v @ v.T
        x, s = given(lin_b, lin_a)
        lin = jnp.append(lin_t - to_b @ x - geo.to_alpha @ s, (tau_b - c_b) * off.sum() + tau_b * (geo.mask_i @ x))
        low = jnp.linalg.cholesky(h)
        half = jax.scipy.linalg.solve_triangular(low, lin, lower=True) + jnp.append(z_t, z_mu)
        d = jax.scipy.linalg.solve_triangular(low, half, lower=True, trans=1)
        d_t, d_mu = d[:-1], d[-1]
        log_scale = -jnp.log(jnp.diag(low)).sum()
    else:
        s2 = k["k_t"] / tau_t + k["k_b"] / tau_b + k["k_0"]
        d_mu = z_mu * jnp.sqrt(s2)
        x, s = given(lin_b + tau_b * d_mu * geo.mask_i, lin_a)
        lam = geo.lam * jnp.exp(geo.ela_b * (-2 * logs[1] + 2 * k["lsb"]) + geo.ela_a * (-2 * logs[2] + 2 * k["lsa"]))
        d = lam + tau_t
        d_t = geo.q @ (((lin_t - to_b @ x - geo.to_alpha @ s) @ geo.q) / d + z_t / jnp.sqrt(d))
        log_scale = 0.5 * jnp.log(s2) - 0.5 * (geo.mask_t @ jnp.log(d))
    moved = -(d_t @ to_b)
    x, s = given(lin_b + tau_b * d_mu * geo.mask_i + moved, lin_a - d_t @ geo.to_alpha)
    t_a = z_a / jnp.sqrt(prec_a)
    t_b, slope_b = _skewed(z_b, geo.third_b, geo.fourth_b, prec_b)
    s, x = s + t_a, x - ratio * t_a
    b, _ = _turned(x, s, kappa, geo, moved / jnp.maximum(geo.seen_b, 1e-300))
    # the two sides of b shrink each as the data hold it
    scaled = SHARP * t_b / jnp.sqrt(1 / prec_b)
    above, below = -s * geo.above / (geo.above + tau_b), -s * geo.below / (geo.below + tau_b)
    part = jax.nn.sigmoid(scaled)
    width = 1 / (SHARP * jnp.sqrt(prec_b))
    b = b + width * (jnp.exp(above) * jax.nn.softplus(scaled) - jnp.exp(below) * jax.nn.softplus(-scaled))
    shrink = jnp.log(jnp.exp(above) * part + jnp.exp(below) * (1 - part))
    log_jacobian = log_scale + geo.mask_i @ (shrink + slope_b - 0.5 * jnp.log(prec_a))
    return k["mu"] + d_mu, geo.theta + d_t, b, geo.alpha + s, 0.0 * d_mu, log_jacobian


def _skewed(z: Any, third: Any, fourth: Any, c: Any) -> tuple[Any, Any]:
    """t(z)/sqrt(c) of ``geometry`` with mean about 0, as the centre is a mean, and the logarithm of its slope."""
    root = jax.lax.rsqrt(c)
    inverse = root * root
    t, log_slope = _lean(z, third, fourth, inverse, root)
    mean = 1.5 * LEAN * jnp.tanh(third * (inverse * root) / (3 * LEAN))
    return (t - mean) * root, log_slope


def _turned(x: Any, s: Any, kappa: Any, geo: Geometry, moved: Any) -> tuple[Any, Any]:
    """b of the items' coordinates, t_j having moved, and log db/dx."""
    off, shrink = geo.b - geo.turn, -kappa * s
    return geo.turn + moved + (off - moved + x - shrink * off) * jnp.exp(shrink), shrink


def _from_items(
    z_mu: Any, z_t: Any, z_b: Any, z_a: Any, geo: Geometry, k: Any, logs: Any, taus: Any, centre: Any
) -> tuple[Any, ...]:
    """alpha, mu, b, abilities given them."""
    (tau_t, tau_b, tau_a), (_, c_b, c_a) = taus, centre
    moved = logs[0] - k["lst"]
    d = geo.lam_a + tau_a
    lin = (c_a - tau_a) * geo.alpha + geo.bend_a * moved
    d_a = geo.q_a @ ((lin @ geo.q_a) / d + z_a / jnp.sqrt(d))
    s2 = k["k_b"] / tau_b + k["k_0"]
    mu = k["mu"] + geo.mu_alpha @ d_a + z_mu * jnp.sqrt(s2)
    lin = geo.mask_i * (c_b * (geo.b - k["mu"]) - tau_b * (geo.b - mu))
    lin += geo.bend_b * moved - geo.from_alpha @ d_a
    e = geo.lam_b + tau_b
    x = geo.q_b @ ((lin @ geo.q_b) / e + z_b / jnp.sqrt(e))
    jacobian = 0.5 * jnp.log(s2) - 0.5 * (geo.mask_i @ (jnp.log(d) + jnp.log(e)))
    return _rest(mu, x, d_a, z_t, geo, tau_t, tau_b, jacobian)


def _rest(mu: Any, x: Any, d_a: Any, z_t: Any, geo: Geometry, tau_t: Any, tau_b: Any, jacobian: Any) -> tuple[Any, ...]:
    """b and theta from the items' coordinates."""
    scale = (geo.mask_i @ d_a) / geo.mask_i.sum()
    level = d_a - scale
    b, shrink = _turned(x, level, geo.seen_b / (geo.seen_b + tau_b), geo, 0.0)
    a = jnp.exp(geo.alpha + level)
    a2 = a * a
    c = geo.w @ a2 + tau_t
    theta = (geo.k @ a + geo.w @ (a2 * b)) / c + z_t / jnp.sqrt(c)
    jacobian += geo.mask_i @ shrink - 0.5 * (geo.mask_t @ jnp.log(c))
    return mu, geo.mask_t * theta, b, geo.alpha + d_a, scale, jacobian


def parameters(z: Any, geo: Geometry, exact: bool) -> Any:
    """z -> x of the same length: sigma_theta, sigma_b, sigma_a, mu, theta, b, a."""
    logs, mu, theta, b, alpha, scale, _ = unwhiten(z, geo, exact)
    shift = jnp.array([1.0, 1.0, 0.0]) * scale
    by = jnp.exp(-scale)
    return jnp.concatenate([jnp.exp(logs - shift), (mu * by)[None], theta * by, b * by, jnp.exp(alpha)])


def log_density(z: Any, geo: Geometry, exact: bool) -> Any:
    """Log posterior of z up to a constant: likelihood, priors and the map's Jacobian."""
    k = {name: geo.h[i] for i, name in enumerate(H)}
    (lst, lsb, lsa), mu, theta, b, alpha, scale, log_jacobian = unwhiten(z, geo, exact)
    a = jnp.exp(jnp.clip(alpha - scale, -40, 40))
    ll = likelihood(theta, a, a * b, geo.n, geo.y, geo.y_i)
    n_t, n_i = geo.mask_t.sum(), geo.mask_i.sum()
    prior = -0.5 * (geo.mask_t @ theta**2) * jnp.exp(-2 * lst) - n_t * (lst - k["lst"])
    prior += -0.5 * (geo.mask_i @ (b - mu) ** 2) * jnp.exp(-2 * lsb) - n_i * (lsb - k["lsb"])
    prior += -0.5 * (geo.mask_i @ alpha**2) * jnp.exp(-2 * lsa) - n_i * (lsa - k["lsa"])
    # divided by k: the densities of theta and b lose what the Jacobian gains, but for mu and two log sigmas
    by = jnp.exp(-2 * scale)
    squares = (mu / k["s_mu"]) ** 2 + (jnp.exp(lst) / k["s_t"]) ** 2 + (jnp.exp(lsb) / k["s_b"]) ** 2
    hyper = lst + lsb + lsa - 3 * scale - 0.5 * (squares * by + (jnp.exp(lsa) / k["s_a"]) ** 2)
    return ll + prior + hyper + log_jacobian
