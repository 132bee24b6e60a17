from fractions import Fraction

import numpy as np
import pytest

from benchkit.best_set import best_set
from benchkit.flips import sign_flip
from benchkit.pairwise import one_sided, rank_bounds, undefeated, wins
from benchkit.scores import Differences, differences, integers, totals


def table(seed, models=6, items=14, attempts=2, spread=1.0):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(rng.normal(0, 1.5, items) - rng.normal(0, spread, models)[:, None]))
    n = np.full((models, items), attempts)
    return n, rng.binomial(n, p).astype(float)


class TestTheory:
    @pytest.mark.parametrize("clustered", [False, True])
    def test_every_pair_is_its_own_test(self, clustered):
        n, y = table(0)
        scores, codes = integers(n, y), np.arange(14) // 2 if clustered else None
        found = one_sided(scores, codes)
        for k in range(6):
            for j in range(6):
                if k == j:
                    assert found.p[k, j] == 1
                    continue
                d = differences(scores, np.array([k]), np.array([j]), None, codes)
                test = sign_flip(d, "greater")
                assert found.p[k, j] == test.p[0] and found.smallest[k, j] == test.smallest[0]
                assert found.differ[k, j] == bool(test.flips[0])
        assert found.drawn == 0

    def test_only_items_that_both_have(self):
        n, y = table(1)
        n[0, :5] = y[0, :5] = 0
        n[1, 3:9] = y[1, 3:9] = 0
        scores = integers(n, y)
        found = one_sided(scores, None, n > 0)
        both = (n[0] > 0) & (n[1] > 0)
        d = (scores.values[0] - scores.values[1])[both]
        assert found.p[0, 1] == sign_flip(Differences(d[None, :], np.zeros(1, dtype=int)), "greater").p[0]

    def test_models_without_a_common_item(self):
        n = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
        found = one_sided(integers(n, n / 1.0), None, n > 0)
        assert np.all(found.p == 1) and not found.differ.any()

    @pytest.mark.parametrize("level", ["0.5", "0.9", "0.99"])
    def test_undefeated_is_the_best_set(self, level):
        for seed in range(6):
            scores = integers(*table(seed, models=9, items=20))
            got = undefeated(one_sided(scores, None), Fraction(level))
            np.testing.assert_array_equal(got, best_set(scores, totals(scores.values), level))

    def test_tarone_finds_what_holm_can_not(self):
        """31 models on 14 items: Holm over 930 pairs needs p <= 5.4e-5, and 2^-14 is 6.1e-5."""
        y = np.zeros((31, 14))
        y[0] = 1
        n = np.ones(y.shape, dtype=int)
        n[1:], y[1:] = 1, np.eye(30, 14)  # the others rarely differ from each other
        tests = one_sided(integers(n, y), None)
        assert tests.p[0, 20] == 2.0**-14 > 0.05 / 930
        won = wins(tests, Fraction(19, 20))
        assert won[0, 14:].all() and not won[1:].any()

    def test_bounds_count_wins_and_losses(self):
        won = np.zeros((4, 4), dtype=bool)
        won[0, 1:], won[1, 3] = True, True
        lower, upper = rank_bounds(won)
        assert lower.tolist() == [1, 2, 2, 3] and upper.tolist() == [1, 3, 4, 4]

    def test_the_rank_lies_inside(self):
        for seed in range(10):
            n, y = table(seed, models=8, items=30, spread=2.0)
            lower, upper = rank_bounds(wins(one_sided(integers(n, y), None), Fraction(3, 4)))
            score = y.sum(axis=1)
            rank = 1 + (score[:, None] < score[None, :]).sum(axis=1)
            assert np.all(lower <= rank) and np.all(rank <= upper)
            assert lower.max() > 1  # something was shown


class TestInvariance:
    def test_blocks(self, monkeypatch):
        scores = integers(*table(3))
        whole = one_sided(scores, None)
        monkeypatch.setattr("benchkit.pairwise.BLOCK_CELLS", 30)
        for a, b in zip(one_sided(scores, None), whole, strict=True):
            np.testing.assert_array_equal(a, b)


class TestCoverage:
    def test_no_false_win_among_equal_models(self):
        """8 equal models: any win at all is false, in at most 5% of the data sets."""
        rng = np.random.default_rng(5)
        reps, wrong = 400, 0
        for _ in range(reps):
            p = 1 / (1 + np.exp(-rng.normal(0, 1.5, 12)))
            y = rng.binomial(4, p, (8, 12)).astype(float)
            wrong += wins(one_sided(integers(np.full(y.shape, 4), y), None), Fraction(19, 20)).any()
        assert wrong / reps <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / reps)
