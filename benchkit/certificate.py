"""Which orderings of models could not turn over if the benchmark weighted difficulty as intended.

A benchmark's items lie at normalised difficulties z_j with weight 1/M; mu is the target. With s_i(z) model i's success
probability at difficulty z and D(z) = s_i(z) - s_k(z),

    D_B = mean_j D(z_j),    D_mu = integral D dmu,    |D_B - D_mu| <= L W1(nu_B, mu),    L = max |D'|

(Kantorovich and Rubinstein's duality; theorem 2.1 of Sun and others 2026). So if |D_mu| > L W1 + |D_obs - D_B|, D_obs
being the difference of the scores observed, the observed order is that of the target.

Under a 1PL curves never cross and nothing could turn over. Here each model has its own slope,

    s_i(z) = sigmoid(c_i - alpha_i b(z)),   c_i ~ N(0, sigma_theta),   alpha_i ~ N(1, .5),

a logistic regression of its attempts on the items' difficulties b, which are taken as known: once at the posterior
means, by its mode, and at each posterior draw of b, by one draw from the normal approximation there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import Array
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.targets import Target, Uniform

Draws = npt.NDArray[np.float32]

SLOPE_SD = 0.5  # prior sd of alpha around 1
FINE, MIDDLE, COARSE = 1025, 257, 17  # points at which slopes are compared
MOST_DRAWS = 1000
NODES = 4096  # points for the integral over a target without closed form
_BLOCK = 1 << 20  # cells held at a time


class Curves(NamedTuple):
    """Success curves of N models at S difficulties' draws: eta = c - alpha b.

    c, alpha (S, N). root (S, N, 3): the Cholesky factor of their posterior covariance, l11, l21, l22.
    """

    c: Array
    alpha: Array
    root: Array


class Certificate(NamedTuple):
    """Of P pairs of models, arrays (P,).

    pairs (P, 2): model indices. d_observed, d_benchmark, d_target: D_obs, D_B, D_mu, of the first minus the second.
    lipschitz: L. bound: L W1. flips: D_B and D_mu have opposite signs. safe_share: share of the draws in which the
    order is certain; NaN without draws. rank_safe: the share is at least the level. draws: their number, 0 without.
    """

    pairs: npt.NDArray[np.int64]
    d_observed: Array
    d_benchmark: Array
    d_target: Array
    lipschitz: Array
    bound: Array
    flips: npt.NDArray[np.bool_]
    safe_share: Array
    rank_safe: npt.NDArray[np.bool_]
    draws: int

    def document(self, models: Sequence[str]) -> dict[str, Any]:
        """Counts, then the comparisons by the models' names."""
        why = "the fit has no draws of its items: make it with --keep-draws"
        out: dict[str, Any] = {"models": len(models), "pairs": len(self.pairs)}
        out |= {"flips": int(self.flips.sum()), "safe": int(self.rank_safe.sum()) if self.draws else None}
        if not self.draws:
            out["safe_reason"] = why
        columns: dict[str, Any] = {f"model_{x}": [models[i] for i in self.pairs[:, k]] for k, x in enumerate("ab")}
        names = ("d_observed", "d_benchmark", "d_target", "lipschitz", "bound", "flips", "safe_share")
        columns |= {name: getattr(self, name) for name in names}
        columns["rank_safe"] = self.rank_safe if self.draws else [math.nan] * len(self.pairs)
        out["draws"] = self.draws
        out["comparisons"] = rows(columns, {"safe_share": why, "rank_safe": why})
        return out


