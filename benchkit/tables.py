"""The contract: every table's columns (type, unit, meaning, may it be null) and the checks of its rows.

`wire` casts what it reads to these schemas and writes nothing else. benchkit(5) is this module in prose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.errors import InputError

TYPES: dict[str, pa.DataType] = {
    "utf8": pa.utf8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "list<float32>": pa.list_(pa.float32()),
    "list<utf8>": pa.list_(pa.utf8()),
}


class Column(NamedTuple):
    """One column. `required` columns are never null; others may be null, or absent in input, which means null."""

    name: str
    type: str
    meaning: str
    required: bool = False


class Table(NamedTuple):
    """One table: its name on the wire is `name/version`; its rows stand under `rows` in a JSON document.

    `own` is a key that only this table's document has, where `rows` is not.
    """

    name: str
    rows: str
    columns: tuple[Column, ...]
    maker: str
    version: int = 1
    own: str | None = None

    @property
    def mark(self) -> str:
        return self.own or self.rows

    @property
    def tag(self) -> str:
        return f"{self.name}/{self.version}"

    def schema(self) -> pa.Schema:
        """The Arrow schema, without metadata."""
        return pa.schema([pa.field(c.name, TYPES[c.type], nullable=not c.required) for c in self.columns])


RESPONSES = Table(
    "responses",
    "responses",
    (
        Column("model", "utf8", "the model's identifier", True),
        Column("item", "utf8", "the item's identifier", True),
        Column("attempts", "int32", "scored attempts, at least 1", True),
        Column("correct", "float64", "sum of the scores, each in [0,1]; an integer for pass/fail", True),
        Column("cluster", "utf8", "the unit that was sampled, where items share one (passage, repository)"),
    ),
    "bk-matrix",
)

PARAMETERS = Table(
    "parameters",
    "parameters",
    (
        Column("kind", "utf8", "hyper, item, item_a (an item's discrimination) or model", True),
        Column("id", "utf8", "item, model, or the hyperparameter's name", True),
        Column("mean", "float64", "posterior mean, logits", True),
        Column("sd", "float64", "posterior standard deviation, logits", True),
        Column("lower", "float64", "2.5% posterior quantile, logits", True),
        Column("upper", "float64", "97.5% posterior quantile, logits", True),
        Column("rhat", "float64", "rank-normalised split R-hat"),
        Column("ess_bulk", "float64", "bulk effective sample size, draws"),
        Column("ess_tail", "float64", "tail effective sample size, draws"),
        Column("attempts", "int64", "the row's attempts"),
        Column("correct", "float64", "the row's sum of scores"),
        Column("boundary", "bool", "all attempts right, or all wrong: the likelihood alone has no finite estimate"),
        Column("origin", "utf8", "fit: estimated together with the others; anchored: later, against the fixed others"),
        Column("stability_shift", "float64", "largest shift of normalised difficulty when one model is left out"),
        Column("stability_model", "utf8", "the model whose absence shifts the item so far"),
        Column("elpd_loo", "float64", "log predictive density of the item's cells, each left out, added up"),
        Column("draws", "list<float32>", "one value per draw, chains one after another, logits"),
    ),
    "bk-irt",
)
KINDS = ("hyper", "item", "item_a", "model")


def _metric_columns() -> tuple[Column, ...]:
    out = []
    for m, what in (("ddm", "DDM"), ("max_gap", "maximum gap"), ("top_gap_sum", "top gap sum")):
        out += [
            Column(f"baseline_{m}_mean", "float64", f"mean {what} of random benchmarks of the same size"),
            Column(f"baseline_{m}_q95", "float64", f"95% quantile of the {what} of random benchmarks"),
            Column(f"baseline_{m}_p", "float64", f"share of random benchmarks with at least this {what}"),
            Column(f"companion_failure_{m}", "float64", f"{what} of the model-averaged failure probabilities"),
            Column(f"companion_drop_boundary_{m}", "float64", f"{what} without boundary items"),
            Column(f"intervals_{m}_lower", "float64", f"posterior lower bound of the {what}"),
            Column(f"intervals_{m}_upper", "float64", f"posterior upper bound of the {what}"),
            Column(f"intervals_{m}_posterior_median", "float64", f"posterior median of the {what}"),
        ]
    return tuple(out)


METRICS = Table(
    "metrics",
    "metrics",
    (
        Column("name", "utf8", "the benchmark, where there are several"),
        Column("items", "int64", "items with a difficulty", True),
        Column("normalize", "utf8", "how difficulties were brought to [0,1]", True),
        Column("target", "utf8", "the distribution of difficulty aimed at", True),
        Column("ddm", "float64", "difficulty distribution mismatch, Wasserstein-1"),
        Column("ddm_continuous", "float64", "the same against the continuous target"),
        Column("max_gap", "float64", "the widest interval of [0,1] without an item"),
        Column("top_gap_sum", "float64", "sum of the widest gaps"),
        Column("top", "int64", "how many gaps are summed", True),
        *_metric_columns(),
        Column("median_sd_z", "float64", "median posterior sd of a normalised difficulty"),
        Column("flags", "list<utf8>", "metrics at or above the published thresholds"),
        Column("boundary_items", "int64", "items that all models got right, or wrong"),
        Column("distinct_difficulties", "int64", "number of distinct difficulties"),
        Column("certificate_pairs", "int64", "pairs of models compared by --pairs"),
        Column("certificate_flips", "int64", "pairs in another order if difficulty were weighted as the target asks"),
        Column("certificate_safe", "int64", "pairs whose order is certain"),
    ),
    "bk-metrics",
    own="ddm",
)

GAPS = Table(
    "gaps",
    "gaps",
    (
        Column("gap", "int64", "1 is the widest", True),
        Column("width", "float64", "upper minus lower, normalised difficulty", True),
        Column("lower", "float64", "lower end, normalised difficulty", True),
        Column("upper", "float64", "upper end, normalised difficulty", True),
        Column("midpoint", "float64", "normalised difficulty a new item should have", True),
        Column("midpoint_logit", "float64", "the same, logits"),
        Column("lower_item", "utf8", "item at the lower end; null at 0"),
        Column("upper_item", "utf8", "item at the upper end; null at 1"),
        Column("parents", "list<utf8>", "items nearest the midpoint, to rewrite"),
        Column("easier", "list<utf8>", "items next below the gap, nearest first"),
        Column("harder", "list<utf8>", "items next above the gap, nearest first"),
        Column("p_wider", "float64", "posterior probability that it is wider than the threshold; null without one"),
    ),
    "bk-gaps",
)

RANKS = Table(
    "ranks",
    "models",
    (
        Column("model", "utf8", "the model's identifier", True),
        Column("rank", "int64", "1 + number of models with a strictly greater score", True),
        Column("rank_lower", "int64", "best rank of the interval", True),
        Column("rank_upper", "int64", "worst rank of the interval", True),
        Column("could_be_first", "bool", "the interval reaches rank 1", True),
        Column("p_first", "float64", "share of resamples with rank 1, ties counted; null where none are made"),
        Column("score", "float64", "mean over items of the item's score", True),
        Column("attempts", "int64", "attempts on all items", True),
        Column("attempts_half_width", "float64", "half-width of the score's interval over attempts, Wald"),
        Column("attempts_lower", "float64", "lower bound of the score over attempts, Wilson"),
        Column("attempts_upper", "float64", "upper bound of the score over attempts, Wilson"),
        Column("items_half_width", "float64", "half-width of the score's interval over items"),
        Column("clusters_half_width", "float64", "half-width of the score's interval over clusters"),
        Column("pooled", "float64", "posterior mean of the score, partially pooled, from a fit"),
        Column("pooled_lower", "float64", "lower posterior bound of the score"),
        Column("pooled_upper", "float64", "upper posterior bound of the score"),
    ),
    "bk-rank",
    own="contenders",
)

PAIRS = Table(
    "pairs",
    "pairs",
    (
        Column("model_a", "utf8", "the reference, or the first of the pair", True),
        Column("model_b", "utf8", "the model compared with it", True),
        Column("items", "int64", "items that both have", True),
        Column("difference", "float64", "score of a minus score of b on these items"),
        Column("lower", "float64", "lower bound of the difference, level 1 - alpha"),
        Column("upper", "float64", "upper bound of the difference, level 1 - alpha"),
        Column("discordant", "int64", "items with a nonzero difference", True),
        Column("p", "float64", "sign-flip p-value", True),
        Column("p_smallest", "float64", "the least p that these differences could have, whatever their signs"),
        Column("p_adjusted", "float64", "p adjusted for the family"),
        Column("significant", "bool", "p_adjusted is at most alpha", True),
        Column("equivalent", "bool", "the interval at level 1 - 2 alpha lies within the margin; null without one"),
        Column("method", "utf8", "exact, symmetry-assumed, meet-in-the-middle or monte-carlo", True),
        Column("discordance", "float64", "mean squared difference over items"),
        Column("detectable_difference", "float64", "difference that the power asked for detects"),
        Column("detectable_exact", "float64", "the least difference that the exact test detects with that power"),
        Column("items_needed", "int64", "items at which the difference planned for is detected"),
        Column("p_se", "float64", "Monte Carlo standard error of p, where p is not counted"),
        Column("p_attempts", "float64", "Fisher's exact test over attempts"),
        Column("p_attempts_adjusted", "float64", "p_attempts adjusted for the family"),
    ),
    "bk-signflip",
)

ASKED = PAIRS._replace(columns=PAIRS.columns[:2])
"""The pairs to compare: the first two columns of bk-signflip's own table."""

