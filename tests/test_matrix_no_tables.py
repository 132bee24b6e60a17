"""Files that are no table of results: what they are, and what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from conftest import Shell

CSV = b"model,item,score\na,q,1\n"


def workbook() -> bytes:
    """The parts that every .xlsx has (ECMA-376, part 1, 12.2), without their content."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in ("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml", "xl/worksheets/sheet1.xml"):
            file.writestr(name, "<x/>" * 40)
    return out.getvalue()


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        entry = tarfile.TarInfo("run/x.csv")
        entry.size = len(CSV)
        file.addfile(entry, io.BytesIO(CSV))
    return out.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
EXCEL = "an Excel workbook: save the sheet as CSV UTF-8"


class TestFilesOfOtherKinds:
    @pytest.mark.parametrize(
        ("data", "said"),
        (
            (workbook(), EXCEL),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), EXCEL),
            (tar(), "a tar archive: unpack it, and name its folder or files"),
            (gzip.compress(tar()), "a tar archive: unpack it, and name its folder or files"),
            (lzma.compress(CSV), "packed by xz: unpack it with xz -dc"),
            (bz2.compress(CSV), "packed by bzip2: unpack it with bzip2 -dc"),
            (POINTER, "a Git LFS pointer in place of the file: fetch it with git lfs pull"),
            ("model,item,score\né,q,1\n".encode("cp1252"), "line 2: not UTF-8 text: save it as UTF-8"),
        ),
    )
    def test_are_named(self, sh: Shell, data: bytes, said: str) -> None:
        (sh.folder / "x").write_bytes(data)
        assert sh("bk-matrix x", rc=2).err == f"bk-matrix: x: {said}\n"
        assert sh("bk-matrix < x", rc=2).err == f"bk-matrix: <stdin>: {said}\n"
        assert sh("bk-rank x", rc=2).err == f"bk-rank: x: {said}\n"
        items = sh("bk-matrix --model m --items x x", rc=2).err
        assert items == f"bk-matrix: x: {said.removeprefix('line 2: ')}\n"

    def test_a_model_map_without_its_columns(self, sh: Shell) -> None:
        (sh.folder / "r.csv").write_bytes(CSV)
        (sh.folder / "map.csv").write_text("old,new\na,b\n")
        assert sh("bk-matrix r.csv --model-map map.csv", rc=2).err == (
            "bk-matrix: map.csv: no column 'model' (found: old, new): "
            "needed is a model map table with the columns model and name\n"
        )
