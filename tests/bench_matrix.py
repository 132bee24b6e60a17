"""bk-matrix beside other software at equal work: `make bench`, or by hand

    bench_matrix.py [attempts] [logs] [alone] [--python PYTHON] [--forms parquet,csv,ndjson] [--rows 1e8] ...

attempts  9.6 million attempts (200 models x 2,000 items x 24) as Parquet and as CSV, a fifth of them as NDJSON, all
          shuffled: polars, DuckDB and pandas add them up and write the same table; --rows takes more of Parquet
logs      200 logs of Inspect AI with 1,000 samples each: inspect_ai's own data frames, of some of the logs, scaled
alone     450 trials of Harbor, a file each, and wide tables, by bk-matrix only

Whole processes, start-up included, their files in the page cache: the least wall time and the least processor time of
several runs, which the programs take in turns, so that what else the machine does falls on all of them. Every result
is compared with the counts that its data was made with. Without --python bk-matrix runs alone.

Prints tables and keeps them, with everything that was measured, in bench/matrix_*.txt and bench/matrix_*.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bench_irt import BIN, HERE, aligned, machine, number, run, versions

SHAPE = (200, 2000, 24)  # models, items, attempts
NDJSON = (200, 2000, 5)
WIDE = ((12, 200_000), (5000, 500))
LOGS, SAMPLES, TRIALS = 200, 1000, 450
FORMS = {"parquet": "Parquet", "csv": "CSV", "ndjson": "NDJSON"}
PEERS = {"attempts": ("polars", "polars-categorical", "duckdb", "pandas", "pandas-categorical"),
         "logs": ("inspect_ai", "inspect_ai-few", "inspect_ai-few-parallel")}  # fmt: skip
LARGE = ("polars", "duckdb")  # of more rows than pandas can hold
# of the wall time of another program: what bk-matrix is meant to take at most, with Parquet and with logs
GOALS = {"polars": 1.2, "inspect_ai": 1 / 20}
NOTES = {
    "polars": "a bare script: scan, group, sort, streaming engine",
    "polars-categorical": "the same with names as categories",
    "duckdb": "one statement of SQL",
    "pandas": "the needed columns by pyarrow, then groupby",
    "pandas-categorical": "the same with names as categories",
    "inspect_ai": "samples_df with its columns of models and samples",
    "inspect_ai-few": "the same with the four columns that are needed",
    "inspect_ai-few-parallel": "the same with a process a core",
}


# ---- data, with the table that comes of it


def names(kind: str, n: int) -> pa.Array:
    """Fixed width, so that their order is that of their numbers."""
    return pa.array([f"{kind}-{k:0{len(str(n - 1))}}" for k in range(n)])


def table(models: pa.Array, items: pa.Array, attempts: int, correct: np.ndarray) -> pa.Table:
    """The responses of every model to every item; correct (N, M)."""
    i, j = np.indices(correct.shape).reshape(2, -1)
    counts = [pa.array(np.full(i.size, attempts)), pa.array(correct.ravel(), pa.float64())]
    return pa.table([models.take(pa.array(i)), items.take(pa.array(j)), *counts], COLUMNS)


COLUMNS = ["model", "item", "attempts", "correct"]


def save_parquet(path: Path, shape: tuple[int, int, int]) -> pa.Table:
    """Attempts in random order, in blocks of 10 million at most; the table they add up to."""
    n, m, attempts = shape
    rng = np.random.default_rng(shape)
    models, items = names("org/model", n), names("bench/item", m)
    correct = np.zeros(n * m, dtype=np.int64)
    step = max(1, 10_000_000 // (n * m))
    fields = [("model", pa.dictionary(pa.int32(), pa.utf8())), ("item", pa.dictionary(pa.int32(), pa.utf8())),
              ("attempt", pa.int32()), ("score", pa.bool_())]  # fmt: skip
    with pq.ParquetWriter(path, pa.schema(fields)) as out:
        for first in range(0, attempts, step):
            block = rng.permutation(n * m * min(step, attempts - first))
            cell, attempt = block % (n * m), first + block // (n * m)
            score = rng.random(block.size) < 0.5
            correct += np.bincount(cell, score, n * m).astype(np.int64)
            coded = ((models, cell // m), (items, cell % m))
            arrays = [pa.DictionaryArray.from_arrays(pa.array(k, pa.int32()), name) for name, k in coded]
            out.write_table(pa.table([*arrays, pa.array(attempt, pa.int32()), pa.array(score)], schema=out.schema))
    return table(models, items, attempts, correct.reshape(n, m))


def save_text(path: Path, source: Path) -> None:
    """The rows of a Parquet file as CSV or NDJSON, a row group at a time."""
    csv = path.suffix == ".csv"
    with pq.ParquetFile(source) as file, path.open("wb") as out:
        if csv:
            out.write(b"model,item,attempt,score\n")
        for k in range(file.num_row_groups):
            c = [pc.cast(x, pa.utf8()).combine_chunks() for x in file.read_row_group(k).columns]
            words = ["", ",", ",", ",", "\n"] if csv else [
                '{"model":"', '","item":"', '","attempt":', ',"score":', "}\n"]  # fmt: skip
            parts = [x for pair in zip(words, c, strict=False) for x in pair]
            lines = pc.binary_join_element_wise(*parts, words[-1], "")
            out.write(lines.buffers()[2])  # the bytes of all strings, one after another


def save_logs(folder: Path, n: int, samples: int) -> pa.Table:
    """Archives as Inspect AI writes them, a model each: header, summaries, journal and a member a sample."""
    folder.mkdir()
    rng = np.random.default_rng([n, samples])
    models, items = names("org/model", n), names("item", samples)
    right = rng.random((n, samples)) < 0.6
    for k, model in enumerate(models.to_pylist()):
        usage = {model: {"input_tokens": 120, "output_tokens": 300, "total_tokens": 420}}
        about = {"eval_id": f"e{k}", "run_id": f"r{k}", "created": "2026-01-01T00:00:00+00:00", "task": "bench",
                 "task_id": f"t{k}", "task_version": 0, "task_attribs": {}, "task_args": {}, "model": model,
                 "dataset": {"name": "bench", "samples": samples, "shuffled": False}, "model_args": {},
                 "model_generate_config": {}, "config": {}, "packages": {"inspect_ai": "0.3.100"}}  # fmt: skip
        start = {"version": 2, "eval": about, "plan": {"name": "plan", "steps": [], "config": {}}}
        header = start | {
            "status": "success",
            "results": {"total_samples": samples, "completed_samples": samples, "scores": []},
            "stats": {"started_at": about["created"], "completed_at": about["created"], "model_usage": usage},
        }
        summaries = [
            {"id": item, "epoch": 1, "input": "What is the answer to this question, and why is it so? " * 6,
             "target": "42", "metadata": {}, "model_usage": usage, "total_time": 1.2, "working_time": 1.1,
             "uuid": f"u{k}-{item}", "completed": True, "message_count": 2,
             "scores": {"match": {"value": "C" if score else "I", "answer": "42", "history": []}}}
            for item, score in zip(items.to_pylist(), right[k], strict=True)
        ]  # fmt: skip
        answer = {"role": "assistant", "content": "Because " * 50, "id": "b", "source": "generate"}
        more = {"messages": [answer], "output": {"model": model, "choices": []}, "store": {}, "events": []}
        with zipfile.ZipFile(folder / f"{k:04}.eval", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
            out.writestr("_journal/start.json", json.dumps(start))
            for summary in summaries:
                out.writestr(f"samples/{summary['id']}_epoch_1.json", json.dumps(summary | more))
            out.writestr("summaries.json", json.dumps(summaries))
            out.writestr("header.json", json.dumps(header))
    return table(models, items, 1, right)


def save_trials(folder: Path, n: int) -> pa.Table:
    """Three jobs of Harbor, each of three trials of every task, a folder a trial."""
    right = np.random.default_rng(n).random((3, n // 9, 3)) < 0.5
    models, items = names("p/model", 3), names("task", n // 9)
    for i, j, k in np.ndindex(right.shape):
        task = items[int(j)].as_py()
        name = f"{task}__{k}"
        agent = {"name": "terminus-2", "version": "2.0", "model_info": {"name": f"model-{i}", "provider": "p"}}
        trial = {
            "id": f"x{i}-{j}-{k}", "task_name": task, "trial_name": name, "trial_uri": f"file:///{name}",
            "task_id": {"path": f"tasks/{task}"}, "source": "terminal-bench", "task_checksum": "c",
            "config": {"agent": {"name": "terminus-2", "model_name": f"p/model-{i}", "kwargs": {}}},
            "agent_info": agent, "agent_result": {"cost_usd": 0.1}, "exception_info": None,
            "verifier_result": {"rewards": {"reward": float(right[i, j, k])}},
            "started_at": "2026-01-01T00:00:00", "finished_at": "2026-01-01T00:10:00",
        }  # fmt: skip
        path = folder / f"job-{i}" / name / "result.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(trial))
    return table(models, items, 3, right.sum(2))


def save_wide(path: Path, n: int, m: int) -> pa.Table:
    """A row a model, a column an item, cells of 0 and 1."""
    models, items = names("org/model", n), names("bench/item", m)
    right = np.random.default_rng([n, m]).random((n, m)) < 0.5
    with path.open("w") as out:
        out.write(",".join(["model", *items.to_pylist()]) + "\n")
        for model, row in zip(models.to_pylist(), right, strict=True):
            out.write(f"{model},{','.join(map('01'.__getitem__, row.tolist()))}\n")
    return table(models, items, 1, right)


# ---- runs


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary; pyarrow can't cast one of polars' strings."""
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([c.dictionary.cast(pa.utf8()).take(c.indices) for c in column.chunks], pa.utf8())


