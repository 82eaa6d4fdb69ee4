"""The history of a simulated run: the calls of all its clients, and its faults.

Faults affect the promises to clients in the same way in simulated and real clusters. So for each
fault a history has its start, its end, and whether a node has lost jobs.
"""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.engines.heap.clients import REFUSED
from disque_trio.sim.engines.heap.run import Run
from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.sim.scenarios import fault_kinds
from disque_trio.sim.scenarios.fault_kinds import FaultKind
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.statemachine.base import KEEPS_ALL, Failure, Reply
from disque_trio.tracing.histories import (
    begin_line,
    fault_line,
    header_line,
    is_recorded,
    lost_line,
    reply_line,
)
from disque_trio.tracing.rows import Row

QUIET: Final[Micros] = 40_000_000
"""How long a run continues when nothing is left to do: a client detects a lost job by waiting in
vain, after the time that a cluster needs to settle."""
_SECOND: Final = 1_000_000
_DRIFT_PPM: Final = 1000
"""A clock with at most this drift counts as right: `Limits.skew` and `slack` allow for it."""
_SURVIVED: Final = ("kill", "shutdown", "stop")
"""Causes of a process's end that an append-only file survives."""
_LOSING: Final = ("disk.flip", "disk.error", "disk.full", "disk.stall", "memory", "remove", "wipe")
"""Faults by which a node may lose jobs."""


class RunHistory:
    """Writes the history of a run. Call `prepare` with the run, and `see` with each row."""

    def __init__(self, plan: Plan, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._plan = plan
        self._run: Run | None = None
        self._open: dict[tuple[str, str, str], tuple[Micros, bool]] = {}
        """By kind, node and peer of a fault: since when it lasts, and whether jobs may be lost."""
        config = dict(plan.config)
        self._keeps_all = (
            config.get("appendonly") == "yes"
            and config.get("aof-format") != "disque"
            and plan.shared_capabilities & KEEPS_ALL == KEEPS_ALL
        )
        write(header_line(has_all_faults=True))
        if config.get("aof-format") == "disque" and any(
            each.wall_offset_ms for each in plan.clocks
        ):
            # A node that restarts measures a DELAY by the clock of the job's creator.
            write(fault_line("clock", _seconds(0), _seconds(0)))
        if plan.link.model != "stream":
            self._open["links", "", ""] = 0, False

    def prepare(self, run: Run) -> None:
        """Record the calls of this run."""
        self._run = run
        run.quiet = max(run.quiet, QUIET)
        run.world.clients.log = self

    def close(self) -> None:
        """End the faults that are still in force at the end of the run."""
        for key in list(self._open):
            self._end(key, None)

    # Calls (`CallLog`).

    def begin(self, client: str, number: int, node: str, words: list[bytes]) -> None:
        """A client sends a request."""
        if is_recorded(words):
            self._write(begin_line(client, number, self._now(), node, words))

    def reply(self, client: str, number: int, words: list[bytes], reply: Reply) -> None:
        """A client has received the reply."""
        if is_recorded(words):
            self._write(reply_line(client, number, self._now(), reply))

    def lost(self, client: str, number: int, words: list[bytes], cause: str) -> None:
        """A client will receive no reply."""
        if is_recorded(words):
            at = self._now()
            if cause == REFUSED:
                self._write(reply_line(client, number, at, Failure(b"REFUSED no connection")))
            else:
                self._write(lost_line(client, number, at, cause))

    def _now(self) -> float:
        assert self._run is not None
        return _seconds(self._run.engine.now)

    # Faults.

    def see(self, row: Row) -> None:
        """Take a row of the run."""
        kind = fault_kinds.ROWS.get(row.kind)
        if row.kind == "heal.end" and self._plan.heal == "full":
            for key in list(self._open):
                if not key[0].startswith("clock"):
                    self._end(key, row.time)
        elif row.kind == "start" and row.cause == "fresh" and row.time > 0:
            self._write(fault_line("join", _seconds(row.time), _seconds(row.time), node=row.node))
        if kind is not None:
            self._see(kind, row)

    def _see(self, kind: FaultKind, row: Row) -> None:
        key = kind.bar, row.node, row.peer
        is_over = kind.is_ended_by(row.kind, row.detail)
        at = _seconds(row.time)
        if row.kind == "clock.step":  # from then on the time of day is wrong
            self._write(fault_line(kind.bar, at, at, node=row.node))
            return
        if kind.is_level:
            key = kind.bar, row.node, row.peer or row.queue
        if row.kind == "clock.rate":
            is_over = abs(int(row.detail)) <= _DRIFT_PPM
        if is_over:
            self._end(key, row.time)
        else:
            self._open.setdefault(key, (row.time, self._may_lose(kind, row)))

    def _may_lose(self, kind: FaultKind, row: Row) -> bool:
        if row.kind == "crash":
            return not (self._keeps_all and row.cause in _SURVIVED)
        return kind.bar in _LOSING

    def _end(self, key: tuple[str, str, str], at: Micros | None) -> None:
        found = self._open.pop(key, None)
        if found is not None:
            until = None if at is None else _seconds(at)
            memory = "lost" if found[1] else "kept"
            line = fault_line(key[0], _seconds(found[0]), until, node=key[1], memory=memory)
            self._write(line)


def _seconds(time: Micros) -> float:
    return EPOCH_MS / 1000 + time / _SECOND
