"""The power of a test that compares two runs of a benchmark, before and after a change, on the same items.

Every item is attempted K times before and K times after. Item j has x_j right answers before, of Binomial(K, p_j), and
y_j after, of Binomial(K, q_j); t_j = x_j + y_j. The test rejects "nothing changed" where T = sum_j y_j is large given
the totals t. Under p = q the y_j given t_j are independent Hypergeometric(2K, K, t_j) whatever p is, so T has a known
distribution, the convolution of these; at its boundary the test is randomised so that its size is exactly alpha. This
is Fisher's exact test, stratified by item (Birch 1964, JRSS B 26), one-sided; for K = 1 it is McNemar's.

Power. With q_j above p_j the y_j given t_j are Fisher's noncentral hypergeometric with the odds ratio
w_j = q_j (1 - p_j)/(p_j (1 - q_j)), and the conditional power is the sum of the noncentral convolution over the
rejection region. The power is its mean over the totals. Given t_j, and given 2K - t_j after the exchange of right and
wrong, y_j - x_j has the same distribution, so only the folded totals m_j = min(t_j, 2K - t_j) matter, and of the
unchanged items only how many have each m. Where few such counts are possible, the mean is summed over all of them:
exact. Else it is the average over drawn totals of the exact conditional power, which is unbiased and has a far smaller
error than counted rejections; its standard error stands beside it.

Monotony. Raising one y_j by 1 raises T by 1 and t_j by 1, and by that the null distribution of T by at most 1, so the
probability to reject never falls. The power is therefore at least alpha, and it falls neither when more items change
nor when an item changes more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchkit.errors import InputError

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Complexes = npt.NDArray[np.complex128]

LEAST_ALPHA = 1e-6  # tails are sums of a discrete Fourier transform, whose error is about 1e-15
MOST_ATTEMPTS = 1000
COMPARED = 32  # sets compared by their exact power at most
_WORK = 5e8  # multiplications spent on that
_CELLS = 1 << 23  # values in a table of all totals
_ROWS = 512  # of which so many at a time, so that the work stays in the cache
_AXES = 16  # attempts up to which there is one
_AIM = 0.0005  # standard error aimed at, where totals are drawn
_FEWEST, _MOST = 200, 20_000  # how many of them, where there are not too many items
_DRAWN = 20_000_000  # items drawn in all
_INTEGRATED = 32  # changed items whose after-counts are summed over; those of the others are drawn
_TABLES = 200  # and the attempts up to which they are
_BLOCK = 1 << 20  # values held at a time
_SDS = 10.0  # half a window, in standard deviations of T


class Power(NamedTuple):
    """The least power over sets of items that change.

    at          index of the set
    power, se   the power and its standard error, 0 where it is exact
    exact       summed over all totals; else averaged over `draws` drawn ones
    draws       None where it is exact
    """

    at: int
    power: float
    se: float
    exact: bool
    draws: int | None


class Totals(NamedTuple):
    """R vectors of folded totals m (0..K), as far as the conditional power depends on them.

    everything   int (R, K + 1), how many of the items have each m
    unchanged    int (R, K + 1), the same of the items that do not change
    changed      int (R, k), m of the k changed items whose after-counts are summed over
    drawn        int (R,), the folded after-counts of the other changed items, added
    """

    everything: Ints
    unchanged: Ints
    changed: Ints
    drawn: Ints


def least_power(
    p: Array, lift: float, attempts: int, sets: Ints, alpha: float = 0.05, *, exactly: bool = True, seed: int = 0
) -> Power:
    """The set of items whose improvement from p to p + lift the test finds least often.

    p          float64 (M,), success probabilities before
    attempts   K, on every item before and again after
    sets       int (S, 2), each a run of items lo <= j < hi; p + lift <= 1 on them
    exactly    False: draw totals even where all can be summed over

    The sets are put in the order of their normal approximation, which tells near-equal sets apart better than draws
    would. As many of the first 32 as a bounded number of multiplications allows are compared by their exact power; if
    that is none, the power of the first is averaged over drawn totals. Raises InputError on options out of range.
    """
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise InputError(f"attempts must be a whole number from 1 to {MOST_ATTEMPTS}, not {attempts}", where="")
    if not LEAST_ALPHA <= alpha <= 1 - LEAST_ALPHA:
        raise InputError(f"alpha must lie between {LEAST_ALPHA:g} and 1 - {LEAST_ALPHA:g}, not {alpha:g}", where="")
    empty = np.flatnonzero(sets[:, 0] >= sets[:, 1])
    if empty.size:
        return Power(int(empty[0]), alpha, 0.0, True, None)
    near = np.round(approximate_probit(p, lift, attempts, sets, alpha), 12)
    order = np.argsort(near, kind="stable")[:COMPARED]
    order = order[np.cumsum(_work(p.size, attempts, sets[order])) <= _WORK]
    if exactly and order.size:
        powers = _exact(p.size, attempts, alpha).powers(p, lift, sets[order])
        best = np.lexsort((order, np.round(powers, 12)))[0]
        return Power(int(order[best]), float(powers[best]), 0.0, True, None)
    at = int(np.argmin(near))
    most = int(np.clip(_DRAWN // p.size, 20, _MOST))
    pilot = int(np.clip(most // 10, 10, _FEWEST))
    rng = np.random.default_rng(seed)
    _, sd = _averaged(p, lift, attempts, sets[at], alpha, pilot, rng)
    draws = int(np.clip(math.ceil((sd / _AIM) ** 2), pilot, most))
    mean, sd = _averaged(p, lift, attempts, sets[at], alpha, draws, rng)  # new ones: the pilot's only set their number
    return Power(at, mean, sd / math.sqrt(draws), False, draws)


def approximate_probit(p: Array, lift: float, attempts: int, sets: Ints, alpha: float) -> Array:
    """The standard normal quantile of the power by the normal approximation, for each set (S,).

    D = sum_j y_j - x_j has mean K lift |set| and variance K sum(p (1 - p) + q (1 - q)); the test rejects above
    z_(1 - alpha) times the square root of E sum_j t_j (2K - t_j)/(2K - 1), the variance of D given the totals where
    nothing changes.
    """
    k = attempts
    after = np.minimum(p + lift, 1.0)

    def variances(q: Array) -> tuple[Array, Array]:
        mean, both = k * (p + q), k * (p * (1 - p) + q * (1 - q))
        return (2 * k * mean - mean**2 - both) / (2 * k - 1), both

    def over(same: Array, changed: Array) -> Array:
        run = np.concatenate([[0.0], np.cumsum(changed - same)])
        return np.asarray(np.maximum(same.sum() + run[sets[:, 1]] - run[sets[:, 0]], 1e-12))

    null, true = (over(a, b) for a, b in zip(variances(p), variances(after), strict=True))
    shift = k * lift * (sets[:, 1] - sets[:, 0])
    return np.asarray((shift - NormalDist().inv_cdf(1 - alpha) * np.sqrt(null)) / np.sqrt(true))


# ---- conditional power --------------------------------------------------------------------------------------------


def conditional_power(totals: Totals, attempts: int, log_odds: Sequence[float], alpha: float) -> Array:
    """The probability to reject given each vector of totals, shape (R,).

    log_odds   k of them: log of the odds ratio of each of `totals.changed`

    With M = sum m_j, T - floor(M/2) has as its distribution the inverse discrete Fourier transform of the product of
    those of its centred terms, on a window of 10 standard deviations to either side. On [0, pi] the transform of a
    centred hypergeometric is never negative (its generating polynomial has negative roots only, in pairs r and 1/r),
    so the product over unchanged items is the exponential of a sum of logarithms.
    """
    k, (rows, changed) = attempts, totals.changed.shape
    m = np.arange(k + 1)
    sd = math.sqrt(float((totals.everything @ (m * (2 * k - m) / (8 * k - 4))).max()))
    reach = min(_SDS * sd + changed * k / 2 + 2, float((totals.everything @ m).max()) / 2 + 1)
    size = _fast(2 * reach)
    half = np.exp(-1j * np.pi / size * np.arange(size // 2 + 1))  # shifts by 1/2, where floor(M/2) is not M/2
    log_central = np.log(np.maximum(_transform(k, 0.0, size).real, 1e-300))
    moved = [_transform(k, odds, size) for odds in log_odds]
    out = np.empty(rows)
    step = max(1, _BLOCK // size)
    for start in range(0, rows, step):
        every, same, own, drawn = (part[start : start + step] for part in totals)
        total, rest = every @ m, same @ m + own.sum(1)
        null = _masses(np.exp(every @ log_central) * np.where(total[:, None] % 2, half, 1.0), size)
        true = np.exp(same @ log_central) * np.where(rest[:, None] % 2, half, 1.0)
        for table, of in zip(moved, own.T, strict=True):
            true *= table[of]
        edge, share = _critical(null, alpha)
        out[start : start + step] = _beyond(_masses(true, size), edge - drawn - rest // 2 + total // 2, share)
    return np.clip(out, 0.0, 1.0)


def _fast(least: float) -> int:
    """An even length of at least 8 whose Fourier transform is fast: 2^a or 3 x 2^a."""
    power = 1 << max(3, math.ceil(math.log2(least)))
    return power * 3 // 4 if least <= power * 3 // 4 else power


@lru_cache(maxsize=128)
def _transform(attempts: int, log_odds: float, size: int) -> Complexes:
    """sum_u P(u | m) exp(-i theta (u - m/2)) for m = 0..K, theta = 0, 2 pi/size, ..., pi; (K + 1, size/2 + 1)."""
    m = np.arange(attempts + 1)
    turn = np.outer(m, 2j * np.pi / size * np.arange(size // 2 + 1))
    return np.asarray(_fisher(attempts, log_odds) @ np.exp(-turn) * np.exp(turn / 2))


def _fisher(attempts: int, log_odds: float) -> Array:
    """P(u | m), Fisher's noncentral hypergeometric: u of m right answers came after; (K + 1, K + 1), [m, u].

    On the log scale, so that no odds ratio is too large.
    """
    k = attempts
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, k + 1)))])
    choose = log_factorial[k] - log_factorial - log_factorial[::-1]
    m, u = np.arange(k + 1)[:, None], np.arange(k + 1)[None]
    logs = np.where(u <= m, choose[u] + choose[np.maximum(m - u, 0)] + u * log_odds, -np.inf)
    mass = np.exp(logs - logs.max(1, keepdims=True))
    return np.asarray(mass / mass.sum(1, keepdims=True))


def _masses(transform: Complexes, size: int) -> Array:
    """Probabilities on the window -size/2 .. size/2 - 1, shape (R, size)."""
    mass = np.fft.irfft(transform, n=size, axis=1)
    return np.maximum(np.fft.fftshift(mass, axes=1), 0.0)


def _from_above(mass: Array) -> Array:
    """P(T >= value) at each place of the window, and 0 beyond it: shape (R, size + 1)."""
    tail = np.zeros((len(mass), mass.shape[1] + 1))
    np.cumsum(mass[:, ::-1], axis=1, out=tail[:, -2::-1])
    return tail


def _critical(null: Array, alpha: float) -> tuple[Ints, Array]:
    """The place in the window above which the test rejects, and with which probability it does at it: both (R,)."""
    tail = _from_above(null)
    edge = np.maximum((tail > alpha).sum(1) - 1, 0)
    row = np.arange(len(null))
    return edge, (alpha - tail[row, edge + 1]) / null[row, edge]


def _beyond(mass: Array, edge: Ints, share: Array) -> Array:
    """P(T > edge) + share P(T = edge), where the edge may lie outside of the window."""
    size = mass.shape[1]
    tail = _from_above(mass)
    row = np.arange(len(mass))
    above = tail[row, np.clip(edge + 1, 0, size)]
    at = np.where((edge >= 0) & (edge < size), mass[row, np.clip(edge, 0, size - 1)], 0.0)
    return np.asarray(above + share * at)


def _log_odds(p: Array, lift: float) -> Array:
    """Log of the odds ratio of p + lift to p, within +-1e6 (p = 0, or p + lift = 1: infinite; both: of no matter)."""
    q = np.minimum(p + lift, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(q) + np.log1p(-p) - np.log(p) - np.log1p(-q)
    return np.asarray(np.clip(np.nan_to_num(odds), -1e6, 1e6))


# ---- all totals ---------------------------------------------------------------------------------------------------


class _Exact:
    """The power summed over all totals of M items with K attempts, for one set after the other.

    The R = C(M + K, K) ways in which the M items can share the folded totals 0..K have each its null distribution and
    its rejection region, kept as the Fourier transform of the probability to reject. By Parseval's theorem the
    conditional power is the sum over frequencies of its product with the transform of the distribution of T.
    """

    def __init__(self, items: int, attempts: int, alpha: float) -> None:
        self.k, self.size = attempts, _fast(items * attempts + 2)
        self.counts, self.at = _shares(items, attempts)
        self.log_central = np.log(np.maximum(_transform(attempts, 0.0, self.size).real, 1e-300))
        odd = (self.counts @ np.arange(attempts + 1)) % 2
        half = np.exp(-1j * np.pi / self.size * np.arange(self.size // 2 + 1))
        turn = np.where(odd[:, None], half, 1.0)
        null = _masses(np.exp(self.counts @ self.log_central) * turn, self.size)
        edge, share = _critical(null, alpha)
        place = np.arange(self.size)
        reject = np.where(place > edge[:, None], 1.0, np.where(place == edge[:, None], share[:, None], 0.0))
        twice = np.full(self.size // 2 + 1, 2.0)  # frequencies below 0 are the conjugates of those above
        twice[[0, -1]] = 1.0
        self.region = np.conj(np.fft.rfft(np.fft.ifftshift(reject, axes=1))) * turn * (twice / self.size)

    def powers(self, p: Array, lift: float, sets: Ints) -> Array:
        """The power for each set (S,), where its items lo <= j < hi improve from p to p + lift."""
        out = np.zeros(len(sets))
        size = sets[:, 1] - sets[:, 0]
        for changed in np.unique(size).tolist():
            same = np.flatnonzero(size == changed)
            parts = [_joint(_folded(np.delete(p, slice(lo, hi)), 0.0, self.k)) for lo, hi in sets[same]]
            counts, weight = parts[0][0], np.array([part[1] for part in parts])
            moved = [self._moved(p[lo:hi], lift) for lo, hi in sets[same]]
            own = {share: np.array([value[share] for value in moved]) for share in moved[0]}
            for start in range(0, len(counts), _ROWS):
                block = counts[start : start + _ROWS]
                kernel = np.exp(block @ self.log_central)
                for share, value in own.items():
                    at = self.at[tuple(block[:, 1:].T + np.array(share)[:, None])]
                    both = weight[:, start : start + _ROWS] @ (kernel * self.region[at])
                    out[same] += np.einsum("sf,sf->s", both, value).real
        return np.clip(out, 0.0, 1.0)

    def _moved(self, p: Array, lift: float) -> dict[tuple[int, ...], Complexes]:
        """The transform of the changed items' after-counts for each way to share m, times its probability."""
        moved: dict[tuple[int, ...], Complexes] = {(0,) * self.k: np.ones(self.size // 2 + 1, np.complex128)}
        for each, odds in zip(_folded(p, lift, self.k), _log_odds(p, lift), strict=True):
            grown: dict[tuple[int, ...], Complexes] = {}
            for share, value in moved.items():
                for m, table in enumerate(each[:, None] * _transform(self.k, float(odds), self.size)):
                    to = share if m == 0 else (*share[: m - 1], share[m - 1] + 1, *share[m:])
                    grown[to] = grown.get(to, 0) + value * table
            moved = grown
        return moved


_exact = lru_cache(maxsize=1)(_Exact)


def _work(items: int, attempts: int, sets: Ints) -> Array:
    """Roughly how many multiplications sum over all totals, for each set; infinite where a table would be too large."""
    ways = math.comb(items + attempts, attempts)
    if attempts > _AXES or max(attempts * (items + 1) ** attempts, ways * (items * attempts + 2)) > _CELLS:
        return np.full(len(sets), np.inf)
    own = [min(math.comb(changed + attempts, attempts), 10**9) for changed in (sets[:, 1] - sets[:, 0]).tolist()]
    return np.array(own, np.float64) * ways * items * attempts


def _shares(items: int, attempts: int) -> tuple[Ints, Ints]:
    """The ways in which items can share m = 0..K, int (R, K + 1), and the number of each, by its counts of 1..K."""
    grid = np.indices((items + 1,) * attempts)
    at = np.full((items + 1,) * attempts, -1)
    inside = grid.sum(0) <= items
    at[inside] = np.arange(inside.sum())
    counts = grid[:, inside].T
    return np.concatenate([items - counts.sum(1, keepdims=True), counts], axis=1), at


def _joint(each: Array) -> tuple[Ints, Array]:
    """How many of independent items have m = 0..K, int (R, K + 1), and with which probability, float64 (R,).

    each   P(m = 0..K) of each item, (items, K + 1)

    The joint distribution of the counts of m = 1..K grows item by item in a table with one axis for each m.
    """
    items, attempts = len(each), each.shape[1] - 1
    table = np.ones((1,) * attempts)
    for row in each:
        inside = [slice(0, size) for size in table.shape]
        grown = np.zeros([size + 1 for size in table.shape])
        for m, share in enumerate(row):
            to = list(inside)
            if m:
                to[m - 1] = slice(1, None)
            grown[tuple(to)] += share * table
        table = grown
    at = np.nonzero(table)
    counts = np.stack(at, axis=1)
    return np.concatenate([items - counts.sum(1, keepdims=True), counts], axis=1), table[at]


def _folded(p: Array, lift: float, attempts: int) -> Array:
    """P(m = 0..K) of each item, m = min(t, 2K - t), t of Binomial(K, p) + Binomial(K, p + lift); (len(p), K + 1)."""
    k = attempts
    count = np.arange(k + 1)
    choose = np.array([math.comb(k, c) for c in count], dtype=np.float64)
    before, after = (choose * v[:, None] ** count * (1 - v[:, None]) ** (k - count) for v in (p, p + lift))
    out = np.zeros((p.size, k + 1))
    for x in count:
        for y in count:
            out[:, min(x + y, 2 * k - x - y)] += before[:, x] * after[:, y]
    return out


# ---- drawn totals ---------------------------------------------------------------------------------------------------


def _averaged(
    p: Array, lift: float, attempts: int, one: Ints, alpha: float, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Mean and standard deviation of the conditional power of one set over drawn totals."""
    lo, hi = one.tolist()
    kept = min(hi - lo, _INTEGRATED) if attempts <= _TABLES else 0
    odds = _log_odds(p[lo : lo + kept], lift).tolist()
    values = []
    for before, after in _drawn(p, lift, attempts, (lo, hi), draws, rng):
        total = before + after
        m = np.minimum(total, 2 * attempts - total)
        u = np.where(total <= attempts, after, attempts - before)
        everything, own = _count(m, attempts), _count(m[:, lo:hi], attempts)
        totals = Totals(everything, everything - own, m[:, lo : lo + kept], u[:, lo + kept : hi].sum(1))
        values.append(conditional_power(totals, attempts, odds, alpha))
    found = np.concatenate(values)
    return float(found.mean()), float(found.std(ddof=1))


def _drawn(
    p: Array, lift: float, attempts: int, run: tuple[int, int], draws: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """Right answers before and after, (R, M) each, in blocks of R of the `draws`."""
    q = p.copy()
    q[slice(*run)] += lift
    step = max(1, _BLOCK // max(p.size, attempts + 1))
    for start in range(0, draws, step):
        shape = (min(step, draws - start), p.size)
        yield rng.binomial(attempts, p, shape), rng.binomial(attempts, np.minimum(q, 1.0), shape)


def _count(m: Ints, attempts: int) -> Ints:
    """How many values of each row are 0..K: int (R, K + 1)."""
    at = np.arange(len(m))[:, None] * (attempts + 1) + m
    return np.bincount(at.ravel(), minlength=len(m) * (attempts + 1)).reshape(len(m), attempts + 1)
