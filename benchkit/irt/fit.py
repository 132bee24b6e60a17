"""Fit the 1PL model to counts: the one function that callers need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt import summary as summaries
from benchkit.irt.laplace import Laplace, laplace
from benchkit.irt.model import Data, Priors, boundary, check_data, check_priors, data_warnings, pearson_phi
from benchkit.irt.summary import Summary

HYPER = ("mu_b", "sigma_b", "sigma_theta")
WARMUP, DRAWS, CHAINS, TARGET_ACCEPT, MAX_TREEDEPTH = 300, 1000, 4, 0.8, 8

# thresholds of Vehtari et al. 2021 (R-hat, ESS), Betancourt 2016 (E-BFMI)
RHAT, ESS, BFMI, PHI = 1.01, 400, 0.3, 1.5


@dataclass(frozen=True)
class Fit:
    """The posterior of one benchmark.

    hyper, items, models: summaries in the order of ``HYPER``, of the columns and of the rows of the data.
    boundary_items (M,), boundary_models (N,): all attempts right, or all wrong.
    draws: float32 (chains * draws, 3 + M + N): hyper, items, models; chains one after another. None for Laplace.
    mode: the Laplace approximation, which NUTS starts from.
    diagnostics: what ``benchkit.fit`` holds; None where it does not apply. warnings: plain sentences.
    """

    hyper: Summary
    items: Summary
    models: Summary
    boundary_items: NDArray[np.bool_]
    boundary_models: NDArray[np.bool_]
    draws: NDArray[np.float32] | None
    mode: Laplace
    diagnostics: dict[str, Any]
    warnings: tuple[str, ...]


def preload() -> None:
    """Import JAX, half a second; made for a thread that runs while the input is read. Harmless to repeat."""
    from benchkit.irt import sampler

    sampler.preload()


def fit(
    attempts: NDArray[np.generic],
    correct: NDArray[np.generic],
    *,
    method: str = "nuts",
    chains: int = CHAINS,
    warmup: int = WARMUP,
    draws: int = DRAWS,
    target_accept: float = TARGET_ACCEPT,
    max_treedepth: int = MAX_TREEDEPTH,
    seed: int = 0,
    priors: Priors | None = None,
    progress: Callable[[int, int], None] | None = None,
    models: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
) -> Fit:
    """Posterior of abilities theta (N,) and difficulties b (M,) given attempts and correct (N, M), 0 attempts = absent.

    method: ``nuts`` (BlackJAX, ``chains`` x ``draws`` after ``warmup`` steps that adapt the step size to
    ``target_accept``; trees of at most 2^max_treedepth - 1 gradients) or ``laplace`` (mode and curvature at
    empirical-Bayes standard deviations; never imports JAX). progress(done, total) counts sampler steps.
    models, items: names for messages. Equal arguments give equal bytes on one machine type.
    Raises InputError for unusable data or options.
    """
    priors = check_priors(priors or Priors())
    if method not in ("nuts", "laplace"):
        raise InputError(f"method must be nuts or laplace, not {method}")
    nuts = method == "nuts"
    if nuts:
        _check_options(chains, warmup, draws, target_accept, max_treedepth, seed)
    data = check_data(attempts, correct, models, items)
    warnings = data_warnings(data, models, items)
    n_items = data.attempts.shape[1]

    if nuts:  # while the mode is sought
        threading.Thread(target=preload, daemon=True).start()
    mode = laplace(data, priors)
    if not mode.converged:
        warnings.append("the mode was not found to full precision: look for extreme counts or priors")

    diagnostics: dict[str, Any] = {
        "model": "1pl",
        "method": method,
        "priors": dict(priors._asdict()),
        "chains": chains if nuts else None,
        "warmup": warmup if nuts else None,
        "draws": draws if nuts else None,
        "target_accept": target_accept if nuts else None,
        "max_treedepth": max_treedepth if nuts else None,
        "seed": seed if nuts else None,
        "divergences": None,
        "saturated_trees": None,
        "max_rhat": None,
        "min_ess_bulk": None,
        "min_ess_tail": None,
        "min_e_bfmi": None,
    }
    sampled: NDArray[np.float32] | None = None
    if nuts:
        sampled, summary = _sample(
            data, priors, mode, chains, warmup, draws, target_accept, max_treedepth, seed, progress, diagnostics
        )
        warnings += _sampler_warnings(diagnostics)
    else:
        summary = summaries.of_laplace(mode)

    phi, reason = pearson_phi(data, mode.theta, mode.b)
    diagnostics["pearson_phi"] = phi
    if reason:
        diagnostics["pearson_phi_reason"] = reason
    if phi is not None and phi > PHI:
        warnings.append(
            f"attempts on one cell are more alike than the model says (pearson_phi {phi:.2g} > {PHI}): the bounds are "
            "too narrow; count fewer attempts a cell, or fit a model with over-dispersion"
        )
    return Fit(
        hyper=summary.take(slice(0, 3)),
        items=summary.take(slice(3, 3 + n_items)),
        models=summary.take(slice(3 + n_items, None)),
        boundary_items=boundary(data, 0),
        boundary_models=boundary(data, 1),
        draws=sampled,
        mode=mode,
        diagnostics=diagnostics,
        warnings=tuple(warnings),
    )


def _check_options(chains: int, warmup: int, draws: int, target_accept: float, max_treedepth: int, seed: int) -> None:
    for name, value, low, high in (
        ("chains", chains, 1, 64),
        ("warmup", warmup, 20, 10**6),
        ("draws", draws, 4, 10**6),
        ("max-treedepth", max_treedepth, 1, 12),
        ("seed", seed, 0, 2**63 - 1),
    ):
        if not low <= value <= high:
            raise InputError(f"{name} must be between {low} and {high}, not {value}")
    if not 0.5 <= target_accept <= 0.99:
        raise InputError(f"target-accept must be between 0.5 and 0.99, not {target_accept}")


def _sample(
    data: Data,
    priors: Priors,
    mode: Laplace,
    chains: int,
    warmup: int,
    draws: int,
    target_accept: float,
    max_treedepth: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
    diagnostics: dict[str, Any],
) -> tuple[NDArray[np.float32], Summary]:
    from benchkit.irt import diagnostics as mcmc
    from benchkit.irt import sampler
    from benchkit.irt.geometry import geometry

    run = sampler.sample(
        geometry(data, priors, mode),
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_accept=target_accept,
        max_treedepth=max_treedepth,
        seed=seed,
        progress=progress,
    )
    n_models, n_items = data.attempts.shape
    small = np.arange(3, 3 + min(n_models, n_items))
    large = np.arange(3 + min(n_models, n_items), 3 + n_models + n_items)
    # mu_b, sigma of u, sigma of v, u, v -> mu_b, sigma_b, sigma_theta, items, models
    order = np.concatenate([[0, 2, 1], large, small] if n_models <= n_items else [[0, 1, 2], small, large])
    x = np.ascontiguousarray(run.x[:, :, order])
    found = mcmc.diagnose(x)
    flat = x.reshape(chains * draws, -1)
    diagnostics["divergences"] = int(run.divergent.sum())
    diagnostics["saturated_trees"] = int(run.saturated.sum())
    diagnostics["max_rhat"] = _extreme(found.rhat, max)
    diagnostics["min_ess_bulk"] = _extreme(found.ess_bulk, min)
    diagnostics["min_ess_tail"] = _extreme(found.ess_tail, min)
    diagnostics["min_e_bfmi"] = _extreme(mcmc.e_bfmi(run.energy), min)
    return flat, summaries.of_draws(flat, found)


def _extreme(x: NDArray[np.float64], pick: Callable[[list[float]], float]) -> float | None:
    """The worst value; None if any is undefined."""
    return None if np.isnan(x).any() else float(pick(x.tolist()))


def _sampler_warnings(d: dict[str, Any]) -> list[str]:
    out = []
    kept = d["chains"] * d["draws"]
    if d["divergences"]:
        out.append(
            f"{d['divergences']} of {kept} draws ended in a divergence: the posterior's corners may be missed; raise "
            f"--target-accept (now {d['target_accept']:g})"
        )
    if d["max_rhat"] is None or not d["max_rhat"] < RHAT:
        value = "undefined" if d["max_rhat"] is None else f"{d['max_rhat']:.3f}"
        out.append(f"the chains disagree (R-hat {value}, wanted below {RHAT}): raise --warmup and --draws")
    low = [d["min_ess_bulk"], d["min_ess_tail"]]
    if any(x is None or not x >= ESS for x in low):
        value = "undefined" if None in low else f"{min(low):.0f}"
        out.append(f"too few effective draws (least ESS {value}, wanted {ESS}): raise --draws")
    if d["min_e_bfmi"] is None or not d["min_e_bfmi"] >= BFMI:
        value = "undefined" if d["min_e_bfmi"] is None else f"{d['min_e_bfmi']:.2f}"
        out.append(f"energies mix slowly (E-BFMI {value}, wanted {BFMI}): raise --draws, or set tighter priors")
    if d["saturated_trees"] > kept // 100:
        out.append(
            f"{d['saturated_trees']} of {kept} trajectories were cut at {2 ** d['max_treedepth'] - 1} gradients: raise "
            f"--max-treedepth (now {d['max_treedepth']})"
        )
    return out
