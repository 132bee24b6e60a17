"""bk-matrix: raw results in, one responses table out; nothing lost, nothing guessed."""

from __future__ import annotations

import io
import json
import math
import random
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.formats import Choices, read
from benchkit.formats.columns import recognise
from benchkit.formats.merge import merge
from benchkit.formats.tabular import open_source, unpacked
from benchkit.formats.tally import UNIT
from benchkit.formats.wide import cell

NONE = Choices({}, None, None, False, None)


def rows(sh: Shell, call: str, stdin: bytes = b"") -> list[dict[str, Any]]:
    got = json.loads(sh(f"bk-matrix {call} -t json", stdin=stdin).out)["responses"]
    return [{k: v for k, v in r.items() if v is not None} for r in got]


def error(sh: Shell, call: str, text: str) -> str:
    """The message for `text`, which must be the same by name (scanned lazily) and on standard input (read whole)."""
    (sh.folder / "x").write_text(text)
    by_name = sh(f"bk-matrix {call} x", rc=2)
    by_pipe = sh(f"bk-matrix {call} < x", rc=2)
    assert by_name.out == by_pipe.out == b"" and by_name.err.count("\n") == 1
    assert by_name.err.replace(" x: ", " <stdin>: ") == by_pipe.err
    return by_name.err


def table(path: Path, choices: Choices = NONE) -> pa.Table:
    (source,) = open_source(str(path), "auto", unpacked(str(path)))
    return merge([read(source, choices)], add=choices.merge, duplicates=choices.duplicates)


class TestColumns:
    def test_known_names_without_regard_to_case(self) -> None:
        roles = recognise(["Model_Name", "problem_idx", "idx_answer", "Correct", "answer"], {})
        assert (roles.model, roles.item, roles.attempt, roles.score) == (
            "Model_Name", "problem_idx", "idx_answer", "Correct",
        )  # fmt: skip
        assert roles.attempts is None and roles.correct is None

    @pytest.mark.parametrize("model", ("model", "model_name", "model_id"))
    @pytest.mark.parametrize("item", ("item", "problem_idx", "question_id", "task_id", "instance_id"))
    @pytest.mark.parametrize("score", ("correct", "score", "resolved", "is_correct"))
    @pytest.mark.parametrize("attempt", ("attempt", "idx_answer", "epoch", "trial", None))
    def test_long(self, model: str, item: str, score: str, attempt: str | None) -> None:
        roles = recognise([model, item, score, *([attempt] if attempt else [])], {})
        assert (roles.model, roles.item, roles.score, roles.attempt) == (model, item, score, attempt)

    @pytest.mark.parametrize("attempts", ("attempts", "n"))
    @pytest.mark.parametrize("correct", ("correct", "k", "successes"))
    def test_counts(self, attempts: str, correct: str) -> None:
        roles = recognise(["model", "item", attempts, correct], {})
        assert (roles.attempts, roles.correct, roles.score) == (attempts, correct, None)

    def test_two_candidates_are_not_chosen_between(self) -> None:
        with pytest.raises(InputError, match="columns correct and score could be the score: choose with --score-col"):
            recognise(["model", "item", "correct", "score"], {})
        assert recognise(["model", "item", "correct", "score"], {"score": "score"}).score == "score"
        with pytest.raises(InputError, match="choose with --model-col"):
            recognise(["model", "model_id", "item", "score"], {})
        with pytest.raises(InputError, match="name what a row holds"):
            recognise(["model", "item", "attempt", "n", "correct"], {})
        assert recognise(["model", "item", "attempt", "n", "correct"], {"score": "correct"}).attempt == "attempt"
        with pytest.raises(InputError, match="no column 'x' for --item-col"):
            recognise(["model", "item", "score"], {"item": "x"})

    @pytest.mark.parametrize(
        ("header", "roles"),
        (
            ("Model Name,Question ID,Is Correct", ("Model Name", "Question ID", "Is Correct")),
            ("model-id,item_id,passed", ("model-id", "item_id", "passed")),
            ("model,item,item_id,problem_id,score,passed", ("model", "item", "score")),  # the greater names first
            ("MODEL,qid,Solved", ("MODEL", "qid", "Solved")),
        ),
    )
    def test_spaces_and_lesser_names(self, header: str, roles: tuple[str, str, str]) -> None:
        found = recognise(header.split(","), {})
        assert (found.model, found.item, found.score) == roles

    def test_lesser_names_are_not_chosen_between_either(self) -> None:
        with pytest.raises(InputError, match="columns item_id and qid could be the item"):
            recognise(["model", "item_id", "qid", "score"], {})

    @pytest.mark.parametrize(
        "row", ("10,1,0.5", "10,2,1", "1,1,0", "3,2,0.6", "3,2,66"),
    )  # fmt: skip
    def test_a_score_that_is_not_what_the_counts_say(self, sh: Shell, row: str) -> None:
        text = f"model,item,n,k,score\na,p,4,2,0.5\na,q,{row}\n"
        assert "row 3: column 'score' does not say what 'k' and 'n' do" in error(sh, "", text)
        told = sh("bk-matrix -t csv --attempts-col n --correct-col k", stdin=text.encode()).out
        assert told == sh("bk-matrix -t csv --leave-out score", stdin=text.encode()).out

    @pytest.mark.parametrize("score", ("0.67", "0.6666667", "2", "66.7", "", "NA"))
    def test_a_score_that_is(self, sh: Shell, score: str) -> None:
        assert sh("bk-matrix -t csv", stdin=f"model,item,n,k,score\na,q,3,2,{score}\n".encode()).out.endswith(
            b"a,q,3,2,\n"
        )

    def test_one_unit_of_a_score_for_all_rows(self, sh: Shell) -> None:
        text = "model,item,n,k,score\na,p,4,2,50\na,q,4,0,0.4\na,r,4,1,1\n"
        assert "does not say what" in error(sh, "", text)

    def test_a_column_that_can_be_no_score(self, sh: Shell) -> None:
        when = pl.Series("resolved", ["2026-01-01"]).str.to_datetime()
        pl.DataFrame({"model": ["a"], "item": ["q"], "n": [3], "k": [2], "resolved": when}).write_parquet(
            sh.folder / "x.parquet"
        )
        assert sh("bk-matrix -t csv x.parquet").out.endswith(b"a,q,3,2,\n")

    @pytest.mark.parametrize(
        ("header", "said"),
        (
            ("n_attempts,n_correct,correct", "columns n_correct and correct could be the correct"),
            ("n,n_attempts,k", "columns n and n_attempts could be the attempts"),
        ),
    )
    def test_counts_are_not_chosen_between(self, sh: Shell, header: str, said: str) -> None:
        assert said in error(sh, "", f"model,item,{header}\nA,x,4,3,1\n")

    def test_a_flag_is_no_count(self, sh: Shell) -> None:
        """Row numbers, tokens or tries of an agent, beside `correct` of one attempt."""
        text = "model,item,n,correct\nA,q1,1,1\nA,q2,2,0\nA,q3,3,1\n"
        for name in ("n", "n_attempts", "Num Attempts"):
            assert f"column '{name}' may be no count of attempts" in error(sh, "", text.replace("n,", f"{name},"))
        told = sh("bk-matrix -t csv --leave-out n", stdin=text.encode()).out
        assert told.endswith(b"A,q1,1,1,\nA,q2,1,0,\nA,q3,1,1,\n")
        assert b"A,q3,3,1" in sh("bk-matrix -t csv --attempts-col n", stdin=text.encode()).out
        for counts in (text.replace("3,1", "3,2"), text.replace("n,", "attempts,"), text.replace("correct", "k")):
            assert b"A,q3,3," in sh("bk-matrix -t csv", stdin=counts.encode()).out

    def test_no_rows(self, sh: Shell) -> None:
        for header in ("model,item,n,k", "model,item,n,correct", "model,item,n,k,score"):
            for call in ("", "--merge sum"):
                assert error(sh, call, f"{header}\n").endswith("no rows\n")

    def test_names_with_spaces_around_them(self, sh: Shell) -> None:
        text = " model,x,attempts,correct\na,q,3,2\n"
        assert "no column of models" in error(sh, "--item-col model", text)
        assert sh("bk-matrix -t csv --item-col x", stdin=text.encode()).out.endswith(b"a,q,3,2,\n")


