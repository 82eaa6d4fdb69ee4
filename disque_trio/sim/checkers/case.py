"""The state of the judge: the history of a run so far, and the violations found.

Checkers are functions over a `Case`.
"""

import heapq
from collections import deque

import attrs

from disque_trio.sim.checkers.intervals import Interval
from disque_trio.sim.checkers.limited import Limited
from disque_trio.sim.checkers.obligations import SECOND, Obligations, life_of, obligations_of
from disque_trio.sim.checkers.properties import NEEDS
from disque_trio.sim.checkers.records import (
    NEVER,
    Add,
    Copy,
    Job,
    KeptResult,
    Question,
    Request,
    SentResult,
    Turns,
)
from disque_trio.sim.checkers.requests import Purge, Query
from disque_trio.sim.checkers.run_records import Process
from disque_trio.sim.checkers.waits import Failures, Held, Snoozes
from disque_trio.sim.checkers.world import World, world_of
from disque_trio.sim.scenarios.marks import MARKS
from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.statemachine.base import KEEPS_ALL
from disque_trio.tracing.rows import Row

LAG: Micros = 2 * SECOND
"""The longest lag of the journal with `everysec`."""
MOST_VIOLATIONS = 1_000
"""Further violations are dropped, because they would add no information."""
SLACK: Micros = 60 * SECOND


@attrs.frozen
class Violation:
    """A property that does not hold. `detail` has the observed and the expected values."""

    property: str
    time: Micros
    job: str
    node: str
    detail: str


Bases = dict[str, int | None]
"""By job: the age of the copy in a message, in milliseconds."""
Flight = tuple[Micros, Bases | None]
"""A message in transit about jobs: when it was sent, and the copies that it contains."""


@attrs.frozen
class Missed:
    """An acknowledgement that node `knower` has and node `holder`, which has a copy, lacks."""

    job: str
    knower: str
    holder: str
    since: Micros
    allowed: Micros


