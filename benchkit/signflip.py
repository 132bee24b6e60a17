"""Paired comparison of models by the exact sign-flip test over items.

d_j = difference of success rates on item j. If the two models are exchangeable on every item, d_j is symmetric about
0, and all 2^k signs of the nonzero d_j are equally likely: `benchkit.flips` counts them. With unequal attempts on an
item the symmetry is an assumption.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit import estimators, multiplicity
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.estimators import MEAN, Estimator
from benchkit.fisher import fisher_exact, hypergeometric_quantile
from benchkit.flips import DRAWS, Alternative, FlipTest, sign_flip
from benchkit.intervals import ONE_CLUSTER, Sums, difference_interval
from benchkit.levels import Level, as_fraction, floor_float
from benchkit.maxt import maxt
from benchkit.power import (
    BEYOND,
    CLUSTERED,
    MORE_THAN_DIFFERS,
    MOST_ITEMS,
    NEVER_DIFFER,
    OUT_OF_REACH,
    TOO_MANY,
    detectable_difference,
    detectable_exact,
    items_needed,
)
from benchkit.scores import (
    INT64,
    Floats,
    Ints,
    Scores,
    check,
    differences,
    sum_by,
    totals,
    units,
)

BLOCK_CELLS = 2**21
FEW = 20  # clusters below which their spread is hardly known
NUMPY_TRIALS = 10**9  # numpy's hypergeometric takes fewer
SIDES = ("model_a", "model_b")
ROW_FIELDS = (
    "items",
    "difference",
    "lower",
    "upper",
    "discordant",
    "p",
    "p_smallest",
    "p_adjusted",
    "significant",
    "equivalent",
    "method",
    "discordance",
    "detectable_difference",
    "detectable_exact",
    "items_needed",
    "p_attempts",
    "p_attempts_adjusted",
)
FISHER = "Fisher's exact test of the counts of right attempts: the same items again, attempts as if independent"
NOTHING_SHARED = "the two models have no item in common"
NOT_WHOLE = "Fisher's test needs whole numbers of correct attempts"


class Comparison(NamedTuple):
    """The result of P comparisons; arrays have shape (P,) unless said, and `difference` is a minus b.

    alternative, alpha, adjust, power, margin, plan: as given. controls: what `adjust` holds at alpha. estimator: what a
        score is. family_size: pairs that differ on some item, adjusted together.
    significant_raw, significant_count: pairs with p, with adjusted p, at most alpha.
    pairs: (P, 2) model indices. items: items both have. difference: of scores on them, -1..1.
    lower, upper: Bonett-Price interval of the difference at level 1 - alpha, over clusters where there are any.
    equivalent: whether its interval at level 1 - 2 alpha lies within +-margin; None without a margin.
    discordant: items on which the two differ. flips: units (items or clusters) with a nonzero difference.
    p, p_se: sign-flip p and its Monte Carlo standard error (NaN where counted). p_smallest: least attainable p.
    p_adjusted, significant: after adjustment. method: (P,) str, `exact`, `symmetry-assumed` (unequal attempts),
        `meet-in-the-middle` (no common denominator) or `monte-carlo`.
    discordance: mean d^2. detectable_difference: normal approximation. detectable_exact: None unless asked for.
    items_needed: for the difference `plan`; None without one.
    p_attempts, p_attempts_adjusted: Fisher's exact test over attempts, None unless asked for.
    A NaN has its reason in `reasons`, under the field's name: one for all pairs, or one a pair.
    """

    alternative: str
    alpha: float
    adjust: str
    controls: str
    power: float
    margin: float | None
    plan: float | None
    estimator: str
    family_size: int
    significant_raw: int
    significant_count: int
    pairs: Ints
    items: Ints
    difference: Floats
    lower: Floats
    upper: Floats
    discordant: Ints
    flips: Ints
    p: Floats
    p_se: Floats
    p_smallest: Floats
    p_adjusted: Floats
    significant: NDArray[np.bool_]
    equivalent: NDArray[np.bool_] | None
    method: tuple[str, ...]
    discordance: Floats
    detectable_difference: Floats
    detectable_exact: Floats | None
    items_needed: list[float] | None
    p_attempts: Floats | None
    p_attempts_adjusted: Floats | None
    reasons: dict[str, str | tuple[str, ...]]
    warnings: tuple[str, ...]

    def document(self, models: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order by identifier, each null beside its reason; `warnings` comes last.

        The Monte Carlo error `p_se` stands only in the rows whose p has one.
        """
        heads = ("alternative", "alpha", "adjust", "controls", "power", "margin", "plan", "estimator", "family_size")
        out: dict[str, Any] = {f: getattr(self, f) for f in heads if getattr(self, f) is not None}
        out |= {"significant_raw": self.significant_raw, "significant": self.significant_count}
        if self.p_attempts is not None:
            out["p_attempts_test"] = FISHER
        columns: dict[str, Any] = {side: [models[i] for i in self.pairs[:, k]] for k, side in enumerate(SIDES)}
        columns |= {f: getattr(self, f) for f in ROW_FIELDS if getattr(self, f) is not None}
        out["pairs"] = rows(columns, self.reasons)
        for row, se in zip(out["pairs"], self.p_se.tolist(), strict=True):
            if se == se:
                row["p_se"] = se
        out["warnings"] = list(self.warnings)
        return out


