"""benchkit.diagnosis: what a table of responses can and can't tell."""

import csv
import json
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.diagnosis import diagnose, information
from benchkit.errors import InputError
from benchkit.scores import integers

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def aime():
    rows = list(csv.DictReader((DATA / "aime2025_I.csv").read_text().splitlines()))
    models, items = sorted({r["model"] for r in rows}), sorted({r["item"] for r in rows})
    n = np.zeros((len(models), len(items)), dtype=np.int64)
    y = np.zeros(n.shape)
    for r in rows:
        at = models.index(r["model"]), items.index(r["item"])
        n[at], y[at] = int(r["attempts"]), float(r["correct"])
    return models, items, n, y


@st.composite
def tables(draw, missing=True):
    """Small tables with unequal attempts, and with holes."""
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    least = 0 if missing and draw(st.booleans()) else 1
    n = np.array(draw(st.lists(st.integers(least, 3), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    y = np.array([draw(st.integers(0, int(k))) for k in n], dtype=float)
    return n.reshape(shape), y.reshape(shape)


def exact_inversions(n, y):
    """Inversion rates of items and models by the definition, in exact fractions."""
    models, items = n.shape
    r = [[Fraction(int(y[i, j]), int(n[i, j])) if n[i, j] else None for j in range(items)] for i in range(models)]
    full = [i for i in range(models) if all(n[i] > 0)]
    by_item, by_model = [], []
    for j in range(items):
        seen = against = 0
        for a, c in permutations(full, 2):
            if sum(r[a]) - r[a][j] > sum(r[c]) - r[c][j] and r[a][j] != r[c][j]:
                seen, against = seen + 1, against + (r[a][j] < r[c][j])
        by_item.append(against / seen if seen else np.nan)
    for i in range(models):
        seen = against = 0
        others = [k for k in full if k != i]
        for j, k in permutations([j for j in range(items) if n[i, j]], 2):
            if sum(r[o][j] for o in others) > sum(r[o][k] for o in others) and r[i][j] != r[i][k]:
                seen, against = seen + 1, against + (r[i][j] < r[i][k])
        by_model.append(against / seen if seen else np.nan)
    return by_item, by_model


class TestValidation:
    def test_shapes_and_values(self):
        with pytest.raises(InputError, match="one shape"):
            diagnose(np.ones((2, 2), int), np.ones((2, 3)))
        with pytest.raises(InputError, match="no models or no items"):
            diagnose(np.ones((0, 2), int), np.ones((0, 2)))
        with pytest.raises(InputError, match="not within"):
            diagnose(np.ones((1, 2), int), np.array([[0.0, 2.0]]))
        with pytest.raises(InputError, match="1 abilities and 2 difficulties"):
            diagnose(np.ones((2, 2), int), np.ones((2, 2)), [0.0], [0.0, 1.0])

    @given(table=tables())
    def test_every_null_has_a_reason_and_no_nan_leaves(self, table):
        n, y = table
        models, items = [f"m{i}" for i in range(n.shape[0])], [f"q{j}" for j in range(n.shape[1])]
        out = diagnose(n, y).document(models, items)
        json.dumps(out, allow_nan=False)
        for part in (out, *out["items"], *out["models"]):
            for key, value in part.items():
                if value is None:
                    assert part[f"{key}_reason"], key

    def test_no_attempts_at_all(self):
        out = diagnose(np.zeros((2, 2), int), np.zeros((2, 2))).document(["a", "b"], ["p", "q"])
        assert out["attempts"] == {"min": 0, "max": 0, "total": 0} and out["missing_cells"] == 4
        assert out["solved_by_all"] == out["solved_by_none"] == []
        assert out["models"][0]["score"] is None and out["items"][0]["rate_reason"] == "no attempts"


class TestInvariance:
    @given(table=tables(), seed=st.integers(0, 9))
    def test_order_of_rows_and_columns(self, table, seed):
        n, y = table
        rng = np.random.default_rng(seed)
        rows, columns = rng.permutation(n.shape[0]), rng.permutation(n.shape[1])
        theta, b = rng.normal(size=n.shape[0]), rng.normal(size=n.shape[1])
        first = diagnose(n, y, theta, b)
        second = diagnose(n[rows][:, columns], y[rows][:, columns], theta[rows], b[columns])
        for name in first.items._fields:
            a, c = getattr(first.items, name)[columns], getattr(second.items, name)
            np.testing.assert_allclose(a, c, atol=1e-12)
        for name in first.models._fields:
            np.testing.assert_allclose(getattr(first.models, name)[rows], getattr(second.models, name), atol=1e-12)
        assert first.alpha == (None if second.alpha is None else pytest.approx(second.alpha, abs=1e-9))
        assert first.missing_cells == second.missing_cells

    @given(table=tables())
    def test_attempts_times_a_factor(self, table):
        n, y = table
        first, second = diagnose(n, y), diagnose(n * 7, y * 7)
        np.testing.assert_array_equal(first.items.inversion_rate, second.items.inversion_rate)
        np.testing.assert_array_equal(first.models.inversion_rate, second.models.inversion_rate)
        np.testing.assert_allclose(first.items.share_of_spread, second.items.share_of_spread, atol=1e-12)


class TestTheory:
    def test_coverage(self):
        n = np.array([[1, 2, 4], [1, 0, 1], [0, 0, 3]])
        y = np.array([[1, 0, 4.0], [1, 0, 1], [0, 0, 3]])
        out = diagnose(n, y).document(["a", "b", "c"], ["p", "q", "r"])
        assert (out["n_models"], out["n_items"], out["n_cells"], out["missing_cells"]) == (3, 3, 9, 3)
        assert out["attempts"] == {"min": 1, "max": 4, "total": 12} and out["complete_models"] == 1
        assert out["incomplete"] == [{"model": "b", "missing": ["q"]}, {"model": "c", "missing": ["p", "q"]}]
        assert out["solved_by_all"] == ["p", "r"] and out["solved_by_none"] == ["q"]
        assert out["models"][2] | {} == {
            "model": "c",
            "items": 1,
            "attempts": 3,
            "correct": 3.0,
            "score": 1.0,
            "information": None,
            "information_reason": "no model was fitted",
            "inversion_rate": None,
            "inversion_rate_reason": "no two of its items differ both for it and for the other complete models",
        }
        assert "2 of 3 models" in out["warnings"][0]
        assert "it takes two" in out["alpha_reason"] and "it takes two" in out["n_eff_reason"]

    def test_keys_in_order(self, aime):
        models, items, n, y = aime
        out = diagnose(n, y, np.zeros(16), np.zeros(15)).document(models, items)
        assert list(out) == [
            "n_models",
            "n_items",
            "n_cells",
            "missing_cells",
            "attempts",
            "complete_models",
            "incomplete",
            "solved_by_all",
            "solved_by_none",
            "alpha",
            "n_eff",
            "items",
            "models",
            "warnings",
        ]
        keys = [
            "attempts",
            "correct",
            "rate",
            "share_of_spread",
            "item_rest_correlation",
            "information",
            "inversion_rate",
        ]
        assert [k for k in out["items"][0] if not k.endswith("_reason")] == ["item", *keys]
        assert list(out["models"][0]) == [
            "model",
            "items",
            "attempts",
            "correct",
            "score",
            "information",
            "inversion_rate",
        ]

    @given(table=tables())
    def test_inversions_by_the_definition(self, table):
        n, y = table
        by_item, by_model = exact_inversions(n, y)
        out = diagnose(n, y)
        np.testing.assert_allclose(out.items.inversion_rate, by_item, rtol=1e-15)
        np.testing.assert_allclose(out.models.inversion_rate, by_model, rtol=1e-15)

    def test_rest_scores_are_compared_exactly(self):
        # Without the last item a has 1/3 + 1/3 + 1/3, c has 1/2 + 1/2 + 0: equal scores, unequal floats of the rates'
        # denominators. A pair with equal rest scores is not comparable.
        n = np.array([[3, 3, 3, 1], [2, 2, 2, 1]])
        y = np.array([[1, 1, 1, 1.0], [1, 1, 0, 0]])
        assert np.isnan(diagnose(n, y).items.inversion_rate[3])
        tenths = np.array([[10, 10, 10, 1], [10, 10, 10, 1]])
        assert np.isnan(diagnose(tenths, np.array([[1, 2, 0, 1.0], [3, 0, 0, 0]])).items.inversion_rate[3])

    def test_denominators_beyond_int64(self):
        primes = [999983, 999979, 999961, 999959, 999953, 999931]
        n = np.array([primes, primes[::-1], [2] * 6])
        y = np.array([[1.0] * 6, [1.0] * 6, [1.0] * 6])
        by_item, by_model = exact_inversions(n, y)
        out = diagnose(n, y)
        np.testing.assert_allclose(out.items.inversion_rate, by_item)
        np.testing.assert_allclose(out.models.inversion_rate, by_model)

    def test_fractional_scores_without_a_denominator(self):
        # Rest scores without the last item: .1 + .2 and .3 + 0, equal. No denominator up to 10^6 fits the third row.
        n = np.ones((3, 3), dtype=int)
        y = np.array([[0.1, 0.2, 1.0], [0.3, 0.0, 0.5], [np.pi / 10, np.sqrt(0.2), 0.6]])
        assert not integers(n, y).exact
        out = diagnose(n, y)
        # pairs with the third model only: it is ahead of both; .6 < 1 is an inversion, .6 > .5 is none
        assert out.items.inversion_rate[2] == 0.5

    @given(table=tables(missing=False))
    def test_shares_alpha_and_correlations_by_the_definition(self, table):
        n, y = table
        r = y / n
        out = diagnose(n, y)
        total = r.sum(1)
        exact = {sum(Fraction(int(c), int(k)) for c, k in zip(*row, strict=True)) for row in zip(y, n, strict=True)}
        spread = len(exact) > 1
        assert (out.n_eff is not None) == spread
        if spread:
            cov = [np.cov(r[:, j], total)[0, 1] for j in range(r.shape[1])]
            np.testing.assert_allclose(out.items.share_of_spread, np.array(cov) / np.sum(cov), atol=1e-12)
            assert out.items.share_of_spread.sum() == pytest.approx(1, abs=1e-12)
            assert out.n_eff == pytest.approx(1 / (out.items.share_of_spread**2).sum())
            k = r.shape[1]
            if k > 1:
                alpha = k / (k - 1) * (1 - r.var(0, ddof=1).sum() / total.var(ddof=1))
                assert out.alpha == pytest.approx(alpha, abs=1e-9)
            else:
                assert out.alpha is None
        for j, value in enumerate(out.items.item_rest_correlation):
            rest = total - r[:, j]
            if np.ptp(r[:, j]) > 1e-9 and np.ptp(rest) > 1e-9:
                assert value == pytest.approx(np.corrcoef(r[:, j], rest)[0, 1], abs=1e-9)
            else:
                assert np.isnan(value)

    def test_parallel_items_have_alpha_one(self):
        y = np.tile([[0.0], [1.0], [1.0]], 4)
        out = diagnose(np.ones((3, 4), int), y)
        assert out.alpha == pytest.approx(1) and out.n_eff == pytest.approx(4)
        np.testing.assert_allclose(out.items.item_rest_correlation, 1)
        np.testing.assert_allclose(out.items.inversion_rate, 0)

    def test_an_item_against_the_rest(self):
        y = np.array([[1, 1, 1, 0.0], [1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 1]])
        out = diagnose(np.ones((4, 4), int), y)
        assert out.items.inversion_rate[3] == 1 and out.items.item_rest_correlation[3] < -0.8
        assert out.items.share_of_spread[3] < 0

    def test_equal_scores(self):
        out = diagnose(np.full((2, 2), 10), np.array([[1, 2.0], [2, 1]])).document(["a", "b"], ["p", "q"])
        assert out["alpha"] is None and "same score" in out["alpha_reason"]
        assert out["items"][0]["share_of_spread"] is None

    @given(table=tables(), seed=st.integers(0, 9))
    def test_information_by_the_definition(self, table, seed):
        n, _ = table
        rng = np.random.default_rng(seed)
        theta, b = rng.normal(0, 3, n.shape[0]), rng.normal(0, 3, n.shape[1])
        p = 1 / (1 + np.exp(b - theta[:, None]))
        by_item, by_model = information(n, theta, b)
        np.testing.assert_allclose(by_item, (n * p * (1 - p)).sum(0), atol=1e-12)
        np.testing.assert_allclose(by_model, (n * p * (1 - p)).sum(1), atol=1e-12)

    def test_long_rows(self):
        rng = np.random.default_rng(4)
        n = np.ones((6, 230), dtype=int)
        y = (rng.random(n.shape) < 0.5).astype(float)
        n[5, :30] = 0
        y[5, :30] = 0
        by_item, by_model = exact_inversions(n[:, ::5], y[:, ::5])
        out = diagnose(n[:, ::5], y[:, ::5])
        np.testing.assert_allclose(out.items.inversion_rate, by_item)
        np.testing.assert_allclose(out.models.inversion_rate, by_model)
        ease = y[:5].sum(0)
        whole = diagnose(n, y).models.inversion_rate
        for i in (0, 5):
            e = (ease - y[i] if i < 5 else ease)[n[i] > 0]
            r = y[i, n[i] > 0]
            above, below = e[:, None] > e, r[:, None] < r
            assert whole[i] == pytest.approx((above & below).sum() / (above & (below | below.T)).sum())


class TestReference:
    def test_share_of_spread_of_aime(self, aime):
        # aime2025_I.refvals.json: numpy, cov(rate, score)/sum of covariances
        models, items, n, y = aime
        expected = json.loads((DATA / "aime2025_I.refvals.json").read_text())
        out = diagnose(n, y).document(models, items)
        for row in out["items"]:
            assert row["share_of_spread"] == pytest.approx(expected["share_of_spread"][row["item"]], abs=1e-12)
        for row in out["models"]:
            assert row["score"] == pytest.approx(expected["score"][row["model"]], abs=1e-12)
        assert out["solved_by_none"] == ["aime_2025_I_15"]

    def test_inversions_of_aime(self, aime):
        _, _, n, y = aime
        by_item, by_model = exact_inversions(n, y)
        out = diagnose(n, y)
        np.testing.assert_allclose(out.items.inversion_rate, by_item)
        np.testing.assert_allclose(out.models.inversion_rate, by_model)


class TestCoverage:
    def test_a_1pl_table_has_few_inversions_and_guessing_half(self):
        rng = np.random.default_rng(8)
        theta, b = rng.normal(0, 1.5, 60), rng.normal(0, 1.5, 80)
        p = 1 / (1 + np.exp(b - theta[:, None]))
        n = np.full(p.shape, 20)
        p[:, 0] = 0.5  # the first item tells nothing
        y = rng.binomial(n, p).astype(float)
        out = diagnose(n, y, theta, b)
        assert out.items.inversion_rate[0] == pytest.approx(0.5, abs=0.1)
        assert np.nanmedian(out.items.inversion_rate[1:]) < 0.2
        assert abs(out.items.item_rest_correlation[0]) < 0.3 < np.nanmin(out.items.item_rest_correlation[1:])
