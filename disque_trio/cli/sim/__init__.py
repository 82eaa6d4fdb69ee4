"""The simulator's commands: `disque-trio sim` (docs/simulation.md)."""

from collections.abc import Callable, Sequence
from typing import Final

from disque_trio.cli.frame import UsageError, run
from disque_trio.cli.sim import pinning, shrinking, single, sweep
from disque_trio.cli.sim.options import Options, parse
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.location import path_in

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
    return run("sim", arguments, parse, {name: _located(each) for name, each in COMMANDS.items()})


def _located(command: Callable[[Options], int]) -> Callable[[Options], int]:
    """The command with paths in place of addresses of files; of other addresses, a refusal."""

    def called(options: Options) -> int:
        try:
            return command(options.located(path_in))
        except PipelineError as error:
            raise UsageError(str(error)) from None

    return called
