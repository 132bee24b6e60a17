import itertools
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from benchkit.attempt_flips import attempt_p
from benchkit.errors import InputError
from benchkit.flips import binomial_tails


def by_pairing(trials, c, e):
    """Two-sided p: all pairings of the attempts of every item, then all signs of the pairs that differ."""
    observed = abs(sum(Fraction(x - y, k) for k, x, y in zip(trials, c, e, strict=True)))
    sums = {Fraction(0): 1.0}
    for k, x, y in zip(trials, c, e, strict=True):
        a = [1] * x + [0] * (k - x)
        ways = list(itertools.permutations([1] * y + [0] * (k - y)))
        step: dict[Fraction, float] = {}
        for way in ways:
            d = [p - q for p, q in zip(a, way, strict=True)]
            for signs in itertools.product((-1, 1), repeat=k):
                s = Fraction(sum(g * v for g, v in zip(signs, d, strict=True)), k)
                step[s] = step.get(s, 0.0) + 1 / (len(ways) * 2**k)
        sums_: dict[Fraction, float] = {}
        for s, p in sums.items():
            for t, q in step.items():
                sums_[s + t] = sums_.get(s + t, 0.0) + p * q
        sums = sums_
    return sum(p for s, p in sums.items() if abs(s) >= observed)


def by_weights(n, y, draws=40_000):
    """The same by Monte Carlo: pair at random, flip, weigh by 1/n."""
    rng = np.random.default_rng(0)
    observed = abs((y[0] / n[0] - y[1] / n[1]).sum())
    total = np.zeros(draws)
    for k, c, e in zip(n[0].tolist(), y[0].astype(int).tolist(), y[1].astype(int).tolist(), strict=True):
        both = rng.hypergeometric(e, k - e, c, draws)
        differ = c + e - 2 * both
        total += (2 * rng.binomial(differ, 0.5) - differ) / k
    return np.mean(np.abs(total) >= observed - 1e-12)


class TestValidation:
    def test_unequal_attempts_name_the_models_and_the_item(self):
        n = np.array([[4, 4], [4, 3]])
        with pytest.raises(InputError, match="a has 4 on item q2, b has 3"):
            attempt_p(n, n / 1.0, ["a", "b"], ["q1", "q2"])

    def test_fractions(self):
        with pytest.raises(InputError, match="fractions"):
            attempt_p(np.full((2, 2), 4), np.full((2, 2), 0.5))


class TestTheory:
    @pytest.mark.parametrize(
        ("trials", "c", "e"),
        [
            ([2, 3], [2, 1], [0, 1]),
            ([3, 1, 2], [3, 1, 2], [0, 0, 1]),
            ([4], [4], [1]),
            ([2, 2, 2], [1, 1, 2], [1, 1, 0]),
        ],
    )
    def test_is_the_mean_over_pairings(self, trials, c, e):
        n = np.array([trials, trials])
        p = attempt_p(n, np.array([c, e], dtype=float))
        assert p[0, 1] == p[1, 0] == pytest.approx(by_pairing(trials, c, e), rel=1e-10)
        assert p[0, 0] == 1

    def test_an_item_counts_the_same_however_often_it_was_attempted(self):
        """B is right in more attempts, A on more items: A's score is higher, and the test speaks of scores."""
        n = np.array([[100, 2, 2, 2, 2, 2, 2, 2]] * 2)
        y = np.array([[50.0] + [2.0] * 7, [90.0] + [0.0] * 7])
        assert attempt_p(n, y)[0, 1] == pytest.approx(by_weights(n, y), abs=0.01) and attempt_p(n, y)[0, 1] < 0.05

    def test_a_clear_difference_on_many_attempts(self):
        n = np.full((2, 200), 1000)
        y = np.stack([np.full(200, 500.0), np.full(200, 450.0)])
        assert attempt_p(n, y)[0, 1] < 1e-12
        y[1] = 499.0
        z = (200 - 1) / np.sqrt(200 * 1000 * (0.5 * 0.501 + 0.5 * 0.499))
        assert attempt_p(n, y)[0, 1] == pytest.approx(2 * NormalDist().cdf(-z), rel=0.01)

    def test_attempts_without_a_usable_multiple(self):
        n = np.array([[9973, 9967, 9949]] * 2)
        with pytest.raises(InputError, match="common multiple"):
            attempt_p(n, n * 0.0)

    def test_single_attempts_are_the_sign_test(self):
        y = np.zeros((2, 40))
        y[0, :9] = y[1, 9:11] = 1
        p = attempt_p(np.ones((2, 40), dtype=int), y)[0, 1]
        assert p == pytest.approx(2 * binomial_tails(11, [2])[2], rel=1e-10)

    def test_many_attempts(self):
        """100 attempts of each of 20 items: near the normal tail of the variance over attempts."""
        rng = np.random.default_rng(0)
        y = rng.binomial(100, 0.5, (2, 20)).astype(float)
        y[0] += 3
        a, b = y / 100
        variance = 100 * (a * (1 - b) + b * (1 - a)).sum()
        z = (abs(y[0].sum() - y[1].sum()) - 1) / np.sqrt(variance)  # sums move in steps of two
        p = attempt_p(np.full((2, 20), 100), y)[0, 1]
        assert p == pytest.approx(2 * NormalDist().cdf(-z), rel=0.05)


class TestInvariance:
    def test_order_of_items_and_models(self):
        rng = np.random.default_rng(1)
        n = np.repeat(rng.integers(1, 6, (1, 12)), 4, axis=0)
        y = rng.binomial(n, 0.6).astype(float)
        p, items, models = attempt_p(n, y), rng.permutation(12), rng.permutation(4)
        np.testing.assert_allclose(attempt_p(n[:, items], y[:, items]), p, atol=1e-12)
        np.testing.assert_allclose(attempt_p(n, y[models]), p[np.ix_(models, models)], atol=1e-12)
