"""The topics `job`, `dead` and `later`."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import JobDetails, QueueStats
from disque_trio.explain.holders import holders_of
from disque_trio.explain.zones import spread
from disque_trio.observe.client import query
from disque_trio.observe.job_search import (
    MOST,
    Filter,
    FoundJob,
    WorkerReports,
    groups,
    search,
    summary,
)
from disque_trio.observe.queue_counts import QueueCounts, count_of, waits_for
from disque_trio.observe.queues import is_later, later_row
from disque_trio.observe.scanning import scan
from disque_trio.observe.schedules import rows
from disque_trio.observe.survey import KnownNode, Survey
from disque_trio.observe.values import EDITED, Json, body_fields, exact, name_fields, word
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import Found, at_each, unwrap
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.plans import MistakeError
from disque_trio.worker.operating.states import Copy
from disque_trio.worker.options import NOTES

ROWS: Final = 100
_ENDED: Final = "no node that answers has it: it has ended, or was never added"


FlowOf = Callable[[str, Sequence[Copy]], Awaitable[str]]
"""Returns the id of a job's flow, from the job's id and its copies (`Flows.of_member`)."""


async def job(
    survey: Survey, counts: QueueCounts, args: Json, flow_of: FlowOf
) -> tuple[Json, dict[str, str]]:
    """Return one job: its copies, options, body and flow, and the failures that it survives."""
    id = word(args, "id")
    if not id.startswith("D-"):
        raise MistakeError(f"'{id}' is no job: ids begin with D-")
    await survey.look()
    found = await Jobs(survey.client).find(id)
    if not found.items:
        data, unreached = await _ended(survey, counts, id)
        return {**data, "flow": await flow_of(id, [])}, unreached
    nodes = survey.nodes
    names = {node.id: node.name for node in nodes.values()}
    queue = next((copy.job.queue for copy in found.items if copy.job.queue), "")
    await counts.renew([queue])
    now = time.time() + survey.clock_ms / 1000
    found_job = summary(found.items, await WorkerReports.ask(survey), counts, now)
    leasing = await _leasing(survey, found.items)
    best = max(found.items, key=lambda copy: copy.job.body is not None)
    return {
        "id": id,
        "found": True,
        "summary": found_job.row(),
        "copies": [_copy(copy, nodes, names, leasing) for copy in found.items],
        "holders": _holders(id, found.items, nodes),
        "zones": _zones(found.items, nodes),
        "facts": _facts(best),
        "flow": await flow_of(id, found.items),
        "result": _result(found.items),
        **body_fields(best.job.body, EDITED),
        "waits_for": _waits_for(counts, queue, found.items),
        "explain": list(await _explained(survey, best.job)),
    }, found.unreached


async def _ended(survey: Survey, counts: QueueCounts, id: str) -> tuple[Json, dict[str, str]]:
    """Return the record of an ended job that nodes keep."""
    found = await Jobs(survey.client).ended(id)
    if not found.items:
        return {"id": id, "found": False, "why": _ENDED}, found.unreached
    [copy] = found.items
    workers = WorkerReports({}, {})
    found_job = summary([copy], workers, counts, time.time() + survey.clock_ms / 1000)
    row = found_job.row()
    facts = {
        **name_fields(copy.job.queue or "", "queue"),
        "task": copy.task,
        "added_ms": row["added_ms"],
        "group": found_job.group,
        "key": found_job.key,
        "reason": copy.reason,
    }
    return {
        "id": id,
        "found": False,
        "summary": row,
        "facts": facts,
        "result": _result(found.items),
    }, found.unreached


def _result(copies: list[Copy]) -> Json | None:
    """Return the result that nodes keep; None if they keep none."""
    for copy in copies:
        match copy.job.more:
            case {"result": bytes(value), "result-at": int(at), "result-kept-within": int(left)}:
                return {**body_fields(value, EDITED), "at_ms": at, "left_s": left / 1000}
    return None


def _holders(id: str, copies: list[Copy], nodes: Mapping[str, KnownNode]) -> list[Json]:
    """Return the nodes that have the job or may have it, and why."""
    places = [node.place for node in nodes.values()]
    details = {nodes[where].id: copy.job for copy in copies if (where := str(copy.node)) in nodes}
    silent = {node.id for node in nodes.values() if node.why}
    return [attrs.asdict(each) for each in holders_of(id, details, places, silent)]


def _zones(copies: list[Copy], nodes: Mapping[str, KnownNode]) -> Json:
    """Return the zones of its copies."""
    held = [nodes[where].zone for copy in copies if (where := str(copy.node)) in nodes]
    well, text = spread(held, [node.zone for node in nodes.values() if not node.why])
    return {"well": well, "text": text}


async def _leasing(survey: Survey, copies: list[Copy]) -> str:
    """Return the node that has leased the job; empty if there is none or several nodes are
    possible. SHOW does not report it. A node without leases of the queue is excluded; no node has a
    lease while the job is queued somewhere or delayed."""
    now_ms = time.time() * 1000 + survey.clock_ms
    if any(copy.job.state != "active" or is_later(copy.job, now_ms) for copy in copies):
        return ""
    asked = commands.qstat(copies[0].job.queue or "")
    able = []
    for copy in copies:
        [stats] = await survey.client.ask(copy.node, [asked])
        if isinstance(stats, QueueStats) and stats.leased:
            able.append(str(copy.node))
    return able[0] if len(able) == 1 else ""


def _waits_for(counts: QueueCounts, queue: str, copies: list[Copy]) -> str:
    """Return the limits of its queue if the job waits for them, else an empty text."""
    if all(copy.job.state != "queued" for copy in copies):
        return ""
    return str(waits_for(counts.parts.get(queue, {})) or "")


def _copy(
    copy: Copy, nodes: Mapping[str, KnownNode], names: Mapping[str, str], leasing: str
) -> Json:
    job, where = copy.job, str(copy.node)
    left = job.next_requeue_within if job.state == "active" else None
    return {
        "node": where,
        "name": nodes[where].name if where in nodes else "",
        "state": job.state,
        "lease_s": left if where == leasing else None,
        "next_s": None if where == leasing else left,
        "deliveries": job.additional_deliveries,
        "nacks": job.nacks,
        "holders": [names.get(id, id[:8]) for id in job.nodes_delivered],
        "confirmed": [names.get(id, id[:8]) for id in job.nodes_confirmed],
    }


_ELSEWHERE: Final = ("result", "error", "failed-at")
"""Prefixes of fields that have cards of their own on the page of a job."""


def _facts(copy: Copy) -> Json:
    job = copy.job
    more = {
        name: value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
        for name, value in job.more.items()
        if isinstance(value, int | bytes) and not name.startswith(_ELSEWHERE)
    }
    facts = {
        **name_fields(job.queue or "", "queue"),
        "task": copy.task,
        "added_ms": job.ctime // 1_000_000,
        "retry_s": job.retry,
        "left_s": job.ttl,
        "delay_s": job.delay,
        "replicate": job.repl,
        "priority": None,
        **more,
    }
    return {name: exact(value) for name, value in facts.items()}


async def _explained(survey: Survey, job: JobDetails) -> Iterator[str]:
    """Return the failures that the job survives, by the rules of `explain`, whose modules are
    loaded at the first call."""
    configs = await _configs(survey)
    if job.state == "acked" or not configs:
        return iter(())
    clusters: Any = import_module("disque_trio.explain.clusters")
    rules: Any = import_module("disque_trio.explain.rules")
    facts = clusters.facts_of(
        [clusters.NodeReply(each) for each in configs], silent=len(survey.nodes) - len(configs)
    )
    answers = rules.answers(clusters.request_of(job), facts)
    return (f"{each.title}: {_LOST.get(each.loss.lost, '')}; {each.loss.why}" for each in answers)


_LOST: Final = {"no": "not lost", "may": "may be lost", "yes": "lost"}


async def _configs(survey: Survey) -> list[dict[str, str]]:
    """Return the directives of each node that answers; an empty dict for a node without CONFIG."""
    found = []
    for node in survey.nodes.values():
        asked: Command[Any] = query("CONFIG", "GET", "*")
        try:
            [reply] = await survey.client.ask(node.address, [asked])
        except DisqueError:
            continue
        words = reply if isinstance(reply, list) else []
        texts = [each.decode(errors="replace") for each in words if isinstance(each, bytes)]
        found.append(dict(zip(texts[::2], texts[1::2], strict=False)))
    return found


async def dead(survey: Survey, counts: QueueCounts, args: Json) -> tuple[Json, dict[str, str]]:
    """Return dead jobs by queue, task, class of error and place."""
    of_nodes = survey.figures("dead_jobs")
    found: Found[FoundJob] = Found([], survey.unreached)
    if any(of_nodes):
        wanted = Filter.of({**args, "state": "dead"})
        found = await search(survey, counts, wanted, MOST)
    listed = groups(found.items)
    names = list(dict.fromkeys(each.details.queue or "" for each in found.items))
    return {
        "total": max(len(found.items), *([] if args else of_nodes), 0),
        "seen": len(found.items),
        "is_cut": found.is_cut,
        "queues": [
            {**name_fields(name, "queue"), "dead": _dead_of(name, counts, found.items)}
            for name in names
        ],
        "groups": listed[:ROWS],
        "more": max(len(listed) - ROWS, 0),
    }, found.unreached


def _dead_of(name: str, counts: QueueCounts, jobs: Sequence[FoundJob]) -> int:
    """Return the number that the queue's nodes report, or the number found if it is higher."""
    seen = sum(each.details.queue == name for each in jobs)
    return max(seen, count_of(counts.parts.get(name, {}).values(), "dead") or 0)


