"""benchkit.gaps: the widest uncovered intervals and the items beside them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.detection import Improvement
from benchkit.errors import InputError
from benchkit.gaps import widest
from benchkit.metrics import report

THETA = np.array([-1.0, 0.5, 2.5])
quarters = st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=2, max_size=14)


def aime():
    rows = json.loads((Path(__file__).parent / "data" / "aime2025_I.posterior.json").read_text())["parameters"]
    return [row["mean"] for row in rows if row["kind"] == "item"]


def brute(z, top, parents):
    """The same answer from lists of pairs. Items are visited in the order of z, then of the input."""
    n = len(z)
    items = sorted(range(n), key=lambda j: (z[j], j))
    edges = [0.0, *(z[j] for j in items), 1.0]
    found = [(round(-(edges[k + 1] - edges[k]), 12), k) for k in range(n + 1) if round(edges[k + 1] - edges[k], 12) > 0]
    rows = []
    for _, k in sorted(found)[:top]:
        low, high = edges[k], edges[k + 1]
        middle = (low + high) / 2

        def key(j, middle=middle):
            place = sum(z[i] == z[j] and i < j for i in range(n))
            return (round(abs(z[j] - middle), 12), place, z[j], j)

        rows.append(
            (
                low,
                high,
                min((j for j in range(n) if z[j] == low), default=None) if k > 0 else None,
                min((j for j in range(n) if z[j] == high), default=None) if k < n else None,
                tuple(sorted(range(n), key=key)[:parents]),
            )
        )
    return rows


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"top": 0}, "--top must be 1 or more"),
            ({"parents": 0}, "--parents must be 1 or more"),
            ({"references": -1}, "--references must be 0 or more"),
            ({"suggested": 0}, "--suggest takes"),
            ({"improvement": Improvement(2, 0.1, 1, 0.05, None, "")}, "width of an improvement"),
            ({"normalize": "x"}, "is not known"),
            ({"normalize": "failure"}, "the table has none"),
            ({"normalize": "none"}, r"in \[0,1\]"),
            ({"boundary": [True]}, "boundary: 1 values for 3 items"),
        ],
    )
    def test_messages(self, options, words):
        with pytest.raises(InputError, match=words):
            widest([0, 1, 2], **options)

    @pytest.mark.parametrize(("b", "words"), [([], "no items"), ([1], "one item"), ([2, 2], "are equal")])
    def test_undefined_normalisation(self, b, words):
        out = widest(b).document([f"q{j}" for j in range(len(b))])
        assert out["max_gap"] is None and words in out["max_gap_reason"] and words in out["top_gap_sum_reason"]
        assert out["gaps"] == [] and words in out["warnings"][0] and out["items"] == len(b)
        assert "suggestion" not in out and "detection" not in out and "wider" not in out
        asked = widest(b, wider=0.1, suggested=2, improvement=Improvement(0.1, 0.2, 1, 0.05, None, ""))
        out = asked.document([f"q{j}" for j in range(len(b))])
        for key in ("suggestion", "detection"):
            assert out[key] is None and words in out[f"{key}_reason"]


class TestReferences:
    @given(b=quarters, count=st.integers(0, 6))
    def test_brute_force(self, b, count):
        """All items at or below the lower end, and at or above the upper one, nearest first, ties in their order."""
        out = widest(b, references=count, top=20)
        if out.max_gap is None:
            return
        z = ((np.array(b) - min(b)) / (max(b) - min(b))).tolist()
        for gap in out.gaps:
            below = sorted((j for j in range(len(b)) if z[j] <= gap.lower), key=lambda j: (-z[j], j))[:count]
            above = sorted((j for j in range(len(b)) if z[j] >= gap.upper), key=lambda j: (z[j], j))[:count]
            for got, want in ((gap.easier, below), (gap.harder, above)):
                assert [r.item for r in got] == want
                assert [(r.difficulty, r.logit) for r in got] == [(pytest.approx(z[j], abs=1e-15), b[j]) for j in want]

    def test_none_beyond_the_ends(self):
        low, high = widest([0.0, 1.0], normalize="logistic", top=3).gaps[:2]
        assert low.lower_item is None and low.easier == () and [r.item for r in low.harder] == [0, 1]
        assert [r.item for r in high.easier] == [1, 0] or [r.item for r in high.easier] == [0]

    def test_flat(self):
        row = widest([0, 1, 3], references=1).document(["a", "b", "c"], flat=True)["gaps"][0]
        assert (row["easier"], row["harder"]) == (["b"], ["c"]) and "references" not in row


class TestAime:
    """The difficulties that NumPyro found for AIME 2025 I, see data/README.md."""

    @pytest.mark.parametrize(("items", "share"), [(7, 2), (12, 3)])
    def test_seven_items_halve_the_widest_gap_and_twelve_bring_it_to_a_third(self, items, share):
        b = aime()
        assert len(b) == 15
        out = widest(b, suggested=items)
        assert out.suggestion.max_gap <= out.max_gap / share + 1e-12 and out.suggestion.needed == items
        assert widest(b, suggested=items - 1).suggestion.max_gap > out.max_gap / share + 1e-4

    def test_what_can_hide(self):
        """A width that fits a gap is never seen; .25 holds two items and is seen seldom with 4 attempts."""
        b = aime()
        out = widest(b, improvement=Improvement(0.16, 0.2, 1000, 0.05, None, ""))
        assert out.detection.even.power == 0.05
        out = widest(b, improvement=Improvement(0.25, 0.2, 4, 0.05, None, ""))
        assert out.detection.even.method == "exact" and 0.05 < out.detection.even.power < 0.15


class TestInvariance:
    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic", "rank"])
    @given(b=quarters, seed=st.integers(0, 9))
    def test_order_of_rows(self, method, b, seed):
        # distinct difficulties: ties are told apart by their order
        b = sorted(set(b))
        order = np.random.default_rng(seed).permutation(len(b))
        ids = [f"q{j}" for j in range(len(b))]
        first = widest(b, THETA, normalize=method).document(ids)
        second = widest(np.array(b)[order], THETA, normalize=method).document([ids[j] for j in order])
        assert first == second

    def test_parents_stay_first_when_more_are_asked_for(self):
        b = np.random.default_rng(3).normal(size=40)
        few, many = widest(b, parents=2), widest(b, parents=6)
        for one, other in zip(few.gaps, many.gaps, strict=True):
            assert other.parents[:2] == one.parents


class TestTheory:
    def test_three_tied(self):
        out = widest([0, 0, 0, 1, 4])
        first, second = out.gaps
        assert (first.width, first.lower, first.upper, first.midpoint, first.midpoint_logit) == (
            0.75,
            0.25,
            1,
            0.625,
            2.5,
        )
        assert (first.lower_item, first.upper_item, first.parents) == (3, 4, (3, 4))
        assert (second.width, second.lower_item, second.upper_item, second.parents) == (0.25, 0, 3, (0, 3))
        assert out.max_gap == 0.75 and out.top_gap_sum == 1

    def test_even_grid_keeps_its_order(self):
        out = widest(np.arange(11) / 10)
        assert [g.lower_item for g in out.gaps] == [0, 1, 2, 3, 4]
        assert [g.gap for g in out.gaps] == [1, 2, 3, 4, 5]
        assert out.top_gap_sum == pytest.approx(0.5, abs=1e-12)

    def test_next_to_the_ends(self):
        out = widest([0.0, 0.0], normalize="logistic")
        low, high = out.gaps
        assert (low.lower_item, low.upper_item, low.lower, low.upper) == (None, 0, 0, 0.5)
        assert (high.lower_item, high.upper_item, high.lower, high.upper) == (0, None, 0.5, 1)
        assert low.midpoint_logit == pytest.approx(-np.log(3)) and low.parents == (0, 1)

    @given(b=quarters, top=st.integers(1, 20), parents=st.integers(1, 5))
    def test_brute_force(self, b, top, parents):
        out = widest(b, top=top, parents=parents)
        if out.max_gap is None:
            return
        z = ((np.array(b) - min(b)) / (max(b) - min(b))).tolist()
        got = [(g.lower, g.upper, g.lower_item, g.upper_item, g.parents) for g in out.gaps]
        for mine, other in zip(got, brute(z, top, parents), strict=True):
            assert mine[:2] == pytest.approx(other[:2], abs=1e-15)
            assert mine[2:] == other[2:]

    @given(b=quarters)
    def test_agrees_with_the_report(self, b):
        out, full = widest(b), report(b, reps=1)
        assert out.max_gap == full.max_gap and out.top_gap_sum == full.top_gap_sum
        if out.max_gap is not None:
            assert out.gaps[0].width == pytest.approx(out.max_gap, abs=1e-12)
            assert sum(g.width for g in out.gaps) == pytest.approx(out.top_gap_sum, abs=1e-12)

    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic"])
    def test_an_item_at_the_midpoint_in_logits_halves_the_gap(self, method):
        b = np.array([-4.0, -1, 0.2, 0.3, 3.5])
        before = widest(b, THETA, normalize=method)
        for gap in before.gaps:
            after = widest(np.append(b, gap.midpoint_logit), THETA, normalize=method, top=20)
            beside = [g.width for g in after.gaps if 5 in (g.lower_item, g.upper_item)]
            assert beside == pytest.approx([gap.width / 2] * 2, abs=1e-9)

    @pytest.mark.parametrize("method", ["rank", "none"])
    def test_midpoint_without_logits_has_a_reason(self, method):
        gap = widest([0, 0.5, 1], normalize=method).document(["a", "b", "c"])["gaps"][0]
        assert gap["midpoint_logit"] is None and gap["midpoint_logit_reason"]

    def test_document(self):
        out = widest([0, 0, 0, 1, 4], boundary=[0, 0, 0, 0, 1]).document([f"q{j:03d}" for j in range(5)])
        json.dumps(out, allow_nan=False)
        assert list(out) == ["items", "normalize", "max_gap", "top_gap_sum", "gaps", "warnings"]
        assert list(out["gaps"][0]) == [
            *("gap", "width", "lower", "upper", "midpoint", "midpoint_logit", "lower_item", "upper_item", "parents"),
            "references",
        ]
        assert out["gaps"][0]["references"] == {
            "easier": [
                {"item": q, "difficulty": x, "logit": 4 * x} for q, x in (("q003", 0.25), ("q000", 0), ("q001", 0))
            ],
            "harder": [{"item": "q004", "difficulty": 1, "logit": 4}],
        }
        assert out["gaps"][0]["lower_item"] == "q003" and out["gaps"][0]["parents"] == ["q003", "q004"]
        assert out["warnings"] == [
            "gap 1 ends at a boundary item (all attempts right, or all wrong), whose place rests on the prior"
        ]

    def test_boundary_items_away_from_the_gaps_are_not_warned_of(self):
        assert widest([0, 0.1, 0.2, 1.0], boundary=[1, 0, 0, 0], top=1).warnings == ()
        assert "gaps 1, 2 end" in widest([0, 0.5, 1.1], boundary=[0, 1, 0]).warnings[0]

    def test_many_items(self):
        b = np.random.default_rng(0).normal(size=200_000)
        out = widest(b)
        z = np.sort((b - b.min()) / np.ptp(b))
        assert out.max_gap == pytest.approx(np.diff(z).max(), abs=1e-15)
        assert sorted(out.gaps[0].parents) == sorted([out.gaps[0].lower_item, out.gaps[0].upper_item])
