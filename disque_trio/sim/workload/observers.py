"""Observers: clients that query nodes and change nothing (S22).

An observer queries one node after another, independent of earlier replies. It first requests each
node's name, with which SHOW lists holders. It queries jobs from earlier replies, also at nodes that
may not have them, and reads scans page by page.
"""

import random
from collections import deque
from typing import Final

import attrs

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Micros, Observer, Plan
from disque_trio.sim.workload.actions import PATIENCE, Action, Disconnect, SendRequest
from disque_trio.statemachine.base import Reply, Status

_COMMANDS: Final = ("QLEN", "QPEEK", "QSTAT", "SHOW", "QSCAN", "JSCAN", "JSCAN STATE", "INFO")
_WEIGHTS: Final = (3, 3, 1, 4, 1, 2, 1, 1)
_MOST_PEEKED: Final = 8
_PAGES: Final = (1, 2, 10)
"""COUNT of a scan. A page of JSCAN reads ten times as many jobs."""
_STATES: Final = (b"queued", b"acked", b"dead")
_REMEMBERED: Final = 100


@attrs.define(eq=False)
class _Connection:
    """A connection to one node."""

    number: int
    words: list[bytes] | None = None
    """The pending query, or None."""
    due: Micros = 0
    """When the observer gives up on the reply."""
    is_known: bool = False
    """Has the node returned its name?"""
    scan: list[bytes] | None = None
    """The command for the next page, or None."""


def observers(plan: Plan) -> list["Watcher"]:
    """Return the plan's observers."""
    return [
        Watcher(each, plan.nodes, stream(plan.seed, "observe", each.name))
        for each in plan.observers
    ]


class Watcher:
    """The agent of one observer."""

    def __init__(self, plan: Observer, nodes: int, rng: random.Random) -> None:
        self.name = plan.name
        self.actions: list[Action] = []
        self._plan = plan
        self._nodes = nodes
        self._rng = rng
        self._due: Micros = 0
        self._connections: dict[int, _Connection] = {}
        """By node: the connection."""
        self._opened = 0
        self._jobs: deque[bytes] = deque(maxlen=_REMEMBERED)

    def deadline(self) -> Micros:
        """Return the time of the next query."""
        return self._due

    def is_idle(self) -> bool:
        """Return True: it changes nothing."""
        return True

    def settle(self) -> None:
        """Do nothing: an observer adds and takes no jobs."""

    def wake(self, now: Micros) -> None:
        """Query a random node unless it owes a reply; give up on that reply in time."""
        low, high = self._plan.every
        self._due = now + max(1, self._rng.randint(low, high))
        node = self._rng.randint(1, self._nodes)
        connection = self._connections.get(node)
        if connection is None:
            self._opened += 1
            connection = self._connections[node] = _Connection(self._opened)
        if connection.words is None:
            connection.words, connection.due = self._query(connection), now + PATIENCE
            self.actions.append(SendRequest(connection.number, node, connection.words))
        elif connection.due <= now:
            del self._connections[node]
            self.actions.append(Disconnect(connection.number))

    def _query(self, connection: _Connection) -> list[bytes]:
        if not connection.is_known:
            return [b"HELLO"]
        if connection.scan and self._rng.random() < 0.5:
            return connection.scan
        command = self._rng.choices(_COMMANDS, _WEIGHTS)[0]
        match command:
            case "QLEN" | "QSTAT":
                return [command.encode(), self._queue()]
            case "QPEEK":
                count = self._rng.randint(1, _MOST_PEEKED) * self._rng.choice((1, -1))
                return [b"QPEEK", self._queue(), b"%d" % count]
            case "SHOW" if self._jobs:
                return [b"SHOW", self._rng.choice(self._jobs)]
            case "QSCAN" | "JSCAN":
                return [command.encode(), b"0", b"COUNT", b"%d" % self._rng.choice(_PAGES)]
            case "JSCAN STATE":
                state = self._rng.choice(_STATES)
                return [b"JSCAN", b"BUSYLOOP", b"QUEUE", self._queue(), b"STATE", state]
        return [b"INFO"]

    def _queue(self) -> bytes:
        return self._rng.choice(self._plan.queues).encode()

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:  # noqa: ARG002
        """Record the jobs in the reply, and the next page of a scan."""
        asked = next(each for each in self._connections.values() if each.number == connection)
        words, asked.words = asked.words or [], None
        match words[0]:
            case b"HELLO":
                asked.is_known = True
            case b"QPEEK" if isinstance(reply, list):
                self._jobs += [job[1] for job in reply if isinstance(job, list)]  # type: ignore[misc]
            case b"QSCAN" | b"JSCAN" if isinstance(reply, list):
                self._scanned(asked, words, reply)

    def _scanned(self, asked: _Connection, words: list[bytes], reply: list[Reply]) -> None:
        cursor, items = reply
        if words[1].isdigit():
            go_on = isinstance(cursor, bytes) and cursor != b"0"
            asked.scan = [words[0], cursor, *words[2:]] if go_on else None  # type: ignore[list-item]
        if words[0] == b"JSCAN" and isinstance(items, list):
            self._jobs += [item.text for item in items if isinstance(item, Status)]

    def lost(self, now: Micros, connection: int) -> None:  # noqa: ARG002
        """Forget the connection; the next query opens another one."""
        for node, each in list(self._connections.items()):
            if each.number == connection:
                del self._connections[node]
