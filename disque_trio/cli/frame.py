"""The common part of command lines with subcommands, such as `sim` and `aof`.

A family names its commands, each with its options; `run` carries one out, and reports errors
without a traceback.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from disque_trio.terminal.arguments import Parser
from disque_trio.terminal.output import complain

USAGE: Final = 2
"""A bad option, or something that was asked for and cannot be done."""
INTERRUPTED: Final = 130
"""What shells report for a program ended by Ctrl-C."""


class UsageError(Exception):
    """A request cannot be carried out; the text says why, for the user."""


class Options(Protocol):
    """One command line, read and checked."""

    @property
    def command(self) -> str:
        """Which command of the family."""

    def subject(self) -> str:
        """The file or the like, for errors of the system that name none."""


SomeOptions = TypeVar("SomeOptions", bound=Options)


class Family:
    """The parser of `disque-trio NAME COMMAND ...`. The epilog describes the exit status."""

    def __init__(self, name: str, description: str, epilog: str) -> None:
        self._name = name
        self._parser = Parser(
            prog=f"disque-trio {name}",
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._commands = self._parser.add_subparsers(
            dest="command", required=True, metavar="COMMAND"
        )

    def command(self, name: str, about: str, more: str = "") -> argparse.ArgumentParser:
        """Add a command; the caller adds its options. `about` is a complete sentence."""
        return self._commands.add_parser(
            name,
            help=about[0].lower() + about[1:].rstrip("."),
            description=f"{about} {more}".strip(),
            epilog=f"Exit status: see 'disque-trio {self._name} --help'.",
        )

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options, with `command`; or SystemExit after a message or help."""
        return self._parser.parse_args(arguments)


def run(
    name: str,
    arguments: Sequence[str],
    parse: Callable[[Sequence[str]], SomeOptions],
    commands: Mapping[str, Callable[[SomeOptions], int]],
) -> int:
    """Carry out one command of the family with this name. The exit status."""
    try:
        options = parse(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        return commands[options.command](options)
    except UsageError as error:
        return _say(name, str(error), USAGE)
    except KeyboardInterrupt:
        return _say(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        discard_output()
        return USAGE
    except OSError as error:
        what = error.filename or options.subject()
        return _say(name, f"{what}: {error.strerror or error}", USAGE)


def cannot_write(path: str | Path, error: OSError) -> UsageError:
    """Why a file cannot be written."""
    if isinstance(error, FileNotFoundError):
        check_folder(path)
    return UsageError(f"cannot write {path}: {error.strerror or error}")


def check_folder(path: str | Path) -> None:
    """Raises `UsageError` if there is no folder for a file to be written."""
    folder = Path(path).parent
    if not folder.exists():
        raise UsageError(f"cannot write {path}: there is no folder {folder}; make it first")


def discard_output() -> None:
    """The reader has closed the pipe: without this, Python's flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(name: str, text: str, status: int) -> int:
    for line in text.splitlines():
        complain(f"disque-trio {name}: {line}")
    return status


def counted(number: int, noun: str) -> str:
    """Such as "1 job" or "2,000 jobs"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


# Kinds of arguments.


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option `--json`."""
    parser.add_argument("--json", dest="is_json", action="store_true", help="results as JSON")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The option `--spark-conf`."""
    parser.add_argument(
        "--spark-conf", dest="spark_settings", action="append", type=_setting, default=[],
        metavar="NAME=VALUE", help="a setting of Spark, such as spark.executor.memory=2g",
    )  # fmt: skip


def _setting(word: str) -> tuple[str, str]:
    name, found, value = word.partition("=")
    if not found or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{word} is no setting of Spark: spark.NAME=VALUE")
    return name, value


def port(word: str) -> int:
    """A port to connect to or to listen on."""
    if not word.isdecimal() or not 0 < int(word) < 65536:
        raise argparse.ArgumentTypeError(f"{word} is no port: 1 to 65535")
    return int(word)


def count(word: str) -> int:
    """How many, at least one."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is no whole number of 1 or more")
    return int(word)


def share(word: str) -> float:
    """From none, 0, to all, 1."""
    try:
        part = float(word)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise argparse.ArgumentTypeError(f"{word} is no share from 0 to 1")
    return part
