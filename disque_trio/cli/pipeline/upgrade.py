"""`disque-trio pipeline upgrade`: give a lake of an earlier release its Delta tables."""

import argparse

from disque_trio.cli.pipeline.spark import part
from disque_trio.terminal.output import say

HELP = "Give a lake that an earlier release has made its Delta tables. Nothing may write into it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may stand on the command line."""
    parser.add_argument("lake", metavar="LAKE", help="the folder")


def run(given: argparse.Namespace) -> int:
    """Upgrade, and tell."""
    done = part("lake.upgrade").upgrade(given.lake)
    if done.parts:
        say(f"{done.parts} files of {done.sources} sources are in Delta tables now")
    else:
        say("nothing to do")
    return 0
