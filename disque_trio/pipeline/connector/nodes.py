"""The cluster as Spark's readers and writers see it: nodes by name, each asked by itself.

Blocking, on the Python client. A request waits for a node no longer than the option `timeout`; a
node that has not answered is not asked again for a while.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address, Cluster
from disque_trio.client.blocking import BlockingClient
from disque_trio.client.command import Command
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError, DisqueError
from disque_trio.client.greeting import Introduction
from disque_trio.client.records import JobDetails
from disque_trio.client.refusals import AuthenticationError, RefusedError, UnavailableError
from disque_trio.pipeline.connector.options import Link
from disque_trio.pipeline.connector.windows import of_ids
from disque_trio.pipeline.errors import PipelineError

Result = TypeVar("Result")

_WINDOW: Final = 256
"""Requests that are sent before replies are read: few enough for the sockets' buffers."""
_SCANNED: Final = 500
"""Jobs in one reply of JSCAN."""
_LOOK_S: Final = 5.0
"""How long an answer to HELLO counts."""
_log: Final = logging.getLogger(__name__)


class NodeGoneError(PipelineError):
    """A node did not answer; it may have carried the request out."""


class UnreachableError(PipelineError):
    """No node answers."""


@attrs.define(eq=False)
class Nodes:
    """A cluster's nodes by name, which is `host:port`."""

    link: Link
    clock: Callable[[], float] = time.monotonic
    _client: BlockingClient = attrs.field(init=False)
    _looks_at: float = attrs.field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        link = self.link
        self._client = BlockingClient(
            Cluster([link.address(host, port) for host, port in link.seeds], link.secret),
            discover=link.discovers,
            connect_timeout_s=link.timeout_s,
            patience_s=link.timeout_s,
        )

    def names(self) -> list[str]:
        """All known nodes, those that answer first."""
        self._discover()
        return [str(address) for address in self._addresses()]

    def live(self) -> list[str]:
        """The nodes that answer. Raises `UnreachableError` if there are none."""
        found = [name for name in self.names() if self._answers(name)]
        if not found:
            raise UnreachableError(self._no_answer())
        return found

    def has(self, name: str, feature: str) -> bool:
        """Does the node know this, as INFO names it? Ask of nodes that have answered."""
        return feature in self._client.nodes.features(self._address(name))

    def down(self) -> list[str]:
        """The known nodes that do not answer."""
        return [name for name in self.names() if not self._answers(name)]

    def ask(self, name: str, asked: Sequence[Command[Result]]) -> list[Result | RefusedError]:
        """What a node answers to the commands. Raises `NodeGoneError`."""
        self._discover()
        address = self._address(name)
        # The option `timeout` is all that a reply may take.
        asked = [attrs.evolve(each, wait_s=0.0) if each.wait_s else each for each in asked]
        return self._guarded(address, lambda: self._asked(address, asked))

    def acknowledge(self, name: str, ids: Sequence[str]) -> bool:
        """Acknowledge jobs at this node or, if it does not answer, at another one, which tells the
        holders. False if no node took it."""
        asked = [commands.ackjob(*some) for some in of_ids(ids)]
        for each in (name, *(other for other in self.names() if other != name)):
            try:
                counts = self.ask(each, asked)
            except NodeGoneError as error:
                _log.warning("a node is skipped: %s", error)
                continue
            if not any(isinstance(count, RefusedError) for count in counts):
                return True
        return False

    def open(self, name: str) -> Connection:
        """A new connection for the caller alone. Raises `NodeGoneError`."""
        self._discover()
        address = self._address(name)
        return self._guarded(address, lambda: self._client.open(address))

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the next request opens one again."""
        self._client.close()

    def _asked(
        self, address: Address, asked: Sequence[Command[Result]]
    ) -> list[Result | RefusedError]:
        found: list[Result | RefusedError] = []
        for result in self._client.ask(address, asked, _WINDOW):
            if isinstance(result, DisqueError) and (
                isinstance(result, AuthenticationError) or not isinstance(result, RefusedError)
            ):
                raise result
            found.append(result)
        return found

    def _guarded(self, address: Address, act: Callable[[], Result]) -> Result:
        """Do it, unless the node rests. Errors become those of the pipeline."""
        nodes = self._client.nodes
        if nodes.is_resting(address, self.clock()):
            raise NodeGoneError(nodes.reason(address))
        try:
            result = act()
        except AuthenticationError as error:
            raise PipelineError(_on_password(address, error)) from error
        except (ConnectionFailedError, UnavailableError) as error:
            reason = getattr(error, "reason", f"{address} replied {error}")
            nodes.failed(address, reason, self.clock())
            raise NodeGoneError(reason) from error
        except DisqueError as error:
            raise PipelineError(f"{address} is not a Disque node: {error}") from error
        nodes.answered(address)
        return result

    def _answers(self, name: str) -> bool:
        address = self._address(name)
        try:
            self._guarded(address, lambda: self._client.connect(address))
        except NodeGoneError:
            return False
        return True

    def _addresses(self) -> list[Address]:
        return self._client.nodes.order(self.clock())

    def _address(self, name: str) -> Address:
        for address in self._addresses():
            if str(address) == name:
                return address
        host, _, port = name.rpartition(":")  # such as a name from an old offset
        return self.link.address(host.strip("[]"), int(port))

    def _no_answer(self) -> str:
        addresses = self._addresses()
        reasons = dict.fromkeys(filter(None, map(self._client.nodes.reason, addresses)))
        return f"no node answers ({', '.join(map(str, addresses))}): {'; '.join(reasons)}"

    def _discover(self) -> None:
        """Ask for the nodes, now and then."""
        if self.clock() < self._looks_at:
            return
        self._looks_at = self.clock() + _LOOK_S
        nodes = self._client.nodes
        for address in self._addresses():
            try:
                (hello,) = self.ask(str(address), [commands.hello()])
            except NodeGoneError:
                continue
            if not isinstance(hello, RefusedError):
                nodes.introduced(address, Introduction(hello, nodes.features(address)))


def _on_password(address: Address, error: AuthenticationError) -> str:
    refusal = f"{error.code} {error.text}"
    if error.command == "AUTH":
        return (
            f"{address} refuses the password: {refusal}; see the options password and passwordFile"
        )
    return f"{address} requires a password: {refusal}; set the option password or passwordFile"


def copies(
    nodes: Nodes, name: str, queue: str = "", states: Sequence[str] = ()
) -> Iterator[JobDetails]:
    """The facts about each job of a node, by JSCAN. Raises `NodeGoneError`."""
    cursor = 0
    while True:
        asked = commands.jscan(cursor, count=_SCANNED, queue=queue or None, states=states)
        (page,) = nodes.ask(name, [asked])
        if isinstance(page, RefusedError):
            raise PipelineError(f"{name} refuses {page}")
        yield from page.items
        cursor = page.cursor
        if not cursor:
            return


def number(result: int | RefusedError) -> int:
    """How many; 0 for an error, because nothing was done."""
    return result if isinstance(result, int) else 0
