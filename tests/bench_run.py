"""Run one command and say what it took: `bench_run.py LIMIT OUT ERR COMMAND...` prints JSON.

A process of its own, and a small one: a child's peak memory counts from what its parent held when it was started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time


def main() -> None:
    limit, out, err, *command = sys.argv[1:]
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        os.killpg(child.pid, signal.SIGKILL)  # its own children too

    signal.signal(signal.SIGALRM, stop)
    with open(out, "wb") as f, open(err, "wb") as g:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=g, start_new_session=True)
        signal.setitimer(signal.ITIMER_REAL, float(limit))
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
    found = {
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,  # Linux counts in KiB; of the largest process
        "status": os.waitstatus_to_exitcode(status),
        "stopped": stopped,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
