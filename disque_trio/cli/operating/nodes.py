"""`disque-trio nodes`: the members of a cluster."""

from collections.abc import Sequence
from typing import Final

from disque_trio.cli.frame import run
from disque_trio.cli.operating.frame import EPILOG, Options, operation, operations
from disque_trio.observe.cluster import node_name
from disque_trio.observe.operations.members import members
from disque_trio.terminal.options import Family
from disque_trio.terminal.output import say_json, say_table
from disque_trio.worker.operating.admin import Admin

NAME: Final = "nodes"


def main(argv: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return run(NAME, PROGRAM, argv)


async def _list(admin: Admin, options: Options) -> int:
    rows = [
        (node_name(each.id, each.name), each.where, each.state, each.id)
        for each in await members(admin.client)
    ]
    if options.is_json:
        say_json([dict(zip(("name", "node", "state", "id"), row, strict=True)) for row in rows])
    else:
        say_table(("NAME", "NODE", "STATE", "ID"), rows)
    return 0


PROGRAM: Final = Family(
    about="List, join and remove the nodes of a cluster.",
    epilog=EPILOG,
    commands={
        "list": operation("List the nodes of the cluster.", _list, Options),
        **operations(NAME),
    },
)
