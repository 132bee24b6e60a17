import csv
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import pairwise, ranks
from benchkit.best_set import best_set
from benchkit.errors import InputError
from benchkit.estimators import estimator
from benchkit.irt.pointwise import Draws
from benchkit.rank_intervals import METHODS
from benchkit.ranks import rank
from benchkit.resampling import competition_ranks, rank_quantile, resampled_ranks
from benchkit.scores import integers

DATA = Path(__file__).parent / "data"


def slips(pattern, items=30, attempts=4):
    """Model k misses one attempt on each of pattern[k] problems."""
    n = np.full((len(pattern), items), attempts)
    y = n.astype(float)
    for k, count in enumerate(pattern):
        y[k, [(7 * k + j) % items for j in range(count)]] -= 1
    return n, y


def random_table(seed, models=6, items=20, attempts=4):
    rng = np.random.default_rng(seed)
    n = np.full((models, items), attempts)
    return n, rng.binomial(n, rng.random((models, items))).astype(float)


def same(a, b):
    for field in ranks.Ranking._fields:
        if field not in ("excluded", "imputed", "warnings", "reasons", "promise", "clusters_half_width"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)


class TestValidation:
    @pytest.mark.parametrize("level", ["0", "1", "1.2", "many"])
    def test_level(self, level):
        with pytest.raises(InputError, match="level must"):
            rank(*slips([0, 1]), level=level)

    def test_reps(self):
        with pytest.raises(InputError, match="reps must be at least 1, not 0"):
            rank(*slips([0, 1]), reps=0)

    def test_incomplete_models_are_named_not_ranked(self):
        n = np.array([[4, 4, 4, 4], [4, 4, 4, 4], [4, 4, 0, 0], [0, 0, 0, 0]])
        y = np.array([[4, 3, 0, 1], [4, 3, 0, 1], [4, 4, 0, 0], [0, 0, 0, 0]], dtype=float)
        r = rank(n, y)
        assert r.model.tolist() == [0, 1] and r.rank.tolist() == [1, 1]
        assert [x.model for x in r.excluded] == [2, 3]
        assert r.excluded[0].missing.tolist() == [2, 3] and r.excluded[0].score_on_own_items == 1
        assert math.isnan(r.excluded[1].score_on_own_items)
        assert "2 of 4 models lack some items: not ranked" in r.warnings

    def test_no_complete_model(self):
        r = rank(np.array([[1, 0], [0, 1]]), np.array([[1.0, 0], [0, 1]]))
        assert len(r.model) == len(r.contenders) == len(r.best_set) == 0 and len(r.excluded) == 2
        assert r.warnings[-1] == "no model has attempts on every item, so none is ranked"

    def test_one_model(self):
        r = rank(np.ones((1, 3), dtype=int), np.array([[1.0, 0, 1]]))
        assert (r.rank[0], r.rank_lower[0], r.rank_upper[0], r.p_first[0]) == (1, 1, 1, 1)
        assert r.best_set.tolist() == r.contenders.tolist() == [0]

    def test_one_item(self):
        r = rank(np.full((2, 1), 4), np.array([[4.0], [3.0]]))
        assert np.isnan(r.items_half_width).all() and r.reasons["items_half_width"] == "one item has no spread"
        assert any("nothing to resample" in w for w in r.warnings)

    def test_unequal_attempts_and_odd_scores_are_said(self):
        n = np.array([[4, 4], [2, 4]])
        assert any("unequal attempts" in w for w in rank(n, np.array([[4.0, 1], [1, 1]])).warnings)
        y = np.array([[2**-0.5, 3**-0.5, 5**-0.5], [7**-0.5, 11**-0.5, 13**-0.5]])
        assert any("taken as ties" in w for w in rank(np.ones((2, 3), dtype=int), y).warnings)


