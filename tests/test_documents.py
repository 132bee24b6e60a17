"""Documents of every analysis of a responses table: plain JSON for any table, each null beside its reason."""

import json
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchkit import diagnosis, gaps, metrics, ranks, signflip
from benchkit.documents import rows
from benchkit.pairs import every_pair

FREE = {"lower_item", "upper_item"}  # null says that there is no item at that end


def plain(document):
    """Raise where a value is no plain JSON, or a null has no reason."""

    def look(value):
        if isinstance(value, dict):
            for key, part in value.items():
                if part is None and key not in FREE:
                    assert isinstance(value.get(f"{key}_reason"), str) and value[f"{key}_reason"], key
                look(part)
        elif isinstance(value, list):
            for part in value:
                look(part)

    json.dumps(document, allow_nan=False, default=lambda x: x.item())
    look(document)


@st.composite
def tables(draw):
    """Odd tables: few models or items, absent cells, fractions, huge attempts, clusters."""
    models, items = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = draw(st.sampled_from([1, 1, 4, 10**5, 2**31 - 1]))
    n = rng.integers(1, most + 1, (models, items)) if draw(st.booleans()) else np.full((models, items), most)
    kind = draw(st.sampled_from(["whole", "whole", "halves", "fractions", "all", "none"]))
    y = n * {"all": 1.0, "none": 0.0}.get(kind, rng.random(n.shape))
    y = np.floor(y) if kind == "whole" else np.floor(2 * y) / 2 if kind == "halves" else y
    n = np.where(rng.random(n.shape) < draw(st.sampled_from([0.0, 0.0, 0.3])), 0, n)
    y = np.where(n > 0, y, 0.0)
    cluster = rng.integers(-1, 2, items) if draw(st.booleans()) else None
    return n, y, cluster


def names(kind, count):
    return [f"{kind}{i}" for i in range(count)]


class TestInvariance:
    @given(tables())
    @settings(max_examples=150, deadline=None)
    def test_ranks(self, table):
        n, y, cluster = table
        plain(ranks.rank(n, y, cluster, reps=20).document(names("m", len(n)), names("i", n.shape[1])))

    @given(
        tables(),
        st.sampled_from(["two-sided", "greater", "less"]),
        st.sampled_from(["0.05", "1e-300", "0.99999999999999999"]),
        st.sampled_from(["holm", "tarone", "bh", "none"]),
    )
    @settings(max_examples=150, deadline=None)
    def test_pairs(self, table, alternative, level, adjust):
        n, y, cluster = table
        if len(n) < 2:
            return
        equalize = bool((y == np.rint(y)).all())
        found = signflip.compare(n, y, every_pair(len(n)), alternative=alternative, alpha=level, power=level,
                                 adjust=adjust, cluster=cluster, equalize=equalize, fisher=True, exact_power=True,
                                 draws=99)  # fmt: skip
        plain(found.document(names("m", len(n))))

    @given(tables(), st.booleans())
    @settings(max_examples=150, deadline=None)
    def test_diagnosis(self, table, fitted):
        n, y, _ = table
        mode = (np.linspace(-1, 1, len(n)), np.linspace(-2, 2, n.shape[1])) if fitted else (None, None)
        plain(diagnosis.diagnose(n, y, *mode).document(names("m", len(n)), names("i", n.shape[1])))

    @given(
        st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.2, 0.5, 1.0, 9.0, 800.0]), min_size=0, max_size=7),
        st.sampled_from(["minmax", "failure", "logistic", "rank"]),
        st.sampled_from(["uniform", "beta:2,3"]),
        st.booleans(),
        st.booleans(),
    )
    @settings(max_examples=100, deadline=None)
    def test_metrics_and_gaps(self, b, normalize, target, drawn, flagged):
        theta = np.array([-1.0, 0.5])
        edge = np.array([x in (-3.0, 9.0) for x in b], dtype=bool) if flagged else None
        draws = np.array([b, b, np.zeros(len(b))], dtype=np.float32) if drawn else None
        abilities = np.zeros((3, 2), dtype=np.float32) if drawn else None
        sd = np.full(len(b), math.nan if flagged else 0.1)
        plain(metrics.report(np.array(b), sd, edge, theta, draws, abilities, normalize=normalize, target=target,
                             drop_boundary=flagged, reps=20).document())  # fmt: skip
        found = gaps.widest(np.array(b), theta, edge, normalize=normalize)
        plain(found.document(names("i", len(b))))


class TestTheory:
    def test_reasons_are_for_all_rows_or_one_a_row(self):
        columns = {"x": [1.0, math.nan, math.nan], "y": np.array([math.nan, 0, math.nan])}
        got = rows(columns, {"x": "none", "y": ["first", "", "last"]})
        assert got[0] == {"x": 1.0, "y": None, "y_reason": "first"}
        assert got[2] == {"x": None, "x_reason": "none", "y": None, "y_reason": "last"}

    def test_each_pair_has_its_own_reason(self):
        n = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
        found = signflip.compare(n, n * [1, 0, 1, 1.0], np.array([[0, 1], [0, 2]]), fisher=True, exact_power=True)
        same, apart = found.document(["a", "b", "c"])["pairs"]
        assert "never differ" in same["detectable_exact_reason"] and "no item in common" in apart["p_attempts_reason"]
        assert "no item in common" in apart["detectable_difference_reason"]
        assert "no item in common" in apart["p_attempts_adjusted_reason"]