class TestAttempts:
    def test_adds_up(self, sh: Shell) -> None:
        text = (
            b"model,item,attempt,correct,cluster\na,q1,0,1,c\na,q1,1,0,c\na,q2,0,true,\nb,q1,0,0.25,c\nb,q1,7,False,c\n"
        )
        assert rows(sh, "", text) == [
            {"model": "a", "item": "q1", "attempts": 2, "correct": 1, "cluster": "c"},
            {"model": "a", "item": "q2", "attempts": 1, "correct": 1},
            {"model": "b", "item": "q1", "attempts": 2, "correct": 0.25, "cluster": "c"},
        ]

    @settings(max_examples=40)
    @given(st.data())
    def test_equals_a_dictionary(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        """Against a plain loop, as CSV, NDJSON and Parquet, scanned and read whole, rows in any order."""
        keys = st.tuples(st.sampled_from("abc"), st.sampled_from(["q1", "q2", "10", "9"]), st.integers(-1, 80))
        scores = st.sampled_from([0.0, 1.0, 1.0, 0.5])
        attempts = data.draw(st.dictionaries(keys, scores, min_size=1, max_size=40))
        want: dict[Any, list[float]] = defaultdict(list)
        for (m, j, _), s in attempts.items():
            want[m, j].append(s)
        records = [{"model": m, "item": j, "attempt": k, "score": s} for (m, j, k), s in attempts.items()]
        random.Random(0).shuffle(records)
        folder = tmp_path_factory.mktemp("m")
        frame = pl.DataFrame(records)
        frame.write_csv(folder / "x.csv")
        frame.write_ndjson(folder / "x.ndjson")
        frame.write_parquet(folder / "x.parquet")
        (folder / "x.json").write_text(json.dumps(records))
        for name in ("x.csv", "x.ndjson", "x.parquet", "x.json"):
            got = {(r["model"], r["item"]): (r["attempts"], r["correct"]) for r in table(folder / name).to_pylist()}
            assert got == {k: (len(v), sum(v)) for k, v in want.items()}

    def test_fractions_add_up_to_the_same_bytes_every_time(self, tmp_path: Path) -> None:
        draw = random.Random(1)
        records = [f"a,q,{k},{draw.random()}\n" for k in range(5000)]
        sums = set()
        for _ in range(4):
            draw.shuffle(records)
            (tmp_path / "x.csv").write_text("model,item,attempt,score\n" + "".join(records))
            sums.add(table(tmp_path / "x.csv")["correct"][0].as_py())
        scores = [float(r.split(",")[3]) for r in records]
        assert sums == {sum(round(Fraction(x) * UNIT) for x in scores) / UNIT}
        assert sums.pop() == pytest.approx(math.fsum(scores), abs=len(scores) * 5e-13)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=3))
    def test_fractions_keep_their_value(self, tmp_path_factory: pytest.TempPathFactory, scores: list[float]) -> None:
        path = tmp_path_factory.mktemp("m") / "x.csv"
        path.write_text("model,item,attempt,score\n" + "".join(f"a,q,{k},{s!r}\n" for k, s in enumerate(scores)))
        got = table(path)["correct"][0].as_py()
        assert got == pytest.approx(math.fsum(scores), rel=1e-15, abs=len(scores) * 5e-13)
        assert len(scores) > 1 or got == scores[0]

    def test_duplicates(self, sh: Shell) -> None:
        text = "model,item,attempt,correct\na,q1,0,1\nb,q1,0,1\n\na,q1,00,0\n"
        message = error(sh, "", text)
        assert "rows 2 and 5: model 'a', item 'q1', attempt '0', stand twice" in message and "--duplicates" in message
        counted = {"model": "a", "item": "q1", "attempts": 2, "correct": 1}
        assert rows(sh, "--duplicates attempt x")[0] == counted
        plain = "model,item,attempt,correct\na,q1,0,1\na,q1,0,0\n"
        assert [rows(sh, f"--duplicates {w}", plain.encode())[0]["correct"] for w in ("first", "last")] == [1, 0]
        unnumbered = "model,item,correct\na,q1,1\na,q1,0\n"
        assert "or attempt (each row is one more attempt)" in error(sh, "", unnumbered)
        assert rows(sh, "--duplicates attempt", unnumbered.encode())[0]["attempts"] == 2

    def test_what_tells_rows_apart_that_stand_twice(self, sh: Shell) -> None:
        text = "model,data set,item,score,seed,note\na,x,1,1,1,n\na,y,2,1,1,n\na,y,1,0,2,n\n"
        said = "rows 2 and 4: model 'a', item '1' stand twice (1 such key): choose --duplicates first, last or attempt "
        assert said in (err := error(sh, "", text))
        assert "; the rows differ in data set, seed: one that numbers the attempts is for --attempt-col, " in err
        lines = "".join(f'{{"model":"a","item":"x","score":1,"m\\ud800":{k},"o":{{"k":{k}}}}}\n' for k in range(2))
        assert "; the rows differ in o: one" in error(sh, "", lines)
        pl.DataFrame({"model": ["a", "a"], "item": ["x", "x"], "score": [1, 0], "list": [[1], [2]], "same": [[1], [1]],
                      "when": pl.Series([10**15, 1]).cast(pl.Datetime("ns")), "kind": ["u", "v"]},
                     schema_overrides={"kind": pl.Categorical}).write_parquet(sh.folder / "x.parquet")  # fmt: skip
        assert "; the rows differ in list, when, kind: one" in sh("bk-matrix x.parquet", rc=2).err
        (sh.folder / "d.csv").write_text("item,score,take\nx,1,1\nx,0,2\n")
        assert "; the rows differ in take: one" in sh("bk-matrix --model A d.csv", rc=2).err
        lines = '{"model":"a","item":"x","score":1}\n{"model":"a","item":"x","score":1,"run":2}\n'
        assert "; the rows differ in run: one" in error(sh, "", lines)

    def test_attempt_numbers_beyond_the_mask(self, sh: Shell) -> None:
        many = "".join(f"a,q,{k},1\n" for k in range(-3, 200))
        assert rows(sh, "", b"model,item,trial,score\n" + many.encode())[0]["attempts"] == 203
        assert "stand twice" in error(sh, "", "model,item,trial,score\n" + many + "a,q,150,1\n")
        names = "model,item,epoch,score\na,q,run-1,1\na,q,run-2,0\n"
        assert rows(sh, "", names.encode())[0]["attempts"] == 2
        assert "attempt 'run-2', stand twice" in error(sh, "", names + "a,q,run-2,0\n")

    @pytest.mark.parametrize("word", ("", "NA", "nan", "null", "None", " n/a "))
    def test_unscored(self, sh: Shell, word: str) -> None:
        text = f"model,item,attempt,correct\na,q1,0,1\na,q1,1,{word}\nb,q1,0,{word}\n"
        message = error(sh, "", text)
        assert "2 of 3 attempts have no score (rows 3, 4)" in message and "--unscored drop" in message
        assert rows(sh, "--unscored wrong", text.encode()) == [
            {"model": "a", "item": "q1", "attempts": 2, "correct": 1},
            {"model": "b", "item": "q1", "attempts": 1, "correct": 0},
        ]
        assert rows(sh, "--unscored drop", text.encode()) == [{"model": "a", "item": "q1", "attempts": 1, "correct": 1}]

    def test_unscored_in_json_and_parquet(self, sh: Shell) -> None:
        text = b'[{"model":"a","item":"q","attempt":0,"score":1},{"model":"a","item":"q","attempt":1,"score":null}]'
        assert "1 of 2 attempts" in sh("bk-matrix", stdin=text, rc=2).err
        sink = io.BytesIO()
        pq.write_table(pa.table({"model": ["a", "a"], "item": ["q", "q"], "score": [1.0, float("nan")],
                                 "trial": [0, 1]}), sink)  # fmt: skip
        assert "1 of 2 attempts" in sh("bk-matrix", stdin=sink.getvalue(), rc=2).err

    @pytest.mark.parametrize(
        ("row", "said"),
        (
            ("a,q1,1,2", "row 3: correct ('2') is outside [0,1]"),
            ("a,q1,1,-0.1", "row 3: correct ('-0.1') is outside [0,1]"),
            ("a,q1,1,C", "row 3: correct ('C') is no score"),
            ("a,q1,1,inf", "row 3: correct ('inf') is no score"),
            (",q1,1,1", "row 3: the model or the item is missing"),
            ("a,,1,1", "row 3: the model or the item is missing"),
        ),
    )
    def test_bad_rows(self, sh: Shell, row: str, said: str) -> None:
        assert said in error(sh, "", f"model,item,attempt,correct\na,q1,0,1\n{row}\n")

    def test_the_line_of_a_row_after_quoted_line_ends(self, sh: Shell) -> None:
        text = 'model,item,correct\n"a\nb",q1,1\n\na,q2,7\n'
        assert "row 5: correct ('7')" in error(sh, "", text)

    def test_a_cluster_that_disagrees(self, sh: Shell) -> None:
        assert "item 'q' is in cluster 'x' and in cluster 'y'" in error(
            sh, "", "model,item,correct,cluster\na,q,1,x\nb,q,1,y\n"
        )


