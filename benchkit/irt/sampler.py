"""Chains of NUTS on the whitened posterior: JAX's settings, the two caches and the threads.

One program per padded shape, precision and tree depth is traced once in its life: its portable form (``jax.export``)
is kept in the cache folder beside XLA's compiled code, so that a later run needs neither BlackJAX's import nor
tracing nor compilation. Chains do not share state: each is a thread that calls the same single-device program, so
that the bytes depend neither on the number of cores nor on the number of chains run beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchkit.irt.geometry import BLOCK, KNOTS, LIMIT_SINGLE, Geometry, H, wants_exact
from benchkit.irt.model import Array


class Chains(NamedTuple):
    """Draws and the sampler's own record, chains x draws first.

    x (chains, draws, 3 + S + L) float32: mu_b, sigma_u, sigma_v, u, v, in logits, without padding.
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
    """What a compiled program depends on: padded sizes, precision, kind of map, largest tree."""

    size_u: int
    size_v: int
    double: bool
    exact: bool
    max_treedepth: int


_programs: dict[Program, Any] = {}
_compiling = threading.Lock()


def compiled(key: Program) -> Any:
    """The compiled ``program.advance`` for one padded shape: from memory, else from the caches, else traced anew."""
    with _compiling:
        if key not in _programs:
            jax = preload()
            with warnings.catch_warnings(), _precision(key.double):
                warnings.simplefilter("ignore")
                specs = _specs(key.size_u, key.size_v, key.double)
                exported = _stored(key) or _traced(key, specs)
                _programs[key] = jax.jit(exported.call).lower(*specs).compile()
    return _programs[key]


def _specs(size_u: int, size_v: int, double: bool) -> tuple[Any, ...]:
    jax = preload()
    real = np.float64 if double else np.float32

    def real_(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, real)

    u, v, uv = real_(size_u), real_(size_v), real_(size_u, size_v)
    curve = real_(KNOTS - 1, 4)
    geo = Geometry(real_(len(H)), curve, curve, u, u, u, u, u, u, v, v, v, v, v, v, real_(size_u, size_u), uv, uv)
    whole = jax.ShapeDtypeStruct((), np.int32)
    key = jax.ShapeDtypeStruct((2,), np.uint32)
    return (*geo, real_(3 + size_u + size_v), real_(5), key, whole, whole, whole, real_())


def _path(key: Program) -> Path | None:
    """Where the traced program is kept: its name covers everything that it was made from."""
    if _folder is None:
        return None
    parts = [metadata.version(name) for name in ("jax", "jaxlib", "blackjax")]
    parts += [(Path(__file__).parent / f"{name}.py").read_text() for name in ("program", "geometry", "sampler")]
    return _folder / "programs" / f"{hashlib.sha256(repr((key, parts)).encode()).hexdigest()}.stablehlo"


def _stored(key: Program) -> Any:
    path = _path(key)
    try:
        return preload().export.deserialize(bytearray(path.read_bytes())) if path else None
    except Exception:  # a missing, cut or foreign file: trace anew
        return None


