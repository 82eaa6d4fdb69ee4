"""`disque-trio pipeline export`: the views of a lake as tables of a DuckDB file."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import attrs

from disque_trio.cli.pipeline.query import view_named
from disque_trio.cli.pipeline.spark import LakeOptions, announce_judging, part
from disque_trio.pipeline.lake.views import VIEWS
from disque_trio.pipeline.location import path_in
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import FILE, UsageError, argument, text
from disque_trio.terminal.output import say

HELP = "Write views of a lake as tables of a DuckDB file, for other programs."


@attrs.frozen(kw_only=True)
class Options(LakeOptions):
    """`pipeline export`."""

    file: str = argument(
        FILE, "the file; an existing file is replaced once the new one is complete"
    )
    views: Sequence[str] = argument(text("VIEW"), "names of views (all views)", "*")


def run(options: Options) -> int:
    """Export, and tell."""
    names = [view_named(each) for each in options.views] or list(VIEWS)
    file = Path(path_in(options.file)).absolute()
    if not file.parent.is_dir():
        raise UsageError(f"the directory {file.parent} does not exist")
    if file.exists() and not file.is_file():  # such as a pipe, which would be replaced
        raise UsageError(f"cannot write {options.file}: it is not a file")
    lake = part("lake.store").Lake.open(options.lake)
    with closing(part("lake.duck").Duck(lake, " ".join(names), announce_judging)) as duck:
        rows = duck.export(str(file), names)
    say(f"{options.file}: {counted(len(names), 'table')}, {counted(rows, 'row')}")
    return 0