class TestMathArena:
    def test_parquet_columns_as_they_are(self, sh: Shell) -> None:
        pq.write_table(
            pa.table(
                {
                    "problem_idx": ["1", "1", "10", "2"],
                    "model_name": ["GPT (xhigh)"] * 3 + ["Q"],
                    "model_config": ["openai/gpt"] * 3 + ["q"],
                    "idx_answer": pa.array([0, 1, 0, 0], pa.int64()),
                    "all_messages": [[{"role": "user", "content": "x" * 1000}]] * 4,
                    "correct": [True, False, True, False],
                    "gold_answer": ["7"] * 4,
                }
            ),
            sh.folder / "outputs.parquet",
        )
        want = [
            {"model": "GPT (xhigh)", "item": "1", "attempts": 2, "correct": 1},
            {"model": "GPT (xhigh)", "item": "10", "attempts": 1, "correct": 1},
            {"model": "Q", "item": "2", "attempts": 1, "correct": 0},
        ]
        assert rows(sh, "outputs.parquet") == want
        assert rows(sh, "", (sh.folder / "outputs.parquet").read_bytes()) == want


class TestWide:
    def test_wide_and_transposed_are_the_same(self, sh: Shell) -> None:
        wide = b"model,q1,q2,q10\na,1,0,\nb,true,3/4,1\n"
        transposed = b"item,a,b\nq1,1,true\nq2,0,3/4\nq10,,1\n"
        assert rows(sh, "", wide) == rows(sh, "", transposed)
        assert rows(sh, "", wide) == [
            {"model": "a", "item": "q1", "attempts": 1, "correct": 1},
            {"model": "a", "item": "q2", "attempts": 1, "correct": 0},
            {"model": "b", "item": "q1", "attempts": 1, "correct": 1},
            {"model": "b", "item": "q10", "attempts": 1, "correct": 1},
            {"model": "b", "item": "q2", "attempts": 4, "correct": 3},
        ]

    def test_rates_need_their_attempts(self, sh: Shell) -> None:
        text = "model,q1,q2\na,0.75,1\nb,0,.5\n"
        assert "row 2, column 'q1': '0.75' is a rate: of how many attempts? (--attempts N" in error(sh, "", text)
        assert [r["correct"] for r in rows(sh, "--attempts 4", text.encode())] == [3, 4, 0, 2]
        assert [r["correct"] for r in rows(sh, "--attempts 1", text.encode())] == [0.75, 1, 0, 0.5]
        assert "no whole number out of 3" in error(sh, "--attempts 3", text)

    def test_cells(self) -> None:
        assert cell(" 3 / 4 ", None) == (4, 3.0) and cell("FALSE", None) == (1, 0.0) and cell("0.333", 3) == (3, 1.0)
        for bad in ("5/4", "0/0", "x", "-1", "2", "nan", "NA", "1,0"):
            with pytest.raises(ValueError):
                cell(bad, None)

    def test_bad_tables(self, sh: Shell) -> None:
        assert "rows 2 and 4: model 'a' stands twice" in error(sh, "", "model,q1\na,1\nb,1\na,0\n")
        assert "row 3, column 'org': 'acme' is no score" in error(sh, "", "model,q1,org\na,1,\nb,1,acme\n")
        assert "row 3: the model is missing" in error(sh, "", "model,q1\na,1\n,1\n")
        assert "name them with --model-col" in error(sh, "", "who,q1\na,1\n")
        assert rows(sh, "--model-col who", b"who,q1\na,1\n")[0]["model"] == "a"


