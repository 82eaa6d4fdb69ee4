"""The topic `jobs`: jobs of all nodes that match all filters."""

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import attrs

from disque_trio.client.records import JobDetails, LastError
from disque_trio.observe.queue_counts import QueueCounts, count_of
from disque_trio.observe.scanning import PATIENT_S, scan
from disque_trio.observe.survey import Survey
from disque_trio.observe.values import Json, body_fields, exact, given_name, name_fields, raw
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.plans import MistakeError
from disque_trio.worker.operating.states import Copy, added_at, is_delayed

ROWS: Final = 100
"""Rows of a page, by default."""
MOST: Final = 1000
"""The maximum number of jobs that a page shows, or that an operation applies to."""
STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("queued", "active", "dead"),
    "queued": ("queued",),
    "running": ("queued", "active"),
    "backing-off": ("active",),
    "delayed": ("active",),
    "waiting": ("queued", "active"),
    "dead": ("dead",),
    "ended": ("ended",),
}
"""By state: the states of nodes to search. Jobs that have ended are searched only on request. A job
may be queued at one node while the others assume that a worker holds it."""
_PHASES: Final[Mapping[str, tuple[str, ...]]] = {
    "running": ("leased",),
    "backing-off": ("backing-off",),
    "delayed": ("delayed",),
    "waiting": ("restored",),
}
"""The same for nodes that report why an active job is not queued."""
_REAL: Final = ("acked", "queued", "dead", "active", "wait-repl", "ended")
"""If copies are in different states, the first of these determines the state of the job."""
_TEXTS: Final = ("task", "worker", "group", "key", "error", "place", "text")
_ATTEMPTS: Final = re.compile(r"\Afailed [\d,]+(?: of [\d,]+)? times?: ")
"""The beginnings of reasons of dead jobs in `worker.policies` and `worker.deciding`."""
_NO_REASON: Final = "no reason given"


def last_error(copy: Copy) -> LastError | None:
    """The error of the last failed attempt; for a dead job without one, the error in its reason."""
    if copy.job.error is not None or copy.job.state != "dead":
        return copy.job.error
    reason = _ATTEMPTS.sub("", copy.reason)
    rest, _, place = reason.removesuffix(")").rpartition(" (") if ":" in reason else ("", "", "")
    kind, _, message = (rest or reason).partition(":")
    return LastError(kind or _NO_REASON, message.strip(), place if rest else "", "", 0.0)


@attrs.frozen(kw_only=True)
class Filter:
    """Filters of jobs. A job must match all that are set."""

    queue: str | None = None
    state: str = ""
    older_s: float = 0.0
    """The minimum age, in seconds since the job was added."""
    words: Mapping[str, str] = attrs.Factory(dict)
    """By field, the text that it must contain."""

    @classmethod
    def of(cls, args: Json) -> "Filter":
        """From the message of a browser. Raises `MistakeError`."""
        state, older = args.get("state") or "", args.get("older") or 0
        if state not in STATES:
            raise MistakeError(f"there is no state '{state}': {', '.join(filter(None, STATES))}")
        if not isinstance(older, int | float) or isinstance(older, bool) or not 0 <= older < 1e9:
            raise MistakeError(f"'older' is no number of seconds: {older!r}")
        words = {field: args[field] for field in _TEXTS if args.get(field)}
        if not all(isinstance(each, str) for each in words.values()):
            raise MistakeError(f"{', '.join(words)}: one of them is no text")
        has_queue = args.get("queue") or args.get("queue_b64")
        queue = given_name(args, "queue") if has_queue else None
        return cls(queue=queue, state=state, older_s=older, words=words)

    def is_old_enough(self, job: JobDetails, now: float) -> bool:
        """Without a minimum age, a job of a node whose clock is ahead matches, too."""
        return not self.older_s or now - added_at(job) >= self.older_s

    def fits(self, job: "FoundJob", now: float) -> bool:
        """Does the job match?"""
        if self.state not in ("", job.state) or not self.is_old_enough(job.details, now):
            return False
        return all(_has(job, field, text) for field, text in self.words.items())


def _has(job: "FoundJob", field: str, text: str) -> bool:
    wanted = text.lower()
    if field == "text":
        return raw(text) in _body(job.details)
    if field == "error":
        return job.error is not None and wanted in f"{job.error.kind}: {job.error.message}".lower()
    if field == "place":
        return job.error is not None and wanted == job.error.place.lower()
    value: str = getattr(job, field)
    return wanted in value.lower()


def _body(job: JobDetails) -> bytes:
    """Return the body; for a job that has ended, its beginning if nodes keep no more."""
    if job.ending is not None and job.body is None:
        return job.ending.body_start
    return job.body or b""