class _Block(NamedTuple):
    """One block of pairs: fields of Comparison, sums of d, |d| and d^2, those over units for the interval (the fields
    of `intervals.Sums`), and successes and attempts of both."""

    items: Ints
    total: Floats
    absolute: Floats
    squares: Floats
    unit_squares: Floats
    cross: Floats
    sizes: Floats
    groups: Ints
    discordant: Ints
    flip: FlipTest
    exact: NDArray[np.bool_]
    unequal: NDArray[np.bool_]
    counts: Floats


def _block(
    counts: Ints,
    y: Floats,
    scores: Scores,
    a: Ints,
    b: Ints,
    codes: Ints | None,
    alternative: Alternative,
    draws: int,
    seed: int,
) -> _Block:
    shared = (counts[a] > 0) & (counts[b] > 0)
    d = differences(scores, a, b, shared, codes)
    items = np.count_nonzero(shared, axis=1).astype(np.int64)
    raw = np.where(shared, scores.values[a] - scores.values[b], 0)
    one = scores.denominator
    if raw.dtype == object or one * raw.shape[1] >= INT64:
        total = np.array([s / one for s in _signed_totals(raw)])
    else:
        total = raw.sum(axis=1) / one
    rate = (raw / one).astype(np.float64)
    squares = np.einsum("ij,ij->i", rate, rate)
    unit_squares, cross, sizes = squares, np.asarray(total, np.float64), items.astype(np.float64)
    groups = items
    if codes is not None:
        by_unit, size = sum_by(rate, codes), sum_by(shared.astype(np.float64), codes)
        groups = np.count_nonzero(size, axis=1).astype(np.int64)
        unit_squares, cross, sizes = (np.einsum("ij,ij->i", x, y) for x, y in ((by_unit, by_unit), (by_unit, size),
                                                                               (size, size)))  # fmt: skip
    return _Block(
        items=items,
        total=total,
        absolute=np.abs(rate).sum(axis=1),
        squares=squares,
        unit_squares=unit_squares,
        cross=cross,
        sizes=sizes,
        groups=groups,
        discordant=np.count_nonzero(raw, axis=1).astype(np.int64),
        flip=sign_flip(d, alternative, draws, seed),
        exact=d.tolerance == 0,
        unequal=np.any(shared & (counts[a] != counts[b]), axis=1),
        counts=np.stack([(x * shared).sum(axis=1) for x in (y[a], counts[a], y[b], counts[b])], axis=1),
    )


def _signed_totals(raw: NDArray[Any]) -> list[int]:
    up, down = totals(np.maximum(raw, 0)), totals(np.maximum(-raw, 0))
    return [u - v for u, v in zip(up, down, strict=True)]


def draw_down(counts: Ints, y: Floats, seed: int, pair: tuple[int, int]) -> tuple[Ints, Floats]:
    """A pair's rows (2, M) with attempts drawn down to the smaller number on each item, without replacement.

    The successes left are hypergeometric. The stream depends on the seed and the pair alone. Raises InputError for
    fractional scores, whose single attempts are not known.
    """
    if np.any(y != np.rint(y)):
        raise InputError("scores are fractional: attempts can't be drawn down to equal numbers")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=pair))
    least = counts.min(axis=0)
    good = y.astype(np.int64)
    fewer = np.broadcast_to(least, counts.shape)
    large = (counts >= NUMPY_TRIALS) & (counts > fewer)
    small = counts < NUMPY_TRIALS
    left = rng.hypergeometric(good * small, (counts - good) * small, fewer * small)
    for i, j in np.argwhere(large & (fewer > 0)).tolist():
        n, some = int(counts[i, j]), int(least[j])
        left[i, j] = hypergeometric_quantile(rng.random(), some, n - some, int(good[i, j]))
    drawn = np.where(counts > least, left, good)
    return fewer.copy(), drawn.astype(np.float64)


