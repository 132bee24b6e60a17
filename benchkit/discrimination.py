"""How well items and models tell each other apart: shares of the spread, alpha, correlations, inversions.

N models by M items, r_ij rates. C complete models have attempts on every item; their scores are S_i = sum_j r_ij.
Scores are compared as integers over the common denominator of the rates. Where there is no denominator up to 10^6
(fractional scores), sums of rates are compared to 9 decimals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit import scores
from benchkit.inversions import count

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SAME = 9  # decimals of a sum of rates that are compared where the rates have no small common denominator
_RATE = 12  # decimals of a rate that are compared: 1/q - 1/(q + 1) is larger up to q = 10^6


class Discrimination(NamedTuple):
    """What tells models apart; NaN where undefined.

    share_of_spread         (M,) cov(r_j, S)/sum_k cov(r_k, S) over complete models; adds to 1, negative where the item
                            works against the rest
    n_eff                   1/sum_j share_of_spread_j^2, the effective number of items
    alpha                   M/(M-1) (1 - sum_j var(r_j)/var(S)) over complete models (Cronbach 1951)
    item_rest_correlation   (M,) Pearson correlation of r_j with S - r_j over complete models
    item_inversion_rate     (M,) over pairs of complete models with (S - r_j)_a > (S - r_j)_c and r_aj != r_cj, the
                            share with r_aj < r_cj: how often the item contradicts the others
    model_inversion_rate    (N,) over pairs of items that the model tried, of which the other complete models find one
                            easier (a greater sum of their rates) and its own rates differ, the share where its rate
                            on the easier one is lower
    reasons                 why a value is undefined, by the field's name
    """

    share_of_spread: Array
    n_eff: float
    alpha: float
    item_rest_correlation: Array
    item_inversion_rate: Array
    model_inversion_rate: Array
    reasons: dict[str, str]


class _Whole(NamedTuple):
    """Rates of the complete models, comparable exactly: values (C, M); `unit`, the sum that rounds to 1, or None."""

    values: npt.NDArray[Any]
    unit: float | None

    def key(self, sums: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums of values as numbers that are equal exactly where the sums count as equal."""
        return sums if self.unit is None else np.rint(sums / self.unit)


def discriminate(n: Ints, y: Array, rate: Array) -> Discrimination:
    """The discrimination in n attempts and y correct, (N, M) each as `scores.check` returns them.

    rate (N, M): y/n, and 0 where n is 0.
    """
    full = scores.complete(n)
    complete = int(full.sum())
    reasons = {
        "item_rest_correlation": "the complete models all have one rate on it, or one score on the other items",
        "item_inversion_rate": "no two complete models differ both on it and on the other items",
        "model_inversion_rate": "no two of its items differ both for it and for the other complete models",
    }
    nothing = np.full(n.shape[1], np.nan)
    found = Discrimination(nothing, np.nan, np.nan, nothing, nothing, np.full(len(n), np.nan), reasons)
    if complete < 2:
        few = f"{'one model has' if complete else 'no model has'} attempts on every item, and it takes two"
        reasons |= dict.fromkeys((f for f in found._fields[:5]), few)
    if not complete:
        reasons["model_inversion_rate"] = "no model has attempts on every item"
        return found
    whole = _sums(n[full], y[full])
    own = np.round(rate, _RATE)
    found = found._replace(model_inversion_rate=_model_inversions(own, n > 0, full, whole))
    if complete < 2:
        return found
    total = whole.values.sum(axis=1)
    rest = whole.key(total[:, None] - whole.values)
    still = _constant(whole.values)
    # A column of equal rates has no deviations; without this, rounding of its mean would leave some.
    off = np.where(still, 0.0, rate[full] - rate[full].mean(axis=0))
    pairs = count(np.ascontiguousarray(rest.T), np.ascontiguousarray(own[full].T))
    found = found._replace(
        item_rest_correlation=_correlation(off, ~still & ~_constant(rest)),
        item_inversion_rate=ratio(pairs.inverted, pairs.comparable),
    )
    score = off.sum(axis=1)
    spread = float(score @ score)
    if spread == 0 or bool(_constant(whole.key(total)[:, None])[0]):
        reasons |= dict.fromkeys(("share_of_spread", "n_eff", "alpha"), "all complete models have the same score")
        return found
    share = off.T @ score / spread + 0.0  # + 0.0 turns -0.0 into 0.0
    found = found._replace(share_of_spread=share, n_eff=float(1 / (share @ share)))
    m = len(share)
    if m < 2:
        reasons["alpha"] = "one item"
        return found
    return found._replace(alpha=m / (m - 1) * (1 - float((off**2).sum()) / spread))


def ratio(top: npt.NDArray[Any], bottom: npt.NDArray[Any]) -> Array:
    """top/bottom, NaN where bottom is 0."""
    out: Array = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return out


def _sums(n: Ints, y: Array) -> _Whole:
    found = scores.integers(n, y)
    values = found.values
    if values.dtype != object and found.denominator * max(n.shape) >= scores.INT64:
        values = values.astype(object)
    return _Whole(values, None if found.exact else found.denominator * 10.0**-_SAME)


def _constant(values: npt.NDArray[Any]) -> Mask:
    """(M,) True for columns of equal values."""
    out: Mask = (values == values[:1]).all(axis=0)
    return out


def _correlation(off: Array, defined: Mask) -> Array:
    """(M,) Pearson correlations of columns with the sum of the others, from deviations off (C, M)."""
    others = off.sum(axis=1)[:, None] - off
    scale = np.sqrt((off**2).sum(axis=0) * (others**2).sum(axis=0))
    out: Array = np.full(len(scale), np.nan)
    np.divide((off * others).sum(axis=0), scale, out=out, where=defined & (scale > 0))
    out.clip(-1, 1, out=out)
    return out


def _model_inversions(own: Array, tried: Mask, full: Mask, whole: _Whole) -> Array:
    """Inversion rates of the models (N,), own rates (N, M); NaN without comparable pairs."""
    out = np.full(len(own), np.nan)
    ease = whole.values.sum(axis=0)
    if len(whole.values) > 1:
        pairs = count(whole.key(ease - whole.values), own[full])
        out[full] = ratio(pairs.inverted, pairs.comparable)
    for i in np.flatnonzero(~full):
        mine = tried[i]
        pairs = count(whole.key(ease[mine])[None], own[i, mine][None])
        out[i] = ratio(pairs.inverted, pairs.comparable)[0]
    return out
