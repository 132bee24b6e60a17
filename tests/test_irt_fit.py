"""The whole fit: posteriors found by other software, hard data, reproducibility, calibration."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchkit.errors import InputError
from benchkit.irt.fit import HYPER, fit
from benchkit.irt.model import Priors, sigmoid

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parent.parent


def simulate(seed, models, items, attempts=4, level=0.5, sd_theta=1.0, sd_b=1.5):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(level, sd_theta, models), rng.normal(0, sd_b, items)
    n = np.full((models, items), attempts)
    return n, rng.binomial(n, sigmoid(theta[:, None] - b)).astype(float)


def read_aime():
    with (DATA / "aime2025_I.csv").open() as f:
        rows = list(csv.DictReader(f))
    models, items = sorted({r["model"] for r in rows}), sorted({r["item"] for r in rows})
    n, y = np.zeros((len(models), len(items)), int), np.zeros((len(models), len(items)))
    for r in rows:
        at = models.index(r["model"]), items.index(r["item"])
        n[at], y[at] = int(r["attempts"]), float(r["correct"])
    return models, items, n, y


@pytest.fixture(scope="module")
def aime():
    models, items, n, y = read_aime()
    return models, items, n, y, fit(n, y, models=models, items=items)


@pytest.fixture(scope="module")
def edges():
    """Items that all solve and none solves, a model that solves all it tried, and an absent pair."""
    n, y = simulate(3, 10, 14, attempts=2)
    y[:, 0], y[:, 1] = n[:, 0], 0
    n[4, 5] = y[4, 5] = 0
    return n, y, fit(n, y)


class TestReference:
    def test_aime_posterior_of_numpyro(self, aime):
        """tests/data/aime2025_I.posterior.json: NumPyro 0.22.0, NUTS in float64, 4 x 5000 draws, least ESS 2210.

        Four Monte Carlo standard errors of both, which are common to all abilities and difficulties; for the bounds
        those of a normal's quantiles.
        """
        models, items, _, _, got = aime
        found = {("hyper", k): (got.hyper, i) for i, k in enumerate(HYPER)}
        found |= {("item", k): (got.items, i) for i, k in enumerate(items)}
        found |= {("model", k): (got.models, i) for i, k in enumerate(models)}
        wanted = json.loads((DATA / "aime2025_I.posterior.json").read_text())["parameters"]
        assert len(wanted) == len(found)
        for p in wanted:
            of, i = found[p["kind"], p["id"]]
            error = 4 * np.sqrt(1 / of.ess_bulk[i] + (p["mcse"] / p["sd"]) ** 2)
            tail = 4 * 2.67 * np.sqrt(1 / of.ess_tail[i] + 1 / 2210)
            assert error < 0.12 and tail < 0.4, p
            assert abs(of.mean[i] - p["mean"]) < error * p["sd"], p
            assert 0.92 < of.sd[i] / p["sd"] < 1.08, p
            assert max(abs(of.lower[i] - p["q025"]), abs(of.upper[i] - p["q975"])) < tail * p["sd"], p

    @pytest.mark.parametrize(
        ("name", "b", "variance"),
        [
            # marginal ML Rasch by mirt (its own tests) and ltm, Bock and Lieberman (1970) data
            ("lsat6", [-2.730, -0.999, -0.240, -1.306, -2.099], 0.570),
            ("lsat7", [-1.868, -0.791, -1.461, -0.521, -1.993], 1.023),
        ],
    )
    def test_lsat_marginal_maximum_likelihood(self, name, b, variance):
        table = np.loadtxt(DATA / f"{name}_patterns.csv", delimiter=",", skiprows=1, dtype=int)
        y = np.repeat(table[:, :5], table[:, 5], axis=0).astype(float)
        assert y.shape == (1000, 5)
        got = fit(np.ones(y.shape, int), y, draws=500)
        np.testing.assert_allclose(got.items.mean, b, atol=0.025)
        assert got.hyper.mean[2] == pytest.approx(np.sqrt(variance), abs=0.015)
        assert got.diagnostics["divergences"] == 0 and got.diagnostics["min_ess_bulk"] > 400


class TestTheory:
    def test_diagnostics_are_complete(self, aime):
        d = aime[4].diagnostics
        keys = "model method priors chains warmup draws target_accept seed divergences max_rhat min_ess_bulk"
        assert not (set(keys.split()) | {"min_ess_tail", "min_e_bfmi", "pearson_phi", "saturated_trees"}) - set(d)
        assert d["divergences"] == 0 and d["saturated_trees"] == 0
        assert d["max_rhat"] < 1.01 and d["min_ess_bulk"] > 2000 and d["min_ess_tail"] > 1000
        assert d["min_e_bfmi"] > 0.7 and d["pearson_phi"] is None and "too few cells" in d["pearson_phi_reason"]
        assert aime[4].warnings == ()
        json.dumps(d, allow_nan=False)

    def test_draws_and_summaries_agree(self, aime):
        got = aime[4]
        assert got.draws.shape == (4000, 34) and got.draws.dtype == np.float32
        np.testing.assert_allclose(got.draws[:, 3:18].mean(0), got.items.mean, rtol=1e-4)
        np.testing.assert_allclose(got.draws[:, 18:].std(0, ddof=1), got.models.sd, rtol=1e-4)
        np.testing.assert_allclose(np.quantile(got.draws[:, 1], 0.975), got.hyper.upper[1], rtol=1e-4)
        assert (got.draws[:, 1:3] > 0).all()

    def test_boundary_rows_are_finite_and_flagged(self, edges):
        _, _, got = edges
        assert got.boundary_items[:2].all()
        others = got.items.mean[2:]
        assert np.isfinite(got.items.mean).all() and np.isfinite(got.items.sd).all()
        assert got.items.mean[0] < others.min() and got.items.mean[1] > others.max()
        assert got.items.sd[:2].min() > np.median(got.items.sd[2:])

    def test_laplace_and_nuts_agree_inside(self, aime):
        models, items, n, y, got = aime
        mode = fit(n, y, method="laplace", models=models, items=items)
        assert mode.items.rhat is None and mode.draws is None and mode.diagnostics["seed"] is None
        inside = ~got.boundary_items
        assert (np.abs(mode.items.mean - got.items.mean) / got.items.sd)[inside].max() < 0.7
        assert np.corrcoef(mode.items.mean[inside], got.items.mean[inside])[0, 1] > 0.99
        np.testing.assert_allclose(mode.items.upper - mode.items.lower, 2 * 1.959964 * mode.items.sd, rtol=1e-6)
        assert (mode.hyper.lower < mode.hyper.mean).all() and (mode.hyper.mean < mode.hyper.upper).all()

    def test_tighter_priors_pull_in(self):
        n, y = simulate(4, 6, 8)
        wide, tight = (fit(n, y, priors=Priors(5, s, s), draws=200) for s in (2.5, 0.2))
        assert np.ptp(tight.items.mean) < 0.8 * np.ptp(wide.items.mean)


class TestInvariance:
    def test_chains_do_not_depend_on_each_other(self, aime):
        _, _, n, y, got = aime
        one = fit(n, y, chains=1)
        np.testing.assert_array_equal(one.draws, got.draws[:1000])

    def test_fewer_draws_are_the_first_ones(self, aime):
        _, _, n, y, got = aime
        few = fit(n, y, draws=130, chains=2)
        np.testing.assert_array_equal(few.draws[:130], got.draws[:130])
        np.testing.assert_array_equal(few.draws[130:], got.draws[1000:1130])

    def test_seeds(self, aime):
        _, _, n, y, got = aime
        other = fit(n, y, seed=1)
        assert not np.array_equal(other.draws, got.draws)
        assert np.abs((other.items.mean - got.items.mean) / got.items.sd).max() < 0.15

    def test_order_of_rows_and_columns(self, edges):
        n, y, got = edges
        rows, columns = np.random.default_rng(0).permutation(10), np.random.default_rng(1).permutation(14)
        other = fit(n[rows][:, columns], y[rows][:, columns])
        shift = np.abs(other.items.mean - got.items.mean[columns]) / got.items.sd[columns]
        assert shift.max() < 0.15
        np.testing.assert_allclose(other.models.sd, got.models.sd[rows], rtol=0.12)

    def test_absent_pairs_are_absent(self, aime):
        _, _, n, y, got = aime
        n, y = n.copy(), y.copy()
        gone = np.random.default_rng(2).random(n.shape) < 0.1
        n[gone] = y[gone] = 0
        part = fit(n, y)
        assert np.abs((part.items.mean - got.items.mean) / got.items.sd).max() < 1

    def test_progress_ends_at_the_total(self):
        calls = []
        n, y = simulate(5, 6, 8)
        fit(n, y, chains=2, warmup=100, draws=50, progress=lambda done, total: calls.append((done, total)))
        assert calls[-1] == (300, 300) and [d for d, _ in calls] == sorted(d for d, _ in calls)

    def test_equal_bytes_whatever_the_cores_and_the_cache(self, tmp_path):
        code = (
            "import hashlib, os, numpy as np; os.sched_setaffinity(0, os.sched_getaffinity(0) if {all} else {first});"
            "from benchkit.irt.fit import fit; r = np.random.default_rng(0);"
            "y = r.binomial(3, .6, (60, 200)).astype(float); f = fit(np.full(y.shape, 3), y, draws=30, warmup=30);"
            "print(hashlib.sha256(f.draws.tobytes()).hexdigest())"
        )
        blocked = tmp_path / "file"
        blocked.write_text("")
        first = {next(iter(os.sched_getaffinity(0)))}
        cases = [
            ({"XDG_CACHE_HOME": str(tmp_path)}, True),  # cold
            ({"XDG_CACHE_HOME": str(tmp_path)}, False),  # warm, one core
            ({"XDG_CACHE_HOME": str(blocked)}, True),  # no cache can be written
            ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, True),
        ]
        seen = set()
        for env, every in cases:
            done = subprocess.run(
                [sys.executable, "-c", code.replace("{all}", str(every)).replace("{first}", str(first))],
                env={**os.environ, **env},
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0 and done.stderr == "", done.stderr
            seen.add(done.stdout)
        assert len(seen) == 1


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "vb"}, "method must be nuts or laplace"),
            ({"chains": 0}, "chains must be between 1 and 64"),
            ({"draws": 3}, "draws must be between 4"),
            ({"warmup": 5}, "warmup must be between 20"),
            ({"target_accept": 1.0}, "target-accept must be between"),
            ({"max_treedepth": 0}, "max-treedepth must be between"),
            ({"seed": -1}, "seed must be between 0"),
            ({"priors": Priors(0, 1, 1)}, "prior scale of mu_b"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(InputError, match=message):
            fit(np.ones((2, 2), int), np.ones((2, 2)), **options)

    def test_few_draws_are_warned_about(self):
        n, y = simulate(6, 6, 8)
        texts = " ".join(fit(n, y, draws=20, warmup=20).warnings)
        assert "least ESS" in texts and "raise --draws" in texts

    def test_short_trees_are_warned_about(self):
        n, y = simulate(6, 6, 8)
        got = fit(n, y, max_treedepth=1, draws=200)
        assert got.diagnostics["saturated_trees"] > 100
        assert any("--max-treedepth" in w for w in got.warnings)

    def test_alike_attempts_are_warned_about(self):
        rng = np.random.default_rng(7)
        n = np.full((12, 20), 50)
        p = rng.beta(1, 1, n.shape)
        got = fit(n, rng.binomial(n, p).astype(float), method="laplace")
        assert got.diagnostics["pearson_phi"] > 5 and any("more alike" in w for w in got.warnings)

    def test_fractions_and_parts_are_said(self):
        n, y = np.array([[2, 2, 0], [0, 0, 2]]), np.array([[0.5, 2, 0], [0, 0, 1]])
        texts = " ".join(fit(n, y, method="laplace").warnings)
        assert "fractions" in texts and "2 parts" in texts

    def test_laplace_never_imports_jax(self):
        code = (
            "import sys, numpy as np; from benchkit.irt.fit import fit;"
            "f = fit(np.ones((4, 5), int), np.eye(4, 5), method='laplace'); assert np.isfinite(f.items.mean).all();"
            "bad = {'jax', 'blackjax', 'scipy', 'polars', 'pyarrow'} & set(sys.modules); assert not bad, bad"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

    def test_numpy_is_whole_before_jax_is_imported_beside_it(self):
        """JAX adds to NumPy's dictionary of types; where numpy.ma went through it meanwhile, a command failed."""
        code = (
            "import sys, threading; threading.Thread.start = lambda _: print('numpy.ma' in sys.modules);"
            "from benchkit.irt.fit import preload; preload()"
        )
        assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT) == b"True\n"


