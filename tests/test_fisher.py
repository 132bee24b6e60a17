import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit.fisher import fisher_exact


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