class TestCounts:
    def test_a_responses_table_passes_unchanged(self, sh: Shell, aime: Path) -> None:
        sh(f"bk-matrix {aime} -o a.arrow; bk-matrix a.arrow -o b.arrow")
        a, b = (pa.ipc.open_stream((sh.folder / f"{x}.arrow").read_bytes()).read_all() for x in "ab")
        assert a.equals(b) and len(json.loads(b.schema.metadata[b"benchkit.history"])) == 2
        assert a.schema.metadata[b"benchkit.sources"] == b.schema.metadata[b"benchkit.sources"]

    def test_bad_counts(self, sh: Shell) -> None:
        head = "model,item,n,k\na,q,4,4\n"
        for row, said in (
            ("a,r,4,5", "row 3: correct (5) is larger than attempts (4)"),
            ("a,r,0,0", "row 3: attempts (0) is below 1"),
            ("a,r,1.5,1", "row 3: attempts ('1.5') is not a whole number"),
            ("a,r,99999999999,1", "row 3: attempts ('99999999999') is not a whole number below 2^31"),
            ("a,r,4,", "row 3: correct is missing"),
            ("a,r,4,nan", "row 3: correct ('nan') is not a number"),
            ("a,q,4,4", "rows 2 and 3: model 'a' and item 'q' stand twice"),
        ):
            assert said in error(sh, "", f"{head}{row}\n"), row

    def test_rates_where_sums_belong_are_said_once(self, sh: Shell) -> None:
        text = b"model,item,attempts,correct\na,q,4,0.75\nb,q,4,1\nb,r,4,0\na,r,4,0.5\n"
        assert "are they rates, not sums?" in sh("bk-matrix -o x.arrow", stdin=text).err
        assert "rates" not in sh("bk-signflip x.arrow").err
        assert "are they rates, not sums?" in sh("bk-signflip", stdin=text).err
        assert "rates" not in sh("bk-rank -t csv", stdin=text.replace(b"b,q,4,1", b"b,q,4,2")).err


