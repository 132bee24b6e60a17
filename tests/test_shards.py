"""Parts of the raw results, read each for itself, then added up: the same bytes as one run over all of them.

The recipes are benchkit(7)'s; tests/test_man.py runs those of the shell.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import write
from test_man import MAN, blocks

from benchkit import decode
from benchkit.errors import InputError
from benchkit.formats.tally import UNIT, add_up, total
from benchkit.tables import RESPONSES

HEAD = "model,item,attempt,score,cluster\n"
MERGE = "bk-matrix --merge sum"
CLUSTER = """
import os, subprocess, sys
from dask.distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        env = os.environ | {"DASK_SCHEDULER_ADDRESS": cluster.scheduler_address}
        sys.exit(subprocess.run(["bash", "-c", sys.argv[1]], env=env, timeout=200).returncode)
"""
"""Runs a command of the shell beside two workers, each a process."""


def attempts(count: int, score: Callable[[random.Random], float]) -> list[str]:
    """Rows of 3 models on 20 items in 4 clusters, `count` attempts a pair, shuffled; one model lacks three items."""
    draw = random.Random(1)
    out = [
        f"m{m},q{j},{k},{score(draw)},c{j % 4}\n"
        for m in range(3)
        for j in range(20)
        for k in range(count)
        if m or j % 7
    ]
    draw.shuffle(out)
    return out


def cut(folder: Path, rows: list[str], parts: int) -> None:
    """all.csv, and the same rows dealt in turns to part0.csv, part1.csv, ...: every pair is cut."""
    (folder / "all.csv").write_text(HEAD + "".join(rows))
    for k in range(parts):
        (folder / f"part{k}.csv").write_text(HEAD + "".join(rows[k::parts]))


def run(
    model: str, rewards: dict[str, list[float]], domain: str = "retail", temperature: float = 0.0
) -> dict[str, Any]:
    """Results of tau2-bench: task -> rewards of its trials."""
    simulations = [
        {"id": f"{t}-{k}", "task_id": t, "trial": k, "termination_reason": "agent_stop", "reward_info": {"reward": r}}
        for t, each in rewards.items()
        for k, r in enumerate(each)
    ]
    about = {
        "agent_info": {"implementation": "llm_agent", "llm": model, "llm_args": {"temperature": temperature}},
        "user_info": {"llm": "u"},
        "environment_info": {"domain_name": domain},
    }
    return {"info": about, "tasks": [], "simulations": simulations}


def metadata(data: bytes) -> dict[str, Any]:
    """What an Arrow stream carries beside its rows."""
    found = pa.ipc.open_stream(data).schema.metadata
    return {k.decode(): v if k == b"benchkit.table" else json.loads(v) for k, v in found.items()}


class TestSameBytes:
    @pytest.mark.parametrize(
        ("formats", "score"),
        (
            (("csv", "arrow"), lambda draw: draw.randrange(2)),
            (("ndjson", "parquet"), lambda draw: draw.random()),
            (("csv", "json"), lambda draw: draw.randrange(8) / 7),
        ),
    )
    def test_rows_cut_anywhere(
        self, sh: Shell, formats: tuple[str, ...], score: Callable[[random.Random], float]
    ) -> None:
        cut(sh.folder, attempts(9, score), 3)
        sh("for f in part?.csv; do bk-matrix $f -o ${f%.csv}.arrow; done")
        for to in formats:
            whole = sh(f"bk-matrix --no-provenance all.csv -t {to}").out
            assert sh(f"cat part2.arrow part0.arrow part1.arrow | {MERGE} --no-provenance -t {to}").out == whole

    def test_files_by_name_and_one_after_another_are_the_same(self, sh: Shell) -> None:
        cut(sh.folder, attempts(9, lambda draw: draw.random()), 3)
        sh("for f in part?.csv; do bk-matrix $f -o ${f%.csv}.arrow; done")
        assert sh(f"cat part?.arrow | {MERGE}").out == sh(f"{MERGE} part?.arrow").out

    @given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=1, max_size=6))
    @settings(max_examples=200)
    def test_sums_of_parts_are_the_sum(self, parts: list[list[float]]) -> None:
        """Beside whole multiples of 1/UNIT, added as Python's integers."""

        def units(scores: list[float]) -> int:
            return sum(round(s * UNIT) for s in scores)

        sums = [total(*np.divmod(np.array([units(p)]), UNIT))[0] for p in parts]
        assert add_up(np.array(sums), np.zeros(len(sums), np.int64), 1)[0] == sum(map(units, parts)) / UNIT

    def test_the_same_files_give_the_same_sources(self, sh: Shell) -> None:
        rows = attempts(4, lambda draw: draw.randrange(2))
        cut(sh.folder, rows, 3)
        sh("for k in 0 1 2; do bk-matrix part$k.csv -o part$k.arrow; done")
        one, parts = (metadata(sh(c).out) for c in ("bk-matrix part?.csv", f"cat part?.arrow | {MERGE}"))
        assert one.pop("benchkit.history") == parts.pop("benchkit.history")[:1]
        assert one == parts and [s["source"] for s in one["benchkit.sources"]] == [f"part{k}.csv" for k in range(3)]
        assert sum(s["rows"] for s in one["benchkit.sources"]) == len(rows)

    def test_a_part_of_parts(self, sh: Shell) -> None:
        cut(sh.folder, attempts(6, lambda draw: draw.randrange(2)), 3)
        sh("for f in part?.csv; do bk-matrix $f -o ${f%.csv}.arrow; done")
        sh(f"cat part0.arrow part1.arrow | {MERGE} -o both.arrow")
        assert sh(f"cat both.arrow part2.arrow | {MERGE} -t csv").out == sh("bk-matrix all.csv -t csv").out

    def test_row_groups_of_parquet(self, sh: Shell) -> None:
        import pyarrow.csv
        import pyarrow.parquet as pq

        cut(sh.folder, attempts(5, lambda draw: draw.randrange(2)), 1)
        pq.write_table(pyarrow.csv.read_csv(sh.folder / "all.csv"), sh.folder / "all.parquet", row_group_size=100)
        groups = pq.ParquetFile(sh.folder / "all.parquet")
        for k in range(groups.num_row_groups):
            pq.write_table(groups.read_row_group(k), sh.folder / f"part{k}.parquet")
        assert groups.num_row_groups == 3
        sh("for f in part?.parquet; do bk-matrix $f -o ${f%.parquet}.arrow; done")
        assert sh(f"cat part?.arrow | {MERGE} -t csv").out == sh("bk-matrix all.parquet -t csv").out

    def test_pairs_without_a_scored_attempt(self, sh: Shell) -> None:
        """In some parts, and in all: no row comes of it, as in one run."""
        rows = ["m,a,0,1,\n", "m,b,0,,\n", "m,a,1,,\n", "m,c,0,0,\n", "m,b,1,,\n", "m,c,1,,\n"]
        cut(sh.folder, rows, 2)
        sh("for f in part?.csv; do bk-matrix --unscored drop $f -o ${f%.csv}.arrow; done")
        whole = sh("bk-matrix --unscored drop all.csv -t csv").out
        assert sh(f"cat part?.arrow | {MERGE} -t csv").out == whole and b",b," not in whole


