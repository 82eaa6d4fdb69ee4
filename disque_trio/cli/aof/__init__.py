"""The append-only file's commands: `disque-trio aof` (docs/journal.md)."""

from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.cli.aof.check import check
from disque_trio.cli.aof.convert import convert
from disque_trio.cli.aof.dump import dump
from disque_trio.cli.aof.options import Options, parse
from disque_trio.cli.aof.repair import repair
from disque_trio.cli.frame import run

COMMANDS: Final[dict[str, Callable[[Options], int]]] = {
    "check": check,
    "repair": repair,
    "convert": convert,
    "dump": dump,
}


def main(arguments: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return run("aof", arguments, parse, COMMANDS)
