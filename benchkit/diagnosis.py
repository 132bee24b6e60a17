"""What a table of responses can and can't tell: what is missing, what is alike, and what carries the ranking.

N models i, M items j, n_ij attempts with y_ij the sum of their scores, r_ij = y_ij/n_ij where n_ij > 0. A model is
complete if it has attempts on every item that some model tried; a score S_i = sum_j r_ij compares complete models only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit import coverage, identical, scores
from benchkit.discrimination import Discrimination, discriminate, ratio
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.flags import Flag, raised
from benchkit.identical import Group

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNFITTED = "no model was fitted"


class Attempts(NamedTuple):
    """Attempts per cell over the cells tried (least, greatest) and in all."""

    min: int
    max: int
    total: int


class Incomplete(NamedTuple):
    """A model that lacks items, and how hard they are for the others.

    model                  its index
    coverage               share of the items that it tried
    missing                the items it has no attempts on; int64 indices
    others_rate_missing    mean over these items of the other models' mean rate on them
    others_rate_tried      the same over the items it tried. Items that no other model tried are left out of both; NaN
                           where none is left
    """

    model: int
    coverage: float
    missing: Ints
    others_rate_missing: float
    others_rate_tried: float


class Items(NamedTuple):
    """One value an item, shape (M,); NaN where undefined (the reason stands in Diagnosis.item_reasons).

    models                 models that tried it
    attempts, correct      sums over models
    rate                   correct/attempts
    information            Fisher information about b_j in the 1PL, sum_i n_ij p_ij (1 - p_ij), per logit squared
    share_of_spread, item_rest_correlation, inversion_rate   see `discrimination`
    """

    models: Ints
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
    coverage           share of the items that it tried
    attempts, correct  sums over items
    score              mean of r_ij over the items tried
    information        Fisher information about theta_i, sum_j n_ij p_ij (1 - p_ij)
    inversion_rate     see `discrimination`
    """

    items: Ints
    coverage: Array
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
    coverage             share of the cells with attempts
    min_coverage         least coverage of a model
    attempts             attempts per cell
    uneven_attempts      items on which models that tried have different numbers of attempts; int64 indices
    complete_models      how many
    incomplete           the others, and what they lack
    solved_by_all        items where every attempt of every model that tried is right; int64 indices
    solved_by_none       items tried, where no attempt has a score above 0; int64 indices
    identical_models     groups of models with the same attempts and correct on every item
    identical_items      groups of items with the same attempts and correct of every model
    alpha                Cronbach's alpha of the item rates over complete models (Cronbach 1951)
    n_eff                1/sum_j share_of_spread_j^2, the effective number of items
    flags                what deserves a look
    items, models        columns
    warnings             plain sentences
    reasons, item_reasons, model_reasons   why a field, or a value of a column, is undefined
    """

    n_models: int
    n_items: int
    n_cells: int
    missing_cells: int
    coverage: float
    min_coverage: float
    attempts: Attempts
    uneven_attempts: Ints
    complete_models: int
    incomplete: tuple[Incomplete, ...]
    solved_by_all: Ints
    solved_by_none: Ints
    identical_models: tuple[Group, ...]
    identical_items: tuple[Group, ...]
    alpha: float | None
    n_eff: float | None
    flags: tuple[Flag, ...]
    items: Items
    models: Models
    warnings: tuple[str, ...]
    reasons: dict[str, str]
    item_reasons: dict[str, str]
    model_reasons: dict[str, str]

    def document(self, models: Sequence[str], items: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order by identifier, each null beside its reason; `warnings` comes last."""
        plain: dict[str, Any] = {
            "attempts": self.attempts._asdict(),
            "incomplete": _incomplete(self.incomplete, models, items),
            "identical_models": _groups("models", self.identical_models, models),
            "identical_items": _groups("items", self.identical_items, items),
            "flags": [flag.document(models, items) for flag in self.flags],
            "items": rows({"item": items} | self.items._asdict(), self.item_reasons),
            "models": rows({"model": models} | self.models._asdict(), self.model_reasons),
            "warnings": list(self.warnings),
        }
        plain |= {
            f: [items[j] for j in getattr(self, f)] for f in ("uneven_attempts", "solved_by_all", "solved_by_none")
        }
        out: dict[str, Any] = {}
        for field in self._fields[:-3]:
            out[field] = plain[field] if field in plain else getattr(self, field)
            if out[field] is None:
                out[f"{field}_reason"] = self.reasons[field]
        return out


def _groups(what: str, found: Sequence[Group], names: Sequence[str]) -> list[dict[str, Any]]:
    columns = {what: [[names[i] for i in g.rows] for g in found], "chance": [g.chance for g in found]}
    return rows(columns, {"chance": UNFITTED})


def _incomplete(found: Sequence[Incomplete], models: Sequence[str], items: Sequence[str]) -> list[dict[str, Any]]:
    columns = {
        "model": [models[row.model] for row in found],
        "coverage": [row.coverage for row in found],
        "missing": [[items[j] for j in row.missing] for row in found],
        "others_rate_missing": [row.others_rate_missing for row in found],
        "others_rate_tried": [row.others_rate_tried for row in found],
    }
    reasons = {
        "others_rate_missing": "no other model tried any of these items",
        "others_rate_tried": "no other model tried any of its items",
    }
    return rows(columns, reasons)


