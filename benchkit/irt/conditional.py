"""Exact draws of one side of the Rasch model given the other: independent, one-dimensional, log-concave densities.

For each item j and each draw s of the abilities theta^s, the difficulty b has, up to a constant, the log density

    l(b) = -Y_j b - sum_i n_ij log(1 + exp(theta_i^s - b)) - (b - m_s)^2 / (2 sigma_s^2),   Y_j = sum_i y_ij

which is strictly concave. A Newton step or two find x near its mode; the tangents at x and about sqrt(2) standard
deviations on either side are an envelope from which rejection draws exactly (Gilks and Wild 1992, Applied Statistics
41; of a normal density 89% are accepted, Devroye 1986, section VII.2). How near x is to the mode decides the speed
alone. An ability given difficulties is the same density of -theta, with -b in place of theta. Numpy only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt.model import Array

Ints = NDArray[np.int64]
Cells = tuple[NDArray[np.intp], NDArray[np.intp]]

# draws that share a random stream: part of what a seed means, unlike the number of values handled at a time
BLOCK_DRAWS = 1024
_VALUES = 1 << 14
# exp(_REACH) is squared without overflow
_REACH = 350.0
_CLOSE = 0.3
_SLOPE = 0.3
ROUNDS = 1000


class Block(NamedTuple):
    """J items at S draws.

    n (I, J) attempts, y (J,) successes. mean, tau (S,): the prior's mean and precision. e (I, S) = exp(theta - mean).
    """

    n: Array
    y: Array
    e: Array
    mean: Array
    tau: Array


def sample(
    attempts: Ints, total: Array, given: NDArray[np.floating], mean: Array, sd: Array, keys: Sequence[str], *, seed: int
) -> NDArray[np.float32]:
    """One draw of each of J parameters at each of S draws of the I fixed ones, float32 (J, S).

    attempts (I, J), total (J,): scored attempts, and successes (of the fixed side over the new one). given (S, I).
    mean, sd (S,): the prior of the new parameters. keys: J names. A parameter's random numbers come from the seed and
    its key alone, so that its draws do not depend on what else is in the table, nor on the number of threads.
    Memory: the result, the fixed parameters at 1024 draws, and some arrays of 2^14 values a thread.
    Raises InputError where the fixed parameters are not finite or too far apart, or an sd is not positive.
    """
    draws, size = len(given), attempts.shape[1]
    if not (np.isfinite(given).all() and np.isfinite(mean).all() and np.isfinite(sd).all()):
        raise InputError("a draw is not a finite number")
    if not (sd > 0).all():
        raise InputError("a draw of a standard deviation is not above 0")
    out = np.empty((size, draws), np.float32)
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, draws, BLOCK_DRAWS):
            s = slice(first, min(first + BLOCK_DRAWS, draws))
            block, theta = block_of(attempts, total, given[s], mean[s], sd[s])
            step = max(1, min(_VALUES // (s.stop - s.start), -(-size // threads)))

            def work(k: int, s: slice = s, block: Block = block, theta: Array = theta, step: int = step) -> None:
                j = slice(k, min(k + step, size))
                part = block._replace(n=np.ascontiguousarray(block.n[:, j]), y=block.y[j])
                out[j, s] = _sample(part, theta, [stream(seed, key, s.start) for key in keys[j]])

            list(pool.map(work, range(0, size, step)))
    return out


def block_of(
    attempts: Ints | Array, total: Array, given: NDArray[np.floating], mean: Array, sd: Array
) -> tuple[Block, Array]:
    """All items at some draws, and the fixed parameters' means over these."""
    theta = given.T.astype(np.float64, order="C")
    at_mean = theta.mean(1)
    theta -= mean
    if max(-theta.min(), theta.max()) > _REACH:
        raise InputError(f"a fixed parameter is more than {_REACH:g} logits from the prior of the new ones")
    return Block(attempts.astype(float), total, np.exp(theta, out=theta), mean, sd**-2.0), at_mean


def stream(seed: int, key: str, first: int) -> np.random.Generator:
    words = np.frombuffer(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:16], np.uint32)
    return np.random.default_rng([seed, first, *words.tolist()])


# ---- the density ----------------------------------------------------------------------------------------------------


