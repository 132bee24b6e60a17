"""Samples of lm-evaluation-harness: one line a document and filter; the model's name is in the results beside them."""

from __future__ import annotations

import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "lm-evaluation-harness samples (samples_*.jsonl, with results_*.json beside them)"

OWN = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
}  # fmt: skip
FILE = re.compile(r"samples_(?P<task>.+)_(?P<stamp>\d{4}-\d{2}-\d{2}T[\d.:-]+)\.jsonl?$")


def sniff(doc: Document) -> bool:
    if doc.kind == "json" and isinstance(doc.first, dict):
        return {"results", "configs", "versions"} <= doc.first.keys()
    return doc.kind in ("json", "ndjson") and _is_sample(_first(doc))


def _first(doc: Document) -> Any:
    return doc.first[0] if isinstance(doc.first, list) and doc.first else doc.first


def _is_sample(row: Any) -> bool:
    return isinstance(row, dict) and {"doc_id", "doc", "resps", "filtered_resps"} <= row.keys()


def read(doc: Document, choices: Choices) -> Attempts | None:
    if isinstance(doc.first, dict) and "results" in doc.first and not _is_sample(doc.first):
        return None
    named = FILE.search(doc.path or "")
    model, settings = _model(doc, named["stamp"] if named else None)
    out = Attempts("lm-eval samples", model, settings)
    out.task = named["task"] if named else None
    rows = list(enumerate(doc.first, 1)) if isinstance(doc.first, list) else list(doc.rows())
    for n, row in rows:
        if not _is_sample(row):
            raise InputError(f"row {n}: no sample: it lacks doc_id, resps or filtered_resps")
    chosen = choose(choices.filter, sorted({str(r.get("filter", "none")) for _, r in rows}), "--filter", "filter")
    rows = [(n, r) for n, r in rows if str(r.get("filter", "none")) == chosen]
    metric = choose(choices.metric, _metrics([r for _, r in rows]), "--metric", "metric")
    for n, row in rows:
        value = row.get(metric)
        if isinstance(value, list):
            raise InputError(f"row {n}: {metric} is a list, a part of a corpus metric: choose another with --metric")
        out.add(row["doc_id"], number(value, metric, n), line=n)
    return out


def _metrics(rows: list[dict[str, Any]]) -> list[str]:
    """Metrics by their own list, or, in older files, every key that is not one of the harness's."""
    found: dict[str, None] = {}
    for row in rows:
        names = row.get("metrics")
        names = names if isinstance(names, list) else [k for k in row if k not in OWN]
        found |= dict.fromkeys(str(n) for n in names)
    return sorted(found)


def _model(doc: Document, stamp: str | None) -> tuple[str | None, str | None]:
    """The model's name and settings from the results file of the same stamp, or the only one there is."""
    beside = doc.siblings("results_", ".json")
    same = [n for n in beside if stamp and n == f"results_{stamp}.json"] or (beside if len(beside) == 1 else [])
    if not same:
        return None, None
    results = doc.sibling(same[0])
    if not isinstance(results, dict):
        raise InputError(f"{same[0]}: no object", where=os.path.join(os.path.dirname(doc.path or ""), same[0]))
    config = results.get("config") or {}
    model = results.get("model_name") or _argument(config.get("model_args"), "pretrained")
    return model, f"results of {stamp}" if stamp else None


def _argument(text: Any, name: str) -> str | None:
    """A value of model arguments, an object or a=1,b=2."""
    if isinstance(text, dict):
        value = text.get(name)
        return value if isinstance(value, str) else None
    found = re.search(rf"(?:^|,){name}=([^,]+)", text) if isinstance(text, str) else None
    return found[1] if found else None
