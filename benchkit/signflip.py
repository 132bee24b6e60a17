"""Paired comparison of models by the exact sign-flip test over items.

d_j = difference of success rates on item j. If the two models are exchangeable on every item, d_j is symmetric about
0, and all 2^k signs of the nonzero d_j are equally likely: `benchkit.flips` counts them. With unequal attempts on an
item the symmetry is an assumption.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit import multiplicity
from benchkit.documents import rows
from benchkit.errors import InputError
from benchkit.fisher import fisher_exact, hypergeometric_quantile
from benchkit.flips import DRAWS, Alternative, FlipTest, sign_flip
from benchkit.intervals import difference_interval
from benchkit.levels import Level, as_fraction, floor_float
from benchkit.power import (
    MOST_ITEMS,
    NEVER_DIFFER,
    OUT_OF_REACH,
    TOO_MANY,
    detectable_difference,
    detectable_exact,
)
from benchkit.scores import (
    INT64,
    Floats,
    Ints,
    Scores,
    best_complete,
    check,
    differences,
    integers,
    totals,
    units,
)

__all__ = ["Comparison", "against", "best_complete", "compare", "every_pair"]

BLOCK_CELLS = 2**21
NUMPY_TRIALS = 10**9  # numpy's hypergeometric takes fewer
SIDES = ("model_a", "model_b")
ROW_FIELDS = (
    "items",
    "difference",
    "lower",
    "upper",
    "discordant",
    "p",
    "p_adjusted",
    "significant",
    "method",
    "discordance",
    "detectable_difference",
    "detectable_exact",
    "p_attempts",
    "p_attempts_adjusted",
)
NOTHING_SHARED = "the two models have no item in common"
NOT_WHOLE = "Fisher's test needs whole numbers of correct attempts"


class Comparison(NamedTuple):
    """The result of P comparisons; arrays have shape (P,) unless said, and `difference` is a minus b.

    alternative, alpha, adjust, power: as given. family_size: pairs that differ on some item, adjusted together.
    significant_raw, significant_count: pairs with p, with adjusted p, at most alpha.
    pairs: (P, 2) model indices. items: items both have. difference: of scores on them, -1..1.
    lower, upper: Bonett-Price interval of the difference at level 1 - alpha.
    discordant: items on which the two differ. flips: units (items or clusters) with a nonzero difference.
    p, p_se: sign-flip p and its Monte Carlo standard error (NaN where counted). p_smallest: least attainable p.
    p_adjusted, significant: after adjustment. method: (P,) str, `exact`, `symmetry-assumed` (unequal attempts),
        `meet-in-the-middle` (no common denominator) or `monte-carlo`.
    discordance: mean d^2. detectable_difference: normal approximation. detectable_exact: None unless asked for.
    p_attempts, p_attempts_adjusted: Fisher's exact test over attempts, None unless asked for.
    A NaN has its reason in `reasons`, under the field's name: one for all pairs, or one a pair.
    """

    alternative: str
    alpha: float
    adjust: str
    power: float
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
    method: tuple[str, ...]
    discordance: Floats
    detectable_difference: Floats
    detectable_exact: Floats | None
    p_attempts: Floats | None
    p_attempts_adjusted: Floats | None
    reasons: dict[str, str | tuple[str, ...]]
    warnings: tuple[str, ...]

    def document(self, models: Sequence[str]) -> dict[str, Any]:
        """Plain values in key order by identifier, each null beside its reason; `warnings` comes last.

        The Monte Carlo error `p_se` stands only in the rows whose p has one.
        """
        out: dict[str, Any] = {f: getattr(self, f) for f in ("alternative", "alpha", "adjust", "power", "family_size")}
        out |= {"significant_raw": self.significant_raw, "significant": self.significant_count}
        columns: dict[str, Any] = {side: [models[i] for i in self.pairs[:, k]] for k, side in enumerate(SIDES)}
        columns |= {f: getattr(self, f) for f in ROW_FIELDS if getattr(self, f) is not None}
        out["pairs"] = rows(columns, self.reasons)
        for row, se in zip(out["pairs"], self.p_se.tolist(), strict=True):
            if se == se:
                row["p_se"] = se
        out["warnings"] = list(self.warnings)
        return out


class _Block(NamedTuple):
    """One block of pairs: fields of Comparison, sums of d and of d^2, successes and attempts of both."""

    items: Ints
    total: Floats
    squares: Floats
    discordant: Ints
    flip: FlipTest
    exact: NDArray[np.bool_]
    unequal: NDArray[np.bool_]
    counts: Floats


def against(reference: int, models: int) -> Ints:
    """(N-1, 2) pairs: the reference against every other model, in the order of the table."""
    others = np.delete(np.arange(models, dtype=np.int64), reference)
    return np.column_stack([np.full(models - 1, reference, dtype=np.int64), others])


def every_pair(models: int) -> Ints:
    """(N(N-1)/2, 2) pairs a < b."""
    return np.column_stack(np.triu_indices(models, 1)).astype(np.int64)


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
    return _Block(
        items=items,
        total=total,
        squares=np.einsum("ij,ij->i", rate, rate),
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
    pairs: Ints,
    codes: Ints | None,
    equalize: bool,
    alternative: Alternative,
    draws: int,
    seed: int,
) -> tuple[_Block, Ints]:
    """All pairs, block by block; also the indices of the pairs that were drawn down."""
    scores = integers(counts, y)
    m = counts.shape[1]
    fits = np.zeros(len(counts), dtype=bool)
    if not scores.exact:
        fits[:] = [integers(n[None, :], s[None, :]).exact for n, s in zip(counts, y, strict=True)]
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
                n2, y2 = draw_down(n2, y2, seed, (i, j))
                changed.append(row)
            n2, y2 = np.where(both, n2, 0), np.where(both, y2, 0.0)
            zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
            found.append(
                (np.array([row]), _block(n2, y2, integers(n2, y2), zero, one, codes, alternative, draws, seed))
            )
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


def _warnings(block: _Block, items: int, drawn_down: int, draws: int, seed: int) -> list[str]:
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
    equalize: bool = False,
    fisher: bool = False,
    exact_power: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """Compare pairs (P, 2) of models on the items both have.

    attempts, correct: (N, M). cluster: (M,) codes, then signs flip per cluster. alternative ``greater``: a is better.
    alpha, power: taken as their decimals. equalize: draw attempts down to equal numbers on every item, then all
    fields of the pair are of what is left. fisher: also test over attempts. exact_power: also `detectable_exact`.
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
    exact_alpha = as_fraction(alpha, "alpha")
    limit = floor_float(exact_alpha)
    codes, _ = units(cluster, counts.shape[1])
    block, changed = _blocks(counts, y, which, codes, equalize, alternative, draws, seed)
    flip = block.flip
    n = np.where(block.items > 0, block.items, np.nan)
    discordance = block.squares / n
    family = block.discordant > 0
    adjusted = multiplicity.adjust(flip.p, family, adjust, flip.smallest, exact_alpha)
    bounds = difference_interval(n, block.total, block.squares, 1 - exact_alpha)

    reasons: dict[str, str | tuple[str, ...]] = {}
    alone = block.items == 0
    never = np.where(alone, NOTHING_SHARED, NEVER_DIFFER)
    least = detectable_difference(discordance, n, exact_alpha, power, alternative)
    if alone.any():
        reasons |= dict.fromkeys(("difference", "lower", "upper", "discordance"), NOTHING_SHARED)
    if np.isnan(least).any():
        reasons["detectable_difference"] = tuple(never.tolist())
    in_reach = None
    if exact_power:
        in_reach = np.array(
            [
                detectable_exact(float(d), int(m), exact_alpha, as_fraction(power, "power"), alternative)
                for d, m in zip(np.nan_to_num(discordance), block.items, strict=True)
            ],
            dtype=np.float64,
        )
        why = np.where(block.items > MOST_ITEMS, TOO_MANY, OUT_OF_REACH)
        reasons["detectable_exact"] = tuple(np.where(discordance > 0, why, never).tolist())
    over_attempts = over_attempts_adjusted = None
    if fisher:
        over_attempts = _fisher(block.counts, alternative)
        over_attempts_adjusted = multiplicity.adjust(over_attempts, family, adjust, np.zeros(len(which)), exact_alpha).p
        why = np.where(alone, NOTHING_SHARED, NOT_WHOLE)
        reasons |= dict.fromkeys(("p_attempts", "p_attempts_adjusted"), tuple(why.tolist()))
    return Comparison(
        alternative=alternative,
        alpha=float(exact_alpha),
        adjust=adjust,
        power=float(as_fraction(power, "power")),
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
        method=_methods(block),
        discordance=discordance,
        detectable_difference=least,
        detectable_exact=in_reach,
        p_attempts=over_attempts,
        p_attempts_adjusted=over_attempts_adjusted,
        reasons=reasons,
        warnings=tuple(_warnings(block, counts.shape[1], len(changed), draws, seed)),
    )
