"""Members of zip archives, in bounded memory; also those packed by Zstandard, which Python before 3.14 can't read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections import Counter
from typing import IO

import pyarrow as pa

from benchkit.errors import InputError

ZSTANDARD = 93  # APPNOTE.TXT 6.3.9, section 4.4.5
LARGEST = 1 << 29  # bytes of one member, unpacked
LOCAL = struct.Struct("<4s5H3I2H")  # a member's local header; its name and extra field follow

DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, IndexError,
    OverflowError,
)  # fmt: skip


class Archive:
    """The members of a zip archive by name. Nothing is ever written under their names."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            self.file, self.zip = file, zipfile.ZipFile(file)
        except DAMAGE as e:
            raise InputError(f"damaged or cut zip archive: {e}") from None
        self.names = self.zip.namelist()
        self.counts = Counter(self.names)

    def read(self, name: str) -> bytes:
        """The bytes of a member; InputError where it is damaged, encrypted, or larger than LARGEST."""
        if self.counts[name] > 1:
            raise InputError(f"member {name} stands {self.counts[name]} times in the zip archive")
        info = self.zip.getinfo(name)
        if info.file_size > LARGEST:
            raise InputError(f"member {name}: more than {LARGEST >> 20} MiB")
        try:
            data = self._zstandard(info) if info.compress_type == ZSTANDARD else self._stdlib(info)
        except DAMAGE as e:
            raise InputError(f"member {name}: damaged or cut: {' '.join(str(e).split())[:100]}") from None
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise InputError(f"member {name}: damaged: its size or checksum is wrong")
        return data

    def _stdlib(self, info: zipfile.ZipInfo) -> bytes:
        with self.zip.open(info) as member:
            return member.read(info.file_size + 1)

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        self.file.seek(info.header_offset)
        header = LOCAL.unpack(self.file.read(LOCAL.size))
        if header[0] != b"PK\x03\x04":
            raise InputError(f"member {info.filename}: damaged: no local header")
        self.file.seek(header[-2] + header[-1], 1)
        packed = self.file.read(info.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            return bytes(stream.read(info.file_size + 1))
