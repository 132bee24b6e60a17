"""Draws of one side of the beta-binomial Rasch model given the other and rho. Numpy only.

    l(b) = sum_i log BetaBinomial(y_ij | n_ij, p kappa, (1-p) kappa) - (b - m_s)^2 / (2 sigma_s^2)
    p = sigmoid(theta_i^s - b), kappa = (1 - rho_s)/rho_s

This density need not be log-concave, or have one mode: cells that contradict each other count less than in the
binomial model. So l is tabulated at nodes, about the mode of the binomial density of counts divided by 1 + (n-1) rho
and far out on both sides, and interpolated linearly. The change of slope from one cell to the next says how far l may
be from its chord; more nodes go where that encloses the most mass, until it is 1% of all. Rejection with a margin of
5% then corrects the rest: the draws are exact but for what exceeds the margin, which is far below their noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt.conditional import BLOCK_DRAWS, ROUNDS, Block, Ints, block_of, guess, stream
from benchkit.irt.model import Array
from benchkit.irt.pointwise import Draws, cell_loglik

_MARGIN = 0.05
_HALF = np.array([0.4, 0.8, 1.2, 1.6, 2.1, 2.8, 4.0, 6.0])
_LOCAL = np.concatenate([-_HALF[::-1], [0.0], _HALF])
_FAR = np.linspace(0, 1, 16)
_MORE = (np.arange(12) + 0.5) / 12
_ENOUGH = 1.01

Density = Callable[[Array, NDArray[np.intp]], Array]


def sample_beta(
    attempts: Ints,
    correct: Array,
    given: NDArray[np.floating],
    mean: Array,
    sd: Array,
    rho: Array,
    keys: Sequence[str],
    *,
    seed: int,
) -> NDArray[np.float32]:
    """As ``conditional.sample``, from the whole scores ``correct`` (I, J) and rho (S,), between 0 and 1."""
    if (correct != np.round(correct)).any():
        raise InputError("scores that are fractions have no beta-binomial likelihood")
    if not ((rho > 0) & (rho < 1)).all():
        raise InputError("a draw of rho is not between 0 and 1")
    draws, size = len(given), attempts.shape[1]
    out = np.empty((size, draws), np.float32)
    shrink = 1 / (1 + np.maximum(attempts - 1, 0) * rho.mean())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, draws, BLOCK_DRAWS):
            s = slice(first, min(first + BLOCK_DRAWS, draws))
            block, at_mean = block_of(attempts * shrink, (correct * shrink).sum(0), given[s], mean[s], sd[s])

            def work(j: int, s: slice = s, block: Block = block, at_mean: Array = at_mean) -> None:
                tried = np.flatnonzero(attempts[:, j])
                theta = given[s][:, tried]
                n, y = attempts[tried, j], correct[tried, j]

                def density(x: Array, where: NDArray[np.intp]) -> Array:
                    i, k = np.divmod(np.arange(len(tried) * x.shape[1]), x.shape[1])
                    cells = cell_loglik(Draws(theta[where], x, None, rho[s][where]), n[i], y[i], i, k)
                    prior = -0.5 * ((x - mean[s][where][:, None]) / sd[s][where][:, None]) ** 2
                    return np.asarray(cells.reshape(len(tried), x.shape[1], len(x)).sum(0).T + prior)

                centre, scale = guess(block._replace(n=block.n[:, [j]], y=block.y[[j]]), at_mean)
                # 15 logits beyond the abilities a cell has no slope left, and 7 sd further nor has the prior any mass
                low = np.minimum(theta.min(1, initial=np.inf) - 15, mean[s]) - 7 * sd[s]
                high = np.maximum(theta.max(1, initial=-np.inf) + 15, mean[s]) + 7 * sd[s]
                far = low[:, None] + (high - low)[:, None] * _FAR
                local = np.clip(centre[0][:, None] + scale[0][:, None] * _LOCAL, low[:, None], high[:, None])
                nodes = np.sort(np.concatenate([far, local], axis=1), axis=1)
                out[j, s] = _sample(density, nodes, stream(seed, keys[j], s.start))

            list(pool.map(work, range(size)))
    return out


class _Chords(NamedTuple):
    """A density whose logarithm is linear between nodes and that ends with them: x, h (S, K); cells' masses, summed."""

    x: Array
    h: Array
    cumulated: Array

    def take(self, where: NDArray[np.bool_]) -> _Chords:
        return _Chords(*(z[where] for z in self))

    def invert(self, u: Array) -> tuple[Array, Array]:
        """u (S, Q) in (0, 1) -> the quantiles, and the logarithm of the density there."""
        v = u * self.cumulated[:, -1:]
        cell = np.minimum((self.cumulated[:, None, :] <= v[:, :, None]).sum(2), self.cumulated.shape[1] - 1)
        after = np.take_along_axis(self.cumulated, cell, 1)
        before = np.where(cell > 0, np.take_along_axis(self.cumulated, np.maximum(cell - 1, 0), 1), 0.0)
        share = np.clip((v - before) / np.maximum(after - before, 1e-300), 0.0, 1.0)
        x0, x1, h0, h1 = (np.take_along_axis(z, cell + k, 1) for z in (self.x, self.h) for k in (0, 1))
        rise = h1 - h0
        steep = np.maximum(np.abs(rise), 1e-9)
        with np.errstate(divide="ignore"):
            from_top = -np.log1p(np.where(rise > 0, 1 - share, share) * np.expm1(-steep)) / steep
        inside = np.clip(np.where(rise > 0, 1 - from_top, from_top), 0.0, 1.0)
        return x0 + (x1 - x0) * inside, h0 + rise * inside


