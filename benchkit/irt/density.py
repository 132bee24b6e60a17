"""The log density of the 1PL in whitened coordinates, in JAX.

z = (hyperparameters, u (S,), v (L,)), as in ``geometry``. The likelihood brings its own
gradient: value and gradients come from one pass over the cells.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from benchkit.irt.geometry import HEAVY, KNOTS, LEAN, LIMIT_DOUBLE, LIMIT_SINGLE, REACH, Geometry, H


@jax.custom_vjp  # type: ignore[untyped-decorator]
def likelihood(u: Any, v: Any, u0: Any, v0: Any, y_u: Any, y_v: Any, ref: Any, n: Any) -> Any:
    """Binomial log likelihood minus its value at the mode (u0, v0); no binomial coefficients.

    Column by column the value at the mode is taken off before the sum, so that float32 holds the rest.
    """
    return _likelihood(u, v, u0, v0, y_u, y_v, ref, n)[0]


def _likelihood(u: Any, v: Any, u0: Any, v0: Any, y_u: Any, y_v: Any, ref: Any, n: Any) -> Any:
    # exp(u - v) = exp(u) exp(-v): no exponential per cell
    odds = jnp.exp(u)[:, None] * jnp.exp(-v)[None, :]
    failure = 1 / (1 + odds)
    expected = n * (1 - failure)
    # sums as products with ones: XLA's own sum over the short side of a wide array is ten times slower
    ones_u, ones_v = jnp.ones_like(u), jnp.ones_like(v)
    columns = -(ones_u @ (n * jnp.log(failure)))
    value = y_u @ (u - u0) + (y_v * (v - v0) - (columns - ref)).sum()
    return value, (y_u - expected @ ones_v, y_v + ones_u @ expected)


def _backward(gradients: Any, cotangent: Any) -> Any:
    return (cotangent * gradients[0], cotangent * gradients[1], None, None, None, None, None, None)


likelihood.defvjp(_likelihood, _backward)


def _log_gamma(x: Any) -> tuple[Any, Any]:
    """log Gamma(x) and its derivative, x > 0, to about 1e-12: Stirling's series eight steps up."""
    product, slope = jnp.ones_like(x), jnp.zeros_like(x)
    for k in range(8):
        slope = slope * (x + k) + product
        product = product * (x + k)
    x = x + 8
    log, r = jnp.log(x), 1 / x
    r2 = r * r
    value = (
        (x - 0.5) * log - x + 0.5 * math.log(2 * math.pi) + r * (1 / 12 - r2 * (1 / 360 - r2 * (1 / 1260 - r2 / 1680)))
    )
    digamma = log - 0.5 * r - r2 * (1 / 12 - r2 * (1 / 120 - r2 * (1 / 252 - r2 / 240)))
    return value - jnp.log(product), digamma - slope / product


@jax.custom_vjp  # type: ignore[untyped-decorator]
def over_dispersed(u: Any, v: Any, kappa: Any, n: Any, y: Any) -> Any:
    """Beta-binomial log likelihood, kappa = (1 - rho)/rho; no binomial coefficients."""
    return _over_dispersed(u, v, kappa, n, y)[0]


def _over_dispersed(u: Any, v: Any, kappa: Any, n: Any, y: Any) -> Any:
    odds = jnp.exp(u)[:, None] * jnp.exp(-v)[None, :]
    q = 1 / (1 + odds)
    p = odds * q
    a, b = p * kappa, q * kappa
    (low_a, d_low_a), (low_b, d_low_b), (low, d_low) = _log_gamma(a), _log_gamma(b), _log_gamma(kappa)
    (high_a, d_high_a), (high_b, d_high_b), (high, d_high) = (
        _log_gamma(a + y),
        _log_gamma(b + n - y),
        _log_gamma(kappa + n),
    )
    right, wrong = d_high_a - d_low_a, d_high_b - d_low_b
    ones_u, ones_v = jnp.ones_like(u), jnp.ones_like(v)
    tilt = kappa * p * q * (right - wrong)
    value = ones_u @ (high_a - low_a + high_b - low_b - high + low) @ ones_v
    slope = ones_u @ (p * right + q * wrong - d_high + d_low) @ ones_v
    return value, (tilt @ ones_v, -(ones_u @ tilt), slope)


def _over_backward(gradients: Any, cotangent: Any) -> Any:
    return (*(cotangent * g for g in gradients), None, None)


