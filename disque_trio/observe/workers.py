"""The topics `workers` and `tasks`: workers by their reports, connections by the nodes, and the run
times of tasks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
import attrs

from disque_trio.client.address import Address
from disque_trio.client.naming import as_one_word
from disque_trio.observe.client import query
from disque_trio.observe.survey import Survey
from disque_trio.observe.values import Json, name_fields
from disque_trio.worker.operating.admin import Admin, KnownWorker
from disque_trio.worker.operating.asking import at_each, unwrap
from disque_trio.worker.operating.notes import NOTE_TTL_S, SILENT_S
from disque_trio.worker.reporting import Report
from disque_trio.worker.times import WINDOW_S, TaskTimes, merged

GONE_S: Final = 600.0
"""How long a worker that has disappeared is shown."""
MOST_CLIENTS: Final = 500
"""The maximum number of connections that are shown."""
SLOWEST: Final = 50
"""The maximum number of running jobs that are shown; those that run longest."""
_SEEN_S: Final = 2.5
"""A report that has not been seen for this long no longer exists."""
_MARGIN_S: Final = 5.0
"""This long before the end of its TTL, a report may already be missing."""
_CROWD: Final = 2000
"""A node with more connections is not queried for them: the reply would block its event loop."""
_ENDING: Final = ("draining", "aborting", "stopped")
"""States of a worker that is about to end."""
_TAKING: Final = ("starting", "running")
"""States of a worker that takes jobs."""


@attrs.define
class Followed:
    """A worker, as of its last report."""

    worker: KnownWorker
    at: float
    """When the report was seen, by anyio's clock."""
    taken_s: float | None = None

    def note(self, worker: KnownWorker, now: float) -> None:
        """Record a newer report."""
        before, seconds = self.worker.report, worker.report.up_s - self.worker.report.up_s
        if seconds > 0:
            self.taken_s = round(max(worker.report.ended - before.ended, 0) / seconds, 2)
        self.worker, self.at = worker, now


@attrs.define(eq=False)
class Workers:
    """The workers that were seen."""

    survey: Survey
    _workers: dict[str, Followed] = attrs.Factory(dict)

    async def look(self) -> tuple[Json, dict[str, str]]:
        """Return all workers, and the connections of the nodes."""
        await self.survey.look()
        found = await Admin(self.survey.client).workers()
        clients = await at_each(self.survey.client, self._clients)
        now = anyio.current_time()
        self._note(found.items, now, found.unreached)
        is_own = _owned([each.report for each in found.items], self.survey.client.own_name)
        others = [each for each in clients.items if not is_own(each["name"])]
        return {
            "workers": [_row(each, now, found.unreached) for each in self._workers.values()],
            "clients": others[:MOST_CLIENTS],
            "clients_own": len(clients.items) - len(others),
            "clients_total": sum(
                each.view.clients or 0
                for each in self.survey.nodes.values()
                if each.view and not each.why
            ),
        }, found.unreached | clients.unreached

    def _note(self, workers: list[KnownWorker], now: float, unreached: Mapping[str, str]) -> None:
        seen = {each.control: each for each in workers}
        for control, worker in seen.items():
            followed = self._workers.setdefault(control, Followed(worker, now))
            followed.note(worker, now)
        for control, followed in list(self._workers.items()):
            is_past = control not in seen and self._has_ended(followed, now, unreached)
            if is_past or now - followed.at > GONE_S:
                del self._workers[control]

    def _has_ended(self, followed: Followed, now: float, unreached: Mapping[str, str]) -> bool:
        """Has the worker stopped normally? Then it has removed its report."""
        worker = followed.worker
        beat_s, node = worker.age_s + now - followed.at, self.survey.nodes.get(str(worker.node))
        if worker.report.state in _ENDING:
            return True
        if node is None or node.where in unreached or beat_s > NOTE_TTL_S - _MARGIN_S:
            return False
        uptime = node.info.get("uptime_in_seconds", "")
        return uptime.isdecimal() and int(uptime) > beat_s  # else a restart has lost the report

    async def _clients(self, node: Address) -> list[Json]:
        known = self.survey.nodes.get(str(node))
        if known is not None and known.view and (known.view.clients or 0) > _CROWD:
            return []
        reply = unwrap(*await self.survey.client.ask(node, [query("CLIENT", "LIST")]))
        text = reply.decode(errors="replace") if isinstance(reply, bytes) else ""
        return [_client(str(node), line) for line in text.splitlines()]


