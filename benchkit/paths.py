"""Files and folders, as named on the command line -> the files to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from benchkit import endings
from benchkit.errors import InputError


def expand(names: Sequence[str]) -> tuple[list[str | None], set[str | None]]:
    """The files to read, folders walked in order of their names; [None] is standard input. And those from folders."""
    out: list[str | None] = []
    walked: set[str | None] = set()
    for name in names:
        if not os.path.isdir(name):
            out.append(name)
            continue
        found = _walk(name)
        if not found:
            hidden = next(_hidden(name), None)
            more = f"; hidden ones, such as {hidden}, have to be named" if hidden else ""
            raise InputError(
                f"no result files ({', '.join(endings.RESULTS)}, or these packed) in this folder{more}", where=name
            )
        out += sorted(found)
        walked |= set(found)
    if out.count("-") > 1:
        raise InputError("'-' (standard input) is named twice", where="")
    return out or [None], walked


def _walk(folder: str) -> list[str]:
    """Result files below a folder. Hidden files and folders are left out; a linked folder is entered once."""
    found, entered = [], set()

    def refuse(e: OSError) -> None:
        raise InputError((e.strerror or str(e)).lower(), where=e.filename)

    for at, folders, files in os.walk(folder, followlinks=True, onerror=refuse):
        real = os.path.realpath(at)
        folders[:] = [f for f in folders if f[0] != "." and real not in entered]
        if real not in entered:
            named = [os.path.join(at, f) for f in files if f[0] != "." and endings.is_result(f)]
            lost = next((f for f in named if not os.path.exists(f)), None)
            if lost is not None:
                raise InputError("a link to a file that is not there", where=lost)
            found += [f for f in named if os.path.isfile(f)]  # a FIFO would be waited for
        entered.add(real)
    return found


def _hidden(folder: str) -> Iterator[str]:
    """Result files below a folder that are hidden, or in a hidden folder."""
    for at, _, files in os.walk(folder):
        for path in (os.path.join(at, f) for f in sorted(files) if endings.is_result(f)):
            if any(part.startswith(".") for part in os.path.relpath(path, folder).split("/")):
                yield path
