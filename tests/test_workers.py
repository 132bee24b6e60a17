"""A function over many inputs in processes: the results of one process, whatever happens in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchkit import workers

pytestmark = pytest.mark.skipif(workers.cores() == 1 and not hasattr(os, "fork"), reason="no fork")


class TestResults:
    @pytest.mark.parametrize("count", (1, 2, 3, 7))
    def test_in_order(self, count: int) -> None:
        assert list(workers.each(lambda x: (x, os.getpid()), range(20), count)) != []
        assert [x for x, _ in workers.each(lambda x: (x * x, os.getpid()), range(20), count)] == [
            k * k for k in range(20)
        ]
        assert len({pid for _, pid in workers.each(lambda x: (x, os.getpid()), range(20), count)}) == count

    def test_large_results(self) -> None:
        assert [len(x) for x in workers.each(lambda k: b"x" * (k << 20), range(5), 2)] == [k << 20 for k in range(5)]

    def test_within_a_worker_there_is_one_core(self) -> None:
        assert list(workers.each(lambda _: workers.cores(), range(4), 2)) == [1] * 4

    def test_no_inputs(self) -> None:
        assert list(workers.each(len, [], 4)) == []


class TestEnds:
    def test_a_reader_that_has_seen_enough(self) -> None:
        found = workers.each(lambda k: b"x" * (1 << 20) * k, range(1, 50), 3)
        assert len(next(found)) == 1 << 20
        found.close()  # type: ignore[attr-defined]
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_a_worker_that_is_killed(self) -> None:
        def function(k: int) -> int:
            if k == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            return k

        found = workers.each(function, range(10), 2)
        with pytest.raises(workers.Died, match="the process that read it was killed"):
            list(found)

    def test_none_outlives_its_parent(self, tmp_path: Path) -> None:
        code = (
            "import os, sys, time; from benchkit import workers\n"
            "for pid in workers.each(lambda k: time.sleep(.01) or (os.getpid(), b'x' * (1 << 20)), range(1000), 2):\n"
            "    print(pid[0], flush=True)\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert parent.stdout is not None
        pids = {int(parent.stdout.readline()) for _ in range(2)}
        parent.kill()
        parent.wait()
        parent.stdout.close()
        for _ in range(100):
            alive = [pid for pid in pids if Path(f"/proc/{pid}/stat").exists()
                     and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"]  # fmt: skip
            if not alive:
                break
            time.sleep(0.1)
        assert not alive
