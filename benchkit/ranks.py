"""Ranks of models: how sure they are, and which models could be first.

Score = mean over items of the item's score. Rank = 1 + number of strictly greater scores, so ties share the best rank.
Scores are compared as integers, never as floats.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from benchkit import estimators, imputation, intervals
from benchkit.coverage import Bound, Incomplete, bounds, incomplete
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.estimators import MEAN, Estimator
from benchkit.irt.pointwise import Draws
from benchkit.levels import Level, as_fraction
from benchkit.rank_intervals import DRAWN, Method, Promise, Ranked, rank_intervals
from benchkit.resampling import EXACT, competition_ranks
from benchkit.scores import Floats, Ints, Scores, check, complete, on_grid, totals, units

Handling = Literal["exclude", "common", "impute", "bounds"]
HANDLINGS: tuple[str, ...] = get_args(Handling)

REASONS = {
    "reps": "nothing is drawn at random",
    "p_first": "only --method bootstrap resamples",
    "attempts_half_width": "the score is no share of attempts",
    "attempts_lower": "the score is no share of attempts",
    "attempts_upper": "the score is no share of attempts",
    "items_half_width": intervals.ONE_ITEM,
    "clusters_half_width": intervals.ONE_CLUSTER,
}
FILLED = "the model lacks items: its score is imputed"


class Ranking(NamedTuple):
    """The ranking of R models, best first (ties in the order of the table). Arrays have shape (R,).

    items: number of items ranked on. level, method: as given. reps: random draws, None where there are none.
    promise: what the rank intervals hold. estimator: what a score is. missing: how missing cells were handled.
    model: index in the table. rank: 1 = best. rank_lower, rank_upper: interval of the rank.
    could_be_first: rank_lower is 1. p_first: share of the resamples with rank 1, ties included; NaN if none were made.
    score: in 0..1. attempts: total. attempts_half_width, attempts_lower, attempts_upper: Wald's and Wilson's interval
        of the score over attempts. items_half_width: over items. clusters_half_width: over clusters, None without.
        All at `level`; NaN where undefined, with the reason in `reasons` under the field's name.
    pooled, pooled_lower, pooled_upper: posterior mean and bounds of the expected score; None without a fit.
    contenders: model indices that could be first, best first. best_set: model indices not proven worse than any.
    excluded, imputed: incomplete models that are not ranked, or are with their missing cells filled.
    bounds: of all models, None unless asked for. left_out: indices of items not ranked on.
    warnings: plain sentences.
    """

    items: int
    level: float
    reps: int | None
    method: str
    promise: Promise
    estimator: str
    missing: str
    model: Ints
    rank: Ints
    rank_lower: Ints
    rank_upper: Ints
    could_be_first: NDArray[np.bool_]
    p_first: Floats
    score: Floats
    attempts: Ints
    attempts_half_width: Floats
    attempts_lower: Floats
    attempts_upper: Floats
    items_half_width: Floats
    clusters_half_width: Floats | None
    pooled: Floats | None
    pooled_lower: Floats | None
    pooled_upper: Floats | None
    contenders: Ints
    best_set: Ints
    excluded: tuple[Incomplete, ...]
    imputed: tuple[Incomplete, ...]
    bounds: tuple[Bound, ...] | None
    left_out: Ints
    reasons: dict[str, str | tuple[str, ...]]
    warnings: tuple[str, ...]

    def document(self, models: Sequence[str], items: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order by identifier, each null beside its reason; `warnings` comes last."""
        out: dict[str, Any] = {f: getattr(self, f) for f in ("items", "level", "reps")}
        if self.reps is None:
            out["reps_reason"] = REASONS["reps"]
        out |= {"method": self.method, "promise": self.promise._asdict()}
        out |= {"estimator": self.estimator, "missing": self.missing}
        out["contenders"] = [models[i] for i in self.contenders]
        out["best_set"] = [models[i] for i in self.best_set]
        fields = self._fields[self._fields.index("rank") : self._fields.index("contenders")]
        columns = {"model": [models[i] for i in self.model]}
        columns |= {f: getattr(self, f) for f in fields if getattr(self, f) is not None}
        out["models"] = rows(columns, self.reasons)
        for key in ("excluded", "imputed"):
            found = getattr(self, key)
            if key == "excluded" or found:
                own = {
                    "model": [models[e.model] for e in found],
                    "missing": [[items[j] for j in e.missing] for e in found],
                    "score_on_own_items": [e.score_on_own_items for e in found],
                }
                out[key] = rows(own, {"score_on_own_items": "it has no item, or too few attempts on one"})
        if self.bounds is not None:
            out["bounds"] = [b._asdict() | {"model": models[b.model]} for b in self.bounds]
        if self.left_out.size:
            out["left_out"] = [items[j] for j in self.left_out]
        out["warnings"] = list(self.warnings)
        return out