class TestInvariance:
    @given(st.integers(0, 10), st.integers(1, 200))
    @settings(max_examples=25, deadline=None)
    def test_chunk_size(self, seed, chunk):
        n, y = random_table(seed)
        same(rank(n, y, reps=150, seed=seed, chunk=chunk), rank(n, y, reps=150, seed=seed))

    def test_order_of_models(self):
        n, y = random_table(1)
        order = np.array([3, 1, 5, 0, 2, 4])
        a, b = rank(n, y), rank(n[order], y[order])
        for field in ("rank", "rank_lower", "rank_upper", "p_first", "score"):
            x, z = np.empty(6), np.empty(6)
            x[a.model], z[order[b.model]] = getattr(a, field), getattr(b, field)
            np.testing.assert_array_equal(x, z)
        assert set(a.best_set) == set(order[b.best_set])

    def test_seed(self):
        n, y = random_table(2)
        assert np.array_equal(rank(n, y, seed=3).p_first, rank(n, y, seed=3).p_first)
        assert not np.array_equal(rank(n, y, seed=3).p_first, rank(n, y, seed=4).p_first)

    def test_items_as_their_own_clusters(self):
        n, y = random_table(3)
        same(rank(n, y), rank(n, y, cluster=np.arange(20)))
        same(rank(n, y), rank(n, y, cluster=np.full(20, -1)))

    def test_attempts_scaled_alike(self):
        n, y = random_table(4)
        a, b = rank(n, y), rank(25 * n, 25 * y)
        np.testing.assert_array_equal(a.rank_upper, b.rank_upper)
        np.testing.assert_array_equal(a.p_first, b.p_first)

    @pytest.mark.parametrize("scale", [1, 10**6, 10**13, 10**30])
    def test_small_large_and_python_integers_agree(self, scale):
        _, y = random_table(5, models=9)
        small = y.astype(np.int64)
        wide = small.astype(object) * scale if scale > 10**17 else small * scale
        wide[0, 0] += 0 if scale == 1 else 1  # keeps the common divisor at 1
        got = resampled_ranks(wide, 300, 0)
        keys = [[int(v) for v in row] for row in wide]
        rng = np.random.default_rng(0)
        want = np.zeros((9, 9), dtype=np.int64)
        for _ in range(300):
            drawn = rng.integers(0, 20, 20)
            for i, r in enumerate(competition_ranks([sum(row[j] for j in drawn) for row in keys])):
                want[i, r - 1] += 1
        np.testing.assert_array_equal(got, want)

    def test_a_tiny_gap_is_a_gap_and_a_tie_a_tie(self):
        """Rates 1/3 + 1/3 + 1/3 and 1/7 x 7 differ in floats, not here."""
        n = np.array([[3, 3, 3, 7], [7, 7, 7, 7]])
        y = np.array([[1, 1, 1, 0], [1, 2, 3, 1]], dtype=float)
        assert rank(n, y).rank.tolist() == [1, 1]

    def test_tolerance_mode_keeps_ties(self):
        v = np.array([2**-0.5, 3**-0.5, 5**-0.5, 7**-0.5, 0.1])
        y = np.stack([v, v[::-1], v * 0.99])
        r = rank(np.ones((3, 5), dtype=int), y)
        assert r.rank.tolist() == [1, 1, 3]