def _evaluate(
    block: Block, x: Array, at: Cells | None = None, *, value: bool = False, slope: bool = False, curve: bool = False
) -> tuple[Array, Array, Array]:
    """l, l' and -l'' at x: (J, S) for all, or (P,) for the cells `at` (items, draws). What is not asked for is 0.

    Sums run over the fixed parameters one by one, so that their rounding does not depend on the size of the block.
    """
    n, y = (block.n[:, :, None], block.y[:, None]) if at is None else (block.n, block.y[at[0]])
    mean, tau = (z if at is None else z[at[1]] for z in (block.mean, block.tau))
    off = x - mean
    f = np.exp(-np.clip(off, -_REACH, _REACH))
    logs, r1, r2 = (np.zeros(x.shape) for _ in range(3))
    attempts = np.zeros(n.shape[1:] if at is None else x.shape)
    t, work = np.empty(x.shape), np.empty(x.shape)
    for i in np.flatnonzero(block.n.any(1)):
        e_i, n_i = (block.e[i], n[i]) if at is None else (block.e[i][at[1]], n[i][at[0]])
        attempts += n_i
        np.multiply(f, e_i, out=t)
        t += 1
        if value:
            np.log(t, out=work)
            work *= n_i
            logs += work
        if slope or curve:
            np.divide(1.0, t, out=t)  # the probability of a failure
            np.multiply(t, n_i, out=work)
            r1 += work
        if curve:
            work *= t
            r2 += work
    if value:
        # where exp was cut, log(1 + exp(theta - b)) = theta - b
        logs += attempts * np.maximum(-off - _REACH, 0.0)
        logs = -y * x - logs - 0.5 * tau * off * off
    first = (attempts - r1) - y - tau * off if slope else r1
    return logs, first, r1 - r2 + tau if curve else r2


def _mode(block: Block, x: Array) -> tuple[Array, Array]:
    """Points (J, S) within a fraction of a standard deviation of the modes, from x, and -l'' near them.

    Newton's method. It stays between bounds of the mode, where l' = sum n p - Y - (b - m)/sigma^2 has different signs;
    a step beyond them is a bisection.
    """
    spread = 1 / block.tau
    low = block.mean - spread * block.y[:, None]
    high = block.mean + spread * (block.n.sum(0) - block.y)[:, None]
    x, curvature = np.clip(x, low, high), np.empty(x.shape)
    at: Cells | None = None
    here = x
    for _ in range(200):
        _, slope, curve = _evaluate(block, here, at, slope=True, curve=True)
        where = ... if at is None else at
        low[where] = np.where(slope > 0, here, low[where])
        high[where] = np.where(slope < 0, here, high[where])
        new = here + slope / curve
        new = np.where((new >= low[where]) & (new <= high[where]), new, (low[where] + high[where]) / 2)
        x[where], curvature[where] = new, curve
        far = np.abs(slope) > _CLOSE * np.sqrt(curve)
        if not far.any():
            return x, curvature
        rows = np.nonzero(far)
        at = (rows[0], rows[1]) if at is None else (at[0][far], at[1][far])
        here = x[at]
    raise ArithmeticError("no mode found")


def guess(block: Block, theta: Array) -> tuple[Array, Array]:
    """Points (J, S) near the modes, and about the densities' standard deviations. theta: see `block_of`."""
    x, curvature = _mode(block, _start(block, theta))
    return x, curvature**-0.5


def _start(block: Block, theta: Array) -> Array:
    """A first guess of the modes, (J, S): that at the mean draw, moved to first order along each draw's differences.

    theta (I,): the means of the fixed parameters over the draws.
    """
    mean, sd = block.mean.mean(), (block.tau**-0.5).mean()
    one = Block(block.n, block.y, np.exp(theta - mean)[:, None], np.array([mean]), np.array([sd**-2.0]))
    tried = np.flatnonzero(block.n.any(1))
    n, place = np.zeros(len(block.y)), np.zeros(len(block.y))
    for i in tried:
        n += block.n[i]
        place += block.n[i] * theta[i]
    x = place / np.maximum(n, 1) - np.log((block.y + 0.5) / (n - block.y + 0.5))
    x, _ = _mode(one, x[:, None])
    # l'(x; draw) - l'(x; mean draw) to first order, over -l''
    r = 1 / (1 + one.e * np.exp(np.clip(mean - x[:, 0], -_REACH, _REACH)))
    weight = block.n * r * (1 - r)
    total = np.zeros(len(n))
    moved = np.zeros((len(n), len(block.mean)))
    for i in tried:
        total += weight[i]
        moved += weight[i][:, None] * (np.log(block.e[i]) + block.mean - theta[i])
    moved += block.tau * (block.mean - x) - one.tau * (mean - x)
    return x + moved / (total[:, None] + block.tau)


# ---- the envelope ---------------------------------------------------------------------------------------------------


