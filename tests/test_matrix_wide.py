"""Wide tables: columns without a name, and what is said of a cell that is no result; columns that are not known."""

from __future__ import annotations

import json

import polars as pl
import pytest
from conftest import Shell

TABLE = b"model,q1,q2\na,1,0\nb,0,1\n"
WIDE = ["a,q1,1,1,", "a,q2,1,0,", "b,q1,1,0,", "b,q2,1,1,"]


def rows(sh: Shell, call: str, text: str) -> list[str]:
    out: bytes = sh(f"bk-matrix -t csv {call}", stdin=text.encode()).out
    return out.decode().splitlines()[1:]


class TestUnnamedColumns:
    @pytest.mark.parametrize(
        "text",
        (
            ",model,q1,q2\n0,a,1,0\n1,b,0,1\n",
            "Unnamed: 0,model,q1,q2\n0,a,1,0\n1,b,0,1\n",
            "model,q1,,q2,,\na,1,,0,,\nb,0, ,1,,\n",
            "model,q1,Unnamed: 2,q2\na,1,,0\nb,0, ,1\n",
        ),
    )
    def test_an_index_and_empty_ones_are_no_items(self, sh: Shell, text: str) -> None:
        assert rows(sh, "", text) == WIDE

    @pytest.mark.parametrize(
        ("text", "said"),
        (
            ("model,q1,,q3\na,1,,1\nb,1,0,1\n", "row 3, column 3: '0' in a column without a name"),
            (",model,q1,\n0,a,1,\n1,b,1,x\n", "row 3, column 4: 'x' in a column without a name"),
            ("model,q1,Unnamed: 2\na,1,\nb,1,0\n", "row 3, column 'Unnamed: 2': '0' in a column without a name"),
            ("Unnamed: 1,model,q1\n1,a,1\n", "row 2, column 'Unnamed: 1': '1' in a column without a name"),
            ("model,q1,\na,1,\nb,1\n", "row 3: 2 fields where the header has 3"),
        ),
    )
    def test_cells_that_would_be_lost(self, sh: Shell, text: str, said: str) -> None:
        assert said in sh("bk-matrix", stdin=text.encode(), rc=2).err

    def test_typed_columns(self, sh: Shell) -> None:
        frame = pl.DataFrame({"model": ["a", "b"], "q1": [1, 0], "Unnamed: 2": [None, float("nan")], "q2": [0, 1]})
        frame.write_parquet(sh.folder / "x.parquet")
        assert rows(sh, "x.parquet", "") == WIDE
        frame.with_columns(pl.Series("Unnamed: 2", [None, 0.0])).write_parquet(sh.folder / "x.parquet")
        assert "row 2, column 'Unnamed: 2': '0.0' in a column" in sh("bk-matrix x.parquet", rc=2).err
        text = "".join(json.dumps({"model": m, "q1": 1, "": 0}) + "\n" for m in "ab")
        assert "row 1, column '': '0' in a column" in sh("bk-matrix", stdin=text.encode(), rc=2).err

    def test_other_tables_have_columns_that_are_left_out(self, sh: Shell) -> None:
        assert rows(sh, "", "model,item,,score\na,q1,x,1\n") == ["a,q1,1,1,"]

    def test_the_first_one_can_be_named(self, sh: Shell) -> None:
        assert rows(sh, "--model-col ''", ",q1,q2\na,1,0\nb,0,1\n") == WIDE
        assert rows(sh, "--item-col ''", ",a,b\nq1,1,0\nq2,0,1\n") == WIDE
        assert rows(sh, "--model-col ''", " ,item,score\na,q1,1\na,q2,0\n") == WIDE[:2]
        err = sh("bk-matrix", stdin=b",q1,q2\na,1,0\n", rc=2).err
        assert err == (
            "bk-matrix: <stdin>: columns not recognised (found: a first one without a name, which '' names, q1, q2); "
            "name them with --model-col, --item-col, --score-col\n"
        )
        assert "no column '' for --model-col (found: q1, q2)" in sh("bk-matrix --model-col ''", stdin=b"q1,q2\n1,0\n",
                                                                    rc=2).err  # fmt: skip


class TestRefusedCells:
    @pytest.mark.parametrize(
        ("text", "said", "column"),
        (
            ("model,problem,passed\na,q1,1\n", "row 2, column 'problem': 'q1' is no score", "problem"),
            ("model,q1,Average\na,1,0.67\n", "row 2, column 'Average': '0.67' is a rate: of how many", "Average"),
            ('[{"model":"a","question":{"id":1}}]', "column 'question' holds lists or objects", "question"),
        ),
    )
    def test_say_why_they_were_read_and_what_to_do(self, sh: Shell, text: str, said: str, column: str) -> None:
        err = sh("bk-matrix", stdin=text.encode(), rc=2).err
        assert said in err
        assert err.endswith(
            "; read as a wide table, since only column 'model' is known, as that of models: where a row is one attempt "
            f"name its columns with --item-col and --score-col; where '{column}' is no item --leave-out it\n"
        )

    def test_transposed(self, sh: Shell) -> None:
        err = sh("bk-matrix", stdin=b"item,who\nq{1},a\n", rc=2).err
        assert err.endswith(
            "name its columns with --model-col and --score-col; where 'who' is no model --leave-out it\n"
        )
        assert "since only column 'item' is known, as that of items" in err

    def test_the_advice_holds(self, sh: Shell) -> None:
        text = "model,problem,passed,seconds\na,q1,1,3.2\na,q2,0,1\n"
        assert rows(sh, "--item-col problem --score-col passed", text) == WIDE[:2]
        assert rows(sh, "--leave-out Average", "model,q1,q2,Average\na,1,0,0.5\n") == WIDE[:2]

    def test_a_missing_value_says_what_to_do_itself(self, sh: Shell) -> None:
        for word in ("NA", "#N/A"):
            err = sh("bk-matrix", stdin=f"model,q1\na,{word}\n".encode(), rc=2).err
            assert err.endswith(f"'{word}' is no score; leave the cell empty where the pair was not tried\n")


class TestColumnsThatLack:
    @pytest.mark.parametrize(
        ("call", "header", "said"),
        (
            ("", "a,b", "columns not recognised (found: a, b); name them with --model-col, --item-col, --score-col"),
            ("", "model,a,score", "no column of items (found: model, a, score): name it with --item-col"),
            ("--score-col a", "a,b,c", "no columns of models and items (found: a, b, c): name them with --model-col, "
             "--item-col"),
            ("", "a,item,score", "no column of models (found: a, item, score): name it with --model-col, or the one "
             "model with --model"),
            ("", "model,item,a", "no score column (found: model, item, a); name it with --score-col, or counts with "
             "--attempts-col, --correct-col"),
            ("--correct-col a", "model,item,a,b", "no column of counts of attempts (found: model, item, a, b): "
             "--correct-col needs --attempts-col"),
            ("--attempts-col b", "model,item,a,b", "no column of counts of correct attempts (found: model, item, a, b):"
             " --attempts-col needs --correct-col"),
        ),
    )  # fmt: skip
    def test_are_the_ones_named(self, sh: Shell, call: str, header: str, said: str) -> None:
        text = f"{header}\n{','.join('1' for _ in header.split(','))}\n".encode()
        assert sh(f"bk-matrix {call}", stdin=text, rc=2).err == f"bk-matrix: <stdin>: {said}\n"
