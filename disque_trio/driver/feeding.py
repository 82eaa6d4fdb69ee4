"""Clients whose replies are produced in pieces: each piece after the socket has accepted the
previous one.

They take turns; all together receive `Knobs.feed_room` bytes per batch. A client that reads nothing
for a second is stalled: then the rest of its replies counts towards the limits of unread output,
and memory that only these replies use counts as memory in use.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from disque_trio.driver.sessions import MUCH, Session
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.stats import Traffic

HEAVY: Final = 4 * MUCH
"""The weight of a client with such replies."""
LINGER_S: Final = 10
"""How long a client that will be disconnected after its replies may read nothing."""


class Feeding:
    """The clients of one node with such replies."""

    def __init__(
        self,
        traffic: Traffic,
        owes: Callable[[Session, int, Now], None],
        freed: Callable[[Session], None],
        most: int = DEFAULTS.feed_room,
    ) -> None:
        """`owes` is called with the number of bytes that a socket did not accept, `freed` for a
        client whose replies are complete."""
        self.clients: dict[Session, None] = {}
        """All clients with unfinished replies."""
        self.ready: OrderedDict[Session, None] = OrderedDict()
        """The clients whose next piece can be made."""
        self._traffic = traffic
        self._owes = owes
        self._freed = freed
        self._most = most
        """The size of pieces per batch, in bytes."""
        self._room = most

    def begin(self, now: Now) -> None:
        """Make the next pieces, at the beginning of a batch."""
        self._room = self._most
        for _ in range(len(self.ready)):
            if self._room <= 0:
                break
            session, _ = self.ready.popitem(last=False)
            self._feed(session, now)

    def start(self, session: Session, unsent: int, now: Now) -> None:
        """Begin with the unfinished replies of a client; `unsent` bytes before them are unsent."""
        self.clients[session] = None
        session.is_reading = True
        if unsent:
            self._owes(session, unsent, now)
        elif session in self.ready or self._room <= 0:
            self.ready[session] = None
        else:
            self._feed(session, now)
        if session.pending is not None:
            session.is_choked = True
            session.weight = max(session.weight, HEAVY)

    def drained(self, session: Session) -> bool:
        """The socket has accepted everything. Returns whether there are further pieces."""
        if session.pending is None:
            return False
        self.ready[session] = None
        return True

    def _feed(self, session: Session, now: Now) -> None:
        pending = session.pending
        assert pending is not None, "only clients with replies to be made are fed"
        try:
            data = pending.take()
        except MemoryError:
            session.port.abort()
            return
        self._room -= pending.work
        session.is_reading = True
        self.count(session, 0, 0)
        size = len(data)
        self._traffic.sent += size
        unsent = session.port.write(data) if data else 0
        if not pending:
            self._finish(session)
        elif not unsent:
            self.ready[session] = None
        if unsent:
            self._owes(session, unsent, now)
        if session.pending is None:
            self._freed(session)

    def _finish(self, session: Session) -> None:
        del self.clients[session]
        session.pending = None
        session.set_unsent(session.unsent, session.limit)

    def look(self, session: Session, unsent: int) -> None:
        """Check once per second, while bytes are unsent, whether the client reads."""
        if session.pending is None:
            return
        if session.is_reading or unsent != session.in_socket:
            session.is_reading = False
            session.stalled_s = 0
            self.count(session, 0, 0)
            return
        session.stalled_s += 1
        self.count(session, *session.pending.sizes())
        if session.is_ending and session.stalled_s >= LINGER_S:
            session.port.abort()

    def count(self, session: Session, promised: int, alone: int) -> None:
        """Set the remaining bytes of a stalled client's replies, and the memory that only these
        use."""
        session.promised = promised
        self._traffic.kept += alone - session.kept
        session.kept = alone

    def forget(self, session: Session) -> None:
        """Drop a client that has disconnected."""
        self.ready.pop(session, None)
        if session.pending is not None:
            self.count(session, 0, 0)
            session.pending.end()
            self._finish(session)


def weighed(before: int, size: int) -> int:
    """The weight of a client after replies of `size` bytes. It becomes light again after about
    thirty small ones."""
    weight = max(size, before - (before >> 3))
    return weight if weight > MUCH else 0
