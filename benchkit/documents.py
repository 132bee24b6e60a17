"""Columns of a result -> the row objects of its JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rows(columns: Mapping[str, Any], reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """One dict a row, keys in the order of `columns` (arrays or sequences of one length).

    A NaN becomes None, followed by `KEY_reason`, the text under KEY in `reasons`.
    """
    out: list[dict[str, Any]] = [{} for _ in next(iter(columns.values()), ())]
    for key, column in columns.items():
        values = column.tolist() if hasattr(column, "tolist") else column
        for row, value in zip(out, values, strict=True):
            if value != value:
                row[key], row[f"{key}_reason"] = None, reasons[key]
            else:
                row[key] = value
    return out
