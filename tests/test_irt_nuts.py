"""NUTS with the rotation integrator: what it must leave alone, and BlackJAX's own kernel beside it."""

import math

import numpy as np
import pytest


@pytest.fixture
def jax(jax64):
    return jax64


def normal(z):
    return -0.5 * z @ z


def banana(z):
    """x ~ N(0, 1), y | x ~ N((x^2 - 1)/2, .7)."""
    return -0.5 * z[0] ** 2 - 0.5 * ((z[1] - 0.5 * (z[0] ** 2 - 1)) / 0.7) ** 2


def begin(jax, density, z, p):
    from blackjax.mcmc.integrators import IntegratorState

    value, gradient = jax.value_and_grad(density)(z)
    return IntegratorState(z, p, value, gradient)


def energy(state):
    return float(-state.logdensity + 0.5 * state.momentum @ state.momentum)


class TestIntegrator:
    @pytest.mark.parametrize("size", [0.1, 1.0, 3.0, 50.0])
    def test_exact_on_a_standard_normal(self, jax, size):
        from benchkit.irt.nuts import rotation

        z, p = jax.numpy.array([1.0, -2.0, 0.3]), jax.numpy.array([0.2, 0.5, -1.5])
        after = rotation(normal)(begin(jax, normal, z, p), size)
        np.testing.assert_allclose(after.position, z * math.cos(size) + p * math.sin(size), atol=1e-12)
        np.testing.assert_allclose(after.momentum, p * math.cos(size) - z * math.sin(size), atol=1e-12)

    def test_reversible(self, jax):
        from benchkit.irt.nuts import rotation

        step = rotation(banana)
        start = begin(jax, banana, jax.numpy.array([0.7, -0.4]), jax.numpy.array([1.1, 0.6]))
        state = start
        for _ in range(5):
            state = step(state, 0.4)
        assert abs(energy(state) - energy(start)) > 1e-3
        state = state._replace(momentum=-state.momentum)
        for _ in range(5):
            state = step(state, 0.4)
        np.testing.assert_allclose(state.position, start.position, atol=1e-10)
        np.testing.assert_allclose(state.momentum, -start.momentum, atol=1e-10)
        # a step back is a step of negative size
        back = step(step(start, 0.4), -0.4)
        np.testing.assert_allclose(back.position, start.position, atol=1e-12)

    def test_keeps_volume(self, jax):
        from benchkit.irt.nuts import rotation

        step = rotation(banana)

        def move(x):
            after = step(begin(jax, banana, x[:2], x[2:]), 0.6)
            return jax.numpy.concatenate([after.position, after.momentum])

        slope = jax.jit(jax.jacfwd(move))
        for seed in range(5):
            x = np.random.default_rng(seed).normal(size=4)
            assert np.linalg.det(slope(x)) == pytest.approx(1, abs=1e-10)

    def test_second_order(self, jax):
        from benchkit.irt.nuts import rotation

        step = jax.jit(rotation(banana))
        start = begin(jax, banana, jax.numpy.array([0.7, -0.4]), jax.numpy.array([1.1, 0.6]))

        def end(count):
            state = start
            for _ in range(count):
                state = step(state, 1.0 / count)
            return np.concatenate([state.position, state.momentum])

        best = end(1024)
        errors = [np.abs(end(count) - best).max() for count in (8, 16, 32)]
        assert 3.6 < errors[0] / errors[1] < 4.4 and 3.6 < errors[1] / errors[2] < 4.4