class TestTheory:
    @given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
    def test_rank_is_one_plus_strictly_greater(self, sums):
        assert competition_ranks(sums).tolist() == [1 + sum(b > a for b in sums) for a in sums]

    def test_every_resample_of_few_items(self):
        """All 4^4 resamples of 4 items, each counted once, against the bootstrap's frequencies."""
        values = np.array([[3, 0, 2, 1], [1, 2, 2, 1], [2, 2, 0, 2], [1, 2, 2, 1]])
        exact = np.zeros((4, 4))
        for drawn in itertools.product(range(4), repeat=4):
            sums = values[:, drawn].sum(axis=1)
            for i in range(4):
                exact[i, (sums > sums[i]).sum()] += 1 / 256
        reps = 40_000
        got = resampled_ranks(values, reps, 1) / reps
        assert np.all(np.abs(got - exact) < 5 * np.sqrt(exact * (1 - exact) / reps) + 1e-12)
        np.testing.assert_array_equal(got[1], got[3])

    def test_quantiles_are_order_statistics(self):
        ranks_seen = np.repeat([1, 2, 3], [99, 3801, 100])
        frequency = np.array([np.bincount(ranks_seen, minlength=4)[1:]])
        assert rank_quantile(frequency, Fraction(1, 40))[0] == sorted(ranks_seen)[99] == 2
        frequency[0] += [1, -1, 0]
        assert rank_quantile(frequency, Fraction(1, 40))[0] == 1
        assert rank_quantile(frequency, Fraction(39, 40))[0] == 2

    def test_clusters_are_resampled_whole(self):
        """Two clusters: the model that is best in one of them is first in three of four resamples, ties included."""
        n = np.ones((2, 6), dtype=int)
        y = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=float)
        r = rank(n, y, cluster=np.array([0, 0, 0, 1, 1, 1]), reps=20_000)
        np.testing.assert_allclose(r.p_first, 0.75, atol=0.015)

    def test_scores_and_widths(self):
        n, y = slips([0, 2])
        r = rank(n, y)
        assert r.score.tolist() == [1, 118 / 120] and r.attempts.tolist() == [120, 120]
        assert r.attempts_half_width[0] == 0 < r.attempts_half_width[1]

    @given(st.integers(0, 30))
    @settings(max_examples=15, deadline=None)
    def test_best_set_by_enumeration(self, seed):
        n, y = random_table(seed, models=5, items=8, attempts=2)
        y[0] = np.maximum(y[0], y[1])
        level = Fraction(9, 10)
        keep = []
        for j in range(5):
            dropped = False
            for k in set(range(5)) - {j}:
                d = [int(x) for x in y[k] - y[j] if x]
                hits = sum(
                    sum(e * abs(x) for e, x in zip(signs, d, strict=True)) >= sum(d)
                    for signs in itertools.product((1, -1), repeat=len(d))
                )
                dropped |= Fraction(hits, 2 ** len(d)) <= (1 - level) / 4
            if not dropped:
                keep.append(j)
        assert sorted(rank(n, y, level="0.9", reps=10).best_set) == keep

    def test_best_set_holds_at_equality(self):
        """Two models, five items all one way: one-sided p = 1/32."""
        n, y = np.ones((2, 5), dtype=int), np.array([[1.0] * 5, [0.0] * 5])
        assert rank(n, y, level="0.96875").best_set.tolist() == [0]
        assert rank(n, y, level="0.96876").best_set.tolist() == [0, 1]

    def test_best_set_below_a_half(self):
        """At level .4 with two models the threshold .6 drops equal models too."""
        n, y = np.ones((2, 5), dtype=int), np.array([[1.0, 1, 0, 0, 1], [1.0, 0, 0, 1, 1]])
        assert rank(n, y, level="0.4").best_set.tolist() == [0, 1]  # p = 3/4
        assert rank(n, y, level="0.2").best_set.tolist() == []

    def test_best_set_flips_clusters(self):
        n, y = np.ones((2, 6), dtype=int), np.array([[1.0] * 6, [0.0] * 6])
        assert rank(n, y).best_set.tolist() == [0]
        assert rank(n, y, cluster=np.array([0, 0, 0, 1, 1, 1])).best_set.tolist() == [0, 1]


class TestReference:
    @pytest.mark.parametrize("seed", [0, 1, 2, 3])
    def test_aime_contenders(self, seed, aime=DATA / "aime2025_I.csv"):
        # the numpy recipe of a published leaderboard (percentile bootstrap over problems), three seeds
        n, y, names = read(aime)
        want = json.loads((DATA / "aime2025_I.refvals.json").read_text())
        r = rank(n, y, seed=seed)
        assert sorted(names[i] for i in r.contenders) == want["could_be_first_by_seed"]["1"]
        for k, i in enumerate(r.model):
            assert r.score[k] == pytest.approx(want["score"][names[i]], abs=1e-15)
            se = want["item_se"][names[i]]
            assert r.items_half_width[k] == pytest.approx(1.959963984540054 * se, rel=1e-9)

    def test_three_slips_reach_first_and_four_do_not(self):
        # ((30 - k)/30)^30 of the resamples miss all k problems
        n, y = slips([0, 1, 2, 3, 4, 6])
        r = rank(n, y)
        assert sorted(r.contenders) == [0, 1, 2, 3]
        for k, p in enumerate((0.36166, 0.12621, 0.04239, 0.01366), 1):
            assert r.p_first[list(r.model).index(k)] == pytest.approx(p, abs=4 * math.sqrt(p / 4000))


