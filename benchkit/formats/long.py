"""Long tables of attempts: one row an attempt, with a score in [0,1]."""

from __future__ import annotations

import polars as pl

from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Choices
from benchkit.formats.clusters import check_clusters
from benchkit.formats.columns import Roles
from benchkit.formats.tabular import Tabular, identifier

UNSCORED = ("", "na", "n/a", "nan", "null", "none")
"""Words in a score column that mean: not scored."""

MASK = 62
"""Attempt numbers up to this one fit into an int64 as a set of bits."""


def sniff(tab: Tabular, roles: Roles) -> bool:
    """Whether the columns are those of a long table of attempts."""
    return bool(roles.model and roles.item and roles.score)


def read(tab: Tabular, roles: Roles, choices: Choices) -> Cells:
    """Add the attempts up by model and item, in one streaming pass; raise InputError where that would lose or guess.

    Errors: an identifier is missing, a score is no number in [0,1], an attempt has no score (and `choices.unscored`
    doesn't say what that means), an attempt stands twice (and `choices.duplicates` doesn't say which counts).
    """
    if choices.attempts is not None:
        raise InputError("--attempts is for rates in a wide table; here a row is one attempt")
    every = normalise(tab, roles)
    lf, dropped = every, 0
    if choices.unscored == "drop":  # such a row is no attempt: it stands in nobody's way
        dropped = int(every.filter(_no_score()).select(pl.len()).collect().item())
        lf = lf.filter(~_no_score())
    if choices.duplicates == "first":
        lf = lf.unique(["model", "item", "attempt"], keep="first", maintain_order=True)
    elif choices.duplicates == "last":
        lf = lf.unique(["model", "item", "attempt"], keep="last", maintain_order=True)
    sums = _add_up(lf, pl.col("score").sum())
    total = sums.select(pl.col("rows", "blank", "unnamed", "invalid", "unscored", "fractional", "again").sum()).row(0)
    rows, blank, unnamed, invalid, unscored, fractional, again = (int(v) for v in total)
    if unnamed:
        raise InputError(f"{_locate(tab, every, _unnamed())}: the model or the item is missing")
    if invalid:
        raise InputError(_invalid(tab, roles, every))
    if unscored and choices.unscored is None:
        raise InputError(_unscored(tab, every))
    if again and choices.duplicates is None:
        _check_duplicates(tab, roles, every, sums.filter(pl.col("again") > 0), drop=choices.unscored == "drop")
    if fractional:
        sums = _add_up(lf, _exact_sum())
    sums = sums.filter(pl.col("model").is_not_null())
    check_clusters([sums.select("item", "cluster"), sums.select("item", cluster="cluster_max")])
    frame = sums.select("model", "item", "cluster", pl.col("rows").alias("attempts"), "correct", "bits")
    attempts = lf.select("model", "item", "attempt") if roles.attempt else None
    return Cells(
        frame, f"long ({tab.format})", rows - blank + dropped, tab.where, unscored + dropped, attempts=attempts
    )


def normalise(tab: Tabular, roles: Roles) -> pl.LazyFrame:
    """Columns model, item, attempt, cluster, score (float64 or null), raw (the score as text), whatever the source."""
    types = tab.frame.collect_schema()
    for column in (roles.score, roles.attempt):
        if "nested" in tab.kinds.get(column or "", ()):
            raise InputError(f"column '{column}' holds lists or objects")
    assert roles.model and roles.item and roles.score
    score = pl.col(roles.score)
    kind = types[roles.score]
    if kind == pl.String:
        word = score.str.strip_chars().str.to_lowercase()
        number = word.cast(pl.Float64, strict=False)
        value = pl.when(word == "true").then(1.0).when(word == "false").then(0.0).otherwise(number)
        raw = pl.when(word.is_in(UNSCORED)).then(None).otherwise(score)
    elif kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        value = score.cast(pl.Float64)
        raw = pl.when(value.is_nan()).then(None).otherwise(value).cast(pl.String)
    else:
        raise InputError(f"column '{roles.score}' holds {kind} values; a score is a number or a flag")
    attempt = _attempt(pl.col(roles.attempt)) if roles.attempt else pl.lit(None, pl.String)
    cluster = identifier(tab, roles.cluster) if roles.cluster else pl.lit(None, pl.String)
    return tab.frame.select(
        identifier(tab, roles.model).alias("model"),
        identifier(tab, roles.item).alias("item"),
        attempt.alias("attempt"),
        cluster.alias("cluster"),
        pl.when(value.is_finite()).then(value).otherwise(None).alias("score"),
        raw.alias("raw"),
    )