def check(path: Path, want: pa.Table, who: str) -> None:
    """End the program where the file, Parquet or a stream of Arrow, does not hold the table that is wanted."""
    if path.read_bytes()[:4] == b"PAR1":
        found = pq.read_table(path)
    else:
        with pa.ipc.open_stream(path) as stream:
            found = stream.read_all()
    found = pa.table([decoded(found[c]).cast(want[c].type) for c in COLUMNS], COLUMNS)
    if not found.equals(want):
        sys.exit(f"{who}: another table than the data was made with")


def measure(commands: dict[str, list[str]], wants: dict[str, pa.Table], folder: Path, args: argparse.Namespace) -> dict:
    """Each command `args.runs` times, in turns: its runs, and least wall and cpu, largest peak_mib.

    RESULT in a command is the file it writes. A command whose first run takes 20 s or more, or fails, has no second.
    """
    found: dict[str, dict] = {name: {"runs": []} for name in commands}
    for turn in range(args.runs):
        for name, command in commands.items():
            runs = found[name]["runs"]
            if turn and (runs[0]["status"] != 0 or runs[0]["wall"] >= 20):
                continue
            result = folder / "result"
            one = run([str(result) if x == "RESULT" else x for x in command], folder, folder / "cache", args.limit)
            runs.append(one)
            if one["status"] == 0:
                check(result, wants[name], name)
                one["said"] = (folder / "out").read_text()
                result.unlink()
    for name, of in found.items():
        good = [r for r in of["runs"] if r["status"] == 0]
        if good:
            of |= {"wall": min(r["wall"] for r in good), "cpu": min(r["cpu"] for r in good)}
            of["peak_mib"] = max(r["peak_mib"] for r in good)
        else:
            last = of["runs"][-1]
            print(f"{name}: {'stopped' if last['stopped'] else 'failed'}: {last['reached']}", file=sys.stderr)
    return found


