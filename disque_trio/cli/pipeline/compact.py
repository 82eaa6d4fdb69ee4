"""`disque-trio pipeline compact`: put the small files of a lake together."""

import attrs

from disque_trio.cli.pipeline.spark import SparkOptions, part
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import option, whole
from disque_trio.terminal.output import say

HELP = "Put the small files of a lake together, and remove what nothing needs any more."


@attrs.frozen(kw_only=True)
class Options(SparkOptions):
    """`pipeline compact`."""

    grace: float = option(
        "--grace", whole(what="number of seconds", metavar="SECONDS"),
        "keep files that nothing needs for this long: queries that have begun may read them, and "
        "a sweep under way may be about to name them", 86_400, shown="86400, a day",
    )  # fmt: skip


def run(options: Options) -> int:
    """Compact, and tell."""
    lake = part("lake.store").Lake.open(options.lake)
    tidied = part("lake.compaction").compact(lake, grace_s=options.grace)
    before = counted(tidied.before, "file")
    say(f"{before} became {tidied.after}; {tidied.removed} old ones removed")
    return 0
