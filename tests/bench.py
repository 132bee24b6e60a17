"""Wall times of the commands, start-up included: `make bench` prints a table and keeps it in bench/commands.txt.

Each time is the least of several runs; a cold run of bk-irt has an empty compilation cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
AIME = Path(__file__).parent / "data" / "aime2025_I.csv"


def seconds(command: str, folder: Path, runs: int = 5, **env: str) -> float:
    """The least wall time of `command` over `runs`, in seconds."""
    environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", **env)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = str(folder / "cache")
        seconds(f"bk-matrix {AIME} -o r.arrow", folder, 1)
        rows.append(
            (
                "bk-irt, AIME 2025 I, empty cache",
                f"{seconds('bk-irt r.arrow -o f.arrow -q', folder, 1, XDG_CACHE_HOME=cache):.2f} s",
            )
        )
        rows.append(
            (
                "bk-irt, AIME 2025 I, warm cache",
                f"{seconds('bk-irt r.arrow -o f.arrow -q', folder, XDG_CACHE_HOME=cache):.2f} s",
            )
        )
        seconds("bk-irt r.arrow -q -t json -o f.json", folder, 1, XDG_CACHE_HOME=cache)
        fit = json.loads((folder / "f.json").read_bytes())["fit"]
        rows.append(
            (
                "  minimum bulk ESS, R-hat, divergences",
                f"{fit['min_ess_bulk']:.0f}, {fit['max_rhat']:.4f}, {fit['divergences']}",
            )
        )
        for call in (
            "bk-irt --method laplace r.arrow -o l.arrow -q",
            f"bk-matrix {AIME}",
            "bk-metrics -q f.arrow",
            "bk-gaps -q f.arrow",
            "bk-rank r.arrow",
            "bk-signflip r.arrow",
            "bk-matrix --diagnose r.arrow",
        ):
            rows.append((call.replace(str(AIME), AIME.name), f"{seconds(call, folder):.3f} s"))
        pipeline = f"bk-matrix {AIME} | tee r.arrow | bk-irt -q | tee f.arrow | bk-metrics -q"
        rows.append(
            ("bk-matrix | bk-irt | bk-metrics, warm", f"{seconds(pipeline, folder, XDG_CACHE_HOME=cache):.2f} s")
        )
        rows.append(("python -c pass", f"{seconds(f'{BIN}/python -c pass', folder, 20):.3f} s"))
        for command in ("matrix", "irt", "metrics", "gaps", "rank", "signflip"):
            rows.append((f"bk-{command} --help", f"{seconds(f'bk-{command} --help', folder, 20):.3f} s"))
    width = max(len(label) for label, _ in rows)
    text = "".join(f"{label.ljust(width)}  {value}\n" for label, value in rows)
    out = Path("bench")
    out.mkdir(exist_ok=True)
    (out / "commands.txt").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