@attrs.define(eq=False)
class Case:
    """The state of the judge for one run."""

    plan: Plan
    is_live: bool
    """The rows are from live nodes: a serve counts as a delivery, and rows may be missing."""
    obligations: Obligations
    world: World
    now: Micros = 0
    jobs: dict[str, Job] = attrs.Factory(dict)
    tables: dict[str, dict[str, Copy]] = attrs.Factory(dict)
    """Copies, by node and job."""
    adds: dict[tuple[str, int], Add] = attrs.Factory(dict)
    """ADDJOBs without an outcome yet."""
    unclaimed: dict[tuple[str, str], list[Add]] = attrs.Factory(dict)
    """By queue and body: ADDJOBs that have not been matched to a job."""
    adds_of_body: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By queue and body: how often producers have added the job."""
    repeated: int = 0
    """The number of jobs delivered with the queue and body of another one (D13)."""
    first_with_body: dict[tuple[str, str], str] = attrs.Factory(dict)
    """By queue and body, if added more than once: the job that was delivered first."""
    flights: dict[int, Flight] = attrs.Factory(dict)
    operations: dict[tuple[str, int, str], Micros] = attrs.Factory(dict)
    """When a WORKING was invoked, by client, number and job."""
    keyed: dict[tuple[str, int], dict[str, None]] = attrs.Factory(dict)
    """By queue and key: the jobs with the key that may still exist (S23)."""
    has_maxlen: bool = False
    """Does any ADDJOB have MAXLEN?"""
    creations: dict[str, int] = attrs.Factory(dict)
    """By node: the number of jobs that it has created."""
    waiting_by_place: dict[tuple[str, str], dict[int, list[tuple[int, int, str]]]] = attrs.Factory(
        dict
    )
    """By node and queue, then group: the node's own jobs in the queue, as a heap by priority and
    age (S13)."""
    has_groups: bool = attrs.field()
    """Has any job of an open-loop producer a GROUP?"""
    turns: dict[tuple[str, str, int], Turns] = attrs.Factory(dict)
    """By node, queue and priority: the turns of the groups (S37)."""
    received_from: dict[tuple[str, str], None] = attrs.Factory(dict)
    """Pairs of nodes of which the first has received gossip of the second since the heal (L6)."""
    stopped: dict[str, dict[str, None]] = attrs.Factory(dict)
    """By node, until it starts: the jobs queued there when an orderly stop ended it, or a kill if
    journals record queues (S21)."""
    unwritten: dict[str, dict[str, None]] = attrs.Factory(dict)
    """By killed node: jobs enqueued or removed so late that the journal may not record it (S21)."""
    due_again: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and job that was queued there: when the node restarted (S21)."""
    answered: dict[tuple[str, str], None] = attrs.Factory(dict)
    """Pairs of nodes of which the first has received a PONG of the second since the heal (L10)."""
    pending_orders: dict[str, list[Row]] = attrs.Factory(dict)
    """By node that is down or stopped: the orders to leave, or to stop leaving, that it has not
    received."""
    resumed_orders: dict[str, list[Row]] = attrs.Factory(dict)
    """By node: the orders that were pending when its process resumed."""
    doubtful_orders: dict[str, None] = attrs.Factory(dict)
    """Nodes that may have missed an operator's last order: they started when it was sent, or ended
    while they resumed after it."""
    unanswered: dict[tuple[str, str], Question] = attrs.Factory(dict)
    """By node and peer: the unanswered PING (L10)."""
    ponged: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and peer: when the last PONG of the peer arrived."""
    given_up: dict[tuple[str, str], Interval] = attrs.Factory(dict)
    """By node and peer: the last interval without a link because a PING was not answered."""
    missed: deque[Missed] = attrs.Factory(deque)
    """Acknowledgements that a node must announce to another one, ordered by time (L10)."""
    node_tables: dict[str, dict[str, list[str]]] = attrs.Factory(dict)
    """By node: the nodes in its table, with their flags (S18)."""
    forgotten: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and name: when CLUSTER FORGET removed the name (S18)."""
    cut_short: dict[tuple[str, str], tuple[Micros, Micros]] = attrs.Factory(dict)
    """By client and node: when the client last gave up ADDJOBs, and when it had sent the first of
    them (L5)."""
    requests: dict[tuple[str, int], Request] = attrs.Factory(dict)
    """Pending requests about jobs, by client and number (S19)."""
    asked_for: dict[str, tuple[tuple[str, ...], int]] = attrs.Factory(dict)
    """By client: the queues of its GETJOB, and its COUNT."""
    replies: dict[str, tuple[int, list[int]]] = attrs.Factory(dict)
    """By client: its last GETJOB, and by delivered job the index of its queue."""
    handed: dict[str, tuple[Micros, int]] = attrs.Factory(dict)
    """By client: when it was last served, and the number of jobs since its last reply (S19)."""
    behind: dict[tuple[str, int], None] = attrs.Factory(dict)
    """By client and number: ADDJOBs sent while the client waited for another reply, maybe on the
    same connection, where replies keep the order (L13)."""
    confirmed: dict[str, dict[str, Micros]] = attrs.Factory(dict)
    """By job whose ADDJOB waits for copies, then holder: when the node of the ADDJOB received the
    confirmation (L13)."""
    reported_states: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and job: when the node last reported that the job is dead, or redriven (S15)."""
    loaded_at: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last had loaded its journal, which it then syncs (S15)."""
    flipped: dict[str, None] = attrs.Factory(dict)
    """Nodes with a journal of which a bit has changed, so that records may be missing."""
    unread: dict[str, None] = attrs.Factory(dict)
    """Nodes that have started and not yet written the row about their journal (S15)."""
    queries: dict[str, dict[tuple[str, str, int], Query]] = attrs.Factory(dict)
    """By node, then client, command and number: pending queries; unfinished scans have the number 0
    (S22)."""
    work: dict[tuple[str, str, str], tuple[int, int]] = attrs.Factory(dict)
    """By node, peer and kind of message: the second in which the last one was sent, and the number
    sent in it (S33)."""
    activity: dict[int, int] = attrs.Factory(dict)
    """By second: the number of jobs enqueued and served in this second and the one before (S33)."""
    traffic: dict[str, dict[tuple[str, str, str], int]] = attrs.Factory(dict)
    """By job: under (node, "", "") the number of the node's events and received messages about it,
    and under (node, peer, kind) the number of sent messages (S35)."""
    asked: dict[tuple[str, int], tuple[Micros, str]] = attrs.Factory(dict)
    """By client and number: when a request with an option was sent, and the option (S19)."""
    purged_from: dict[str, Micros] = attrs.Factory(dict)
    """By node: when it last forwarded a PURGE (S19)."""
    nacks: dict[str, tuple[int, Micros]] = attrs.Factory(dict)
    """By job with BACKOFF: the number of NACKs, and the time of the last one (S32)."""
    snoozes: dict[str, Snoozes] = attrs.Factory(dict)
    """By job that was snoozed: its snoozes (S14)."""
    erring: dict[tuple[str, int, str], Micros] = attrs.Factory(dict)
    """By client, number and job: when a NACK with ERROR was sent (S22)."""
    error_texts: dict[str, list[str]] = attrs.Factory(dict)
    """By job: the CRC-32 of each error text that was sent (S22)."""
    failures: dict[tuple[str, str], Failures] = attrs.Factory(dict)
    """By job and node: the failures (S22)."""
    results: dict[str, dict[str, None]] = attrs.Factory(dict)
    """By job: the CRC-32 of each result in an ACKJOB (S36)."""
    sent_results: dict[tuple[str, int, str], SentResult] = attrs.Factory(dict)
    """By client, number and job: a pending ACKJOB RESULT (S36)."""
    kept_results: dict[str, dict[str, KeptResult]] = attrs.Factory(dict)
    """By node, then job: the results that must be kept there (S36)."""
    deleted_results: set[tuple[str, str]] = attrs.Factory(set)
    """By node and job: a client has deleted the job at the node (S36)."""
    limits: dict[str, Limited] = attrs.Factory(dict)
    """By queue: its limits and their use (S38, L15)."""
    unconfirmed_results: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and job: the earliest end of an unconfirmed RESULT (S36)."""
    result_ends: dict[tuple[str, str], Micros | None] = attrs.Factory(dict)
    """By node and job: the latest end of a result; None if unknown (S36)."""
    looking: dict[tuple[str, int, str], Micros] = attrs.Factory(dict)
    """By client, number and job: when WAITJOB WITHRESULT was sent (S36)."""
    held: dict[tuple[str, str], Held] = attrs.Factory(dict)
    """By job and node: the delivery whose worker has the job (S23)."""
    begins: dict[tuple[str, int], int] = attrs.Factory(dict)
    """By client and number: how many jobs a pending BEGIN names."""
    tokens: dict[str, tuple[Micros, str, str]] = attrs.Factory(dict)
    """By token: the time, node and client of its serve (S23)."""
    shown: dict[tuple[str, int, str], str] = attrs.Factory(dict)
    """The token of a pending WORKING, NACK or RELEASE, by client, number and job."""
    strange: dict[tuple[str, int, str], Micros] = attrs.Factory(dict)
    """By client, number and job: if the node of the request did not issue its token, when the node
    delivered the job to another client, which still has the lease (S23)."""
    given_back: dict[str, Micros | None] = attrs.Factory(dict)
    """By token: when its node confirmed a NACK or RELEASE with it; None if it did not (S23)."""
    tied: dict[tuple[str, str], dict[str, None]] = attrs.Factory(dict)
    """By client and node: the jobs that were delivered with TIED (S23)."""
    redrives: dict[tuple[str, str], dict[tuple[str, int], Micros]] = attrs.Factory(dict)
    """By node and queue or job, then client and number: when REDRIVE was answered."""
    enqueues: dict[tuple[str, str], list[Micros]] = attrs.Factory(dict)
    """When ENQUEUE QUEUE was sent to a node, by node and queue."""
    demands: dict[str, dict[str, dict[str, None]]] = attrs.Factory(dict)
    """By node whose demand table may be full, then queue, latest last: the nodes of which it knows
    that clients wait there (L9)."""
    dropped_demands: dict[tuple[str, str, str], None] = attrs.Factory(dict)
    """Node, queue and other node: it may have forgotten that clients wait at the other one, because
    its table was full (L9)."""
    rounds: dict[tuple[str, tuple[str, int]], dict[str, tuple[str, Micros]]] = attrs.Factory(dict)
    """By node and key, then by search: its last round, and when this round began (S27)."""
    claims: dict[tuple[str, str], dict[str, tuple[str, Micros]]] = attrs.Factory(dict)
    """By node and other node, then by search: the job whose key was asked about at the other node,
    without an answer yet, and since when (S24, S28)."""
    processes: dict[str, Process] = attrs.Factory(dict)
    """By client: the workers that run the engine of the worker library (W1 to W12)."""
    orphans: dict[str, Micros] = attrs.Factory(dict)
    """By job of a killed worker: the latest time at which it is requeued (W6)."""
    unbegun: deque[tuple[Micros, str, Job]] = attrs.Factory(deque)
    """Jobs that were queued, with the time and the node (W7)."""
    purges: dict[tuple[str, bool], dict[tuple[str, int], Purge]] = attrs.Factory(dict)
    """By queue, then client and number: pending purges (S23)."""
    queues: dict[str, None] = attrs.Factory(dict)
    """The queues of the plan; empty if a scenario test or an app uses any."""
    node_ids: dict[str, str] = attrs.Factory(dict)
    """The names of the nodes, by the first characters of their ids in HELLO."""
    verdicts: dict[tuple[str, str], Micros] = attrs.Factory(dict)
    """By node and peer: when another node last reported to this node that the peer has failed."""
    sends: int = 0
    """The number of sent messages about jobs."""
    seen: dict[str, int] = attrs.Factory(dict)
    """By kind: the number of rows, for the kinds that some properties need."""
    violations: list[Violation] = attrs.Factory(list)
    reported: dict[tuple[str, str, str], None] = attrs.Factory(dict)
    """The violations that have been reported, by property, job and node."""
    marks: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(MARKS, 0))
    checks: dict[str, int] = attrs.Factory(dict)
    """By property: the number of its checks."""
    retired: list[tuple[Micros, str]] = attrs.Factory(list)
    """A heap of times at which jobs that no node holds are forgotten."""
    alive: int = 0
    """The number of jobs that have not ended."""
    jobs_created: int = 0
    collection_times: list[Micros] = attrs.Factory(list)
    """How long acknowledged jobs were held after their first ack."""

    @has_groups.default
    def _has_groups(self) -> bool:
        return any(add.group is not None for add in self.plan.adds)

    # Findings.

    def violate(self, name: str, detail: str, job: str = "", node: str = "") -> None:
        """Report a violation, once for each property, job and node."""
        key = (name, job, node)
        if NEEDS.get(name, 0) & ~self.obligations.capabilities:
            return
        if key not in self.reported and len(self.violations) < MOST_VIOLATIONS:
            self.reported[key] = None
            self.violations.append(Violation(name, self.now, job, node, detail))

    def check(self, name: str, times: int = 1) -> None:
        """Count a check of a property."""
        self.checks[name] = self.checks.get(name, 0) + times

    def mark(self, name: str) -> None:
        """Count a mark that scenarios may require."""
        self.marks[name] += 1

    def note_row(self, kind: str) -> None:
        """Count a row of this kind."""
        self.seen[kind] = self.seen.get(kind, 0) + 1

    # Journals.

    def may_be_forgotten(self, node: str, since: Micros | None) -> bool:
        """May the journal have lost an unconfirmed change of this time?"""
        crash = self.world.crashes.get(node)
        if since is None or crash is None or self.is_live:
            return True
        # A stop writes what has not been written, if the disk takes it.
        is_written = crash.cause == "stop" and not self.world.was_disk_faulty(node, crash.time)
        return not is_written and self.may_be_unwritten(crash, since)

    def may_be_unwritten(self, crash: Row, since: Micros) -> bool:
        """May an unconfirmed change of this time be missing on the disk after a crash of this
        kind?"""
        world, ours = self.world, self.obligations
        if world.was_mute(crash.node, since, crash.time) or crash.cause not in {"power", "kill"}:
            return True
        lags = {"always": ours.send_delay, "everysec": LAG}
        lag = ours.write if crash.cause == "kill" else lags.get(ours.fsync)
        is_stopped = world.is_stopped(crash.node, since, crash.time)
        return lag is None or is_stopped or crash.time - since <= lag

    # Nodes.

    def may_leave(self, node: str) -> bool:
        """Is the node leaving, or may it be, since it may have missed the order to stay?"""
        return node in self.world.leaving or node in self.doubtful_orders

    def keeps_dead_jobs(self, node: str) -> bool:
        """Does the version that the node runs keep dead jobs? The original does not."""
        lives = () if self.is_live else self.plan.capabilities_of(int(node[1:]))
        life = len(self.world.outages.get(node, ()))
        return not lives or not KEEPS_ALL & ~lives[min(life, len(lives) - 1)]

    # Jobs.

    def job(self, job_id: str) -> Job:
        """The record of a job, created if there is none."""
        job = self.jobs.get(job_id)
        if job is None:
            job = self.jobs[job_id] = Job(job_id, self.now)
        return job

    def table(self, node: str) -> dict[str, Copy]:
        """The copies of a node."""
        table = self.tables.get(node)
        if table is None:
            table = self.tables[node] = {}
        return table

    def finish(self, job: Job, why: str) -> None:
        """Record that the job has ended: it need not be delivered any more."""
        if job.ended is None:
            job.ended = self.now
            job.ended_by = why
            if job.created_at is not None:
                self.alive -= 1

    def retire(self, job: Job) -> None:
        """Schedule the end of the record of a job that no node holds: details are dropped when
        messages in transit have arrived, and the record when the job's id has expired."""
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
        self.traffic.pop(job_id, None)
        if due < job.first_seen + life_of(job_id):
            job.announcements.clear()
            job.incoming.clear()
            job.sent_to.clear()
            job.transfers.clear()
            job.listed.clear()
            job.unlisted.clear()
            job.perhaps_listed.clear()
        elif not job.open_serves:
            del self.jobs[job_id]

    def retry_of(self, job: Job) -> Micros:
        """RETRY; 0 if unknown."""
        return 0 if job.options is None else job.options.retry

    def has_expired(self, job: Job) -> bool:
        """May the job have expired: is its TTL over, or the time for which a dead job is kept?"""
        if job.lives_until is not None:
            return self.now >= job.lives_until
        return self.is_ttl_over(job)

    def is_ttl_over(self, job: Job) -> bool:
        """Is the job's TTL, counted from its creation, over?"""
        since = job.created_at if job.created_at is not None else job.first_seen
        options = job.options
        return options is not None and self.now >= since + self.obligations.shortest(options.ttl)

    # Contents of the trace.

    def may_be_named_twice(self, job: Job, node: str) -> bool:
        """May a list of the job's holders contain a former name of the node, because the author of
        the list had not learned the new one yet? Then the node receives every message twice."""
        since = NEVER if job.created_at is None else job.created_at
        makers = {job.origin: None, **job.listed}
        return node in self.world.renamed and any(
            self.world.is_name_new(node, maker, since) for maker in makers
        )

    @property
    def has_messages(self) -> bool:
        """Does the trace have messages between nodes?"""
        return self.sends > 0

    @property
    def has_node_rows(self) -> bool:
        """Does the trace have the nodes' own rows about jobs?"""
        return bool(self.seen.get("hold"))


def case_of(plan: Plan, *, is_live: bool, no_processor: Micros) -> Case:
    """Return the case before the first row."""
    obligations = obligations_of(plan, no_processor)
    case = Case(plan, is_live, obligations, world_of(plan, obligations))
    case.has_maxlen = any(add.maxlen is not None for add in plan.adds)
    case.asked_for = {
        each.name: (tuple(each.queues), each.count)
        for each in plan.consumers
        if each.kind != "engine"  # which requests another number of jobs each time
    }
    case.processes = {each.name: Process(each) for each in plan.consumers if each.kind == "engine"}
    queues = [queue for each in plan.consumers for queue in each.queues]
    queues += [add.queue for add in plan.adds]
    queues += [fault.queue for fault in plan.faults if fault.queue]
    if obligations.has_original_file or KEEPS_ALL & ~obligations.capabilities:
        # Workers of such nodes add dead jobs to these queues.
        engines = [each for each in plan.consumers if each.kind == "engine"]
        queues += [f"dead.{queue}" for each in engines for queue in each.queues]
    case.queues = dict.fromkeys(queues)
    return case
