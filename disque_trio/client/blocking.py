"""The blocking client of a cluster, for threads, shells and code without an event loop.

It has the methods of the asynchronous client (docs/client.md). Only one thread may use it at a
time; a forked process opens its own connections.
"""

import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Self, TypeVar

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.base import ClusterClient
from disque_trio.client.command import Command, LongWait, outcome
from disque_trio.client.connection import Connection
from disque_trio.client.errors import BusyError, ConnectionFailedError, DisqueError, LostError
from disque_trio.client.methods import blocking
from disque_trio.client.nodes import SILENT_S, NoNodeError
from disque_trio.client.settings import EARLY_S, PROBE_S, WINDOW
from disque_trio.statemachine.base import Reply

Result = TypeVar("Result")
_SHORTEST_S: Final = 0.001
"""Sockets interpret 0 as "do not wait"."""


@attrs.define(eq=False, repr=False)
class BlockingClient(ClusterClient):
    """A client of a cluster that blocks its thread, with one connection per node. Concurrent use by
    two threads raises `BusyError`."""

    _connections: dict[str, Connection] = attrs.field(init=False, factory=dict)
    _process: int = attrs.field(init=False, factory=os.getpid)
    _busy: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    """Held while a thread uses the client."""
    _ends_at: float = attrs.field(init=False, default=math.inf)
    """The end of `within`, by `time.monotonic`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. The next request opens a new one."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Limit the requests of the block to this many seconds in total; None is no limit. Raises
        `TimeoutError` if a request fails because of that."""
        outer = self._ends_at
        self._ends_at = min(outer, math.inf if seconds is None else time.monotonic() + seconds)
        try:
            yield
        except (ConnectionFailedError, NoNodeError) as error:
            if time.monotonic() < self._ends_at:
                raise
            raise TimeoutError(f"no node answered in time: {error}") from error
        finally:
            self._ends_at = outer

    def _left(self, limit_s: float) -> float:
        """The limit of a wait, in seconds."""
        return max(min(limit_s, self._ends_at - time.monotonic()), _SHORTEST_S)

    # Any command.

    def run(self, command: Command[Result], *, first: Address | None = None) -> Result:
        """Run a command on the first node that supports it, and return its result
        (`Client.run`)."""
        if isinstance(command, LongWait):
            result: Result = self._run_in_parts(command, first)
            return result
        attempts = self._attempts(command, first, began := time.monotonic())
        asked = command
        for address in attempts:
            with attempts:
                (reply,) = self._ask(address, [asked])
                return asked.result(reply)
            asked = command.after(time.monotonic() - began)
        raise AssertionError("a loop over nodes ends by an error")

    def _run_in_parts(self, command: LongWait[Result], first: Address | None) -> Result:
        waited_s = 0.0
        while True:
            part, began = command.part(waited_s), time.monotonic()
            result = self.run(part, first=first)
            waited_s += part.wait_s
            is_early = time.monotonic() - began < part.wait_s - EARLY_S
            if result or is_early or waited_s >= command.wait_s:
                return result

    def run_all(
        self, asked: Sequence[Command[Result]], window: int = WINDOW
    ) -> list[Result | DisqueError]:
        """Run many commands in a pipeline, and return their results in order (`Client.run_all`)."""
        results: list[Result | DisqueError] = []
        while len(results) < len(asked):
            some = asked[len(results) :][:window]
            try:
                replies = self._ask_all(some)
            except LostError as error:
                results += [error] * len(some)
            else:
                results += map(outcome, some, replies)
        return results

    def ask(
        self, address: Address, asked: Sequence[Command[Result]], window: int = WINDOW
    ) -> list[Result | DisqueError]:
        """Run commands on this node only, and return their results (`Client.ask`)."""
        results: list[Result | DisqueError] = []
        for start in range(0, len(asked), window):
            some = asked[start : start + window]
            results += map(outcome, some, self._ask(address, some))
        return results

    def _ask_all(self, asked: Sequence[Command[Result]]) -> list[Reply]:
        is_repeatable = all(each.is_repeatable for each in asked)
        attempts = self.nodes.attempts(time.monotonic(), is_repeatable=is_repeatable)
        for address in attempts:
            with attempts:
                return self._ask(address, asked)
        raise AssertionError("a loop over nodes ends by an error")

    # The commands.

    addjob = blocking(commands.addjob)
    getjob = blocking(commands.getjob)
    ackjob = blocking(commands.ackjob)
    fastack = blocking(commands.fastack)
    nack = blocking(commands.nack)
    release = blocking(commands.release)
    begin = blocking(commands.begin)
    redrive = blocking(commands.redrive)
    redrive_queue = blocking(commands.redrive_queue)
    working = blocking(commands.working)
    working_all = blocking(commands.working_all)
    enqueue = blocking(commands.enqueue)
    enqueue_queue = blocking(commands.enqueue_queue)
    dequeue = blocking(commands.dequeue)
    deljob = blocking(commands.deljob)
    waitjob = blocking(commands.waitjob)
    waitresult = blocking(commands.waitresult)
    show = blocking(commands.show)
    show_key = blocking(commands.show_key)
    cancel_key = blocking(commands.cancel_key)
    qlen = blocking(commands.qlen)
    qpeek = blocking(commands.qpeek)
    qstat = blocking(commands.qstat)
    qscan = blocking(commands.qscan)
    jscan = blocking(commands.jscan)
    pause = blocking(commands.pause)
    limit_queue = blocking(commands.limit_queue)
    queue_info = blocking(commands.queue_info)
    purge = blocking(commands.purge)
    unblock = blocking(commands.unblock)
    time = blocking(commands.time)
    info = blocking(commands.info)
    call = blocking(commands.call)

    # Connections.

    def _ask(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        """The replies of a node (`Client._ask`)."""
        self._notice_fork()
        if not self._busy.acquire(blocking=False):
            raise BusyError
        try:
            return self._ask_alone(address, asked)
        finally:
            self._busy.release()

    def _ask_alone(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        began = time.monotonic()
        if self.nodes.must_be_tried(address, began):
            try:
                with self.within(SILENT_S):
                    self._exchange(address, [commands.ping()])
            except (LostError, TimeoutError) as error:
                raise ConnectionFailedError(self.nodes.reason(address)) from error
        try:
            replies = self._exchange(address, asked)
        except BaseException:
            self._note_silence(address, asked, began, time.monotonic())
            raise
        self.nodes.spoke(address)
        return replies

    def _exchange(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        is_repeatable = all(each.is_repeatable for each in asked)
        was_used = self._is_connected(address)
        if was_used and not is_repeatable:
            self._probe(self.connect(address))
        try:
            return self._sent(self.connect(address), asked)
        except LostError as error:
            if not (was_used and is_repeatable) or isinstance(error.__cause__, TimeoutError):
                raise
        return self._sent(self.connect(address), asked)

    def _is_connected(self, address: Address) -> bool:
        connection = self._connections.get(str(address))
        return connection is not None and connection.is_live()

    def _probe(self, connection: Connection) -> None:
        """Send a PING if the connection was idle for long, to check that the node still answers."""
        if time.monotonic() - connection.received_at > PROBE_S:
            with suppress(LostError):
                connection.send([b"PING"])
                connection.receive()

    def _sent(self, connection: Connection, asked: Sequence[Command[Result]]) -> list[Reply]:
        limit_s = self._left(self._patience(connection.address, asked))
        connection.wait_at_most(None if limit_s == math.inf else limit_s)
        known = self.nodes.features(connection.address)
        is_done = False
        try:
            connection.send_all([each.words_for(known) for each in asked])
            replies = [connection.receive() for _ in asked]
            is_done = True
        finally:
            if not is_done:  # interrupted: later requests must not receive its replies
                connection.close()
        return replies

    def open(self, address: Address) -> Connection:
        """Open a separate connection to this node, for raw replies. Raises
        `ConnectionFailedError`."""
        connection = Connection(
            address,
            connect_timeout_s=self.connect_timeout_s,
            patience_s=self.patience_s,
            recorder=self.recorder,
        )
        self._greet(connection)
        return connection

    def connect(self, address: Address) -> Connection:
        """The connection to this node, which is opened if necessary. Raises
        `ConnectionFailedError`."""
        self._notice_fork()
        connection = self._connections.get(str(address))
        if connection is None:
            connection = self._connections[str(address)] = self.open(address)
        elif not connection.is_live():
            self._greet(connection)
        return connection

    def _notice_fork(self) -> None:
        if self._process != os.getpid():
            # The parent continues to use its connections, so do not close them.
            self._connections, self._busy = {}, threading.Lock()
            self._process = os.getpid()

    def _greet(self, connection: Connection) -> None:
        greeting = self._greeting()
        limit_s = self._left(self.connect_timeout_s or math.inf)
        connection.connect_timeout_s = 0.0 if limit_s == math.inf else limit_s
        connection.ready()
        connection.wait_at_most(self._left(self._greeting_s))
        replies: list[Reply] = []
        try:
            connection.send_all(greeting.requests)
            while len(replies) < len(greeting.requests):
                replies.append(connection.receive())
            introduction = greeting.meaning(replies, connection.address)
            connection.wait_at_most(self.patience_s)
        except LostError as error:
            if not isinstance(error.__cause__, TimeoutError):  # or else ignore the replies
                error.replies = replies
            raise greeting.end(error, connection.address) from error
        except BaseException:
            connection.close()
            raise
        self.nodes.introduced(connection.address, introduction)
