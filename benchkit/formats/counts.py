"""Long tables of counts: one row a model and item, with attempts and how many were correct. Also responses tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchkit.casting import decoded, to_contract
from benchkit.errors import InputError
from benchkit.formats.cells import Cells, Choices
from benchkit.formats.clusters import of_items
from benchkit.formats.coding import Codes, is_text
from benchkit.formats.columns import Roles, plain
from benchkit.formats.long import scores
from benchkit.formats.tabular import Tabular, check_identifier
from benchkit.tables import RESPONSES, Line, check_responses

ROUNDED = 0.005 + 1e-9
"""How far a rate may be from correct/attempts: two decimals are enough."""


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
        for name in ("model", "item", "attempts", "correct", "cluster", "score")
        if getattr(roles, name)
    }
    data, line = _filled(tab.table(list(wanted.values())), tab.line)
    columns = {role: data[name] for role, name in wanted.items()}
    table = to_contract(columns, data.num_rows, RESPONSES, line, lambda c: f"no column '{c}'")
    check_responses(table, line, unique=not choices.merge)
    if "attempts" not in choices.columns:
        _check_attempts(roles, table)
    if roles.score:
        _check_score(columns["score"], roles, table, line)
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


def _filled(data: pa.Table, line: Line) -> tuple[pa.Table, Line]:
    """The rows that are not empty, as those are that Excel adds, and the lines of these."""
    filled = np.zeros(data.num_rows, bool)
    for column in map(decoded, data.columns):
        text = pc.not_equal(pc.utf8_trim_whitespace(column), "") if is_text(column.type) else pc.is_valid(column)
        filled |= np.asarray(text.fill_null(False))
    if filled.all():
        return data, line
    kept = np.flatnonzero(filled)
    return data.take(pa.array(kept)), lambda k: line(int(kept[k]))


def _check_attempts(roles: Roles, table: pa.Table) -> None:
    """InputError where a column called `n`, say, may hold row numbers, tokens or tries beside `correct` as a flag."""
    flags = plain(str(roles.correct)) == "correct" and plain(str(roles.attempts)) != "attempts"
    if flags and table.num_rows and table["correct"].to_numpy().max() <= 1 < table["attempts"].to_numpy().max():
        raise InputError(
            f"column '{roles.attempts}' may be no count of attempts, since '{roles.correct}' is never above 1: say so "
            f"with --attempts-col '{roles.attempts}', or --leave-out '{roles.attempts}'"
        )


def _check_score(column: pa.ChunkedArray, roles: Roles, table: pa.Table, line: Line) -> None:
    """InputError where a column that could be the score is not what the counts say: their rate, in % or their sum."""
    try:
        score, none = scores(column.combine_chunks(), str(roles.score))
    except InputError:
        return  # a date, say, which can be no score
    attempts, correct = table["attempts"].to_numpy(), table["correct"].to_numpy()
    rate = correct / np.maximum(attempts, 1)
    says = [(np.abs(score - rate) <= ROUNDED), (np.abs(score / 100 - rate) <= ROUNDED), score == correct]
    if not any((unit | none).all() for unit in says):
        k = int(np.flatnonzero(~(none | says[0]))[0])
        raise InputError(
            f"row {line(k)}: column '{roles.score}' does not say what '{roles.correct}' and '{roles.attempts}' do: "
            f"--leave-out '{roles.score}', or name it with --score-col if a row is one attempt"
        )
