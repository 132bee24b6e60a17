"""Every reader of a tool's own files, in the order in which they are asked."""

from __future__ import annotations

from typing import cast

from benchkit.formats import (
    deepeval,
    every_eval_ever,
    harbor,
    inspect_ai,
    itemeval,
    lighteval,
    livebench,
    lm_eval,
    opencompass,
    promptfoo,
    py_irt,
    tau_bench,
)
from benchkit.formats.native import Document, Reader

MODULES = (
    inspect_ai,
    lm_eval,
    promptfoo,
    livebench,
    harbor,
    tau_bench,
    lighteval,
    deepeval,
    every_eval_ever,
    py_irt,
    itemeval,
    opencompass,
)
READERS: tuple[Reader, ...] = tuple(cast(Reader, module) for module in MODULES)


def find(doc: Document) -> Reader | None:
    """The reader that recognises a document, or None."""
    return next((r for r in READERS if r.sniff(doc)), None)
