"""The data pipeline's commands: `disque-trio pipeline` (docs/pipeline.md)."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from disque_trio.pipeline.errors import PipelineError

COMMANDS: Final = {
    "doctor": "disque_trio.cli.pipeline.doctor",
}
"""Modules with `HELP`, `add_arguments(parser)` and `run(given)`, which is the exit status.

They are all imported to show what there is, so PySpark comes in only when one runs.
"""
PASSED: Final = 0
CANNOT: Final = 2
INTERRUPTED: Final = 130
_EPILOG: Final = """\
exit status:
  0    it is done, or all is well
  1    something was found that somebody should look at
  2    usage: a bad option, a bad file, something that is missing or cannot be reached
  130  interrupted by Ctrl-C

A sweep runs on Spark by 'disque-trio sim sweep --spark'. docs/pipeline.md tells of all this.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    modules = {name: import_module(module) for name, module in COMMANDS.items()}
    try:
        given = _parser(modules).parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else CANNOT
    try:
        status: int = modules[given.command].run(given)
    except PipelineError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"disque-trio pipeline: {line}\n")
        return CANNOT
    except KeyboardInterrupt:
        sys.stderr.write("disque-trio pipeline: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CANNOT
    return status


def _parser(modules: dict[str, Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="disque-trio pipeline",
        description="Traces, sweeps and queues in Spark.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in modules.items():
        about: str = module.HELP
        command = commands.add_parser(
            name,
            help=about[0].lower() + about[1:].rstrip("."),
            description=about,
            epilog="Exit status: see 'disque-trio pipeline --help'.",
        )
        module.add_arguments(command)
    return parser
