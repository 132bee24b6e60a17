"""benchkit.rerun: the power of the test that compares the totals of two runs, item by item."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchkit import rerun
from benchkit.errors import InputError
from benchkit.rerun import approximate_probit, conditional_power, least_power


def brute(p, q, attempts, alpha):
    """Power by going through all outcomes: the randomised test within each vector of totals, written out."""
    n, k = len(p), attempts

    def binomial(rate, count):
        return math.comb(k, count) * rate**count * (1 - rate) ** (k - count)

    strata = {}
    for x in itertools.product(range(k + 1), repeat=n):
        for y in itertools.product(range(k + 1), repeat=n):
            null = math.prod(math.comb(k, a) * math.comb(k, b) for a, b in zip(x, y, strict=True))
            true = math.prod(binomial(a, c) * binomial(b, d) for a, b, c, d in zip(p, q, x, y, strict=True))
            sums = strata.setdefault(tuple(np.add(x, y)), {})
            old = sums.get(sum(y), (0, 0.0))
            sums[sum(y)] = (old[0] + null, old[1] + true)
    power = 0.0
    for sums in strata.values():
        whole, left = sum(null for null, _ in sums.values()), alpha
        for value in sorted(sums, reverse=True):
            null, true = sums[value]
            reject = min(1.0, left * whole / null)
            power += reject * true
            left -= reject * null / whole
    return power


def run(lo, hi):
    return np.array([[lo, hi]])


class TestValidation:
    @pytest.mark.parametrize(
        ("attempts", "alpha", "words"),
        [(0, 0.05, "attempts must be"), (1001, 0.05, "1 to 1000"), (4, 1e-7, "alpha must lie"), (4, 1.0, "alpha must")],
    )
    def test_messages(self, attempts, alpha, words):
        with pytest.raises(InputError, match=words):
            least_power(np.full(3, 0.4), 0.2, attempts, run(0, 1), alpha)


class TestInvariance:
    def test_seed_and_blocks(self, monkeypatch):
        p = np.linspace(0.1, 0.7, 60)
        first = least_power(p, 0.2, 5, run(3, 9), seed=1)
        assert first == least_power(p, 0.2, 5, run(3, 9), seed=1) and not first.exact
        other = least_power(p, 0.2, 5, run(3, 9), seed=2)
        assert other.power != first.power
        assert abs(other.power - first.power) < 5 * math.hypot(first.se, other.se)
        monkeypatch.setattr(rerun, "_BLOCK", 5000)
        assert abs(least_power(p, 0.2, 5, run(3, 9), seed=1).power - first.power) < 5 * first.se

    def test_right_and_wrong_exchanged(self):
        """Rates p to p + d are wrong rates 1 - p to 1 - p - d, from after to before."""
        p = np.array([0.1, 0.3, 0.45, 0.5, 0.2])
        mirrored = np.where(np.arange(5) < 2, 1 - p - 0.3, 1 - p)
        for attempts in (1, 3):
            a, b = (least_power(rates, 0.3, attempts, run(0, 2)).power for rates in (p, mirrored))
            assert a == pytest.approx(b, abs=1e-13)


class TestTheory:
    @pytest.mark.parametrize(("attempts", "items"), [(1, 4), (2, 3), (3, 2), (4, 2)])
    @pytest.mark.parametrize("alpha", [0.05, 0.3])
    def test_brute_force(self, attempts, items, alpha):
        rng = np.random.default_rng(attempts)
        for lo, hi in ((0, 1), (1, 2), (0, items)):
            p = rng.uniform(0.02, 0.68, items)
            q = p.copy()
            q[lo:hi] += 0.3
            found = least_power(p, 0.3, attempts, run(lo, hi), alpha)
            want = brute(p, q, attempts, alpha)
            assert found.exact and found.se == 0 and found.power == pytest.approx(want, abs=1e-13)
            drawn = least_power(p, 0.3, attempts, run(lo, hi), alpha, exactly=False)
            assert not drawn.exact and 0 < drawn.se < 0.003
            assert abs(drawn.power - want) < 4.5 * drawn.se

    def test_no_lift_and_certainty(self):
        assert least_power(np.array([0.0, 0.0]), 1.0, 2, run(0, 1)).power == pytest.approx(
            brute([0, 0], [1, 0], 2, 0.05), abs=1e-13
        )
        assert least_power(np.array([0.4, 0.6]), 0.4, 2, run(1, 2)).power == pytest.approx(
            brute([0.4, 0.6], [0.4, 1], 2, 0.05), abs=1e-13
        )

    @given(p=st.lists(st.floats(0, 1), min_size=1, max_size=6), attempts=st.integers(1, 4), alpha=st.floats(0.001, 0.9))
    def test_size_is_exactly_alpha(self, p, attempts, alpha):
        found = least_power(np.array(p), 0.0, attempts, run(0, 1), alpha)
        assert found.power == pytest.approx(alpha, abs=1e-12)

    @given(
        p=st.lists(st.floats(0.01, 0.5), min_size=3, max_size=5),
        attempts=st.integers(1, 3),
        lift=st.floats(0.05, 0.45),
    )
    def test_monotone_in_the_set_and_in_the_lift(self, p, attempts, lift):
        def power(lo, hi, by=lift):
            return least_power(np.array(p), by, attempts, run(lo, hi)).power

        assert power(1, 2) + 1e-12 >= 0.05
        assert power(1, 2) <= power(0, 2) + 1e-12 and power(0, 2) <= power(0, 3) + 1e-12
        assert power(0, 2, lift / 2) <= power(0, 2) + 1e-12

    def test_one_attempt_is_mcnemar(self):
        """All items alike, one attempt: of the pairs that differ, the share gained is tested against one half."""
        n, p, q = 40, 0.3, 0.5
        differ, gained = p * (1 - q) + q * (1 - p), q * (1 - p) / (p * (1 - q) + q * (1 - p))
        want = 0.0
        for pairs in range(n + 1):
            edge = int(stats.binom.ppf(0.95, pairs, 0.5))
            share = (0.05 - stats.binom.sf(edge, pairs, 0.5)) / stats.binom.pmf(edge, pairs, 0.5)
            reject = stats.binom.sf(edge, pairs, gained) + share * stats.binom.pmf(edge, pairs, gained)
            want += stats.binom.pmf(pairs, n, differ) * reject
        found = least_power(np.full(n, p), q - p, 1, run(0, n), exactly=False)
        assert abs(found.power - want) < 4.5 * found.se
        few = least_power(np.full(n, p), q - p, 1, run(0, 5))
        assert few.exact and 0.05 < few.power < want

    def test_the_least_of_several_sets(self):
        """Compared by power, not by size."""
        p = np.array([0.7, 0.4, 0.05])
        sets = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]])
        each = [brute(p, p + np.where((np.arange(3) >= lo) & (np.arange(3) < hi), 0.2, 0), 3, 0.05) for lo, hi in sets]
        found = least_power(p, 0.2, 3, sets)
        assert found.at == int(np.argmin(each)) == 4 and found.power == pytest.approx(min(each), abs=1e-13)
        assert min(each[0], each[2]) - min(each) > 0.004

    def test_an_empty_set_changes_nothing(self):
        found = least_power(np.full(9, 0.3), 0.2, 50, np.array([[0, 2], [4, 4]]), 0.03)
        assert (found.at, found.power, found.se, found.exact) == (1, 0.03, 0, True)

    def test_goes_to_one_with_the_attempts(self):
        powers = [least_power(np.array([0.2, 0.4, 0.6]), 0.3, k, run(1, 2)).power for k in (1, 4, 20, 100, 400)]
        assert powers == sorted(powers) and powers[0] < 0.08 and powers[-1] > 0.99

    def test_normal_approximation(self):
        """Within a hundredth; and it finds the least set, on which the choice among many sets rests."""
        rng = np.random.default_rng(5)
        for items, attempts, size in ((15, 4, 2), (40, 2, 3), (150, 1, 12)):
            p = np.sort(rng.uniform(0.05, 0.75, items))
            sets = np.array([[lo, lo + size] for lo in range(items - size + 1)])
            exact = rerun._Exact(items, attempts, 0.05).powers(p, 0.2, sets)
            near = stats.norm.cdf(approximate_probit(p, 0.2, attempts, sets, 0.05))
            assert np.abs(exact - near).max() < 0.01
            assert exact[np.argmin(near)] < exact.min() + 0.0002

    def test_every_way_to_share(self):
        counts, at = rerun._shares(3, 2)
        assert sorted(map(tuple, counts)) == sorted(c for c in itertools.product(range(4), repeat=3) if sum(c) == 3)
        assert all(at[tuple(row[1:])] == number for number, row in enumerate(counts))

    @pytest.mark.parametrize("integrated", [0, 2, 5])
    def test_after_counts_summed_over_or_drawn(self, integrated, monkeypatch):
        p = np.linspace(0.05, 0.6, 12)
        want = least_power(p, 0.25, 3, run(4, 9)).power
        monkeypatch.setattr(rerun, "_INTEGRATED", integrated)
        found = least_power(p, 0.25, 3, run(4, 9), exactly=False, seed=integrated)
        assert abs(found.power - want) < 4.5 * found.se

    @pytest.mark.parametrize("lift", [0.004, 0.02, 0.3])
    def test_many_attempts(self, lift):
        """At 300 attempts an item the normal approximation is close, also far beyond the critical value."""
        p = np.full(10, 0.4)
        found = least_power(p, lift, 300, run(0, 3))
        near = stats.norm.cdf(approximate_probit(p, lift, 300, run(0, 3), 0.05)[0])
        assert found.power == pytest.approx(near, abs=0.005 + 4 * found.se)


class TestReference:
    @pytest.mark.parametrize("log_odds", [0.0, 0.7, 3.0])
    def test_noncentral_hypergeometric(self, log_odds):
        """scipy.stats.nchypergeom_fisher"""
        mass = rerun._fisher(7, log_odds)
        for m in range(8):
            want = stats.nchypergeom_fisher(14, 7, m, math.exp(log_odds)).pmf(np.arange(8))
            assert mass[m] == pytest.approx(want, abs=1e-12)

    @pytest.mark.parametrize(("attempts", "items", "changed"), [(3, 6, 2), (10, 40, 7), (100, 9, 3)])
    def test_conditional_power(self, attempts, items, changed):
        """Distributions of T by scipy.stats and np.convolve, on totals above and below the middle."""
        rng = np.random.default_rng(items)
        for alpha in (0.05, 0.0001):
            t = rng.integers(0, 2 * attempts + 1, items)
            odds = rng.uniform(1, 8, changed)
            null, true, values = np.ones(1), np.ones(1), np.arange(attempts + 1)
            for j in range(items):
                law = stats.hypergeom(2 * attempts, attempts, t[j])
                null = np.convolve(null, law.pmf(values))
                if j < changed:
                    law = stats.nchypergeom_fisher(2 * attempts, attempts, t[j], odds[j])
                true = np.convolve(true, [law.pmf(v) for v in values])
            left, want = alpha, 0.0
            for value in range(len(null) - 1, -1, -1):
                share = min(1.0, left / null[value]) if null[value] > 1e-300 else 1.0
                want += share * true[value]
                left -= share * null[value]
                if share < 1:
                    break
            m = np.minimum(t, 2 * attempts - t)
            totals = rerun.Totals(
                rerun._count(m[None], attempts), rerun._count(m[None, changed:], attempts), m[None, :changed],
                np.zeros(1, np.int64),
            )  # fmt: skip
            got = conditional_power(totals, attempts, np.log(odds).tolist(), alpha)
            assert got[0] == pytest.approx(want, abs=1e-9)


class TestCoverage:
    @pytest.mark.parametrize(("attempts", "items", "size"), [(3, 30, 6), (10, 25, 2)])
    def test_rejections_counted(self, attempts, items, size):
        """The test itself on 3000 simulated pairs of runs: the share rejected is the power."""
        rng = np.random.default_rng(attempts)
        p = rng.uniform(0.1, 0.6, items)
        q = p.copy()
        q[3 : 3 + size] += 0.3
        law = [stats.hypergeom(2 * attempts, attempts, t).pmf(np.arange(attempts + 1)) for t in range(2 * attempts + 1)]
        rejected, runs = 0.0, 3000
        for _ in range(runs):
            x, y = rng.binomial(attempts, p), rng.binomial(attempts, q)
            null = np.ones(1)
            for t in x + y:
                null = np.convolve(null, law[t])
            above = null[y.sum() + 1 :].sum()
            rejected += float(np.clip((0.05 - above) / null[y.sum()], 0, 1))
        found = least_power(p, 0.3, attempts, run(3, 3 + size))
        share = rejected / runs
        assert abs(share - found.power) < 4.5 * math.sqrt(found.power * (1 - found.power) / runs + found.se**2)
