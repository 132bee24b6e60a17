"""Details of lighteval and of the Open LLM Leaderboard: a Parquet file a task, a struct of metrics a row.

Older files have no identifier of a document: its place in the file and a hash of its text serve. Before 0.8 every
column was cast to text, also the metrics: a flat dictionary as Python prints it.

Source: lighteval/logging/evaluation_tracker.py, lighteval/logging/info_loggers.py, of 0.6.2 to 0.13.0.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.cells import Choices
from benchkit.formats.fields import common, digest, inner, text
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "lighteval and Open LLM Leaderboard details (details_*.parquet)"

FILE = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d{2}-\d{2}T[\d.:-]+)\.parquet$")
METRICS = ("__metric__", "metric", "metrics")  # of lighteval's newest files, those before, the oldest
NUMBER = r"-?\d+\.?\d*(?:e[+-]?\d+)?|-?inf|nan|True|False|None"
PRINTED = re.compile(
    rf"'([^'\\]*)': (?:(?:np\.\w+\()?({NUMBER})\)?|\[[^\[\]{{}}]*\]|'[^'\\]*')(?:, |(?=\}}$))", re.ASCII
)
TEXTS = ("hashes.example", "example", "full_prompt", "__doc__.query", "doc.query")


def sniff(doc: Document) -> bool:
    if doc.kind == "json" and isinstance(doc.first, dict):
        return {"config_general", "results", "versions"} <= doc.first.keys()
    columns = set(doc.columns)
    return doc.kind == "parquet" and (
        {"__doc__", "__metric__"} <= columns
        or {"doc", "metric", "model_response"} <= columns
        or ({"metrics", "predictions"} <= columns and bool({"hashes", "full_prompt"} & columns))
    )


def read(doc: Document, choices: Choices) -> Attempts | None:
    if doc.kind == "json":
        return None  # results beside the details
    named = FILE.search(os.path.basename(doc.path or ""))
    out = Attempts("lighteval")
    out.of_task(named["task"] if named else None, choices)
    out.model, out.settings = _model(doc, named["date"]) if named else (None, None)
    folder = os.path.dirname(os.path.abspath(doc.path or ""))
    if named and os.path.basename(folder) == named["date"]:
        out.folder = os.path.dirname(folder)
    column = next(c for c in METRICS if c in doc.columns)
    rows = [_metrics(row, column, n) for n, row in enumerate(parquet.values(doc, column), 1)]
    found = sorted({k for row in rows if row for k, v in row.items() if isinstance(v, bool | int | float)})
    if rows and not found:
        out.skip("document without a score of its own", len(rows))  # corpus metrics only
        return out
    metric = choose(choices.metric, found, "--metric", "metric")
    for n, (item, row) in enumerate(zip(_items(doc), rows, strict=True), 1):
        out.add(item, number((row or {}).get(metric), metric, n), line=n)
    return out


def _metrics(row: Any, column: str, line: int) -> dict[str, Any] | None:
    """Metric -> value, of a struct or of a dictionary as Python prints it.

    >>> _metrics("{'em': 1.0, 'logits': [1, 2], 'ok': np.float64(0.5)}", "metrics", 1)
    {'em': 1.0, 'ok': 0.5}
    """
    if row is None or isinstance(row, dict):
        return row
    found: dict[str, Any] = {}
    if isinstance(row, str) and row.startswith("{") and row.endswith("}"):
        at = 1
        while match := PRINTED.match(row, at):
            if match[2] is not None:
                word = {"True": 1.0, "False": 0.0, "None": math.nan}
                found[match[1]] = word[match[2]] if match[2] in word else float(match[2])
            at = match.end()
        if at == len(row) - 1:
            return found
    raise InputError(f"row {line}: {column} is no struct of metrics, and no printed one")


def _items(doc: Document) -> list[str]:
    """The documents' identifiers; without them place and hash, so that files of other documents don't match."""
    found = doc.first
    for column in ("__doc__", "doc"):
        if parquet.has_field(found, column, "id"):
            ids = parquet.values(doc, f"{column}.id")
            if all(isinstance(i, str | int) and not isinstance(i, bool) and i != "" for i in ids):
                return [str(i) for i in ids]
    for name in TEXTS:
        column, _, field = name.partition(".")
        if parquet.has_field(found, column, field) if field else column in doc.columns:
            said = [str(t) for t in parquet.values(doc, name)]
            return [f"{n}-{t if name == TEXTS[0] else digest(t)}" for n, t in enumerate(said)]
    raise InputError("documents without id, hash or text")


def _model(doc: Document, date: str) -> tuple[str | None, str | None]:
    """The model's name and settings, of the results beside details/<model>/<date>/; else the name of that folder.

    The Leaderboard's results lie in the folder above.
    """
    folder = os.path.dirname(os.path.abspath(str(doc.path)))
    *above, own = folder.split(os.sep)
    name, up = None, os.pardir
    if "details" in above and own == date:
        start = len(above) - above[::-1].index("details")
        name = "/".join(above[start:]) or None
        up = os.path.join(*[os.pardir] * (len(above) - start + 2), "results", *above[start:])
    results = common(os.path.join(os.path.dirname(doc.path), up, f"results_{date}.json")) if doc.path else None
    about = inner(results, "config_general") if isinstance(results, dict) else {}
    recorded = text(about, "model_name") or text(_config(about), "model_name")
    revision = text(about, "model_sha")
    said = [f"revision {revision[:12]}" if revision else None, f"details of {date}"]
    return recorded or name, ", ".join(s for s in said if s)


def _config(about: dict[str, Any]) -> dict[str, Any]:
    value = about.get("model_config")
    return value if isinstance(value, dict) else {}