@attrs.define(kw_only=True)
class FoundJob:
    """A job, merged from its copies."""

    details: JobDetails
    task: str
    state: str
    """One of `STATES`."""
    error: LastError | None
    attempts: int | None = None
    """The maximum number of attempts of its task, as far as workers report it. The job's LIMIT
    takes precedence."""
    worker: str = ""
    """The worker that runs it, as far as workers report it; for a job that has ended, the client
    that acknowledged it."""
    since_s: float | None = None

    @property
    def key(self) -> str:
        """Its UNIQUE key; empty without one."""
        return self._text("key")

    @property
    def group(self) -> str:
        """Its GROUP; empty without one."""
        return self._text("group")

    def _text(self, name: str) -> str:
        text = self.details.more.get(name, b"")
        return text.decode(errors="backslashreplace") if isinstance(text, bytes) else ""

    @property
    def attempt(self) -> int:
        """The number of the current or next attempt; for a dead job, of the last one."""
        next_ = 1 + self.details.nacks + self.details.additional_deliveries
        if self.state != "dead":
            return next_
        return min(next_, self.limit or max(self.details.nacks, 1))

    @property
    def limit(self) -> int | None:
        """The number of attempts after which it is dead; None if no node and no worker reports
        it."""
        limit = self.details.more.get("limit")
        return limit if isinstance(limit, int) else self.attempts

    @property
    def due_s(self) -> float | None:
        """The time until it is enqueued, or requeued unless it ends before; None if it is queued,
        dead or ended."""
        if self.state in ("dead", "ended", "queued"):
            return None
        return self.details.backing_off or self.details.next_requeue_within

    def row(self) -> Json:
        """For the browser."""
        job = self.details
        return {
            "id": job.id,
            "state": self.state,
            **name_fields(job.queue or "", "queue"),
            "task": self.task,
            "group": self.group,
            "key": self.key,
            "priority": exact(job.more.get("priority")),
            "attempt": self.attempt,
            "limit": self.limit,
            "error": self.error and {**attrs.asdict(self.error), "at_ms": _at_ms(self.error)},
            "added_ms": job.ctime // 1_000_000,
            "due_s": self.due_s,
            "worker": self.worker,
            "since_s": self.since_s,
            "outcome": job.ending and job.ending.outcome,
            "ended_ms": job.ending and round(job.ending.at * 1000),
            **body_fields(_body(job)),
        }


def _at_ms(error: LastError) -> int | None:
    """The time of the error; None if no node reports it."""
    return round(error.at * 1000) if error.at else None


async def search(
    survey: Survey,
    counts: QueueCounts,
    wanted: Filter,
    most: int = ROWS,
    *,
    is_patient: bool = False,
) -> Found[FoundJob]:
    """The jobs that match, oldest first (for ended ones, latest first). A search that has timed
    out gets more time if it is repeated; with `is_patient` it repeats itself."""
    workers, now = await WorkerReports.ask(survey), time.time() + survey.clock_ms / 1000
    key = repr(wanted)
    found = await scan(
        survey.client,
        queue=wanted.queue,
        states=STATES[wanted.state],
        fits=lambda job: _may_fit(job, wanted, now),
        phases=_PHASES.get(wanted.state, ()),
        filters={
            "body": wanted.words.get("text"),
            "older": int(wanted.older_s) if wanted.older_s else None,
        },
        most=MOST if wanted.state in ("running", "waiting", "") else most + 1,
        is_once=False,
        seconds=PATIENT_S if is_patient or key in survey.long_searches else None,
    )
    if found.is_late:
        survey.note_long(key)
    copies: dict[str, list[Copy]] = {}
    node = survey.client.nodes.seeds[0]
    for job in found.items:
        copies.setdefault(job.id, []).append(Copy(node=node, job=job))
    jobs = [summary(each, workers, counts, now) for each in copies.values()]
    fitting = sorted((each for each in jobs if wanted.fits(each, now)), key=_order)
    return Found(fitting[:most], found.unreached, found.is_cut or len(fitting) > most)


def _order(job: FoundJob) -> tuple[float, float]:
    """Oldest first. Jobs that have ended are sorted latest first; if several ended in one
    millisecond, the one that was added last is first."""
    ending, ctime = job.details.ending, job.details.ctime
    return (0.0, ctime) if ending is None else (-ending.at, -ctime)


def _preference(copy: Copy) -> tuple[int, bool, bool]:
    ending = copy.job.ending
    is_attributed = ending is not None and bool(ending.by)
    return _REAL.index(copy.job.state), copy.job.backing_off is None, not is_attributed