class TestCoverage:
    @staticmethod
    def best_sets(models, items, reps, seed, level="0.95"):
        """Equal models on saturated items: how often a fixed model, the best as any, is in the set."""
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-rng.normal(2.5, 1.5, items)))
        n = np.full((models, items), 4)
        inside = 0
        for _ in range(reps):
            y = rng.binomial(4, p, (models, items)).astype(float)
            inside += best_set(integers(n, y), y.sum(axis=1).astype(int).tolist(), level)[0]
        return inside / reps

    def test_best_set_covers(self):
        # binomial bound: .95 - 3 sqrt(.95 x .05 / 400)
        assert self.best_sets(8, 30, 400, 1) >= 0.917

    @pytest.mark.slow
    def test_best_set_covers_a_leaderboard(self):
        got = self.best_sets(31, 30, 600, 2)
        assert 0.95 <= got <= 0.995

    @pytest.mark.slow
    def test_percentile_intervals_do_not(self):
        """With equal models a fixed one is a contender far less often than 95%: why best_set stands beside."""
        rng = np.random.default_rng(3)
        p = 1 / (1 + np.exp(-rng.normal(2.5, 1.5, 30)))
        inside = 0
        for seed in range(150):
            y = rng.binomial(4, p, (31, 30))
            inside += resampled_ranks(y, 1000, seed)[0, 0] >= 25
        assert inside / 150 < 0.75


def read(path):
    lines = [line.rsplit(",", 3) for line in path.read_text().splitlines()[1:]]
    names = sorted({m for m, *_ in lines})
    items = sorted({i for _, i, *_ in lines})
    n, y = np.zeros((len(names), len(items)), dtype=int), np.zeros((len(names), len(items)))
    for m, i, a, c in lines:
        n[names.index(m), items.index(i)], y[names.index(m), items.index(i)] = int(a), float(c)
    return n, y, names


def cells(path):
    """model -> item -> (attempts, correct), from the bundled CSV."""
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    models, items = (sorted({r[k] for r in rows}) for k in ("model", "item"))
    n, y = np.zeros((len(models), len(items)), dtype=int), np.zeros((len(models), len(items)))
    for r in rows:
        at = models.index(r["model"]), items.index(r["item"])
        n[at], y[at] = int(r["attempts"]), float(r["correct"])
    return models, items, n, y


def posterior_like(n, y, count=200, seed=0):
    """Draws near a Rasch fit: the Laplace approximation, independent by parameter. A stand-in for a fit in tests."""
    from benchkit.irt.laplace import laplace
    from benchkit.irt.model import Data, Priors

    mode = laplace(Data(n, y), Priors())
    rng = np.random.default_rng(seed)
    theta = mode.theta + 0.3 * rng.standard_normal((count, len(n)))
    return Draws(theta, mode.b + 0.3 * rng.standard_normal((count, n.shape[1])))


