"""The Rasch (1PL) model's data and priors: what may go in, and what must be said about it.

    y_ij ~ Binomial(n_ij, p_ij),  p_ij = sigmoid(theta_i - b_j)
    theta_i ~ N(0, sigma_theta),  b_j ~ N(mu_b, sigma_b)
    mu_b ~ N(0, s_mu),  sigma_theta ~ HalfNormal(s_theta),  sigma_b ~ HalfNormal(s_b)

i = 0..N-1 counts models, j = 0..M-1 items; n_ij = 0 means that the pair was not tried. Everything is in logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError

Array = NDArray[np.float64]

# Above this Pearson's dispersion is warned of.
PHI = 1.5

# More attempts on one pair than this are warned of.
MANY_ATTEMPTS = 10_000

# Above this, sums of attempts are no longer exact in float64.
MAX_ATTEMPTS = 2**53


class Priors(NamedTuple):
    """Scales of the hyperpriors, in logits.

    mu_b: sd of the normal prior of the items' mean, around 0.
    sigma_theta, sigma_b: scales of the half-normal priors of the two standard deviations.
    sigma_a: that of the standard deviation of log discriminations; of the 2PL alone.
    """

    mu_b: float = 5.0
    sigma_theta: float = 2.5
    sigma_b: float = 2.5
    sigma_a: float = 1.0


class Data(NamedTuple):
    """Counts of one benchmark.

    attempts: int64 (N, M), scored attempts, 0 where the pair was not tried.
    correct: float64 (N, M), sum of the scores, between 0 and attempts.
    """

    attempts: NDArray[np.int64]
    correct: Array


def check_priors(priors: Priors) -> Priors:
    """Return the priors as floats; raise InputError unless each scale is positive and finite."""
    for name, value in priors._asdict().items():
        if not (math.isfinite(value) and 0.01 <= value <= 100):
            raise InputError(f"prior scale of {name} must be between 0.01 and 100, not {value}")
    return Priors(*(float(v) for v in priors))


def check_data(
    attempts: NDArray[np.generic],
    correct: NDArray[np.generic],
    models: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
) -> Data:
    """Check the shapes and the ranges of the counts.

    attempts, correct: (N, M). models, items: names for the messages (their numbers from 1 otherwise).
    Raises InputError: no cell at all, a count out of range or not finite, shapes that differ.
    """
    n, y = np.asarray(attempts), np.asarray(correct)
    if n.ndim != 2 or n.shape != y.shape:
        raise InputError(f"attempts {n.shape} and correct {y.shape} must be two tables of the same shape")
    if 0 in n.shape:
        raise InputError("no models or no items: nothing to fit")
    models, items = names(models, n.shape[0], "model"), names(items, n.shape[1], "item")

    def refuse(bad: NDArray[np.bool_], text: str) -> None:
        if bad.any():
            i, j = (int(k) for k in np.argwhere(bad)[0])
            raise InputError(f"model {models[i]}, item {items[j]}: " + text.format(y=y[i, j], n=n[i, j]))

    with np.errstate(invalid="ignore"):
        refuse(~np.isfinite(n.astype(float)), "attempts is {n}, not a number")
        refuse((n != np.floor(n)) | (n < 0), "attempts ({n}) must be a whole number, 0 or more")
        refuse(~np.isfinite(y.astype(float)), "correct is {y}, not a number")
        refuse(y < 0, "correct ({y}) is negative")
        refuse(y > n, "correct ({y}) is larger than attempts ({n})")
    if not (n > 0).any():
        raise InputError("no attempts at all: nothing to fit")
    if float(n.sum(dtype=float)) >= MAX_ATTEMPTS:
        raise InputError("more than 2^53 attempts: counts are no longer exact")
    return Data(np.ascontiguousarray(n, np.int64), np.ascontiguousarray(y, np.float64))


def names(given: Sequence[str] | None, count: int, what: str) -> Sequence[str]:
    """The given names, or the numbers from 1 as text. Raises InputError if there are too few or too many."""
    if given is None:
        return [str(k + 1) for k in range(count)]
    if len(given) != count:
        raise InputError(f"{len(given)} {what} names for {count} {what}s")
    return given


def boundary(data: Data, axis: int) -> NDArray[np.bool_]:
    """Rows whose attempts were all right or all wrong (axis 1: models, axis 0: items).

    The likelihood alone has no finite estimate for them: theirs rests on the prior. A row without attempts counts too.
    """
    correct, attempts = data.correct.sum(axis), data.attempts.sum(axis)
    return np.asarray((correct <= 0) | (correct >= attempts))


def components(attempts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Connected components of the graph whose edges are the tried pairs: labels of models (N,) and items (M,).

    Labels are numbered by their first model; items that nobody tried come last, each a component of its own.
    """
    tried = attempts > 0
    n_models, n_items = tried.shape
    model_label = np.full(n_models, -1)
    item_label = np.full(n_items, -1)
    label = 0
    for start in range(n_models):
        if model_label[start] >= 0:
            continue
        model_label[start] = label
        front = np.array([start])
        while front.size:
            new_items = np.flatnonzero(tried[front].any(0) & (item_label < 0))
            item_label[new_items] = label
            front = np.flatnonzero(tried[:, new_items].any(1) & (model_label < 0)) if new_items.size else new_items
            model_label[front] = label
        label += 1
    for j in np.flatnonzero(item_label < 0):
        item_label[j] = label
        label += 1
    return model_label, item_label


