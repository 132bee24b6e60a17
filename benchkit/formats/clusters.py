"""An item belongs to one cluster, whichever model tried it and whichever source says so."""

from __future__ import annotations

from collections.abc import Iterable

from benchkit.errors import InputError


def of_items(pairs: Iterable[tuple[str, str | None]], where: str | None = None) -> dict[str, str | None]:
    """The cluster of each item; InputError where the pairs give one item two clusters, or one and none."""
    found: dict[str, str | None] = {}
    torn: dict[str, set[str | None]] = {}
    for item, cluster in pairs:
        if found.setdefault(item, cluster) != cluster:
            torn.setdefault(item, {found[item]}).add(cluster)
    if torn:
        item = min(torn)
        shown = [
            "no cluster" if c is None else f"cluster '{c}'"
            for c in sorted(torn[item], key=lambda c: (c is None, c or ""))
        ]
        raise InputError(f"item '{item}' is in {shown[0]} and in {shown[1]}", where=where)
    return found
