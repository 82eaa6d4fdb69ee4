"""Consumers that run the engine of the worker library (`worker.engine`), like a process.

The engine is the production one. Its process, which may be killed, stalled or stopped in order, and
its handlers are simulated: the duration and outcome of each run are drawn. Rows report the begin
and end of each run, and events of the process (`tracing.rows`).
"""

import random
from collections import deque
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Consumer, Micros, Span
from disque_trio.sim.scenarios.vocabulary import DELAYING
from disque_trio.sim.workload.actions import RECONNECT, Action, Disconnect, SendRequest, WriteRow
from disque_trio.sim.workload.requests import error_of
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import Reply
from disque_trio.worker.engine.engine import Engine
from disque_trio.worker.engine.records import (
    MILLI,
    SECOND,
    Cancel,
    Dead,
    Done,
    Outbox,
    Outcome,
    Queue,
    Reason,
    Release,
    Retry,
    Settings,
    Start,
)

DRAIN: Final[Micros] = 3 * SECOND
ABORT: Final[Micros] = 500 * MILLI
"""How long such a worker takes to stop in order."""
_STUBBORN: Final = 0.2
"""The share of handlers that continue when they are cancelled."""
_GRACE: Final[Micros] = 50 * MILLI
"""How long other handlers take to end."""
_OUTCOMES: Final[dict[str, Outcome]] = {
    "ackjob": Done(),
    "release": Release(),
}


@attrs.define(eq=False)
class Handler:
    """The handler of one job."""

    id: bytes
    queue: bytes
    way: str
    ends_at: Micros
    cancelled: Reason | None = None


@attrs.define
class _Late:
    """An event while the process was stalled: a reply, or the end of a connection."""

    connection: int
    is_lost: bool
    reply: Reply = None


