"""Attempts added up by model and item, by one library, as a process of its own; ``bench_matrix.py`` times it.

    bench_matrix_peers.py NAME parquet|csv|ndjson FILE RESULT
    bench_matrix_peers.py NAME eval FOLDER RESULT NUMBER

FILE has the columns model, item, attempt and score; of the logs of Inspect AI in FOLDER the first NUMBER are read.
RESULT gets model, item, attempts and correct, sorted by model and item, as Parquet or as a stream of Arrow.

Each library does it in the shortest way that its users would write and the fastest that was found; where these are
two, both have a name. Only what a script needs is imported. Standard output gets what passed until the logs are read,
in seconds, since only the rest grows with their number.
"""

import sys
import time

START = time.perf_counter()

SQL = """COPY (SELECT model, item, count(*) AS attempts, sum(score::INTEGER)::DOUBLE AS correct FROM {}
GROUP BY model, item ORDER BY model, item) TO '{}' (FORMAT parquet)"""


def polars_(form, source, result, categorical=False):
    """Lazily, by the streaming engine, which reads the three columns only."""
    import polars as pl

    rows = {"parquet": pl.scan_parquet, "csv": pl.scan_csv, "ndjson": pl.scan_ndjson}[form](source)
    if categorical:
        rows = rows.select(pl.col("model", "item").cast(pl.Categorical), "score")
    correct = pl.col("score").cast(pl.Float64).sum().alias("correct")
    groups = rows.group_by("model", "item").agg(pl.len().alias("attempts"), correct)
    groups.sort("model", "item").collect(engine="streaming").write_ipc_stream(result)


def duckdb_(form, source, result):
    import duckdb

    reader = {"parquet": "read_parquet", "csv": "read_csv", "ndjson": "read_ndjson"}[form]
    duckdb.sql(SQL.format(f"{reader}('{source}')", result))


def pandas_(form, source, result, categorical=False):
    import pandas as pd

    columns = ["model", "item", "score"]
    if form == "parquet":
        # names stay coded as they are in the file, as pandas' categories
        rows = pd.read_parquet(source, columns=columns, **({"read_dictionary": columns[:2]} if categorical else {}))
    elif form == "csv":
        kinds = dict.fromkeys(columns[:2], "category") if categorical else None
        rows = pd.read_csv(source, usecols=columns, engine="pyarrow", dtype=kinds)
    else:
        rows = pd.read_json(source, lines=True, engine="pyarrow")[columns]
        rows = rows.astype(dict.fromkeys(columns[:2], "category")) if categorical else rows
    groups = rows.groupby(["model", "item"], observed=True).score.agg(attempts="size", correct="sum")
    groups.reset_index().to_parquet(result)


def inspect_ai_(form, source, result, number, few=False, parallel=False):
    """The columns of samples and of the model as documented, or those only that are needed."""
    from pathlib import Path

    import pandas as pd
    from inspect_ai.analysis import EvalColumn, EvalModel, SampleSummary, samples_df

    columns = EvalModel + SampleSummary
    if few:
        columns = [EvalColumn("model", path="eval.model")]
        columns += [c for c in SampleSummary if c.name in ("id", "epoch", "score_*")]
    logs = sorted(str(p) for p in Path(source).glob("*.eval"))[: int(number)]
    print(time.perf_counter() - START, time.process_time())
    samples = samples_df(logs, columns=columns, parallel=parallel, quiet=True)
    samples["correct"] = samples.score_match == "C"
    groups = samples.groupby(["model", "id"]).correct.agg(attempts="size", correct="sum")
    pd.DataFrame(groups.reset_index().rename(columns={"id": "item"})).to_parquet(result)


NAMES = {
    "polars": (polars_, {}),
    "polars-categorical": (polars_, {"categorical": True}),
    "duckdb": (duckdb_, {}),
    "pandas": (pandas_, {}),
    "pandas-categorical": (pandas_, {"categorical": True}),
    "inspect_ai": (inspect_ai_, {}),
    "inspect_ai-few": (inspect_ai_, {"few": True}),
    "inspect_ai-few-parallel": (inspect_ai_, {"few": True, "parallel": True}),
}


if __name__ == "__main__":
    call, options = NAMES[sys.argv[1]]
    call(*sys.argv[2:], **options)
