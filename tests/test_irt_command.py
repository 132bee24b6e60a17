"""bk-irt as a command: its table, its options, its bytes. The model itself is tested in test_irt_*.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Shell

SHORT = "--draws 60 --warmup 60 -q"


def fit(sh: Shell, call: str, stdin: bytes = b"", rc: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sh(f"bk-irt {call} -t json", stdin=stdin, rc=rc).out)
    return document


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory, aime: Path) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    Shell(folder)(f"bk-irt {aime} --seed 1 --keep-draws -o fit.arrow -q")
    return folder / "fit.arrow"


class TestTable:
    def test_rows_and_order(self, sampled: Path) -> None:
        t = pa.ipc.open_stream(sampled.read_bytes()).read_all()
        keys = list(zip(t["kind"].to_pylist(), t["id"].to_pylist(), strict=True))
        assert keys == sorted(keys) and len(keys) == 3 + 15 + 16
        assert [i for k, i in keys if k == "hyper"] == ["mu_b", "sigma_b", "sigma_theta"]
        rows = {(r["kind"], r["id"]): r for r in t.drop(["draws"]).to_pylist()}
        last = rows["item", "aime_2025_I_15"]
        assert last["boundary"] and last["attempts"] == 64 and last["correct"] == 0 and last["origin"] == "fit"
        assert rows["model", "o3-mini (high)"]["correct"] == 48
        assert rows["hyper", "mu_b"]["attempts"] is None and rows["hyper", "mu_b"]["boundary"] is None
        assert sum(r["boundary"] or False for r in rows.values()) == 1

    def test_summaries_are_those_of_the_draws(self, sampled: Path) -> None:
        t = pa.ipc.open_stream(sampled.read_bytes()).read_all()
        for r in t.to_pylist():
            draws = np.array(r["draws"])
            assert len(draws) == 4000
            assert r["mean"] == pytest.approx(draws.mean(), abs=1e-5)
            assert r["sd"] == pytest.approx(draws.std(ddof=1), rel=1e-4)
            assert [r["lower"], r["upper"]] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=1e-4)

    def test_fit_metadata(self, sampled: Path) -> None:
        f = json.loads(pa.ipc.open_stream(sampled.read_bytes()).schema.metadata[b"benchkit.fit"])
        keys = ["model", "method", "priors", "chains", "warmup", "draws", "target_accept", "seed", "divergences",
                "max_rhat", "min_ess_bulk", "min_ess_tail", "min_e_bfmi", "pearson_phi"]  # fmt: skip
        assert [k for k in f if k in keys] == keys
        assert f["seed"] == 1 and f["chains"] == 4 and f["draws"] == 1000

    def test_posterior_intervals_downstream(self, sampled: Path, sh: Shell) -> None:
        m = json.loads(sh(f"bk-metrics -q {sampled}").out)
        for k in ("ddm", "max_gap", "top_gap_sum"):
            i = m["intervals"][k]
            assert 0 <= i["lower"] < i["posterior_median"] < i["upper"] <= 1

    def test_draws_are_left_out_unless_kept(self, sh: Shell, aime: Path) -> None:
        assert all("draws" not in r for r in fit(sh, f"{SHORT} {aime}")["parameters"])
        kept = fit(sh, f"{SHORT} --keep-draws {aime}")["parameters"]
        assert all(len(r["draws"]) == 240 for r in kept)


class TestOptions:
    def test_each_prior_goes_where_it_belongs(self, sh: Shell, aime: Path) -> None:
        call = f"--method laplace --prior-mu-b 4 --prior-sigma-b 1.5 --prior-sigma-theta 0.5 {aime}"
        assert fit(sh, call)["fit"]["priors"] == {"mu_b": 4, "sigma_theta": 0.5, "sigma_b": 1.5}
        sd = {}
        for call in ("", "--prior-sigma-theta .05", "--prior-sigma-b .05"):
            rows = fit(sh, f"--method laplace {call} {aime}")["parameters"]
            sd[call] = {r["id"]: r["mean"] for r in rows if r["kind"] == "hyper"}
        assert sd["--prior-sigma-theta .05"]["sigma_theta"] < 0.8 * sd[""]["sigma_theta"]
        assert sd["--prior-sigma-b .05"]["sigma_b"] < 0.8 * sd[""]["sigma_b"]

    @pytest.mark.parametrize(
        "call",
        ("--target-accept .3", "--target-accept 1", "--prior-mu-b 0", "--draws 0", "--chains 0",
         "--max-treedepth 0", "--warmup 1", "--method mle", "--seed -1"),
    )  # fmt: skip
    def test_values_out_of_range_are_the_options_fault(self, call: str, sh: Shell, aime: Path) -> None:
        err = sh(f"bk-irt {call} {aime}", rc=2).err
        assert err.startswith(f"bk-irt: argument {call.split()[0]}") or call.split()[0] in err
        assert "aime" not in err

    def test_chains_draws_and_seed(self, sh: Shell, aime: Path) -> None:
        one = fit(sh, f"{SHORT} --chains 2 --keep-draws {aime}")
        assert len(one["parameters"][0]["draws"]) == 120 and one["fit"]["chains"] == 2
        other = fit(sh, f"{SHORT} --chains 2 --keep-draws --seed 2 {aime}")
        assert one["parameters"][0]["draws"] != other["parameters"][0]["draws"]

    def test_thresholds(self, sh: Shell, aime: Path) -> None:
        sh(f"bk-irt {SHORT} {aime} --max-rhat 2 --min-ess 1 --max-divergences 240 -o x.arrow")
        for call in ("--max-rhat 1", "--min-ess 1e9"):
            sh(f"bk-irt {SHORT} {aime} {call} -o low.arrow", rc=1)
            (sh.folder / "low.arrow").unlink()


class TestBytes:
    def test_the_same_seed_gives_the_same_bytes_whatever_the_cores(self, sh: Shell, aime: Path) -> None:
        sums = {sh(f"{pin} bk-irt {SHORT} {aime} | sha256sum").out for pin in ("", "taskset -c 0")}
        assert len(sums) == 1

    def test_rows_in_any_order(self, sh: Shell, aime: Path) -> None:
        lines = aime.read_text().splitlines(keepends=True)
        (sh.folder / "reversed.csv").write_text(lines[0] + "".join(reversed(lines[1:])))
        assert sh(f"bk-irt {SHORT} {aime} | sha256sum").out == sh(f"bk-irt {SHORT} reversed.csv | sha256sum").out

    def test_without_a_home_or_a_cache(self, sh: Shell, aime: Path) -> None:
        want = sh(f"bk-irt {SHORT} {aime} | sha256sum").out
        env = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
        done = sh(f"bk-irt {SHORT} {aime} | sha256sum", env=env)
        assert done.out == want and done.err == ""

    def test_whatever_the_environment_says_to_jax(self, sh: Shell, aime: Path) -> None:
        want = sh(f"bk-irt {SHORT} {aime} | sha256sum").out
        for name, value in (("JAX_PLATFORMS", "cuda"), ("JAX_DISABLE_JIT", "1"), ("JAX_ENABLE_X64", "1"),
                            ("JAX_DEBUG_NANS", "1"), ("JAX_LOG_COMPILES", "1")):  # fmt: skip
            done = sh(f"bk-irt {SHORT} {aime} | sha256sum", env={name: value})
            assert done.out == want and done.err == "", name


class TestLaplace:
    def test_no_jax_and_no_mcmc_columns(self, sh: Shell, aime: Path) -> None:
        (sh.folder / "jax.py").write_text("raise SystemExit('jax was imported')\n")
        got = fit(sh, f"--method laplace {aime}")
        again = json.loads(sh(f"bk-irt --method laplace {aime} -t json", env={"PYTHONPATH": str(sh.folder)}).out)
        assert got == again
        assert all(r["rhat"] is r["ess_bulk"] is r["ess_tail"] is None for r in got["parameters"])
        assert got["fit"]["divergences"] is None and got["fit"]["method"] == "laplace"


class TestWarnings:
    def test_fractions_and_short_chains_are_said(self, sh: Shell) -> None:
        rows = "".join(f"m{i},q{j},4,{(i * j) % 5 * 0.7}\n" for i in range(6) for j in range(6))
        text = ("model,item,attempts,correct\n" + rows).encode()
        done = sh("bk-irt --method laplace -t json", stdin=text)
        assert "fraction" in done.err and any("fraction" in w for w in json.loads(done.out)["warnings"])
        done = sh("bk-irt --draws 20 --warmup 40 -t json", stdin=text)
        assert "ESS" in done.err and "--draws" in done.err
        assert sh("bk-irt --draws 20 --warmup 40 -t json -q", stdin=text).err == ""

    def test_two_benchmarks_that_share_no_model(self, sh: Shell) -> None:
        rows = [f"{s}{i},{s}q{j},2,{(i + j) % 3}\n" for s in "ab" for i in range(3) for j in range(3)]
        done = sh(
            "bk-irt --method laplace -o x.arrow", stdin=("model,item,attempts,correct\n" + "".join(rows)).encode()
        )
        assert "warning" in done.err and "prior" in done.err
