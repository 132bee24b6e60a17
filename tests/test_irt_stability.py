"""Leave-one-model-out stability against fits made from nothing, and as a command."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st

import benchkit.irt.stability as module
from benchkit.irt.laplace import laplace
from benchkit.irt.model import Data, Priors, check_data, sigmoid
from benchkit.irt.stability import SPEARMAN, Stability, _midranks, _spearman, leave_one_out
from benchkit.spread import METRICS


def simulate(seed, models, items, attempts=4, level=0.5, sd_theta=1.0, sd_b=1.5, missing=0.0):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(level, sd_theta, models), rng.normal(0, sd_b, items)
    n = np.full((models, items), attempts)
    n[rng.random(n.shape) < missing] = 0
    n[rng.integers(models), :] = attempts  # each item is tried
    return check_data(n, rng.binomial(n, sigmoid(theta[:, None] - b)).astype(float))


def stability(data: Data, priors: Priors = Priors()) -> Stability:  # noqa: B008
    return leave_one_out(data, priors, laplace(data, priors))


def unit(b):
    return (b - b.min()) / (b.max() - b.min())


def metrics(z):
    z = sorted(z.tolist())
    n = len(z)
    ends = [0.0, *z, 1.0]
    width = sorted((b - a for a, b in pairwise(ends)), reverse=True)
    return [sum(abs(x - k / (n - 1)) for k, x in enumerate(z)) / n, width[0], sum(width[:5])]


def twin(data: Data, priors: Priors):
    """The table without each model's rows, fitted from nothing: shift (N, M), NaN for items without data; metrics."""
    shift, found = np.full(data.attempts.shape, np.nan), []
    z = unit(laplace(data, priors).b)
    for i in range(len(data.attempts)):
        n, y = np.delete(data.attempts, i, 0), np.delete(data.correct, i, 0)
        left = n.sum(0) > 0
        fit = laplace(Data(n[:, left].copy(), y[:, left].copy()), priors)
        assert fit.converged
        without = unit(fit.b)
        shift[i, left] = np.abs(without - z[left])
        found.append(metrics(without))
    return shift, np.array(found)


HARD = {
    "models fewer": simulate(1, 6, 20),
    "items fewer": simulate(2, 20, 6),
    "square": simulate(3, 7, 7, missing=0.2),
    "the side changes": simulate(4, 8, 7),
    "one attempt": simulate(5, 12, 40, attempts=1),
    "nearly all right": simulate(6, 8, 30, level=4),
    "nearly all wrong": simulate(7, 8, 30, level=-4, attempts=1),
    "flat items": simulate(8, 8, 30, sd_b=0.05),
    "many missing": simulate(9, 15, 25, attempts=2, missing=0.7),
    "three models": simulate(10, 3, 100, attempts=1),
    "two models": simulate(11, 2, 12),
    "many attempts": simulate(12, 9, 12, attempts=1000),
}


@pytest.mark.parametrize("data", HARD.values(), ids=HARD)
@pytest.mark.parametrize("priors", [Priors(), Priors(1.0, 0.5, 10.0)], ids=["default", "other priors"])
class TestTheory:
    def test_against_fits_from_nothing(self, data, priors):
        found = stability(data, priors)
        shift, values = twin(data, priors)
        assert found.reason is None and found.converged.all()
        np.testing.assert_allclose(found.shift, np.nanmax(shift, 0), atol=1e-4)
        np.testing.assert_allclose(found.metrics, values, atol=3e-4)  # a sum of five gaps
        np.testing.assert_allclose(found.full, metrics(unit(laplace(data, priors).b)), atol=1e-9)
        np.testing.assert_allclose(found.influence, np.nanmean(shift, 1), atol=1e-4)
        moved = found.shift > 1e-4  # the model named is one whose absence gives that shift
        who = found.shift_model[moved]
        np.testing.assert_allclose(shift[who, np.flatnonzero(moved)], found.shift[moved], atol=1e-4)


