"""The man pages say what the programs do: options and defaults, columns, JSON keys, and every example.

A literal block of a page whose first line starts with ``$ `` is a session: lines with ``$ `` (continued by ``> ``) are
run, the others are what they print. A block that starts with ``# NAME`` is the file NAME. The blocks of one page share
a folder, which holds aime2025_I.csv.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import COMMANDS, Shell

from benchkit.tables import TABLES

ROOT = Path(__file__).parent.parent
MAN = ROOT / "man"
PAGES = sorted(MAN.glob("*.[1-9]"))
INLINE = {"Ar", "Cm", "Em", "Ev", "Fl", "Nm", "No", "Ns", "Pa", "Pq", "Ql", "Ta", "Va", "Vt", "Xr"}
ROFF = {
    r"\e": "\\",
    r"\-": "-",
    r"\(aq": "'",
    r"\(ga": "`",
    r"\(ha": "^",
    r"\(ti": "~",
    r"\&": "",
}

paged = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
commanded = pytest.mark.parametrize("command", COMMANDS)


def plain(source: str) -> str:
    """Running text of mdoc lines: macro names and requests dropped, punctuation back at its word."""
    words: list[str] = []
    for line in source.splitlines():
        if not line.startswith("."):
            words += line.split()
            continue
        dash = False
        for word in line[1:].split()[1 if line[1:].split()[0] not in INLINE else 0 :]:
            if word in INLINE:
                dash = word == "Fl"
            else:
                words.append(f"-{word}" if dash and not word.startswith((".", ",")) else word)
                dash = False
    return re.sub(r"\s+([.,:;])(?=\s|$)", r"\1", " ".join(words))


def literal(line: str) -> str:
    return re.sub(r"\\(?:\(..|.)", lambda m: ROFF[m[0]], line)


def blocks(page: Path) -> Iterator[list[str]]:
    """The literal blocks of a page, as the reader sees them."""
    for body in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", page.read_text(), flags=re.M | re.S):
        yield [literal(line) for line in body.splitlines()]


def section(page: Path, title: str) -> str:
    found = re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", page.read_text(), flags=re.M | re.S)
    assert found, f"{page.name} has no section {title}"
    return found[1]


def page_options(page: Path) -> dict[str, tuple[str, str]]:
    """Option -> (its argument, the text of its item)."""
    out = {}
    for head, body in re.findall(r"^\.It (Fl .*)\n((?:(?!\.It |\.El).*\n)*)", section(page, "OPTIONS"), flags=re.M):
        for name in head.split(" , "):
            flag, _, argument = name.removeprefix("Fl ").partition(" Ar ")
            assert f"-{flag}" not in out, f"{page.name}: -{flag} stands twice"
            out[f"-{flag}"] = (argument, body)
    return out


def help_options(text: str) -> dict[str, tuple[str, str]]:
    """Option -> (its argument, its help on one line)."""
    out: dict[str, tuple[str, str]] = {}
    for head, more in re.findall(r"^  (-.*)\n((?: {10,}.*\n)*)", text, flags=re.M):
        names, _, rest = head.partition("  ")
        said = " ".join((rest + " " + more).split())
        for name in names.split(", "):
            flag, _, argument = name.partition(" ")
            out[flag] = (argument, said)
    return out


def keys(value: Any) -> Iterator[str]:
    """Every key of a document, however deep."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from objects(part)


DRAWN = """kind,id,mean,sd,lower,upper,boundary,draws
item,a,-1,1,-3,1,true,"[-1,-2,0]"
item,b,0,1,-2,2,false,"[0,1,-1]"
item,c,2,1,0,4,false,"[2,3,2]"
model,m,0,1,-2,2,false,"[0,0,1]"
"""
WHOLE = (
    DRAWN.replace("[", "[0.5,")
    + """hyper,mu_b,0,1,-2,2,,"[0.5,0,0,1]"
hyper,sigma_b,1,1,0,2,,"[0.5,2,2,1]"
"""
)
LACKING = "model,item,attempts,correct\nA,x,2,2\nA,y,2,0\nB,x,2,1\nB,y,2,1\nC,x,2,2\n"
# Fractions without a common denominator on too many items to count the patterns: p is drawn.
UNEVEN = "model,item,attempts,correct\n" + "".join(
    f"A,{j},1,{(j * 0.6180339887498949) % 1}\nB,{j},1,{(j * 0.4142135623730951) % 1}\n" for j in range(1, 61)
)
CLUSTERED = "model,item,attempts,correct,cluster\nA,x,2,2,p\nA,y,2,0,p\nB,x,2,1,p\nB,y,2,1,p\n"
FIT = "kind,id,mean,sd,lower,upper,draws\n" + "".join(
    f'{kind},{name},{int(name == "y")},1,-2,2,"[0,1,-1]"\n'
    for kind, names in (("item", "xy"), ("model", "ABC"))
    for name in names
)
RUNS = {
    "bk-matrix": ("responses.arrow --to json", "lacking.csv --to json", "--diagnose responses.arrow",
                  "--diagnose lacking.csv"),
    "bk-irt": ("--method laplace lacking.csv --to json", "--method laplace --stability lacking.csv --to json",
               "--anchor whole.csv new.csv --to json", "--draws 8 --warmup 20 lacking.csv --keep-draws --to json",
               "--draws 40 --warmup 20 --loo lacking.csv --to json",
               "--model 2pl --method laplace lacking.csv --to json"),
    "bk-metrics": ("fit.arrow", "drawn.csv", "drawn.csv fit.arrow", "drawn_fit.csv --pairs lacking.csv"),
    "bk-gaps": ("fit.arrow", "fit.arrow --normalize rank --wider .1 --suggest 2",
                "drawn.csv --wider .1 --suggest 2 --improvement .9,.1 --attempts 2",
                "drawn.csv --improvement .9,.9"),
    "bk-rank": ("responses.arrow", "lacking.csv --missing bounds", "lacking.csv --missing common",
                "clustered.csv --method signflip", "lacking.csv --missing impute --fit drawn_fit.csv"),
    "bk-signflip": ("responses.arrow --attempts", "lacking.csv --all --plan .1 --margin .1", "uneven.csv"),
}  # fmt: skip


