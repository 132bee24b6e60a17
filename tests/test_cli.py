"""The interface: options, exit status, messages, signals, terminals. Most of it through the installed commands."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from argparse import Namespace
from pathlib import Path

import pytest
from conftest import BIN, COMMANDS, READS_PARAMETERS, SUBCOMMANDS, Shell

from benchkit import cli

ENV = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}")


def terminal(command: str, folder: Path, *, stdin: bytes = b"", columns: int = 100) -> tuple[int, str]:
    """Run a command with a terminal on all three ends; its exit status and what it printed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", command], ENV)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    if stdin:
        os.write(fd, stdin)
    out = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode(errors="replace")


class TestValues:
    def test_whole(self) -> None:
        parse = cli.whole(1, 9)
        assert parse("9") == 9
        for bad in ("0", "10", "1.5", "x", "", "nan", "1_0", " 1", "1 ", "٣", "3" * 5000):
            with pytest.raises(ValueError):
                parse(bad)
        assert cli.whole(0)(str(2**63 - 1)) == 2**63 - 1 and cli.whole(0)("+07") == 7
        for bad, text in (("9" * 20, "9{20} is too large"), ("-1", "-1 is below 0"), ("-" + "9" * 20, "is below 0")):
            with pytest.raises(ValueError, match=text):
                cli.whole(0)(bad)

    def test_number(self) -> None:
        assert cli.number(0)("0") == 0 and cli.number()("-1e3") == -1000
        assert [cli.number()(t) for t in ("5.", ".5", "+1E-2")] == [5, 0.5, 0.01]
        for bad in ("nan", "inf", "infinity", "-1", "x", "", "1_0", "1e1_0", "0.9_5", "٠.٩", " 1", "0x1", ".", "1e999"):
            with pytest.raises(ValueError):
                cli.number(0)(bad)
        with pytest.raises(ValueError, match=r"0.3 is not in 0.5..0.99"):
            cli.number(0.5, 0.99)("0.3")

    def test_fraction_keeps_its_decimals(self) -> None:
        assert cli.fraction(".95") == ".95"
        for bad in ("0", "1", "95", "-.5", "nan", "x", "", "0.9_5", "٠.٩", " .9"):
            with pytest.raises(ValueError):
                cli.fraction(bad)

    def test_thresholds_hold_at_equality_and_a_null_fails(self) -> None:
        assert cli.holds(None, None) and cli.holds(0.1, 0.1) and cli.holds(0.1, 0.8 - 0.7)
        assert not cli.holds(0.1, 0.1001) and not cli.holds(0.1, None) and not cli.holds(0.1, float("nan"))
        assert cli.holds(400, 400.0, at_least=True) and not cli.holds(400, 399.9, at_least=True)
        assert not cli.holds(0, None, at_least=True)

    @pytest.mark.parametrize(
        ("option", "limit", "value", "text"),
        (
            ("--max-x", 0.1, 0.16423, "--max-x 0.1 does not hold: x is 0.164"),
            ("--max-x", 0.1, 0.1000049, "--max-x 0.1 does not hold: x is 0.100005"),
            ("--max-x", 0.1004, 0.10049, "--max-x 0.1004 does not hold: x is 0.1005"),
            ("--min-x", 400, 399.96, "--min-x 400 does not hold: x is 399.96"),
            ("--max-x", 0, 3, "--max-x 0 does not hold: x is 3"),
            ("--max-x", 1, None, "--max-x 1 does not hold: x is undefined"),
            ("--max-x", 1, float("nan"), "--max-x 1 does not hold: x is undefined"),
            ("--max-x", 1, 1.0, ""),
            ("--max-x", None, None, ""),
        ),
    )
    @pytest.mark.parametrize("quiet", (False, True))
    def test_verdict(
        self, option: str, limit: float | None, value: float | None, text: str, quiet: bool,
        capfd: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        args = Namespace(command="bk-x", quiet=quiet, max_x=limit, min_x=limit)
        assert cli.verdict(args, (option, "x", value)) == bool(text)
        assert capfd.readouterr().err == (f"bk-x: {text}\n" if text and not quiet else "")

    def test_printable_keeps_one_line_and_no_control_character(self) -> None:
        assert cli.printable("naïve 模型") == "naïve 模型"
        assert cli.printable("a\nb\x1b[31m\t") == r"a\nb\x1b[31m\t"


@pytest.mark.parametrize("command", (*COMMANDS, *SUBCOMMANDS))
class TestEveryCommand:
    def test_help_and_version_need_nothing_heavy(self, command: str, sh: Shell) -> None:
        for module in ("numpy", "scipy", "polars", "pyarrow", "jax", "blackjax", "orjson"):
            (sh.folder / f"{module}.py").write_text("raise SystemExit('imported too early')\n")
        env = {"PYTHONPATH": str(sh.folder)}
        assert sh(f"{command} --help", env=env).out.startswith(b"usage: " + command.encode())
        assert sh(f"{command} -h", env=env).out == sh(f"{command} --help", env=env).out
        assert sh(f"{command} --version", env=env).out.startswith(command.encode() + b" (benchkit) ")
        assert sh(f"{command} -V > /dev/full", rc=2).err.startswith(command + ": cannot write")

    def test_a_wrong_call_is_one_line(self, command: str, sh: Shell) -> None:
        for call in ("--no-such-option", "--quie", "--to xml", "--from", "-o", "no-such-file", "-o nowhere/x ''"):
            done = sh(f"{command} {call}", rc=2)
            assert done.out == b"" and done.err.count("\n") == 1 and done.err.startswith(command + ": "), done

    def test_a_missing_file_is_found_before_anything_heavy(self, command: str, sh: Shell) -> None:
        (sh.folder / "pyarrow.py").write_text("raise SystemExit('imported too early')\n")
        done = sh(f"{command} no-such-file", rc=2, env={"PYTHONPATH": str(sh.folder)})
        assert done.err == f"{command}: no-such-file: no such file or directory\n"
        assert sh(f"{command} ''", rc=2).err == f"{command}: FILE is '': a file without a name\n"
        if command != "bk-matrix":
            assert sh(f"{command} .", rc=2).err == f"{command}: .: is a directory\n"

    def test_closed_ends(self, command: str, sh: Shell) -> None:
        assert "standard input is closed" in sh(f"{command} <&-", rc=2).err
        (sh.folder / "x").write_text("x\n")
        assert "standard output is closed" in sh(f"{command} x >&-", rc=2).err

    def test_without_input_on_a_terminal(self, command: str, tmp_path: Path) -> None:
        rc, out = terminal(command, tmp_path)
        assert rc == 2 and "no input: name a FILE" in out and out.count("\n") == 1

    def test_binary_is_refused_on_a_terminal(self, command: str, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("x\n")
        for to in ("arrow", "parquet"):
            rc, out = terminal(f"{command} x --to {to}", tmp_path)
            assert rc == 2 and "not for a terminal" in out
            for name in ("/dev/tty", "/dev/stdout", "/dev/fd/2"):
                rc, out = terminal(f"{command} x --to {to} -o {name}", tmp_path)
                assert rc == 2 and "not for a terminal" in out

    def test_options_out_of_range_are_found_before_anything_heavy(self, command: str, sh: Shell) -> None:
        (sh.folder / "x").write_text("x\n")
        (sh.folder / "pyarrow.py").write_text("raise SystemExit('imported too early')\n")
        for option, _ in re.findall(r"(--[a-z-]+) (N|K|P|X|SD|SCALE)\b", sh(f"{command} --help").out.decode()):
            for value in ("1_0", "٣", "", "nan", "9" * 400):
                done = sh(f"{command} {option} '{value}' x", rc=2, env={"PYTHONPATH": str(sh.folder)})
                assert done.err.startswith(f"{command}: {option}: ") and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "bk-matrix"])
