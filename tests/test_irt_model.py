"""The 1PL model's data: checks, warnings, components, dispersion."""

import numpy as np
import pytest

from benchkit.errors import InputError
from benchkit.irt.model import (
    Priors,
    boundary,
    check_data,
    check_priors,
    components,
    data_warnings,
    pearson_phi,
    sigmoid,
)


def counts(n, y):
    return check_data(np.array(n), np.array(y, float))


class TestValidation:
    @pytest.mark.parametrize(
        ("n", "y", "message"),
        [
            ([[2, 3]], [[3, 0]], "model a, item p: correct (3.0) is larger than attempts (2)"),
            ([[2, 3]], [[0, -1]], "model a, item q: correct (-1.0) is negative"),
            ([[2, 3]], [[0, np.nan]], "model a, item q: correct is nan, not a number"),
            ([[2, -1]], [[0, -1]], "model a, item q: attempts (-1) must be a whole number, 0 or more"),
            ([[2, 1.5]], [[0, 1]], "model a, item q: attempts (1.5) must be a whole number"),
            ([[2, np.inf]], [[0, 1]], "model a, item q: attempts is inf, not a number"),
            ([[0, 0]], [[0, 0]], "no attempts at all"),
            ([[2**53, 1]], [[0, 0]], "more than 2^53 attempts"),
        ],
    )
    def test_bad_counts_are_named(self, n, y, message):
        with pytest.raises(InputError) as e:
            check_data(np.array(n), np.array(y, float), ["a"], ["p", "q"])
        assert message in str(e.value) and "\n" not in str(e.value)

    def test_shapes(self):
        with pytest.raises(InputError, match="same shape"):
            counts([[1, 1]], [[1], [1]])
        with pytest.raises(InputError, match="no models or no items"):
            check_data(np.zeros((0, 3)), np.zeros((0, 3)))
        with pytest.raises(InputError, match="3 model names for 2 models"):
            check_data(np.ones((2, 2)), np.ones((2, 2)), ["a", "b", "c"])

    @pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 1e9])
    def test_prior_scales(self, bad):
        with pytest.raises(InputError, match="prior scale of sigma_b"):
            check_priors(Priors(5, 2.5, bad))

    def test_million_attempts_are_fine(self):
        assert counts([[10**6, 1]], [[10**6 - 1, 0]]).attempts[0, 0] == 10**6

    def test_warnings(self):
        assert data_warnings(counts([[1, 1], [1, 1]], [[1, 0], [0, 1]])) == []
        assert "fractions" in data_warnings(counts([[2, 1], [1, 1]], [[0.5, 0], [0, 1]]))[0]
        assert "only one model" in data_warnings(counts([[1, 1]], [[1, 0]]))[0]
        assert "only one item" in data_warnings(counts([[1], [1]], [[1], [0]]))[0]

    def test_a_huge_count_is_named(self):
        data = counts([[10_001, 1], [20_000, 10_000]], [[5, 1], [7, 3]])
        (text,) = data_warnings(data, ["a", "b"], ["p", "q"])
        assert text.startswith("model a has 10001 attempts on item p, and 1 more pairs have over 10000: ")

    def test_disconnected_parts_are_named(self):
        data = counts([[1, 1, 0], [0, 0, 2]], [[1, 0, 0], [0, 0, 1]])
        (text,) = data_warnings(data, ["gpt", "llama"], ["p", "q", "r"])
        assert "2 parts" in text
        assert "(model gpt on items p, q)" in text and "(model llama on item r)" in text


class TestTheory:
    def test_boundary(self):
        data = counts([[2, 1, 3], [1, 1, 0]], [[2, 0, 3], [1, 0, 0]])
        assert boundary(data, 0).tolist() == [True, True, True]
        assert boundary(data, 1).tolist() == [False, False]

    def test_components_agree_with_scipy(self):
        from scipy.sparse import block_array, csr_array
        from scipy.sparse.csgraph import connected_components

        rng = np.random.default_rng(1)
        for _ in range(30):
            shape = rng.integers(1, 9, 2)
            tried = (rng.random(shape) < 0.2).astype(np.int64)
            rows, columns = components(tried)
            a = csr_array(tried)
            number, labels = connected_components(block_array([[None, a], [a.T, None]]), directed=False)
            mine = np.concatenate([rows, columns])
            assert mine.max() + 1 == number
            # the same partition: one label of theirs for each of mine
            assert len(set(zip(mine.tolist(), labels.tolist(), strict=True))) == number

    def test_pearson_phi_by_hand(self):
        n = np.array([[10, 10, 10], [20, 20, 20], [30, 30, 1]])
        y = np.array([[5, 4, 6], [9, 12, 10], [20, 11, 1]])
        theta, b = np.array([0.1, -0.2, 0.3]), np.array([0.0, 0.2, -0.1])
        total, cells = 0.0, 0
        for i in range(3):
            for j in range(3):
                p = 1 / (1 + np.exp(b[j] - theta[i]))
                v = n[i, j] * p * (1 - p)
                if n[i, j] >= 2 and v > 1:
                    total, cells = total + (y[i, j] - n[i, j] * p) ** 2 / v, cells + 1
        assert cells == 8
        phi, reason = pearson_phi(counts(n, y), theta, b)
        assert phi == pytest.approx(total / (8 - 3 - 3 + 1), rel=1e-12) and reason is None

    def test_pearson_phi_needs_repeated_attempts(self):
        phi, reason = pearson_phi(counts([[1, 1], [1, 1]], [[1, 0], [0, 1]]), np.zeros(2), np.zeros(2))
        assert phi is None and "too few cells" in reason

    def test_sigmoid_at_the_ends(self):
        assert sigmoid(np.array([-800.0, 0.0, 800.0])).tolist() == [0.0, 0.5, 1.0]


class TestCoverage:
    def test_pearson_phi_sees_over_dispersion(self):
        rng = np.random.default_rng(5)
        theta, b = rng.normal(0, 1, 30), rng.normal(0, 1, 40)
        p = sigmoid(theta[:, None] - b)
        n = np.full(p.shape, 50)
        plain, _ = pearson_phi(counts(n, rng.binomial(n, p)), theta, b)
        alike, _ = pearson_phi(counts(n, rng.binomial(n, rng.beta(9 * p, 9 * (1 - p)))), theta, b)
        # by theory about 1 (70 too few degrees of freedom are charged) and 1 + 49/10
        assert 0.95 < plain < 1.2
        assert 5 < alike < 7
