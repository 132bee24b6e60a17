"""Wide tables: a row a model and a column an item, or transposed: a row an item and a column a model."""

from __future__ import annotations

import re

import polars as pl

from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Choices
from benchkit.formats.columns import Roles
from benchkit.formats.long import UNSCORED
from benchkit.formats.tabular import Tabular, identifier

OF = re.compile(r"(\d{1,10})\s*/\s*(\d{1,10})", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+[.]?\d*|[.]\d+)(e[+-]?\d+)?", re.ASCII)


def sniff(tab: Tabular, roles: Roles) -> bool:
    """Whether there is a column of models, or of items, and nothing else that a long table has."""
    one = (roles.model is None) != (roles.item is None)
    return one and len(tab.names) > 1 and not (roles.score or roles.attempts)


def read(tab: Tabular, roles: Roles, choices: Choices) -> Cells:
    """Cells are 0 or 1, true or false, '3/4', or a rate where `choices.attempts` says of how many attempts.

    An empty cell is a pair that was not tried. Errors: a cell that is none of these; a row whose name stands before.
    """
    if choices.duplicates:
        raise InputError("--duplicates is for attempts; a wide table has a cell for each pair")
    if choices.unscored:
        raise InputError("--unscored is for attempts; in a wide table an empty cell is a pair that was not tried")
    key, others = (roles.model, "item") if roles.model else (roles.item, "model")
    role = "model" if roles.model else "item"
    assert key is not None
    if roles.cluster and role == "model":
        raise InputError(f"column '{roles.cluster}': a cluster is of items, and rows here are models; leave it out")
    rest = [n for n in tab.names if n not in (key, roles.cluster)]
    nested = next((n for n in rest if "nested" in tab.kinds.get(n, ())), None)
    if nested is not None:
        raise InputError(f"column '{nested}' holds lists or objects")
    cluster = identifier(tab, roles.cluster) if roles.cluster else pl.lit(None, pl.String)
    frame = tab.frame.select(
        identifier(tab, key).alias("\0key"), cluster.alias("\0cluster"), *(pl.col(n).cast(pl.String) for n in rest)
    ).collect()
    names = frame["\0key"]
    if names.null_count():
        raise InputError(f"row {tab.line(int(names.is_null().arg_true()[0]))}: the {role} is missing")
    again = names.is_duplicated().arg_true()
    if len(again):
        twice = (names == names[int(again[0])]).arg_true()
        a, b = tab.line(int(twice[0])), tab.line(int(twice[1]))
        raise InputError(f"rows {a} and {b}: {role} '{names[int(again[0])]}' stands twice")
    cells = frame.unpivot(index=["\0key", "\0cluster"], variable_name="\0other", value_name="\0cell").filter(
        pl.col("\0cell").is_not_null() & (pl.col("\0cell").str.strip_chars() != "")
    )
    meaning: dict[str, tuple[int, float]] = {}
    faults: dict[str, str] = {}
    for text in cells["\0cell"].unique():
        try:
            meaning[text] = cell(text, choices.attempts)
        except ValueError as e:
            faults[text] = str(e)
    if faults:
        where = {name: row for row, name in enumerate(names)}
        bad = cells.filter(pl.col("\0cell").is_in(list(faults))).rows()
        first = min(bad, key=lambda r: where[r[0]])  # of one row the leftmost: cells stand column by column
        raise InputError(f"row {tab.line(where[first[0]])}, column '{first[2]}': {faults[first[3]]}")
    counted = pl.DataFrame(
        {
            "\0cell": list(meaning),
            "attempts": [m[0] for m in meaning.values()],
            "correct": [m[1] for m in meaning.values()],
        },
        schema={"\0cell": pl.String, "attempts": pl.Int64, "correct": pl.Float64},
    )
    out = cells.join(counted, on="\0cell").select(
        pl.col("\0key").alias(role),
        pl.col("\0other").alias(others),
        pl.col("\0cluster").alias("cluster"),
        "attempts",
        "correct",
        pl.lit(None, pl.Int64).alias("bits"),
    )
    shape = "wide" if role == "model" else "wide, transposed"
    return Cells(out, f"{shape} ({tab.format})", len(names), tab.where)


def cell(text: str, attempts: int | None) -> tuple[int, float]:
    """Attempts and correct of one cell; ValueError with the reason where it is no result.

    >>> cell("1", None), cell("3/4", None), cell("0.75", 4)
    ((1, 1.0), (4, 3.0), (4, 3.0))
    """
    word = text.strip().lower()
    if word in UNSCORED:
        raise ValueError(f"'{text}' is no score; leave the cell empty where the pair was not tried")
    of = OF.fullmatch(word)
    if of:
        k, n = int(of[1]), int(of[2])
        if not (1 <= n < 2**31 and k <= n):
            raise ValueError(f"'{text}' is not so many of so many attempts")
        return n, float(k)
    if word in ("true", "false"):
        rate = float(word == "true")
    elif NUMBER.fullmatch(word):
        rate = float(word)
    else:
        raise ValueError(f"'{text}' is no score: 0, 1, true, false, 3/4 or a rate")
    if not 0 <= rate <= 1:
        raise ValueError(f"'{text}' is outside [0,1]")
    if attempts is None:
        if rate not in (0.0, 1.0):
            raise ValueError(f"'{text}' is a rate: of how many attempts? (--attempts N; 1 for partial credit)")
        return 1, rate
    correct = rate * attempts
    if attempts > 1 and abs(correct - round(correct)) > 0.01:
        raise ValueError(f"'{text}' is no whole number out of {attempts} attempts")
    return attempts, float(round(correct)) if attempts > 1 else correct
