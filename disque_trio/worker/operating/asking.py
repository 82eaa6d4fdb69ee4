"""Asks all nodes of a cluster the same, for what each of them only knows its part of.

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
"""Codes of errors for a command about a key while a node does not answer."""


class Asking(Protocol):
    """A client whose requests are awaited: `Client`, or a blocking one `InSteps`."""

    @property
    def nodes(self) -> Nodes:
        """Those that it knows."""
        ...

    async def run(self, command: Command[Item], /) -> Item:
        """The result of a command, from the first node that can do it."""
        ...

    async def ask(
        self, address: Address, asked: Sequence[Command[Item]], /
    ) -> list[Item | DisqueError]:
        """The results of commands from this node and no other."""
        ...


@attrs.frozen
class InSteps:
    """A blocking client that is awaited. It never yields to an event loop (`finished`)."""

    client: "BlockingClient"

    @property
    def nodes(self) -> Nodes:
        """Those that it knows."""
        return self.client.nodes

    async def run(self, command: Command[Item], /) -> Item:
        """The result of a command, from the first node that can do it."""
        return self.client.run(command)

    async def ask(
        self, address: Address, asked: Sequence[Command[Item]], /
    ) -> list[Item | DisqueError]:
        """The results of commands from this node and no other."""
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
    """What the nodes of a cluster have said."""

    items: list[Item]
    unreached: dict[str, str]
    """By node: why it has not answered. What only such nodes know is missing."""
    is_cut: bool = False
    """May there be more, beyond the limit that was asked for?"""


async def at_each(client: Asking, ask: Callable[[Address], Awaitable[list[Item]]]) -> Found[Item]:
    """What each node answers, in the order of the nodes. The client does not wait twice for one
    that is silent. Raises `NoNodeError` if none answers."""
    await client.run(commands.ping())  # it tells which nodes there are
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
    """The result of a command about a key. While a node does not answer, the others refuse it until
    they give that node up: it is run again until then. Raises errors of the client."""
    ends = now(client) + OUTAGE_S
    while True:
        try:
            return await client.run(command)
        except RefusedError as error:
            if error.code not in _DELAYED or now(client) >= ends:
                raise
        await pause(client, OUTAGE_PAUSE_S)


def now(client: Asking) -> float:
    """The time of this client, in seconds."""
    return time.monotonic() if isinstance(client, InSteps) else anyio.current_time()


async def pause(client: Asking, seconds: float) -> None:
    """Sleep, in the thread or in the event loop of this client."""
    if isinstance(client, InSteps):
        time.sleep(seconds)
    else:
        await anyio.sleep(seconds)


def within(client: Asking, seconds: float | None) -> AbstractContextManager[object]:
    """Give the block so many seconds. Raises `TimeoutError` after that."""
    if isinstance(client, InSteps):
        return client.client.within(seconds)
    return anyio.fail_after(seconds)


def unwrap(result: Item | DisqueError) -> Item:
    """The result of a command, of which errors are raised."""
    if isinstance(result, DisqueError):
        raise result
    return result
