import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import flips
from benchkit.errors import InputError
from benchkit.flips import sign_flip
from benchkit.scores import Differences

MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def one(d, alternative="two-sided", tolerance=0, **options):
    t = sign_flip(
        Differences(np.array([d], dtype=np.int64), np.array([tolerance], dtype=np.int64)), alternative, **options
    )
    return float(t.p[0])


def enumerated(d, alternative="two-sided"):
    """All 2^k sign patterns, as an exact fraction."""
    d = [x for x in d if x]
    seen = sum(d)
    hits = 0
    for signs in itertools.product((1, -1), repeat=len(d)):
        s = sum(e * abs(x) for e, x in zip(signs, d, strict=True))
        hits += {"two-sided": abs(s) >= abs(seen), "greater": s >= seen, "less": s <= seen}[alternative]
    return Fraction(hits, 2 ** len(d))


rows = st.lists(st.integers(-6, 6), max_size=11)
sides = st.sampled_from(flips.ALTERNATIVES)


class TestValidation:
    def test_alternative(self):
        with pytest.raises(InputError, match="alternative must be one of two-sided, greater, less, not up"):
            one([1], "up")


class TestTheory:
    @given(rows, sides)
    @settings(deadline=None)
    def test_convolution_is_enumeration(self, d, side):
        assert one(d or [0], side) == enumerated(d, side)

    @given(rows, sides)
    @settings(deadline=None)
    def test_middle_is_enumeration(self, d, side):
        d = [x * 10**9 + (x > 2) for x in d] or [0]
        assert one(d, side) == enumerated(d, side)

    @given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.data())
    @settings(deadline=None)
    def test_algorithms_agree(self, sizes, data):
        w = data.draw(st.integers(0, sum(sizes)))
        a = np.array(sizes, dtype=np.int64)
        got = flips.integer_tails(sizes, [w])[w]
        assert got == flips.middle_tail(a, w)
        for short in (-1, 2**60):  # arrays, integers
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(flips, "SHORT", short)
                assert got == flips.convolution_tails(a, [w])[w]
        if set(sizes) == {1}:
            assert got == flips.binomial_tails(len(sizes), [w])[w]

    @pytest.mark.parametrize(("k", "top"), [(1, 1), (7, 3), (60, 9), (400, 4), (1500, 12)])
    @pytest.mark.parametrize("share", [0.1, 0.44, 0.499])
    def test_masses_of_few_values_agree(self, k, top, share):
        sizes = np.random.default_rng(k).integers(1, top + 1, k)
        w = int(sizes.sum() * share)
        want = flips.convolution_tails(sizes, [w])[w]
        assert flips.mixture_tail(sizes, w) == pytest.approx(want, rel=1e-12, abs=1e-300)

    def test_hundreds_of_thousands_of_items_are_counted(self):
        d = np.random.default_rng(1).integers(-4, 5, 200_000)
        got = flips.sign_flip(Differences(d[None, :], np.zeros(1, dtype=int)), "greater")
        assert np.isnan(got.se[0])
        z = (d.sum() - 0.5) / math.sqrt((d.astype(float) ** 2).sum())
        assert got.p[0] == pytest.approx(math.erfc(z / math.sqrt(2)) / 2, rel=1e-3)

    @given(rows)
    def test_sides_complement(self, d):
        d = d or [0]
        both = Fraction(one(d, "greater")) + Fraction(one(d, "less"))
        ties = both - 1  # P(sum = observed)
        assert ties >= 0
        assert one(d, "greater") == one([-x for x in d], "less")

    @given(rows, st.integers(2, 50))
    @settings(max_examples=30)
    def test_unit_does_not_matter(self, d, unit):
        d = d or [0]
        assert one(d) == one([unit * x for x in d])

    @pytest.mark.parametrize("k", [1, 2, 10, 53, 54, 200, 1000])
    def test_all_one_way(self, k):
        rng = np.random.default_rng(k)
        assert one([1] * k) == 2 * 0.5**k
        assert one([1] * k, "greater") == 0.5**k
        assert one([1] * k, "less") == 1.0
        assert one(rng.integers(1, 17, k)) == 2 * 0.5**k

    @pytest.mark.parametrize("k", [901, 1500, 2500])
    @pytest.mark.parametrize("slip", [0, 3, 500, 0.49])
    def test_thousands_of_terms_match_python_integers(self, k, slip):
        down = int(k * slip) if slip < 1 else int(slip)
        sizes = np.array([1 + i % 3 for i in range(k)])
        sizes.sort()
        d = sizes.copy()
        d[:down] *= -1
        w = int(-d[d < 0].sum())
        counts = [1] + [0] * w
        for v in sizes.tolist():
            counts = [counts[t] + (counts[t - v] if t >= v else 0) for t in range(w + 1)]
        want = float(min(Fraction(1), 2 * Fraction(sum(counts), 2**k)))
        assert math.isclose(one(d), max(want, flips.TINY), rel_tol=1e-11)

    @pytest.mark.parametrize(("k", "w"), [(901, 300), (2500, 1200), (5000, 2400)])
    def test_long_binomial_tails(self, k, w):
        want = sum(math.comb(k, t) for t in range(w + 1)) / 2**k
        assert math.isclose(flips.binomial_tails(k, [w])[w], want, rel_tol=1e-11)

    def test_nothing_differs(self):
        t = sign_flip(Differences(np.zeros((1, 4), dtype=np.int64), np.zeros(1, dtype=np.int64)))
        assert (t.p[0], t.smallest[0], t.flips[0]) == (1, 1, 0)

    @given(rows)
    @settings(deadline=None, max_examples=40)
    def test_smallest_is_attained_and_least(self, d):
        d = d or [0]
        arr = np.array([d], dtype=np.int64)
        for side in flips.ALTERNATIVES:
            t = sign_flip(Differences(arr, np.zeros(1, dtype=np.int64)), side)
            best = sign_flip(
                Differences(np.abs(arr) * (-1 if side == "less" else 1), np.zeros(1, dtype=np.int64)), side
            )
            assert t.smallest[0] == best.p[0] <= t.p[0]

    def test_p_is_never_zero(self):
        assert one([1] * 2500) == flips.TINY
        assert one([1, 2] * 1250) == flips.TINY

    @given(st.lists(st.integers(-6, 6), min_size=1, max_size=9), st.integers(0, 3), sides)
    @settings(deadline=None, max_examples=60)
    def test_tolerance_counts_near_ties(self, d, h, side):
        signs = itertools.product((1, -1), repeat=sum(x != 0 for x in d))
        sizes = [abs(x) for x in d if x]
        seen, hits, n = sum(d), 0, 0
        for e in signs:
            s = sum(a * b for a, b in zip(e, sizes, strict=True))
            n += 1
            hits += {
                "two-sided": abs(s) >= abs(seen) - 2 * h,
                "greater": s >= seen - 2 * h,
                "less": s <= seen + 2 * h,
            }[side]
        assert one(d, side, tolerance=h) == (hits / n if any(d) or h == 0 else 1)