def curves(
    attempts: npt.NDArray[np.int64], correct: Array, b: Array, sigma: float, start: tuple[Array, Array] | None = None
) -> Curves:
    """The mode of (c, alpha) of each model at each of S difficulties, and the curvature there.

    attempts, correct (N, M): 0 attempts where a pair was not tried. b (S, M): difficulties. sigma: prior sd of c.
    start: c and alpha (N,) to begin with. Newton steps, halved where the log posterior, which is concave, would fall.
    """
    n, y, b = attempts.astype(np.float64), correct, b.astype(np.float64)[:, None, :]
    shape = (len(b), len(n))
    c, alpha = (np.tile(x, (len(b), 1)) for x in start or (np.zeros(len(n)), np.ones(len(n))))
    tau, kappa = sigma**-2.0, SLOPE_SD**-2.0

    def value(c: Array, alpha: Array) -> Array:
        eta = c[..., None] - alpha[..., None] * b
        prior = tau * c**2 / 2 + kappa * (alpha - 1) ** 2 / 2
        return np.asarray((y * eta - n * np.logaddexp(0.0, eta)).sum(-1) - prior)

    now = value(c, alpha)
    root = np.empty((*shape, 3))
    for _ in range(60):
        p = 1 / (1 + np.exp(-(c[..., None] - alpha[..., None] * b)))
        rest, w = y - n * p, n * p * (1 - p)
        g0, g1 = rest.sum(-1) - tau * c, -(rest * b).sum(-1) - kappa * (alpha - 1)
        h00, h01, h11 = w.sum(-1) + tau, -(w * b).sum(-1), (w * b * b).sum(-1) + kappa
        det = h00 * h11 - h01**2
        d0, d1 = (h11 * g0 - h01 * g1) / det, (h00 * g1 - h01 * g0) / det
        root[..., 0] = np.sqrt(h11 / det)  # the inverse of h is the covariance
        root[..., 1] = -h01 / det / root[..., 0]
        root[..., 2] = np.sqrt(np.maximum(h00 / det - root[..., 1] ** 2, 0.0))
        size = np.ones(shape)
        for _ in range(30):
            new = value(c + size * d0, alpha + size * d1)
            worse = ~(new >= now - 1e-12 * np.abs(now))
            if not worse.any():
                break
            size[worse] /= 2
        c, alpha, now = c + size * d0, alpha + size * d1, new
        if max(np.abs(d0).max(), np.abs(d1).max()) < 1e-9:
            break
    return Curves(c, alpha, root)


def _means(c: Array, alpha: Array, b: Array) -> Array:
    """Mean over the items b (M,) of the success probabilities (N,)."""
    return np.asarray((1 / (1 + np.exp(np.outer(alpha, b) - c[:, None]))).mean(1))


def _target_means(c: Array, alpha: Array, low: float, span: float, target: Target) -> Array:
    """Integral of the success probabilities (N,) over the target: closed for the uniform, else over its quantiles."""
    if isinstance(target, Uniform):
        first, last, width = c - alpha * low, c - alpha * (low + span), alpha * span
        flat = np.abs(width) < 1e-6
        middle = 1 / (1 + np.exp(-(first + last) / 2))
        area = (np.logaddexp(0.0, first) - np.logaddexp(0.0, last)) / np.where(flat, 1.0, width)
        return np.where(flat, middle, area)
    values, weights = target.nodes(NODES)
    return np.asarray((1 / (1 + np.exp(np.outer(alpha, low + span * values) - c[:, None]))) @ weights)


def _slopes(c: Array, alpha: Array, low: float, span: float, ends: tuple[float, float], points: int) -> Array:
    """ds/dz (N, points) at evenly spaced z between the ends."""
    p = 1 / (1 + np.exp(np.outer(alpha, low + span * np.linspace(*ends, points)) - c[:, None]))
    return np.asarray(-span * alpha[:, None] * p * (1 - p))


def _between(alpha: Array, span: float, width: float, pairs: npt.NDArray[np.int64], points: int) -> Array:
    """How far |D'| may rise between two of the points (P,).

    At a maximum inside, D'' = 0, and the nearest point is at most half a step h away: h^2/8 max |D^(3)|, where each
    curve adds (alpha span)^3/8 at most.
    """
    cube = np.abs(alpha * span) ** 3 / 8
    step = width / (points - 1)
    return np.asarray(step * step / 8 * (cube[pairs[:, 0]] + cube[pairs[:, 1]]))


