"""Where new items should lie: gaps of the benchmark on its own scale, the items to start from, and the words for it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit import gaps
from benchkit.difficulty import normalize
from benchkit.errors import InputError
from benchkit.fill import prompt
from benchkit.fill.plan import plan, widest
from benchkit.fill.scale import placed

LOGITS = st.floats(-9, 9).map(lambda x: round(x, 3))


def old(b: list[float], **options):
    """The plan for items that are all of the benchmark."""
    return plan(b, np.zeros(len(b), bool), np.ones(len(b), bool), **options)


class TestValidation:
    @pytest.mark.parametrize(
        ("b", "options", "text"),
        (
            ([1.0], {}, "the gaps are undefined: one item"),
            ([1.0, 1.0], {}, "the gaps are undefined: all difficulties are equal"),
            ([1.0, float("nan")], {}, "item number 2 of 2 is not a finite number"),
            ([0.0, 1.0], {"normalize": "failure"}, "averages over the models, and the table has none"),
            ([0.0, 1.0], {"top": 0}, "--top must be 1 or more"),
            ([0.0, 1.0], {"per_gap": 0}, "--per-gap must be 1 or more"),
            ([0.0, 1.0], {"references": -1}, "--references must be 0 or more"),
        ),
    )
    def test_messages(self, b, options, text):
        with pytest.raises(InputError, match=text):
            old(b, **options)

    def test_no_item_to_start_from(self):
        with pytest.raises(InputError, match="no item to start from"):
            plan([0, 1], np.zeros(2, bool), np.zeros(2, bool))


class TestTheory:
    def test_by_hand(self):
        """Places 0, .1, .2, .6, 1: gaps .2-.6 and .6-1, equally wide, then .1 each."""
        found = old([0, 1, 2, 6, 10], top=2, per_gap=3, references=2)
        assert [(w.gap, w.candidate, w.parent) for w in found.wanted] == [
            (1, 1, 2), (1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 2, 4), (2, 3, 3)]  # fmt: skip
        first, second = found.wanted[:2]
        assert (first.target, first.target_logit, first.width) == pytest.approx((0.4, 4, 0.4))
        assert (first.easier, first.harder) == ((1, 0), (3, 4)) and (second.easier, second.harder) == ((2, 1), (4,))

    @given(st.lists(LOGITS, min_size=2, max_size=12, unique=True), st.integers(1, 6), st.integers(1, 3),
           st.sampled_from(["minmax", "failure", "logistic"]))  # fmt: skip
    def test_the_gaps_of_bk_gaps_and_the_nearest_items(self, b, top, parents, how):
        theta = np.array([-2.0, 0.5, 3.0])
        found = old(b, top=top, per_gap=parents, parents=parents, references=20, normalize=how, theta=theta)
        want = gaps.widest(b, theta, normalize=how, top=top).gaps
        z = normalize(b, how, theta).z
        per_gap = [found.wanted[k : k + parents] for k in range(0, len(found.wanted), parents)]
        assert len(per_gap) == len(want)
        for mine, gap in zip(per_gap, want, strict=True):
            assert all(w.target == pytest.approx(gap.midpoint) and w.gap == gap.gap for w in mine)
            assert mine[0].target_logit == pytest.approx(gap.midpoint_logit)
            distance = np.abs(z - gap.midpoint)
            nearest = np.sort(distance)[: min(parents, len(b))]
            assert [distance[w.parent] for w in mine[: len(nearest)]] == pytest.approx(nearest, abs=1e-11)
            for w in mine:
                assert sorted([*w.easier, w.parent, *w.harder]) == list(range(len(b)))
                assert all(z[j] < w.target for j in w.easier) and all(z[j] >= w.target for j in w.harder)
                for side in (w.easier, w.harder):
                    assert (np.diff(distance[list(side)]) > -1e-11).all()

    def test_widths_that_are_left_alone(self):
        assert len(old([0, 1, 2, 6, 10], top=9).wanted) == 4
        assert len(old([0, 1, 2, 6, 10], top=9, wider_than=0.1).wanted) == 2
        assert old([0, 1, 2, 6, 10], wider_than=0.4).wanted == ()

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 30))
    def test_widest_by_sorting_all(self, z, top):
        ends = [0.0, *sorted(z), 1.0]
        every = sorted(pairwise(ends), key=lambda e: (-round(e[1] - e[0], 12), e[0]))
        assert widest(np.sort(z), top) == [e for e in every if round(e[1] - e[0], 12) > 0][:top]


class TestMemory:
    """Items that were calibrated later cover difficulties and are parents, but leave the scale as it is."""

    def test_they_split_gaps_and_are_parents(self):
        b, new = [0, 10, 5], np.array([False, False, True])
        found = plan(b, new, np.ones(3, bool), top=1)
        assert found.wanted[0].target == pytest.approx(0.25) and found.wanted[0].parent == 0
        assert found.wanted[0].harder == (2, 1)
        unknown = plan(b, new, ~new, top=1).wanted[0]  # without its text it covers, and that is all
        assert unknown.target == pytest.approx(0.25) and unknown.harder == (1,)

    def test_outside_the_scale_they_count_for_nothing(self):
        b, new = [0.0, 4, 10, -30, 11], np.array([False, False, False, True, True])
        found = plan(b, new, np.ones(5, bool), top=9, references=9)
        alone = old(b[:3], top=9, references=9)
        assert found.wanted == alone.wanted and found.outside == (3, 4)
        assert found.z == pytest.approx([0, 0.4, 1, -3, 1.1])

    def test_so_do_those_that_only_the_prior_places(self):
        b, new = [0.0, 4, 10, 7], np.array([False, False, False, True])
        assert plan(b, new, np.ones(4, bool), loose=new, top=9).wanted == old(b[:3], top=9).wanted

    @given(st.lists(LOGITS, min_size=2, max_size=8, unique=True), st.lists(LOGITS, max_size=5))
    def test_the_scale_is_that_of_the_benchmark(self, b, more):
        new = np.arange(len(b) + len(more)) >= len(b)
        found = placed([*b, *more], new, None, "minmax")
        assert found.z[: len(b)] == pytest.approx(normalize(b).z, abs=1e-12)
        low, high = min(b), max(b)
        assert found.z[len(b) :] == pytest.approx([(x - low) / (high - low) for x in more], abs=1e-9)


class TestPrompt:
    PARENT = prompt.Example("Q\\frac{1}{2}?", "42", 0.25, 0.75)
    OTHER = prompt.Example("Q2", "7", 0.8, None)

    def text(self, target=0.5, solved=0.51, easier=(), harder=(), scale="minmax"):
        return prompt.prompt(self.PARENT, target, solved, easier, harder, scale)

    def test_it_says_what_is_wanted(self):
        text = self.text(harder=[self.OTHER])
        assert "Target difficulty: 0.500 (solved: 51%)\nParent's difficulty: 0.250 (solved: 75%)" in text
        assert "a new one that is harder." in text and "<question>\nQ\\frac{1}{2}?\n</question>" in text
        assert '<harder difficulty="0.800">' in text and "<answer>\n7\n</answer>" in text and "<easier" not in text
        assert '{"question": "the new problem", "answer": "its answer"}' in text
        assert "a new one that is easier." in self.text(target=0.1)
        assert "share of attempts that fail" in self.text(scale="failure")

    def test_without_models_no_share_is_made_up(self):
        text = prompt.prompt(self.OTHER, 0.5, None, [], [], "minmax")
        assert "%" not in text and "succeed" not in text

    def test_the_request(self):
        got = prompt.request("x", "do it", None, None)
        assert list(got) == ["custom_id", "method", "url", "body"] and list(got["body"]) == ["messages"]
        assert [m["role"] for m in got["body"]["messages"]] == ["system", "user"]
        assert got["body"]["messages"][1]["content"] == "do it"
        body = prompt.request("x", "do it", "m", 0.0)["body"]
        assert body["model"] == "m" and body["temperature"] == 0
