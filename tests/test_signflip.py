import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import flips
from benchkit.errors import InputError
from benchkit.estimators import best_complete, estimator
from benchkit.pairs import against, every_pair
from benchkit.signflip import Comparison, compare, draw_down

DATA = Path(__file__).parent / "data"
PAIR = np.array([[0, 1]])


def aime():
    lines = [line.rsplit(",", 3) for line in (DATA / "aime2025_I.csv").read_text().splitlines()[1:]]
    names, items = sorted({r[0] for r in lines}), sorted({r[1] for r in lines})
    n, y = np.zeros((len(names), len(items)), dtype=int), np.zeros((len(names), len(items)))
    for m, i, a, c in lines:
        n[names.index(m), items.index(i)], y[names.index(m), items.index(i)] = int(a), float(c)
    return n, y, names


def two(a, b, attempts=1):
    y = np.array([a, b], dtype=float)
    return np.full(y.shape, attempts), y


class TestValidation:
    def test_pairs(self):
        n, y = two([1, 0], [0, 1])
        for pairs, text in (([[0, 2]], "outside 0..1"), ([[1, 1]], "with itself"), (np.zeros((0, 2)), "no pair")):
            with pytest.raises(InputError, match=text):
                compare(n, y, np.array(pairs))

    def test_alpha(self):
        with pytest.raises(InputError, match="alpha must lie between 0 and 1"):
            compare(*two([1], [0]), PAIR, alpha=5)

    def test_fewer_items(self):
        n = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 0, 1, 0]])
        y = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]], dtype=float)
        c = compare(n, y, every_pair(3))
        assert c.items.tolist() == [3, 1, 0] and c.discordant.tolist() == [2, 1, 0]
        assert c.difference[0] == 2 / 3 and c.p[0] == 0.5
        assert np.isnan(c.difference[2]) and c.p[2] == 1 and c.family_size == 2
        assert c.reasons["difference"] == "the two models have no item in common"
        assert c.warnings[0] == "3 of 3 pairs are compared on fewer than all 4 items (the fewest: 0)"

    def test_identical_models(self):
        c = compare(*two([1, 0, 1], [1, 0, 1]), PAIR)
        assert (c.p[0], c.p_adjusted[0], c.p_smallest[0], c.family_size, c.significant_count) == (1, 1, 1, 0, 0)
        assert np.isnan(c.detectable_difference[0]) and "never differ" in c.reasons["detectable_difference"][0]
        assert c.lower[0] < 0 < c.upper[0]

    def test_fractions_have_no_single_attempts(self):
        n, y = np.array([[2, 2], [3, 3]]), np.array([[0.5, 1], [1, 2]])
        c = compare(n, y, PAIR, fisher=True)
        assert np.isnan(c.p_attempts[0]) and "whole numbers" in c.reasons["p_attempts"][0]
        with pytest.raises(InputError, match="fractional"):
            compare(n, y, PAIR, equalize=True)