def _blocks(
    counts: Ints,
    y: Floats,
    scores: Scores,
    of: Estimator,
    pairs: Ints,
    names: Ints,
    codes: Ints | None,
    equalize: bool,
    alternative: Alternative,
    draws: int,
    seed: int,
) -> tuple[_Block, Ints]:
    """All pairs, block by block; also the indices of the pairs that were drawn down.

    pairs: of the rows of counts, which are the models `names` of the table.
    """
    m = counts.shape[1]
    fits = np.zeros(len(counts), dtype=bool)
    if not scores.exact:
        fits[:] = [estimators.scores(n[None, :], s[None, :], of).exact for n, s in zip(counts, y, strict=True)]
    found: list[tuple[Ints, _Block]] = []
    changed: list[int] = []
    step = max(1, BLOCK_CELLS // m)
    for start in range(0, len(pairs), step):
        rows = np.arange(start, min(start + step, len(pairs)))
        a, b = pairs[rows].T
        alone = fits[a] & fits[b]  # a pair may have a common denominator where the whole table has none
        if equalize:
            alone |= np.any((counts[a] != counts[b]) & (counts[a] > 0) & (counts[b] > 0), axis=1)
        together = ~alone
        if together.any():
            args = (counts, y, scores, a[together], b[together], codes, alternative, draws, seed)
            found.append((rows[together], _block(*args)))
        for row in rows[alone].tolist():
            i, j = (int(x) for x in pairs[row])
            n2, y2 = counts[[i, j]], y[[i, j]]
            both = np.all(n2 > 0, axis=0)
            if equalize and np.any(n2[0, both] != n2[1, both]):
                n2, y2 = draw_down(n2, y2, seed, (int(names[i]), int(names[j])))
                changed.append(row)
            n2, y2 = np.where(both, n2, 0), np.where(both, y2, 0.0)
            zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
            own = estimators.scores(n2, y2, of)
            found.append((np.array([row]), _block(n2, y2, own, zero, one, codes, alternative, draws, seed)))
    order = np.argsort(np.concatenate([rows for rows, _ in found]))

    def joined(parts: list[Any]) -> Any:
        return np.concatenate(parts)[order]

    blocks = [x for _, x in found]
    flip = FlipTest(*(joined([getattr(x.flip, f) for x in blocks]) for f in FlipTest._fields))
    fields = {f: joined([getattr(x, f) for x in blocks]) for f in _Block._fields if f != "flip"}
    return _Block(flip=flip, **fields), np.array(changed, dtype=np.int64)


def _methods(block: _Block) -> tuple[str, ...]:
    names = np.where(block.exact, "exact", "meet-in-the-middle")
    names = np.where(np.isnan(block.flip.se), names, "monte-carlo")
    return tuple(np.where(block.unequal, "symmetry-assumed", names).tolist())


def _warnings(
    block: _Block,
    items: int,
    codes: Ints | None,
    alpha: Fraction,
    drawn_down: int,
    draws: int,
    seed: int,
    floor: float | None,
) -> list[str]:
    pairs = len(block.items)
    found = []

    def say(mask: NDArray[np.bool_], text: str) -> None:
        if mask.any():
            found.append(f"{int(mask.sum())} of {pairs} pairs {text}")

    partial = block.items < items
    least = int(block.items.min()) if partial.any() else items
    say(partial, f"are compared on fewer than all {items} items (the fewest: {least})")
    say(block.unequal, "have unequal attempts on some item: p assumes that differences are symmetric about 0")
    say(~block.exact, "have no common denominator of a usable size: sums equal up to rounding count as ties")
    say(~np.isnan(block.flip.se), f"have too many terms to count: p comes from {draws} random sign patterns")
    if codes is not None:
        lowest, groups = float(block.flip.smallest.min()), int(codes.max()) + 1
        never = int(np.count_nonzero(block.flip.smallest > floor_float(alpha)))
        text = f"signs flip by {groups} clusters: the least p that a pair could have is {lowest:.2g}"
        found.append(f"{text}, and {never} of {pairs} pairs can't be significant" if never else text)
        if groups < FEW:
            found.append(
                f"{groups} clusters tell little of how clusters vary: intervals and detectable differences are rough"
            )
    if floor is not None and floor > floor_float(alpha):
        found.append(f"{draws} random sign patterns give no p below {floor:.2g}: no pair can be significant")
    if drawn_down:
        found.append(f"{drawn_down} of {pairs} pairs had attempts drawn down at random to equal numbers (seed {seed})")
    return found


def _fisher(counts: Floats, alternative: Alternative) -> Floats:
    out = np.full(len(counts), np.nan)
    whole = np.all(counts == np.rint(counts), axis=1) & (counts[:, 1] > 0)
    for i in np.flatnonzero(whole).tolist():
        x, n, z, m = (int(v) for v in counts[i])
        out[i] = fisher_exact(x, n, z, m, alternative)
    return out


def compare(
    attempts: NDArray[Any],
    correct: NDArray[Any],
    pairs: NDArray[Any],
    *,
    alternative: Alternative = "two-sided",
    alpha: Level = "0.05",
    adjust: multiplicity.Method = "holm",
    power: Level = "0.8",
    cluster: NDArray[Any] | None = None,
    estimator: Estimator = MEAN,
    equalize: bool = False,
    fisher: bool = False,
    exact_power: bool = False,
    margin: Level | None = None,
    plan: Level | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    models: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
) -> Comparison:
    """Compare pairs (P, 2) of models on the items both have.

    attempts, correct: (N, M). cluster: (M,) codes, then signs flip per cluster. alternative ``greater``: a is better.
    alpha, power, margin, plan: taken as their decimals. estimator: what a score is. equalize: draw attempts down to
    equal numbers on every item, then all fields of the pair are of what is left. fisher: also test over attempts.
    exact_power: also `detectable_exact`. margin: also `equivalent`. plan: also `items_needed` for this difference.
    draws: random sign patterns, where p is not counted and for ``maxt``. models, items: names for messages.
    Raises InputError.
    """
    counts, y = check(attempts, correct, cluster)
    which = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if which.size and (which.min() < 0 or which.max() >= len(counts)):
        raise InputError(f"a pair names a model outside 0..{len(counts) - 1}")
    if np.any(which[:, 0] == which[:, 1]):
        raise InputError("a model can't be compared with itself")
    if len(which) == 0:
        raise InputError("there is no pair to compare")
    if equalize and adjust == "maxt":
        raise InputError("maxt flips the signs of one table: it does not go with attempts drawn down pair by pair", "")
    exact_alpha, exact_power_ = as_fraction(alpha, "alpha"), as_fraction(power, "power")
    if margin is not None and exact_alpha * 2 >= 1:
        raise InputError(f"equivalence has no interval at alpha {float(exact_alpha):g}: it must be below 0.5", "")
    limit = floor_float(exact_alpha)
    codes, _ = units(cluster, counts.shape[1])
    used, local = np.unique(which, return_inverse=True)
    local = local.reshape(which.shape)
    counts, y = counts[used], y[used]
    scores = estimators.scores(counts, y, estimator, None if models is None else [models[i] for i in used], items)
    block, changed = _blocks(counts, y, scores, estimator, local, used, codes, equalize, alternative, draws, seed)
    flip = block.flip
    n = np.where(block.items > 0, block.items, np.nan)
    family = block.discordant > 0
    if adjust == "maxt":
        shared = None if np.all(counts > 0) else counts > 0
        adjusted_p = maxt(scores, local, shared, codes, alternative, draws, seed)
        adjusted = multiplicity.Adjusted(adjusted_p, int(family.sum()))
    else:
        adjusted = multiplicity.adjust(flip.p, family, adjust, flip.smallest, exact_alpha)
    groups = None if codes is None else np.maximum(block.groups, 0)
    sums = Sums(n, block.total, block.unit_squares, block.cross, block.sizes, groups)
    bounds = difference_interval(sums, 1 - exact_alpha)
    within = None
    if margin is not None:
        narrow, most = difference_interval(sums, 1 - 2 * exact_alpha), float(as_fraction(margin, "margin"))
        within = (narrow.lower >= -most) & (narrow.upper <= most)  # an undefined interval lies nowhere

    reasons: dict[str, str | tuple[str, ...]] = {}
    alone = block.items == 0
    never = np.where(alone, NOTHING_SHARED, NEVER_DIFFER)
    if alone.any():
        reasons |= dict.fromkeys(("difference", "discordance"), NOTHING_SHARED)
    reasons |= dict.fromkeys(("lower", "upper"), tuple(np.where(alone, NOTHING_SHARED, ONE_CLUSTER).tolist()))
    discordance, spread = block.squares / n, block.unit_squares / n
    least = detectable_difference(spread, n, exact_alpha, exact_power_, alternative)
    if np.isnan(least).any():
        reasons["detectable_difference"] = tuple(never.tolist())
    in_reach = _exact_power(block, discordance, codes, exact_alpha, exact_power_, alternative) if exact_power else None
    if in_reach is not None:
        why = CLUSTERED if codes is not None else np.where(block.items > MOST_ITEMS, TOO_MANY, OUT_OF_REACH)
        reasons["detectable_exact"] = tuple(np.where(discordance > 0, why, never).tolist())
    needed: list[float] | None = None
    if plan is not None:
        reach = block.absolute / n >= float(as_fraction(plan, "plan")) * (1 - 1e-12)
        size = items_needed(spread, plan, exact_alpha, exact_power_, alternative)
        needed = [int(x) if ok and x == x else math.nan for x, ok in zip(size.tolist(), reach.tolist(), strict=True)]
        why = np.where(reach, BEYOND, MORE_THAN_DIFFERS)
        reasons["items_needed"] = tuple(np.where(discordance > 0, why, never).tolist())
    over_attempts = over_attempts_adjusted = None
    if fisher:
        rule: multiplicity.Rule = "holm" if adjust == "maxt" else adjust
        over_attempts = _fisher(block.counts, alternative)
        tested = ~np.isnan(over_attempts)
        over_attempts_adjusted = multiplicity.adjust(over_attempts, tested, rule, np.zeros(len(which)), exact_alpha).p
        why = np.where(alone, NOTHING_SHARED, NOT_WHOLE)
        reasons |= dict.fromkeys(("p_attempts", "p_attempts_adjusted"), tuple(why.tolist()))
    floor = 1 / (1 + draws) if adjust == "maxt" or not np.isnan(flip.se).all() else None
    return Comparison(
        alternative=alternative,
        alpha=float(exact_alpha),
        adjust=adjust,
        controls=multiplicity.CONTROLS[adjust],
        power=float(exact_power_),
        margin=None if margin is None else float(as_fraction(margin, "margin")),
        plan=None if plan is None else float(as_fraction(plan, "plan")),
        estimator=str(estimator),
        family_size=adjusted.family_size,
        significant_raw=int(np.count_nonzero(flip.p <= limit)),
        significant_count=int(np.count_nonzero(adjusted.p <= limit)),
        pairs=which,
        items=block.items,
        difference=block.total / n,
        lower=bounds.lower,
        upper=bounds.upper,
        discordant=block.discordant,
        flips=flip.flips,
        p=flip.p,
        p_se=flip.se,
        p_smallest=flip.smallest,
        p_adjusted=adjusted.p,
        significant=adjusted.p <= limit,
        equivalent=within,
        method=_methods(block),
        discordance=discordance,
        detectable_difference=least,
        detectable_exact=in_reach,
        items_needed=needed,
        p_attempts=over_attempts,
        p_attempts_adjusted=over_attempts_adjusted,
        reasons=reasons,
        warnings=tuple(_warnings(block, counts.shape[1], codes, exact_alpha, len(changed), draws, seed, floor)),
    )


def _exact_power(
    block: _Block, discordance: Floats, codes: Ints | None, alpha: Fraction, power: Fraction, alternative: Alternative
) -> Floats:
    """`detectable_exact` of every pair, NaN where there is none."""
    if codes is not None:
        return np.full(len(discordance), np.nan)
    pairs = zip(np.nan_to_num(discordance), block.items, strict=True)
    found = [detectable_exact(float(d), int(m), alpha, power, alternative) for d, m in pairs]
    return np.array(found, dtype=np.float64)
