"""What the families have in common: which cluster, which command, errors."""

import argparse
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.cli import frame
from disque_trio.cli.frame import Family, UsageError
from disque_trio.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.terminal.output import complain
from disque_trio.worker.operating.admin import Admin

FAILED: Final = 1
"""A node refuses it, no node answers, or there is nothing of that name."""
EPILOG: Final = """\
The nodes are those of --url, or of $DISQUE_URL: disque://:password@host:port,host:port (DEFAULT).
All nodes of the cluster are asked.

exit status:
  0    it is done
  1    there is nothing of that name, a node refuses it, or no node answers
  2    wrong usage
  130  interrupted by Ctrl-C
""".replace("DEFAULT", DEFAULT_URL)

Run = Callable[[Admin, argparse.Namespace], Coroutine[Any, Any, int]]


class NotDoneError(Exception):
    """It cannot be done; the text says why, for the user."""


@attrs.frozen
class Command:
    """One command of a family."""

    about: str
    run: Run
    """Gives the exit status. Raises `NotDoneError`."""
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda _: None


@attrs.frozen
class Options:
    """One command line."""

    command: str
    given: argparse.Namespace

    def subject(self) -> str:
        """Which cluster is asked, without a password."""
        return url_of(self.given).rpartition("@")[2]


def run_family(
    name: str, description: str, commands: Mapping[str, Command], argv: Sequence[str]
) -> int:
    """Carry out one command of the family. The exit status."""

    def parse(words: Sequence[str]) -> Options:
        family = Family(name, description, EPILOG)
        for each, command in commands.items():
            parser = family.command(each, command.about)
            command.add_arguments(parser)
            parser.add_argument("--url", help="nodes of the cluster ($DISQUE_URL)")
            frame.add_json(parser)
        given = family.parse(words)
        return Options(given.command, given)

    def carried_out(options: Options) -> int:
        return _carry_out(name, commands[options.command].run, options.given)

    return frame.run(name, argv, parse, dict.fromkeys(commands, carried_out))


def url_of(given: argparse.Namespace) -> str:
    """The nodes."""
    url: str = given.url or os.environ.get("DISQUE_URL") or DEFAULT_URL
    return url


def _carry_out(name: str, run: Run, given: argparse.Namespace) -> int:
    async def carried_out() -> int:
        async with client:
            return await run(Admin(client), given)

    try:
        client = Client(url_of(given))
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    try:
        return anyio.run(carried_out)
    except (DisqueError, NotDoneError) as error:
        complain(f"disque-trio {name}: {error}")
        return FAILED


# Output.


def warn_of(name: str, unreached: Mapping[str, str]) -> None:
    """Which nodes did not answer."""
    for node, why in unreached.items():
        complain(f"disque-trio {name}: what {node} knows is missing: {why}")


def duration(seconds: float) -> str:
    """Such as 0.3s, 12s, 5m, 3h or 2d."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
