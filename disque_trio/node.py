"""One node: the pure machine between its ports, without sockets, files or clocks of its own.

A hub (`hub`, or a simulated one) calls `begin`, any number of inputs, then `settle`, which ticks
the machine if it is due, takes its outbox once and carries it out: records, dials, messages,
replies, closes, hangups, chores (docs/design.md, "The machine"). Only `run` awaits, so a batch is
never interrupted. `group_commit` holds back what depends on a slow journal; `input` decides which
clients are served in a batch and which have to wait.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Final

import trio

from disque_trio.driver.chores import ChoreRunner
from disque_trio.driver.group_commit import GroupCommit
from disque_trio.driver.input import TURN, Input
from disque_trio.driver.nodes_writer import NodesWriter
from disque_trio.driver.operator_log import OperatorLog
from disque_trio.driver.output import Output
from disque_trio.driver.sessions import LinkSession, Session
from disque_trio.ports import ClientPort, Clock, Host, Hub, LinkPort, Log, NodesStore
from disque_trio.statemachine.base import FOREVER, Millis
from disque_trio.statemachine.chores import (
    AwaitNodes,
    Chore,
    RewriteJournal,
    SaveNodes,
    Shutdown,
    Sleep,
    StartJournal,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.outbox import Outbox
from disque_trio.storage.journal import Journal
from disque_trio.storage.restore import LOADING_GRACE_S, restore
from disque_trio.storage.spill import Spiller
from disque_trio.storage.stopping import keep_queues, write_queues
from disque_trio.wire.requests import RequestParser

HURRY_AFTER: Final[Millis] = 1000
"""A second request to stop hurries the end only after this time: a service manager and the
supervisor of workers may both ask at the same time."""
GRACE_S: Final = 2.0
"""How long a stopping node waits for clients to read their last replies."""
LOADING_TURN: Final[Millis] = 100


class Node:
    """A machine, the sessions on it, and the ports around it."""

    def __init__(
        self,
        machine: Machine,
        clock: Clock,
        hub: "Hub[Node, LinkSession]",
        store: NodesStore,
        host: Host,
        log: Log,
        journal: Journal | None = None,
    ) -> None:
        self.machine = machine
        self.state = machine.state
        self.now = clock.now()
        self.shutdown: Shutdown | None = None  # How it ends, once it does.
        self.napping_until: Millis = 0
        """DEBUG SLEEP: the hub carries nothing before this moment."""
        self.failure = ""
        """Why it could not start, if it could not."""
        self._clock = clock
        self._hub = hub
        self._host = host
        self.log = log
        self._operator_log = OperatorLog(self.state, log)
        self.spiller: Spiller | None = None
        self._traffic = self.state.facts.traffic
        self._journal = journal
        self._output = Output(machine, hub.dial, self._operator_log, log)
        self._output.lost = self.link_lost
        self._group_commit: GroupCommit | None = None
        if journal is not None:
            self._group_commit = GroupCommit(journal, machine, self._output, self._pump, hub.wake)
            journal.attach(hub.wake_from_thread)
        self._nodes = NodesWriter(self.state, store, log)
        self.chores = ChoreRunner(self.state, self._output.sessions, host, journal)
        self._input = Input(machine, self._output, self._operator_log)
        self._take = self._input.take
        self._nappers: list[Client] = []
        self._stopping = trio.Event()
        self._stopped_at: Millis = 0
        self._hurry = trio.CancelScope()
        """Around what a hurried stop leaves out."""
        self._is_sealed = False
        """No more inputs are taken: the journal has the final state of all jobs."""
        self._loading: trio.CancelScope | None = None
        self._nursery: trio.Nursery

    # The hub's side: a batch.

    def begin(self) -> None:
        """A batch of inputs starts: read the clocks once, and serve clients that wait."""
        self.now = self._clock.now()
        journal, commit = self._journal, self._group_commit
        is_full = self._is_sealed
        if journal is not None and commit is not None:
            journal.collect()
            if commit.has_changed and not is_full:
                commit.catch_up(self.now)
            is_full = is_full or journal.is_full
        self._input.turn = 0 if is_full else TURN
        self._input.serve_ready(self.now)

    def settle(self) -> None:
        """The batch is complete: let the machine act on it, and carry out what it says."""
        if self._is_sealed:
            return
        machine = self.machine
        now = self.now
        if machine.deadline() <= now.mono and self._loading is None:
            started = perf_counter_ns()
            machine.tick(now)
            machine.observe(b"jobs-processing", (perf_counter_ns() - started) // 1_000_000, now)
        if self._nappers and now.mono >= self.napping_until:
            self._wake_nappers()
        out = machine.take()
        if self._group_commit is None:
            self._pump(out)
        else:
            self._group_commit.submit(out, now)
        if self.spiller is not None:
            self.spiller.settle(now)
        if self._operator_log.look_at <= now.mono:
            self._operator_log.look(now)

    @property
    def is_napping(self) -> bool:
        """Must the hub carry nothing for now?"""
        return bool(self._nappers) and self._clock.now().mono < self.napping_until

    @property
    def others_wait(self) -> bool:
        """Are there tasks beside the hub, those of the journal, that should go on at once?"""
        journal = self._journal
        if journal is None:
            return False
        return journal.is_busy or self._loading is not None

    def deadline(self) -> Millis:
        """When the next batch must begin, inputs or not."""
        if self._is_sealed:
            return FOREVER
        if self._nappers:
            return self.napping_until
        if self._loading is not None:
            return self.now.mono + LOADING_TURN
        if (self._input.ready and self._input.turn) or self.state.out:
            return self.now.mono
        if self._group_commit is not None and self._group_commit.has_changed:
            return self.now.mono
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
        requests = parser.feed(data)
        if parser.error is not None:
            session.fault = parser.error.text
        self._take(session, requests, self.now)
        # After the requests: AUTH may precede one that is too long for an unauthenticated client.
        if parser.buffered or session.input:
            self._output.keeps(session, self.now)

    def on_crowded(self, tell: Callable[[bool], None]) -> None:
        """`tell` is called when the hub should read less at a time, and when that is over."""
        self._output.crowded = tell

    def half_closed(self, session: Session) -> None:
        """A client whose input is held has closed its sending side."""
        self._input.half_closed(session)

    def drained(self, session: Session) -> None:
        """A client that was owed bytes has read them all."""
        session.over_since = 0
        self._output.settled(session)
        if not session.is_choked:
            self._input.free(session)

    def lost(self, session: Session) -> None:
        """A client's connection has ended, for whatever reason."""
        if self._output.sessions.pop(session.client.id, None) is not None:
            self._input.ready.discard(session)
            self._output.forget(session)
            self._operator_log.gone(session.client, self.now)
            self.machine.disconnect(session.client, self.now)

    # Links.

    def meet(self, ip: str, port: int) -> None:
        """Begin a handshake with the node at this address, as the operator asks."""
        self.machine.meet(ip, port, self._clock.now())
        self._hub.wake()

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
        return 0 if self._is_sealed else self._output.receive(session, data, self.now)

    def link_lost(self, session: LinkSession) -> None:
        """A bus connection has ended, or could not be opened."""
        if self._output.links.pop(session.link, None) is not None:
            self.machine.unlinked(session.link, self.now)

    # Output.

    def owes(self, session: Session, unsent: int) -> None:
        """A client has not read what it was sent; the hub calls this again once a second."""
        self._output.owes(session, unsent, self.now)

    def _pump(self, out: Outbox) -> None:
        if out.nodes_changed:
            self._nodes.changed()
        self._output.carry(out, self.now)
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
                    self._nursery.start_soon(self._rewrite_and_end, self._journal, client, chore)
                else:
                    self._end(client, chore)
            case SaveNodes() | AwaitNodes():
                self._nodes.write(partial(self._done, client))
            case StartJournal() | RewriteJournal() if self._journal is not None:
                stays = isinstance(chore, StartJournal) or self.state.config.appendonly
                self._nursery.start_soon(self._rewrite, self._journal, client, stays)
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

    def _done(self, client: Client, error: str | None) -> None:
        """A chore has ended outside of a batch."""
        self.machine.done(client, error, self._clock.now())
        self._hub.wake()

    def _end(self, client: Client, chore: Shutdown) -> None:
        if (session := self._output.sessions.get(client.id)) is not None:
            session.port.close()
        self.stop(chore, f"asked by {client.address.decode(errors='replace')}")

    def _wake_nappers(self) -> None:
        nappers, self._nappers = self._nappers, []
        for client in nappers:
            self.machine.done(client, None, self.now)

    def warn(self, event: str, **facts: object) -> None:
        """The hub has trouble that the operator should know of."""
        self._operator_log.repeat(event, self.now, **facts)

    def turned_away(self, event: str, cause: str, *, is_link: bool = False, **facts: str) -> None:
        """The hub has refused a connection; `cause` is what INFO calls it."""
        self.machine.turned_away(cause, is_link=is_link)
        self._operator_log.repeat(event, self.now, **facts)

    # Running.

    def stop(self, shutdown: Shutdown, reason: str) -> None:
        """Begin to end. A second call, `HURRY_AFTER` later or more, hurries the end."""
        now = self._clock.now().mono
        if self.shutdown is not None:
            if now >= self._stopped_at + HURRY_AFTER:
                self._hurry.cancel()
        else:
            self.shutdown, self._stopped_at = shutdown, now
            self.log.notice("stopping", reason=reason, clients=len(self._output.sessions))
            self._stopping.set()
            if self._loading is not None:
                self._loading.cancel()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until `stop`; then answer the requests at hand, within a grace period, and end."""
        journal = self._journal
        must_load = journal is not None and journal.must_load()
        if must_load:
            self._loading = trio.CancelScope()
            self.machine.load((), self.now)
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._nodes.run)
            if journal is not None:
                await nursery.start(journal.run)
            loaded = trio.Event()
            if journal is not None and must_load:
                nursery.start_soon(self._load, journal, loaded)
            else:
                loaded.set()
            with trio.move_on_after(LOADING_GRACE_S):
                await loaded.wait()
            await nursery.start(self._hub.run, self)
            await loaded.wait()
            if not self.failure:
                self._hub.open_bus()
                task_status.started()
                await self._stopping.wait()
                if self.shutdown is not None and self.shutdown.graceful:
                    await self._wind_up()
            nursery.cancel_scope.cancel()

    async def _load(self, journal: Journal, loaded: trio.Event) -> None:
        """Load the journal into the machine, unless it is damaged or the node is to end already."""
        assert self._loading is not None
        with self._loading:
            self.failure = await restore(
                self.machine, journal, self._clock, self._host, self.log, self.spiller
            )
            if not self.failure:
                self._loading = None
                self._hub.wake()
        loaded.set()

    def _has_work(self) -> bool:
        """Are there requests to serve, or replies that have not left?"""
        waits = self._input.ready or self.state.out or self._group_commit
        return bool(waits or self._hub.has_unsent())

    async def _wind_up(self) -> None:
        journal = self._journal if self._loading is None else None
        has_queues = False
        if journal is not None and self.shutdown is not None:
            has_queues = self.shutdown.rewrite_journal or await keep_queues(
                self.machine, journal, self._hurry, self.log
            )
        self._hub.stop_listening()
        with trio.move_on_after(GRACE_S):
            while self._has_work():
                await trio.sleep(0.01)
        if journal is not None:
            if has_queues:
                self.settle()
                self._is_sealed = True
                self._input.may_look = False
            await journal.close(has_queues=has_queues)
        with trio.move_on_after(GRACE_S):
            await self._nodes.finish()