class TestSeveralSources:
    @pytest.fixture
    def parts(self, sh: Shell) -> Shell:
        (sh.folder / "one.csv").write_text("model,item,attempt,correct\na,q1,0,1\na,q2,0,1\n")
        (sh.folder / "two.csv").write_text("model,item,attempt,correct\na,q1,1,0\nb,q1,0,1\n")
        return sh

    def test_attempts_split_over_files(self, parts: Shell) -> None:
        got = rows(parts, "one.csv two.csv")
        assert got[0] == {"model": "a", "item": "q1", "attempts": 2, "correct": 1} and len(got) == 3

    def test_the_same_attempt_in_two_files(self, parts: Shell) -> None:
        done = parts("bk-matrix one.csv one.csv", rc=2)
        assert "model 'a', item 'q1', attempt '0', stand twice in one.csv (2 such pairs)" in done.err
        (parts.folder / "three.csv").write_text("model,item,correct\na,q2,1\n")
        assert (
            "stand in one.csv and in three.csv (1 such pair): leave out a copy; --merge sum"
            in parts("bk-matrix one.csv three.csv", rc=2).err
        )
        assert rows(parts, "--merge sum one.csv three.csv")[1]["attempts"] == 2

    def test_shards_merge_to_the_bytes_of_one_run(self, sh: Shell, aime: Path) -> None:
        lines = aime.read_text().splitlines(keepends=True)
        draw = random.Random(2)
        body = lines[1:]
        draw.shuffle(body)
        for k in range(3):
            (sh.folder / f"part{k}.csv").write_text(lines[0] + "".join(body[k::3]))
        sh(f"bk-matrix --no-provenance {aime} -t csv > whole.csv")
        sh("for k in 0 1 2; do bk-matrix part$k.csv > part$k.arrow; done")
        for call in ("cat part?.arrow | bk-matrix", "bk-matrix part?.csv", "bk-matrix --merge sum part?.arrow"):
            sh(f"{call} -t csv | cmp - whole.csv")
        assert "stand twice" in sh("cat part0.arrow part0.arrow | bk-matrix", rc=2).err
        twice = rows(sh, "--merge sum", (sh.folder / "part0.arrow").read_bytes() * 2)
        assert twice[0]["attempts"] == 8

    def test_folders(self, parts: Shell) -> None:
        (parts.folder / "in" / "deep").mkdir(parents=True)
        for k, name in enumerate(("one.csv", "two.csv")):
            (parts.folder / name).rename(parts.folder / "in" / ("deep" if k else ".") / name)
        (parts.folder / "in" / "notes.md").write_text("not results")
        assert len(rows(parts, "in")) == 3
        got = json.loads(parts("bk-matrix in -t json").out)["sources"]
        assert [(s["source"], s["rows"]) for s in got] == [("two.csv", 2), ("one.csv", 2)]
        (parts.folder / "void").mkdir()
        assert parts("bk-matrix void", rc=2).err.endswith(", or these packed) in this folder\n")
        (parts.folder / "void" / ".tool").mkdir()
        (parts.folder / "void" / ".tool" / "x.json").write_text("{}")
        assert "; hidden ones, such as void/.tool/x.json, have to be named" in parts("bk-matrix void", rc=2).err

    def test_a_model_named_for_sources_that_all_name_theirs(self, parts: Shell) -> None:
        said = "bk-matrix: warning: --model: of no use, since every source records its model (--model-map renames)\n"
        assert parts("bk-matrix --model z one.csv > x").err == said
        (parts.folder / "bare.csv").write_text("item,score\nq,1\n")
        assert parts("bk-matrix --model z one.csv bare.csv > x").err == ""

    def test_verbose_says_what_was_recognised(self, parts: Shell) -> None:
        said = "bk-matrix: one.csv: long (csv): 2 rows, 1 model, 2 items, 2 attempts\n"
        assert parts("bk-matrix -v one.csv > x").err == said


class TestOneParser:
    """By name (in batches), through a pipe and packed, the same bytes give the same rows or the same message."""

    @pytest.mark.parametrize(
        ("text", "said"),
        (
            ("a,x,1,1,ok\nb,x,0\nb,y,1,1,ok\n", "row 3: 3 fields where the header has 5"),
            ("a,x,1,1,ok\nb,x,0,1", "row 3: 4 fields where the header has 5"),
            ('a,x,1,1,ok\nb,x,0,1,"o\n', "line 3: a quoted field is not closed"),
            ('a,x,1,1,"ok\nb,x,0,1,o"k\n', "line 2: text after a closing quote"),
            ("a,x,1,1,\0\n", "binary data"),
        ),
    )
    def test_damaged_csv(self, sh: Shell, text: str, said: str) -> None:
        assert said in error(sh, "", "model,item,score,attempt,note\n" + text)

    def test_bytes_that_are_no_text(self, sh: Shell) -> None:
        (sh.folder / "x").write_bytes(b"model,item,score\na,x,1\n\xff,x,1\n")
        for call in ("bk-matrix x", "bk-matrix < x", "gzip -c x | bk-matrix"):
            assert "line 3: not UTF-8 text" in sh(call, rc=2).err

    @pytest.mark.parametrize(
        "text",
        (
            "\n\nmodel,item,correct\na,q,1\n",
            "model,item,correct\ra,q,1\r",
            "model,item,correct,,\na,q,1,,\n",
            ",model,item,correct\n0,a,q,1\n",
            "\ufeffmodel;item;correct\r\na;q;1\r\n",
            'model,item,note,correct\na,q,"5"" pipe, bent\n",1\n',
            'model,item,note,correct\na,q,5" pipe,1\n',
            "model,item,junk,correct\na,q," + "x" * 5_000_000 + ",1\n",
            '{"model":"a","item":"q","correct":1}\n',
            '{"model":"a","item":"q","correct":true,"log":[{}]}\n{"model":"a","item":"r","correct":null}\n',
        ),
    )
    def test_odd_but_whole(self, sh: Shell, text: str) -> None:
        (sh.folder / "x").write_text(text)
        want = [{"model": "a", "item": "q", "attempts": 1, "correct": 1}]
        assert rows(sh, "--unscored drop x") == rows(sh, "--unscored drop < x") == want
        assert rows(sh, "--unscored drop", (sh.folder / "x").read_bytes()) == want

    def test_a_column_that_first_occurs_late(self, sh: Shell) -> None:
        lines = [f'{{"model":"m","item":"q{k}","score":1}}\n' for k in range(70_000)]
        lines.append('{"model":"m","item":"last","score":1,"trial":3}\n')
        (sh.folder / "x.ndjson").write_text("".join(lines))
        assert len(rows(sh, "x.ndjson")) == 70_001
        assert "rows 70001 and 70002" in error(sh, "", "".join([*lines, lines[-1]]))

    @pytest.mark.parametrize(
        ("value", "said"),
        (
            (7.0, "floating-point numbers"),
            (True, "flags"),
            (["a"], "lists or objects"),
            (10**30, "floating-point numbers"),
        ),
    )
    def test_identifiers_in_json(self, sh: Shell, value: Any, said: str) -> None:
        text = json.dumps({"model": "a", "item": "q", "score": 1}) + "\n"
        text += json.dumps({"model": value, "item": "q", "score": 1}) + "\n"
        assert f"column 'model' holds {said}; identifiers are text" in error(sh, "", text)

    def test_a_fifo_and_a_process_substitution(self, sh: Shell, aime: Path) -> None:
        want = sh(f"bk-matrix {aime} -t csv").out
        assert sh(f"bk-matrix <(cat {aime}) -t csv").out == want
        assert sh(f"mkfifo p; cat {aime} > p & bk-matrix p -t csv").out == want
        assert sh(f"cat {aime} | bk-matrix /dev/stdin -t csv").out == want

    def test_a_name_that_is_not_utf8(self, sh: Shell, aime: Path) -> None:
        sh(f"cp {aime} $'\\xfe.csv'; bk-matrix {aime} -o $'\\xfe.parquet'")
        for name in ("$'\\xfe.csv'", "$'\\xfe.parquet'"):
            assert sh(f"bk-matrix {name} -t csv").out == sh(f"bk-matrix {aime} -t csv").out

    def test_parquet_files_one_after_another(self, sh: Shell) -> None:
        pl.DataFrame({"model": ["a"], "item": ["q"], "score": [1]}).write_parquet(sh.folder / "x")
        data = (sh.folder / "x").read_bytes()
        (sh.folder / "x").write_bytes(data + data)
        for call in ("bk-matrix x", "bk-matrix < x", "bk-rank x"):
            assert "two files one after another" in sh(call, rc=2).err

    @pytest.mark.parametrize(
        ("text", "names"),
        (
            ("model;Frage 1, a;Frage 2\na;1;0\n", ["Frage 1, a", "Frage 2"]),
            ("model,q 1;a,q2\na,1,0\n", ["q 1;a", "q2"]),
            ("model\tq,1\tq;2\na\t1\t0\n", ["q,1", "q;2"]),
            ('model,"q;1",q2\n"a\n;",1,0\n', ["q;1", "q2"]),
        ),
    )
    def test_separators_that_names_hold_too(self, sh: Shell, text: str, names: list[str]) -> None:
        table = json.loads(sh("bk-matrix -t json", stdin=text.encode()).out)["responses"]
        assert [row["item"] for row in table] == sorted(names)


