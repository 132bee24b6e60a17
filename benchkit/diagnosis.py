"""What a table of responses can and can't tell: coverage, and which items and models carry the ranking.

N models i, M items j, n_ij attempts with y_ij the sum of their scores, r_ij = y_ij/n_ij where n_ij > 0. A model is
complete if it has attempts on every item; a score S_i = sum_j r_ij compares complete models only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit import scores
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.inversions import count

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SAME = 9  # decimals of a sum of rates that are compared where the rates have no small common denominator
_RATE = 12  # decimals of a rate that are compared: 1/q - 1/(q + 1) is larger up to q = 10^6


class Attempts(NamedTuple):
    """Attempts per cell over the cells tried (least, greatest) and in all."""

    min: int
    max: int
    total: int


class Incomplete(NamedTuple):
    """A model and the items (int64 indices) it has no attempts on."""

    model: int
    missing: Ints


class Items(NamedTuple):
    """One value an item, shape (M,); NaN where undefined (the reason stands in Diagnosis.item_reasons).

    attempts, correct       sums over models
    rate                    correct/attempts
    share_of_spread         cov(r_j, S)/sum_k cov(r_k, S) over complete models: what the item adds to the differences
                            between scores. Adds to 1; negative where the item works against the rest
    item_rest_correlation   Pearson correlation of r_j with S - r_j over complete models
    information             Fisher information about b_j in the 1PL, sum_i n_ij p_ij (1 - p_ij), per logit squared
    inversion_rate          over pairs of complete models with (S - r_j)_a > (S - r_j)_c and r_aj != r_cj, the share
                            with r_aj < r_cj: how often the item contradicts the others
    """

    attempts: Ints
    correct: Array
    rate: Array
    share_of_spread: Array
    item_rest_correlation: Array
    information: Array
    inversion_rate: Array


class Models(NamedTuple):
    """One value a model, shape (N,); NaN where undefined (the reason stands in Diagnosis.model_reasons).

    items              items tried
    attempts, correct  sums over items
    score              mean of r_ij over the items tried
    information        Fisher information about theta_i, sum_j n_ij p_ij (1 - p_ij)
    inversion_rate     over pairs of items it tried of which the other complete models find one easier (a greater sum
                       of their rates) and its own rates differ, the share where its rate on the easier one is lower
    """

    items: Ints
    attempts: Ints
    correct: Array
    score: Array
    information: Array
    inversion_rate: Array


class Diagnosis(NamedTuple):
    """All that the diagnosis of a responses table says.

    n_models, n_items    N and M
    n_cells              N x M
    missing_cells        cells without attempts
    attempts             attempts per cell
    complete_models      how many
    incomplete           the others, and what they lack
    solved_by_all        items where every attempt of every model that tried is right; int64 indices
    solved_by_none       items tried, where no attempt has a score above 0; int64 indices
    alpha                Cronbach's alpha of the item rates over complete models (Cronbach 1951)
    n_eff                1/sum_j share_of_spread_j^2, the effective number of items
    items, models        columns
    warnings             plain sentences
    reasons, item_reasons, model_reasons   why a field, or a value of a column, is undefined
    """

    n_models: int
    n_items: int
    n_cells: int
    missing_cells: int
    attempts: Attempts
    complete_models: int
    incomplete: tuple[Incomplete, ...]
    solved_by_all: Ints
    solved_by_none: Ints
    alpha: float | None
    n_eff: float | None
    items: Items
    models: Models
    warnings: tuple[str, ...]
    reasons: dict[str, str]
    item_reasons: dict[str, str]
    model_reasons: dict[str, str]

    def document(self, models: Sequence[str], items: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order by identifier, each null beside its reason; `warnings` comes last."""
        out: dict[str, Any] = {f: getattr(self, f) for f in ("n_models", "n_items", "n_cells", "missing_cells")}
        out["attempts"] = self.attempts._asdict()
        out["complete_models"] = self.complete_models
        out["incomplete"] = [
            {"model": models[row.model], "missing": [items[j] for j in row.missing]} for row in self.incomplete
        ]
        out["solved_by_all"] = [items[j] for j in self.solved_by_all]
        out["solved_by_none"] = [items[j] for j in self.solved_by_none]
        for field in ("alpha", "n_eff"):
            out[field] = getattr(self, field)
            if field in self.reasons:
                out[f"{field}_reason"] = self.reasons[field]
        out["items"] = rows({"item": items} | self.items._asdict(), self.item_reasons)
        out["models"] = rows({"model": models} | self.models._asdict(), self.model_reasons)
        out["warnings"] = list(self.warnings)
        return out