def _attempt(column: pl.Expr) -> pl.Expr:
    """An attempt's number or name, equal where they mean the same: 1, 01 and 1.0."""
    text = column.cast(pl.String).str.strip_chars()
    number = text.cast(pl.Float64, strict=False)
    whole = number.is_finite() & (number == number.floor()) & (number.abs() < 2**53)
    return pl.when(whole).then(number.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(text)


def _unnamed() -> pl.Expr:
    """A row with a score but without model or item; a line without either and without a score is blank."""
    return (pl.col("model").is_null() | pl.col("item").is_null()) & ~_blank()


def _blank() -> pl.Expr:
    return pl.all_horizontal(pl.col("model", "item", "raw").is_null())


def _no_score() -> pl.Expr:
    return pl.col("raw").is_null() & ~_blank()


def _not_a_score() -> pl.Expr:
    score = pl.col("score")
    return pl.col("raw").is_not_null() & (score.is_null() | (score < 0) | (score > 1))


def _add_up(lf: pl.LazyFrame, correct: pl.Expr) -> pl.DataFrame:
    """One row a model and item. `again`: attempts that may stand twice (decided later, exactly)."""
    number = pl.col("attempt").cast(pl.Int64, strict=False)
    small = number.is_between(0, MASK).fill_null(False)
    bit = pl.when(small).then(pl.lit(2, pl.Int64).pow(pl.when(small).then(number).otherwise(0))).otherwise(0)
    score = pl.col("score")
    return (
        lf.group_by("model", "item")
        .agg(
            pl.len().cast(pl.Int64).alias("rows"),
            _blank().sum().cast(pl.Int64).alias("blank"),
            _unnamed().sum().cast(pl.Int64).alias("unnamed"),
            _not_a_score().sum().cast(pl.Int64).alias("invalid"),
            _no_score().sum().cast(pl.Int64).alias("unscored"),
            (score != score.round()).sum().cast(pl.Int64).alias("fractional"),
            correct.alias("correct"),
            bit.bitwise_or().alias("bits"),
            small.sum().cast(pl.Int64).alias("numbered"),
            pl.col("cluster").min().alias("cluster"),
            pl.when(pl.col("cluster").is_null().any())
            .then(pl.lit(None, pl.String))
            .otherwise(pl.col("cluster").max())
            .alias("cluster_max"),
        )
        .with_columns(
            pl.when(pl.col("bits").bitwise_count_ones() == pl.col("rows"))
            .then(0)
            .when(pl.col("rows") - pl.col("blank") <= 1)
            .then(0)
            .otherwise(pl.col("rows"))
            .alias("again"),
            pl.when(pl.col("numbered") == pl.col("rows")).then(pl.col("bits")).otherwise(None).alias("bits"),
        )
        .collect(engine="streaming")
    )


def _exact_sum() -> pl.Expr:
    """The sum of scores in [0,1] to full precision: a sum of floats depends on the order in which threads add them.

    Each score is cut into whole multiples of 2^-26, 2^-52 and 2^-78, which int64 adds exactly for 2^31 attempts.
    """
    size = 2.0**26
    rest = pl.col("score") * size
    digits = []
    for _ in range(3):
        digits.append(rest.floor().cast(pl.Int64).sum().cast(pl.Float64))
        rest = (rest - rest.floor()) * size
    return digits[0] / size + (digits[1] + digits[2] / size) / size**2


def _locate(tab: Tabular, every: pl.LazyFrame, bad: pl.Expr) -> str:
    row = every.with_row_index("row").filter(bad).head(1).collect()
    return f"row {tab.line(int(row['row'][0]))}"


def _invalid(tab: Tabular, roles: Roles, every: pl.LazyFrame) -> str:
    row = every.filter(_not_a_score()).head(1).collect()
    what = "outside [0,1]" if row["score"][0] is not None else "no score: a number in [0,1], true or false"
    return f"{_locate(tab, every, _not_a_score())}: {roles.score} ('{row['raw'][0]}') is {what}"


def _unscored(tab: Tabular, every: pl.LazyFrame) -> str:
    count, rows = every.select(_no_score().sum(), (~_blank()).sum().alias("rows")).collect().row(0)
    lines = every.with_row_index("row").filter(_no_score()).head(3).collect()["row"]
    shown = ", ".join(str(tab.line(int(i))) for i in lines) + (", ..." if count > 3 else "")
    return (
        f"{count} of {rows} attempts have no score (row{'s' if count > 1 else ''} {shown}): "
        "choose --unscored drop (not an attempt) or --unscored wrong (score 0)"
    )


def _check_duplicates(tab: Tabular, roles: Roles, every: pl.LazyFrame, suspects: pl.DataFrame, *, drop: bool) -> None:
    """Whether an attempt of the suspect cells really stands twice, compared by value."""
    key = ["model", "item", "attempt"]
    rows = every.with_row_index("row").filter(~_no_score() if drop else pl.lit(True))
    rows = rows.join(suspects.lazy().select("model", "item"), on=["model", "item"], how="semi")
    twice = rows.group_by(key).agg(pl.len(), pl.col("row").sort().head(2)).filter(pl.col("len") > 1).collect()
    if twice.is_empty():
        return
    found = twice.sort(pl.col("row").list.get(1)).row(0, named=True)
    a, b = (tab.line(int(i)) for i in found["row"])
    which = f" attempt '{found['attempt']}'" if found["attempt"] is not None else ""
    choice = "first or last" if roles.attempt else "first, last or attempt (each row is one more attempt)"
    raise InputError(
        f"rows {a} and {b}: model '{found['model']}', item '{found['item']}'{which} stand twice "
        f"({twice.height} such keys): choose --duplicates {choice}"
    )
