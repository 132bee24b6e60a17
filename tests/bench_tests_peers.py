"""Bootstrap ranks or sign-flip tests by one library, as a process of its own; ``bench_tests.py`` starts and times it.

    bench_tests_peers.py ranks|flips NAME DATA.npz RESULT.npz --reps 10000 --draws 9999 --limit 60 --repeat 1

DATA holds `values` (N, M), integers: models' right answers on items; `attempts`, what stands for a rate of 1; `pairs`
(P, 2). RESULT gets `lower` and `upper` (N,) ranks, or `p` (P,), NaN where nothing was computed. Standard output gets
JSON: `seconds`, the least time of the calls alone over `--repeat` runs, and `share`, how much of the work was done
before the limit.

Each library does what comes closest to benchkit's work in the fastest way that was found: 95% percentile intervals of
the ranks of means; two-sided p of every pair. Where the scores are 0 or 1 the exact McNemar test is the sign-flip
test, and a library that has both may take it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

BLOCK = 4000  # pairs whose differences are held at once


# ---- ranks: (values, attempts) -> a function of the number of resamples that gives lower, upper


def ranks_benchkit(values, attempts):
    from fractions import Fraction

    from benchkit.resampling import rank_quantile, resampled_ranks
    from benchkit.scores import integers

    def call(reps):
        exact = integers(np.full(values.shape, attempts), values.astype(float)).values
        frequency = resampled_ranks(exact, reps, 0)
        return rank_quantile(frequency, Fraction(1, 40)), rank_quantile(frequency, Fraction(39, 40))

    return call


def ranks_honestboard(values, attempts):
    """Counts of the items by one multinomial draw for all resamples, a matrix product, scipy.stats.rankdata."""
    from honestboard.core import Board

    names = [str(i) for i in range(len(values))]
    board = Board(names, values.astype(np.uint8) if attempts == 1 else values / attempts)

    def call(reps):
        rows = {row["name"]: row for row in board.rank_summary(B=reps)}
        return [rows[n]["rank_lo"] for n in names], [rows[n]["rank_hi"] for n in names]

    return call


def ranks_evalstats(values, attempts):
    """A loop over resamples. It gives the distribution of the ranks, ties shared, and no interval."""
    from evalstats import bootstrap_ranks

    rates, names = values / attempts, [str(i) for i in range(len(values))]
    nothing = np.full(len(values), np.nan)

    def call(reps):
        bootstrap_ranks(rates, names, reps, np.random.default_rng(0), method="bootstrap")
        return nothing, nothing

    return call


# ---- sign-flip tests: (values, attempts, draws) -> a function of models a, b (K,) that gives p (K,)


def flips_benchkit(values, attempts, draws):
    from benchkit.flips import sign_flip
    from benchkit.scores import Differences, integers

    def call(a, b):
        exact = integers(np.full(values.shape, attempts), values.astype(float)).values
        parts = []
        for start in range(0, len(a), BLOCK):
            some = slice(start, start + BLOCK)
            d = exact[a[some]] - exact[b[some]]
            parts.append(sign_flip(Differences(d, np.zeros(len(d), dtype=np.int64))).p)
        return np.concatenate(parts)

    return call


def one_by_one(test: Callable[[int, int], float]):
    return lambda a, b: np.array([test(i, j) for i, j in zip(a.tolist(), b.tolist(), strict=True)])


def flips_scipy(values, attempts, draws):
    """permutation_test on the items that differ, all patterns where they are at most 2^15."""
    from scipy.stats import permutation_test

    def total(d, axis):
        return d.sum(axis=axis)

    def test(i, j):
        d = values[i] - values[j]
        d = d[d != 0].astype(float)
        if d.size < 2:  # it refuses fewer than two values
            return 1.0
        patterns = 2**15 if d.size <= 15 else draws
        options = {"permutation_type": "samples", "vectorized": True, "n_resamples": patterns, "batch": 2000}
        return float(permutation_test((d,), total, rng=np.random.default_rng(0), **options).pvalue)

    return one_by_one(test)


def flips_binom(values, attempts, draws):
    """The exact McNemar test by hand: counts by a matrix product, one call of scipy.stats.binom.cdf for all pairs."""
    from scipy.stats import binom

    def call(a, b):
        y = values.astype(np.float32)
        more = y @ (1 - y).T  # items that the row's model solves and the column's does not
        up, down = more[a, b], more[b, a]
        return np.minimum(1.0, 2 * binom.cdf(np.minimum(up, down), up + down, 0.5))

    return call


def flips_honestboard(values, attempts, draws):
    """Board.compare with one bootstrap resample for single attempts, else signflip_pvalues."""
    from honestboard.chain import signflip_pvalues
    from honestboard.core import Board

    if attempts == 1:
        board = Board([str(i) for i in range(len(values))], values.astype(np.uint8))
        return one_by_one(lambda i, j: board.compare(i, j, B=1)["p_two_sided"])
    return one_by_one(lambda i, j: signflip_pvalues(values[i] - values[j], np.random.default_rng(0), draws)[1])


def flips_evalstats(values, attempts, draws):
    """What its pairwise_differences takes for p, without the bootstrap interval that comes with it."""
    from evalstats.tests import _mcnemar_p, _paired_signflip_pvalue

    y = values.astype(float)
    if attempts == 1:
        return one_by_one(lambda i, j: _mcnemar_p(y[i], y[j]))
    options = {"statistic": "mean", "n_samples": draws}
    return one_by_one(lambda i, j: _paired_signflip_pvalue(y[i] - y[j], rng=np.random.default_rng(0), **options))


RANKS = {"benchkit": ranks_benchkit, "honestboard": ranks_honestboard, "evalstats": ranks_evalstats}
FLIPS = {
    "benchkit": flips_benchkit,
    "scipy": flips_scipy,
    "binom": flips_binom,
    "honestboard": flips_honestboard,
    "evalstats": flips_evalstats,
}


# ---- timing


def least(call: Callable[[], object], repeat: int, limit: float) -> tuple[float, object]:
    """The least time of `repeat` calls, fewer where half the limit is over, and the last result."""
    best, end = float("inf"), time.perf_counter() + limit / 2
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return best, result


def ranks(args: argparse.Namespace, data) -> tuple[dict, dict]:
    """Without a share a hundredth of the resamples first, to see how many there is time for."""
    call = RANKS[args.name](data["values"], int(data["attempts"]))
    share = args.share
    if share is None:
        first, _ = least(lambda: call(max(1, args.reps // 100)), 1, args.limit)
        share = args.limit / (100 * first)
    done = max(1, round(args.reps * min(1, share)))
    seconds, (lower, upper) = least(lambda: call(done), args.repeat, args.limit)
    return {"seconds": seconds, "share": done / args.reps}, {"lower": lower, "upper": upper}


def flips(args: argparse.Namespace, data) -> tuple[dict, dict]:
    """Pairs in random order, since some take longer than others; without a share ten first, to see the time."""
    call = FLIPS[args.name](data["values"], int(data["attempts"]), args.draws)
    pairs = data["pairs"]
    order = np.random.default_rng(1).permutation(len(pairs))
    a, b = pairs[order].T
    share = args.share
    if share is None:
        call(a[:1], b[:1])
        first, _ = least(lambda: call(a[:10], b[:10]), 1, args.limit)
        share = args.limit / (first * len(pairs) / len(a[:10]))
    done = max(1, round(len(pairs) * min(1, share)))
    seconds, p = least(lambda: call(a[:done], b[:done]), args.repeat, args.limit)
    found = np.full(len(pairs), np.nan)
    found[order[:done]] = p
    return {"seconds": seconds, "share": done / len(pairs)}, {"p": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("ranks", "flips"))
    parser.add_argument("name", choices=FLIPS)
    parser.add_argument("data")
    parser.add_argument("result")
    parser.add_argument("--reps", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=9_999)
    parser.add_argument("--limit", type=float, default=60, help="seconds; what would take longer is done in part")
    parser.add_argument("--share", type=float, help="of the work that is done; without it as much as there is time for")
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    with np.load(args.data) as data:
        about, result = {"ranks": ranks, "flips": flips}[args.task](args, {k: data[k] for k in data})
    np.savez(args.result, **result)
    print(json.dumps(about))


if __name__ == "__main__":
    main()
