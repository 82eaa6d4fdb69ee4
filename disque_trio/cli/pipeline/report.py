"""`disque-trio pipeline report`: a page that shows what a lake has to tell."""

import argparse
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disque_trio.cli.frame import cannot_write
from disque_trio.cli.pipeline.reruns import Reruns
from disque_trio.cli.pipeline.spark import add_spark, part, started
from disque_trio.pipeline.location import path_in
from disque_trio.terminal.output import say

HELP = "Draw what a lake has to tell, as one HTML page that needs nothing else."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may stand on the command line."""
    parser.add_argument("lake", metavar="LAKE", help="the folder")
    parser.add_argument("--html", metavar="OUT", required=True, help="draw it into this HTML file")
    parser.add_argument(
        "--scenarios",
        metavar="DIR",
        action="append",
        help="where the files of scenarios are, for commands that run seeds again (scenarios)",
    )
    parser.add_argument(
        "--checks",
        action="store_true",
        help="put all traces to the checks as well, which takes as long as all the rest",
    )
    add_spark(parser)


def run(given: argparse.Namespace) -> int:
    """Ask, and draw."""
    lake = part("lake.store").Lake.open(given.lake)
    target = Path(path_in(given.html))
    with _telling(target):  # before Spark has worked for an hour
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        tempfile.TemporaryFile(dir=target.parent).close()
    with started(given) as spark:
        told = part("report.facts").ask(spark, lake, with_checks=given.checks)
    with _telling(target):
        reruns = Reruns.among(given.scenarios or ["scenarios"])
        _write(target, part("report.page").render(told, reruns.command))
    say(f"{target}: {told.rows:,} rows of {told.runs:,} runs, {len(told.seeds)} lines of sweeps")
    return 0


@contextmanager
def _telling(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(target, error) from None


def _write(target: Path, page: str) -> None:
    """All of it, or nothing."""
    if target.exists() and not target.is_file():  # such as a pipe
        target.write_text(page, "utf-8")
        return
    draft = target.with_name(f".{target.name}.part")
    try:
        draft.write_text(page, "utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
