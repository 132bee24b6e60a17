"""Hostile input: how a source is damaged, and what bk-matrix may say to it."""

from __future__ import annotations

import contextlib
import gzip
import importlib.machinery
import importlib.util
import io
import json
import os
import random
import signal
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import zstandard
from fuzz_sources import Source, arrow, parquet, text, zipped
from native_files import HOSTILE, _places

from benchkit import cli
from benchkit.errors import InputError

SECONDS = 30

# ---- one call of the command --------------------------------------------------------------------------------------


class Done(NamedTuple):
    """What a call gave: its message, or its rows."""

    message: str | None
    rows: list[tuple[str, str, int, float, str | None]] | None


def _command() -> Any:
    """bin/bk-matrix as a module whose `parser` and `main` are called here."""
    path = str(Path(__file__).parent.parent / "bin" / "bk-matrix")
    loader = importlib.machinery.SourceFileLoader("bk_matrix", path)
    spec = importlib.util.spec_from_loader("bk_matrix", loader)
    assert spec
    module, run = importlib.util.module_from_spec(spec), cli.run
    cli.run = lambda *_: None  # type: ignore[assignment,return-value]
    try:
        loader.exec_module(module)
    finally:
        cli.run = run
    return module


COMMAND = _command()


@contextlib.contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raise TimeoutError where the body takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def call(folder: Path, *arguments: str) -> Done:
    """Run the command within this process. Whatever it raises but a message is an error of its own."""
    out = folder.parent / f"{folder.name}.out"
    out.unlink(missing_ok=True)
    at = os.getcwd()
    os.chdir(folder)
    try:
        with limited():
            status = COMMAND.main(COMMAND.parser.read_args([*arguments, "-q", "-o", str(out)]))
    except InputError as e:
        assert not out.exists()
        where = arguments[-1] if e.where is None else e.where
        return Done(f"{where}: {e}" if where else str(e), None)
    finally:
        os.chdir(at)
    assert status == 0
    with pa.ipc.open_stream(out) as reader:
        table = reader.read_all()
    return Done(None, list(zip(*(table[n].to_pylist() for n in ("model", "item", "attempts", "correct", "cluster")),
                               strict=True)))  # fmt: skip


def judge(done: Done) -> None:
    """One clear line, or a table that keeps its contract."""
    if done.rows is None:
        line = cli.printable(done.message or "")
        assert line.strip() and not any(word in line for word in ("Traceback", "object has no attribute")), line
        return
    keys = [(model, item) for model, item, *_ in done.rows]
    assert keys == sorted(set(keys)), "keys are not sorted, or stand twice"
    assert done.rows, "a table without rows"
    for model, item, attempts, correct, cluster in done.rows:
        assert model and item and cluster != "" and attempts >= 1 and 0 <= correct <= attempts, (model, item)


def place(folder: Path, source: Source, data: bytes | None = None, file: str | None = None) -> list[str]:
    """Write a source, or other bytes in its place, and give the arguments that read it."""
    for name, other in source.beside.items():
        (folder / name).write_bytes(other)
    (folder / (file or source.file)).write_bytes(source.data if data is None else data)
    return [*source.options, file or source.file]


def read(folder: Path, source: Source, data: bytes | None = None, file: str | None = None) -> Done:
    done = call(folder, *place(folder, source, data, file))
    judge(done)
    return done


# ---- damage to bytes ----------------------------------------------------------------------------------------------

TOKENS = (
    b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\n\n", b'"', b'""', b",", b";", b"\t", b"'",
    b"\\", b"sep=;\n", b"{", b"}", b"[", b"]", b":", b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"0x1", b"1_0",
    b"9" * 30, b"\\ud800", b"\\u0000", b"\xed\xa0\x80", b"\xc3", b"PK\x03\x04", b"PAR1", b"ARROW1", b"\xff\xff\xff\xff",
    b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"model,item,score\n", b"true",
    b"\xe2\x80\xa8", b"\x85",
)  # fmt: skip


