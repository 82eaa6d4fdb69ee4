"""Drives the engine with anyio, on Trio and on asyncio: connections, slots, time.

A turn passes events to the engine and carries out its `Outbox`, in order, without waiting.
Connections and slots start turns themselves; a timer starts those that are due without an event.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup, TaskStatus

from disque_trio.client import streams
from disque_trio.client.address import Address, Cluster
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.client.greeting import Introduction
from disque_trio.client.nodes import Nodes
from disque_trio.client.recorder import Recorder
from disque_trio.client.streams import Connect
from disque_trio.client.watched import watching
from disque_trio.statemachine.base import Reply
from disque_trio.terminal.counting import counted
from disque_trio.worker import workerlog
from disque_trio.worker.beginning import Batch, Beginnings
from disque_trio.worker.engine import fetching
from disque_trio.worker.engine.engine import Engine
from disque_trio.worker.engine.records import (
    NEVER,
    SECOND,
    Micros,
    Phase,
    Settings,
    Start,
)
from disque_trio.worker.links import Link
from disque_trio.worker.protocol import Handler, Run
from disque_trio.worker.reporting import DriverStats, Report, make_report
from disque_trio.worker.slots import Slots
from disque_trio.worker.stalls import LONG_S, Stalls, watched
from disque_trio.worker.statuses import CLEAN, INTERRUPTED, REFUSED, RESTART
from disque_trio.worker.times import RunTimes
from disque_trio.worker.workerlog import log

STUCK_S: Final = 10.0
"""A handler is stuck if it has not ended this long after it was cancelled."""
LOOK_S: Final = 1.0
"""How often the driver looks for stuck handlers."""
GRACE_S: Final = 0.5
"""How long handlers may take to end after the worker has ended."""


@attrs.define(eq=False, kw_only=True)
class Worker:
    """A worker. `run` runs it; the other methods control it, in the same event loop."""

    settings: Settings
    """The settings of the engine. Its `nodes` must be addresses of the cluster."""
    handler: Handler
    cluster: Cluster
    connect: Connect = streams.connect
    recorder: Recorder | None = None
    """Records the requests and replies of the worker (docs/histories.md)."""
    discover: bool | None = None
    """Use nodes that other nodes report, too? None is yes, except with TLS."""
    max_stuck: int = 4
    """If more handlers than this are stuck, the worker stops, and must be restarted."""
    name: str = ""
    """The name of its connections in CLIENT LIST, without spaces."""
    app: str = ""
    """The app whose jobs it runs, for display."""
    max_jobs: int = 0
    """The number of jobs after which the worker stops, and must be restarted; 0 is no limit."""
    waking: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint_if_cancelled
    """Awaited before each turn of the timer: a suspended process of a simulation waits there."""
    leave: Callable[[int], object] | None = None
    """Called with the exit status if handlers still run after the worker has ended: the process
    must exit. If None, the worker waits for them."""
    status: int = attrs.field(init=False, default=CLEAN)
    """The exit status of the process, after `run`."""
    _engine: Engine | None = attrs.field(init=False, default=None)
    _orders: list[Callable[[Engine, Micros], None]] = attrs.field(init=False, factory=list)
    """Orders given before `run`."""
    _nodes: Nodes = attrs.field(init=False)
    _addresses: dict[str, Address] = attrs.field(init=False)
    _links: dict[int, Link] = attrs.field(init=False, factory=dict)
    _dialling: TaskGroup = attrs.field(init=False)
    _slots: Slots = attrs.field(init=False)
    _beginnings: Beginnings = attrs.field(init=False)
    _stats: DriverStats = attrs.field(init=False)
    _stuck: int = attrs.field(init=False, default=0)
    _refusals: dict[str, str] = attrs.field(init=False, factory=dict)
    """By node: why it rejects this worker."""
    _down: dict[str, str] = attrs.field(init=False, factory=dict)
    """By node: why it does not answer."""
    _timer: anyio.CancelScope = attrs.field(init=False)
    _armed: float = attrs.field(init=False, default=-math.inf)
    """When the timer fires."""
    _stopped: anyio.Event = attrs.field(init=False)
    _is_in: bool = attrs.field(init=False, default=False)
    """Has a node accepted it?"""
    _stalls: Stalls | None = attrs.field(init=False, default=None)
    """None in virtual time."""

    def __attrs_post_init__(self) -> None:
        seeds = self.cluster.seeds
        has_tls = any(each.tls is not None for each in seeds)
        self._nodes = Nodes(seeds, not has_tls if self.discover is None else self.discover)
        self._addresses = {str(each): each for each in seeds}
        for name in self.settings.nodes:
            if name not in self._addresses:
                raise ValueError(
                    f"{name!r} is not an address of the cluster: {list(self._addresses)}"
                )
        self._stats = DriverStats(name=self.name, app=self.app)
        self._slots = Slots(self.handler, self, self._most, self._stats.times)
        self._beginnings = Beginnings(self._slots.start)

    def report(self) -> Report:
        """The present state of the worker."""
        engine = self._engine or Engine(self.settings, _now())
        return make_report(self._stats, engine.state, self._slots.at_work, _now())

    @property
    def times(self) -> RunTimes:
        """The run times of its jobs."""
        return self._stats.times

    # Orders.

    def stop(self) -> None:
        """Stop gracefully: take no more jobs, and end when the running ones have ended. A second
        call cancels them."""
        self._order(Engine.stop)

    def drain(self) -> None:
        """As `stop`, unless the worker is already stopping."""
        if not self.is_stopping and Engine.stop not in self._orders:
            self.stop()

    def quiet(self) -> None:
        """Take no more jobs until `resume`."""
        self._order(Engine.quiet)

    def resume(self) -> None:
        """Take jobs again, after `quiet`."""
        self._order(Engine.resume)

    def _order(self, order: Callable[[Engine, Micros], None]) -> None:
        if self._engine is None:
            self._orders.append(order)
        else:
            order(self._engine, _now())
            self.turn()

    # Functions for runs (`protocol.Driver`).

    @property
    def is_stopping(self) -> bool:
        """Is the worker stopping?"""
        running = (Phase.RUNNING, Phase.QUIET)
        return self._engine is not None and self._engine.state.phase not in running

    @property
    def slots(self) -> int:
        """The number of jobs that may run at the same time."""
        return self.settings.concurrency

    def lease_end(self, id: bytes) -> float:
        """When the job's lease ends, on the clock of `anyio.current_time`; -infinity if the lease
        is lost."""
        job = None if self._engine is None else self._engine.state.jobs.get(id)
        if job is None or job.lost is not None:
            return -math.inf
        return math.inf if job.end == NEVER else job.end / SECOND

    def node_of(self, id: bytes) -> str:
        """The node that delivered the job; empty if the job has ended."""
        job = None if self._engine is None else self._engine.state.jobs.get(id)
        return "" if job is None else job.node

    def has(self, feature: bytes) -> bool:
        """Has any node announced this feature?"""
        nodes = () if self._engine is None else self._engine.state.nodes.values()
        return any(feature in (node.announced or ()) for node in nodes)

    def has_slot_for(self, queue: bytes) -> bool:
        """Could another job of this queue start now?"""
        return self._engine is not None and fetching.has_slot_for(self._engine.state, queue)

    def limit(self, id: bytes, seconds: float) -> float:
        """Cancel the handler of the job after this time; infinity is never. Returns the time of the
        cancellation."""
        if self._engine is not None:
            self._engine.limit(_now(), id, int(min(seconds * SECOND, NEVER)))
            self._arm(self._engine)
        return anyio.current_time() + seconds

    # Running.

    async def run(self, *, task_status: TaskStatus["Worker"] = anyio.TASK_STATUS_IGNORED) -> int:
        """Run jobs until the worker is stopped. Returns the exit status.

        If cancelled, it ends immediately, like a killed process: leases expire.
        """
        self._stopped = anyio.Event()
        self._timer = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            self._slots.open(tasks)
            async with anyio.create_task_group() as self._dialling:
                engine = self._begin(tasks)
                task_status.started(self)
                with watched(self._slots.at_work, engine.state.jobs, LOOK_S) as self._stalls:
                    await self._stopped.wait()
            if self.leave is not None:
                await self._leave(self.leave)
            tasks.cancel_scope.cancel()
        return self._end()

    def _begin(self, tasks: TaskGroup) -> Engine:
        engine = self._engine = Engine(self.settings, _now())
        engine.tick(_now())
        for order in self._orders:
            order(engine, _now())
        tasks.start_soon(self._keep_time, engine)
        tasks.start_soon(self._look_for_stuck, engine)
        return engine

    def _end(self) -> int:
        if self.status == CLEAN and self._slots.interrupted:
            self.status = INTERRUPTED
        return self.status

    async def _leave(self, leave: Callable[[int], object]) -> None:
        until = anyio.current_time() + GRACE_S
        while self._slots.at_work and anyio.current_time() < until:
            await anyio.sleep(GRACE_S / 20)
        if self._slots.at_work:
            self._slots.interrupted += len(self._slots.at_work)
            workerlog.leaves(self._slots.at_work.values())
            leave(self._end())

    # Turns.

    def turn(self) -> None:
        """Report ended handlers to the engine, and carry out its outbox."""
        engine = self._engine
        assert engine is not None
        ended = self._slots.ended
        while True:
            if ended:
                self._count(len(ended), engine)
                engine.finished_all(_now(), ended)
                ended.clear()
            self._carry_out(engine)
            if not ended:  # jobs that were cancelled before they started
                return

    def _count(self, ended: int, engine: Engine) -> None:
        self._stats.ended += ended
        if 0 < self.max_jobs <= self._stats.ended and not self.is_stopping:
            jobs = counted(self._stats.ended, "job has", "jobs have")
            log.info("%s ended: stopping for a restart", jobs)
            self.status = RESTART
            engine.stop(_now())

    def _carry_out(self, engine: Engine) -> None:
        out = engine.take()
        for cancel in out.cancels:
            if self._beginnings.cancel(cancel):
                self._slots.ended.append((cancel.id, None))
            else:
                self._slots.cancel(cancel)
        batch = Batch(out.starts)
        links: dict[Link, bool] = {}
        for send in out.sends:
            link = self._links.get(send.link) or self._open(send.link, send.node)
            link.send(send.words)
            links[link] = send.is_first or links.get(link, False)
        for link, is_first in links.items():
            if not link.flush() and is_first:
                link.when_written(partial(self._beginnings.written, batch))
                batch.writes += 1
        for number in out.closes:
            if closed := self._links.pop(number, None):
                closed.close()
        for drop in out.drops:
            slot = self._slots.at_work.get(drop.id)
            workerlog.dropped(drop, None if slot is None else slot.run)
        self._beginnings.wait(batch)
        if engine.is_stopped:
            self._stopped.set()
        self._arm(engine)

    def _arm(self, engine: Engine) -> None:
        due = engine.deadline()
        at = math.inf if due == NEVER else (due + 1) / SECOND
        if at < self._armed:
            self._armed = self._timer.deadline = at

    async def _keep_time(self, engine: Engine) -> None:
        while True:
            await self.waking()  # if it is cancelled, the worker cannot connect
            self._armed = math.inf
            engine.tick(_now())
            self.turn()
            with anyio.CancelScope(deadline=self._armed) as self._timer:
                await anyio.sleep_forever()

    # Connections (`links.Listener`).

    def _open(self, number: int, node: str) -> Link:
        link = self._links[number] = Link(number, node, self._addresses[node], self, self.name)
        connect = self.connect
        if self.recorder is not None:
            connect = watching(self.recorder, connect, hides_socket=True)
        self._dialling.start_soon(link.serve, connect, self.cluster.secret)
        return link

    def greeted(self, link: Link, hello: Reply) -> None:
        """The node has answered HELLO."""
        engine = self._engine
        assert engine is not None
        self._refusals.pop(link.node, None)
        if not self._is_in:
            self._is_in = True
            workerlog.takes_jobs([each.name for each in self.settings.queues], link.node)
        if self._down.pop(link.node, ""):
            log.info("%s answers again", link.node)
        if isinstance(hello, list):
            self._nodes.introduced(link.address, Introduction(hello))
        found = {str(each): each for each in self._nodes.order(-math.inf)}
        names = [name for name in engine.state.order if name in found]
        names += [name for name in found if name not in names]
        if names != engine.state.order:
            self._addresses |= found
            engine.know(_now(), names)
            self.turn()

    def received(self, link: Link, replies: Sequence[Reply]) -> None:
        """Replies have arrived."""
        assert self._engine is not None
        self._stats.answered = _now()
        self._engine.answered(self._stats.answered, link.number, *replies)
        self.turn()

    def refused(self, link: Link, error: str) -> None:
        """The node rejects this worker. If all nodes do, the worker ends."""
        engine = self._engine
        assert engine is not None
        if link.node not in self._refusals:
            has_password = self.cluster.secret() is not None
            workerlog.refused(link.node, error, has_password=has_password)
        self._refusals[link.node] = error
        if self.status == CLEAN and all(name in self._refusals for name in engine.state.order):
            self.status = REFUSED
            self.drain()

    def lost(self, link: Link, error: ConnectionFailedError | None) -> None:
        """The connection has ended."""
        self._links.pop(link.number, None)
        if error is not None and link.node not in self._down:
            self._down[link.node] = str(error)
            workerlog.lost(error)
        assert self._engine is not None
        self._engine.lost(_now(), link.number)
        self.turn()

    # Handlers.

    def _most(self) -> int:
        return self.settings.concurrency + self._stuck

    def failed(self, start: Start, error: BaseException) -> None:
        """A handler has raised an error, which is a bug of this library."""
        workerlog.failed(start, error)

    def interrupted(self, run: Run) -> None:
        """A run was cancelled because the worker stops."""
        workerlog.interrupted(run)

    async def _look_for_stuck(self, engine: Engine) -> None:
        while True:
            due = anyio.current_time() + LOOK_S
            await anyio.sleep(LOOK_S)
            await self.waking()
            self._look_for_stalls(engine, anyio.current_time() - due)
            late = anyio.current_time() - STUCK_S
            slots = list(self._slots.at_work.items())
            for id, slot in slots:
                if slot.cancelled_at <= late and not slot.is_stuck and slot.run is not None:
                    slot.is_stuck = True
                    slot.scope.cancel()  # middleware may block a run whose function has ended
                    engine.stuck(_now(), id)
                    workerlog.stuck(slot.run, slot.where())
            self._stuck = sum(slot.is_stuck for _, slot in slots)
            if self._stuck > self.max_stuck and self.status == CLEAN:
                stuck = counted(self._stuck, "handler does", "handlers do")
                log.error("%s not end: stopping for a restart", stuck)
                self.status = RESTART
                self.drain()
            self.turn()

    def _look_for_stalls(self, engine: Engine, late: float) -> None:
        self._stats.lags.append(late)
        seen = self._stalls.seen if self._stalls is not None else None
        if late >= LONG_S:
            slots, jobs = self._slots.at_work.values(), engine.state.jobs.values()
            workerlog.stalled(late, seen, slots, jobs, _now())
        if self._stalls is not None:
            self._stalls.moved()


def _now() -> Micros:
    return int(anyio.current_time() * SECOND)


async def work(
    settings: Settings,
    handler: Handler,
    *,
    cluster: Cluster,
    task_status: TaskStatus[Worker] = anyio.TASK_STATUS_IGNORED,
) -> int:
    """Run jobs until the worker is stopped. Returns the exit status (`Worker`)."""
    worker = Worker(settings=settings, handler=handler, cluster=cluster)
    return await worker.run(task_status=task_status)
