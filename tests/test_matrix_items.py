"""The list of all items, --items, in every form it may have."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Shell

from benchkit.errors import InputError
from benchkit.naming import item_list

IDS = ["q0", "q1", "q10"]
TABLE = 'id,question\nq0,"a, b"\nq1,\nq10,c\n'


class TestForms:
    @pytest.mark.parametrize(
        "text",
        (
            "q0\nq1\nq10\n",
            "\ufeffq0\r\n\r\n q1 \r\nq10",
            "item\nq0\nq1\nq10\n",
            "question_id\nq0\nq1\nq10\n",
            TABLE,
            TABLE.replace(", ", ". ").replace(",", ";"),
            TABLE.replace(",", "\t"),
            "model,item,attempts,correct\na,q0,1,1\nb,q0,1,0\na,q1,1,1\nb,q10,2,1\n",
            '["q0", "q1", "q10"]',
            '[{"id": "q0"}, {"id": "q1", "question": "x"}, {"id": "q10"}]',
            '{"id": "q0", "question": "x"}\n{"id": "q1"}\n{"id": "q10"}\n',
            '{"responses": [{"model": "a", "item": "q0"}, {"model": "b", "item": "q0"}, {"model": "a", "item": "q1"},'
            ' {"model": "a", "item": "q10"}], "history": []}',
        ),
    )
    def test_text(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "items").write_text(text)
        assert item_list(str(tmp_path / "items")) == set(IDS)

    @pytest.mark.parametrize("kind", ("arrow", "feather", "parquet", "gz"))
    def test_binary(self, sh: Shell, kind: str) -> None:
        frame = pl.DataFrame({"item": pl.Series(IDS, dtype=pl.Categorical), "question": ["a", "b", "c"]})
        name = sh.folder / "items"
        if kind == "gz":
            name.write_text("\n".join(IDS))
            sh("gzip -c items > packed; mv packed items")
        else:
            {"arrow": frame.write_ipc_stream, "feather": frame.write_ipc, "parquet": frame.write_parquet}[kind](name)
        assert item_list(str(name)) == set(IDS)

    def test_whole_numbers_are_their_digits(self, tmp_path: Path) -> None:
        for name, text in (("a", "[0, 1]"), ("b", '{"id": 0}\n{"id": 1}\n'), ("c", "0\n1\n")):
            (tmp_path / name).write_text(text)
            assert item_list(str(tmp_path / name)) == {"0", "1"}

    def test_a_line_keeps_its_commas(self, tmp_path: Path) -> None:
        (tmp_path / "items").write_text("mmlu:subject=anatomy,method=mc/id0\nmmlu:subject=law,method=mc/id0\n")
        assert item_list(str(tmp_path / "items")) == {
            "mmlu:subject=anatomy,method=mc/id0", "mmlu:subject=law,method=mc/id0",
        }  # fmt: skip

    def test_item_goes_before_other_names(self, tmp_path: Path) -> None:
        (tmp_path / "items").write_text("id,item\n1,q0\n2,q1\n")
        assert item_list(str(tmp_path / "items")) == {"q0", "q1"}


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "said"),
        (
            (b"q0\nq1\nq0\n", "item 'q0' stands twice"),
            (b"id,question\nq0,x\nq0,y\n", "item 'q0' stands twice"),
            (b"\n \n", "empty input: only white space"),
            (b"item\n", "no items"),
            (b"[]", "no items"),
            (b'{"name": "q0"}\n{"name": "q1"}\n', "no column item, "),
            (b"id,task_id\n1,q0\n", "columns id and task_id could be the items: keep one"),
            (b'{"id": 1.5}\n{"id": 2}\n', "row 1: id is 1.5, which is no identifier"),
            (b"[true]", "row 1: item is true, which is no identifier"),
            (b'id,question\nq0,"x\n', "a quoted field is not closed"),
            (b"q\xe9\n", "not UTF-8 text: save it as UTF-8"),
        ),
    )
    def test_name_the_file(self, tmp_path: Path, text: bytes, said: str) -> None:
        name = tmp_path / "items"
        name.write_bytes(text)
        with pytest.raises(InputError) as e:
            item_list(str(name))
        assert said in str(e.value) and e.value.where == str(name)

    def test_an_item_beyond_the_list_shows_what_is_in_it(self, sh: Shell) -> None:
        (sh.folder / "r.csv").write_text("model,item,score\na,q0,1\na,q1,1\n")
        (sh.folder / "items.json").write_text(json.dumps(["1", "2"]))
        assert sh("bk-matrix r.csv --items items.json", rc=2).err == (
            "bk-matrix: r.csv: item 'q0' and 1 more not in --items items.json (2 items, such as '1')\n"
        )


def test_a_separator_that_the_second_line_tells(sh: Shell) -> None:
    (sh.folder / "items.csv").write_text("item;note, x\nq1;1\n")
    assert sh("bk-matrix -t csv --items items.csv", stdin=b"model,item,score\na,q1,1\n").out.endswith(b"a,q1,1,1,\n")