over_dispersed.defvjp(_over_dispersed, _over_backward)


def _curve(z: Any, pieces: Any) -> tuple[Any, Any]:
    """Value and slope of a spline on the knots -REACH .. REACH at z; straight beyond."""
    step = 2 * REACH / (KNOTS - 1)
    inside = jnp.clip(z, -REACH, REACH)
    k = jnp.clip(jnp.floor((inside + REACH) / step).astype(jnp.int32), 0, KNOTS - 2)
    t = inside + REACH - k * step
    a, b, c, d = pieces[k]
    slope = b + t * (2 * c + t * 3 * d)
    return a + t * (b + t * (c + t * d)) + slope * (z - inside), slope


def _lean(z: Any, third: Any, fourth: Any, inverse: Any, root: Any) -> tuple[Any, Any]:
    """t(z) of ``geometry`` and the logarithm of its slope over sqrt(c). inverse, root: 1/c and 1/sqrt(c)."""
    a = LEAN * jnp.tanh(third * (inverse * root) * (1 / (3 * LEAN)))
    a = jnp.where(jnp.abs(a) < 1e-3, 1e-3, a)  # near the limit a -> 0, where the quotient would lose its digits
    square, flat = 9 * (a * a), fourth * (inverse * inverse)
    s = jnp.clip(1 + flat / 8 + 0.264 * square, 0.7, 1.5)
    h = jnp.clip(flat / 12 + 0.102 * square, 0, HEAVY)
    rise, tail = jnp.expm1(a * z) / a, 0.5 * h * (z * z)
    return a + s * rise * jnp.exp(tail), jnp.log(s * (1 + a * rise + h * z * rise) * root) + tail


def unwhiten(z: Any, geo: Geometry, exact: bool) -> Any:
    """z -> mu, log sigma_u, log sigma_v, u - m_u (S,), v - m_v (L,), log |dx/dz| without its constant."""
    k = {name: geo.h[i] for i, name in enumerate(H)}
    size_u, size_v = geo.u0.shape[0], geo.v0.shape[0]
    z_u, z_v = z[-size_u - size_v : -size_v], z[-size_v:]
    (lsu, slope_u), (lsv, slope_v) = _curve(z[0], geo.curve_u), _curve(z[1], geo.curve_v)
    tau_u, tau_v = jnp.exp(-2 * lsu), jnp.exp(-2 * lsv)
    log_hyper = jnp.log(slope_u * slope_v)
    c = geo.wl + tau_v
    root = jax.lax.rsqrt(c)  # quotients by c are products: on long vectors they take most of the time
    inverse = root * root
    if exact:
        mu, dev_u, log_scale = _exact(z[2], z_u, geo, k, tau_u, tau_v, c)
    else:
        mu, dev_u, log_scale = _spectral(z[2], z_u, geo, k, tau_u, tau_v, c)
    m_u, m_v = k["a_u"] * mu, k["a_v"] * mu
    t, log_slope = _lean(z_v, geo.third, geo.fourth, inverse, root)
    # written so that nothing cancels where sigma_v is small
    dev_v = ((geo.v0 - m_v) * geo.wl + geo.G + (dev_u + m_u - geo.u0) @ geo.w) * inverse + t * root
    return mu, lsu, lsv, dev_u, dev_v, log_hyper + log_scale + geo.mask_v @ log_slope


def parameters(z: Any, geo: Geometry, exact: bool) -> Any:
    """z -> x of the same length: mu, sigma_u, sigma_v (, rho), u, v."""
    mu, lsu, lsv, dev_u, dev_v, _ = unwhiten(z, geo, exact)
    m_u, m_v = geo.h[H.index("a_u")] * mu, geo.h[H.index("a_v")] * mu
    hyper = [mu, jnp.exp(lsu), jnp.exp(lsv)]
    if geo.curve_r.shape[0]:
        hyper.append(jax.nn.sigmoid(_curve(z[3], geo.curve_r)[0]))
    return jnp.concatenate([jnp.stack(hyper), dev_u + m_u, dev_v + m_v])


