"""One small valid source of every format that bk-matrix reads, as the tests of hostile input take them to pieces."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import test_formats_bfcl as bfcl
import test_formats_code as code
import test_formats_deepeval as deepeval
import test_formats_every_eval_ever as every_eval_ever
import test_formats_harbor as harbor
import test_formats_helm as helm
import test_formats_human_eval as human_eval
import test_formats_irt as irt
import test_formats_lighteval as lighteval
import test_formats_matharena as matharena
import test_formats_openai_evals as openai_evals
import test_formats_opencompass as opencompass
import test_formats_promptfoo as promptfoo
import test_formats_swebench as swebench
import test_formats_tau_bench as tau_bench
import zstandard
from conftest import DATA


class Source(NamedTuple):
    """A file as bytes, the JSON value that it holds (None where it is no JSON), files beside it, options it needs."""

    name: str
    file: str
    data: bytes
    document: Any = None
    beside: dict[str, bytes] = {}  # noqa: RUF012
    options: tuple[str, ...] = ()

    @property
    def lines(self) -> bool:
        """Whether the file has an object a line."""
        return self.file.endswith("l")

    def holding(self, document: Any) -> Source:
        """With another JSON value."""
        return self._replace(document=document, data=text(document, lines=self.lines))


def text(document: Any, *, lines: bool = False, **style: Any) -> bytes:
    """JSON as Python writes it: NaN, Infinity and lone surrogates stay in."""
    rows = document if lines and isinstance(document, list) else [document]
    return b"".join(json.dumps(row, **style).encode() + (b"\n" if lines else b"") for row in rows)


def of(name: str, file: str, document: Any, *options: str, **beside: Any) -> Source:
    """A source that is JSON, or NDJSON where the file's name ends in l. beside: the stems of other JSON files."""
    others = {f"{stem}.json": text(value) for stem, value in beside.items()}
    return Source(name, file, b"", None, others, options).holding(document)


# ---- tables -------------------------------------------------------------------------------------------------------

LONG = [
    {"model": m, "item": i, "attempt": a, "score": s, "cluster": c, "note": n}
    for m, i, a, s, c, n in (
        ("a", "007", 0, 1, "x", "first"), ("a", "007", 1, 0, "x", 'a "quoted" word'), ("a", "10", 0, 0.25, "y", "a,b"),
        ("a", "2", 0, 1, "y", "line\nline"), ("b", "007", 0, 0, "x", ""), ("b", "10", 0, 1, "y", "ü"),
        ("b", "10", 1, 0.5, "y", "="), ("b", "2", 0, 1, "y", None),
    )
]  # fmt: skip
COUNTS = [
    {"model": m, "item": i, "attempts": n, "correct": k, "cluster": None}
    for m, i, n, k in (("a", "q1", 4, 3), ("a", "q2", 2, 0.5), ("b", "q1", 1, 1), ("b", "q2", 7, 0))
]
WIDE = [{"model": "a", "007": "1", "10": "3/4", "2": None}, {"model": "b", "007": "0", "10": "true", "2": "1"}]
TRANSPOSED = [{"item": "007", "a": "1", "b": "0"}, {"item": "10", "a": "3/4", "b": "true"}]


def csv(rows: list[dict[str, Any]], separator: str = ",", end: str = "\n") -> bytes:
    """Fields in quotes where they must be."""

    def field(value: Any) -> str:
        found = "" if value is None else str(value)
        return '"' + found.replace('"', '""') + '"' if any(c in found for c in f'{separator}"\r\n') else found

    return "".join(separator.join(map(field, r)) + end for r in [list(rows[0]), *(r.values() for r in rows)]).encode()


def parquet(rows: list[dict[str, Any]] | pa.Table, **how: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), out, **how)
    return out.getvalue()


def arrow(rows: list[dict[str, Any]] | pa.Table, *, file: bool = False) -> bytes:
    found, out = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), io.BytesIO()
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(out, found.schema) as writer:
        writer.write_table(found)
    return out.getvalue()


