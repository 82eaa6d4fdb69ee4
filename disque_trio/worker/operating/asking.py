"""Asks all nodes of a cluster the same, for what each of them only knows its part of."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError

Item = TypeVar("Item")


@attrs.frozen
class Found(Generic[Item]):
    """What the nodes of a cluster have said."""

    items: list[Item]
    unreached: dict[str, str]
    """By node: why it has not answered. What only such nodes know is missing."""


async def at_each(client: Client, ask: Callable[[Address], Awaitable[list[Item]]]) -> Found[Item]:
    """What each node answers, in the order of the nodes. Raises `NoNodeError` if none does."""
    await client.run(commands.ping())  # it tells which nodes there are
    nodes = client.nodes.order(anyio.current_time())
    answers: dict[str, list[Item]] = {}
    unreached: dict[str, str] = {}

    async def one(address: Address) -> None:
        try:
            answers[str(address)] = await ask(address)
        except DisqueError as error:
            unreached[str(address)] = str(error)

    async with anyio.create_task_group() as tasks:
        for address in nodes:
            tasks.start_soon(one, address)
    return Found([item for node in nodes for item in answers.get(str(node), [])], unreached)


def given(result: Item | DisqueError) -> Item:
    """The result of a command, of which errors are raised."""
    if isinstance(result, DisqueError):
        raise result
    return result
