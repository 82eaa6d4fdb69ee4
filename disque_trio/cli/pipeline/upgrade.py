"""`disque-trio pipeline upgrade`: give a lake of an earlier release its Delta tables."""

from disque_trio.cli.pipeline.spark import LakeOptions, part
from disque_trio.terminal.output import say

HELP = "Give a lake that an earlier release has made its Delta tables. Nothing may write into it."


def run(options: LakeOptions) -> int:
    """Upgrade, and tell."""
    done = part("lake.upgrade").upgrade(options.lake)
    if done.parts:
        say(f"{done.parts} files of {done.sources} sources are in Delta tables now")
    else:
        say("nothing to do")
    return 0
