"""Looks after workers: `App.admin`, and `disque-trio workers` (docs/operating.md)."""

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
"""How long an order waits for its answer."""
MOST: Final = 10_000
"""Notes of one node."""


@attrs.frozen(kw_only=True)
class KnownWorker:
    """A worker, by its last note."""

    report: Report
    age_s: float
    """Of the note."""
    control: str
    """The queue of its orders."""
    node: Address = attrs.field(repr=str)
    """Which has the note."""
    schedules: Sequence[Due] = ()
    """That it keeps."""
    attempts: Mapping[str, int] = attrs.Factory(dict)
    """By task: after how many attempts a job is dead."""

    @property
    def state(self) -> str:
        """What it says, or `silent` if that is too old."""
        return "silent" if self.age_s > SILENT_S else self.report.state

    def has_name(self, pattern: str) -> bool:
        """Has it such a name, as `shop-*`?"""
        return fnmatchcase(self.report.name, pattern)


@attrs.frozen(kw_only=True)
class Obeyed:
    """What has become of an order to a worker."""

    worker: KnownWorker
    answer: Answer | None = None
    error: str = "no answer in time"
    """Why there is no answer."""


@attrs.frozen(eq=False)
class Workers(Operable):
    """The workers of a cluster."""

    FAMILY: ClassVar = "workers"
    client: Client

    async def __call__(self, pattern: str = "*") -> Found[KnownWorker]:
        """The workers with such a name (`shop-*`), by name: those that run, and for half a minute
        those that were killed. Raises `NoNodeError`."""
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
        """All of them, by name. Raises `NoNodeError`."""
        records: Any = import_module("disque_trio.worker.timetable.records")
        found: Found[Entry] = await records.Timetable(self.client).all()
        return found


@attrs.frozen(eq=False)
class Admin:
    """Looks after the workers, jobs and queues of a cluster."""

    client: Client

    @property
    def jobs(self) -> Jobs:
        """Its jobs."""
        return Jobs(self.client)

    @property
    def queues(self) -> Queues:
        """Its queues."""
        return Queues(self.client)

    @property
    def workers(self) -> Workers:
        """Its workers: `await admin.workers("shop-*")` lists those with such a name."""
        return Workers(self.client)

    @property
    def flows(self) -> Flows:
        """Its flows."""
        return Flows(self.client)

    @property
    def schedules(self) -> Schedules:
        """Its schedules that were added at run time."""
        return Schedules(self.client)

    @property
    def nodes(self) -> Nodes:
        """Its nodes."""
        return Nodes(self.client)

    async def order(
        self, order: OrderName, *workers: KnownWorker, timeout: float = ANSWER_S
    ) -> list[Obeyed]:
        """Give workers an order, and wait so many seconds for their answers.

        `quiet`: take no more jobs, `resume`: take some again, `stop`: end when the jobs that run
        have ended, `dump`: tell where all tasks and threads are. An order that no answer has come
        for may have been obeyed, or may be so within a minute.
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
        await self.client.run(add, first=worker.node)  # there it waits for orders
        (job,) = await self.client.run(commands.getjob(reply_to), first=worker.node)
        await self.client.run(commands.ackjob(job), first=worker.node)
        return read_answer(job.body)
