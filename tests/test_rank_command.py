"""bk-rank and bk-signflip through a real shell: options, exit statuses, refusals and text tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Shell

HOLES = """model,item,attempts,correct
a,q1,2,2
a,q2,2,1
a,q3,2,2
b,q1,2,1
b,q2,2,0
b,q3,2,0
c,q1,2,2
c,q3,2,1
"""
CLUSTERED = "model,item,attempts,correct,cluster\n" + "".join(
    f"{m},q{j},1,{int((j + k) % 3 > k)},p{j // 2}\n" for k, m in enumerate("abc") for j in range(8)
)


@pytest.fixture
def holes(tmp_path: Path) -> Path:
    (tmp_path / "holes.csv").write_text(HOLES)
    (tmp_path / "clusters.csv").write_text(CLUSTERED)
    return tmp_path


def document(done) -> dict:
    return json.loads(done.out)


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("--missing impute", "--missing impute needs --fit FIT"),
            (
                "--missing impute --fit holes.csv --method signflip",
                "needs --method bootstrap: imputed cells can't enter",
            ),
            ("--method signflip --reps 10", "--reps needs --method bootstrap or simultaneous"),
            ("--cluster --no-cluster", "--cluster and --no-cluster exclude each other"),
            ("--cluster", "--cluster: the table has no clusters"),
            ("--score pass@x", "--score: 'pass@x' is not mean, pass@K or all@K"),
            ("--score pass@3", "model a, item q1: pass@3 can't be estimated from 2 attempts"),
            ("--fit none.arrow", "none.arrow: no such file or directory"),
            ("--method exact", "invalid choice: 'exact'"),
        ],
    )
    def test_rank(self, holes, options, message):
        done = Shell(holes)(f"bk-rank holes.csv {options}", rc=2)
        assert message in done.err and done.err.count("\n") == 1 and not done.out

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("--all --ref a", "--all and --ref exclude each other"),
            ("--pairs pairs.csv --all", "--pairs and --all exclude each other"),
            ("--pairs pairs.csv", "--pairs: no model 'x' in the input"),
            ("--pairs self.csv", "self.csv: row 3: 'b' against itself"),
            ("--pairs twice.csv", "twice.csv: rows 2 and 4: 'b' and 'a' stand twice"),
            ("--pairs holes.csv", "no column 'model_a'"),
            ("--require-significant a", "expected 2 arguments"),
            ("--require-significant a z", "--require-significant: no model 'z' in the input"),
            ("--margin 1.5", "--margin: 1.5 is not between 0 and 1"),
            ("--adjust maxt --equalize", "maxt flips the signs of one table"),
        ],
    )
    def test_signflip(self, holes, options, message):
        (holes / "pairs.csv").write_text("model_a,model_b\na,x\n")
        (holes / "self.csv").write_text("model_a,model_b\na,b\nb,b\n")
        (holes / "twice.csv").write_text("model_a,model_b\na,b\na,c\nb,a\n")
        done = Shell(holes)(f"bk-signflip holes.csv {options}", rc=2)
        assert message in done.err and done.err.count("\n") == 1 and not done.out

    def test_a_fit_of_other_models_or_items(self, holes):
        run = Shell(holes)
        run("bk-irt -q --draws 20 --warmup 20 holes.csv -o fit.arrow")
        run("sed s/^c,/d,/ holes.csv > other.csv; sed s/q3/q4/ holes.csv > items.csv")
        assert "model 'd' is not in the fit fit.arrow" in run("bk-rank other.csv --fit fit.arrow", rc=2).err
        assert "item 'q4' is not in the fit fit.arrow" in run("bk-rank items.csv --fit fit.arrow", rc=2).err
        run("grep -v c,q3 holes.csv > fewer.csv; bk-irt -q --method laplace holes.csv -o mode.arrow")
        assert "make the fit with --keep-draws" in run("bk-rank fewer.csv --fit fit.arrow", rc=2).err
        assert "has no draws: fit it by nuts" in run("bk-rank holes.csv --fit mode.arrow", rc=2).err


class TestMissing:
    def test_each_way(self, holes):
        run = Shell(holes)
        out = document(run("bk-rank -q holes.csv"))
        assert [m["model"] for m in out["models"]] == ["a", "b"] and out["excluded"][0]["model"] == "c"
        out = document(run("bk-rank -q holes.csv --missing common"))
        assert len(out["models"]) == 3 and out["left_out"] == ["q2"] and out["items"] == 2 and out["excluded"] == []
        out = document(run("bk-rank -q holes.csv --missing bounds"))
        c = next(b for b in out["bounds"] if b["model"] == "c")
        assert (c["missing"], c["rank_lower"], c["rank_upper"]) == (1, 1, 2)
        assert c["score_lower"] == pytest.approx(0.5) and c["score_upper"] == pytest.approx(5 / 6)

    def test_impute_from_a_plain_fit_and_from_one_with_draws(self, holes):
        """A plain fit keeps no draws of its items: they are drawn anew given those of the models, which is the same."""
        run = Shell(holes)
        run("bk-irt -q holes.csv -o plain.arrow; bk-irt -q --keep-draws holes.csv -o full.arrow")
        found = []
        for fit in ("plain", "full"):
            out = document(run(f"bk-rank -q holes.csv --missing impute --fit {fit}.arrow"))
            assert out["missing"] == "impute" and out["imputed"][0]["missing"] == ["q2"] and out["excluded"] == []
            assert [h["cmd"] for h in out["history"]] == ["bk-irt", "bk-rank"]
            found.append({m["model"]: m for m in out["models"]})
        for model in "abc":
            a, b = (x[model] for x in found)
            for key in ("score", "pooled", "pooled_lower", "pooled_upper"):
                assert a[key] == pytest.approx(b[key], abs=0.04)
            assert a["pooled_lower"] < a["pooled"] < a["pooled_upper"]

    def test_every_kind_of_fit_with_draws(self, holes):
        run = Shell(holes)
        for options in ("--model 2pl", "--dispersion beta"):
            run(f"bk-irt -q {options} --keep-draws --draws 100 holes.csv -o fit.arrow")
            out = document(run("bk-rank -q holes.csv --missing impute --fit fit.arrow --score all@2"))
            assert len(out["models"]) == 3 and all(0 < m["pooled"] < 1 for m in out["models"])


class TestThresholds:
    def test_require_single(self, aime, tmp_path):
        run = Shell(tmp_path)
        done = run(f"bk-rank {aime} --require-single", rc=1)
        assert done.err == "bk-rank: --require-single does not hold: 3 models could be first\n"
        assert document(done) == document(run(f"bk-rank {aime}"))
        run(f"bk-rank {aime} --require-single --level .05", rc=0)
        assert run(f"bk-rank -q {aime} --require-single", rc=1).err == ""

    def test_require_significant(self, aime, tmp_path):
        run = Shell(tmp_path)
        run(f"bk-signflip {aime} --require-significant gpt-4o 'o3-mini (high)'", rc=0)
        done = run(f"bk-signflip {aime} --require-significant 'o1 (medium)' 'o3-mini (high)'", rc=1)
        assert done.err == (
            "bk-signflip: --require-significant does not hold: o1 (medium) and o3-mini (high) have adjusted p 1\n"
        )
        assert document(done)["history"][-1]["argv"] == []


class TestOptions:
    def test_clusters(self, holes):
        run = Shell(holes)
        with_, without = (document(run(f"bk-rank -q clusters.csv {o}")) for o in ("--cluster", "--no-cluster"))
        assert with_ | {"history": 0} == document(run("bk-rank -q clusters.csv")) | {"history": 0}
        assert with_["promise"]["over"] == "clusters" and without["promise"]["over"] == "items"
        assert "clusters_half_width" in with_["models"][0] and "clusters_half_width" not in without["models"][0]
        flips = document(run("bk-signflip -q clusters.csv --all"))
        assert min(p["p_smallest"] for p in flips["pairs"]) == 0.125  # 2^(1-4), four clusters
        assert any("signs flip by 4 clusters" in w for w in flips["warnings"])

    def test_pairs_may_come_from_the_command_itself(self, aime, tmp_path):
        run = Shell(tmp_path)
        run(f"bk-signflip {aime} --ref gpt-4o -o first.csv; head -3 first.csv > few.csv")
        run(f"bk-signflip {aime} --ref gpt-4o -o first.arrow")
        few, all_ = (document(run(f"bk-signflip {aime} --pairs {f}")) for f in ("few.csv", "first.arrow"))
        assert few["compared"] == "asked" and few["reference"] is None and len(few["pairs"]) == 2
        assert len(all_["pairs"]) == 15 and all_["family_size"] == 15
        assert few["pairs"][0]["p"] == all_["pairs"][0]["p"]

    def test_flat_forms_hold_the_new_columns(self, aime, tmp_path):
        run = Shell(tmp_path)
        head = run(f"bk-signflip {aime} --plan .2 --margin .3 -t csv | head -1").out.decode()
        assert {"equivalent", "items_needed", "p_smallest"} <= set(head.strip().split(","))
        head = run(f"bk-rank {aime} --method signflip -t csv | head -2").out.decode()
        assert "attempts_lower" in head and ",,0.8,60," in head  # p_first is null

    def test_tables(self, aime, tmp_path):
        run = Shell(tmp_path)
        text = run(f"bk-signflip {aime} --margin .3 --plan .1 -t table").out.decode()
        assert "too few items" in text and "differs" in text and "equivalent" in text and "needed" in text
        first = text.split("\n\n")[1].splitlines()[1].split()
        assert first[:2] == ["*", "claude-3.5-sonnet"]  # the clearest first
        text = run(f"bk-rank {aime} --method simultaneous -t table").out.decode()
        assert "range (simultaneous)" in text and "p first" not in text