class TestMethods:
    def test_exact(self):
        assert compare(*two([4, 2, 1], [0, 3, 1], 4), PAIR).method == ("exact",)
        assert compare(*two([0.5, 0.25, 1], [1, 0.125, 0.3]), PAIR).method == ("exact",)

    def test_unequal_attempts_are_an_assumption(self):
        c = compare(np.array([[4, 4], [4, 2]]), np.array([[4.0, 3], [2, 1]]), PAIR)
        assert c.method == ("symmetry-assumed",) and "unequal attempts" in c.warnings[0]

    def test_without_a_denominator(self):
        rng = np.random.default_rng(1)
        for items, method in ((24, "meet-in-the-middle"), (50, "monte-carlo")):
            c = compare(*two(rng.random(items), rng.random(items)), PAIR, draws=999)
            assert c.method == (method,) and np.isnan(c.p_se[0]) == (items == 24)
            assert any("no common denominator" in w for w in c.warnings)

    def test_rounding_noise_does_not_break_ties(self):
        """A d that cancels in theory only: without the tolerance p would lose the tied patterns."""
        v = np.array([2**-0.5, 3**-0.5, 5**-0.5, 7**-0.5])
        a = np.concatenate([v, np.zeros(4), [0.9]])
        b = np.concatenate([np.zeros(4), v, [0.0]])
        c = compare(*two(a, b), PAIR)
        sizes, seen = np.concatenate([v, v, [0.9]]), 0.9
        patterns = 1 - 2 * ((np.arange(2**9)[:, None] >> np.arange(9)) & 1)
        assert c.p[0] == np.mean(np.abs(patterns @ sizes) >= seen - 1e-9)

    def test_a_pair_with_a_denominator_in_a_table_without(self):
        y = np.array([[1, 0, 1, 0.5], [0, 0, 1, 1], [2**-0.5, 3**-0.5, 5**-0.5, 7**-0.5]])
        c = compare(np.ones((3, 4), dtype=int), y, every_pair(3))
        assert c.method == ("exact", "meet-in-the-middle", "meet-in-the-middle")
        assert c.p[0] == compare(*two(y[0], y[1]), PAIR).p[0]

    def test_large_common_multiple(self):
        """lcm of the attempts beyond int64: rounded to what fits, and said."""
        primes = np.array([59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107])
        n = np.stack([primes, primes])
        y = np.stack([primes // 2, primes // 3]).astype(float)
        y[1, :3] = primes[:3]
        c = compare(n, y, PAIR)
        d = (y[0] - y[1]) / primes
        patterns = 1 - 2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1)
        assert c.method == ("meet-in-the-middle",) and "usable size" in c.warnings[0]
        assert c.p[0] == np.mean(np.abs(patterns @ np.abs(d)) >= abs(d.sum()) - 1e-12)
        assert c.difference[0] == pytest.approx(d.mean(), rel=1e-12)


class TestTheory:
    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9),
        st.sampled_from(flips.ALTERNATIVES),
    )
    @settings(max_examples=60, deadline=None)
    def test_p_is_the_share_of_sign_patterns(self, cells, side):
        a, b = np.array(cells).T
        c = compare(*two(a, b, 3), PAIR, alternative=side)
        d = (a - b)[a != b]
        patterns = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
        s, seen = patterns @ np.abs(d), d.sum()
        hit = {"two-sided": abs(s) >= abs(seen), "greater": s >= seen, "less": s <= seen}[side]
        assert c.p[0] == hit.mean()
        assert c.difference[0] == pytest.approx((a - b).mean() / 3)
        assert c.discordance[0] == pytest.approx(((a - b) ** 2).mean() / 9)

    def test_swapping_a_pair(self):
        n, y, _ = aime()
        pairs = every_pair(16)
        a, b = compare(n, y, pairs, alternative="greater"), compare(n, y, pairs[:, ::-1], alternative="less")
        np.testing.assert_array_equal(a.p, b.p)
        np.testing.assert_array_equal(a.difference, -b.difference)
        np.testing.assert_allclose(a.lower, -b.upper, atol=1e-15)

    def test_clusters_flip_together(self):
        n, y = two([1] * 12, [0] * 12)
        c = compare(n, y, PAIR, cluster=np.repeat([0, 1, 2], 4))
        assert (c.p[0], c.p_smallest[0], c.flips[0], c.discordant[0]) == (0.25, 0.25, 3, 12)
        inside = compare(*two([1, 0, 1, 0], [0, 1, 0, 1]), PAIR, cluster=np.array([0, 0, 1, 1]))
        assert inside.p[0] == 1 and inside.flips[0] == 0 and inside.family_size == 1

    def test_pairs_helpers(self):
        assert against(1, 3).tolist() == [[1, 0], [1, 2]]
        assert every_pair(3).tolist() == [[0, 1], [0, 2], [1, 2]]

    def test_exact_power_is_asked_for(self):
        n, y = two([1] * 20, [1] * 10 + [0] * 10)
        assert compare(n, y, PAIR).detectable_exact is None
        c = compare(n, y, PAIR, exact_power=True)
        assert 0 < c.detectable_exact[0] <= c.discordance[0] == 0.5

    @given(st.integers(0, 100))
    @settings(max_examples=20, deadline=None)
    def test_draw_down_is_a_sample_of_the_attempts(self, seed):
        n, y = np.array([[10, 3, 5], [4, 3, 8]]), np.array([[10.0, 2, 1], [0, 1, 7]])
        m, z = draw_down(n, y, seed, (0, 1))
        assert m.tolist() == [[4, 3, 5]] * 2
        assert z[0, 0] == 4 and z[0, 1] == 2 and z[0, 2] == 1 and z[1, 1] == 1 and 4 <= z[1, 2] <= 5

    def test_draw_down_of_a_thousand_million(self):
        """Beyond numpy's limit; mean and variance of the hypergeometric distribution."""
        n = np.array([[2**31 - 1] * 300, [10**6] * 300])
        y = np.array([[10**9 + 1] * 300, [5] * 300], dtype=float)
        m, z = draw_down(n, y, 0, (0, 1))
        assert (m == 10**6).all() and (z[1] == 5).all()
        p = (10**9 + 1) / (2**31 - 1)
        sd = math.sqrt(10**6 * p * (1 - p))
        assert abs(z[0].mean() - 10**6 * p) < 4 * sd / math.sqrt(300) and 0.8 < z[0].std() / sd < 1.2
        n[1], y[1] = 2 * 10**9, 10**9
        m, z = draw_down(n, y, 0, (0, 1))
        assert (m == 2 * 10**9).all() and (z[1] == 10**9).all() and (z[0] <= 10**9 + 1).all()
        assert (m[0] - z[0] <= n[0] - y[0]).all() and len(set(z[0])) > 200

    def test_equalize(self):
        rng = np.random.default_rng(0)
        n = np.stack([np.full(40, 100), np.full(40, 1)])
        y = rng.binomial(n, 0.5).astype(float)
        c = compare(n, y, PAIR, equalize=True)
        assert c.method == ("exact",) and c.p[0] == compare(n, y, PAIR, equalize=True).p[0]
        assert c.warnings == ("1 of 1 pairs had attempts drawn down at random to equal numbers (seed 0)",)
        others = {compare(n, y, PAIR, equalize=True, seed=s).p[0] for s in range(5)}
        assert len(others) > 1


