import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import fisher
from benchkit.fisher import fisher_exact, hypergeometric_quantile


class TestReference:
    @pytest.mark.parametrize(
        ("x", "p"),
        [
            (119, 1),
            (118, 0.49791),
            (117, 0.24686),
            (116, 0.12187),
            (115, 0.0599),
            (114, 0.02931),
            (113, 0.01428),
            (112, 0.00693),
        ],
    )
    def test_against_a_perfect_model(self, x, p):
        # R 4: fisher.test(matrix(c(120, 0, x, 120 - x), 2))$p.value
        assert fisher_exact(120, 120, x, 120) == pytest.approx(p, abs=5e-6)

    @given(st.integers(1, 80), st.integers(1, 80), st.data(), st.sampled_from(["two-sided", "greater", "less"]))
    @settings(max_examples=60, deadline=None)
    def test_is_scipys(self, n, m, data, side):
        from scipy.stats import fisher_exact as reference

        x, y = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
        want = reference([[x, n - x], [y, m - y]], side).pvalue
        assert fisher_exact(x, n, y, m, side) == pytest.approx(want, rel=1e-6)

    def test_r_tea_tasting(self):
        # Fisher 1935: 3 of 4 against 1 of 4, two-sided 34/70, one-sided 17/70
        assert fisher_exact(3, 4, 1, 4) == pytest.approx(34 / 70, rel=1e-14)
        assert fisher_exact(3, 4, 1, 4, "greater") == pytest.approx(17 / 70, rel=1e-14)


class TestTheory:
    @given(st.integers(1, 40), st.integers(1, 40), st.data())
    def test_symmetry(self, n, m, data):
        x, y = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
        p = fisher_exact(x, n, y, m)
        assert p == pytest.approx(fisher_exact(y, m, x, n), rel=1e-12)
        assert p == pytest.approx(fisher_exact(n - x, n, m - y, m), rel=1e-12)
        assert 0 < p <= 1

    def test_large_tables(self):
        # exact integers: P(X >= x)
        x, n, y, m = 1_000, 2_000, 900, 2_000
        total = math.comb(n + m, x + y)
        tail = sum(math.comb(n, k) * math.comb(m, x + y - k) for k in range(x, x + y + 1))
        assert fisher_exact(x, n, y, m, "greater") == pytest.approx(tail / total, rel=1e-9)
        assert fisher_exact(40_000, 40_000, 0, 40_000) > 0

    @pytest.mark.parametrize("side", ["two-sided", "greater", "less"])
    def test_integrals_are_the_sums(self, side, monkeypatch):
        """Supports of 10^5 to 10^8, where both can be had."""
        rng = np.random.default_rng(0)
        for _ in range(25):
            n, m = (int(10 ** rng.uniform(5.5, 8)) for _ in "ab")
            q, z = rng.uniform(0.02, 0.98), rng.normal(0, 6)
            x, y = int(n * q), int(min(m, max(0, m * q + z * math.sqrt(q * (1 - q) * m * (n + m) / n))))
            found = []
            for smooth in (500.0, math.inf):
                monkeypatch.setattr(fisher, "SMOOTH", smooth)
                fisher_exact.cache_clear()
                found.append(fisher_exact(x, n, y, m, side))
            assert found[0] == pytest.approx(found[1], rel=1e-7)
        fisher_exact.cache_clear()

    def test_a_part_of_the_support_is_enough(self, monkeypatch):
        tables = [(20, 40_000, 90, 10**5), (5_000, 10**6, 5_300, 10**6), (10**5, 10**5, 10**5 - 9, 10**5)]
        part = [fisher_exact(*t, side) for t in tables for side in ("two-sided", "greater", "less")]
        monkeypatch.setattr(fisher, "WHOLE", 10**9)
        fisher_exact.cache_clear()
        whole = [fisher_exact(*t, side) for t in tables for side in ("two-sided", "greater", "less")]
        assert part == pytest.approx(whole, rel=1e-9)

    def test_many_attempts_take_no_time(self):
        start = time.perf_counter()
        n = 2**31 - 1
        assert fisher_exact(n, n, n - 6, n) == pytest.approx(2 / 2**6, rel=1e-6)  # 6 failures, each on either side
        # normal limit: 3 standard deviations of the difference
        half, far = 500 * n, 10**14
        shift = round(3 * math.sqrt(far / 8) / 2) * 2
        assert fisher_exact(far // 2 + shift // 2, far, far // 2 - shift // 2, far) == pytest.approx(
            math.erfc(shift / math.sqrt(far / 2) / math.sqrt(2)), rel=1e-5
        )
        assert fisher_exact(half, 2 * half, half, 2 * half) == 1.0
        assert fisher_exact(2 * half, 2 * half, 0, 2 * half) == 5e-324
        assert fisher_exact(0, 2 * half, 2 * half, 2 * half, "greater") == 1.0
        assert time.perf_counter() - start < 5


class TestDraws:
    @pytest.mark.parametrize("table", [(5, 9, 4), (1, 3, 4), (50, 70, 60), (3000, 10**6, 2000)])
    def test_quantiles_are_scipys(self, table):
        from scipy.stats import hypergeom

        drawn, other, successes = table
        for u in (1e-9, 0.01, 0.3, 0.5, 0.77, 0.999, 1 - 1e-9):
            assert hypergeometric_quantile(u, *table) == hypergeom.ppf(u, drawn + other, successes, drawn)

    def test_integrals_and_sums_draw_alike(self, monkeypatch):
        rng = np.random.default_rng(1)
        for drawn, other, successes in ((10**7, 3 * 10**7, 2 * 10**7), (4 * 10**6, 10**9, 5 * 10**8)):
            for u in [*rng.random(10), 1e-12, 1 - 1e-12]:
                found = []
                for smooth in (500.0, math.inf):
                    monkeypatch.setattr(fisher, "SMOOTH", smooth)
                    found.append(hypergeometric_quantile(u, drawn, other, successes))
                assert abs(found[0] - found[1]) <= 1
