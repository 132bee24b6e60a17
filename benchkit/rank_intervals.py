"""Four ways to an interval of a model's rank, and what each promises.

bootstrap      resample the items and rank anew            descriptive: no coverage
signflip       exact one-sided tests of every pair         all ranks at once, at any number of items
simultaneous   studentised differences, step-down          all ranks at once, for many items
attempts       signs flipped attempt by attempt            the same items again, each pair by itself
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from benchkit import estimators, pairwise
from benchkit.attempt_flips import attempt_p
from benchkit.best_set import best_set
from benchkit.errors import InputError
from benchkit.estimators import Estimator
from benchkit.flips import DRAWS
from benchkit.imputation import Imputer
from benchkit.levels import floor_float
from benchkit.resampling import rank_quantile, resampled_ranks
from benchkit.scores import INT64, Floats, Ints, Scores, sum_by
from benchkit.simultaneous import simultaneous

Method = Literal["bootstrap", "signflip", "simultaneous", "attempts"]
METHODS: tuple[str, ...] = get_args(Method)
DRAWN = ("bootstrap", "simultaneous")  # the methods that draw at random


class Ranked(NamedTuple):
    """What is ranked: R models on M items.

    counts, y (R, M): attempts and correct. estimator: what a score is. scores: of the cells, exact; 0 where a cell is
    missing. sums, score (R,): the models' total and mean; with what is expected of missing cells. slack: sums no
    farther apart are ties. codes (M,) or None, sizes (G,): the units (`scores.units`). imputer: fills missing cells in
    resamples; None if none is missing. models, items: names for messages, or None.
    """

    counts: Ints
    y: Floats
    estimator: Estimator
    scores: Scores
    sums: list[int]
    score: Floats
    slack: int
    codes: Ints | None
    sizes: Ints
    imputer: Imputer | None
    models: Sequence[str] | None
    items: Sequence[str] | None

    @property
    def unequal(self) -> bool:
        """Whether models have unequal attempts on an item that both have."""
        tried = np.ma.masked_equal(self.counts, 0)
        return bool(np.any(tried.max(axis=0) != tried.min(axis=0)))


class Promise(NamedTuple):
    """What a method's intervals hold.

    intervals: ``marginal``, each by itself, or ``simultaneous``, all at once. validity: ``descriptive``, ``exact``,
    ``symmetry-assumed``, ``monte-carlo`` or ``asymptotic``. over: ``items``, ``clusters`` or ``attempts``, what would
    be others next time. text: the same as a sentence.
    """

    intervals: str
    validity: str
    over: str
    text: str


class RankIntervals(NamedTuple):
    """lower, upper (R,): the best and the worst rank. p_first (R,): share of resamples with rank 1, ties included, NaN
    where none are made. best (R,): who is in the best set. promise: what lower and upper hold. draws: random draws
    made, None where nothing was drawn. warnings: plain sentences."""

    lower: Ints
    upper: Ints
    p_first: Floats
    best: NDArray[np.bool_]
    promise: Promise
    draws: int | None
    warnings: tuple[str, ...] = ()


def rank_intervals(
    t: Ranked, method: Method, level: Fraction, reps: int, seed: int, chunk: int | None = None
) -> RankIntervals:
    """Intervals of the ranks by `method`, and the best set. reps: random draws; chunk: resamples held at once.

    Raises InputError where single attempts can't be compared, and by other methods than the bootstrap for missing
    cells: what is imputed is no result, and no test of it is one.
    """
    if t.imputer and method != "bootstrap":
        raise InputError("missing cells are imputed for the bootstrap only")
    over = "items" if t.codes is None else "clusters"
    if not len(t.counts):
        none = np.zeros(0, dtype=np.int64)
        promise = Promise("marginal", "descriptive", over, "there is no complete model to rank")
        return RankIntervals(none, none, np.zeros(0), np.zeros(0, dtype=bool), promise, None)
    share = f"{float(level):g}"
    tests = None
    if method == "signflip" or t.imputer:
        tests = pairwise.one_sided(t.scores, t.codes, t.counts > 0 if t.imputer else None, seed)
    if t.imputer and tests:  # on the items that both of a pair have
        best = pairwise.undefeated(tests, level)
    else:
        best = best_set(t.scores, t.sums, level, t.codes, seed=seed)
    if method == "bootstrap":
        text = f"how ranks move when {over} are resampled; no coverage is promised, least of all near ties"
        found = _bootstrap(t, level, reps, seed, chunk)
        return RankIntervals(*found, best, Promise("marginal", "descriptive", over, text), reps)
    made, said = None, []
    if method == "simultaneous":
        won = simultaneous(estimators.rates(t.counts, t.y, t.estimator), t.codes, t.sizes, level, reps, seed)
        text = f"all intervals hold the models' ranks at once with a probability near {share}, if {over} are many"
        promise, made = Promise("simultaneous", "asymptotic", over, text), reps
    elif tests:
        won = pairwise.wins(tests, level)
        validity = "symmetry-assumed" if t.unequal else "monte-carlo" if tests.drawn else "exact"
        text = f"all intervals hold the models' ranks at once with a probability of at least {share}, at any number of "
        text += f"{over}, if models of equal score are exchangeable on every one"
        if tests.drawn:
            made = DRAWS
            said.append(f"{tests.drawn} of {tests.p.size - len(t.counts)} tests took too long to count: their p comes "
                        f"from {DRAWS} random sign patterns and can't be below {1 / (1 + DRAWS):.2g}")  # fmt: skip
        promise = Promise("simultaneous", validity, over, text)
    else:
        if t.estimator.k > 1:
            raise InputError(f"--method attempts compares single attempts, and {t.estimator} is of several", "")
        p = attempt_p(t.counts, t.y, t.models, t.items)
        won = (t.score[:, None] > t.score[None, :]) & (p <= floor_float(1 - level))
        text = "which models would differ if these very items were attempted again, each pair by itself; nothing of "
        promise = Promise("marginal", "exact", "attempts", text + "other items")
    return RankIntervals(*pairwise.rank_bounds(won), np.full(len(t.counts), math.nan), best, promise, made, tuple(said))


def _bootstrap(t: Ranked, level: Fraction, reps: int, seed: int, chunk: int | None) -> tuple[Ints, Ints, Floats]:
    """Bounds by the inverse of the distribution function of the resampled ranks, and the share of ranks 1."""
    values = t.scores.values
    if t.codes is not None and t.scores.denominator * values.shape[1] >= INT64:
        values = values.astype(object)
    most = len(t.sizes) * int(t.sizes.max())  # items in a resample
    filled = t.imputer.fill(len(t.counts), t.codes, most) if t.imputer else None
    tolerance = 0 if t.scores.exact else most
    frequency = resampled_ranks(sum_by(values, t.codes), reps, seed, tolerance, chunk, filled)
    lower, upper = (rank_quantile(frequency, (1 + side * level) / 2) for side in (-1, 1))
    return lower, upper, frequency[:, 0] / reps