class TestNothingIsLost:
    def test_what_was_dropped_in_any_part_is_told(self, sh: Shell) -> None:
        for k in range(3):
            (sh.folder / f"part{k}.csv").write_text(f"{HEAD}a,q,{k},1,\na,r,{k},,\n")
        sh("for k in 0 1 2; do bk-matrix --unscored drop part$k.csv -o part$k.arrow; done")
        got = metadata(sh(f"cat part?.arrow | {MERGE}").out)
        assert [s["unscored"] for s in got["benchkit.sources"]] == [1, 1, 1]

    def test_other_commands_join_sources_and_warnings_too(self, sh: Shell) -> None:
        for k, said in enumerate(("first", "second", "first")):
            rows = [{"model": m, "item": f"q{k}", "attempts": 1, "correct": int(m == "a")} for m in "ab"]
            write(sh.folder / f"{k}.json", {"responses": rows, "warnings": [said], "sources": [{"source": f"{k}"}]})
            sh(f"bk-matrix --no-provenance {k}.json -o {k}.arrow")
        assert json.loads(sh("cat ?.arrow | bk-rank -q").out)["warnings"][:2] == ["first", "second"]

    def test_a_doubt_about_a_part_that_the_whole_disperses(self, sh: Shell) -> None:
        (sh.folder / "0.csv").write_text(f"{HEAD}a,q,0,0.5,\na,q,1,0.25,\n")
        (sh.folder / "1.csv").write_text(f"{HEAD}a,q,2,1,\na,q,3,1,\n")
        assert "rates" in sh("for k in 0 1; do bk-matrix $k.csv -o $k.arrow; done").err
        for call in (f"cat ?.arrow | {MERGE}", f"{MERGE} ?.arrow", "bk-matrix ?.csv"):
            done = sh(f"{call} --no-provenance -t json")
            assert json.loads(done.out)["warnings"] == [] and done.err == ""

    @pytest.mark.parametrize("key", ("sources", "warnings", "history"))
    def test_metadata_that_are_no_lists(self, sh: Shell, key: str) -> None:
        rows = [{"model": "a", "item": "q", "attempts": 1, "correct": 1}]
        write(sh.folder / "x.json", {"responses": rows, key: 5})
        assert f"'{key}' is not a JSON list" in sh("bk-matrix x.json", rc=2).err
        table = pa.table(dict(zip(RESPONSES.schema().names, (["a"], ["q"], [1], [1.0], [None]), strict=True)))
        table = table.cast(RESPONSES.schema()).replace_schema_metadata({f"benchkit.{key}": "5"})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(InputError, match=f"'{key}' is not a JSON list"):
            decode.decode(sink.getvalue().to_pybytes() * 2, "auto", RESPONSES)


