"""Chains that go on, the caches, and the step sizes that are avoided."""

import math
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from benchkit.irt import geometry, sampler
from benchkit.irt.laplace import laplace
from benchkit.irt.model import Priors, check_data
from benchkit.irt.sampler import Sampler


def made(shape=(4, 6), attempts=3, seed=0):
    rng = np.random.default_rng(seed)
    n = np.full(shape, attempts)
    data = check_data(n, rng.binomial(n, 0.6).astype(float))
    return geometry.target(data, Priors(), laplace(data, Priors()))


TARGET = made()


def chains(target=TARGET, chains=2, warmup=30, seed=5):
    return Sampler(target, chains=chains, warmup=warmup, target_accept=0.8, max_treedepth=8, seed=seed)


@pytest.fixture(scope="module")
def whole():
    return chains().draw(150)


class TestInvariance:
    @pytest.mark.parametrize("parts", [(1, 149), (64, 64, 22), (100, 50)])
    def test_several_calls_are_one(self, whole, parts):
        s = chains()
        runs = [s.draw(k) for k in parts]
        for name in whole._fields:
            together = np.concatenate([getattr(r, name) for r in runs], axis=1)
            np.testing.assert_array_equal(together, getattr(whole, name))

    def test_warmup_alone_first(self, whole):
        s = chains()
        assert s.draw(0).x.shape[1] == 0 and s.states[0]["step"] == 30
        np.testing.assert_array_equal(s.draw(150).x, whole.x)

    def test_chains_do_not_depend_on_each_other(self, whole):
        four = chains(chains=4).draw(40)
        np.testing.assert_array_equal(four.x[:2], whole.x[:, :40])
        assert not np.array_equal(four.x[0], four.x[1]) and not np.array_equal(four.x[2], four.x[3])

    def test_seeds_differ(self, whole):
        assert not np.array_equal(chains(seed=6).draw(40).x, whole.x[:, :40])

    def test_short_blocks_change_nothing(self, whole):
        s = chains()
        s.block = 7  # as where there are millions of cells
        np.testing.assert_array_equal(s.draw(150).x, whole.x)


class TestShapes:
    def test_record(self, whole):
        assert whole.x.shape == (2, 150, 3 + 4 + 6) and whole.x.dtype == np.float32
        for name in ("energy", "divergent", "saturated", "gradients"):
            assert getattr(whole, name).shape == (2, 150)
        assert whole.gradients.min() >= 1 and whole.gradients.max() <= 255 and not whole.saturated.any()
        assert np.isfinite(whole.x).all() and (whole.x[:, :, 1:3] > 0).all()

    @pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
    def test_smallest_data(self, shape):
        run = chains(made(shape), chains=1).draw(5)
        assert run.x.shape == (1, 5, 3 + sum(shape)) and np.isfinite(run.x).all()

    def test_trees_of_one_gradient(self):
        s = Sampler(TARGET, chains=1, warmup=20, target_accept=0.8, max_treedepth=1, seed=0)
        run = s.draw(20)
        assert (run.gradients == 1).all() and run.saturated.sum() > 10


class TestProgress:
    def test_it_rises_to_the_total_of_each_call(self):
        s = chains()
        thread = threading.get_ident()
        for draws, total in ((10, 2 * 40), (25, 2 * 25)):
            calls = []
            s.draw(draws, lambda done, of, calls=calls: calls.append((done, of, threading.get_ident())))
            assert calls[-1] == (total, total, thread)
            assert [c[0] for c in calls] == sorted(c[0] for c in calls)

    def test_an_interrupt_stops_the_chains(self):
        def stop(done, total):
            raise KeyboardInterrupt

        before = threading.active_count()
        s = chains()
        with pytest.raises(KeyboardInterrupt):
            s.draw(100_000, stop)
        assert threading.active_count() <= before
        assert max(x["step"] for x in s.states) < 100_000

    def test_an_error_in_a_chain_comes_out(self, monkeypatch):
        def broken(self, k, end, out):
            raise ZeroDivisionError(k)

        monkeypatch.setattr(Sampler, "_advance", broken)
        with pytest.raises(ZeroDivisionError):
            chains().draw(10)