HARD = {
    "flat items": (1, 8, 30, 4, 1.0, 1.0, 0.05),
    "three models": (1, 3, 500, 1, 1.0, 1.0, 1.5),
    "three models, flat items": (2, 3, 500, 1, 0.0, 1.0, 0.05),
    "two and three": (1, 2, 3, 1, 1.0, 1.0, 1.5),
    "three by three by 100": (1, 3, 3, 100, 1.0, 1.0, 1.5),
    "nothing varies": (1, 60, 60, 1, 0.0, 0.05, 0.05),
    "one model": (0, 1, 10, 4, 1.0, 1.0, 1.5),
    "nearly all wrong": (0, 8, 30, 4, -6.0, 1.0, 1.5),
    "nearly all right": (0, 8, 30, 4, 3.5, 1.0, 1.5),
    "nearly all wrong, 31 models": (11, 31, 30, 4, -6.0, 1.0, 1.5),
    "all right": (0, 16, 15, 4, 60.0, 1.0, 1.5),
    "all wrong, on the other side": (0, 60, 40, 1, -60.0, 1.0, 1.5),
}


class TestCoverage:
    @pytest.mark.parametrize("name", HARD)
    def test_hard_data(self, name):
        n, y = simulate(*HARD[name])
        got = fit(n, y).diagnostics
        assert got["divergences"] <= 1
        assert got["max_rhat"] < 1.01
        assert got["min_ess_bulk"] > 400 and got["min_ess_tail"] > 400
