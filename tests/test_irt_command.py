"""bk-irt as a command: its table, its options, its bytes. The model itself is tested in test_irt_*.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
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


LATER = "_I_0[456],"


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory, aime: Path) -> Shell:
    """plain.arrow and full.arrow (with every draw): fits without three problems, which are in later.csv.

    o1.csv: one of the models on the fits' problems, under another name.
    """
    sh = Shell(tmp_path_factory.mktemp("held_out"))
    sh(f"grep -v '{LATER}' {aime} > first.csv; grep -E 'attempts|{LATER}' {aime} > later.csv;"
       "grep -E 'attempts|o1 .med' first.csv | sed 's/^o1/new-o1/' > o1.csv;"
       "bk-irt first.csv --draws 700 -q -o plain.arrow; bk-irt first.csv -q --draws 700 --keep-draws -o full.arrow;"
       "bk-irt first.csv --method laplace -o laplace.arrow; bk-irt first.csv --draws 700 -q -o plain.json")  # fmt: skip
    return sh


def read(sh: Shell, name: str) -> tuple[pa.Table, dict[str, Any]]:
    table = pa.ipc.open_stream((sh.folder / name).read_bytes()).read_all()
    return table, json.loads(table.schema.metadata[b"benchkit.fit"])


def is_new(table: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(table["origin"], "anchored"), False)


class TestStoredDraws:
    def test_binary_formats_keep_some_of_hyperparameters_and_models(self, held_out: Shell) -> None:
        plain, d = read(held_out, "plain.arrow")
        full, every = read(held_out, "full.arrow")
        assert (d["thin"], d["kept_draws"]) == (3, 233) and (every["thin"], every["kept_draws"]) == (1, 700)
        assert d | {"thin": 1, "kept_draws": 700} == every
        for row, whole in zip(plain.to_pylist(), full.to_pylist(), strict=True):
            if row["kind"] == "item":
                assert row["draws"] is None
            else:
                chains = np.array(whole["draws"]).reshape(4, 700)
                assert row["draws"] == chains[:, 2::3].ravel().tolist() and len(row["draws"]) == 932
        assert plain.drop(["draws"]).equals(full.drop(["draws"]))
        document = json.loads((held_out.folder / "plain.json").read_bytes())
        assert document["fit"] == d | {"thin": None, "kept_draws": None}
        assert all("draws" not in row for row in document["parameters"])

    def test_text_and_parquet(self, held_out: Shell) -> None:
        for to in ("csv", "table"):
            out = held_out(f"bk-irt first.csv {SHORT} -t {to}").out.decode()
            assert "draws" not in out.split("\n")[0] and max(map(len, out.splitlines())) < 250
        held_out(f"bk-irt first.csv {SHORT} -o short.parquet")
        kept = pq.read_table(held_out.folder / "short.parquet")
        assert {r["kind"] for r in kept.to_pylist() if r["draws"]} == {"hyper", "model"}

    def test_intervals_are_made_where_they_are_asked_for(self, held_out: Shell) -> None:
        m = json.loads(held_out("bk-metrics -q plain.arrow").out)
        assert m["intervals"] is None and m["intervals_reason"]
        assert json.loads(held_out("bk-metrics -q full.arrow").out)["intervals"]
        assert json.loads(held_out("bk-metrics -q --normalize failure plain.arrow").out)["intervals"] is None


class TestAnchor:
    @pytest.mark.parametrize("name", ("plain", "full"))
    def test_the_fit_s_rows_pass_unchanged(self, name: str, held_out: Shell) -> None:
        held_out(f"bk-irt --anchor {name}.arrow later.csv -o both.arrow")
        old, d = read(held_out, f"{name}.arrow")
        both, after = read(held_out, "both.arrow")
        assert both.filter(pc.invert(is_new(both))).equals(old)
        keys = [(r["kind"], r["id"]) for r in both.select(["kind", "id"]).to_pylist()]
        assert keys == sorted(keys) and after.pop("anchored") and after == d
        new = both.filter(is_new(both)).to_pylist()
        assert [r["id"] for r in new] == [f"aime_2025_I_0{k}" for k in (4, 5, 6)]
        for r in new:
            assert r["kind"] == "item" and r["attempts"] == 64 and not r["boundary"] and r["stability_shift"] is None
            assert 0.99 < r["rhat"] < 1.03 and r["ess_bulk"] > 300
            assert (r["draws"] is None) == (name == "plain")
            if r["draws"]:
                assert len(r["draws"]) == 2800 and r["mean"] == pytest.approx(np.mean(r["draws"]), abs=1e-5)

    def test_near_the_fit_to_all(self, held_out: Shell, aime: Path) -> None:
        want = {r["id"]: r for r in fit(held_out, f"-q {aime}")["parameters"]}
        for r in fit(held_out, "--anchor plain.arrow later.csv")["parameters"]:
            if r["origin"] == "anchored":
                assert abs(r["mean"] - want[r["id"]]["mean"]) < 0.5 * want[r["id"]]["sd"]

    def test_document_and_history(self, held_out: Shell) -> None:
        held_out("bk-matrix later.csv -o later.arrow")
        out = fit(held_out, "--anchor plain.arrow -s 5 later.arrow")
        entry = out["fit"]["anchored"][0]
        assert [entry[k] for k in ("kind", "count", "fixed", "draws", "seed")] == ["item", 3, 16, 932, 5]
        assert "pearson_phi" in entry and out["fit"]["thin"] is None
        assert [(h["cmd"], h["argv"]) for h in out["history"]] == [
            ("bk-irt", ["--draws", "700"]), ("bk-matrix", []), ("bk-irt", ["--anchor", "-s", "5"])]  # fmt: skip
        assert fit(held_out, "--anchor plain.arrow later.arrow --no-provenance")["history"] == []

    def test_items_do_not_depend_on_each_other(self, held_out: Shell) -> None:
        held_out("bk-irt --anchor plain.arrow later.csv -o at_once.arrow;"
                 "grep -v _04 later.csv | bk-irt --anchor plain.arrow -o part.arrow;"
                 "grep -v _0[56] later.csv | bk-irt --anchor part.arrow -o both.arrow")  # fmt: skip
        one, d = read(held_out, "at_once.arrow")
        two, e = read(held_out, "both.arrow")
        assert one.equals(two)
        assert [a["count"] for a in d["anchored"]] == [3] and [a["count"] for a in e["anchored"]] == [2, 1]

    def test_bytes_and_draws(self, held_out: Shell) -> None:
        sums = {held_out(f"{pin} bk-irt --anchor full.arrow later.csv {keep} | sha256sum").out
                for pin in ("", "taskset -c 0") for keep in ("", "--no-provenance")}  # fmt: skip
        assert len(sums) == 2
        out = fit(held_out, "--anchor full.arrow later.csv --keep-draws")
        assert all(len(r["draws"]) == 2800 for r in out["parameters"]) and out["fit"]["kept_draws"] == 700
        assert all("draws" not in r for r in fit(held_out, "--anchor full.arrow later.csv")["parameters"])
        rows = fit(held_out, "--anchor plain.arrow later.csv --keep-draws")["parameters"]
        assert {len(r["draws"]) for r in rows if r["draws"]} == {932}
        assert {r["origin"] for r in rows if r["kind"] == "item" and r["draws"]} == {"anchored"}
        held_out("bk-irt --anchor full.arrow later.csv | bk-metrics -q | jq -e .intervals.ddm.lower")

    def test_jax_is_not_imported(self, held_out: Shell) -> None:
        (held_out.folder / "blocked").mkdir()
        (held_out.folder / "blocked" / "jax.py").write_text("raise SystemExit('jax was imported')\n")
        held_out("bk-irt --anchor plain.arrow later.csv -o x.arrow", env={"PYTHONPATH": "blocked"})

    def test_formats_of_the_fit(self, held_out: Shell) -> None:
        want = fit(held_out, "--anchor full.arrow later.csv")["parameters"]
        held_out("bk-irt first.csv -q --draws 700 --keep-draws -o full.json")
        assert fit(held_out, "--anchor full.json later.csv")["parameters"] == want
        assert fit(held_out, "--anchor full.json -f csv < later.csv")["parameters"] == want
        assert json.loads(held_out("gzip -c full.json | bk-irt --anchor - later.csv -t json").out)["parameters"] == want
        held_out("bk-irt first.csv -q --draws 700 --keep-draws -o full.csv")
        bare = fit(held_out, "--anchor full.csv later.csv")
        assert list(bare["fit"]) == ["anchored"]
        for a, b in zip(bare["parameters"], want, strict=True):  # how many chains there were is not known
            assert a["mean"] == b["mean"] and (a["rhat"] is None) == (a["origin"] == "anchored")
        assert held_out("bk-irt --anchor full.csv later.csv -t table").out.startswith(b"15 items, 16 models\nitems pl")

    def test_new_models_on_a_fixed_bank(self, held_out: Shell) -> None:
        out = fit(held_out, "--anchor-items full.arrow o1.csv")
        rows = {r["id"]: r for r in out["parameters"]}
        new, old = rows["new-o1 (medium)"], rows["o1 (medium)"]
        assert new["kind"] == "model" and new["origin"] == "anchored" and new["attempts"] == 48
        assert abs(new["mean"] - old["mean"]) < 0.3 * old["sd"] and new["sd"] == pytest.approx(old["sd"], rel=0.15)
        assert out["fit"]["anchored"][0]["fixed"] == 12 and out["history"][-1]["argv"] == ["--anchor-items"]
        # its draws are kept, so that items can be calibrated by it in turn
        held_out(
            "bk-irt --anchor-items full.arrow o1.csv -o more.arrow;"
            "(cat later.csv; grep 'o1 .med' later.csv | sed 's/^/new-/') | bk-irt --anchor more.arrow -o x.arrow"
        )
        table, d = read(held_out, "x.arrow")
        assert table["draws"].null_count == 0 and [a["kind"] for a in d["anchored"]] == ["model", "item"]

    @pytest.mark.parametrize(
        ("call", "said"),
        (
            ("--anchor plain.arrow first.csv", "first.csv: items 'aime_2025_I_01', 'aime_2025_I_02', 'aime_2025_I_03' "
             "and 9 more are in the fit plain.arrow already"),
            ("--anchor plain.arrow strange.csv", "strange.csv: model 'xo1 (medium)' is not in plain.arrow"),
            ("--anchor-items full.arrow later.csv", "later.csv: models 'DeepSeek-R1', 'DeepSeek-R1-Distill-Lla"),
            ("--anchor-items plain.arrow o1.csv", "plain.arrow: no draws of items 'aime_2025_I_01', 'aime_2025_I_02', "
             "'aime_2025_I_03' and 9 more: make the fit with --keep-draws"),
            ("--anchor plain.json later.csv", "plain.json: no draws of rows 'mu_b', 'sigma_b': make the fit with --"),
            ("--anchor laplace.arrow later.csv", "laplace.arrow: a fit by laplace has no draws"),
            ("--anchor 2pl.json later.csv", "2pl.json: a fit of the model 2pl"),
            ("--anchor nowhere later.csv", "nowhere: no such file"),
            ("--anchor later.csv plain.arrow", "later.csv: no column 'kind'"),
            ("--anchor plain.arrow plain.arrow", "plain.arrow: a table 'parameters/1'"),
            ("--anchor - < later.csv", "--anchor - and the input can't both be standard input"),
            ("--anchor plain.arrow later.csv --draws 5", "--anchor and --draws exclude each other"),
            ("--method laplace --anchor plain.arrow later.csv", "--anchor and --method exclude each other"),
            ("--max-rhat 1.1 --anchor-items full.arrow o1.csv", "--anchor-items and --max-rhat exclude each other"),
            ("--prior-mu-b 5 --anchor plain.arrow later.csv", "--anchor and --prior-mu-b exclude each other"),
            ("--anchor plain.arrow --anchor-items full.arrow o1.csv", "--anchor and --anchor-items exclude each other"),
            ("--stability --anchor plain.arrow later.csv", "--anchor and --stability exclude each other"),
        ),
    )  # fmt: skip
    def test_refused_in_one_line(self, call: str, said: str, held_out: Shell) -> None:
        held_out("sed 's/^o1/xo1/' later.csv > strange.csv; sed 's/\"1pl\"/\"2pl\"/' plain.json > 2pl.json")
        done = held_out(f"bk-irt {call}", rc=2)
        assert done.err.startswith(f"bk-irt: {said}") and done.err.count("\n") == 1 and done.out == b""

    def test_over_dispersion_of_the_fit_is_followed(self, held_out: Shell) -> None:
        """With rho near 0 the draws have the moments of the binomial fit's, with a large one new items are vaguer."""
        held_out("bk-irt first.csv -q --draws 700 --keep-draws -o full.json")
        document = json.loads((held_out.folder / "full.json").read_bytes())
        document["fit"]["dispersion"] = "beta"
        row = dict(next(r for r in document["parameters"] if r["id"] == "sigma_b"), id="rho")
        new = {}
        for rho in (1e-6, 0.5):
            made = document | {"parameters": [*document["parameters"], row | {"draws": [rho] * 2800}]}
            (held_out.folder / "beta.json").write_text(json.dumps(made))
            rows = fit(held_out, "--anchor beta.json later.csv")["parameters"]
            new[rho] = [(r["mean"], r["sd"]) for r in rows if r["origin"] == "anchored"]
        want = fit(held_out, "--anchor full.json later.csv")["parameters"]
        want = [(r["mean"], r["sd"]) for r in want if r["origin"] == "anchored"]
        np.testing.assert_allclose(new[1e-6], want, atol=0.06)
        assert (np.array(new[0.5])[:, 1] > 1.1 * np.array(want)[:, 1]).all()
        assert "fractions" in held_out("sed '2,3s/.,.\r/4,1.5/' later.csv | bk-irt --anchor beta.json", rc=2).err
        (held_out.folder / "beta.json").write_text(json.dumps(document))
        assert "no draws of row 'rho'" in held_out("bk-irt --anchor beta.json later.csv", rc=2).err

    def test_fractions_are_said(self, held_out: Shell) -> None:
        held_out(r"sed '2,$s/,[0-9]*.\?$/,0.5/' later.csv > half.csv")
        assert "fractions" in held_out("bk-irt --anchor plain.arrow half.csv -o x.arrow").err


