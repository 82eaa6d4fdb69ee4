"""The data pipeline's commands: `disque-trio pipeline` (docs/pipeline.md)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from disque_trio.cli import frame
from disque_trio.cli.pipeline import compact, doctor, export, ingest, query, report, upgrade
from disque_trio.cli.pipeline.spark import LakeOptions
from disque_trio.pipeline.errors import PipelineError
from disque_trio.terminal.options import Command, Family, UsageError

Options = TypeVar("Options")

_EPILOG: Final = """\
exit status:
  0    success, without findings
  1    findings, such as a file that is not a trace
  2    usage: a bad option, or something is missing or cannot be reached
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM

To run a sweep on Spark, use 'disque-trio sim sweep --spark'. See docs/pipeline.md.
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return frame.run("pipeline", PROGRAM, arguments)


def _command(
    about: str, record: type[Options], carry_out: Callable[[Options], int]
) -> Command[Options]:
    def run(options: Options) -> int:
        try:
            return carry_out(options)
        except PipelineError as error:
            raise UsageError(str(error)) from None

    return Command(record=record, run=run, about=about)


PROGRAM: Final = Family(
    about="Analyze traces, sweeps and queues with Spark.",
    epilog=_EPILOG,
    commands={
        "doctor": _command(doctor.HELP, doctor.Options, doctor.run),
        "ingest": _command(ingest.HELP, ingest.Options, ingest.run),
        "compact": _command(compact.HELP, compact.Options, compact.run),
        "upgrade": _command(upgrade.HELP, LakeOptions, upgrade.run),
        "export": _command(export.HELP, export.Options, export.run),
        "query": _command(query.HELP, query.Options, query.run),
        "report": _command(report.HELP, report.Options, report.run),
    },
)
"""PySpark comes in only when one of them runs."""
