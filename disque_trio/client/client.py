"""The asynchronous client of a cluster, on Trio and on asyncio (docs/client.md).

Requests of all tasks share one connection to one node, and another one for ADDJOBs, which wait for
copies. A GETJOB that waits has a connection of its own. If the node fails, another one is asked.
"""

from collections.abc import Sequence
from typing import Final, Self, TypeVar

import anyio

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.base import ClusterClient
from disque_trio.client.commands import Command, outcome
from disque_trio.client.errors import DisqueError, LostError
from disque_trio.client.link import Link
from disque_trio.client.methods import method
from disque_trio.client.settings import CONNECT_TIMEOUT_S, DEFAULT_URL, PATIENCE_S, WINDOW
from disque_trio.client.streams import Connect, connect
from disque_trio.statemachine.base import Reply

_ADDS: Final = "adds"
_OTHERS: Final = "others"

Result = TypeVar("Result")


class Client(ClusterClient):
    """A client of a cluster. Any number of tasks may use it at the same time."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        discover: bool | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        connect: Connect = connect,
    ) -> None:
        """As `ClusterClient`; `connect` opens the streams."""
        super().__init__(
            url, discover=discover, connect_timeout_s=connect_timeout_s, patience_s=patience_s
        )
        self._connect = connect
        self._shared: dict[tuple[str, str], Link] = {}
        self._idle: dict[str, list[Link]] = {}
        """Links for requests that wait, which wait for nothing now."""
        self._waiting: dict[Link, None] = {}
        self._opening = anyio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests under way fail. The next request opens one again."""
        idle = [link for links in self._idle.values() for link in links]
        links = [*self._shared.values(), *idle, *self._waiting]
        self._shared.clear()
        self._idle.clear()
        for link in links:
            await link.close()

    # Any command.

    async def run(self, command: Command[Result]) -> Result:
        """The result of a command, from the first node that can do it.

        Raises `RefusedError` if the node refuses it, `NoNodeError` if no node answers, and
        `LostError` if the connection broke while a command that must not be sent twice was under
        way.
        """
        now = anyio.current_time()
        attempts = self.nodes.attempts(now, is_repeatable=command.is_repeatable)
        for address in attempts:
            with attempts:
                return command.result(await self._ask(address, command))
        raise AssertionError("a loop over nodes ends by an error")

    async def run_all(
        self, asked: Sequence[Command[Result]], window: int = WINDOW
    ) -> list[Result | DisqueError]:
        """The results of many commands, in their order; errors stand where results would.

        They go through one connection, so many at a time. If it breaks, what may be repeated and
        what is left go to another node. Raises `NoNodeError` if no node answers.
        """
        results: list[Result | DisqueError] = []
        while len(results) < len(asked):
            some = asked[len(results) :][:window]
            try:
                replies = await self._ask_all(some)
            except LostError as error:
                results += [error] * len(some)
            else:
                results += map(outcome, some, replies)
        return results

    async def _ask_all(self, asked: Sequence[Command[Result]]) -> list[Reply]:
        is_repeatable = all(each.is_repeatable for each in asked)
        attempts = self.nodes.attempts(anyio.current_time(), is_repeatable=is_repeatable)
        for address in attempts:
            with attempts:
                link = await self._shared_link(address, _purpose(asked[0]))
                wait_s = max(each.wait_s for each in asked)
                return await link.ask([each.words for each in asked], wait_s)
        raise AssertionError("a loop over nodes ends by an error")

    # The commands.

    addjob = method(commands.addjob)
    getjob = method(commands.getjob)
    ackjob = method(commands.ackjob)
    fastack = method(commands.fastack)
    nack = method(commands.nack)
    release = method(commands.release)
    redrive = method(commands.redrive)
    redrive_queue = method(commands.redrive_queue)
    working = method(commands.working)
    enqueue = method(commands.enqueue)
    dequeue = method(commands.dequeue)
    deljob = method(commands.deljob)
    show = method(commands.show)
    show_key = method(commands.show_key)
    cancel_key = method(commands.cancel_key)
    qlen = method(commands.qlen)
    qpeek = method(commands.qpeek)
    qstat = method(commands.qstat)
    pause = method(commands.pause)
    info = method(commands.info)
    call = method(commands.call)

    # Connections.

    async def _ask(self, address: Address, command: Command[Result]) -> Reply:
        is_delivery = command.words[0] == b"GETJOB"
        if is_delivery and command.wait_s:
            return await self._wait(address, command)
        link = await self._shared_link(address, _purpose(command))
        # Jobs that are on their way must not be lost; without a wait they are here at once.
        with anyio.CancelScope(shield=is_delivery):
            (reply,) = await link.ask([command.words], command.wait_s)
        return reply

    async def _wait(self, address: Address, command: Command[Result]) -> Reply:
        link = await self._idle_link(address)
        self._waiting[link] = None
        is_done = False
        try:
            (reply,) = await link.ask([command.words], command.wait_s)
            is_done = True
        finally:
            del self._waiting[link]
            if is_done:
                self._idle.setdefault(str(address), []).append(link)
            elif link.is_open:
                await self._give_back(link, command)
        return reply

    async def _give_back(self, link: Link, command: Command[Result]) -> None:
        """The task that waited was cancelled."""
        for reply in await link.let_go():
            jobs = command.result(reply)
            if isinstance(jobs, list) and jobs:
                with anyio.move_on_after(self._patience_s, shield=True):
                    await self.run(commands.enqueue(*[job.id for job in jobs]))

    async def _shared_link(self, address: Address, purpose: str) -> Link:
        key = (str(address), purpose)
        async with self._opening:
            link = self._shared.get(key)
            if link is not None and not link.is_open:
                del self._shared[key]
                await link.close()
                link = None
            if link is None:
                link = self._shared[key] = await self._open(address)
        return link

    async def _idle_link(self, address: Address) -> Link:
        idle = self._idle.get(str(address), [])
        while idle:
            link = idle.pop()
            if link.is_open:
                return link
            await link.close()
        return await self._open(address)

    async def _open(self, address: Address) -> Link:
        stream = await self._connect(address, self._connect_timeout_s)
        link = Link(address, stream, self._patience_s)
        try:
            hello = self._greeting.meaning(await link.ask(self._greeting.requests))
        except LostError as error:
            raise error.before_the_request() from error
        except BaseException:
            with anyio.CancelScope(shield=True):
                await link.close()
            raise
        self.nodes.introduced(address, hello)
        return link


def _purpose(command: Command[Result]) -> str:
    """ADDJOBs wait for copies, and what comes after them waits with them."""
    return _ADDS if command.words[0] == b"ADDJOB" else _OTHERS
