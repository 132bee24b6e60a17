"""What every reader takes beside its source, and what it gives."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class Choices(NamedTuple):
    """What the user decided where a guess would change the numbers; None is not decided.

    `columns`: role -> column name. `merge`: tables that share a pair are added up. `attempts`: how many a rate is of.
    """

    columns: dict[str, str]
    unscored: str | None
    duplicates: str | None
    merge: bool
    attempts: int | None


class Cells(NamedTuple):
    """One source, added up.

    `frame` has model, item, cluster (text), attempts (int64), correct (float64) and `bits`: the set of attempt numbers
    0..62 as a mask, or null where attempts have no such numbers. One row a model and item; with `Choices.merge`
    counts may repeat one. `rows`: rows read. `unscored`: attempts without a score. `attempts`: model, item and
    attempt of every row that counts, where attempts are numbered or named.
    """

    frame: pl.DataFrame
    format: str
    rows: int
    where: str
    unscored: int = 0
    attempts: pl.LazyFrame | None = None
