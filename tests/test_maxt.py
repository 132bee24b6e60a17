import itertools

import numpy as np
import pytest

from benchkit.maxt import maxt, signs
from benchkit.pairs import against, every_pair
from benchkit.scores import integers


def by_enumeration(d, side):
    """Westfall and Young's step-down over all 2^G patterns of joint signs."""
    norm = np.sqrt((d**2).sum(axis=1))
    t = side(d.sum(axis=1)) / norm
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=d.shape[1])))
    values = side(signs @ d.T) / norm
    order = np.argsort(-t, kind="stable")
    out, worst = np.empty(len(t)), 0.0
    for place, pair in enumerate(order):
        largest = values[:, order[place:]].max(axis=1)
        worst = max(worst, float(np.mean(largest >= t[pair] - 1e-9)))
        out[pair] = worst
    return out


def table(seed, models=4, items=8, attempts=3):
    rng = np.random.default_rng(seed)
    n = np.full((models, items), attempts)
    return n, rng.binomial(n, rng.random((models, 1)) * np.ones((1, items))).astype(float)


class TestTheory:
    @pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
    @pytest.mark.parametrize("how", ["whole", "missing", "clusters"])
    def test_is_the_enumeration(self, side, how):
        n, y = table(1)
        codes = np.array([0, 0, 1, 2, 3, 4, 5, 5]) if how == "clusters" else None
        shared = None
        if how == "missing":
            n[0, 2] = y[0, 2] = 0
            shared = n > 0
        scores, pairs = integers(n, y), every_pair(4)
        rate = np.divide(y, n, out=np.zeros(y.shape), where=n > 0)
        both = (n[pairs[:, 0]] > 0) & (n[pairs[:, 1]] > 0)
        d = np.where(both, rate[pairs[:, 0]] - rate[pairs[:, 1]], 0)
        if codes is not None:
            d = d @ (codes[:, None] == np.arange(6))
        draws = 40_000
        got = maxt(scores, pairs, shared, codes, side, draws, 0)
        want = by_enumeration(d, {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[side])
        assert np.all(np.abs(got - want) <= 5 * np.sqrt(want * (1 - want) / draws) + 2 / draws)

    def test_a_pair_that_never_differs_is_no_test(self):
        y = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0.0]])
        scores = integers(np.ones((3, 5), dtype=int), y)
        both = maxt(scores, against(0, 3), None, None, "two-sided", 9999, 0)
        alone = maxt(scores, np.array([[0, 2]]), None, None, "two-sided", 9999, 0)
        assert both[0] == 1 and both[1] == alone[0] == pytest.approx(2 / 32, abs=0.02)

    def test_signs_are_fair(self):
        each = np.concatenate(list(signs(20_000, 10, 3)))
        assert each.shape == (20_000, 10) and set(np.unique(each)) == {-1.0, 1.0}
        assert np.all(np.abs(each.mean(axis=0)) < 0.03) and abs(np.prod(each[:, :2], axis=1).mean()) < 0.03


class TestInvariance:
    def test_blocks(self, monkeypatch):
        n, y = table(4, models=9)
        args = (integers(n, y), every_pair(9), None, None, "two-sided", 500, 1)
        whole = maxt(*args)
        monkeypatch.setattr("benchkit.maxt.PAIRS", 5)
        monkeypatch.setattr("benchkit.maxt.DRAWS", 64)
        np.testing.assert_array_equal(maxt(*args), whole)

    def test_order_of_pairs(self):
        n, y = table(5, models=6)
        scores, pairs = integers(n, y), every_pair(6)
        order = np.random.default_rng(0).permutation(len(pairs))
        args = (None, None, "two-sided", 500, 1)
        np.testing.assert_array_equal(maxt(scores, pairs[order], *args), maxt(scores, pairs, *args)[order])


class TestCoverage:
    def test_family_wise_error(self):
        """20 equal models, each against the first: any false rejection at 5% in about 5% of the data sets."""
        rng = np.random.default_rng(8)
        reps, items, models = 300, 40, 20
        p = 1 / (1 + np.exp(-rng.normal(0.5, 1.5, items)))
        wrong = 0
        for _ in range(reps):
            y = rng.binomial(1, p, (models, items)).astype(float)
            scores = integers(np.ones(y.shape, dtype=int), y)
            wrong += maxt(scores, against(0, models), None, None, "two-sided", 399, 0).min() <= 0.05
        # asymptotic only: .065 in larger simulations; .12 is 4 binomial errors above that
        assert wrong / reps < 0.12