class TestOptionsThatDoNotFit:
    @pytest.mark.parametrize(
        ("call", "text", "said"),
        (
            ("--attempt-col n --attempts-col n", "model,item,n,k\na,q,1,1\n", "name the same column 'n'"),
            ("--attempts 5", "model,item,score\na,q,1\n", "--attempts is for rates in a wide table"),
            ("--attempts 5", "model,item,n,k\na,q,1,1\n", "--attempts is for rates in a wide table"),
            ("--score-col score", "model,q,score\na,1,1\n", "no column of items"),
            ("--duplicates first", "model,item,n,k\na,q,1,1\n", "--duplicates is for attempts"),
            ("--duplicates first", "model,q\na,1\n", "--duplicates is for attempts"),
            ("--cluster-col g", "model,q,g\na,1,1\n", "a cluster is of items"),
        ),
    )
    def test_are_refused(self, sh: Shell, call: str, text: str, said: str) -> None:
        assert said in sh(f"bk-matrix {call}", stdin=text.encode(), rc=2).err

    def test_a_cluster_column_of_a_transposed_table(self, sh: Shell) -> None:
        text = b"item,passage,A,B\nx,p,1,0\ny,p,,1\n"
        got = rows(sh, "--cluster-col passage", text)
        assert {r["model"] for r in got} == {"A", "B"} and {r["cluster"] for r in got} == {"p"}


class TestAttemptsOfSeveralFiles:
    def test_numbers_beyond_the_mask_and_names(self, sh: Shell) -> None:
        for k, name in enumerate(("63", "64", "run-a", "run-b")):
            (sh.folder / f"{k}.csv").write_text(f"model,item,attempt,score\na,q,{name},1\na,q,{k},0\n")
        assert rows(sh, "?.csv") == [{"model": "a", "item": "q", "attempts": 8, "correct": 4}]
        (sh.folder / "9.csv").write_text("model,item,attempt,score\na,q,run-a,1\n")
        assert "attempt 'run-a', stand in 2.csv and in 9.csv" in sh("bk-matrix ?.csv", rc=2).err

    def test_equal_numbers_written_differently(self, sh: Shell) -> None:
        for other in ("01", "1.0", " 1"):
            text = f"model,item,attempt,score\na,q,1,1\na,q,{other},0\n"
            assert "attempt '1', stand twice" in error(sh, "", text)
            assert rows(sh, "--duplicates first", text.encode())[0] == {
                "model": "a", "item": "q", "attempts": 1, "correct": 1,
            }  # fmt: skip

    def test_hidden_and_linked_folders(self, sh: Shell) -> None:
        for folder in ("in/.hidden", "in/shown", "elsewhere"):
            (sh.folder / folder).mkdir(parents=True)
            (sh.folder / folder / "x.csv").write_text(f"model,item,score\n{folder[-4:]},q,1\n")
        (sh.folder / "in/link").symlink_to("../elsewhere")
        (sh.folder / "in/loop").symlink_to(".")
        assert [r["model"] for r in rows(sh, "in")] == ["here", "hown"]


class TestChoicesTogether:
    def test_a_dropped_attempt_stands_in_nobodys_way(self, sh: Shell) -> None:
        text = b"model,item,attempt,score\na,q,0,NA\na,q,0,1\n"
        for which in ("", "--duplicates first", "--duplicates last"):
            assert rows(sh, f"--unscored drop {which}", text)[0]["correct"] == 1
        (sh.folder / "1.csv").write_text("model,item,attempt,score\na,q,0,\n")
        (sh.folder / "2.csv").write_text("model,item,attempt,score\na,q,0,1\n")
        assert rows(sh, "--unscored drop 1.csv 2.csv")[0]["attempts"] == 1
        sources = json.loads(sh("bk-matrix --unscored drop 1.csv 2.csv -t json").out)["sources"]
        assert [s["unscored"] for s in sources] == [1, 0]

    def test_rows_are_named_by_their_line_whatever_was_chosen(self, sh: Shell) -> None:
        twice = "model,item,attempt,score\na,q,0,1\na,q,0,1\n"
        for which in ("first", "last"):
            assert "row 4: score ('7')" in error(sh, f"--duplicates {which}", twice + "b,q,0,7\n")
            assert "1 of 3 attempts have no score (row 4)" in error(sh, f"--duplicates {which}", twice + "b,q,0,\n")

    def test_unscored_is_for_attempts(self, sh: Shell) -> None:
        assert "--unscored is for attempts" in error(sh, "--unscored drop", "model,item,n,k\na,q,1,1\n")

    def test_a_clash_names_the_two_sources_that_clash(self, sh: Shell) -> None:
        for numbers in ((0, 1, 2, 1), (64, 65, 66, 65)):
            for k, n in enumerate(numbers):
                (sh.folder / f"p{k}.csv").write_text(f"model,item,attempt,score\na,q,{n},1\n")
            assert f"attempt '{numbers[1]}', stand in p1.csv and in p3.csv" in sh("bk-matrix p?.csv", rc=2).err
        (sh.folder / "t0.csv").write_text("model,item,attempt,score\na,q,run1,1\nb,q,run1,1\n")
        (sh.folder / "t1.csv").write_text("model,item,attempt,score\na,q,run2,1\n")
        (sh.folder / "t2.csv").write_text("model,item,n,k\nb,q,2,1\n")
        err = sh("bk-matrix t?.csv", rc=2).err
        assert "model 'b', item 'q' stand in t0.csv and in t2.csv (1 such pair)" in err


