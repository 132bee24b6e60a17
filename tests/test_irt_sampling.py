"""Rounds of draws until a target, options' messages, and what a reader is warned of."""

import math

import numpy as np
import pytest

from benchkit.errors import InputError
from benchkit.irt import sampling
from benchkit.irt.sampler import Chains
from benchkit.irt.sampling import MOST, Options, caveats, check, sample, settings


class Walk:
    """Stands for the sampler: chains of an autoregression with lag-one correlation ``rho``; column 0 never moves
    where it is 1."""

    rho = 0.0

    def __init__(self, target, *, chains, warmup, target_accept, max_treedepth, seed):
        self.rng = [np.random.default_rng([seed, k]) for k in range(chains)]
        self.last = np.array([rng.normal(size=3) for rng in self.rng])
        self.calls = []
        Walk.latest = self

    def draw(self, draws, progress=None):
        self.calls.append(draws)
        x = np.empty((len(self.rng), draws, 3), np.float32)
        for t in range(draws):
            noise = np.array([rng.normal(size=3) for rng in self.rng])
            self.last = self.rho * self.last + math.sqrt(1 - self.rho**2) * noise
            x[:, t] = self.last
        shape = x.shape[:2]
        no = np.zeros(shape, bool)
        energy = np.array([rng.normal(size=draws) for rng in self.rng])
        return Chains(x, energy, no.copy(), no.copy(), np.full(shape, 3, np.int32))


ORDER = np.array([2, 0, 1])


@pytest.fixture
def walk(monkeypatch):
    monkeypatch.setattr(sampling, "Sampler", Walk)
    return lambda rho: monkeypatch.setattr(Walk, "rho", rho)


class TestRounds:
    def test_one_round_without_a_target(self, walk):
        walk(0.0)
        flat, summary, record = sample(None, ORDER, Options(draws=100, chains=3))
        assert Walk.latest.calls == [100] and flat.shape == (300, 3) and record["draws"] == 100
        assert summary.mean.shape == (3,) and record["divergences"] == record["saturated_trees"] == 0
        assert record["max_rhat"] == max(summary.rhat) and record["min_ess_bulk"] == min(summary.ess_bulk)
        assert record["min_ess_tail"] == min(summary.ess_tail) and record["min_e_bfmi"] > 1

    def test_columns_are_put_in_order(self, walk):
        walk(0.0)
        flat, _, _ = sample(None, ORDER, Options(draws=50, chains=2))
        again = Walk(None, chains=2, warmup=0, target_accept=0, max_treedepth=0, seed=0).draw(50).x
        np.testing.assert_array_equal(flat, again[:, :, ORDER].reshape(100, 3))

    @pytest.mark.parametrize(("rho", "target"), [(0.0, 1500), (0.7, 1000), (0.9, 600)])
    def test_rounds_stop_at_the_target(self, walk, rho, target):
        walk(rho)
        flat, _, record = sample(None, ORDER, Options(draws=100, chains=2, target_ess=target))
        calls = Walk.latest.calls
        assert len(calls) > 1 and record["min_ess_bulk"] >= target
        assert record["draws"] == sum(calls) and flat.shape == (2 * sum(calls), 3)
        # the last round was needed, and no round is more than four times what there was
        total = np.cumsum(calls)
        assert all(more <= 4 * before for more, before in zip(calls[1:], total, strict=False))
        assert record["min_ess_bulk"] < 2 * target

    def test_no_more_rounds_where_the_first_suffices(self, walk):
        walk(0.0)
        sample(None, ORDER, Options(draws=400, chains=2, target_ess=300))
        assert Walk.latest.calls == [400]

    @pytest.mark.parametrize("rho", [0.9999, 1.0])
    def test_given_up_at_most(self, walk, rho):
        walk(rho)  # 1.0: nothing moves
        options = Options(draws=10, chains=2, target_ess=10_000)
        _, _, record = sample(None, ORDER, options)
        assert sum(Walk.latest.calls) == MOST * 10 == record["draws"]
        texts = caveats(settings(options) | record)
        assert any("target ESS of 10000 was not reached in 1000 draws a chain" in t for t in texts)

    def test_progress_of_every_round(self, walk, monkeypatch):
        walk(0.5)
        seen = []
        draw = Walk.draw

        def with_progress(self, draws, progress=None):
            progress(draws, draws)
            return draw(self, draws)

        monkeypatch.setattr(Walk, "draw", with_progress)
        sample(None, ORDER, Options(draws=50, chains=2, target_ess=400), lambda *x: seen.append(x))
        assert len(seen) == len(Walk.latest.calls) > 1


