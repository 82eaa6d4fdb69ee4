"""The asynchronous client of a cluster, on Trio and on asyncio (docs/client.md).

Requests of all tasks share one connection to one node. ADDJOBs share another one, because they wait
for replicas. Each waiting GETJOB has its own connection. If the node fails, another one is used.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.lowlevel
import attrs

from disque_trio.client import commands, streams
from disque_trio.client.address import Address
from disque_trio.client.base import ClusterClient
from disque_trio.client.command import Command, LongWait, outcome
from disque_trio.client.errors import (
    ConnectionFailedError,
    DisqueError,
    LostError,
    OtherLoopError,
)
from disque_trio.client.link import LET_GO_S, Link
from disque_trio.client.methods import method
from disque_trio.client.nodes import SILENT_S
from disque_trio.client.records import Job
from disque_trio.client.settings import EARLY_S, WINDOW
from disque_trio.client.streams import Connect
from disque_trio.client.watched import watching
from disque_trio.statemachine.base import Reply

_ADDS: Final = "adds"
_OTHERS: Final = "others"

Result = TypeVar("Result")


@attrs.define(eq=False, repr=False)
class Client(ClusterClient):
    """A client of a cluster, for one event loop. Any number of tasks may use it at the same time.
    Use in another event loop raises `OtherLoopError`, unless the first loop has ended or the client
    was closed."""

    connect: Connect = attrs.field(default=streams.connect, kw_only=True)
    """Opens the streams to nodes."""
    _shared: dict[tuple[str, str], Link] = attrs.field(init=False, factory=dict)
    _idle: dict[str, list[Link]] = attrs.field(init=False, factory=dict)
    """Idle connections for requests that wait."""
    _waiting: dict[Link, None] = attrs.field(init=False, factory=dict)
    _opening: dict[tuple[str, str], anyio.Lock] = attrs.field(init=False, factory=dict)
    """One lock per connection, so that a node that is slow to greet does not delay others."""
    _loop: Any = attrs.field(init=False, default=None)
    """The event loop of its connections."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests in progress fail. The next request opens a new
        connection."""
        for link in self._forgotten():
            await link.close()

    def abandon(self) -> None:
        """Shut down all connections without an event loop, after the client's loop has ended."""
        for link in self._forgotten():
            link.abandon()

    def _forgotten(self) -> list[Link]:
        idle = [link for links in self._idle.values() for link in links]
        links = [*self._shared.values(), *idle, *self._waiting]
        self._shared.clear()
        self._idle.clear()
        self._waiting.clear()
        self._loop = None
        return links

    # Any command.

    async def run(self, command: Command[Result], *, first: Address | None = None) -> Result:
        """Run a command on the first node that supports it, and return its result.

        The node `first` is tried before the others. A long wait is split into several requests.
        Raises `RefusedError` if the node rejects the command, `NoNodeError` if no node answers, and
        `LostError` if the connection broke during a command that must not be repeated.
        """
        if isinstance(command, LongWait):
            result: Result = await self._run_in_parts(command, first)
            return result
        attempts = self._attempts(command, first, began := anyio.current_time())
        asked = command
        for address in attempts:
            with attempts:
                (reply,) = await self._ask(address, [asked])
                return asked.result(reply)
            asked = command.after(anyio.current_time() - began)
        raise AssertionError("a loop over nodes ends by an error")

    async def _run_in_parts(self, command: LongWait[Result], first: Address | None) -> Result:
        waited_s = 0.0
        while True:
            part, began = command.part(waited_s), anyio.current_time()
            result = await self.run(part, first=first)
            waited_s += part.wait_s
            is_early = anyio.current_time() - began < part.wait_s - EARLY_S
            if result or is_early or waited_s >= command.wait_s:
                return result

    async def run_all(
        self, asked: Sequence[Command[Result]], window: int = WINDOW
    ) -> list[Result | DisqueError]:
        """Run many commands in a pipeline, and return their results in order.

        The result of a failed command is its error. If the connection breaks, commands that may be
        repeated and those that were not sent go to another node. Raises `NoNodeError` if no node
        answers.
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

    async def ask(
        self, address: Address, asked: Sequence[Command[Result]], window: int = WINDOW
    ) -> list[Result | DisqueError]:
        """Run commands on this node only, and return their results; the result of a failed command
        is its error. Raises `ConnectionFailedError` or `LostError`; the client continues to use the
        node."""
        results: list[Result | DisqueError] = []
        for start in range(0, len(asked), window):
            some = asked[start : start + window]
            results += map(outcome, some, await self._ask(address, some))
        return results

    async def _ask_all(self, asked: Sequence[Command[Result]]) -> list[Reply]:
        is_repeatable = all(each.is_repeatable for each in asked)
        attempts = self.nodes.attempts(anyio.current_time(), is_repeatable=is_repeatable)
        for address in attempts:
            with attempts:
                return await self._ask(address, asked)
        raise AssertionError("a loop over nodes ends by an error")

    # The commands.

    addjob = method(commands.addjob)
    getjob = method(commands.getjob)
    ackjob = method(commands.ackjob)
    fastack = method(commands.fastack)
    nack = method(commands.nack)
    release = method(commands.release)
    begin = method(commands.begin)
    redrive = method(commands.redrive)
    redrive_queue = method(commands.redrive_queue)
    working = method(commands.working)
    working_all = method(commands.working_all)
    enqueue = method(commands.enqueue)
    enqueue_queue = method(commands.enqueue_queue)
    dequeue = method(commands.dequeue)
    deljob = method(commands.deljob)
    waitjob = method(commands.waitjob)
    waitresult = method(commands.waitresult)
    show = method(commands.show)
    show_key = method(commands.show_key)
    cancel_key = method(commands.cancel_key)
    qlen = method(commands.qlen)
    qpeek = method(commands.qpeek)
    qstat = method(commands.qstat)
    qscan = method(commands.qscan)
    jscan = method(commands.jscan)
    pause = method(commands.pause)
    limit_queue = method(commands.limit_queue)
    queue_info = method(commands.queue_info)
    purge = method(commands.purge)
    unblock = method(commands.unblock)
    time = method(commands.time)
    info = method(commands.info)
    call = method(commands.call)

    # Connections.

    def _be_in_one_loop(self) -> None:
        """Raise `OtherLoopError` in an event loop other than that of the connections."""
        loop = anyio.lowlevel.current_token().native_token
        if loop is self._loop:
            return
        if self._loop is not None and not _has_ended(self._loop):
            raise OtherLoopError
        self.abandon()  # connections of a loop that has ended
        self._opening.clear()
        self._loop = loop

    async def _ask(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        """The replies of a node. If it was unresponsive lately, it must answer a PING first
        (`Nodes.must_be_tried`)."""
        began = anyio.current_time()
        if self.nodes.must_be_tried(address, began):
            try:
                with anyio.fail_after(SILENT_S):
                    await self._exchange(address, [commands.ping()])
            except (LostError, TimeoutError) as error:
                raise ConnectionFailedError(self.nodes.reason(address)) from error
        try:
            replies = await self._exchange(address, asked)
        except BaseException:
            self._note_silence(address, asked, began, anyio.current_time())
            raise
        self.nodes.spoke(address)
        return replies

    async def _exchange(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        """The replies of a node. If a connection that was used before has ended unnoticed, a new
        one replaces it, except for commands that must not be repeated."""
        self._be_in_one_loop()
        waits = any(each.wait_s and each.words[0] != b"ADDJOB" for each in asked)
        is_repeatable = all(each.is_repeatable for each in asked)
        while True:
            link = await self._link_for(address, asked, waits=waits)
            was_used, link.was_used = link.was_used, True
            is_sent = False
            try:
                if was_used and not is_repeatable:
                    await link.probe()
                is_sent = True
                return await (self._wait(link, asked) if waits else self._share(link, asked))
            except LostError:
                may_repeat = is_repeatable and not link.was_silent
                if not was_used or (is_sent and not may_repeat):
                    raise

    async def _link_for(
        self, address: Address, asked: Sequence[Command[Result]], *, waits: bool
    ) -> Link:
        if waits:
            return await self._idle_link(address)
        return await self._shared_link(
            address, _ADDS if asked[0].words[0] == b"ADDJOB" else _OTHERS
        )

    async def _share(self, link: Link, asked: Sequence[Command[Result]]) -> list[Reply]:
        # Jobs in transit must not be lost; without a wait they arrive immediately.
        replies: list[Reply] = []
        with anyio.CancelScope(shield=any(each.words[0] == b"GETJOB" for each in asked)):
            replies += await self._sent(link, asked)
        return replies

    async def _sent(self, link: Link, asked: Sequence[Command[Result]]) -> list[Reply]:
        known = self.nodes.features(link.address)
        words = [each.words_for(known) for each in asked]
        return await link.ask(words, self._patience(link.address, asked))

    async def _wait(self, link: Link, asked: Sequence[Command[Result]]) -> list[Reply]:
        self._waiting[link] = None
        is_done = False
        try:
            replies = await self._sent(link, asked)
            is_done = True
        finally:
            self._waiting.pop(link, None)
            if is_done:
                self._idle.setdefault(str(link.address), []).append(link)
            elif link.is_open:
                await self._let_go(link, asked)
        return replies

    async def _let_go(self, link: Link, asked: Sequence[Command[Result]]) -> None:
        """The waiting task was cancelled: release jobs that have arrived for it."""
        if not any(each.words[0] == b"GETJOB" for each in asked):
            with anyio.CancelScope(shield=True):
                await link.close()
            return
        jobs: list[Job] = []
        for command, reply in zip(asked, await self._last_replies(link, asked), strict=False):
            result = outcome(command, reply)
            if command.words[0] == b"GETJOB" and isinstance(result, list):
                jobs += result
        if jobs:
            with anyio.move_on_after(self.patience_s, shield=True), suppress(DisqueError):
                await self.run(commands.release(*jobs), first=link.address)

    async def _last_replies(self, link: Link, asked: Sequence[Command[Result]]) -> list[Reply]:
        known = self.nodes.features(link.address)
        if link.client_id is None or len(asked) > 1 or "unblock" not in known:
            return await link.let_go()
        replies: list[Reply] = []
        with anyio.move_on_after(LET_GO_S, shield=True), suppress(DisqueError):
            await self._ask(link.address, [commands.unblock(link.client_id)])
            replies += await link.rest()
        if replies:
            self._idle.setdefault(str(link.address), []).append(link)
        else:
            with anyio.CancelScope(shield=True):
                await link.close()
        return replies

    async def _shared_link(self, address: Address, purpose: str) -> Link:
        key = (str(address), purpose)
        link = self._shared.get(key)
        if link is not None and link.is_open:
            return link
        async with self._opening.setdefault(key, anyio.Lock()):
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
        # With TLS a client cannot close only its sending direction (`Link.let_go`).
        return await self._open(address, asks_id=address.tls is not None)

    async def _open(self, address: Address, *, asks_id: bool = False) -> Link:
        connect = self.connect
        if self.recorder is not None:
            connect = watching(self.recorder, connect)
        stream = await connect(address, self.connect_timeout_s)
        link = Link(address, stream, self.patience_s)
        greeting = self._greeting()
        try:
            introduction = greeting.meaning(
                await link.ask(greeting.requests, self._greeting_s), address
            )
            if asks_id:
                (reply,) = await link.ask([(b"CLIENT", b"ID")])
                link.client_id = reply if isinstance(reply, int) else None
        except LostError as error:
            raise greeting.end(error, address) from error
        except BaseException:
            with anyio.CancelScope(shield=True):
                await link.close()
            raise
        self.nodes.introduced(address, introduction)
        return link


def _has_ended(loop: Any) -> bool:
    if hasattr(loop, "is_closed"):
        return bool(loop.is_closed())
    try:
        loop.run_sync_soon(int)
    except RuntimeError:  # Trio's `RunFinishedError`
        return True
    return False