class TestInvariance:
    def test_pairs_do_not_meet(self):
        n, y, _ = aime()
        n[2, 3], y[2, 3] = 0, 0
        n[4, 5], y[4, 5] = 2, 1
        whole = compare(n, y, every_pair(16), adjust="none", fisher=True)
        for k in range(0, 120, 7):
            alone = compare(n, y, whole.pairs[k : k + 1], adjust="none", fisher=True)
            for field in ("items", "difference", "lower", "p", "p_smallest", "discordance", "p_attempts"):
                assert getattr(alone, field)[0] == getattr(whole, field)[k], field
            assert alone.method[0] == whole.method[k]

    def test_block_size(self, monkeypatch):
        n, y, _ = aime()
        want = compare(n, y, every_pair(16))
        monkeypatch.setattr("benchkit.signflip.BLOCK_CELLS", 100)
        got = compare(n, y, every_pair(16))
        for field in Comparison._fields:
            np.testing.assert_array_equal(getattr(got, field), getattr(want, field), err_msg=field)

    def test_order_of_items(self):
        n, y, _ = aime()
        order = np.random.default_rng(0).permutation(15)
        np.testing.assert_array_equal(
            compare(n, y, every_pair(16)).p, compare(n[:, order], y[:, order], every_pair(16)).p
        )


class TestReference:
    def test_aime(self):
        # p by enumeration of all sign patterns, adjusted as R's p.adjust(p, "holm")
        n, y, names = aime()
        want = json.loads((DATA / "aime2025_I.refvals.json").read_text())
        ref = best_complete(n, y)
        assert names[ref] == want["reference_model"]
        c = compare(n, y, against(ref, 16))
        assert c.family_size == 15 and set(c.method) == {"exact"} and c.warnings == ()
        for k, (_, b) in enumerate(c.pairs):
            assert c.p[k] == want["signflip_p"][names[b]]
            assert math.isclose(c.p_adjusted[k], want["holm_p"][names[b]], rel_tol=1e-12)
        assert c.significant_count == 6 and c.significant_raw == 12

    def test_darwins_maize(self):
        d = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
        assert compare(*two([100 + x for x in d], [100] * 15, 200), PAIR).p[0] == 1726 / 32768

    @pytest.mark.parametrize(
        ("slips", "significant"), [([11, *[10] * 28], {11}), ([10] * 29, set()), ([12, 11, *[1] * 27], {11, 12})]
    )
    def test_a_perfect_model_needs_eleven(self, slips, significant):
        n = np.full((30, 30), 4)
        y = n.astype(float)
        for k, count in enumerate(slips, 1):
            y[k, :count] -= 1
        c = compare(n, y, against(0, 30))
        assert c.p.tolist() == [2 * 0.5**k for k in slips]
        assert {slips[k] for k in np.flatnonzero(c.significant)} == significant

    def test_fisher_beside(self):
        n = np.full((3, 30), 4)
        y = n.astype(float)
        y[1, :4] -= 1
        y[2, :8] -= 1
        c = compare(n, y, against(0, 3), fisher=True)
        np.testing.assert_allclose(c.p_attempts, [0.12187, 0.00693], atol=5e-6)
        np.testing.assert_allclose(c.p_attempts_adjusted, [0.12187, 0.01386], atol=1e-5)

    def test_detectable_difference(self):
        n, y = two([1] * 30, [1] * 27 + [0] * 3)
        c = compare(n, y, PAIR)
        assert c.discordance[0] == pytest.approx(0.1, abs=1e-15)
        assert 100 * c.detectable_difference[0] == pytest.approx(16.2, abs=0.05)