def _ranked(
    counts: Ints,
    y: Floats,
    cluster: NDArray[Any] | None,
    names: Ints,
    places: Ints,
    estimator: Estimator,
    models: Sequence[str] | None,
    items: Sequence[str] | None,
) -> Ranked:
    """The models `names` on the items `places` of the table."""
    part, m = np.ix_(names, places), len(places)
    codes, sizes = units(None if cluster is None else np.asarray(cluster)[places], m)
    own = [None if ids is None else [ids[x] for x in at] for ids, at in ((models, names), (items, places))]
    scores = estimators.scores(counts[part], y[part], estimator, *own)
    sums = totals(scores.values)
    return Ranked(
        counts=counts[part],
        y=y[part],
        estimator=estimator,
        scores=scores,
        sums=sums,
        score=np.array([s / (scores.denominator * m) for s in sums], dtype=np.float64),
        slack=0 if scores.exact else m,
        codes=codes,
        sizes=sizes,
        imputer=None,
        models=own[0],
        items=own[1],
    )


class _Widths(NamedTuple):
    """Intervals of scores (R,), NaN where undefined; clusters_half_width is None without clusters."""

    attempts_half_width: Floats
    attempts_lower: Floats
    attempts_upper: Floats
    items_half_width: Floats
    clusters_half_width: Floats | None


def _widths(t: Ranked, level: Level, order: Ints) -> _Widths:
    """For the models in `order`; undefined for models whose missing cells are imputed."""
    counts, score = t.counts[order], t.score[order]
    tried, rates = counts.sum(axis=1), estimators.rates(counts, t.y[order], t.estimator)
    whole = complete(counts)
    single = whole & (t.estimator.k == 1)
    wilson = intervals.wilson(score, tried, level)
    clusters = None if t.codes is None else intervals.clusters_half_width(rates, t.codes, level)
    return _Widths(
        np.where(single, intervals.attempts_half_width(score, tried, level), math.nan),
        np.where(single, wilson.lower, math.nan),
        np.where(single, wilson.upper, math.nan),
        np.where(whole, intervals.items_half_width(rates, level), math.nan),
        None if clusters is None else np.where(whole, clusters, math.nan),
    )