class TestDispersion:
    def test_a_row_more_and_wider_bounds_for_most(self, sh: Shell, aime: Path) -> None:
        plain = fit(sh, f"--method laplace {aime}")
        beta = fit(sh, f"--method laplace --dispersion beta {aime}")
        assert beta["fit"]["dispersion"] == "beta" and plain["fit"]["dispersion"] is None
        hyper = [r["id"] for r in beta["parameters"] if r["kind"] == "hyper"]
        assert hyper == ["mu_b", "rho", "sigma_b", "sigma_theta"]
        sds = [{r["id"]: r["sd"] for r in x["parameters"] if r["kind"] == "item"} for x in (plain, beta)]
        assert sum(sds[1][k] > sds[0][k] for k in sds[0]) > 7

    def test_stability_counts_attempts_alike(self, sh: Shell, aime: Path) -> None:
        got = fit(sh, f"--method laplace --dispersion beta --stability {aime}")["fit"]["stability"]
        plain = fit(sh, f"--method laplace --stability {aime}")["fit"]["stability"]
        assert got["refits"] == 16 and got["ddm"]["full"] != plain["ddm"]["full"]

    def test_single_attempts_are_refused(self, sh: Shell) -> None:
        (sh.folder / "single.csv").write_text("model,item,attempts,correct\na,x,1,1\na,y,1,0\nb,x,1,0\nb,y,1,1\n")
        assert "two attempts or more" in sh("bk-irt --dispersion beta single.csv", rc=2).err


