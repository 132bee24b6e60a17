"""benchkit.metrics and benchkit.posterior: the report on one benchmark."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit import posterior as posterior_module
from benchkit.errors import InputError
from benchkit.metrics import THRESHOLDS, report
from benchkit.posterior import posterior
from benchkit.spread import spread
from benchkit.targets import Beta, Sample, Uniform

KEYS = [
    "items",
    "normalize",
    "target",
    "ddm",
    "ddm_continuous",
    "max_gap",
    "top_gap_sum",
    "top",
    "baseline",
    "companion",
    "intervals",
    "median_sd_z",
    "flags",
    "boundary_items",
    "distinct_difficulties",
    "warnings",
]


@pytest.fixture(scope="module")
def fit():
    """A made-up fit of 20 items and 6 models with 400 draws; the two last items are boundary items."""
    rng = np.random.default_rng(2)
    b = np.sort(rng.normal(0, 2, 20))
    b[-2:] += 2
    theta = rng.normal(0, 1.5, 6)
    shift = rng.normal(0, 0.8, (400, 1))
    draws = (b + shift + rng.normal(0, 0.2, (400, 20))).astype(np.float32)
    theta_draws = (theta + shift + rng.normal(0, 0.2, (400, 6))).astype(np.float32)
    edge = np.arange(20) >= 18
    return {
        "b": draws.mean(0, dtype=float),
        "sd": draws.std(0, dtype=float),
        "boundary": edge,
        "theta": theta_draws.mean(0, dtype=float),
        "draws": draws,
        "theta_draws": theta_draws,
    }


def leaves(value):
    if isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def nulls(value):
    """Keys of nulls without a reason beside them."""
    if isinstance(value, dict):
        for key, part in value.items():
            if part is None and f"{key}_reason" not in value:
                yield key
            yield from nulls(part)


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"top": 0}, "--top must be 1 or more"),
            ({"level": 1.0}, "--level must lie between 0 and 1"),
            ({"level": 0.0}, "--level must lie between 0 and 1"),
            ({"reference": "both"}, "use same-size or continuous"),
            ({"target": "gauss"}, "use uniform"),
            ({"normalize": "z"}, "is not known"),
            ({"normalize": "failure"}, "the table has none"),
            ({"drop_boundary": True}, "needs the column boundary"),
            ({"sd": [1.0]}, "sd: 1 values for 3 items"),
            ({"boundary": [True]}, "boundary: 1 values for 3 items"),
            ({"draws": np.zeros((5, 2), np.float32)}, "does not fit 3 items"),
            ({"draws": np.zeros((1, 3), np.float32)}, "two draws or more"),
            (
                {"draws": np.zeros((5, 3), np.float32), "theta": [0, 1], "theta_draws": np.zeros((5, 3), np.float32)},
                r"is not \(5, 2\)",
            ),
            ({"draws": np.full((5, 3), np.nan, np.float32)}, "a draw of a difficulty"),
        ],
    )
    def test_messages(self, options, words):
        with pytest.raises(InputError, match=words):
            report([0, 1, 2], **options)

    @pytest.mark.parametrize(
        ("b", "words"), [([], "no items"), ([1.5], "one item"), ([2, 2, 2], "all difficulties are equal")]
    )
    def test_undefined_normalisation_is_null_with_a_reason(self, b, words):
        m = len(b)
        out = report(b, [0.1] * m, [False] * m, [0.0, 1.0]).document()
        for key in ("ddm", "ddm_continuous", "max_gap", "top_gap_sum", "baseline", "intervals", "median_sd_z"):
            assert out[key] is None and words in out[f"{key}_reason"], key
        assert out["flags"] == [] and out["items"] == m and words in out["warnings"][0]
        assert list(nulls(out)) == []

    def test_nothing_left_after_dropping(self):
        out = report([0, 1, 2], boundary=[True, True, False], drop_boundary=True).document()
        assert out["ddm"] is None and out["items"] == 1 and out["boundary_items"] == 2
        out = report([0, 1, 2], boundary=[True, True, True]).document()
        assert out["max_gap"] == 0.5 and out["companion"]["drop_boundary"]["max_gap_reason"] == "no items"

    def test_one_item_under_another_normalisation(self):
        out = report([0.0], normalize="logistic").document()
        assert out["max_gap"] == 0.5 and out["ddm"] is None and "one item" in out["ddm_reason"]
        assert out["baseline"]["ddm"] is None and out["baseline"]["max_gap"]["p"] > 0.9
        draws = np.array([[0.0], [0.5], [1.0]], np.float32)
        assert report([0.5], draws=draws, normalize="logistic").document()["intervals"]["ddm"] is None
        for part in (out, report([0.5], draws=draws, normalize="logistic").document()):
            assert list(nulls(part)) == []

    def test_draws_without_range(self):
        out = report([0, 1, 2], draws=np.zeros((5, 3), np.float32)).document()
        assert out["intervals"] is None and "equal" in out["intervals_reason"] and out["max_gap"] == 0.5


class TestInvariance:
    @given(b=st.lists(st.floats(-9, 9, allow_subnormal=False), min_size=2, max_size=12), seed=st.integers(0, 9))
    def test_order_of_rows(self, b, seed):
        rng = np.random.default_rng(seed)
        order, sd, edge = rng.permutation(len(b)), rng.random(len(b)), rng.random(len(b)) < 0.3
        first = report(b, sd, edge, [0.0, 2.0], reps=20)
        second = report(np.array(b)[order], sd[order], edge[order], [0.0, 2.0], reps=20)
        assert first.document() == second.document()

    def test_order_of_rows_with_draws(self, fit):
        order = np.random.default_rng(0).permutation(20)
        moved = {k: v[order] if k in ("b", "sd", "boundary") else v for k, v in fit.items()}
        moved["draws"] = fit["draws"][:, order]
        first, second = report(**fit, reps=50), report(**moved, reps=50)
        assert first.intervals == second.intervals
        assert first.median_sd_z == pytest.approx(second.median_sd_z, rel=1e-12)

    def test_repeated_draws_keep_the_point_and_the_median(self, fit):
        double = fit | {k: np.repeat(fit[k], 3, axis=0) for k in ("draws", "theta_draws")}
        first, second = report(**fit), report(**double)
        assert first.ddm == second.ddm
        for name in ("ddm", "max_gap", "top_gap_sum"):
            a, b = getattr(first.intervals, name), getattr(second.intervals, name)
            assert a.posterior_median == pytest.approx(b.posterior_median, abs=2e-3)

    def test_chunks_and_strides(self, fit, monkeypatch):
        whole = report(**fit)
        turned = fit | {"draws": np.ascontiguousarray(fit["draws"].T).T}
        assert report(**turned).intervals == whole.intervals
        monkeypatch.setattr(posterior_module, "_BLOCK", 1)
        small = report(**fit)
        assert small.intervals == whole.intervals and small.companion == whole.companion
        assert small.median_sd_z == pytest.approx(whole.median_sd_z, rel=1e-12)

    def test_point_values_do_not_depend_on_draws(self, fit):
        bare = {k: v for k, v in fit.items() if "draws" not in k}
        first, second = report(**fit), report(**bare)
        assert (first.ddm, first.max_gap, first.baseline) == (second.ddm, second.max_gap, second.baseline)
        assert second.intervals is None and second.reasons["intervals"] == "the table has no draws"

    @pytest.mark.parametrize("shift", [-3.0, 40.0])
    def test_minmax_ignores_a_shift_and_a_scale(self, shift):
        b = np.array([-1.0, 0.5, 0.75, 3.0])
        first, second = report(b), report(b * 4 + shift)
        assert first.ddm == pytest.approx(second.ddm, abs=1e-14)
        assert first.max_gap == pytest.approx(second.max_gap, abs=1e-14)


class TestTheory:
    def test_keys_in_order(self, fit):
        keys = [k for k in report(**fit).document() if not k.endswith("_reason")]
        assert keys == KEYS

    def test_document_is_json_without_nan(self, fit):
        out = report(**fit).document()
        json.dumps(out, allow_nan=False)
        assert list(nulls(out)) == []
        assert {type(v) for v in leaves(out)} <= {int, float, str, bool}

    def test_every_null_has_a_reason(self):
        assert list(nulls(report([0, 1, 3]).document())) == []

    def test_even_grid(self):
        out = report([k / 10 for k in range(11)])
        assert out.ddm == pytest.approx(0, abs=1e-12) and out.max_gap == pytest.approx(0.1, abs=1e-12)
        assert out.top_gap_sum == pytest.approx(0.5, abs=1e-12)
        assert out.flags == ("max_gap", "top_gap_sum")  # .10 is reached
        # items at i/10 with mass 1/11: between k/10 and (k+1)/10 the integral of |(k+1)/11 - x|
        area = sum(((k + 1) / 11 - k / 10) ** 2 / 2 + ((k + 1) / 10 - (k + 1) / 11) ** 2 / 2 for k in range(10))
        assert out.ddm_continuous == pytest.approx(area, abs=1e-12)

    def test_three_tied(self):
        out = report([0, 0, 0, 1, 4], [0.1] * 5)
        assert (out.ddm, out.max_gap, out.top_gap_sum) == (0.25, 0.75, 1)
        # z = 0 0 0 .25 1: integral of .6 - x over [0, .25], of |.8 - x| over [.25, 1]
        expected = (0.6 * 0.25 - 0.25**2 / 2) + 0.55**2 / 2 + 0.2**2 / 2
        assert out.ddm_continuous == pytest.approx(expected, abs=1e-12)
        assert out.distinct_difficulties == 3 and out.median_sd_z == pytest.approx(0.025)
        assert out.flags == ("ddm", "max_gap", "top_gap_sum")

    def test_flags_hold_at_equality(self):
        for grid in ([0, 0, 0.5, 0.5, 1], [0, 0.05, 0.3, 0.65, 1]):  # |deviations| add to .5, over 5 items
            out = report(grid)
            assert out.ddm == pytest.approx(THRESHOLDS["ddm"], abs=1e-15) and "ddm" in out.flags
        assert "ddm" not in report([0, 0.06, 0.3, 0.65, 1]).flags
        assert "max_gap" in report(np.arange(11) / 10).flags and "max_gap" not in report(np.arange(12) / 11).flags
        tenths = [0, 0.06, 0.12, 0.18, 0.24, 0.3, *np.linspace(0.35, 1, 14)]  # the five widest are .06
        out = report(tenths)
        assert out.top_gap_sum == pytest.approx(0.3, abs=1e-12) and out.flags[-1] == "top_gap_sum"

    def test_top_flag_is_for_five_only(self):
        assert "top_gap_sum" not in report([0, 1, 5], top=2).flags
        assert "top_gap_sum" in report([0, 1, 5]).flags

    def test_drop_boundary_is_the_report_without_them(self, fit):
        whole = report(**fit)
        short = {k: v[:18] if k in ("b", "sd", "boundary") else v for k, v in fit.items()}
        short["draws"] = fit["draws"][:, :18]
        by_hand, dropped = report(**short), report(**fit, drop_boundary=True)
        without = whole.companion.drop_boundary
        assert without.items == dropped.items == 18 and dropped.boundary_items == 2 and by_hand.boundary_items == 0
        for name in ("ddm", "ddm_continuous", "max_gap", "top_gap_sum", "intervals"):
            assert getattr(without, name) == getattr(by_hand, name) == getattr(dropped, name)
        assert dropped.median_sd_z == by_hand.median_sd_z

    def test_failure_companion_is_the_report_under_failure(self, fit):
        other = report(**fit, normalize="failure")
        failure = report(**fit).companion.failure
        for name in ("ddm", "ddm_continuous", "max_gap", "top_gap_sum"):
            assert getattr(failure, name) == getattr(other, name)
        assert failure.intervals.max_gap.lower == pytest.approx(other.intervals.max_gap.lower, abs=1e-6)

    def test_no_models(self):
        out = report([0, 1, 3]).document()
        assert out["companion"]["failure"] is None and "no models" in out["companion"]["failure_reason"]

    @pytest.mark.parametrize("method", ["minmax", "failure", "logistic"])
    def test_intervals_against_one_draw_at_a_time(self, fit, method):
        rows = []
        for b, t in zip(fit["draws"].astype(float), fit["theta_draws"].astype(float), strict=True):
            one = report(b, theta=t, normalize=method, reps=1)
            rows.append((one.ddm, one.max_gap, one.top_gap_sum))
        got = report(**fit, normalize=method, level=0.8).intervals
        for k, name in enumerate(("ddm", "max_gap", "top_gap_sum")):
            expected = np.quantile([r[k] for r in rows], [0.1, 0.9, 0.5])
            np.testing.assert_allclose(getattr(got, name), expected, atol=1e-6)

    def test_median_sd_from_draws_leaves_out_the_common_shift(self, fit):
        z = [(d - d.min()) / (d.max() - d.min()) for d in fit["draws"].astype(float)]
        out = report(**fit)
        assert out.median_sd_z == pytest.approx(np.median(np.std(z, axis=0, ddof=1)), rel=1e-6)
        bare = report(fit["b"], fit["sd"])
        assert bare.median_sd_z == pytest.approx(np.median(fit["sd"]) / np.ptp(fit["b"]), rel=1e-12)
        assert bare.median_sd_z > 2 * out.median_sd_z

    def test_median_sd_skips_items_without_one(self):
        assert report([0, 1, 4], [np.nan, 0.4, np.nan]).median_sd_z == pytest.approx(0.1)
        out = report([0, 1, 4], [np.nan] * 3)
        assert out.median_sd_z is None and "missing" in out.reasons["median_sd_z"]
        assert "keep the draws" in report([0, 1, 4], [1, 1, 1], normalize="rank").reasons["median_sd_z"]

    def test_target_object_and_text(self):
        first, second = report([0, 1, 4], target="beta:2,5"), report([0, 1, 4], target=Beta(2, 5))
        assert first == second and first.target == "beta:2,5"
        other = report([0, 1, 4], target=Sample([0, 0.25, 1]))
        assert other.ddm_continuous == pytest.approx(0, abs=1e-15) and other.target == "sample"

    def test_continuous_reference(self):
        out = report([0, 1, 4], reference="continuous")
        assert out.ddm == out.ddm_continuous


class TestWords:
    def test_gap_by_chance(self):
        rng = np.random.default_rng(0)
        out = report(rng.random(30))
        assert out.baseline.max_gap.p > 0.05 and "max_gap" in out.flags
        assert any("chance alone" in w and "max_gap" in w for w in out.warnings)

    def test_gap_beyond_chance_is_not_explained_away(self):
        b = np.r_[np.linspace(0, 0.3, 50), np.linspace(0.8, 1, 50)]
        out = report(b)
        assert out.baseline.max_gap.p < 0.01 and not any("max_gap" in w for w in out.warnings)

    def test_scale_that_rests_on_boundary_items(self):
        b = [0, 1, 2, 3]
        assert any("the hardest item" in w for w in report(b, boundary=[0, 0, 0, 1]).warnings)
        both = report(b, boundary=[1, 0, 0, 1]).warnings
        assert any("the easiest and the hardest items, all right or all wrong" in w for w in both)
        assert not any("prior" in w for w in report(b, boundary=[0, 1, 1, 0]).warnings)
        assert not any("prior" in w for w in report(b, boundary=[0, 0, 0, 1], normalize="logistic").warnings)

    def test_gap_finer_than_the_noise(self):
        b = np.linspace(0, 1, 101)
        assert any("finer than the noise" in w for w in report(b, np.full(101, 0.01)).warnings)
        assert not any("finer" in w for w in report(b, np.full(101, 0.004)).warnings)

    def test_interval_that_excludes_the_point(self):
        rng = np.random.default_rng(0)
        b = np.linspace(0, 1, 200)
        draws = (b + rng.normal(0, 0.05, (200, 200))).astype(np.float32)
        out = report(b, draws=draws)
        assert out.intervals.max_gap.lower > out.max_gap
        assert any("posterior_median" in w and "max_gap" in w for w in out.warnings)

    def test_silent_where_all_is_well(self):
        assert report(np.linspace(0, 1, 200), np.full(200, 0.001), np.zeros(200, bool)).warnings == ()


class TestCoverage:
    def test_many_items_and_draws_in_bounded_memory(self):
        draws = np.random.default_rng(0).standard_normal((50_000, 200), np.float32).T  # as a table holds them
        tracemalloc.start()
        posterior(draws, None, method="minmax", target=Uniform())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < draws.nbytes  # float64 work on 20 draws at a time, not 200

    def test_posterior_median_of_pure_noise(self):
        # Every difficulty N(0, 1) in each draw: the metrics of a draw are those of 25 random normal values.
        rng = np.random.default_rng(6)
        got = posterior(rng.standard_normal((4000, 25), np.float32), None, method="minmax", target=Uniform())
        z = np.sort(rng.standard_normal((4000, 25)))
        z = (z - z[:, :1]) / (z[:, -1:] - z[:, :1])
        plain = spread(z, Uniform())
        assert got.intervals.max_gap.posterior_median == pytest.approx(np.median(plain.max_gap), rel=0.03)
        assert got.intervals.ddm.upper == pytest.approx(np.quantile(plain.ddm, 0.975), rel=0.05)
