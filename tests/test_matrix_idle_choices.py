"""Choices that no source could use are refused; those of any source are not."""

from __future__ import annotations

import json

import pytest
from conftest import Shell

LONG = "model,item,score\na,q,1\n"
CHOICES = ("--filter x", "--metric x", "--scorer x", "--split x", "--errors drop")


def samples(sh: Shell, folder: str) -> None:
    """A file of lm-evaluation-harness, of one filter and one metric."""
    (sh.folder / folder).mkdir()
    row = {"doc_id": 0, "doc": {}, "target": "1", "arguments": [], "resps": [["1"]], "filtered_resps": ["1"],
           "filter": "strict", "metrics": ["acc"], "acc": 1.0}  # fmt: skip
    text = "".join(json.dumps(row | {"doc_id": k}) + "\n" for k in range(2))
    (sh.folder / folder / "samples_t_2025-01-01T00-00-00.000000.jsonl").write_text(text)


class TestOfNoUse:
    @pytest.mark.parametrize("call", CHOICES)
    @pytest.mark.parametrize("text", (LONG, "model,q1,q2\na,1,0\n", "model,item,n,k\na,q,2,1\n"))
    def test_tables(self, sh: Shell, call: str, text: str) -> None:
        name = call.split()[0]
        err = sh(f"bk-matrix {call}", stdin=text.encode(), rc=2).err
        assert err.startswith(f"bk-matrix: {name}: of no use, since no source has ") and err.count("\n") == 1

    def test_a_split_of_a_layout_that_has_them(self, sh: Shell) -> None:
        text = b"subject_id,item_id,response,test_condition\na,q,1,x\na,q,0,y\n"
        assert sh("bk-matrix --split y -t csv", stdin=text).out.endswith(b"a,q,1,0,\n")
        assert "--scorer: of no use" in sh("bk-matrix --split y --scorer z", stdin=text, rc=2).err

    @pytest.mark.parametrize("many", (1, 70))
    def test_one_of_the_sources_is_enough(self, sh: Shell, many: int) -> None:
        """70 files are read by several processes."""
        samples(sh, "in")
        for k in range(many):
            (sh.folder / f"in/{k}.csv").write_text(f"model,item,score\nb,q{k},1\n")
        for call in ("--filter strict", "--metric acc", "--errors wrong", "--filter none"):
            whole = sh(f"bk-matrix --model a in {call} -t csv", rc=2 if "none" in call else 0)
            assert "no filter 'none'" in whole.err if "none" in call else whole.out.count(b"\n") == 3 + many
        assert "--split: of no use" in sh("bk-matrix --model a in --split x", rc=2).err
        assert "--filter: of no use" in sh("bk-matrix --filter strict in/0.csv", rc=2).err
        assert sh("bk-matrix --filter none in/0.csv -t csv").out.endswith(b"b,q0,1,1,\n")
