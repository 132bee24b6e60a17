"""The greedy choice among calibrated candidates, and the metrics before and after."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit import metrics
from benchkit.errors import InputError
from benchkit.fill.choice import BUDGET, MAX_GAP, NONE_INSIDE, choose

PLACES = st.floats(-0.2, 1.2).map(lambda x: round(x, 4))


def chosen(old: list[float], new: list[float], **options):
    """The choice for items at `old` and candidates at `new`."""
    late = np.arange(len(old) + len(new)) >= len(old)
    return choose([*old, *new], late, **options)


def places(found) -> list[float]:
    return [round(float(found.z[s.item]), 9) for s in found.steps]


class TestValidation:
    @pytest.mark.parametrize("options", ({"top": 0}, {"budget": -1}, {"level": 1.0}, {"margin": 0.6}))
    def test_options(self, options):
        with pytest.raises(InputError, match="--top is 1 or more"):
            chosen([0, 1], [], **options)

    def test_an_undefined_scale(self):
        for old in ([1.0], [2.0, 2.0]):
            found = chosen(old, [1.5])
            assert found.steps == () and found.stopped is None and found.reason and found.z is None
            assert found.before.max_gap is None and found.before.reasons["max_gap"] == found.reason
            assert found.left == ((len(old), "the benchmark's scale is undefined"),)

    def test_not_finite(self):
        with pytest.raises(InputError, match="not a finite number"):
            chosen([0, 1], [float("nan")])


class TestTheory:
    def test_the_middle_first_then_the_halves_the_easier_before_the_harder(self):
        found = chosen([0, 10], [7.5, 5, 2.5, 4.9])
        assert places(found) == [0.5, 0.25, 0.75] and found.stopped == NONE_INSIDE
        assert [s.max_gap for s in found.steps] == [0.5, 0.5, 0.25]
        assert [(s.gap, s.lower, s.upper, s.midpoint) for s in found.steps] == [
            (1, 0, 1, 0.5), (1, 0, 0.5, 0.25), (1, 0.5, 1, 0.75)]  # fmt: skip
        assert (found.before.max_gap, found.after.max_gap) == (1, 0.25)
        assert (found.before.items, found.after.items) == (2, 5)
        assert found.left == ((5, "too near to an end of its gap, 0.25 wide"),)

    def test_ties_go_to_the_first_by_name(self):
        assert [s.item for s in chosen([0, 10], [6, 4], budget=1).steps] == [2]
        assert [s.item for s in chosen([0, 10], [4, 6], budget=1).steps] == [2]

    def test_it_stops(self):
        new = [5, 2.5, 7.5, 1.2]
        assert places(chosen([0, 10], new, max_gap=0.5)) == [0.5]
        assert chosen([0, 10], new, max_gap=0.5).stopped == MAX_GAP
        assert chosen([0, 10], new, max_gap=1).steps == ()
        assert places(chosen([0, 10], new, budget=2)) == [0.5, 0.25] and chosen([0, 10], [], budget=0).stopped == BUDGET
        assert [why for _, why in chosen([0, 10], new, budget=2).left] == ["the budget was spent"] * 2
        assert [why for _, why in chosen([0, 10], new, max_gap=0.5).left] == [
            "its gap, 0.5 wide, is no wider than asked for"] * 3  # fmt: skip

    def test_where_the_widest_gap_has_no_candidate_the_next_one_is_filled_if_it_counts(self):
        old, new = [0, 4, 7, 9, 10], [5.5, 8, 9.5]
        found = chosen(old, new, top=2)
        assert places(found) == [0.55, 0.8] and [s.gap for s in found.steps] == [2, 2]
        assert found.stopped == NONE_INSIDE and found.widest == (0, 0.4)
        assert [why for _, why in found.left] == ["its gap, 0.1 wide, is none of the 2 widest"]
        assert places(chosen(old, new, top=1)) == [] and places(chosen(old, new, top=2, max_gap=0.25)) == [0.55]

    def test_outside_the_scale_nothing_is_chosen(self):
        found = chosen([0, 10], [-5, 12, 0, 10])
        assert found.steps == () and found.after == found.before
        assert [why for _, why in found.left] == [
            "easier than all items of the benchmark: outside its scale",
            "harder than all items of the benchmark: outside its scale",
            "as difficult as an item that is there",
            "as difficult as an item that is there",
        ]

    def test_what_only_the_prior_places_is_not_chosen(self):
        edge = np.array([False, True, True])
        found = chosen([0, 10], [5], boundary=edge)
        assert found.steps == () and found.left == (
            (2, "all attempts right or all wrong: only the prior says where it lies"),
        )

    def test_the_margin(self):
        assert places(chosen([0, 10], [0.9])) == [] and places(chosen([0, 10], [1])) == [0.1]
        assert places(chosen([0, 10], [0.9], margin=0)) == [0.09]
        assert places(chosen([0, 10], [0.9], max_gap=0.92)) == [0.09]  # both parts are narrow enough

    def test_on_other_scales(self):
        theta = np.array([-1.0, 0.3, 2.0])
        found = chosen([-1, 2], [0.4, 5], theta=theta, normalize="failure", budget=1)
        z = [np.mean(1 / (1 + np.exp(theta - b))) for b in (-1, 2, 0.4, 5)]
        assert found.z == pytest.approx(z) and [s.item for s in found.steps] == [2]
        easy = chosen([-1, 2], [5], normalize="logistic")
        assert easy.left == ((2, "too near to an end of its gap, 0.119 wide"),)

    @given(st.lists(PLACES, max_size=25), st.floats(0.01, 0.5), st.integers(1, 4))
    def test_every_gap_that_can_be_narrowed_is(self, new, limit, top):
        """With no margin the widest gap comes down to the limit if, and only if, all candidates together do it."""
        found = chosen([0.0, 0.2, 1.0], new, margin=0, max_gap=limit, top=top)
        every = np.sort([0.0, 0.2, 1.0, *(x for x in new if 0 <= x <= 1)])
        assert (found.stopped == MAX_GAP) == (np.diff(every).max() <= limit + 1e-12)
        gaps = [found.before.max_gap, *(s.max_gap for s in found.steps)]
        assert all(a >= b for a, b in pairwise(gaps)) and gaps[-1] == found.after.max_gap
        sums = [found.before.top_gap_sum, found.after.top_gap_sum]
        assert sums[1] <= sums[0] + 1e-12
        assert all(s.lower < found.z[s.item] < s.upper for s in found.steps)
        assert sorted([s.item for s in found.steps] + [j for j, _ in found.left]) == list(range(3, 3 + len(new)))

    @given(st.lists(PLACES, max_size=12), st.integers(0, 5))
    def test_by_brute_force(self, new, budget):
        """Each step splits the widest gap that has a candidate by the one nearest to its middle."""
        found = chosen([0.0, 0.3, 1.0], new, margin=0, top=99, budget=budget)
        have, free = [0.0, 0.3, 1.0], [float(found.z[j]) for j in range(3, 3 + len(new))]
        for step in found.steps:
            ends = sorted(have)
            fillable = [(lo, hi) for lo, hi in pairwise(ends) if any(lo < x < hi for x in free)]
            widest = max(round(hi - lo, 12) for lo, hi in fillable)
            assert round(step.upper - step.lower, 12) == widest and (step.lower, step.upper) in fillable
            inside = [x for x in free if step.lower < x < step.upper]
            middle = (step.lower + step.upper) / 2
            got = float(found.z[step.item])
            assert round(abs(got - middle), 12) == min(round(abs(x - middle), 12) for x in inside)
            have.append(got)
            free.remove(got)


class TestReference:
    @pytest.mark.parametrize("how", ("minmax", "failure", "logistic"))
    def test_before_and_after_are_what_bk_metrics_says(self, how):
        rng = np.random.default_rng(3)
        theta = rng.normal(0, 2, 6)
        b = np.concatenate([np.linspace(-3, 4, 7) ** 3 / 20, rng.uniform(-2, 3, 12)])
        late = np.arange(19) >= 7
        draws = (b + rng.normal(0, 0.3, (200, 19))).astype(np.float32)
        theta_draws = (theta + rng.normal(0, 0.1, (200, 6))).astype(np.float32)
        found = choose(b, late, theta, None, draws, theta_draws, normalize=how, budget=4, level=0.9)
        assert len(found.steps) == 4
        kept = ~late
        for side in (found.before, found.after):
            want = metrics.report(b[kept], None, None, theta, draws[:, kept], theta_draws, normalize=how, level=0.9,
                                  reps=1)  # fmt: skip
            for name in ("items", "ddm", "max_gap", "top_gap_sum"):
                assert getattr(side, name) == pytest.approx(getattr(want, name))
                if name != "items":
                    assert getattr(side.intervals, name) == pytest.approx(getattr(want.intervals, name), abs=1e-6)
            kept = kept | np.isin(np.arange(19), [s.item for s in found.steps])

    def test_without_draws_there_is_a_reason(self):
        found = chosen([0, 10], [5])
        assert found.after.intervals is None and "--keep-draws" in found.after.reasons["intervals"]
        draws = np.zeros((3, 3), np.float32)
        found = chosen([0, 10], [5], draws=draws)
        assert found.after.intervals is None and "equal" in found.after.reasons["intervals"]
        found = chosen([0, 10], [5], theta=[0.0], draws=draws, normalize="failure")
        assert found.after.intervals is None and "models have no draws" in found.after.reasons["intervals"]


class TestCoverage:
    def test_choosing_on_noisy_difficulties_flatters_the_result(self):
        """The maximum gap by the estimates that chose is below that by the true places, on average."""
        rng = np.random.default_rng(5)
        seen, true = [], []
        for _ in range(60):
            places = rng.uniform(0, 1, 20)
            noisy = np.clip(places + rng.normal(0, 0.05, 20), 0.001, 0.999)
            found = chosen([0.0, 1.0], list(noisy), budget=6)
            added = [places[s.item - 2] for s in found.steps]
            seen.append(found.after.max_gap)
            true.append(np.diff(np.sort([0, 1, *added])).max())
        assert np.mean(np.array(true) - seen) > 0.03
