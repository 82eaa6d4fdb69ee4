"""Simulated processes of an app: the one that runs the scenario, and workers."""

import random
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

import attrs
import trio

from disque_trio.client import Client
from disque_trio.client.address import Cluster
from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.testing.simulated.connections import Connections
from disque_trio.testing.simulated.step import Brake, Steps
from disque_trio.worker.app import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import SECOND, Outcome, Queue, Settings
from disque_trio.worker.envelope import BadBodyError, NewerBodyError, as_coded, key_of, read
from disque_trio.worker.handler import JobHandler
from disque_trio.worker.protocol import Run
from disque_trio.worker.runtime import Runtime, for_task

Note = Callable[[str, str], None]
"""Logs a process and an event."""
Before = Callable[["WorkerProcess", Steps[Any], int, str], BaseException | None]
"""Called before each step of a handler, with the number of the step and the task's name."""
DRAIN_S: Final = 25
ABORT_S: Final = 3


class SimError(RuntimeError):
    """An operation that is impossible in a simulated process."""


def now() -> float:
    """Unix time in the simulation."""
    return EPOCH_MS / 1000 + trio.current_time()


def world_of(cluster: Cluster, connections: Connections, rng: random.Random) -> Runtime:
    """The runtime of an app in a simulated process, which replaces clocks, random numbers and
    sockets."""

    def blocking_client(_: object) -> NoReturn:
        raise SimError(
            "a blocking client would stop the simulation: let an `async def` enqueue, or test "
            "this with disque_inline"
        )

    return Runtime(
        now=now,
        monotonic=trio.current_time,
        new_key=lambda: key_of(int(now() * 1000), rng.getrandbits(80)),
        client=lambda _: Client(cluster, connect=connections.connect, name=""),
        blocking_client=blocking_client,
    )


def shown(job: str) -> str:
    """The part of an id that distinguishes jobs."""
    return f"{job[11:19]}…"


@attrs.define(eq=False)
class _Handler:
    """Runs handlers in steps."""

    inner: JobHandler
    process: "WorkerProcess"

    def __call__(self, run: Run) -> Coroutine[Any, Any, Outcome]:
        return self.process.run(self.inner, run)


@attrs.define(eq=False)
class WorkerProcess:
    """One life of a worker."""

    name: str
    app: App[Any]
    cluster: Cluster
    connections: Connections
    concurrency: int
    rng: random.Random
    note: Note
    before: Before
    has_cron: bool = True
    runs: dict[Steps[Any], Run] = attrs.Factory(dict)
    """The running handlers."""
    is_over: bool = False
    """Has the scenario ended? Then suspended handlers continue, without effects."""
    worker: Worker | None = attrs.field(init=False, default=None)
    _scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    _has_signal: bool = False
    """Did it receive SIGTERM while it was suspended?"""
    _brake: Brake = attrs.Factory(Brake)

    async def live(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until it is killed or stopped."""
        world = world_of(self.cluster, self.connections, self.rng)
        with self._scope, for_task(world):
            handler = self.app.handler(
                is_inline=True, has_cron=self.has_cron, draw=self.rng.random, now=now
            )
            async with handler:
                self.worker = Worker(
                    settings=self._settings(),
                    handler=_Handler(handler, self),
                    cluster=self.cluster,
                    connect=self.connections.connect,
                    waking=self.connections.waking,
                )
                task_status.started()
                await self.worker.run()
        if not self.connections.is_dead:
            self.connections.die()
            self.note(self.name, "has ended")

    def _settings(self) -> Settings:
        queues = [each.encode(errors="surrogateescape") for each in self.app.queues]
        nodes = [str(each) for each in self.cluster.seeds]
        first = self.rng.randrange(len(nodes))
        return Settings(
            nodes=(*nodes[first:], *nodes[:first]),
            queues=tuple(Queue(name=each) for each in queues),
            concurrency=self.concurrency,
            drain=DRAIN_S * SECOND,
            abort=ABORT_S * SECOND,
        )

    # Faults.

    @property
    def is_alive(self) -> bool:
        """Does the process exist?"""
        return not self.connections.is_dead

    def kill(self, why: str = "is killed") -> None:
        """Kill it, as SIGKILL does."""
        if self.is_alive:
            self.note(self.name, why)
            self.connections.die()
            self._scope.cancel()

    def pause(self) -> None:
        """Suspend its handlers and its connections, as SIGSTOP does."""
        self.note(self.name, "is stopped")
        self.connections.stop()

    def resume(self) -> None:
        """Undo a pause."""
        self.connections.go_on()
        if self.may_step:
            self.note(self.name, "goes on")
        self.go_on_with_all()

    def go_on_with_all(self) -> None:
        """Continue, unless it was suspended more than once."""
        if self.may_step:
            self._brake.release()
            if self._has_signal:
                self.obey()

    def stop(self) -> None:
        """Stop it gracefully, as SIGTERM does."""
        self.note(self.name, "is told to stop")
        self.obey()

    def obey(self) -> None:
        """Handle the signal, as soon as the process is not suspended."""
        assert self.worker is not None
        self._has_signal = not self.may_step
        if self.may_step:
            self.worker.stop()

    def finish(self) -> None:
        """End the process at the end of the scenario."""
        self.is_over = True
        self.connections.is_dead = True
        self._scope.cancel()
        self._brake.release()

    # Handlers (`stepping.Process`).

    @property
    def may_step(self) -> bool:
        """May its handlers continue?"""
        return self.is_over or not (self.connections.is_dead or self.connections.is_stopped)

    async def stepping(self) -> None:
        """Wait until its handlers may continue."""
        while not self.may_step:
            await self._brake.wait()
        if self.is_over:
            await trio.lowlevel.checkpoint()  # its scope is cancelled

    async def run(self, handler: JobHandler, run: Run) -> Outcome:
        """Run a handler in steps."""
        task, job = _task_of(run), shown(run.start.id.decode())
        deliveries = run.start.nacks + run.start.additional_deliveries + 1
        self.note(self.name, f"{task} begins, {job}, delivery {deliveries}")
        steps = Steps(handler(run), self, lambda each, n: self.before(self, each, n, task))
        self.runs[steps] = run
        try:
            outcome = await steps
        except BaseException:
            self._note_end(f"{task} is cancelled, {job}")
            raise
        finally:
            del self.runs[steps]
        self._note_end(f"{task} ends: {type(outcome).__name__.lower()}, {job}")
        return outcome

    def _note_end(self, text: str) -> None:
        if self.is_alive:
            self.note(self.name, text)


def _task_of(run: Run) -> str:
    try:
        coded = as_coded(run.start.body)
        return read(run.start.body, len(run.start.body)).task if coded is None else coded.task
    except (BadBodyError, NewerBodyError):
        return f"the consumer of {run.start.queue.decode(errors='replace')}"
