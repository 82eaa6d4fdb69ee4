"""The simulator's commands: `disque-trio sim` (docs/simulation.md)."""

from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.cli.frame import run
from disque_trio.cli.sim import pinning, shrinking, single, sweep
from disque_trio.cli.sim.options import Options, parse

COMMANDS: Final[dict[str, Callable[[Options], int]]] = {
    "run": single.run,
    "sweep": sweep.sweep,
    "replay": single.replay,
    "shrink": shrinking.shrink,
    "expand": single.expand_,
    "draw": single.draw,
    "pin": pinning.pin,
}


def main(arguments: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return run("sim", arguments, parse, COMMANDS)
