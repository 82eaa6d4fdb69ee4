"""The simulator's commands: `disque-trio sim` (docs/simulation.md)."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.cli.sim import shrinking, single, sweep
from disque_trio.cli.sim.options import Options, parse
from disque_trio.cli.sim.outcomes import INTERRUPTED, USAGE, UsageError

COMMANDS: Final[dict[str, Callable[[Options], int]]] = {
    "run": single.run,
    "sweep": sweep.sweep,
    "replay": single.replay,
    "shrink": shrinking.shrink,
    "expand": single.expand_,
    "draw": single.draw,
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
        for line in str(error).splitlines():
            sys.stderr.write(f"disque-trio sim: {line}\n")
        return USAGE
    except KeyboardInterrupt:
        sys.stderr.write("disque-trio sim: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USAGE
