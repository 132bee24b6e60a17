"""NUTS on a whitened posterior, assembled from BlackJAX's parts: what JAX compiles around a log density.

The target is close to N(0, I), whose Hamiltonian flow is a rotation of position and momentum. So the integrator splits
the energy into that of N(0, I), followed exactly, and the rest, which only kicks (Shahbaba, Lan, Johnson and Neal 2014,
Split Hamiltonian Monte Carlo). On a normal posterior it makes no error at any step size; elsewhere its steps are as
long as the posterior is near normal, where leapfrog's shrink with the number of parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.mcmc import hmc, proposal, termination, trajectory
from blackjax.mcmc.integrators import IntegratorState

DIVERGENCE = 1000.0  # a loss of energy beyond this is a divergence


class Draws(NamedTuple):
    """What ``advance`` returns of each step (rows beyond the steps taken are zero).

    x (block, D): the parameters. energy (block,) floats.
    divergent, saturated (block,) bool: energy lost; the tree reached its largest depth without a U-turn.
    gradients (block,) int32: integrator steps.
    """

    x: Any
    energy: Any
    divergent: Any
    saturated: Any
    gradients: Any


def rotation(density: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """One step of the integrator: half a kick by the gradient of log density + z^2/2, a rotation, half a kick."""
    value_and_gradient = jax.value_and_grad(density)

    def step(state: Any, size: Any) -> Any:
        z, p, _, gradient = state
        p = p + 0.5 * size * (gradient + z)
        cos, sin = jnp.cos(size), jnp.sin(size)
        z, p = z * cos + p * sin, p * cos - z * sin
        value, gradient = value_and_gradient(z)
        return IntegratorState(z, p + 0.5 * size * (gradient + z), value, gradient)

    return step


def _kinetic_energy(momentum: Any, position: Any = None) -> Any:
    return 0.5 * momentum @ momentum


def _is_turning(left: Any, right: Any, total: Any, *_: Any, **__: Any) -> Any:
    rho = total - (right + left) / 2
    return (left @ rho <= 0) | (right @ rho <= 0)


def _checkpoints(depth: int) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """BlackJAX's iterative U-turn criterion, with its checkpoints written in place.

    Upstream chooses between two copies of the whole array at each leaf, which costs more than the gradient where the
    vectors are long. Here odd leaves, which keep nothing, write to a spare row.
    """
    _, _, turning = termination.iterative_uturn_numpyro(_is_turning)

    def new(z: Any) -> Any:
        room = jnp.zeros((depth + 1, z.shape[0]), z.dtype)
        return termination.IterativeUTurnState(room, room, 0, 0)

    def keep(state: Any, total: Any, momentum: Any, leaf: Any) -> Any:
        # a leaf closes as many subtrees as its number has trailing ones (Phan, Pradhan and Jankowiak 2019)
        last = jnp.bitwise_count(leaf >> 1).astype(jnp.int32)
        closed = jnp.bitwise_count(leaf & ~(leaf + 1)).astype(jnp.int32)
        row = jnp.where(leaf % 2 == 0, last, depth)
        momenta, totals = state.momentum.at[row].set(momentum), state.momentum_sum.at[row].set(total)
        return termination.IterativeUTurnState(momenta, totals, last - closed + 1, last)

    return new, keep, turning


def transition(
    density: Callable[[Any], Any], key: Any, state: Any, momentum: Any, size: Any, max_treedepth: int
) -> tuple[Any, Any]:
    """One NUTS step (Hoffman and Gelman 2014, with multinomial weights: Betancourt 2017) from an HMCState.

    Returns the next HMCState and a row of what ``Draws`` holds, with the mean acceptance probability for x.
    """
    new, keep, turning = _checkpoints(max_treedepth)
    integrate = trajectory.dynamic_progressive_integration(
        rotation(density), _kinetic_energy, keep, turning, DIVERGENCE
    )
    expand = trajectory.dynamic_multiplicative_expansion(integrate, _is_turning, max_treedepth)
    start = IntegratorState(state.position, momentum, state.logdensity, state.logdensity_grad)
    energy = -state.logdensity + _kinetic_energy(momentum)
    first = trajectory.DynamicExpansionState(
        0,
        proposal.Proposal(start, energy, jnp.zeros_like(energy), -jnp.inf * jnp.ones_like(energy)),
        trajectory.Trajectory(start, start, momentum, 0),
        new(state.position),
    )
    last, (divergent, turned) = expand(key, first, energy, size)
    chosen = last.proposal
    accept = jnp.exp(chosen.sum_log_p_accept) / last.trajectory.num_states
    full = (last.step >= max_treedepth) & ~turned & ~divergent
    row = Draws(accept, chosen.energy, divergent, full, last.trajectory.num_states)
    return hmc.HMCState(chosen.state.position, chosen.state.logdensity, chosen.state.logdensity_grad), row


def advance(
    density: Callable[[Any], Any],
    parameters: Callable[[Any], Any],
    z: Any,
    adaptation: Any,
    key: Any,
    momenta: Any,
    start: Any,
    count: Any,
    warmup: Any,
    target: Any,
    longest: Any,
    *,
    max_treedepth: int,
) -> Any:
    """Take NUTS steps start .. start+count-1 of one chain; adapt the step size before step ``warmup``.

    z (D,): position. adaptation (5,): dual averaging's state. key (2,) uint32. momenta (block, D): a standard normal
    row for each step, count <= block. start, count, warmup int32. target: mean acceptance probability.
    longest: the longest step, radians.
    Returns the new z, the new adaptation and Draws. Any split of a chain into calls gives the same chain.
    """
    # the first step size is a good guess: four times less nervous than Hoffman and Gelman's, who start from anywhere
    _, update, _ = dual_averaging_adaptation(target, gamma=0.2)
    block = momenta.shape[0]

    def step(i: Any, carry: Any) -> Any:
        state, da, out = carry
        warm = start + i < warmup
        size = jnp.exp(jnp.where(warm, da.log_step_size, da.log_step_size_avg))
        step_key = jax.random.fold_in(key, start + i)
        state, row = transition(density, step_key, state, momenta[i], size, max_treedepth)
        new = update(da, row.x)
        new = new._replace(log_step_size=jnp.minimum(new.log_step_size, jnp.log(longest)))
        da = jax.tree.map(lambda a, b: jnp.where(warm, a, b).astype(z.dtype), new, da)
        row = row._replace(x=parameters(state.position).astype(jnp.float32))
        return state, da, jax.tree.map(lambda all_, one: all_.at[i].set(one.astype(all_.dtype)), out, row)

    out = Draws(
        jnp.zeros((block, z.shape[0]), jnp.float32),
        jnp.zeros(block, z.dtype),
        jnp.zeros(block, bool),
        jnp.zeros(block, bool),
        jnp.zeros(block, jnp.int32),
    )
    value, gradient = jax.value_and_grad(density)(z)
    carry = (hmc.HMCState(z, value, gradient), DualAveragingAdaptationState(*adaptation), out)
    state, da, out = jax.lax.fori_loop(0, count, step, carry)
    return state.position, jnp.stack(da), out
