"""Members of zip archives, in bounded memory; also those packed by Zstandard, which Python before 3.14 can't read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from benchkit.errors import InputError

ZSTANDARD = 93  # APPNOTE.TXT 6.3.9, section 4.4.5
LARGEST = 1 << 29  # bytes of all members that are read from an archive, unpacked
ENCRYPTED = 1  # of the flags, section 4.4.4
CENTRAL = struct.Struct("<4s4x2H4x3L3H8xL")  # a member in the directory, section 4.3.12; its name and more follow
END = struct.Struct("<4s4H2LH")  # of the directory, section 4.3.16; a comment may follow
LOCAL = struct.Struct("<4s5H3I2H")  # a member's local header; its name and extra field follow

DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, IndexError,
    OverflowError,
)  # fmt: skip


class Member(NamedTuple):
    """What the directory says of a member: general purpose flags, method, CRC-32, bytes packed and unpacked, and where
    its local header starts."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    start: int


class Archive:
    """The members of a zip archive by name. Nothing is ever written under their names.

    source: opens the archive anew. It is read for the directory, then once a member.
    """

    def __init__(self, source: Callable[[], BinaryIO]) -> None:
        self.source, self.left = source, LARGEST
        try:
            with source() as file:
                members = _directory(file) or _by_library(file)
        except DAMAGE as e:
            raise InputError(f"damaged or cut zip archive: {e}") from None
        self.members = {member.name: member for member in members}
        self.counts = Counter(member.name for member in members)
        self.starts = sorted(member.start for member in members)

    @property
    def names(self) -> list[str]:
        return list(self.members)

    def read(self, name: str) -> bytes:
        """The bytes of a member; InputError where it is damaged or encrypted, or more than LARGEST is read in all."""
        if self.counts[name] > 1:
            raise InputError(f"member {name} stands {self.counts[name]} times in the zip archive")
        member = self.members[name]
        self.left -= member.size
        if self.left < 0:
            raise InputError(f"member {name}: with it more than {LARGEST >> 20} MiB to read from the zip archive")
        if member.flags & ENCRYPTED:
            raise InputError(f"member {name}: encrypted")
        try:
            data = _unpacked(member, self._packed(member))
        except DAMAGE as e:
            raise InputError(f"member {name}: damaged or cut: {' '.join(str(e).split())[:100]}") from None
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            raise InputError(f"member {name}: damaged: its size or checksum is wrong")
        return data

    def _packed(self, member: Member) -> bytes:
        """The member as it stands in the archive."""
        with self.source() as file:
            file.seek(member.start)
            header = LOCAL.unpack(file.read(LOCAL.size))
            if header[0] != b"PK\x03\x04":
                raise InputError(f"member {member.name}: damaged: no local header")
            file.seek(header[-2] + header[-1], 1)
            after = bisect_right(self.starts, member.start)
            shared = after - bisect_left(self.starts, member.start) > 1
            if shared or (after < len(self.starts) and file.tell() + member.packed > self.starts[after]):
                raise InputError(f"member {member.name}: damaged: it overlaps another one")
            return file.read(member.packed)


def _by_library(file: BinaryIO) -> list[Member]:
    with zipfile.ZipFile(file) as found:
        return [
            Member(i.filename, i.flag_bits, i.compress_type, i.CRC, i.compress_size, i.file_size, i.header_offset)
            for i in found.infolist()
        ]


def _directory(file: BinaryIO) -> list[Member] | None:
    """The members of a plain archive, six times as fast as zipfile; None where it is large, commented or odd."""
    size = file.seek(0, 2)
    file.seek(max(size - END.size, 0))
    end = file.read(END.size)
    if len(end) < END.size:
        return None
    mark, disk, of, here, count, length, start, comment = END.unpack(end)
    plain = mark == b"PK\x05\x06" and disk == of == comment == 0 and here == count < 0xFFFF
    if not plain or start + length != size - END.size:
        return None
    file.seek(start)
    data = file.read(length)
    out, at = [], 0
    while at + CENTRAL.size <= length:
        head = CENTRAL.unpack_from(data, at)
        mark, flags, method, crc, packed, unpacked, name, extra, note, first = head
        at += CENTRAL.size
        text = data[at : at + name]
        at += name + extra + note
        if mark != b"PK\x01\x02" or 0xFFFFFFFF in (packed, unpacked, first) or not text.isascii() or b"\0" in text:
            return None
        out.append(Member(text.decode(), flags, method, crc, packed, unpacked, first))
    return out if at == length and len(out) == count else None


def _unpacked(member: Member, packed: bytes) -> bytes:
    """At most one byte more than the archive says."""
    if member.method == zipfile.ZIP_STORED:
        return packed
    if member.method == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
    if member.method == ZSTANDARD:
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            return bytes(stream.read(member.size + 1))
    raise InputError(f"member {member.name}: packed by method {member.method}, not by deflate or Zstandard")
