"""Hostile input to bk-matrix: one clear line or a table that keeps its contract; never a crash, never a wrong table.

    python tests/test_fuzz.py --minutes 10 [--source NAME,NAME] [--keep FOLDER] [--first SEED]

goes on with other seeds, in processes of their own, and lists those that fail in FOLDER/failures.tsv.
"""

from __future__ import annotations

import argparse
import codecs
import collections
import faulthandler
import gzip
import io
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time
import traceback
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard
from conftest import Shell
from fuzz_sources import LONG, MEMBERS, RUNNING, SAMPLES, SOURCES, TABLES, csv, parquet, text, zipped
from fuzzing import call, damaged, judge, limited, packed, place, read
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import csvtext, decode, jsontext
from benchkit.formats import zips

BATCH = 200
"""Seeds that one process of a long run tries."""

ROWS = [
    ("a", "007", 2, 1.0, "x"), ("a", "10", 1, 0.25, "y"), ("a", "2", 1, 1.0, "y"), ("b", "007", 1, 0.0, "x"),
    ("b", "10", 2, 1.5, "y"), ("b", "2", 1, 1.0, "y"),
]  # fmt: skip
"""The table of LONG."""


def attempt(folder: Path, name: str, seed: int) -> str:
    """One damaged source, read by its name and now and then packed: then the rows must be the same, or the message.

    Returns what came of it, in a word.
    """
    rng = random.Random(f"{name} {seed}")
    source = SOURCES[name]
    for old in folder.iterdir():
        old.unlink()
    data = damaged(rng, source)
    done = call(folder, *place(folder, source, data))
    judge(done)
    if rng.random() < 0.3 and data and not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        (folder / source.file).unlink()
        whole, ending = packed(rng, data)
        again = call(folder, *place(folder, source, whole, source.file + ending))
        assert again.rows == done.rows, f"packed: {again} instead of {done}"
        said = (again.message or "").replace(source.file + ending, source.file)
        damage = "damaged" in said or "damaged" in (done.message or "")
        assert damage or said == (done.message or ""), f"packed: {again} instead of {done}"
    return "refused" if done.rows is None else "read"


class TestWhole:
    """What changes nothing that counts gives the same table."""

    @pytest.mark.parametrize("name", SOURCES)
    def test_packed(self, tmp_path: Path, name: str) -> None:
        source = SOURCES[name]
        want = read(tmp_path, source).rows
        assert want
        (tmp_path / source.file).unlink()
        for how, ending in ((gzip.compress, ".gz"), (zstandard.compress, ".zst")):
            assert read(tmp_path, source, how(source.data), source.file + ending).rows == want
            (tmp_path / (source.file + ending)).unlink()
        twice = gzip.compress(zstandard.compress(gzip.compress(source.data)))
        assert read(tmp_path, source, twice, source.file + ".gz").rows == want

    @pytest.mark.parametrize("name", [s.name for s in SOURCES.values() if s.document is not None])
    def test_white_space_and_order_of_keys(self, tmp_path: Path, name: str) -> None:
        source = SOURCES[name]
        want = read(tmp_path, source).rows
        styles: list[dict[str, Any]] = [{"ensure_ascii": False}, {"separators": (" , ", " : ")}, {"sort_keys": True}]
        for style in styles if source.lines else [*styles, {"indent": 2}]:
            assert read(tmp_path, source, text(source.document, lines=source.lines, **style)).rows == want
        for data in (codecs.BOM_UTF8 + source.data, source.data.replace(b"\n", b"\r\n\r\n"), b"\n \n" + source.data):
            assert read(tmp_path, source, data).rows == want

    @settings(max_examples=20)
    @given(order=st.permutations(range(len(LONG))), columns=st.permutations(list(LONG[0])))
    def test_order_of_rows_and_columns(
        self, tmp_path_factory: pytest.TempPathFactory, order: list[int], columns: list[str]
    ) -> None:
        folder = tmp_path_factory.mktemp("order")
        rows = [{name: LONG[k][name] for name in columns} for k in order]
        for file, data in (
            ("a.csv", csv(rows)), ("a.tsv", csv(rows, "\t", "\r\n")), ("a.json", text(rows)),
            ("a.jsonl", text(rows, lines=True)),
            ("a.parquet", parquet([r | {"score": float(r["score"])} for r in rows], row_group_size=3)),
        ):  # fmt: skip
            (folder / file).write_bytes(data)
            assert call(folder, file).rows == ROWS

    @pytest.mark.parametrize(
        "change",
        (
            lambda d: codecs.BOM_UTF8 + d,
            lambda d: d.replace(b"\n", b"\r\n"),
            lambda d: d + b"\n\r\n",
            lambda d: d.replace(b"note", "n\u00f6te".encode()),
            lambda d: d.replace(b"model,", b"Model_Name,"),
            lambda d: d.replace(b",1,1,", b',"1",1.0,'),
            lambda d: d.rstrip(b"\n"),
        ),
    )
    def test_styles_of_csv(self, tmp_path: Path, change: Any) -> None:
        (tmp_path / "a.csv").write_bytes(change(csv(LONG)))
        assert call(tmp_path, "a.csv").rows == ROWS


