"""The statistics modules import arrays and nothing else: no tables, no command line, no sampler, no scipy.stats."""

import importlib.util
import subprocess
import sys

import pytest

BLOCKED = ("pyarrow", "polars", "jax", "argparse", "scipy.stats")
MODULES = (
    "benchkit.attempt_flips",
    "benchkit.best_set",
    "benchkit.certificate",
    "benchkit.coverage",
    "benchkit.detection",
    "benchkit.diagnosis",
    "benchkit.difficulty",
    "benchkit.discrimination",
    "benchkit.estimators",
    "benchkit.fill.answer",
    "benchkit.fill.choice",
    "benchkit.fill.copies",
    "benchkit.fill.ids",
    "benchkit.fill.lines",
    "benchkit.fill.plan",
    "benchkit.fill.prompt",
    "benchkit.fill.replies",
    "benchkit.fill.scale",
    "benchkit.fill.votes",
    "benchkit.fisher",
    "benchkit.flags",
    "benchkit.flips",
    "benchkit.gaps",
    "benchkit.identical",
    "benchkit.imputation",
    "benchkit.intervals",
    "benchkit.inversions",
    "benchkit.irt.anchor",
    "benchkit.irt.conditional",
    "benchkit.irt.conditional_beta",
    "benchkit.irt.laplace",
    "benchkit.irt.stability",
    "benchkit.levels",
    "benchkit.maxt",
    "benchkit.metrics",
    "benchkit.multiplicity",
    "benchkit.pairs",
    "benchkit.pairwise",
    "benchkit.posterior",
    "benchkit.power",
    "benchkit.rank_intervals",
    "benchkit.ranks",
    "benchkit.rerun",
    "benchkit.resampling",
    "benchkit.scores",
    "benchkit.signflip",
    "benchkit.simultaneous",
    "benchkit.spread",
    "benchkit.suggestion",
    "benchkit.targets",
    "benchkit.wider",
)

# numpy.testing and friends are not imported; numpy itself may look for argparse only inside its f2py.
SCRIPT = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        for blocked in {blocked!r}:
            if name == blocked or name.startswith(blocked + "."):
                raise ImportError("blocked: " + name)
        return None

sys.meta_path.insert(0, Blocker())
importlib.import_module({module!r})
"""


def imports(module: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(blocked=BLOCKED, module=module)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class TestPurity:
    @pytest.mark.parametrize("module", [m for m in MODULES if exists(m)])
    def test_imports_under_the_blocker(self, module):
        done = imports(module)
        assert done.returncode == 0, done.stderr.strip().splitlines()[-1]

    @pytest.mark.parametrize("module", BLOCKED)
    def test_the_blocker_blocks(self, module):
        done = imports(module)
        assert done.returncode != 0 and f"blocked: {module.split('.')[0]}" in done.stderr
