"""bk-fill through a shell: what all commands promise, for each of its subcommands, and what it alone does."""

from __future__ import annotations

import hashlib
import io
import json
import re
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import SUBCOMMANDS, Shell
from test_cli import terminal
from test_contract import strict
from test_documents import plain
from test_man import MAN, blocks, help_options, keys, objects, section
from test_man import plain as spoken

from benchkit.fill import ids
from benchkit.tables import CANDIDATES, CHOSEN, PARAMETERS, REQUESTS

SPEC = {"bk-fill requests": REQUESTS, "bk-fill collect": CANDIDATES, "bk-fill choose": CHOSEN}
CALLS = {
    "bk-fill requests": "bk-fill requests --items items.jsonl --model m fit.arrow",
    "bk-fill collect": "bk-fill collect --items items.jsonl replies.jsonl",
    "bk-fill choose": "bk-fill choose --candidates candidates.jsonl anchored.arrow",
}
READS_FIT = ("bk-fill requests", "bk-fill choose")

called = pytest.mark.parametrize("command", SUBCOMMANDS)


def content(k: int, answer: object = 7) -> str:
    return json.dumps({"question": f"New question {k}?", "answer": answer})


def reply(custom_id: str, text: str | None) -> str:
    response = {"status_code": 200, "body": {"choices": [{"message": {"content": text}}]}}
    return json.dumps({"id": "x", "custom_id": custom_id, "response": response, "error": None}) + "\n"


def parameters(new: dict[str, float], drawn: bool = True) -> pa.Table:
    """Items a, b, c at 0, 3 and 10 logits, new ones beside them, and two models."""
    rows: list[dict[str, Any]] = []
    for kind, origin, places in (("item", "fit", {"a": 0, "b": 3, "c": 10}), ("item", "anchored", new),
                                 ("model", "fit", {"m": 2, "n": 5})):  # fmt: skip
        for name, b in places.items():
            draws = [b + d * (len(name) + len(kind)) / 30 for d in (-1, 0, 1, 0.5)] if drawn else None
            rows.append({"kind": kind, "id": name, "mean": b, "sd": 0.5, "lower": b - 1, "upper": b + 1,
                         "boundary": False, "origin": origin, "draws": draws})  # fmt: skip
    schema = PARAMETERS.schema()
    columns = [pa.array([r.get(f.name) for r in rows], f.type) for f in schema]
    return pa.table(columns, schema=schema.with_metadata({"benchkit.table": PARAMETERS.tag}))


