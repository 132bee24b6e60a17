"""benchkit.diagnosis: what a table of responses can and can't tell."""

import csv
import json
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchkit.diagnosis import diagnose, information
from benchkit.errors import InputError
from benchkit.scores import integers
from benchkit.text import natural

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


def fractions(n, y):
    """Rates as exact fractions, None where a pair was not tried."""
    return [[Fraction(int(c), int(k)) if k else None for c, k in zip(*row, strict=True)]
            for row in zip(y, n, strict=True)]  # fmt: skip


def exact_inversions(n, y):
    """Inversion rates of items and models by the definition, in exact fractions."""
    models, items = n.shape
    r = [[Fraction(int(y[i, j]), int(n[i, j])) if n[i, j] else None for j in range(items)] for i in range(models)]
    some = [j for j in range(items) if n[:, j].any()]
    full = [i for i in range(models) if some and all(n[i, some] > 0)]
    by_item, by_model = [], []
    for j in range(items):
        seen = against = 0
        for a, c in permutations(full, 2):
            rest_a, rest_c = (sum(r[k][i] for i in some if i != j) for k in (a, c))
            if j in some and rest_a > rest_c and r[a][j] != r[c][j]:
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

    @given(table=tables(), more=st.integers(1, 3))
    def test_items_that_nobody_tried_change_the_coverage_alone(self, table, more):
        n, y = table
        assume(n.any(axis=0).all())
        nothing = np.zeros((len(n), more))
        first, second = diagnose(n, y), diagnose(np.hstack([n, nothing.astype(int)]), np.hstack([y, nothing]))
        for name in ("alpha", "n_eff", "complete_models", "solved_by_all", "solved_by_none", "uneven_attempts"):
            np.testing.assert_equal(getattr(first, name), getattr(second, name))
        assert [row.model for row in first.incomplete] == [row.model for row in second.incomplete]
        for name in first.items._fields:
            np.testing.assert_array_equal(getattr(first.items, name), getattr(second.items, name)[: n.shape[1]])
        assert np.isnan(second.items.share_of_spread[n.shape[1] :]).all()
        np.testing.assert_array_equal(first.models.inversion_rate, second.models.inversion_rate)
        flags = [[flag.flag for flag in d.flags] for d in (first, second)]
        assert sorted([*flags[0], "untried_items"]) == sorted(flags[1])
        assert second.min_coverage == pytest.approx(first.min_coverage * n.shape[1] / (n.shape[1] + more), rel=1e-15)

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
        assert out["coverage"] == 6 / 9 and out["min_coverage"] == 1 / 3 and out["uneven_attempts"] == ["r"]
        assert out["incomplete"] == [
            {
                "model": "b",
                "coverage": 2 / 3,
                "missing": ["q"],
                "others_rate_missing": 0.0,
                "others_rate_tried": 1.0,
            },
            {
                "model": "c",
                "coverage": 1 / 3,
                "missing": ["p", "q"],
                "others_rate_missing": 0.5,
                "others_rate_tried": 1.0,
            },
        ]
        assert [row["models"] for row in out["items"]] == [2, 1, 3]
        assert out["solved_by_all"] == ["p", "r"] and out["solved_by_none"] == ["q"]
        assert out["models"][2] | {} == {
            "model": "c",
            "items": 1,
            "coverage": 1 / 3,
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
            "coverage",
            "min_coverage",
            "attempts",
            "uneven_attempts",
            "complete_models",
            "incomplete",
            "solved_by_all",
            "solved_by_none",
            "identical_models",
            "identical_items",
            "alpha",
            "n_eff",
            "flags",
            "items",
            "models",
            "warnings",
        ]
        keys = [
            "models",
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
            "coverage",
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

    @given(table=tables())
    def test_counts_and_coverage_by_the_definition(self, table):
        n, y = table
        rates = fractions(n, y)
        models, items = (range(size) for size in n.shape)
        tried = [[j for j in items if rates[i][j] is not None] for i in models]
        by = [[i for i in models if rates[i][j] is not None] for j in items]
        out = diagnose(n, y)
        assert out.missing_cells == n.size - sum(map(len, tried))
        assert out.coverage == pytest.approx(float(Fraction(sum(map(len, tried)), n.size)), rel=1e-15)
        shares = [float(Fraction(len(own), n.shape[1])) for own in tried]
        np.testing.assert_allclose(out.models.coverage, shares, rtol=1e-15)
        assert out.min_coverage == pytest.approx(min(shares), rel=1e-15)
        assert out.items.models.tolist() == list(map(len, by))
        assert out.models.items.tolist() == list(map(len, tried))
        assert [(r.model, r.missing.tolist()) for r in out.incomplete] == [
            (i, [j for j in items if j not in tried[i]])
            for i in models
            if len(tried[i]) < sum(map(bool, by)) or not any(by)
        ]
        assert out.solved_by_all.tolist() == [j for j in items if by[j] and all(rates[i][j] == 1 for i in by[j])]
        assert out.solved_by_none.tolist() == [j for j in items if by[j] and all(rates[i][j] == 0 for i in by[j])]
        assert out.uneven_attempts.tolist() == [j for j in items if len({int(n[i, j]) for i in by[j]}) > 1]
        for i in models:
            total = sum((rates[i][j] for j in tried[i]), Fraction(0))
            mean = float(total / len(tried[i])) if tried[i] else np.nan
            np.testing.assert_allclose(out.models.score[i], mean, rtol=1e-12)

    @given(table=tables())
    def test_shares_alpha_and_correlations_in_fractions(self, table):
        n, y = table
        n, y = n[:, n.any(axis=0)], y[:, n.any(axis=0)]
        assume(n.size)
        complete = [row for row in fractions(n, y) if None not in row]
        count, items = len(complete), n.shape[1]
        out = diagnose(n, y)

        def cov(x, z):
            return sum(a * b for a, b in zip(x, z, strict=True)) - sum(x) * sum(z) / count

        columns = list(zip(*complete, strict=True))
        score = [sum(row) for row in complete]
        spread = cov(score, score) if count > 1 else 0
        if spread:
            share = [cov(column, score) / spread for column in columns]
            np.testing.assert_allclose(out.items.share_of_spread, [float(s) for s in share], atol=1e-12)
            assert out.n_eff == pytest.approx(float(1 / sum(s * s for s in share)), rel=1e-12)
            if items > 1:
                alpha = Fraction(items, items - 1) * (1 - sum(cov(c, c) for c in columns) / spread)
                assert out.alpha == pytest.approx(float(alpha), abs=1e-9)
        else:
            assert out.n_eff is None and out.alpha is None and np.isnan(out.items.share_of_spread).all()
        for j in range(items):
            value = out.items.item_rest_correlation[j]
            rest = [s - row[j] for s, row in zip(score, complete, strict=True)]
            scale = cov(columns[j], columns[j]) * cov(rest, rest) if count > 1 else 0
            if scale:
                both = cov(columns[j], rest)
                squared = float(both * both / scale)
                assert value * abs(value) == pytest.approx(squared if both >= 0 else -squared, abs=1e-12)
            else:
                assert np.isnan(value)

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
        assert [flag["flag"] for flag in out["flags"]] == ["solved_by_none"]

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


class TestCommand:
    LACKING = b"model,q1,q2,q3,q4\na,1,1,0,1\nb,1,0,1,\nc,0,1,,\n"

    def test_min_coverage(self, sh):
        assert sh("bk-matrix -q -t csv --min-coverage 0.5000000000001", stdin=self.LACKING).out  # up to rounding
        failed = sh("bk-matrix --diagnose --min-coverage .51", stdin=self.LACKING, rc=1)
        assert failed.out
        assert failed.err.splitlines()[-1] == (
            "bk-matrix: --min-coverage 0.51 does not hold: coverage of model 'c' is 0.5"
        )
        assert sh("bk-matrix -t csv -q --min-coverage .51", stdin=self.LACKING, rc=1).err == ""
        assert "--min-coverage: 1.5 is not in 0..1" in sh("bk-matrix --min-coverage 1.5", rc=2).err

    def test_both_thresholds_are_said(self, sh):
        failed = sh("bk-matrix -t csv --require-complete --min-coverage 1", stdin=self.LACKING, rc=1)
        assert failed.err.splitlines() == [
            "bk-matrix: --require-complete does not hold: missing_cells is 3",
            "bk-matrix: --min-coverage 1 does not hold: coverage of model 'c' is 0.5",
        ]
        assert (
            sh("bk-matrix -t csv --require-complete --min-coverage .5", stdin=self.LACKING, rc=1).err.count("\n") == 1
        )

    def test_the_item_list_is_the_universe(self, sh):
        (sh.folder / "items.txt").write_text("q1\nq2\nq3\nq4\nq5\n")
        done = sh("bk-matrix -t csv --items items.txt --min-coverage .8", stdin=b"model,q1,q2\na,1,1\nb,1,0\n", rc=1)
        assert done.err.endswith("coverage of model 'a' is 0.4\n")  # the first by name of equals
        whole = self.LACKING.replace(b",\n", b",0\n").replace(b",,", b",0,")
        assert sh("bk-matrix -t csv --items items.txt --min-coverage .8", stdin=whole).err == ""
        out = json.loads(sh("bk-matrix --diagnose -q --items items.txt", stdin=whole).out)
        assert (out["coverage"], out["min_coverage"]) == (0.8, 0.8)
        assert [flag["items"] for flag in out["flags"] if flag["flag"] == "untried_items"] == [["q5"]]

    def test_a_threshold_leaves_the_bytes(self, sh):
        plain = sh("bk-matrix --diagnose -q", stdin=self.LACKING).out
        assert sh("bk-matrix --diagnose -q --min-coverage .1", stdin=self.LACKING).out == plain

    def test_text_of_many_items_shows_those_to_look_at(self, sh):
        rng = np.random.default_rng(5)
        right = (rng.random((8, 60)) < np.linspace(0.1, 0.9, 8)[:, None]).astype(int)
        right[:, 7] = np.arange(8) < 4  # the worse half is right
        text = "model," + ",".join(f"q{j}" for j in range(60)) + "\n"
        text += "".join(f"m{i}," + ",".join(map(str, row)) + "\n" for i, row in enumerate(right))
        out = json.loads(sh("bk-matrix --diagnose", stdin=text.encode()).out)
        (look,) = (flag["items"] for flag in out["flags"] if flag["flag"] == "negative_discrimination")
        lines = sh("bk-matrix --diagnose -t table", stdin=text.encode()).out.decode().splitlines()
        assert "q7" in look and [line.split()[1] for line in lines if line.startswith("*  ")] == sorted(
            look, key=natural
        )
        assert f"the other {60 - len(look)} items: --to csv" in lines and lines[2].startswith("- ")

    def test_text_of_models_that_lack_items(self, sh):
        lines = sh("bk-matrix --diagnose -q -t table", stdin=self.LACKING).out.decode().splitlines()
        assert lines[0] == "3 models, 4 items, 1 attempt a cell, coverage 0.75 (3 cells missing)"
        text = " ".join(line.strip() for line in lines)
        assert "c: coverage 0.5, lacks 2 items; the others score 0.750 on these, 0.750 on the rest" in text
        assert "2 of 3 models lack items, coverage down to 0.5" in text and lines[-4].split()[0] == "q1"