def ours(source: Path) -> list[str]:
    return [str(BIN / "bk-matrix"), "-q", str(source), "-o", "RESULT"]


def theirs(name: str, args: argparse.Namespace, *words: object) -> list[str]:
    return [args.python, str(HERE / "bench_matrix_peers.py"), name, *map(str, words)]


def rows_of(data: str, found: dict, remarks: list[str]) -> list[list[str]]:
    """Rows of a table, and words on what is meant to hold."""
    rows = []
    base = found["bk-matrix"]
    for name, of in found.items():
        if "wall" not in of:
            rows.append([data, name, *["-"] * 5])
            continue
        times = [number(of[k] / base[k]) for k in ("wall", "cpu")] if base is not of and "wall" in base else ["-", "-"]
        rows.append([data, name, number(of["wall"]), number(of["cpu"]), number(of["peak_mib"]), *times])
        if name in GOALS and "wall" in base:
            share = [number(base[k] / of[k]) for k in ("wall", "cpu")]
            goal = f"; at most {number(GOALS[name])} is meant" if data.startswith(("Parquet", str(LOGS))) else ""
            remarks.append(f"{data}: {share[0]} of the wall time and {share[1]} of the CPU time of {name}{goal}")
    return rows


HEAD = ["data", "software", "wall s", "CPU s", "MiB", "wall x", "CPU x"]
LEGEND = """x: times what bk-matrix takes. MiB: peak memory of the largest process; a folder is read by one a core.
bk-matrix also checks that no attempt stands twice.
"""


def bench_attempts(args: argparse.Namespace, peers: list[str]) -> tuple[str, dict]:
    """Table and record of single attempts."""
    rows, remarks, record = [HEAD], [], {}
    sizes = [(form, NDJSON if form == "ndjson" else SHAPE) for form in args.forms]
    if args.rows:
        sizes.append(("parquet", (500, 5000, max(1, round(args.rows / 2_500_000)))))
    for form, shape in sizes:
        large = np.prod(shape) > np.prod(SHAPE)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            source = folder / f"raw.{form}"
            want = save_parquet(folder / "raw.parquet", shape)
            if form != "parquet":
                save_text(source, folder / "raw.parquet")
                (folder / "raw.parquet").unlink()
            data = f"{FORMS[form]}, {np.prod(shape) / 1e6:g} million rows, {number(source.stat().st_size / 1e6)} MB"
            print(data, file=sys.stderr)
            commands = {"bk-matrix": ours(source)}
            for peer in peers:
                if not large or peer in LARGE:
                    commands[peer] = theirs(peer, args, form, source, "RESULT")
            found = measure(commands, dict.fromkeys(commands, want), folder, args)
        rows += rows_of(data, found, remarks)
        record[f"{form}{' large' if large else ''}"] = {"shape": shape, "runs": found}
    return aligned(rows) + "".join(f"{x}\n" for x in remarks) + LEGEND, record


