"""Members of zip archives, in bounded memory; also those packed by Zstandard, which Python before 3.14 can't read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from typing import BinaryIO

import pyarrow as pa

from benchkit.errors import InputError

ZSTANDARD = 93  # APPNOTE.TXT 6.3.9, section 4.4.5
LARGEST = 1 << 29  # bytes of all members that are read from an archive, unpacked
ENCRYPTED = 1  # of the flags, section 4.4.4
LOCAL = struct.Struct("<4s5H3I2H")  # a member's local header; its name and extra field follow

DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, IndexError,
    OverflowError,
)  # fmt: skip


class Archive:
    """The members of a zip archive by name. Nothing is ever written under their names.

    source: opens the archive anew. It is read for the directory, then once a member.
    """

    def __init__(self, source: Callable[[], BinaryIO]) -> None:
        self.source, self.left = source, LARGEST
        try:
            with source() as file, zipfile.ZipFile(file) as found:
                self.members = {info.filename: info for info in found.infolist()}
                self.counts = Counter(found.namelist())
                self.starts = sorted(info.header_offset for info in found.infolist())
        except DAMAGE as e:
            raise InputError(f"damaged or cut zip archive: {e}") from None

    @property
    def names(self) -> list[str]:
        return list(self.members)

    def read(self, name: str) -> bytes:
        """The bytes of a member; InputError where it is damaged or encrypted, or more than LARGEST is read in all."""
        if self.counts[name] > 1:
            raise InputError(f"member {name} stands {self.counts[name]} times in the zip archive")
        info = self.members[name]
        self.left -= info.file_size
        if self.left < 0:
            raise InputError(f"member {name}: with it more than {LARGEST >> 20} MiB to read from the zip archive")
        if info.flag_bits & ENCRYPTED:
            raise InputError(f"member {name}: encrypted")
        try:
            data = _unpacked(info, self._packed(info))
        except DAMAGE as e:
            raise InputError(f"member {name}: damaged or cut: {' '.join(str(e).split())[:100]}") from None
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise InputError(f"member {name}: damaged: its size or checksum is wrong")
        return data

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        """The member as it stands in the archive."""
        with self.source() as file:
            file.seek(info.header_offset)
            header = LOCAL.unpack(file.read(LOCAL.size))
            if header[0] != b"PK\x03\x04":
                raise InputError(f"member {info.filename}: damaged: no local header")
            file.seek(header[-2] + header[-1], 1)
            after = bisect_right(self.starts, info.header_offset)
            shared = after - bisect_left(self.starts, info.header_offset) > 1
            if shared or (after < len(self.starts) and file.tell() + info.compress_size > self.starts[after]):
                raise InputError(f"member {info.filename}: damaged: it overlaps another one")
            return file.read(info.compress_size)


def _unpacked(info: zipfile.ZipInfo, packed: bytes) -> bytes:
    """At most one byte more than the archive says."""
    if info.compress_type == zipfile.ZIP_STORED:
        return packed
    if info.compress_type == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, info.file_size + 1)
    if info.compress_type == ZSTANDARD:
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            return bytes(stream.read(info.file_size + 1))
    raise InputError(f"member {info.filename}: packed by method {info.compress_type}, not by deflate or Zstandard")