class TestCoverage:
    """Type I error: pairs of equal models, one independent pair per replication."""

    @staticmethod
    def size(attempts, other=None, pairs=3000, items=25, **options):
        rng = np.random.default_rng(11)
        p = np.repeat(rng.beta(1, 1, (pairs, items)), 2, axis=0)
        n = np.tile([[attempts], [other or attempts]], (pairs, items))
        y = rng.binomial(n, p).astype(float)
        which = np.arange(2 * pairs).reshape(-1, 2)
        return compare(n, y, which, adjust="none", **options).significant.mean()

    @pytest.mark.parametrize("side", flips.ALTERNATIVES)
    @pytest.mark.parametrize("attempts", [1, 4])
    def test_size(self, attempts, side):
        size = self.size(attempts, alternative=side)
        assert size <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 3000)
        assert size >= (0.01 if attempts == 1 else 0.028)  # and not by never rejecting

    def test_unequal_attempts_drawn_down(self):
        assert self.size(40, 2, pairs=1000, equalize=True) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)

    @pytest.mark.slow
    def test_unequal_attempts_as_they_are_exceed_the_level(self):
        """Why the method is then called symmetry-assumed: saturated items, 100 attempts against 1."""
        rng = np.random.default_rng(2)
        pairs = 1500
        n = np.tile([[100], [1]], (pairs, 30))
        y = rng.binomial(n, 0.95).astype(float)
        which = np.arange(2 * pairs).reshape(-1, 2)
        assert compare(n, y, which, adjust="none").significant.mean() > 0.08
        assert compare(n, y, which, adjust="none", equalize=True).significant.mean() < 0.05

    def test_holm_family(self):
        """20 equal models against one: some rejection in at most 5% of the tables."""
        rng = np.random.default_rng(4)
        p = rng.beta(2, 1, 40)
        n = np.full((20, 40), 2)
        hits = sum(
            compare(n, rng.binomial(n, p).astype(float), against(0, 20)).significant_count > 0 for _ in range(300)
        )
        assert hits / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


