"""What every reader takes beside its source, and what it gives."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class Choices(NamedTuple):
    """What the user decided where a guess would change the numbers; None is not decided.

    `columns`: role -> column name. `unscored`, `errors`: what attempts without a score, and failed ones, count as.
    `merge`: tables that share a pair are added up. `attempts`: how many a rate is of. `filter`, `metric`, `scorer`,
    `split`: which of several. `items`: all items that there are, where a source may not list the unsolved ones.
    """

    columns: dict[str, str]
    unscored: str | None = None
    duplicates: str | None = None
    merge: bool = False
    attempts: int | None = None
    errors: str | None = None
    filter: str | None = None
    metric: str | None = None
    scorer: str | None = None
    split: str | None = None
    items: frozenset[str] | None = None


class Cells(NamedTuple):
    """One source, added up.

    `frame` has model, item, cluster (text), attempts (int64), correct (float64) and `bits`: the set of attempt numbers
    0..62 as a mask, or null where attempts have no such numbers. One row a model and item; with `Choices.merge`
    counts may repeat one. `rows`: rows read. `unscored`, `failed`: attempts without a score, and that ended in an
    error. `skipped`: what was left out, by reason. `settings`: model -> what tells this run from others of it.
    `attempts`: model, item and attempt of every row that counts, where attempts are numbered or named.
    """

    frame: pl.DataFrame
    format: str
    rows: int
    where: str
    unscored: int = 0
    failed: int = 0
    skipped: dict[str, int] = {}  # noqa: RUF012
    settings: dict[str, str] = {}  # noqa: RUF012
    attempts: pl.LazyFrame | None = None

    def renamed(self, **names: pl.Expr) -> Cells:
        """With other identifiers in the columns model or item, wherever they stand."""
        attempts = None if self.attempts is None else self.attempts.with_columns(**names)
        return self._replace(frame=self.frame.with_columns(**names), attempts=attempts)
