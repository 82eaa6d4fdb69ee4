"""Looks after single jobs of a cluster, and after dead ones (`Admin.jobs`)."""

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.worker.operating.asking import Asking, Found, at_each, given
from disque_trio.worker.operating.states import Copy, JobStatus, is_delayed, status_of
from disque_trio.worker.outside import outside

MOST_AT_ONCE: Final = 200
"""Ids of one request."""


class WithWorkerError(DisqueError):
    """A worker may have the job: if it is queued again, it may run twice."""


@attrs.frozen(eq=False)
class Jobs:
    """Looks after the jobs of a cluster. Each method raises `NoNodeError` if no node answers."""

    client: Asking

    async def find(self, id: str) -> Found[Copy]:
        """The copies of a job, of all nodes that have one."""

        async def ask(node: Address) -> list[Copy]:
            job = given(*await self.client.ask(node, [commands.show(id)]))
            is_one = job is not None and job.queue is not None
            return [Copy(node=node, job=job)] if job is not None and is_one else []

        return await at_each(self.client, ask)

    async def status(self, id: str) -> JobStatus:
        """What has become of a job, of all nodes that answer."""
        return status_of(id, await self.find(id), outside().now())

    async def cancel(self, id: str) -> bool:
        """End a job, wherever it is. A worker that runs it learns of that when it renews the lease,
        and cancels its handler. False if no node has the job, or it has ended."""
        live = [copy for copy in (await self.find(id)).items if copy.job.state != "acked"]
        if live:
            given(*await self.client.ask(live[0].node, [commands.ackjob(id)]))
        return bool(live)

    async def retry(self, id: str, *, is_forced: bool = False) -> bool:
        """Queue a job now: one that is dead, that waits after a failure, or for its delay. False if
        no node has it, or it is queued already. Raises `WithWorkerError` unless `is_forced`."""
        copies = [copy for copy in (await self.find(id)).items if copy.job.state != "acked"]
        dead = [copy for copy in copies if copy.job.state == "dead"]
        if dead:
            return bool(await self.redrive(dead[:1]))
        if not copies or any(copy.job.state == "queued" for copy in copies):
            return False
        waiting = [copy for copy in copies if _waits(copy)]
        if not waiting and not is_forced:
            raise WithWorkerError(f"{id}: a worker may have it, so it may run twice")
        node = (waiting or copies)[0].node
        return bool(given(*await self.client.ask(node, [commands.enqueue(id)])))

    async def dead(
        self, queue: str | None = None, *, reason: str = "", limit: int = 1000
    ) -> Found[Copy]:
        """Dead jobs, those that were added last first: of this queue, and with these words in their
        reason, if any are given. Of each node `limit` at most are looked at."""

        async def ask(node: Address) -> list[Copy]:
            found: list[Copy] = []
            cursor = 0
            while len(found) < limit:
                asked = commands.jscan(cursor, queue=queue, states=("dead",))
                page = given(*await self.client.ask(node, [asked]))
                found += [Copy(node=node, job=job) for job in page.items]
                cursor = page.cursor
                if not cursor:
                    break
            return found

        found = await at_each(self.client, ask)
        once = {copy.job.id: copy for copy in found.items if reason.lower() in copy.reason.lower()}
        jobs = sorted(once.values(), key=lambda copy: -copy.job.ctime)
        return Found(jobs[:limit], found.unreached)

    async def redrive(self, copies: Iterable[Copy]) -> int:
        """Queue dead jobs again as if they were new; how many."""
        return await self._of_each(copies, commands.redrive)

    async def drop(self, copies: Iterable[Copy]) -> int:
        """End dead jobs for good; how many."""
        return await self._of_each(copies, commands.ackjob)

    async def _of_each(self, copies: Iterable[Copy], make: Callable[..., Command[int]]) -> int:
        """Each job is asked for at one node only, so that it counts once."""
        by_node: dict[Address, list[str]] = {}
        for id, node in {copy.job.id: copy.node for copy in copies}.items():
            by_node.setdefault(node, []).append(id)
        asked = 0
        for node, ids in by_node.items():
            for start in range(0, len(ids), MOST_AT_ONCE):
                some = ids[start : start + MOST_AT_ONCE]
                asked += given(*await self.client.ask(node, [make(*some)]))
        return asked


def _waits(copy: Copy) -> bool:
    """Has nobody got it: does it wait after a NACK, or for the end of its delay?"""
    return copy.job.backing_off is not None or is_delayed(copy.job, outside().now())
