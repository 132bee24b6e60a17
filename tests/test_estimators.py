import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.estimators import MEAN, Estimator, estimator, expected, numerators, rates, scores, whole

KINDS = st.sampled_from(["pass", "all"])


def by_choice(of, right, n):
    """The share of all choices of K of n attempts, the first `right` of them right, with any or all right."""
    good = any if of.kind == "pass" else all
    found = [good(x < right for x in choice) for choice in itertools.combinations(range(n), of.k)]
    return Fraction(sum(found), len(found))


class TestValidation:
    @pytest.mark.parametrize(
        "text", ["pass", "pass@0", "pass@", "pass@-1", "all@1.5", "mean@2", "any@2", "pass@1e3", ""]
    )
    def test_text(self, text):
        with pytest.raises(InputError, match="is not mean, pass@K or all@K"):
            estimator(text)

    def test_names(self):
        assert [str(estimator(x)) for x in ("mean", "pass@3", "all@10")] == ["mean", "pass@3", "all@10"]

    def test_too_few_attempts_name_the_cell(self):
        n, y = np.array([[4, 4], [4, 2]]), np.array([[1.0, 4], [0, 2]])
        with pytest.raises(InputError, match=r"model b, item q2: pass@3 can't be estimated from 2 attempts"):
            scores(n, y, estimator("pass@3"), ["a", "b"], ["q1", "q2"])
        with pytest.raises(InputError, match="model 1, item 1: all@4"):
            scores(n, y, estimator("all@4"))

    def test_fractions_are_no_attempts(self):
        with pytest.raises(InputError, match="right or wrong: some scores are fractions"):
            scores(np.full((1, 2), 4), np.array([[1.5, 2]]), estimator("pass@2"))


class TestTheory:
    @given(KINDS, st.integers(1, 7), st.data())
    def test_is_the_share_of_all_choices(self, kind, n, data):
        of = Estimator(kind, data.draw(st.integers(1, n)))
        for c in range(n + 1):
            assert Fraction(numerators(of, n)[c], whole(of, n)) == by_choice(of, c, n)

    @given(KINDS, st.integers(1, 9), st.integers(1, 9), st.floats(0, 1))
    def test_is_unbiased(self, kind, n, k, p):
        of = Estimator(kind, min(n, k))
        mass = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        mean = sum(m * x / whole(of, n) for m, x in zip(mass, numerators(of, n), strict=True))
        assert mean == pytest.approx(float(expected(np.array(p), of)), abs=1e-12)

    @pytest.mark.parametrize(("kind", "n", "k"), [("pass", 5, 2), ("all", 6, 3), ("pass", 4, 4)])
    def test_expectation_under_the_beta_binomial(self, kind, n, k):
        of, p, rho = Estimator(kind, k), 0.3, 0.4
        a, b = p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho
        beta = lambda x, y: math.gamma(x) * math.gamma(y) / math.gamma(x + y)  # noqa: E731
        mass = [math.comb(n, c) * beta(c + a, n - c + b) / beta(a, b) for c in range(n + 1)]
        mean = sum(m * x / whole(of, n) for m, x in zip(mass, numerators(of, n), strict=True))
        assert mean == pytest.approx(float(expected(np.array(p), of, np.array(rho))), rel=1e-12)

    @pytest.mark.parametrize("text", ["mean", "pass@1", "all@1", "pass@3", "all@2"])
    def test_exact_and_float_scores_agree(self, text):
        rng = np.random.default_rng(3)
        n = rng.integers(3, 9, (4, 6))
        y = rng.binomial(n, 0.6).astype(float)
        n[2, 1] = y[2, 1] = 0
        of = estimator(text)
        exact = scores(n, y, of)
        assert exact.exact
        np.testing.assert_allclose(exact.values / exact.denominator, rates(n, y, of), atol=1e-15)
        assert exact.values[2, 1] == 0 and rates(n, y, of)[2, 1] == 0

    def test_one_attempt_is_the_mean(self):
        n, y = np.array([[4, 7]]), np.array([[3.0, 2]])
        for text in ("pass@1", "all@1"):
            a, b = scores(n, y, estimator(text)), scores(n, y, MEAN)
            assert a.denominator == b.denominator and a.values.tolist() == b.values.tolist()

    def test_denominators_beyond_int64_stay_exact(self):
        n, y = np.array([[200, 200]]), np.array([[70.0, 110]])
        of = estimator("pass@60")
        s = scores(n, y, of)
        assert s.exact and s.values.dtype == object
        want = 1 - Fraction(math.comb(90, 60), math.comb(200, 60))
        assert Fraction(int(s.values[0, 1]), s.denominator) == want
        assert Fraction(int(s.values[0, 0]), s.denominator) == 1 - Fraction(math.comb(130, 60), math.comb(200, 60))


class TestReference:
    def test_formula_of_the_paper(self):
        # Chen and others 2021, the numerically stable program of figure 3: 1 - prod(1 - k/arange(n - c + 1, n + 1))
        n, c, k = 100, 13, 10
        want = 1 - np.prod(1 - k / np.arange(n - c + 1, n + 1))
        got = rates(np.array([[n]]), np.array([[float(c)]]), estimator("pass@10"))[0, 0]
        assert got == pytest.approx(want, rel=1e-12)
