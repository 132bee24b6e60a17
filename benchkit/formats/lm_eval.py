"""Samples of lm-evaluation-harness: one line a document and filter; the model's name is in the results beside them.

lmms-eval writes nearly the same. Files are called samples_<task>_<stamp>.jsonl beside results_<stamp>.json (with
--output_path FILE.json, FILE_<stamp>.json); before 0.4.3 <arguments>_<task>.jsonl, which holds a list, beside
results.json (or FILE.json), which the next model's run in the folder overwrites; in lmms-eval
<stamp>_samples_<task>.jsonl beside <stamp>_results.json, before 0.3 <task>.json with the arguments and the `logs`. The
Open LLM Leaderboard publishes them as Parquet too.

Before 0.4.8 samples don't name their filter: those of one document stand in the order of the filters of the task's
configuration, which is in the results. Numbers and flags of NumPy stood as texts then. A metric that is a list, or an
object without a score, is a part of a corpus metric: single samples have no score of it. Samples of --predict_only have
the metric bypass, or none.

Source: lm_eval/loggers/evaluation_tracker.py, evaluator.py and utils.py, lm_eval/__main__.py of 0.4.0 and 0.4.2;
lmms_eval/loggers/evaluation_tracker.py, lmms_eval/evaluator.py.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.cells import Choices
from benchkit.formats.fields import common, inner, kind, members, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number, of_wanted

NAME = "lm-evaluation-harness samples (samples_*.jsonl, with results_*.json beside it)"

OWN = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash", "input", "input_media", "token_counts",
}  # fmt: skip
HARNESS = {"doc_id", "doc", "resps", "filtered_resps"}
LMMS = {"doc_id", "target", "filtered_resps", "doc_hash"}
RESULTS = {"results", "configs", "versions"}
LOGS = {"args", "model_configs", "logs"}
PACKED = r"(?:\.gz|\.zst)*$"
FILE = re.compile(rf"samples_(?P<task>.+)_(?P<stamp>\d{{4}}-\d{{2}}-\d{{2}}T[\d.:-]+)\.jsonl?{PACKED}")
LMMS_FILE = re.compile(rf"(?P<stamp>\d{{8}}_\d{{6}})_samples_(?P<task>.+)\.jsonl?{PACKED}")
ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")  # that name a model, in the harness's order
SANITISED = re.compile(rf"(?:^|,)(?:{'|'.join(ARGUMENTS)})__")  # in the file's name before 0.4.3


def sniff(doc: Document) -> bool:
    if doc.kind == "json" and isinstance(doc.first, dict):
        return doc.first.keys() >= RESULTS or doc.first.keys() >= LOGS or _is_sample(doc.first)
    if doc.kind == "parquet":
        return set(doc.columns) >= HARNESS
    return doc.kind in ("json", "ndjson") and _is_sample(_first(doc))


def _first(doc: Document) -> Any:
    return doc.first[0] if isinstance(doc.first, list) and doc.first else doc.first


def _is_sample(row: Any) -> bool:
    return isinstance(row, dict) and (row.keys() >= HARNESS or row.keys() >= LMMS)


def read(doc: Document, choices: Choices) -> Attempts | None:
    if doc.kind == "json" and isinstance(doc.first, dict) and not _is_sample(doc.first):
        if doc.first.keys() >= LOGS:
            return _logs(doc, choices)
        if not doc.first.get("samples"):
            return None
        return _whole(doc.first, choices)
    name = os.path.basename(doc.path or "")
    named = FILE.search(name) or LMMS_FILE.search(name)
    out = Attempts("lm-eval samples", settings=f"results of {named['stamp']}" if named else None)
    if named:
        out.of_task(named["task"], choices)
    results = _results(doc, named["stamp"] if named else None)
    out.model, configs = _model(results), inner(results, "configs")
    if not named:
        stem = name.split(".json")[0]
        out.of_task(max((t for t in configs if stem.endswith(f"_{t}")), key=len, default=None), choices)
    return _samples(out, _rows(doc), configs.get(out.task or ""), choices)


def _rows(doc: Document) -> list[tuple[int, dict[str, Any]]]:
    """The samples with their rows; of Parquet without what is not needed, the documents and the responses."""
    if doc.kind == "parquet":
        names = [n for n in doc.columns if n not in OWN or n in ("doc_id", "filter", "metrics")]
        return parquet.rows(doc, names)
    if doc.kind == "ndjson":
        return _checked(doc.rows())
    return _checked(doc.first if isinstance(doc.first, list) else [doc.first])


def _checked(rows: Any) -> list[tuple[int, dict[str, Any]]]:
    """The samples of a list, or of numbered lines, each with its row; InputError for what is none."""
    found = list(rows) if isinstance(rows, Iterator) else list(members(rows, "sample"))
    for n, row in found:
        if not _is_sample(row):
            raise InputError(f"row {n}: no sample: it lacks doc_id, resps or filtered_resps")
    return found


def _whole(results: dict[str, Any], choices: Choices) -> Attempts:
    """Results that hold the samples too, as simple_evaluate returns them."""
    tasks = inner(results, "samples")
    found = of_wanted(list(tasks.items()), list(tasks), choices)
    if len(found) > 1:
        raise InputError(f"samples of several tasks ({', '.join(tasks)}): choose one with --task")
    (task, rows), *_ = found
    out = Attempts("lm-eval samples", _model(results))
    out.of_task(task, choices)
    return _samples(out, _checked(rows), inner(results, "configs").get(task), choices)


def _logs(doc: Document, choices: Choices) -> Attempts:
    """The file of a task of lmms-eval before 0.3."""
    config = inner(doc.first, "model_configs")
    time = text(doc.first, "time")
    model = _model({"config": {"model_args": inner(doc.first, "args").get("model_args")}})
    out = Attempts("lm-eval samples", model, f"results of {time}" if time else None)
    out.of_task(text(config, "task"), choices)
    return _samples(out, _checked(doc.first["logs"]), config, choices)


def _samples(out: Attempts, rows: list[tuple[int, dict[str, Any]]], config: Any, choices: Choices) -> Attempts:
    if not _metrics([row for _, row in rows], choices.metric):
        out.skip("sample without a score of its own", len(rows))
        return out
    filters = _filters(rows, config)
    found = sorted(set(filters))  # 'none' alone is a task without filters, beside which others may have some
    chosen = found[0] if found == ["none"] else choose(choices.filter, found, "--filter", "filter")
    rows = [row for row, name in zip(rows, filters, strict=True) if name == chosen]
    metric = choose(choices.metric, _metrics([r for _, r in rows], choices.metric), "--metric", "metric")
    for n, row in rows:
        out.add(row["doc_id"], _score(row.get(metric), metric, n), line=n)
    return out


def _filters(rows: list[tuple[int, dict[str, Any]]], config: Any) -> list[str]:
    """The filter of every sample; where samples don't name theirs, by their order and the task's configuration."""
    if any(row.get("filter") is not None for _, row in rows):
        return [str(row.get("filter") or "none") for _, row in rows]
    told = config.get("filter_list") if isinstance(config, dict) else None
    names = [f["name"] for f in told if isinstance(f, dict) and "name" in f] if isinstance(told, list) else []
    seen: Counter[str] = Counter()
    places = []
    for n, row in rows:
        item = identifier(row["doc_id"], "doc_id", n)
        places.append(seen[item])
        seen[item] += 1
    if names and set(seen.values()) == {len(names)}:
        return [str(names[k]) for k in places]
    return ["none"] * len(rows)


def _metrics(rows: list[dict[str, Any]], wanted: str | None) -> list[str]:
    """Metrics by their own list, or, in older files, every key that is not one of the harness's.

    Those of which samples have no score of their own are left out, unless one is wanted.
    """
    found: dict[str, None] = {}
    for row in rows:
        names = row.get("metrics")
        names = names if isinstance(names, list) else [k for k in row if k not in OWN]
        found |= dict.fromkeys(str(n) for n in names)
    found.pop("bypass", None)
    single = [n for n in found if not any(_is_part(row.get(n)) for row in rows)]
    return sorted(found if wanted in found else single)


def _is_part(value: Any) -> bool:
    """Whether a value is a part of a corpus metric."""
    return isinstance(value, list) or (isinstance(value, dict) and "score" not in value)


def _score(value: Any, metric: str, line: int) -> float | None:
    if _is_part(value):
        raise InputError(f"row {line}: {metric} is {kind(value)}, a part of a corpus metric, and no sample's score")
    if isinstance(value, dict) and "score" in value:  # of lmms-eval
        value = value["score"]
    if value in ("True", "False"):
        return float(value == "True")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            pass
    return number(value, metric, line)


def _results(doc: Document, stamp: str | None) -> dict[str, Any]:
    """The results of the same stamp, else those beside the samples where all are of one model; {} without.

    Where the samples' name has the arguments of the model, these must be the results'.
    """
    folder = os.path.dirname(doc.path or "")
    names = (f"results_{stamp}.json", f"{stamp}_results.json") if stamp else ()
    same = [n for n in names if os.path.isfile(os.path.join(folder, n))]
    beside = [] if same else doc.siblings("", ".json")
    beside = [n for n in beside if not n.startswith("samples_") and "_samples_" not in n]
    same = same or [n for n in beside if stamp and n.endswith(f"_{stamp}.json")]
    same = same or [n for n in beside if n == "results.json" or n.startswith("results_") or n.endswith("_results.json")]
    found = []
    for path in (os.path.join(folder, name) for name in same):
        value = common(path)
        if not isinstance(value, dict):
            raise InputError("no object", where=path)
        found.append(value)
    if not same and not stamp and len(beside) == 1:  # --output_path FILE.json
        value = common(os.path.join(folder, beside[0]))
        found += [value] if isinstance(value, dict) and value.keys() >= RESULTS else []
    stem = os.path.basename(doc.path or "").split(".json")[0]
    if not stamp and SANITISED.search(stem):
        found = [f for f in found if any(stem == f"{_sanitised(f)}_{task}" for task in inner(f, "configs"))]
    return found[0] if found and len({_model(f) for f in found}) == 1 else {}


def _sanitised(results: dict[str, Any]) -> str | None:
    """The arguments of the model as the names of files have them."""
    arguments = inner(results, "config").get("model_args")
    return re.sub("/|=", "__", arguments) if isinstance(arguments, str) else None


def _model(results: dict[str, Any]) -> str | None:
    """The model's name: recorded, or, in older results, by the arguments of the model."""
    arguments = inner(results, "config").get("model_args")
    return text(results, "model_name") or next((a for n in ARGUMENTS if (a := _argument(arguments, n))), None)


def _argument(arguments: Any, name: str) -> str | None:
    """A value of model arguments, an object or a=1,b=2."""
    if isinstance(arguments, dict):
        value = arguments.get(name)
        return value if isinstance(value, str) else None
    found = re.search(rf"(?:^|,){name}=([^,]+)", arguments) if isinstance(arguments, str) else None
    return found[1] if found else None
