"""The text tables of all commands: they fit a terminal, and say in a line what matters."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Shell

from benchkit.text import width

CALLS = (
    "bk-matrix responses.arrow",
    "bk-matrix --diagnose responses.arrow",
    "bk-irt --method laplace responses.arrow",
    "bk-irt --draws 60 --warmup 60 responses.arrow",
    "bk-metrics fit.arrow",
    "bk-gaps fit.arrow",
    "bk-rank responses.arrow",
    "bk-signflip responses.arrow",
    "bk-signflip --attempts responses.arrow",
)


@pytest.fixture
def at(made: Path) -> Shell:
    return Shell(made)


class TestForm:
    @pytest.mark.parametrize("call", CALLS)
    def test_80_columns_hold_models_of_29_and_items_of_14_letters(self, call: str, at: Shell) -> None:
        lines = at(f"{call} -q -t table").out.decode().splitlines()
        assert len(lines) > 5 and max(map(width, lines)) <= 80
        assert all(line == line.rstrip() for line in lines)

    def test_posterior_intervals_fit_too(self, at: Shell) -> None:
        call = "bk-irt --draws 60 --warmup 60 -q --keep-draws responses.arrow | bk-metrics -q -t table"
        lines = at(call).out.decode().splitlines()
        assert max(map(width, lines)) <= 80 and lines[-4].split()[-2:] == ["lower", "upper"]

    def test_natural_order(self, sh: Shell) -> None:
        keys = [(m, q) for m in ("m1", "m2", "m10") for q in ("q1", "q2", "q10")]
        text = "model,item,attempts,correct\n" + "".join(f"{m},{q},3,{len(m + q) % 3}\n" for m, q in keys)
        (sh.folder / "x.csv").write_text(text)
        lines = sh("bk-matrix x.csv -t table").out.decode().split("\n\n")[1].splitlines()[1:]
        assert [tuple(line.split()[:2]) for line in lines] == keys
        lines = sh("bk-irt --method laplace x.csv -q -t table").out.decode().split("\n\n")[1].splitlines()[1:]
        ids = [line.lstrip("* ").split()[1] for line in lines]
        assert ids == ["mu_b", "sigma_b", "sigma_theta", "q1", "q2", "q10", "m1", "m2", "m10"]


class TestLength:
    @pytest.mark.parametrize(("items", "shown", "said"), [(40, 40, None), (41, 40, "1 row"), (1240, 40, "1200 rows")])
    def test_of_many_rows_the_first(self, sh: Shell, items: int, shown: int, said: str | None) -> None:
        lines = [f"m,q{k},1,1" for k in range(items)]
        text = "\n".join(["model,item,attempts,correct", *lines]) + "\n"
        head, rows = sh("bk-matrix -t table", stdin=text.encode()).out.decode().split("\n\n")
        assert [row.split()[1] for row in rows.splitlines()[1:]] == [f"q{k}" for k in range(shown)]
        assert head.splitlines()[1:] == ([f"the other {said}: --to csv"] if said else [])

    def test_many_items_without_a_star(self, sh: Shell) -> None:
        text = "model,item,attempts,correct\n" + "".join(f"m,q{k},1,1\n" for k in range(41))
        assert "\n41 items: --to csv\n" in sh("bk-matrix --diagnose -q -t table", stdin=text.encode()).out.decode()


class TestContent:
    def test_stars(self, at: Shell) -> None:
        def starred(call: str, column: int) -> list[str]:
            rows = at(f"{call} -q -t table").out.decode().split("\n\n")[1].splitlines()
            return [line.split()[column] for line in rows if line.startswith("*")]

        assert starred("bk-irt --method laplace responses.arrow", 2) == ["aime_2025_I_15"]
        assert starred("bk-rank responses.arrow", 1) == ["o3-mini", "o1", "o3-mini"]
        assert len(starred("bk-signflip responses.arrow", 1)) == 6
        assert starred("bk-metrics fit.arrow", 1) == ["max", "top-5"]

    def test_nothing_to_list(self, sh: Shell) -> None:
        done = sh("bk-rank -q -t table", stdin=b"model,item,attempts,correct\na,q,1,1\nb,r,1,1\n")
        lines = done.out.decode().splitlines()
        assert "* could be first: none" in lines and all(line == line.rstrip() for line in lines)

    def test_undefined_metrics(self, sh: Shell) -> None:
        text = b"kind,id,mean,sd,lower,upper\nitem,a,1,1,0,2\nitem,b,1,1,0,2\n"
        assert b"DDM" in sh("bk-metrics -q -t table", stdin=text).out
        assert sh("bk-gaps -q -t table", stdin=text).out == b"2 items, difficulties normalised by minmax\n"
