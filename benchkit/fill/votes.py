"""Judgements of validity by other models: who found which candidate valid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from benchkit.fill import answer, ids
from benchkit.fill.replies import Reply, reply

WORDS = {"yes": True, "true": True, "no": False, "false": False}


class Votes(NamedTuple):
    """For each candidate's custom_id (valid, all) votes, and how many replies were no vote."""

    counts: dict[str, tuple[int, int]]
    unread: int


def vote(said: Reply) -> bool | None:
    """``{"valid": true}`` or ``{"valid": false}``, or the one word yes, no, true or false; None for anything else."""
    if said.content is None:
        return None
    word = WORDS.get(said.content.strip().rstrip(".").casefold())
    if word is not None:
        return word
    found = answer.find(said.content, "valid").value
    valid = found["valid"] if found else None
    return valid if isinstance(valid, bool) else None


def count(rows: Iterable[dict[str, Any]]) -> Votes:
    """Count votes. A line that stands twice, byte for byte but for the order of its keys, is one vote.

    A vote's custom_id is that of its candidate, perhaps followed by what names the judge (see `ids.candidate_of`).
    Raises InputError as `replies.reply` does.
    """
    seen: set[bytes] = set()
    counts: dict[str, tuple[int, int]] = {}
    unread = 0
    for row in rows:
        line = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
        if line in seen:
            continue
        seen.add(line)
        said = reply(row)
        valid = vote(said)
        if valid is None:
            unread += 1
            continue
        name = ids.candidate_of(said.custom_id)
        yes, total = counts.get(name, (0, 0))
        counts[name] = yes + valid, total + 1
    return Votes(counts, unread)
