"""`disque-trio pipeline report`: a page that shows what a lake has to tell."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import attrs

from disque_trio.cli.frame import cannot_write
from disque_trio.cli.pipeline.reruns import Reruns
from disque_trio.cli.pipeline.spark import (
    AskOptions,
    announce_judging,
    is_for_duckdb,
    part,
    started,
)
from disque_trio.pipeline.location import path_in
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import DIR, option, text
from disque_trio.terminal.output import say

HELP = "Write a report about a lake, as one self-contained HTML page."


@attrs.frozen(kw_only=True)
class Options(AskOptions):
    """`pipeline report`."""

    html: str = option(
        "--html", text("OUT"), "write the report to this HTML file", is_required=True
    )
    scenarios: tuple[str, ...] = option(
        "--scenarios", DIR, "directory of scenarios, for commands that run seeds again",
        is_repeated=True, shown="scenarios",
    )  # fmt: skip


def run(options: Options) -> int:
    """Ask, and draw."""
    lake = part("lake.store").Lake.open(options.lake)
    target = Path(path_in(options.html))
    with _write_errors(target):  # before Spark has worked for an hour
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        tempfile.TemporaryFile(dir=target.parent).close()
    facts = part("report.facts")
    if is_for_duckdb(options, lake):
        with closing(part("lake.duck").Duck(lake, facts.USED, announce_judging)) as duck:
            figures = facts.figures(duck.facts, lake)
    else:
        with started(options) as spark:
            figures = facts.ask(spark, lake, announce_judging)
    with _write_errors(target):
        reruns = Reruns.among(options.scenarios or ["scenarios"])
        _write(target, part("report.page").render(figures, reruns.command))
    swept = len({row["sweep"] for row in figures.seeds})
    rows, runs = counted(figures.rows, "row"), counted(figures.runs, "run")
    say(f"{target}: {rows} of {runs}, {counted(swept, 'sweep')}")
    return 0


@contextmanager
def _write_errors(target: Path) -> Iterator[None]:
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
