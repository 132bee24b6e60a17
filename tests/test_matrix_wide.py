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

    def test_an_index_that_pandas_wrote_is_no_item(self, sh: Shell) -> None:
        for index in ([0, 1], [3, 1], ["x", "y"]):
            frame = pl.DataFrame({"model": ["a", "b"], "q1": [1, 0], "q2": [0, 1], "__index_level_0__": index})
            frame.write_parquet(sh.folder / "x.parquet")
            assert rows(sh, "x.parquet", "") == WIDE

    def test_other_tables_have_columns_that_are_left_out(self, sh: Shell) -> None:
        assert rows(sh, "", "model,item,,score\na,q1,x,1\n") == ["a,q1,1,1,"]

    def test_the_first_one_can_be_named(self, sh: Shell) -> None:
        assert rows(sh, "--model-col ''", ",q1,q2\na,1,0\nb,0,1\n") == WIDE
        assert rows(sh, "--item-col ''", ",a,b\nq1,1,0\nq2,0,1\n") == WIDE
        assert rows(sh, "--model-col ''", " ,item,score\na,q1,1\na,q2,0\n") == WIDE[:2]
        err = sh("bk-matrix", stdin=b",q1,q2\na,1,0\n", rc=2).err
        assert err == (
            "bk-matrix: <stdin>: columns not recognised (found: a first one without a name, which '' names, q1, q2): "
            "--model-col '' where each row is a model, --item-col '' an item\n"
        )
        assert "no column '' for --model-col (found: q1, q2)" in sh("bk-matrix --model-col ''", stdin=b"q1,q2\n1,0\n",
                                                                    rc=2).err  # fmt: skip