def _filled(t: Ranked, draws: Draws, seed: int) -> Ranked:
    """With what is expected of the missing cells in `sums` and `score`, rounded to a grid, and an imputer for draws."""
    cells = imputation.missing_cells(t.counts)
    if not len(cells.models):
        return t
    m = t.counts.shape[1]
    grid = on_grid(estimators.rates(t.counts, t.y, t.estimator), m)
    one = math.lcm(t.scores.denominator, *(estimators.whole(t.estimator, n) for n in set(cells.attempts.tolist())))
    fits = t.scores.exact and (one * int(t.sizes.max()) * len(t.sizes)).bit_length() <= EXACT
    scores = Scores(t.scores.values * (one // t.scores.denominator), one, True) if fits else grid
    values = grid.values.copy()
    expected = imputation.expected_scores(draws, cells, t.estimator)
    values[cells.models, cells.items] = np.rint(expected * grid.denominator).astype(np.int64)
    sums = totals(values)
    return t._replace(
        scores=scores,
        sums=sums,
        score=np.array([s / (grid.denominator * m) for s in sums]),
        slack=m,
        imputer=imputation.Imputer(draws, cells, t.estimator, scores.denominator, seed),
    )


def _data_warnings(t: Ranked, method: Method) -> list[str]:
    found = []
    if not t.scores.exact:
        found.append(
            "no denominator up to 1000000 fits the scores, or the attempts have no usable common multiple: "
            f"scores closer than {2 / t.scores.denominator:.1g} are taken as ties"
        )
    if len(t.sizes) == 1 and method in DRAWN:
        found.append(f"with one {'item' if t.codes is None else 'cluster'} there is nothing to resample")
    if t.unequal:
        what = "best_set then assumes" if method != "signflip" else "best_set and the rank intervals then assume"
        found.append(f"the models have unequal attempts on some items: {what} that differences are symmetric")
    return found


def _coverage_warnings(counts: Ints, lacking: int, kept: NDArray[np.bool_], missing: Handling) -> list[str]:
    n, m = counts.shape
    left = m - int(np.count_nonzero(kept))
    if left:
        return [f"ranked on the {m - left} of {m} items that all models have: {left} left out"]
    if lacking and missing == "impute":
        cells = int(np.count_nonzero(counts == 0))
        return [
            f"{cells} missing cells of {lacking} of {n} models are drawn from the fit, as if what is missing had "
            "nothing to do with how the model would do there"
        ]
    if lacking:
        return [f"{lacking} of {n} models {'lacks' if lacking == 1 else 'lack'} some items: not ranked"]
    return []


def rank(
    attempts: NDArray[Any],
    correct: NDArray[Any],
    cluster: NDArray[Any] | None = None,
    level: Level = "0.95",
    reps: int = 4000,
    seed: int = 0,
    chunk: int | None = None,
    *,
    method: Method = "bootstrap",
    missing: Handling = "exclude",
    estimator: Estimator = MEAN,
    draws: Draws | None = None,
    models: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
) -> Ranking:
    """Rank models, with intervals of the ranks by `method` and the set of models that may be the best.

    attempts, correct: (N, M). cluster: (M,) codes, then clusters are resampled and signs flip per cluster; score =
    sum of sums / sum of sizes. level: taken as its decimal. reps: of the bootstrap, and random draws of the
    simultaneous method. models, items: names for messages.
    missing: what to do with models that lack items: ``exclude`` them; rank on the ``common`` items; ``impute`` the
    missing cells from `draws`, by the bootstrap only; or exclude them and give ``bounds`` for all.
    draws: of a fit of the N models and M items; with it each score also comes partially pooled.
    Raises InputError.
    """
    counts, y = check(attempts, correct, cluster)
    exact_level = as_fraction(level)
    if reps < 1:
        raise InputError(f"reps must be at least 1, not {reps}")
    if missing == "impute" and draws is None:
        raise InputError("missing cells are imputed from a fit, and there is none")
    every = estimators.scores(counts, y, estimator, models, items) if missing == "bounds" else None
    kept = np.all(counts > 0, axis=0) if missing == "common" else np.ones(counts.shape[1], dtype=bool)
    if not kept.any():
        raise InputError("no item was tried by every model: there is none to rank them on in common")
    places = np.flatnonzero(kept)
    lacking = incomplete(counts[:, kept], estimators.rates(counts, y, estimator)[:, kept])
    names = np.arange(len(counts)) if missing == "impute" else np.flatnonzero(complete(counts[:, kept]))
    warnings = _coverage_warnings(counts, len(lacking), kept, missing)

    t = _ranked(counts, y, cluster, names, places, estimator, models, items)
    if missing == "impute" and draws is not None:
        t = _filled(t, draws, seed)
    if names.size:
        warnings += _data_warnings(t, method)
    else:
        warnings.append("no model has attempts on every item, so none is ranked")
    found = rank_intervals(t, method, exact_level, reps, seed, chunk)
    observed = competition_ranks(t.sums, t.slack)
    order = np.argsort(observed, kind="stable")
    could = found.lower == 1
    widths = _widths(t, exact_level, order)
    partly: list[Floats | None] = [None, None, None]
    if draws is not None:
        tails = (float((1 - exact_level) / 2), float((1 + exact_level) / 2))
        partly = list(imputation.pooled(draws, names[order], places, estimator, tails))
    reasons: dict[str, str | tuple[str, ...]] = dict(REASONS)
    if t.imputer:
        gaps = ~complete(t.counts)[order]
        reasons |= {k: tuple(FILLED if gap else REASONS[k] for gap in gaps) for k in _Widths._fields}
    return Ranking(
        items=places.size,
        level=float(exact_level),
        reps=found.draws,
        method=method,
        promise=found.promise,
        estimator=str(estimator),
        missing=missing,
        model=names[order],
        rank=observed[order],
        rank_lower=found.lower[order],
        rank_upper=found.upper[order],
        could_be_first=could[order],
        p_first=found.p_first[order],
        score=t.score[order],
        attempts=t.counts.sum(axis=1)[order],
        attempts_half_width=widths.attempts_half_width,
        attempts_lower=widths.attempts_lower,
        attempts_upper=widths.attempts_upper,
        items_half_width=widths.items_half_width,
        clusters_half_width=widths.clusters_half_width,
        pooled=partly[0],
        pooled_lower=partly[1],
        pooled_upper=partly[2],
        contenders=names[order[could[order]]],
        best_set=names[order[found.best[order]]],
        excluded=() if missing == "impute" else lacking,
        imputed=lacking if missing == "impute" else (),
        bounds=None if every is None else bounds(counts, every),
        left_out=np.flatnonzero(~kept),
        reasons=reasons,
        warnings=(*warnings, *found.warnings),
    )
