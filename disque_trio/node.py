"""One node: the pure machine between its ports, without sockets, files or clocks of its own.

A hub (`hub`, or a simulated one) calls `begin`, any number of inputs, then `settle`, which ticks
the machine if it is due, takes its outbox once and carries it out: dials, messages, replies,
closes, hangups, chores (docs/design.md). Only `run` awaits, so a batch is never interrupted.

Flow control: a client's requests go to the machine as long as the machine takes them. What is
left stands in `Session.backlog`, and the hub reads no further from that client meanwhile. That
happens while the client is blocked or paused, and while it owes us the reading of more than
`CHOKE` bytes of replies, so a client that never reads holds a bounded amount of memory.
"""

from time import perf_counter_ns
from typing import Final

import trio

from disque_trio.allowance import STRANGER_LIMIT, has_sent_too_much, owes_too_much
from disque_trio.errands import Errands
from disque_trio.ports import ClientPort, Clock, Host, Hub, LinkPort, Log, NodesStore
from disque_trio.session import LinkSession, Session
from disque_trio.statemachine.base import LinkId, Millis
from disque_trio.statemachine.chores import Chore, Shutdown, Sleep
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.outbox import Outbox
from disque_trio.watch import Watch
from disque_trio.wire.frames import FrameParser, encode
from disque_trio.wire.resp import RequestParser, encode_reply

CHOKE: Final = 1 << 20
"""Unsent bytes beyond which a client's further requests wait."""
TURN: Final = 128
"""Requests of one client per batch, so that replies leave and other clients have their turn."""
GRACE_S: Final = 2.0
"""How long a stopping node waits for clients to read their last replies."""
NODES_RETRY: Final[Millis] = 1000
"""After a failure to write nodes.conf it is tried again."""


