import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchkit.coverage import bounds, incomplete, others_rates
from benchkit.scores import integers


class TestTheory:
    def test_bounds_are_the_extremes_of_every_way_to_fill(self):
        n = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
        y = np.array([[1, 0, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0.0]])
        gaps = np.argwhere(n == 0)
        seen: list[list[tuple[float, int]]] = [[] for _ in n]
        for fill in itertools.product((0.0, 1.0), repeat=len(gaps)):
            full = y.copy()
            full[tuple(gaps.T)] = fill
            score = full.mean(axis=1)
            for i, s in enumerate(score):
                seen[i].append((s, 1 + int((score > s).sum())))
        for b in bounds(n, integers(n, y)):
            scores, ranks = zip(*seen[b.model], strict=True)
            assert (b.score_lower, b.score_upper) == (min(scores), max(scores))
            assert (b.rank_lower, b.rank_upper) == (min(ranks), max(ranks))
            assert b.missing == (n[b.model] == 0).sum()

    def test_are_ordered_by_rank(self):
        n = np.ones((3, 4), dtype=int)
        y = np.array([[0, 0, 0, 1], [1, 1, 1, 1], [1, 1, 0, 0.0]])
        assert [(b.model, b.rank_lower, b.rank_upper) for b in bounds(n, integers(n, y))] == [
            (1, 1, 1),
            (2, 2, 2),
            (0, 3, 3),
        ]

    def test_incomplete_models(self):
        n = np.array([[1, 1], [4, 0], [0, 2]])
        rates = np.array([[1, 0], [0.5, 0], [0, 0.25]])
        found = incomplete(n, rates)
        assert [(e.model, e.missing.tolist(), e.score_on_own_items) for e in found] == [(1, [1], 0.5), (2, [0], 0.25)]

    @given(size=st.tuples(st.integers(1, 5), st.integers(1, 4)), seed=st.integers(0, 10**6))
    def test_others_rates_by_the_definition(self, size, seed):
        rng = np.random.default_rng(seed)
        n = rng.integers(0, 4, size)
        y = rng.binomial(n, 0.5)
        rates = [[Fraction(int(a), int(b)) if b else None for a, b in zip(*row, strict=True)]
                 for row in zip(y, n, strict=True)]  # fmt: skip
        models = range(size[0])
        found = others_rates(n, np.divide(y, n, out=np.zeros(size), where=n > 0), np.arange(size[0]))
        for i in models:
            means: dict[bool, list[Fraction]] = {True: [], False: []}
            for j in range(size[1]):
                others = [r for k in models if k != i and (r := rates[k][j]) is not None]
                if others:
                    means[rates[i][j] is not None].append(sum(others, Fraction(0)) / len(others))
            for value, part in ((found[i].tried, means[True]), (found[i].missing, means[False])):
                expected = float(sum(part, Fraction(0)) / len(part)) if part else np.nan
                np.testing.assert_allclose(value, expected, atol=1e-12)
