"""The case: everything that the judge has before it, and the list of what it has found.

Checkers are functions over a `Case`; each says in its docstring what it notes.
"""

import heapq
from collections import deque

import attrs

from disque_trio.sim.checkers.intervals import Interval
from disque_trio.sim.checkers.obligations import SECOND, Obligations, life_of, obligations_of
from disque_trio.sim.checkers.records import NEVER, Add, Copy, Job, Query
from disque_trio.sim.checkers.world import World, world_of
from disque_trio.sim.scenarios.marks import MARKS
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.tracing.rows import Row

MOST_VIOLATIONS = 1_000
"""Of a run that goes wrong altogether the rest would say nothing new."""
SLACK: Micros = 60 * SECOND


@attrs.frozen
class Violation:
    """A property that does not hold. `detail` says what was seen and what was due."""

    property: str
    time: Micros
    job: str
    node: str
    detail: str


Bases = dict[str, int | None]
"""By job: how much of its life a copy that travels has behind it, in milliseconds."""
Flight = tuple[Micros, Bases | None]
"""A message about jobs that is under way: when it was sent, and what copies it carries."""


@attrs.frozen
class Missed:
    """An acknowledgement that `knower` knows and `holder` does not, though it has a copy."""

    job: str
    knower: str
    holder: str
    since: Micros