class TestDamage:
    @pytest.mark.parametrize("name", SOURCES)
    @settings(max_examples=8)
    @given(seed=st.integers(0, 2**32))
    def test_any(self, tmp_path_factory: pytest.TempPathFactory, name: str, seed: int) -> None:
        attempt(tmp_path_factory.mktemp("damage"), name, seed)

    def test_nothing_ends_the_process(self, tmp_path: Path) -> None:
        """Damaged pages and footers of Parquet can end a process from within a library."""
        names = [s.name for s in TABLES if s.file.endswith("parquet")]
        assert not [x for x in tries(tmp_path, names, random.randrange(2**32), 100) if x[2] == "FAILED"]


class TestText:
    @pytest.mark.parametrize(
        ("data", "said"),
        (
            (csv(LONG).decode().encode("utf-16"), "UTF-16"),
            (csv(LONG).replace(b"first", b"\xff"), "line 2: not UTF-8"),
            (csv(LONG).replace(b"first", b"\0"), "binary data"),
            (b"sep=;\n" + csv(LONG, ";"), "a hint for Excel"),
            (csv(LONG) + b'a,"x', "a quoted field is not closed"),
            (csv(LONG) + b'a,"x"y,1,1,,\n', "text after a closing quote"),
            (csv(LONG) + b"a,x\n", "2 fields where the header has 6"),
            (text(LONG)[:-9], "damaged or cut JSON"),
            (text(LONG, lines=True)[:-9], "line 8: damaged or cut JSON"),
            (text([LONG[0] | {"item": "\ud800"}]), "damaged or cut JSON|no Unicode"),
            (text([LONG[0] | {"score": float("inf")}]), "is outside"),
            (text([LONG[0] | {"score": 10**400}]), "damaged or cut JSON"),
            (text([LONG[0] | {"item": 1.5}]), "floating-point numbers"),
            (text([LONG[0] | {"item": ["x"]}]), "lists or objects"),
            (b"[" * 100_000, "damaged or cut JSON"),
            (b"[" * 100_000 + b"]" * 100_000, "damaged or cut JSON"),
            (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "damaged or cut JSON"),
            (b'[NaN, "' + b'\\"' * 200_000, "damaged or cut JSON"),
            (b"model,item,score\na,q,1e999\n", "is outside"),
            (b"model,item,score\na,q,0x1\n", "is no score"),
            (b"model,item,score\na,q,1_0\n", "is no score"),
            (b"model,q1\na,1e999\n", "is outside"),
            (b"model,q1,q1\na,1,1\n", "'q1' stands twice"),
            (b"\0" * 5000, "binary data"),
            (b"\n" * 5000, "empty input"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, data: bytes, said: str) -> None:
        (tmp_path / "a").write_bytes(data)
        with limited(5):
            done = call(tmp_path, "a")
        assert re.search(said, done.message or f"{done.rows}")

    def test_nan_is_no_score(self, tmp_path: Path) -> None:
        for lines in (False, True):
            (tmp_path / "a").write_bytes(text([*LONG, LONG[0] | {"item": "q", "score": float("nan")}], lines=lines))
            assert "1 of 9 attempts have no score" in (call(tmp_path, "a").message or "")
            assert call(tmp_path, "--unscored", "drop", "a").rows == ROWS

    def test_digits_stay(self, tmp_path: Path) -> None:
        names = ["007", "7", "07", "7.0", "1e3", " 7", "9" * 40, "+7"]
        rows = [{"model": "m", "item": i, "score": 1} for i in names]
        for data in (csv(rows), text(rows), text(rows, lines=True), parquet(rows)):
            (tmp_path / "a").write_bytes(data)
            assert [r[1] for r in call(tmp_path, "a").rows or []] == sorted(names)

    def test_very_many_columns(self, tmp_path: Path) -> None:
        """The header is longer than a block of the parser, and time grows with the columns."""
        names = [f"{k:0300}" for k in range(20_000)]
        (tmp_path / "a.csv").write_text(f"model,{','.join(names)}\na{',1' * len(names)}\nb{',' * len(names)}\n")
        assert len(call(tmp_path, "a.csv").rows or []) == len(names)
        (tmp_path / "a.csv").write_text(f"model,item,score,{','.join(names)}\na,q,1{',1' * len(names)}\n")
        assert call(tmp_path, "a.csv").rows == [("a", "q", 1, 1.0, None)]

    def test_a_message_is_one_line_of_bounded_length(self, sh: Shell) -> None:
        (sh.folder / "a.csv").write_text(f"model,q1\na,{'9' * 100_000}\nb,\x1b[2J\n")
        done = sh("bk-matrix a.csv", rc=2)
        assert done.out == b"" and done.err.count("\n") == 1 and len(done.err) < 2100


def central(name: bytes, data: bytes, packed: bytes, method: int, at: int) -> bytes:
    """An entry of a zip archive's directory (APPNOTE.TXT 4.3.12)."""
    sizes = (zlib.crc32(data), len(packed), len(data), len(name))
    return struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, method, 0, 0, *sizes, 0, 0, 0, 0, 0, at) + name


class TestArchives:
    def archive(self, folder: Path, data: bytes) -> str:
        (folder / "a.eval").write_bytes(data)
        done = call(folder, "a.eval")
        judge(done)
        return done.message or f"{len(done.rows or [])} rows"

    @pytest.mark.parametrize("method", (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93))
    def test_members_that_claim_too_much(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: int) -> None:
        data = zipped(MEMBERS, method)
        at = data.index(b"PK\1\2") + 24  # the unpacked size of the first member
        assert "damaged" in self.archive(tmp_path, data[:at] + struct.pack("<I", 2**28) + data[at + 4 :])
        assert "damaged" in self.archive(tmp_path, data[:at] + struct.pack("<I", 2) + data[at + 4 :])
        assert "more than" in self.archive(tmp_path, data[:at] + struct.pack("<I", 2**31) + data[at + 4 :])
        assert self.archive(tmp_path, zipped(MEMBERS | {"samples/2.json": b" " * 10**7}, method)) == "2 rows"
        monkeypatch.setattr(zips, "LARGEST", 1 << 16)
        large = MEMBERS | {"summaries.json": text(SAMPLES) + b" " * (1 << 16)}
        assert re.search("summaries.json: (with it )?more than", self.archive(tmp_path, zipped(large, method)))

    @pytest.mark.parametrize("method", (zipfile.ZIP_DEFLATED, 93))
    def test_members_over_each_other(self, tmp_path: Path, method: int) -> None:
        """A thousand names for the bytes of one member."""
        whole = io.BytesIO(zipped(RUNNING, method))
        with zipfile.ZipFile(whole) as archive:
            info = archive.infolist()[1]
        data = whole.getvalue()
        body = RUNNING[info.filename]
        inside = data[info.header_offset + 30 + len(info.filename) :][: info.compress_size]
        start = data.index(b"PK\1\2")
        first = data[start : data.index(b"PK\1\2", start + 1)]
        names = [b"_journal/summaries/%d.json" % k for k in range(1, 1001)]
        directory = first + b"".join(central(n, body, inside, method, info.header_offset) for n in names)
        tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1001, 1001, len(directory), start, 0)
        assert "damaged" in self.archive(tmp_path, data[:start] + directory + tail)

    def test_encrypted(self, tmp_path: Path) -> None:
        data = bytearray(zipped(MEMBERS))
        for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            for found in re.finditer(re.escape(mark), bytes(data)):
                data[found.start() + at] |= 1
        assert "encrypted" in self.archive(tmp_path, bytes(data))

    def test_names_that_stand_twice(self, tmp_path: Path) -> None:
        out = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
            warnings.simplefilter("ignore")
            for name, data in (*MEMBERS.items(), ("summaries.json", text(SAMPLES[:1]))):
                archive.writestr(name, data)
        assert "member summaries.json stands" in self.archive(tmp_path, out.getvalue())

    def test_names_are_never_written(self, tmp_path: Path) -> None:
        folder = tmp_path / "in"
        folder.mkdir()
        names = ("../x", f"{tmp_path}/y", "../../z", "samples/../../w", "C:\\v")
        assert self.archive(folder, zipped(MEMBERS | dict.fromkeys(names, b"[]"))) == "2 rows"
        assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.eval", "in", "in.out"]

    def test_numbers_of_members(self, tmp_path: Path) -> None:
        long = RUNNING | {f"_journal/summaries/{'9' * 5000}.json": b"[]", "_journal/summaries/x.json": b"{"}
        assert self.archive(tmp_path, zipped(long)) == "2 rows"

    def test_all_members_together(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        many = RUNNING | {f"_journal/summaries/{k}.json": b"[]" + b" " * 999 for k in range(3, 100)}
        assert self.archive(tmp_path, zipped(many)) == "2 rows"
        monkeypatch.setattr(zips, "LARGEST", 50_000)
        assert "to read from the zip archive" in self.archive(tmp_path, zipped(many))

    @pytest.mark.parametrize("part", (b"PK\1\2", b"PK\5\6"))
    def test_every_byte_of_the_directory(self, tmp_path: Path, part: bytes) -> None:
        data = zipped(MEMBERS)
        for at in range(data.rindex(part), min(len(data), data.rindex(part) + 70)):
            for byte in (0, 0x7F, 0xFF):
                self.archive(tmp_path, data[:at] + bytes([byte]) + data[at + 1 :])


class TestBombs:
    """The bounds are lowered, so that small files meet them."""

    @pytest.mark.parametrize("layers", ((gzip.compress,), (zstandard.compress,), (gzip.compress, gzip.compress)))
    def test_packed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: Any) -> None:
        for data in (csv(LONG) + b"\n" * 10**7, text(LONG) + b" " * 10**7):
            for pack in layers:
                data = pack(data)
            (tmp_path / "a").write_bytes(data)
            monkeypatch.setattr(decode, "LEAST", 10**5)
            monkeypatch.setattr(decode, "GROWTH", 100)
            assert "more than 100 times their size" in (call(tmp_path, "a").message or "")

    def test_packed_binary_tables_are_held_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(decode, "LARGEST", 100)
        (tmp_path / "a").write_bytes(gzip.compress(parquet(LONG)))
        assert "unpack them first" in (call(tmp_path, "a").message or "")
        (tmp_path / "a").write_bytes(gzip.compress(csv(LONG)))
        assert call(tmp_path, "a").rows == ROWS

    def test_long_lines(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csvtext, "LONGEST", 10**5)
        monkeypatch.setattr(csvtext, "BLOCK", 10**4)
        monkeypatch.setattr(jsontext, "LARGEST", 10**5)
        long = "x" * 10**6
        for data in (f"model,item,score\na,q,1\na,{long},1\n", f'{text(LONG[0]).decode()}\n{{"item":"{long}"}}\n'):
            (tmp_path / "a").write_text(data)
            assert "more than 0 MiB" in (call(tmp_path, "a").message or "")


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "a.csv").write_bytes(csv(LONG))
        return tmp_path

    def test_what_is_no_file(self, folder: Path) -> None:
        """A FIFO would be waited for, a device read without end."""
        os.mkfifo(folder / "d" / "fifo.csv")
        for name, to in (("zero.csv", "/dev/zero"), ("up", "..")):
            (folder / "d" / name).symlink_to(to)
        with socket.socket(socket.AF_UNIX) as s:
            here = os.getcwd()
            os.chdir(folder / "d")
            s.bind("socket.csv")
            os.chdir(here)
        with limited(5):
            assert call(folder, "d").rows == ROWS

    def test_many_files(self, folder: Path) -> None:
        for k in range(300):
            (folder / "d" / f"{k}.csv").write_text(f"model,item,score,attempt\nc,i{k},1,0\n")
            (folder / "d" / f"{k}.txt").write_text("not a result")
        assert len(call(folder, "d").rows or []) == len(ROWS) + 300

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_unreadable(self, folder: Path) -> None:
        (folder / "d" / "b.csv").write_bytes(csv(LONG))
        (folder / "d" / "b.csv").chmod(0)
        assert "permission denied" in (call(folder, "d").message or "")

    def test_names_that_are_not_utf8(self, folder: Path) -> None:
        name = os.fsdecode(b"m\xff.csv")
        (folder / name).write_bytes(b"item,score\nq,1\n")
        for options in (("--model-from", "file"), ("--model", os.fsdecode(b"\xff"))):
            judge(call(folder, *options, name))
        items = folder / "items"
        items.write_bytes(b"q\xff\n")
        assert "not UTF-8" in (call(folder, "--model", "m", "--items", "items", name).message or "")