class TestSpecial:
    def test_an_item_that_nobody_else_tried_is_not_counted(self):
        base = simulate(20, 6, 10)
        n, y = np.pad(base.attempts, ((0, 0), (0, 1))), np.pad(base.correct, ((0, 0), (0, 1)))
        n[2, 10], y[2, 10] = 4, 0  # the hardest item, of model 2 alone
        found, (shift, _) = stability(Data(n, y)), twin(Data(n, y), Priors())
        assert np.isnan(shift[2, 10]) and not np.isnan(np.delete(shift[:, 10], 2)).any()
        np.testing.assert_allclose(found.shift, np.nanmax(shift, 0), atol=1e-4)
        assert found.shift_model[10] != 2
        assert found.influence[2] == pytest.approx(shift[2, :10].mean(), abs=1e-4)

    def test_an_item_becomes_a_boundary_item(self):
        data = simulate(21, 8, 12)
        y = data.correct.copy()
        y[:, 5:7] = 0
        y[3, 5] = 1  # solved by model 3 alone, once; item 6 by none
        found, z = stability(Data(data.attempts, y)), unit(laplace(Data(data.attempts, y), Priors()).b)
        assert found.shift_model[5] == 3 and found.shift[5] == pytest.approx(1 - z[5], abs=1e-9) and z[5] < 0.95

    def test_a_model_without_attempts_moves_nothing(self):
        data = simulate(22, 6, 15)
        n, y = np.vstack([data.attempts, np.zeros((1, 15), int)]), np.vstack([data.correct, np.zeros((1, 15))])
        found = stability(Data(n, y))
        assert found.influence[6] < 1e-5 < found.influence[:6].min()
        assert found.spearman[6] == 1

    def test_twins_among_models_and_items(self):
        data = simulate(23, 6, 12, attempts=1)
        rows, columns = [0, 1, 2, 3, 4, 5, 1, 5], [*range(12), 4, 4]
        found = stability(Data(data.attempts[rows][:, columns], data.correct[rows][:, columns]))
        np.testing.assert_allclose(found.influence[[6, 7]], found.influence[[1, 5]], atol=1e-9)
        np.testing.assert_allclose(found.shift[[12, 13]], found.shift[4], atol=1e-9)
        assert not set(found.shift_model.tolist()) & {6, 7}  # the first of two

    def test_ends_of_the_scale_that_stay_are_moved_by_nobody(self):
        n = np.full((5, 4), 10)
        y = np.array([[10, 8, 4, 0], [10, 7, 3, 0], [10, 6, 3, 0], [10, 6, 2, 0], [10, 5, 1, 0]], float)
        found = stability(check_data(n, y))
        assert found.shift[0] == found.shift[3] == 0 and found.shift_model[[0, 3]].tolist() == [-1, -1]
        assert (found.shift_model[1:3] >= 0).all()


class TestInvariance:
    @settings(max_examples=15)
    @given(st.data(), st.integers(0, 1000), st.sampled_from([(5, 9), (9, 5), (7, 7)]))
    def test_order_of_models_and_items(self, draw, seed, shape):
        data = simulate(seed, *shape, missing=0.2)
        rows = np.array(draw.draw(st.permutations(range(shape[0]))))
        columns = np.array(draw.draw(st.permutations(range(shape[1]))))
        a, b = stability(data), stability(Data(data.attempts[rows][:, columns], data.correct[rows][:, columns]))
        np.testing.assert_allclose(b.shift, a.shift[columns], atol=1e-6)
        np.testing.assert_allclose(b.influence, a.influence[rows], atol=1e-6)
        np.testing.assert_allclose(b.metrics, a.metrics[rows], atol=1e-6)
        np.testing.assert_allclose(b.spearman, a.spearman[rows], atol=1e-9)

    def test_threads_change_nothing(self, monkeypatch):
        data = simulate(1, 12, 30)
        alone = stability(data)
        monkeypatch.setattr(module, "_WORTHWHILE", 0)
        monkeypatch.setattr(module, "_cores", lambda: 4)
        for a, b in zip(alone, stability(data), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_progress_counts_models(self):
        seen: list[tuple[int, int]] = []
        data = simulate(1, 4, 6)
        leave_one_out(data, Priors(), laplace(data, Priors()), progress=lambda done, total: seen.append((done, total)))
        assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


class TestReference:
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
    def test_spearman_with_ties_is_scipy_s(self, pairs):
        a, b = np.array(pairs, float).T
        if np.ptp(a) == 0 or np.ptp(b) == 0:
            assert np.isnan(_spearman(a, b))
        else:
            assert _spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)

    def test_ranks_share_their_mean_up_to_rounding(self):
        assert _midranks(np.array([0.1 + 0.2, 5.0, 0.3, -1.0])).tolist() == [2.5, 4, 2.5, 1]