def bytes_damaged(rng: random.Random, data: bytes) -> bytes:
    """One to four bytes turned, cut out, put in or repeated."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not out:
            break
        at = rng.randrange(len(out))
        size = min(len(out) - at, rng.choice((1, 2, 4, 8, 16, 64, 256)))
        match rng.randrange(9):
            case 0 | 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 3:
                del out[at : at + size]
            case 4:
                del out[at:]
            case 5:
                out[at:at] = rng.choice(TOKENS)
            case 6:
                out[at:at] = out[at : at + size] * rng.choice((1, 2, 9))
            case 7:
                other = rng.randrange(len(out))
                out[at : at + size] = out[other : other + size]
            case 8:
                token = rng.choice(TOKENS)
                out[at : at + len(token)] = token
    return bytes(out)


# ---- damage to JSON values ----------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    *HOSTILE, 2**64, -(2**63) - 1, 10**400, -1.5, 1.5, 1e-320, float("-inf"), "\ud800", "a\x00b", "x" * 20000, "\u2028",
    "a\nb", "\x1b[2J", "NaN", "true", "7", " ", "1/2", [1], ["x"], [[[[]]]], {"value": None}, {"a": 1, "b": [1]}, False,
    "../../x", json.loads("[" * 300 + "]" * 300),
)  # fmt: skip


def json_damaged(rng: random.Random, document: Any) -> Any:
    """One to three values replaced, dropped, repeated, moved or renamed."""
    out = deepcopy(document)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(out))
        if not places:
            return deepcopy(rng.choice(ODD))
        holder, key = rng.choice(places)
        match rng.randrange(8):
            case 0 | 1 | 2 | 3:
                holder[key] = deepcopy(rng.choice(ODD))
            case 4:
                del holder[key]
            case 5:
                if isinstance(holder, list):
                    holder.insert(rng.randrange(len(holder) + 1), deepcopy(holder[key]))
                else:
                    holder[rng.choice((key + "x", "", "\x00", key.upper()))] = deepcopy(holder[key])
            case 6:
                other, name = rng.choice(places)
                with contextlib.suppress(KeyError, IndexError):
                    holder[key] = deepcopy(other[name])
            case 7:
                holder[key] = rng.choice(([holder[key]], {"x": holder[key]}))
    return out


def json_bytes(rng: random.Random, source: Source) -> bytes:
    """A JSON source with damaged values, and now and then a key that stands twice, or another style."""
    out = text(json_damaged(rng, source.document), lines=source.lines,
               ensure_ascii=rng.random() < 0.8 or source.lines)  # fmt: skip
    if rng.random() < 0.1 and b'": ' in out:
        at = out.index(b'": ')
        start = out.rfind(b'"', 0, at)
        out = out[:start] + out[start:at] + b'": null, ' + out[start:]
    return out


# ---- damage to archives and columns -------------------------------------------------------------------------------


def zip_damaged(rng: random.Random, data: bytes) -> bytes:
    """Members with damaged values, renamed, dropped, repeated, or with other claims in the archive's directory."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        members = {}
        for info in infos:
            raw = data[info.header_offset + 30 + len(info.filename) :][: info.compress_size]
            members[info.filename] = zstandard.decompress(raw) if info.compress_type == 93 else archive.read(info)
        method = infos[0].compress_type
    match rng.randrange(6):
        case 0 | 1 | 2:
            name = rng.choice([n for n in members if not n.startswith("samples/")])
            members[name] = text(json_damaged(rng, json.loads(members[name])))
            return zipped(members, method)
        case 3:
            name = rng.choice(list(members))
            held = members.pop(name)
            other = rng.choice(("../../x", "/etc/x", "", "a" * 60000, "_journal/summaries/" + "9" * 5000 + ".json",
                                "_journal/summaries/٣.json", "header.json/", "\x00", "ü"))  # fmt: skip
            return zipped(members | {other: held} if rng.random() < 0.8 else members, method)
        case 4:
            name = rng.choice(list(members))
            members[name] = bytes_damaged(rng, members[name])
            return zipped(members, method)
        case _:
            out = bytearray(data)
            at = out.index(b"PK\x01\x02")
            directory = rng.randrange(at, len(out))
            out[directory : directory + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f", os.urandom(4)))
            return bytes(out)


def _columns() -> list[tuple[pa.DataType, Any]]:
    return [
        (pa.null(), None), (pa.bool_(), True), (pa.int8(), -1), (pa.uint64(), 2**64 - 1), (pa.float16(), 0.5),
        (pa.float64(), float("nan")), (pa.float64(), float("inf")), (pa.decimal128(5, 2), 1), (pa.decimal256(50, 2), 1),
        (pa.date32(), 1), (pa.timestamp("ns", "UTC"), 1), (pa.timestamp("s", "Nowhere/City"), 1), (pa.time64("ns"), 1),
        (pa.duration("s"), 1), (pa.month_day_nano_interval(), (1, 2, 3)), (pa.binary(), b"\xff\x00"),
        (pa.binary(3), b"abc"), (pa.string(), "\x00"), (pa.string(), ""), (pa.large_string(), "x" * 20000),
        (pa.string_view(), "x"), (pa.binary_view(), b"x"), (pa.dictionary(pa.int8(), pa.string()), "x"),
        (pa.dictionary(pa.int8(), pa.int64()), 1), (pa.list_(pa.int8()), [1]), (pa.list_(pa.string(), 1), ["x"]),
        (pa.large_list(pa.int8()), []), (pa.list_view(pa.int8()), [1]), (pa.struct([("a", pa.int8())]), {"a": 1}),
        (pa.struct([]), {}), (pa.map_(pa.string(), pa.int8()), [("a", 1)]),
        (pa.run_end_encoded(pa.int32(), pa.int8()), 1),
    ]  # fmt: skip


def columns_damaged(rng: random.Random, table: pa.Table) -> pa.Table:
    """A column of another type, with nulls, renamed, dropped, doubled, or rows in other numbers."""
    name = rng.choice(table.column_names)
    at = table.column_names.index(name)
    match rng.randrange(6):
        case 0 | 1 | 2:
            kind, value = rng.choice(_columns())
            values = [value if rng.random() < 0.8 else None for _ in range(table.num_rows)]
            made = pa.array(values, kind)
            if rng.random() < 0.5:
                return table.append_column(rng.choice(("extra", "", "\x00", "cluster", "N")), made)
            return table.set_column(at, name, made)
        case 3:
            names = list(table.column_names)
            names[at] = rng.choice(("", "\x00", "model", "MODEL", "score", "n", "x" * 70000, "a\nb", " item "))
            return table.rename_columns(names)
        case 4:
            return table.drop_columns([name])
        case _:
            return rng.choice((table.slice(0, 0), table.select([]), pa.concat_tables([table, table]),
                               table.replace_schema_metadata({b"benchkit.table": b"x", b"benchkit.history": b"{"}),
                               table.replace_schema_metadata({b"ARROW:schema": b"x", b"pandas": b"{}"})))  # fmt: skip


def _load(source: Source) -> pa.Table:
    if source.file.endswith("parquet"):
        return pq.read_table(io.BytesIO(source.data))
    if source.data[:6] == b"ARROW1":
        return pa.ipc.open_file(source.data).read_all()
    return pa.ipc.open_stream(source.data).read_all()


def table_bytes(rng: random.Random, source: Source) -> bytes:
    """A binary table with damaged columns, in its own format."""
    table = columns_damaged(rng, _load(source))
    if source.file.endswith("parquet"):
        how = {"compression": rng.choice(("none", "snappy", "zstd", "gzip")), "use_dictionary": rng.random() < 0.5}
        return parquet(table, **how, data_page_version=rng.choice(("1.0", "2.0")))
    return arrow(table, file=source.data[:6] == b"ARROW1")


def damaged(rng: random.Random, source: Source) -> bytes:
    """The source's bytes with one kind of damage, or several."""
    kinds: list[Callable[[], bytes]] = [lambda: bytes_damaged(rng, source.data)]
    if source.document is not None:
        kinds += [lambda: json_bytes(rng, source)] * 3
    elif source.file.endswith(".eval"):
        kinds += [lambda: zip_damaged(rng, source.data)] * 3
    elif source.file.endswith((".parquet", ".arrow")):
        kinds += [lambda: table_bytes(rng, source)]
    try:
        out = rng.choice(kinds)()
    except (pa.ArrowException, ValueError, zipfile.BadZipFile):  # this damage can't be written
        out = bytes_damaged(rng, source.data)
    return bytes_damaged(rng, out) if rng.random() < 0.1 else out


def packed(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    """The bytes packed, and the ending that says so."""
    match rng.randrange(3):
        case 0:
            return gzip.compress(data, 1), ".gz"
        case 1:
            return zstandard.compress(data), ".zst"
        case _:
            return gzip.compress(zstandard.compress(data), 1), ".zst.gz"
