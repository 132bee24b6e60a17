"""bk-rank and bk-signflip beside other software at equal work: `make bench`, or by hand

    bench_tests.py [ranks] [flips] [--python PYTHON] [--rscript Rscript] [--limit 60] ...

ranks  bootstrap rank intervals over items: honestboard and evalstats
flips  sign-flip p of pairs: SciPy, exactRankTests for R, honestboard and evalstats

Two times each: of the call alone, imports and reading done, and of a whole process that reads the data and writes the
result. benchkit's call is that of its function, its process that of the command, which does more (Holm, intervals,
the best set) and reads and writes its own formats; the others read numpy's. Each is the least of several runs. Where
the limit is too short the work is done in part and its time scaled, and the table says how much was done.

Prints tables and keeps them, with everything that was measured, in bench/tests_*.txt and bench/tests_*.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_irt import BIN, HERE, aligned, machine, number, prepare, run, versions

RANKS = ("aime", "math500", "158x500")
FLIPS = ("aime", "math500", "pair2500x16")
LABELS = {"aime": "AIME 2025 I", "math500": "MATH-500"}
EXACT = 1e-9  # a p that claims to be exact and is further off than that is wrong


class Data(NamedTuple):
    """values (N, M) integers, attempts an item, pairs (P, 2); the folder holds them for all readers."""

    label: str
    values: np.ndarray
    attempts: int
    pairs: np.ndarray
    folder: Path


def like_models(items: int, attempts: int, folder: Path) -> np.ndarray:
    """Right answers (2, M) of two models whose success rates differ by one in a hundred; writes responses.arrow.

    A pair of far models would be no test: the tail of its distribution is short.
    """
    rng = np.random.default_rng([items, attempts])
    rate = rng.random(items)
    values = rng.binomial(attempts, [0.99 * rate, rate])
    lines = [f"m{i},i{j:06},{attempts},{y}\n" for i, row in enumerate(values) for j, y in enumerate(row)]
    (folder / "raw.csv").write_text("".join(["model,item,attempts,correct\n", *lines]))
    subprocess.run([BIN / "bk-matrix", "-q", folder / "raw.csv", "-o", folder / "responses.arrow"], check=True)
    return values


def data_of(name: str, folder: Path) -> Data:
    """responses.arrow for the commands, data.npz for Python, values.csv and pairs.csv for R."""
    if name.startswith("pair"):
        items, attempts = (int(x) for x in name.removeprefix("pair").split("x"))
        values = like_models(items, attempts, folder)
    else:
        prepare(name, 1, folder)
        with np.load(folder / "data.npz") as data:
            values, attempts = data["correct"].astype(np.int64), int(data["attempts"].max())
            assert (data["attempts"] == attempts).all()
    pairs = np.column_stack(np.triu_indices(len(values), 1))
    np.savez(folder / "data.npz", values=values, attempts=attempts, pairs=pairs)
    np.savetxt(folder / "values.csv", values, "%d", delimiter=",")
    np.savetxt(folder / "pairs.csv", pairs, "%d", delimiter=",")
    return Data(LABELS.get(name, "simulated"), values, attempts, pairs, folder)


class Peer(NamedTuple):
    """A row of a table. package: what must be installed. work: what it does. exact: whether its p is counted."""

    name: str
    package: str
    work: str
    exact: bool = False


def ranks_peers() -> list[Peer]:
    return [
        Peer("honestboard", "honestboard", "rank_summary"),
        Peer("evalstats", "evalstats", "bootstrap_ranks"),
    ]


def flips_peers(data: Data, draws: int) -> list[Peer]:
    """Who can test pairs of models with that many attempts an item, and how."""
    drawn = f"{draws} draws"
    few = data.values.shape[1] <= 15
    peers = [
        Peer("exactRankTests", "exactRankTests", "exact", True),
        Peer("scipy", "scipy", "exact" if few else f"{drawn}, exact to 15 terms", few),
    ]
    if data.attempts > 1:
        return [*peers, *(Peer(name, name, drawn) for name in ("honestboard", "evalstats"))]
    peers.append(Peer("binom", "scipy", "exact McNemar, one call", True))
    return [*peers, *(Peer(name, name, "exact McNemar", True) for name in ("honestboard", "evalstats"))]


def r_version(rscript: str, package: str) -> dict[str, str]:
    """Versions of R and of the package; empty if one is missing."""
    if not shutil.which(rscript):
        return {}
    code = f'cat(format(getRversion()), format(packageVersion("{package}")))'
    done = subprocess.run([rscript, "-e", code], capture_output=True, text=True)
    return dict(zip(("R", package), done.stdout.split(), strict=True)) if done.returncode == 0 else {}


def of_python(task: str, name: str, data: Data, python: str, args: argparse.Namespace) -> dict:
    """The call, repeated in one process, then whole processes with as much of the work as there was time for."""
    command = [python, str(HERE / "bench_tests_peers.py"), task, name, str(data.folder / "data.npz")]
    command += [str(data.folder / "result.npz"), "--reps", str(args.reps), "--draws", str(args.draws)]

    def once(*options: str) -> dict:
        found = run([*command, *options], data.folder, data.folder, 10 * args.limit)
        return found | (json.loads((data.folder / "out").read_text()) if found["status"] == 0 else {})

    call = once("--limit", str(args.limit), "--repeat", str(args.runs))
    if call["status"] != 0:
        return call
    with np.load(data.folder / "result.npz") as result:
        call |= {k: result[k] for k in result}
    runs = args.runs if call["seconds"] < 5 else 1
    return call | {"process": whole([once("--share", str(call["share"])) for _ in range(runs)])}


def of_r(data: Data, args: argparse.Namespace) -> dict:
    """The same for R."""
    files = [str(data.folder / f) for f in ("values.csv", "pairs.csv", "result.csv")]

    def once(repeat: int) -> dict:
        command = [args.rscript, str(HERE / "bench_tests_peers.R"), *files, str(args.limit), str(repeat)]
        found = run(command, data.folder, data.folder, 10 * args.limit)
        return found | (json.loads((data.folder / "out").read_text()) if found["status"] == 0 else {})

    call = once(1)
    if call["status"] != 0:
        return call
    runs = args.runs if call["seconds"] < 5 else 1
    call["seconds"] = once(runs)["seconds"]
    call["p"] = np.loadtxt(files[2], ndmin=1)
    return call | {"process": whole([once(1) for _ in range(runs)])}


def whole(runs: list[dict]) -> float:
    """The least wall time of whole processes, the part of the call scaled to all of the work."""
    return min(r["wall"] - r["seconds"] + r["seconds"] / r["share"] for r in runs)


def of_command(command: list[str], data: Data, args: argparse.Namespace) -> float:
    """The least wall time of whole runs of a command of benchkit."""
    files = [str(data.folder / f) for f in ("out.json", "responses.arrow")]
    words = [str(BIN / command[0]), *command[1:], "-q", "-o", *files]
    runs = [run(words, data.folder, data.folder, 10 * args.limit) for _ in range(max(3, args.runs))]
    if any(r["status"] for r in runs):
        raise SystemExit(f"{' '.join(words)}: {runs[0]['reached']}")
    return min(r["wall"] for r in runs)


def ms(seconds: float) -> str:
    return number(1000 * seconds)


def compare(task: str, data: Data, peers: list[Peer], command: list[str], size: str, args: argparse.Namespace,
            off: Callable[[dict, dict], float | None]) -> tuple[list[list[str]], list[str], dict]:  # fmt: skip
    """Rows, remarks and record of one data set. `off`: by how much a peer's result differs from benchkit's."""
    ours = of_python(task, "benchkit", data, sys.executable, args)
    if ours["status"] != 0:
        raise SystemExit(f"benchkit: {ours['reached']}")
    ours["process"] = of_command(command, data, args)
    where = f"{data.label}, {size}"
    work = "exact" if task == "flips" else f"{args.reps} resamples"
    rows = [[where, command[0], work, ms(ours["seconds"]), ms(ours["process"]), "-", "-", "-"]]
    record = {"benchkit": {k: ours[k] for k in ("seconds", "process")}}
    counted: list[Peer] = []
    remarks = []
    for peer in peers:
        print(f"{where}: {peer.name}", file=sys.stderr)
        if not args.found[peer.package]:
            rows.append([where, peer.name, "not installed", *["-"] * 5])
            continue
        if peer.name == "exactRankTests":
            found = of_r(data, args)
        else:
            found = of_python(task, peer.name, data, sys.executable if peer.package == "scipy" else args.python, args)
        if found["status"] != 0:
            rows.append([where, peer.name, "failed", *["-"] * 5])
            remarks.append(f"{where}, {peer.name}: {found['reached']}")
            continue
        seconds, share = found["seconds"] / found["share"], found["share"]
        wrong = off(ours, found)
        if peer.exact and wrong > EXACT:
            remarks.append(f"{where}: p of {peer.name} is wrong, so its times are not counted")
        else:
            counted.append(peer)
        rows.append([where, peer.name, peer.work + ("" if share == 1 else f" ({100 * share:.2g}% done, scaled)"),
                     ms(seconds), ms(found["process"]),
                     number(seconds / ours["seconds"]), number(found["process"] / ours["process"]),
                     "-" if wrong is None else f"{wrong:.1g}"])  # fmt: skip
        record[peer.name] = {"seconds": seconds, "process": found["process"], "share": share, "off": wrong}
    for what, words in (("seconds", "the call"), ("process", "the process")) if counted else ():
        best = min(counted, key=lambda p: record[p.name][what])
        times = number(record[best.name][what] / ours[what])
        remarks.append(f"{where}: {words} is {times} times as fast as the fastest, {best.name} ({best.work})")
    return rows, remarks, record


def bench_ranks(args: argparse.Namespace) -> tuple[str, dict]:
    """Table and record of bootstrap ranks."""

    def off(ours: dict, found: dict) -> float | None:
        gaps = np.abs(np.concatenate([ours["lower"] - found["lower"], ours["upper"] - found["upper"]]))
        return None if np.isnan(gaps).all() else float(gaps.max())

    rows = [["data", "software", "work", "call ms", "process ms", "call x", "process x", "bounds off"]]
    remarks, record = [], {}
    for name in args.ranks:
        with tempfile.TemporaryDirectory() as folder:
            data = data_of(name, Path(folder))
            size = " x ".join(str(k) for k in (*data.values.shape, data.attempts))
            command = ["bk-rank", "--method", "bootstrap", "--reps", str(args.reps)]
            more = compare("ranks", data, ranks_peers(), command, size, args, off)
        rows += more[0]
        remarks += more[1]
        record[name] = more[2]
    text = aligned(rows) + "".join(f"{x}\n" for x in remarks)
    text += "Sizes: models x items x attempts; the peers get the shares of right answers. bounds off: the largest\n"
    text += "difference of an end of a 95% rank interval from benchkit's, by other random numbers. evalstats shares\n"
    return text + "ties among ranks and gives no interval.\n", record


def bench_flips(args: argparse.Namespace) -> tuple[str, dict]:
    """Table and record of sign-flip tests."""

    def off(ours: dict, found: dict) -> float | None:
        return float(np.nanmax(np.abs(ours["p"] - found["p"])))

    rows = [["data", "software", "work", "call ms", "process ms", "call x", "process x", "p off"]]
    remarks, record = [], {}
    for name in args.flips:
        with tempfile.TemporaryDirectory() as folder:
            data = data_of(name, Path(folder))
            size = f"{data.values.shape[1]} x {data.attempts}, pairs: {len(data.pairs)}"
            command = ["bk-signflip", "--all"]
            more = compare("flips", data, flips_peers(data, args.draws), command, size, args, off)
        rows += more[0]
        remarks += more[1]
        record[name] = more[2]
    text = aligned(rows) + "".join(f"{x}\n" for x in remarks)
    text += "Sizes: items x attempts. Two-sided p. p off: the largest difference from benchkit's p. exactRankTests\n"
    text += (
        "and scipy get only the items that differ, which changes no p; beyond 1,023 terms exactRankTests answers 0.\n"
    )
    text += (
        "binom: scipy.stats.binom.cdf on counts that one matrix product gives for all pairs. honestboard on single\n"
    )
    text += (
        "attempts: compare() with one resample for the interval that comes with it. evalstats: its tests of a pair\n"
    )
    return text + "alone, without that interval.\n", record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = {"ranks": bench_ranks, "flips": bench_flips}
    split = lambda text: [x for x in text.split(",") if x]  # noqa: E731
    parser.add_argument("what", nargs="*", help=f"of {', '.join(names)} (default both)")
    parser.add_argument("--ranks", type=split, default=",".join(RANKS), help="aime, math500, NxM[xATTEMPTS]")
    parser.add_argument("--flips", type=split, default=",".join(FLIPS))
    parser.add_argument("--python", default=sys.executable, help="interpreter that has honestboard and evalstats")
    parser.add_argument("--rscript", default="Rscript", help="R that has exactRankTests")
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds a call; what would take longer is done in part"
    )
    parser.add_argument("--runs", type=int, default=5, help="of which the least counts; one where it takes 5 s")
    parser.add_argument("--reps", type=int, default=10_000, help="resamples of the items")
    parser.add_argument("--draws", type=int, default=9_999, help="sign patterns of tests that draw them")
    parser.add_argument("--threads", help="of matrix products, for all (default: what each takes)")
    args = parser.parse_args()
    if args.threads:
        os.environ |= {"OPENBLAS_NUM_THREADS": args.threads, "OMP_NUM_THREADS": args.threads}
    unknown = [x for x in args.what if x not in names]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    args.found = {p: versions(args.python, (p,)) for p in ("honestboard", "evalstats")}
    args.found |= {
        "scipy": versions(sys.executable, ("scipy",)),
        "exactRankTests": r_version(args.rscript, "exactRankTests"),
    }
    out = Path("bench")
    out.mkdir(exist_ok=True)
    for what in args.what or names:
        about = machine()
        text, record = names[what](args)
        about["load_after"] = os.getloadavg()[0]
        about["threads"] = args.threads or "as they come"
        about |= {k: v for found in args.found.values() for k, v in found.items()}
        text += ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in about.items()) + "\n"
        (out / f"tests_{what}.txt").write_text(text)
        settings = {k: v for k, v in vars(args).items() if k not in ("python", "rscript", "found")}
        (out / f"tests_{what}.json").write_text(
            json.dumps({"machine": about, "settings": settings, what: record}, indent=1)
        )
        print(text)


if __name__ == "__main__":
    main()
