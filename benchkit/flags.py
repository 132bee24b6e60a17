"""What in a diagnosis deserves a look, in words. Each threshold says where it comes from; bk-matrix(1) repeats it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.identical import Group

if TYPE_CHECKING:
    from benchkit.diagnosis import Diagnosis

Ints = npt.NDArray[np.int64]

SHIFT = 0.01  # of the score: a point, in which leaderboards count
CHANCE = 0.05  # that any pair of rows is alike by chance, over all pairs (Bonferroni)
BY_CHANCE = 0.5  # inversion rate of answers that have nothing to do with the others
ALPHA = 0.7  # least reliability for a comparison of groups (Nunnally 1978)
EFFICIENCY = 0.5  # n_eff/n_items: shares vary by more than their mean, as a design effect of 2 (Kish 1965)
FEW_MODELS = 5  # below it no correlation is beyond two standard errors, 2/sqrt(models - 1)


class Flag(NamedTuple):
    """One thing to look at: its name, a sentence, and the indices of the models or items concerned, or None."""

    flag: str
    says: str
    models: Ints | None = None
    items: Ints | None = None

    def document(self, models: Sequence[str], items: Sequence[str]) -> dict[str, Any]:
        """Plain values by identifier; `models` and `items` are left out where they mean nothing."""
        out: dict[str, Any] = {"flag": self.flag, "says": self.says}
        if self.models is not None:
            out["models"] = [models[i] for i in self.models]
        if self.items is not None:
            out["items"] = [items[j] for j in self.items]
        return out


def raised(d: Diagnosis) -> tuple[Flag, ...]:
    """The flags of a diagnosis: first what makes numbers wrong, then what they can't tell.

    That models are few comes before what is said of items, for it is why little of that can be believed.
    """
    found = [*_lacking(d), *_few(d), *_alike(d), *_contrary(d), *_uneven(d), *_weak(d)]
    return tuple(f for f in found if f)


def _of(n: int, total: int, what: str) -> str:
    """1 of 3 items, 1 of 1 item."""
    return f"{n} of {total} {what}{'' if total == 1 else 's'}"


def _verb(n: int, one: str, many: str) -> str:
    return one if n == 1 else many


def _lacking(d: Diagnosis) -> list[Flag]:
    out = []
    if d.incomplete:
        models = np.array([row.model for row in d.incomplete], dtype=np.int64)
        n = len(models)
        says = (
            f"{_of(n, d.n_models, 'model')} {_verb(n, 'lacks', 'lack')} items, coverage down to {d.min_coverage:.3g}: "
            f"statistics that compare scores leave {_verb(n, 'it', 'them')} out"
        )
        out.append(Flag("incomplete", says, models=models))
    untried = np.flatnonzero(d.items.models == 0)
    if untried.size:
        says = f"no model tried {_of(untried.size, d.n_items, 'item')}: nothing is said of them"
        out.append(Flag("untried_items", says, items=untried))
    known = d.n_items - untried.size  # 0 only where no rate is known either
    lacks = [(r, 1 - r.coverage * d.n_items / max(known, 1)) for r in d.incomplete]
    moved = [(r.model, share * (r.others_rate_tried - r.others_rate_missing)) for r, share in lacks]
    moved = [(i, shift) for i, shift in moved if abs(shift) >= SHIFT - 1e-12]  # a NaN is left out
    if moved:
        n, most = len(moved), max((shift for _, shift in moved), key=abs)
        way = "higher" if most > 0 else "lower"
        says = (
            f"{_of(n, d.n_models, 'model')} {_verb(n, 'lacks', 'lack')} items that are harder or easier for the others "
            f"than those {_verb(n, 'it', 'they')} tried: the others' mean score on {_verb(n, 'its', 'their')} items is "
            f"up to {abs(most):.2g} {way} than on all"
        )
        out.append(Flag("selective_missing", says, models=np.array([i for i, _ in moved], dtype=np.int64)))
    return out


def _few(d: Diagnosis) -> list[Flag]:
    n = d.complete_models
    says = f"{n} complete {_verb(n, 'model', 'models')}: too few to judge an item by"
    return [Flag("few_models", says)] if n < FEW_MODELS else []


def _alike(d: Diagnosis) -> list[Flag]:
    out = []
    sides = (("model", d.identical_models, d.n_models, "answers", "copies, or one model under several names"),
             ("item", d.identical_items, d.n_items, "results", "one question asked several times"))  # fmt: skip
    for what, groups, total, answers, reading in sides:
        rows = [g.rows for g in groups if beyond_chance(g, total)]
        if not rows:
            continue
        members = np.concatenate(rows)
        says = (
            f"{_of(members.size, total, what)} form {len(rows)} {_verb(len(rows), 'group', 'groups')} with the same "
            f"{answers} in every cell, beyond chance: {reading}"
        )
        out.append(Flag(f"identical_{what}s", says, **{f"{what}s": members}))
    return out


def beyond_chance(group: Group, total: int) -> bool:
    """Whether chance does not explain that rows are alike; also where their chance is unknown."""
    return not group.chance * (total * (total - 1) // 2) > CHANCE


def _contrary(d: Diagnosis) -> list[Flag]:
    out = []
    r = d.items.item_rest_correlation
    against = np.flatnonzero((r < 0) | (d.items.inversion_rate > BY_CHANCE))
    if against.size:
        least = -2 / math.sqrt(d.complete_models - 1)
        clear = int(np.count_nonzero(r[against] <= least)) if d.complete_models >= FEW_MODELS else 0
        n = against.size
        says = (
            f"{_of(n, d.n_items, 'item')} {_verb(n, 'ranks', 'rank')} models against the other items "
            f"({clear or 'none'} beyond two standard errors): a wrong answer key, or a question of another kind"
        )
        out.append(Flag("negative_discrimination", says, items=against))
    models = np.flatnonzero(d.models.inversion_rate >= BY_CHANCE)
    if models.size:
        n = models.size
        says = (
            f"{_of(n, d.n_models, 'model')} {_verb(n, 'does', 'do')} worse on items that are easier for the others, as "
            f"often as by chance or more: mixed-up items, or too few answers that differ"
        )
        out.append(Flag("model_inversions", says, models=models))
    return out


def _uneven(d: Diagnosis) -> list[Flag]:
    if d.uneven_attempts.size:
        says = (
            f"on {_of(d.uneven_attempts.size, d.n_items, 'item')} models differ in their number of attempts "
            f"({d.attempts.min} to {d.attempts.max} in the table): p-values of bk-signflip are exact only with "
            "--equalize"
        )
        return [Flag("uneven_attempts", says, items=d.uneven_attempts)]
    if d.attempts.max == 1:
        return [Flag("single_attempts", "one attempt a pair: how much scores vary from run to run can't be seen")]
    return []


def _weak(d: Diagnosis) -> list[Flag]:
    out = []
    for name, who, items in (("solved_by_all", "all models", d.solved_by_all),
                             ("solved_by_none", "no model", d.solved_by_none)):  # fmt: skip
        if items.size:
            n = items.size
            if name == "solved_by_all" and (d.items.models[items] < d.n_models).any():
                who = f"all models that tried {_verb(n, 'it', 'them')}"
            says = (
                f"{_of(n, d.n_items, 'item')} ({n / d.n_items:.1%}) {_verb(n, 'is', 'are')} solved by {who}: "
                f"{_verb(n, 'it does', 'they do')} not tell models apart"
            )
            out.append(Flag(name, says, items=items))
    if d.alpha is not None and d.alpha < ALPHA:
        says = f"Cronbach's alpha is {d.alpha:.2f}, below {ALPHA}: other items of the kind might rank models otherwise"
        out.append(Flag("alpha", says))
    tried = int(np.count_nonzero(d.items.models))
    if d.n_eff is not None and d.n_eff < EFFICIENCY * tried:
        says = f"few items carry the ranking: {tried} are worth {d.n_eff:.3g} of equal shares"
        out.append(Flag("n_eff", says))
    return out
