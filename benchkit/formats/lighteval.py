"""Details of lighteval and of the Open LLM Leaderboard: a Parquet file a task, a struct of metrics a row.

Older files have no identifier of a document: its place in the file and a hash of its text serve.

Source: lighteval/logging/evaluation_tracker.py, lighteval/logging/info_loggers.py.
"""

from __future__ import annotations

import os
import re
from typing import Any

from benchkit.errors import InputError
from benchkit.formats import parquet
from benchkit.formats.cells import Choices
from benchkit.formats.fields import digest, inner, text
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "lighteval and Open LLM Leaderboard details (details_*.parquet)"

FILE = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d{2}-\d{2}T[\d.:-]+)\.parquet$")
METRICS = ("__metric__", "metric", "metrics")  # of lighteval's newest files, those before, the oldest
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
    model, settings = _model(doc, named["date"]) if named else (None, None)
    out = Attempts("lighteval", model, settings)
    out.task = named["task"] if named else None
    folder = os.path.dirname(os.path.abspath(doc.path or ""))
    if named and os.path.basename(folder) == named["date"]:
        out.folder = os.path.dirname(folder)
    column = next(c for c in METRICS if c in doc.columns)
    rows = parquet.values(doc, column)
    for n, row in enumerate(rows, 1):
        if row is not None and not isinstance(row, dict):
            raise InputError(f"row {n}: {column} is no struct of metrics: lighteval wrote the details as text")
    found = sorted({k for row in rows if row for k, v in row.items() if isinstance(v, bool | int | float)})
    metric = choose(choices.metric, found, "--metric", "metric")
    for n, (item, row) in enumerate(zip(_items(doc), rows, strict=True), 1):
        out.add(item, number((row or {}).get(metric), metric, n), line=n)
    return out


def _items(doc: Document) -> list[str]:
    """The documents' identifiers; without them place and hash, so that files of other documents don't match."""
    found = parquet.schema(doc)
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
    results = doc.sibling(os.path.join(up, f"results_{date}.json"))
    about = inner(results, "config_general") if isinstance(results, dict) else {}
    recorded = text(about, "model_name") or text(_config(about), "model_name")
    revision = text(about, "model_sha")
    said = [f"revision {revision[:12]}" if revision else None, f"details of {date}"]
    return recorded or name, ", ".join(s for s in said if s)


def _config(about: dict[str, Any]) -> dict[str, Any]:
    value = about.get("model_config")
    return value if isinstance(value, dict) else {}
