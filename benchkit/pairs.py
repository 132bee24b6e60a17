"""Which pairs of models are compared."""

from collections.abc import Mapping, Sequence

import numpy as np

from benchkit.errors import InputError
from benchkit.estimators import MEAN, Estimator, best_complete
from benchkit.scores import Floats, Ints


def against(reference: int, models: int) -> Ints:
    """(N-1, 2) pairs: the reference against every other model, in the order of the table."""
    others = np.delete(np.arange(models, dtype=np.int64), reference)
    return np.column_stack([np.full(models - 1, reference, dtype=np.int64), others])


def every_pair(models: int) -> Ints:
    """(N(N-1)/2, 2) pairs a < b."""
    return np.column_stack(np.triu_indices(models, 1)).astype(np.int64)


def choose(
    models: Sequence[str],
    attempts: Ints,
    correct: Floats,
    ref: str | None,
    every: bool,
    asked: Sequence[Mapping[str, str]] | None,
    of: Estimator = MEAN,
) -> tuple[int | None, Ints]:
    """The reference, if there is one, and the pairs (P, 2): those asked for by name, every pair, or all against `ref`.

    asked: rows with model_a and model_b. Without `ref` the reference is the best complete model by `of`. Raises
    InputError.
    """
    if len(models) < 2:
        raise InputError("one model: there is no pair to compare")
    at = {name: i for i, name in enumerate(models)}
    if asked is not None:
        names = [(row["model_a"], row["model_b"]) for row in asked]
        if strange := next((x for pair in names for x in pair if x not in at), None):
            raise InputError(f"--pairs: no model '{strange}' in the input", where="")
        return None, np.array([(at[a], at[b]) for a, b in names], dtype=np.int64)
    if every:
        return None, every_pair(len(models))
    if ref is not None and ref not in at:
        raise InputError(f"--ref: no model '{ref}' in the input", where="")
    reference = best_complete(attempts, correct, of) if ref is None else at[ref]
    return reference, against(reference, len(models))


def place(models: Sequence[str], pairs: Ints, a: str, b: str) -> int:
    """Which of the pairs is a and b, in either order; InputError where none is."""
    for name in (a, b):
        if name not in models:
            raise InputError(f"--require-significant: no model '{name}' in the input", where="")
    wanted = sorted((models.index(a), models.index(b)))
    found = np.flatnonzero(np.all(np.sort(pairs, axis=1) == wanted, axis=1))
    if not found.size:
        raise InputError(f"--require-significant: '{a}' and '{b}' are not among the pairs (--ref, --all, --pairs)", "")
    return int(found[0])
