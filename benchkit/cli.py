"""What every command's interface has in common: options, exit status, messages, signals, terminal rules, progress.

Standard library only, so that ``--help`` answers before anything heavy is imported. A command is

    parser = cli.Parser("bk-x", "what it does", ...)
    cli.run(parser, main)

where ``main(args)`` returns the exit status: 0, the result is written and every threshold given holds; 1, it is
written but a threshold does not hold. Every way to fail ends in `run` with one line on stderr and status 2.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import stat
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

from benchkit import __version__, numerals, output
from benchkit.errors import InputError

OK, UNMET, FAILED = 0, 1, 2
LONGEST = 2000
"""Characters of a message."""

ROUNDING = 1e-12
"""A value this near a threshold equals it: .8 - .7 is not above .1."""

TO_FORMATS = ("arrow", "parquet", "json", "ndjson", "csv", "tsv", "table")
FROM_FORMATS = ("auto", "arrow", "parquet", "json", "ndjson", "csv", "tsv")
BINARY = ("arrow", "parquet")
ENDINGS = {
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".parquet": "parquet",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "table",
}
OTHER_ENDINGS = (".xlsx", ".xls", ".ods", ".html", ".htm", ".md", ".pdf", ".tex", ".zip", ".pkl", ".yaml", ".yml")
"""Endings that promise a format which is not written."""


# ---- messages -----------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """The text on one line and without control characters: an identifier must not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def message(text: str) -> None:
    """One line on stderr. A closed or full stderr must not change the exit status."""
    text = printable(text)
    if len(text) > LONGEST:  # by a name as long as a book
        text = f"{text[: LONGEST // 2]} [...] {text[-LONGEST // 2 :]}"
    line = (text + "\n").encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):
        os.write(2, line)


def progress(command: str, what: str) -> Callable[[int, int], None] | None:
    """A progress bar on stderr, `f(done, total)`, or None where stderr is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from tqdm import tqdm

    bar: Any = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None or bar.total != total:
            bar = tqdm(total=total, desc=f"{command}: {what}", leave=False, dynamic_ncols=True, delay=0.3)
        bar.update(done - bar.n)
        if done >= total:
            bar.close()
            bar = None

    return show


# ---- option values --------------------------------------------------------------------------------------------


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number from `least` to `most`, which is 2^63 - 1 if not given."""

    def parse(text: str) -> int:
        value = numerals.whole(text)
        _within(text, value, least, most)
        if most is None and value >= 2**63:
            raise ValueError(f"{text} is too large")
        return value

    return parse


def number(least: float = float("-inf"), most: float | None = None) -> Callable[[str], float]:
    """A finite number from `least` to `most`."""

    def parse(text: str) -> float:
        value = numerals.decimal(text)
        _within(text, value, least, most)
        if abs(value) == float("inf"):
            raise ValueError(f"{text} is too large")
        return value

    return parse


def fraction(text: str) -> str:
    """A level or probability strictly between 0 and 1, kept as its decimal text: float(.95) is not 19/20."""
    if not 0 < numerals.decimal(text) < 1:
        raise ValueError(f"{text} is not between 0 and 1")
    return text


def _within(text: str, value: float, least: float, most: float | None) -> None:
    if most is None and value < least:
        raise ValueError(f"{text} is below {least:g}")
    if most is not None and not least <= value <= most:
        raise ValueError(f"{text} is not in {least}..{most}")


# ---- the parser -------------------------------------------------------------------------------------------------


