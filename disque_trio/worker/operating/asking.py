"""Sends the same request to all nodes of a cluster, if each has only a part of the answer.

With `InSteps` the same code runs in a thread without an event loop.
"""

import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.nodes import Nodes
from disque_trio.client.refusals import RefusedError
from disque_trio.client.settings import OUTAGE_PAUSE_S, OUTAGE_S

if TYPE_CHECKING:
    from disque_trio.client.blocking import BlockingClient

Item = TypeVar("Item")
_DELAYED: Final = ("NOREPL", "TIMEOUT")
"""Error codes of commands about a key while a node does not answer."""


class Asking(Protocol):
    """A client whose requests are awaited: `Client`, or a blocking one `InSteps`."""

    @property
    def nodes(self) -> Nodes:
        """The known nodes."""
        ...

    async def run(self, command: Command[Item], /) -> Item:
        """Run a command at the first node that can carry it out."""
        ...

    async def ask(
        self, address: Address, asked: Sequence[Command[Item]], /
    ) -> list[Item | DisqueError]:
        """Run commands at this node only."""
        ...


@attrs.frozen
class InSteps:
    """A blocking client with awaitable methods, which never yield to an event loop (`finished`)."""

    client: "BlockingClient"

    @property
    def nodes(self) -> Nodes:
        """The known nodes."""
        return self.client.nodes

    async def run(self, command: Command[Item], /) -> Item:
        """Run a command at the first node that can carry it out."""
        return self.client.run(command)

    async def ask(
        self, address: Address, asked: Sequence[Command[Item]], /
    ) -> list[Item | DisqueError]:
        """Run commands at this node only."""
        return self.client.ask(address, asked)


def finished(steps: Coroutine[Any, Any, Item]) -> Item:
    """The result of a coroutine that awaits only `InSteps`."""
    try:
        steps.send(None)
    except StopIteration as ended:
        result: Item = ended.value
        return result
    steps.close()
    raise RuntimeError("it waits for an event loop")


@attrs.frozen
class Found(Generic[Item]):
    """The combined answers of the nodes of a cluster."""

    items: list[Item]
    unreached: dict[str, str]
    """By node: why it has not answered. Items that only such nodes have are missing."""
    is_cut: bool = False
    """May there be more items than the requested limit?"""


async def at_each(client: Asking, ask: Callable[[Address], Awaitable[list[Item]]]) -> Found[Item]:
    """The answers of all nodes, in the order of the nodes. The client waits only once for a node
    that does not answer. Raises `NoNodeError` if no node answers."""
    await client.run(commands.ping())  # discovers the nodes
    answers: dict[str, list[Item]] = {}
    unreached: dict[str, str] = {}

    async def one(address: Address) -> None:
        try:
            answers[str(address)] = await ask(address)
        except DisqueError as error:
            unreached[str(address)] = str(error)

    nodes = client.nodes.order(now(client))
    if isinstance(client, InSteps):
        for address in nodes:
            await one(address)
    else:
        async with anyio.create_task_group() as tasks:
            for address in nodes:
                tasks.start_soon(one, address)
    return Found([item for node in nodes for item in answers.get(str(node), [])], unreached)


async def settled(client: Asking, command: Command[Item]) -> Item:
    """Run a command about a key. While a node does not answer, other nodes reject the command until
    they consider that node failed, so it is repeated until then. Raises errors of the client."""
    ends = now(client) + OUTAGE_S
    while True:
        try:
            return await client.run(command)
        except RefusedError as error:
            if error.code not in _DELAYED or now(client) >= ends:
                raise
        await pause(client, OUTAGE_PAUSE_S)


def now(client: Asking) -> float:
    """The current time on the clock of this client, in seconds."""
    return time.monotonic() if isinstance(client, InSteps) else anyio.current_time()


async def pause(client: Asking, seconds: float) -> None:
    """Sleep, in the thread or in the event loop of this client."""
    if isinstance(client, InSteps):
        time.sleep(seconds)
    else:
        await anyio.sleep(seconds)


def within(client: Asking, seconds: float | None) -> AbstractContextManager[object]:
    """Limit the block to this many seconds; None is no limit. Raises `TimeoutError` after that."""
    if isinstance(client, InSteps):
        return client.client.within(seconds)
    return anyio.fail_after(seconds)


def unwrap(result: Item | DisqueError) -> Item:
    """The result of a command. Raises it if it is an error."""
    if isinstance(result, DisqueError):
        raise result
    return result