def _mass(h0: Array, h1: Array, width: Array) -> Array:
    """The integral of exp over a cell where the logarithm runs linearly from h0 to h1."""
    steep = np.maximum(np.abs(h1 - h0), 1e-9)
    return np.asarray(width * np.exp(np.maximum(h0, h1)) * -np.expm1(-steep) / steep)


def _chords(x: Array, h: Array) -> _Chords:
    """From nodes in order and heights relative to any constant (S, K)."""
    h = h - h.max(1, keepdims=True)
    return _Chords(x, h, np.cumsum(_mass(h[:, :-1], h[:, 1:], np.diff(x, axis=1)), axis=1))


def _refine(x: Array, h: Array) -> tuple[Array, NDArray[np.bool_]]:
    """More nodes (S, Q) for each row, and which rows need them."""
    width, h0, h1 = np.diff(x, axis=1), h[:, :-1], h[:, 1:]
    slope = (h1 - h0) / np.maximum(width, 1e-300)
    left = np.concatenate([slope[:, :1], slope[:, :-1]], axis=1) - slope
    right = slope - np.concatenate([slope[:, 1:], slope[:, -1:]], axis=1)
    off = np.where(np.abs(left) > np.abs(right), left, right) * width / 8
    middle = (h0 + h1) / 2 + off
    top = np.maximum(h.max(1), middle.max(1))[:, None]
    h0, h1, middle = h0 - top, h1 - top, middle - top
    mass = _mass(h0, h1, width)
    excess = np.abs(_mass(h0, middle, width / 2) + _mass(middle, h1, width / 2) - mass)
    cumulated = np.cumsum(excess, axis=1)
    need = cumulated[:, -1] > (_ENOUGH - 1) * mass.sum(1)
    v = cumulated[:, -1:] * _MORE
    cell = np.minimum((cumulated[:, None, :] <= v[:, :, None]).sum(2), width.shape[1] - 1)
    start, share, wide = (np.take_along_axis(z, cell, 1) for z in (cumulated - excess, excess, width))
    inside = np.clip((v - start) / np.maximum(share, 1e-300), 0.0, 1.0)
    return np.take_along_axis(x, cell, 1) + inside * wide, need


def _sample(density: Density, x: Array, stream: np.random.Generator) -> Array:
    """A draw for each of S densities. density(x (P, K), which (P,)) is l. x (S, K): the first nodes, in order."""
    here = np.arange(len(x))
    h = density(x, here)
    for _ in range(60):
        more, need = _refine(x, h)
        if not need.any():
            break
        new_x = np.where(need[:, None], more, x[:, -1:])  # rows that need no more repeat their last node
        new_h = np.repeat(h[:, -1:], new_x.shape[1], axis=1)
        new_h[need] = density(more[need], here[need])
        x, h = np.concatenate([x, new_x], axis=1), np.concatenate([h, new_h], axis=1)
        order = np.argsort(x, axis=1, kind="stable")
        x, h = np.take_along_axis(x, order, 1), np.take_along_axis(h, order, 1)
    top = h.max(1)
    proposal = _chords(x, h)
    out = np.empty(len(x))
    for _ in range(ROUNDS):
        u = stream.random((2, len(here)))
        draw, log = proposal.invert(u[0][:, None])
        ratio = density(draw, here)[:, 0] - top - log[:, 0] - _MARGIN
        with np.errstate(divide="ignore"):
            rejected = ~(np.log(u[1]) <= ratio)
        out[here[~rejected]] = draw[~rejected, 0]
        if not rejected.any():
            return out
        here, top, proposal = here[rejected], top[rejected], proposal.take(rejected)
    raise ArithmeticError("no draw was accepted")