class TestMissing:
    """Models that lack items."""

    def table(self):
        n, y = random_table(5, models=5, items=12)
        n[1, [0, 3]] = n[4, 7] = 0
        return n, np.where(n > 0, y, 0)

    def test_common_is_the_ranking_of_the_common_items(self):
        n, y = self.table()
        got, kept = rank(n, y, missing="common"), [1, 2, 4, 5, 6, 8, 9, 10, 11]
        same(got._replace(missing="exclude", left_out=np.zeros(0, dtype=int)), rank(n[:, kept], y[:, kept]))
        assert got.left_out.tolist() == [0, 3, 7] and got.items == 9 and not got.excluded
        assert "on the 9 of 12 items that all models have: 3 left out" in got.warnings[0]

    def test_nothing_in_common(self):
        with pytest.raises(InputError, match="no item was tried by every model"):
            rank(np.array([[1, 0], [0, 1]]), np.zeros((2, 2)), missing="common")

    def test_a_complete_table_needs_no_handling(self):
        n, y = random_table(2)
        for missing in ("common", "bounds"):
            same(rank(n, y, missing=missing)._replace(missing="exclude", bounds=None), rank(n, y))
        draws = posterior_like(n, y)
        got = rank(n, y, missing="impute", draws=draws)
        same(got._replace(missing="exclude"), rank(n, y, draws=draws))

    def test_bounds_stand_beside_the_ranking(self):
        n, y = self.table()
        got = rank(n, y, missing="bounds")
        same(got._replace(missing="exclude", bounds=None), rank(n, y))
        assert len(got.bounds) == 5 and sum(b.missing for b in got.bounds) == 3
        document = got.document(list("abcde"), [f"q{j}" for j in range(12)])
        assert set(document["bounds"][0]) == {
            "model",
            "missing",
            "score_lower",
            "score_upper",
            "rank_lower",
            "rank_upper",
        }

    def test_impute_needs_a_fit_and_the_bootstrap(self):
        n, y = self.table()
        with pytest.raises(InputError, match="imputed from a fit"):
            rank(n, y, missing="impute")
        with pytest.raises(InputError, match="for the bootstrap only"):
            rank(n, y, missing="impute", draws=posterior_like(n, y), method="signflip")

    def test_imputed_cells_enter_no_test(self):
        """The best set is that of the tests on the items that both models of a pair have."""
        n, y = self.table()
        sure = Draws(np.zeros((4, 5)), np.full((4, 12), -900.0))  # every missing item right
        never = sure._replace(b=-sure.b)
        a, b = (set(rank(n, y, missing="impute", draws=d).best_set.tolist()) for d in (sure, never))
        assert a == b and len(rank(n, y, missing="impute", draws=sure).model) == 5
        tests = pairwise.one_sided(integers(n, y), None, n > 0)
        assert a == set(np.flatnonzero(pairwise.undefeated(tests, Fraction(19, 20))).tolist())

    def test_imputed_scores_and_what_is_said(self):
        n, y = self.table()
        draws = posterior_like(n, y)
        got = rank(n, y, missing="impute", draws=draws, reps=50)
        at = got.model.tolist().index(4)
        p = (1 / (1 + np.exp(draws.b[:, 7] - draws.theta[:, 4]))).mean()
        assert got.score[at] == pytest.approx(((y[4] / np.maximum(n[4], 1)).sum() + p) / 12, abs=1e-9)
        assert np.isnan(got.items_half_width[at]) and np.isnan(got.attempts_lower[at])
        assert [(e.model, e.missing.tolist()) for e in got.imputed] == [(1, [0, 3]), (4, [7])] and not got.excluded
        assert "3 missing cells of 2 of 5 models are drawn from the fit" in got.warnings[0]
        document = got.document(list("abcde"), [f"q{j}" for j in range(12)])
        assert document["models"][at]["items_half_width_reason"] == "the model lacks items: its score is imputed"

    @pytest.mark.parametrize("chunk", [1, 7, 4000])
    def test_chunks(self, chunk):
        n, y = self.table()
        draws = posterior_like(n, y)
        same(rank(n, y, missing="impute", draws=draws, chunk=chunk), rank(n, y, missing="impute", draws=draws))

    def test_skipping_the_hardest_items(self, aime=DATA / "aime2025_I.csv"):
        """On AIME a model of the middle that skips the five hardest problems is fourth by a plain mean over its own
        items, and back in its place when the cells are imputed."""
        models, _, n, y = cells(aime)
        before = rank(n, y, reps=50)
        who = models.index("DeepSeek-R1-Distill-Llama-70B")
        place = int(before.rank[before.model.tolist().index(who)])
        hardest = np.argsort(y.sum(axis=0), kind="stable")[:5]
        n[who, hardest] = y[who, hardest] = 0
        out = rank(n, y, reps=50)
        own = out.excluded[0].score_on_own_items
        plain = 1 + int((out.score > own).sum())
        draws = posterior_like(n, y)
        filled = rank(n, y, missing="impute", draws=draws, reps=400)
        at = filled.model.tolist().index(who)
        assert (place, plain) == (8, 3)
        assert abs(filled.rank[at] - place) <= 1
        assert filled.rank_lower[at] > plain


