"""The null distribution of a sum whose terms have random signs, exact at any number of terms.

The sign-flip test of d_1..d_k (nonzero) compares sum d with sum e_j |d_j|, e_j = +-1 with probability 1/2 (Fisher
1935, The Design of Experiments, section 21). With T the sum of the |d_j| that get a plus, S = sum |d|, U the sum of
the positive d and V that of the negative ones, T is symmetric about S/2 and

    P(sum >= observed) = P(T >= U) = P(T <= V),   two-sided P(|sum| >= |observed|) = min(1, 2 P(T <= min(U, V))),

so every p-value is one lower tail F(w) = P(T <= w) with w < S/2, or the complement of one. F is found by
convolution of integer counts (Pagano and Tritchler 1983), as a binomial tail where all |d_j| are equal (the exact
McNemar test), by meeting in the middle (Horowitz and Sahni 1974) where the integers are large, and else by
Monte Carlo. Counts are float64: exact up to k = 53, relative error below k 2^-53 after that.
"""

import functools
import math
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import numpy as np

from benchkit.errors import InputError
from benchkit.scores import Differences, Floats, Ints

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES: tuple[str, ...] = get_args(Alternative)

TINY = 5e-324  # a p-value is never 0: below the least float it is reported as that
DRAWS = 99_999
MIDDLE = 40  # most terms that meet in the middle
QUICK = 2 * 10**7  # convolutions up to this many additions are not worth avoiding
SHORT = 2**20  # bit operations up to which integers are quicker than arrays
UNSCALED = 900  # terms whose counts stay below the largest float64
MOST = 3 * 10**9  # and beyond this many, or WIDEST counts, they take too long
WIDEST = 2**26


class FlipTest(NamedTuple):
    """Sign-flip p-values of P rows.

    p: (P,) the p-values. se: (P,) Monte Carlo standard error, NaN where p was counted.
    flips: (P,) int64, number of nonzero terms k. smallest: (P,) the least p attainable with these |d|:
        2^(1-k) two-sided and 2^-k one-sided, since only all-plus and all-minus reach the largest |sum|.
    """

    p: Floats
    se: Floats
    flips: Ints
    smallest: Floats


def binomial_tails(k: int, ws: Iterable[int]) -> dict[int, float]:
    """P(Bin(k, 1/2) <= w) for each w: integer binomial coefficients over 2^k, correctly rounded.

    Beyond UNSCALED terms, the largest coefficient exactly and the others by their ratios: relative error < w 2^-52.
    """
    if k > UNSCALED:
        return {w: math.comb(k, w) / (1 << k) * _share(k, w) for w in ws}
    wanted, out = set(ws), {}
    term, total, scale = 1, 0, 1 << k
    for t in range(max(wanted) + 1):
        total += term
        if t in wanted:
            out[t] = total / scale
        term = term * (k - t) // (t + 1)
    return out


def _share(k: int, w: int) -> float:
    """Sum over t <= w of C(k, t) / C(k, w)."""
    t = np.arange(w, 0, -1, dtype=np.float64)
    return 1.0 + float(np.cumprod(t / (k - t + 1.0)).sum())


@functools.lru_cache(maxsize=1024)
def binomial_row(m: int) -> Floats:
    """C(m, 0..m) as float64, correctly rounded."""
    term, row = 1, []
    for t in range(m + 1):
        row.append(float(term))
        term = term * (m - t) // (t + 1)
    return np.array(row)


