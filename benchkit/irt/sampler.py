"""Chains of NUTS on the whitened posterior: JAX's settings, the two caches and the threads.

One program per padded shape, precision and tree depth is traced once in its life: its portable form (``jax.export``)
is kept in the cache folder beside XLA's compiled code, so that a later run needs neither BlackJAX's import nor
tracing nor compilation. Chains do not share state: each is a thread that calls the same single-device program, so
that the bytes depend neither on the number of cores nor on the number of chains run beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.irt.model import Array

# NUTS steps that one call of the compiled program may take
BLOCK = 64

# radians: three such steps turn a trajectory of N(0, I) round, and its draws are anticorrelated the most; longer ones
# come back to where they began, however well they keep the energy
LONGEST = 1.25


class Target(NamedTuple):
    """A posterior in whitened coordinates z, as the sampler takes it.

    density: the module of benchkit.irt that has ``log_density`` and ``parameters``, functions of (z, constants, exact).
    constants: a NamedTuple of float64 arrays. mask (D,): 1 for the entries of z that are parameters, 0 for padding.
    exact: passed on. double: whether to work in float64. longest: the longest step, radians.
    """

    density: str
    constants: Any
    mask: Array
    exact: bool
    double: bool
    longest: float = LONGEST


class Chains(NamedTuple):
    """Draws and the sampler's own record, chains x draws first.

    x (chains, draws, P) float32: the parameters in the density's order, without padding.
    energy (chains, draws). divergent, saturated (chains, draws) bool. gradients (chains, draws) int32.
    """

    x: NDArray[np.float32]
    energy: Array
    divergent: NDArray[np.bool_]
    saturated: NDArray[np.bool_]
    gradients: NDArray[np.int32]


Progress = Callable[[int, int], None]


def cache_folder() -> Path | None:
    """$XDG_CACHE_HOME/benchkit or ~/.cache/benchkit, made if need be; None where nothing can be written there."""
    try:
        root = os.environ.get("XDG_CACHE_HOME") or ""
        base = Path(root) if Path(root).is_absolute() else Path.home() / ".cache"
        folder = base / "benchkit"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):
        return None


def _processor() -> str:
    """A short name of the processor's features: compiled code from another one in a shared home could crash."""
    import platform

    features = platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(features.encode()).hexdigest()[:8]


_lock = threading.Lock()
_jax: Any = None
_folder: Path | None = None


def preload() -> Any:
    """Set up and import JAX (about half a second); safe to call early, from any thread, and more than once.

    What the environment says to JAX's other users (a GPU, no compilation, checks for NaN) is put aside: the fit runs
    compiled and on the CPU. XLA_FLAGS stays. Returns the jax module.
    """
    global _jax, _folder
    with _lock:
        if _jax is not None:
            return _jax
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        flags = os.environ.get("XLA_FLAGS", "")
        # one thread a chain: results must not depend on how XLA splits a matrix product over the cores
        if "xla_cpu_multi_thread_eigen" not in flags:
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jax
            import jax.export

        logging.getLogger("jax").setLevel(logging.ERROR)
        for switch in ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs", "jax_log_compiles"):
            jax.config.update(switch, False)
        _folder = cache_folder()
        if _folder is not None:
            jax.config.update("jax_compilation_cache_dir", str(_folder / f"xla-{_processor()}"))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        _jax = jax
        return jax


@contextlib.contextmanager
def _precision(double: bool) -> Iterator[None]:
    switch: Any = getattr(preload(), "enable_x64", None)
    if switch is None:  # before jax 0.8
        from jax import experimental

        switch = experimental.enable_x64
    with switch(double):
        yield


class Program(NamedTuple):
    """What a compiled program depends on: the density, its constants' shapes, precision, map and largest tree."""

    density: str
    shapes: tuple[tuple[int, ...], ...]
    size: int
    double: bool
    exact: bool
    max_treedepth: int


_programs: dict[Program, Any] = {}
_compiling = threading.Lock()