TYPED = [row | {"score": float(row["score"])} for row in LONG]
TABLES = (
    Source("long csv", "a.csv", csv(LONG)),
    Source("long tsv", "a.tsv", csv(LONG, "\t")),
    Source("long semicolons", "a.csv", csv(LONG, ";", "\r\n")),
    Source("counts csv", "a.csv", csv(COUNTS)),
    Source("wide csv", "a.csv", csv(WIDE)),
    Source("transposed csv", "a.csv", csv(TRANSPOSED)),
    of("long json", "a.json", LONG),
    of("long ndjson", "a.jsonl", LONG),
    of("counts json", "a.json", {"responses": COUNTS, "sources": [], "warnings": [], "history": []}),
    of("wide ndjson", "a.jsonl", WIDE),
    Source("long parquet", "a.parquet", parquet(TYPED, compression="none", use_dictionary=False)),
    Source("long parquet dictionaries", "a.parquet", parquet(TYPED * 40, compression="none"),
           options=("--duplicates", "first")),
    Source("long parquet snappy", "a.parquet", parquet(TYPED, compression="snappy")),
    Source("long parquet zstd", "a.parquet", parquet(TYPED, compression="zstd", data_page_version="2.0")),
    Source("counts parquet", "a.parquet", parquet(COUNTS)),
    Source("long arrow", "a.arrow", arrow(TYPED)),
    Source("long arrow file", "a.arrow", arrow(TYPED, file=True)),
)  # fmt: skip

# ---- files of tools -----------------------------------------------------------------------------------------------

EVAL = {"model": "openai/gpt-x", "task": "gsm8k", "model_generate_config": {"temperature": 0.5},
        "model_args": {"device": "cpu"}}  # fmt: skip
