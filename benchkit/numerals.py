"""Numbers in text as people write them. Python's own also take underscores, other scripts' digits, and 'infinity'."""

from __future__ import annotations

import re

WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def whole(text: str) -> int:
    """Raises ValueError with the message for people."""
    if not WHOLE.fullmatch(text):
        raise ValueError(f"'{text}' is not a whole number")
    return int(text)


def decimal(text: str) -> float:
    """Raises ValueError with the message for people. Beyond the range of a float it is infinite."""
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"'{text}' is not a number")
    return float(text)