def compiled(target: Target, max_treedepth: int) -> Any:
    """The compiled program for one target's shapes: from memory, else from the caches, else traced anew."""
    shapes = tuple(x.shape for x in target.constants)
    key = Program(target.density, shapes, target.mask.size, target.double, target.exact, max_treedepth)
    with _compiling:
        if key not in _programs:
            jax = preload()
            with warnings.catch_warnings(), _precision(key.double):
                warnings.simplefilter("ignore")
                specs = _specs(key)
                exported = _stored(key) or _traced(key, type(target.constants), specs)
                _programs[key] = jax.jit(exported.call).lower(*specs).compile()
    return _programs[key]


def _specs(key: Program) -> tuple[Any, ...]:
    jax = preload()
    real = np.float64 if key.double else np.float32

    def real_(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, real)

    whole = jax.ShapeDtypeStruct((), np.int32)
    words = jax.ShapeDtypeStruct((2,), np.uint32)
    state = (real_(key.size), real_(5), words, real_(BLOCK, key.size), whole, whole, whole, real_(), real_())
    return (*(real_(*shape) for shape in key.shapes), *state)


def _path(key: Program) -> Path | None:
    """Where the traced program is kept: its name covers everything that it was made from."""
    if _folder is None:
        return None
    from importlib import metadata  # takes longer to load than the rest of this module, which every fit imports

    parts = [metadata.version(name) for name in ("jax", "jaxlib", "blackjax")]
    parts += [
        (Path(__file__).parent / f"{name}.py").read_text()
        for name in (key.density, key.density.replace("density", "geometry"), "density", "nuts", "geometry", "sampler")
    ]
    return _folder / "programs" / f"{hashlib.sha256(repr((key, parts)).encode()).hexdigest()}.stablehlo"


def _stored(key: Program) -> Any:
    path = _path(key)
    try:
        return preload().export.deserialize(bytearray(path.read_bytes())) if path else None
    except Exception:  # a missing, cut or foreign file: trace anew
        return None


def _traced(key: Program, constants: Any, specs: tuple[Any, ...]) -> Any:
    jax = preload()
    from benchkit.irt import nuts

    density = importlib.import_module(f"benchkit.irt.{key.density}")
    fields = len(key.shapes)

    def advance(*args: Any) -> Any:
        known = constants(*args[:fields])
        z, adaptation, block = nuts.advance(
            lambda z: density.log_density(z, known, key.exact),
            lambda z: density.parameters(z, known, key.exact),
            *args[fields:],
            max_treedepth=key.max_treedepth,
        )
        return z, adaptation, tuple(block)

    exported = jax.export.export(jax.jit(advance), platforms=["cpu"])(*specs)
    try:
        raw = bytes(exported.serialize())
    except ImportError:  # jax.export needs flatbuffers to write
        return exported
    path = _path(key)
    if path is not None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as f:
                f.write(raw)
            Path(f.name).replace(path)
    # run what a later process will run
    return jax.export.deserialize(bytearray(raw))


def off_resonance(step: float) -> float:
    """The step size near the one adapted that serves NUTS's doubling.

    On a whitened posterior every direction turns after time pi, and trajectories last (2^k - 1) steps. If one of them
    ends just before pi and the next one after 2 pi, neither sees a U-turn and the tree grows for nothing.

    Trees of 15 steps or more, which thousands of parameters need, take the shortest step of their kind, for no gradient
    more. A draw at angle t from the last one has z^2 correlated by the mean of cos(t)^2, which is least around pi/2: at
    the end of a trajectory of pi scales mix twice as well as of 1.4 pi, and with them the worst R-hat of so many.
    """
    for k in range(1, 12):
        low, high = 0.96 * 2 * np.pi / (2 ** (k + 1) - 1), 1.07 * np.pi / (2**k - 1)
        if step >= high:
            return float(high if k >= 4 else step)
        if low < step:
            return float(low if k < 3 and step * step < low * high else high)
    return step


