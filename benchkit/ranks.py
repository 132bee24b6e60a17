"""Ranks of models and how they move when the items are resampled.

Score = mean over items of the item's success rate. Rank = 1 + number of strictly greater scores, so ties share the
best rank. Scores are compared as integers, never as floats.

The percentile interval describes resampling; it does not promise coverage (Mogstad, Romano, Shaikh and Wilhelm 2024
give simultaneous sets). `best_set` stands beside it.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.best_set import best_set
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.intervals import ONE_ITEM, attempts_half_width, items_half_width
from benchkit.levels import Level, as_fraction, order_statistic
from benchkit.scores import Floats, Ints, Scores, check, complete, integers, sum_by, totals, units

CHUNK_CELLS = 2**18  # counts held at once by default: they stay in the cache
HELD = 2**25  # ranks held until they are counted
EXACT = 53  # bits a float64 sum of integers keeps


class Excluded(NamedTuple):
    """A model without attempts on every item, which is not ranked.

    model: its index. missing: indices of the items it lacks. score_on_own_items: mean success rate over the items
    it has, NaN if it has none.
    """

    model: int
    missing: Ints
    score_on_own_items: float


class Ranking(NamedTuple):
    """The ranking of the R complete models, best first (ties in the order of the table). Arrays have shape (R,).

    items: M. level, reps: as given. method: what the interval is.
    model: index in the table. rank: 1 = best. rank_lower, rank_upper: percentile interval of the resampled rank.
    could_be_first: rank_lower is 1. p_first: share of the resamples with rank 1, ties included.
    score: in 0..1. attempts: total. attempts_half_width, items_half_width: of the score, at `level`; NaN where
        undefined, with the reason in `reasons` under the field's name.
    contenders: model indices that could be first, best first. best_set: model indices not proven worse than any.
    excluded: models that are not ranked. warnings: plain sentences.
    """

    items: int
    level: float
    reps: int
    method: str
    model: Ints
    rank: Ints
    rank_lower: Ints
    rank_upper: Ints
    could_be_first: NDArray[np.bool_]
    p_first: Floats
    score: Floats
    attempts: Ints
    attempts_half_width: Floats
    items_half_width: Floats
    contenders: Ints
    best_set: Ints
    excluded: tuple[Excluded, ...]
    reasons: dict[str, str]
    warnings: tuple[str, ...]

    def document(self, models: Sequence[str], items: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order by identifier, each null beside its reason; `warnings` comes last."""
        out: dict[str, Any] = {f: getattr(self, f) for f in ("items", "level", "reps", "method")}
        out["contenders"] = [models[i] for i in self.contenders]
        out["best_set"] = [models[i] for i in self.best_set]
        fields = self._fields[self._fields.index("rank") : self._fields.index("contenders")]
        columns = {"model": [models[i] for i in self.model]} | {f: getattr(self, f) for f in fields}
        out["models"] = rows(columns, self.reasons)
        excluded = {
            "model": [models[e.model] for e in self.excluded],
            "missing": [[items[j] for j in e.missing] for e in self.excluded],
            "score_on_own_items": [e.score_on_own_items for e in self.excluded],
        }
        out["excluded"] = rows(excluded, {"score_on_own_items": "it has no item"})
        out["warnings"] = list(self.warnings)
        return out


def competition_ranks(sums: list[int], tolerance: int = 0) -> Ints:
    """1 + number of sums larger by more than the tolerance, for exact integers (chains of near ties share a rank)."""
    order = sorted(range(len(sums)), key=lambda i: -sums[i])
    out = np.empty(len(sums), dtype=np.int64)
    rank, last = 1, None
    for position, i in enumerate(order, 1):
        if last is not None and last - sums[i] > tolerance:
            rank = position
        out[i], last = rank, sums[i]
    return out