def _steepest(slopes: Array, pairs: npt.NDArray[np.int64]) -> Array:
    """max over the points of |slope_i - slope_k| (P,)."""
    out = np.empty(len(pairs))
    step = max(1, _BLOCK // slopes.shape[1])
    for start in range(0, len(pairs), step):
        i, k = pairs[start : start + step].T
        out[start : start + step] = np.abs(slopes[i] - slopes[k]).max(1)
    return out


def certify(
    attempts: npt.NDArray[np.int64],
    correct: Array,
    b: Array,
    draws: Draws | None,
    target: Target,
    *,
    sigma: float,
    level: float = 0.95,
    seed: int = 0,
) -> Certificate:
    """Compare every pair of N models on M items, all tried, under the normalisation ``minmax``.

    attempts, correct (N, M). b (M,): posterior means of the difficulties; draws (S, M) of them, or None.
    sigma: prior sd of c. level: the share of draws that makes an order safe; MOST_DRAWS are taken, evenly.
    Raises InputError where all difficulties are equal, or a cell is missing.
    """
    if np.any(attempts < 1):
        raise InputError("the certificate compares models that have every item")
    if b.min() == b.max():
        raise InputError("all difficulties are equal: there is no scale to certify on")
    pairs = np.column_stack(np.triu_indices(len(attempts), 1)).astype(np.int64)
    first, second = pairs.T
    score = (correct / attempts).mean(1)
    observed = score[first] - score[second]
    ends = target.support()
    width = ends[1] - ends[0]

    def differences(c: Array, alpha: Array, b: Array) -> tuple[float, float, Array, Array, float]:
        low, span = float(b.min()), float(b.max() - b.min())
        of_items, of_target = _means(c, alpha, b), _target_means(c, alpha, low, span, target)
        distance = float(target.distance(np.sort((b - low) / span)))
        return low, span, of_items[first] - of_items[second], of_target[first] - of_target[second], distance

    one = curves(attempts, correct, b[None, :], sigma)
    c, alpha = one.c[0], one.alpha[0]
    low, span, d_b, d_mu, distance = differences(c, alpha, b)
    steepest = _steepest(_slopes(c, alpha, low, span, ends, FINE), pairs) + _between(alpha, span, width, pairs, FINE)
    share = np.full(len(pairs), np.nan)
    count = 0
    if draws is not None:
        draws = draws[:: -(-len(draws) // MOST_DRAWS)]
        count = len(draws)
        safe = np.zeros(len(pairs))
        rng = np.random.default_rng(seed)
        step = max(1, _BLOCK // attempts.size)
        for start in range(0, count, step):
            some = draws[start : start + step].astype(np.float64)
            found = curves(attempts, correct, some, sigma, (c, alpha))
            noise = rng.standard_normal((len(some), len(attempts), 2))
            cs = found.c + found.root[..., 0] * noise[..., 0]
            slopes = found.alpha + found.root[..., 1] * noise[..., 0] + found.root[..., 2] * noise[..., 1]
            for c_s, a_s, b_s in zip(cs, slopes, some, strict=True):
                if b_s.min() == b_s.max():
                    continue
                safe += _safe(c_s, a_s, *differences(c_s, a_s, b_s), observed, pairs, ends)
        share = safe / count
    return Certificate(
        pairs=pairs,
        d_observed=observed,
        d_benchmark=d_b,
        d_target=d_mu,
        lipschitz=steepest,
        bound=steepest * distance,
        flips=d_b * d_mu < 0,
        safe_share=share,
        rank_safe=share >= level - 1e-12,
        draws=count,
    )


def _safe(
    c: Array,
    alpha: Array,
    low: float,
    span: float,
    d_b: Array,
    d_mu: Array,
    distance: float,
    observed: Array,
    pairs: npt.NDArray[np.int64],
    ends: tuple[float, float],
) -> npt.NDArray[np.bool_]:
    """Where |D_mu| > L W1 + |D_obs - D_B|. Most pairs fail at a few points; the others take a finer look."""
    room = np.abs(d_mu) - np.abs(observed - d_b)
    out = room > 0
    for points in (COARSE, MIDDLE):
        at = np.flatnonzero(out)
        out[at] = _steepest(_slopes(c, alpha, low, span, ends, points), pairs[at]) * distance < room[at]
    at = np.flatnonzero(out)
    extra = _between(alpha, span, ends[1] - ends[0], pairs[at], MIDDLE)
    steepest = _steepest(_slopes(c, alpha, low, span, ends, MIDDLE), pairs[at]) + extra
    out[at] = steepest * distance < room[at]
    return np.asarray(out)