class _Envelope(NamedTuple):
    """Three tangents in t = (b - x) sqrt(c), each array (P,): left, middle, right. Heights are relative to l(x).

    left, right: points of contact. cut1, cut2: where the tangents meet. m_left, m_middle, m_right: masses of the parts.
    """

    left: Array
    right: Array
    h_left: Array
    h_right: Array
    s_left: Array
    s_middle: Array
    s_right: Array
    cut1: Array
    cut2: Array
    m_left: Array
    m_middle: Array
    m_right: Array

    def take(self, where: NDArray[np.bool_]) -> _Envelope:
        return _Envelope(*(z[where] for z in self))

    def invert(self, u: Array) -> tuple[Array, Array]:
        """u uniform on (0, 1) -> t, and the envelope's logarithm there."""
        a, m, z = self.m_left, self.m_middle, self.m_right
        v = u * (a + m + z)
        in_left, in_right = v < a, v >= a + m
        tiny = np.finfo(float).tiny
        with np.errstate(all="ignore"):
            left = self.cut1 + np.log(np.maximum(v / a, tiny)) / self.s_left
            right = self.cut2 + np.log(np.maximum((a + m + z - v) / z, tiny)) / self.s_right
            share, width = np.clip((v - a) / m, 0, 1), self.cut2 - self.cut1
            bend = self.s_middle * width
            flat = np.abs(bend) < 1e-6
            safe = np.where(flat, 1.0, bend)
            middle = self.cut1 + width * np.where(flat, share, np.log1p(share * np.expm1(safe)) / safe)
        t = np.where(in_left, left, np.where(in_right, right, middle))
        log = np.where(
            in_left,
            self.h_left + self.s_left * (t - self.left),
            np.where(in_right, self.h_right + self.s_right * (t - self.right), self.s_middle * t),
        )
        return t, log


def _envelope(block: Block, x: Array, scale: Array) -> tuple[_Envelope, Array]:
    """The envelope of each cell's density, and l(x): x, scale (J, S), the latter about a standard deviation."""
    top, slope, _ = _evaluate(block, x, value=True, slope=True)
    sides = []
    for sign in (-1.0, 1.0):
        t = np.full(x.shape, sign * np.sqrt(2.0))
        h, s, _ = _evaluate(block, x + t * scale, value=True, slope=True)
        s *= scale
        while True:  # a flank that still rises, or hardly falls, makes a poor envelope or none: go further out
            poor = sign * s > -_SLOPE
            if not poor.any():
                break
            t[poor] *= 2
            rows = np.nonzero(poor)
            at = (rows[0], rows[1])
            h[poor], s_at, _ = _evaluate(block, x[poor] + t[poor] * scale[poor], at, value=True, slope=True)
            s[poor] = s_at * scale[poor]
        sides.append((t.ravel(), (h - top).ravel(), s.ravel()))
    (tl, hl, sl), (tr, hr, sr) = sides
    s0 = (slope * scale).ravel()
    tiny = np.finfo(float).tiny
    cut1 = np.clip((tl * sl - hl) / np.maximum(sl - s0, tiny), tl, 0.0)
    cut2 = np.clip((hr - tr * sr) / np.maximum(s0 - sr, tiny), 0.0, tr)
    bend = s0 * (cut2 - cut1)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(np.abs(bend) < 1e-6, 1.0, np.expm1(bend) / bend)
    mass = (
        np.exp(hl + sl * (cut1 - tl)) / sl,
        np.exp(s0 * cut1) * (cut2 - cut1) * factor,
        np.exp(hr + sr * (cut2 - tr)) / -sr,
    )
    return _Envelope(tl, tr, hl, hr, sl, s0, sr, cut1, cut2, *mass), top


def _sample(block: Block, theta: Array, streams: Sequence[np.random.Generator]) -> Array:
    """A draw for each item and draw of the block, (J, S), by rejection."""
    size, draws = len(block.y), len(block.mean)
    x, scale = guess(block, theta)
    envelope, top = _envelope(block, x, scale)
    out = np.empty(size * draws)
    x, scale, top = x.ravel(), scale.ravel(), top.ravel()
    item, draw = np.divmod(np.arange(size * draws), draws)
    open_ = np.arange(size * draws)
    for turn in range(ROUNDS):
        counts = np.bincount(item, minlength=size).tolist()
        u = np.concatenate([g.random((2, n)) for g, n in zip(streams, counts, strict=True)], axis=1)
        t, log = envelope.invert(u[0])
        b = x + t * scale
        if turn == 0:
            h = _evaluate(block, b.reshape(size, draws), value=True)[0].ravel()
        else:
            h = _evaluate(block, b, (item, draw), value=True)[0]
        with np.errstate(divide="ignore"):
            rejected = ~(np.log(u[1]) <= h - top - log)
        out[open_[~rejected]] = b[~rejected]
        if not rejected.any():
            return out.reshape(size, draws)
        x, scale, top, item, draw, open_ = (z[rejected] for z in (x, scale, top, item, draw, open_))
        envelope = envelope.take(rejected)
    raise ArithmeticError("no draw was accepted")