def data_warnings(data: Data, models: Sequence[str] | None = None, items: Sequence[str] | None = None) -> list[str]:
    """What a reader of the estimates must know about the data, in plain sentences."""
    n_models, n_items = data.attempts.shape
    models, items = names(models, n_models, "model"), names(items, n_items, "item")
    out = []
    if n_models == 1:
        out.append(
            "only one model: ability and mean difficulty are told apart by their priors alone; compare difficulties "
            "with each other only"
        )
    if n_items == 1:
        out.append("only one item: its difficulty and the abilities' mean are told apart by their priors alone")
    out += fraction_warnings(data)
    large = np.argwhere(data.attempts > MANY_ATTEMPTS)
    if len(large):
        i, j = large[0].tolist()
        out.append(
            f"model {models[i]} has {data.attempts[i, j]} attempts on item {items[j]}"
            + (f", and {len(large) - 1} more pairs have over {MANY_ATTEMPTS}" if len(large) > 1 else "")
            + ": if they are independent next to nothing is uncertain; check the counts; where attempts are alike the "
            "1pl has --dispersion beta"
        )
    model_label, item_label = components(data.attempts)
    n_components = int(max(model_label.max(), item_label.max())) + 1
    if n_components > 1:
        parts = []
        for k in range(min(n_components, 3)):
            who = [models[i] for i in np.flatnonzero(model_label == k).tolist()]
            what = [items[j] for j in np.flatnonzero(item_label == k).tolist()]
            parts.append(f"{_some(who, 'model')} on {_some(what, 'item')}")
        more = f"; and {n_components - 3} more" if n_components > 3 else ""
        out.append(
            f"the results fall into {n_components} parts that share no model and no item, comparable only through "
            f"the prior: ({'); ('.join(parts)}){more}"
        )
    return out


def fraction_warnings(data: Data) -> list[str]:
    """One sentence where scores are fractions."""
    if (data.correct == np.round(data.correct)).all():
        return []
    return [
        "some scores are fractions: the binomial likelihood is then a quasi-likelihood, with bounds that are "
        "too wide rather than too narrow"
    ]


def _some(who: list[str], what: str) -> str:
    if not who:
        return f"no {what}s"
    if len(who) <= 3:
        return f"{what}{'s' if len(who) > 1 else ''} {', '.join(who)}"
    return f"{len(who)} {what}s ({who[0]}, {who[1]}, ...)"


def pearson_phi(
    data: Data, theta: Array, b: Array, a: Array | None = None, fitted: int | None = None
) -> tuple[float | None, str | None]:
    """Pearson's dispersion of the counts around the fitted probabilities, or None and the reason.

    phi = sum (y - n p)^2 / (n p (1-p)) / (cells - N - M + 1) over cells with n >= 2 and n p (1-p) > 1 (McCullagh and
    Nelder 1989, section 4.5). About 1 where attempts on one cell are independent; larger where they are alike.
    theta (N,), b (M,): the estimates, in logits. a (M,): the 2PL's discriminations, which cost M - 1 cells more.
    fitted: how many parameters were estimated from these counts, where not all were.
    """
    n = data.attempts
    p = sigmoid((theta[:, None] - b[None, :]) * (1.0 if a is None else a))
    variance = n * p * (1 - p)
    used = (n >= 2) & (variance > 1)
    if fitted is None:
        fitted = sum(n.shape) - 1 + (0 if a is None else a.size - 1)
    spare = int(used.sum()) - fitted
    if spare <= 0:
        return None, "too few cells with several attempts and a rate away from 0 and 1"
    chi2 = (data.correct[used] - (n * p)[used]) ** 2 / variance[used]
    return float(chi2.sum() / spare), None


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, e) / (1.0 + e))
