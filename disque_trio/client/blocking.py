"""The blocking client of a cluster, for threads, shells and code without an event loop.

It has the methods of the asynchronous client (docs/client.md). One thread uses it at a time; a
forked process opens connections of its own.
"""

import math
import os
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.commands import Command, Facts, Job, Text, outcome
from disque_trio.client.connection import Connection
from disque_trio.client.errors import DisqueError, LostError
from disque_trio.client.greeting import Greeting
from disque_trio.client.nodes import Nodes
from disque_trio.client.settings import CONNECT_TIMEOUT_S, DEFAULT_URL, PATIENCE_S, WINDOW
from disque_trio.client.url import parse_url
from disque_trio.statemachine.base import Reply

Result = TypeVar("Result")


class BlockingClient:
    """A client of a cluster, with one connection to a node at a time."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        discover: bool | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """As `Client`."""
        seeds, password = parse_url(url)
        self.nodes: Final = Nodes(seeds, seeds[0].tls is None if discover is None else discover)
        self._greeting = Greeting(password)
        self._connect_timeout_s = connect_timeout_s
        self._patience_s = patience_s
        self._connections: dict[str, Connection] = {}
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. The next request opens one again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # Any command.

    def run(self, command: Command[Result]) -> Result:
        """The result of a command, from the first node that can do it (`Client.run`)."""
        attempts = self.nodes.attempts(time.monotonic(), is_repeatable=command.is_repeatable)
        for address in attempts:
            with attempts:
                (reply,) = self._ask(address, [command])
                return command.result(reply)
        raise AssertionError("a loop over nodes ends by an error")

    def run_all(
        self, asked: Sequence[Command[Result]], window: int = WINDOW
    ) -> list[Result | DisqueError]:
        """The results of many commands, in their order (`Client.run_all`)."""
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

    def _ask_all(self, asked: Sequence[Command[Result]]) -> list[Reply]:
        is_repeatable = all(each.is_repeatable for each in asked)
        attempts = self.nodes.attempts(time.monotonic(), is_repeatable=is_repeatable)
        for address in attempts:
            with attempts:
                return self._ask(address, asked)
        raise AssertionError("a loop over nodes ends by an error")

    # The commands.

    def addjob(
        self,
        queue: Text,
        body: Text,
        *,
        timeout: float | None = commands.ADD_TIMEOUT_S,
        replicate: int | None = None,
        delay: int = 0,
        retry: int | None = None,
        ttl: int | None = None,
        maxlen: int | None = None,
        is_async: bool = False,
    ) -> str:
        """Add a job; its id. Seconds; `timeout` limits the wait for copies, None is for ever."""
        return self.run(
            commands.addjob(
                queue,
                body,
                timeout=timeout,
                replicate=replicate,
                delay=delay,
                retry=retry,
                ttl=ttl,
                maxlen=maxlen,
                is_async=is_async,
            )
        )

    def getjob(self, *queues: Text, count: int = 1, timeout: float | None = None) -> list[Job]:
        """Take up to `count` jobs; wait so many seconds for the first one, None is for ever."""
        return self.run(commands.getjob(queues, count=count, timeout=timeout))

    def ackjob(self, *ids: str) -> int:
        """Acknowledge jobs; how many were known to the node and not acknowledged yet."""
        return self.run(commands.ackjob(ids))

    def fastack(self, *ids: str) -> int:
        """Acknowledge jobs with fewer messages; how many the node held."""
        return self.run(commands.fastack(ids))

    def nack(self, *ids: str) -> int:
        """Give jobs back as not done; how many were queued again."""
        return self.run(commands.nack(ids))

    def working(self, job_id: str) -> int:
        """Renew a job's lease; for how many seconds."""
        return self.run(commands.working(job_id))

    def enqueue(self, *ids: str) -> int:
        """Queue jobs that are not queued now; how many."""
        return self.run(commands.enqueue(ids))

    def dequeue(self, *ids: str) -> int:
        """Take jobs out of their queues until their retry time comes; how many."""
        return self.run(commands.dequeue(ids))

    def deljob(self, *ids: str) -> int:
        """Drop jobs from one node; how many."""
        return self.run(commands.deljob(ids))

    def show(self, job_id: str) -> Facts | None:
        """What a node knows of a job; None if it does not hold it."""
        return self.run(commands.show(job_id))

    def qlen(self, queue: Text) -> int:
        """How many jobs a queue has on one node."""
        return self.run(commands.qlen(queue))

    def qpeek(self, queue: Text, count: int = 1) -> list[Job]:
        """The oldest jobs of a queue on one node, or with a negative count the newest."""
        return self.run(commands.qpeek(queue, count))

    def qstat(self, queue: Text) -> Facts | None:
        """What a node knows of a queue; None if it has none of this name."""
        return self.run(commands.qstat(queue))

    def pause(self, queue: Text, *options: str) -> str:
        """Pause a queue (`in`, `out`, `all`, `none`, `state`, `bcast`); its state now."""
        return self.run(commands.pause(queue, *options))

    def info(self, section: str = "all") -> dict[str, str]:
        """State and counters of a node."""
        return self.run(commands.info(section))

    def call(self, *words: Text | float) -> Reply:
        """Any command; its reply as it is. Raises `RefusedError` for an error."""
        return self.run(commands.call(*words))

    # Connections.

    def _ask(self, address: Address, asked: Sequence[Command[Result]]) -> list[Reply]:
        connection = self._ready(address)
        wait_s = max(each.wait_s for each in asked)
        connection.wait_at_most(None if wait_s == math.inf else self._patience_s + wait_s)
        connection.send_all([each.words for each in asked])
        is_done = False
        try:
            replies = [connection.receive() for _ in asked]
            is_done = True
        finally:
            if not is_done:  # interrupted: its replies must not answer what comes next
                connection.close()
        return replies

    def _ready(self, address: Address) -> Connection:
        if self._process != os.getpid():
            # The parent goes on with its connections: they are left alone, not ended.
            self._connections = {}
            self._process = os.getpid()
        connection = self._connections.get(str(address))
        if connection is None:
            connection = Connection(
                address,
                connect_timeout_s=self._connect_timeout_s,
                patience_s=self._patience_s,
            )
            self._connections[str(address)] = connection
        if connection.is_live():
            return connection
        connection.ready()
        try:
            connection.send_all(self._greeting.requests)
            hello = self._greeting.meaning([connection.receive() for _ in self._greeting.requests])
        except LostError as error:
            raise error.before_the_request() from error
        except BaseException:
            connection.close()
            raise
        self.nodes.introduced(address, hello)
        return connection
