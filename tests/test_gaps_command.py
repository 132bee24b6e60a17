"""bk-gaps through a shell: what its options add to the result, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Shell
from scipy.special import expit

from benchkit.detection import Improvement, detection
from benchkit.text import width

DRAWN = """kind,id,mean,sd,lower,upper,draws
item,a,-1,1,-3,1,"[-1,-2,0,-1]"
item,b,0,1,-2,2,"[0,1,-1,0.5]"
item,c,3,1,1,5,"[3,4,3,2]"
model,m,0,1,-2,2,"[0,0,1,1]"
model,n,1,1,-1,3,"[1,1,1,1]"
"""
TWO = (
    "kind,id,mean,sd,lower,upper\n"
    "item,a,-1,1,-3,1\nitem,b,0,1,-2,2\nitem,c,3,1,1,5\n"
    "item_a,a,2,1,1,3\nitem_a,b,.5,1,0,3\nitem_a,c,1,1,0,3\nmodel,m,0,1,-2,2\n"
)


@pytest.fixture
def at(made: Path) -> Shell:
    return Shell(made)


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ("--improvement .1", "--improvement: '.1' is not WIDTH,LIFT"),
            ("--improvement 0,.1", "--improvement: 0,.1: WIDTH must be above 0"),
            ("--improvement .1,1", "--improvement: .1,1: WIDTH must be above 0, LIFT above 0 and below 1"),
            ("--improvement 2,.1", "--improvement: 2 is not in 0..1"),
            ("--improvement .1,.1 --attempts 0", "--attempts: 0 is not in 1..1000"),
            ("--improvement .1,.1 --alpha 0", "--alpha: 0 is not in"),
            ("--attempts 4", "--attempts needs --improvement"),
            ("--alpha .1", "--alpha needs --improvement"),
            ("--ability m", "--ability needs --improvement"),
            ("--wider 1.5", "--wider: 1.5 is not in 0..1"),
            ("--suggest 10001", "--suggest: 10001 is not in 1..10000"),
        ],
    )
    def test_wrong_options_are_found_before_the_input_is_read(self, options: str, said: str, sh: Shell) -> None:
        done = sh(f"bk-gaps {options}", rc=2)
        assert done.out == b"" and done.err.startswith(f"bk-gaps: {said}")
        assert done.err.count("\n") == 1 and "stdin" not in done.err

    def test_a_model_that_is_not_there(self, sh: Shell) -> None:
        done = sh("bk-gaps --improvement .1,.1 --ability x", stdin=DRAWN.encode(), rc=2)
        assert done.err == "bk-gaps: --ability: no model 'x' in the input\n"

    def test_undefined_normalisation(self, sh: Shell) -> None:
        text = b"kind,id,mean,sd,lower,upper\nitem,a,1,1,0,2\nitem,b,1,1,0,2\n"
        doc = json.loads(sh("bk-gaps -q --improvement .1,.1 --suggest 3 --wider .1", stdin=text).out)
        for key in ("max_gap", "suggestion", "detection"):
            assert doc[key] is None and "all difficulties are equal" in doc[f"{key}_reason"]
        assert doc["gaps"] == []
        assert sh("bk-gaps -q --improvement .1,.1 --suggest 3 --wider .1 -t table", stdin=text).out


class TestResult:
    def test_only_what_is_asked_for(self, at: Shell) -> None:
        doc = json.loads(at("bk-gaps fit.arrow").out)
        assert list(doc) == ["items", "normalize", "max_gap", "top_gap_sum", "gaps", "warnings", "history"]
        assert "p_wider" not in doc["gaps"][0] and len(doc["gaps"][0]["references"]["easier"]) == 3
        assert doc["history"][-1]["seed"] == 0

    def test_flat_forms_hold_the_names_of_references(self, sh: Shell) -> None:
        rows = json.loads(sh("bk-gaps --wider .5 --references 1", stdin=DRAWN.encode()).out)["gaps"]
        flat = list(
            csv.DictReader(
                io.StringIO(sh("bk-gaps --wider .5 --references 1 -t csv", stdin=DRAWN.encode()).out.decode())
            )
        )
        arrow = pa.ipc.open_stream(
            sh("bk-gaps --wider .5 --references 1 -t arrow", stdin=DRAWN.encode()).out
        ).read_all()
        for side in ("easier", "harder"):
            names = [[r["item"] for r in row["references"][side]] for row in rows]
            assert names == [json.loads(row[side]) for row in flat] == arrow[side].to_pylist()
        assert [row["p_wider"] for row in rows] == arrow["p_wider"].to_pylist() == [float(r["p_wider"]) for r in flat]

    def test_wider_by_hand(self, sh: Shell) -> None:
        """The gap from .25 to 1 is .667, .4, .75 (a and b have changed places) and .5 wide in the draws."""
        rows = json.loads(sh("bk-gaps --wider .6", stdin=DRAWN.encode()).out)["gaps"]
        assert rows[0]["midpoint"] == 0.625 and rows[0]["p_wider"] == 0.5
        none = json.loads(sh("bk-gaps --wider .6", stdin=TWO.encode()).out)["gaps"][0]
        assert none["p_wider"] is None and "--keep-draws" in none["p_wider_reason"]

    @pytest.mark.parametrize(("option", "theta"), [("", [0, 1]), ("--ability n", [1])])
    def test_fitted_success(self, option: str, theta: list[float], sh: Shell) -> None:
        b = np.array([-1.0, 0, 3])
        found = json.loads(sh(f"bk-gaps --improvement .9,.1 --attempts 3 {option}", stdin=DRAWN.encode()).out)[
            "detection"
        ]
        p = expit(np.array(theta)[:, None] - b).mean(0)
        want = detection((b + 1) / 4, Improvement(0.9, 0.1, 3, 0.05, p, "")).document("abc")
        assert found["fitted"]["power"] == pytest.approx(want["fitted"]["power"], abs=1e-12)
        assert found["fitted"]["covered"] == ["b"] and found["even"] == want["even"]

    def test_the_2pl_uses_its_discriminations(self, sh: Shell) -> None:
        b, a = np.array([-1.0, 0, 3]), np.array([2, 0.5, 1])
        found = json.loads(sh("bk-gaps -q --improvement .9,.1 --attempts 3", stdin=TWO.encode()).out)["detection"]
        want = detection((b + 1) / 4, Improvement(0.9, 0.1, 3, 0.05, expit(a * (0 - b)), "")).fitted
        assert found["fitted"]["power"] == pytest.approx(want.power, abs=1e-12)

    def test_no_models(self, sh: Shell) -> None:
        text = "".join(line + "\n" for line in DRAWN.splitlines() if "model" not in line).encode()
        found = json.loads(sh("bk-gaps --improvement .9,.1", stdin=text).out)["detection"]
        assert found["fitted"] is None and "no models" in found["fitted_reason"] and found["even"]["power"] > 0.05

    def test_the_seed_of_a_simulated_power(self, sh: Shell) -> None:
        text = "kind,id,mean,sd,lower,upper\nmodel,m,0,1,-2,2\n" + "".join(
            f"item,q{j:03d},{j * j / 3000 - 2},1,-9,9\n" for j in range(120)
        )
        call = "bk-gaps --improvement .1,.2 --attempts 20 --top 1"
        first, again, other = (sh(f"{call} -s {seed}", stdin=text.encode()).out for seed in (1, 1, 2))
        assert first == again != other
        cases = [json.loads(out)["detection"]["even"] for out in (first, other)]
        assert all(case["method"] == "simulation" and case["power_se"] > 0 for case in cases)
        assert abs(cases[0]["power"] - cases[1]["power"]) < 6 * cases[0]["power_se"]

    def test_the_text_table_fits_a_terminal(self, at: Shell) -> None:
        at("bk-irt --draws 60 --warmup 60 -q --keep-draws responses.arrow -o drawn.arrow")
        call = "bk-gaps -q drawn.arrow --wider .1 --suggest 30 --improvement .3,.2 --attempts 4 -t table"
        lines = at(call).out.decode().splitlines()
        assert max(map(width, lines)) <= 80 and "   P  parents" in "\n".join(lines)
        text = " ".join(" ".join(lines).split())
        assert "and 10 more" in text and "2 items (fitted, averaged over 16 models)" in text
