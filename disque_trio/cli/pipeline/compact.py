"""`disque-trio pipeline compact`: put the small files of a lake together."""

import attrs

from disque_trio.cli.pipeline.spark import SparkOptions, part
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import option, whole
from disque_trio.terminal.output import say

HELP = "Merge the small files of a lake, and delete files that are no longer needed."


@attrs.frozen(kw_only=True)
class Options(SparkOptions):
    """`pipeline compact`."""

    grace: float = option(
        "--grace", whole(what="number of seconds", metavar="SECONDS"),
        "keep unneeded files for this long: running queries may still read them, and a running "
        "sweep may still refer to them", 86_400, shown="86400, a day",
    )  # fmt: skip


def run(options: Options) -> int:
    """Compact, and tell."""
    lake = part("lake.store").Lake.open(options.lake)
    tidied = part("lake.compaction").compact(lake, grace_s=options.grace)
    before = counted(tidied.before, "file")
    say(f"{before} merged into {tidied.after}; {tidied.removed} old files deleted")
    return 0
