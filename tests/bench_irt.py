"""The sampler of bk-irt, measured: `make bench`, or by hand

    bench_irt.py [peers] [shapes] [cells] [--data aime,math500,1000x1000] [--peers numpyro,pystan] [--limit 600] ...

peers   minimum bulk ESS per wall second of the whole process, beside NumPyro, PyMC + nutpie and PyStan: equal data,
        priors, chains and draws, one estimator of ESS for all. Cold: all caches of compiled code empty; warm: the
        caches of the cold run, another seed.
shapes  bk-irt on simulated data of many shapes: time, memory and diagnostics.
cells   seconds a cell and gradient over four decades of cells: constant if the cost is linear.

Prints tables and keeps them, with everything that was measured, in bench/irt_*.txt and bench/irt_*.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
FILES = {"aime": HERE / "data" / "aime2025_I.csv", "math500": HERE / "data" / "math500.csv.gz"}
SHAPES = "140x500,1000x5,4600x100,3x500,8x30,12x41871"
CELLS = ((10, 100), (32, 316), (100, 1000), (316, 3162), (1000, 10000))

# the packages of each peer and the options that it runs with
PEERS = {
    "numpyro": (("numpyro", "jax", "jaxlib"), ()),
    "numpyro-dense": (("numpyro", "jax", "jaxlib"), ("--dense",)),
    "nutpie": (("nutpie", "pymc", "pytensor", "numba"), ()),
    "nutpie-lowrank": (("nutpie", "pymc", "pytensor", "numba"), ("--dense",)),
    "pystan": (("pystan", "httpstan"), ()),
}
NOTES = {
    "bk-irt": "as it comes, with --keep-draws",
    "numpyro": "diagonal mass matrix, float32, the chains on virtual CPU devices",
    "numpyro-dense": "the same with a full mass matrix",
    "nutpie": "PyMC's model by numba, diagonal mass matrix",
    "nutpie-lowrank": "the same with the low-rank mass matrix, which nutpie calls experimental",
    "pystan": "diagonal mass matrix",
}


def simulated(n_models: int, n_items: int, attempts: int) -> tuple[np.ndarray, np.ndarray]:
    """Attempts and correct (N, M) of the 1PL model with standard deviations 1.2 and 1.8, the mean difficulty -0.5."""
    rng = np.random.default_rng([n_models, n_items, attempts])
    theta, b = 1.2 * rng.standard_normal(n_models), 1.8 * rng.standard_normal(n_items) - 0.5
    n = np.full((n_models, n_items), attempts)
    return n, rng.binomial(n, 1 / (1 + np.exp(b[None, :] - theta[:, None])))


def prepare(name: str, scale: float, folder: Path) -> tuple[int, int]:
    """Write the data set `name` as responses.arrow and data.npz; returns its shape.

    `NxM` or `NxMxATTEMPTS` is simulated, its larger side times `scale`.
    """
    import pyarrow.ipc as ipc

    from benchkit.responses import wide

    path = folder / "responses.arrow"
    if name in FILES:
        subprocess.run([BIN / "bk-matrix", "-q", FILES[name], "-o", path], check=True)
    else:
        shape = [int(x) for x in name.split("x")]
        large = shape.index(max(shape[:2]))
        shape[large] = max(min(shape[large], 20), round(shape[large] * scale))
        n, y = simulated(*shape, *([1] if len(shape) == 2 else []))
        rows, columns = np.indices(n.shape).reshape(2, -1)
        table = pa.table(
            {
                "model": [f"m{i:06}" for i in rows],
                "item": [f"i{j:06}" for j in columns],
                "attempts": pa.array(n.ravel(), pa.int32()),
                "correct": pa.array(y.ravel(), pa.float64()),
                "cluster": pa.nulls(n.size, pa.utf8()),
            }
        )
        with ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    with ipc.open_stream(path) as stream:
        w = wide(stream.read_all())
    np.savez(folder / "data.npz", attempts=w.attempts, correct=w.correct)
    return w.attempts.shape


def environment(cache: Path) -> dict[str, str]:
    """With every cache of compiled code in `cache`."""
    return dict(
        os.environ,
        XDG_CACHE_HOME=str(cache),  # bk-irt, httpstan
        JAX_COMPILATION_CACHE_DIR=str(cache / "jax"),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PLATFORMS="cpu",
        PYTENSOR_FLAGS=f"base_compiledir={cache / 'pytensor'}",
        NUMBA_CACHE_DIR=str(cache / "numba"),
    )


def run(command: list[str], folder: Path, cache: Path, limit: float) -> dict:
    """Run to the end or to the limit: wall, cpu, peak_mib, status, stopped, and `reached`, its last words."""
    out, err = folder / "out", folder / "err"
    launcher = [sys.executable, "-I", "-S", str(HERE / "bench_run.py"), str(limit), str(out), str(err)]
    done = subprocess.run([*launcher, *command], env=environment(cache), check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    words = err.read_text(errors="replace").replace("\r", "\n").split("\n")
    return {**found, "reached": next((line.strip() for line in reversed(words) if line.strip()), "")}


def ess_of(draws: np.ndarray) -> dict:
    """What is the same for all samplers: the least bulk and tail ESS and the largest R-hat of (chains, draws, P)."""
    from benchkit.irt.diagnostics import diagnose

    d = diagnose(draws)
    bulk, tail = float(d.ess_bulk.min()), float(d.ess_tail.min())
    return {"ess_bulk": bulk, "ess_tail": tail, "max_rhat": float(d.rhat.max())}


def read_fit(path: Path) -> tuple[pa.Table, dict]:
    with pa.ipc.open_stream(path) as stream:
        table = stream.read_all()
    return table, json.loads(table.schema.metadata[b"benchkit.fit"])


def bk_irt(folder: Path, cache: Path, seed: int, args: argparse.Namespace) -> dict:
    """One run of bk-irt with its draws kept, measured like a peer."""
    output = folder / "fit.arrow"
    options = ["--keep-draws", "--chains", str(args.chains), "--draws", str(args.draws), *shlex.split(args.options)]
    command = [str(BIN / "bk-irt"), str(folder / "responses.arrow"), "-q", "-o", str(output), "-s", str(seed)]
    found = run([*command, *options], folder, cache, args.limit)
    if found["status"] == 0:
        table, fit = read_fit(output)
        draws = pa.compute.list_flatten(table["draws"]).to_numpy().reshape(table.num_rows, args.chains, -1)
        found |= ess_of(np.moveaxis(draws, 0, 2)) | {"divergences": fit["divergences"]}
        output.unlink()
    return found


def peer(name: str, folder: Path, cache: Path, seed: int, noncentred: bool, args: argparse.Namespace) -> dict:
    """One run of a peer."""
    sampler, output = name.partition("-")[0], folder / "draws.npy"
    command = [args.python, str(HERE / "bench_peers.py"), sampler, str(folder / "data.npz"), str(output)]
    command += ["--seed", str(seed), *PEERS[name][1], *(["--noncentred"] if noncentred else [])]
    command += ["--chains", str(args.chains), "--warmup", str(args.warmup), "--draws", str(args.draws)]
    found = run(command, folder, cache, args.limit)
    if found["status"] == 0:
        found |= ess_of(np.load(output)) | json.loads((folder / "out").read_text().splitlines()[-1])
        output.unlink()
    return found


def noncentred(name: str, shape: tuple[int, int]) -> bool:
    """Which parametrisation serves a peer better: measured on AIME (16 x 15) and MATH-500 (140 x 500)."""
    return min(shape) < 50 and "-" not in name


def versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Installed versions of `packages`; empty if one is missing."""
    code = "import json, sys; from importlib.metadata import version as v; "
    code += "print(json.dumps({p: v(p) for p in sys.argv[1:]}))"
    done = subprocess.run([python, "-c", code, *packages], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def measure(one_run, args: argparse.Namespace) -> dict:
    """Cold and warm runs: `one_run(cache, seed)`. Medians over the warm runs; one where the cold one took long."""
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        result: dict = {"cold": one_run(cache, 0), "warm": []}
        if result["cold"]["status"] == 0:
            runs = args.runs if result["cold"]["wall"] < 90 else 1
            result["warm"] = [one_run(cache, seed) for seed in range(1, runs + 1)]
    warm = [r for r in result["warm"] if r["status"] == 0]
    for part, runs in (("cold", [result["cold"]] if result["cold"]["status"] == 0 else []), ("warm", warm)):
        if runs and "ess_bulk" in runs[0]:
            result[f"ess_per_s_{part}"] = statistics.median(r["ess_bulk"] / r["wall"] for r in runs)
    return result


def middle(result: dict, key: str) -> float | None:
    """Median over the warm runs, else the value of the cold one."""
    values = [r[key] for r in result["warm"] or [result["cold"]] if r.get(key) is not None]
    return statistics.median(values) if values else None


def number(x: float | None, digits: int = 3) -> str:
    """Three significant digits, whole numbers beyond; - for nothing."""
    if x is None:
        return "-"
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:.{digits}g}"


