"""Where the output goes and how it gets there: an open descriptor, a device or FIFO, or a file replaced as a whole.

Standard library only: a wrong output is found before anything heavy is imported.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import stat
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchkit.errors import InputError

DESCRIPTOR = re.compile(r"/(?:dev|proc/self|proc/thread-self)/fd/([0-9]{1,9})")


class Output(NamedTuple):
    """One output. `fd` is a descriptor that is open already; without it `path` is opened.

    What is `direct` (a device, a FIFO) is written to; any other file is replaced. `width` is the columns of the
    terminal, None where the output is none.
    """

    path: str
    fd: int | None = None
    direct: bool = False
    width: int | None = None


def descriptor(name: str) -> int | None:
    """The number of the open descriptor that a name such as /dev/stdout or /dev/fd/3 leads to, by links too."""
    for _ in range(40):
        found = DESCRIPTOR.fullmatch(os.path.abspath(name))
        if found:
            return int(found[1])
        try:
            name = os.path.join(os.path.dirname(name), os.readlink(name))
        except OSError:
            return None
    return None


def find(name: str | None) -> Output:
    """The output of that name, None or '-' being standard output. Raises InputError where it can't be written."""
    if name in (None, "-"):
        if sys.stdout is None:
            raise InputError("standard output is closed", where="")
        return Output("-", fd=1, width=_columns(1))
    assert name is not None
    with _blame(name):
        fd = descriptor(name)
        if fd is not None:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise InputError("not open for writing")
            return Output(name, fd=fd, width=_columns(fd))
        try:
            kind = os.stat(name).st_mode
        except FileNotFoundError:
            return Output(_new(name))
        if stat.S_ISDIR(kind):
            raise InputError("is a directory")
        if not os.access(name, os.W_OK):
            raise InputError("permission denied")
        if stat.S_ISREG(kind):
            return Output(_new(name))
        width = None
        if stat.S_ISCHR(kind):
            fd = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            try:
                width = _columns(fd)
            finally:
                os.close(fd)
        return Output(name, direct=True, width=width)


def _new(name: str) -> str:
    """The path of a file that is made anew, links followed, in a folder that must be there."""
    if os.path.basename(name) in ("", ".", ".."):
        raise InputError("no such directory" if name else "a file without a name")
    path = os.path.realpath(name)
    folder, named = os.path.dirname(path), os.path.dirname(name)
    if not os.path.isdir(folder):
        missing = folder if os.path.lexists(named or ".") else named  # a link may lead to a folder that is not there
        raise InputError(f"no such directory: {missing}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("the directory is not writable")
    return path


def _columns(fd: int) -> int | None:
    return (os.get_terminal_size(fd).columns or 80) if os.isatty(fd) else None


@contextlib.contextmanager
def _blame(name: str | None) -> Iterator[None]:
    """Let errors name the output and no input."""
    where = "" if name in (None, "-") else f"-o {name or repr(name)}: "
    try:
        yield
    except InputError as e:
        raise InputError(f"{where}{e}", where="") from None
    except OSError as e:
        raise InputError(f"{where}{(e.strerror or str(e)).lower()}", where="") from None


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write every byte; raise InputError where that fails. A closed reader ends the process by SIGPIPE."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view[: 1 << 24]) :]
        except BlockingIOError:
            import select

            select.select([], [fd], [])
        except OSError as e:
            raise InputError(f"cannot write the output: {(e.strerror or str(e)).lower()}", where="") from None


def emit(name: str | None, data: bytes) -> None:
    """Write to the output of that name (see `find`): whole, or not at all where it is a file."""
    to = find(name)
    with _blame(name):
        if to.fd is not None:
            write_all(to.fd, data)
        elif to.direct:
            fd = os.open(to.path, os.O_WRONLY | os.O_NOCTTY)
            try:
                write_all(fd, data)
            finally:
                os.close(fd)
        else:
            _replace(to.path, data)


@contextlib.contextmanager
def beside(name: str | None, data: bytes) -> Iterator[None]:
    """A second output, of that name or none: it comes to stand only where the body, which writes the first, succeeds.

    A device or FIFO is written before the body, since it can't be taken back.
    """
    if name is None:
        yield
        return
    to = find(name)
    if to.fd is not None or to.direct:
        emit(name, data)
        yield
        return
    with contextlib.ExitStack() as stack:
        with _blame(name):
            stack.enter_context(_replacing(to.path, data))
        yield
        with _blame(name):
            stack.close()


def _replace(path: str, data: bytes) -> None:
    with _replacing(path, data):
        pass


@contextlib.contextmanager
def _replacing(path: str, data: bytes) -> Iterator[None]:
    """A temporary file in the same folder, synced; after the body renamed over `path`, whose mode is kept."""
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".bk-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with _removed_on_signal(temporary):
            fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            if os.path.exists(path):
                os.fchmod(fd, os.stat(path).st_mode & 0o7777)
            write_all(fd, data)
            os.fsync(fd)
            os.close(fd)
            yield
            os.rename(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    parent = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(parent)
    except OSError:  # some file systems can't sync a folder; the file itself is safe
        pass
    finally:
        os.close(parent)


@contextlib.contextmanager
def _removed_on_signal(path: str) -> Iterator[None]:
    """While a temporary file exists, let a deadly signal remove it before it kills."""
    deadly = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)

    def die(number: int, _: Any) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)
        outer = before[signal.Signals(number)]
        signal.signal(number, outer if callable(outer) else signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = {s: signal.getsignal(s) for s in deadly}
    for s in deadly:
        if before[s] is not signal.SIG_IGN:
            signal.signal(s, die)
    try:
        yield
    finally:
        for s in deadly:
            signal.signal(s, before[s])