class TestMethods:
    """Rank intervals by other methods than the bootstrap."""

    @pytest.mark.parametrize("method", METHODS)
    def test_what_is_promised(self, method):
        n, y = random_table(0)
        got = rank(n, y, method=method, reps=100)
        assert got.method == method and got.promise.over == ("attempts" if method == "attempts" else "items")
        assert got.promise.intervals == ("simultaneous" if method in ("signflip", "simultaneous") else "marginal")
        assert np.all(got.rank_lower <= got.rank) and np.all(got.rank <= got.rank_upper)
        assert np.isnan(got.p_first).all() == (method != "bootstrap")
        assert (got.reps is None) == (method in ("signflip", "attempts"))
        assert got.contenders.tolist() == got.model[got.rank_lower == 1].tolist()

    def test_signflip_says_when_it_assumes(self):
        n, y = random_table(0)
        assert rank(n, y, method="signflip").promise.validity == "exact"
        n[0, 0] += 1
        got = rank(n, y, method="signflip")
        assert got.promise.validity == "symmetry-assumed"
        assert any("rank intervals then assume" in w for w in got.warnings)

    def test_clusters_are_the_unit(self):
        n, y = random_table(0)
        for method in ("bootstrap", "signflip", "simultaneous"):
            assert rank(n, y, np.arange(20) // 2, method=method, reps=100).promise.over == "clusters"

    def test_attempts_see_what_items_do_not(self):
        """Ten attempts more of 20 on each of three items: clear over attempts, nothing over items."""
        n = np.full((2, 12), 20)
        y = np.full((2, 12), 10.0)
        y[0, :3] += 10
        assert rank(n, y, method="attempts").rank_lower.tolist() == [1, 2]
        assert rank(n, y, method="signflip").rank_lower.tolist() == [1, 1]

    def test_attempts_are_single(self):
        n, y = random_table(0)
        with pytest.raises(InputError, match="compares single attempts, and pass@2 is of several"):
            rank(n, y, method="attempts", estimator=estimator("pass@2"))
        n[1, 3] = 5
        with pytest.raises(InputError, match="a has 4 on item q3, b has 5"):
            rank(n, y, method="attempts", models=list("abcdef"), items=[f"q{j}" for j in range(20)])

    @pytest.mark.parametrize("method", METHODS)
    def test_nothing_to_rank(self, method):
        got = rank(np.array([[1, 0], [0, 1]]), np.zeros((2, 2)), method=method)
        assert not got.model.size and "none is ranked" in got.warnings[-1] and len(got.excluded) == 2


class TestEstimators:
    def test_pass_at_k_ranks_by_it(self):
        """Half right everywhere beats all right on half of the items once one of two attempts suffices."""
        n = np.full((2, 10), 4)
        y = np.array([[2.0] * 10, [4.0] * 5 + [0.0] * 5])
        assert rank(n, y).rank.tolist() == [1, 1]
        both = rank(n, y, estimator=estimator("pass@2"))
        assert both.model.tolist() == [0, 1] and both.score.tolist() == pytest.approx([5 / 6, 0.5])
        every = rank(n, y, estimator=estimator("all@2"))
        assert every.model.tolist() == [1, 0] and every.score.tolist() == pytest.approx([0.5, 1 / 6])
        assert np.isnan(both.attempts_lower).all() and not np.isnan(both.items_half_width).any()
        assert both.estimator == "pass@2"

    def test_pooled_scores(self):
        n, y = random_table(4)
        draws = posterior_like(n, y)
        got = rank(n, y, draws=draws, level="0.9")
        p = 1 / (1 + np.exp(draws.b[:, None, :] - draws.theta[:, :, None]))
        each = np.sort(p.mean(axis=2)[:, got.model], axis=0)
        np.testing.assert_allclose(got.pooled, each.mean(axis=0))
        np.testing.assert_allclose(got.pooled_lower, each[9])  # the least k with k/200 >= .05 is 10
        assert rank(n, y).pooled is None