def write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as f, pa.ipc.new_stream(f, table.schema) as writer:
        writer.write_table(table)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fill")
    write(folder / "fit.arrow", parameters({}))
    rows = [{"id": i, "question": f"Question {i}?", "answer": k, "tags": ["x"]} for k, i in enumerate("abc")]
    (folder / "items.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    sh = Shell(folder)
    names = [json.loads(r)["custom_id"] for r in sh(f"{CALLS['bk-fill requests']} --per-gap 2").out.splitlines()]
    assert len(names) == 4
    texts = [content(0), content(1), "no", content(3)]
    (folder / "replies.jsonl").write_text("".join(map(reply, names, texts)))
    sh(f"{CALLS['bk-fill collect']} -q -o candidates.jsonl")
    found = [json.loads(line)["id"] for line in (folder / "candidates.jsonl").read_text().splitlines()]
    write(folder / "anchored.arrow", parameters(dict(zip(found, (6.2, 7, 1.4), strict=True))))
    return folder


@pytest.fixture
def at(inputs: Path, sh: Shell) -> Shell:
    """A folder of its own with the inputs."""
    for path in inputs.iterdir():
        (sh.folder / path.name).write_bytes(path.read_bytes())
    return sh


class TestFront:
    def test_help_and_version(self, sh: Shell) -> None:
        for module in ("numpy", "pyarrow", "orjson"):
            (sh.folder / f"{module}.py").write_text("raise SystemExit('imported too early')\n")
        env = {"PYTHONPATH": str(sh.folder)}
        text = sh("bk-fill --help", env=env).out.decode()
        assert text == sh("bk-fill -h", env=env).out.decode() and max(map(len, text.splitlines())) <= 79
        assert re.findall(r"^  (\w+)  +\w", text, re.M) == ["requests", "collect", "choose"]
        assert sh("bk-fill --version", env=env).out == sh("bk-fill -V", env=env).out
        assert sh("bk-fill -V").out.startswith(b"bk-fill (benchkit) ")
        assert "cannot write" in sh("bk-fill --help > /dev/full", rc=2).err

    @pytest.mark.parametrize("call", ("", "request", "--items x requests", "-q", "''", "fit.arrow"))
    def test_a_wrong_call_names_the_subcommands(self, call: str, sh: Shell) -> None:
        done = sh(f"bk-fill {call}", rc=2)
        assert done.out == b"" and re.fullmatch("bk-fill: .*: requests, collect, choose .*\n", done.err)

    @pytest.mark.parametrize("call", ("requests fit.arrow", "collect replies.jsonl"))
    def test_items_are_needed(self, call: str, at: Shell) -> None:
        name = call.split()[0]
        err = at(f"bk-fill {call}", rc=2).err
        assert err == f"bk-fill {name}: --items ITEMS is needed (see bk-fill {name} --help)\n"


class TestDamagedInput:
    @pytest.mark.parametrize("command", READS_FIT)
    def test_every_way_to_break_a_fit(self, command: str, at: Shell, made: Path) -> None:
        call = CALLS[command].rsplit(" ", 1)[0]
        data = (at.folder / CALLS[command].split()[-1]).read_bytes()
        responses = (made / "responses.arrow").read_bytes()
        (at.folder / "out").mkdir()
        for broken in (b"", data[:-8], data[:100], data[: len(data) // 2], data[:-1], data + b"junk", b"\n \n", b"\0",
                       responses):  # fmt: skip
            done = at(f"{call} -o out/never.json", stdin=broken, rc=2)
            assert done.out == b"" and not list((at.folder / "out").iterdir())
            assert done.err.startswith(f"{command}: <stdin>: ") and done.err.count("\n") == 1, done.err
            if not broken:
                assert "did the command before it fail?" in done.err

    def test_every_way_to_break_replies(self, at: Shell) -> None:
        good = (at.folder / "replies.jsonl").read_bytes()
        call = "bk-fill collect --items items.jsonl -q -o never.jsonl --rejected never2.jsonl"
        for broken, said in (
            (b"", "empty input: did the command before it fail?"),
            (good[:-5], "line 4: the last line is cut"),
            (good[:-5] + b"\n", "line 4: damaged JSON"),
            (good.replace(b'"custom_id"', b"custom_id", 1), "line 1: damaged JSON"),
            (b"[]\n", "line 1: not a JSON object"),
            (good + b"{}\n", "line 5: no custom_id"),
        ):
            done = at(call, stdin=broken, rc=2)
            assert done.out == b"" and not list(at.folder.glob("never*"))
            assert done.err.startswith(f"bk-fill collect: <stdin>: {said}") and done.err.count("\n") == 1
        at("bk-fill requests --items items.jsonl fit.arrow -o requests.jsonl")
        assert "requests.jsonl: line 1: a request, not a reply" in at(f"{call} requests.jsonl", rc=2).err
        assert "broken.jsonl: line 4: the last line is cut" in at(
            f"head -c -9 replies.jsonl > broken.jsonl; {call} replies.jsonl broken.jsonl", rc=2).err  # fmt: skip

    @called
    def test_no_room_for_the_output(self, command: str, at: Shell) -> None:
        assert "no space left" in at(f"{CALLS[command]} > /dev/full", rc=2).err
        assert "no space left" in at(f"{CALLS[command]} -o /dev/full", rc=2).err

    @called
    def test_an_old_output_survives_a_failure(self, command: str, at: Shell) -> None:
        (at.folder / "out").write_text("old")
        at(f"head -c 200 {CALLS[command].split()[-1]} | {CALLS[command].rsplit(' ', 1)[0]} -o out", rc=2)
        assert (at.folder / "out").read_text() == "old" and not list(at.folder.glob(".bk-*"))

    @called
    def test_a_reader_that_leaves(self, command: str, at: Shell) -> None:
        """More than a pipe holds, to a reader that takes one byte."""
        if command == "bk-fill requests":
            call = f"{CALLS[command]} --per-gap 100"
        elif command == "bk-fill collect":
            texts = (reply(ids.custom_id(1, 1, k, 0.5, 1, "a"), content(k)) for k in range(1500))
            (at.folder / "many.jsonl").write_text("".join(texts))
            call = "bk-fill collect --items items.jsonl many.jsonl --rejected no.jsonl"
        else:
            write(at.folder / "many.arrow", parameters({f"new{k}": 3 + k / 900 for k in range(1000)}))
            call = "bk-fill choose -q many.arrow"
        assert len(at(call.replace("--rejected no.jsonl", "")).out) > 100_000
        assert at(f"{call} | head -c 1 > taken", rc=141).err == ""
        assert not (at.folder / "no.jsonl").exists() and not list(at.folder.glob(".bk-*"))


class TestFormats:
    @called
    def test_the_same_rows_in_every_format(self, command: str, at: Shell) -> None:
        spec, call = SPEC[command], f"{CALLS[command]} -q"
        doc = strict(at(f"{call} -t json").out)
        arrow = pa.ipc.open_stream(at(f"{call} -t arrow").out).read_all()
        assert arrow.schema.equals(spec.schema()) and arrow.schema.metadata[b"benchkit.table"] == spec.tag.encode()
        assert pq.read_table(io.BytesIO(at(f"{call} -t parquet").out)).equals(arrow)
        lines = [strict(line) for line in at(f"{call} -t ndjson").out.splitlines()]
        csv = pa.csv.read_csv(io.BytesIO(at(f"{call} -t csv").out), parse_options=pa.csv.ParseOptions(
            newlines_in_values=True))  # fmt: skip
        assert csv.column_names == [c.name for c in spec.columns]
        assert at(f"{call} -t tsv").out.split(b"\n")[0] == "\t".join(csv.column_names).encode()
        assert lines == doc[spec.rows] and len(lines) == arrow.num_rows == csv.num_rows > 1
        for row, cells in zip(lines, arrow.to_pylist(), strict=True):
            for name, value in cells.items():
                assert json.loads(value) == row[name] if name == "body" else value == row[name]
        assert at(f"{call} -t table").out

    @called
    def test_a_document_ends_with_warnings_and_history(self, command: str, at: Shell) -> None:
        doc = strict(at(f"{CALLS[command]} -t json").out)
        assert list(doc)[-2:] == ["warnings", "history"]
        last = doc["history"][-1]
        assert list(last) == ["cmd", "argv", "version", "seed"] and last["cmd"] == "bk-fill"
        assert last["argv"][0] == command.split()[1] and not {"items.jsonl", "candidates.jsonl"} & set(last["argv"])
        bare = strict(at(f"{CALLS[command]} -t json --no-provenance").out)
        assert bare["history"] == [] and bare | {"history": doc["history"]} == doc

    @called
    def test_equal_input_gives_equal_bytes_and_the_ending_names_the_format(self, command: str, at: Shell) -> None:
        for to in ("arrow", "parquet", "json", "csv", "ndjson"):
            at(f"{CALLS[command]} -q -o out.{to}")
            a, b = at(f"{CALLS[command]} -q -t {to}").out, (at.folder / f"out.{to}").read_bytes()
            assert hashlib.sha256(a).digest() == hashlib.sha256(b).digest(), to
        assert "not compressed" in at(f"{CALLS[command]} -o out.csv.gz", rc=2).err

    def test_lines_by_default_and_a_document_of_the_choice(self, at: Shell) -> None:
        for command, to in zip(SUBCOMMANDS, ("ndjson", "ndjson", "json"), strict=True):
            assert at(f"{CALLS[command]} -q").out == at(f"{CALLS[command]} -q -t {to}").out

    @called
    def test_input_by_stdin_and_packed(self, command: str, at: Shell) -> None:
        call, file = CALLS[command].rsplit(" ", 1)
        by_name = at(f"{CALLS[command]} -q").out
        for feed in (f"cat {file} |", f"gzip -c {file} |"):
            assert at(f"{feed} {call} -q").out == at(f"{feed} {call} -q -").out == by_name
        assert at(f"{call} -q <(cat {file})").out == by_name

    @called
    def test_a_table_that_fits_the_terminal(self, command: str, at: Shell) -> None:
        rc, out = terminal(f"{CALLS[command]} -q", at.folder, columns=80)
        lines = out.replace("\r", "").splitlines()
        assert rc == 0 and "{" not in out and len(lines) > 3 and max(map(len, lines)) <= 80, out

    @called
    def test_documents_are_plain_and_each_null_has_a_reason(self, command: str, at: Shell) -> None:
        plain(strict(at(f"{CALLS[command]} -q -t json --no-provenance").out))


class TestRequests:
    CALL = "bk-fill requests --items items.jsonl fit.arrow"

    def test_a_line_of_the_batch_format(self, at: Shell) -> None:
        rows = [strict(line) for line in at(f"{self.CALL} --model m --temperature .5").out.splitlines()]
        assert [list(r) for r in rows] == [["custom_id", "method", "url", "body"]] * 2
        assert [list(r["body"]) for r in rows] == [["model", "messages", "temperature"]] * 2
        key = ids.parse(rows[0]["custom_id"])
        assert key is not None and (key.target, key.target_logit, key.parent) == (0.65, 6.5, ids.digest("b"))
        text = rows[0]["body"]["messages"][1]["content"]
        assert "Question b?" in text and "Target difficulty: 0.650 (solved: 10%)" in text and "tags" not in text
        assert all("model" not in strict(line)["body"] for line in at(self.CALL).out.splitlines())

    def test_more_candidates_leave_the_first_requests_as_they_are(self, at: Shell) -> None:
        few, many = (at(f"{self.CALL} --per-gap {n}").out.splitlines() for n in (1, 3))
        assert set(few) < set(many) and len(many) == 3 * len(few)
        other = at(f"{self.CALL} --round 2").out.splitlines()
        assert not {strict(a)["custom_id"] for a in few} & {strict(b)["custom_id"] for b in other}

    def test_without_what_was_answered(self, at: Shell) -> None:
        call = f"{self.CALL} --per-gap 2"
        names = [strict(line)["custom_id"] for line in at(call).out.splitlines()]
        (at.folder / "one").write_text(reply(names[2], "nonsense is an answer too"))
        (at.folder / "two").write_text(reply(names[0], None) + reply(names[1], content(1))[:-9])
        err = at(f"{call} --without one --without two", rc=2).err
        assert err == "bk-fill requests: two: line 2: the last line is cut (--allow-cut passes it over)\n"
        done = at(f"{call} --without one --without two --allow-cut")
        assert [strict(line)["custom_id"] for line in done.out.splitlines()] == [names[0], names[1], names[3]]
        assert done.err == "bk-fill requests: warning: two: line 2 is cut, and passed over\n"
        done = at(f"{call} --without replies.jsonl -t json")
        assert strict(done.out)["requests"] == [] and strict(done.out)["answered"] == 4 and done.err == ""
        assert at(f"{call} --without replies.jsonl").out == b""
        (at.folder / "nothing").touch()
        assert "nothing: empty file" in at(f"{call} --without nothing", rc=2).err
        assert len(at(f"{call} --without nothing --allow-cut").out.splitlines()) == 4
        assert "none of the replies belongs to these requests" in at(f"{call} --round 2 --without replies.jsonl").err

    def test_only_wide_gaps(self, at: Shell) -> None:
        assert len(at(f"{self.CALL} --wider-than .3").out.splitlines()) == 1
        assert at(f"{self.CALL} --wider-than .7").out == b""

    def test_memory(self, at: Shell) -> None:
        """A calibrated candidate splits the gap; with its text it is a parent."""
        call = "bk-fill requests --top 1 anchored.arrow --items"
        at("cat items.jsonl candidates.jsonl > all.jsonl")
        with_, without = (strict(at(f"{call} {name}").out) for name in ("all.jsonl", "items.jsonl"))
        a, b = (ids.parse(r["custom_id"]) for r in (with_, without))
        assert a is not None and b is not None and a.target == b.target == 0.46  # between 3 and 6.2 of 10
        assert a.parent == b.parent == ids.digest("b")
        assert "New question 0?" in with_["body"]["messages"][1]["content"]
        assert "New question" not in without["body"]["messages"][1]["content"]

    @pytest.mark.parametrize(
        ("text", "said"),
        (
            ('{"id": "a", "question": "x"}\n', "row 1: no answer: items have id, question and answer"),
            ('{"id": "a", "question": " ", "answer": 1}\n', "row 1: question is empty"),
            ('{"id": "a", "question": "x", "answer": true}\n', "row 1: answer is neither text nor a number"),
            ('{"id": "a", "question": "x", "answer": 1e300}\n', "row 1: answer is neither text nor a number"),
            ('{"id": "a", "question": "x", "answer": 1}\n' * 2, "rows 1 and 2: item 'a' stands twice"),
            ('{"id": "a", "question": "x", "answer": 1}\n{"id"\n', "line 2: damaged or cut JSON"),
            ("id,question\na,x\n", "row 2: no answer"),
            ("[]", "no items"),
            ("", "empty file"),
        ),
    )
    def test_items_that_are_wrong(self, text: str, said: str, at: Shell) -> None:
        (at.folder / "wrong").write_text(text)
        for call in ("requests --items wrong fit.arrow", "collect --items wrong replies.jsonl"):
            assert f": wrong: {said}" in at(f"bk-fill {call}", rc=2).err

    def test_items_that_are_missing(self, at: Shell) -> None:
        at("head -2 items.jsonl > few.jsonl")
        err = at("bk-fill requests --items few.jsonl fit.arrow", rc=2).err
        assert err == "bk-fill requests: --items: item 'c' is missing, which the fit has\n"
        assert at("bk-fill requests --items few.jsonl fit.arrow --references 0 --parents 1").out  # not needed

    def test_items_in_every_format(self, at: Shell) -> None:
        want = at(self.CALL).out
        rows = [json.loads(line) for line in (at.folder / "items.jsonl").read_text().splitlines()]
        (at.folder / "i.json").write_text(json.dumps(rows))
        (at.folder / "i.csv").write_text(
            "answer,id,question\n" + "".join(f"{r['answer']},{r['id']},{r['question']}\n" for r in rows)
        )
        pq.write_table(pa.Table.from_pylist(rows), at.folder / "i.parquet")
        for name in ("i.json", "i.csv", "i.parquet", "<(gzip -c i.csv)"):
            assert at(f"bk-fill requests fit.arrow --items {name}").out == want, name
        assert at("bk-fill requests fit.arrow --items - < items.jsonl").out == want
        assert "can't both be standard input" in at("bk-fill requests --items - < items.jsonl", rc=2).err

    @pytest.mark.parametrize(
        ("rows", "said"),
        (
            ("item,a,1,1,0,2\n", "the gaps are undefined: one item"),
            ("item,a,1,1,0,2\nitem,b,1,1,0,2\n", "the gaps are undefined: all difficulties are equal"),
            ("model,a,1,1,0,2\n", "no row of kind 'item'"),
            ("item,a,nan,1,0,2\n", "row 2: mean"),
            ("item,a,1,1,0,2\nitem,a,2,1,0,2\n", "rows 2 and 3: item 'a' stands twice"),
        ),
    )
    def test_fits_that_have_no_gaps(self, rows: str, said: str, at: Shell) -> None:
        text = f"kind,id,mean,sd,lower,upper\n{rows}".encode()
        done = at("bk-fill requests --items items.jsonl", stdin=text, rc=2)
        assert done.out == b"" and said in done.err and done.err.count("\n") == 1


class TestCollect:
    CALL = "bk-fill collect --items items.jsonl"

    def test_candidates_and_refusals_from_several_files(self, at: Shell) -> None:
        at("head -2 replies.jsonl > 1; tail -3 replies.jsonl > 2")
        done = at(f"{self.CALL} 2 1 --rejected why.jsonl -o got.jsonl")
        assert (at.folder / "got.jsonl").read_bytes() == (at.folder / "candidates.jsonl").read_bytes()
        why = [strict(line) for line in (at.folder / "why.jsonl").read_text().splitlines()]
        assert sorted(r["reason"] for r in why) == [
            "a second reply to the same request: the first one counts", "no JSON object"]  # fmt: skip
        assert done.err.startswith("bk-fill collect: warning: 2 of 5 replies refused: ")
        doc = strict(at(f"{self.CALL} 1 2 -t json -q").out)
        assert doc["rejected"] == why and doc["replies"] == 5 and len(doc["warnings"]) == 1

    def test_where_all_are_refused(self, at: Shell) -> None:
        done = at(f"{self.CALL} --rejected why.jsonl", stdin=reply("x", "y").encode())
        assert done.out == b"" and (at.folder / "why.jsonl").read_text().count("\n") == 1

    def test_both_outputs_or_none(self, at: Shell) -> None:
        (at.folder / "why.jsonl").write_text("old")
        at(f"{self.CALL} replies.jsonl --rejected why.jsonl > /dev/full", rc=2)
        assert (at.folder / "why.jsonl").read_text() == "old"
        at(f"{self.CALL} replies.jsonl --rejected /dev/full -o got", rc=2)
        assert not (at.folder / "got").exists() and not list(at.folder.glob(".bk-*"))
        for wrong in ("--rejected -", "--rejected x -o x", "--rejected nowhere/x", "--rejected ."):
            assert at(f"{self.CALL} replies.jsonl {wrong}", rc=2).err.count("\n") == 1
        assert at(f"{self.CALL} replies.jsonl -q --rejected >(cat > seen); sleep .2").out
        assert (at.folder / "seen").read_text().count("\n") == 1

    def test_a_cut_last_line(self, at: Shell) -> None:
        at("head -c -9 replies.jsonl > cut; touch none")
        done = at(f"{self.CALL} --allow-cut cut none")
        assert "cut: line 4 is cut, and passed over" in done.err and "none: empty, and passed over" in done.err
        assert len(done.out.splitlines()) == 2

    def test_votes(self, at: Shell) -> None:
        names = [strict(line)["custom_id"] for line in (at.folder / "candidates.jsonl").read_text().splitlines()]
        (at.folder / "v1").write_text(reply(names[0], '{"valid": true}') + reply(names[1], "no"))
        (at.folder / "v2").write_text(reply(names[0] + "-b", "Yes.") + reply(names[1] + "-b", "yes"))
        call = f"{self.CALL} replies.jsonl --votes v1 --votes v2"
        assert [strict(line)["custom_id"] for line in at(call, rc=0).out.splitlines()] == names[:1]
        assert at(f"{call} --min-votes 3 -q").out == b""
        assert "--min-votes needs --votes" in at(f"{self.CALL} replies.jsonl --min-votes 3", rc=2).err

    def test_replies_are_lines(self, at: Shell) -> None:
        assert "replies are lines of JSON" in at(f"{self.CALL} --from csv replies.jsonl", rc=2).err
        assert at(f"{self.CALL} --from ndjson -q replies.jsonl").out


class TestChoose:
    CALL = "bk-fill choose anchored.arrow"

    def test_rows_and_what_stops_it(self, at: Shell) -> None:
        doc = strict(at(f"{self.CALL} --candidates candidates.jsonl -q").out)
        assert [c["difficulty"] for c in doc["chosen"]] == pytest.approx([0.62, 0.7, 0.14])
        assert [c["max_gap"] for c in doc["chosen"]] == pytest.approx([0.38, 0.32, 0.32])
        first = doc["chosen"][0]
        assert (first["gap"], first["lower"], first["upper"], first["ancestor"]) == (1, 0.3, 1, "b")
        assert doc["before"]["max_gap"] == pytest.approx(0.7) and doc["before"]["items"] == 3
        assert doc["after"]["intervals"]["max_gap"]["posterior_median"] > 0 and doc["stopped"] == "no-candidate"
        assert "look better than they are; the posterior median of max_gap is" in doc["warnings"][-1]
        assert strict(at(f"{self.CALL} -q --budget 1").out)["stopped"] == "budget"

    def test_the_threshold(self, at: Shell) -> None:
        done = at(f"{self.CALL} --max-gap .4 -q")
        assert strict(done.out)["stopped"] == "max-gap" and done.err == ""
        done = at(f"{self.CALL} --max-gap .1", rc=1)
        assert strict(done.out)["chosen"] and "--max-gap 0.1 does not hold: max_gap is " in done.err
        assert at(f"{self.CALL} --max-gap .1 -q -o got.json", rc=1).err == "" and (at.folder / "got.json").exists()

    def test_the_original(self, at: Shell) -> None:
        assert at(f"{self.CALL} -q --original fit.arrow").out == at(f"{self.CALL} -q --original fit.arrow").out
        a, b = (strict(at(f"{self.CALL} -q {o}").out) for o in ("", "--original fit.arrow"))
        assert a["chosen"] == b["chosen"]
        name = strict((at.folder / "candidates.jsonl").read_bytes().splitlines()[0])["id"]
        write(at.folder / "second.arrow", parameters({name: 6.2}))
        doc = strict(at(f"{self.CALL} -q --original second.arrow").out)
        assert doc["items"] == 4 and doc["candidates"] == 2 and name not in [c["item"] for c in doc["chosen"]]

    @pytest.mark.parametrize(
        ("edit", "said"),
        (
            ("s/^item,b,3,/item,b,3.5,/", "not anchored to other.csv: item 'b' is at another difficulty there"),
            ("s/^item,b,/item,d,/", "item 'd' is missing, which other.csv has"),
            ("/^item,b,/d", "item 'b' is neither in other.csv nor anchored"),
        ),
    )
    def test_an_original_of_another_fit(self, edit: str, said: str, at: Shell) -> None:
        rows = "".join(f"item,{i},{b},1,-9,19\n" for i, b in (("a", 0), ("b", 3), ("c", 10)))
        (at.folder / "whole.csv").write_text("kind,id,mean,sd,lower,upper\n" + rows)
        at(f"sed '{edit}' whole.csv > other.csv")
        err = at(f"{self.CALL} --original other.csv", rc=2).err
        assert err.startswith("bk-fill choose: anchored.arrow: ") and said in err and err.count("\n") == 1

    def test_candidates_that_have_no_results_or_no_row(self, at: Shell) -> None:
        row = {"id": "lost", "question": "x", "answer": "y"}
        (at.folder / "more.jsonl").write_text(json.dumps(row) + "\n")
        (at.folder / "empty.jsonl").touch()
        doc = strict(at(f"{self.CALL} -q --candidates more.jsonl --candidates empty.jsonl").out)
        assert {"item": "lost", "difficulty": None, "difficulty_reason": "not in the fit: it has no results",
                "reason": "not in the fit: it has no results"} in doc["not_chosen"]  # fmt: skip
        assert doc["chosen"][0]["ancestor"] is None and doc["chosen"][0]["ancestor_reason"]
        err = at(f"{self.CALL} --candidates more.jsonl --candidates more.jsonl", rc=2).err
        assert "candidate 'lost' stands in another of these files too" in err
        (at.folder / "twice.jsonl").write_text((json.dumps(row) + "\n") * 2)
        assert "twice.jsonl: rows 1 and 2: candidate 'lost' stands twice" in at(
            f"{self.CALL} --candidates twice.jsonl", rc=2).err  # fmt: skip

    @pytest.mark.parametrize(
        ("rows", "rc"), (("item,a,1,1,0,2,fit\n", 1), ("item,a,1,1,0,2,fit\nitem,b,1,1,0,2,fit\n", 1))
    )
    def test_an_undefined_scale(self, rows: str, rc: int, at: Shell) -> None:
        text = f"kind,id,mean,sd,lower,upper,origin\n{rows}item,x,2,1,0,3,anchored\n".encode()
        done = at("bk-fill choose --max-gap .5 -q", stdin=text, rc=rc)
        doc = strict(done.out)
        del doc["history"]
        plain(doc)
        assert doc["chosen"] == [] and doc["stopped"] is None and doc["before"]["max_gap"] is None
        assert "max_gap is undefined" in at("bk-fill choose --max-gap .5", stdin=text, rc=1).err
        assert b"undefined" in at("bk-fill choose -q -t table", stdin=text).out

    def test_nothing_to_choose_from(self, at: Shell) -> None:
        done = at("bk-fill choose fit.arrow")
        assert strict(done.out)["chosen"] == [] and "there is no candidate" in done.err
        text = b"kind,id,mean,sd,lower,upper,origin\nitem,x,2,1,0,3,anchored\nitem,y,1,1,0,3,anchored\n"
        assert "all items are anchored: name the fit" in at("bk-fill choose", stdin=text, rc=2).err

    def test_a_gap_that_ends_at_a_boundary_item(self, at: Shell) -> None:
        text = (b"kind,id,mean,sd,lower,upper,boundary,origin\nitem,a,0,1,-2,2,false,fit\nitem,b,9,1,7,11,true,fit\n"
                b"item,x,9.1,1,7,11,true,anchored\nitem,y,8.9,1,7,11,true,anchored\n")  # fmt: skip
        done = at("bk-fill choose", stdin=text)
        assert strict(done.out)["chosen"] == [] and "ends at boundary item 'b'" in done.err


class TestPage:
    """bk-fill(1) and benchkit(5) against the program; other pages are tested by test_man."""

    def options(self, *titles: str) -> dict[str, tuple[str, str]]:
        text, out = section(MAN / "bk-fill.1", "OPTIONS"), {}
        for title in titles:
            part = re.search(rf"^\.Ss {title}\n(.*?)(?=^\.Ss |\Z)", text, flags=re.M | re.S)
            assert part, title
            for head, body in re.findall(r"^\.It (Fl .*)\n((?:(?!\.It |\.El).*\n)*)", part[1], flags=re.M):
                for name in head.split(" , "):
                    flag, _, argument = name.removeprefix("Fl ").partition(" Ar ")
                    out[f"-{flag}"] = (argument, body)
        return out

    @called
    def test_options_their_order_and_defaults(self, command: str, sh: Shell) -> None:
        helped = help_options(sh(f"{command} --help").out.decode())
        described = self.options(command, "Input and output", "About")
        assert {k: v[0] for k, v in helped.items()} == {k: v[0] for k, v in described.items()}
        assert list(helped) == list(described)
        compared = 0
        for name, (_, text) in helped.items():
            stated = re.search(r"\(default:? ([^;)]+)|([\w-]+) \(default\)", text)
            if stated and stated[1] != "the items that are not anchored" and name not in ("-t", "--to"):
                value = stated[1] or stated[2]
                if described[name][1].startswith("As above.") or name != "--normalize":
                    said = spoken(described[name][1])
                    assert re.search(rf"default is {re.escape(value)}(?=[.,:;]?(\s|$))", said), (name, value, said)
                compared += 1
        assert compared

    @called
    def test_keys(self, command: str, at: Shell) -> None:
        output = section(MAN / "bk-fill.1", "OUTPUT")
        marked = set(re.findall(r"\w+", " ".join(re.findall(r"^\.(?:It )?Va (.*)$", output, flags=re.M))))
        more = {"bk-fill requests": "--temperature 1", "bk-fill choose": "--budget 1"}.get(command, "")
        call = f"{CALLS[command]} -q -t json {more}"
        document = {k: v for k, v in strict(at(call).out).items() if k != "history"}
        found = set(keys(document))
        assert {k for k in found if not k.endswith("_reason")} <= marked
        name, sub = command.split()
        text = (MAN / "benchkit.5").read_text()
        part = re.search(rf"^\.It Xr {name} 1 Cm {sub}\n\.Bd .*\n((?:(?!\.Ed).*\n)*)", text, flags=re.M)
        assert part
        for one in objects(document):
            rest = iter(re.findall(r"\w+", part[1]))
            wanted = [k for k in one if not k.endswith("_reason")]
            assert all(k in rest for k in wanted), wanted
        assert set(re.findall(r"\w+", part[1])) - found <= {"history"}

    def test_the_custom_id_that_is_explained(self) -> None:
        shown = next(b[0] for b in blocks(MAN / "bk-fill.1") if b[0].startswith("r1-"))
        assert ids.parse(shown) == (1, 2, 1, 0.708, 4.191, ids.digest("q"))


def test_a_signal_removes_the_second_output(at: Shell) -> None:
    """While the candidates wait for a reader that doesn't read, nothing stands under the name of the refusals."""
    texts = (reply(ids.custom_id(1, 1, k, 0.5, 1, "a"), content(k)) for k in range(1500))
    (at.folder / "many.jsonl").write_text("".join(texts))
    call = "bk-fill collect --items items.jsonl many.jsonl --rejected no.jsonl"
    script = (
        f"mkfifo p; sleep 5 < p & {call} > p & pid=$!; for k in {{1..100}}; do sleep .1; "
        "ls -A | grep -q '^.bk-' && break; done; ls -A | grep -c '^.bk-'; kill -TERM $pid; wait $pid; echo $?"
    )
    assert at(script).out.split() == [b"1", str(128 + signal.SIGTERM).encode()]
    assert not list(at.folder.glob(".bk-*")) and not (at.folder / "no.jsonl").exists()