SAMPLES = [
    {"id": i, "epoch": e, "input": "..", "target": "C", "scores": {"match": {"value": v, "answer": "x"}}}
    for i, e, v in ((1, 1, "C"), (1, 2, "I"), ("q", 1, "P"), ("q", 2, 0.25))
]
HEADER = {"version": 2, "status": "success", "eval": EVAL, "plan": {"name": "plan", "steps": []}, "results": {}}


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive; method 93 is Zstandard, whose members are written into a stored archive and relabelled."""
    out = io.BytesIO()
    if method != 93:
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name), data, method)
        return out.getvalue()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), zstandard.compress(data))
        for info, data in zip(archive.infolist(), members.values(), strict=True):  # the directory is written on leaving
            info.compress_type, info.file_size, info.CRC = 93, len(data), zipfile.crc32(data)
    return out.getvalue()


MEMBERS = {"header.json": text(HEADER), "summaries.json": text(SAMPLES), "samples/1_epoch_1.json": b"{}"}
RUNNING = {
    "_journal/start.json": text({"version": 2, "eval": EVAL, "plan": {}}),
    "_journal/summaries/1.json": text(SAMPLES[:2]),
    "_journal/summaries/2.json": text(SAMPLES[2:]),
}
STAMP = "2026-01-02T03-04-05.678901"
SAMPLE = [
    {"doc_id": k, "doc": {"q": ".."}, "target": "1", "arguments": [], "resps": [["x"]], "filtered_resps": ["x"],
     "filter": "none", "metrics": ["exact_match"], "exact_match": s, "doc_hash": "h"}
    for k, s in enumerate((1.0, 0.0, 1.0))
]  # fmt: skip
RESULTS = {"results": {}, "configs": {}, "versions": {}, "config": {"model_args": "pretrained=org/m"},
           "model_name": "org/m"}  # fmt: skip

TOOLS = (
    of("inspect json", "a.json", HEADER | {"samples": SAMPLES}),
    Source("inspect eval", "a.eval", zipped(MEMBERS)),
    Source("inspect eval zstd", "a.eval", zipped(MEMBERS, 93)),
    Source("inspect eval running", "a.eval", zipped(RUNNING)),
    of("lm_eval", f"samples_gsm8k_{STAMP}.jsonl", SAMPLE, **{f"results_{STAMP}": RESULTS}),
    of("helm", "per_instance_stats.json", helm.RUN, "--metric", "exact_match", run_spec=helm.SPEC),
    of("matharena ndjson", "a.jsonl", matharena.ROWS),
    Source("matharena parquet", "a.parquet", parquet(matharena.ROWS)),
    Source("matharena proofs", "a.parquet", parquet(matharena.PROOFS), options=("--scorer", "judge_1")),
    of("matharena run", "3.json", matharena.RUN, "--model", "m", "--unscored", "drop"),
    of("swebench report", "a.json", swebench.REPORT, "--model", "m", "--errors", "drop"),
    of("swebench details", "a.json", swebench.DETAILS, "--model", "m"),
    of("swebench instance", "report.json", swebench.INSTANCE, "--model", "m"),
    of("swebench pro", "a.json", json.loads(swebench.PRO.read_bytes()), "--model", "m"),
    Source("swebench results", "results.json", text(swebench.RESULTS), swebench.RESULTS,
           {"ids": "\n".join(swebench.ALL).encode()}, ("--model", "m", "--items", "ids")),
    of("livecodebench", f"{code.MODEL}_eval_all.json", code.GRADED, "--model", "m"),
    of("evalplus", "m_eval_results.json", code.RESULTS, "--model", "m", "--metric", "base"),
    of("evalplus older", "m_eval_results.json", code.OLD, "--model", "m", "--metric", "plus"),
    of("openai evals", "a.jsonl", openai_evals.LOG),
    of("openai evals metrics", "a.jsonl", openai_evals.METRICS, "--metric", "accuracy"),
    of("promptfoo", "results.json", promptfoo.results(promptfoo.row(), promptfoo.row(q="1", success=False))),
    of("livebench", "a.jsonl",
       [json.loads(x) for x in (DATA / "native/livebench/ground_truth_judgment.jsonl").read_text().splitlines()[:9]]),
    of("harbor", "result.json", harbor.trial()),
    of("terminal-bench", "results.json", {"results": [harbor.old(), harbor.old("x", "x.1")]}, "--model", "m"),
    of("tau-bench", "a.json",
       [{"task_id": 7, "reward": float(k), "trial": k, "info": {"reward_info": {}}} for k in (0, 1)], "--model", "m"),
    of("tau2-bench", "a.json", tau_bench.RUN),
    Source("lighteval", "a.parquet",
           parquet(pl.DataFrame([lighteval.new("0", em=0.0), lighteval.new("10", em=1.0)]).to_arrow()),
           options=("--model", "m")),
    Source("lighteval leaderboard", "a.parquet", parquet(pl.DataFrame(lighteval.LEADERBOARD).to_arrow()),
           options=("--model", "m", "--metric", "acc")),
    of("deepeval", "a.json", deepeval.run(*(deepeval.case(name, deepeval.metric()) for name in "ab"))),
    of("every eval ever", "a_samples.jsonl", [every_eval_ever.sample(), every_eval_ever.sample("b", 0.5)]),
    of("py-irt", "a.jsonl", irt.RESPONSES, "--unscored", "drop"),
    Source("itemeval", "gradings_long.parquet", parquet([irt.grading(), irt.grading("i2", 0.0)])),
    of("opencompass", "a.json", opencompass.results(opencompass.example("a", True, False), opencompass.example("b", 1)),
       "--model", "m"),
    of("human-eval", "m_results.jsonl", human_eval.ROWS, "--model", "m"),
    of("bfcl", "a.jsonl", [bfcl.counts(1, 2), bfcl.failure("live_simple_0-0-0", "live_simple")],
       "--items", "ids")._replace(beside={"ids": "\n".join(bfcl.ITEMS).encode()}),
    of("measurement-db", "a.jsonl",
       [{"subject_id": "m", "item_id": "q", "test_condition": c, "response": s} for c, s in (("x", 1), ("y", 0))],
       "--split", "x"),
)  # fmt: skip
SOURCES = {source.name: source for source in (*TABLES, *TOOLS)}
