"""New items for fixed abilities, and new models for a fixed item bank: the cut posterior. Numpy only.

A fit is given by its draws s = 1..S. A new item's difficulty has, at each of them, one draw of

    b_j^s ~ p(b_j | y_j, theta^s, mu_b^s, sigma_b^s)

exact and stored at the same index s, so that whatever is computed draw by draw, such as new minus old, keeps the
correlation that the difficulties owe to the abilities they share. What the new results say of the abilities and of
the hyperparameters is cut off (Plummer 2015, Statistics and Computing 25; Lunn and others 2009): the fit stays what
it was, whatever is calibrated later, and new items do not depend on each other. A new model likewise:

    theta_i^s ~ p(theta_i | y_i, b^s, sigma_theta^s)

Where the fit's counts are beta-binomial, both are given rho^s too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt import diagnostics, summary
from benchkit.irt.conditional import sample
from benchkit.irt.conditional_beta import sample_beta
from benchkit.irt.model import PHI, Array, Data, boundary, check_data, fraction_warnings, pearson_phi
from benchkit.irt.summary import Summary

LEAST_DRAWS = 4


class Anchored(NamedTuple):
    """The new parameters, K of them, in the order of the data.

    draws: float32 (K, S), logits. summary: their means, sds, bounds; R-hat and ESS by the fit's chains, or None.
    boundary (K,): all attempts right, or all wrong. pearson_phi: the dispersion of the new counts, see ``dispersion``,
    or None and the reason. warnings: plain sentences.
    """

    draws: NDArray[np.float32]
    summary: Summary
    boundary: NDArray[np.bool_]
    pearson_phi: float | None
    pearson_phi_reason: str | None
    warnings: tuple[str, ...]


def items(
    attempts: NDArray[np.generic],
    correct: NDArray[np.generic],
    theta: NDArray[np.floating],
    mu_b: Array,
    sigma_b: Array,
    names: Sequence[str],
    *,
    rho: Array | None = None,
    chains: int | None = None,
    seed: int = 0,
) -> Anchored:
    """Difficulties of new items.

    attempts, correct (N, M): of N models known to the fit on M new items, 0 attempts = absent. theta (S, N), mu_b,
    sigma_b (S,): the fit's draws. names: the M items; an item's random numbers come from the seed and its name.
    rho (S,): of a fit with beta-binomial counts. chains: of the fit, one after another in the draws.
    Raises InputError for unusable counts or draws.
    """
    data = check_data(attempts, correct, None, names)
    _check_draws(len(theta))
    keys = [f"item {name}" for name in names]
    draws = _sample(data.attempts, data.correct, theta, mu_b, sigma_b, rho, keys, seed)
    return _anchored(data, 0, draws, theta.mean(0, dtype=float), draws.mean(1, dtype=float), rho, chains)


def models(
    attempts: NDArray[np.generic],
    correct: NDArray[np.generic],
    b: NDArray[np.floating],
    sigma_theta: Array,
    names: Sequence[str],
    *,
    rho: Array | None = None,
    chains: int | None = None,
    seed: int = 0,
) -> Anchored:
    """Abilities of new models: as ``items``, from counts (N, M) of N new models on M items of the fit, b (S, M)."""
    data = check_data(attempts, correct, names, None)
    _check_draws(len(b))
    keys = [f"model {name}" for name in names]
    zero = np.zeros(len(sigma_theta))
    # -theta given -b is as b given theta
    draws = -_sample(data.attempts.T, data.correct.T, -b, zero, sigma_theta, rho, keys, seed)
    return _anchored(data, 1, draws, draws.mean(1, dtype=float), b.mean(0, dtype=float), rho, chains)


def dispersion(data: Data, theta: Array, b: Array, fitted: int) -> tuple[float | None, str | None]:
    """Pearson's dispersion of the counts where only ``fitted`` parameters were estimated from them, or the reason."""
    phi, reason = pearson_phi(data, theta, b, fitted=fitted)
    return phi, reason and "too few new cells with several attempts and a rate away from 0 and 1"


def _sample(
    attempts: NDArray[np.int64],
    correct: Array,
    given: NDArray[np.floating],
    mean: Array,
    sd: Array,
    rho: Array | None,
    keys: Sequence[str],
    seed: int,
) -> NDArray[np.float32]:
    if rho is None:
        return sample(attempts, correct.sum(0), given, mean, sd, keys, seed=seed)
    return sample_beta(attempts, correct, given, mean, sd, rho, keys, seed=seed)


def _check_draws(count: int) -> None:
    if count < LEAST_DRAWS:
        raise InputError(f"{count} draws where {LEAST_DRAWS} or more are needed")


def _anchored(
    data: Data, axis: int, draws: NDArray[np.float32], theta: Array, b: Array, rho: Array | None, chains: int | None
) -> Anchored:
    size, count = draws.shape
    nan = np.full(size, np.nan)
    found = diagnostics.Diagnostics(nan, nan, nan)
    if chains and count % chains == 0:
        found = diagnostics.diagnose(draws.T.reshape(chains, count // chains, size))
    phi, reason = dispersion(data, theta, b, size)
    warnings = fraction_warnings(data)
    if rho is None and phi is not None and phi > PHI:
        warnings.append(
            f"new attempts on one cell are more alike than the model says (pearson_phi {phi:.2g} > {PHI}): the bounds "
            "are too narrow; anchor to a fit by --dispersion beta, or count fewer attempts a cell"
        )
    return Anchored(draws, summary.of_draws(draws.T, found), boundary(data, axis), phi, reason, tuple(warnings))
