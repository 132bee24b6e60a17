"""benchkit.suggestion: where new items shrink the maximum gap most."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.difficulty import normalize
from benchkit.errors import InputError
from benchkit.gaps import widest
from benchkit.spread import gaps
from benchkit.suggestion import divide, suggest

THETA = np.array([-1.0, 0.5, 2.5])
widths = st.lists(st.integers(0, 24).map(lambda k: k / 24), min_size=1, max_size=5)
quarters = st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=2, max_size=9)


class TestValidation:
    @pytest.mark.parametrize("items", [0, 10_001])
    def test_messages(self, items):
        z, scale, _ = normalize([0, 1])
        with pytest.raises(InputError, match="--suggest takes a whole number from 1 to 10000"):
            suggest(z, items, scale)


class TestInvariance:
    @given(b=quarters, items=st.integers(1, 8), seed=st.integers(0, 9))
    def test_order_of_rows(self, b, items, seed):
        order = np.random.default_rng(seed).permutation(len(b))
        assert widest(b, suggested=items).suggestion == widest(np.array(b)[order], suggested=items).suggestion


class TestTheory:
    @given(width=widths, items=st.integers(1, 6))
    def test_brute_force_over_all_ways_to_divide(self, width, items):
        width = np.array(width)
        given_ = divide(width, items)
        ways = (w for w in itertools.product(range(items + 1), repeat=width.size) if sum(w) == items)
        least = min(max(width / (np.array(way) + 1)) for way in ways)
        assert given_.sum() == items and (width / (given_ + 1)).max() == pytest.approx(least, abs=1e-12)

    @given(b=quarters, items=st.integers(1, 30))
    def test_the_least_width_that_so_many_items_reach(self, b, items):
        """A width w needs sum_j (ceil(g_j/w) - 1) items."""
        z, scale, why = normalize(b)
        if why:
            return
        z = np.sort(z)
        found = suggest(z, items, scale)

        def needed(width):
            return sum(max(math.ceil(g / width - 1e-9) - 1, 0) for g in gaps(z))

        assert needed(found.max_gap) == found.needed <= items < needed(found.max_gap * (1 - 1e-6))

    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic"])
    @given(b=quarters, items=st.integers(1, 12))
    def test_placed_there_the_items_leave_this_gap(self, method, b, items):
        before = widest(b, THETA, normalize=method, suggested=items)
        if before.suggestion is None:
            return
        assert before.suggestion.max_gap <= before.max_gap + 1e-12
        new = [place.logit for place in before.suggestion.positions]
        after = widest([*b, *new], THETA, normalize=method)
        assert len(new) == items and new == sorted(new)
        assert after.max_gap == pytest.approx(before.suggestion.max_gap, abs=1e-9)

    def test_next_to_the_ends(self):
        """Gaps of .3, .1 and .6: one item halves the last, and no second one brings the widest below .3."""
        found = suggest(np.array([0.3, 0.4]), 2, normalize([0.3, 0.4], "none").scale)
        assert [place.difficulty for place in found.positions] == pytest.approx([0.15, 0.7])
        assert found.max_gap == pytest.approx(0.3) and found.needed == 1
        none = found.document()["positions"][0]
        assert none["logit"] is None and "no logit scale" in none["logit_reason"]

    def test_ties_from_the_easy_end(self):
        found = suggest(np.arange(11) / 10, 2, normalize(np.arange(11) / 10).scale)
        assert [place.difficulty for place in found.positions] == pytest.approx([0.05, 0.15])
        assert found.needed == 0 and found.max_gap == pytest.approx(0.1)

    def test_document(self):
        out = widest([0, 1, 3], suggested=1).document(["a", "b", "c"])["suggestion"]
        json.dumps(out, allow_nan=False)
        assert out == {
            "items": 1,
            "needed": 1,
            "max_gap": pytest.approx(1 / 3),
            "positions": [{"difficulty": pytest.approx(2 / 3), "logit": pytest.approx(2)}],
        }

    def test_many(self):
        """Beyond the number of gaps: about one item to each n-th of the whole."""
        b = np.random.default_rng(0).normal(size=2000)
        found = widest(b, suggested=5000).suggestion
        z = normalize(b).z
        assert found.needed <= 5000 and len(found.positions) == 5000
        assert sum(np.maximum(np.ceil(gaps(np.sort(z)) / found.max_gap - 1e-9) - 1, 0)) == found.needed
