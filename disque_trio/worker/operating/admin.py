"""Manages workers: `App.admin`, and `disque-trio workers` (docs/operating.md)."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import JobDetails
from disque_trio.worker.codec import BAD_INPUT, write
from disque_trio.worker.operating.asking import Found, at_each, unwrap
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.notes import (
    ANSWERS,
    ORDER_TTL_S,
    SILENT_S,
    WORKERS,
    Answer,
    Due,
    Order,
    OrderName,
    read_answer,
    read_note,
)
from disque_trio.worker.operating.plans import Operable
from disque_trio.worker.operating.queues import Queues
from disque_trio.worker.reporting import Report
from disque_trio.worker.runtime import runtime

if TYPE_CHECKING:
    from disque_trio.worker.timetable.records import Entry

ANSWER_S: Final = 10.0
"""How long to wait for the answer to an order, in seconds."""
MOST: Final = 10_000
"""The maximum number of notes that are read from one node."""


@attrs.frozen(kw_only=True)
class KnownWorker:
    """A worker, as described by its last heartbeat."""

    report: Report
    age_s: float
    """The age of the heartbeat in seconds."""
    control: str
    """The queue of its orders."""
    node: Address = attrs.field(repr=str)
    """The node that has the heartbeat."""
    schedules: Sequence[Due] = ()
    """The schedules that it keeps."""
    attempts: Mapping[str, int] = attrs.Factory(dict)
    """By task: the number of attempts after which a job is dead."""

    @property
    def state(self) -> str:
        """The state that it reported, or `silent` if the heartbeat is too old."""
        return "silent" if self.age_s > SILENT_S else self.report.state

    def has_name(self, pattern: str) -> bool:
        """Does its name match this pattern, such as `shop-*`?"""
        return fnmatchcase(self.report.name, pattern)


@attrs.frozen(kw_only=True)
class Obeyed:
    """The result of an order to a worker."""

    worker: KnownWorker
    answer: Answer | None = None
    error: str = "no answer in time"
    """Why there is no answer; empty if there is one."""


@attrs.frozen(eq=False)
class Workers(Operable):
    """The workers of a cluster."""

    FAMILY: ClassVar = "workers"
    client: Client

    async def __call__(self, pattern: str = "*") -> Found[KnownWorker]:
        """The workers whose names match the pattern (`shop-*`), by name: running ones, and killed
        ones for half a minute. Raises `NoNodeError` if no node answers."""
        found = await at_each(self.client, self._noted)
        last: dict[str, KnownWorker] = {}
        for worker in sorted(found.items, key=lambda each: -each.age_s):
            if worker.has_name(pattern):
                last[worker.control] = worker
        by_name = sorted(last.values(), key=lambda each: (each.report.name, each.control))
        return Found(by_name, found.unreached)

    async def _noted(self, node: Address) -> list[KnownWorker]:
        asked: list[Command[Any]] = [commands.qpeek(WORKERS, MOST), commands.time()]
        jobs, micros = map(unwrap, await self.client.ask(node, asked))
        shown = await self.client.ask(node, [commands.show(job) for job in jobs])
        now_ms = micros // 1000
        found = []
        for job, details in zip(jobs, shown, strict=True):
            age_s = 0.0  # the next note has just replaced it
            if isinstance(details, JobDetails):
                age_s = max(now_ms - details.ctime // 1_000_000, 0) / 1000
            try:
                note = read_note(job.body)
            except BAD_INPUT:  # of another version
                continue
            found.append(
                KnownWorker(
                    report=note.report,
                    age_s=age_s,
                    control=note.control,
                    node=node,
                    schedules=note.schedules,
                    attempts=note.attempts,
                )
            )
        return found


@attrs.frozen(eq=False)
class Nodes(Operable):
    """The nodes of a cluster."""

    FAMILY: ClassVar = "nodes"
    client: Client


@attrs.frozen(eq=False)
class Flows(Operable):
    """The flows of a cluster."""

    FAMILY: ClassVar = "flows"
    client: Client


@attrs.frozen(eq=False)
class Schedules(Operable):
    """The schedules of a cluster that were added at run time."""

    FAMILY: ClassVar = "schedules"
    client: Client

    async def all(self) -> "Found[Entry]":
        """All schedules, by name. Raises `NoNodeError` if no node answers."""
        records: Any = import_module("disque_trio.worker.timetable.records")
        found: Found[Entry] = await records.Timetable(self.client).all()
        return found


@attrs.frozen(eq=False)
class Admin:
    """Manages the workers, jobs and queues of a cluster."""

    client: Client

    @property
    def jobs(self) -> Jobs:
        """The jobs of the cluster."""
        return Jobs(self.client)

    @property
    def queues(self) -> Queues:
        """The queues of the cluster."""
        return Queues(self.client)

    @property
    def workers(self) -> Workers:
        """The workers of the cluster: `await admin.workers("shop-*")` lists those whose names
        match."""
        return Workers(self.client)

    @property
    def flows(self) -> Flows:
        """The flows of the cluster."""
        return Flows(self.client)

    @property
    def schedules(self) -> Schedules:
        """The schedules of the cluster that were added at run time."""
        return Schedules(self.client)

    @property
    def nodes(self) -> Nodes:
        """The nodes of the cluster."""
        return Nodes(self.client)

    async def order(
        self, order: OrderName, *workers: KnownWorker, timeout: float = ANSWER_S
    ) -> list[Obeyed]:
        """Send an order to workers, and wait up to `timeout` seconds for their answers.

        `quiet`: take no more jobs. `resume`: take jobs again. `stop`: stop gracefully. `dump`:
        return the stacks of all tasks and threads. An order without an answer may have been carried
        out, or may still be within a minute.
        """
        obeyed = {each.control: Obeyed(worker=each) for each in workers}
        with anyio.move_on_after(timeout):
            async with anyio.create_task_group() as tasks:
                for worker in workers:
                    tasks.start_soon(self._order, worker, order, obeyed)
        return list(obeyed.values())

    async def _order(
        self, worker: KnownWorker, order: OrderName, obeyed: dict[str, Obeyed]
    ) -> None:
        try:
            answer = await self._answer(worker, order)
            obeyed[worker.control] = Obeyed(worker=worker, answer=answer, error="")
        except (DisqueError, *BAD_INPUT) as error:
            obeyed[worker.control] = Obeyed(worker=worker, error=str(error))

    async def _answer(self, worker: KnownWorker, order: OrderName) -> Answer:
        reply_to = ANSWERS + runtime().new_key()
        body = write(Order(order=order, reply_to=reply_to), "json")
        add = commands.addjob(worker.control, body, replicate=1, retry=0, ttl=ORDER_TTL_S)
        await self.client.run(add, first=worker.node)  # the worker waits for orders there
        (job,) = await self.client.run(commands.getjob(reply_to), first=worker.node)
        await self.client.run(commands.ackjob(job), first=worker.node)
        return read_answer(job.body)
