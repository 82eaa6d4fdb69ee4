"""Handlers of a simulated app: each run of a job behaves according to its plan."""

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final, Protocol

import trio

from disque_trio.sim.scenarios.apps import HandlerAction
from disque_trio.testing.apps.run_state import RunState
from disque_trio.worker.context import Job, current_job
from disque_trio.worker.exceptions import Cancel, Dead, Retry, Snooze
from disque_trio.worker.executors.frames import LENGTH, Raised, Result, answer
from disque_trio.worker.executors.processes import WorkerDiedError
from disque_trio.worker.protocol import Run

SECOND: Final = 1_000_000


class HandlerProcess(Protocol):
    """The process in which a handler runs."""

    name: str
    state: RunState

    def die(self) -> None:
        """Kill the process immediately."""

    def block(self, seconds: float) -> None:
        """Block its event loop for this time."""


process_here: Final[ContextVar[HandlerProcess]] = ContextVar("disque_trio.testing.apps")


class PlannedError(Exception):
    """An error that a plan requires."""


class OwnError(BaseException):
    """An error that is no `Exception`."""


class MuteError(Exception):
    """An error whose text cannot be computed."""

    def __str__(self) -> str:
        raise PlannedError("no text")


_ERRORS: Final[dict[str, Callable[[HandlerAction], BaseException]]] = {
    "error": lambda _: PlannedError("as planned"),
    "group": lambda _: ExceptionGroup("two", [PlannedError("one"), ValueError("other")]),
    "retry": lambda action: Retry(action.after_s),
    "snooze": lambda action: Snooze(action.after_s),
    "dead": lambda _: Dead("as planned"),
    "cancel": lambda _: Cancel("as planned"),
    "cancelled": lambda _: asyncio.CancelledError(),
    "base": lambda _: OwnError("as planned"),
    "generator-exit": lambda _: GeneratorExit(),
    "exit": lambda _: SystemExit(3),
    "mute": lambda _: MuteError(),
    "surrogate": lambda _: PlannedError("\udcff"),
}


def outcome_of(action: HandlerAction, number: int) -> object:
    """The return value of a successful run. Raises the error that the plan requires."""
    make = _ERRORS.get(action.kind)
    if make is not None:
        raise make(action)
    return object() if action.kind == "unencodable" else number


async def perform(number: int) -> object:
    """Run a job, in the event loop."""
    process, job = process_here.get(), current_job()
    action = _begin(process, job, number)
    try:
        await trio.sleep(action.work / SECOND)
    except trio.Cancelled:
        if action.kind == "stubborn":
            with trio.CancelScope(shield=True):
                await trio.sleep(action.after_s)
            _record(process, job, number, action)
            return outcome_of(action, number)
        raise
    _record(process, job, number, action)
    if action.kind == "kill":
        process.die()
        await trio.sleep_forever()
    if action.kind == "block":
        process.block(action.after_s)
        await trio.sleep(0)
    return outcome_of(action, number)


def _begin(process: HandlerProcess, job: Job[Any], number: int) -> HandlerAction:
    state = process.state
    action = state.next_action(number)
    state.row(
        "begin",
        process.name,
        job=job.id,
        queue=job.queue,
        cause=action.kind,
        ref=number,
        task=job.task,
        attempt=job.attempt,
        delivery=job.delivery,
        snoozes=job.snoozes,
        interrupted=job.interrupted,
        key=job.key or "",
    )
    return action


def _record(process: HandlerProcess, job: Job[Any], number: int, action: HandlerAction) -> None:
    process.state.row("action", process.name, job=job.id, cause=action.kind, ref=number)


# Tasks. The first argument of a later step of a chain is the return value of the previous step.


async def in_loop(first: Any, second: int | None = None) -> Any:
    """A task that runs in the event loop."""
    if second is None:
        return await perform(first)
    _note_ends(first, second)
    return await perform(second)


def _note_ends(ends: Any, number: int) -> None:
    """Record the outcomes of members that the continuation of a batch receives."""
    if isinstance(ends, dict) and "counts" in ends:
        counts = ",".join(f"{state}:{count}" for state, count in sorted(ends["counts"].items()))
        process = process_here.get()
        process.state.row("ends", process.name, job=current_job().id, ref=number, counts=counts)


def elsewhere(first: Any, second: int | None = None) -> Any:
    """A task that runs in a thread or a process; its executor simulates it."""
    raise NotImplementedError((first, second))


async def on_tick(scheduled: datetime) -> None:
    """A cron task."""
    process, job = process_here.get(), current_job()
    process.state.row("tick", process.name, job=job.id, queue=job.queue, task=job.task,
                      tick=scheduled.isoformat(), attempt=job.attempt)  # fmt: skip


async def body(data: bytes) -> Any:
    """The consumer of a queue."""
    return await perform(int(data))


# Executors.


class SimulatedThreads:
    """Simulates threads. A thread cannot be stopped: the return value of its function is used."""

    async def run(
        self, _: Callable[..., Any], args: Sequence[Any], __: Mapping[str, Any], ___: Run, /
    ) -> object:
        """Run the function and return its result."""
        found: list[object] = []
        with trio.CancelScope(shield=True):
            _note_ends(args[0], args[-1])
            found.append(await _in_thread(args[-1]))
        return found[0]


async def _in_thread(number: int) -> object:
    process, job = process_here.get(), current_job()
    action = _begin(process, job, number)
    await trio.sleep(action.work / SECOND)
    _record(process, job, number, action)
    if action.kind == "kill":
        process.die()
        await trio.sleep(0)
    elif action.kind in ("block", "stubborn"):
        await trio.sleep(action.after_s)
    return outcome_of(action, number)


class SimulatedProcesses:
    """Simulates processes. The death of a process affects no other one; if its job is cancelled, it
    is ended."""

    async def run(
        self, _: Callable[..., Any], args: Sequence[Any], __: Mapping[str, Any], ___: Run, /
    ) -> object:
        """Run the function and return its result."""
        number, process, job = args[-1], process_here.get(), current_job()
        _note_ends(args[0], number)
        action = _begin(process, job, number)
        await trio.sleep(action.work / SECOND)
        _record(process, job, number, action)
        if action.kind == "kill":
            raise WorkerDiedError("SIGKILL")
        if action.kind == "block":
            await trio.sleep(action.after_s)
        result = pickle.loads(answer(_outcome(action, number))[LENGTH:])
        if isinstance(result, Raised):
            raise result.error()
        return result.value


def _outcome(action: HandlerAction, number: int) -> Result | BaseException:
    try:
        return Result(outcome_of(action, number))
    except BaseException as error:
        return error


def executors(_: int, __: int) -> dict[str, Any]:
    """The executors in simulated processes of an app (`Runtime.executors`)."""
    return {
        "loop": None,
        "thread": SimulatedThreads(),
        "process": SimulatedProcesses(),
    }
