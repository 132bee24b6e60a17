"""What all six commands promise alike, through real pipes."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import COMMANDS, READS_PARAMETERS, READS_RESPONSES, Shell

from benchkit.tables import GAPS, ITEMS, METRICS, PAIRS, PARAMETERS, RANKS, RESPONSES

FIT = "bk-irt --method laplace"
CALLS = {
    "bk-matrix": "bk-matrix responses.arrow",
    "bk-irt": f"{FIT} responses.arrow",
    "bk-metrics": "bk-metrics fit.arrow",
    "bk-gaps": "bk-gaps fit.arrow",
    "bk-rank": "bk-rank responses.arrow",
    "bk-signflip": "bk-signflip responses.arrow",
}
SPEC = {"bk-matrix": RESPONSES, "bk-irt": PARAMETERS, "bk-metrics": METRICS, "bk-gaps": GAPS, "bk-rank": RANKS,
        "bk-signflip": PAIRS}  # fmt: skip


def strict(data: bytes) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(data, parse_constant=refuse)


@pytest.fixture
def at(made: Path) -> Shell:
    return Shell(made)


def good(command: str, made: Path) -> bytes:
    return (made / ("fit.arrow" if command in READS_PARAMETERS else "responses.arrow")).read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
class TestDamagedInput:
    def refuses(self, command: str, sh: Shell, data: bytes) -> str:
        done = sh(f"{command} -o never.json", stdin=data, rc=2)
        assert done.out == b"" and not list(sh.folder.iterdir())
        assert done.err.startswith(f"{command}: <stdin>: ") and done.err.count("\n") == 1, done.err
        return done.err

    def test_every_way_to_break_a_stream(self, command: str, sh: Shell, made: Path) -> None:
        data = good(command, made)
        assert "did the command before it fail?" in self.refuses(command, sh, b"")
        assert "no end marker" in self.refuses(command, sh, data[:-8])
        for broken in (data[:100], data[: len(data) // 2], data[:-1], data + b"junk", data + b"\n", b"\n \n", b"\0"):
            self.refuses(command, sh, broken)

    def test_the_wrong_table(self, command: str, sh: Shell, made: Path) -> None:
        other = "bk-metrics" if command in (*READS_RESPONSES, "bk-matrix") else "bk-rank"
        assert "parameters/1" in self.refuses(command, sh, good(other, made))

    def test_a_failed_upstream_command_gives_no_result(self, command: str, sh: Shell) -> None:
        done = sh(f"bk-matrix no-such-file | {command}", rc=2)
        assert done.out == b"" and "did the command before it fail?" in done.err

    def test_no_room_for_the_output(self, command: str, at: Shell) -> None:
        assert "no space left" in at(f"{CALLS[command]} > /dev/full", rc=2).err
        assert "no space left" in at(f"{CALLS[command]} -o /dev/full", rc=2).err


@pytest.mark.parametrize("command", COMMANDS)
class TestFormats:
    def test_the_same_rows_in_every_format(self, command: str, at: Shell) -> None:
        spec = SPEC[command]
        doc = strict(at(f"{CALLS[command]} -t json").out)
        arrow = pa.ipc.open_stream(at(f"{CALLS[command]} -t arrow").out).read_all()
        assert arrow.schema.equals(spec.schema()) and arrow.schema.metadata[b"benchkit.table"] == spec.tag.encode()
        parquet = pq.read_table(io.BytesIO(at(f"{CALLS[command]} -t parquet").out))
        assert parquet.equals(arrow)
        lines = [strict(line) for line in at(f"{CALLS[command]} -t ndjson").out.splitlines()]
        csv = pa.csv.read_csv(io.BytesIO(at(f"{CALLS[command]} -t csv").out))
        tsv = at(f"{CALLS[command]} -t tsv").out
        assert tsv.split(b"\n")[0].replace(b"\t", b",") == at(f"{CALLS[command]} -t csv").out.split(b"\n")[0]
        rows = doc.get(spec.rows, [doc])
        assert len(rows) == len(lines) == arrow.num_rows == csv.num_rows
        if spec is not METRICS:
            assert lines == rows
        for name in ("mean", "p", "width", "score", "correct", "ddm"):
            if name in csv.column_names:
                assert csv[name].to_pylist() == arrow[name].to_pylist()
        assert at(f"{CALLS[command]} -t table").out

    def test_a_document_ends_with_warnings_and_history(self, command: str, at: Shell) -> None:
        doc = strict(at(f"{CALLS[command]} -t json").out)
        assert list(doc)[-2:] == ["warnings", "history"]
        assert [h["cmd"] for h in doc["history"]][-1] == command and doc["history"][0]["cmd"] == "bk-matrix"
        assert set(doc["history"][-1]) == {"cmd", "argv", "version", "seed"}
        bare = strict(at(f"{CALLS[command]} -t json --no-provenance").out)
        left_out = {key: doc[key] for key in ("history", "sources") if key in doc}
        assert all(bare[key] == [] for key in left_out) and bare | left_out == doc

    def test_equal_input_gives_equal_bytes(self, command: str, at: Shell) -> None:
        for to in ("arrow", "parquet", "json", "csv"):
            a, b = (hashlib.sha256(at(f"{CALLS[command]} -t {to}").out).digest() for _ in range(2))
            assert a == b, to

    def test_input_by_name_by_stdin_packed_and_in_every_format(self, command: str, at: Shell) -> None:
        by_name = at(f"{CALLS[command]} -t json").out
        call, file = CALLS[command].rsplit(" ", 1)
        for feed in (f"cat {file} |", f"gzip -c {file} |"):
            assert at(f"{feed} {call} -t json").out == by_name
            assert at(f"{feed} {call} -t json -").out == by_name
        maker = "bk-matrix responses.arrow" if file == "responses.arrow" else f"{FIT} responses.arrow"
        rows = SPEC[command].rows
        for to in ("parquet", "json", "ndjson", "csv", "tsv"):
            at(f"{maker} -o copy.{to}")
            got, want = strict(at(f"{call} copy.{to} -t json").out), strict(by_name)
            assert got.get(rows, got["warnings"]) == want.get(rows, want["warnings"]), to

    def test_the_ending_names_the_format(self, command: str, at: Shell) -> None:
        for ending in ("arrow", "parquet", "json", "ndjson", "csv", "tsv"):
            at(f"{CALLS[command]} -q -o out.{ending}")
            assert (at.folder / f"out.{ending}").read_bytes() == at(f"{CALLS[command]} -q -t {ending}").out
        at(f"{CALLS[command]} -q -o out.csv -t json")
        strict((at.folder / "out.csv").read_bytes())
        assert "not compressed" in at(f"{CALLS[command]} -o out.csv.gz", rc=2).err
        for name in ("out.xlsx", "out.HTML", "out.md"):
            assert f"-o {name}: no output of this format" in at(f"{CALLS[command]} -o {name}", rc=2).err


class TestHistory:
    def test_only_what_changes_the_result_as_given(self, at: Shell, aime: Path) -> None:
        at(f"bk-matrix --model-col=model -v {aime} --to arrow -o r.arrow")
        doc = strict(at("bk-rank -q -s 7 --level .9 --reps=100 -t json -f arrow - < r.arrow").out)
        first, last = doc["history"]
        assert first["argv"] == ["--model-col", "model"] and first["seed"] is None
        assert last["argv"] == ["-s", "7", "--level", ".9", "--reps", "100"] and last["seed"] == 7

    def test_upstream_warnings_travel_but_are_said_once(self, at: Shell) -> None:
        rows = "".join(f"m{i},q{j},2,{(i * j) % 3 / 2}\n" for i in range(4) for j in range(4))
        fit = at(f"{FIT} -o half.arrow", stdin=b"model,item,attempts,correct\n" + rows.encode())
        assert "warning: " in fit.err
        done = at("bk-gaps half.arrow")
        said = fit.err.splitlines()[0].split("warning: ")[1]
        assert said not in done.err and said in strict(done.out)["warnings"]
        assert at(f"{FIT} -q half.csv -o x.arrow", rc=2).err  # -q silences warnings, not errors


class TestPredicates:
    @pytest.mark.parametrize(
        ("call", "rc"),
        (
            ("bk-metrics fit.arrow --max-ddm 1 --max-gap 1 --max-top-gap-sum 1", 0),
            ("bk-metrics fit.arrow --max-ddm 0", 1),
            ("bk-metrics fit.arrow --max-gap 0.01", 1),
            ("bk-metrics fit.arrow --max-top-gap-sum 0.01", 1),
            ("bk-gaps fit.arrow --max-gap 1", 0),
            ("bk-gaps fit.arrow --max-gap 0.01", 1),
            ("bk-matrix responses.arrow --require-complete", 0),
        ),
    )
    def test_exit_1_with_the_result_written(self, call: str, rc: int, at: Shell) -> None:
        done = at(f"{call} -q", rc=rc)
        assert done.out and done.err == ""
        said = [line for line in at(call, rc=rc).err.splitlines() if "warning: " not in line]
        command, _, option, limit = call.split()[:4] if rc else (*call.split()[:2], "", "")
        assert len(said) == rc and all(s.startswith(f"{command}: {option} {limit} does not hold: ") for s in said)
        at(f"{call} -q -o out.json", rc=rc)
        strict((at.folder / "out.json").read_bytes())

    def test_an_incomplete_matrix(self, sh: Shell) -> None:
        text = b"model,item,correct\na,q,1\na,r,0\nb,q,1\n"
        done = sh("bk-matrix --require-complete -o x.arrow", stdin=text, rc=1)
        assert done.err == "bk-matrix: --require-complete does not hold: missing_cells is 1\n"
        assert (sh.folder / "x.arrow").exists()
        assert sh("bk-matrix --require-complete -q -o x.arrow", stdin=text, rc=1).err == ""

    def test_an_undefined_statistic_fails_and_has_a_reason(self, sh: Shell) -> None:
        text = b"kind,id,mean,sd,lower,upper\nitem,a,1,1,0,2\nitem,b,1,1,0,2\n"
        done = sh("bk-metrics --max-ddm 1 -q", stdin=text, rc=1)
        assert "--max-ddm 1 does not hold: ddm is undefined" in sh("bk-metrics --max-ddm 1", stdin=text, rc=1).err
        doc = strict(done.out)
        assert doc["ddm"] is None and doc["ddm_reason"] and doc["max_gap"] is None and doc["max_gap_reason"]
        assert strict(sh("bk-gaps --max-gap 1 -q", stdin=text, rc=1).out)["gaps"] == []


class TestOptionErrors:
    """A wrong option is the option's fault, found before the input is read, and no input is named."""

    @pytest.mark.parametrize(
        "call",
        ("bk-metrics --target foo", "bk-metrics --target beta:1_0,2", "bk-metrics --reps 10000000",
         "bk-rank --reps 1000001", "bk-irt --draws 1000001", "bk-irt --warmup 1000001",
         "bk-matrix --attempts 2147483648", "bk-signflip --all --ref a"),
    )  # fmt: skip
    def test_before_the_input(self, call: str, sh: Shell) -> None:
        command, option = call.split()[:2]
        done = sh(call, stdin=b"", rc=2)  # empty: reading it would be an error of its own
        assert done.err.startswith(f"{command}: {option}") and done.err.count("\n") == 1 and "stdin" not in done.err

    def test_a_reference_that_is_not_there(self, at: Shell) -> None:
        done = at("bk-signflip --ref zzz responses.arrow", rc=2)
        assert done.err == "bk-signflip: --ref: no model 'zzz' in the input\n"

    @pytest.mark.parametrize(
        "option",
        ("--draws 100", "--warmup 100", "--chains 2", "--target-accept .9", "--max-treedepth 9", "--keep-draws",
         "--max-rhat 2", "--min-ess 1", "--max-divergences 0", "--seed 1", "-s 1"),
    )  # fmt: skip
    def test_what_laplace_has_no_use_for(self, option: str, at: Shell) -> None:
        for call in (f"{FIT} {option}", f"bk-irt {option} --method laplace"):
            done = at(f"{call} responses.arrow", rc=2)
            assert done.err == f"bk-irt: {option.split()[0]} needs --method nuts (see bk-irt --help)\n"

    def test_laplace_has_no_seed(self, at: Shell) -> None:
        doc = strict(at(f"{FIT} responses.arrow -t json").out)
        assert doc["history"][-1]["seed"] is None and doc["fit"]["seed"] is None and doc["fit"]["draws"] is None


class TestWrongTable:
    def test_which_table_is_needed(self, sh: Shell) -> None:
        done = sh("bk-gaps", stdin=b"a,b\n1,2\n", rc=2)
        assert done.err == ("bk-gaps: <stdin>: no column 'kind' (found: a, b): needed is a parameters table, "
                            "which bk-irt makes\n")  # fmt: skip
        assert "a responses table, which bk-matrix makes from raw" in sh("bk-rank", stdin=b"a,b\n1,2\n", rc=2).err


class TestDiagnose:
    def test_rows_are_the_items(self, at: Shell) -> None:
        doc = strict(at("bk-matrix --diagnose responses.arrow").out)
        assert doc["n_models"] == 16 and len(doc["items"]) == 15
        arrow = pa.ipc.open_stream(at("bk-matrix --diagnose responses.arrow -t arrow").out).read_all()
        assert arrow.schema.equals(ITEMS.schema()) and arrow.num_rows == 15