class TestClusters:
    def test_an_interval_and_a_detectable_difference_over_clusters(self):
        rng = np.random.default_rng(6)
        n, y = two(*rng.integers(0, 2, (2, 24)))
        codes = np.arange(24) // 3
        c = compare(n, y, PAIR, cluster=codes, exact_power=True)
        d, u = y[0] - y[1], (y[0] - y[1]).reshape(8, 3).sum(axis=1)
        m = d.sum() / 26
        variance = (((u - 3 * m) ** 2).sum() + 2 + 2 * m**2) / 26
        z, t = 1.959963984540054, 2.364624251592784  # R 4.2.2: qt(.975, 7)
        assert c.lower[0] == pytest.approx(m - t * math.sqrt(variance / 26))
        want = (z + 0.8416212335729143) * math.sqrt((u**2).sum()) / 24
        assert c.detectable_difference[0] == pytest.approx(want)
        assert np.isnan(c.detectable_exact[0]) and "come in clusters" in c.reasons["detectable_exact"][0]

    def test_the_least_p_is_said(self):
        n, y = two([1] * 12, [0] * 12)
        c = compare(n, y, PAIR, cluster=np.arange(12) // 3)
        assert c.p_smallest[0] == c.p[0] == 2.0**-3
        assert c.warnings == (
            "signs flip by 4 clusters: the least p that a pair could have is 0.12, "
            "and 1 of 1 pairs can't be significant",
            "4 clusters tell little of how clusters vary: intervals and detectable differences are rough",
        )
        six = compare(n, y, PAIR, cluster=np.arange(12) // 2)
        assert six.warnings[0] == "signs flip by 6 clusters: the least p that a pair could have is 0.031"

    def test_one_cluster_tells_nothing_of_clusters(self):
        n, y = two([1] * 12, [0] * 6 + [1] * 6)
        c = compare(n, y, PAIR, cluster=np.zeros(12), margin="0.9")
        assert np.isnan(c.lower[0]) and not c.equivalent[0]
        row = c.document(["a", "b"])["pairs"][0]
        assert row["upper"] is None and row["upper_reason"] == "one cluster has no spread"

    def test_items_alone_are_no_clusters(self):
        n, y = two(*np.random.default_rng(1).integers(0, 2, (2, 15)))
        a, b = compare(n, y, PAIR), compare(n, y, PAIR, cluster=np.arange(15))
        for field in ("p", "detectable_difference"):
            np.testing.assert_allclose(getattr(a, field), getattr(b, field))
        t = 2.1447866879169273 / 1.959963984540054  # R 4.2.2: qt(.975, 14)
        assert b.upper - b.lower == pytest.approx(t * (a.upper - a.lower))


class TestPlanning:
    def test_items_needed_invert_the_detectable_difference(self):
        n, y = two([1] * 30, [1] * 24 + [0] * 6)
        c = compare(n, y, PAIR, plan="0.1")
        needed = c.items_needed[0]
        z = 1.959963984540054 + 0.8416212335729143
        assert isinstance(needed, int) and needed == math.ceil(z**2 * 0.2 / 0.01) == 157
        assert z * math.sqrt(0.2 / needed) <= 0.1 < z * math.sqrt(0.2 / (needed - 1))

    def test_a_difference_that_the_benchmark_can_not_show(self):
        n, y = two([1] * 30, [1] * 27 + [0] * 3)
        document = compare(n, y, PAIR, plan="0.2").document(["a", "b"])
        row = document["pairs"][0]
        assert document["plan"] == 0.2 and row["items_needed"] is None
        assert "larger than the mean absolute difference" in row["items_needed_reason"]
        same = compare(n, np.ones(n.shape), PAIR, plan="0.2").document(["a", "b"])["pairs"][0]
        assert "never differ" in same["items_needed_reason"]

    def test_equivalent_is_the_interval_inside_the_margin(self):
        rng = np.random.default_rng(3)
        n, y = two(*rng.integers(0, 2, (2, 100)))
        at_90 = compare(n, y, PAIR, alpha="0.1")
        widest = max(abs(at_90.lower[0]), abs(at_90.upper[0]))
        inside = compare(n, y, PAIR, margin=f"{widest + 1e-6:.9f}")
        outside = compare(n, y, PAIR, margin=f"{widest - 1e-6:.9f}")
        assert inside.equivalent[0] and not outside.equivalent[0] and compare(n, y, PAIR).equivalent is None

    def test_few_items_are_not_equivalent(self):
        """No difference at all on 10 items is no tie within 5 points."""
        n, y = two([1] * 10, [1] * 10)
        assert not compare(n, y, PAIR, margin="0.05").equivalent[0]
        assert compare(*two([1] * 3000, [1] * 3000), PAIR, margin="0.05").equivalent[0]

    def test_equivalence_needs_a_level(self):
        n, y = two([1] * 10, [1] * 10)
        with pytest.raises(InputError, match=r"equivalence has no interval at alpha 0\.5"):
            compare(n, y, PAIR, margin="0.05", alpha="0.5")

    def test_type_one_error_of_equivalence(self):
        """A true difference of the margin is called equivalent in about alpha of the tables."""
        rng = np.random.default_rng(9)
        d = rng.choice([-1, 0, 1], p=[0.1, 0.7, 0.2], size=(2000, 150))
        y = np.stack([np.maximum(d, 0), np.maximum(-d, 0)], axis=1).reshape(-1, 150)
        n = np.ones(y.shape, dtype=int)
        found = compare(n, y, np.arange(4000).reshape(-1, 2), margin="0.1", alpha="0.05", adjust="none")
        assert found.equivalent.mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


class TestFamilies:
    def test_maxt_is_a_family_too(self):
        n, y, _ = aime()
        holm = compare(n, y, against(15, 16), adjust="holm")
        maxt = compare(n, y, against(15, 16), adjust="maxt", draws=9999)
        assert maxt.family_size == holm.family_size and np.all(maxt.p_adjusted >= maxt.p - 0.02)
        assert maxt.controls.endswith("asymptotically") and maxt.significant_raw == holm.significant_raw

    def test_maxt_does_not_go_with_equalize(self):
        with pytest.raises(InputError, match="maxt flips the signs of one table"):
            compare(*two([1, 0], [0, 0]), PAIR, adjust="maxt", equalize=True)

    def test_pass_at_k(self):
        n, y = two([2] * 6, [4, 4, 4, 0, 0, 0], attempts=4)
        c = compare(n, y, PAIR, estimator=estimator("pass@2"))
        d = np.array([5 / 6 - 1] * 3 + [5 / 6] * 3)
        assert c.difference[0] == pytest.approx(d.mean()) and c.method == ("exact",) and c.estimator == "pass@2"
        signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1)
        assert c.p[0] == np.mean(np.abs(d @ signs) >= abs(d.sum()) - 1e-12)
