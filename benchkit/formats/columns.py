"""Which column is the model, the item, the score: by the names that evaluation tools use, or as told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from benchkit.errors import InputError

NAMES: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_name", "model_id"),
    "item": ("item", "problem_idx", "question_id", "task_id", "instance_id"),
    "score": ("correct", "score", "resolved", "is_correct"),
    "attempt": ("attempt", "idx_answer", "epoch", "trial"),
    "attempts": ("attempts", "n", "n_attempts", "num_attempts"),
    "correct": ("correct", "k", "successes", "n_correct", "num_correct"),
    "cluster": ("cluster",),
}
"""Role -> column names, as `plain` gives them. `correct` is a score of one attempt, or a sum beside `attempts`."""

LESSER: dict[str, tuple[str, ...]] = {
    "item": ("item_id", "problem_id", "prompt_id", "example_id", "query_id", "qid"),
    "score": ("passed", "solved", "success", "is_resolved", "is_solved"),
}
"""Names that are asked where no column has one of NAMES for the role."""

LAYOUTS: tuple[dict[str, str], ...] = (
    {"model": "subject_id", "item": "item_id", "score": "response", "attempt": "trial",
     "split": "test_condition"},  # measurement-db
    {"model": "id", "item": "item", "score": "resp", "split": "wave", "scorer": "rater"},  # Item Response Warehouse
)  # fmt: skip
"""Names that say too little alone, and play their roles where they stand together. `split` and `scorer` are columns of
which a pair may hold several values: the options of these names choose one."""

KNOWN = frozenset(chain.from_iterable((*NAMES.values(), *LESSER.values(), *(layout.values() for layout in LAYOUTS))))
"""All of these names, as `plain` gives them."""


class Roles(NamedTuple):
    """The column that plays each role, or None. choices: option -> the column of which it chooses a value.

    With attempts and correct, `score` is another column that could be a score, where nobody was told of counts.
    """

    model: str | None
    item: str | None
    score: str | None
    attempt: str | None
    attempts: str | None
    correct: str | None
    cluster: str | None
    choices: dict[str, str] = {}  # noqa: RUF012


def recognise(names: Sequence[str], told: dict[str, str]) -> Roles:
    """Find the columns; `told` maps roles to names that the user gave.

    Raises InputError where a name that was given is not there, and where two columns could play one role: choosing
    one of them would choose the numbers.
    """
    found: dict[str, str | None] = {}
    candidates: dict[str, list[str]] = {}
    played: dict[str, str] = {}
    for role, name in told.items():
        if name in played:
            raise InputError(f"--{role}-col and --{played[name]}-col name the same column '{name}'", where="")
        played[name] = role
    for role, name in told.items():
        if name not in names:
            told = told | {role: next((n for n in names if n.strip() == name.strip()), name)}
    called = {n: name for n in names if (name := plain(n)) in KNOWN}
    told = _layout(called, told)
    for role, known in NAMES.items():
        if role in told:
            if told[role] not in names:
                raise InputError(f"no column '{told[role]}' for --{role}-col (found: {shown(names)})")
            found[role] = told[role]
            continue
        free = [n for n in called if n not in told.values()]
        candidates[role] = [n for n in free if called[n] in known]
        candidates[role] = candidates[role] or [n for n in free if called[n] in LESSER.get(role, ())]
        found[role] = candidates[role][0] if candidates[role] else None
    counts = found["attempts"] is not None and found["correct"] is not None
    if counts and found["attempt"] is not None and not told.keys() & {"attempts", "attempt", "correct", "score"}:
        raise InputError(
            f"column '{found['attempts']}' is a count and column '{found['attempt']}' numbers single attempts: "
            "name what a row holds, with --attempts-col and --correct-col, or --attempt-col and --score-col"
        )
    if counts and not told.keys() & {"attempt", "score"}:
        others = [n for n in candidates["score"] if n != found["correct"]]
        found["attempt"] = None
        found["score"] = others[0] if others and not told.keys() & {"attempts", "correct"} else None
        needed = ("model", "item", "attempts", "correct", "cluster")
    else:
        found["attempts"] = found["correct"] = None
        needed = ("model", "item", "score", "attempt", "cluster")
    for role in needed:
        several = candidates.get(role, [])
        if len(several) > 1:
            raise InputError(f"columns {' and '.join(several)} could be the {role}: choose with --{role}-col")
    return Roles(**found, choices={role: name for role, name in told.items() if role not in NAMES})


def plain(name: str) -> str:
    """A column's name as it is compared: `Question ID` is question_id."""
    return "_".join(name.lower().replace("-", " ").split())


def shown(names: Sequence[str]) -> str:
    """The first of many names of columns; empty ones are left out."""
    names = [n for n in names if n.strip() and n[0] != "\0"]  # this begins what is made up here
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _layout(called: dict[str, str], told: dict[str, str]) -> dict[str, str]:
    """`told`, with the columns of a layout that is there whole, and where no other column could play its parts.

    called: column -> its name as it is compared, of those that are known.
    """
    lower = {name: n for n, name in called.items()}
    for layout in LAYOUTS:
        there = {role: lower[name] for role, name in layout.items() if name in lower}
        strange = {name for role in layout for name in NAMES.get(role, ())} - set(layout.values())
        if {"model", "item", "score"} <= there.keys() and not strange & lower.keys():
            return {role: name for role, name in there.items() if name not in told.values()} | told
    return told