class TestTypedColumns:
    """Parquet and Arrow: a type that is no identifier, score or count is refused, as in JSON and CSV."""

    @pytest.mark.parametrize(
        ("columns", "said"),
        (
            ({"model": ["a"], "item": ["q"], "n": [500], "correct": [True]}, "holds bool values"),
            ({"model": ["a"], "item": ["q"], "score": [1], "attempt": [{"x": 1}]}, "column 'attempt' holds lists"),
            ({"model": ["a"], "item": [["q"]], "score": [1]}, "column 'item' holds lists or objects"),
            ({"model": ["a"], "q1": [[1]]}, "column 'q1' holds lists or objects"),
            ({"model": ["a"], "q1": [b"1"]}, "column 'q1' holds lists or objects"),
            ({"model": [1.5], "item": ["q"], "score": [1]}, "identifiers are text"),
        ),
    )
    def test_are_refused(self, sh: Shell, columns: dict[str, Any], said: str) -> None:
        pq.write_table(pa.table(columns), sh.folder / "x.parquet")
        for call in ("bk-matrix x.parquet", "bk-matrix < x.parquet"):
            assert said in sh(call, rc=2).err

    def test_a_page_index_is_no_damage_and_a_joint_is(self, sh: Shell) -> None:
        few = pa.table({"model": ["PAR1", "PAR1b"], "item": ["q", "q"], "score": [1, 0]})
        many = pa.table({"model": [f"m{k}" for k in range(5000)], "item": ["q"] * 5000, "score": [1] * 5000})
        for name, t in (("few", few), ("many", many)):
            pq.write_table(t, sh.folder / name, write_page_index=True)
            assert len(rows(sh, name)) == len(rows(sh, f"< {name}")) == t.num_rows
        for joint in ("few many", "many few"):
            sh(f"cat {joint} > both")
            assert "two files one after another" in sh("bk-matrix both", rc=2).err
            assert "two files one after another" in sh("bk-matrix < both", rc=2).err

    def test_mixed_identifiers_in_a_responses_table(self, sh: Shell) -> None:
        text = "".join(f'{{"model":"a","item":{j},"attempts":1,"correct":1}}\n' for j in ('"q"', "7", "8.5"))
        assert "row 3: item (8.5) is not an identifier" in sh("bk-rank", stdin=text.encode(), rc=2).err

    def test_a_field_named_like_a_table_is_no_table(self, sh: Shell) -> None:
        text = b'{"model":"a","item":"q","score":1,"responses":["x","y"]}\n'
        assert rows(sh, "", text)[0]["correct"] == 1

    def test_white_space_in_names_is_kept_in_rows_and_columns_alike(self, sh: Shell) -> None:
        assert rows(sh, "", b"model,q ,r\na,1,0\n") == rows(sh, "", b"item,a\nq ,1\nr,0\n")


class TestJoinedColumns:
    """Names that stand in several columns."""

    CALL = "--item-col set --item-col item --model-col model --model-col effort"
    WANT = b"\na/hi,x/007,1,1,\na/hi,y/007,1,0,\na/lo,x/007,1,0,\n"

    @pytest.mark.parametrize("ending", ("csv", "ndjson", "json", "parquet", "arrow"))
    def test_are_one_name(self, sh: Shell, ending: str) -> None:
        frame = pl.DataFrame(
            {"effort": ["hi", "hi", "lo"], "set": ["x", "y", "x"], "model": "a", "item": "007", "score": [1, 0, 0]}
        )
        write = {"csv": frame.write_csv, "ndjson": frame.write_ndjson, "json": frame.write_json,
                 "parquet": frame.write_parquet, "arrow": frame.write_ipc_stream}[ending]  # fmt: skip
        write(sh.folder / f"x.{ending}")
        assert sh(f"bk-matrix -t csv {self.CALL} x.{ending}").out.endswith(self.WANT)

    def test_counts_and_whole_numbers(self, sh: Shell) -> None:
        lines = "".join(json.dumps({"model": "a", "set": k, "item": "q", "n": 2, "k": k}) + "\n" for k in range(3))
        got = sh("bk-matrix -t csv --item-col set --item-col item", stdin=lines.encode()).out
        assert got.endswith(b"a,0/q,2,0,\na,1/q,2,1,\na,2/q,2,2,\n")

    @pytest.mark.parametrize(
        ("text", "said"),
        (
            ("model,set,item,score\na,,q,1\n", "row 2: the model or the item is missing"),
            ("model,item,score\na,q,1\n", "no column 'set' for --item-col (found: model, item, score)"),
            ("model,set,item,q1\na,x,q,1\n", "no score column"),
            ('{"model":"a","set":1.5,"item":"q","score":1}\n', "column 'set' holds floating-point numbers"),
            ('{"model":"a","set":[1],"item":"q","score":1}\n', "column 'set' holds lists or objects"),
        ),
    )
    def test_what_can_t_be_joined(self, sh: Shell, text: str, said: str) -> None:
        assert said in error(sh, "--item-col set --item-col item", text)

    def test_a_wide_table_has_one_column_of_names(self, sh: Shell) -> None:
        assert "--model-col: several are for" in error(sh, "--model-col a --model-col b", "a,b,q\nx,y,1\n")