class TestValidation:
    def names(self, found: Stability) -> tuple[dict[str, Any], list[str]]:
        models, items = [f"m{k}" for k in range(len(found.skipped))], [f"q{k}" for k in range(found.shift.size)]
        return found.document(models, items), found.warnings(models)

    @pytest.mark.parametrize(
        ("data", "why"),
        (
            (simulate(1, 1, 5), "one model: nothing is left without it"),
            (simulate(1, 5, 1), "one item: minmax needs two different difficulties"),
            (check_data(np.ones((4, 3)), np.ones((4, 3))), "all difficulties are equal: minmax is undefined"),
            (check_data(np.eye(2), np.array([[1, 0], [0, 0]])), "no fit without a model has metrics: one item: "),
        ),
        ids=["one model", "one item", "equal", "one item left"],
    )
    def test_undefined_with_a_reason(self, data, why):
        document, said = self.names(stability(data))
        assert document["stability"] is None and document["stability_reason"].startswith(why)
        assert said == [f"stability is undefined: {document['stability_reason']}"]

    @pytest.mark.parametrize(
        ("attempts", "correct", "why"),
        (
            ([[1, 1], [0, 0]], [[1, 0], [0, 0]], "no attempts are left"),
            ([[2, 2, 2], [4, 0, 0], [4, 0, 0]], [[2, 1, 0], [3, 0, 0], [1, 0, 0]], "one item: minmax needs two"),
            ([[2, 2], [2, 2], [2, 2]], [[2, 0], [1, 1], [0, 0]], "all difficulties are equal: minmax is undefined"),
        ),
    )
    def test_a_refit_that_does_not_count(self, attempts, correct, why):
        found = stability(check_data(attempts, correct))
        document, said = self.names(found)
        assert document["stability"]["skipped"] == ["m0"]
        assert document["stability"]["refits"] == len(attempts) - 1
        assert any(w.startswith(f"stability does not count the fit without m0: {why}") for w in said)
        assert np.isnan([found.influence[0], found.spearman[0], *found.metrics[0]]).all()
        assert np.isfinite(found.metrics[1:]).all()

    def test_document(self):
        found = stability(simulate(30, 6, 14))
        s = self.names(found)[0]["stability"]
        assert list(s) == ["models", "refits", "skipped", *METRICS, "min_spearman", "min_spearman_model",
                           "most_influential", "mean_shift", "largest_shift", "largest_shift_item",
                           "largest_shift_model"]  # fmt: skip
        assert (s["models"], s["refits"], s["skipped"]) == (6, 6, [])
        for k, name in enumerate(METRICS):
            assert s[name] == {
                "full": found.full[k],
                "lower": found.metrics[:, k].min(),
                "upper": found.metrics[:, k].max(),
            }
        assert s["min_spearman_model"] == f"m{found.spearman.argmin()}" and s["min_spearman"] == found.spearman.min()
        assert s["most_influential"] == f"m{found.influence.argmax()}" and s["mean_shift"] == found.influence.max()
        assert s["largest_shift_item"] == f"q{found.shift.argmax()}" and s["largest_shift"] == found.shift.max()
        assert s["largest_shift_model"] == f"m{found.shift_model[found.shift.argmax()]}"
        assert "NaN" not in json.dumps(s)

    def test_warnings(self):
        found = stability(simulate(30, 6, 40, attempts=50))
        calm = found._replace(
            full=np.array([0.05, 0.2, 0.25]), metrics=np.tile([0.06, 0.3, 0.29], (6, 1)), spearman=np.full(6, SPEARMAN)
        )
        assert self.names(calm)[1] == []
        said = self.names(calm._replace(full=np.array([0.05, 0.2, 0.3])))[1]
        assert len(said) == 1 and "the top-5 gap sum (0.29 to 0.3) across 0.30" in said[0] and "add models" in said[0]
        said = self.names(calm._replace(full=np.array([0.1, 0.09, 0.2])))[1]
        assert len(said) == 1 and "DDM (0.06 to 0.1) across 0.10, the max gap (0.09 to 0.3) across 0.10" in said[0]
        said = self.names(calm._replace(spearman=np.array([1, 0.95, 0.5, 0.7, np.nan, 0.5])))[1]
        assert len(said) == 1 and "without m2" in said[0] and "0.50 (wanted 0.9)" in said[0]
        said = self.names(calm._replace(converged=np.array([True, False] * 3)))[1]
        assert len(said) == 1 and "without m1 (and 2 more) the mode was not found" in said[0]
        assert any("only two models" in w for w in self.names(stability(simulate(1, 2, 12)))[1])

    def test_no_correlation_where_all_ranks_are_tied(self):
        found = stability(simulate(31, 4, 6))
        s = self.names(found._replace(spearman=np.full(4, np.nan)))[0]["stability"]
        assert s["min_spearman"] is s["min_spearman_model"] is None and "tied" in s["min_spearman_reason"]


