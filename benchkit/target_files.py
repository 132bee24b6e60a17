"""A target of difficulty from a file: a weighted sample on [0,1], or another benchmark's fit on the same scale."""

from __future__ import annotations

import os
from argparse import Namespace

import numpy as np
import pyarrow.compute as pc

from benchkit import difficulty, targets, wire
from benchkit.errors import InputError
from benchkit.parameters import Group, group
from benchkit.tables import PARAMETERS, TARGET

SAME = 1e-6  # abilities of a model that agree to this are those of one fit


def read(args: Namespace, name: str) -> wire.Frame | targets.Sample:
    """A sample as the target that it is; a fit as its table, for `on_scale`."""
    spec, frame = wire.read_one_of(args, (PARAMETERS, TARGET), name)
    if spec is PARAMETERS:
        return frame
    weight = frame.table["weight"]
    if 0 < weight.null_count < frame.table.num_rows:
        raise InputError("some rows have a weight and some have none", where=name)
    weights = None if weight.null_count else weight.to_numpy()
    try:
        return targets.Sample(frame.table["value"].to_numpy(), weights, os.path.basename(name))
    except InputError as e:
        raise InputError(str(e), where=name) from None


def on_scale(fit: wire.Frame, items: Group, models: Group, method: str) -> tuple[targets.Sample, list[str]]:
    """The items of another fit, normalised by this benchmark's scale; and warnings.

    Two fits are on one scale where the models they share have the same abilities, as after `bk-irt --anchor`. Raises
    InputError where they differ; a warning says so where no model is shared. Values beyond [0,1] stay: the other
    benchmark has easier or harder items.
    """
    other = group(fit.table, "item")
    theirs = fit.table.filter(pc.equal(fit.table["kind"], "model"))
    known = dict(zip(models.ids, models.mean.tolist(), strict=True))
    shared = [(x, m, known[x]) for x, m in zip(theirs["id"].to_pylist(), theirs["mean"].to_pylist(), strict=True)
              if x in known]  # fmt: skip
    for model, there, here in shared:
        if abs(there - here) > SAME:
            raise InputError(
                f"another scale: model '{model}' has ability {there:.3g} in it and {here:.3g} in the input; place the "
                "items of both by bk-irt --anchor",
                where=fit.where,
            )
    if method == "rank":
        raise InputError("a fit is no target under --normalize rank, which has no scale", where=fit.where)
    z, scale, why = difficulty.normalize(items.mean, method, models.mean if models.ids else None)
    if z is None or scale is None:
        raise InputError(f"the target can't be put on a scale: {why}")
    values = difficulty.place(np.asarray(other.mean, np.float64), scale)
    said = [] if shared else [f"{fit.where} has no model in common with the input: that both are on one scale is taken "
                              "on trust"]  # fmt: skip
    return targets.Sample(values, None, os.path.basename(fit.where), beyond=True), said
