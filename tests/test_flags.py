"""benchkit.flags: each flag stands where its definition says, and nowhere else."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.diagnosis import diagnose
from benchkit.flags import beyond_chance
from benchkit.identical import Group


def flags(n, y, theta=None, b=None):
    return {flag.flag: flag for flag in diagnose(np.asarray(n), np.asarray(y, dtype=float), theta, b).flags}


def names(x):
    return [] if x is None else x.tolist()


@st.composite
def tables(draw):
    shape = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = rng.integers(draw(st.integers(0, 1)), draw(st.integers(2, 4)), shape)
    return n, rng.binomial(n, rng.random()).astype(float), rng.normal(size=shape[0]), rng.normal(size=shape[1])


GUTTMAN = np.tril(np.ones((8, 8)), -1)  # models in a perfect order; the last item is solved by none


class TestTheory:
    @given(table=tables())
    def test_each_stands_by_its_definition(self, table):
        n, y, theta, b = table
        d = diagnose(n, y, theta, b)
        found = {flag.flag: flag for flag in d.flags}
        assert len(found) == len(d.flags)
        r, inverted, models, items = d.items.item_rest_correlation, d.items.inversion_rate, *n.shape

        def held(name):
            return name in found

        some = n.any(axis=0) if n.any() else np.ones(items, bool)
        shift = [np.mean(n[r.model, some] == 0) * (r.others_rate_tried - r.others_rate_missing) for r in d.incomplete]
        moved = [row.model for row, s in zip(d.incomplete, shift, strict=True) if abs(s) > 0.01 - 1e-12]
        assert held("incomplete") == (n[:, some] == 0).any()
        assert names(found["incomplete"].models if held("incomplete") else None) == [
            i for i in range(models) if not n[i, some].all()
        ]
        assert names(found["untried_items"].items if held("untried_items") else None) == [
            j for j in range(items) if not n[:, j].any()
        ]
        assert names(found["selective_missing"].models if held("selective_missing") else None) == moved
        assert names(found["negative_discrimination"].items if held("negative_discrimination") else None) == [
            j for j in range(items) if r[j] < 0 or inverted[j] > 0.5
        ]
        assert names(found["model_inversions"].models if held("model_inversions") else None) == [
            i for i in range(models) if d.models.inversion_rate[i] >= 0.5
        ]
        for name in ("solved_by_all", "solved_by_none", "uneven_attempts"):
            assert names(found[name].items if held(name) else None) == getattr(d, name).tolist()
        assert held("single_attempts") == (n.max() == 1)
        assert held("alpha") == (d.alpha is not None and d.alpha < 0.7)
        assert held("n_eff") == (d.n_eff is not None and d.n_eff < some.sum() / 2)
        assert held("few_models") == (d.complete_models < 5)
        for side, size in (("models", models), ("items", items)):
            key = f"identical_{side}"
            groups = [g.rows for g in getattr(d, key) if g.chance * math.comb(size, 2) <= 0.05]
            assert names(getattr(found[key], side) if held(key) else None) == [i for rows in groups for i in rows]

    def test_nothing_to_say(self):
        assert flags(np.full((8, 7), 2), 2 * GUTTMAN[:, :7]) == {}

    def test_few_models_come_before_what_is_said_of_items(self):
        n = np.ones((4, 3), int)
        n[3, 2] = 0
        found = list(flags(n, np.array([[1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0]])))
        assert found.index("incomplete") < found.index("few_models") < found.index("negative_discrimination")

    def test_solved_by_all_says_whether_all_tried(self):
        n = np.ones((3, 2), int)
        assert "is solved by all models: it does not" in flags(n, [[1, 0], [1, 1], [1, 0]])["solved_by_all"].says
        n[2, 0] = 0
        says = flags(n, [[1, 0], [1, 1], [0, 0]])["solved_by_all"].says
        assert "is solved by all models that tried it: it does not" in says
        says = flags(np.array([[1, 1], [0, 1]]), [[1, 1], [0, 1]])["solved_by_all"].says
        assert "are solved by all models that tried them: they do not" in says

    def test_selective_missing_says_which_way(self):
        n, y = np.ones((6, 4), int), np.array([[1, 1, 0, 0.0]] * 5 + [[1, 1, 0, 0]])
        n[5, 2:] = 0
        says = flags(n, y)["selective_missing"].says
        assert "up to 0.5 higher than on all" in says and says.startswith("1 of 6 models lacks")
        n[5], y[5] = [0, 0, 1, 1], [0, 0, 0, 0]
        assert "up to 0.5 lower than on all" in flags(n, y)["selective_missing"].says

    def test_less_than_a_point_is_not_selective(self):
        n, y = np.ones((2, 200), int), np.zeros((2, 200))
        y[:, :100] = 1
        n[1, 150:152] = y[1, 150:152] = 0  # 100/198 - 1/2 = .00505
        assert "selective_missing" not in flags(n, y) and "incomplete" in flags(n, y)
        n[1, 150:154] = 0  # 100/196 - 1/2 = .0102
        assert names(flags(n, y)["selective_missing"].models) == [1]

    def test_copies_are_flagged_and_models_near_the_top_are_not(self):
        rng = np.random.default_rng(2)
        theta, b = np.linspace(-1, 2, 8), np.linspace(-1.5, 1.5, 60)
        y = (rng.random((8, 60)) < 1 / (1 + np.exp(b - theta[:, None]))).astype(float)
        y[3] = y[2]
        found = flags(np.ones(y.shape, int), y, theta, b)["identical_models"]
        assert names(found.models) == [2, 3] and found.says.startswith("2 of 8 models form 1 group with the same")
        near = np.ones((3, 60))
        near[:2, 59] = 0  # two models fail on the hardest item alone, the third on none: no sign of copies
        d = diagnose(np.ones(near.shape, int), near, np.full(3, 6.0), b)
        assert [g.rows.tolist() for g in d.identical_models] == [[0, 1]] and d.identical_models[0].chance > 0.3
        assert "identical_models" not in {flag.flag for flag in d.flags}

    def test_a_repeated_question_is_flagged_among_enough_models(self):
        rng = np.random.default_rng(4)
        theta, b = np.linspace(-2, 2, 80), np.zeros(10)
        y = (rng.random((80, 10)) < 1 / (1 + np.exp(-theta[:, None]))).astype(float)
        y[:, 7] = y[:, 1]
        assert names(flags(np.ones(y.shape, int), y, theta, b)["identical_items"].items) == [1, 7]
        few = np.arange(0, 80, 27)
        d = diagnose(np.ones((3, 10), int), y[few], theta[few], b)
        assert d.identical_items and "identical_items" not in {flag.flag for flag in d.flags}

    def test_chance_is_weighed_by_the_number_of_pairs(self):
        group = Group(np.array([0, 1]), 0.05 / math.comb(20, 2))
        assert beyond_chance(group, 20) and not beyond_chance(group, 21)

    @pytest.mark.parametrize(("models", "clear"), [(4, "none"), (5, "none"), (8, "1")])
    def test_wrong_key_beyond_two_standard_errors(self, models, clear):
        y = np.tril(np.ones((models, models)), -1)
        y[:, 0] = np.arange(models) < models / 2  # the key of the first item is turned
        flag = flags(np.ones(y.shape, int), y)["negative_discrimination"]
        r = [np.corrcoef(y[:, j], y.sum(1) - y[:, j])[0, 1] for j in flag.items]
        assert 0 in flag.items and f"({clear} beyond two standard errors)" in flag.says
        assert sum(x <= -2 / math.sqrt(models - 1) for x in r) == (clear == "1")

    def test_mixed_up_items(self):
        y = np.vstack([GUTTMAN, 1 - GUTTMAN[6]])
        assert names(flags(np.ones(y.shape, int), y)["model_inversions"].models) == [8]

    def test_uneven_attempts_leave_single_attempts_unsaid(self):
        n = np.ones((5, 3), int)
        assert "single_attempts" in flags(n, np.zeros(n.shape))
        n[2, 1] = 3
        found = flags(n, np.zeros(n.shape))
        assert "single_attempts" not in found and names(found["uneven_attempts"].items) == [1]
        assert "(1 to 3 in the table)" in found["uneven_attempts"].says
        n[:] = 0
        n[0] = [1, 2, 3]  # other attempts on other items are no difference between models
        assert "uneven_attempts" not in flags(n, np.zeros(n.shape))

    def test_n_eff_below_half_is_a_coefficient_of_variation_above_one(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            y = (rng.random((6, 5)) < rng.random(5)).astype(float)
            d = diagnose(np.ones(y.shape, int), y)
            if d.n_eff is not None:
                share = d.items.share_of_spread
                assert ("n_eff" in {f.flag for f in d.flags}) == (share.std() / share.mean() > 1)


class TestCoverage:
    def test_two_standard_errors_when_a_column_is_shuffled(self):
        # Pitman 1937: over all orders of one variable the correlation has mean 0 and variance 1/(C - 1)
        x, z = np.array([0, 0, 1, 1, 0.5]), np.array([3, 1, 4, 1.5, 9])
        r = [np.corrcoef(order, z)[0, 1] for order in set(permutations(x.tolist()))]
        assert np.mean(r) == pytest.approx(0, abs=1e-12) and np.var(r) == pytest.approx(1 / 4)