def document(sh: Shell, call: str, stdin: bytes = b"") -> dict[str, Any]:
    out: dict[str, Any] = json.loads(sh(f"bk-irt -q -t json {call}", stdin=stdin).out)
    return out


class TestCommand:
    def test_rows_and_fit(self, sh: Shell, aime: Path) -> None:
        (sh.folder / "jax.py").write_text("raise SystemExit('jax was imported')\n")
        call = f"bk-irt -q -t json --method laplace --stability {aime}"
        got = json.loads(sh(call, env={"PYTHONPATH": str(sh.folder)}).out)
        s = got["fit"]["stability"]
        assert s["models"] == s["refits"] == 16 and s["skipped"] == []
        rows = {r["id"]: r for r in got["parameters"] if r["kind"] == "item"}
        others = [r for r in got["parameters"] if r["kind"] != "item"]
        assert all(r["stability_shift"] is r["stability_model"] is None for r in others) and len(others) == 19
        most = max(rows.values(), key=lambda r: r["stability_shift"])
        assert [most["id"], most["stability_shift"], most["stability_model"]] == [
            s["largest_shift_item"], s["largest_shift"], s["largest_shift_model"]]  # fmt: skip
        last = rows["aime_2025_I_15"]  # solved by nobody: the hardest, whoever is left out
        assert last["stability_shift"] == 0 and last["stability_model"] is None

    def test_the_table_without_a_model_s_rows(self, sh: Shell, aime: Path) -> None:
        """The number reported is the one that a user finds by leaving out the rows."""
        s = document(sh, f"--method laplace --stability {aime}")["fit"]["stability"]

        def z(text: str) -> dict[str, float]:
            rows = document(sh, "--method laplace", text.encode())["parameters"]
            b = {r["id"]: r["mean"] for r in rows if r["kind"] == "item"}
            low, high = min(b.values()), max(b.values())
            return {k: (v - low) / (high - low) for k, v in b.items()}

        lines = aime.read_text().splitlines(keepends=True)
        assert any(line.startswith(f"{s['most_influential']},") for line in lines)
        full = z("".join(lines))
        without = z("".join(line for line in lines if not line.startswith(f"{s['most_influential']},")))
        assert s["mean_shift"] == pytest.approx(np.mean([abs(without[k] - full[k]) for k in full]), abs=1e-4)

    def test_sampling_changes_nothing_of_it(self, sh: Shell, aime: Path) -> None:
        short = "--draws 50 --warmup 50"
        sampled = document(sh, f"{short} --stability {aime}")
        mode = document(sh, f"--method laplace --stability {aime}")
        assert sampled["fit"]["stability"] == mode["fit"]["stability"]
        plain = document(sh, f"{short} {aime}")
        assert plain["fit"]["stability"] is None and "stability_reason" not in plain["fit"]
        for a, b in zip(sampled["parameters"], plain["parameters"], strict=True):
            assert a["mean"] == b["mean"] and b["stability_shift"] is b["stability_model"] is None

    def test_one_model(self, sh: Shell) -> None:
        got = document(sh, "--method laplace --stability", b"model,item,attempts,correct\nA,x,2,2\nA,y,2,1\n")
        assert got["fit"]["stability"] is None and "one model" in got["fit"]["stability_reason"]
        assert any("stability is undefined" in w for w in got["warnings"])

    def test_warnings_are_said_and_kept(self, sh: Shell) -> None:
        text = b"model,item,attempts,correct\nA,x,2,2\nA,y,2,1\nA,z,2,0\nB,x,2,1\nB,y,2,2\nB,z,2,0\n"
        done = sh("bk-irt --method laplace --stability -t json", stdin=text)
        kept = json.loads(done.out)["warnings"]
        assert "only two models" in done.err and any("only two models" in w for w in kept)

    def test_the_text_view_has_a_line(self, sh: Shell, aime: Path) -> None:
        assert (
            "without one model: DDM 0.041 to 0.052"
            in sh(f"bk-irt -t table --method laplace --stability {aime}").out.decode()
        )
        assert "without one model" not in sh(f"bk-irt -t table --method laplace {aime}").out.decode()
