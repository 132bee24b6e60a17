"""A responses table as the wide arrays that the statistics work on."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchkit.tables import codes

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


class Wide(NamedTuple):
    """N models (index i) by M items (index j), each sorted by code point.

    `attempts` (N, M) int64 is 0 where the pair was not tried; `correct` (N, M) float64. `cluster` (M,) int64 is the
    index of each item's cluster, an item without one standing for itself; None where the table has no clusters.
    """

    models: list[str]
    items: list[str]
    attempts: Ints
    correct: Floats
    cluster: Ints | None


def digest(w: Wide) -> str:
    """16 hexadecimal digits that tell this table of results from any other, in whatever form it comes."""
    found = hashlib.sha256()
    for names in (w.models, w.items):
        found.update("\0".join(names).encode() + b"\0\0")
    for values in (w.attempts.astype("<i8"), w.correct.astype("<f8")):
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()[:16]


def with_items(w: Wide, items: frozenset[str] | None) -> Wide:
    """With items that no model has tried, as columns without attempts; None adds none."""
    more = sorted((items or frozenset()) - set(w.items))
    if not more:
        return w
    names = sorted([*w.items, *more])
    place = {name: j for j, name in enumerate(names)}
    at = [place[name] for name in w.items]
    attempts = np.zeros((len(w.models), len(names)), np.int64)
    correct = np.zeros(attempts.shape, np.float64)
    attempts[:, at], correct[:, at] = w.attempts, w.correct
    cluster = None
    if w.cluster is not None:
        cluster = np.full(len(names), -1, np.int64)
        cluster[at] = w.cluster
    return Wide(w.models, names, attempts, correct, cluster)


def least_coverage(table: pa.Table, items: frozenset[str] | None) -> tuple[str, float]:
    """The model that tried the smallest share of the items, the first by name of several, and the share.

    The items are those of the table, or `items` if not None.
    """
    universe = len(table["item"].unique()) if items is None else len(items)
    counts = table.group_by("model").aggregate([("item", "count")])
    tried, model = min(zip(counts["item_count"].to_pylist(), counts["model"].to_pylist(), strict=True))
    return model, tried / universe


def wide(table: pa.Table) -> Wide:
    """The arrays of a responses table that `wire.read` has checked."""
    i, models = codes(table["model"])
    j, items = codes(table["item"])
    attempts = np.zeros((len(models), len(items)), np.int64)
    correct = np.zeros((len(models), len(items)), np.float64)
    attempts[i, j] = table["attempts"].to_numpy()
    correct[i, j] = table["correct"].to_numpy()
    cluster: Ints | None = None
    if table["cluster"].null_count < table.num_rows:
        c, names = codes(table["cluster"])
        of_item = np.full(len(items), -1, np.int64)
        of_item[j] = c
        alone = of_item < 0
        of_item[alone] = len(names) + np.arange(int(alone.sum()))
        cluster = np.unique(of_item, return_inverse=True)[1].astype(np.int64)
    return Wide(models, items, attempts, correct, cluster)