@pytest.fixture(scope="module")
def documents(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What each command writes as JSON, in several situations."""
    folder = tmp_path_factory.mktemp("documents")
    for name in ("responses.arrow", "fit.arrow"):
        shutil.copy(made / name, folder)
    (folder / "drawn.csv").write_text(DRAWN)
    (folder / "whole.csv").write_text(WHOLE)
    (folder / "new.csv").write_text("model,item,attempts,correct\nm,x,2,1\n")
    (folder / "lacking.csv").write_text(LACKING)
    (folder / "uneven.csv").write_text(UNEVEN)
    (folder / "clustered.csv").write_text(CLUSTERED)
    (folder / "drawn_fit.csv").write_text(FIT)
    sh = Shell(folder)
    return {c: [json.loads(sh(f"{c} -q {arguments}").out) for arguments in runs] for c, runs in RUNS.items()}


class TestOptions:
    @commanded
    def test_help_and_page_have_the_same_options(self, sh: Shell, command: str) -> None:
        helped = help_options(sh(f"{command} --help").out.decode())
        described = page_options(MAN / f"{command}.1")
        assert len(helped) > 10
        assert {k: v[0] for k, v in helped.items()} == {k: v[0] for k, v in described.items()}

    @commanded
    def test_help_and_page_have_the_same_order(self, sh: Shell, command: str) -> None:
        assert list(help_options(sh(f"{command} --help").out.decode())) == list(page_options(MAN / f"{command}.1"))

    @commanded
    def test_defaults_are_the_same(self, sh: Shell, command: str) -> None:
        described = page_options(MAN / f"{command}.1")
        compared = 0
        for name, (_, text) in help_options(sh(f"{command} --help").out.decode()).items():
            stated = re.search(r"\(default:? ([^;)]+)|([\w-]+) \(default\)", text)
            if stated:
                value = stated[1] or stated[2]
                said = plain(described[name][1])
                assert re.search(rf"default is {re.escape(value)}(?=[.,:;]?(\s|$))", said), (name, value, said)
                compared += 1
        assert compared

    @commanded
    def test_every_choice_is_named(self, sh: Shell, command: str) -> None:
        for name, (argument, body) in page_options(MAN / f"{command}.1").items():
            if argument:
                refused = sh(f"{command} {name} '?' --version", rc=None).err
                choices = re.search(r"choose from (.*?)\)", refused)
                for choice in choices[1].replace("'", "").split(", ") if choices else []:
                    assert re.search(rf"^\.Cm .*(?<![\w-]){choice}(?![\w-])", body, flags=re.M), (name, choice)


class TestTables:
    @pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
    def test_every_column_is_described_with_its_type(self, table: Any) -> None:
        text = (MAN / "benchkit.5").read_text()
        part = re.search(rf"^\.Ss {table.name}\n(.*?)^\.Ss ", text, flags=re.M | re.S)
        assert part and f".Ql {table.tag} ." in part[1] and f".Xr {table.maker} 1" in text
        described = {}
        for names, kind in re.findall(r"^\.It Va (.*) Pq (.*)$", part[1], flags=re.M):
            described.update(dict.fromkeys(names.split(" , "), kind))
        assert described == {c.name: c.type + (", required" if c.required else "") for c in table.columns}

    def test_no_table_is_left_out(self) -> None:
        described = re.findall(r"^\.Ql (\w+/\d+) \.$", (MAN / "benchkit.5").read_text(), flags=re.M)
        assert described == [t.tag for t in TABLES]


class TestKeys:
    @commanded
    def test_every_key_is_on_the_command_s_page(self, documents: dict[str, list[dict[str, Any]]], command: str) -> None:
        output = section(MAN / f"{command}.1", "OUTPUT")
        marked = set(re.findall(r"\w+", " ".join(re.findall(r"^\.(?:It )?Va (.*)$", output, flags=re.M))))
        found = {k for d in documents[command] for k in keys({k: v for k, v in d.items() if k != "history"})}
        reasons = {k for k in found if k.endswith("_reason") and k.removesuffix("_reason") in found}
        assert found - reasons <= marked
        assert not reasons or "_reason" in output

    @commanded
    def test_no_key_is_made_up(self, documents: dict[str, list[dict[str, Any]]], command: str) -> None:
        output = section(MAN / f"{command}.1", "OUTPUT")
        heads = {k for line in re.findall(r"^\.It Va (.*)$", output, flags=re.M) for k in re.findall(r"\w+", line)}
        assert heads <= {k for d in documents[command] for k in keys(d)}

    @pytest.mark.parametrize("command", [*COMMANDS, "bk-matrix --diagnose"])
    def test_every_key_is_in_the_overview_in_order(
        self, documents: dict[str, list[dict[str, Any]]], command: str
    ) -> None:
        name, _, flag = command.partition(" --")
        head = rf"\.It Xr {name} 1" + (rf" Fl -{flag}" if flag else "")
        part = re.search(rf"^{head}\n\.Bd .*\n((?:(?!\.Ed).*\n)*)", (MAN / "benchkit.5").read_text(), flags=re.M)
        assert part
        overview = re.findall(r"\w+", part[1])
        mine = [d for d in documents[name] if ("n_cells" in d) == bool(flag)]
        assert mine
        for document in mine:
            shown = {k: v for k, v in document.items() if k != "history"}
            for one in objects(shown):
                rest = iter(overview)
                wanted = [k for k in one if not k.endswith("_reason")]
                assert all(k in rest for k in wanted), (command, wanted, overview)

    def test_history_entries(self, documents: dict[str, list[dict[str, Any]]]) -> None:
        entry = documents["bk-gaps"][0]["history"][-1]
        shown = next(b for b in blocks(MAN / "benchkit.5") if b[0].startswith('{"cmd"'))
        assert re.findall(r'"(\w+)"', shown[0]) == list(entry)


class TestExamples:
    @paged
    def test_every_example_prints_what_the_page_says(self, sh: Shell, aime: Path, page: Path) -> None:
        shutil.copy(aime, sh.folder)
        script, wanted = "", []
        for block in blocks(page):
            if re.fullmatch(r"# \w+", block[0]):
                (sh.folder / block[0][2:]).write_text("\n".join(block) + "\n")
            if not block[0].startswith("$ "):
                continue
            for line in block:
                if line.startswith("$ "):
                    wanted.append((line[2:], ""))
                elif line.startswith("> "):
                    wanted[-1] = (wanted[-1][0] + "\n" + line[2:], wanted[-1][1])
                else:
                    wanted[-1] = (wanted[-1][0], wanted[-1][1] + line + "\n")
        assert wanted, "a page without examples"
        tools = {t for t in ("jq", "make") if any(re.search(rf"(^|\s){t}\s", c) for c, _ in wanted)}
        if absent := [t for t in tools if not shutil.which(t)]:
            pytest.skip(f"needs {', '.join(absent)}")
        for command, _ in wanted:
            script += f"{command}\n{{ rc_=$?; printf '\\001\\n'; (exit $rc_); }}\n"
        (sh.folder / ".session").write_text(script)
        printed = sh("bash .session 2>&1", rc=None).out.decode().split("\1\n")
        assert [(c, p) for (c, _), p in zip(wanted, printed, strict=False)] == wanted

    def test_commands_that_are_not_examples_exist(self) -> None:
        """Commands named within the text are commands with options that they have."""
        for page in PAGES:
            for command, option in re.findall(r"\.Ql (bk-\w+) (--[\w-]+)", page.read_text()):
                assert option in page_options(MAN / f"{command}.1"), (page.name, command, option)


class TestForm:
    @paged
    def test_mandoc_has_nothing_to_say(self, page: Path) -> None:
        if not shutil.which("mandoc"):
            pytest.skip("needs mandoc")
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True)
        assert (done.stdout, done.returncode) == ("", 0)

    @paged
    def test_cross_references_lead_to_pages(self, page: Path) -> None:
        ours = {p.name for p in PAGES}
        found = re.findall(r"Xr ((?:bk-|benchkit)\S*) (\d)", page.read_text())
        assert found and {f"{name}.{number}" for name, number in found} <= ours
        named = {f"{n}.{k}" for n, k in re.findall(r"^\.Xr (\S+) (\d)", section(page, "SEE ALSO"), flags=re.M)}
        assert ours - {page.name} <= named

    @paged
    def test_sections(self, page: Path) -> None:
        titles = re.findall(r"^\.Sh (.*)$", page.read_text(), flags=re.M)
        if page.suffix == ".1":
            body = [t for t in titles if t != "ENVIRONMENT"]
            assert body == [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "OPTIONS",
                "OUTPUT",
                "EXIT STATUS",
                "EXAMPLES",
                "SEE ALSO",
            ]

    def test_every_page_is_installed(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
        assert shared == {f"man/{p.name}": f"share/man/man{p.suffix[1:]}/{p.name}" for p in PAGES}
        assert {p.stem for p in PAGES} == {*COMMANDS, "bk-fill", "benchkit"}
