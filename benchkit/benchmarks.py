"""One benchmark's report, or a leaderboard of benchmarks: from parameters tables to the document of bk-metrics."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from benchkit import metrics, parameters, responses, target_files
from benchkit.certificate import certify
from benchkit.endings import stem
from benchkit.errors import InputError
from benchkit.parameters import Group, named
from benchkit.spread import METRICS
from benchkit.targets import Target
from benchkit.wire import Frame

OPTION = {"ddm": "--max-ddm", "max_gap": "--max-gap", "top_gap_sum": "--max-top-gap-sum"}
SIGMA = 2.5  # prior sd of a model's place where the fit does not say


class Measured(NamedTuple):
    """document: of bk-metrics, without history and warnings. thresholds: option, statistic and value, for each."""

    document: dict[str, Any]
    warnings: list[str]
    thresholds: list[tuple[str, str, float | None]]


def measure(args: Namespace, frames: Sequence[Frame], target: Target | Frame, pairs: Frame | None) -> Measured:
    """Report on each benchmark with the options of bk-metrics; with several, in order of their names' input.

    target: a fit is put on the scale of each. pairs: the results whose orders of models are certified.
    """
    several = len(frames) > 1
    names = args.name or (_names([f.where for f in frames]) if several else [None])
    documents, warnings, thresholds = [], [], []
    for name, frame in zip(names, frames, strict=True):
        try:
            document, said = _one(args, frame, target, pairs)
        except InputError as e:
            raise InputError(str(e), where=frame.where if e.where is None else e.where) from None
        documents.append(({"name": name} if name else {}) | document)
        warnings += [f"{name}: {text}" if several else text for text in [*frame.notes, *said]]
        for metric in METRICS:
            statistic = f"{metric} of {name}" if several else metric
            thresholds.append((OPTION[metric], statistic, document[metric]))
    if not several:
        return Measured(documents[0], warnings, thresholds)
    flagged = {m: [d["name"] for d in documents if m in d["flags"]] for m in METRICS}
    whole = {"benchmarks": len(documents), "flagged": flagged, "metrics": documents}
    return Measured(whole, warnings, thresholds)


def _names(files: Sequence[str]) -> list[str]:
    """The files' names without folder and endings, or as they were given where these are not all different."""
    found = [stem(file) or file for file in files]
    return found if len(set(found)) == len(found) else list(files)


def _one(
    args: Namespace, frame: Frame, target: Target | Frame, pairs: Frame | None
) -> tuple[dict[str, Any], list[str]]:
    items, models = parameters.group(frame.table, "item"), parameters.group(frame.table, "model")
    warnings = parameters.caveats(frame.table)
    goal: Target
    if isinstance(target, Frame):
        goal, said = target_files.on_scale(target, items, models, args.normalize)
        warnings += said
    else:
        goal = target
    found = metrics.report(
        items.mean, items.sd, items.boundary, models.mean if models.ids else None, items.draws, models.draws,
        normalize=args.normalize, target=goal, reference=args.reference, top=args.top, level=float(args.level),
        drop_boundary=args.drop_boundary, reps=args.reps, seed=args.seed,
    )  # fmt: skip
    document = found.document()
    warnings += document.pop("warnings")
    if pairs and found.max_gap is None:
        document |= {"certificate": None, "certificate_reason": found.reasons["max_gap"]}
    elif pairs:
        document["certificate"], said = certificate(args, frame, items, goal, pairs)
        warnings += said
    return document, warnings


def certificate(
    args: Namespace, fit: Frame, items: Group, target: Target, pairs: Frame
) -> tuple[dict[str, Any], list[str]]:
    """Which orders of the models in `pairs` are certain, which turn over; and that in words."""
    if args.normalize != "minmax" or args.drop_boundary:
        raise InputError("--pairs needs --normalize minmax and all items", "")
    data = responses.wide(pairs.table)
    if strange := sorted(set(data.items) - set(items.ids)):
        raise InputError(f"{named('item', strange)} not in the fit {fit.where}", where=pairs.where)
    at = {name: j for j, name in enumerate(data.items)}
    if lacking := [name for name in items.ids if name not in at]:
        raise InputError(f"no results on {parameters.listed('item', lacking)} of the fit", where=pairs.where)
    order = [at[name] for name in items.ids]
    n, y = data.attempts[:, order], data.correct[:, order]
    whole = np.all(n > 0, axis=1)
    if whole.sum() < 2:
        raise InputError("fewer than two models have every item: there is no pair to certify", where=pairs.where)
    models = [name for name, full in zip(data.models, whole, strict=True) if full]
    hyper = fit.table.filter(pc.and_(pc.equal(fit.table["kind"], "hyper"), pc.equal(fit.table["id"], "sigma_theta")))
    sigma = hyper["mean"][0].as_py() if hyper.num_rows else SIGMA
    found = certify(
        n[whole], y[whole], items.mean, items.draws, target, sigma=max(sigma, 0.1), level=float(args.level),
        seed=args.seed,
    )  # fmt: skip
    out = found.document(models)
    said = []
    if lost := [name for name, full in zip(data.models, whole, strict=True) if not full]:
        out["excluded"] = lost
        said.append(f"{named('model', lost)} left out of the pairs: some items are missing")
    certain = "" if out["safe"] is None else f"; {out['safe']} are certain to stand as they do"
    said.append(
        f"{out['flips']} of {out['pairs']} pairs of models would change places if difficulty were weighted as the "
        f"target asks{certain}"
    )
    return out, said