class TestRuns:
    """Parts of what one run refuses, or keeps apart, are refused or kept apart as well."""

    def test_several_tasks(self, sh: Shell) -> None:
        for domain, reward in (("airline", 0.0), ("retail", 1.0)):
            write(sh.folder / f"{domain}.json", run("A", {"1": [reward]}, domain))
        assert "several tasks (airline, retail)" in sh("bk-matrix airline.json retail.json", rc=2).err
        sh("for d in airline retail; do bk-matrix $d.json -o $d.arrow; done")
        for call in (f"cat *.arrow | {MERGE}", f"{MERGE} *.arrow"):
            assert "several tasks (airline, retail)" in sh(call, rc=2).err
            assert sh(f"{call} --task retail -t csv").out == sh("bk-matrix retail.json -t csv").out
        whole = sh("bk-matrix --prefix-task *.json --no-provenance -t json").out
        assert sh(f"cat *.arrow | {MERGE} --prefix-task --no-provenance -t json").out == whole
        sh("for d in airline retail; do bk-matrix --prefix-task $d.json -o $d.arrow; done")
        assert sh(f"cat *.arrow | {MERGE} --no-provenance -t json").out == whole
        assert sh(f"cat *.arrow | {MERGE} --prefix-task --no-provenance -t json").out == whole

    def test_several_settings(self, sh: Shell) -> None:
        for k, (model, temperature) in enumerate((("A", 0.0), ("A", 1.0), ("B", 0.0), ("A", 1.0))):
            rewards = {"9": [0.0]} if k == 3 else {"1": [1.0, float(k == 1)], "2": [0.0, 0.0]}
            write(sh.folder / f"{k}.json", run(model, rewards, temperature=temperature))
        whole = sh("bk-matrix ?.json -t csv").out
        assert whole.count(b'"A (llm_agent') == 5 and whole.count(b"\nB,") == 2
        for part in ("0", "1", "3", "02", "12"):
            sh(f"bk-matrix {' '.join(f'{k}.json' for k in part)} -o {part}.arrow")
        assert sh(f"cat 0.arrow 12.arrow 3.arrow | {MERGE} -t csv").out == whole
        assert sh(f"{MERGE} 02.arrow 1.arrow 3.arrow -t csv").out == whole
        sh("bk-matrix 0.json 1.json -o 01.arrow")  # the names say it: no settings are left to append
        assert b") (" not in sh(f"{MERGE} 01.arrow 2.json 2.json -t csv").out


