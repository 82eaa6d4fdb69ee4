"""`disque-trio pipeline compact`: put the small files of a lake together."""

import argparse
from typing import Final

from disque_trio.cli.pipeline.spark import add_spark, part, started
from disque_trio.terminal.output import say

_DAY_S: Final = 86_400.0
HELP = "Put the small files of a lake together, and remove what nothing needs any more."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may stand on the command line."""
    parser.add_argument("lake", metavar="LAKE", help="the folder")
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=_DAY_S,
        metavar="SECONDS",
        help="keep files that nothing needs for so long: queries that have begun may read them, "
        "and a sweep under way may be about to name them (86400, a day)",
    )
    add_spark(parser)


def run(given: argparse.Namespace) -> int:
    """Compact, and tell."""
    lake = part("lake.store").Lake.open(given.lake)
    with started(given) as spark:
        tidied = part("lake.compaction").compact(spark, lake, grace_s=given.grace)
    say(f"{tidied.before} files became {tidied.after}; {tidied.removed} old ones removed")
    return 0


def _seconds(word: str) -> float:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is no whole number of seconds")
    return float(word)
