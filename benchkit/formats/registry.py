"""Every reader of a tool's own files, in the order in which they are asked."""

from __future__ import annotations

from typing import cast

from benchkit.formats import (
    aider,
    bfcl,
    deepeval,
    evalplus,
    every_eval_ever,
    harbor,
    helm,
    human_eval,
    inspect_ai,
    itemeval,
    lighteval,
    livebench,
    livecodebench,
    lm_eval,
    matharena,
    multipl_e,
    openai_evals,
    opencompass,
    promptfoo,
    py_irt,
    swebench,
    tau_bench,
)
from benchkit.formats.native import Document, Reader

MODULES = (
    harbor,  # first: what an agent and its tests left in a trial's folder may look like results of any other tool
    inspect_ai,
    lm_eval,
    helm,
    matharena,
    swebench,
    livecodebench,
    evalplus,
    openai_evals,
    promptfoo,
    livebench,
    tau_bench,
    lighteval,
    deepeval,
    every_eval_ever,
    py_irt,
    itemeval,
    opencompass,
    aider,
    bfcl,
    human_eval,
    multipl_e,
)
READERS: tuple[Reader, ...] = tuple(cast(Reader, module) for module in MODULES)


def find(doc: Document) -> Reader | None:
    """The reader that recognises a document, or None."""
    return next((r for r in READERS if r.sniff(doc)), None)