def bench_logs(args: argparse.Namespace, peers: list[str]) -> tuple[str, dict]:
    """Table and record of logs; what a peer does for some of them is scaled, but for its start."""
    remarks: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        some = min(args.peer_logs, args.logs)
        want = save_logs(folder / "logs", args.logs, SAMPLES)
        size = sum(p.stat().st_size for p in (folder / "logs").iterdir()) / 1e6
        data = f"{args.logs} logs of {SAMPLES} samples, {number(size)} MB"
        print(data, file=sys.stderr)
        commands = {"bk-matrix": ours(folder / "logs")}
        commands |= {p: theirs(p, args, "eval", folder / "logs", "RESULT", some) for p in peers}
        wants = {p: want if p == "bk-matrix" else want.slice(0, some * SAMPLES) for p in commands}
        found = measure(commands, wants, folder, args)
    for peer in peers:
        of = found[peer]
        for key, at in (("wall", 0), ("cpu", 1)):
            if key in of:
                starts = [float(r["said"].split()[at]) for r in of["runs"] if r["status"] == 0]
                of[key] = min(starts) + (of[key] - min(starts)) * args.logs / some
    text = aligned([HEAD, *rows_of(data, found, remarks)]) + "".join(f"{x}\n" for x in remarks) + LEGEND
    if peers and some < args.logs:
        text += f"The peers read {some} of the logs. Their times, but for their start, are scaled; memory is not.\n"
    return text, {"logs": found}


def bench_alone(args: argparse.Namespace, peers: list[str]) -> tuple[str, dict]:
    """Table and record of what only bk-matrix reads."""
    rows, record = [HEAD[:5]], {}
    kinds: list[tuple[str, Callable[[Path], pa.Table]]] = [
        (f"Harbor, {TRIALS} trials", lambda path: save_trials(path, TRIALS))
    ]
    for n, m in WIDE:
        kinds.append((f"wide CSV, {n} x {m}", lambda path, n=n, m=m: save_wide(path, n, m)))
    for data, save in kinds:
        with tempfile.TemporaryDirectory() as name:
            print(data, file=sys.stderr)
            want = save(Path(name) / "raw")
            found = measure({"bk-matrix": ours(Path(name) / "raw")}, {"bk-matrix": want}, Path(name), args)
        rows += [row[:5] for row in rows_of(data, found, [])]
        record[data] = found
    return aligned(rows), record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = {"attempts": bench_attempts, "logs": bench_logs, "alone": bench_alone}
    split = lambda text: [x for x in text.split(",") if x]  # noqa: E731
    parser.add_argument("what", nargs="*", help=f"of {', '.join(tasks)} (default all)")
    parser.add_argument("--python", help="interpreter that has the peers; without it bk-matrix runs alone")
    parser.add_argument("--forms", type=split, default=",".join(FORMS), help="of %(default)s; '' for none")
    parser.add_argument("--rows", type=float, default=0, help="also so many rows of Parquet, such as 1e8, no pandas")
    parser.add_argument("--logs", type=int, default=LOGS)
    parser.add_argument("--peer-logs", type=int, default=20, help="of the logs, how many the peers read")
    parser.add_argument("--runs", type=int, default=5, help="of which the least counts; one where it takes 20 s")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is stopped")
    args = parser.parse_args()
    unknown = [x for x in args.what if x not in tasks] + [x for x in args.forms if x not in FORMS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    out = Path("bench")
    out.mkdir(exist_ok=True)
    for what in args.what or tasks:
        packages = {p: p.partition("-")[0] for p in PEERS.get(what, ()) if args.python}
        of = {p: versions(args.python, (p,)) for p in dict.fromkeys(packages.values())}
        peers = [p for p in packages if of[packages[p]]]
        about = {k: v for k, v in machine().items() if k not in ("jax", "jaxlib", "blackjax")}
        about["pyarrow"] = metadata.version("pyarrow")
        text, record = tasks[what](args, peers)
        about["load_after"] = os.getloadavg()[0]
        about |= {k: v for x in of.values() for k, v in x.items()}
        for peer in packages:
            if peer not in peers or f"  {peer}  " in text:
                text += f"{peer}: {NOTES[peer] if peer in peers else 'not installed'}\n"
        text += ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in about.items()) + "\n"
        (out / f"matrix_{what}.txt").write_text(text)
        settings = {k: v for k, v in vars(args).items() if k != "python"}
        (out / f"matrix_{what}.json").write_text(
            json.dumps({"machine": about, "settings": settings, what: record}, indent=1)
        )
        print(text)


if __name__ == "__main__":
    main()
