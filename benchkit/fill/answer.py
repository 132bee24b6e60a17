"""The JSON object in a reply's text. It may stand in a fence or between sentences, but nothing is guessed."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

# What is left of a backslash command of LaTeX where its backslash was not doubled: \f, \b, \r, \v and, where a known
# command follows, \t and \n are control characters in JSON.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
COMMAND = re.compile("\t(?:imes|heta|ext|frac|an|anh|au|ilde|riangle|o)(?![a-z])|\n(?:abla|eq|eg)(?![a-z])")


class Found(NamedTuple):
    """The one object, or why there is none."""

    value: dict[str, Any] | None
    reason: str | None


def find(text: str, *keys: str) -> Found:
    """The only JSON object in the text that has all of `keys`.

    Two different ones are no answer, nor is an object where a key stands twice or a value is NaN.
    """
    found = _objects(text)
    if not found:
        return Found(None, "no JSON object")
    fit = [o for o in found if all(k in o for k in keys)]
    if not fit:
        lacking = next(k for k in keys if k not in found[0])
        return Found(None, f"the JSON object has no '{lacking}'")
    if any(o != fit[0] for o in fit):
        return Found(None, "several different JSON objects")
    return Found(fit[0], None)


def _decoder() -> json.JSONDecoder:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            raise ValueError("a key stands twice")
        return out

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    return json.JSONDecoder(object_pairs_hook=once, parse_constant=refuse)


DECODER = _decoder()


def _objects(text: str) -> list[dict[str, Any]]:
    """All JSON objects in the text that lie in no other one. Braces that begin none are text."""
    out, at = [], text.find("{")
    while at >= 0:
        try:
            value, end = DECODER.raw_decode(text, at)
            out.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    return out


def problem(text: str) -> str | None:
    """Why a text that came out of JSON can't be what its author meant, None where nothing speaks against it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if CONTROL.search(text) or COMMAND.search(text):
        return "holds control characters where a backslash was not doubled"
    return None