class TestLimits:
    """What benchkit(7) says is not found across parts."""

    def test_an_attempt_in_two_parts_counts_twice(self, sh: Shell) -> None:
        (sh.folder / "a.csv").write_text(f"{HEAD}m,q,0,1,\n")
        sh("bk-matrix a.csv -o a.arrow")
        assert "stand twice" in sh("bk-matrix a.csv a.csv", rc=2).err
        assert "stand twice" in sh("cat a.arrow a.arrow | bk-matrix", rc=2).err
        assert sh(f"cat a.arrow a.arrow | {MERGE} -t csv | tail -n 1").out == b"m,q,2,2,\n"

    def test_clusters_that_differ_are_refused(self, sh: Shell) -> None:
        for name, cluster in (("a", "x"), ("b", "y")):
            (sh.folder / f"{name}.csv").write_text(f"{HEAD}m,q,0,1,{cluster}\n")
            sh(f"bk-matrix {name}.csv -o {name}.arrow")
        assert "item 'q' is in" in sh(f"cat a.arrow b.arrow | {MERGE}", rc=2).err

    def test_a_part_without_a_scored_attempt(self, sh: Shell) -> None:
        (sh.folder / "a.csv").write_text(f"{HEAD}m,q,0,,\n")
        assert "no scored attempt is left" in sh("bk-matrix --unscored drop a.csv", rc=2).err


class TestSeveralProcesses:
    def test_a_part_that_is_cut_is_an_error(self, sh: Shell) -> None:
        """As when a process is killed while it writes to a pipe; a file is written whole or not at all."""
        cut(sh.folder, attempts(4, lambda draw: draw.randrange(2)), 2)
        sh("for f in part?.csv; do bk-matrix $f -o ${f%.csv}.arrow; done")
        for size in (1, 8, 400):
            assert sh(f"{{ cat part0.arrow; head -c -{size} part1.arrow; }} | {MERGE}", rc=2).out == b""

    def test_names_with_spaces_quotes_and_line_feeds(self, sh: Shell) -> None:
        """The page's line, on names that a shell or a tool of lines would take apart."""
        page = "\n".join(line.removeprefix("$ ").removeprefix("> ") for b in blocks(MAN / "benchkit.7") for line in b)
        line = re.search(r"^\(cd runs && printf.*\n.*xargs.*&&\n.*responses\.arrow$", page, flags=re.M)
        assert line
        for folder in ("runs", "parts"):
            (sh.folder / folder).mkdir()
        rows = attempts(4, lambda draw: draw.randrange(2))
        names = ("a b.csv", "it's.csv", 'a"$(x)".csv', "line\nfeed.csv", "-o.csv")
        for k, name in enumerate(names):
            (sh.folder / "runs" / name).write_text(HEAD + "".join(rows[k :: len(names)]))
        sh(line[0])
        assert sh("bk-matrix responses.arrow -t csv").out == sh("bk-matrix runs -t csv").out
        assert len(list((sh.folder / "parts").iterdir())) == len(names)


class TestDask:
    @pytest.fixture
    def at(self, sh: Shell) -> Shell:
        pytest.importorskip("distributed", exc_type=ImportError)
        (sh.folder / "cluster").write_text(CLUSTER)
        script = next(b for b in blocks(MAN / "benchkit.7") if b[0] == "# spread")
        (sh.folder / "spread").write_text("\n".join(script))
        cut(sh.folder, attempts(4, lambda draw: draw.randrange(2)), 4)
        return sh

    @pytest.mark.slow
    def test_parts_of_a_cluster_are_the_bytes_of_one_run(self, at: Shell) -> None:
        (at.folder / "bad.csv").write_text(HEAD + "m,q,0,7,\n")
        spread = f"{sys.executable} spread"
        calls = f"{spread} part?.csv && mv responses.arrow good.arrow && ! {spread} part?.csv bad.csv"
        at(f"timeout -k 5 240 {sys.executable} cluster '{calls}' 2> said")  # the workers' log is there too
        assert at("bk-matrix good.arrow -t csv").out == at("bk-matrix all.csv -t csv").out
        assert "bk-matrix: bad.csv: row 2: score ('7') is outside [0,1]" in (at.folder / "said").read_text()
        assert not (at.folder / "responses.arrow").exists()
