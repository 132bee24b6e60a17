"""bk-metrics with targets from files, several benchmarks and --pairs, through a real shell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Shell

from benchkit.benchmarks import _names
from benchkit.targets import wasserstein1

FIT = "kind,id,mean,sd,lower,upper\n"
ITEMS = "".join(f"item,q{j},{b},.1,-9,9\n" for j, b in enumerate((-2, -1, 0.5, 2)))
MODELS = "".join(f"model,{m},{t},.1,-9,9\n" for m, t in (("a", -1), ("b", 0), ("c", 1)))


@pytest.fixture
def fits(tmp_path: Path) -> Shell:
    (tmp_path / "one.csv").write_text(FIT + ITEMS + MODELS)
    (tmp_path / "two.csv").write_text(FIT + ITEMS.replace("0.5", "-1.5") + MODELS)
    (tmp_path / "sample.csv").write_text("value,weight\n0.2,1\n0.9,3\n")
    return Shell(tmp_path)


def document(done) -> dict:
    return json.loads(done.out)


class TestTargetFiles:
    def test_a_weighted_sample(self, fits):
        out = document(fits("bk-metrics -q one.csv --target sample.csv"))
        z = (np.array([-2, -1, 0.5, 2]) + 2) / 4
        assert out["target"] == "sample.csv"
        assert out["ddm_continuous"] == pytest.approx(wasserstein1(z, [0.2, 0.9], None, [1, 3]))
        assert out["ddm"] == pytest.approx(np.abs(z - [0.2, 0.9, 0.9, 0.9]).mean())
        assert out["history"][-1]["argv"] == ["--target"]  # no name of a file

    @pytest.mark.parametrize("to", ["json", "ndjson", "parquet", "arrow", "tsv"])
    def test_a_sample_in_any_format(self, fits, to):
        rows = [{"value": 0.2, "weight": 1}, {"value": 0.9, "weight": 3}]
        name = f"sample.{to}"
        if to in ("parquet", "arrow"):
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pa.Table.from_pylist(rows)
            if to == "parquet":
                pq.write_table(table, fits.folder / name)
            else:
                with pa.ipc.new_stream(fits.folder / name, table.schema) as stream:
                    stream.write_table(table)
        else:
            text = {"json": json.dumps(rows), "ndjson": "\n".join(map(json.dumps, rows)) + "\n",
                    "tsv": "value\tweight\n0.2\t1\n0.9\t3\n"}[to]  # fmt: skip
            (fits.folder / name).write_text(text)
        a, b = (document(fits(f"bk-metrics -q one.csv --target {x}")) for x in (name, "sample.csv"))
        assert a["ddm"] == b["ddm"] and a["baseline"] == b["baseline"]

    def test_another_fit_on_the_same_scale(self, fits):
        out = document(fits("bk-metrics -q one.csv --target two.csv"))
        z, other = ((np.array(b) + 2) / 4 for b in ([-2, -1, 0.5, 2], [-2, -1.5, -1, 2]))
        assert out["ddm_continuous"] == pytest.approx(wasserstein1(z, other))
        for method in ("failure", "logistic"):
            out = document(fits(f"bk-metrics -q one.csv --target one.csv --normalize {method}"))
            assert out["ddm_continuous"] == pytest.approx(0, abs=1e-12)

    def test_harder_items_lie_beyond_one(self, fits):
        (fits.folder / "harder.csv").write_text(FIT + "item,x,4,.1,-9,9\n" + MODELS)
        out = document(fits("bk-metrics -q one.csv --target harder.csv"))
        assert out["ddm"] == pytest.approx(np.mean(1.5 - (np.array([-2, -1, 0.5, 2]) + 2) / 4))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("value\n0.5\n1.5\n", "bad.csv: target bad.csv: the values must lie in [0,1], not 1.5"),
            ("value,weight\n.5,1\n.6,\n", "bad.csv: some rows have a weight and some have none"),
            ("value,weight\n.5,0\n", "weights must be finite, not negative, and not all zero"),
            ("value\nx\n", "bad.csv: row 2: value ('x') is not a number"),
            ("z\n.5\n", "bad.csv: no column 'value' (found: z): needed is a target table"),
            (FIT + ITEMS + MODELS.replace("b,0", "b,.2"), "bad.csv: another scale: model 'b' has ability 0.2 in it"),
            (FIT + MODELS, "no row of kind 'item'"),
            (FIT + ITEMS.replace(",.1,", ",-1,"), "bad.csv: row 2: sd (-1) is below 0"),
        ],
    )
    def test_what_is_no_target(self, fits, text, message):
        (fits.folder / "bad.csv").write_text(text)
        done = fits("bk-metrics -q one.csv --target bad.csv", rc=2)
        assert message in done.err and done.err.count("\n") == 1 and not done.out

    def test_neither_a_name_nor_a_file(self, fits):
        done = fits("bk-metrics one.csv --target unifrom", rc=2)
        assert "'unifrom' is neither uniform, beta:A,B, normal:MEAN,SD nor a file" in done.err
        assert "not known" not in fits("bk-metrics one.csv --target beta:1", rc=2).err
        assert "rank, which has no scale" in fits("bk-metrics one.csv --target two.csv --normalize rank", rc=2).err

    def test_a_fit_without_common_models_is_taken_on_trust(self, fits):
        (fits.folder / "bare.csv").write_text(FIT + ITEMS)
        assert "taken on trust" in fits("bk-metrics one.csv --target bare.csv").err


class TestSeveral:
    def test_a_leaderboard_of_benchmarks(self, fits):
        out = document(fits("bk-metrics -q one.csv two.csv"))
        one, two = (document(fits(f"bk-metrics -q {x}.csv")) for x in ("one", "two"))
        drop = ("warnings", "history")
        for row, alone, name in zip(out["metrics"], (one, two), ("one", "two"), strict=True):
            assert row == {"name": name} | {k: v for k, v in alone.items() if k not in drop}
        assert out["benchmarks"] == 2 and set(out["flagged"]) == {"ddm", "max_gap", "top_gap_sum"}
        assert out["flagged"]["max_gap"] == ["one", "two"]
        assert all(w.startswith(("one: ", "two: ")) for w in out["warnings"])

    def test_flat_forms_are_a_row_each(self, fits):
        lines = fits("bk-metrics -q one.csv two.csv -t csv").out.decode().splitlines()
        assert [x.split(",")[:3] for x in lines] == [["name", "items", "normalize"], ["one", "4", "minmax"],
                                                    ["two", "4", "minmax"]]  # fmt: skip
        rows = [json.loads(x) for x in fits("bk-metrics -q one.csv two.csv -t ndjson").out.splitlines()]
        alone = [json.loads(fits(f"bk-metrics -q {x}.csv -t ndjson").out) for x in ("one", "two")]
        assert rows == [a | {"name": n} for a, n in zip(alone, ("one", "two"), strict=True)]
        assert rows[0]["baseline_ddm_p"] > 0 and list(rows[0]) == lines[0].split(",")
        table = fits("bk-metrics -q one.csv two.csv -t table").out.decode()
        assert "2 benchmarks; flagged (*)" in table and "one" in table

    def test_thresholds_hold_for_all(self, fits):
        done = fits("bk-metrics one.csv two.csv --max-ddm .07 -o out.json", rc=1)
        assert "--max-ddm 0.07 does not hold: ddm of two is" in done.err and "ddm of one is" not in done.err

    def test_names(self, fits):
        out = document(fits("bk-metrics -q one.csv two.csv --name A --name B"))
        assert [m["name"] for m in out["metrics"]] == ["A", "B"]
        assert document(fits("bk-metrics -q --name A < one.csv"))["name"] == "A"
        assert "1 names for 2 files" in fits("bk-metrics one.csv two.csv --name A", rc=2).err
        assert _names(["a/x.arrow", "b/y.csv.gz"]) == ["x", "y"]
        assert _names(["a/x.arrow", "b/x.csv"]) == ["a/x.arrow", "b/x.csv"]

    def test_an_error_names_the_file(self, fits):
        (fits.folder / "bad.csv").write_text(FIT + MODELS)
        done = fits("bk-metrics one.csv bad.csv", rc=2)
        assert "bk-metrics: bad.csv: no row of kind 'item'" in done.err and not done.out


RESULTS = "model,item,attempts,correct\n" + "".join(
    f"{m},q{j},8,{max(0, min(8, k - 2 * j + 4))}\n" for k, m in ((1, "a"), (3, "b"), (6, "c")) for j in range(4)
)


class TestPairs:
    def test_certificate(self, fits):
        (fits.folder / "r.csv").write_text(RESULTS)
        done = fits("bk-metrics one.csv --pairs r.csv")
        found = document(done)["certificate"]
        assert found["models"] == 3 and found["pairs"] == len(found["comparisons"]) == 3
        assert found["safe"] is None and found["flips"] == sum(c["flips"] for c in found["comparisons"])
        assert f"{found['flips']} of 3 pairs of models would change places" in done.err
        row = fits("bk-metrics -q one.csv --pairs r.csv -t ndjson").out
        assert json.loads(row)["certificate_pairs"] == 3

    def test_draws_and_models_that_lack_items(self, fits):
        (fits.folder / "r.csv").write_text(RESULTS + "d,q1,8,2\n")
        fits("grep -v ^d, r.csv | bk-irt -q --keep-draws --draws 100 -o fit.arrow")
        done = fits("bk-metrics fit.arrow --pairs r.csv")
        found = document(done)["certificate"]
        assert found["excluded"] == ["d"] and "model 'd' is left out of the pairs" in done.err
        assert found["safe"] >= 1 and found["draws"] == 400 and "are certain to stand as they do" in done.err
        far = next(c for c in found["comparisons"] if (c["model_a"], c["model_b"]) == ("a", "c"))
        assert far["rank_safe"] and far["safe_share"] > 0.95 and far["d_observed"] < 0

    def test_equal_difficulties_have_no_certificate(self, fits):
        (fits.folder / "r.csv").write_text(RESULTS)
        (fits.folder / "equal.csv").write_text(FIT + "".join(f"item,q{j},1,.1,-9,9\n" for j in range(4)) + MODELS)
        out = document(fits("bk-metrics -q equal.csv --pairs r.csv"))
        assert out["certificate"] is None and "all difficulties are equal" in out["certificate_reason"]

    @pytest.mark.parametrize(
        ("command", "message"),
        [
            ("bk-metrics one.csv two.csv --pairs r.csv", "--pairs compares the models of one benchmark"),
            ("bk-metrics one.csv --pairs r.csv --normalize logistic", "--pairs needs --normalize minmax and all items"),
            (
                "sed s/q3/q9/ r.csv > s.csv; bk-metrics one.csv --pairs s.csv",
                "s.csv: item 'q9' is not in the fit one.csv",
            ),
            ("grep -v q3 r.csv > s.csv; bk-metrics one.csv --pairs s.csv", "s.csv: no results on item 'q3' of the fit"),
            (
                "grep -v [bc],q3 r.csv > s.csv; bk-metrics one.csv --pairs s.csv",
                "fewer than two models have every item",
            ),
            ("bk-metrics one.csv --pairs one.csv", "one.csv: no column 'model'"),
        ],
    )
    def test_what_is_refused(self, fits, command, message):
        (fits.folder / "r.csv").write_text(RESULTS)
        done = fits(command, rc=2)
        assert message in done.err and done.err.count("\n") == 1 and not done.out


@pytest.mark.slow
def test_a_million_items(tmp_path):
    """Metrics without draws of a million items end well within the time that a test may take."""
    import pyarrow as pa

    from benchkit.tables import PARAMETERS

    b = np.random.default_rng(0).normal(0, 1, 10**6)
    nothing = {f.name: pa.nulls(len(b), f.type) for f in PARAMETERS.schema()}
    given = {"kind": ["item"] * len(b), "id": [f"i{j:07}" for j in range(len(b))], "sd": np.full(len(b), 0.1)}
    given = {k: pa.array(v) for k, v in given.items()} | dict.fromkeys(("mean", "lower", "upper"), pa.array(b))
    table = pa.table(nothing | given, schema=PARAMETERS.schema())
    with pa.ipc.new_stream(tmp_path / "fit.arrow", table.schema) as stream:
        stream.write_table(table)
    assert document(Shell(tmp_path)("bk-metrics -q fit.arrow"))["items"] == 10**6
