"""Adds the jobs of one task, and later makes them visible or removes them.

A job that waits for the commit is added with a DELAY, the hold, and ENQUEUE ends it: only its id
has to be remembered. The price: jobs that are never committed are queued when the hold ends.
"""

import contextlib
import logging
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.client.leases import Jobs
from disque_trio.client.refusals import refused
from disque_trio.pipeline.connector.nodes import NodeGoneError, Nodes, UnreachableError, number
from disque_trio.pipeline.connector.rows import Row
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine.base import Failure, Reply, Status

_WINDOW: Final = 512
_WINDOW_BYTES: Final = 4 << 20
"""Limits of a window: what is sent before replies are read."""
_IDS: Final = 500
"""Ids in one command."""
_ELSEWHERE: Final = (b"NOREPL", b"OOM", b"LEAVING", b"LOADING", b"MISCONF", b"PAUSED")
"""Refusals that other nodes may not give, or this one not for long."""
PATIENCE_S: Final = 30.0
"""How long to try when all nodes refuse a job or none answers: they may be partitioned."""
PAUSE_S: Final = 0.5
_log: Final = logging.getLogger(__name__)


@attrs.define
class Added:
    """Jobs by the node that added them."""

    held: Jobs = attrs.field(factory=dict)
    """They wait for ENQUEUE."""
    free: Jobs = attrs.field(factory=dict)
    """They are visible at once."""
    until: float = math.inf
    """When the first hold ends, as wall clock in seconds."""

    def include(self, other: "Added") -> None:
        """Add these."""
        for mine, theirs in ((self.held, other.held), (self.free, other.free)):
            for node, ids in theirs.items():
                mine.setdefault(node, []).extend(ids)
        self.until = min(self.until, other.until)


