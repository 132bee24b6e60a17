"""Shared by the tests: the installed commands, run as people run them, and small tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the commands do; before numpy is imported
settings.register_profile("plain", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plain")

DATA = Path(__file__).parent / "data"
BIN = Path(sys.executable).parent
COMMANDS = ("bk-matrix", "bk-irt", "bk-metrics", "bk-gaps", "bk-rank", "bk-signflip")
SUBCOMMANDS = ("bk-fill requests", "bk-fill collect", "bk-fill choose")
READS_RESPONSES = ("bk-irt", "bk-rank", "bk-signflip")
READS_PARAMETERS = ("bk-metrics", "bk-gaps")


class Done(NamedTuple):
    rc: int
    out: bytes
    err: str


class Shell:
    """Runs bash pipelines under pipefail in a folder of its own, with the installed commands first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, command: str, stdin: bytes = b"", rc: int | None = 0, env: dict[str, str] | None = None) -> Done:
        if "jq " in command and not shutil.which("jq"):
            pytest.skip("needs jq")
        environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", COLUMNS="80", **(env or {}))
        environment.pop("SHELL", None)  # as under cron: `split --filter` and the like then call sh
        p = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            input=stdin,
            capture_output=True,
            env=environment,
            cwd=self.folder,
            timeout=300,
        )
        err = p.stderr.decode(errors="replace")
        assert "Traceback" not in err, err
        assert rc is None or p.returncode == rc, f"`{command}` exited {p.returncode}, wanted {rc}: {err[-500:]}"
        return Done(p.returncode, p.stdout, err)


@pytest.fixture
def sh(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def aime() -> Path:
    """16 models x 15 AIME 2025 I problems x 4 attempts, from the MathArena site (MIT)."""
    return DATA / "aime2025_I.csv"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, aime: Path) -> Path:
    """A folder with responses.arrow and, by the Laplace method, fit.arrow."""
    folder = tmp_path_factory.mktemp("made")
    sh = Shell(folder)
    sh(f"bk-matrix {aime} -o responses.arrow && bk-irt --method laplace responses.arrow -o fit.arrow")
    return folder


@pytest.fixture(scope="module")
def jax64() -> Iterator[Any]:
    """JAX in float64."""
    from benchkit.irt import sampler

    jax = sampler.preload()
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)
