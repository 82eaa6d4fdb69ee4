"""The topics `queues` and `queue`."""

import time
from typing import Any, Final

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.records import Job, JobDetails
from disque_trio.observe.queue_counts import QueueCounts, count_of, queue_row
from disque_trio.observe.queue_list import Query, QueueLists
from disque_trio.observe.scanning import scan
from disque_trio.observe.values import (
    Json,
    body_fields,
    given_name,
    name_fields,
)
from disque_trio.worker.operating.asking import at_each, unwrap

ROWS: Final = 100
"""Rows of a page."""
SOME: Final = 10
"""The number of jobs at each end of a queue."""


async def queues(lists: QueueLists, args: Json) -> Json:
    """Return a page of the queues that match, in order."""
    counts, by = lists.counts, str(args.get("sort", "jobs"))
    by = "jobs" if by == "again" else by
    is_reversed = bool(args.get("desc", True)) is (by == "name")
    query = Query(by, str(args.get("match", "")), str(args.get("only", "")), is_reversed)
    query.check()
    order = await lists.get(query)
    pages = max(-(-order.total // ROWS), 1)
    asked = args.get("page", 0)
    page = min(max(asked if isinstance(asked, int) else 0, 0), pages - 1)
    shown = await order.names(page * ROWS, (page + 1) * ROWS)
    await counts.renew(shown)
    rows = [queue_row(counts, name) for name in shown if name in counts.parts]
    return {
        "total": order.total,
        "page": page,
        "pages": pages,
        "rows": rows,
        "uncounted": counts.uncounted,
    }


async def queue(counts: QueueCounts, args: Json) -> Json:
    """Return one queue, with the jobs at its ends."""
    name = given_name(args)
    with_bodies = args.get("bodies") is True
    await counts.renew([name])
    parts = counts.parts.get(name)
    ends = await _ends(counts, name)
    oldest = sorted(ends, key=lambda job: job.ctime)[:SOME]
    youngest = sorted(ends, key=lambda job: -job.ctime)[:SOME]
    delayed = await _delayed(counts, name) if parts and count_of(parts.values(), "delayed") else []
    points = counts.followed(name, counts.now_ms / 1000) if parts else ()
    return {
        "queue": queue_row(counts, name) if parts else None,
        "uncounted": counts.uncounted,
        "oldest": [job_row(job, with_bodies=with_bodies) for job in oldest],
        "youngest": [job_row(job, with_bodies=with_bodies) for job in youngest],
        "delayed": [{**job_row(job, with_bodies=with_bodies), **more} for job, more in delayed],
        "series": dict(
            zip(("at", "jobs", "in_s", "out_s"), map(list, zip(*points, strict=True)), strict=True)
        )
        if points
        else {"at": [], "jobs": [], "in_s": [], "out_s": []},
    }


async def _ends(counts: QueueCounts, name: str) -> list[JobDetails]:
    """Return the oldest and the newest queued jobs of each node."""
    client = counts.client

    async def ask(node: Address) -> list[JobDetails]:
        asked: list[Any] = [commands.qpeek(name, SOME), commands.qpeek(name, -SOME)]
        ids: dict[str, None] = {}
        for reply in await client.ask(node, asked):
            ids |= dict.fromkeys(job.id for job in unwrap(reply) if isinstance(job, Job))
        shown = await client.ask(node, [commands.show(id) for id in ids])
        return [each for each in shown if isinstance(each, JobDetails)]

    return list({job.id: job for job in (await at_each(client, ask)).items}.values())


async def _delayed(counts: QueueCounts, name: str) -> list[tuple[JobDetails, Json]]:
    """Return the first jobs to become due among those scanned, with their rows."""
    now_ms = counts.now_ms
    found = await scan(
        counts.client,
        queue=name,
        states=("active",),
        phases=("delayed", "backing-off"),
        fits=lambda job: is_later(job, now_ms),
    )
    rows = [(job, later_row(job, now_ms)) for job in found.items]
    return sorted(rows, key=lambda row: row[1]["due_ms"])[:SOME]


def due_ms(job: JobDetails) -> int:
    """Return the end of its delay, in Unix milliseconds."""
    return job.ctime // 1_000_000 + job.delay * 1000


def is_later(job: JobDetails, now_ms: float | None = None) -> bool:
    """Does the job wait for the end of a delay, its own or that of a NACK?"""
    return job.backing_off is not None or is_delayed(job, now_ms)


def is_delayed(job: JobDetails, now_ms: float | None = None) -> bool:
    """Does the job wait for the end of its own delay? `now_ms` is by the clocks of the nodes."""
    now_ms = time.time() * 1000 if now_ms is None else now_ms
    return job.state == "active" and bool(job.delay) and due_ms(job) > now_ms


def later_row(job: JobDetails, now_ms: float) -> Json:
    """Return what the job waits for, and until when."""
    wait = job.backing_off
    return {
        "state": "delayed" if wait is None else "backing-off",
        "due_ms": due_ms(job) if wait is None else round(now_ms + wait * 1000),
    }


def job_row(job: JobDetails, *, with_bodies: bool) -> Json:
    """Return the row of a job in a list."""
    return {
        "id": job.id,
        "state": job.state,
        **name_fields(job.queue or "", "queue"),
        "added_ms": job.ctime // 1_000_000,
        "deliveries": job.additional_deliveries,
        "nacks": job.nacks,
        "next_s": job.next_requeue_within,
        **(body_fields(job.body) if with_bodies else body_fields(None)),
    }
