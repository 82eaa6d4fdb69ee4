"""Answers the questions of the console: topics with arguments, as JSON values."""

import contextlib
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio
import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.observe import history, job_search, jobs, queues
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import RATES
from disque_trio.observe.finding import Finding, ordered
from disque_trio.observe.findings import as_rows, findings
from disque_trio.observe.flows import Flows
from disque_trio.observe.node_checks import unasked
from disque_trio.observe.queue_counts import POINTS, QueueCounts
from disque_trio.observe.queue_list import QueueLists
from disque_trio.observe.survey import KnownNode, Survey, node_row, sees
from disque_trio.observe.timeline import Timelines
from disque_trio.observe.values import Json
from disque_trio.observe.workers import Workers, served, tasks
from disque_trio.worker.operating.admin import Admin, KnownWorker
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.plans import MistakeError
from disque_trio.worker.operating.queues import is_most
from disque_trio.worker.options import NOTES

FIRST_S: Final = 1.0
"""The maximum time that the first request waits until all queues are counted."""
WORKERS_S: Final = 5.0
"""The maximum age of workers' reports in findings."""
Answer = tuple[Json, dict[str, str]]
"""The data, and the nodes that have not answered, with the reason."""


@attrs.define(eq=False)
class Observer:
    """One observer for all viewers of a cluster. `run` runs while there are viewers."""

    client: DeadlineClient
    survey: Survey = attrs.field(init=False)
    counts: QueueCounts = attrs.field(init=False)
    lists: QueueLists = attrs.field(init=False)
    workers: Workers = attrs.field(init=False)
    flows: Flows = attrs.field(init=False)
    timelines: Timelines = attrs.Factory(Timelines)
    series: deque[tuple[float | None, ...]] = attrs.field(factory=lambda: deque(maxlen=POINTS))
    """Unix seconds; jobs added, delivered and acknowledged per second; queued jobs."""
    _noted: float | None = None
    """The time of the last look in `series`."""
    _waits_until: float | None = None
    _workers: list[KnownWorker] = attrs.Factory(list)
    _workers_at: float = -math.inf

    def __attrs_post_init__(self) -> None:
        self.survey = Survey(self.client)
        self.forget()
        self.workers = Workers(self.survey)
        self.flows = Flows(self.survey)

    async def run(self) -> None:
        """Count queues and retry silent nodes, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.counts.run)
            tasks.start_soon(self.client.probe)

    def forget(self) -> None:
        """Discard the counts when there are no viewers; they begin anew with the next one."""
        self.counts = QueueCounts(self.client, clock=lambda: self.survey.clock_ms)
        self.lists = QueueLists(self.counts)
        self._waits_until = None

    async def answer(self, topic: str, args: Json) -> Answer:
        """Return the answer. Raise `MistakeError` for an invalid question, and `DisqueError`."""
        if topic not in TOPICS:
            raise MistakeError(f"there is no topic '{topic}': {', '.join(TOPICS)}")
        return await TOPICS[topic](self, args)

    async def ids(self, args: Json) -> Found[str]:
        """Return the ids of the jobs that match. Raise `MistakeError` for invalid filters."""
        await self.look()
        wanted = job_search.Filter.of(args)
        found = await job_search.search(
            self.survey, self.counts, wanted, job_search.MOST, is_patient=True
        )
        return Found([each.details.id for each in found.items], found.unreached, found.is_cut)

    async def look(self) -> list[KnownNode]:
        """Return the nodes now; update the series from the queues counted so far."""
        await self.survey.look()
        self.counts.clock_ms = self.survey.clock_ms
        if not self.counts.is_whole:
            self._waits_until = self._waits_until or anyio.current_time() + FIRST_S
            left = self._waits_until - anyio.current_time()
            with anyio.move_on_after(left):  # the first page shows what there is
                await self.counts.begin()
        if self.survey.looked != self._noted:  # another topic may have looked
            self._noted = self.survey.looked
            rates = [self.survey.sum_rate(name) for name in RATES[:3]]
            queued = self.counts.totals()["queued"] if self.counts.has_any else None
            self.series.append((self.counts.now_ms / 1000, *rates, queued))
        return list(self.survey.nodes.values())

    async def look_at_workers(self) -> None:
        """Request the workers' reports, at most every `WORKERS_S`: they name the queues that
        workers take from."""
        now = anyio.current_time()
        if now - self._workers_at >= WORKERS_S:
            self._workers_at = now
            with contextlib.suppress(DisqueError):
                self._workers = (await Admin(self.client).workers()).items
        self.counts.served = served(self._workers)

    async def findings(self, nodes: list[KnownNode]) -> list[Finding]:
        """Return the findings about these nodes, the queues and the workers."""
        await self.look_at_workers()
        facts = [each.facts for each in nodes]
        found = findings(facts, self.counts, self._workers)
        if self.client.nodes.discovers or self.client.follows_tls:
            return found
        return ordered([*found, *unasked(facts)])

    def rows(self, nodes: list[KnownNode]) -> list[Json]:
        """Return the nodes as rows."""
        return [node_row(each, self.counts.queued_at(each.where)) for each in nodes]


_COLUMNS: Final = ("at", "added_s", "delivered_s", "acked_s", "queued")


async def _overview(observer: Observer, _args: Json) -> Answer:
    nodes, survey = await observer.look(), observer.survey
    columns = zip(*observer.series, strict=True)
    return {
        "cluster": survey.cluster_name,
        "findings": as_rows(
            await observer.findings(nodes),
            len(nodes),
            is_counted=observer.counts.is_whole and not observer.counts.uncounted,
        ),
        "now_ms": round(observer.counts.now_ms),
        "is_counting": not observer.counts.is_whole,
        "uncounted": observer.counts.uncounted,
        "totals": _totals(observer, nodes),
        "dead_is_least": bool(observer.counts.dead_least),
        "delayed_is_most": is_most(survey.figures("delayed_jobs")),
        "nodes": observer.rows(nodes),
        "series": dict(zip(_COLUMNS, map(list, columns), strict=True)),
    }, survey.unreached


def _totals(observer: Observer, nodes: list[KnownNode]) -> Json:
    answering = [each for each in nodes if not each.why]
    again = [each.again_s for each in answering if each.again_s is not None]
    lacking = [
        each.view.under_replicated
        for each in answering
        if each.view and each.view.under_replicated is not None
    ]
    added, delivered, acked, _ = map(observer.survey.sum_rate, RATES)
    totals: Mapping[str, int] = observer.counts.totals() if observer.counts.has_any else {}
    dead = observer.survey.figures("dead_jobs")
    if "dead" in totals:
        dead.append(totals["dead"])
    delayed = observer.survey.figures("delayed_jobs")
    notes = sum(each.stats.delayed or 0 for each in observer.counts.parts.get(NOTES, {}).values())
    return {
        "queued": totals.get("queued"),
        "leased": totals.get("leased"),
        # A queue that has only delayed jobs may be missing in the list of queues.
        "delayed": max(sum(delayed) - notes, 0) if delayed else None,
        "dead": max(dead, default=None),
        "under_replicated": sum(lacking) if lacking else None,
        "added_s": added,
        "delivered_s": delivered,
        "again_s": round(sum(again), 2) if again else None,
        "acked_s": acked,
    }


async def _cluster(observer: Observer, _args: Json) -> Answer:
    nodes = await observer.look()
    return {"nodes": observer.rows(nodes), "sees": sees(nodes)}, observer.survey.unreached


async def _queues(observer: Observer, args: Json) -> Answer:
    await observer.look()
    await observer.look_at_workers()
    return await queues.queues(observer.lists, args), observer.survey.unreached


async def _queue(observer: Observer, args: Json) -> Answer:
    await observer.look()
    await observer.look_at_workers()
    return await queues.queue(observer.counts, args), observer.survey.unreached


async def _dead(observer: Observer, args: Json) -> Answer:
    await observer.look()
    return await jobs.dead(observer.survey, observer.counts, args)


async def _jobs(observer: Observer, args: Json) -> Answer:
    await observer.look()
    return await job_search.jobs(observer.survey, observer.counts, args)


async def _job(observer: Observer, args: Json) -> Answer:
    flow_of = observer.flows.of_member
    return await jobs.job(observer.survey, observer.counts, args, flow_of)


async def _later(observer: Observer, _args: Json) -> Answer:
    await observer.look()
    return await jobs.later(observer.survey)


TOPICS: Final[Mapping[str, Callable[[Observer, Json], Awaitable[Answer]]]] = {
    "overview": _overview,
    "cluster": _cluster,
    "queues": _queues,
    "queue": _queue,
    "job": _job,
    "job-timeline": lambda observer, args: observer.timelines.look(observer.survey, args),
    "history": lambda observer, args: history.history(observer.survey, args),
    "jobs": _jobs,
    "workers": lambda observer, _args: observer.workers.look(),
    "tasks": lambda observer, _args: tasks(observer.survey),
    "dead": _dead,
    "flows": lambda observer, _args: observer.flows.flows(),
    "flow": lambda observer, args: observer.flows.flow(observer.counts, args),
    "later": _later,
}
"""The topics by name."""
