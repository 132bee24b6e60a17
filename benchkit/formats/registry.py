"""Every reader of a tool's own files, in the order in which they are asked."""

from __future__ import annotations

from typing import cast

from benchkit.formats import inspect_ai, lm_eval
from benchkit.formats.native import Document, Reader

READERS: tuple[Reader, ...] = tuple(cast(Reader, module) for module in (inspect_ai, lm_eval))


def find(doc: Document) -> Reader | None:
    """The reader that recognises a document, or None."""
    return next((r for r in READERS if r.sniff(doc)), None)
