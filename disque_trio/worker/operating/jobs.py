"""Manages single jobs of a cluster, and dead ones (`Admin.jobs`)."""

from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import Any, ClassVar, Final

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.worker.operating.asking import Asking, Found, at_each, unwrap
from disque_trio.worker.operating.plans import Operable
from disque_trio.worker.operating.states import Copy, JobStatus, State, status_of
from disque_trio.worker.runtime import runtime

_ENDED: Final = "ended-jobs"
_LOOKED_AT: Final = 50_000
"""The maximum number of replicas of one node that are scanned, if few of them match."""
MOST_AT_ONCE: Final = 200
"""The maximum number of ids in one request."""


@attrs.frozen(eq=False)
class Jobs(Operable):
    """Manages the jobs of a cluster. Each method raises `NoNodeError` if no node answers."""

    FAMILY: ClassVar = "jobs"
    client: Asking

    async def find(self, id: str) -> Found[Copy]:
        """The replicas of a job, on all nodes."""

        async def ask(node: Address) -> list[Copy]:
            job = unwrap(*await self.client.ask(node, [commands.show(id)]))
            # A node that keeps only the acknowledgement or the result has no replica.
            return [Copy(node=node, job=job)] if job is not None and job.body is not None else []

        return await at_each(self.client, ask)

    async def ended(
        self, id: str | None = None, *, queue: str | None = None, limit: int = 1000
    ) -> Found[Copy]:
        """The records that nodes keep of jobs that have ended, one for each job and the latest
        first: of this job, with its result if one is kept, or of this queue. A node keeps the
        latest records since its start (`ended-jobs`)."""

        async def ask(node: Address) -> list[Copy]:
            if id is not None:
                job = unwrap(*await self.client.ask(node, [commands.show(id, is_ended=True)]))
                is_known = job is not None and (job.ending or "result" in job.more)
                return [Copy(node=node, job=job)] if job is not None and is_known else []
            unwrap(*await self.client.ask(node, [commands.ping()]))  # reports its features
            if _ENDED not in self.client.nodes.features(node):
                return []
            return await self._scan_node(node, limit, cut, queue=queue, states=("ended",))

        cut: list[Address] = []
        found = await at_each(self.client, ask)
        once: dict[str, Copy] = {}
        for copy in sorted(found.items, key=_by_detail, reverse=True):
            once.setdefault(copy.job.id, copy)
        latest = sorted(once.values(), key=_latest_first)
        return Found(latest[:limit], found.unreached, bool(cut) or len(latest) > limit)

    async def status(self, id: str) -> JobStatus:
        """The state of a job, by all nodes that answer. If they no longer have the job, it is their
        record of its end. For a running job it includes the worker that reports it."""
        found = await self.find(id)
        ended = Found[Copy]([], {}) if found.items else await self.ended(id)
        status = status_of(id, ended if ended.items else found, runtime().now())
        return await self._with_worker(status) if status.state == "leased" else status

    async def _with_worker(self, status: JobStatus) -> JobStatus:
        admin: Any = import_module("disque_trio.worker.operating.admin")
        for worker in (await admin.Workers(self.client)()).items:
            for job in worker.report.jobs:
                if job.id == status.id:
                    since = runtime().now() - worker.age_s - job.age_s
                    return attrs.evolve(status, worker=worker.report.name, since=since)
        return status

    async def cancel(self, id: str) -> bool:
        """Cancel a job on all nodes. A worker that runs it cancels the handler at the next renewal
        of the lease. Returns False if no node has the job, or it has ended."""
        live = [copy for copy in (await self.find(id)).items if copy.job.state != "acked"]
        if live:
            unwrap(*await self.client.ask(live[0].node, [commands.ackjob(id)]))
        return bool(live)

    async def dead(
        self, queue: str | None = None, *, reason: str = "", limit: int = 1000
    ) -> Found[Copy]:
        """Dead jobs of the queue, or of all queues, whose reason contains the text; the job added
        last comes first. If there are more than `limit`, an arbitrary part of them is returned
        (`Found.is_cut`)."""

        def fits(copy: Copy) -> bool:
            return reason.lower() in copy.reason.lower()

        found = await self._scan(limit, fits, queue=queue, states=("dead",))
        once = {copy.job.id: copy for copy in found.items if fits(copy)}
        jobs = sorted(once.values(), key=lambda copy: -copy.job.ctime)
        return Found(jobs[:limit], found.unreached, found.is_cut or len(jobs) > limit)

    async def listed(
        self,
        queue: str | None = None,
        *,
        states: Collection[State] = (),
        error: str | None = None,
        text: str | None = None,
        limit: int = 100,
    ) -> Found[JobStatus]:
        """Jobs that have not ended, the job added last first. The filters are the queue, the
        states, the class of the last error, and a text in the body. If there are more than `limit`,
        an arbitrary part of them is returned (`Found.is_cut`)."""
        now = runtime().now()
        found = await self._scan(
            limit,
            lambda copy: not states or status_of("", Found([copy], {}), now).state in states,
            queue=queue,
            error=error,
            body=text,
            states=("dead",) if set(states) == {"dead"} else ("queued", "active", "dead"),
        )
        copies: dict[str, list[Copy]] = {}
        for copy in found.items:
            copies.setdefault(copy.job.id, []).append(copy)
        # Not by `added_at`, which is in milliseconds: several jobs are added in one millisecond.
        latest = sorted(copies.items(), key=lambda each: -each[1][0].job.ctime)
        jobs = [status_of(id, Found(some, {}), now) for id, some in latest]
        chosen = [job for job in jobs if not states or job.state in states]
        return Found(chosen[:limit], found.unreached, found.is_cut or len(chosen) > limit)

    async def _scan(self, limit: int, fits: Callable[[Copy], bool], **filters: Any) -> Found[Copy]:
        """The replicas on each node, until `limit` of them match."""
        cut: list[Address] = []
        found = await at_each(
            self.client, lambda node: self._scan_node(node, limit, cut, fits, **filters)
        )
        return attrs.evolve(found, is_cut=bool(cut))

    async def _scan_node(
        self,
        node: Address,
        limit: int,
        cut: list[Address],
        fits: Callable[[Copy], bool] = lambda _copy: True,
        **filters: Any,
    ) -> list[Copy]:
        """The replicas on one node. The node is added to `cut` if it may have more."""
        found: list[Copy] = []
        cursor = fitting = 0
        while fitting < limit and len(found) < max(limit, _LOOKED_AT):
            asked = commands.jscan(cursor, **filters)
            page = unwrap(*await self.client.ask(node, [asked]))
            some = [Copy(node=node, job=job) for job in page.items]
            found += some
            fitting += sum(map(fits, some))
            cursor = page.cursor
            if not cursor:
                return found
        cut.append(node)
        return found

    async def of_each(self, copies: Iterable[Copy], make: Callable[..., Command[int]]) -> int:
        """Run a command for each job at one node only, so that it counts once. Returns the sum of
        the replies."""
        by_node: dict[Address, list[str]] = {}
        for id, node in {copy.job.id: copy.node for copy in copies}.items():
            by_node.setdefault(node, []).append(id)
        asked = 0
        for node, ids in by_node.items():
            for start in range(0, len(ids), MOST_AT_ONCE):
                some = ids[start : start + MOST_AT_ONCE]
                asked += unwrap(*await self.client.ask(node, [make(*some)]))
        return asked


def _by_detail(copy: Copy) -> tuple[bool, bool]:
    """The order of records of one job: first that of the node at which a client ended it, then
    those with a result."""
    is_first = copy.job.ending is not None and bool(copy.job.ending.by)
    return is_first, "result" in copy.job.more


def _latest_first(copy: Copy) -> tuple[float, float]:
    """By time of the end; among jobs that ended in the same millisecond, the one added last comes
    first."""
    ending = copy.job.ending
    return (0.0 if ending is None else -ending.at), -copy.job.ctime
