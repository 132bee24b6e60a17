"""Leave-one-model-out stability: how much the difficulties rest on single models. Numpy only.

For each model i the Laplace fit (mode at empirical-Bayes standard deviations) is made anew without the model's
attempts, as if its rows had been left out of the table: an item that nobody else tried has no data then and goes with
it. With z_j the difficulties of the full fit on [0,1] by minmax, and z_j^(-i) those without model i, both by Laplace,

    shift_ij      = |z_j^(-i) - z_j|                for the items j that keep data
    influence_i   = mean of shift_ij over these j   (a jackknife influence, Efron 1982, on the scale of the metrics)
    spearman_i    = Spearman's correlation of b^(-i) and b over these j, ties sharing the mean of their ranks

and the metrics (DDM, max gap, top-5 gap sum, against the uniform target) of z^(-i). Both sides are modes: a posterior
mean differs from the mode where posteriors are skewed, most of all for boundary items.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.difficulty import normalize
from benchkit.irt.laplace import Laplace, laplace
from benchkit.irt.model import Array, Data, Priors
from benchkit.metrics import THRESHOLDS
from benchkit.spread import METRICS, spread
from benchkit.targets import Uniform

SPEARMAN = 0.9  # below it the order of the items rests on a single model: warned of
_LABELS = dict(zip(METRICS, ("DDM", "the max gap", "the top-5 gap sum"), strict=True))
_TOLERANCE = 1e-5  # logits; of the refits, whose last steps shrink about sevenfold each
_WORTHWHILE = 20_000  # cells; below, threads wait for the interpreter more than they compute
_TIED = 1e-9  # values closer than this are equal: they differ by rounding


class Stability(NamedTuple):
    """What leaving out each of N models does to M items.

    full        (3,), the metrics of the full fit in the order of ``METRICS``
    metrics     (N, 3), without each model
    spearman    (N,), NaN also where all ranks of a side are tied
    influence   (N,), normalised difficulty
    shift       (M,), the largest shift_ij over i, normalised difficulty; NaN where no refit has the item
    shift_model (M,), the first model i that shifts the item so far; -1 where none shifts it
    skipped     for each model why there is no refit without it, else None: its values are NaN
    converged   (N,), whether the refit's steps fell below the tolerance
    reason      why nothing is defined, else None
    """

    full: Array
    metrics: Array
    spearman: Array
    influence: Array
    shift: Array
    shift_model: NDArray[np.int64]
    skipped: tuple[str | None, ...]
    converged: NDArray[np.bool_]
    reason: str | None

    def document(self, models: Sequence[str], items: Sequence[str]) -> dict[str, Any]:
        """``stability`` for the fit's document, with names; null beside ``stability_reason`` where undefined."""
        if self.reason is not None:
            return {"stability": None, "stability_reason": self.reason}
        out: dict[str, Any] = {
            "models": len(self.skipped),
            "refits": sum(why is None for why in self.skipped),
            "skipped": [name for name, why in zip(models, self.skipped, strict=True) if why is not None],
        }
        for k, name in enumerate(METRICS):
            low, high = float(np.nanmin(self.metrics[:, k])), float(np.nanmax(self.metrics[:, k]))
            out[name] = {"full": float(self.full[k]), "lower": low, "upper": high}
        least = _first(-self.spearman)
        out["min_spearman"] = None if least is None else float(self.spearman[least])
        if least is None:
            out["min_spearman_reason"] = "in every refit the ranks of all difficulties are tied"
        out["min_spearman_model"] = None if least is None else models[least]
        most = _first(self.influence)
        assert most is not None
        out["most_influential"], out["mean_shift"] = models[most], float(self.influence[most])
        item = _first(self.shift)
        assert item is not None
        who = int(self.shift_model[item])
        out["largest_shift"], out["largest_shift_item"] = float(self.shift[item]), items[item]
        out["largest_shift_model"] = models[who] if who >= 0 else None
        return {"stability": out}

    def warnings(self, models: Sequence[str]) -> list[str]:
        """Sentences for what a reader would otherwise take at face value."""
        if self.reason is not None:
            return [f"stability is undefined: {self.reason}"]
        found = []
        if len(self.skipped) == 2:
            found.append("only two models: each refit rests on one of them alone; add models to judge stability")
        for name, why in zip(models, self.skipped, strict=True):
            if why is not None:
                found.append(f"stability does not count the fit without {name}: {why}")
        loose = [models[i] for i in np.flatnonzero(~self.converged).tolist()]
        if loose:
            found.append(
                f"without {loose[0]}{f' (and {len(loose) - 1} more)' if len(loose) > 1 else ''} the mode was not found "
                "to full precision: look for extreme counts or priors"
            )
        crossed = []
        for k, name in enumerate(METRICS):
            values = np.append(self.metrics[:, k], self.full[k])
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            if low < THRESHOLDS[name] <= high:
                crossed.append(f"{_LABELS[name]} ({low:.3g} to {high:.3g}) across {THRESHOLDS[name]:.2f}")
        if crossed:
            found.append(
                f"leaving out one model moves {', '.join(crossed)}: whether the benchmark is flagged hangs on single "
                "models; report the range, or add models"
            )
        least = _first(-self.spearman)
        if least is not None and self.spearman[least] < SPEARMAN:
            found.append(
                f"the order of the items hangs on single models: without {models[least]} its Spearman correlation with "
                f"the full fit is {self.spearman[least]:.2f} (wanted {SPEARMAN}); check that model's results, or add "
                "models"
            )
        return found


