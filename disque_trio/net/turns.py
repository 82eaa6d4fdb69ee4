"""Turns: read all ready sockets, let the node process their input, write. An event loop runs turns
while it does not wait.

Nothing here awaits, so that it can be compiled as a whole; `event_loop` has the task around it.
"""

from time import perf_counter
from typing import Final

from disque_trio.net.readiness import Readiness
from disque_trio.node import Node

BREATH_S: Final = 0.001
"""The interval at which other Trio tasks run during turns: a turn of a few requests takes a part of
it."""


class Turns:
    """The turns of one event loop."""

    __slots__ = (
        "_brisk", "_came_at", "_readiness", "is_busy", "is_woken", "linger_s", "must_turn",
    )  # fmt: skip

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self.linger_s = 0.0
        """How long to poll for more work, and keep Trio waiting, if work has recently arrived as
        quickly."""
        self.is_busy = True
        """Was there work at the last look?"""
        self.must_turn = True
        """Must there be a turn even if no socket is ready?"""
        self.is_woken = False
        """Was `SocketEventLoop.wake` called since the last turn began?"""
        self._came_at = 0.0
        self._brisk = 0
        """2 if the last work arrived as quickly, 1 if the work before did: requests arrive quickly
        after replies, even if these have waited for the disk."""

    def run(self, node: Node) -> None:
        """Run turns until there is no work, or other tasks must run."""
        rest_at = perf_counter() + BREATH_S
        if self.is_woken or not self.is_busy:
            self.must_turn = True
        while True:
            self._turn(node)
            if not self.is_busy or perf_counter() >= rest_at or node.is_napping:
                return

    def _turn(self, node: Node) -> None:
        readiness = self._readiness
        must_turn, greedy, alarm = self.must_turn, readiness.greedy, readiness.alarm
        events = self._look(node, may_linger=not (must_turn or greedy))
        if not (events or must_turn or greedy or alarm.is_rung):
            self.is_busy = False
            return
        self.is_woken = alarm.is_rung = alarm.is_armed = False
        node.begin()
        handlers = readiness.handlers
        for fd, mask in events:
            handlers[fd](mask)
        if greedy:
            readiness.serve_greedy()
        node.settle()
        readiness.close_ended()
        self.is_busy, self.must_turn = bool(events), False

    def _look(self, node: Node, *, may_linger: bool) -> list[tuple[int, int]]:
        """Return the events. If work arrives quickly, wait a moment for more: sleeping and waking
        costs a client that sends one request at a time three times as much as the request."""
        events = self._readiness.poll()
        if (
            not events
            and may_linger
            and self._brisk
            and self.linger_s
            and not node.others_wait
            and node.seconds_left() > self.linger_s
        ):
            events = self._readiness.poll(self.linger_s)
        if events:
            came_before, self._came_at = self._came_at, perf_counter()
            is_quick = self._came_at - came_before < self.linger_s
            self._brisk = 2 if is_quick else self._brisk >> 1
        return events