class EngineWorker:
    """The agent of one worker."""

    def __init__(self, plan: Consumer, nodes: int, rng: random.Random) -> None:
        self.name = plan.name
        self.actions: list[Action] = []
        self._plan = plan
        self._rng = rng
        names = [f"n{number}" for number in range(1, nodes + 1)]
        self._settings = Settings(
            nodes=(*names[plan.node - 1 :], *names[: plan.node - 1]),
            queues=tuple(
                Queue(name=name.encode(), prefetch=plan.prefetch, limit=plan.limit)
                for name in plan.queues
            ),
            concurrency=plan.count,
            prefetch_window=plan.prefetch_window,
            is_strict=plan.strict,
            has_ties=plan.tied,
            is_plain=not plan.meta,
            drain=DRAIN,
            abort=ABORT,
        )
        self._engine: Engine | None = None
        """None while there is no process."""
        self._begins_at: Micros = plan.start
        self._leaves_at: Micros = NEVER
        self._resumes_at: Micros = NEVER
        """When a stalled process resumes; NEVER if it is not stalled."""
        self._late: deque[_Late] = deque()
        self._ended: list[int] = []
        """Connections that have ended, but not yet for the process."""
        self._handlers: dict[bytes, Handler] = {}
        self._opened = 0
        """The number of connections of earlier processes."""
        self._is_settled = False

    # The agent.

    def deadline(self) -> Micros:
        """Return when to wake the agent."""
        if self._engine is None:
            return self._begins_at
        if self._resumes_at < NEVER:
            return self._resumes_at
        ends = min((each.ends_at for each in self._handlers.values()), default=NEVER)
        return min(self._engine.deadline(), ends, self._leaves_at)

    def wake(self, now: Micros) -> None:
        """A process starts, resumes, or has work."""
        if self._engine is None:
            self._begin(now)
            return
        if now >= self._resumes_at:
            self._resume(now)
        if self._engine is not None and self._resumes_at == NEVER:
            self._go_on(now, self._engine)

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:
        """A reply has arrived."""
        self._hear(now, _Late(connection, is_lost=False, reply=reply))

    def lost(self, now: Micros, connection: int) -> None:
        """A connection has ended."""
        self._hear(now, _Late(connection, is_lost=True))

    def settle(self) -> None:
        """The chaos has ended: every handler succeeds from now on, and the worker stays."""
        self._is_settled = True
        self._leaves_at = NEVER
        for handler in self._handlers.values():
            if handler.ends_at < NEVER and handler.cancelled is None:
                handler.way = "ackjob"

    def is_idle(self) -> bool:
        """Does the worker have no job?"""
        return self._engine is None or not self._engine.state.jobs

    # The process.

    def _begin(self, now: Micros) -> None:
        self._begins_at = NEVER
        self._engine = Engine(self._settings, now)
        if self._plan.stop:
            self._leaves_at = max(self._plan.stop, now)
        elif not self._is_settled and self._plan.visit[1]:
            self._leaves_at = now + self._between(self._plan.visit)
        self.actions.append(WriteRow("worker.start"))
        self._engine.tick(now)
        self._carry_out(now, self._engine)

    def _hear(self, now: Micros, late: _Late) -> None:
        engine = self._engine
        if self._resumes_at < NEVER:
            self._late.append(late)
        elif engine is not None and late.connection > self._opened:
            if late.is_lost:
                engine.lost(now, late.connection - self._opened)
            else:
                engine.answered(now, late.connection - self._opened, late.reply)
            self._carry_out(now, engine)

    def _resume(self, now: Micros) -> None:
        """Resume a stalled process, which now reads everything that has arrived."""
        self._resumes_at = NEVER
        self.actions.append(WriteRow("worker.resume"))
        late, self._late = self._late, deque()
        self._ended = [each.connection for each in late if each.is_lost]
        for each in late:
            self._hear(now, each)
        self._ended = []

    def _go_on(self, now: Micros, engine: Engine) -> None:
        for handler in [each for each in self._handlers.values() if each.ends_at <= now]:
            if self._engine is engine and self._resumes_at == NEVER:
                self._end(now, engine, handler)
        if self._engine is not engine or self._resumes_at < NEVER:
            return
        if now >= self._leaves_at:
            self._leaves_at = NEVER
            self.actions.append(WriteRow("worker.stop"))
            engine.stop(now)
        engine.tick(now)
        self._carry_out(now, engine)

    def _is_over(self, now: Micros, kind: str) -> None:
        """End the process and its handlers."""
        self.actions.append(WriteRow(kind))
        engine, self._engine = self._engine, None
        assert engine is not None
        self._opened += engine.state.last_link
        self._handlers.clear()
        self._leaves_at = NEVER
        is_gone = self._plan.stop and now >= self._plan.stop
        self._begins_at = NEVER if is_gone else now + (self._between(self._plan.away) or RECONNECT)

    def _kill(self, now: Micros, engine: Engine) -> None:
        for link in engine.state.links:
            self._hang_up(link, "timeout")
        self._is_over(now, "worker.kill")

    def _hang_up(self, link: int, cause: str) -> None:
        self.actions.append(Disconnect(self._opened + link, cause, has_row=self._plan.tied))

    # Effects.

    def _carry_out(self, now: Micros, engine: Engine) -> None:
        out: Outbox = engine.take()
        for cancel in out.cancels:
            self._cancel(now, cancel)
        for send in out.sends:
            connection = self._opened + send.link
            if connection not in self._ended:
                self.actions.append(SendRequest(connection, int(send.node[1:]), list(send.words)))
        for link in out.closes:
            self._hang_up(link, "quit" if engine.is_stopped else "timeout")
        for drop in out.drops:
            self.actions.append(
                WriteRow("run.drop", drop.id.decode("latin-1"), cause=drop.why.name.lower())
            )
        for start in out.starts:
            self._start(now, start)
        if engine.is_stopped:
            self._is_over(now, "worker.stopped")

    # Handlers.

    def _start(self, now: Micros, start: Start) -> None:
        way = "ackjob" if self._is_settled else self._draw()
        ends_at = NEVER if way == "none" else now + self._between(self._plan.work)
        self._handlers[start.id] = Handler(start.id, start.queue, way, ends_at)
        self._write_row("run.begin", start.id, start.queue)

    def _cancel(self, now: Micros, cancel: Cancel) -> None:
        handler = self._handlers.get(cancel.id)
        if handler is None:  # the handler ends at this moment
            return
        handler.cancelled = cancel.why
        self._write_row("run.cancel", handler.id, handler.queue, cancel.why.name.lower())
        if handler.ends_at == NEVER or self._rng.random() >= _STUBBORN:
            handler.way = "none"
            handler.ends_at = min(handler.ends_at, now + self._between((0, _GRACE)))

    def _end(self, now: Micros, engine: Engine, handler: Handler) -> None:
        if handler.way == "die":
            self._kill(now, engine)
            return
        if handler.way == "stall":
            handler.way = "ackjob"
            handler.ends_at = self._resumes_at = now + self._between(self._plan.stall)
            self.actions.append(WriteRow("worker.stall"))
            return
        del self._handlers[handler.id]
        outcome = self._outcome(handler)
        cause = "cancelled" if outcome is None else type(outcome).__name__.lower()
        delay = outcome.delay // MILLI if isinstance(outcome, Retry) else 0
        detail = f"delay={delay}" if delay else ""
        self._write_row("run.end", handler.id, handler.queue, cause, detail)
        engine.finished(now, handler.id, outcome)
        self._carry_out(now, engine)

    def _outcome(self, handler: Handler) -> Outcome | None:
        error = error_of(handler.id)
        if handler.way == "none":
            return Retry(0, error) if handler.cancelled is Reason.TOO_LONG else None
        if handler.way == "nack":
            return Retry(0, error)
        if handler.way == "bury":
            return Dead(b"cannot be done", error)
        if handler.way in DELAYING:
            delay = self._rng.randint(*self._plan.delay_ms) * MILLI
            return Retry(delay, error) if handler.way == "nack-delay" else Release(delay)
        return _OUTCOMES[handler.way]

    def _draw(self) -> str:
        names = [name for name, _ in self._plan.mix]
        return self._rng.choices(names, [weight for _, weight in self._plan.mix])[0]

    def _write_row(
        self, kind: str, id: bytes, queue: bytes, cause: str = "", detail: str = ""
    ) -> None:
        names = id.decode("latin-1"), queue.decode("latin-1")
        self.actions.append(WriteRow(kind, *names, cause, detail))

    def _between(self, span: Span) -> int:
        low, high = span
        return low if low == high else self._rng.randint(low, high)
