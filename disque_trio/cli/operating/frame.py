"""What the families have in common: which cluster, errors, nodes that are missing."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import anyio
import attrs

from disque_trio.cli.frame import fail, json_switch
from disque_trio.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.terminal.options import URL, Command, UsageError, option
from disque_trio.terminal.output import complain
from disque_trio.worker.operating.admin import Admin

EPILOG: Final = """\
The nodes are those of --url, or of $DISQUE_URL: disque://:password@host:port,host:port (DEFAULT).
All nodes of the cluster are asked.

exit status:
  0    it is done
  1    there is nothing of that name, a node refuses it, or no node answers
  2    wrong usage
  130  interrupted by Ctrl-C
""".replace("DEFAULT", DEFAULT_URL)


def cluster_url() -> Any:
    """The option `--url`."""
    shown = "$DISQUE_URL"
    return option("--url", URL, "nodes of the cluster", DEFAULT_URL, shown, variable="DISQUE_URL")


def client_of(url: str) -> Client:
    """A client of the cluster. Raises `UsageError`."""
    try:
        return Client(url)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


class NotDoneError(Exception):
    """It cannot be done; the text says why, for the user."""


@attrs.frozen(kw_only=True)
class Options:
    """What each of these commands has."""

    url: str = cluster_url()
    is_json: bool = json_switch()

    @property
    def subject(self) -> str:
        """Which cluster is asked, without a password."""
        return self.url.rpartition("@")[2]


Some = TypeVar("Some", bound=Options)


def operation(
    name: str,
    about: str,
    carry_out: Callable[[Admin, Some], Coroutine[Any, Any, int]],
    record: type[Some],
) -> Command[Some]:
    """A command of the family NAME. `carry_out` gives the exit status, and raises
    `NotDoneError`."""

    def run(options: Some) -> int:
        client = client_of(options.url)

        async def carried_out() -> int:
            async with client:
                return await carry_out(Admin(client), options)

        try:
            return anyio.run(carried_out)
        except (DisqueError, NotDoneError) as error:
            return fail(name, str(error))

    return Command(record=record, run=run, about=about)


def warn_of(name: str, unreached: Mapping[str, str]) -> None:
    """Which nodes did not answer."""
    for node, why in unreached.items():
        complain(f"disque-trio {name}: what {node} knows is missing: {why}")
