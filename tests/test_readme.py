"""The README's console session is run, line by line, and prints what the README says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import Shell

README = Path(__file__).parent.parent / "README.md"
NUMBER = re.compile(r"-?\d+\.\d+")


def session() -> list[tuple[str, str]]:
    """The commands of the console blocks, each with its output."""
    text = "".join(re.findall(r"^```console\n(.*?)^```", README.read_text(), re.M | re.S))
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    return [(command, out) for command, _, out in (p.partition("\n") for p in parts)]


def test_the_worked_pipeline(sh: Shell, aime: Path) -> None:
    """Words agree exactly; numbers within .02, since a sampler's last digits differ from one processor to another."""
    shutil.copy(aime, sh.folder)
    commands = session()
    assert len(commands) == 5
    for command, want in commands:
        done = sh(command)
        assert done.err == ""
        got = done.out.decode()
        assert re.split(r"\s+", NUMBER.sub("#", got)) == re.split(r"\s+", NUMBER.sub("#", want)), command
        for a, b in zip(NUMBER.findall(got), NUMBER.findall(want), strict=True):
            assert float(a) == pytest.approx(float(b), abs=0.02, rel=0.02), command


def test_the_claims_below_it(sh: Shell, aime: Path) -> None:
    done = sh(f"bk-signflip {aime} | jq -c '[.family_size, .significant] + [.pairs[] | select(.model_b == "
              "\"QwQ-32B-Preview\") | .significant, (.difference * 100 | round)]'")  # fmt: skip
    assert done.out == b"[15,6,false,43]\n"


def test_the_model_that_skips_the_hardest_problems(sh: Shell, aime: Path) -> None:
    name = "DeepSeek-R1-Distill-Llama-70B"
    sh(f"grep -vE '{name},aime_2025_I_(07|1[0345])' {aime} | bk-matrix -q -o cut.arrow; bk-irt -q cut.arrow -o f.arrow")
    place = f"jq '.models[] | select(.model == \"{name}\") | .rank'"
    assert sh(f"bk-rank -q {aime} | {place}").out == b"8\n"
    assert sh(f"bk-rank -q cut.arrow --missing common | {place}").out == b"7\n"
    assert sh(f"bk-rank -q cut.arrow --missing impute --fit f.arrow | {place}").out in (b"7\n", b"8\n")
    plain = sh(
        "bk-rank -q cut.arrow | jq '.excluded[0].score_on_own_items as $s | [.models[] | select(.score > $s)] | length'"
    )
    assert plain.out == b"2\n"


def test_both_set_up_commands_are_there() -> None:
    text = README.read_text()
    assert "make demo" in text and "make test" in text
