"""Golden pipelines: tests/cases/NAME/cmd is run in a copy of its folder; `out`, `err` and `rc` must come out.

A missing `err` means nothing on stderr, a missing `rc` means 0. AIME in a cmd is the path of aime2025_I.csv. To write
the expected files anew after a change that is meant: BENCHKIT_GOLDEN=write python -m pytest tests/test_cases.py, and
read the difference.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Shell

CASES = sorted(p.parent for p in (Path(__file__).parent / "cases").glob("*/cmd"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_case(case: Path, tmp_path: Path, aime: Path) -> None:
    folder = tmp_path / "case"
    shutil.copytree(case, folder)
    done = Shell(folder)((case / "cmd").read_text(), rc=None, env={"AIME": str(aime)})
    got = {"out": done.out.decode(), "err": done.err.replace(str(aime), "AIME"), "rc": f"{done.rc}\n"}
    if os.environ.get("BENCHKIT_GOLDEN") == "write":
        for name, text in got.items():
            if text not in ("", "0\n") or name == "out":
                (case / name).write_text(text)
            else:
                (case / name).unlink(missing_ok=True)
    for name, text in got.items():
        path = case / name
        want = path.read_text() if path.exists() else {"rc": "0\n"}.get(name, "")
        assert text == want, name


def test_there_are_cases() -> None:
    assert len(CASES) >= 10