class _Option(argparse.Action):
    """Store a value, and that it was given; where it changes the result also how, for the history.

    The value of a `file` option is an input's name, which the history leaves out; `file` may be a function of the value
    that says whether it is one. A `repeated` option collects a list.
    """

    def __init__(
        self,
        *,
        parse: Callable[[str], Any] | None = None,
        changes: bool = False,
        file: bool | Callable[[str], bool] = False,
        repeated: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.parse, self.changes, self.file, self.repeated = parse, changes, file, repeated

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name = option_string or self.dest
        value: Any = self.const if self.nargs == 0 else values
        if self.parse:
            try:
                value = self.parse(values)
            except ValueError as e:
                parser.error(f"{name}: {e}")
        if self.repeated:
            value = [*(getattr(namespace, self.dest) or []), value]
        setattr(namespace, self.dest, value)
        namespace.given = namespace.given | {self.dest: name}
        if self.changes:
            given = [] if self.nargs == 0 or self.is_file(values) else values if isinstance(values, list) else [values]
            namespace.argv = [*namespace.argv, name, *given]

    def is_file(self, value: Any) -> bool:
        return self.file(value) if callable(self.file) else self.file


class _Print(argparse.Action):
    """--help, --version, lists: write to stdout with the checks of any other output, then leave."""

    def __init__(self, *, text: Callable[[], str], **rest: Any) -> None:
        super().__init__(nargs=0, **rest | {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS})
        self.text = text

    def __call__(self, *_: Any) -> NoReturn:
        output.write_all(1, self.text().encode())
        sys.exit(OK)


class Parser(argparse.ArgumentParser):
    """The interface of one command: ``bk-x [OPTION...] [FILE]``.

    `random` adds --seed, `several` lets FILE be a list, `folders` lets folders be among them. `default` is the format
    written to a pipe or a file; an option whose result is of another kind (a diagnosis) sets it by `defaults`, a map
    from the option's name to the format.
    """

    def __init__(
        self,
        command: str,
        summary: str,
        *,
        default: str,
        random: bool = False,
        several: bool = False,
        folders: bool = False,
        details: str = "",
        sub: str = "",
    ) -> None:
        files = "[FILE...]" if several else "[FILE]"
        prog = f"{command} {sub}".rstrip()
        super().__init__(
            prog=prog,
            usage=f"{prog} [OPTION...] {files}",
            description=textwrap.fill(summary, 79),
            epilog=f"See {command}(1), and benchkit(7) for formats, exit status and recipes.",
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26),
            add_help=False,
            allow_abbrev=False,
        )
        self.default, self.random, self.several, self.folders = default, random, several, folders
        self.defaults: dict[str, str] = {}
        self.conditions: list[tuple[str, tuple[str | bool, ...], tuple[str, ...]]] = []
        self.loners: list[tuple[str, tuple[str, ...]]] = []
        self.rivals: list[tuple[str, ...]] = []
        self.needed: tuple[str, ...] = ()
        self.everywhere: set[str] = set()
        self.set_defaults(argv=[], given={})
        if several:
            what = "input files" + (" and folders" if folders else "")
            self.add_argument("file", metavar="FILE", nargs="*", help=f"{what} (default: stdin)")
        else:
            self.add_argument("file", metavar="FILE", nargs="?", help="input; '-' or nothing is stdin")

    def section(self, title: str) -> Callable[..., None]:
        """A named group of options; the function it returns adds one (see `_Option`)."""
        group = self.add_argument_group(title)

        def option(*names: str, parse: Callable[[str], Any] | None = None, changes: bool = True, **rest: Any) -> None:
            group.add_argument(*names, action=_Option, parse=parse, changes=changes, **rest)

        return option

    def flag(self, option: Callable[..., None], *names: str, help: str, changes: bool = True) -> None:
        """An option without a value."""
        option(*names, nargs=0, const=True, default=False, changes=changes, help=help)

    def listing(self, title: str, *names: str, text: Callable[[], str], help: str) -> None:
        """An option that prints a text and exits: no input is needed."""
        self.add_argument_group(title).add_argument(*names, action=_Print, text=text, help=help)

    def only_with(self, name: str, value: str | bool | tuple[str, ...], *options: str) -> None:
        """Refuse `options` unless option `name` is `value`, or one of several (True: given).

        They are None then, for they mean nothing.
        """
        self.conditions.append((name, value if isinstance(value, tuple) else (value,), options))

    def alone(self, name: str, *beside: str) -> None:
        """Where option `name` is given, refuse every option but those `beside` it and those of all commands."""
        self.loners.append((name, beside))

    def one_of(self, *names: str) -> None:
        """Of these options at most one may be given."""
        self.rivals.append(names)

    def needs(self, *options: str) -> None:
        """These options, written as on the command line with their value, must be given."""
        self.needed = options

    def common(self) -> None:
        """The options that every command has, last in the help."""
        before = {action.dest for action in self._actions}
        option = self.section("input and output")
        option("-f", "--from", dest="from_", choices=FROM_FORMATS, default="auto", changes=False, metavar="FORMAT",
               help="format of the input: " + ", ".join(FROM_FORMATS))  # fmt: skip
        to = f"format of the output: {', '.join(TO_FORMATS)} (default {self.default}; table on a terminal)"
        option("-t", "--to", choices=TO_FORMATS, changes=False, metavar="FORMAT", help=to)
        option("-o", "--output", changes=False, metavar="FILE",
               help="write FILE, all or nothing; its ending names the format")  # fmt: skip
        self.flag(option, "--allow-unterminated", changes=False, help="accept an Arrow stream without its end marker")
        if self.random:
            option(
                "-s", "--seed", parse=whole(0), default=0, metavar="N", help="seed of the random numbers (default 0)"
            )
        self.flag(option, "--no-provenance", changes=False, help="leave the history out of the output")
        self.flag(option, "-q", "--quiet", changes=False, help="no warnings and no unmet thresholds on stderr")
        self.flag(option, "-v", "--verbose", changes=False, help="say more on stderr, tracebacks too")
        self.everywhere = {action.dest for action in self._actions} - before
        option_ = self.add_argument_group("about")
        option_.add_argument("-h", "--help", action=_Print, text=self.format_help, help="print this help")
        option_.add_argument("-V", "--version", action=_Print, help="print the version",
                             text=lambda: f"{self.prog} (benchkit) {__version__}\n")  # fmt: skip

    def error(self, message: str) -> NoReturn:
        """A wrong call: one line, not argparse's two."""
        raise InputError(f"{message} (see {self.prog} --help)", where="")

    def read_args(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse, and find what is wrong with the files and the output before anything heavy is imported."""
        args = self.parse_args(argv)
        args.command = self.prog
        for name, beside in self.loners:
            other = next((d for d in args.given if d not in (name, *beside) and d not in self.everywhere), None)
            if name in args.given and other:
                self.error(f"{args.given[name]} and {args.given[other]} exclude each other")
        for names in self.rivals:
            both = [name for dest, name in args.given.items() if dest in names]  # in the order given
            if len(both) > 1:
                self.error(f"{both[0]} and {both[1]} exclude each other")
        for condition, values, options in self.conditions:
            if getattr(args, condition) not in values:
                for option in options:
                    if option in args.given:
                        needed = "" if values == (True,) else f" {' or '.join(map(str, values))}"
                        self.error(f"{args.given[option]} needs --{condition}{needed}")
                    setattr(args, option, None)
        named = args.file if self.several else [args.file] if args.file is not None else []
        for name in named:
            if name != "-":
                check_readable(name, folders=self.folders)
        stdin = "-" in named or not named
        given = [a for a in self._actions if isinstance(a, _Option) and a.dest in args.given]
        for dest in [a.dest for a in given if a.is_file(getattr(args, a.dest))]:
            value = getattr(args, dest)
            for name in value if isinstance(value, list) else [value]:
                if name != "-":
                    check_readable(name, folders=False)
                elif stdin:
                    self.error(f"{args.given[dest]} - and the input can't both be standard input: name a FILE")
                else:
                    check_stdin(explicit=True)
        if stdin:
            check_stdin(explicit="-" in named)
        args.source = "<stdin>" if named in ([], ["-"]) else named[0]
        default = next((to for name, to in self.defaults.items() if getattr(args, name)), self.default)
        args.to = output_format(args.output, args.to, default)
        for option in self.needed:
            if option.split()[0].lstrip("-").replace("-", "_") not in args.given:
                self.error(f"{option} is needed")
        return args

    def value(self, name: str, parse: Callable[[str], Any], text: str) -> Any:
        """The value of an option whose parser is too heavy for --help. Call it before the input is read."""
        try:
            return parse(text)
        except InputError as e:
            self.error(f"{name}: {e}")


def check_readable(name: str, *, folders: bool) -> None:
    """Raise InputError where the named input can't be read. It is not opened: that would break a FIFO's writer."""
    if not name:
        raise InputError("FILE is '': a file without a name", where="")
    try:
        kind = os.stat(name).st_mode
    except OSError as e:
        raise InputError((e.strerror or str(e)).lower(), where=name) from None
    if stat.S_ISDIR(kind) and not folders:
        raise InputError("is a directory", where=name)
    if not os.access(name, os.R_OK | (os.X_OK if stat.S_ISDIR(kind) else 0)):
        raise InputError("permission denied", where=name)


def check_stdin(explicit: bool) -> None:
    """A command without FILE on a terminal would wait for ever for input that nobody means to type."""
    if sys.stdin is None:
        raise InputError("standard input is closed", where="")
    if not explicit and sys.stdin.isatty():
        raise InputError("no input: name a FILE, or pipe one in ('-' reads the terminal)", where="")


def output_format(name: str | None, to: str | None, default: str) -> str:
    """The format to write: --to, else the ending of --output, else table on a terminal, else the command's own.

    Raises InputError for binary output on a terminal and for an output that can't be written: better now than after
    the computation.
    """
    found = output.find(name)
    if found.width is not None:
        if to in BINARY:
            raise InputError(f"--to {to} writes binary data, not for a terminal: pipe it, or use -o FILE", where="")
        return to or "table"
    ending = os.path.splitext(name or "")[1].lower()
    if to is None and ending in (".gz", ".zst", ".bz2", ".xz"):
        raise InputError(f"-o {name}: output is not compressed: write to a pipe, as in '| gzip > {name}'", where="")
    if to is None and ending in OTHER_ENDINGS:
        raise InputError(f"-o {name}: no output of this format: one of {', '.join(ENDINGS)}, or name it with --to", "")
    return to or ENDINGS.get(ending, default)


# ---- the end of the process ---------------------------------------------------------------------------------------


def warn(args: argparse.Namespace, texts: Iterable[str]) -> None:
    """Statistical warnings: they are in the data too; here they go to stderr unless -q."""
    if not args.quiet:
        for text in texts:
            message(f"{args.command}: warning: {text}")


def history_entry(args: argparse.Namespace) -> dict[str, Any]:
    """This command's link of the history: what was asked that changes the result. No date, host, user or file."""
    command, *sub = args.command.split()
    return {"cmd": command, "argv": [*sub, *args.argv], "version": __version__, "seed": getattr(args, "seed", None)}


def holds(limit: float | None, value: float | None, *, at_least: bool = False) -> bool:
    """Whether a threshold that was given holds. Equality, up to rounding, holds; an undefined value does not."""
    if limit is None:
        return True
    if value is None or value != value:
        return False
    return value >= limit - ROUNDING if at_least else value <= limit + ROUNDING


def verdict(args: argparse.Namespace, *thresholds: tuple[str, str, float | None]) -> int:
    """The exit status by thresholds (option, statistic's name, its value); --min-... is a lower bound, others upper."""
    unmet = []
    for option, name, value in thresholds:
        limit, at_least = getattr(args, option[2:].replace("-", "_")), option.startswith("--min-")
        if not holds(limit, value, at_least=at_least):
            unmet.append(f"{option} {limit:.15g} does not hold: {name} is {_outside(limit, value, at_least)}")
    return status(args, unmet)


def _outside(limit: float, value: float | None, at_least: bool) -> str:
    """The value in as few digits as leave it outside the limit."""
    if value is None or value != value:
        return "undefined"
    texts = (f"{value:.{digits}g}" for digits in range(3, 18))
    return next(t for t in texts if not holds(limit, float(t), at_least=at_least))


def status(args: argparse.Namespace, unmet: Sequence[str]) -> int:
    """The exit status once the result is written. What does not hold is said on stderr unless -q."""
    if not args.quiet:
        for text in unmet:
            message(f"{args.command}: {text}")
    return UNMET if unmet else OK


@contextlib.contextmanager
def imports() -> Iterator[None]:
    """Stands around a command's heavy imports: SIGINT does after them what it did before.

    A library may take the signal over when it is imported, as polars does, and then swallow it or print a traceback;
    none that is used now does. An interrupt in between is held back until its action is restored.
    """
    action = signal.getsignal(signal.SIGINT)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, action)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


