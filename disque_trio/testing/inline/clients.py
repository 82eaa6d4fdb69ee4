"""Both clients, with requests to a node in memory."""

from collections.abc import Sequence
from typing import Final, TypeVar

import anyio.lowlevel
import attrs

from disque_trio.client import BlockingClient, Client
from disque_trio.client.address import Address, Cluster
from disque_trio.client.command import Command, LongWait
from disque_trio.statemachine.base import NULL_ARRAY, Reply
from disque_trio.testing.inline.node import HOST, InlineError, MemoryNode
from disque_trio.worker.results import QUEUES
from disque_trio.worker.runtime import Runtime

Result = TypeVar("Result")

_CLUSTER: Final = Cluster([Address(host=HOST)])
_NO_RESULT: Final = "no result has come: let `disque_inline` run the job first"


@attrs.define(eq=False, repr=False)
class InlineClient(Client):
    """The asynchronous client."""

    node: MemoryNode = attrs.field(kw_only=True)

    async def _run_in_parts(self, command: LongWait[Result], first: Address | None) -> Result:
        # A wait is virtual, and ends immediately.
        return await self.run(command.whole, first=first)

    async def _ask(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        await anyio.lowlevel.checkpoint()
        return _replies(self.node, asked)


@attrs.define(eq=False, repr=False)
class InlineBlockingClient(BlockingClient):
    """The blocking client."""

    node: MemoryNode = attrs.field(kw_only=True)

    def _run_in_parts(self, command: LongWait[Result], first: Address | None) -> Result:
        return self.run(command.whole, first=first)

    def _ask(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        return _replies(self.node, asked)


def _replies(node: MemoryNode, asked: Sequence[Command[Result]]) -> list[Reply]:
    return [_reply(node, each) for each in asked]


def _reply(node: MemoryNode, command: Command[Result]) -> Reply:
    words = _untied(command.words)
    if words[0] == b"GETJOB" and words[-1].startswith(QUEUES.encode()):
        reply = node.ask((b"GETJOB", b"NOHANG", b"COUNT", b"100", b"FROM", words[-1]))
        if reply is NULL_ARRAY:
            raise InlineError(_NO_RESULT)
        return reply
    reply = node.ask(words, command.wait_s)
    if reply is None and words[0] == b"WAITJOB" and words[-1] == b"WITHRESULT" and command.wait_s:
        raise InlineError(_NO_RESULT)
    return reply


def _untied(words: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The words without TIED: each request has its own connection, which ends immediately."""
    if words[0] != b"GETJOB" or b"TIED" not in words[: words.index(b"FROM")]:
        return words
    at = words.index(b"TIED")
    return (*words[:at], *words[at + 1 :])


def world_of(node: MemoryNode) -> Runtime:
    """The runtime of apps, which replaces the network and the clock."""
    return Runtime(
        now=node.wall,
        client=lambda _: InlineClient(_CLUSTER, node=node),
        blocking_client=lambda _: InlineBlockingClient(_CLUSTER, node=node),
    )
