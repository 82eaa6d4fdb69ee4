"""Adds the jobs of one task.

A job that waits for the commit is added with a DELAY, the hold, and ENQUEUE ends it: only its id
has to be remembered. The price: jobs that are never committed are queued when the hold ends.
"""

import math
import time
from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.client.leases import Jobs
from disque_trio.client.refusals import refused
from disque_trio.pipeline.connector.nodes import NodeGoneError, Nodes, UnreachableError
from disque_trio.pipeline.connector.notes import PATIENCE_S, PAUSE_S
from disque_trio.pipeline.connector.rows import Row
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine.base import Failure, Reply, Status

_ELSEWHERE: Final = (b"NOREPL", b"OOM", b"LEAVING", b"LOADING", b"MISCONF", b"PAUSED")
"""Refusals that other nodes may not give, or this one not for long."""
UNIQUE: Final = "unique"
"""The feature of nodes that know keys."""
Name = tuple[bytes, bytes]
"""The queue and the key of a job."""
_DUPLICATE: Final = b"DUPLICATE "
_WAITING: Final = b" waiting"


@attrs.define
class Added:
    """Jobs by the node that added them."""

    held: Jobs = attrs.field(factory=dict)
    """They wait for ENQUEUE."""
    free: Jobs = attrs.field(factory=dict)
    """They are visible at once."""
    names: dict[str, Name] = attrs.field(factory=dict)
    """Of those with keys that wait."""
    found: list[Name] = attrs.field(factory=list)
    """Jobs with keys that were there before, and may wait for ENQUEUE."""
    recognized: int = 0
    """Rows with keys for which nothing was added."""
    until: float = math.inf
    """When the first hold ends, as wall clock in seconds."""

    def include(self, other: "Added") -> None:
        """Add these."""
        for mine, theirs in ((self.held, other.held), (self.free, other.free)):
            for node, ids in theirs.items():
                mine.setdefault(node, []).extend(ids)
        self.names |= other.names
        self.found += other.found
        self.recognized += other.recognized
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
    """Jobs that were sent again, because a node did not say whether it had added them."""
    _why: str = attrs.field(init=False, default="")
    """Why the last connection failed."""
    _has_keys: bool = attrs.field(init=False, default=False)
    """Only nodes that know keys will do."""
    _connections: list[Connection] = attrs.field(init=False, factory=list)

    def add(self, rows: Sequence[Row]) -> Added:
        """Add a window of jobs. Raises `PipelineError`; then some of them may be in `added`."""
        fresh = Added()
        left = list(rows)
        if not self._has_keys and any(row.key for row in rows):
            self._check_keys()
        tried: list[str] = []
        refusal = ""
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
                    raise PipelineError(f"no node accepts the job: {refusal or self._why}")
                if left:
                    tried.append(self.node)
                    self.close()
        finally:
            self.added.include(fresh)
        return fresh

    def _check_keys(self) -> None:
        live = self.nodes.live()
        if not any(self.nodes.has(name, UNIQUE) for name in live):
            raise PipelineError(
                f"{live[0]} does not support jobs with keys (its INFO has no feature {UNIQUE}): "
                'option("recognize", "notes") does without, and seldom adds a row twice; '
                "rows with a column unique need keys"
            )
        self._has_keys = True
        if self.node and not self.nodes.has(self.node, UNIQUE):
            self.close()

    def _connect(self, tried: Sequence[str]) -> bool:
        """Connect to the next node unless there are connections; False if all were tried."""
        if self._connections:
            return True
        try:
            live = self.nodes.live()
        except UnreachableError as error:
            self._why = str(error)
            return False
        order = [live[(self.first + step) % len(live)] for step in range(len(live))]
        for name in order:
            if name in tried or (self._has_keys and not self.nodes.has(name, UNIQUE)):
                continue
            try:
                for _ in range(self.connections):
                    self._connections.append(self.nodes.open(name))
            except NodeGoneError as error:
                self._why = str(error)
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
        is_held = row.terms.hold_s is not None
        if isinstance(reply, Failure) and reply.text.startswith(_DUPLICATE):
            fresh.recognized += 1
            if is_held and reply.text.endswith(_WAITING):
                fresh.found.append((row.queue, row.key))
            return ""
        if isinstance(reply, Status):
            if row.key and not is_held:
                return ""  # nothing is to be done with it: who adds it again finds it
            place = fresh.free if row.terms.hold_s is None else fresh.held
            job = reply.text.decode()
            place.setdefault(self.node, []).append(job)
            if row.key:
                fresh.names[job] = (row.queue, row.key)
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