class TestLeaveOut:
    WIDE = "model,average,q1,date,q2\na,.5,1,2025-01-01,0\nb,1,1,,1\n"

    @pytest.mark.parametrize("ending", ("csv", "json", "ndjson", "parquet"))
    def test_columns_of_a_wide_table(self, sh: Shell, ending: str) -> None:
        frame = pl.read_csv(self.WIDE.encode())
        (sh.folder / "w.csv").write_text(self.WIDE)
        {"csv": lambda x: None, "json": frame.write_json, "ndjson": frame.write_ndjson, "parquet": frame.write_parquet}[
            ending
        ](sh.folder / f"w.{ending}")
        got = sh(f"bk-matrix --leave-out average --leave-out=date w.{ending} --to csv").out.decode().splitlines()[1:]
        assert got == ["a,q1,1,1,", "a,q2,1,0,", "b,q1,1,1,", "b,q2,1,1,"]
        assert (
            "no column 'nosuch' for --leave-out (found: model, average, q1, date, q2)"
            in sh(f"bk-matrix --leave-out nosuch w.{ending}", rc=2).err
        )

    def test_one_of_two_scores(self, sh: Shell) -> None:
        (sh.folder / "x").write_text("model,item,score,resolved\na,q,0.5,1\n")
        assert "columns score and resolved could be the score" in sh("bk-matrix x", rc=2).err
        assert sh("bk-matrix --leave-out score x --to csv").out.endswith(b"a,q,1,1,\n")

    def test_counts_without_models_as_lines(self, sh: Shell) -> None:
        (sh.folder / "x").write_text(
            '{"item":"q","attempts":4,"correct":3,"n":1}\n{"item":"r","attempts":4,"correct":3,"n":1}\n'
        )
        assert sh("bk-matrix --leave-out n --model a x --to csv").out.endswith(b"a,q,4,3,\na,r,4,3,\n")

    def test_files_of_tools_have_no_such_columns(self, sh: Shell) -> None:
        (sh.folder / "x").write_text('[{"task_id":0,"reward":1.0,"trial":0}]')
        assert "--leave-out: of no use for tau-bench" in sh("bk-matrix --leave-out a x", rc=2).err


class TestWhatCounts:
    """Rows that do not count stand in nobody's way."""

    def test_dropped_attempts_of_two_files(self, sh: Shell) -> None:
        for one, two in ((10, 11), (100, 101)):
            (sh.folder / "a.csv").write_text(f"model,item,attempt,score\nm,i,{one},1\nm,i,{two},\n")
            (sh.folder / "b.csv").write_text(f"model,item,attempt,score\nm,i,{two},1\n")
            assert sh("bk-matrix --unscored drop a.csv b.csv --to csv").out.endswith(b"m,i,2,2,\n")
            sh("bk-matrix --unscored wrong a.csv b.csv", rc=2)

    def test_a_later_row_without_score(self, sh: Shell) -> None:
        (sh.folder / "a.csv").write_text("model,item,attempt,score\nm,i,1,1\nm,i,1,\n")
        doc = json.loads(sh("bk-matrix --duplicates first a.csv --to json").out)
        assert doc["responses"][0]["attempts"] == 1 and doc["sources"][0]["unscored"] == 0
        assert "(row 3)" in sh("bk-matrix --duplicates last a.csv", rc=2).err

    def test_two_models_of_one_file_that_get_one_name(self, sh: Shell) -> None:
        (sh.folder / "map.csv").write_text("model,name\na,x\nb,x\n")
        (sh.folder / "a.csv").write_text("model,item,score\na,i,1\nb,i,0\n")
        assert "model 'x', item 'i' stand twice in a.csv" in sh("bk-matrix --model-map map.csv a.csv", rc=2).err
        assert sh("bk-matrix --model-map map.csv --merge sum a.csv --to csv").out.endswith(b"x,i,2,1,\n")
        for attempts, rc in (("1,1", 2), ("1,2", 0), ("u,u", 2), ("u,v", 0)):
            one, two = attempts.split(",")
            (sh.folder / "a.csv").write_text(f"model,item,attempt,score\na,i,{one},1\nb,i,{two},0\n")
            sh("bk-matrix --model-map map.csv a.csv", rc=rc)

    def test_one_task_with_its_name(self, sh: Shell) -> None:
        for task in ("retail", "airline"):
            run = {"info": {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": task}}, "tasks": [],
                   "simulations": [{"id": "1", "task_id": "0", "trial": 0, "termination_reason": "agent_stop",
                                    "reward_info": {"reward": 1.0}}]}  # fmt: skip
            (sh.folder / f"{task}.json").write_text(json.dumps(run))
        for task in ("retail", "airline"):
            sh(f"bk-matrix --task {task} --prefix-task retail.json airline.json -o {task}.arrow")
        got = sh("cat retail.arrow airline.arrow | bk-matrix --merge sum --to csv").out
        assert got.splitlines()[1:] == [b"m,airline/0,1,1,", b"m,retail/0,1,1,"]

    @pytest.mark.parametrize("column", ([1, 0], [True, False], [1.0, 0.0]))
    def test_dictionaries_of_numbers(self, sh: Shell, column: list[float]) -> None:
        table = pa.table({"model": ["a", "a"], "item": pa.array([7, 8]).dictionary_encode(),
                          "score": pa.array(column).dictionary_encode()})  # fmt: skip
        with pa.OSFile(str(sh.folder / "a.arrow"), "wb") as f, pa.ipc.new_stream(f, table.schema) as out:
            out.write_table(table)
        assert sh("bk-matrix a.arrow --to csv").out.splitlines()[1:] == [b"a,7,1,1,", b"a,8,1,0,"]

    def test_a_status_that_is_no_unicode(self, sh: Shell) -> None:
        log = {"version": 2, "status": "\ud800", "eval": {"model": "m", "dataset": {"samples": 2}}, "plan": {},
               "samples": [{"id": 1, "epoch": 1, "scores": {"s": {"value": "C"}}}]}  # fmt: skip
        (sh.folder / "a.json").write_text(json.dumps(log))
        for to in ("json", "arrow", "csv"):
            assert "text that is no Unicode" in sh(f"bk-matrix a.json --to {to}", rc=2).err