class TestReference:
    def test_darwins_maize(self):
        # Fisher 1935, The Design of Experiments, section 21: 863 of 32768 one-sided
        assert one(MAIZE) == 1726 / 32768
        assert one(MAIZE, "greater") == 863 / 32768

    @pytest.mark.parametrize(("up", "down", "p"), [(4, 3, 1.0), (30, 23, 0.4101), (29, 27, 0.8939), (39, 26, 0.1360)])
    def test_exact_mcnemar(self, up, down, p):
        # R: binom.test(min(up, down), up + down)$p.value
        assert round(one([1] * up + [-1] * down), 4) == p

    @given(st.integers(0, 60), st.integers(0, 60), sides)
    @settings(max_examples=60, deadline=None)
    def test_mcnemar_is_scipys_binomial_test(self, up, down, side):
        from scipy.stats import binomtest

        if up + down:
            want = binomtest(up, up + down, 0.5, side).pvalue
            assert math.isclose(one([1] * up + [-1] * down, side), want, rel_tol=1e-12)


class TestInvariance:
    @given(st.lists(rows.filter(len), min_size=1, max_size=8), sides)
    @settings(deadline=None, max_examples=30)
    def test_rows_do_not_meet(self, many, side):
        width = max(map(len, many))
        d = np.array([r + [0] * (width - len(r)) for r in many], dtype=np.int64)
        t = sign_flip(Differences(d, np.zeros(len(d), dtype=np.int64)), side)
        assert t.p.tolist() == [one(r, side) for r in many]

    @given(rows, st.randoms())
    @settings(deadline=None, max_examples=30)
    def test_order_of_items(self, d, random):
        shuffled = list(d)
        random.shuffle(shuffled)
        assert one(d or [0]) == one(shuffled or [0])


class TestMonteCarlo:
    def hard(self, k=60, seed=1):
        rng = np.random.default_rng(seed)
        return rng.integers(10**8, 10**9, k) * np.where(rng.random(k) < 0.6, 1, -1)

    def test_is_used_and_carries_its_error(self):
        d = self.hard()[None, :]
        t = sign_flip(Differences(d, np.zeros(1, dtype=np.int64)), draws=9_999)
        assert t.se[0] == math.sqrt(t.p[0] * (1 - t.p[0]) / 9_999)
        assert (t.p[0] * 10_000) == pytest.approx(round(t.p[0] * 10_000))
        assert t.smallest[0] == 1 / 10_000

    @pytest.mark.parametrize("side", flips.ALTERNATIVES)
    def test_agrees_with_counting(self, side):
        d = np.array([[3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8]], dtype=np.int64)
        p, se = flips.monte_carlo(d, np.zeros(1, dtype=np.int64), side, 99_999, 7)
        assert abs(p[0] - one(d[0], side)) < 4 * se[0]

    def test_a_row_depends_on_itself_only(self):
        a, b = self.hard(seed=1), self.hard(seed=2)
        none = np.zeros(2, dtype=np.int64)
        both = sign_flip(Differences(np.stack([a, b]), none), draws=999, seed=3).p
        assert both.tolist() == [one(a, draws=999, seed=3), one(b, draws=999, seed=3)]

    def test_huge_integers(self):
        d = np.random.default_rng(3).integers(2**55, 2**58, (1, 12)) * np.array([1, 1, -1] * 4)
        p, se = flips.monte_carlo(d, np.zeros(1, dtype=np.int64), "two-sided", 99_999, 0)
        assert abs(p[0] - enumerated(d[0].tolist())) < 4 * se[0]