def aligned(rows: list[list[str]]) -> str:
    """Text columns: the first two to the left, numbers to the right."""
    width = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(row, width, strict=True)))
             for row in rows]  # fmt: skip
    return "".join(f"{line.rstrip()}\n" for line in lines)


def wall_text(result: dict, part: str, limit: float) -> str:
    if part == "cold" and result["cold"]["stopped"]:
        return f"> {limit:g}"
    if part == "cold" and result["cold"]["status"] != 0:
        return f"exit {result['cold']['status']}"
    runs = [result["cold"]] if part == "cold" else result["warm"]
    return number(statistics.median(r["wall"] for r in runs)) if runs else "-"


def bench_peers(args: argparse.Namespace) -> tuple[str, dict]:
    """Table and record of bk-irt beside its peers."""
    head = ["data", "sampler", "cold s", "warm s", "CPU s", "min ESS", "R-hat", "diverg.", "ESS/s cold",
            "ESS/s warm", "MiB", "bk-irt x cold", "x warm"]  # fmt: skip
    rows, record, remarks = [head], {}, []
    found = {name: versions(args.python, PEERS[name][0]) for name in args.peers}
    for data in args.data:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shape = prepare(data, args.scale, folder)
            results: dict[str, dict] = {}
            for sampler in ("bk-irt", *args.peers):
                print(f"{data}: {sampler}", file=sys.stderr)
                if sampler == "bk-irt":
                    results[sampler] = measure(lambda c, s, f=folder: bk_irt(f, c, s, args), args)
                elif not found[sampler]:
                    rows.append([data, sampler, "not installed", *["-"] * 10])
                    continue
                else:
                    z = noncentred(sampler, shape)
                    results[sampler] = measure(lambda c, s, p=sampler, f=folder, z=z: peer(p, f, c, s, z, args), args)
                    results[sampler]["noncentred"] = z
                r, ours = results[sampler], results["bk-irt"]
                ratios = []
                for part in ("ess_per_s_cold", "ess_per_s_warm"):
                    known = sampler != "bk-irt" and part in r and part in ours
                    ratios.append(number(ours[part] / r[part]) if known else "-")
                rhat, diverged = middle(r, "max_rhat"), middle(r, "divergences")
                rows.append([data, sampler, wall_text(r, "cold", args.limit), wall_text(r, "warm", args.limit),
                             number(middle(r, "cpu")), number(middle(r, "ess_bulk")),
                             "-" if rhat is None else f"{rhat:.3f}", number(diverged),
                             number(r.get("ess_per_s_cold")), number(r.get("ess_per_s_warm")),
                             number(max(x["peak_mib"] for x in (r["cold"], *r["warm"]))), *ratios])  # fmt: skip
                for run_ in (r["cold"], *r["warm"]):
                    if run_["status"] != 0:
                        remarks.append(f"{data}, {sampler}: {'stopped at' if run_['stopped'] else 'failed:'} "
                                       f"{run_['reached']}")  # fmt: skip
            record[data] = {"shape": shape, "results": results}
            for part in ("cold", "warm"):
                rates = {s: r[f"ess_per_s_{part}"] for s, r in results.items() if f"ess_per_s_{part}" in r}
                ours_ = rates.pop("bk-irt", None)
                # a full or low-rank mass matrix is a choice that the user has to know of
                for which, names in (("with default settings", [s for s in rates if "-" not in s]), ("of all", rates)):
                    if names and ours_:
                        best = max(names, key=rates.__getitem__)
                        times = ours_ / rates[best]
                        record[data][f"ratio_to_best_{which.replace(' ', '_')}_{part}"] = [best, times]
                        remarks.append(f"{data}, {part}: {number(times)} times the ESS per second of the best peer "
                                       f"{which}, {best}")  # fmt: skip
            free = [s for s, r in results.items() if r.get("noncentred")]
            if free:
                remarks.append(f"{data}: non-centred parameters for {', '.join(free)}")
    text = aligned(rows) + "".join(f"{x}\n" for x in remarks)
    text += f"{args.chains} chains x {args.draws} draws; peers after {args.warmup} steps of warm-up, bk-irt after its "
    text += "own number. CPU s: of a warm run. MiB: peak memory of the largest process.\n"
    for sampler in ("bk-irt", *args.peers):
        of = ", ".join(f"{p} {v}" for p, v in found.get(sampler, {}).items())
        text += f"{sampler}: {NOTES[sampler]}{f' ({of})' if of else ''}\n"
    return text, {"versions": found, "data": record}


