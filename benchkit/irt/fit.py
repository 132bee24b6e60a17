"""Fit an item response model to counts: the one function that callers need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt import dispersion as dispersions
from benchkit.irt import geometry, geometry_two, sampling, two
from benchkit.irt import summary as summaries
from benchkit.irt.dispersion import Dispersion
from benchkit.irt.laplace import Laplace, laplace
from benchkit.irt.model import PHI, Priors, boundary, check_data, check_priors, data_warnings, pearson_phi
from benchkit.irt.sampling import CHAINS, DRAWS, MAX_TREEDEPTH, TARGET_ACCEPT, WARMUP, Options
from benchkit.irt.summary import Summary

HYPER = ("mu_b", "sigma_b", "sigma_theta")
HYPER_BETA = ("mu_b", "rho", "sigma_b", "sigma_theta")
HYPER_TWO = ("mu_b", "sigma_a", "sigma_b", "sigma_theta")

# acceptance aimed at; discriminations have cliffs that longer steps fall off, and so has the level of answers that are
# all right, or all wrong
ACCEPT = {"1pl": TARGET_ACCEPT, "2pl": 0.95}
ACCEPT_ALIKE = 0.99


@dataclass(frozen=True)
class Fit:
    """The posterior of one benchmark.

    names: the hyperparameters, sorted. hyper, items, models: summaries in the order of ``names``, of the columns and of
    the rows of the data. discriminations: of a_j, by columns; None for the 1PL.
    boundary_items (M,), boundary_models (N,): all attempts right, or all wrong.
    draws: float32 (chains * draws, len(names) + M + N): hyper, items, models, for the 2PL with the M discriminations
    after the items; chains one after another, or None.
    mode: the Laplace approximation of the 1PL. over: what is known of rho there; None if binomial.
    diagnostics: what ``benchkit.fit`` holds; None where it does not apply. warnings: plain sentences.
    """

    names: tuple[str, ...]
    hyper: Summary
    items: Summary
    discriminations: Summary | None
    models: Summary
    boundary_items: NDArray[np.bool_]
    boundary_models: NDArray[np.bool_]
    draws: NDArray[np.float32] | None
    mode: Laplace
    over: Dispersion | None
    diagnostics: dict[str, Any]
    warnings: tuple[str, ...]


def preload() -> None:
    """Start to import JAX, half a second, in a thread beside what the caller does. Harmless to repeat."""
    # Its import goes through NumPy's dictionary of types, which JAX adds to, and pyarrow imports it at its first array.
    import numpy.ma  # noqa: F401

    from benchkit.irt import sampler

    threading.Thread(target=sampler.preload, daemon=True).start()


def fit(
    attempts: NDArray[np.generic],
    correct: NDArray[np.generic],
    *,
    model: str = "1pl",
    method: str = "nuts",
    dispersion: str | None = None,
    chains: int = CHAINS,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    target_ess: float | None = None,
    target_accept: float | None = None,
    max_treedepth: int = MAX_TREEDEPTH,
    seed: int = 0,
    priors: Priors | None = None,
    progress: Callable[[int, int], None] | None = None,
    models: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
) -> Fit:
    """Posterior of abilities theta (N,) and difficulties b (M,) given attempts and correct (N, M), 0 attempts = absent.

    model: ``1pl`` or ``2pl``, where items also have discriminations a (M,).
    method: ``nuts`` (BlackJAX, ``chains`` x ``draws`` after ``warmup`` steps that adapt the step size to
    ``target_accept``, by default ACCEPT[model], or ACCEPT_ALIKE where all attempts are right, or all wrong; trees of at
    most 2^max_treedepth - 1 gradients; then more, until every bulk ESS reaches ``target_ess``) or ``laplace`` (mode and
    curvature at empirical-Bayes standard deviations; never imports JAX).
    dispersion: ``beta`` for a beta-binomial likelihood. progress(done, total) counts sampler steps.
    models, items: names for messages. Equal arguments give equal bytes on one machine type.
    Raises InputError for unusable data or options.
    """
    priors = check_priors(priors or Priors())
    if model not in ACCEPT:
        raise InputError(f"model must be 1pl or 2pl, not {model}")
    if method not in ("nuts", "laplace"):
        raise InputError(f"method must be nuts or laplace, not {method}")
    if dispersion not in (None, "beta"):
        raise InputError(f"dispersion must be beta or None, not {dispersion}")
    if dispersion and model != "1pl":
        raise InputError("--dispersion beta is of --model 1pl only")
    nuts = method == "nuts"
    data = check_data(attempts, correct, models, items)
    if target_accept is None:
        alike = data.correct.sum() in (0, data.attempts.sum())
        target_accept = ACCEPT_ALIKE if alike else ACCEPT[model]
    options = Options(chains, warmup, draws, target_accept, max_treedepth, seed, target_ess)
    if nuts:
        sampling.check(options)
    warnings = data_warnings(data, models, items)
    n_models, n_items = data.attempts.shape

    if nuts:  # while the mode is sought
        preload()
    over: Dispersion | None = None
    if dispersion == "beta":
        mode, over = dispersions.disperse(data, priors)
    else:
        mode = laplace(data, priors)
    centre = two.centre(data, priors, mode) if model == "2pl" else None
    if not mode.converged:
        warnings.append("the mode was not found to full precision: look for extreme counts or priors")
    if centre is not None and not centre.converged:
        warnings.append(
            "the centre of the 2pl's posterior was not found to full precision: set a smaller --prior-sigma-a, or fit "
            "with --model 1pl"
        )
    names = HYPER_TWO if centre is not None else HYPER if over is None else HYPER_BETA

    diagnostics: dict[str, Any] = {
        "model": model,
        "dispersion": dispersion,
        "method": method,
        "priors": {k: v for k, v in priors._asdict().items() if k != "sigma_a" or centre is not None},
        **sampling.settings(options if nuts else None),
    }
    sampled: NDArray[np.float32] | None = None
    if nuts:
        if centre is not None:
            target, order = geometry_two.target(data, priors, centre), geometry_two.order(n_models, n_items)
        else:
            target = geometry.target(data, priors, mode, over)
            order = geometry.order(n_models, n_items, over is not None)
        sampled, summary, record = sampling.sample(target, order, options, progress)
        diagnostics |= record
        warnings += sampling.caveats(diagnostics)
    else:
        summary = summaries.of_laplace(mode, over) if centre is None else summaries.of_centre(centre)

    at = mode if centre is None else centre.at
    phi, reason = pearson_phi(data, at.theta, at.b, None if centre is None else np.exp(centre.at.alpha))
    diagnostics["pearson_phi"] = phi
    if reason:
        diagnostics["pearson_phi_reason"] = reason
    if phi is not None and phi > PHI and over is None:
        remedy = "fit with --dispersion beta" if centre is None else "the 1pl has --dispersion beta for that"
        warnings.append(
            f"attempts on one cell are more alike than the model says (pearson_phi {phi:.2g} > {PHI}): the bounds are "
            f"too narrow; {remedy}"
        )
    size = len(names)
    slopes = size + n_items  # where discriminations begin, if there are any
    last = slopes if centre is None else slopes + n_items
    if centre is not None:
        alpha, spread = centre.at.alpha, centre.sd_alpha
        if sampled is not None:
            logs = np.log(sampled[:, slopes:last])
            alpha, spread = logs.mean(0, dtype=float), logs.std(0, dtype=float)
        warnings += two.caveats(data, alpha, spread)
    return Fit(
        names=names,
        hyper=summary.take(slice(0, size)),
        items=summary.take(slice(size, slopes)),
        discriminations=None if centre is None else summary.take(slice(slopes, last)),
        models=summary.take(slice(last, None)),
        boundary_items=boundary(data, 0),
        boundary_models=boundary(data, 1),
        draws=sampled,
        mode=mode,
        over=over,
        diagnostics=diagnostics,
        warnings=tuple(warnings),
    )
