"""One result -> bytes in the format asked for: JSON, NDJSON, CSV, TSV, Arrow, Parquet, or text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.ipc

from benchkit.tables import DOCUMENTS, Table


def serialise(
    document: dict[str, Any], spec: Table, to: str, view: Callable[[], Any], width: int | None = None
) -> bytes:
    """`document` in format `to`. Its rows stand under `spec.rows` (dicts, or an Arrow table), or it is the only row.

    `width` is the terminal's, where the output is one: JSON is indented there.
    """
    rows = document.get(spec.rows, document)
    if to == "table":
        from benchkit import text

        return text.render(view(), _dicts(rows) if rows is not document else [], width or 80).encode()
    if to == "json":
        if rows is not document:
            document = document | {spec.rows: _dicts(rows)}
        return _dumps(document, orjson.OPT_INDENT_2 if width else 0) + b"\n"
    if rows is document or spec.own in {c.name for c in spec.columns}:  # a document is a row
        flat = [flatten(row) for row in ([document] if rows is document else rows)]
        rows = [{c.name: row.get(c.name) for c in spec.columns} for row in flat]
    if to == "ndjson":
        return b"".join(_dumps(row) + b"\n" for row in _dicts(rows))
    if to in ("csv", "tsv"):
        return _write_csv(rows, spec, "\t" if to == "tsv" else ",")
    return _write_arrow(rows, spec, document, to)


def _dumps(value: Any, option: int = 0) -> bytes:
    data: bytes = orjson.dumps(value, option=option | orjson.OPT_SERIALIZE_NUMPY)
    return data


def flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as one row: `baseline.ddm.mean` becomes `baseline_ddm_mean`."""
    out: dict[str, Any] = {}
    for k, v in value.items():
        out.update(flatten(v, f"{prefix}{k}_") if isinstance(v, dict) else {prefix + k: v})
    return out


def _dicts(rows: Any) -> list[dict[str, Any]]:
    """Rows as JSON values: a whole sum of scores as a whole number, and no draws where none were kept."""
    if isinstance(rows, pa.Table):
        if "draws" in rows.column_names and rows["draws"].null_count == rows.num_rows:
            rows = rows.drop(["draws"])
        columns = [column.to_pylist() for column in rows.columns]
        rows = [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    whole = all(float(row["correct"]).is_integer() for row in rows if row.get("correct") is not None)
    if whole and rows and "correct" in rows[0]:
        rows = [row | {"correct": None if row["correct"] is None else int(row["correct"])} for row in rows]
    return list(rows)


def _write_csv(rows: Any, spec: Table, separator: str) -> bytes:
    dicts = _dicts(rows)
    names = [c.name for c in spec.columns if c.name != "draws" or (dicts and "draws" in dicts[0])]
    lines = [separator.join(names)]
    lines += [separator.join(_field(row.get(name), separator) for name in names) for row in dicts]
    return "".join(line + "\n" for line in lines).encode()


def _cell(value: Any) -> Any:
    """One value of a column: an object as its JSON text."""
    return _dumps(value).decode() if isinstance(value, dict) else value


def _field(value: Any, separator: str) -> str:
    """One field. Quoted where it must be; the csv module leaves a lone carriage return bare, which ends a line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = value if isinstance(value, str) else _dumps(value).decode()
    if text == "" or any(c in text for c in ('"', "\n", "\r", separator)):
        return '"' + text.replace('"', '""') + '"'
    return text


def _write_arrow(rows: Any, spec: Table, document: dict[str, Any], to: str) -> bytes:
    """An IPC stream, or Parquet, with everything of the document that is no row in its metadata."""
    schema = spec.schema()
    if isinstance(rows, pa.Table):
        table = rows.cast(schema)
    else:
        table = pa.table([pa.array([_cell(r.get(f.name)) for r in rows], f.type) for f in schema], schema=schema)
    metadata: dict[str, bytes] = {"benchkit.table": spec.tag.encode()}
    if document["history"]:
        metadata["benchkit.history"] = _dumps(document["history"])
    rest = {k: v for k, v in document.items() if k not in (spec.rows, "history", *DOCUMENTS)}
    for key in DOCUMENTS:
        if document.get(key):
            metadata[f"benchkit.{key}"] = _dumps(document[key])
    if rest:
        metadata["benchkit.summary"] = _dumps(rest)
    table = table.combine_chunks().replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    if to == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
    else:
        writer = pa.ipc.new_stream(sink, table.schema)
        writer.write_table(table, max_chunksize=1 << 20)
        writer.close()
    data: bytes = sink.getvalue().to_pybytes()
    return data