@attrs.define(eq=False)
class Case:
    """One run before the judge."""

    plan: Plan
    is_live: bool
    """The rows come from live nodes: a serve is as good as a delivery, and there may be holes."""
    obligations: Obligations
    world: World
    now: Micros = 0
    jobs: dict[str, Job] = attrs.Factory(dict)
    tables: dict[str, dict[str, Copy]] = attrs.Factory(dict)
    """By node and job: the copies."""
    adds: dict[tuple[str, int], Add] = attrs.Factory(dict)
    """ADDJOBs that wait for their outcome."""
    unclaimed: dict[tuple[str, str], list[Add]] = attrs.Factory(dict)
    """By queue and body: ADDJOBs whose job nobody has named yet."""
    adds_of_body: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By queue and body: how often producers have said it."""
    repeated: int = 0
    """Jobs that came out with what another had brought before (D13)."""
    first_with_body: dict[tuple[str, str], str] = attrs.Factory(dict)
    """By queue and body, where it was said more than once: the first job that came out with it."""
    flights: dict[int, Flight] = attrs.Factory(dict)
    operations: dict[tuple[str, int], Micros] = attrs.Factory(dict)
    """When a request for more time was made."""
    has_maxlen: bool = False
    """Does any ADDJOB say MAXLEN?"""
    creations: dict[str, int] = attrs.Factory(dict)
    """By node: how many jobs it has made."""
    waiting_by_age: dict[tuple[str, str], list[tuple[int, str]]] = attrs.Factory(dict)
    """By node and queue: its own jobs that wait there, a heap by age (S13)."""
    received_from: dict[tuple[str, str], None] = attrs.Factory(dict)
    """Who has heard of whom since the heal (L6)."""
    stopped: dict[str, dict[str, None]] = attrs.Factory(dict)
    """Nodes that were stopped in order, until they have started: what was queued there (S21)."""
    due_again: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """Node and job that was queued there: since when the node runs again (S21)."""
    answered: dict[tuple[str, str], None] = attrs.Factory(dict)
    """Who has had an answer from whom since the heal (L10)."""
    pending_orders: dict[str, Row] = attrs.Factory(dict)
    """The last order to leave, or not to, to a node that was down."""
    unanswered: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """Who has asked whom whether it is there, and had no answer since; see `silence`."""
    given_up: dict[tuple[str, str], Interval] = attrs.Factory(dict)
    """When a node last had no link to another because it had no answer on it."""
    missed: deque[Missed] = attrs.Factory(deque)
    """Acknowledgements that a node has to tell another, in order of time (L10)."""
    node_tables: dict[str, dict[str, list[str]]] = attrs.Factory(dict)
    """By node: whom it knows, and what it thinks of each (S18)."""
    forgotten: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """Node and name: since when the node shall have forgotten the name (S18)."""
    requests: dict[tuple[str, int], None] = attrs.Factory(dict)
    """Requests about jobs that are under way, by client and number (S19)."""
    asked_for: dict[str, tuple[tuple[str, ...], int]] = attrs.Factory(dict)
    """By client: of which queues it wants jobs, and how many at a time."""
    replies: dict[str, tuple[int, list[int]]] = attrs.Factory(dict)
    """By client: its last GETJOB, and the places of the queues that jobs came from."""
    queries: dict[str, dict[tuple[str, str, int], Query]] = attrs.Factory(dict)
    """By node, then client, command and number: queries under way, and scans that may go on under
    the number 0 (S22)."""
    queues: dict[str, None] = attrs.Factory(dict)
    """Those that anybody may ask for."""
    node_ids: dict[str, str] = attrs.Factory(dict)
    """By the beginning of a node's id, as HELLO tells it: which node it is."""
    unpaused: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and queue: when it was last not paused any more."""
    sends: int = 0
    """How many messages about jobs have left."""
    seen: dict[str, int] = attrs.Factory(dict)
    """How many rows of the kinds that some properties cannot do without."""
    violations: list[Violation] = attrs.Factory(list)
    reported: dict[tuple[str, str, str], None] = attrs.Factory(dict)
    """What has been said already."""
    marks: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(MARKS, 0))
    checks: dict[str, int] = attrs.Factory(dict)
    """By property: how often it could have failed."""
    retired: list[tuple[Micros, str]] = attrs.Factory(list)
    """Jobs that no node holds any more, by when they can be forgotten."""
    alive: int = 0
    """Jobs that are not finished."""
    jobs_created: int = 0
    collection_times: list[Micros] = attrs.Factory(list)
    """How long jobs stayed after their first ack."""

    # Finding.

    def violate(self, name: str, detail: str, job: str = "", node: str = "") -> None:
        """A property does not hold. Said once of each job and node."""
        key = (name, job, node)
        if key not in self.reported and len(self.violations) < MOST_VIOLATIONS:
            self.reported[key] = None
            self.violations.append(Violation(name, self.now, job, node, detail))

    def check(self, name: str, times: int = 1) -> None:
        """A property was put to the test."""
        self.checks[name] = self.checks.get(name, 0) + times

    def mark(self, name: str) -> None:
        """Something happened that a scenario may be about."""
        self.marks[name] += 1

    def note_row(self, kind: str) -> None:
        """The trace has such rows."""
        self.seen[kind] = self.seen.get(kind, 0) + 1

    # Jobs.

    def job(self, job_id: str) -> Job:
        """What is known of a job, which may be nothing yet."""
        job = self.jobs.get(job_id)
        if job is None:
            job = self.jobs[job_id] = Job(job_id, self.now)
        return job

    def table(self, node: str) -> dict[str, Copy]:
        """What a node holds."""
        table = self.tables.get(node)
        if table is None:
            table = self.tables[node] = {}
        return table

    def finish(self, job: Job, why: str) -> None:
        """Nobody need work on the job any more."""
        if job.ended is None:
            job.ended = self.now
            job.ended_by = why
            if job.created_at is not None:
                self.alive -= 1

    def retire(self, job: Job) -> None:
        """No node holds the job: keep less of it once messages under way have arrived, and nothing
        for ever."""
        if job.first_ack is not None:
            self.collection_times.append(self.now - job.first_ack)
            self.check("L3")
        life = int(life_of(job.id) * (1 + self.obligations.rho)) + SLACK
        heapq.heappush(self.retired, (self.now + SLACK, job.id))
        heapq.heappush(self.retired, (self.now + life, job.id))
        while self.retired[0][0] <= self.now:
            self._forget(*heapq.heappop(self.retired))

    def _forget(self, due: Micros, job_id: str) -> None:
        job = self.jobs.get(job_id)
        if job is None or job.copies or job.ended is None:
            return
        if due < job.first_seen + life_of(job_id):
            job.announcements.clear()
            job.incoming.clear()
            job.sent_to.clear()
            job.given.clear()
            job.listed.clear()
        elif not job.open_serves:
            del self.jobs[job_id]

    def retry_of(self, job: Job) -> Micros:
        """RETRY, as far as it is known."""
        return 0 if job.options is None else job.options.retry

    # Clues.

    def may_be_named_twice(self, job: Job, node: str) -> bool:
        """May a list of the job's holders have a name that the node had once, because who made the
        list did not know the new one yet? Then the node is told everything twice."""
        since = NEVER if job.created_at is None else job.created_at
        makers = {job.origin: None, **job.listed}
        return node in self.world.renamed and any(
            self.world.is_name_new(node, maker, since) for maker in makers
        )

    @property
    def has_messages(self) -> bool:
        """Does the trace tell what nodes say to each other?"""
        return self.sends > 0

    @property
    def has_node_rows(self) -> bool:
        """Does the trace tell what becomes of jobs inside nodes?"""
        return bool(self.seen.get("hold"))


def case_of(plan: Plan, *, is_live: bool) -> Case:
    """The case before the first row."""
    obligations = obligations_of(plan)
    case = Case(plan, is_live, obligations, world_of(plan, obligations))
    case.has_maxlen = any(add.maxlen is not None for add in plan.adds)
    case.asked_for = {each.name: (tuple(each.queues), each.count) for each in plan.consumers}
    queues = [queue for each in plan.consumers for queue in each.queues]
    queues += [add.queue for add in plan.adds]
    queues += [fault.queue for fault in plan.faults if fault.queue]
    case.queues = dict.fromkeys(queues)
    return case