class Sampler:
    """Chains of one target, which may go on: each call of ``draw`` continues where the last one stopped.

    Chain k depends on (seed, k) only, and not on how its draws are asked for.
    """

    def __init__(
        self, target: Target, *, chains: int, warmup: int, target_accept: float, max_treedepth: int, seed: int
    ) -> None:
        self.warmup, self.target_accept = warmup, target_accept
        jax = preload()
        self.program = compiled(target, max_treedepth)
        self.double, self.real = target.double, np.float64 if target.double else np.float32
        self.longest = target.longest
        self.kept = np.flatnonzero(target.mask)
        cells = max(x.size for x in target.constants)
        self.block = max(4, min(BLOCK, 4_000_000 // cells))  # short enough to stop and to report in between
        with _precision(self.double):
            self.constants = [jax.device_put(x.astype(self.real)) for x in target.constants]
        # about where the adaptation ends
        first = np.log(min(1.1, target.longest, 1.1 * (self.kept.size / 1000) ** -0.3))
        self.states: list[dict[str, Any]] = []
        for k in range(chains):
            seeds = np.random.SeedSequence([seed, k])
            rng = np.random.default_rng(seeds)
            z = np.zeros(target.mask.size, self.real)
            z[self.kept] = rng.standard_normal(self.kept.size)
            adaptation = np.array([first, 0.0, 1.0, 0.0, np.log(1.5) + first], self.real)
            momenta = np.zeros((BLOCK, target.mask.size), self.real)
            state = {"z": z, "adaptation": adaptation, "key": seeds.generate_state(2, np.uint32), "rng": rng}
            self.states.append(state | {"step": 0, "momenta": momenta})

    def draw(self, draws: int, progress: Progress | None = None) -> Chains:
        """The next ``draws`` draws of each chain, after the warm-up that adapts the step size in the first call.

        progress(done, total) is called from the caller's thread; it counts steps of this call.
        """
        chains = len(self.states)
        start = self.states[0]["step"]
        end = max(start, self.warmup) + draws
        out = Chains(
            np.empty((chains, draws, self.kept.size), np.float32),
            np.empty((chains, draws)),
            np.empty((chains, draws), bool),
            np.empty((chains, draws), bool),
            np.empty((chains, draws), np.int32),
        )
        news, stop = threading.Event(), threading.Event()

        def run(k: int) -> None:
            while self.states[k]["step"] < end and not stop.is_set():
                self._advance(k, end, out)
                news.set()

        with ThreadPoolExecutor(max_workers=min(chains, 2 * (os.cpu_count() or 1))) as pool:
            futures = [pool.submit(run, k) for k in range(chains)]
            try:
                while not all(f.done() for f in futures):
                    news.wait(0.05)
                    news.clear()
                    if progress is not None:
                        progress(sum(s["step"] - start for s in self.states), chains * (end - start))
                for f in futures:
                    f.result()
            finally:
                stop.set()
        return out

    def _advance(self, k: int, end: int, out: Chains) -> None:
        """One call of the program for chain k; blocks end where warm-up ends."""
        state = self.states[k]
        start, warm = state["step"], state["step"] < self.warmup
        count = min(self.block, (self.warmup if warm else end) - start)
        state["momenta"][:count, self.kept] = state["rng"].standard_normal((count, self.kept.size), self.real)
        steps = np.int32(start), np.int32(count), np.int32(self.warmup)
        limits = self.real(self.target_accept), self.real(self.longest)
        with _precision(self.double):
            state["z"], adaptation, block = self.program(
                *self.constants, state["z"], state["adaptation"], state["key"], state["momenta"], *steps, *limits
            )
        state["adaptation"] = adaptation = np.array(adaptation)
        state["step"] = start + count
        if state["step"] == self.warmup and self.longest >= LONGEST:  # with few parameters trees are too uneven
            adaptation[1] = np.log(off_resonance(float(np.exp(adaptation[1]))))
        if not warm:
            at = out.energy.shape[1] - (end - start)
            part = slice(at, at + count)
            values = [np.asarray(x)[:count] for x in block]
            out.x[k, part] = values[0][:, self.kept]
            out.energy[k, part] = values[1]
            out.divergent[k, part], out.saturated[k, part], out.gradients[k, part] = values[2:]