# ---- the long run -------------------------------------------------------------------------------------------------


def worker(folder: Path, names: list[str], first: int, many: int) -> None:
    """Try seeds; each is noted before it is tried, for where the process dies."""
    faulthandler.enable()
    for seed in range(first, first + many):
        name = names[seed % len(names)]
        folder.with_suffix(".now").write_text(f"{name}\t{seed}")
        faulthandler.dump_traceback_later(120, exit=True)
        try:
            print(f"{name}\t{seed}\t{attempt(folder, name, seed)}", flush=True)
        except BaseException as e:
            frames = traceback.extract_tb(e.__traceback__)
            own = [f for f in frames if "/benchkit/" in f.filename] or frames
            said = " ".join(f"{type(e).__name__}: {e}".split())[:200]
            print(f"{name}\t{seed}\tFAILED\t{Path(own[-1].filename).name}:{own[-1].lineno}\t{said}", flush=True)
    faulthandler.cancel_dump_traceback_later()


def tries(folder: Path, names: list[str], first: int, many: int) -> list[list[str]]:
    """What came of each seed, in a process of its own: source, seed, word and, for one that failed, where and what."""
    inside = folder / "work"
    inside.mkdir(exist_ok=True)
    p = subprocess.run(
        [sys.executable, __file__, "--keep", inside, "--worker", str(first), str(many), "--source", ",".join(names)],
        capture_output=True, text=True, errors="replace", env=os.environ | {"POLARS_MAX_THREADS": "1"},
    )  # fmt: skip
    found = [line.split("\t") for line in p.stdout.splitlines() if line.count("\t") >= 2]
    if p.returncode:
        why = next((x for x in p.stderr.splitlines() if x.strip()), "")
        found.append([*inside.with_suffix(".now").read_text().split("\t"), "FAILED", f"died {p.returncode}", why[:200]])
    return found


def long_run(minutes: float, names: list[str], keep: Path, seed: int) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    kinds: collections.Counter[str] = collections.Counter()
    came: collections.Counter[str] = collections.Counter()
    with (keep / "failures.tsv").open("a") as log:
        while time.monotonic() < end:
            for name, at, what, *more in tries(keep, names, seed, BATCH):
                came[what] += 1
                seed = int(at) + 1
                if what == "FAILED":
                    kind = re.sub(r"x{9,}.*|[0-9]+", "#", f"{name.split()[0]} {' '.join(more)}")[:130]
                    kinds[kind] += 1
                    if kinds[kind] <= 3:
                        print("\t".join([name, at, *more]), file=log, flush=True)
    print(dict(came), "next seed", seed)
    for kind, n in kinds.most_common():
        print(n, kind)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--minutes", type=float, default=1)
    p.add_argument("--first", type=int, default=0, help="the first seed")
    p.add_argument("--source", type=lambda text: text.split(","), default=list(SOURCES), help="names of sources")
    p.add_argument("--keep", type=lambda text: Path(text).resolve(), default="fuzz", help="a folder")
    p.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.worker:
        worker(options.keep, options.source, *options.worker)
    else:
        long_run(options.minutes, options.source, options.keep, options.first)
