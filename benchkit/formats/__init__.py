"""Readers of raw results: one module a format, each with ``sniff`` (is it mine?) and ``read`` (columns -> cells).

A reader gets a `Tabular` (columns of any file, lazily) and gives `Cells`: attempts and scores added up by model and
item, with what else the source said. `read` asks them in turn.
"""

from __future__ import annotations

from collections.abc import Callable

from benchkit import csvtext
from benchkit.errors import InputError, Unrecognised
from benchkit.formats import counts, itemeval, long, wide
from benchkit.formats.cells import Cells, Choices
from benchkit.formats.columns import Roles, recognise, shown
from benchkit.formats.tabular import Tabular, open_source
from benchkit.tables import RESPONSES

MADE = "\0"  # no column of a file is called so
WHAT = {"attempts": "counts of attempts", "correct": "counts of correct attempts"}
Sniff = Callable[[Tabular, Roles], bool]
Read = Callable[[Tabular, Roles, Choices], Cells]


def read(tab: Tabular, choices: Choices, model: str | None = None) -> Cells:
    """Read one table by the first reader that recognises it; InputError names what was found and the options.

    model: the name for a table of attempts without a column of models.
    """
    try:
        return _read(tab, choices, model)
    except InputError:
        if tab.whole is None:
            raise
        return _read(tab.whole(), choices, model)


def _read(tab: Tabular, choices: Choices, model: str | None) -> Cells:
    tag = tab.meta.get("table")
    if tag not in (None, RESPONSES.tag):
        raise InputError(f"a table '{tag}', not raw results or '{RESPONSES.tag}'")
    tab = tab.without(choices.leave_out)
    if itemeval.COLUMNS.issubset(tab.names):
        raise Unrecognised("itemeval's gradings as text: read gradings_long.parquet, which holds the same")
    told = dict(choices.columns)
    for role, names in choices.joined.items():
        lost = next((n for n in names if n not in tab.schema), None)
        if lost is not None:
            raise InputError(f"no column '{lost}' for --{role}-col (found: {shown(tab.names)})")
        told[role] = MADE + role
        tab = tab.joined(names, told[role])
    roles = recognise(tab.names, told)
    if model is not None and not roles.model and roles.item and (roles.score or roles.attempts):
        tab = tab.constant(MADE + "model", model)
        roles = roles._replace(model=MADE + "model")
    readers: tuple[tuple[Sniff, Read, set[str]], ...] = (
        (counts.sniff, counts.read, {"model", "item", "attempts", "correct", "cluster"}),
        (long.sniff, long.read, {"model", "item", "score", "attempt", "cluster"}),
        (wide.sniff, wide.read, {"model", "cluster"} if roles.model else {"item", "cluster"}),
    )
    for sniff, read_cells, uses in readers:
        if sniff(tab, roles):
            idle = sorted(choices.columns.keys() - uses)
            if idle:
                raise InputError(f"--{idle[0]}-col {choices.columns[idle[0]]}: of no use for this table")
            if choices.joined and read_cells is wide.read:
                raise InputError(f"--{next(iter(choices.joined))}-col: several are for tables with a row for each pair")
            return read_cells(tab, roles, choices)
    raise Unrecognised(_unrecognised(tab, roles, told))


def _unrecognised(tab: Tabular, roles: Roles, told: dict[str, str]) -> str:
    """What lacks, and the options that name it."""
    nameless = tab.names[:1] == [csvtext.NAMELESS] and csvtext.NAMELESS not in roles[:-1]
    first = "a first one without a name, which '' names, " if nameless else ""
    found = f"(found: {first}{shown(tab.names)})"
    lone = [role for role in ("attempts", "correct") if role in told]
    if len(lone) == 1:
        other = "correct" if lone == ["attempts"] else "attempts"
        return f"no column of {WHAT[other]} {found}: --{lone[0]}-col needs --{other}-col"
    lacking = [role for role in ("model", "item") if getattr(roles, role) is None]
    scored = roles.score or roles.attempts
    if scored and lacking:
        if len(lacking) > 1:
            return f"no columns of models and items {found}: name them with --model-col, --item-col"
        more = ", or the one model with --model" if lacking == ["model"] else ""
        more += f"; where each column is one --leave-out '{scored}'" if "item" in lacking and len(tab.names) > 3 else ""
        return f"no column of {lacking[0]}s {found}: name it with --{lacking[0]}-col{more}"
    if not lacking:
        return f"no score column {found}; name it with --score-col, or counts with --attempts-col, --correct-col"
    if nameless and not scored and len(lacking) > 1:
        return f"columns not recognised {found}: --model-col '' where each row is a model, --item-col '' an item"
    options = ", ".join(f"--{role}-col" for role in (*lacking, "score"))
    return f"columns not recognised {found}; name them with {options}"


__all__ = ["Cells", "Choices", "Roles", "Tabular", "open_source", "read"]
