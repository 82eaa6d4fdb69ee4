"""Accounts for input of clients that cannot be handled yet, and bounds it.

Above half of `most_unread`, less is read at a time. Above all of it, clients are disconnected whose
request is incomplete or that do not read their replies; the other clients only wait for the node.
"""

from collections.abc import Callable
from typing import Final

from disque_trio.driver.limits import (
    LEAST_UNREAD,
    UNAUTHENTICATED_LIMIT,
    has_sent_too_much,
    most_unread,
)
from disque_trio.driver.operator_log import OperatorLog
from disque_trio.driver.sessions import Session
from disque_trio.statemachine.base import Millis, Now
from disque_trio.statemachine.state import NodeState

LOOK_EVERY: Final[Millis] = 100


class Senders:
    """The clients of one node with pending input."""

    def __init__(self, state: NodeState, operator_log: OperatorLog) -> None:
        self.crowded: Callable[[bool], None] = lambda _: None
        """Called with True when less should be read from clients at a time, and with False when
        that ends."""
        self._state = state
        self._traffic = state.facts.traffic
        self._operator_log = operator_log
        self._senders: dict[Session, None] = {}
        """Clients whose input is kept in memory; `Traffic.unread` is its sum."""
        self._look_again: Millis = 0
        """When clients may next be disconnected."""
        self._is_crowded = False

    def keeps(self, session: Session, now: Now) -> None:
        """Account for a change of the pending input of a client, and bound it."""
        state, weight = self._state, session.weight_of_input
        is_more = weight > session.input
        self._account(session, weight)
        session.input_at = now.mono
        if is_more and weight > UNAUTHENTICATED_LIMIT and has_sent_too_much(session, state.config):
            event = "client disconnected: query buffer limit"
            self._operator_log.repeat(event, now, client=session.client.id)
            self._traffic.senders_cut_off += 1
            session.port.abort()
        unread = self._traffic.unread
        if unread > LEAST_UNREAD // 2 or self._is_crowded:
            most = most_unread(state)
            self._set_crowded(is_crowded=unread > most // 2)
            if unread > most and now.mono >= self._look_again:
                self._look_again = now.mono + LOOK_EVERY
                self._cut_off_stalled_senders(most - most // 8, now)

    def _account(self, session: Session, weight: int) -> None:
        self._traffic.unread += weight - session.input
        session.input = weight
        if weight:
            self._senders[session] = None
        else:
            self._senders.pop(session, None)

    def _set_crowded(self, *, is_crowded: bool) -> None:
        if is_crowded is not self._is_crowded:
            self._is_crowded = is_crowded
            self.crowded(is_crowded)

    def _cut_off_stalled_senders(self, enough: int, now: Now) -> None:
        """Disconnect stalled clients: those that have stalled for the longest time, in seconds,
        first, and of these the largest."""
        stalled = [
            each for each in self._senders if each.is_choked or not each.has_requests
        ]  # fmt: skip
        if len(stalled) < 2:
            return
        stalled.sort(key=lambda each: (each.input_at // 1000, -each.input))
        cut = 0
        for sender in stalled:
            if self._traffic.unread <= enough:
                break
            cut += 1
            self._account(sender, 0)
            self._traffic.senders_cut_off += 1
            sender.port.abort()
        self._operator_log.repeat(
            "clients disconnected: all clients together have too many pending requests",
            now,
            clients=cut,
        )

    def forget(self, session: Session) -> None:
        """Drop a client that has disconnected."""
        self._account(session, 0)
        if self._is_crowded:
            self._set_crowded(is_crowded=self._traffic.unread > most_unread(self._state) // 2)