def diagnose(
    attempts: npt.NDArray[Any],
    correct: npt.NDArray[Any],
    theta: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
) -> Diagnosis:
    """Diagnose attempts (N, M), 0 where a pair was not tried, and correct (N, M), 0..attempts.

    theta, b   (N,) and (M,), abilities and difficulties at which information is computed, logits: p = sigmoid(theta_i
               - b_j), usually the posterior mode; None leaves information undefined

    Scores are compared as integers over the common denominator of the rates. Where there is no denominator up to 10^6
    (fractional scores), sums of rates are compared to 9 decimals.
    Raises InputError on shapes that disagree, on an empty table and on correct outside 0..attempts.
    """
    n, y = scores.check(attempts, correct)
    models, items = n.shape
    tried = n > 0
    rate = np.divide(y, n, out=np.zeros(y.shape), where=tried)
    full = scores.complete(n)
    item_reasons: dict[str, str] = {}
    model_reasons: dict[str, str] = {}
    reasons: dict[str, str] = {}
    enough = int(full.sum()) >= 2
    few = (
        ""
        if enough
        else f"{'one model has' if full.any() else 'no model has'} attempts on every item, and it takes two"
    )

    whole = _sums(n, y, full) if full.any() else None
    share, alpha, correlation = _spread(rate[full], whole, reasons)
    if not enough:
        reasons |= {"alpha": few, "share": few}
    n_eff = None if np.isnan(share).any() else float(1 / (share @ share))
    if n_eff is None:
        reasons["n_eff"] = item_reasons["share_of_spread"] = reasons["share"]
    reasons.pop("share", None)
    item_reasons["item_rest_correlation"] = (
        few or "the complete models all have one rate on it, or one score on the other items"
    )
    item_inversion, model_inversion = _inversions(rate, tried, full, whole)
    item_reasons["inversion_rate"] = few or "no two complete models differ both on it and on the other items"
    model_reasons["inversion_rate"] = (
        "no two of its items differ both for it and for the other complete models"
        if full.any()
        else "no model has attempts on every item"
    )
    item_information, model_information = np.full(items, np.nan), np.full(models, np.nan)
    if theta is not None and b is not None:
        item_information, model_information = information(n, theta, b)
    else:
        item_reasons["information"] = model_reasons["information"] = "no model was fitted"
    item_reasons["rate"] = model_reasons["score"] = "no attempts"

    item_attempts, item_correct = n.sum(axis=0), y.sum(axis=0)
    known = item_attempts > 0
    right = np.where(tried, y == n, True).all(axis=0) & known
    wrong = (y == 0).all(axis=0) & known
    cells = n[tried]
    missing = [Incomplete(int(i), np.flatnonzero(~tried[i])) for i in np.flatnonzero(~full)]
    warnings = []
    if missing:
        warnings.append(
            f"{len(missing)} of {models} models have no attempts on some item: statistics that compare scores leave "
            f"{'it' if len(missing) == 1 else 'them'} out"
        )
    return Diagnosis(
        n_models=models,
        n_items=items,
        n_cells=models * items,
        missing_cells=models * items - cells.size,
        attempts=Attempts(int(cells.min()), int(cells.max()), int(cells.sum())) if cells.size else Attempts(0, 0, 0),
        complete_models=int(full.sum()),
        incomplete=tuple(missing),
        solved_by_all=np.flatnonzero(right),
        solved_by_none=np.flatnonzero(wrong),
        alpha=alpha,
        n_eff=n_eff,
        items=Items(
            attempts=item_attempts,
            correct=item_correct,
            rate=_ratio(item_correct, item_attempts),
            share_of_spread=share,
            item_rest_correlation=correlation,
            information=item_information,
            inversion_rate=item_inversion,
        ),
        models=Models(
            items=tried.sum(axis=1),
            attempts=n.sum(axis=1),
            correct=y.sum(axis=1),
            score=_ratio(rate.sum(axis=1), tried.sum(axis=1)),
            information=model_information,
            inversion_rate=model_inversion,
        ),
        warnings=tuple(warnings),
        reasons=reasons,
        item_reasons=item_reasons,
        model_reasons=model_reasons,
    )