def _limbs(values: NDArray[Any], draws: int) -> list[Floats]:
    """values (R, G) >= 0 as float64 digits, highest first, such that a sum of `draws` digits is exact in float64."""
    width = EXACT - draws.bit_length()
    count = max(1, -(-int(values.max(initial=0)).bit_length() // width))
    digits = [(values >> (width * i)) & ((1 << width) - 1) for i in range(count)]
    return [x.astype(np.float64) for x in reversed(digits)]


def _sorted_rows(sums: list[Floats], draws: int, tolerance: int, top: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Models by falling score in each row, and where a score is strictly below the one before: both (B, R).

    sums: digits of the sums (B, R), highest first; top: bound of a single-digit sum.
    """
    rows, n = sums[0].shape
    bits = max(1, (n - 1).bit_length())
    below = np.zeros((rows, n), dtype=bool)
    if len(sums) == 1 and top.bit_length() + bits < 63:  # score and index packed in one integer: one plain sort
        keys = ((top - sums[0].astype(np.int64)) << bits) | np.arange(n)
        keys.sort(axis=1)
        score = keys >> bits
        below[:, 1:] = (score[:, 1:] - score[:, :-1]) > tolerance
        return keys & ((1 << bits) - 1), below
    width = EXACT - draws.bit_length()
    for high, low in zip(sums[-2::-1], sums[:0:-1], strict=True):  # carry, from the lowest digit up
        carry = np.floor(np.ldexp(low, -width))
        low -= np.ldexp(carry, width)
        high += carry
    order = np.lexsort(tuple(-x for x in reversed(sums)), axis=1)
    for digit in sums:
        ordered = np.take_along_axis(digit, order, axis=1)
        below[:, 1:] |= (
            (ordered[:, :-1] - ordered[:, 1:]) > tolerance if len(sums) == 1 else (ordered[:, :-1] != ordered[:, 1:])
        )
    return order, below


def resampled_ranks(
    values: NDArray[Any], reps: int, seed: int, tolerance: int = 0, chunk: int | None = None
) -> NDArray[Any]:
    """How often each model has each rank when the G columns are drawn G times with replacement.

    values: (R, G) integers >= 0, int64 or object: a model's total on each item or cluster. All models share the
    columns, so the sum of totals orders them as the sum of totals over the sum of sizes does.
    tolerance: sums closer than this are ties (0 for exact values).
    Returns (R, R) int32 (int64 from 2^31 resamples on), [i, r - 1] the number of resamples in which model i has rank
    r. The random stream does not depend on `chunk`, the resamples held at once.
    """
    n, units_ = values.shape
    low = values - values.min(axis=0)  # the same shift for every model
    low = low // max(1, math.gcd(*[int(x) for x in np.unique(low)])) if tolerance == 0 else low
    top = int(low.max(initial=0)) * units_
    if tolerance and top.bit_length() > EXACT:
        shift = top.bit_length() - EXACT
        low, top, tolerance = low >> shift, top >> shift, (tolerance >> shift) + units_ + 1
    digits = _limbs(low, units_)
    single = len(digits) == 1 and top < 2**24  # float32 and float64 are both exact below their bound
    dtype = np.dtype(np.float32 if single else np.float64)
    columns: list[NDArray[Any]] = [np.ascontiguousarray(x.T, dtype=dtype) for x in digits]
    step = max(1, min(reps, chunk or CHUNK_CELLS // max(units_, n)))
    rng = np.random.default_rng(seed)
    out = np.zeros((n, n), dtype=np.int32 if reps < 2**31 else np.int64)
    held = np.empty((min(reps, max(step, HELD // n)), n), dtype=np.int16 if n < 2**15 else np.int32)
    full = 0
    position = np.arange(n)
    for start in range(0, reps, step):
        rows = min(step, reps - start)
        drawn = rng.integers(0, units_, size=(rows, units_), dtype=np.int64)
        drawn += (np.arange(rows) * units_)[:, None]
        counts: NDArray[Any] = np.bincount(drawn.ravel(), minlength=rows * units_).reshape(rows, units_).astype(dtype)
        order, below = _sorted_rows([counts @ x for x in columns], units_, tolerance, top)
        if full + rows > len(held):
            _tally(held[:full], out)
            full = 0
        place = np.maximum.accumulate(np.where(below, position, 0), axis=1).astype(held.dtype)
        np.put_along_axis(held[full : full + rows], order, place, axis=1)
        full += rows
    _tally(held[:full], out)
    return out


def _tally(places: NDArray[Any], out: NDArray[Any]) -> None:
    """Add places (B, R), one resample a row, to out (R, R), some models at a time so that memory is walked in order."""
    n = places.shape[1]
    step = max(1, CHUNK_CELLS // max(n, len(places)))
    for start in range(0, n, step):
        some = places[:, start : start + step].T.astype(np.int64)
        some += (np.arange(len(some)) * n)[:, None]
        out[start : start + step] += np.bincount(some.ravel(), minlength=len(some) * n).reshape(-1, n).astype(out.dtype)


def rank_quantile(frequency: NDArray[Any], q: Fraction) -> Ints:
    """Inverted-CDF q-quantile of the ranks, (R,), from their frequency (R, R)."""
    least = order_statistic(q, int(frequency[0].sum()))
    out = np.empty(len(frequency), dtype=np.int64)
    step = max(1, 2**22 // frequency.shape[1])
    for start in range(0, len(out), step):
        some = slice(start, start + step)
        out[some] = np.argmax(np.cumsum(frequency[some], axis=1, dtype=np.int64) >= least, axis=1) + 1
    return out


def _empty(counts: Ints, excluded: tuple[Excluded, ...], level: float, reps: int, warnings: list[str]) -> Ranking:
    i, f = np.zeros(0, dtype=np.int64), np.zeros(0)
    b = np.zeros(0, dtype=bool)
    warnings.append("no model has attempts on every item, so none is ranked")
    return Ranking(
        counts.shape[1], level, reps, "bootstrap", i, i, i, i, b, f, f, i, f, f, i, i, excluded, {}, tuple(warnings)
    )


def _excluded(counts: Ints, y: Floats, full: NDArray[np.bool_]) -> tuple[Excluded, ...]:
    found = []
    for i in np.flatnonzero(~full):
        own = counts[i] > 0
        score = float((y[i, own] / counts[i, own]).mean()) if own.any() else math.nan
        found.append(Excluded(int(i), np.flatnonzero(~own), score))
    return tuple(found)


def _warnings(counts: Ints, scores: Scores, groups: int, clustered: bool) -> list[str]:
    found = []
    if not scores.exact:
        found.append(
            "no denominator up to 1000000 fits the scores, or the attempts have no usable common multiple: "
            f"scores closer than {2 / scores.denominator:.1g} are taken as ties"
        )
    if groups == 1:
        found.append(f"with one {'cluster' if clustered else 'item'} there is nothing to resample")
    if np.any(counts != counts[0]):
        found.append(
            "the models have unequal attempts on some items: best_set then assumes that differences are symmetric"
        )
    return found


def rank(
    attempts: NDArray[Any],
    correct: NDArray[Any],
    cluster: NDArray[Any] | None = None,
    level: Level = "0.95",
    reps: int = 4000,
    seed: int = 0,
    chunk: int | None = None,
) -> Ranking:
    """Rank the complete models, with bootstrap rank intervals and the set of models that may be the best.

    attempts, correct: (N, M). cluster: (M,) codes, then clusters are resampled and signs flip per cluster; score =
    sum of sums / sum of sizes. level: taken as its decimal. Raises InputError.
    """
    counts, y = check(attempts, correct, cluster)
    exact_level = as_fraction(level)
    if reps < 1:
        raise InputError(f"reps must be at least 1, not {reps}")
    full = complete(counts)
    excluded = _excluded(counts, y, full)
    warnings: list[str] = []
    if excluded:
        few = len(excluded)
        warnings.append(f"{few} of {len(full)} models {'lacks' if few == 1 else 'lack'} some items: not ranked")
    if not full.any():
        return _empty(counts, excluded, float(exact_level), reps, warnings)

    names = np.flatnonzero(full)
    counts, y = counts[full], y[full]
    m = counts.shape[1]
    codes, sizes = units(cluster, m)
    scores = integers(counts, y)
    warnings += _warnings(counts, scores, len(sizes), cluster is not None)
    sums = totals(scores.values)
    slack = 0 if scores.exact else m
    observed = competition_ranks(sums, slack)
    by_unit = scores.values
    if codes is not None:
        wide = scores.values.dtype == object or scores.denominator * m >= 2**62
        by_unit = sum_by(scores.values.astype(object) if wide else scores.values, codes)
    frequency = resampled_ranks(by_unit, reps, seed, 0 if scores.exact else len(sizes) * int(sizes.max()), chunk)
    lower = rank_quantile(frequency, (1 - exact_level) / 2)
    upper = rank_quantile(frequency, (1 + exact_level) / 2)
    score = np.array([s / (scores.denominator * m) for s in sums])
    tried = counts.sum(axis=1)
    best = best_set(scores, sums, exact_level, codes, seed=seed)

    order = np.argsort(observed, kind="stable")
    could = lower == 1
    return Ranking(
        items=m,
        level=float(exact_level),
        reps=reps,
        method="bootstrap",
        model=names[order],
        rank=observed[order],
        rank_lower=lower[order],
        rank_upper=upper[order],
        could_be_first=could[order],
        p_first=frequency[order, 0] / reps,
        score=score[order],
        attempts=tried[order],
        attempts_half_width=attempts_half_width(score, tried, exact_level)[order],
        items_half_width=items_half_width(y / counts, exact_level)[order],
        contenders=names[order[could[order]]],
        best_set=names[order[best[order]]],
        excluded=excluded,
        reasons={"items_half_width": ONE_ITEM} if m == 1 else {},
        warnings=tuple(warnings),
    )
