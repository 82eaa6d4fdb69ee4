"""The data pipeline's commands: `disque-trio pipeline` (docs/pipeline.md)."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

import attrs

from disque_trio.cli import frame
from disque_trio.cli.frame import Family, UsageError
from disque_trio.pipeline.errors import PipelineError

COMMANDS: Final = {
    "doctor": "disque_trio.cli.pipeline.doctor",
    "ingest": "disque_trio.cli.pipeline.ingest",
    "compact": "disque_trio.cli.pipeline.compact",
    "upgrade": "disque_trio.cli.pipeline.upgrade",
    "query": "disque_trio.cli.pipeline.query",
    "report": "disque_trio.cli.pipeline.report",
}
"""Modules with `HELP`, `add_arguments(parser)` and `run(given)`, which is the exit status.

They are all imported to show what there is, so PySpark comes in only when one runs.
"""
_EPILOG: Final = """\
exit status:
  0    it is done, or all is well
  1    something was found that somebody should look at, such as a file that is no trace
  2    usage: a bad option, something that is missing or cannot be reached
  130  interrupted by Ctrl-C

A sweep runs on Spark by 'disque-trio sim sweep --spark'. docs/pipeline.md tells of all this.
"""


@attrs.frozen
class Options:
    """One command line."""

    command: str
    given: argparse.Namespace

    def subject(self) -> str:
        """The lake or file that it names, if it names one."""
        return str(getattr(self.given, "lake", self.command))


def main(arguments: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    modules = {name: import_module(module) for name, module in COMMANDS.items()}
    commands = {name: _command(module) for name, module in modules.items()}
    return frame.run("pipeline", arguments, partial(_parse, modules), commands)


def _parse(modules: dict[str, Any], arguments: Sequence[str]) -> Options:
    family = Family("pipeline", "Traces, sweeps and queues in Spark.", _EPILOG)
    for name, module in modules.items():
        module.add_arguments(family.command(name, module.HELP))
    given = family.parse(arguments)
    return Options(given.command, given)


def _command(module: Any) -> Callable[[Options], int]:
    def run(options: Options) -> int:
        try:
            status: int = module.run(options.given)
        except PipelineError as error:
            raise UsageError(str(error)) from None
        return status

    return run