def information(attempts: Ints, theta: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array]:
    """sum over models (M,) and over items (N,) of n p (1 - p), p = sigmoid(theta_i - b_j)."""
    ability, difficulty = np.asarray(theta, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if ability.shape != attempts.shape[:1] or difficulty.shape != attempts.shape[1:]:
        raise InputError(f"{ability.size} abilities and {difficulty.size} difficulties for a table {attempts.shape}")
    by_item, by_model = np.zeros(attempts.shape[1]), np.zeros(attempts.shape[0])
    for i, t in enumerate(ability):
        row = attempts[i] * (1 - np.tanh((t - difficulty) / 2) ** 2) / 4
        by_item += row
        by_model[i] = row.sum()
    return by_item, by_model


def _ratio(top: npt.NDArray[Any], bottom: npt.NDArray[Any]) -> Array:
    out: Array = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return out


class _Whole(NamedTuple):
    """Rates of the complete models, comparable exactly: values (C, M); `unit`, the sum that rounds to 1, or None."""

    values: npt.NDArray[Any]
    unit: float | None

    def key(self, sums: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums of values as numbers that are equal exactly where the sums count as equal."""
        return sums if self.unit is None else np.rint(sums / self.unit)


def _sums(n: Ints, y: Array, full: npt.NDArray[np.bool_]) -> _Whole:
    found = scores.integers(n[full], y[full])
    values = found.values
    if values.dtype != object and found.denominator * max(n.shape) >= scores.INT64:
        values = values.astype(object)
    return _Whole(values, None if found.exact else found.denominator * 10.0**-_SAME)


def _constant(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(M,) True for columns of equal values."""
    out: npt.NDArray[np.bool_] = (values == values[:1]).all(axis=0)
    return out


def _spread(rate: Array, whole: _Whole | None, reasons: dict[str, str]) -> tuple[Array, float | None, Array]:
    """Share of spread (M,), alpha and item-rest correlation (M,) from the rates of the complete models (C, M)."""
    c, m = rate.shape
    nothing = np.full(m, np.nan)
    if c < 2 or whole is None:
        return nothing, None, nothing
    total = whole.values.sum(axis=1)
    rest = whole.key(total[:, None] - whole.values)
    still = _constant(whole.values)
    # A column of equal rates has no deviations; without this, rounding of its mean would leave some.
    off = np.where(still, 0.0, rate - rate.mean(axis=0))
    score = off.sum(axis=1)
    others = score[:, None] - off
    scale = np.sqrt((off**2).sum(axis=0) * (others**2).sum(axis=0))
    defined = ~still & ~_constant(rest) & (scale > 0)
    correlation = np.divide((off * others).sum(axis=0), scale, out=nothing.copy(), where=defined)
    np.clip(correlation, -1, 1, out=correlation)
    spread = float(score @ score)
    if spread == 0 or bool(_constant(whole.key(total)[:, None])[0]):
        reasons |= dict.fromkeys(("alpha", "share"), "all complete models have the same score")
        return nothing, None, correlation
    alpha = None
    if m < 2:
        reasons["alpha"] = "one item"
    else:
        alpha = m / (m - 1) * (1 - float((off**2).sum()) / spread)
    return off.T @ score / spread + 0.0, alpha, correlation  # + 0.0 turns -0.0 into 0.0


def _inversions(
    rate: Array, tried: npt.NDArray[np.bool_], full: npt.NDArray[np.bool_], whole: _Whole | None
) -> tuple[Array, Array]:
    """Inversion rates of the items (M,) and of the models (N,); NaN without comparable pairs."""
    models, items = rate.shape
    by_item, by_model = np.full(items, np.nan), np.full(models, np.nan)
    if whole is None:
        return by_item, by_model
    own = np.round(rate, _RATE)
    values = whole.values
    total = values.sum(axis=1)
    pairs = count(np.ascontiguousarray(whole.key(total[:, None] - values).T), np.ascontiguousarray(own[full].T))
    by_item = _ratio(pairs.inverted, pairs.comparable)
    ease = values.sum(axis=0)
    if len(values) > 1:
        pairs = count(whole.key(ease - values), own[full])
        by_model[full] = _ratio(pairs.inverted, pairs.comparable)
    for i in np.flatnonzero(~full):
        mine = tried[i]
        pairs = count(whole.key(ease[mine])[None], own[i, mine][None])
        by_model[i] = _ratio(pairs.inverted, pairs.comparable)[0]
    return by_item, by_model
