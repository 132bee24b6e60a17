"""Sign-flip p-values beside R's: perm.test of exactRankTests, and binom.test as the exact McNemar test.

`reference/perm_test.R` makes the file and says how perm.test defines its p, which is as benchkit does.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from benchkit.flips import ALTERNATIVES, sign_flip
from benchkit.scores import Differences

SETS = json.loads((Path(__file__).parent / "data" / "perm_test.json").read_text())["sets"]
SINGLE = [name for name, s in SETS.items() if s["mcnemar"]]

# relative: both count in float64, R's binomial densities go through Loader's saddle-point expansion
PERM_TEST, BINOM_TEST = 1e-14, 1e-13


def ours(name: str, side: str) -> float:
    d = np.array([SETS[name]["d"]], dtype=np.int64)
    return float(sign_flip(Differences(d, np.zeros(1, dtype=np.int64)), side).p[0])


@pytest.mark.parametrize("side", ALTERNATIVES)
@pytest.mark.parametrize("name", SETS)
def test_perm_test(name, side):
    assert ours(name, side) == pytest.approx(SETS[name]["perm_test"][side], rel=PERM_TEST, abs=0)


@pytest.mark.parametrize("side", ALTERNATIVES)
@pytest.mark.parametrize("name", SINGLE)
def test_mcnemar(name, side):
    assert ours(name, side) == pytest.approx(SETS[name]["mcnemar"][side], rel=BINOM_TEST, abs=0)


def test_the_file_covers_the_cases():
    """Zeros, ties, sum 0, both signs, single attempts, hundreds of terms and p from 1 down to 1e-30."""
    p = [SETS[name]["perm_test"]["two-sided"] for name in SETS]
    assert min(p) < 1e-30 and max(p) == 1 and sum(0.01 < x < 0.2 for x in p) >= 4
    assert {"maize", "all_zero", "zeros", "ties", "balanced"} <= SETS.keys() and len(SINGLE) >= 6
    assert max(np.count_nonzero(s["d"]) for s in SETS.values()) > 700
