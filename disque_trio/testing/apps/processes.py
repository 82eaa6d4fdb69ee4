"""Simulated processes of an app: workers, and producers that add jobs."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import trio

from disque_trio.client.errors import DisqueError
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.apps import AppCall, AppJob
from disque_trio.testing.apps import handlers
from disque_trio.testing.apps.run_state import RunState
from disque_trio.testing.simulated.connections import Connections
from disque_trio.testing.simulated.processes import WorkerProcess, now, world_of
from disque_trio.testing.simulated.step import Steps
from disque_trio.worker.app import App
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import (
    SECOND,
    Dead,
    Outcome,
    Queue,
    Release,
    Retry,
    Settings,
)
from disque_trio.worker.enqueue import Call
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.handler import JobHandler
from disque_trio.worker.protocol import Run
from disque_trio.worker.runtime import Runtime, for_task

RESTART_S: Final = 1.0
"""How long the supervisor takes to start another process."""
WAIT_S: Final = 3600.0
"""How long a producer waits for a result."""
DEADLINE_S: Final = 120
"""The deadline of batches with `then`, in seconds."""
FLOW_S: Final = 180
"""The deadline of flows, in seconds."""


def runtime_of(state: RunState, connections: Connections, name: str, life: int) -> Runtime:
    """The runtime of the app in a process."""
    rng = stream(state.run.plan.seed, "apps", "process", name, life)
    app_world = world_of(state.addresses, connections, rng)
    return attrs.evolve(app_world, executors=handlers.executors)


@attrs.define(eq=False, kw_only=True)
class AppWorker(WorkerProcess):
    """One life of a worker."""

    state: RunState
    world: Runtime
    rest_s: float = RESTART_S
    """The pause before the next life."""
    gone: trio.Event = attrs.Factory(trio.Event)
    _is_stopping: bool = False

    async def live(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until it is killed, or ends."""
        handlers.process_here.set(self)
        self.state.row("start", self.name)
        how = ""
        try:
            with self._scope, for_task(self.world):
                handler = self.app.handler(draw=self.rng.random, now=now)
                async with handler:
                    self.worker = Worker(
                        settings=self._settings(),
                        handler=_Watched(handler, self),
                        cluster=self.cluster,
                        connect=self.connections.connect,
                        waking=self.connections.waking,
                    )
                    task_status.started()
                    how = f"status-{await self.worker.run()}"
        except trio.Cancelled:
            raise
        except BaseException as error:
            how = _names(error)
        if self.is_alive and not self.is_over:
            self.connections.die()
            reason = "ordered" if self._is_stopping else ""
            self.state.row("ended", self.name, cause=how or "cancelled", told=reason)
        self.gone.set()

    def _settings(self) -> Settings:
        plan = self.state.plan
        queues = tuple(
            Queue(name=each.name, prefetch=plan.prefetch) for each in super()._settings().queues
        )
        return attrs.evolve(
            super()._settings(), queues=queues, concurrency=plan.concurrency, drain=8 * SECOND
        )

    # Faults.

    def kill(self, why: str = "fault") -> None:
        """Kill it, as SIGKILL does."""
        if self.is_alive:
            self.state.row("kill", self.name, cause=why)
            self.connections.die()
            self._scope.cancel()
            self.gone.set()

    def die(self) -> None:
        """Kill it on behalf of a handler."""
        self.kill("poison")

    def block(self, seconds: float) -> None:
        """Block its event loop for this time."""
        self.state.row("pause", self.name, cause="block", seconds=seconds)
        self.connections.stop()
        self.state.later(seconds, lambda: self.go_on("block"))

    def pause(self) -> None:
        """Suspend it, as SIGSTOP does."""
        self.state.row("pause", self.name, cause="fault")
        self.connections.stop()

    def resume(self) -> None:
        """Undo a pause."""
        self.go_on("fault")

    def go_on(self, why: str) -> None:
        """Undo one suspension."""
        if self.is_alive and self.connections.is_stopped:
            self.state.row("resume", self.name, cause=why)
            self.connections.go_on()
            self.go_on_with_all()

    def stop(self) -> None:
        """Stop it gracefully, as SIGTERM does."""
        if self.is_alive and self.worker is not None:
            self._is_stopping = True
            self.state.row("stop", self.name)
            self.obey()

    # Handlers.

    async def run(self, handler: JobHandler, run: Run) -> Outcome:
        """Run a handler in steps, and record the outcome that the library returns."""
        steps = Steps(handler(run), self, lambda *_: None)
        self.runs[steps] = run
        try:
            outcome = await steps
        except trio.Cancelled:
            self._end(run, "interrupted", "" if run.why is None else run.why.name)
            raise
        except BaseException as error:
            self._end(run, "raised", _names(error))
            raise
        finally:
            del self.runs[steps]
        self.ended(run, outcome)
        return outcome

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Record the outcome of a run."""
        match outcome:
            case Retry(delay=delay):
                self._end(run, "retry", f"{delay}")
            case Dead(reason=reason):
                self._end(run, "dead", reason.decode(errors="replace")[:200])
            case Release():
                release_delay = outcome.delay
                self._end(run, "release", "" if release_delay is None else f"{release_delay}")
            case _:
                self._end(run, "done", "")

    def _end(self, run: Run, how: str, text: str) -> None:
        if self.is_alive and not self.is_over:
            why = "" if run.why is None else run.why.name
            self.state.row(
                "end", self.name, job=run.start.id.decode(), cause=how, why=why, is_=text
            )


@attrs.define(eq=False)
class _Watched:
    """Passes runs to the process, which records their outcomes."""

    inner: JobHandler
    process: AppWorker

    def __call__(self, run: Run) -> Any:
        return self.process.run(self.inner, run)


def _names(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


@attrs.define(eq=False, kw_only=True)
class AppProducer:
    """One life of a producer."""

    name: str
    app: App[Any]
    connections: Connections
    state: RunState
    world: Runtime
    rest_s: float = RESTART_S
    gone: trio.Event = attrs.Factory(trio.Event)
    _scope: trio.CancelScope = attrs.Factory(trio.CancelScope)

    async def live(self) -> None:
        """Run until it is killed."""
        self.state.row("start", self.name)
        number = int(self.name[1:])
        try:
            with self._scope, for_task(self.world):
                async with self.app, trio.open_nursery() as nursery:
                    for call in self.state.plan.calls:
                        at = call.at / SECOND
                        if call.producer == number and at >= trio.current_time():
                            await trio.sleep_until(at)
                            nursery.start_soon(self._do, call)
                    await trio.sleep_forever()
        finally:
            self.gone.set()

    @property
    def is_alive(self) -> bool:
        """Does the process exist?"""
        return not self.connections.is_dead

    def kill(self, why: str = "fault") -> None:
        """Kill it, as SIGKILL does."""
        if self.is_alive:
            self.state.row("kill", self.name, cause=why)
            self.connections.die()
            self._scope.cancel()

    def pause(self) -> None:
        """Suspend its connections, as SIGSTOP does."""
        self.state.row("pause", self.name, cause="fault")
        self.connections.stop()

    def resume(self) -> None:
        """Undo a pause."""
        if self.is_alive and self.connections.is_stopped:
            self.state.row("resume", self.name, cause="fault")
            self.connections.go_on()

    def finish(self) -> None:
        """End the process at the end of the run."""
        self.connections.is_dead = True
        self._scope.cancel()

    # What it adds.

    async def _do(self, call: AppCall) -> None:
        numbers = ",".join(str(job.number) for job in call.jobs)
        self.state.row("call", self.name, cause=call.kind, ref=call.jobs[0].number, jobs=numbers)
        try:
            await _CALLS[call.kind](self, call)
        except Exception as error:
            self.state.row("refused", self.name, cause=_names(error), ref=call.jobs[0].number,
                           jobs=numbers)  # fmt: skip

    def call_of(self, job: AppJob) -> Call[Any]:
        """A job as a call."""
        task = self.app.tasks[job.task]
        options: Any = {}
        if job.delay_s:
            options["delay"] = job.delay_s
        if job.key:
            options["unique"] = job.key
        return (task.using(**options) if options else task).call(job.number)

    def added(self, found: object, job: AppJob) -> None:
        """Record that a job was added, or the error."""
        task = self.state.tasks[job.task]
        if isinstance(found, Enqueued):
            self.state.row("added", self.name, job=found.id, queue=found.queue, ref=job.number,
                           task=job.task, key=job.key, conflict=task.conflict)  # fmt: skip
        else:
            assert isinstance(found, BaseException)
            self.state.row("refused", self.name, cause=_names(found), ref=job.number)

    async def single(self, call: AppCall) -> None:
        """`enqueue`, or ADDJOB for a consumer."""
        (job,) = call.jobs
        task = self.state.tasks[job.task]
        if task.is_consumer:
            id = await self.app.client.addjob(task.queue, str(job.number), retry=task.lease_s)
            self.state.row("added", self.name, job=id, queue=task.queue, ref=job.number,
                           task=job.task)  # fmt: skip
            return
        enqueued = await self.call_of(job).enqueue()
        self.added(enqueued, job)
        if call.waits and task.has_result:
            await self._wait(enqueued, job.number)

    async def many(self, call: AppCall) -> None:
        """`enqueue_many`."""
        found = await self.app.enqueue_many([self.call_of(job) for job in call.jobs])
        for job, each in zip(call.jobs, found, strict=True):
            self.added(each, job)

    async def chain(self, call: AppCall) -> None:
        """A chain: later steps receive the return values of the previous steps."""
        first, *others = call.jobs
        chain = self.call_of(first)
        for job in others:
            chain = chain | self.app.tasks[job.task].partial(job.number)
        enqueued = await chain.enqueue()
        self.added(enqueued, first)
        last = call.jobs[-1]
        if call.waits and self.state.tasks[last.task].has_result:
            await self._wait(enqueued, last.number)

    async def batch(self, call: AppCall) -> None:
        """A batch whose results are awaited."""
        batch = await self.app.batch([self.call_of(job) for job in call.jobs], deadline=DEADLINE_S)
        self._members(batch.id, call.jobs, batch.jobs)
        if call.waits:
            self.state.row("wait", self.name, cause="batch", ref=call.jobs[0].number)
            await self._await_value(lambda: batch.wait(WAIT_S), call.jobs[0].number)

    async def then(self, call: AppCall) -> None:
        """A batch with `then`."""
        *jobs, last = call.jobs
        then: Any = self.app.tasks[last.task].partial(last.number)
        calls = [self.call_of(job) for job in jobs]
        batch = await self.app.batch(calls, then, deadline=DEADLINE_S)
        assert batch.then is not None
        self.state.row("then", self.name, job=batch.then.id, ref=last.number, batch=batch.id)
        self._members(batch.id, jobs, batch.jobs)

    async def flow(self, call: AppCall) -> None:
        """A flow, which may be cancelled."""
        flow = self.app.flow(deadline=FLOW_S)
        members: list[Any] = []
        for job in call.jobs:
            after = [members[place] for place in job.after]
            members.append(flow.add(self.call_of(job), after=after))
        enqueued = await flow.enqueue()
        number = call.jobs[0].number
        self.state.row("flow", self.name, job=enqueued.id, ref=number)
        if call.cancel_s:
            await trio.sleep(call.cancel_s)
            is_cancelled = await enqueued.cancel()
            self.state.row("cancel", self.name, job=enqueued.id, ref=number, done=is_cancelled)

    def _members(self, batch: str, jobs: Sequence[AppJob], found: Sequence[object]) -> None:
        self.state.row("batch", self.name, cause=batch,
                       jobs=",".join(str(job.number) for job in jobs))  # fmt: skip
        for job, each in zip(jobs, found, strict=True):
            self.added(each, job)

    async def _wait(self, enqueued: Enqueued[Any], number: int) -> None:
        self.state.row("wait", self.name, job=enqueued.id, cause="result", ref=number)
        await self._await_value(lambda: enqueued.result(WAIT_S), number)

    async def _await_value(self, wait: Callable[[], Any], number: int) -> None:
        self.state.waits += 1
        how = "value"
        try:
            await wait()
        except DisqueError as error:
            how = type(error).__name__
        except Exception as error:
            how = f"undocumented-{_names(error)}"
        finally:
            self.state.waits -= 1
        self.state.row("told", self.name, cause=how, ref=number)


_CALLS: Final[dict[str, Callable[[AppProducer, AppCall], Any]]] = {
    "single": AppProducer.single,
    "many": AppProducer.many,
    "chain": AppProducer.chain,
    "batch": AppProducer.batch,
    "then": AppProducer.then,
    "flow": AppProducer.flow,
}