class TestOtherFiles:
    def test_a_fifo_a_process_substitution_and_the_descriptor(self, command: str, sh: Shell, made: Path) -> None:
        table = made / ("fit.arrow" if command in READS_PARAMETERS else "responses.arrow")
        call = f"{command} -q -t json" + (" --method laplace" if command == "bk-irt" else "")
        want = sh(f"{call} {table}").out
        assert sh(f"{call} <(cat {table})").out == want
        assert sh(f"cat {table} | {call} /dev/stdin").out == want
        sh(f"mkfifo p; cat {table} > p & {call} p > out; wait $!")
        assert (sh.folder / "out").read_bytes() == want
        sh(f"(echo; cat {table}) > behind")
        assert sh(f"(read -r; {call} /dev/stdin) < behind").out == want


class TestTerminal:
    @pytest.mark.parametrize("call", ("bk-matrix responses.arrow", "bk-metrics fit.arrow", "bk-gaps fit.arrow",
                                      "bk-rank responses.arrow", "bk-signflip responses.arrow"))  # fmt: skip
    def test_a_table_by_default(self, call: str, made: Path) -> None:
        rc, out = terminal(call, made)
        assert rc == 0 and "{" not in out and len(out.splitlines()) > 4, out
        rc, piped = terminal(f"{call} -q | cat", made)
        assert rc == 0 and (call.startswith("bk-matrix") or piped.startswith("{")), piped

    @pytest.mark.parametrize("name", ("/dev/tty", "/dev/stdout"))
    def test_the_terminal_by_name(self, name: str, made: Path) -> None:
        rc, out = terminal(f"bk-rank -q responses.arrow -o {name}", made)
        assert rc == 0 and "{" not in out and "16 models ranked" in out

    def test_summaries_are_as_wide_as_the_terminal(self, made: Path) -> None:
        for columns in (50, 120):
            _, out = terminal("bk-rank responses.arrow", made, columns=columns)
            widths = [len(line) for line in out.replace("\r", "").split("\n\n")[0].splitlines()]
            assert columns - 30 < max(widths) <= columns

    def test_json_is_indented_on_a_terminal_only(self, made: Path) -> None:
        _, out = terminal("bk-rank responses.arrow --to json", made)
        assert '\n  "items": 15,' in out.replace("\r", "")
        _, out = terminal("bk-rank responses.arrow --to json | cat", made)
        assert out.startswith('{"items":15,')

    def test_identifiers_do_not_steer_the_terminal(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text('model,item,attempts,correct\n"a\x1b[2J",q,1,1\n"b\nc",q,1,0\n')
        rc, out = terminal("bk-rank x.csv", tmp_path)
        assert rc == 0 and "\x1b" not in out and r"a\x1b[2J" in out and r"b\nc" in out

    def test_progress_only_on_a_terminal(self, made: Path, sh: Shell) -> None:
        rc, out = terminal("bk-irt responses.arrow --draws 5000 -o p.arrow -q", made)
        assert rc == 0 and "bk-irt: sampling: " in out and "%" in out
        assert sh(f"bk-irt {made}/responses.arrow --draws 50 --warmup 50 -o p.arrow -q").err == ""


class TestSignals:
    def start(self, command: str, folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", f"exec {command}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=ENV, cwd=folder,
        )  # fmt: skip

    @pytest.mark.parametrize("number", (signal.SIGINT, signal.SIGTERM))
    def test_death_by_the_signal_itself_silently(self, number: signal.Signals, tmp_path: Path) -> None:
        p = self.start("bk-rank -o never.json", tmp_path)
        time.sleep(0.5)  # it has started, and waits for its input
        p.send_signal(number)
        out, err = p.communicate(timeout=20)
        assert p.returncode == -number and out == b"" and err == b""
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("command", (*COMMANDS, "bk-fill choose"))
    def test_an_interrupt_while_the_input_is_awaited(self, command: str, tmp_path: Path) -> None:
        """Whatever was imported before, SIGINT has its default action and is not held back."""
        p = self.start(command, tmp_path)
        bit = 1 << (signal.SIGINT - 1)
        for _ in range(200):  # until everything is imported: the interrupt is held back at first, then no more
            time.sleep(0.05)
            status = Path(f"/proc/{p.pid}/status").read_text()
            masks = {k: int(v, 16) for k, v in re.findall(r"^(Sig(?:Blk|Ign|Cgt)):\s*(\w+)$", status, re.M)}
            if "pyarrow" in Path(f"/proc/{p.pid}/maps").read_text() and not masks["SigBlk"] & bit:
                break
        assert not (masks["SigBlk"] | masks["SigIgn"] | masks["SigCgt"]) & bit
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=20)
        assert (p.returncode, out, err) == (-signal.SIGINT, b"", b"")

    def test_an_interrupt_at_any_moment_of_real_work(self, tmp_path: Path) -> None:
        rows = (f"m{k % 40},q{k // 40 % 5000},{k % 3 % 2}\n" for k in range(2_000_000))
        (tmp_path / "big.csv").write_text("model,item,score\n" + "".join(rows))
        start = time.monotonic()
        p = self.start("bk-matrix --duplicates attempt -o all.arrow big.csv", tmp_path)
        assert p.communicate(timeout=120) == (b"", b"") and p.returncode == 0
        whole = time.monotonic() - start
        for part in (0.3, 0.45, 0.6, 0.75, 0.9):
            p = self.start("bk-matrix --duplicates attempt -o out.arrow big.csv", tmp_path)
            time.sleep(part * whole)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=20)
            assert (out, err) == (b"", b"")
            if p.returncode == 0:  # it was quicker this time
                assert (tmp_path / "out.arrow").read_bytes() == (tmp_path / "all.arrow").read_bytes()
                (tmp_path / "out.arrow").unlink()
            else:
                assert p.returncode == -signal.SIGINT
        assert sorted(f.name for f in tmp_path.iterdir()) == ["all.arrow", "big.csv"]

    def test_a_reader_that_leaves(self, aime: Path, sh: Shell) -> None:
        wide = "model," + ",".join(f"q{k}" for k in range(2000)) + "\n"
        (sh.folder / "wide.csv").write_text(wide + "".join(f"m{i}," + ",".join("1" * 2000) + "\n" for i in range(40)))
        done = sh("bk-matrix wide.csv --to csv | head -c 1 > /dev/null", rc=141)
        assert done.err == ""

    @pytest.mark.parametrize("command", ("bk-matrix", "bk-rank"))
    def test_ignored_interrupts_stay_ignored(self, command: str, tmp_path: Path) -> None:
        """What a shell starts in the background with '&' must not die of the terminal's Ctrl-C."""
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            f"import os; os.execvp('{command}', ['{command}'])\n"
        )
        p = subprocess.Popen([BIN / "python", "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        for _ in range(4):
            time.sleep(0.4)
            p.send_signal(signal.SIGINT)
        _, err = p.communicate(b"", timeout=20)
        assert p.returncode == 2 and b"empty input" in err


class TestInternalErrors:
    SCRIPT = (
        "from benchkit import cli\n"
        "parser = cli.Parser('bk-x', 'summary', default='json'); parser.common()\n"
        "def main(args): raise {error}\n"
        "cli.run(parser, main)\n"
    )

    @pytest.mark.parametrize(
        ("error", "text"),
        (
            ("ValueError('a\\nb')", "bk-x: internal error: ValueError: a b (-v shows where)"),
            ("MemoryError()", "bk-x: out of memory"),
            ("cli.InputError('broken')", "bk-x: <stdin>: broken"),
            ("cli.InputError('broken', where='x.csv')", "bk-x: x.csv: broken"),
            ("cli.InputError('broken', where='')", "bk-x: broken"),
        ),
    )
    def test_one_line_and_exit_2(self, error: str, text: str, tmp_path: Path) -> None:
        (tmp_path / "x.py").write_text(self.SCRIPT.replace("{error}", error))
        p = subprocess.run([BIN / "python", "x.py"], input=b"", capture_output=True, cwd=tmp_path)
        assert (p.returncode, p.stdout, p.stderr.decode()) == (2, b"", text + "\n")

    def test_verbose_shows_the_traceback(self, tmp_path: Path) -> None:
        (tmp_path / "x.py").write_text(self.SCRIPT.replace("{error}", "ValueError('a')"))
        p = subprocess.run([BIN / "python", "x.py", "-v"], input=b"", capture_output=True, cwd=tmp_path)
        assert p.returncode == 2 and b"Traceback" in p.stderr and b"in main" in p.stderr
