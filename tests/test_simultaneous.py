import math
from fractions import Fraction

import numpy as np
import pytest

from benchkit.levels import order_statistic
from benchkit.pairwise import rank_bounds
from benchkit.scores import units
from benchkit.simultaneous import influence, pair_differences, simultaneous

LEVEL = Fraction(19, 20)


def rates(seed, models=6, items=60, spread=1.0):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(rng.normal(0, 1.5, items) - rng.normal(0, spread, models)[:, None]))
    return rng.binomial(4, p) / 4


def by_covariance(r, level, reps, seed):
    """The definition, with the covariance matrix of the scores written out, over ordered pairs."""
    n, m = r.shape
    sigma = np.cov(r) / m
    se = np.sqrt(np.maximum(np.add.outer(np.diag(sigma), np.diag(sigma)) - 2 * sigma, 0))
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal(np.zeros(n), sigma, size=reps) / np.sqrt(rng.chisquare(m - 1, (reps, 1)) / (m - 1))
    pairs = [(k, j) for k in range(n) for j in range(n) if k != j]
    t = {(k, j): (r[k].mean() - r[j].mean()) / se[k, j] for k, j in pairs}
    won: set[tuple[int, int]] = set()
    while True:
        open_ = [x for x in pairs if x not in won]
        if not open_:
            break
        largest = np.max([(z[:, k] - z[:, j]) / se[k, j] for k, j in open_], axis=0)
        critical = np.sort(largest)[order_statistic(level, reps) - 1]
        more = {x for x in open_ if t[x] > critical}
        if not more:
            break
        won |= more
    out = np.zeros((n, n), dtype=bool)
    for k, j in won:
        out[k, j] = True
    return out


class TestTheory:
    def test_influence_has_the_covariance_of_the_scores(self):
        r = rates(0)
        x = influence(r, None, np.ones(60, dtype=int))
        np.testing.assert_allclose(x @ x.T, np.cov(r) / 60, atol=1e-15)

    def test_standard_errors_are_those_of_the_differences(self):
        r = rates(1)
        _, se, _ = pair_differences(r, None, np.ones(60, dtype=int))
        d = r[0] - r[3]
        assert se[0, 3] == pytest.approx(d.std(ddof=1) / math.sqrt(60)) == pytest.approx(se[3, 0])

    def test_clusters_are_cluster_robust(self):
        r = rates(2, items=30)
        codes, sizes = units(np.arange(30) // 3, 30)
        d = r[0] - r[1]
        sums = (d - d.mean()).reshape(10, 3).sum(axis=1)
        _, se, _ = pair_differences(r, codes, sizes)
        assert se[0, 1] == pytest.approx(math.sqrt(10 / 9 * (sums**2).sum()) / 30)

    def test_a_pair_without_spread_gets_two_more_items(self):
        r = np.array([[1.0] * 10, [0.0] * 10, [0.0] * 10])
        difference, se, constant = pair_differences(r, None, np.ones(10, dtype=int))
        longer = np.array([1.0] * 10 + [1, -1])
        assert difference[0, 1] == pytest.approx(longer.mean()) and constant.all()
        assert se[0, 1] == pytest.approx(longer.std() / math.sqrt(12))
        assert se[1, 2] == pytest.approx(np.array([0.0] * 10 + [1, -1]).std() / math.sqrt(12))
        won = simultaneous(r, None, np.ones(10, dtype=int), LEVEL)
        assert won[0, 1:].all() and not won[1:].any()
        two = np.ones(2, dtype=int)
        assert not simultaneous(r[:, :2], None, two, LEVEL).any()  # two items show nothing

    @pytest.mark.parametrize("seed", range(4))
    def test_is_the_definition(self, seed):
        """Another way to draw the same normals gives the same wins, but for pairs within the error of a quantile."""
        r = rates(seed, models=7, items=80)
        got = simultaneous(r, None, np.ones(80, dtype=int), LEVEL, reps=20_000, seed=1)
        want = by_covariance(r, LEVEL, 20_000, 2)
        assert (got != want).sum() <= 1 and want.any()

    def test_step_down_finds_more(self):
        """One model far below: without it the critical value is smaller."""
        r = np.vstack([rates(5, models=3, items=100, spread=0.0), np.zeros((6, 100))])
        won = simultaneous(r, None, np.ones(100, dtype=int), LEVEL)
        assert won[:3, 3:].all()

    def test_one_model_and_one_item(self):
        assert not simultaneous(np.ones((1, 5)), None, np.ones(5, dtype=int), LEVEL).any()
        assert not simultaneous(np.array([[1.0], [0.0]]), None, np.ones(1, dtype=int), LEVEL).any()


class TestInvariance:
    def test_held_values(self, monkeypatch):
        r = rates(3)
        whole = simultaneous(r, None, np.ones(60, dtype=int), LEVEL)
        monkeypatch.setattr("benchkit.simultaneous.HELD", 9000)
        np.testing.assert_array_equal(simultaneous(r, None, np.ones(60, dtype=int), LEVEL), whole)


class TestCoverage:
    def test_all_ranks_at_once(self):
        """200 items and 6 models, two of them tied in truth: every rank inside its interval in 95% of the data sets.

        Models 1 and 2 are exchangeable, so their true rank is 2, shared; coverage is of the ranks of the population.
        """
        rng = np.random.default_rng(11)
        ability = np.array([0.6, 0.2, 0.2, 0.0, -0.1, -0.8])
        truth = np.array([1, 2, 2, 4, 5, 6])
        reps, inside = 300, 0
        for _ in range(reps):
            p = 1 / (1 + np.exp(rng.normal(0, 1.5, 200) - ability[:, None]))
            lower, upper = rank_bounds(
                simultaneous(rng.binomial(1, p) / 1.0, None, np.ones(200, dtype=int), LEVEL, 400)
            )
            inside += bool(np.all((lower <= truth) & (truth <= upper)))
        assert inside / reps >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / reps)