def _grouped_tails(values: list[int], repeats: list[int], widest: int) -> Floats:
    """Counts of T = 0..widest where values[i] > 0 occurs repeats[i] times; at most UNSCALED terms in all.

    A value that occurs often is added with its whole binomial row, one residue class at a time.
    """
    counts = np.zeros(widest + 1)
    counts[0] = 1.0
    for v, m in zip(values, repeats, strict=True):
        if v > widest:
            break
        if m > 4 * v:
            row = binomial_row(m)[: widest // v + 1]
            for r in range(v):
                some = counts[r::v]
                counts[r::v] = np.convolve(some, row)[: some.size]
        else:
            for _ in range(m):
                counts[v:] += counts[:-v].copy()
    return counts


def integer_tails(sizes: list[int], ws: Iterable[int]) -> dict[int, float]:
    """P(T <= w) for each w, T = the sum of a random half of the positive integers `sizes`, correctly rounded.

    The counts of T = 0, 1, 2, ... stand in one long integer, k + 1 bits each: adding a term is a shift and a sum. The
    sum of an integer's digits is its remainder by the base less one, as long as it is smaller than that.
    """
    bits = len(sizes) + 1
    counts = 1
    for v in sizes:
        counts += counts << (v * bits)
    base, scale = (1 << bits) - 1, 1 << len(sizes)
    return {w: (counts & ((1 << ((w + 1) * bits)) - 1)) % base / scale for w in ws}


def convolution_tails(sizes: Ints, ws: Iterable[int]) -> dict[int, float]:
    """P(T <= w) for each w, T = the sum of a random half of the positive integers `sizes` (k,).

    Few small terms as integers; else adds the terms smallest first, keeping counts up to the largest w only. Every 900
    terms the counts are scaled by 2^-900, which is exact but for probabilities below 2^-1100.
    """
    wanted = sorted(set(ws))
    widest = wanted[-1]
    if len(sizes) ** 2 * int(sizes.sum()) <= SHORT:
        return integer_tails(sizes.tolist(), wanted)
    if len(sizes) <= UNSCALED:
        values, repeats = np.unique(sizes, return_counts=True)
        counts = _grouped_tails(values.tolist(), repeats.tolist(), widest)
        return {w: math.ldexp(float(counts[: w + 1].sum()), -len(sizes)) for w in wanted}
    ordered = np.sort(sizes)
    counts, spare = np.zeros(widest + 1), np.zeros(widest + 1)
    counts[0] = 1.0
    top = bits = 0
    exponent = -len(ordered)
    for v in ordered.tolist():
        if v > widest:
            break
        top = min(top + v, widest)
        spare[:v] = counts[:v]
        np.add(counts[v : top + 1], counts[: top + 1 - v], out=spare[v : top + 1])
        counts, spare = spare, counts
        bits += 1
        if bits == 1000:
            counts *= 2.0**-900
            bits, exponent = 100, exponent + 900
    return {w: math.ldexp(float(counts[: w + 1].sum()), exponent) for w in wanted}


def _binomial_mass(m: int) -> tuple[int, Floats]:
    """P(Bin(m, 1/2) = first + i) where a float64 differs from 0; from the mode outwards, by ratios of neighbours."""
    middle = m // 2
    up = np.arange(middle, m, dtype=np.float64)
    upper = np.cumprod((m - up) / (up + 1.0))
    upper = np.concatenate([[1.0], upper[upper > 0.0]])
    both = 1 if m % 2 == 0 else 2  # modes, which the lower half leaves out
    mass = np.concatenate([upper[both:][::-1], upper])
    first = middle - (upper.size - both)
    return first, mass / mass.sum()


def mixture_tail(sizes: Ints, w: int) -> float:
    """P(T <= w) for very many terms of few distinct values: a binomial mass for each value, convolved.

    Only the part is kept where a float64 differs from 0, some 38 standard deviations on either side. NaN where that
    would take more than MOST additions.
    """
    values, repeats = np.unique(sizes, return_counts=True)
    spread = 76 * np.sqrt(np.cumsum(values.astype(np.float64) ** 2 * repeats) / 4)
    if float((spread * np.minimum(repeats, 38 * np.sqrt(repeats))).sum()) > MOST:
        return math.nan
    first, mass = 0, np.ones(1)
    for v, m in zip(values.tolist(), repeats.tolist(), strict=True):
        start, row = _binomial_mass(m)
        padded = np.zeros(-(-mass.size // v) * v)
        padded[: mass.size] = mass
        columns = [np.convolve(padded[r::v], row) for r in range(v)]
        mass = np.stack(columns, axis=1).ravel()
        kept = np.flatnonzero(mass)
        first, mass = first + v * start + int(kept[0]), mass[kept[0] : kept[-1] + 1]
    return float(mass[: max(0, w - first + 1)].sum())


def middle_tail(sizes: Ints, w: int) -> float:
    """P(T <= w) by sorting the 2^(k/2) sums of each half of the terms: exact, k <= 40."""
    halves = []
    for part in (sizes[::2], sizes[1::2]):
        sums = np.zeros(1, dtype=np.int64)
        for v in part:
            sums = np.concatenate([sums, sums + v])
        halves.append(np.sort(sums))
    count = int(np.searchsorted(halves[1], w - halves[0], side="right").sum())
    return count / (1 << len(sizes))


def monte_carlo(d: Ints, tolerance: Ints, alternative: Alternative, draws: int, seed: int) -> tuple[Floats, Floats]:
    """p = (1 + hits)/(1 + draws) (Davison and Hinkley 1997, eq. 4.11) and its standard error, for rows d (P, G).

    All rows share the drawn signs, so a row's p depends on nothing but the row and the seed. Ties count as hits.
    """
    big = np.abs(d).sum(axis=1)
    scale = np.where(big < 2**52, 1.0, big / 2.0**51)  # float64 sums of integers below 2^53 are exact
    terms = np.rint(np.abs(d) / scale[:, None])
    slack = 2 * tolerance / scale + np.where(scale > 1, float(d.shape[1]), 0.0)
    observed = np.where(d < 0, -terms, terms).sum(axis=1)
    rng = np.random.default_rng(seed)
    hits = np.zeros(len(d), dtype=np.int64)
    step = max(1, min(draws, 2**22 // d.shape[1]))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        bits = np.unpackbits(rng.integers(0, 256, size=(rows, -(-d.shape[1] // 8)), dtype=np.uint8), axis=1)
        sums = (2.0 * bits[:, : d.shape[1]] - 1.0) @ terms.T
        if alternative == "greater":
            hits += np.count_nonzero(sums >= observed - slack, axis=0)
        elif alternative == "less":
            hits += np.count_nonzero(sums <= observed + slack, axis=0)
        else:
            hits += np.count_nonzero(np.abs(sums) >= np.abs(observed) - slack, axis=0)
    p = (1.0 + hits) / (1.0 + draws)
    return p.astype(np.float64), np.sqrt(p * (1.0 - p) / draws).astype(np.float64)


def _countable(k: int, w: int) -> Literal["convolution", "middle", "no"]:
    if k * w <= QUICK:
        return "convolution"
    if k <= MIDDLE:
        return "middle"
    return "convolution" if k * w <= MOST and w <= WIDEST else "no"


def lower_tails(sizes: Ints, k: Ints, total: Ints, w: Ints) -> Floats:
    """F(w) = P(T <= w) for rows of `sizes` (P, G), zeros ignored; NaN where it can't be counted in reasonable time.

    k (P,) number of nonzero sizes, total (P,) their sum. Rows with the same multiset of sizes share one convolution.
    """
    upper = 2 * w >= total  # T is symmetric about total/2
    need = np.where(upper, total - w - 1, w)
    tails = np.zeros(len(w))
    live = need >= 0
    unit = sizes.max(axis=1, initial=0) <= 1
    groups: dict[tuple[int, bytes], list[int]] = {}
    for i in np.flatnonzero(live & unit).tolist():
        groups.setdefault((int(k[i]), b""), []).append(i)
    for i in np.flatnonzero(live & ~unit).tolist():
        how = _countable(int(k[i]), int(need[i]))
        if how == "no":
            tails[i] = mixture_tail(sizes[i][sizes[i] > 0], int(need[i]))
        elif how == "middle":
            tails[i] = middle_tail(sizes[i][sizes[i] > 0], int(need[i]))
        else:
            groups.setdefault((int(k[i]), np.sort(sizes[i][sizes[i] > 0]).tobytes()), []).append(i)
    for (terms, key), rows in groups.items():
        ws = [int(need[i]) for i in rows]
        found = convolution_tails(np.frombuffer(key, dtype=np.int64), ws) if key else binomial_tails(terms, ws)
        tails[rows] = [found[x] for x in ws]
    return np.where(upper, 1.0 - tails, tails)


def one_sided_pair(differences: Differences, draws: int = DRAWS, seed: int = 0) -> tuple[FlipTest, FlipTest]:
    """`sign_flip` for ``greater`` and for ``less``: both tails are counted in one convolution."""
    p = len(differences.values)
    twice = Differences(*(np.concatenate([x, x]) for x in (differences.values, differences.tolerance)))
    d = twice.values.copy()
    d[p:] = -d[p:]  # less is greater of the opposite
    both = sign_flip(Differences(d, twice.tolerance), "greater", draws, seed)
    sides = [FlipTest(both.p[s], both.se[s], both.flips[s], both.smallest[s]) for s in (slice(p), slice(p, None))]
    return sides[0], sides[1]


def sign_flip(
    differences: Differences, alternative: Alternative = "two-sided", draws: int = DRAWS, seed: int = 0
) -> FlipTest:
    """Sign-flip p-values of rows of integer differences (P, G).

    The share of the 2^k sign patterns whose sum is at least as extreme as the observed one, ties included.
    ``greater`` tests sum d > 0. With a tolerance, sums that close count as ties (the conservative side).
    """
    if alternative not in ALTERNATIVES:
        raise InputError(f"alternative must be one of {', '.join(ALTERNATIVES)}, not {alternative}")
    d, tolerance = differences
    exact = tolerance == 0
    unit = np.where(exact, np.gcd.reduce(d, axis=1), 1)
    d = d // np.maximum(unit, 1)[:, None]
    sizes = np.abs(d)
    k = np.count_nonzero(d, axis=1).astype(np.int64)
    total = sizes.sum(axis=1)
    up = (total + d.sum(axis=1)) // 2
    down = total - up
    one_sided = {"greater": down, "less": up, "two-sided": np.minimum(up, down)}[alternative]
    tail = lower_tails(sizes, k, total, one_sided + tolerance)
    p = np.minimum(1.0, 2.0 * tail) if alternative == "two-sided" else tail
    se = np.full(len(p), np.nan)
    drawn = np.isnan(p)
    smallest = np.ldexp(1.0, np.minimum((alternative == "two-sided") - k, 0))
    if drawn.any():
        p[drawn], se[drawn] = monte_carlo(d[drawn], tolerance[drawn], alternative, draws, seed)
        smallest[drawn] = np.maximum(smallest[drawn], 1.0 / (1.0 + draws))
    if alternative == "two-sided":
        p[up == down] = 1.0
    return FlipTest(np.maximum(p, TINY), se, k, np.maximum(smallest, TINY))