TARGET = Table(
    "target",
    "targets",
    (
        Column("value", "float64", "a normalised difficulty, 0 to 1", True),
        Column("weight", "float64", "its weight; null in all rows for equal weights"),
    ),
    "you",
)

ITEMS = Table(
    "diagnosis",
    "items",
    (
        Column("item", "utf8", "the item's identifier", True),
        Column("models", "int64", "models that tried it", True),
        Column("attempts", "int64", "attempts of all models", True),
        Column("correct", "float64", "sum of their scores", True),
        Column("rate", "float64", "correct/attempts"),
        Column("share_of_spread", "float64", "share of the variance of scores that the item carries"),
        Column("item_rest_correlation", "float64", "correlation with the score on the other items"),
        Column("information", "float64", "sum over models of n p (1 - p) at the Laplace mode"),
        Column("inversion_rate", "float64", "share of model pairs that the item orders against the rest"),
    ),
    "bk-matrix",
    own="n_cells",
)

REQUESTS = Table(
    "requests",
    "requests",
    (
        Column("custom_id", "utf8", "what the request is for, see bk-fill(1)", True),
        Column("method", "utf8", "POST", True),
        Column("url", "utf8", "/v1/chat/completions", True),
        Column("body", "utf8", "the request, JSON; an object in JSON and NDJSON", True),
    ),
    "bk-fill",
)