async def _notes(survey: Survey) -> int:
    """Return the number of notes, which are jobs with a delay that are never due."""

    async def ask(node: Address) -> list[int]:
        stats = unwrap(*await survey.client.ask(node, [commands.qstat(NOTES)]))
        return [0 if stats is None else stats.delayed or 0]

    return sum((await at_each(survey.client, ask)).items)


def _row(job: JobDetails, now_ms: float) -> Json:
    return {"id": job.id, **name_fields(job.queue or "", "queue"), **later_row(job, now_ms)}


def _due_first(row: Json) -> tuple[int, str]:
    return row["due_ms"], row["id"]


async def later(survey: Survey) -> tuple[Json, dict[str, str]]:
    """Return jobs that wait for the end of a delay, their own or that of a NACK, and all
    schedules."""
    total = sum(survey.figures("delayed_jobs"))
    found: Found[JobDetails] = Found([], survey.unreached)
    now_ms = time.time() * 1000 + survey.clock_ms
    if total:
        found = await scan(
            survey.client,
            states=("active",),
            phases=("delayed", "backing-off"),
            fits=lambda job: job.queue != NOTES and is_later(job, now_ms),
            is_once=False,
        )
        total = max(total - await _notes(survey), 0)
    copies = sorted((_row(each, now_ms) for each in found.items), key=_due_first)
    waiting = {row["id"]: row for row in reversed(copies)}  # of several copies, the first due
    first = sorted(waiting.values(), key=_due_first)[:ROWS]
    # After a failure, several nodes may count one job.
    total = max(len(waiting), total) if found.is_cut else len(waiting)
    admin = Admin(survey.client)
    workers, kept = await admin.workers(), await admin.schedules.all()
    return {
        "delayed": first,
        "delayed_total": total,
        "schedules": rows(workers.items, kept.items, now_ms / 1000),
    }, found.unreached | workers.unreached | kept.unreached