def _spectral(z_mu: Any, z_u: Any, geo: Geometry, k: Any, tau_u: Any, tau_v: Any, c: Any) -> Any:
    s2 = k["k_u"] / tau_u + k["k_v"] / tau_v + k["k_0"]
    mu = k["mu"] + z_mu * jnp.sqrt(s2)
    m_u, m_v = k["a_u"] * mu, k["a_v"] * mu
    lam = geo.lam * jnp.exp(geo.ela * (jnp.log(tau_v) + 2 * k["lsv"]))
    d = lam + tau_u
    x = (geo.G - (geo.v0 - m_v) * tau_v) / c
    pull = (geo.g + geo.w @ x) @ geo.q + lam * ((geo.u0 - m_u) @ geo.q)
    dev_u = geo.q @ (pull / d + z_u / jnp.sqrt(d))
    return mu, dev_u, 0.5 * (jnp.log(s2) - geo.mask_u @ jnp.log(d))


def _exact(z_mu: Any, z_u: Any, geo: Geometry, k: Any, tau_u: Any, tau_v: Any, c: Any) -> Any:
    wc = geo.w / c
    uu = jnp.diag(geo.w.sum(1) + jnp.where(geo.mask_u > 0, tau_u, 1.0)) - wc @ geo.w.T
    um = -k["a_v"] * tau_v * wc.sum(1) - k["a_u"] * tau_u * geo.mask_u
    mm = k["a_v"] * tau_v * (geo.wl / c).sum() + k["a_u"] * tau_u * geo.mask_u.sum() + k["s_mu"] ** -2
    precision = jnp.block([[uu, um[:, None]], [um[None, :], mm[None, None]]])
    x = (geo.G - (geo.v0 - k["a_v"] * k["mu"]) * tau_v) / c
    from_u = geo.mask_u * (geo.u0 - k["a_u"] * k["mu"])
    from_v = geo.mask_v * ((geo.v0 - k["a_v"] * k["mu"]) * geo.wl + geo.G) / c  # v's deviation; nothing cancels
    lin_u = geo.g + geo.w @ x - tau_u * from_u
    lin_mu = k["a_u"] * tau_u * from_u.sum() + k["a_v"] * tau_v * from_v.sum() - k["mu"] / k["s_mu"] ** 2
    low = jnp.linalg.cholesky(precision)
    half = jax.scipy.linalg.solve_triangular(low, jnp.append(lin_u, lin_mu), lower=True)
    step = jax.scipy.linalg.solve_triangular(low, half + jnp.append(z_u, z_mu), lower=True, trans=1)
    mu = k["mu"] + step[-1]
    return mu, geo.u0 + step[:-1] - k["a_u"] * mu, -jnp.log(jnp.diag(low)).sum()


def log_density(z: Any, geo: Geometry, exact: bool) -> Any:
    """Log posterior of z up to a constant: likelihood, priors and the map's Jacobian."""
    k = {name: geo.h[i] for i, name in enumerate(H)}
    mu, lsu, lsv, dev_u, dev_v, log_jacobian = unwhiten(z, geo, exact)
    u, v = dev_u + k["a_u"] * mu, dev_v + k["a_v"] * mu
    tau_u, tau_v = jnp.exp(-2 * lsu), jnp.exp(-2 * lsv)
    # the likelihood is flat beyond these limits, where it can't matter, so that products of exponentials stay finite
    limit = LIMIT_DOUBLE if u.dtype == jnp.float64 else LIMIT_SINGLE
    u, v = jnp.clip(u, -limit, limit), jnp.clip(v, -limit, limit)
    if geo.curve_r.shape[0]:
        logit, slope = _curve(z[3], geo.curve_r)
        ll = over_dispersed(u, v, jnp.exp(-logit), geo.n, geo.y) + jnp.log(slope)
        ll += jax.nn.log_sigmoid(logit) + jax.nn.log_sigmoid(-logit)  # uniform in rho
    else:
        ll = likelihood(u, v, geo.u0, geo.v0, geo.y_u, geo.y_v, geo.ref, geo.n)
    prior = -0.5 * (geo.mask_u @ dev_u**2) * tau_u - geo.mask_u.sum() * (lsu - k["lsu"])
    prior += -0.5 * (geo.mask_v @ dev_v**2) * tau_v - geo.mask_v.sum() * (lsv - k["lsv"])
    hyper = lsu + lsv - 0.5 * ((mu / k["s_mu"]) ** 2 + 1 / (tau_u * k["s_u"] ** 2) + 1 / (tau_v * k["s_v"] ** 2))
    return ll + prior + hyper + log_jacobian