def _may_fit(job: JobDetails, wanted: Filter, now: float) -> bool:
    """The filters that one copy can decide. Jobs of the library's own queues match only if the
    queue is named."""
    if wanted.queue is None and (job.queue or "").startswith(RESERVED):
        return False
    if job.queue is None or not wanted.is_old_enough(job, now):
        return False
    text = wanted.words.get("text")
    if text and raw(text) not in _body(job):
        return False
    if wanted.state == "backing-off":
        return job.backing_off is not None
    return wanted.state != "delayed" or is_delayed(job, now)


@attrs.frozen
class WorkerReports:
    """The reports of workers about jobs."""

    running: Mapping[str, tuple[str, float]]
    """By id: the worker that runs the job, and for how many seconds."""
    attempts: Mapping[str, int]
    """By task: the number of attempts after which a job is dead."""

    @classmethod
    async def ask(cls, survey: Survey) -> "WorkerReports":
        """The latest reports."""
        workers = (await Admin(survey.client).workers()).items
        running = {
            job.id: (each.report.name, job.age_s + each.age_s)
            for each in workers
            for job in each.report.jobs
        }
        return cls(running, {name: n for each in workers for name, n in each.attempts.items()})


def summary(
    copies: list[Copy], workers: WorkerReports, counts: QueueCounts, now: float
) -> FoundJob:
    """A job, merged from its copies. `now` is Unix time."""
    best = min(copies, key=_preference)
    task = next((each.task for each in copies if each.task), "")
    errors = [error for each in copies if (error := last_error(each))]
    latest = max(errors, key=lambda each: each.at, default=None)
    state = best.job.state
    worker, since = workers.running.get(best.job.id, ("", None))
    if state == "active":
        phases = {each.job.more.get("phase") for each in copies}
        if b"leased" in phases or worker:
            state = "running"
        else:
            state = _of_active(best.job, phases, counts, now)
    is_running = state == "running"
    if best.job.ending is not None:
        worker, is_running = best.job.ending.by, True
    return FoundJob(
        details=best.job,
        task=task,
        state=state,
        error=latest,
        attempts=workers.attempts.get(task),
        worker=worker if is_running else "",
        since_s=since if is_running else None,
    )


def _of_active(job: JobDetails, phases: Collection[object], counts: QueueCounts, now: float) -> str:
    if job.backing_off is not None:
        return "backing-off"
    if is_delayed(job, now):
        return "delayed"
    if b"restored" in phases:
        return "waiting"
    # SHOW, and nodes without phases, do not report whether a client has it, or whether it waits for
    # the end of its RETRY after a restart; but they report how many jobs are of each kind.
    parts = counts.parts.get(job.queue or "", {}).values()
    return "running" if count_of(parts, "leased") or not count_of(parts, "restored") else "waiting"


async def jobs(survey: Survey, counts: QueueCounts, args: Json) -> tuple[Json, dict[str, str]]:
    """A page of the jobs that match."""
    wanted, most = Filter.of(args), args.get("most") or ROWS
    if not isinstance(most, int) or not 0 < most <= MOST:
        raise MistakeError(f"'most' is no number from 1 to {MOST}: {most!r}")
    if wanted.queue is not None:
        await counts.renew([wanted.queue])
    found = await search(survey, counts, wanted, most)
    return {
        "jobs": [each.row() for each in found.items],
        "is_cut": found.is_cut,
    }, found.unreached


@attrs.frozen
class _Group:
    queue: str
    task: str
    kind: str
    place: str


def groups(dead: Iterable[FoundJob]) -> list[Json]:
    """Groups of dead jobs with the same queue, task, class and place of the error; largest
    first."""
    by: dict[_Group, list[FoundJob]] = {}
    for job in dead:
        error = job.error or LastError(_NO_REASON, "", "", "", 0.0)
        group = _Group(job.details.queue or "", job.task, error.kind, error.place)
        by.setdefault(group, []).append(job)
    return [_group(*each) for each in sorted(by.items(), key=lambda each: -len(each[1]))]


def _group(group: _Group, jobs: list[FoundJob]) -> Json:
    messages = Counter(each.error.message for each in jobs if each.error)
    seen = [_failed_ms(each) for each in jobs]
    return {
        **name_fields(group.queue, "queue"),
        "task": group.task,
        "error": group.kind,
        "place": group.place,
        "message": next(iter(dict(messages.most_common(1))), ""),
        "messages": len(messages),
        "count": len(jobs),
        "first_ms": min(seen),
        "last_ms": max(seen),
    }


def _failed_ms(job: FoundJob) -> int:
    """When it failed last; if no node reports that, when it was added."""
    at = _at_ms(job.error) if job.error else None
    return at or job.details.ctime // 1_000_000
