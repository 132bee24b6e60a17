"""What a request's custom_id says of it.

Whoever runs the requests gives back replies with nothing of the request but its custom_id, so that this must hold all
that is needed later: the round, the gap, the candidate's number, the difficulty aimed at and the parent.

    r1-g02-k1-z7080-b4191-0a1b2c3d4e5f

is candidate 1 for gap 2 of round 1, aimed at .7080 on the benchmark's scale and 4.191 logits (`bm` for minus), a
rewrite of the item whose identifier has this hash. The characters are letters, digits and hyphens, 64 at most.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

PATTERN = re.compile(r"r([0-9]+)-g([0-9]+)-k([0-9]+)-z([0-9]+)-b(m?)([0-9]+)-([0-9a-f]{12})")


class Key(NamedTuple):
    """A custom_id, taken apart.

    round, gap, candidate   counted from 1
    target                  normalised difficulty, 4 decimals
    target_logit            logits, 3 decimals
    parent                  hash of the parent's identifier, see `digest`
    """

    round: int
    gap: int
    candidate: int
    target: float
    target_logit: float
    parent: str


def digest(text: str, size: int = 12) -> str:
    """The first `size` hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:size]


def custom_id(round: int, gap: int, candidate: int, target: float, target_logit: float, parent: str) -> str:
    """The custom_id of a request; `parent` is the item's identifier."""
    logit = round_to(target_logit, 1000)
    sign = "m" if logit < 0 else ""
    return f"r{round}-g{gap:02d}-k{candidate}-z{round_to(target, 10_000):04d}-b{sign}{abs(logit):04d}-{digest(parent)}"


def round_to(value: float, parts: int) -> int:
    """The value in whole parts of one, half to even."""
    return int(f"{value * parts:.0f}")


def parse(text: str) -> Key | None:
    """The parts of a custom_id, None where bk-fill did not make it."""
    found = PATTERN.fullmatch(text)
    if not found or len(text) > 200:
        return None
    sign = -1 if found[5] else 1
    return Key(
        int(found[1]), int(found[2]), int(found[3]), int(found[4]) / 10_000, sign * int(found[6]) / 1000, found[7]
    )


def item_id(text: str, key: Key) -> str:
    """The identifier of the item that a reply becomes: short, and a function of the custom_id alone."""
    return f"r{key.round}-g{key.gap:02d}-k{key.candidate}-{digest(text, 6)}"


def candidate_of(text: str) -> str:
    """The custom_id that a vote's custom_id begins with: what follows it, after no letter or digit, names the judge."""
    found = PATTERN.match(text)
    if found and (found.end() == len(text) or not text[found.end()].isalnum()):
        return found[0]
    return text
