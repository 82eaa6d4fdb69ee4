"""The client of a person: adds jobs, takes and answers them, and adds workers."""

from collections import deque
from typing import Final

import attrs

from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.heap.clients import Actor
from disque_trio.sim.fault_controls import number_of
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Consumer, Micros
from disque_trio.sim.steering import Client, Simulation
from disque_trio.sim.workload.actions import Disconnect
from disque_trio.sim.workload.agents import Worker
from disque_trio.sim.workload.operators import Pending, Word
from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.terminal.counting import counted

ANSWERS: Final = {"ack": "ACKJOB", "nack": "NACK", "working": "WORKING"}
ASKED: Final = 40
"""The number of requests whose replies are shown."""


class RemovableWorker(Worker):
    """A worker that can be removed at any time."""

    def remove_worker(self) -> None:
        """Disconnect, and drop the job in hand."""
        self._jobs.clear()
        self._is_asking = self._is_working = False
        self._way = ""
        self._due = NEVER
        self.actions.append(Disconnect(self._connection, "quit"))


@attrs.define
class AddedWorker:
    """A worker, from its addition to its removal."""

    plan: Consumer
    worker: RemovableWorker
    actor: Actor
    until: Micros | None = None

    @property
    def acks(self) -> bool:
        """Does it acknowledge its jobs?"""
        return self.plan.mix[0][0] == "ackjob"


@attrs.frozen
class Asked:
    """A request and its outcome."""

    at: Micros
    node: str
    words: str
    pending: Pending


@attrs.frozen
class HeldJob:
    """A job that was taken and has no outcome yet."""

    job: str
    queue: str
    node: str
    """The node from which it was taken."""
    nacks: int
    again: int
    """Additional deliveries in the reply of GETJOB."""


@attrs.define(eq=False)
class ManualClient:
    """The client in one simulation."""

    sim: Simulation
    asked: deque[Asked] = attrs.field(factory=lambda: deque(maxlen=ASKED))
    workers: list[AddedWorker] = attrs.Factory(list)
    _takers: dict[str, list[tuple[Client, Pending]]] = attrs.Factory(dict)
    """By node: connections that took jobs, with the last request of each."""
    _taken: list[tuple[str, Pending]] = attrs.Factory(list)
    """Requests for jobs whose replies have not been read, with the node."""
    _held: dict[tuple[str, str], HeldJob] = attrs.Factory(dict)
    """By id and node: one job may be delivered twice."""

    def ask(self, node: str, *words: Word, text: str) -> Pending:
        """Send a request, on a persistent connection to this node."""
        return self._note(node, text, self.sim.request(node, *words))

    def take(self, node: str, queue: str, count: int, wait_ms: int) -> Pending:
        """Send GETJOB, on a connection without a pending request."""
        takers = self._takers.setdefault(node, [])
        free = [each for each in takers if each[1].is_done]
        client = free[0][0] if free else self.sim.client(node)
        pending = client.getjob(queue, count=count, timeout_ms=wait_ms)
        if free:
            takers.remove(free[0])
        takers.append((client, pending))
        self._taken.append((node, pending))
        return self._note(node, f"GETJOB FROM {queue}", pending)

    def _note(self, node: str, text: str, pending: Pending) -> Pending:
        self.asked.append(Asked(self.sim.now, node, text, pending))
        return pending

    def held_jobs(self) -> list[HeldJob]:
        """Return the jobs that were taken, in the replies so far, and have no outcome yet."""
        waiting = []
        for node, pending in self._taken:
            if not pending.is_done:
                waiting.append((node, pending))
            elif isinstance(pending.reply, list):
                for each in pending.reply:
                    found = _held(node, each)
                    self._held[found.job, node] = found
        self._taken = waiting
        return list(self._held.values())

    def answer(self, how: str, job: str, node: str) -> None:
        """Report the outcome of a job to the node. After WORKING the job stays in hand."""
        self.ask(node, ANSWERS[how], job, text=f"{ANSWERS[how]} {job}")
        if how != "working":
            self.drop(job, node)

    def drop(self, job: str, node: str) -> None:
        """Forget the job, as a dying worker does."""
        self.held_jobs()
        self._held.pop((job, node), None)

    # Workers.

    def add_worker(self, node: str, queue: str, work: Micros, *, acks: bool) -> str:
        """Add a worker that takes one job after another. Return its name."""
        name = f"w{len(self.workers) + 1}"
        plan = Consumer(
            name=name,
            node=number_of(node),
            queues=(queue,),
            work=(work, work),
            mix=(("ackjob" if acks else "none", 1.0),),
            start=self.sim.now,
        )
        nodes, rng = len(self.sim.world.hosts), stream(self.sim.plan.seed, "work", name)
        worker = RemovableWorker(plan, nodes, rng)
        self.workers.append(AddedWorker(plan, worker, self.sim.world.add_agent(worker)))
        return name

    def remove_worker(self, workers: AddedWorker) -> None:
        """Remove a worker; the job in its hands is redelivered."""
        workers.until = self.sim.now
        workers.worker.remove_worker()
        self.sim.world.clients.settle(workers.actor)


def _held(node: str, reply: Reply) -> HeldJob:
    """Return one job in the reply to GETJOB WITHCOUNTERS."""
    assert isinstance(reply, list)
    queue, job, _, _, nacks, _, again = reply
    assert isinstance(queue, bytes)
    assert isinstance(job, bytes)
    assert isinstance(nacks, int)
    assert isinstance(again, int)
    return HeldJob(job.decode(), queue.decode("utf-8", "replace"), node, nacks, again)


def in_words(pending: Pending) -> str:
    """Return the reply as text, or why there is none."""
    reply = pending.reply
    if not pending.is_done:
        return "…"
    if pending.is_lost:
        return "no answer: the connection was lost"
    if isinstance(reply, list):
        return counted(len(reply), "job")
    if isinstance(reply, Failure | Status):
        return reply.text.decode("utf-8", "replace")
    return str(reply) if isinstance(reply, int) else "no job"
