"""Names of a table that may be one, since they differ only in how they are written, or that may name no item."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.formats.cells import Ints
from benchkit.tables import codes
from benchkit.text import count

SPACES = ((r"[\s\pZ_-]+", "-"), (r"-$", ""), (r"^-([^0-9])", r"\1"))  # `gpt 4o`, `gpt_4o`, but not `-1`
NUMBERS = ((r"^([0-9]+)\.0$", r"\1"), (r"(^|[^0-9.])0+([0-9])", r"\1\2"))  # `7.0`, of a column with gaps; `007`, `q07`
"""Ways of writing that are taken to be one, beside upper and lower case: what matches, and what is put there."""

SUMMARIES = (
    "acc", "accuracy", "all", "average", "avg", "difficulty", "index", "max", "mean", "median", "min", "n_correct",
    "n_shot", "overall", "pass_rate", "rank", "sd", "seed", "std", "sum", "temperature", "total", "totals"
)  # fmt: skip
"""What a row or a column is called that sums others up, or says how they were made."""

MISSING = ("na", "n/a", "nan", "none", "null", "<na>", "")
"""What programs write where a name is missing."""

MODELS = "may be one model: --model-map makes them one"
ITEMS = "may be one item, since no model tried both"
NAMES = "may name a summary or a setting: leave it out (--leave-out, of a column)"
NO_NAMES = "may stand for a name that is missing"
ENDINGS = (MODELS, ITEMS, NAMES, NO_NAMES)
"""How each of these warnings ends."""

WORDS = dict.fromkeys(SUMMARIES, NAMES) | dict.fromkeys(MISSING, NO_NAMES)


def doubts(table: pa.Table) -> list[str]:
    """What may be wrong with the names of a table, in words. table: responses.

    Models that may be one, items that may be one and that no model tried under both names, summaries taken for a model
    or an item, and missing names.
    """
    models, items = (table[name].unique().to_pylist() for name in ("model", "item"))
    group = _groups(items, SPACES + NUMBERS)
    if (group >= 0).any():  # seldom, and only then all rows have to be looked at
        (item, items), (model, _) = codes(table["item"]), codes(table["model"])
        group = _groups(items, SPACES + NUMBERS)
        there = group[item] >= 0
        pairs, times = np.unique(group[item][there] * len(models) + model[there], return_counts=True)
        group[np.isin(group, pairs[times > 1] // len(models))] = -1  # a model tried both
    said = _said(models, _groups(models, SPACES), MODELS) + _said(items, group, ITEMS)
    strange = [
        (f"{what} '{n}'", WORDS[word])
        for what, names in (("model", models), ("item", items))
        for n in names
        if len(n) < 12 and (word := n.strip().lower()) in WORDS
    ]
    for says in (NAMES, NO_NAMES):
        found = [what for what, how in strange if how == says]
        if found:
            said.append(f"{found[0]}{f' (and {len(found) - 1} more)' if len(found) > 1 else ''} {says}")
    return said


def _groups(names: list[str], spellings: tuple[tuple[str, str], ...]) -> Ints:
    """A number for those that are spelled alike, -1 for a name that is alone; shape (N,)."""
    key = pc.utf8_lower(pa.array(names, pa.utf8()))
    for pattern, instead in spellings:
        key = pc.replace_substring_regex(key, pattern, instead)
    code = key.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.where(np.bincount(code)[code] > 1, code, -1)


def _said(names: list[str], group: Ints, says: str) -> list[str]:
    """The first group, and how many more there are; nothing where there is none."""
    groups = np.unique(group[group >= 0])
    if not len(groups):
        return []
    first = [f"'{names[k]}'" for k in np.flatnonzero(group == group[group >= 0][0]).tolist()]
    more = f" (and {count(len(groups) - 1, 'more such group')})" if len(groups) > 1 else ""
    return [f"{', '.join(first[:-1])} and {first[-1]}{more} {says}"]
