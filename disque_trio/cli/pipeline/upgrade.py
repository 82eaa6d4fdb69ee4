"""`disque-trio pipeline upgrade`: bring a lake of release 0.1.0 to its one table."""

from pathlib import Path

from disque_trio.cli.pipeline.spark import LakeOptions, part
from disque_trio.pipeline.location import local_path
from disque_trio.terminal.counting import counted
from disque_trio.terminal.output import say

HELP = (
    "Upgrade a lake of release 0.1.0. The first use of the lake does the same. Stop writers first."
)


def run(options: LakeOptions) -> int:
    """Upgrade, and tell."""
    upgrade, store = part("lake.upgrade"), part("lake.store")
    if Path(options.lake, upgrade.HEAD).exists():
        lake = store.Lake(local_path(options.lake))
        done = upgrade.upgrade(lake, lake.fill)
        files, sources = counted(done.parts, "file"), counted(done.sources, "source")
        say(f"{files} of {sources} moved into one Delta table")
        return 0
    store.Lake.open(options.lake)
    say("nothing to do")
    return 0
