"""benchkit.targets: target measures and Wasserstein-1."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from benchkit.errors import InputError
from benchkit.targets import Beta, Sample, Target, TruncatedNormal, Uniform, parse_target, wasserstein1

unit = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=25)
TARGETS = [
    Uniform(),
    Beta(1, 1),
    Beta(2, 5),
    Beta(0.5, 0.5),
    TruncatedNormal(0.5, 0.2),
    TruncatedNormal(1.3, 0.4),
    TruncatedNormal(0, 5),
]
SAMPLE = Sample([0.1, 0.9, 0.4, 0.4], [3, 1, 2, 0.5])


def pieces(z):
    """Integral of |ECDF - x| over [0,1], piece by piece between the points."""
    points, total = [0.0, *sorted(z), 1.0], 0.0
    for i in range(len(points) - 1):
        a, b, c = points[i], points[i + 1], i / len(z)
        area = lambda x, c=c: (x - c) ** 2 / 2  # noqa: E731
        total += area(b) - area(a) if c <= a else area(a) - area(b) if c >= b else area(a) + area(b)
    return total


class TestValidation:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("gamma:1", "use uniform, beta:A,B or normal:MEAN,SD"),
            ("uniform:0,1", "not known"),
            ("beta:1", "should read beta:A,B"),
            ("beta:1,2,3", "should read beta:A,B"),
            ("normal:a,b", "should read normal:MEAN,SD"),
            ("beta:0,1", "must be positive"),
            ("beta:nan,1", "should read beta:A,B"),
            ("beta:1_0,1", "should read beta:A,B"),
            ("normal:0.5,0", "sd must be positive"),
            ("normal:0.5,٣", "should read normal:MEAN,SD"),
            ("normal:50,1", "almost none of it"),
        ],
    )
    def test_messages(self, text, words):
        with pytest.raises(InputError, match=words):
            parse_target(text)

    @pytest.mark.parametrize("text", ["uniform", "beta:2,5", "normal:0.5,.2"])
    def test_name_is_as_written(self, text):
        assert parse_target(text).name == text

    @pytest.mark.parametrize(
        ("values", "weights", "words"),
        [
            ([], None, "no values"),
            ([0.5], [1, 2], "1 values but 2 weights"),
            ([np.nan], None, "not a finite"),
            ([0.5], [0], "not all zero"),
            ([0.5, 0.1], [1, -1], "not negative"),
            ([0.5, 3], None, r"must lie in \[0,1\], not 3"),
            ([-0.5, 0.3], None, r"must lie in \[0,1\], not -0.5"),
        ],
    )
    def test_sample(self, values, weights, words):
        with pytest.raises(InputError, match=words):
            Sample(values, weights)


class TestInvariance:
    @given(z=unit, seed=st.integers(0, 9))
    def test_sample_order(self, z, seed):
        order = np.random.default_rng(seed).permutation(len(z))
        other = Sample(np.array(z)[order])
        assert Sample(z).distance(np.array([0.2, 0.7])) == pytest.approx(
            float(other.distance(np.array([0.2, 0.7]))), abs=1e-12
        )

    @pytest.mark.parametrize("target", [*TARGETS, SAMPLE], ids=lambda t: t.name)
    def test_a_batch_is_its_rows(self, target):
        z = np.sort(np.random.default_rng(0).random((3, 8)))
        np.testing.assert_allclose(target.distance(z), [float(target.distance(row)) for row in z], rtol=1e-14)

    @given(x=unit, y=unit)
    def test_wasserstein1_is_symmetric(self, x, y):
        assert wasserstein1(x, y) == pytest.approx(wasserstein1(y, x), abs=1e-13)


class TestTheory:
    @given(z=unit)
    def test_uniform_piecewise(self, z):
        assert float(Uniform().distance(np.sort(z))) == pytest.approx(pieces(z), abs=1e-12)

    @given(z=unit)
    def test_beta_1_1_is_uniform(self, z):
        assert float(Beta(1, 1).distance(np.sort(z))) == pytest.approx(pieces(z), abs=1e-12)

    @pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
    @pytest.mark.parametrize("z", [[0, 0, 0, 0.25, 1], [0.5], [0, 1], [0.1, 0.11, 0.4, 0.93]])
    def test_distance_is_the_integral_of_the_difference_of_distribution_functions(self, target, z):
        z = np.array(z, dtype=float)
        # |F_n - F| is smooth between the items and the points where F crosses a level of F_n.
        cuts = np.unique([0, 1, *z, *target.quantile(np.arange(len(z) + 1) / len(z))])
        total = 0.0
        for a, b in pairwise(cuts):
            level = np.searchsorted(z, (a + b) / 2, side="right") / len(z)
            total += integrate.quad(lambda x, c=level: abs(c - target.cdf(np.array(x))), a, b, epsabs=1e-13)[0]
        assert float(target.distance(z)) == pytest.approx(total, abs=1e-9)

    @pytest.mark.parametrize("target", [*TARGETS, SAMPLE], ids=lambda t: t.name)
    def test_integral_of_the_quantile_function(self, target):
        u = np.array([0.0, 0.2, 0.75, 1.0])
        grid = (np.arange(400_000) + 0.5) / 400_000
        q = target.quantile(grid)
        np.testing.assert_allclose(target.integral(u), [q[grid < x].sum() / q.size for x in u], atol=1e-5)

    @pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
    def test_quantile_inverts_cdf(self, target):
        u = np.linspace(0.01, 0.99, 23)
        np.testing.assert_allclose(target.cdf(target.quantile(u)), u, atol=1e-12)

    def test_same_size_references(self):
        assert Uniform().reference(5).tolist() == [0, 0.25, 0.5, 0.75, 1]
        assert Uniform().reference(1) is None
        np.testing.assert_allclose(Beta(2, 1).reference(4), np.sqrt([1 / 8, 3 / 8, 5 / 8, 7 / 8]))  # F(x) = x^2

    @given(z=unit, w=st.integers(1, 5))
    def test_sample_target_is_the_two_sample_distance(self, z, w):
        values, weights = [0.15, 0.4, 0.4, 0.8], [w, 1, 2, 0.5]
        expected = wasserstein1(z, values, None, weights)
        assert float(Sample(values, weights).distance(np.sort(z))) == pytest.approx(expected, abs=1e-12)

    def test_million_items_lose_no_digits(self):
        z = np.linspace(0, 1, 1_000_000)
        assert float(Beta(1, 1).distance(z)) == pytest.approx(float(Uniform().distance(z)), abs=1e-9)
        exact = stats.beta(2, 5).ppf((np.arange(1_000_000) + 0.5) / 1_000_000)
        assert 0 <= float(Beta(2, 5).distance(exact)) < 1e-6

    @pytest.mark.parametrize("target", [*TARGETS, SAMPLE], ids=lambda t: t.name)
    def test_draws_follow_the_distribution(self, target: Target):
        x = target.draw(np.random.default_rng(1), (20_000,))
        at = np.linspace(0.05, 0.95, 19)
        share = (x[:, None] <= at).mean(0)
        np.testing.assert_allclose(share, target.cdf(at), atol=0.015)


class TestReference:
    # scipy.stats.wasserstein_distance's own documentation and tests
    def test_values(self):
        assert wasserstein1([0, 1, 3], [5, 6, 8]) == 5
        assert wasserstein1([0, 1], [0, 1], [3, 1], [2, 2]) == 0.25
        value = wasserstein1([3.4, 3.9, 7.5, 7.8], [4.5, 1.4], [1.4, 0.9, 3.1, 7.2], [3.2, 3.5])
        assert value == pytest.approx(4.0781331438047861, abs=1e-14)

    @given(
        x=st.lists(st.tuples(st.integers(-5, 5), st.floats(0.1, 3)), min_size=1, max_size=12),
        y=st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 3)), min_size=1, max_size=12),
    )
    def test_scipy(self, x, y):
        (a, wa), (b, wb) = zip(*x, strict=True), zip(*y, strict=True)
        assert wasserstein1(a, b, wa, wb) == pytest.approx(stats.wasserstein_distance(a, b, wa, wb), abs=1e-12)

    @pytest.mark.parametrize(
        ("target", "other"),
        [
            (Beta(2, 5), stats.beta(2, 5)),
            (TruncatedNormal(0.3, 0.4), stats.truncnorm(-0.3 / 0.4, 0.7 / 0.4, 0.3, 0.4)),
            (TruncatedNormal(-0.5, 0.3), stats.truncnorm(0.5 / 0.3, 1.5 / 0.3, -0.5, 0.3)),
        ],
        ids=lambda t: getattr(t, "name", ""),
    )
    def test_distributions(self, target, other):
        x = np.linspace(0, 1, 41)
        np.testing.assert_allclose(target.cdf(x), other.cdf(x), atol=1e-13)
        np.testing.assert_allclose(target.quantile(x), other.ppf(x), atol=1e-10)
        assert float(target.integral(np.array(1.0))) == pytest.approx(other.mean(), abs=1e-12)
