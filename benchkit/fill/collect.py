"""Replies -> candidates, each checked; the work of bk-fill collect. Every line of replies is a candidate or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchkit.fill import answer, ids
from benchkit.fill.copies import normalised
from benchkit.fill.ids import Key
from benchkit.fill.items import Item, text
from benchkit.fill.replies import Reply
from benchkit.fill.votes import Votes

SAID = 3
"""Kinds of refusals that a warning names."""


class Refused(NamedTuple):
    """A line that is no candidate, its custom_id, why, and the same without names and numbers, to be counted."""

    custom_id: str
    reason: str
    kind: str


class Collected(NamedTuple):
    """Candidates as rows, by round, gap and number; refusals by custom_id; warnings."""

    candidates: list[dict[str, Any]]
    refused: list[Refused]
    warnings: list[str]

    def document(self) -> dict[str, Any]:
        """The JSON document without its end."""
        return {
            "replies": len(self.candidates) + len(self.refused),
            "candidates": self.candidates,
            "rejected": self.rejected(),
        }

    def rejected(self) -> list[dict[str, Any]]:
        """The refusals as rows."""
        return [{"custom_id": r.custom_id, "reason": r.reason} for r in self.refused]


def answered(replies: Iterable[Reply]) -> set[str]:
    """The custom_ids that have a reply with content: a failed request was not answered."""
    return {r.custom_id for r in replies if r.content is not None}


def collect(
    replies: Sequence[Reply], items: Mapping[str, Item], votes: Votes | None = None, *, min_votes: int = 1
) -> Collected:
    """Check each reply against the items that are known and against each other.

    Of several replies with one custom_id the first with content counts. Of two candidates that are copies of each
    other the first by round, gap and number stays. With `votes` a candidate needs `min_votes` of them and more than
    half of them valid. The result does not depend on the order of the replies otherwise.
    """
    refused: list[Refused] = []
    first: dict[str, Reply] = {}
    for r in replies:
        if ids.parse(r.custom_id) is None:
            refused.append(_refuse(r.custom_id, "the custom_id was not made by bk-fill requests"))
        elif r.content is None:
            refused.append(_refuse(r.custom_id, r.reason or "no content", "failed requests"))
        elif r.custom_id in first:
            refused.append(_refuse(r.custom_id, "a second reply to the same request: the first one counts"))
        else:
            first[r.custom_id] = r
    known = {normalised(item.question): f"item '{item.id}'" for item in items.values()}
    parents = {ids.digest(i): i for i in items}
    rows = []
    for key, r in sorted((k, r) for r in first.values() if (k := ids.parse(r.custom_id))):
        row = _candidate(r, key, items, known, votes, min_votes)
        if isinstance(row, Refused):
            refused.append(row)
            continue
        known[normalised(row["question"])] = f"candidate '{row['id']}'"
        rows.append(row | _origin(r.custom_id, key, parents))
    refused.sort()
    return Collected(rows, refused, _warnings(rows, refused, votes, first))


def _candidate(
    r: Reply, key: Key, items: Mapping[str, Item], known: Mapping[str, str], votes: Votes | None, min_votes: int
) -> dict[str, Any] | Refused:
    """The id, question and answer of a candidate, or why it is none."""
    found = answer.find(r.content or "", "question", "answer")
    if found.value is None:
        return _refuse(r.custom_id, f"{found.reason}" + (", cut at the length limit" if r.cut else ""), found.reason)
    row: dict[str, Any] = {"id": ids.item_id(r.custom_id, key)}
    for name in ("question", "answer"):
        said = text(found.value[name])
        if said is None:
            return _refuse(r.custom_id, f"'{name}' is neither text nor a number")
        if not (normalised(said) if name == "question" else said.strip()):
            return _refuse(r.custom_id, f"'{name}' is empty")
        if fault := answer.problem(said):
            return _refuse(r.custom_id, f"'{name}' {fault}")
        row[name] = said.strip()
    if row["id"] in items:
        return _refuse(r.custom_id, f"it is item '{row['id']}' already", "items already")
    if other := known.get(normalised(row["question"])):
        return _refuse(r.custom_id, f"a copy of {other}", f"copies of {other.split()[0]}s")
    if votes is not None:
        yes, total = votes.counts.get(r.custom_id, (0, 0))
        if total < min_votes:
            return _refuse(r.custom_id, f"{total} votes where {min_votes} are needed", "too few votes")
        if 2 * yes <= total:
            return _refuse(r.custom_id, f"{yes} of {total} votes say that it is valid", "voted invalid")
    return row


def _refuse(custom_id: str, reason: str, kind: str | None = None) -> Refused:
    return Refused(custom_id, reason, kind or reason)


def _origin(custom_id: str, key: Key, parents: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"ancestor": parents.get(key.parent)}
    if row["ancestor"] is None:
        row["ancestor_reason"] = "no item given has the identifier of the parent"
    return row | {"round": key.round, "gap": key.gap, "target": key.target, "target_logit": key.target_logit,
                  "custom_id": custom_id}  # fmt: skip


def _warnings(
    rows: Sequence[Mapping[str, Any]], refused: Sequence[Refused], votes: Votes | None, replied: Mapping[str, Reply]
) -> list[str]:
    out = []
    if refused:
        kinds = Counter(r.kind for r in refused).most_common()
        said = ", ".join(f"{kind} ({count})" for kind, count in kinds[:SAID])
        more = f" and {len(kinds) - SAID} other reasons" if len(kinds) > SAID else ""
        out.append(f"{len(refused)} of {len(rows) + len(refused)} replies refused: {said}{more}")
    if orphans := sum("ancestor_reason" in row for row in rows):
        out.append(f"candidates whose parent is among no items given: {orphans}")
    if votes is not None:
        if votes.unread:
            out.append(f"votes that could not be read, and don't count: {votes.unread}")
        if strange := [name for name in votes.counts if name not in replied]:
            out.append(f"votes on candidates that are not here: {len(strange)}, the first on '{min(strange)}'")
    return out
