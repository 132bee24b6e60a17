"""Draws of a target in the order of the parameter table, in rounds if need be, with the diagnostics of their chains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.errors import InputError
from benchkit.irt import summary as summaries
from benchkit.irt.sampler import Chains, Sampler, Target
from benchkit.irt.summary import Summary

WARMUP, DRAWS, CHAINS, TARGET_ACCEPT, MAX_TREEDEPTH = 150, 1000, 4, 0.85, 8

# thresholds of Vehtari et al. 2021 (R-hat, ESS), Betancourt 2016 (E-BFMI)
RHAT, ESS, BFMI = 1.01, 400, 0.3

# the highest acceptance that may be aimed at
HIGHEST_ACCEPT = 0.99

# a target ESS is given up where it would take this many times the first round
MOST = 100


class Options(NamedTuple):
    """How to sample; the same names as the command's options."""

    chains: int = CHAINS
    warmup: int = WARMUP
    draws: int = DRAWS
    target_accept: float = TARGET_ACCEPT
    max_treedepth: int = MAX_TREEDEPTH
    seed: int = 0
    target_ess: float | None = None


def check(options: Options) -> None:
    """Raise InputError where an option is out of range."""
    for name, value, low, high in (
        ("chains", options.chains, 1, 64),
        ("warmup", options.warmup, 20, 10**6),
        ("draws", options.draws, 4, 10**6),
        ("max-treedepth", options.max_treedepth, 1, 12),
        ("seed", options.seed, 0, 2**63 - 1),
    ):
        if not low <= value <= high:
            raise InputError(f"{name} must be between {low} and {high}, not {value}")
    if not 0.5 <= options.target_accept <= HIGHEST_ACCEPT:
        raise InputError(f"target-accept must be between 0.5 and {HIGHEST_ACCEPT}, not {options.target_accept}")
    if options.target_ess is not None and not 1 <= options.target_ess <= 10**8:
        raise InputError(f"target-ess must be between 1 and 1e8, not {options.target_ess}")


def settings(options: Options | None) -> dict[str, Any]:
    """The sampler's entries of ``benchkit.fit`` before it ran; None for each without sampling."""
    empty = ("divergences", "saturated_trees", "max_rhat", "min_ess_bulk", "min_ess_tail", "min_e_bfmi")
    return (options._asdict() if options else dict.fromkeys(Options._fields)) | dict.fromkeys(empty)


def sample(
    target: Target, order: NDArray[np.intp], options: Options, progress: Callable[[int, int], None] | None = None
) -> tuple[NDArray[np.float32], Summary, dict[str, Any]]:
    """Draws (chains * draws, P), their summary, and the entries of ``benchkit.fit`` that the run decides.

    order (P,): the sampler's columns in the order of the table. Rounds follow the first one until the least bulk ESS
    reaches options.target_ess, each as long as the ESS so far says, at most MOST times the first round in all.
    """
    from benchkit.irt import diagnostics as mcmc

    sampler = Sampler(
        target,
        chains=options.chains,
        warmup=options.warmup,
        target_accept=options.target_accept,
        max_treedepth=options.max_treedepth,
        seed=options.seed,
    )
    run = sampler.draw(options.draws, progress)
    while True:
        x = np.ascontiguousarray(run.x[:, :, order])
        found = mcmc.diagnose(x)
        more = _more(options, x.shape[1], _extreme(found.ess_bulk, min))
        if not more:
            break
        rounds: list[tuple[Any, ...]] = [run, sampler.draw(more, progress)]
        run = Chains(*(np.concatenate(parts, axis=1) for parts in zip(*rounds, strict=True)))
    draws = x.shape[1]
    flat = x.reshape(options.chains * draws, -1)
    record = {
        "draws": draws,
        "divergences": int(run.divergent.sum()),
        "saturated_trees": int(run.saturated.sum()),
        "max_rhat": _extreme(found.rhat, max),
        "min_ess_bulk": _extreme(found.ess_bulk, min),
        "min_ess_tail": _extreme(found.ess_tail, min),
        "min_e_bfmi": _extreme(mcmc.e_bfmi(run.energy), min),
    }
    return flat, summaries.of_draws(flat, found), record


def _more(options: Options, draws: int, ess: float | None) -> int:
    """How many draws a chain the next round takes; 0: no next round."""
    if options.target_ess is None or (ess is not None and ess >= options.target_ess):
        return 0
    wanted = draws * 1.05 * options.target_ess / max(ess or 0.0, 1.0)
    # ESS of few draws is a rough guess: at most five times as many at once
    wanted = min(wanted, 5 * draws, MOST * options.draws)
    return max(math.ceil(wanted) - draws, 0) if draws < MOST * options.draws else 0


def _extreme(x: NDArray[np.float64], pick: Callable[[list[float]], float]) -> float | None:
    """The worst value; None if any is undefined."""
    return None if np.isnan(x).any() else float(pick(x.tolist()))


def caveats(d: dict[str, Any]) -> list[str]:
    """What a reader of the draws must know, with the remedy."""
    out = []
    kept = d["chains"] * d["draws"]
    if d["divergences"]:
        accept = d["target_accept"]
        more = accept < HIGHEST_ACCEPT
        remedy = f"raise --target-accept (now {accept:g})" if more else "set tighter priors"
        out.append(
            f"{d['divergences']} of {kept} draws ended in a divergence: the posterior's corners may be missed; {remedy}"
        )
    if d["max_rhat"] is None or not d["max_rhat"] < RHAT:
        value = "undefined" if d["max_rhat"] is None else f"{d['max_rhat']:.3f}"
        out.append(f"the chains disagree (R-hat {value}, wanted below {RHAT}): raise --warmup and --draws")
    low = [d["min_ess_bulk"], d["min_ess_tail"]]
    if d["target_ess"] is not None and (low[0] is None or low[0] < d["target_ess"]):
        out.append(
            f"the target ESS of {d['target_ess']:g} was not reached in {d['draws']} draws a chain: something mixes "
            "slowly; look at the other warnings"
        )
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