class TestStepSize:
    def test_resonant_steps_move_to_the_nearest_safe_one(self):
        # trajectories of 7 steps end before pi, of 15 after 2 pi: steps between 2 pi/15 and pi/7
        assert sampler.off_resonance(0.87) == pytest.approx(0.96 * 2 * math.pi / 7)
        assert sampler.off_resonance(0.445) == pytest.approx(1.07 * math.pi / 7)
        for step in (0.5, 0.6, 0.8, 1.35):
            assert sampler.off_resonance(step) == step

    def test_long_trees_take_their_shortest_step(self):
        for step, gradients in ((0.39, 15), (0.3, 15), (0.23, 15), (0.15, 31), (0.08, 63)):
            found = sampler.off_resonance(step)
            assert found == pytest.approx(1.07 * math.pi / gradients) and sampler.off_resonance(found) == found

    def test_steps_are_as_long_as_the_target_allows(self):
        few, many = TARGET, made((30, 200))
        assert few.longest < 0.5 and many.longest > 1.2
        for target in (few, few._replace(longest=0.3), few._replace(longest=2.5)):
            s = chains(target, chains=1)
            s.draw(0)
            step = math.exp(s.states[0]["adaptation"][1])
            assert step <= max(target.longest, sampler.off_resonance(target.longest)) * 1.001

    def test_adapted_steps_are_off_resonance_and_stay(self):
        s = chains(TARGET._replace(longest=1.25), chains=3, warmup=40)
        s.draw(1)
        steps = [math.exp(x["adaptation"][1]) for x in s.states]
        for step in steps:
            assert sampler.off_resonance(step) == pytest.approx(step, rel=1e-6)
        s.draw(30)
        assert steps == [math.exp(x["adaptation"][1]) for x in s.states]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder of traced programs, and none in memory."""
    sampler.preload()
    monkeypatch.setattr(sampler, "_folder", tmp_path)
    monkeypatch.setattr(sampler, "_programs", {})
    return tmp_path


class TestCaches:
    def test_damaged_programs_are_made_anew(self, cache, whole):
        np.testing.assert_array_equal(chains().draw(20).x, whole.x[:, :20])
        (file,) = (cache / "programs").iterdir()
        good = file.read_bytes()
        for bad in (b"", good[: len(good) // 2], b"x" * 100):
            file.write_bytes(bad)
            sampler._programs.clear()
            np.testing.assert_array_equal(chains().draw(20).x, whole.x[:, :20])
            assert len(file.read_bytes()) > 1000
        # from the file alone
        sampler._programs.clear()
        np.testing.assert_array_equal(chains().draw(20).x, whole.x[:, :20])

    def test_a_program_is_made_once(self, cache, monkeypatch):
        made_ = []
        traced = sampler._traced
        monkeypatch.setattr(sampler, "_traced", lambda *args: made_.append(1) or traced(*args))
        for _ in range(3):
            chains(chains=1).draw(5)
        assert made_ == [1]

    @pytest.mark.parametrize("folder", [None, "file"])
    def test_nothing_can_be_written(self, cache, monkeypatch, whole, folder):
        if folder:
            (cache / "programs").write_text("not a folder")
        else:
            monkeypatch.setattr(sampler, "_folder", None)
        np.testing.assert_array_equal(chains().draw(20).x, whole.x[:, :20])

    def test_cache_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert sampler.cache_folder() == tmp_path / "benchkit" and (tmp_path / "benchkit").is_dir()
        assert not list((tmp_path / "benchkit").iterdir())
        blocked = tmp_path / "file"
        blocked.write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
        assert sampler.cache_folder() is None
        # a relative path is ignored, as the XDG base directory specification says
        monkeypatch.setenv("XDG_CACHE_HOME", "here")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert sampler.cache_folder() == tmp_path / ".cache" / "benchkit"

    def test_names_cover_what_a_program_depends_on(self, cache):
        paths = set()
        key = sampler.Program("density", ((3,),), 3, False, False, 8)
        for other in (
            key,
            key._replace(shapes=((4,),)),
            key._replace(size=4),
            key._replace(double=True),
            key._replace(exact=True),
            key._replace(max_treedepth=9),
        ):
            path = sampler._path(other)
            assert isinstance(path, Path) and path == sampler._path(other)
            paths.add(path)
        assert len(paths) == 6

    def test_jax_is_on_the_cpu(self):
        jax = sampler.preload()
        assert jax.default_backend() == "cpu" and os.environ["JAX_PLATFORMS"] == "cpu"
        assert not jax.config.jax_disable_jit and not jax.config.jax_debug_nans
