"""`disque-trio pipeline report`: a page that shows what a lake has to tell."""

import argparse
from pathlib import Path

from disque_trio.cli.frame import UsageError
from disque_trio.cli.pipeline.spark import add_spark, part, started

HELP = "Draw what a lake has to tell, as one HTML page that needs nothing else."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may stand on the command line."""
    parser.add_argument("lake", metavar="LAKE", help="the folder")
    parser.add_argument("--html", metavar="OUT", required=True, help="draw it into this HTML file")
    parser.add_argument(
        "--checks",
        action="store_true",
        help="put all traces to the checks as well, which takes as long as all the rest",
    )
    add_spark(parser)


def run(given: argparse.Namespace) -> int:
    """Ask, and draw."""
    lake = part("lake.store").Lake.open(given.lake)
    target = Path(given.html)
    try:
        target.touch()
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from None
    with started(given) as spark:
        told = part("report.facts").ask(spark, lake, with_checks=given.checks)
    target.write_text(part("report.page").render(told), "utf-8")
    print(f"{target}: {told.rows:,} rows of {told.runs:,} runs, {len(told.seeds)} lines of sweeps")
    return 0
