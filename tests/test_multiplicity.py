import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit import multiplicity as mp
from benchkit.errors import InputError

ps = st.lists(st.floats(0, 1), min_size=1, max_size=12)
SIMPLE = {"holm": mp.holm, "hochberg": mp.hochberg, "bh": mp.bh, "bonferroni": mp.bonferroni}


class TestValidation:
    def test_unknown_method(self):
        with pytest.raises(InputError, match=r"adjust must be one of holm, .*, not sidak"):
            mp.adjust([0.1], [True], "sidak", [0], 0.05)


class TestReference:
    P = (0.042, 0.001, 0.031, 0.014, 0.007)

    def test_holm(self):
        # R 4: p.adjust(c(.042, .001, .031, .014, .007), "holm")
        np.testing.assert_allclose(mp.holm(self.P), [0.062, 0.005, 0.062, 0.042, 0.028], rtol=1e-12)

    def test_others(self):
        # the definitions worked by hand on the same five
        np.testing.assert_allclose(mp.hochberg(self.P), [0.042, 0.005, 0.042, 0.042, 0.028], rtol=1e-12)
        np.testing.assert_allclose(mp.bh(self.P), [0.042, 0.005, 0.03875, 0.07 / 3, 0.0175], rtol=1e-12)
        np.testing.assert_allclose(mp.bonferroni(self.P), [0.21, 0.005, 0.155, 0.07, 0.035], rtol=1e-12)

    @given(ps)
    def test_bh_is_scipys(self, p):
        from scipy.stats import false_discovery_control

        np.testing.assert_allclose(mp.bh(p), false_discovery_control(p), rtol=1e-12)

    def test_holm_over_29_needs_11_one_way_items(self):
        assert mp.holm([2 * 0.5**11] + [0.5] * 28)[0] <= 0.05 < mp.holm([2 * 0.5**10] + [0.5] * 28)[0]


class TestTheory:
    @given(st.lists(st.floats(0.001, 1), min_size=1, max_size=5))
    def test_holm_closes_bonferroni(self, p):
        """Closure: a hypothesis falls if every intersection that holds it falls to Bonferroni."""
        for h, adjusted in enumerate(mp.holm(p)):
            worst = max(
                min(1.0, min(p[i] for i in subset) * len(subset))
                for size in range(1, len(p) + 1)
                for subset in itertools.combinations(range(len(p)), size)
                if h in subset
            )
            assert adjusted == pytest.approx(worst, rel=1e-12)

    @given(ps)
    def test_order_of_strictness(self, p):
        assert np.all(mp.bh(p) <= mp.hochberg(p) * (1 + 1e-12))
        assert np.all(mp.hochberg(p) <= mp.holm(p))
        assert np.all(mp.holm(p) <= mp.bonferroni(p))
        assert np.all(np.asarray(p) <= mp.bh(p) * (1 + 1e-12))

    @given(st.lists(st.integers(0, 14), min_size=1, max_size=40))
    def test_tarone_factor_is_the_least(self, ks):
        smallest = [2.0 ** min(0, 1 - k) for k in ks]

        def m(k):
            return sum(s * k * 20 <= 1 for s in smallest)

        assert mp.tarone_factor(smallest, "0.05") == next(k for k in itertools.count(1) if m(k) <= k)

    def test_tarone_holds_at_equality(self):
        # alpha / K = 1/4 exactly: both tests can just be rejected
        assert mp.tarone_factor([0.25, 0.25], 0.5) == 2
        np.testing.assert_array_equal(mp.tarone([0.25, 0.25], [0.25, 0.25], 0.5), [0.5, 0.5])

    def test_tarone_leaves_out_what_can_not_be_rejected(self):
        p = [2 * 0.5**7, *[1.0] * 20]
        smallest = [2 * 0.5**7, *[2 * 0.5**3] * 20]
        assert mp.holm(p)[0] > 0.05
        got = mp.tarone(p, smallest, 0.05)
        assert got[0] == p[0] and np.all(got[1:] == 1)


class TestInvariance:
    @pytest.mark.parametrize("name", SIMPLE)
    @given(p=ps, random=st.randoms())
    def test_order(self, name, p, random):
        order = list(range(len(p)))
        random.shuffle(order)
        np.testing.assert_array_equal(SIMPLE[name]([p[i] for i in order]), SIMPLE[name](p)[order])

    @pytest.mark.parametrize("method", mp.RULES)
    def test_outsiders_change_nothing(self, method):
        p, smallest = np.array([0.01, 1.0, 0.02, np.nan]), np.array([0.001, 1.0, 0.001, 0.0])
        got = mp.adjust(p, [True, False, True, True], method, smallest, 0.05)
        alone = mp.adjust(p[[0, 2]], [True, True], method, smallest[[0, 2]], 0.05)
        assert got.family_size == alone.family_size == 2
        np.testing.assert_array_equal(got.p[[0, 2]], alone.p)
        assert got.p[1] == 1 and np.isnan(got.p[3])

    @pytest.mark.parametrize("method", mp.RULES)
    def test_empty_family(self, method):
        got = mp.adjust([1.0], [False], method, [1.0], 0.05)
        assert got.p.tolist() == [1.0] and got.family_size == 0
