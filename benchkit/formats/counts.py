"""Long tables of counts: one row a model and item, with attempts and how many were correct. Also responses tables."""

from __future__ import annotations

import numpy as np

from benchkit.casting import to_contract
from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Choices
from benchkit.formats.clusters import of_items
from benchkit.formats.coding import Codes
from benchkit.formats.columns import Roles
from benchkit.formats.tabular import Tabular, check_identifier
from benchkit.tables import RESPONSES, check_responses


def sniff(tab: Tabular, roles: Roles) -> bool:
    """Whether the columns are those of a table of counts."""
    return bool(roles.model and roles.item and roles.attempts and roles.correct)


def read(tab: Tabular, roles: Roles, choices: Choices) -> Cells:
    """Check the counts as a responses table is checked; repeated keys are found when the sources are merged."""
    tab = tab if tab.whole is None else tab.whole()
    if choices.duplicates:
        raise InputError("--duplicates is for attempts; rows here are counts, which --merge sum adds up")
    if choices.unscored:
        raise InputError("--unscored is for attempts; rows here are counts of scored ones")
    if choices.attempts is not None:
        raise InputError("--attempts is for rates in a wide table; here the counts stand in a column")
    for column in (roles.model, roles.item, roles.cluster):
        if column:
            check_identifier(tab, column)
    wanted = {
        name: getattr(roles, name)
        for name in ("model", "item", "attempts", "correct", "cluster")
        if getattr(roles, name)
    }
    data = tab.table(list(wanted.values()))
    columns = {role: data[name] for role, name in wanted.items()}
    table = to_contract(columns, data.num_rows, RESPONSES, tab.line, lambda c: f"no column '{c}'")
    check_responses(table, tab.line, unique=not choices.merge)
    model, item = Codes(), Codes()
    found = {name: table[name].combine_chunks() for name in table.column_names}
    of_model, of_item = model.of(found["model"]), item.of(found["item"])
    pairs = zip(found["item"].to_pylist(), found["cluster"].to_pylist(), strict=True)
    clusters = of_items((name, cluster or None) for name, cluster in pairs)
    return Cells(
        model.names, item.names, [clusters[name] for name in item.names], of_model, of_item,
        np.asarray(found["attempts"], np.int64), np.asarray(found["correct"]), np.full(len(of_item), -1, np.int64),
        f"counts ({tab.format})", table.num_rows, tab.where,
    )  # fmt: skip
