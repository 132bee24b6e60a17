"""The interface: options, exit status, messages, signals, terminals. Most of it through the installed commands."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from conftest import BIN, COMMANDS, Shell

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
        for bad in ("0", "10", "1.5", "x", "", "nan"):
            with pytest.raises(ValueError):
                parse(bad)

    def test_number(self) -> None:
        assert cli.number(0)("0") == 0 and cli.number()("-1e3") == -1000
        for bad in ("nan", "inf", "-1", "x", ""):
            with pytest.raises(ValueError):
                cli.number(0)(bad)
        with pytest.raises(ValueError, match=r"0.3 is not in 0.5..0.99"):
            cli.number(0.5, 0.99)("0.3")

    def test_fraction_keeps_its_decimals(self) -> None:
        assert cli.fraction(".95") == ".95"
        for bad in ("0", "1", "95", "-.5", "nan", "x", ""):
            with pytest.raises(ValueError):
                cli.fraction(bad)

    def test_thresholds_hold_at_equality_and_a_null_fails(self) -> None:
        assert cli.holds(None, None) and cli.holds(0.1, 0.1) and cli.holds(0.1, 0.8 - 0.7)
        assert not cli.holds(0.1, 0.1001) and not cli.holds(0.1, None) and not cli.holds(0.1, float("nan"))
        assert cli.holds(400, 400.0, at_least=True) and not cli.holds(400, 399.9, at_least=True)
        assert not cli.holds(0, None, at_least=True)

    def test_printable_keeps_one_line_and_no_control_character(self) -> None:
        assert cli.printable("naïve 模型") == "naïve 模型"
        assert cli.printable("a\nb\x1b[31m\t") == r"a\nb\x1b[31m\t"


@pytest.mark.parametrize("command", COMMANDS)
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


class TestTerminal:
    @pytest.mark.parametrize("call", ("bk-matrix responses.arrow", "bk-metrics fit.arrow", "bk-gaps fit.arrow",
                                      "bk-rank responses.arrow", "bk-signflip responses.arrow"))  # fmt: skip
    def test_a_table_by_default(self, call: str, made: Path) -> None:
        rc, out = terminal(call, made)
        assert rc == 0 and "{" not in out and len(out.splitlines()) > 4, out
        rc, piped = terminal(f"{call} -q | cat", made)
        assert rc == 0 and (call.startswith("bk-matrix") or piped.startswith("{")), piped

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
        rc, out = terminal("bk-irt responses.arrow --draws 50 --warmup 50 -o p.arrow -q", made)
        assert rc == 0 and "sampling [" in out
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

    def test_a_reader_that_leaves(self, aime: Path, sh: Shell) -> None:
        wide = "model," + ",".join(f"q{k}" for k in range(2000)) + "\n"
        (sh.folder / "wide.csv").write_text(wide + "".join(f"m{i}," + ",".join("1" * 2000) + "\n" for i in range(40)))
        done = sh("bk-matrix wide.csv --to csv | head -c 1 > /dev/null", rc=141)
        assert done.err == ""

    def test_a_signal_while_the_output_is_written_leaves_nothing(self, tmp_path: Path) -> None:
        code = (
            "import os, signal; from benchkit import cli, wire\n"
            "cli.write_all = lambda fd, data: os.kill(os.getpid(), signal.SIGTERM)\n"
            "wire.emit('x', b'data')\n"
        )
        p = subprocess.run([BIN / "python", "-c", code], cwd=tmp_path, capture_output=True)
        assert p.returncode == -signal.SIGTERM and list(tmp_path.iterdir()) == []

    def test_ignored_interrupts_stay_ignored(self, tmp_path: Path) -> None:
        """What a shell starts in the background with '&' must not die of the terminal's Ctrl-C."""
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "import os; os.execvp('bk-rank', ['bk-rank'])\n"
        )
        p = subprocess.Popen([BIN / "python", "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        time.sleep(0.5)
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
