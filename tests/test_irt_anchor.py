"""The cut posterior of new items given a fit's draws, and of new models given an item bank's."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchkit.errors import InputError
from benchkit.irt import anchor
from benchkit.irt.fit import fit
from benchkit.irt.model import Data


def simulated(seed: int = 0, n: int = 4, count: int = 400) -> dict[str, Any]:
    """12 models, 9 new items, draws of a fit made up."""
    r = np.random.default_rng(seed)
    theta = r.normal(0, 2, 12) + 0.4 * r.normal(size=(count, 1)) + 0.3 * r.normal(size=(count, 12))
    b = r.normal(0.5, 2, 9)
    attempts = r.integers(1, n + 1, (12, 9))
    correct = r.binomial(attempts, 1 / (1 + np.exp(b - theta[0][:, None]))).astype(float)
    mu, sigma = r.normal(0.5, 0.4, count), np.exp(r.normal(0.7, 0.2, count))
    return {"attempts": attempts, "correct": correct, "theta": theta.astype(np.float32), "mu_b": mu, "sigma_b": sigma,
            "names": [f"q{j}" for j in range(9)]}  # fmt: skip


@pytest.fixture(scope="module")
def halves(aime: Path) -> dict[str, Any]:
    rows = list(csv.DictReader(aime.read_text().splitlines()))
    models, items = (sorted({r[k] for r in rows}) for k in ("model", "item"))
    n, y = np.zeros((len(models), len(items)), int), np.zeros((len(models), len(items)))
    for row in rows:
        cell = models.index(row["model"]), items.index(row["item"])
        n[cell], y[cell] = int(row["attempts"]), float(row["correct"])
    new = np.isin(np.arange(len(items)), [3, 4, 5])
    return {"n": n, "y": y, "new": new, "joint": fit(n, y, seed=1), "old": fit(n[:, ~new], y[:, ~new], seed=2)}


class TestValidation:
    def test_messages(self):
        s = simulated()
        with pytest.raises(InputError, match="3 draws where 4 or more are needed"):
            anchor.items(**s | {"theta": s["theta"][:3], "mu_b": s["mu_b"][:3], "sigma_b": s["sigma_b"][:3]})
        with pytest.raises(InputError, match="item q2"):
            anchor.items(
                **s | {"correct": np.where(np.arange(9) == 1, 99, s["correct"])} | {"names": ["q1", "q2"] * 4 + ["q"]}
            )


class TestInvariance:
    def test_models_are_items_turned_round(self):
        """theta given b and mu = 0 is -b given -theta: the same random numbers where the names make the same keys."""
        s = simulated()
        zero = np.zeros(400)
        one = anchor.items(**s | {"mu_b": zero})
        got = anchor.models(s["attempts"].T, s["attempts"].T - s["correct"].T, s["theta"], s["sigma_b"], s["names"])
        np.testing.assert_allclose(got.summary.mean, one.summary.mean, atol=5 * one.summary.sd.max() / np.sqrt(400))
        np.testing.assert_allclose(got.summary.sd, one.summary.sd, rtol=0.25)

    def test_each_item_by_itself(self):
        s = simulated()
        all_ = anchor.items(**s, seed=5)
        for j in (0, 7):
            tried = np.arange(12) != 3
            cut = {"attempts": s["attempts"][:, [j]], "correct": s["correct"][:, [j]], "names": [f"q{j}"]}
            np.testing.assert_array_equal(anchor.items(**s | cut, seed=5).draws[0], all_.draws[j])
            cut["attempts"] = np.where(tried[:, None], cut["attempts"], 0)
            cut["correct"] = np.where(tried[:, None], cut["correct"], 0)
            fewer = cut | {"attempts": cut["attempts"][tried], "correct": cut["correct"][tried]}
            fewer["theta"] = s["theta"][:, tried]
            np.testing.assert_array_equal(anchor.items(**s | cut).draws, anchor.items(**s | fewer).draws)


class TestTheory:
    def test_summary_and_diagnostics(self):
        s = simulated()
        got = anchor.items(**s, chains=4)
        assert got.draws.shape == (9, 400) and got.draws.dtype == np.float32
        np.testing.assert_allclose(got.summary.mean, got.draws.mean(1), rtol=1e-4)
        np.testing.assert_allclose(got.summary.upper, np.quantile(got.draws, 0.975, axis=1), rtol=1e-4)
        assert (got.summary.rhat < 1.05).all() and (got.summary.ess_bulk > 100).all()
        for chains in (None, 3):  # unknown, or not those of these draws
            assert np.isnan(anchor.items(**s, chains=chains).summary.rhat).all()

    def test_boundary_and_fractions(self):
        s = simulated()
        s["correct"][:, 2], s["correct"][:, 4] = 0, s["attempts"][:, 4]
        got = anchor.items(**s)
        assert got.boundary[[2, 4]].all() and not got.warnings
        half = anchor.items(**s | {"correct": s["correct"] * 0.5})
        assert "fractions" in half.warnings[0] and len(half.warnings) == 1

    def test_dispersion_is_one_for_binomial_counts_and_seen_where_attempts_are_alike(self):
        r = np.random.default_rng(3)
        theta, b = r.normal(0, 1, 40), r.normal(0, 1, 30)
        p = 1 / (1 + np.exp(b - theta[:, None]))
        n = np.full(p.shape, 50)
        phi, reason = anchor.dispersion(Data(n, r.binomial(n, p).astype(float)), theta, b, 0)
        assert phi == pytest.approx(1, abs=5 * np.sqrt(2 / n.size)) and reason is None
        alike = r.binomial(n, r.beta(4 * p, 4 * (1 - p))).astype(float)
        got = anchor.items(n, alike, np.tile(theta, (50, 1)), np.zeros(50), np.ones(50), [str(j) for j in range(30)])
        assert got.pearson_phi == pytest.approx(11, rel=0.2)  # 1 + (n - 1)/(kappa + 1), kappa = 4: 10.8
        assert "more alike" in got.warnings[0]
        phi, reason = anchor.dispersion(Data(np.ones((2, 2), int), np.ones((2, 2))), np.zeros(2), np.zeros(2), 2)
        assert phi is None and reason


class TestCoverage:
    @pytest.mark.parametrize("kind", ["items", "models"])
    def test_the_rank_of_the_truth_is_uniform(self, kind):
        """Simulation-based calibration (Talts and others 2018) of the conditional: b from its prior, y given theta."""
        r = np.random.default_rng(1)
        fixed = r.normal(0, 1.5, 8)
        size, count = 1500, 99
        truth = r.normal(0.7 if kind == "items" else 0, 1.8, size)
        n = r.choice([0, 1, 4], (8, size))
        sign = 1 if kind == "items" else -1
        y = r.binomial(n, 1 / (1 + np.exp(sign * (truth - fixed[:, None])))).astype(float)
        names = [str(k) for k in range(size)]
        same, sd = np.tile(fixed, (count, 1)), np.full(count, 1.8)
        if kind == "items":
            draws = anchor.items(n, y, same, np.full(count, 0.7), sd, names).draws
        else:
            draws = anchor.models(n.T, y.T, same, sd, names).draws
        ranks = (draws < truth[:, None]).sum(1)  # uniform on 0..99
        bins = np.bincount(ranks // 5, minlength=20)
        assert ((bins - size / 20) ** 2 / (size / 20)).sum() < 45.3  # chi-square, 19 degrees of freedom: .0006


class TestReference:
    def test_near_the_joint_fit(self, halves):
        """The held-out items' places, and the spread of new minus old, are about those of the fit to all items.

        Not equal: the joint fit learns about abilities from the new items too.
        """
        joint, old, new = halves["joint"], halves["old"], halves["new"]
        got = anchor.items(
            halves["n"][:, new], halves["y"][:, new], old.draws[:, 3 + 12 :], old.draws[:, 0].astype(float),
            old.draws[:, 1].astype(float), ["a", "b", "c"], chains=4,
        )  # fmt: skip
        want = joint.items.take(new)
        assert (np.abs(got.summary.mean - want.mean) < 0.5 * want.sd).all()
        b_joint, b_old = joint.draws[:, 3:18], old.draws[:, 3:15]
        rest = np.arange(3, 12)  # old items that are not the extreme ones
        after = (b_joint[:, new][:, :, None] - b_joint[:, ~new][:, None, rest]).std(0)
        here = (got.draws.T[:, :, None] - b_old[:, None, rest]).std(0)
        independent = np.sqrt(got.draws.var(1)[:, None] + b_old.var(0)[None, rest])
        np.testing.assert_allclose(here, after, rtol=0.2)
        # means and sds alone would be wrong: difficulties share the abilities' error
        assert (independent / here > 1.03).all() and np.median(independent / here) > 1.12

    def test_where_abilities_are_known_the_cut_is_the_joint_posterior(self):
        """Old items of 200 attempts, new ones of 2: new minus old is then that of the joint fit."""
        r = np.random.default_rng(2)
        theta, b = np.linspace(-2, 2, 16), r.normal(0, 1.5, 15)
        n = np.tile(np.where(np.arange(15) < 3, 2, 200), (16, 1))
        y = r.binomial(n, 1 / (1 + np.exp(b - theta[:, None]))).astype(float)
        joint, old = fit(n, y, seed=1), fit(n[:, 3:], y[:, 3:], seed=1)
        hyper = old.draws[:, :2].astype(float)
        got = anchor.items(n[:, :3], y[:, :3], old.draws[:, -16:], hyper[:, 0], hyper[:, 1], ["a", "b", "c"])
        np.testing.assert_allclose(got.summary.mean, joint.items.mean[:3], atol=0.1)
        np.testing.assert_allclose(got.summary.sd, joint.items.sd[:3], rtol=0.06)
        for j in range(3):
            want = (joint.draws[:, [3 + j]] - joint.draws[:, 6:-16]).std(0)
            here = (got.draws[j][:, None] - old.draws[:, 3:-16]).std(0)
            np.testing.assert_allclose(here, want, rtol=0.1)
