"""The loop of benchkit(7), run by make with programs in place of the language model and of the harness.

It starts from the fit of aime2025_I.csv. At most 12 items may be added, and the maximum gap must come down to less than
half: on the scale of failure probabilities with 4 attempts a model, as the benchmark has, and on minmax with 16. With 4
attempts minmax can't: its hardest item was never solved, and an item solved once in 64 attempts lies .13 below it, with
nothing that could be measured between.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import Done, Shell
from test_man import MAN, blocks

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = pytest.mark.skipif(not shutil.which("make") or not shutil.which("jq"), reason="needs make and jq")


def table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.ipc.open_stream(path).read_all().to_pylist()
    return rows


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Loop:
    """A folder with the Makefile of the page, a fit, items, and what the programs know of them."""

    def __init__(self, sh: Shell, aime: Path, seed: int, attempts: int, **variables: object) -> None:
        self.sh, self.folder = sh, sh.folder
        page = next(b for b in blocks(MAN / "benchkit.7") if b[0] == "# Loop")
        (sh.folder / "Loop").write_text("\n".join(page) + "\n")
        world = f"world.json truth.jsonl {seed}"
        given = {
            "REWRITE": f"{PROGRAMS}/rewrite.py {world}",
            "EVALUATE": f"{PROGRAMS}/evaluate.py {world} {attempts}",
            **variables,
        }
        self.call = "make -s -f Loop " + " ".join(f'{k}="{v}"' for k, v in given.items())
        sh(f"bk-matrix {aime} -o responses.arrow && {self.call} 0/fit.arrow")
        fit = table(sh.folder / "0/fit.arrow")
        self.items = {r["id"]: r["mean"] for r in fit if r["kind"] == "item"}
        theta = {r["id"]: r["mean"] for r in fit if r["kind"] == "model"}
        known = {"low": min(self.items.values()), "high": max(self.items.values()), "theta": theta}
        (sh.folder / "world.json").write_text(json.dumps(known))
        texts = {i: f"Solve {i}." for i in self.items}
        rows = [{"id": i, "question": q, "answer": 1, "source": "kept out"} for i, q in texts.items()]
        (sh.folder / "items.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        truth = [{"question": q, "b": self.items[i]} for i, q in texts.items()]
        (sh.folder / "truth.jsonl").write_text("".join(json.dumps(r) + "\n" for r in truth))

    def __call__(self, rc: int = 0) -> Done:
        return self.sh(self.call, rc=rc)

    def choice(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "choice.json").read_text())
        return found

    def answered(self) -> list[str]:
        return (self.folder / "answered").read_text().split()

    def check(self, normalize: str) -> None:
        """Few items are added and the gap is narrow, by bk-metrics too, which knows nothing of the choice."""
        choice = self.choice()
        chosen = [row["item"] for row in choice["chosen"]]
        assert 0 < len(chosen) <= 12 and choice["stopped"] == "max-gap"
        assert choice["after"]["max_gap"] < choice["before"]["max_gap"] / 2
        assert choice["after"]["top_gap_sum"] < choice["before"]["top_gap_sum"]
        last = max(int(p.name) for p in self.folder.iterdir() if p.name.isdigit() and (p / "choice.json").exists())
        rows = [r for r in table(self.folder / f"{last}/fit.arrow")
                if r["kind"] == "model" or r["id"] in (*self.items, *chosen)]  # fmt: skip
        (self.folder / "after.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
        for side, name in (("before", "0/fit.arrow"), ("after", "after.ndjson")):
            found = json.loads(self.sh(f"bk-metrics -q --reps 1 --normalize {normalize} {name}").out)
            for key in ("items", "ddm", "max_gap", "top_gap_sum"):
                assert choice[side][key] == pytest.approx(found[key])
            for key, bounds in found["intervals"].items():
                assert choice[side]["intervals"][key] == pytest.approx(bounds, abs=1e-6)

    def check_requests(self) -> None:
        """Each reply was paid for once, and each became a candidate or was refused."""
        assert set(Counter(self.answered()).values()) == {1}
        sorted_out = [row["custom_id"] for name in ("candidates", "rejected")
                      for path in self.folder.glob(f"[1-9]*/{name}.jsonl") for row in lines(path)]  # fmt: skip
        assert sorted(sorted_out) == sorted(self.answered())


def test_it_can_be_interrupted_and_loses_no_reply(sh: Shell, aime: Path) -> None:
    loop = Loop(sh, aime, 1, 4, NORMALIZE="failure")
    (sh.folder / "BREAK").write_text("3")
    assert "the connection is lost" in loop(rc=2).err
    half = (sh.folder / "1/replies.0.jsonl").read_bytes()
    assert half.count(b"\n") == 3 and not half.endswith(b"\n") and len(loop.answered()) == 3
    assert not (sh.folder / "1/candidates.jsonl").exists()

    (sh.folder / "BREAK").write_text("0")  # not even one
    loop(rc=2)
    (sh.folder / "BREAK").unlink()
    (sh.folder / "BREAK_EVALUATION").touch()
    assert "no machine is free" in loop(rc=2).err
    assert (sh.folder / "1/replies.0.jsonl").read_bytes() == half and len(loop.answered()) == 10
    assert not (sh.folder / "1/results.csv").exists()

    (sh.folder / "BREAK_EVALUATION").unlink()
    assert loop().err == ""
    loop.check("failure")
    loop.check_requests()

    answered, choice = loop.answered(), loop.choice()
    assert loop().err == "" and loop.answered() == answered and loop.choice() == choice


def test_the_scale_from_the_easiest_to_the_hardest_item(sh: Shell, aime: Path) -> None:
    loop = Loop(sh, aime, 1, 16)
    assert loop().err == ""
    loop.check("minmax")
    loop.check_requests()
    ancestors = {row["ancestor"] for n in sh.folder.glob("[2-9]/candidates.jsonl") for row in lines(n)}
    assert any(a.startswith("r1-") for a in ancestors), "candidates are parents of the next round"
    kept = sh("jq -c --slurpfile c choice.json 'select(.id | IN($c[0].chosen[].item))' [1-9]*/candidates.jsonl").out
    assert len(kept.splitlines()) == len(loop.choice()["chosen"])
