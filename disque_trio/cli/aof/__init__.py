"""The append-only file's commands: `disque-trio aof` (docs/journal.md)."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.cli.aof.check import check
from disque_trio.cli.aof.convert import convert
from disque_trio.cli.aof.dump import dump
from disque_trio.cli.aof.options import Options, parse
from disque_trio.cli.aof.outcomes import INTERRUPTED, USAGE, UsageError
from disque_trio.cli.aof.repair import repair

COMMANDS: Final[dict[str, Callable[[Options], int]]] = {
    "check": check,
    "repair": repair,
    "convert": convert,
    "dump": dump,
}


def main(arguments: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    try:
        options = parse(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        return COMMANDS[options.command](options)
    except UsageError as error:
        sys.stderr.write(f"disque-trio aof: {error}\n")
        return USAGE
    except KeyboardInterrupt:
        sys.stderr.write("disque-trio aof: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USAGE
    except OSError as error:
        sys.stderr.write(f"disque-trio aof: {error.filename or options.file}: {error.strerror}\n")
        return USAGE
