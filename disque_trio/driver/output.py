"""Output: carries out the machine's dials, messages, replies, closes and hangups.

One encoding per message, one send per link, one write per client. Owns the sessions of a node.
"""

from collections.abc import Callable, Iterable

from disque_trio.driver.feeding import Feeding, weighed
from disque_trio.driver.limits import (
    most_unread,
    owes_too_much,
)
from disque_trio.driver.operator_log import OperatorLog
from disque_trio.driver.pending_replies import PendingReplies, weight
from disque_trio.driver.sessions import CHOKE, CHOKE_IN_NEED, MUCH, LinkSession, Session
from disque_trio.ports import Courier, LinkPort, Log
from disque_trio.statemachine.base import (
    BATCHES,
    FORMAT,
    VERSION_SIZE,
    ClientId,
    LinkId,
    NodeId,
    Now,
    Reply,
    Status,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, GossipMessage, Message, singles
from disque_trio.statemachine.outbox import Outbox
from disque_trio.wire.batches import Part, part_of
from disque_trio.wire.frames import FrameParser, encode, encode_parts
from disque_trio.wire.replies import TooLargeError, encode_small, encode_status

Dial = Callable[[LinkSession, str, int], LinkPort | None]
"""`EventLoop.dial`."""


class Output:
    """The connections of a node, and the output to them."""

    def __init__(
        self,
        machine: Machine,
        dial: Dial,
        courier: Callable[[], Courier | None],
        operator_log: OperatorLog,
        log: Log,
    ) -> None:
        self.sessions: dict[ClientId, Session] = {}
        self.links: dict[LinkId, LinkSession] = {}
        self.lost: Callable[[LinkSession], None] = lambda _: None
        """Called for a link that cannot be dialled."""
        self.freed: Callable[[Session], None] = lambda _: None
        """Called for a client that is no longer choked."""
        self._machine = machine
        self._state = machine.state
        self._open_link = dial
        self._courier = courier
        self._operator_log = operator_log
        self._log = log
        self._traffic = machine.state.facts.traffic
        self.feeding = Feeding(self._traffic, self.owes, self._made, machine.state.knobs.feed_room)
        self._slow_readers: dict[Session, None] = {}
        """Clients with unread output."""
        self._owed = 0
        """The total of their unread bytes."""

    def carry(self, out: Outbox, now: Now) -> None:
        """Carry out an outbox, except records, the node table, chores and resumed clients."""
        for link, ip, port in out.dials:
            session = self.link(link)
            session.port = self._open_link(session, ip, port)
            if session.port is None:
                self.lost(session)
        if out.messages:
            self._send_messages(out, now)
        if out.replies:
            self._answer(out, now)
        for client, protocol, word in out.expelled:
            self._operator_log.expelled(client, protocol, word, now)
        for client in out.closes:
            self._close(client)
        for link in out.hangups:
            self.hang_up(link)

    def link(self, link: LinkId) -> LinkSession:
        """Make a session for a new link."""
        parser = FrameParser(knows=self._state.cluster.nodes.__contains__)
        session = self.links[link] = LinkSession(link, parser)
        return session

    def receive(self, session: LinkSession, data: bytes, now: Now) -> int:
        """Pass every complete frame to the machine. Returns their number."""
        parser, message = session.parser, self._machine.message
        try:
            frames = parser.feed(data)
        except MemoryError:
            self._end_link(session, "out of memory for its frames", now)
            return 0
        for frame in frames:
            message(session.link, frame, now)
        if parser.refused:
            for reason, count in parser.refused.items():
                self._machine.refused(reason, count)
            parser.refused.clear()
        if parser.error is not None:
            self._end_link(session, str(parser.error), now)
        return len(frames)

    def _end_link(self, session: LinkSession, reason: str, now: Now) -> None:
        self._operator_log.damaged_link(session.link, reason, now)
        self.hang_up(session.link)
        self._machine.unlinked(session.link, now)

    def hang_up(self, link: LinkId) -> None:
        """Close a link."""
        session = self.links.pop(link, None)
        if session is not None and session.port is not None:
            session.port.hang_up()

    def _close(self, client: Client) -> None:
        """Close a client's connection: after its replies or, if the client was killed, at once,
        because it may never read."""
        if (session := self.sessions.get(client.id)) is not None:
            is_killed = client.id not in self._state.clients
            session.is_ending = session.pending is not None and not is_killed
            if not session.is_ending:
                (session.port.abort if is_killed else session.port.close)()

    def _send_messages(self, out: Outbox, now: Now) -> None:
        """One encoding per message, one send per link."""
        if (courier := self._courier()) is not None:
            self._pass_on(courier, out)
            return
        me = self._me()
        links = self.links
        addressed: dict[LinkSession, None] = {}
        for targets, message in out.messages:
            part = part_of(message)
            frames: list[bytes] = []
            for link in targets:
                session = links.get(link)
                if session is None:
                    continue
                if session not in addressed:
                    addressed[session] = None
                    session.reads_batches = self._reads_batches(link)
                if part is not None and session.reads_batches:
                    session.parts.append(part)
                    continue
                if not frames:
                    more = self._announcement(message)
                    frames = [encode(*me, single, *more) for single in singles(message)]
                if session.parts:
                    session.frames += encode_parts(*me, session.parts)
                    session.parts = []
                session.frames += frames
        self._flush_links(addressed, now)

    def _pass_on(self, courier: Courier, out: Outbox) -> None:
        """As `_send_messages`, without encoding."""
        me = self._me()
        for targets, message in out.messages:
            more = self._announcement(message)
            for single in singles(message):
                courier(targets, Frame(*me, single, *more))

    def _announcement(
        self, message: Message
    ) -> tuple[()] | tuple[int, int, int, bytes, bytes, int]:
        """The additional fields about the sender in the headers of PING, PONG and MEET."""
        if not isinstance(message, GossipMessage):
            return ()
        cluster = self._state.cluster
        version = self._state.facts.version.encode()[:VERSION_SIZE]
        place = cluster.announced_ip.encode(), cluster.myself.bus_port
        return self._state.capabilities, cluster.incarnation, FORMAT, version, *place

    def _me(self) -> tuple[NodeId, int, int]:
        """The fields of the sender in the header of each frame."""
        myself = self._state.cluster.myself
        return myself.id, myself.port, myself.flags

    def _reads_batches(self, link: LinkId) -> bool:
        """Does the node at the other end of this link announce BATCHES?"""
        found = self._state.cluster.links.get(link)
        if found is None or found.peer is None:
            return False
        return bool(found.peer.capabilities & BATCHES)

    def _flush_links(self, addressed: "Iterable[LinkSession]", now: Now) -> None:
        """Send the collected frames. Links with the same content share its encoding."""
        me = self._me()
        last_parts: list[Part] = []
        made: list[bytes] = []
        for session in addressed:
            if session.parts:
                if session.parts != last_parts:
                    last_parts = session.parts
                    made = encode_parts(*me, last_parts)
                session.parts = []
                session.frames += made
            frames, session.frames = session.frames, []
            if session.port is not None and (dropped := session.port.send(frames)):
                self._machine.dropped(session.link, dropped)
                self._operator_log.link_full(session.link, dropped, now)

    def _answer(self, out: Outbox, now: Now) -> None:
        """One write per client."""
        answered = self._encode(out)
        sent = 0
        for session in answered:
            sent += self._write(session, now)
        self._traffic.sent += sent

    def _encode(self, out: Outbox) -> list[Session]:
        """Encode the replies, or begin to produce long ones. Returns the sessions with replies."""
        sessions = self.sessions
        answered: list[Session] = []
        asker: Client | None = None
        session: Session | None = None
        pending: PendingReplies | None = None
        last_status: Reply = None
        text = b""
        for client, reply in out.replies:
            if client is not asker:
                asker = client
                session = sessions.get(client.id)
                pending = None
                if session is not None:
                    pending = session.pending
                    if not session.replies:
                        answered.append(session)
            if session is None:
                continue
            if pending is not None:
                pending.add(reply)
                continue
            if type(reply) is not Status:
                pending = self._make(session, reply)
                continue
            if reply is not last_status:
                last_status, text = reply, encode_status(reply)
            session.replies.append(text)
        return answered

    def _make(self, session: Session, reply: Reply) -> PendingReplies | None:
        """Encode a reply, or begin to produce it if it is large."""
        protocol = session.client.protocol
        try:
            session.replies.append(encode_small(reply, protocol))
        except TooLargeError:
            state = self._state
            session.pending = PendingReplies(reply, protocol, state.jobs, state.knobs.piece_bytes)
        except MemoryError:
            session.port.abort()
        return session.pending

    def _write(self, session: Session, now: Now) -> int:
        """Write a client's replies of this batch, and begin to feed large ones. Returns the number
        of bytes written."""
        replies, size, unsent = session.replies, 0, 0
        if replies:
            data = replies[0] if len(replies) == 1 else b"".join(replies)
            replies.clear()
            size = len(data)
            if size > MUCH or session.weight:
                session.weight = weighed(session.weight, size)
            unsent = session.port.write(data)
        if session.pending is None:
            if unsent:
                self.owes(session, unsent, now)
        elif session in self.feeding.clients:
            self.owes(session, session.in_socket, now)
        else:
            self.feeding.start(session, unsent, now)
            if session.is_choked:
                self.hold(session)
        return size

    def _made(self, session: Session) -> None:
        """All replies of a client with large ones are complete."""
        if session.is_ending:
            session.port.close()
        elif not session.is_choked:
            self.freed(session)

    def owes(self, session: Session, unsent: int, now: Now) -> None:
        """Account for the unread output of a client: hold its input if it is choked, and disconnect
        it if it exceeds its limits."""
        session.in_socket = unsent
        if session.pending is not None:
            unsent += session.pending.behind + session.promised
        self._owed += unsent - session.unsent
        self._slow_readers[session] = None
        most = most_unread(self._state)
        session.set_unsent(unsent, CHOKE if self._owed <= most // 2 else CHOKE_IN_NEED)
        self._weigh(session, now)
        if self._owed > most and len(self._slow_readers) > 1:
            self._cut_off_slow_readers(most - most // 8, now)

    def look(self, session: Session, unsent: int, now: Now) -> None:
        """Check once per second while a client has unread output, for the soft limit."""
        self.feeding.look(session, unsent)
        self.owes(session, unsent, now)

    def settled(self, session: Session) -> None:
        """A client has read everything, or has disconnected."""
        self._owed -= session.unsent
        self._slow_readers.pop(session, None)
        session.in_socket = 0
        session.set_unsent(0)

    def _cut_off_slow_readers(self, enough: int, now: Now) -> None:
        """Disconnect the clients with the most unread output, because all together have too
        much."""
        cut = 0
        for reader in sorted(self._slow_readers, key=lambda each: -each.unsent):
            if self._owed <= enough:
                break
            cut += 1
            self.settled(reader)
            self._cut_off_reader(reader)
        self._operator_log.repeat(
            "clients disconnected: all clients together have too many unread replies",
            now,
            clients=cut,
        )

    def forget(self, session: Session) -> None:
        """Drop a client that has disconnected."""
        self.feeding.forget(session)
        self.settled(session)

    def delay(self, out: Outbox, now: Now) -> dict[Session, int]:
        """The replies of an outbox wait for the journal, and count as unread. Returns the bytes per
        client."""
        weights: dict[Session, int] = {}
        asker: Client | None = None
        session: Session | None = None
        held = 0
        for client, reply in out.replies:
            if client is not asker:
                asker, session = client, self.sessions.get(client.id)
                held = 0 if session is None else weights.get(session, 0)
            if session is not None:
                held += weight(reply)
                weights[session] = held
        for session, bytes_ in weights.items():
            session.wait_for(bytes_)
            self._traffic.delayed += bytes_
            if session.is_choked:
                self._weigh(session, now)
        return weights

    def go_on(self, weights: dict[Session, int]) -> None:
        """The replies of a delayed batch are about to be sent: stop counting them."""
        for session, bytes_ in weights.items():
            was_choked = session.is_choked
            session.wait_for(-bytes_)
            self._traffic.delayed -= bytes_
            if was_choked and not session.is_choked and session.client.id in self.sessions:
                self.freed(session)

    def _weigh(self, session: Session, now: Now) -> None:
        unsent = session.unsent + session.waiting
        if session.is_choked:
            self.hold(session)
        if owes_too_much(session, unsent, self._state.config, now):
            self._log.warning(
                "client disconnected: output buffer limit", client=session.client.id, unsent=unsent
            )
            self._cut_off_reader(session)

    def _cut_off_reader(self, session: Session) -> None:
        self._traffic.slow_readers_cut_off += 1
        session.port.abort()

    def hold(self, session: Session) -> None:
        """Stop reading from this client for now."""
        if not session.is_held:
            session.is_held = True
            session.port.hold()
