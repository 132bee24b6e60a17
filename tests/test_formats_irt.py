"""What item response theory's tools exchange: py-irt's lines, itemeval's gradings, long tables by their own names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError
from benchkit.formats import Choices
from benchkit.formats import read as read_table
from benchkit.formats.columns import recognise
from benchkit.formats.tabular import Tabular

RESPONSES = [
    {"subject_id": "pedro", "responses": {"q1": 1, "q2": 0, "q3": None}},
    {"subject_id": "ken", "responses": {"q1": True, "q2": 0.5}},
]


class TestPyIrt:
    def test_a_line_a_subject(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", RESPONSES)
        got = attempts(path)
        assert reader(path) == "py_irt" and scores(got) == {"q1": [1.0, 1.0], "q2": [0.0, 0.5], "q3": [None]}
        assert got and got.models == ["pedro"] * 3 + ["ken"] * 2

    def test_a_subject_alone(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / "a.jsonl", RESPONSES[1:]))) == {"q1": [1.0], "q2": [0.5]}

    def test_a_subject_twice(self, sh: Shell) -> None:
        write(sh.folder / "a.jsonl", [RESPONSES[1], RESPONSES[1]])
        assert "rows 1 and 2: model 'ken', item 'q1' stand twice" in sh("bk-matrix a.jsonl", rc=2).err

    @pytest.mark.parametrize(
        ("row", "said"),
        (
            ({"subject_id": "a"}, "row 2: lacks subject_id or responses"),
            ({"subject_id": None, "responses": {}}, "row 2: subject_id is null"),
            ({"subject_id": "a", "responses": [1]}, "row 2: responses is a list, not an object"),
            ({"subject_id": "a", "responses": {"q": "1"}}, "row 2: the response to 'q' is \"1\", which is no score"),
            ({"subject_id": "a", "responses": {"": 1}}, 'row 2: item is ""'),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, row: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.jsonl", [RESPONSES[0], row]))

    @settings(max_examples=100)
    @given(st.data())
    def test_damaged(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        path = write(tmp_path_factory.mktemp("i") / "a.json", data.draw(damaged(RESPONSES)))
        survives(path, unscored="drop", duplicates="first")


def grading(item: Any = "i1", score: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"study": "s", "item_id": item, "model": "m", "prompt_name": "standard", "replication": 1,
            "grader_name": "judge", "score": score, "parse_ok": score is not None, "solution": ".."} | more  # fmt: skip


class TestItemeval:
    def read(self, folder: Path, *rows: dict[str, Any], **choices: Any) -> Any:
        pq.write_table(pa.Table.from_pylist(list(rows)), folder / "gradings_long.parquet")
        assert reader(folder / "gradings_long.parquet") == "itemeval"
        return attempts(folder / "gradings_long.parquet", **choices)

    def test_replications_are_attempts(self, tmp_path: Path) -> None:
        got = self.read(tmp_path, grading(), grading(score=0.0, replication=2), grading("i2", None))
        assert scores(got) == {"i1": [1.0, 0.0], "i2": [None]} and got.numbers == ["1", "2", "1"]
        assert got.task == "s" and set(got.models) == {"m"}

    def test_a_reply_that_was_not_parsed_is_not_scored(self, tmp_path: Path) -> None:
        assert scores(self.read(tmp_path, grading(parse_ok=False))) == {"i1": [None]}

    def test_several_graders_must_be_chosen(self, tmp_path: Path) -> None:
        rows = [
            grading(rubric_name="strict", scorer_name=None),
            grading(score=0.0, rubric_name="lenient", scorer_name=None),
            grading(score=0.5, grader_name=None, rubric_name=None, scorer_name="numeric"),
        ]
        with pytest.raises(InputError, match=r"several scorers \(judge/lenient, judge/strict, numeric\): choose one"):
            self.read(tmp_path, *rows)
        for scorer, want in (("judge/strict", 1.0), ("judge/lenient", 0.0), ("numeric", 0.5)):
            assert scores(self.read(tmp_path, *rows, scorer=scorer)) == {"i1": [want]}

    def test_a_model_asked_in_several_ways_is_several(self, tmp_path: Path) -> None:
        rows = [grading(), grading(prompt_name="brief"), grading(model="n")]
        assert self.read(tmp_path, *rows).models == ["m (standard)", "m (brief)", "n"]

    def test_a_model_that_is_a_number(self, tmp_path: Path) -> None:
        assert set(self.read(tmp_path, grading(model=7)).models) == {"7"}

    def test_wrong_kinds(self, tmp_path: Path) -> None:
        for wrong, said in (
            ({"parse_ok": "yes"}, "row 1: parse_ok is no flag"),
            ({"score": "1"}, 'row 1: score is "1"'),
            ({"item_id": 0.5}, "row 1: item is 0.5"),
            ({"model": [1]}, r"row 1: model is \[1\]"),
            ({"replication": 0.5}, "row 1: attempt is 0.5"),
        ):
            with pytest.raises(InputError, match=said):
                self.read(tmp_path, grading(**wrong))


class TestLongTables:
    def test_measurement_db(self, sh: Shell) -> None:
        table = "subject_id,item_id,benchmark_id,trial,test_condition,response,correct_answer,trace\n" + "".join(
            f"{s},q1,b,{t},,{r},A,x\n" for s, t, r in (("a", 1, 1), ("a", 2, 0), ("b", 1, 0.5))
        )
        got = sh("bk-matrix -t csv", stdin=table.encode()).out.decode().splitlines()
        assert got[1:] == ["a,q1,2,1.0,", "b,q1,1,0.5,"]

    def test_item_response_warehouse(self, sh: Shell) -> None:
        got = sh("bk-matrix -t csv", stdin=b"id,item,resp,rt\n7,i1,1,3.5\n07,i1,0,2\n").out.decode().splitlines()
        assert got[1:] == ["07,i1,1,0,", "7,i1,1,1,"]

    def test_only_where_they_stand_together_and_alone(self) -> None:
        whole = recognise(["Subject_ID", "item_id", "response", "trial"], {})
        assert (whole.model, whole.item, whole.score, whole.attempt) == ("Subject_ID", "item_id", "response", "trial")
        told = recognise(["subject_id", "item_id", "response", "points"], {"score": "points"})
        assert (told.model, told.item, told.score) == ("subject_id", "item_id", "points")
        for names in (["subject_id", "item_id", "points"], ["model", "item", "score", "response", "item_id"]):
            found = recognise(names, {})
            assert "response" not in found and "subject_id" not in found
        assert recognise(["id", "item", "resp", "model"], {}).model == "model"
        assert recognise(["id", "item", "resp", "score"], {}).score == "score"


class TestConditions:
    """Columns whose values tell rows of one model and item apart: test_condition of measurement-db, wave and rater."""

    HEAD = "subject_id,item_id,trial,test_condition,response\n"

    def test_one_is_chosen_and_rows_of_others_are_as_if_they_were_not_there(self, sh: Shell) -> None:
        text = f"{self.HEAD}a,q1,1,shots=0,1\na,q1,1,shots=5,0\na,q2,1,shots=5,?\na,q2,1,shots=0,1\na,q3,1,,0\n"
        said = sh("bk-matrix -t csv", stdin=text.encode(), rc=2).err
        assert said.endswith("several test_conditions (none, shots=0, shots=5): choose one with --split\n")
        document = json.loads(sh("bk-matrix --split shots=0 -t json", stdin=text.encode()).out)
        assert [(r["item"], r["correct"]) for r in document["responses"]] == [("q1", 1), ("q2", 1)]
        (source,) = document["sources"]
        assert (source["rows"], source["skipped"]) == (2, {"row of another test_condition": 3})
        assert sh("bk-matrix --split none -t csv", stdin=text.encode()).out.split()[1:] == [b"a,q3,1,0,"]
        assert "row 4: response ('?') is no score" in sh("bk-matrix --split shots=5", stdin=text.encode(), rc=2).err
        said = sh("bk-matrix --split x", stdin=text.encode(), rc=2).err
        assert "no test_condition 'x' (found: none, shots=0, shots=5)" in said

    @pytest.mark.parametrize(
        "rows",
        (
            "a,q1,1,x,1\nb,q1,1,y,0\n",  # no pair has several
            "a,q1,1,,1\na,q1,2,,0\n",
            "a,q1,1,x,1\na,q1,2,x,0\n",
        ),
    )
    def test_no_choice_is_needed_where_no_pair_has_several(self, sh: Shell, rows: str) -> None:
        assert (
            sum(float(r.split(b",")[2]) for r in sh("bk-matrix -t csv", (self.HEAD + rows).encode()).out.split()[1:])
            == 2
        )

    def test_attempts_under_other_conditions_are_not_added_up(self, sh: Shell) -> None:
        """Their numbers differ, so that no attempt stands twice."""
        text = f"{self.HEAD}a,q1,1,x,1\na,q1,2,y,0\n"
        assert "several test_conditions (x, y)" in sh("bk-matrix", stdin=text.encode(), rc=2).err
        assert sh("bk-matrix --duplicates first -t csv", stdin=text.encode()).out.split()[1:] == [b"a,q1,2,1,"]

    def test_a_column_that_says_nothing_needs_none(self, sh: Shell) -> None:
        """The choice is for other files of the same call."""
        assert sh("bk-matrix --split x -t csv", stdin=f"{self.HEAD}a,q1,1,,1\n".encode()).out.split()[1:] == [
            b"a,q1,1,1,"
        ]

    def test_two_columns(self, sh: Shell) -> None:
        text = "id,item,resp,wave,rater\n" + "".join(
            f"a,q,{int(w == 2 and r == 'y')},{w},{r}\n" for w in (1, 2) for r in "xy"
        )
        assert "several waves (1, 2): choose one with --split" in sh("bk-matrix", stdin=text.encode(), rc=2).err
        said = sh("bk-matrix --split 2", stdin=text.encode(), rc=2).err
        assert "several raters (x, y): choose one with --scorer" in said
        for rater, score in (("x", 0), ("y", 1)):
            got = sh(f"bk-matrix --split 2 --scorer {rater} -t csv", stdin=text.encode()).out.split()
            assert got[1:] == [f"a,q,1,{score},".encode()]

    @settings(max_examples=50)
    @given(
        st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("qr"), st.sampled_from(["", "x", "y"])), max_size=9)
    )
    def test_asked_for_exactly_where_a_pair_has_several(self, keys: list[tuple[str, str, str]]) -> None:
        """Against the definition, with batches of one row as well."""
        keys = list(dict.fromkeys(keys))
        several = len({(s, i) for s, i, _ in keys}) < len(keys)
        names = ["subject_id", "item_id", "test_condition"]
        for size in (1, 9):
            parts = [keys[k : k + size] for k in range(0, len(keys), size)]
            batches = [pa.RecordBatch.from_pylist([dict(zip(names, k, strict=True)) | {"response": 1} for k in part])
                       for part in parts]  # fmt: skip
            schema = dict.fromkeys(names, pa.utf8()) | {"response": pa.int64()}
            tab = Tabular(
                lambda n, b=batches: (x.select(list(n)) for x in b), list, schema, lambda i: i, "x", "x", {}, [], {}
            )  # type: ignore[misc, arg-type]
            try:
                cells = read_table(tab, Choices({}))
                assert not several and cells.attempts.sum() == len(keys)
            except InputError as e:
                assert several and "choose one with --split" in str(e)