class TestRefusedCells:
    @pytest.mark.parametrize(
        ("text", "said", "column"),
        (
            ("model,problem,points\na,q1,1\n", "row 2, column 'problem': 'q1' is no score", "problem"),
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
            assert f"row 2, column 'q1': '{word}' is no score: choose --unscored drop" in err


class TestCells:
    @pytest.mark.parametrize("pair", ("true false", "T F", "yes no", "Y N", "pass fail", "Passed FAILED",
                                      "correct incorrect", "right wrong", "✓ ✗", "✅ ❌"))  # fmt: skip
    def test_words(self, sh: Shell, pair: str) -> None:
        right, wrong = pair.split()
        long = f"model,item,score\na,q1,{right}\na,q2,{wrong}\nb,q1,{wrong}\nb,q2, {right} \n"
        assert rows(sh, "", long) == WIDE
        wide = f"model,q1,q2\na,{right},{wrong}\nb,{wrong},{right}\n"
        if right.lower() in ("t", "yes", "y"):  # may be what a model answered
            assert f"'{right}' is no score" in sh("bk-matrix", stdin=wide.encode(), rc=2).err
        else:
            assert rows(sh, "", wide) == WIDE

    @pytest.mark.parametrize("word", ("NA", "nan", "None", "#N/A", "null"))
    def test_without_a_score(self, sh: Shell, word: str) -> None:
        text = f"model,q1,q2\na,1,{word}\nb,0,\n"
        assert rows(sh, "--unscored drop", text) == ["a,q1,1,1,", "b,q1,1,0,"]
        assert rows(sh, "--unscored wrong", text) == ["a,q1,1,1,", "a,q2,1,0,", "b,q1,1,0,"]
        assert rows(sh, "--unscored wrong --attempts 4", text)[1] == "a,q2,4,0,"
        for how in ("drop", "wrong"):
            done = json.loads(sh(f"bk-matrix -t json --unscored {how}", stdin=text.encode()).out)
            assert done["sources"][0]["unscored"] == 1
            done = json.loads(sh(f"bk-matrix -t json --unscored {how} --attempts 4", stdin=text.encode()).out)
            assert done["sources"][0]["unscored"] == 4

    def test_gaps_of_a_pivoted_frame(self, sh: Shell) -> None:
        pl.DataFrame({"model": ["a", "b"], "q1": [1.0, 0.0], "q2": [float("nan"), 1.0]}).write_parquet(
            sh.folder / "x.parquet"
        )
        assert "'nan' is no score: choose --unscored" in sh("bk-matrix x.parquet", rc=2).err
        assert rows(sh, "x.parquet --unscored drop", "") == ["a,q1,1,1,", "b,q1,1,0,", "b,q2,1,1,"]

    @pytest.mark.parametrize("of", (3, 6, 7, 31, 64, 99))
    def test_rates_that_were_rounded(self, sh: Shell, of: int) -> None:
        """To two decimals, which is enough below 100 attempts: every count has a text of its own."""
        texts = [f"{k / of:.2f}" for k in range(of + 1)]
        assert len(set(texts)) == of + 1
        text = "model,q\n" + "".join(f"m{k:02},{t}\n" for k, t in enumerate(texts))
        assert rows(sh, f"--attempts {of}", text) == [f"m{k:02},q,{of},{k}," for k in range(of + 1)]

    @pytest.mark.parametrize(
        ("text", "of"), (("0.66", 3), ("0.68", 3), ("0.99", 199), ("0.3334", 3), ("0.5", 101), ("0.125", 4))
    )
    def test_rates_that_are_no_count(self, sh: Shell, text: str, of: int) -> None:
        err = sh(f"bk-matrix --attempts {of}", stdin=f"model,q\na,{text}\n".encode(), rc=2).err
        assert f"'{text}' is no whole number out of {of} attempts" in err


class TestRowsAndColumnsThatAreNone:
    def test_empty_rows(self, sh: Shell) -> None:
        assert rows(sh, "", "model,q1,q2\na,1,0\n,,\nb,0,1\n , ,\n,,\n".replace(" , ,", ",,")) == WIDE
        assert rows(sh, "", "model,item,n,k\na,q1,1,1\n,,,\na,q2,1,0\n,, ,\n") == WIDE[:2]
        assert "row 4: correct (3) is larger" in sh("bk-matrix", stdin=b"model,item,n,k\na,q,1,1\n,,,\na,r,2,3\n",
                                                    rc=2).err  # fmt: skip
        assert "row 3: the model is missing" in sh("bk-matrix", stdin=b"model,q1\na,1\n,0\n", rc=2).err

    def test_models_without_an_attempt_are_told_and_lack_all(self, sh: Shell) -> None:
        said = "bk-matrix: warning: no scored attempt of 1 model: c\n"
        for text, call in (
            ("model,q1,q2\na,1,0\nb,0,1\nc,,\n", ""),
            ("item,a,b,c\nq1,1,0,\nq2,0,1,\n", ""),
            ("model,item,score\na,q1,1\na,q2,0\nb,q1,0\nb,q2,1\nc,q2,\n", "--unscored drop"),
        ):
            done = sh(f"bk-matrix -t csv {call}", stdin=text.encode())
            assert done.out.decode().splitlines()[1:] == WIDE and done.err == said
            unmet = sh(f"bk-matrix -t csv --require-complete {call}", stdin=text.encode(), rc=1).err
            assert unmet == f"{said}bk-matrix: --require-complete does not hold: missing_cells is 2\n"
            unmet = sh(f"bk-matrix -t csv --min-coverage 0.1 {call}", stdin=text.encode(), rc=1).err
            assert unmet == f"{said}bk-matrix: --min-coverage 0.1 does not hold: coverage of model 'c' is 0\n"
        (sh.folder / "map.csv").write_text("model,name\nc,a\n")
        assert sh("bk-matrix --model-map map.csv", stdin=b"model,q1\na,1\nc,\n").err == ""

    def test_items_without_an_attempt_are_told_and_lacking(self, sh: Shell) -> None:
        said = "bk-matrix: warning: no scored attempt of 2 items: q2, q3\n"
        for text, call in (
            ("model,q1,q2,q3\na,1,,\nb,0,,\n", ""),
            ("model,q1,q2,q3\na,1,NA,\nb,0,,NA\n", "--unscored drop"),
            ("model,item,score\na,q1,1\nb,q1,0\na,q2,\na,q3,\nb,q2,\n", "--unscored drop"),
        ):
            done = sh(f"bk-matrix -t csv --require-complete {call}", stdin=text.encode(), rc=1)
            assert done.out.decode().splitlines()[1:] == ["a,q1,1,1,", "b,q1,1,0,"]
            assert done.err == f"{said}bk-matrix: --require-complete does not hold: missing_cells is 4\n"
            unmet = sh(f"bk-matrix -t csv --min-coverage 0.5 {call}", stdin=text.encode(), rc=1).err
            assert "coverage of model 'a' is 0.333" in unmet
            diagnosis = json.loads(sh(f"bk-matrix --diagnose {call}", stdin=text.encode()).out)
            assert diagnosis["n_items"] == 3 and diagnosis["missing_cells"] == 4

    def test_of_another_condition_and_across_parts(self, sh: Shell) -> None:
        text = "subject_id,item_id,response,test_condition\na,x,1,c1\na,x,0,c2\nb,x,NA,c1\nb,x,1,c2\n"
        call = "bk-matrix --split c1 --unscored drop --require-complete"
        assert sh(call, stdin=text.encode(), rc=1).err.startswith("bk-matrix: warning: no scored attempt of 1 model: b")
        sh("bk-matrix -q --unscored drop -o 1.arrow", stdin=b"model,item,score\na,x,1\nb,x,NA\nc,z,NA\n")
        sh("bk-matrix -o 2.arrow", stdin=b"model,item,score\na,y,1\nb,y,0\n")
        assert "missing_cells is 5" in sh("bk-matrix 1.arrow --require-complete", rc=1).err
        both = sh("bk-matrix 1.arrow 2.arrow -o 12.arrow").err
        assert both.splitlines()[1:] == [  # the first one says that their histories differ
            "bk-matrix: warning: no scored attempt of 1 model: c", "bk-matrix: warning: no scored attempt of 1 item: z"
        ]  # fmt: skip

    def test_what_a_table_says_of_them_may_be_anything(self, sh: Shell) -> None:
        row = {"model": "a", "item": "q", "attempts": 1, "correct": 1}
        for untried, said in (
            ({"models": 5, "items": ["z"]}, "1 item: z"),
            ([], ""),
            ({"models": [7, "a"]}, "1 model: 7"),
        ):
            document = json.dumps({"responses": [row], "sources": [{"untried": untried}]})
            err = sh("bk-matrix", stdin=document.encode()).err
            assert err == (f"bk-matrix: warning: no scored attempt of {said}\n" if said else "")

    def test_a_cell_without_a_score_beside_counts(self, sh: Shell) -> None:
        text = "model,q1,q2\na,NA,1/8\n"
        assert rows(sh, "--unscored drop", text) == ["a,q2,8,1,"]
        assert "of how many attempts?" in sh("bk-matrix --unscored wrong", stdin=text.encode(), rc=2).err

    @pytest.mark.parametrize("name", ("attempt", "Trial", "epoch", "attempts", "n_correct", "Num Attempts"))
    def test_columns_whose_names_say_something_else(self, sh: Shell, name: str) -> None:
        text = f"model,{name},q1\na,1,1\nb,1,0\n"
        assert f"column '{name}' is no result, by its name" in sh("bk-matrix", stdin=text.encode(), rc=2).err
        assert rows(sh, f"--leave-out '{name}'", text) == ["a,q1,1,1,", "b,q1,1,0,"]

    def test_names_in_several_levels(self, sh: Shell) -> None:
        pl.DataFrame({"model": ["a"], "('run1', 'q1')": [1], "('run2', 'q1')": [0]}).write_parquet(
            sh.folder / "x.parquet"
        )
        assert "has a name in several levels" in sh("bk-matrix x.parquet", rc=2).err


class TestInFolders:
    """Tables that are found beside results and are none are left out; one that was named is an error."""

    @pytest.mark.parametrize(
        ("name", "text"),
        (
            ("data_live.csv", "Rank,Model,Live Overall Acc\n1,g,0.00%\n"),
            ("all_groups.csv", "model,average,coding\nm,34.5,12\n"),
            ("cost.jsonl", '{"run_id":"x","model":"m","total_cost":1.0}\n'),
            ("items.json", '["a","b"]'),
            ("ledger.csv", "model,usage\nm,x\n"),
        ),
    )
    def test_are_left_out(self, sh: Shell, name: str, text: str) -> None:
        (sh.folder / "d").mkdir()
        (sh.folder / "d" / "r.csv").write_bytes(TABLE)
        (sh.folder / "d" / name).write_text(text)
        done = sh("bk-matrix -t csv d")
        assert done.out.decode().splitlines()[1:] == WIDE
        assert done.err == f"bk-matrix: warning: 1 file not recognised and left out (-v says why): d/{name}\n"
        why = sh(f"bk-matrix d/{name}", rc=2).err.removeprefix(f"bk-matrix: d/{name}: ")
        assert f"bk-matrix: d/{name}: left out: {why}" in sh("bk-matrix -v d").err
        (sh.folder / "d" / "r.csv").unlink()
        only = sh("bk-matrix d", rc=2).err
        assert (
            only
            == f"bk-matrix: d: no results recognised in this folder: see bk-matrix --formats (d/{name}: {why[:-1]})\n"
        )

    @pytest.mark.parametrize("text", ("model,q1\na,0.5\n", "model,q1\na,1\nb,x\n", "model,q1\na,NA\n"))
    def test_results_with_a_fault_are_not(self, sh: Shell, text: str) -> None:
        (sh.folder / "r.csv").write_bytes(TABLE)
        (sh.folder / "s.csv").write_text(text)
        assert "./s.csv: row" in sh("bk-matrix .", rc=2).err


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
