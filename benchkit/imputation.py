"""Scores where cells are missing: what a fit expects there, and draws of it for the bootstrap.

A fit's posterior gives cell (i, j) the success probability p_ij^s = sigmoid(a_j^s (theta_i^s - b_j^s)) at draw s. A
missing cell is filled with its expected score, or, resample by resample, with that of a binomial number of successes at
one of the draws. This takes what is missing to be missing at random: whether a model has an item must not depend on how
it would do there, given the model and the item.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.estimators import Estimator, expected, numerators, whole
from benchkit.irt.pointwise import Draws
from benchkit.resampling import Fill
from benchkit.scores import Floats, Ints

VALUES = 2**20  # probabilities held at a time


class Missing(NamedTuple):
    """E missing cells: their models and items (E,), and the attempts (E,) that each would have had."""

    models: Ints
    items: Ints
    attempts: Ints


def missing_cells(attempts: Ints) -> Missing:
    """The cells without attempts. A model's missing cells get the number of attempts it has most often (the least)."""
    usual = np.zeros(len(attempts), dtype=np.int64)
    for i, row in enumerate(attempts):
        sizes, counts = np.unique(row[row > 0], return_counts=True)
        usual[i] = sizes[np.argmax(counts)] if sizes.size else 0
    models, items = np.nonzero(attempts == 0)
    return Missing(models, items, usual[models])


def probabilities(draws: Draws, s: NDArray[np.integer] | slice, models: Ints, items: Ints) -> Floats:
    """p (rows, E) of cells (models, items), both (E,), at the draws `s`."""
    eta = draws.theta[s][:, models].astype(np.float64) - draws.b[s][:, items]
    if draws.a is not None:
        eta *= draws.a[s][:, items]
    with np.errstate(over="ignore"):  # exp(inf) is a probability of 0
        return np.asarray(1.0 / (1.0 + np.exp(-eta)))


def expected_scores(draws: Draws, cells: Missing, of: Estimator) -> Floats:
    """(E,) posterior mean of the score of every missing cell."""
    count = len(draws.theta)
    step = max(1, VALUES // max(1, len(cells.models)))
    total = np.zeros(len(cells.models))
    for start in range(0, count, step):
        s = slice(start, start + step)
        rho = None if draws.rho is None else draws.rho[s][:, None]
        total += expected(probabilities(draws, s, cells.models, cells.items), of, rho).sum(axis=0)
    return total / count


class Imputer:
    """Draws scores of the missing cells, resample by resample, as multiples of 1/denominator.

    Resample r takes the fit's draw r modulo their number. The random numbers depend on the seed alone, not on how many
    resamples are asked for at a time.
    """

    def __init__(self, draws: Draws, cells: Missing, of: Estimator, denominator: int, seed: int) -> None:
        """denominator: of `Scores`; one that is no multiple of a cell's own rounds to its grid."""
        self.draws, self.cells, self.denominator = draws, cells, denominator
        self.shared, self.trials = (np.random.default_rng([seed, k]) for k in (1, 2))
        tables, where, length = [], {}, 0
        for n in np.unique(cells.attempts).tolist():
            values = [round(x * denominator / whole(of, n)) for x in numerators(of, n)]
            if whole(of, n) and denominator % whole(of, n) == 0:
                values = [x * (denominator // whole(of, n)) for x in numerators(of, n)]
            where[n] = length
            tables += values
            length += n + 1
        self.table = np.array(tables, dtype=np.int64)
        self.offset = np.array([where[n] for n in cells.attempts.tolist()], dtype=np.int64)

    def take(self, start: int, rows: int) -> Iterator[tuple[slice, Ints]]:
        """Scores (some rows, E) of resamples start, start + 1, ..., in order, a few at a time."""
        step = max(1, VALUES // max(1, self.offset.size))
        for first in range(0, rows, step):
            some = slice(first, min(first + step, rows))
            s = np.arange(start + some.start, start + some.stop) % len(self.draws.theta)
            p = probabilities(self.draws, s, self.cells.models, self.cells.items)
            if self.draws.rho is not None:
                rho = self.draws.rho[s].astype(np.float64)[:, None]
                kappa = (1.0 - rho) / rho
                p = self.shared.beta(np.maximum(p * kappa, 1e-300), np.maximum((1.0 - p) * kappa, 1e-300))
            yield some, self.table[self.offset + self.trials.binomial(self.cells.attempts, p)]

    def fill(self, models: int, codes: Ints | None, most: int) -> Fill:
        """For `resampling`: sums of `models` models; codes: the unit of each item, or None; most: items a resample."""
        unit = self.cells.items if codes is None else codes[self.cells.items]
        starts = np.searchsorted(self.cells.models, np.arange(models))
        has = np.bincount(self.cells.models, minlength=models) > 0  # cells are sorted by model

        def sums(counts: NDArray[Any], start: int) -> NDArray[Any]:
            out = np.zeros((len(counts), models))
            for some, scores in self.take(start, len(counts)):
                weighted = counts[some][:, unit] * scores
                out[some, has] = np.add.reduceat(weighted, starts[has], axis=1)
            return out.astype(counts.dtype)

        return Fill(sums, self.denominator * most)


def pooled(
    draws: Draws, models: Ints, items: Ints, of: Estimator, tails: tuple[float, float]
) -> tuple[Floats, Floats, Floats]:
    """Posterior mean, lower and upper bound (R,) of the expected score of `models` over `items`.

    tails: the quantiles that the bounds are, such as .025 and .975. These are scores with partial pooling: a model's
    attempts are weighed against what its ability and the other models' results say.
    """
    count = len(draws.theta)
    found = np.empty((count, len(models)))
    step = max(1, VALUES // max(1, len(items)))
    for at, i in enumerate(models.tolist()):
        cells = np.full(len(items), i, dtype=np.int64)
        for start in range(0, count, step):
            s = slice(start, start + step)
            rho = None if draws.rho is None else draws.rho[s][:, None]
            found[s, at] = expected(probabilities(draws, s, cells, items), of, rho).mean(axis=1)
    lower, upper = np.quantile(found, tails, axis=0, method="inverted_cdf")
    return found.mean(axis=0), lower, upper
