"""A function over many inputs, on all cores: processes that are forked, each with every n-th input.

A worker sends its results back in order through a pipe, which also holds it back where nobody reads yet. It ends when
its parent is gone, since nobody reads then.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, TypeVar

from benchkit.errors import InputError

A = TypeVar("A")
R = TypeVar("R")
SIZE = struct.Struct("<Q")
_worker = False


class Died(InputError):
    """A worker ended before it gave the result of an input."""


def cores() -> int:
    """How many cores this process may use; 1 where processes can't be forked, and in a worker."""
    if _worker:
        return 1
    if not hasattr(os, "fork") or not hasattr(os, "sched_getaffinity"):
        return 1  # macOS: its libraries do not survive a fork
    return len(os.sched_getaffinity(0))


def each(function: Callable[[A], R], inputs: Sequence[A], workers: int) -> Iterator[R]:
    """function(x) for every input, in order. Its results are pickled; it must not raise.

    Fork while no other thread holds a lock that the function needs. Raises Died where a worker was killed.
    """
    workers = min(workers, len(inputs))
    if workers < 2:
        yield from map(function, inputs)
        return
    pipes: list[BinaryIO] = []
    children: list[int] = []
    try:
        for k in range(workers):
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                _work(function, inputs[k::workers], writing, [reading, *(p.fileno() for p in pipes)])
            os.close(writing)
            pipes.append(os.fdopen(reading, "rb"))
            children.append(child)
        for k in range(len(inputs)):
            pipe = pipes[k % workers]
            head = pipe.read(SIZE.size)
            data = pipe.read(SIZE.unpack(head)[0]) if len(head) == SIZE.size else b""
            if len(head) < SIZE.size or len(data) < SIZE.unpack(head)[0]:
                raise Died("the process that read it was killed")
            yield pickle.loads(data)
    finally:
        for pipe in pipes:
            pipe.close()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
            with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored
                os.waitpid(child, 0)


def _work(function: Callable[[Any], Any], inputs: Sequence[Any], writing: int, others: list[int]) -> None:
    """The life of a worker."""
    global _worker
    _worker = True
    try:
        gc.disable()  # a short life; a tenth of the time goes into looking at what was parsed
        for at in others:
            os.close(at)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        with os.fdopen(writing, "wb") as pipe:
            for x in inputs:
                data = pickle.dumps(function(x), pickle.HIGHEST_PROTOCOL)
                pipe.write(SIZE.pack(len(data)) + data)
                pipe.flush()
    finally:
        os._exit(0)
