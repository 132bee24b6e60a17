"""Folders of many files, which are read by processes on all cores, as one file of them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Shell

from benchkit import collect, naming, workers

HEAD = "model,item,attempt,score\n"
FILES = collect.MANY + 6


def rows(k: int) -> str:
    return "".join(f"m{k},q{j},run {a},{(j * k + a) % 3 % 2}\n" for j in range(5) for a in range(2))


@pytest.fixture
def many(sh: Shell) -> Shell:
    (sh.folder / "d").mkdir()
    for k in range(FILES):
        (sh.folder / "d" / f"{k:03}.csv").write_text(HEAD + rows(k))
    (sh.folder / "all.csv").write_text(HEAD + "".join(map(rows, range(FILES))))
    return sh


def test_the_same_table(many: Shell) -> None:
    assert many("bk-matrix d --to csv").out == many("bk-matrix all.csv --to csv").out
    assert many("taskset -c 0 bk-matrix d --to json").out == many("bk-matrix d --to json").out
    names = [s["source"] for s in json.loads(many("bk-matrix d --to json").out)["sources"]]
    assert names == [f"{k:03}.csv" for k in range(FILES)]


@pytest.mark.parametrize(
    ("paths", "names"),
    (
        (["d/a.csv", "e/b.csv"], ["a.csv", "b.csv"]),
        (["d/x/r.json", "d/y/r.json", "d/y/s.json"], ["x/r.json", "y/r.json", "s.json"]),
        (["1/t/r.json", "2/t/r.json", "2/u/r.json"], ["1/t/r.json", "2/t/r.json", "u/r.json"]),
        (["r.json", "d/r.json"], ["r.json", "d/r.json"]),
        (["/a/r.json", "a/r.json", "r.json"], ["/a/r.json", "a/r.json", "r.json"]),
        (["d/a.arrow", "d/a.arrow"], ["a.arrow", "a.arrow"]),  # two streams of one file
    ),
)
def test_names_of_sources_tell_files_apart(paths: list[str], names: list[str]) -> None:
    assert naming.shortest(paths) == names


def test_what_is_wrong_with_one(many: Shell) -> None:
    (many.folder / "d" / "037.csv").write_text(HEAD + "m,q,1,2\n")
    (many.folder / "d" / "041.csv").write_text(HEAD + "m,q,1\n")
    assert (
        many("bk-matrix d", rc=2).err
        == "bk-matrix: d/037.csv: row 2: score ('2') is outside [0,1] (a count needs one of attempts, --attempts-col)\n"
    )


def test_an_attempt_that_two_hold(many: Shell) -> None:
    (many.folder / "d" / "x.csv").write_text(HEAD + "m7,q3,run 1,1\nm7,q4,run 9,1\n")
    said = many("bk-matrix d", rc=2).err
    assert "model 'm7', item 'q3', attempt 'run 1', stand in d/007.csv and in d/x.csv (1 such pair)" in said
    (many.folder / "d" / "x.csv").write_text(HEAD + "m7,q4,run 9,1\n")
    table = many("bk-matrix d --to csv").out.decode().splitlines()
    assert next(row for row in table if row.startswith("m7,q4")).startswith("m7,q4,3,")


def test_attempts_that_are_too_many_to_send(many: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are read again where another file has the same pair."""
    source = collect._portable(collect._Source(_cells(), {}, [], None))
    assert source.cells.named is not None and source.cells.named().attempt == ["a"]
    monkeypatch.setattr(collect, "ATTEMPTS", 0)
    source = collect._portable(collect._Source(_cells(), {}, [], None))
    assert source.cells.named is collect._later


def _cells() -> collect.Cells:
    import numpy as np

    one = np.zeros(1, np.int64)
    named = collect.Named(one, one, ["a"])
    return collect.Cells(["m"], ["q"], [None], one, one, one + 1, one + 0.5, one - 1, "long", 1, "x",
                         named=lambda: named)  # fmt: skip


def test_a_clash_with_what_can_t_be_read_again(many: Shell) -> None:
    (many.folder / "b.csv").write_text(HEAD + "m7,q3,run 1,1\n")
    assert many("bk-matrix d/007.csv - --to csv", stdin=(HEAD + "m7,q3,run 9,1\n").encode()).out.count(b"m7,q3,3,")
    said = many("cat b.csv | bk-matrix - d/007.csv", rc=2).err
    assert "item 'q3', attempt 'run 1', stand in <stdin> and in d/007.csv (1 such pair)" in said
    assert "in /dev/fd/" in many("bk-matrix <(cat b.csv) d/007.csv", rc=2).err


def test_a_link_that_leads_nowhere(many: Shell) -> None:
    (many.folder / "d" / "z.csv").symlink_to("nowhere.csv")
    assert many("bk-matrix d", rc=2).err == "bk-matrix: d/z.csv: a link to a file that is not there\n"


def test_files_that_no_reader_knows(many: Shell) -> None:
    (many.folder / "d" / "y.json").write_text('{"a": 1}')
    got = many("bk-matrix d --to csv")
    assert (
        "1 file not recognised and left out (-v says why): d/y.json" in got.err
        and got.out.count(b"\n") == 1 + FILES * 5
    )


@pytest.mark.skipif(workers.cores() == 1, reason="one core")
def test_processes_are_used() -> None:
    assert collect._workers([__file__]) == 1 and collect._workers([__file__] * collect.MANY) == workers.cores()
    assert collect._workers(["-"] * collect.MANY) == 1
