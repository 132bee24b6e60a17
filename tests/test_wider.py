"""benchkit.wider: how probable it is that a gap is wider than a threshold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from benchkit import wider
from benchkit.errors import InputError
from benchkit.gaps import widest
from benchkit.wider import empty_widths, probability_wider

eighths = st.integers(-16, 16).map(lambda k: k / 8)


def made(seed, draws, items, models=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(draws, items)).astype(np.float32), rng.normal(size=(draws, models)).astype(np.float32)


def brute(draws, theta, method, points):
    out = []
    for b, ability in zip(draws.astype(float), theta.astype(float), strict=True):
        if method == "minmax":
            z = (b - b.min()) / (b.max() - b.min())
        elif method == "failure":
            z = 1 - expit(ability[:, None] - b).mean(0)
        else:
            z = expit(b)
        out.append([min([x for x in z if x > c], default=1) - max([x for x in z if x <= c], default=0) for c in points])
    return np.array(out)


class TestValidation:
    def test_a_draw_that_is_not_finite(self):
        with pytest.raises(InputError, match="not a finite number"):
            empty_widths(np.full((2, 3), np.nan, np.float32), None, "minmax", np.array([0.5]))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, "no draws of difficulties"),
            ({"draws": made(0, 5, 3)[0], "normalize": "failure"}, "no draws of abilities"),
            ({"draws": np.ones((5, 3), np.float32)}, "only equal difficulties"),
        ],
    )
    def test_undefined(self, options, words):
        rows = widest([0, 1, 3], [0.0], wider=0.2, **options).document(["a", "b", "c"])["gaps"]
        assert rows and all(row["p_wider"] is None and words in row["p_wider_reason"] for row in rows)


class TestInvariance:
    def test_blocks_strides_and_repeated_draws(self, monkeypatch):
        draws, theta = made(1, 60, 9)
        points = np.array([0.2, 0.5, 0.9])
        want = empty_widths(draws, theta, "failure", points)
        monkeypatch.setattr(wider, "_BLOCK", 1)
        assert (empty_widths(np.asfortranarray(draws), np.asfortranarray(theta), "failure", points) == want).all()
        once, twice = (probability_wider(d, None, "minmax", points, 0.1) for d in (draws, np.repeat(draws, 2, axis=0)))
        assert (once == twice).all() and once.min() > 0 and once.max() < 1

    def test_order_of_rows(self):
        draws, _ = made(2, 40, 8)
        b = draws.mean(0)
        order = np.random.default_rng(0).permutation(8)
        first, second = (widest(b[o], draws=draws[:, o], wider=0.15).gaps for o in (np.arange(8), order))
        assert [gap.p_wider for gap in first] == [gap.p_wider for gap in second]


class TestTheory:
    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic"])
    def test_brute_force(self, method):
        draws, theta = made(3, 200, 6)
        points = np.array([0.01, 0.3, 0.5, 0.99])
        got = empty_widths(draws, theta, method, points)
        assert got == pytest.approx(brute(draws, theta, method, points), abs=1e-6)
        share = probability_wider(draws, theta, method, points, 0.25)
        assert share == pytest.approx((got > 0.25).mean(0), abs=1e-12)

    @given(b=st.lists(eighths, min_size=2, max_size=9, unique=True), draws=st.integers(1, 4))
    def test_without_noise_it_is_the_gap(self, b, draws):
        still = np.repeat(np.array(b, np.float32)[None], draws, axis=0)
        for gap in widest(b, draws=still, wider=0.0).gaps:
            for threshold, want in ((gap.width - 1e-6, 1), (gap.width + 1e-6, 0)):
                assert probability_wider(still, None, "minmax", np.array([gap.midpoint]), threshold) == want
        assert widest(b, draws=still, wider=0.0).gaps[0].p_wider == 1

    def test_an_item_that_moves_into_the_gap(self):
        """Three items; the one in the middle lies at .1 in half of the draws, at .5 in the others."""
        draws = np.array([[0, 0.1, 1], [0, 0.5, 1]] * 5, np.float32)
        gap = widest([0, 0.3, 1], draws=draws, wider=0.6).gaps[0]
        assert gap.midpoint == pytest.approx(0.65) and gap.p_wider == 0.5

    def test_even_ranks(self):
        draws, _ = made(4, 30, 11)
        assert empty_widths(draws, None, "rank", np.array([0.33])) == pytest.approx(0.1)


class TestCoverage:
    def test_probabilities_come_true(self):
        """Difficulties from the prior, seen with noise: the truth lies wider as often as the draws say."""
        rng = np.random.default_rng(5)
        said, true = [], []
        for _ in range(500):
            b = rng.normal(size=12)
            seen = (b + 0.5 * rng.normal(size=12)) / 1.25  # posterior mean; its variance is 1/5
            draws = (seen + math.sqrt(0.2) * rng.normal(size=(200, 12))).astype(np.float32)
            found = widest(seen, draws=draws, wider=0.12, top=3).gaps
            points = np.array([gap.midpoint for gap in found])
            said.append(sum(gap.p_wider for gap in found))
            true.append((empty_widths(b[None].astype(np.float32), None, "minmax", points) > 0.12).sum())
        off = np.subtract(said, true)
        assert abs(off.mean()) < 4 * off.std() / math.sqrt(off.size)
        assert np.corrcoef(said, true)[0, 1] > 0.1