class TestValidation:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"chains": 0}, "chains must be between 1 and 64, not 0"),
            ({"chains": 65}, "chains must be between 1 and 64, not 65"),
            ({"warmup": 19}, "warmup must be between 20 and 1000000, not 19"),
            ({"draws": 3}, "draws must be between 4 and 1000000, not 3"),
            ({"max_treedepth": 0}, "max-treedepth must be between 1 and 12, not 0"),
            ({"max_treedepth": 13}, "max-treedepth must be between 1 and 12, not 13"),
            ({"seed": -1}, "seed must be between 0 and"),
            ({"seed": 2**63}, "seed must be between 0 and"),
            ({"target_accept": 0.4}, "target-accept must be between 0.5 and 0.99, not 0.4"),
            ({"target_accept": 1.0}, "target-accept must be between 0.5 and 0.99, not 1.0"),
            ({"target_accept": math.nan}, "target-accept must be between 0.5 and 0.99, not nan"),
            ({"target_ess": 0}, "target-ess must be between 1 and 1e8, not 0"),
            ({"target_ess": math.inf}, "target-ess must be between 1 and 1e8, not inf"),
            ({"target_ess": math.nan}, "target-ess must be between 1 and 1e8, not nan"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(InputError, match=message):
            check(Options(**options))

    def test_limits_are_allowed(self):
        check(Options())
        check(Options(1, 20, 4, 0.5, 1, 0, 1))
        check(Options(64, 10**6, 10**6, 0.99, 12, 2**63 - 1, 10**8))

    def test_settings(self):
        with_, without = settings(Options(seed=7)), settings(None)
        assert with_["seed"] == 7 and with_["draws"] == 1000 and with_["divergences"] is None
        assert list(with_) == list(without) and set(without.values()) == {None}


GOOD = settings(Options(target_accept=0.8)) | {
    "divergences": 0,
    "saturated_trees": 40,
    "max_rhat": 1.009,
    "min_ess_bulk": 400.0,
    "min_ess_tail": 400.0,
    "min_e_bfmi": 0.3,
}


class TestCaveats:
    def test_none_for_good_chains(self):
        assert caveats(GOOD) == []

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (
                {"divergences": 3},
                "3 of 4000 draws ended in a divergence: the posterior's corners may be missed; raise --target-accept "
                "(now 0.8)",
            ),
            (  # no acceptance is higher
                {"divergences": 1, "target_accept": 0.99},
                "1 of 4000 draws ended in a divergence: the posterior's corners may be missed; set tighter priors",
            ),
            ({"max_rhat": 1.01}, "the chains disagree (R-hat 1.010, wanted below 1.01): raise --warmup and --draws"),
            (
                {"max_rhat": None},
                "the chains disagree (R-hat undefined, wanted below 1.01): raise --warmup and --draws",
            ),
            ({"min_ess_bulk": 399.4}, "too few effective draws (least ESS 399, wanted 400): raise --draws"),
            ({"min_ess_tail": 12.0}, "too few effective draws (least ESS 12, wanted 400): raise --draws"),
            ({"min_ess_tail": None}, "too few effective draws (least ESS undefined, wanted 400): raise --draws"),
            (
                {"min_e_bfmi": 0.29},
                "energies mix slowly (E-BFMI 0.29, wanted 0.3): raise --draws, or set tighter priors",
            ),
            (
                {"min_e_bfmi": None},
                "energies mix slowly (E-BFMI undefined, wanted 0.3): raise --draws, or set tighter priors",
            ),
            (
                {"saturated_trees": 41},
                "41 of 4000 trajectories were cut at 255 gradients: raise --max-treedepth (now 8)",
            ),
            (
                {"target_ess": 500.0},
                "the target ESS of 500 was not reached in 1000 draws a chain: something mixes slowly; look at the "
                "other warnings",
            ),
        ],
    )
    def test_each_in_words_with_the_remedy(self, change, text):
        assert caveats(GOOD | change) == [text]

    def test_a_target_that_is_reached_is_not_spoken_of(self):
        assert caveats(GOOD | {"target_ess": 400.0}) == []