def _owned(reports: Sequence[Report], console: str) -> Callable[[str], bool]:
    """Return a predicate on names of connections: is it of a worker, of another client in a
    worker's process, or of the console?"""
    names = {as_one_word(each.name).decode() for each in reports} | {console}
    processes = {f"{each.host}:{each.pid}" for each in reports}
    return lambda name: name in names or name.rpartition("@")[2] in processes


def _client(node: str, line: str) -> Json:
    fields = dict(word.partition("=")[::2] for word in line.split(" "))
    idle = fields.get("idle", "")
    return {
        "node": node,
        "id": fields.get("id", ""),
        "name": fields.get("name", ""),
        "library": fields.get("lib-name", ""),
        "address": fields.get("addr", ""),
        "idle_s": int(idle) if idle.isdecimal() else None,
        "command": fields.get("cmd", ""),
        "waits_for": None,
    }


def _row(followed: Followed, now: float, unreached: Mapping[str, str]) -> Json:
    report, beat_s = followed.worker.report, followed.worker.age_s + now - followed.at
    return {
        "control": followed.worker.control,
        "name": report.name,
        "host": report.host,
        "pid": report.pid,
        "version": report.version,
        "node": report.node,
        "queues": [name_fields(name)["name"] for name in report.queues],
        "slots": report.slots,
        "busy": report.busy,
        "running": [
            {"task": each.task, "id": each.id, "since_s": round(each.age_s + beat_s, 1)}
            for each in report.jobs
        ],
        "beat_s": round(beat_s, 1),
        "state": _state(followed, beat_s, now, unreached),
        "does": report.state,
        "healthy": report.healthy,
        "why": report.why,
        "taken_s": followed.taken_s,
        "rss": report.rss_bytes,
    }


def served(workers: Sequence[KnownWorker]) -> frozenset[str]:
    """Return the queues of the workers that take jobs."""
    taking = [each.report for each in workers if each.state in _TAKING]
    return frozenset(name for report in taking for name in report.queues)


def _state(followed: Followed, beat_s: float, now: float, unreached: Mapping[str, str]) -> str:
    """Return `live`, `late`, `unknown` or `gone`, by the last heartbeat."""
    if beat_s <= SILENT_S:
        return "live"
    if now - followed.at <= _SEEN_S:
        return "late"
    # The node that has its reports does not answer, and may have newer ones.
    return "unknown" if str(followed.worker.node) in unreached else "gone"


async def tasks(survey: Survey) -> tuple[Json, dict[str, str]]:
    """Return the run times of all tasks, and the jobs that run longest."""
    await survey.look()
    found = await Admin(survey.client).workers()
    workers = [each for each in found.items if each.state != "silent"]
    running = [(job, each) for each in workers for job in each.report.jobs]
    slowest = sorted(running, key=lambda each: -each[0].age_s - each[1].age_s)[:SLOWEST]
    return {
        "window_s": 2 * WINDOW_S,
        "tasks": task_rows(workers),
        "running": [
            {
                "id": job.id,
                "task": job.task,
                **name_fields(job.queue, "queue"),
                "worker": worker.report.name,
                "since_s": job.age_s + worker.age_s,
                "lease_s": job.lease_s,
            }
            for job, worker in slowest
        ],
    }, found.unreached


def task_rows(workers: Sequence[KnownWorker]) -> list[Json]:
    """Return a row for each task that ran lately or runs now, over all workers; the slowest
    first."""
    reports = [each.report for each in workers]
    times = merged(each for report in reports for each in report.tasks)
    runs = Counter(job.task for report in reports for job in report.jobs if job.task)
    longest: dict[str, float] = {}
    for worker in workers:
        for job in worker.report.jobs:
            if job.task:
                longest[job.task] = max(job.age_s + worker.age_s, longest.get(job.task, 0.0))
    for task in runs:
        times.setdefault(task, TaskTimes(task=task))
    rows = [
        {
            "task": each.task,
            "runs": each.runs,
            "failures": each.failures,
            "mean_s": each.seconds / each.runs if each.runs else None,
            **{name: each.quantile(share) for name, share in QUANTILES.items()},
            "running": runs[each.task],
            "longest_s": longest.get(each.task),
            "workers": sum(each.task in _tasks_of(report) for report in reports),
        }
        for each in times.values()
    ]
    return sorted(rows, key=lambda row: (-_slowness(row), row["task"]))


def _slowness(row: Json) -> float:
    """Return the time to sort by. A job that still runs takes at least as long as it has run."""
    return max(row["p95_s"] or 0.0, row["longest_s"] or 0.0)


def _tasks_of(report: Report) -> set[str]:
    """Return the tasks that the worker ran lately or runs now."""
    return {one.task for one in report.tasks} | {job.task for job in report.jobs}


QUANTILES: Final = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
"""By field: the quantile."""