@attrs.define(eq=False)
class Adder:
    """Adds one task's jobs to one node, as long as that answers."""

    nodes: Nodes
    first: int
    """The number of the node to begin with, so that tasks use different nodes."""
    connections: int
    timeout_ms: int
    patience_s: float = PATIENCE_S
    added: Added = attrs.field(init=False, factory=Added)
    """All jobs so far."""
    node: str = attrs.field(init=False, default="")
    """The one in use."""
    unsure: int = attrs.field(init=False, default=0)
    """Jobs that were added again, because a node did not say whether it had added them."""
    _connections: list[Connection] = attrs.field(init=False, factory=list)

    def add(self, rows: Sequence[Row]) -> Added:
        """Add a window of jobs. Raises `PipelineError`; then some of them may be in `added`."""
        fresh = Added()
        left = list(rows)
        tried: list[str] = []
        refusal = "none answers"
        deadline = time.monotonic() + self.patience_s
        try:
            while left:
                if self._connect(tried):
                    left, refusal = self._attempt(left, fresh)
                elif time.monotonic() < deadline:
                    tried.clear()
                    time.sleep(PAUSE_S)
                    continue
                else:
                    raise PipelineError(f"no node takes the job: {refusal}")
                if left:
                    tried.append(self.node)
                    self.close()
        finally:
            self.added.include(fresh)
        return fresh

    def _connect(self, tried: Sequence[str]) -> bool:
        """Connect to the next node unless there are connections; False if all were tried."""
        if self._connections:
            return True
        try:
            live = self.nodes.live()
        except UnreachableError:
            return False
        order = [live[(self.first + step) % len(live)] for step in range(len(live))]
        for name in order:
            if name in tried:
                continue
            try:
                for _ in range(self.connections):
                    self._connections.append(self.nodes.open(name))
            except NodeGoneError:
                self.close()
                continue
            self.node = name
            return True
        return False

    def _attempt(self, rows: list[Row], fresh: Added) -> tuple[list[Row], str]:
        """Add the rows to the node. Returns those that it did not add, and why."""
        shares = [
            (connection, rows[at :: len(self._connections)])
            for at, connection in enumerate(self._connections)
        ]
        timeout = b"%d" % max(self.timeout_ms * 4 // 5, 1)  # the node gives up before we do
        started = time.time()
        broken: dict[int, str] = {}
        for at, (connection, part) in enumerate(shares):
            try:
                connection.send_all([row.request(timeout) for row in part])
            except ConnectionFailedError as error:
                broken[at] = error.reason
        left: list[Row] = []
        why = fatal = ""
        for at, (connection, part) in enumerate(shares):
            for row in part:
                reply: Reply | str
                try:
                    reply = broken[at] if at in broken else connection.receive()
                except ConnectionFailedError as error:
                    reply = broken[at] = error.reason
                reason = self._take(row, reply, started, fresh)
                if reason:
                    left.append(row)
                    why = reason
                if isinstance(reply, Failure) and not reply.text.startswith(_ELSEWHERE):
                    fatal = reason
        if fatal:  # raised after all replies, when `fresh` is complete
            raise PipelineError(fatal)
        return left, why

    def _take(self, row: Row, reply: Reply | str, started: float, fresh: Added) -> str:
        """Keep the id of the job. Returns why there is none, if so."""
        if isinstance(reply, Status):
            place = fresh.free if row.terms.hold_s is None else fresh.held
            place.setdefault(self.node, []).append(reply.text.decode())
            if row.terms.hold_s is not None:
                fresh.until = min(fresh.until, started + row.terms.hold_s)
            return ""
        if isinstance(reply, str):
            self.unsure += 1
            return reply
        assert isinstance(reply, Failure), reply
        error = refused(reply, "ADDJOB")
        return f"{self.node} refuses a job: {error.code} {error.text}"

    def close(self) -> None:
        """Hang up."""
        for connection in self._connections:
            connection.close()
        self._connections = []


def windows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in windows; the same rows give the same windows."""
    window: list[Row] = []
    size = 0
    for row in rows:
        window.append(row)
        size += len(row.body)
        if len(window) == _WINDOW or size > _WINDOW_BYTES:
            yield window
            window, size = [], 0
    if window:
        yield window


def release(nodes: Nodes, jobs: Jobs) -> None:
    """Make jobs visible. Those on nodes that do not answer become visible when the hold ends."""
    for node, ids in jobs.items():
        rest = _enqueue(nodes, node, ids)
        for other in nodes.names():
            if rest and other != node:
                rest = _enqueue_each(nodes, other, rest)
        if rest:
            _log.warning(
                "%d jobs, such as %s, are on none of the nodes that answer; they are queued later",
                len(rest),
                rest[0],
            )


def _enqueue(nodes: Nodes, node: str, ids: Sequence[str]) -> list[str]:
    """At the node that added them, many at once. Returns those that it does not have."""
    parts = list(_parts(ids))
    try:
        counts = nodes.ask(node, [commands.enqueue(*part) for part in parts])
        short = [part for part, n in zip(parts, counts, strict=True) if number(n) < len(part)]
        doubtful = [job for part in short for job in part]
        shown = nodes.ask(node, [commands.show(job) for job in doubtful])
    except NodeGoneError as error:
        _log.warning("a node is left out: %s", error)
        return list(ids)
    return [job for job, found in zip(doubtful, shown, strict=True) if found is None]


def _enqueue_each(nodes: Nodes, node: str, ids: Sequence[str]) -> list[str]:
    """At another node, one at a time: two holders that were asked would both queue the job.

    Returns those that it does not have.
    """
    try:
        counts = nodes.ask(node, [commands.enqueue(job) for job in ids])
    except NodeGoneError:
        return list(ids)
    return [job for job, count in zip(ids, counts, strict=True) if count != 1]


def undo(nodes: Nodes, added: Added) -> None:
    """Remove jobs everywhere.

    By ACKJOB: DELJOB removes the copy of one node only, and the other copies would be queued.
    """
    for node, ids in (*added.held.items(), *added.free.items()):
        asked = [commands.ackjob(*part) for part in _parts(ids)]
        for name in [node, *(other for other in nodes.names() if other != node)]:
            with contextlib.suppress(NodeGoneError):
                nodes.ask(name, asked)
                break
        else:
            _log.warning("%d jobs, such as %s, could not be undone", len(ids), ids[0])


def _parts(ids: Iterable[str]) -> Iterator[list[str]]:
    left = iter(ids)
    while part := list(islice(left, _IDS)):
        yield part
