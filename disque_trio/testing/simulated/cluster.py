"""The cluster of a scenario: its nodes, its workers, its faults, and its time. Times are in
seconds."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import trio

from disque_trio.client.address import Address
from disque_trio.client.address import Cluster as Addresses
from disque_trio.sim.engines.heap.fault_actions import FaultActions
from disque_trio.sim.engines.heap.run import run_on_heap, warm_up_of
from disque_trio.sim.fault_controls import ActiveFault, FaultControls, Name, number_of
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.base import ACTIVE, DEAD, QUEUED, WAIT_REPL
from disque_trio.statemachine.job import Job
from disque_trio.testing.simulated.check import check, judge_of
from disque_trio.testing.simulated.clock import ScenarioEngine
from disque_trio.testing.simulated.connections import Connections
from disque_trio.testing.simulated.processes import Before, SimError, WorkerProcess, now, shown
from disque_trio.tracing.rows import Row
from disque_trio.worker.app import App
from disque_trio.worker.options import LOOKS, RESERVED

LOOK_S: Final = 0.25
LONGEST_DRAIN_S: Final = 3600.0
STORY: Final = "story"
"""The process that runs the scenario and adds its jobs."""
_ALIVE: Final = (WAIT_REPL, ACTIVE, QUEUED)
_NOTED: Final = ("crash", "start", "pause", "resume", "cut", "heal", "clock.step", "clock.rate")
_ENDED: Final = ("acked", "dead")
_DROPPED: Final = ("client-deljob", "expired", "evicted", "flush")
_AGAIN: Final = ("retry", "enqueue", "nack", "untied", "unbegun", "backed-off")


class NotDrainedError(AssertionError):
    """Jobs have not ended in time."""


@attrs.frozen
class Line:
    """An event of a scenario."""

    time: float
    """Seconds since the start of the scenario."""
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.time:10.3f} s  {self.who:<6} {self.what}"


class Cluster(FaultControls):
    """A simulated cluster with workers of an app. Nodes are n1, n2 …, workers are w1, w2 …, and the
    scenario itself is `story`.

    Every fault lasts until its `with` block ends, or until `undo` is called.
    """

    def __init__(
        self, plan: Plan, app: App[Any], *, concurrency: int, before: Before, nursery: trio.Nursery
    ) -> None:
        self.plan = plan
        self.log: list[Line] = []
        self.active_faults: dict[ActiveFault, None] = {}
        self._added: dict[str, None] = {}
        self._ended: dict[str, None] = {}
        self._app = app
        self._concurrency = concurrency
        self._before = before
        self._nursery = nursery
        self._lives = 0
        self._judge = judge_of(plan)
        self.engine = ScenarioEngine(-warm_up_of(plan))
        run = run_on_heap(plan, self._see, engine=self.engine)
        self.world = run.world
        self._actions = run.fault_actions
        for moment in run.warm_up():
            run.engine.run(moment)
        self.addresses = Addresses([Address(host=host.ip) for host in run.world.hosts.values()])
        self._numbers = {host.ip: number for number, host in run.world.hosts.items()}
        self.workers: dict[str, WorkerProcess] = {}
        """By name: the last life of each worker."""
        self._processes: list[WorkerProcess] = []
        """All lives of all workers."""
        self.story = self._connections(STORY)

    @property
    def _fault_actions(self) -> FaultActions:  # type: ignore[override]
        self.engine.sync()
        return self._actions

    def _connections(self, name: str) -> Connections:
        return Connections(name, self.world, self.engine, self._numbers)

    # Time.

    @property
    def now(self) -> float:
        """Unix time, as in the app."""
        return now()

    @property
    def time(self) -> float:
        """Seconds since the start of the scenario."""
        return trio.current_time()

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await trio.sleep(seconds)

    async def until(self, condition: Callable[[], object], limit: float = 600.0) -> None:
        """Let time pass until the condition holds. Raises `AssertionError` after `limit`
        seconds."""
        ends = self.time + limit
        while not condition():
            if self.time > ends:
                raise AssertionError(f"not within {limit:g} s: {condition}")
            await trio.sleep(LOOK_S)

    async def drained(self, limit: float = LONGEST_DRAIN_S) -> None:
        """Let time pass until no job waits or runs. Dead jobs count as ended. Raises
        `NotDrainedError` after `limit` seconds."""
        ends, is_empty = self.time + limit, False
        while True:
            left = self.jobs()
            if not left and not any(each.runs for each in self._processes if each.is_alive):
                if is_empty:
                    return
                is_empty = True
            else:
                is_empty = False
            if self.time > ends:
                raise NotDrainedError(f"jobs are left after {limit:g} s: {', '.join(left)}")
            await trio.sleep(LOOK_S)

    # Jobs.

    def jobs(self) -> list[str]:
        """The ids of jobs that running nodes have enqueued, or will enqueue."""
        return self._jobs(lambda job: job.state in _ALIVE)

    def dead(self) -> list[str]:
        """The ids of dead jobs."""
        return self._jobs(lambda job: job.state == DEAD)

    def lost(self) -> list[str]:
        """The ids of lost jobs: they were reported as added and have not ended, but no node has
        them, because all their holders have crashed."""
        there = self._jobs(lambda _: True)
        return [each for each in self._added if each not in there and each not in self._ended]

    def _jobs(self, condition: Callable[[Job], bool]) -> list[str]:
        found: dict[str, None] = {}
        for host in self.world.hosts.values():
            for job in host.machine.state.jobs.values() if host.machine else ():
                if job.queue is not None and not _is_hidden(job.queue) and condition(job):
                    found[job.id.decode()] = None
        return list(found)

    # Processes.

    async def start_worker(self, name: str) -> None:
        """Start a worker."""
        self._lives += 1
        process = self.workers[name] = WorkerProcess(
            name=name,
            app=self._app,
            cluster=self.addresses,
            connections=self._connections(name),
            concurrency=self._concurrency,
            rng=stream(self.plan.seed, "worker", name, self._lives),
            note=self.note,
            before=self._before,
        )
        self._processes.append(process)
        await self._nursery.start(lambda task_status: process.live(task_status=task_status))

    def worker(self, name: Name) -> WorkerProcess:
        """The worker with this name. Raises `SimError`."""
        found = self.workers.get(str(name))
        if found is None:
            raise SimError(f"there is no {name}: there are {', '.join(self.names())}")
        return found

    def running(self) -> list[str]:
        """The workers that run a handler."""
        return [name for name, process in self.workers.items() if process.runs]

    def node_of(self, worker: Name) -> str:
        """The node whose job the worker runs. Raises `SimError` if it runs none."""
        for run in self.worker(worker).runs.values():
            return self.node_at(run.node)
        raise SimError(f"{worker} runs no job: wait with `await cluster.until(cluster.running)`")

    def names(self) -> list[str]:
        """All nodes and workers."""
        return [*(host.name for host in self.world.hosts.values()), *self.workers]

    def crash(self, node: Name, cause: str = "kill") -> ActiveFault:
        """Kill a node or a worker. Undoing the fault starts it again; a node then has no jobs."""
        if node not in self.workers:
            return super().crash(node, cause)
        self.worker(node).kill()
        return self._keep(lambda: self._nursery.start_soon(self.start_worker, str(node)))

    def pause(self, node: Name) -> ActiveFault:
        """Suspend a node or a worker, as SIGSTOP does."""
        if node not in self.workers:
            return super().pause(node)
        process = self.worker(node)
        process.pause()
        return self._keep(process.resume)

    def stop(self, name: Name) -> None:
        """Stop a worker gracefully, as SIGTERM does."""
        self.worker(name).stop()

    # Links. Nodes have links to each other, and clients to nodes.

    def partition(self, *groups: Sequence[Name]) -> ActiveFault:
        """Cut all links between groups of nodes, workers and `story`. Nodes and processes in no
        group can reach all others."""
        nodes = [[each for each in group if not self._is_client(each)] for group in groups]
        cuts = [
            (self._connections_of(client), number_of(node))
            for group in groups
            for other in nodes
            if other != [each for each in group if not self._is_client(each)]
            for client in group
            if self._is_client(client)
            for node in other
        ]
        active = super().partition(*nodes)
        for connections, node in cuts:
            self.note(connections.name, f"is cut from n{node}")
            connections.cut(node)

        def undo() -> None:
            active.undo()
            for connections, node in cuts:
                connections.mend(node)

        return self._keep(undo)

    def isolate(self, node: Name) -> ActiveFault:
        """Cut all links of a node to nodes, or of a worker to nodes."""
        others = [host.name for host in self.world.hosts.values() if host.name != node]
        return self.partition([node], others)

    def reset(self, name: Name) -> None:
        """Break all connections of a worker, or of the `story`."""
        self.note(str(name), "loses its connections")
        self._connections_of(name).reset()

    def _is_client(self, name: Name) -> bool:
        return name == STORY or name in self.workers

    def _connections_of(self, name: Name) -> Connections:
        return self.story if name == STORY else self.worker(name).connections

    # Later events, and operators.

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call `act` after this time."""

        async def wait() -> None:
            await trio.sleep(seconds)
            act()

        self._nursery.start_soon(wait)

    def command(self, node: Name, *words: str | bytes | int) -> None:
        """Send a command to a node as an operator."""
        self.engine.sync()
        self.world.command(self.world.hosts[number_of(node)], *words)

    def node_at(self, address: str) -> str:
        """The name of the node at this address; n1 for an unknown address."""
        return f"n{self._numbers.get(address.rpartition(':')[0], 1)}"

    # What has happened.

    def note(self, who: str, what: str) -> None:
        """Add an event to the log of the scenario."""
        self.log.append(Line(trio.current_time(), who, what))

    def _see(self, row: Row) -> None:
        self._judge.see(row)
        if row.time < 0:
            return
        if row.kind == "add.ok" and not row.queue.startswith(RESERVED):
            self._added[row.job] = None
        elif row.kind in _ENDED or (row.kind == "drop" and row.cause in _DROPPED):
            self._ended[row.job] = None
        if row.kind in _NOTED:
            self.note(row.node, " ".join(filter(None, (row.kind, row.peer, row.detail))))
        elif row.kind == "queue" and row.cause in _AGAIN and not row.queue.startswith(RESERVED):
            self.note(row.node, f"queues {shown(row.job)} again: {row.cause}")

    # The end.

    def check(self) -> None:
        """Check the nodes after the scenario. Raises `GuaranteeError` if they violated a
        guarantee."""
        check(self._judge)

    def finish(self) -> None:
        """End all processes, also suspended ones, without effects on the cluster."""
        for process in self._processes:
            process.finish()


def _is_hidden(queue: bytes) -> bool:
    """Are its jobs notes and tokens of the library, which run nothing?"""
    return queue.startswith(RESERVED.encode()) and not queue.startswith(LOOKS.encode())