class Reads(Protocol):
    """What `run` needs of a parser: its name for messages, and the arguments or an InputError."""

    prog: str

    def read_args(self, argv: Sequence[str]) -> argparse.Namespace: ...


def run(parser: Reads, main: Callable[[argparse.Namespace], int], argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave the process with its exit status. `argv` is that of the process where it is None.

    SIGINT and SIGPIPE keep their default action, so that a pipeline sees the true cause of death and nothing is
    printed. Python's own tear-down is skipped at the end: everything is written and flushed by then, and unloading the
    numerical libraries takes longer than some commands.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the parent had it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # messages to programmers; what users need to know is in the data
    argv = sys.argv[1:] if argv is None else argv
    verbose = any(a in ("-v", "--verbose") for a in argv)
    source: str | None = None
    try:
        args = parser.read_args(argv)
        source, verbose = args.source, args.verbose
        code = main(args)
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else FAILED
    except InputError as e:
        where = source if e.where is None else e.where
        message(f"{parser.prog}: {where}: {e}" if where else f"{parser.prog}: {e}")
        code = FAILED
    except MemoryError:
        message(f"{parser.prog}: out of memory")
        code = FAILED
    except Exception as e:
        text = " ".join(str(e).split())
        hint = "" if verbose else " (-v shows where)"
        message(f"{parser.prog}: internal error: {type(e).__name__}: {text[:300]}{hint}")
        if verbose:
            import traceback

            traceback.print_exc()
        code = FAILED
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
    os._exit(code)
