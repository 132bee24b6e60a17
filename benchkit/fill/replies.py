"""A line of replies in the OpenAI batch format -> the text that the model wrote, or why there is none.

{"id", "custom_id", "response": {"status_code", "body": {"choices": [{"message": {"content"}}]}}, "error": null}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchkit.errors import InputError


class Reply(NamedTuple):
    """One reply. `content` is None where there is none, for this `reason`. `cut`: it ended at the length limit."""

    custom_id: str
    content: str | None
    reason: str | None
    cut: bool = False


def reply(row: Mapping[str, Any]) -> Reply:
    """Read one line. Of several choices the first is taken.

    Raises InputError for what is no line of replies: without a custom_id, or a request.
    """
    name = row.get("custom_id")
    if not isinstance(name, str) or not name:
        raise InputError("no custom_id: replies in the batch format are needed")
    if "response" not in row and "error" not in row:
        what = "a request, not a reply" if "method" in row or "body" in row else "no response and no error"
        raise InputError(f"{what}: replies in the batch format are needed")
    error = row.get("error")
    if error:
        return Reply(name, None, f"error: {_said(error)}")
    response = row.get("response")
    if not isinstance(response, Mapping):
        return Reply(name, None, "no response")
    status, body = response.get("status_code"), response.get("body")
    if status not in (None, 200):
        said = _said(body.get("error")) if isinstance(body, Mapping) and body.get("error") else ""
        return Reply(name, None, f"HTTP status {status}" + (f": {said}" if said else ""))
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        return Reply(name, None, "no choice in the response")
    content = _text(message.get("content"))
    assert isinstance(choice, Mapping)
    cut = choice.get("finish_reason") == "length"
    if content is None or not content.strip():
        refusal = message.get("refusal")
        why = f"refused by the model: {_said(refusal)}" if refusal else "no content"
        return Reply(name, None, why + (", cut at the length limit" if cut else ""), cut)
    return Reply(name, content, None, cut)


def _text(content: Any) -> str | None:
    """Text, or a list of parts of which some are text."""
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, Mapping) and p.get("type") == "text"]
        content = "".join(p for p in parts if isinstance(p, str)) if parts else None
    return content if isinstance(content, str) else None


def _said(error: Any) -> str:
    """An error in a few words."""
    if isinstance(error, Mapping):
        error = ": ".join(str(error[k]) for k in ("code", "message") if error.get(k)) or "without a message"
    return " ".join(str(error).split())[:160]