class TestRounds:
    def test_draws_until_the_target(self, sh: Shell, aime: Path) -> None:
        got = fit(sh, f"--draws 40 --warmup 60 --chains 2 --target-ess 300 {aime}")["fit"]
        assert got["draws"] > 40 and got["min_ess_bulk"] >= 300 and got["target_ess"] == 300


class TestLoo:
    def test_compared_with_another_fit(self, sh: Shell, aime: Path) -> None:
        sh(f"bk-irt -q {SHORT} --loo {aime} -o one.arrow")
        one = fit(sh, f"{SHORT} --loo {aime}")
        rows = [r for r in one["parameters"] if r["kind"] == "item"]
        assert sum(r["elpd_loo"] for r in rows) == pytest.approx(one["fit"]["loo"]["elpd_loo"])
        two = fit(sh, f"{SHORT} --loo --dispersion beta --compare one.arrow {aime}")["fit"]["loo"]
        contrast = two["comparison"]
        assert contrast["difference"] == pytest.approx(two["elpd_loo"] - one["fit"]["loo"]["elpd_loo"])
        assert contrast["items"] == 15 and contrast["se"] > 0
        same = fit(sh, f"{SHORT} --loo --compare one.arrow {aime}")["fit"]["loo"]["comparison"]
        assert same["difference"] == 0

    def test_only_fits_of_the_same_results(self, sh: Shell, aime: Path) -> None:
        sh(f"bk-irt -q {SHORT} --loo {aime} -o one.arrow")
        (sh.folder / "part.csv").write_text("".join(aime.read_text().splitlines(keepends=True)[:-1]))
        assert "other results" in sh(f"bk-irt {SHORT} --loo --compare one.arrow part.csv", rc=2).err
        sh(f"bk-irt -q {SHORT} {aime} -o without.arrow")
        assert "make it with --loo" in sh(f"bk-irt {SHORT} --loo --compare without.arrow {aime}", rc=2).err
        assert "--compare needs --loo" in sh(f"bk-irt --compare one.arrow {aime}", rc=2).err
        assert "--loo needs --method nuts" in sh(f"bk-irt --loo --method laplace {aime}", rc=2).err

    def test_fractions_have_no_predictive_density(self, sh: Shell) -> None:
        (sh.folder / "half.csv").write_text("model,item,attempts,correct\na,x,2,.5\na,y,2,1\nb,x,2,1\nb,y,2,2\n")
        loo = fit(sh, f"{SHORT} --loo half.csv")["fit"]["loo"]
        assert loo["elpd_loo"] is None and "fractions" in loo["elpd_loo_reason"]


class TestTwoParameters:
    def test_difficulty_alone_is_said_downstream(self, sh: Shell, aime: Path) -> None:
        sh(f"bk-irt -q --model 2pl --method laplace {aime} -o two.arrow")
        for command in ("bk-metrics", "bk-gaps"):
            assert "leave out its discriminations" in sh(f"{command} two.arrow").err
        sh(f"bk-irt -q --method laplace {aime} -o one.arrow")
        assert "discriminations" not in sh("bk-metrics one.arrow").err
