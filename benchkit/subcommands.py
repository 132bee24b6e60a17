"""A command with subcommands: ``bk-x SUB [OPTION...] [FILE]``. Standard library only, like `cli`."""

from __future__ import annotations

import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from benchkit import __version__, cli, output
from benchkit.errors import InputError

Part = tuple[cli.Parser, Callable[[Namespace], int]]


class Front:
    """What answers where no subcommand is named: --help, --version, and the message for a wrong call."""

    def __init__(self, command: str, summary: str, parts: Mapping[str, Part]) -> None:
        self.prog, self.summary, self.parts = command, summary, parts

    def help(self) -> str:
        """The subcommands, each with what it does."""
        wide = max(map(len, self.parts)) + 4
        lines = [f"usage: {self.prog} SUBCOMMAND [OPTION...] [FILE]", "", *textwrap.wrap(self.summary, 79), "",
                 "subcommands:"]  # fmt: skip
        for name, (parser, _) in self.parts.items():
            about = textwrap.wrap(" ".join((parser.description or "").split()), 79 - wide)
            lines += [f"  {name:{wide - 2}}{about[0]}", *(" " * wide + line for line in about[1:])]
        lines += ["", f"'{self.prog} SUBCOMMAND --help' has the options of each; -V prints the version.",
                  f"See {self.prog}(1), and benchkit(7) for formats, exit status and recipes."]  # fmt: skip
        return "".join(line + "\n" for line in lines)

    def read_args(self, argv: Sequence[str]) -> NoReturn:
        """Print what was asked for and leave; raise InputError for any other call."""
        first = argv[0] if argv else None
        if first in ("-h", "--help", "-V", "--version"):
            text = self.help() if first in ("-h", "--help") else f"{self.prog} (benchkit) {__version__}\n"
            output.write_all(1, text.encode())
            sys.exit(cli.OK)
        known = ", ".join(self.parts)
        wrong = "a subcommand is needed" if first is None else f"'{first}' is no subcommand"
        raise InputError(f"{wrong}: {known} (see {self.prog} --help)", where="")


def run(command: str, summary: str, parts: Mapping[str, Part]) -> NoReturn:
    """Run the subcommand that the first argument names, by its parser and main, and leave the process."""
    part = parts.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if part:
        cli.run(*part, sys.argv[2:])
    cli.run(Front(command, summary, parts), lambda _: cli.FAILED, sys.argv[1:])
