"""Runs a plan with an app: the nodes on the event heap, and the app's processes as Trio tasks, in
one virtual time.

As in other runs there are a chaos, a heal and a drain. The drain ends when no job is left and no
result is awaited, or when no job has run for `LONGEST_STILL_S`: a worker may need longer than any
fixed time.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import trio

from disque_trio.client.address import Address, Cluster
from disque_trio.sim.engines.heap.run import Outcome, Run, run_on_heap, warm_up_of
from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.apps import AppFault
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.base import ACTIVE, DEAD, QUEUED, WAIT_REPL
from disque_trio.testing.apps.declaring import declared
from disque_trio.testing.apps.processes import AppProducer, AppWorker, runtime_of
from disque_trio.testing.apps.run_state import RunState
from disque_trio.testing.simulated.block_io import no_sockets
from disque_trio.testing.simulated.clock import SECOND, ScenarioClock, ScenarioEngine
from disque_trio.testing.simulated.connections import Connections
from disque_trio.tracing.rows import Row
from disque_trio.worker.results import QUEUES

LONGEST_STILL_S: Final = 400.0
LOOK_S: Final = 1.0
QUIET: Final = 3
"""The drain ends after this many looks at which nothing is left."""
_STATES: Final = {WAIT_REPL: "wait-repl", ACTIVE: "active", QUEUED: "queued", DEAD: "dead"}


def simulate(
    plan: Plan,
    observer: Callable[[Row], None] | None = None,
    *,
    prepare: Callable[[Run], None] = lambda _: None,
) -> Outcome:
    """Run a plan with an app. Every row is passed to the observer. `prepare` is called before the
    start."""
    engine = ScenarioEngine(-warm_up_of(plan))
    run = run_on_heap(plan, observer, engine=engine)
    prepare(run)
    run.recorder.keep_back()
    clock = ScenarioClock()
    try:
        apps = _Apps(run, engine, clock)
        with ungrouped(), _logs(apps):
            virtual_time.run(f"{plan.seed}/apps", apps.play, clock)
    finally:
        run.recorder.flush()
    return run.outcome()


@attrs.define(eq=False)
class _Apps:
    """One run."""

    run: Run
    engine: ScenarioEngine
    clock: ScenarioClock
    state: RunState = attrs.field(init=False)
    _processes: dict[str, AppWorker | AppProducer] = attrs.Factory(dict)
    """By name: the last life of each process."""
    _all: list[AppWorker | AppProducer] = attrs.Factory(list)
    _nursery: trio.Nursery = attrs.field(init=False)

    async def play(self) -> None:
        """Run the plan from the warm-up to the end."""
        plan = self.run.plan
        for moment in self.run.warm_up():
            self.run.engine.run(moment)
        self.run.begin()
        hosts = self.run.world.hosts
        addresses = Cluster([Address(host=host.ip) for host in hosts.values()])
        async with trio.open_nursery() as self._nursery:
            self._open(addresses)
            self.clock.engine = self.engine
            with self._finishing(), no_sockets():
                await self._chaos(plan)
                await self._drain()
                for id, (state, queue) in self._left().items():
                    self.state.row("left", "", job=id, queue=queue, cause=state)
                self.state.row("over", "", waits=self.state.waits)
            self._nursery.cancel_scope.cancel()

    def _open(self, addresses: Cluster) -> None:
        plan = self.run.plan
        assert plan.apps is not None
        self.state = RunState(
            plan=plan.apps,
            run=self.run,
            engine=self.engine,
            addresses=addresses,
            nursery=self._nursery,
        )

    @contextlib.contextmanager
    def _finishing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.state.is_over = True
            for process in self._all:
                process.finish()
            self.clock.engine = None  # detects tasks that do not end, instead of waiting for them

    async def _chaos(self, plan: Plan) -> None:
        apps = self.state.plan
        app = declared(apps, self.state.addresses)
        numbers = {host.ip: number for number, host in self.run.world.hosts.items()}

        def life(name: str, number: int) -> AppWorker | AppProducer:
            connections = Connections(name, self.run.world, self.engine, numbers)
            world = runtime_of(self.state, connections, name, number)
            if name[0] == "p":
                return AppProducer(
                    name=name, app=app, connections=connections, state=self.state, world=world
                )
            return AppWorker(
                name=name,
                app=app,
                cluster=self.state.addresses,
                connections=connections,
                concurrency=apps.concurrency,
                rng=stream(plan.seed, "apps", "worker", name, number),
                note=lambda *_: None,
                before=lambda *_: None,
                state=self.state,
                world=world,
            )

        for prefix, count in (("w", apps.workers), ("p", apps.producers)):
            for number in range(1, count + 1):
                self._nursery.start_soon(self._keep, f"{prefix}{number}", life)
        for fault in apps.faults:
            self._nursery.start_soon(self._suffer, fault)
        while (left := plan.chaos / SECOND - trio.current_time()) > 0:
            await trio.sleep(min(left, LOOK_S))
            self.run.recorder.flush()
        self._heal()

    async def _keep(self, name: str, life: Callable[[str, int], AppWorker | AppProducer]) -> None:
        number = 0
        while not self.state.is_over:
            number += 1
            process = self._processes[name] = life(name, number)
            self._all.append(process)
            self._nursery.start_soon(process.live)
            await process.gone.wait()
            await trio.sleep(process.rest_s)

    # Faults.

    async def _suffer(self, fault: AppFault) -> None:
        await trio.sleep(fault.at / SECOND)
        process = self._processes[fault.process]
        if self.state.is_calm or not process.is_alive:
            return
        hold = fault.hold / SECOND
        if fault.kind in ("kill", "stop"):
            process.rest_s = max(hold, 0.1)
            if isinstance(process, AppWorker) and fault.kind == "stop":
                process.stop()
            else:
                process.kill()
        elif fault.kind == "reset":
            self.state.row("reset", process.name)
            process.connections.reset()
        elif fault.kind == "pause":
            process.pause()
            await self._until_healed(hold)
            process.resume()
        else:
            await self._cut(process, fault, hold)

    async def _cut(self, process: AppWorker | AppProducer, fault: AppFault, hold: float) -> None:
        nodes = [fault.node] if fault.node else list(self.run.world.hosts)
        self.state.row("cut", process.name, nodes=",".join(map(str, nodes)))
        for node in nodes:
            process.connections.cut(node)
        await self._until_healed(hold)
        for node in nodes:
            process.connections.mend(node)
        self.state.row("mend", process.name, nodes=",".join(map(str, nodes)))

    async def _until_healed(self, hold: float) -> None:
        left = self.run.plan.chaos / SECOND - trio.current_time()
        await trio.sleep(max(min(hold, left), 0))

    def _heal(self) -> None:
        run = self.run
        run.engine.sync()
        run.world.network.become_reliable()
        run.faults.heal(None)
        for number in run.fault_actions.numbers():
            run.fault_actions.meet(number)
        self.state.is_calm = True
        self.state.row("heal", "")

    # The end.

    async def _drain(self) -> None:
        until, quiet, runs = trio.current_time() + LONGEST_STILL_S, 0, self.state.runs
        while quiet < QUIET and trio.current_time() < until:
            await trio.sleep(LOOK_S)
            self.run.recorder.flush()
            quiet = 0 if self.state.waits or self._left() else quiet + 1
            if runs != self.state.runs:
                until, runs = trio.current_time() + LONGEST_STILL_S, self.state.runs

    def _left(self) -> dict[str, tuple[str, str]]:
        """Jobs on nodes that have not ended: their states and queues. Excludes jobs of cron tasks,
        and results that are no longer awaited."""
        found: dict[str, tuple[str, str]] = {}
        for host in self.run.world.hosts.values():
            for job in host.machine.state.jobs.values() if host.machine else ():
                queue = "" if job.queue is None else job.queue.decode()
                is_hidden = queue == "ticks" or queue.startswith(QUEUES)
                if job.state in (WAIT_REPL, ACTIVE, QUEUED) and not is_hidden:
                    found[job.id.decode()] = _STATES[job.state], queue
        return found


@contextlib.contextmanager
def _logs(apps: _Apps) -> Iterator[None]:
    """Convert log records of the library to rows, without the texts, which may contain
    addresses."""
    log = logging.getLogger("disque_trio")
    handler = _Rows(apps)
    level, propagates = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagates


class _Rows(logging.Handler):
    """Writes a row for each record."""

    def __init__(self, apps: _Apps) -> None:
        super().__init__()
        self._apps = apps

    def emit(self, record: logging.LogRecord) -> None:
        """Record the line, and whether its text can be formatted."""
        broken = ""
        try:
            record.getMessage()
        except Exception as error:
            broken = type(error).__name__
        job = getattr(record, "job", "")
        self._apps.state.row(
            "log",
            "",
            job=job if isinstance(job, str) else "",
            cause=record.levelname,
            broken=broken,
            logger=record.name.removeprefix("disque_trio."),
            text=str(record.msg)[:80],
        )