def leave_one_out(
    data: Data,
    priors: Priors,
    mode: Laplace,
    *,
    weights: Array | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Stability:
    """Refit without each model and compare with the full fit.

    data: checked counts (N, M). mode: their Laplace fit with these priors, from which each refit starts.
    weights (N, M): what an attempt of the cell counts for, in the full fit and in the refits; 1 if None.
    progress(done, total) counts refits. Costs about six Newton steps a model, O(N S^2 L) each, S the smaller and L the
    larger of N and M.

    Refits of large tables run side by side, a thread a core; which one makes a refit doesn't change it.
    Undefined, with a reason: one model; a full fit or refits that all lack two different difficulties.
    """
    n_models, n_items = data.attempts.shape
    tried = data.attempts > 0
    tries = tried.sum(0)
    known = np.flatnonzero(tries > 0)
    full, unit, why = _measure(mode.b[known])
    z = np.full(n_items, np.nan)
    if unit is not None:
        z[known] = unit
    metrics = np.full((n_models, len(METRICS)), np.nan)
    spearman, influence = np.full(n_models, np.nan), np.full(n_models, np.nan)
    shift, shift_model = np.full(n_items, np.nan), np.full(n_items, -1)
    skipped: list[str | None] = [None] * n_models
    converged = np.ones(n_models, bool)
    reason = "one model: nothing is left without it" if n_models == 1 else why

    def without_model(i: int) -> tuple[NDArray[np.int64], Laplace | None]:
        left = np.flatnonzero(tries > tried[i])
        return left, _refit(data, priors, mode, weights, np.delete(np.arange(n_models), i), left) if left.size else None

    for i, (left, fit) in enumerate(_each(without_model, 0 if reason else n_models, tried.size)):
        if fit is None:
            skipped[i] = "no attempts are left"
        else:
            metrics[i], without, skipped[i] = _measure(fit.b)
            if without is not None:
                converged[i] = fit.converged
                moved = np.abs(without - z[left])
                influence[i] = moved.mean()
                spearman[i] = _spearman(fit.b, mode.b[left])
                shift[left] = np.fmax(shift[left], 0.0)
                further = moved > shift[left] + _TIED
                shift[left[further]], shift_model[left[further]] = moved[further], i
        if progress:
            progress(i + 1, n_models)
    if reason is None and all(skipped):
        reason = f"no fit without a model has metrics: {skipped[0]}"
    return Stability(full, metrics, spearman, influence, shift, shift_model, tuple(skipped), converged, reason)


def _each(
    work: Callable[[int], tuple[NDArray[np.int64], Laplace | None]], count: int, cells: int
) -> Iterator[tuple[NDArray[np.int64], Laplace | None]]:
    """work(0), work(1), ... in this order."""
    cores = _cores()
    if cells < _WORTHWHILE or cores == 1:
        yield from map(work, range(count))
        return
    with ThreadPoolExecutor(min(cores, 16)) as pool:
        yield from pool.map(work, range(count))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _refit(
    data: Data,
    priors: Priors,
    mode: Laplace,
    weights: Array | None,
    models: NDArray[np.int64],
    items: NDArray[np.int64],
) -> Laplace:
    """The Laplace fit of some models and items, from the full mode."""
    part = np.ix_(models, items)
    start = mode._replace(theta=mode.theta[models], b=mode.b[items])
    fewer = Data(data.attempts[part], data.correct[part])
    return laplace(fewer, priors, start, _TOLERANCE, None if weights is None else weights[part])


def _measure(b: Array) -> tuple[Array, Array | None, str | None]:
    """The metrics (3,) of difficulties b, and their z; NaN and None with a reason where there is no scale."""
    found = normalize(b)
    why = found.reason
    if why is None and np.ptp(b) <= _TIED:
        why = "all difficulties are equal: minmax is undefined"
    if why is not None or found.z is None:
        return np.full(len(METRICS), np.nan), None, why
    return np.array(spread(np.sort(found.z), Uniform())), found.z, None


def _spearman(a: Array, b: Array) -> float:
    """Spearman's rank correlation of a and b, equal shape (K,); NaN where all values of a side are tied."""
    x, y = (ranks - ranks.mean() for ranks in (_midranks(a), _midranks(b)))
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip(x @ y / norm, -1, 1)) if norm > 0 else float("nan")


def _midranks(x: Array) -> Array:
    """Ranks from 1; values that differ by rounding share the mean of theirs."""
    order = np.argsort(x, kind="stable")
    run = np.concatenate([[0], np.cumsum(np.diff(x[order]) > _TIED)])
    size = np.bincount(run)
    out = np.empty(x.size)
    out[order] = (np.cumsum(size) - (size - 1) / 2)[run]
    return out


def _first(values: Array) -> int | None:
    """The first index of the greatest value, up to rounding; None where all are NaN."""
    if np.isnan(values).all():
        return None
    return int(np.flatnonzero(values >= np.nanmax(values) - _TIED)[0])