def _traced(key: Program, specs: tuple[Any, ...]) -> Any:
    jax = preload()
    from benchkit.irt import program

    fields = len(Geometry._fields)

    def advance(*args: Any) -> Any:
        z, adaptation, block = program.advance(
            Geometry(*args[:fields]), *args[fields:], exact=key.exact, max_treedepth=key.max_treedepth
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


def needs_double(geo: Geometry) -> bool:
    """Whether to work in float64: where it costs nothing, where values may be extreme, where float32 loses the energy.

    Float32's rounding error is about 2^-24 sqrt(sum of squares of the columns' log likelihoods); the limit is 0.02.
    """
    if geo.v0.size <= 64 and wants_exact(geo):
        return True
    scales = dict(zip(H, geo.h.tolist(), strict=True))
    extreme = max(float(np.abs(geo.u0).max()), float(np.abs(geo.v0).max()), 4 * scales["s_u"], 4 * scales["s_v"])
    if extreme + 2 * scales["s_mu"] > LIMIT_SINGLE:
        return True
    columns = np.abs(geo.ref) + np.abs(geo.y_v * geo.v0)
    return float(2.0**-24 * np.sqrt((columns**2).sum())) > 0.02


def off_resonance(step: float) -> float:
    """The nearest step size that NUTS's doubling does not resonate with.

    On a whitened posterior every direction turns after time pi, and trajectories last (2^k - 1) steps. If one of them
    ends just before pi and the next one after 2 pi, neither sees a U-turn and the tree grows for nothing.
    """
    for k in range(1, 12):
        low, high = 0.96 * 2 * np.pi / (2 ** (k + 1) - 1), 1.07 * np.pi / (2**k - 1)
        if low < step < high:
            return float(low if step * step < low * high else high)
    return step


def sample(
    geo: Geometry,
    *,
    chains: int,
    warmup: int,
    draws: int,
    target_accept: float,
    max_treedepth: int,
    seed: int,
    double: bool | None = None,
    progress: Progress | None = None,
) -> Chains:
    """Run the chains: ``warmup`` steps that adapt the step size, then ``draws`` that are kept.

    Chain k depends on (seed, k) only. progress(done, total) is called from the caller's thread.
    """
    jax = preload()
    double = needs_double(geo) if double is None else double
    real = np.float64 if double else np.float32
    size_u, size_v = geo.u0.size, geo.v0.size
    program = compiled(Program(size_u, size_v, double, wants_exact(geo), max_treedepth))
    kept = np.flatnonzero(np.concatenate([np.ones(3), geo.mask_u, geo.mask_v]))
    total = warmup + draws
    out = Chains(
        np.empty((chains, draws, kept.size), np.float32),
        np.empty((chains, draws)),
        np.empty((chains, draws), bool),
        np.empty((chains, draws), bool),
        np.empty((chains, draws), np.int32),
    )
    size = max(4, min(BLOCK, 4_000_000 // geo.n.size))  # short enough to stop and to report in between
    done = [0] * chains
    news = threading.Event()
    stop = threading.Event()
    # where the adaptation ends on whitened posteriors of 30 to 40,000 parameters, within a tenth
    first = np.log(1.55 * kept.size**-0.25)
    with _precision(double):
        constants = [jax.device_put(x.astype(real)) for x in geo]

    def run(k: int) -> None:
        seeds = np.random.SeedSequence([seed, k])
        key = seeds.generate_state(2, np.uint32)
        z = np.zeros(3 + size_u + size_v, real)
        z[kept] = np.random.default_rng(seeds).standard_normal(kept.size)
        adaptation = np.array([first, 0.0, 1.0, 0.0, np.log(1.5) + first], real)
        with _precision(double):
            start = 0
            while start < total and not stop.is_set():
                # blocks end where warm-up ends
                count = min(size, (warmup if start < warmup else total) - start)
                steps = (np.int32(start), np.int32(count), np.int32(warmup), real(target_accept))
                z, adaptation, block = program(*constants, z, adaptation, key, *steps)
                start += count
                if start <= warmup:
                    adaptation = np.array(adaptation)
                    if start == warmup:
                        adaptation[1] = np.log(off_resonance(float(np.exp(adaptation[1]))))
                else:
                    at = start - count - warmup
                    values = [np.asarray(part)[:count] for part in block]
                    out.x[k, at : at + count] = values[0][:, kept]
                    out.energy[k, at : at + count] = values[1]
                    out.divergent[k, at : at + count], out.saturated[k, at : at + count] = values[2:4]
                    out.gradients[k, at : at + count] = values[4]
                done[k] = start
                news.set()

    with ThreadPoolExecutor(max_workers=min(chains, 2 * (os.cpu_count() or 1))) as pool:
        futures = [pool.submit(run, k) for k in range(chains)]
        try:
            while not all(f.done() for f in futures):
                news.wait(0.05)
                news.clear()
                if progress is not None:
                    progress(sum(done), chains * total)
            for f in futures:
                f.result()
        finally:
            stop.set()
    return out