def bench_shapes(args: argparse.Namespace) -> tuple[str, dict]:
    """Table and record of bk-irt on simulated data."""
    head = ["models x items", "", "cells", "cold s", "warm s", "min ESS", "ESS/s warm", "R-hat", "diverg.", "E-BFMI",
            "MiB"]  # fmt: skip
    rows, record, remarks = [head], {}, []
    for name in args.shapes:
        print(f"shapes: {name}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder_name:
            folder = Path(folder_name)
            shape = prepare(name, args.scale, folder)

            def one(cache: Path, seed: int, folder: Path = folder) -> dict:
                output = folder / "fit.arrow"
                command = [BIN / "bk-irt", folder / "responses.arrow", "-q", "-o", output, "-s", seed]
                command += ["--chains", args.chains, "--draws", args.draws, *shlex.split(args.options)]
                found = run([str(x) for x in command], folder, cache, args.limit)
                if found["status"] == 0:
                    found["fit"] = read_fit(output)[1]
                    found |= {k: found["fit"][k] for k in ("max_rhat", "divergences", "min_e_bfmi")}
                    found |= {"ess_bulk": found["fit"]["min_ess_bulk"]}
                return found

            r = record[name] = measure(one, args)
        worst = [max((x.get("max_rhat") or 0.0) for x in (r["cold"], *r["warm"])),
                 sum((x.get("divergences") or 0) for x in (r["cold"], *r["warm"]))]  # fmt: skip
        rows.append([" x ".join(str(k) for k in shape), "", str(shape[0] * shape[1]), wall_text(r, "cold", args.limit),
                     wall_text(r, "warm", args.limit), number(middle(r, "ess_bulk")), number(r.get("ess_per_s_warm")),
                     f"{worst[0]:.4f}", str(worst[1]), number(middle(r, "min_e_bfmi"), 2),
                     number(max(x["peak_mib"] for x in (r["cold"], *r["warm"])))])  # fmt: skip
        if r["cold"]["status"] != 0:
            remarks.append(f"{name}: {'stopped' if r['cold']['stopped'] else 'failed'}: {r['cold']['reached']}")
    text = aligned(rows) + "".join(f"{x}\n" for x in remarks)
    return text + "R-hat: the largest, divergences: the sum, over the cold and the warm runs.\n", record


def bench_cells(args: argparse.Namespace) -> tuple[str, dict]:
    """Table and record of nanoseconds a cell and gradient, in both precisions; one chain, its warm-up not timed."""
    from benchkit.irt.geometry import target
    from benchkit.irt.laplace import laplace
    from benchkit.irt.model import Priors, check_data
    from benchkit.irt.sampler import Sampler

    head = ["models x items", "bk-irt takes", "cells", "gradients", "us a gradient", "ns a cell and gradient"]
    rows, record = [[*head, "float64: us", "ns"]], []
    for n_models, n_items in CELLS:
        cells = n_models * n_items
        if cells > args.max_cells:
            continue
        print(f"cells: {n_models} x {n_items}", file=sys.stderr)
        data = check_data(*simulated(n_models, n_items, 1))
        whole = target(data, Priors(), laplace(data, Priors()))
        row = {"models": n_models, "items": n_items, "cells": cells, "double": whole.double}
        for name, double in (("float32", False), ("float64", True)):
            options = {"chains": 1, "warmup": 20, "target_accept": 0.8, "max_treedepth": 8, "seed": 1}
            chain = Sampler(whole._replace(double=double), **options)
            chain.draw(4)
            best = float("inf")
            for _ in range(3 if cells < 3e6 else 1):
                start = time.perf_counter()
                gradients = int(chain.draw(max(10, min(1000, int(5e6) // cells))).gradients.sum())
                best = min(best, (time.perf_counter() - start) / gradients)
            row |= {name: best, f"gradients_{name}": gradients}
        record.append(row)
        times = [[number(row[x] * 1e6), number(row[x] / cells * 1e9)] for x in ("float32", "float64")]
        precision = "float64" if whole.double else "float32"
        rows.append([f"{n_models} x {n_items}", precision, str(cells), str(row["gradients_float32"]),
                     *times[0], *times[1]])  # fmt: skip
    text = aligned(rows)
    large = [r for r in record if r["cells"] >= 10_000]
    if len(large) > 1:
        x, y = np.log([r["cells"] for r in large]), np.log([r["float32"] for r in large])
        text += f"Seconds a gradient grow as cells^{np.polyfit(x, y, 1)[0]:.2f} from 10^4 cells on; 1 is linear.\n"
    return text, {"sizes": record}


def machine() -> dict:
    """What the numbers depend on."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    names = ("benchkit", "jax", "jaxlib", "blackjax", "numpy")
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
            "python": platform.python_version(), **{p: metadata.version(p) for p in names}}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = {"peers": bench_peers, "shapes": bench_shapes, "cells": bench_cells}
    split = lambda text: [x for x in text.split(",") if x]  # noqa: E731
    parser.add_argument("what", nargs="*", help=f"of {', '.join(names)} (default all)")
    parser.add_argument("--data", type=split, default="aime,math500,1000x1000", help="aime, math500, NxM[xATTEMPTS]")
    parser.add_argument("--peers", type=split, default=",".join(PEERS), help="of %(default)s; '' for none")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--shapes", type=split, default=SHAPES)
    parser.add_argument("--scale", type=float, default=1, help="larger side of simulated data times this")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is stopped")
    parser.add_argument("--runs", type=int, default=3, help="warm runs; one where the cold run took 90 s")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--warmup", type=int, default=1000, help="the peers' warm-up")
    parser.add_argument("--options", default="", help="further options of bk-irt, in one string")
    parser.add_argument("--max-cells", type=float, default=1e7, help="of cells: the largest size")
    args = parser.parse_args()
    unknown = [x for x in args.what if x not in names] + [x for x in args.peers if x not in PEERS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    out = Path("bench")
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache  # of `cells`; the others set their own
        for what in args.what or names:
            about = machine()
            text, record = names[what](args)
            about["load_after"] = os.getloadavg()[0]
            text += ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in about.items()) + "\n"
            (out / f"irt_{what}.txt").write_text(text)
            settings = {k: v for k, v in vars(args).items() if k != "python"}
            (out / f"irt_{what}.json").write_text(
                json.dumps({"machine": about, "settings": settings, what: record}, indent=1)
            )
            print(text)


if __name__ == "__main__":
    main()