CANDIDATES = Table(
    "candidates",
    "candidates",
    (
        Column("id", "utf8", "the candidate's identifier as an item", True),
        Column("question", "utf8", "its question", True),
        Column("answer", "utf8", "its answer", True),
        Column("ancestor", "utf8", "the item that was rewritten"),
        Column("round", "int64", "the round of requests, from 1"),
        Column("gap", "int64", "the gap it was to fill, 1 being the widest of its round"),
        Column("target", "float64", "normalised difficulty aimed at"),
        Column("target_logit", "float64", "the same, logits"),
        Column("custom_id", "utf8", "the request that it answers"),
    ),
    "bk-fill",
)

CHOSEN = Table(
    "chosen",
    "chosen",
    (
        Column("item", "utf8", "the candidate to add", True),
        Column("gap", "int64", "the gap it splits, 1 being the widest at that time", True),
        Column("lower", "float64", "lower end of the gap, normalised difficulty", True),
        Column("upper", "float64", "upper end of the gap, normalised difficulty", True),
        Column("midpoint", "float64", "middle of the gap, normalised difficulty", True),
        Column("difficulty", "float64", "the item's normalised difficulty", True),
        Column("difficulty_logit", "float64", "the same, logits", True),
        Column("sd", "float64", "posterior standard deviation, logits", True),
        Column("max_gap", "float64", "maximum gap with this item added", True),
        Column("target", "float64", "normalised difficulty that was aimed at"),
        Column("target_logit", "float64", "the same, logits"),
        Column("ancestor", "utf8", "the item that was rewritten"),
    ),
    "bk-fill",
)

