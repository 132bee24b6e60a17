"""Columns of a result -> the row objects of its JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Reasons = Mapping[str, str | Sequence[str]]


def rows(columns: Mapping[str, Any], reasons: Reasons) -> list[dict[str, Any]]:
    """One dict a row, keys in the order of `columns` (arrays or sequences of one length).

    A NaN becomes None, followed by `KEY_reason`, the text under KEY in `reasons`: one for all rows, or one a row.
    """
    out: list[dict[str, Any]] = [{} for _ in next(iter(columns.values()), ())]
    for key, column in columns.items():
        values = column.tolist() if hasattr(column, "tolist") else column
        why = reasons.get(key, "undefined")
        for at, (row, value) in enumerate(zip(out, values, strict=True)):
            if value != value:
                row[key], row[f"{key}_reason"] = None, why if isinstance(why, str) else why[at]
            else:
                row[key] = value
    return out