def diagnose(
    attempts: npt.NDArray[Any],
    correct: npt.NDArray[Any],
    theta: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
) -> Diagnosis:
    """Diagnose attempts (N, M), 0 where a pair was not tried, and correct (N, M), 0..attempts.

    theta, b   (N,) and (M,), abilities and difficulties at which information is computed, logits: p = sigmoid(theta_i
               - b_j), usually the posterior mode; None leaves information and the chance of identical rows undefined

    Raises InputError on shapes that disagree, on an empty table and on correct outside 0..attempts.
    """
    n, y = scores.check(attempts, correct)
    models, items = n.shape
    tried = n > 0
    rate = np.divide(y, n, out=np.zeros(y.shape), where=tried)
    told = _told(n, y, rate)
    unfitted = {"information": UNFITTED}
    item_reasons = {"rate": "no attempts", "inversion_rate": told.reasons["item_inversion_rate"]} | unfitted
    item_reasons |= {k: told.reasons[k] for k in ("share_of_spread", "item_rest_correlation") if k in told.reasons}
    model_reasons = {"score": "no attempts", "inversion_rate": told.reasons["model_inversion_rate"]} | unfitted
    item_information, model_information = np.full(items, np.nan), np.full(models, np.nan)
    ability = difficulty = None
    if theta is not None and b is not None:
        ability, difficulty = np.asarray(theta, dtype=np.float64), np.asarray(b, dtype=np.float64)
        item_information, model_information = information(n, ability, difficulty)
    item_attempts, item_correct, item_models = n.sum(axis=0), y.sum(axis=0), tried.sum(axis=0)
    known = item_attempts > 0
    least = np.where(tried, n, np.iinfo(np.int64).max).min(axis=0)
    right = np.where(tried, y == n, True).all(axis=0) & known
    wrong = (y == 0).all(axis=0) & known
    cells = n[tried]
    covered = tried.mean(axis=1)
    missing = _lacking(n, rate, covered)
    found = Diagnosis(
        n_models=models,
        n_items=items,
        n_cells=models * items,
        missing_cells=models * items - cells.size,
        coverage=cells.size / (models * items),
        min_coverage=float(covered.min()),
        attempts=Attempts(int(cells.min()), int(cells.max()), int(cells.sum())) if cells.size else Attempts(0, 0, 0),
        uneven_attempts=np.flatnonzero(known & (least < n.max(axis=0))),
        complete_models=models - len(missing),
        incomplete=missing,
        solved_by_all=np.flatnonzero(right),
        solved_by_none=np.flatnonzero(wrong),
        identical_models=identical.groups(n, y, ability, difficulty),
        identical_items=_identical_items(n, y, ability, difficulty),
        alpha=_or_none(told.alpha),
        n_eff=_or_none(told.n_eff),
        flags=(),
        items=Items(
            models=item_models,
            attempts=item_attempts,
            correct=item_correct,
            rate=ratio(item_correct, item_attempts),
            share_of_spread=told.share_of_spread,
            item_rest_correlation=told.item_rest_correlation,
            information=item_information,
            inversion_rate=told.item_inversion_rate,
        ),
        models=Models(
            items=tried.sum(axis=1),
            coverage=covered,
            attempts=n.sum(axis=1),
            correct=y.sum(axis=1),
            score=ratio(rate.sum(axis=1), tried.sum(axis=1)),
            information=model_information,
            inversion_rate=told.model_inversion_rate,
        ),
        warnings=_warnings(len(missing), models),
        reasons=told.reasons,
        item_reasons=item_reasons,
        model_reasons=model_reasons,
    )
    return found._replace(flags=raised(found))


def _told(n: Ints, y: Array, rate: Array) -> Discrimination:
    """The discrimination among the items that some model tried; NaN for the others: no model would be complete."""
    known = _known(n)
    told = discriminate(n[:, known], y[:, known], rate[:, known])
    if known.all():
        return told

    def spread(values: Array) -> Array:
        out = np.full(len(known), np.nan)
        out[known] = values
        return out

    reasons = dict(told.reasons)
    for field in ("share_of_spread", "item_rest_correlation", "item_inversion_rate"):
        reasons[field] = "no attempts" + (f", or {reasons[field]}" if field in reasons else "")
    return told._replace(
        share_of_spread=spread(told.share_of_spread),
        item_rest_correlation=spread(told.item_rest_correlation),
        item_inversion_rate=spread(told.item_inversion_rate),
        reasons=reasons,
    )


def _known(n: Ints) -> npt.NDArray[np.bool_]:
    """(M,) Which items some model tried; all where no model tried any."""
    known = np.any(n > 0, axis=0)
    return np.asarray(known if known.any() else ~known)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _lacking(n: Ints, rate: Array, covered: Array) -> tuple[Incomplete, ...]:
    at = np.flatnonzero(~scores.complete(n[:, _known(n)]))
    return tuple(
        Incomplete(int(i), float(covered[i]), np.flatnonzero(n[i] == 0), others.missing, others.tried)
        for i, others in zip(at, coverage.others_rates(n, rate, at), strict=True)
    )


def _identical_items(n: Ints, y: Array, theta: Array | None, b: Array | None) -> tuple[Group, ...]:
    """Identical columns. With one model any two items on which it did alike are: that says nothing."""
    if len(n) < 2:
        return ()
    row, column = (None if x is None else -x for x in (b, theta))
    return identical.groups(np.ascontiguousarray(n.T), np.ascontiguousarray(y.T), row, column)


def _warnings(lacking: int, models: int) -> tuple[str, ...]:
    if not lacking:
        return ()
    them = "it" if lacking == 1 else "them"
    return (f"{lacking} of {models} models have no attempts on some item: statistics that compare scores leave {them} "
            "out",)  # fmt: skip


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