class TestTurns:
    def test_criterion_is_blackjaxs(self, jax):
        from blackjax.mcmc.metrics import default_metric

        from benchkit.irt.nuts import _is_turning

        check = default_metric(jax.numpy.ones(3)).check_turning
        seen = set()
        for seed in range(60):
            left, right, total = np.random.default_rng(seed).normal(size=(3, 3))
            seen.add(bool(_is_turning(left, right, total)))
            assert bool(check(left, right, total)) == bool(_is_turning(left, right, total))
        assert seen == {False, True}

    def test_checkpoints_decide_as_blackjaxs(self, jax):
        """Random walks of momenta, leaf after leaf: the same leaves close a turning subtree."""
        from blackjax.mcmc.hmc import HMCState
        from blackjax.mcmc.termination import iterative_uturn_numpyro

        from benchkit.irt.nuts import _checkpoints, _is_turning

        depth, leaves = 6, 64
        new, keep, turning = _checkpoints(depth)
        theirs_new, theirs_keep, theirs_turning = iterative_uturn_numpyro(_is_turning)

        def run(momenta):
            zero = jax.numpy.zeros(4)

            def leaf(carry, i):
                ours, theirs, total = carry
                total = total + momenta[i]
                ours = keep(ours, total, momenta[i], i)
                theirs = theirs_keep(theirs, total, momenta[i], i)
                same = (ours.idx_min == theirs.idx_min) & (ours.idx_max == theirs.idx_max)
                decisions = turning(ours, total, momenta[i]), theirs_turning(theirs, total, momenta[i])
                return (ours, theirs, total), (*decisions, same)

            start = (new(zero), theirs_new(HMCState(zero, 0.0, zero), depth), zero)
            return jax.lax.scan(leaf, start, jax.numpy.arange(leaves))[1]

        run = jax.jit(run)
        turned = 0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            # a slow turn and noise: some walks turn early, some late
            angle = rng.uniform(0, 0.2) * np.arange(leaves)[:, None]
            momenta = np.cos(angle + rng.uniform(0, 6, 4)) + rng.uniform(0, 0.7) * rng.normal(size=(leaves, 4))
            ours, theirs, same = (np.asarray(x) for x in run(jax.numpy.asarray(momenta)))
            np.testing.assert_array_equal(ours, theirs)
            assert same[1::2].all()
            turned += ours.sum()
        assert 50 < turned < 40 * leaves - 50


class TestReference:
    @pytest.mark.parametrize("size", [0.15, 0.6, 1.3])
    def test_transitions_are_those_of_blackjaxs_kernel(self, jax, size):
        """The same keys, momenta and integrator: the same trajectories, bit for bit or nearly so."""
        from blackjax.mcmc import hmc, nuts
        from blackjax.mcmc.metrics import default_metric

        from benchkit.irt.nuts import rotation, transition

        metric = default_metric(jax.numpy.ones(2))
        kernel = nuts.build_kernel(lambda density, _: rotation(density))

        def both(key, z):
            state = hmc.init(z, banana)
            theirs, info = kernel(key, state, banana, size, metric, 6)
            for_momentum, for_tree = jax.random.split(key)
            momentum = metric.sample_momentum(for_momentum, z)
            ours, row = transition(banana, for_tree, state, momentum, size, 6)
            return ours.position, row, theirs.position, info

        both = jax.jit(both)
        lengths = set()
        for seed in range(30):
            key = jax.random.key(seed)
            z = jax.random.normal(jax.random.fold_in(key, 1), (2,))
            ours, row, theirs, info = both(key, z)
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
            assert int(row.gradients) == int(info.num_integration_steps)
            assert float(row.x) == pytest.approx(float(info.acceptance_rate), abs=1e-12)
            assert float(row.energy) == pytest.approx(float(info.energy), abs=1e-12)
            assert bool(row.divergent) == bool(info.is_divergent)
            lengths.add(int(row.gradients))
        assert len(lengths) > 1


def moved(jax, density, z, steps, size, depth=6):
    """Rows of z (chains, D), each after ``steps`` transitions of its own."""
    from blackjax.mcmc import hmc

    from benchkit.irt.nuts import transition

    def one(z, key):
        value, gradient = jax.value_and_grad(density)(z)

        def go(state, key):
            a, b = jax.random.split(key)
            state, row = transition(density, a, state, jax.random.normal(b, z.shape), size, depth)
            return state, row

        state, rows = jax.lax.scan(go, hmc.HMCState(z, value, gradient), jax.random.split(key, steps))
        return state.position, rows

    keys = jax.random.split(jax.random.key(1), len(z))
    x, rows = jax.jit(jax.vmap(one))(jax.numpy.asarray(z), keys)
    return np.asarray(x), rows