class Node:
    """A machine, the sessions on it, and the ports around it."""

    def __init__(
        self, machine: Machine, clock: Clock, hub: Hub, store: NodesStore, host: Host, log: Log
    ) -> None:
        self.machine = machine
        self.state = machine.state
        self.now = clock.now()
        self.shutdown: Shutdown | None = None
        """What ended it, once something has."""
        self.napping_until: Millis = 0
        """DEBUG SLEEP: the hub carries nothing before this moment."""
        self._clock = clock
        self._hub = hub
        self._host = host
        self._log = log
        self._watch = Watch(self.state, log)
        self._traffic = self.state.facts.traffic
        self._sessions: dict[int, Session] = {}
        self._links: dict[LinkId, LinkSession] = {}
        self._errands = Errands(self.state, self._sessions, store, host)
        self._hungry: dict[Session, None] = {}
        self._nappers: list[Client] = []
        self._nodes_retry_at: Millis = 0
        self._stopping = trio.Event()

    # The hub's side: a batch.

    def begin(self) -> None:
        """A batch of inputs starts: read the clocks, once; give those who wait a turn."""
        self.now = self._clock.now()
        if self._hungry:
            self._feed_hungry()

    def settle(self) -> None:
        """The batch is complete: let the machine act on it, and carry out what it says."""
        machine = self.machine
        now = self.now
        if machine.deadline() <= now.mono:
            started = perf_counter_ns()
            machine.tick(now)
            machine.observe(b"jobs-processing", (perf_counter_ns() - started) // 1_000_000, now)
        if self._nappers and now.mono >= self.napping_until:
            self._wake_nappers()
        self._pump(machine.take())
        if self._watch.look_at <= now.mono:
            self._watch.look(now)

    @property
    def is_napping(self) -> bool:
        """Must the hub carry nothing for now?"""
        return bool(self._nappers) and self._clock.now().mono < self.napping_until

    def deadline(self) -> Millis:
        """When the next batch must begin, inputs or not."""
        if self._nappers:
            return self.napping_until
        if self._hungry or self.state.out:
            return self.now.mono
        if self._nodes_retry_at:
            return min(self._nodes_retry_at, self.machine.deadline())
        return self.machine.deadline()

    def seconds_left(self) -> float:
        """How long Trio may sleep until then."""
        return self._clock.seconds_until(self.deadline())

    # Clients.

    def connect(self, port: ClientPort, address: bytes, *, is_unix: bool = False) -> Session | None:
        """A client has come. None when there are too many: the port has been told."""
        client = self.machine.connect(address, self.now, is_unix=is_unix)
        if client is None:
            shown = address.decode(errors="replace")
            self._log.verbose("client refused: maxclients reached", address=shown)
            port.write(b"-ERR max number of clients reached\r\n")
            return None
        session = Session(client, port, RequestParser(self.state.config.proto_max_bulk_len))
        self._sessions[client.id] = session
        return session

    def received(self, session: Session, data: bytes) -> None:
        """A client has sent something: give the machine every request that it takes."""
        self._traffic.received += len(data)
        parser = session.parser
        session.backlog.extend(parser.feed(data))
        if parser.error is not None:
            session.fault = parser.error.text
        self._feed(session)
        # Only now: AUTH may stand before the request that is too long for a stranger.
        if parser.buffered > STRANGER_LIMIT and has_sent_too_much(session, self.state.config):
            self._log.warning("client cut off: query buffer limit", client=session.client.id)
            session.port.abort()

    def half_closed(self, session: Session) -> None:
        """A client whose input is held has said that it will not send any more."""
        if session.client.blocked is Blocked.JOBS or session.client.blocked is Blocked.COPIES:
            session.port.abort()

    def drained(self, session: Session) -> None:
        """A client that was owed bytes has read them all."""
        session.unsent = session.over_since = 0
        if session.backlog or session.fault is not None:
            self._hungry[session] = None
        elif session.is_held:
            self._release(session)

    def lost(self, session: Session) -> None:
        """A client's connection has ended, for whatever reason."""
        if self._sessions.pop(session.client.id, None) is not None:
            self._hungry.pop(session, None)
            self.machine.disconnect(session.client, self.now)

    def _feed(self, session: Session) -> None:
        client, backlog, now = session.client, session.backlog, self.now
        machine = self.machine
        accepts, request, timed = machine.accepts, machine.request, machine.timed
        turn = TURN
        started = perf_counter_ns()
        while backlog and turn and session.unsent <= CHOKE and accepts(client):
            args = backlog.popleft()
            row = request(client, args, now)
            ended = perf_counter_ns()
            if row is not None:
                timed(row, args, (ended - started) // 1000)
            started = ended
            turn -= 1
        if backlog or session.fault is not None or session.is_held:
            self._after_turn(session)

    def _after_turn(self, session: Session) -> None:
        """Not everything could be fed, or now at last it has been."""
        if session.backlog:
            self._hold(session)
            if session.unsent <= CHOKE and self.machine.accepts(session.client):
                self._hungry[session] = None
            elif session.port.is_half_closed:
                self.half_closed(session)
        elif session.fault is not None:
            self._hold(session)
            self._refuse(session, session.fault)
        elif session.unsent <= CHOKE:
            self._release(session)

    def _refuse(self, session: Session, fault: bytes) -> None:
        if self.machine.accepts(session.client):
            session.fault = None
            self._watch.protocol_error(session.client, fault, self.now)
            self.machine.refuse(session.client, fault, self.now)

    def _hold(self, session: Session) -> None:
        if not session.is_held:
            session.is_held = True
            session.port.hold()

    def _release(self, session: Session) -> None:
        session.is_held = False
        session.port.resume()

    def _feed_hungry(self) -> None:
        hungry, self._hungry = self._hungry, {}
        for session in hungry:
            self._feed(session)

    # Links.

    def accept_link(self, port: LinkPort, local_ip: str, remote_ip: str) -> LinkSession:
        """A peer has opened a bus connection to us."""
        session = self._link(self.machine.accepted(local_ip, remote_ip, self.now))
        session.port = port
        return session

    def _link(self, link: LinkId) -> LinkSession:
        parser = FrameParser(knows=self.state.cluster.nodes.__contains__)
        session = self._links[link] = LinkSession(link, parser)
        return session

    def link_up(self, session: LinkSession, local_ip: str, remote_ip: str) -> None:
        """A dial has succeeded."""
        self.machine.linked(session.link, local_ip, remote_ip, self.now)

    def link_received(self, session: LinkSession, data: bytes) -> None:
        """A peer has sent something: give the machine every whole frame."""
        parser, message, now = session.parser, self.machine.message, self.now
        for frame in parser.feed(data):
            message(session.link, frame, now)
        for reason, count in parser.refused.items():
            self.machine.refused(reason, count)
        parser.refused.clear()
        if parser.error is not None:
            self._watch.damaged_link(session.link, str(parser.error), now)
            self._hang_up(session.link)
            self.machine.unlinked(session.link, now)

    def link_lost(self, session: LinkSession) -> None:
        """A bus connection has ended, or could not be opened."""
        if self._links.pop(session.link, None) is not None:
            self.machine.unlinked(session.link, self.now)

    # Carrying out what the machine says.

    def _pump(self, out: Outbox) -> None:
        if out.nodes_changed or self._nodes_retry_at:
            self._save_nodes(asked=out.nodes_changed)
        for link, ip, port in out.dials:
            self._dial(link, ip, port)
        if out.messages:
            self._post(out)
        if out.replies:
            self._answer(out)
        for client in out.closes:
            self._close(client)
        for link in out.hangups:
            self._hang_up(link)
        for client, chore in out.chores:
            self._do(client, chore)
        if out.resumed:
            sessions = [self._sessions.get(client.id) for client in out.resumed]
            self._hungry.update((session, None) for session in sessions if session is not None)

    def _close(self, client: Client) -> None:
        """One that the machine has forgotten was killed: it may never read what it is owed."""
        if (session := self._sessions.get(client.id)) is not None:
            is_killed = client.id not in self.state.clients
            (session.port.abort if is_killed else session.port.close)()

    def _dial(self, link: LinkId, ip: str, port: int) -> None:
        session = self._link(link)
        session.port = self._hub.dial(session, ip, port + 10_000)
        if session.port is None:
            self.link_lost(session)

    def _hang_up(self, link: LinkId) -> None:
        session = self._links.pop(link, None)
        if session is not None and session.port is not None:
            session.port.hang_up()

    def _post(self, out: Outbox) -> None:
        """One encoding per message, one send per link."""
        myself = self.state.cluster.myself
        sender, port, flags = myself.id, self.state.facts.port, myself.flags
        links = self._links
        posted: dict[LinkSession, None] = {}
        for targets, message in out.messages:
            frame = encode(sender, port, flags, message)
            for link in targets:
                session = links.get(link)
                if session is not None:
                    session.frames.append(frame)
                    posted[session] = None
        for session in posted:
            frames, session.frames = session.frames, []
            if session.port is not None and (dropped := session.port.send(frames)):
                self.machine.dropped(dropped)
                self._watch.link_full(session.link, dropped, self.now)

    def _answer(self, out: Outbox) -> None:
        """One write per client."""
        sessions = self._sessions
        answered: list[Session] = []
        for client, reply in out.replies:
            session = sessions.get(client.id)
            if session is not None:
                replies = session.replies
                if not replies:
                    answered.append(session)
                replies.append(encode_reply(reply, client.protocol))
        sent = 0
        for session in answered:
            replies = session.replies
            data = replies[0] if len(replies) == 1 else b"".join(replies)
            replies.clear()
            sent += len(data)
            unsent = session.port.write(data)
            if unsent:
                self.owes(session, unsent)
        self._traffic.sent += sent

    def owes(self, session: Session, unsent: int) -> None:
        """A client does not keep up: hold its input, and cut it off where the limits say so.

        The hub says so again once a second, for the soft limit's sake.
        """
        session.unsent = unsent
        if unsent > CHOKE:
            self._hold(session)
        if owes_too_much(session, unsent, self.state.config, self.now):
            self._log.warning(
                "client cut off: output buffer limit", client=session.client.id, unsent=unsent
            )
            session.port.abort()

    def _save_nodes(self, *, asked: bool) -> None:
        """The table in memory is right even when the disk is full: warn, and try again."""
        if not asked and self.now.mono < self._nodes_retry_at:
            return
        error = self._errands.save_nodes()
        self._nodes_retry_at = 0 if error is None else self.now.mono + NODES_RETRY
        if error is not None:
            self._log.warning("cannot write the node table", error=error)

    # Chores.

    def _do(self, client: Client, chore: Chore) -> None:
        match chore:
            case Sleep():
                self.napping_until = self.now.mono + int(chore.seconds * 1000)
                self._nappers.append(client)
            case Shutdown():
                refusal = self._host.refuse_shutdown(chore)
                if refusal is not None:
                    self.machine.done(client, refusal, self.now)
                    return
                if (session := self._sessions.get(client.id)) is not None:
                    session.port.close()
                self.stop(chore, f"asked by {client.address.decode(errors='replace')}")
            case _:
                self.machine.done(client, self._errands.run(chore), self.now)

    def _wake_nappers(self) -> None:
        nappers, self._nappers = self._nappers, []
        for client in nappers:
            self.machine.done(client, None, self.now)

    def warn(self, event: str, **facts: object) -> None:
        """The hub has trouble of which the operator should know."""
        self._watch.repeat(event, self.now, **facts)

    def turned_away(self, event: str, **facts: object) -> None:
        """The hub has refused a client at the door."""
        self.machine.turned_away()
        self._watch.repeat(event, self.now, **facts)

    # Its life.

    def stop(self, shutdown: Shutdown, reason: str) -> None:
        """Begin to end. May be called again, which changes nothing."""
        if self.shutdown is None:
            self.shutdown = shutdown
            self._log.notice("stopping", reason=reason, clients=len(self._sessions))
            self._stopping.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until `stop`; then answer what is in hand, within a grace period, and end."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._hub.run, self)
            task_status.started()
            await self._stopping.wait()
            if self.shutdown is not None and self.shutdown.graceful:
                await self._wind_up()
            nursery.cancel_scope.cancel()

    async def _wind_up(self) -> None:
        self._hub.stop_listening()
        with trio.move_on_after(GRACE_S):
            while self._hungry or self.state.out or self._hub.has_unsent():
                await trio.sleep(0.01)
