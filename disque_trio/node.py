"""One node: the pure machine between its ports, without sockets, files or clocks of its own.

An event loop (`event_loop`, or a simulated one) calls `start`; then, until `is_over`, `begin`, any
number of inputs, and `settle`, which ticks the machine if it is due, takes its outbox once and
carries it out: records, dials, messages, replies, closes, hangups, chores (docs/design.md, "The
machine"). What takes longer than a batch (loading, the journal's work, the end) is done by
coroutines that a batch goes on with at its beginning (`storage.tasks`). `group_commit` holds back
what depends on a slow journal; `input` decides which clients are served in a batch and which have
to wait.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Final

import trio

from disque_trio.driver.chores import ChoreRunner
from disque_trio.driver.group_commit import GroupCommit
from disque_trio.driver.input import Input
from disque_trio.driver.life import Life
from disque_trio.driver.memory_probe import MemoryProbe
from disque_trio.driver.nodes_writer import NodesWriter
from disque_trio.driver.operator_log import OperatorLog
from disque_trio.driver.output import Output
from disque_trio.driver.sessions import LinkSession, Session
from disque_trio.ports import (
    ClientPort,
    Clock,
    EventLoop,
    Host,
    LinkPort,
    Log,
    NodesStore,
    Resolver,
)
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.chores import (
    AwaitNodes,
    Chore,
    LookUp,
    Lookup,
    RewriteJournal,
    SaveNodes,
    Shutdown,
    Sleep,
    StartJournal,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.outbox import Outbox
from disque_trio.storage.journal import Journal
from disque_trio.storage.restore import restore
from disque_trio.storage.spill import Spiller
from disque_trio.storage.stopping import write_queues
from disque_trio.storage.tasks import Tasks
from disque_trio.wire.requests import RequestParser

LOADING_TURN: Final[Millis] = 100

OUT_OF_MEMORY: Final = b"-OOM the process has not enough memory for this request\r\n"


class Node:
    """A machine, the sessions on it, and the ports around it."""

    def __init__(
        self,
        machine: Machine,
        clock: Clock,
        event_loop: "EventLoop[Node, LinkSession]",
        store: NodesStore,
        host: Host,
        log: Log,
        journal: Journal | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self.machine = machine
        self.state = machine.state
        self.now = clock.now()
        self.napping_until: Millis = 0
        """DEBUG SLEEP: the event loop carries nothing before this moment."""
        self._clock = clock
        self._event_loop = event_loop
        self._host = host
        self._resolver = resolver
        self.log = log
        self._operator_log = OperatorLog(self.state, log)
        self.spiller: Spiller | None = None
        self._tasks = tasks = Tasks() if journal is None else journal.tasks
        tasks.awaken = event_loop.wake
        store.thread.wake = event_loop.wake_from_thread
        self._store = store
        self._traffic = self.state.facts.traffic
        self._journal = journal
        self._output = Output(machine, event_loop.dial, event_loop.courier, self._operator_log, log)
        self._output.lost = self.link_lost
        self._group_commit: GroupCommit | None = None
        if journal is not None:
            self._group_commit = GroupCommit(
                journal, machine, self._output, self._pump, event_loop.wake
            )
            journal.thread.wake = event_loop.wake_from_thread
        self._nodes = NodesWriter(self.state, store, log, tasks)
        self.chores = ChoreRunner(self.state, self._output.sessions, host, journal)
        self._history = self.chores.history
        self._input = Input(machine, self._output, self._operator_log)
        self._take = self._input.take
        self._room = MemoryProbe(self.state, host)
        self._nappers: list[Client] = []
        self.life = Life(machine, tasks, event_loop, journal, self._nodes, log)

    # The event loop's side: a batch.

    def begin(self) -> None:
        """A batch of inputs starts: read the clocks once, and serve clients that wait."""
        self.now = self._clock.now()
        journal, commit = self._journal, self._group_commit
        if self._store.thread.pending:
            self._store.thread.collect()
        if journal is not None and journal.thread.pending:
            journal.thread.collect()
        if self._tasks.due <= self.now.mono:
            self._tasks.run(self.now.mono)
        room = self._room
        is_due = self.state.memory.held > room.look_above or self.now.mono >= room.look_at
        if is_due and room.look(self.now):
            self.warn("out of memory: jobs are refused until the system gives the process more")
        is_full = self.life.is_sealed
        if journal is not None and commit is not None:
            if commit.has_changed and not is_full:
                commit.catch_up(self.now)
            is_full = is_full or journal.is_full
        self._input.turn = 0 if is_full else self._input.knobs.client_turn
        self._output.feeding.begin(self.now)
        self._input.serve_ready(self.now)

    def settle(self) -> None:
        """The batch is complete: let the machine act on it, and carry out what it says."""
        if self.life.is_sealed:
            return
        machine = self.machine
        now = self.now
        if machine.deadline() <= now.mono and not self.life.is_loading:
            started = perf_counter_ns()
            machine.tick(now)
            machine.observe(b"jobs-processing", (perf_counter_ns() - started) // 1_000_000, now)
        if self._nappers and now.mono >= self.napping_until:
            nappers, self._nappers = self._nappers, []
            for client in nappers:
                machine.done(client, None, now)
        out = machine.take()
        if self._group_commit is None:
            self._pump(out)
        else:
            self._group_commit.submit(out, now)
        if self.spiller is not None:
            self.spiller.settle(now)
        if self._operator_log.look_at <= now.mono:
            self._operator_log.look(now)
        if self._history.due <= now.mono:
            self._history.look(now)

    @property
    def is_napping(self) -> bool:
        """Must the event loop carry nothing for now?"""
        return bool(self._nappers) and self._clock.now().mono < self.napping_until

    @property
    def others_wait(self) -> bool:
        """Is a thread at work for the journal, whose end should be noticed at once?"""
        return self.life.is_loading or (self._journal is not None and self._journal.is_busy)

    def deadline(self) -> Millis:
        """When the next batch must begin, inputs or not."""
        due = self._tasks.due
        if self.life.is_sealed:
            return due
        if self._nappers:
            return self.napping_until
        if self.life.is_loading:
            return min(due, self.now.mono + LOADING_TURN)
        is_ready = (self._input.ready and self._input.turn) or self._output.feeding.ready
        commit = self._group_commit
        if is_ready or self.state.out or (commit is not None and commit.has_changed):
            return self.now.mono
        return min(due, self.machine.deadline())

    def stood_still(self, seconds: float) -> None:
        """The event loop was so late, or a pass of it took so long."""
        self._history.late(self._clock.now(), int(seconds * 1000))

    def seconds_left(self) -> float:
        """How long Trio may sleep until then."""
        return self._clock.seconds_until(self.deadline())

    # Clients.

    def connect(self, port: ClientPort, address: bytes, *, is_unix: bool = False) -> Session | None:
        """A client has come. None when there are too many: the port has been told."""
        client = self.machine.connect(address, self.now, is_unix=is_unix)
        if client is None:
            shown = address.decode(errors="replace")
            self.log.verbose("client refused: maxclients reached", address=shown)
            port.write(b"-ERR max number of clients reached\r\n")
            return None
        session = Session(client, port, RequestParser(self.state.config.proto_max_bulk_len))
        self._output.sessions[client.id] = session
        return session

    def received(self, session: Session, data: bytes) -> None:
        """A client has sent something: give the machine every request that it takes."""
        self._traffic.received += len(data)
        parser = session.parser
        try:
            requests = parser.feed(data)
        except MemoryError:
            self.exhausted(session)
            return
        if parser.error is not None:
            session.fault = parser.error.text
        self._take(session, requests, self.now)
        # After the requests: AUTH may precede one that is too long for an unauthenticated client.
        if parser.buffered or session.input:
            self._input.senders.keeps(session, self.now)

    def exhausted(self, session: Session) -> None:
        """There is no memory for what a client sends: nothing of that is carried out."""
        self.warn("clients cut off: out of memory", client=session.client.id)
        if session.pending is None:
            session.port.write(OUT_OF_MEMORY)
            session.port.close()
        else:
            session.port.abort()

    def on_crowded(self, tell: Callable[[bool], None]) -> None:
        """`tell` is called when the event loop should read less at a time, and when that is
        over."""
        self._input.senders.crowded = tell

    def half_closed(self, session: Session) -> None:
        """A client whose input is held has closed its sending side."""
        self._input.half_closed(session)

    def drained(self, session: Session) -> None:
        """A client that was owed bytes has read them all."""
        session.over_since = 0
        self._output.settled(session)
        if not self._output.feeding.drained(session) and not session.is_choked:
            self._input.free(session)

    def lost(self, session: Session) -> None:
        """A client's connection has ended, for whatever reason."""
        if self._output.sessions.pop(session.client.id, None) is not None:
            self._input.forget(session)
            self._output.forget(session)
            self._operator_log.gone(session.client, self.now)
            self.machine.disconnect(session.client, self.now)

    # Links.

    def meet(self, ip: str, port: int) -> None:
        """Begin a handshake with the node at this address, as the operator asks."""
        self.machine.meet(ip, port, self._clock.now())
        self._event_loop.wake()

    def accept_link(self, port: LinkPort, local_ip: str, remote_ip: str) -> LinkSession:
        """A peer has opened a bus connection to us."""
        session = self._output.link(self.machine.accepted(local_ip, remote_ip, self.now))
        session.port = port
        return session

    def link_up(self, session: LinkSession, local_ip: str, remote_ip: str) -> None:
        """A dial has succeeded."""
        self.machine.linked(session.link, local_ip, remote_ip, self.now)

    def link_received(self, session: LinkSession, data: bytes) -> int:
        """A peer has sent something: give the machine every whole frame. How many there were."""
        return 0 if self.life.is_sealed else self._output.receive(session, data, self.now)

    def link_passed(self, session: LinkSession, frame: Frame) -> None:
        """A peer has sent a frame that comes as it is (`EventLoop.courier`)."""
        if not self.life.is_sealed:
            self.machine.message(session.link, frame, self.now)

    def link_lost(self, session: LinkSession) -> None:
        """A bus connection has ended, or could not be opened."""
        if self._output.links.pop(session.link, None) is not None:
            self.machine.unlinked(session.link, self.now)

    # Output.

    def owes(self, session: Session, unsent: int) -> None:
        """A client has not read what it was sent; the event loop calls this again once a second."""
        self._output.look(session, unsent, self.now)

    def _pump(self, out: Outbox) -> None:
        if out.nodes_changed:
            self._nodes.changed()
        self._output.carry(out, self.now)
        for name in out.lookups:
            self._look_up(name, partial(self._looked_up, name))
        for client, chore in out.chores:
            self._do(client, chore)
        if out.resumed:
            self._input.resume(out.resumed)

    # Chores.

    def _do(self, client: Client, chore: Chore) -> None:
        match chore:
            case Sleep():
                self.napping_until = self.now.mono + int(chore.seconds * 1000)
                self._nappers.append(client)
            case Shutdown():
                refusal = self._host.refuse_shutdown(chore)
                if refusal is not None:
                    self.log.warning("not stopping", reason=refusal)
                    self.machine.done(client, refusal, self.now)
                    return
                if chore.rewrite_journal and self._journal is not None:
                    self._tasks.start(self._rewrite_and_end(self._journal, client, chore))
                else:
                    self._end(client, chore)
            case LookUp():
                self._look_up(chore.name, partial(self._done, client))
            case SaveNodes() | AwaitNodes():
                self._nodes.write(partial(self._done, client))
            case StartJournal() | RewriteJournal() if self._journal is not None:
                stays = isinstance(chore, StartJournal) or self.state.config.appendonly
                self._tasks.start(self._rewrite(self._journal, client, stays))
            case _:
                self.machine.done(client, self.chores.run(chore), self.now)

    async def _rewrite(self, journal: Journal, client: Client, stays: bool) -> None:
        """Changes to jobs during the rewrite belong to the file, so they are recorded."""
        self.machine.record(on=True)
        self._done(client, await journal.start_rewrite(stays=stays))

    async def _rewrite_and_end(self, journal: Journal, client: Client, chore: Shutdown) -> None:
        """Clients are served meanwhile. If it fails the node goes on as before."""
        error = await write_queues(self.machine, journal)
        if error is None:
            self._end(client, chore)
        else:
            self._done(client, error)

    def _done(self, client: Client, outcome: object) -> None:
        """A chore has ended outside of a batch."""
        self.machine.done(client, outcome, self._clock.now())
        self._event_loop.wake()

    def _look_up(self, name: str, then: Callable[[Lookup], None]) -> None:
        if self._resolver is None:
            then(Lookup(error="this node has no resolver; give an IP address"))
        else:
            self._resolver.look_up(name, then)

    def _looked_up(self, name: str, lookup: Lookup) -> None:
        """A name that the machine asked for by itself has been looked up."""
        self.machine.looked_up(name, lookup, self._clock.now())
        self._event_loop.wake()

    def _end(self, client: Client, chore: Shutdown) -> None:
        if (session := self._output.sessions.get(client.id)) is not None:
            session.port.close()
        self.stop(chore, f"asked by {client.address.decode(errors='replace')}")

    def warn(self, event: str, **facts: object) -> None:
        """The event loop has trouble that the operator should know of."""
        self._operator_log.repeat(event, self.now, **facts)

    def turned_away(self, event: str, cause: str, *, is_link: bool = False, **facts: str) -> None:
        """The event loop has refused a connection; `cause` is what INFO calls it."""
        self.machine.turned_away(cause, is_link=is_link)
        self._operator_log.repeat(event, self.now, **facts)

    # Running.

    def stop(self, shutdown: Shutdown, reason: str) -> None:
        """Begin to end. A second call, some time later, hurries the end."""
        self.life.stop(shutdown, reason, self._clock.now().mono, len(self._output.sessions))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run on its event loop until it is over. It has started when it serves."""
        await self._event_loop.run(self, task_status=task_status)

    def start(self) -> None:
        """Begin to live, in batches."""
        self._tasks.start(self._nodes.run())
        self._tasks.start(self.life.live(self._load, self._has_work, self._seal))

    async def _load(self, journal: Journal) -> str:
        self.machine.load((), self.now)
        return await restore(self.machine, journal, self._clock, self._host, self.log, self.spiller)

    def _has_work(self) -> bool:
        """Are there requests to serve, or replies that wait?"""
        waits = self._input.ready or self._output.feeding.clients or self._group_commit
        return bool(waits or self.state.out)

    def _seal(self) -> None:
        self.settle()
        self._input.may_look = False

    def end(self) -> None:
        """It is over, or its process has been killed: drop what is under way."""
        self.life.end()