class TestCoverage:
    """Draws from the target are still draws from the target after some transitions."""

    @pytest.mark.parametrize("size", [0.4, 1.35])
    def test_a_standard_normal_stays(self, jax, size):
        z = np.random.default_rng(0).normal(size=(20_000, 3))
        x, rows = moved(jax, normal, z, 3, size)
        assert np.abs(x.mean(0)).max() < 4.5 / math.sqrt(len(x))
        assert np.abs(np.cov(x.T) - np.eye(3)).max() < 4.5 * math.sqrt(2 / len(x))
        assert np.asarray(rows.x).min() == pytest.approx(1)  # no energy is lost
        assert abs(np.corrcoef(x[:, 0], z[:, 0])[0, 1]) < 0.6

    @pytest.mark.parametrize("size", [0.3, 0.9, 1.35])
    def test_a_bent_target_stays(self, jax, size):
        rng = np.random.default_rng(0)
        x = rng.normal(size=20_000)
        start = np.stack([x, 0.5 * (x * x - 1) + 0.7 * rng.normal(size=len(x))], axis=1)
        end, rows = moved(jax, banana, start, 4, size)
        x, noise = end[:, 0], (end[:, 1] - 0.5 * (end[:, 0] ** 2 - 1)) / 0.7
        for name, values, wanted, sd in (
            ("x", x, 0, 1),
            ("x^2", x**2, 1, math.sqrt(2)),
            ("x^3", x**3, 0, math.sqrt(15)),
            ("noise", noise, 0, 1),
            ("noise^2", noise**2, 1, math.sqrt(2)),
            ("x noise", x * noise, 0, 1),
            ("x^2 noise", x**2 * noise, 0, math.sqrt(3)),
            ("tail", np.abs(x) > 2, 0.0455003, math.sqrt(0.0455003 * 0.9544997)),
        ):
            assert abs(values.mean() - wanted) < 4.5 * sd / math.sqrt(len(x)), name
        # the step is long enough for rejections to matter
        if size > 0.5:
            assert np.asarray(rows.x).mean() < 0.97

    def test_a_wall_is_a_divergence_and_never_crossed(self, jax):
        def half(z):
            return jax.numpy.where(z[0] > -0.5, normal(z), jax.numpy.nan)

        z = np.abs(np.random.default_rng(0).normal(size=(2000, 2)))
        x, rows = moved(jax, half, z, 5, 0.8)
        assert np.isfinite(x).all() and x[:, 0].min() > -0.5
        assert np.asarray(rows.divergent).any()


class TestAdaptation:
    def advance(self, jax, density, start, count, z, adaptation, momenta, warmup=60, longest=1.25):
        from benchkit.irt.nuts import advance

        whole = np.int32
        key, momenta = jax.numpy.array([1, 2], "uint32"), jax.numpy.asarray(momenta)
        return advance(
            density,
            lambda z: z,
            z,
            adaptation,
            key,
            momenta,
            whole(start),
            whole(count),
            whole(warmup),
            0.8,
            longest,
            max_treedepth=5,
        )

    @pytest.mark.parametrize(("longest", "gradients"), [(1.25, 3), (0.48, 7)])
    def test_step_is_never_longer_than_asked(self, jax, longest, gradients):
        momenta = np.random.default_rng(0).normal(size=(64, 5))
        adaptation = jax.numpy.array([0.1, 0.0, 1.0, 0.0, math.log(1.5) + 0.1])
        _, adaptation, out = self.advance(jax, normal, 0, 60, jax.numpy.zeros(5), adaptation, momenta, longest=longest)
        assert math.exp(adaptation[1]) == pytest.approx(longest, rel=1e-2)
        assert math.exp(adaptation[0]) <= longest + 1e-6
        taken = np.asarray(out.gradients)
        assert (taken[3:60] == gradients).mean() > 0.8 and (taken[60:] == 0).all()

    def test_step_shrinks_until_the_target_acceptance(self, jax):
        momenta = np.random.default_rng(0).normal(size=(400, 2))
        adaptation = jax.numpy.array([0.3, 0.0, 1.0, 0.0, math.log(1.5) + 0.3])
        sharp = lambda z: banana(z * jax.numpy.array([1.0, 4.0]))  # noqa: E731
        z, adaptation, _ = self.advance(jax, sharp, 0, 400, jax.numpy.zeros(2), adaptation, momenta, warmup=400)
        assert 0.1 < math.exp(adaptation[1]) < 0.7
        # after the warm-up it stays
        _, after, _ = self.advance(jax, sharp, 400, 30, z, adaptation, momenta, warmup=400)
        np.testing.assert_array_equal(after, adaptation)
