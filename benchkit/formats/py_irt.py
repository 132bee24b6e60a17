"""py-irt's responses: a line a subject, with a response an item.

Source: py_irt/dataset.py.
"""

from __future__ import annotations

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, inner, place, records
from benchkit.formats.native import Attempts, Document, identifier, number

NAME = "py-irt responses (.jsonlines)"


def sniff(doc: Document) -> bool:
    value = first(doc)
    return "subject_id" in value and isinstance(value.get("responses"), dict)


def read(doc: Document, choices: Choices) -> Attempts | None:
    out = Attempts("py-irt")
    for n, row in records(doc):
        if "subject_id" not in row or "responses" not in row:
            raise InputError(f"{place(n)}lacks subject_id or responses")
        model = identifier(row["subject_id"], "subject_id", n)
        for item, response in inner(row, "responses", n).items():
            out.add(item, number(response, f"the response to '{item[:40]}'", n), model=model, line=n)
    return out
