"""The report on one benchmark: how its difficulties are spread, what chance gives, what the numbers rest on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.difficulty import Array, check_difficulties, slope
from benchkit.difficulty import normalize as to_unit
from benchkit.errors import InputError
from benchkit.posterior import Draws, Intervals, posterior
from benchkit.spread import METRICS, ROUNDING, Baseline, Spread, chance, spread
from benchkit.targets import Target, parse_target

Mask = npt.NDArray[np.bool_]

REFERENCES = ("same-size", "continuous")
THRESHOLDS = {"ddm": 0.10, "max_gap": 0.10, "top_gap_sum": 0.30}  # the last one is for the top five


class Alternative(NamedTuple):
    """The metrics under another choice: `items` of them, values as in Report, `intervals` None without draws."""

    items: int
    ddm: float | None
    ddm_continuous: float | None
    max_gap: float | None
    top_gap_sum: float | None
    intervals: Intervals | None
    reasons: dict[str, str]

    def document(self) -> dict[str, Any]:
        """Plain values in key order, each null beside its reason."""
        fields = ("items", "ddm", "ddm_continuous", "max_gap", "top_gap_sum", "intervals")
        return _document(self, fields, self.reasons)


class Companion(NamedTuple):
    """The same metrics where they rest less on the two extreme items.

    failure         under ``failure``, None without models
    drop_boundary   without the boundary items (all attempts right, or all wrong), None where there are none to drop
    reasons         why one is None
    """

    failure: Alternative | None
    drop_boundary: Alternative | None
    reasons: dict[str, str]


class Report(NamedTuple):
    """All that bk-metrics says of one benchmark.

    items                   number of items measured (without those dropped)
    normalize, target       as given
    ddm                     W1 to the target against the chosen reference
    ddm_continuous          W1 to the continuous target
    max_gap, top_gap_sum    widest gap, and the `top` widest added
    baseline                the same metrics of random benchmarks; None where nothing is defined
    companion               the same metrics under other choices
    intervals               posterior intervals, None without draws
    median_sd_z             median over items of the posterior sd of z. From draws: of z normalised in each draw. Else
                            sd dz/db, which also counts the shift that all items share, so it errs high
    flags                   names of the metrics at or above .10, .10, .30 (the last for the top five only)
    boundary_items          number of boundary items in the table, None where the table does not say
    distinct_difficulties   number of different values of b among the items measured
    warnings                plain sentences
    reasons                 for each field that is None, why
    """

    items: int
    normalize: str
    target: str
    ddm: float | None
    ddm_continuous: float | None
    max_gap: float | None
    top_gap_sum: float | None
    top: int
    baseline: Baseline | None
    companion: Companion
    intervals: Intervals | None
    median_sd_z: float | None
    flags: tuple[str, ...]
    boundary_items: int | None
    distinct_difficulties: int
    warnings: tuple[str, ...]
    reasons: dict[str, str]

    def document(self) -> dict[str, Any]:
        """Plain values in the order of the fields, each null beside its reason; `warnings` comes last."""
        return _document(self, tuple(f for f in self._fields if f != "reasons"), self.reasons)


def _plain(value: Any) -> Any:
    if isinstance(value, Alternative):
        return value.document()
    if isinstance(value, Companion):
        return _document(value, ("failure", "drop_boundary"), value.reasons)
    if isinstance(value, Baseline | Intervals):
        missing = {key: "undefined for so few items and this target" for key, v in value._asdict().items() if v is None}
        return _document(value, value._fields, missing)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _plain(part) for key, part in value._asdict().items()}
    return list(value) if isinstance(value, tuple) else value


def _document(values: Any, fields: tuple[str, ...], reasons: dict[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in fields:
        out[field] = _plain(getattr(values, field))
        if field in reasons:
            out[f"{field}_reason"] = reasons[field]
    return out


class _Data(NamedTuple):
    """The input, checked: all M items, and the mask of those measured (None for all)."""

    b: Array
    sd: Array | None
    boundary: Mask | None
    theta: Array | None
    draws: Draws | None
    theta_draws: Draws | None
    keep: Mask | None

    def measured(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self.keep is None else values[self.keep]


class _Choice(NamedTuple):
    normalize: str
    target: Target
    reference: str
    top: int
    level: float


class _Measured(NamedTuple):
    z: Array | None
    point: Spread | None
    values: Alternative
    undefined: str | None
    sd: Array | None
    slope: Array | None


def report(
    b: npt.ArrayLike,
    sd: npt.ArrayLike | None = None,
    boundary: npt.ArrayLike | None = None,
    theta: npt.ArrayLike | None = None,
    draws: Draws | None = None,
    theta_draws: Draws | None = None,
    *,
    normalize: str = "minmax",
    target: Target | str = "uniform",
    reference: str = "same-size",
    top: int = 5,
    level: float = 0.95,
    drop_boundary: bool = False,
    reps: int = 4000,
    seed: int = 0,
) -> Report:
    """Measure a benchmark of M items with difficulties b (M,), posterior means in logits.

    sd            (M,), posterior sd of b, logits; NaN where unknown
    boundary      bool (M,), all attempts right or all wrong
    theta         (N,), abilities of the models, posterior means
    draws         float32 (S, M), draws of b (any strides: a transposed view does); theta_draws (S, N) of theta. They
                  are read in chunks of max(16, 2^20/M) draws and never copied whole
    top, level    how many gaps are added; coverage of the posterior intervals
    drop_boundary measure without the boundary items

    The numbers are those at the posterior means, with or without draws; draws add intervals, normalised in each draw
    by itself. Raises InputError on values that are not finite, on shapes that disagree and on options out of range.
    """
    if reference not in REFERENCES:
        raise InputError(f"reference {reference!r} is not known: use {' or '.join(REFERENCES)}")
    if top < 1:
        raise InputError(f"--top must be 1 or more, not {top}")
    if not 0 < level < 1:
        raise InputError(f"--level must lie between 0 and 1, not {level:g}")
    goal = parse_target(target) if isinstance(target, str) else target
    choice = _Choice(normalize, goal, reference, top, level)
    data = _checked(b, sd, boundary, theta, draws, theta_draws)
    if drop_boundary:
        if data.boundary is None:
            raise InputError("--drop-boundary needs the column boundary, which the table does not have")
        data = data._replace(keep=~data.boundary)

    main = _measure(data, choice, with_sd=True)
    values, point = main.values, main.point
    reasons = dict(values.reasons)
    baseline = None
    if point is None:
        reasons["baseline"] = str(main.undefined)
    else:
        baseline = chance(
            point, values.items, goal, method=normalize, reference=reference, top=top, reps=reps, seed=seed
        )
    noise, why = _noise(data, main)
    if why:
        reasons["median_sd_z"] = why
    boundary_items = None if data.boundary is None else int(data.boundary.sum())
    if boundary_items is None:
        reasons["boundary_items"] = "the table does not say which items are boundary items"
    flags = tuple(
        name
        for name in METRICS
        if point is not None
        and (name != "top_gap_sum" or top == 5)
        and float(getattr(point, name)) >= THRESHOLDS[name] - ROUNDING
    )
    out = Report(
        items=values.items,
        normalize=normalize,
        target=goal.name,
        ddm=values.ddm,
        ddm_continuous=values.ddm_continuous,
        max_gap=values.max_gap,
        top_gap_sum=values.top_gap_sum,
        top=top,
        baseline=baseline,
        companion=_companion(data, choice, main.values, drop_boundary),
        intervals=values.intervals,
        median_sd_z=noise,
        flags=flags,
        boundary_items=boundary_items,
        distinct_difficulties=int(np.unique(data.measured(data.b)).size),
        warnings=(),
        reasons=reasons,
    )
    return out._replace(warnings=tuple(_warnings(out, data, main.undefined)))


def _checked(
    b: npt.ArrayLike,
    sd: npt.ArrayLike | None,
    boundary: npt.ArrayLike | None,
    theta: npt.ArrayLike | None,
    draws: Draws | None,
    theta_draws: Draws | None,
) -> _Data:
    b = check_difficulties(b)
    m = b.size
    width = None if sd is None else np.asarray(sd, dtype=np.float64)
    edge = None if boundary is None else np.asarray(boundary, dtype=np.bool_)
    for what, column in (("sd", width), ("boundary", edge)):
        if column is not None and column.shape != (m,):
            raise InputError(f"{what}: {column.size} values for {m} items")
    ability = None if theta is None else np.asarray(theta, dtype=np.float64).ravel()
    if draws is not None and (draws.ndim != 2 or draws.shape[1] != m or draws.shape[0] < 2):
        raise InputError(f"draws: shape {draws.shape} does not fit {m} items with two draws or more")
    if draws is not None and theta_draws is not None:
        wanted = (draws.shape[0], 0 if ability is None else ability.size)
        if theta_draws.shape != wanted:
            raise InputError(f"draws of the models: shape {theta_draws.shape} is not {wanted}")
    return _Data(b, width, edge, ability, draws, theta_draws, None)


def _measure(data: _Data, choice: _Choice, with_sd: bool = False) -> _Measured:
    """The metrics at the posterior means, and their intervals."""
    b = data.measured(data.b)
    z, scale, undefined = to_unit(b, choice.normalize, data.theta)
    reasons: dict[str, str] = {}
    if z is None or scale is None:
        names = ("ddm", "ddm_continuous", "max_gap", "top_gap_sum", "intervals")
        reasons = dict.fromkeys(names, str(undefined))
        return _Measured(None, None, Alternative(b.size, None, None, None, None, None, reasons), undefined, None, None)
    ordered = np.sort(z)
    goal, reference, top = choice.target, choice.reference, choice.top
    point = spread(ordered, goal, reference, top)
    ddm = None if np.isnan(point.ddm) else float(point.ddm)
    if ddm is None:
        reasons["ddm"] = "one item has no same-size uniform reference"
    intervals, sd = None, None
    if data.draws is None:
        reasons["intervals"] = "the table has no draws"
    elif choice.normalize == "failure" and data.theta_draws is None:
        reasons["intervals"] = "the table has no draws of the models"
    else:
        intervals, sd = posterior(
            data.draws,
            data.theta_draws,
            method=choice.normalize,
            target=goal,
            reference=reference,
            top=top,
            level=choice.level,
            keep=data.keep,
            center=z if with_sd else None,
        )
        if intervals is None:
            reasons["intervals"] = "in some draws all difficulties are equal"
    values = Alternative(
        items=b.size,
        ddm=ddm,
        ddm_continuous=float(goal.distance(ordered)),
        max_gap=float(point.max_gap),
        top_gap_sum=float(point.top_gap_sum),
        intervals=intervals,
        reasons=reasons,
    )
    return _Measured(z, point, values, None, sd, slope(b, scale))


def _noise(data: _Data, main: _Measured) -> tuple[float | None, str | None]:
    """The median over items of the sd of z, and why there is none."""
    if main.z is None:
        return None, main.undefined
    if main.sd is not None:
        return float(np.median(main.sd)), None
    if data.sd is None:
        return None, "the table has no sd"
    if main.slope is None:
        return None, "a rank has no slope in the difficulty: keep the draws"
    sd = data.measured(data.sd) * main.slope
    if not np.isfinite(sd).any():
        return None, "the sd of every item is missing"
    return float(np.median(sd[np.isfinite(sd)])), None


def _companion(data: _Data, choice: _Choice, main: Alternative, dropped: bool) -> Companion:
    reasons: dict[str, str] = {}
    failure, without = None, None
    if data.theta is None or data.theta.size == 0:
        reasons["failure"] = "the table has no models"
    elif main.items == 0:
        reasons["failure"] = "no items"
    elif choice.normalize == "failure":
        failure = main
    else:
        failure = _measure(data, choice._replace(normalize="failure")).values
    if data.boundary is None:
        reasons["drop_boundary"] = "the table does not say which items are boundary items"
    elif dropped or not data.boundary.any():
        without = main
    else:
        without = _measure(data._replace(keep=~data.boundary), choice).values
    return Companion(failure, without, reasons)


def _warnings(out: Report, data: _Data, undefined: str | None) -> list[str]:
    """Sentences for what a reader would otherwise take at face value."""
    if undefined is not None:
        return [f"the metrics are undefined: {undefined}"]
    found = []
    by_chance = [
        f"{name} {getattr(out, name):.3g} (p = {c.p:.2g})"
        for name in out.flags
        if out.baseline is not None and (c := getattr(out.baseline, name)) is not None and c.p > 0.05
    ]
    if by_chance:
        found.append(f"chance alone gives {out.items} items such values often: {', '.join(by_chance)}")
    b = data.measured(data.b)
    if data.boundary is not None and out.normalize == "minmax":
        edge = data.measured(data.boundary)
        ends = [name for name, at in (("easiest", b.min()), ("hardest", b.max())) if edge[b == at].any()]
        if ends:
            items = f"the {' and the '.join(ends)} item{'s' if len(ends) > 1 else ''}"
            found.append(
                f"the minmax scale ends at {items}, all right or all wrong, placed by the prior: see companion"
            )
    if out.median_sd_z is not None and out.max_gap is not None and out.max_gap < 2 * out.median_sd_z:
        found.append(
            f"the widest gap ({out.max_gap:.3g}) is finer than the noise: "
            f"the median posterior sd of a normalised difficulty is {out.median_sd_z:.3g}"
        )
    if out.intervals is not None:
        outside = [
            name
            for name in METRICS
            if (i := getattr(out.intervals, name)) is not None
            and not i.lower - ROUNDING <= getattr(out, name) <= i.upper + ROUNDING
        ]
        if outside:
            found.append(
                f"the posterior interval excludes the value at the posterior means ({', '.join(outside)}): "
                "noise opens small gaps and closes large ones, compare with posterior_median"
            )
    return found