TABLES = (RESPONSES, PARAMETERS, METRICS, GAPS, RANKS, PAIRS, ITEMS, REQUESTS, CANDIDATES, CHOSEN)

DOCUMENTS = ("fit", "warnings", "sources")
"""What a table carries besides rows and history, by the same name in JSON and, as `benchkit.NAME`, in Arrow."""

Line = Callable[[int], int]
"""From a row's index to the number that a message gives it: the line of a text file, else the count from 1."""


def codes(column: pa.ChunkedArray) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Each value's index among the sorted distinct values (nulls: -1), and these values.

    Sorted by code point, which for UTF-8 is the order of the bytes.
    """
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    values = encoded.dictionary
    order = np.asarray(pc.sort_indices(values))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    at = np.asarray(encoded.indices.fill_null(-1), np.int64)
    return rank[at], values.take(pa.array(order)).to_pylist()


def first_duplicate(keys: np.ndarray[Any, Any]) -> tuple[int, int] | None:
    """The earliest row whose key stood before, with the row where it did; keys are integers. None if all differ."""
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(again):
        return None
    k = again[np.argmin(order[again + 1])]
    return int(order[k]), int(order[k + 1])


def _fail(table: pa.Table, bad: Any, line: Line, say: Callable[[dict[str, Any]], str]) -> None:
    """Raise for the first row where `bad` holds."""
    at = np.flatnonzero(np.asarray(bad))
    if len(at):
        row = table.slice(int(at[0]), 1).to_pylist()[0]
        raise InputError(f"row {line(int(at[0]))}: {say(row)}")


def check_responses(table: pa.Table, line: Line, *, unique: bool = True) -> None:
    """Raise InputError for the first row that breaks the contract; `table` has the schema already.

    Without `unique` a pair of model and item may stand more than once, for a caller that adds them up.
    """
    attempts = table["attempts"].to_numpy()
    correct = table["correct"].to_numpy()
    for name in ("model", "item"):
        _fail(table, pc.equal(table[name], ""), line, lambda _, name=name: f"{name} is empty")  # type: ignore[misc]
    _fail(table, attempts < 1, line, lambda r: f"attempts ({r['attempts']}) is below 1; an untried pair is no row")
    _fail(table, ~np.isfinite(correct), line, lambda r: f"correct ({r['correct']}) is not a finite number")
    _fail(table, correct < 0, line, lambda r: f"correct ({r['correct']:g}) is below 0")
    _fail(table, correct > attempts, line,
          lambda r: f"correct ({r['correct']:g}) is larger than attempts ({r['attempts']})")  # fmt: skip
    item, items = codes(table["item"])
    model, models = codes(table["model"])
    twice = first_duplicate(model * len(items) + item) if unique else None
    if twice:
        a, b = twice
        raise InputError(
            f"rows {line(a)} and {line(b)}: model '{models[model[a]]}' and item '{items[item[a]]}' stand twice"
            " (bk-matrix --merge sum adds them up)"
        )
    _check_clusters(table, item, items, line)


def check_pairs(table: pa.Table, line: Line) -> None:
    """Raise InputError for a pair of one model, and for one that stands twice, in either order."""
    a, b = table["model_a"].to_pylist(), table["model_b"].to_pylist()
    _fail(table, pc.equal(table["model_a"], table["model_b"]), line, lambda r: f"'{r['model_a']}' against itself")
    seen: dict[frozenset[str], int] = {}
    for row, pair in enumerate(map(frozenset, zip(a, b, strict=True))):
        if seen.setdefault(pair, row) != row:
            raise InputError(f"rows {line(seen[pair])} and {line(row)}: '{a[row]}' and '{b[row]}' stand twice")


RATES = "no 'correct' is above 1, though attempts are, and some are fractions: are they rates, not sums?"


def doubts(table: pa.Table) -> list[str]:
    """What a responses table that keeps the contract may still have wrong, in words."""
    attempts, correct = table["attempts"].to_numpy(), table["correct"].to_numpy()
    several = attempts > 1
    if several.any() and (correct[several] <= 1).all() and (correct[several] % 1 != 0).any():
        return [RATES]
    return []


def _check_clusters(table: pa.Table, item: np.ndarray[Any, Any], items: list[str], line: Line) -> None:
    """An item belongs to one cluster, whichever model tried it."""
    if table["cluster"].null_count == table.num_rows:
        return
    cluster, names = codes(table["cluster"])
    first = np.full(len(items), len(cluster), np.int64)
    np.minimum.at(first, item, np.arange(len(item)))
    differs = np.flatnonzero(cluster != cluster[first[item]])
    if len(differs):
        b = int(differs[0])
        a = int(first[item[b]])
        shown = [f"'{names[c]}'" if c >= 0 else "no cluster" for c in (cluster[a], cluster[b])]
        raise InputError(f"rows {line(a)} and {line(b)}: item '{items[item[a]]}' is in {shown[0]} and in {shown[1]}")


def check_parameters(table: pa.Table, line: Line) -> None:
    """Raise InputError for the first row that breaks the contract; `table` has the schema already."""
    kinds = ", ".join(KINDS)
    _fail(table, pc.invert(pc.is_in(table["kind"], pa.array(KINDS))), line,
          lambda r: f"kind '{r['kind']}' is none of {kinds}")  # fmt: skip
    _fail(table, pc.equal(table["id"], ""), line, lambda _: "id is empty")
    for name in ("mean", "sd", "lower", "upper"):
        value = table[name].to_numpy()
        _fail(table, ~np.isfinite(value), line, lambda r, name=name: f"{name} ({r[name]}) is not a finite number")  # type: ignore[misc]
    _fail(table, table["sd"].to_numpy() < 0, line, lambda r: f"sd ({r['sd']:g}) is below 0")
    _fail(table, table["lower"].to_numpy() > table["upper"].to_numpy(), line,
          lambda r: f"lower ({r['lower']:g}) is above upper ({r['upper']:g})")  # fmt: skip
    kind, kind_names = codes(table["kind"])
    ident, idents = codes(table["id"])
    twice = first_duplicate(kind * len(idents) + ident)
    if twice:
        a, b = twice
        raise InputError(f"rows {line(a)} and {line(b)}: {kind_names[kind[a]]} '{idents[ident[a]]}' stands twice")
    lengths = pc.list_value_length(table["draws"])
    if lengths.null_count < table.num_rows:
        want = pc.max(lengths).as_py()
        uneven = pc.not_equal(lengths, want).fill_null(False)
        _fail(table, uneven, line, lambda r: f"{len(r['draws'])} draws where other rows have {want}")
        bad = np.flatnonzero(~np.asarray(pc.is_finite(pc.list_flatten(table["draws"])).fill_null(False)))
        if len(bad):
            row = int(np.asarray(pc.list_parent_indices(table["draws"].combine_chunks()))[bad[0]])
            raise InputError(f"row {line(row)}: a draw is not a finite number")


def check_candidates(table: pa.Table, line: Line) -> None:
    """Raise InputError for an empty identifier, and for one that stands twice."""
    _fail(table, pc.equal(table["id"], ""), line, lambda _: "id is empty")
    ident, idents = codes(table["id"])
    if twice := first_duplicate(ident):
        a, b = twice
        raise InputError(f"rows {line(a)} and {line(b)}: candidate '{idents[ident[a]]}' stands twice")


CHECKS: dict[str, Callable[[pa.Table, Line], None]] = {
    RESPONSES.name: check_responses,
    PARAMETERS.name: check_parameters,
    PAIRS.name: check_pairs,
    TARGET.name: lambda table, line: None,
    "model map": lambda table, line: None,
    CANDIDATES.name: check_candidates,
}
SORT: dict[str, list[str]] = {
    RESPONSES.name: ["model", "item"],
    PARAMETERS.name: ["kind", "id"],
    PAIRS.name: ["model_a", "model_b"],
    TARGET.name: ["value"],
    "model map": ["model"],
    CANDIDATES.name: ["id"],
}
