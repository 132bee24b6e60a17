"""The log density in whitened coordinates and a run of NUTS steps: what JAX compiles.

z = (3 hyperparameters, S of the smaller side, L of the larger side), as in ``geometry``. The likelihood brings its own
gradient: value and both gradients come from one pass over the cells, with a division and a logarithm each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.mcmc import metrics, nuts

from benchkit.irt.geometry import BLOCK, KNOTS, LIMIT_DOUBLE, LIMIT_SINGLE, REACH, Geometry, H


class Draws(NamedTuple):
    """What ``advance`` returns of each step (rows beyond the steps taken are zero).

    x (BLOCK, 3 + S + L): mu, sigma_u, sigma_v, u, v. energy (BLOCK,) floats.
    divergent, saturated (BLOCK,) bool: energy lost; the tree reached its largest depth without a U-turn.
    gradients (BLOCK,) int32: leapfrog steps.
    """

    x: Any
    energy: Any
    divergent: Any
    saturated: Any
    gradients: Any


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
    columns = -(n * jnp.log(failure)).sum(0)
    ones_u, ones_v = jnp.ones_like(u), jnp.ones_like(v)
    value = y_u @ (u - u0) + (y_v * (v - v0) - (columns - ref)).sum()
    return value, (y_u - expected @ ones_v, y_v + ones_u @ expected)


def _forward(*args: Any) -> Any:
    return _likelihood(*args)


def _backward(gradients: Any, cotangent: Any) -> Any:
    return (cotangent * gradients[0], cotangent * gradients[1], None, None, None, None, None, None)


likelihood.defvjp(_forward, _backward)


def _curve(z: Any, pieces: Any) -> tuple[Any, Any]:
    """Value and slope of a spline on the knots -REACH .. REACH at z; straight beyond."""
    step = 2 * REACH / (KNOTS - 1)
    inside = jnp.clip(z, -REACH, REACH)
    k = jnp.clip(jnp.floor((inside + REACH) / step).astype(jnp.int32), 0, KNOTS - 2)
    t = inside + REACH - k * step
    a, b, c, d = pieces[k]
    slope = b + t * (2 * c + t * 3 * d)
    return a + t * (b + t * (c + t * d)) + slope * (z - inside), slope


def unwhiten(z: Any, geo: Geometry, exact: bool) -> Any:
    """z (3+S+L,) -> mu, log sigma_u, log sigma_v, u - m_u (S,), v - m_v (L,), log |dx/dz| without its constant."""
    k = {name: geo.h[i] for i, name in enumerate(H)}
    size_u = geo.u0.shape[0]
    z_u, z_v = z[3 : 3 + size_u], z[3 + size_u :]
    (lsu, slope_u), (lsv, slope_v) = _curve(z[0], geo.curve_u), _curve(z[1], geo.curve_v)
    tau_u, tau_v = jnp.exp(-2 * lsu), jnp.exp(-2 * lsv)
    log_hyper = jnp.log(slope_u * slope_v)
    c = geo.wl + tau_v
    if exact:
        mu, dev_u, log_scale = _exact(z[2], z_u, geo, k, tau_u, tau_v, c)
    else:
        mu, dev_u, log_scale = _spectral(z[2], z_u, geo, k, tau_u, tau_v, c)
    m_u, m_v = k["a_u"] * mu, k["a_v"] * mu
    # written so that nothing cancels where sigma_v is small
    dev_v = ((geo.v0 - m_v) * geo.wl + geo.G + (dev_u + m_u - geo.u0) @ geo.w) / c + z_v / jnp.sqrt(c)
    return mu, lsu, lsv, dev_u, dev_v, log_hyper + log_scale - 0.5 * geo.mask_v @ jnp.log(c)


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
    ll = likelihood(u, v, geo.u0, geo.v0, geo.y_u, geo.y_v, geo.ref, geo.n)
    prior = -0.5 * (geo.mask_u @ dev_u**2) * tau_u - geo.mask_u.sum() * (lsu - k["lsu"])
    prior += -0.5 * (geo.mask_v @ dev_v**2) * tau_v - geo.mask_v.sum() * (lsv - k["lsv"])
    hyper = lsu + lsv - 0.5 * ((mu / k["s_mu"]) ** 2 + 1 / (tau_u * k["s_u"] ** 2) + 1 / (tau_v * k["s_v"] ** 2))
    return ll + prior + hyper + log_jacobian


def _metric(geo: Geometry) -> metrics.Metric:
    """The identity, with no momentum on the padding. Noise is drawn side by side: padding changes no real entry."""

    def momentum(key: Any, position: Any) -> Any:
        k_h, k_u, k_v = jax.random.split(key, 3)
        return jnp.concatenate(
            [
                jax.random.normal(k_h, (3,), position.dtype),
                geo.mask_u * jax.random.normal(k_u, geo.mask_u.shape, position.dtype),
                geo.mask_v * jax.random.normal(k_v, geo.mask_v.shape, position.dtype),
            ]
        )

    def kinetic_energy(momentum: Any, position: Any = None) -> Any:
        return 0.5 * momentum @ momentum

    def is_turning(left: Any, right: Any, total: Any, *_: Any, **__: Any) -> Any:
        rho = total - (right + left) / 2
        return (left @ rho <= 0) | (right @ rho <= 0)

    def scale(position: Any, element: Any, **_: Any) -> Any:
        return element

    return metrics.Metric(momentum, kinetic_energy, is_turning, scale)


def advance(
    geo: Geometry,
    z: Any,
    adaptation: Any,
    key: Any,
    start: Any,
    count: Any,
    warmup: Any,
    target: Any,
    *,
    exact: bool,
    max_treedepth: int,
) -> Any:
    """Take NUTS steps start .. start+count-1 of one chain (count <= BLOCK); adapt the step size before step ``warmup``.

    z (3+S+L,): position. adaptation (5,): dual averaging's state. key (2,) uint32. start, count, warmup int32.
    Returns the new z, the new adaptation and Draws. Any split of a chain into calls gives the same chain.
    """
    kernel = nuts.build_kernel()
    metric = _metric(geo)
    a_u, a_v = geo.h[H.index("a_u")], geo.h[H.index("a_v")]
    _, update, _ = dual_averaging_adaptation(target)

    def density(position: Any) -> Any:
        return log_density(position, geo, exact)

    def step(i: Any, carry: Any) -> Any:
        state, da, out = carry
        warm = start + i < warmup
        size = jnp.exp(jnp.where(warm, da.log_step_size, da.log_step_size_avg))
        state, info = kernel(
            jax.random.fold_in(key, start + i), state, density, size, metric, max_num_doublings=max_treedepth
        )
        new = update(da, info.acceptance_rate)
        da = jax.tree.map(lambda a, b: jnp.where(warm, a, b).astype(z.dtype), new, da)
        mu, lsu, lsv, dev_u, dev_v, _ = unwhiten(state.position, geo, exact)
        hyper = jnp.stack([mu, jnp.exp(lsu), jnp.exp(lsv)])
        x = jnp.concatenate([hyper, dev_u + a_u * mu, dev_v + a_v * mu]).astype(jnp.float32)
        full = (info.num_trajectory_expansions >= max_treedepth) & ~info.is_turning & ~info.is_divergent
        row = Draws(x, info.energy, info.is_divergent, full, info.num_integration_steps)
        return state, da, jax.tree.map(lambda all_, one: all_.at[i].set(one.astype(all_.dtype)), out, row)

    out = Draws(
        jnp.zeros((BLOCK, z.shape[0]), jnp.float32),
        jnp.zeros(BLOCK, z.dtype),
        jnp.zeros(BLOCK, bool),
        jnp.zeros(BLOCK, bool),
        jnp.zeros(BLOCK, jnp.int32),
    )
    state, da, out = jax.lax.fori_loop(
        0, count, step, (nuts.init(z, density), DualAveragingAdaptationState(*adaptation), out)
    )
    return state.position, jnp.stack(da), out
