"""Takes jobs for a stream, keeps them, and acknowledges them.

Two threads: Spark's, and one that sends WORKING. They share the leases under a lock, which is never
held during a request; each thread has its own connections.
"""

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.client.leases import Jobs, Leases
from disque_trio.client.records import Job as Delivery
from disque_trio.client.records import JobDetails
from disque_trio.client.refusals import RefusedError, UnavailableError
from disque_trio.pipeline.connector.nodes import NodeGoneError, Nodes, number
from disque_trio.pipeline.connector.offsets import LostJobsError, flat
from disque_trio.pipeline.connector.options import Link, Stream
from disque_trio.pipeline.errors import PipelineError
from disque_trio.terminal.counting import counted

_STEP: Final = 250
"""Jobs taken in one GETJOB."""
_REMEMBERED: Final = 200_000
"""How many ids of acknowledged jobs are kept: duplicates of them are acknowledged again."""
_log: Final = logging.getLogger(__name__)


@attrs.frozen
class Job:
    """One delivery."""

    id: str
    queue: str
    body: bytes
    nacks: int
    additional_deliveries: int
    node: str
    lease_s: float | None = None
    """What was left of its lease; 0 is for ever, None is unknown."""
    created: int | None = None
    """When it was added, in Unix microseconds; None is unknown."""


@attrs.define(eq=False)
class Consumer:
    """The jobs of a stream."""

    link: Link
    options: Stream
    nodes: Nodes = attrs.field(init=False)
    jobs: dict[str, Job] = attrs.field(init=False, factory=dict)
    """Delivered and not acknowledged."""
    duplicates: int = 0
    """Deliveries of jobs that were held, or had been acknowledged."""
    _leases: Leases = attrs.field(init=False)
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    _wake: threading.Event = attrs.field(init=False, factory=threading.Event)
    _done: OrderedDict[str, None] = attrs.field(init=False, factory=OrderedDict)
    _skipped: set[str] = attrs.field(init=False, factory=set)
    _refusal: PipelineError | None = attrs.field(init=False, default=None)
    """A node's refusal while other nodes gave jobs; raised by the next call."""
    _thread: threading.Thread | None = attrs.field(init=False, default=None)
    _is_closed: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.nodes = Nodes(self.link)
        self._leases = Leases(self.options.lease_s)

    # Taking.

    def take(self, most: int, *, waits: bool) -> Jobs:
        """Up to so many jobs, with their bodies in `jobs`. Raises `UnreachableError`.

        If a node refuses, the jobs of the others are still returned: those with RETRY 0 are never
        delivered again. The next call raises the refusal.
        """
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            raise refusal
        taken: dict[str, Job] = {}
        if most <= 0:
            return {}
        live = self.nodes.live()
        try:
            self._collect(live, most, taken)
            if not taken and waits and self.options.wait_ms:
                self._sift(self._await(live), taken)
        except PipelineError as error:
            if not taken:
                raise
            self._refusal = error
            _log.warning("the query fails after this batch: %s", error)
        return self._hold(taken.values())

    def _collect(self, nodes: Sequence[str], most: int, taken: dict[str, Job]) -> None:
        """Take jobs until there are no more, or enough."""
        room = self.options.max_bytes
        while nodes and room > 0 and len(taken) < most:
            still = []
            for name in nodes:
                asked = min(most - len(taken), _STEP)
                if asked <= 0 or room <= 0:
                    return
                got = self._get(name, asked)
                room -= self._sift(got, taken)
                if len(got) == asked:
                    still.append(name)
            nodes = still

    def _await(self, live: Sequence[str]) -> list[Job]:
        """Wait at one node, to which the others send their jobs; at another one each time."""
        place = int(time.monotonic() * 1000 // max(self.options.wait_ms, 1)) % len(live)
        return self._get(live[place], 1, self.options.wait_ms / 1000)

    def _get(self, name: str, count: int, wait_s: float = 0.0) -> list[Job]:
        try:
            asked = commands.getjob(self.options.queue, count=count, timeout=wait_s, with_meta=True)
            (jobs,) = self.nodes.ask(name, [asked])
        except NodeGoneError as error:
            _log.warning("a node is skipped: %s", error)
            return []
        if not isinstance(jobs, RefusedError):
            return [_from(name, job.queue, job.body, job) for job in jobs]
        if not isinstance(jobs, UnavailableError):
            raise PipelineError(f"{name} refuses {jobs}")
        return []

    def _sift(self, jobs: Iterable[Job], taken: dict[str, Job]) -> int:
        """Add the jobs that are neither held nor acknowledged. Returns the size of their bodies."""
        size = 0
        over: Jobs = {}
        for job in jobs:
            if job.id in self._done:
                over.setdefault(job.node, []).append(job.id)
            elif job.id not in self.jobs and job.id not in taken:
                taken[job.id] = job
                size += len(job.body)
                continue
            self.duplicates += 1
        for node, ids in over.items():
            self.nodes.acknowledge(node, ids)
        return size

    def _hold(self, jobs: Iterable[Job]) -> Jobs:
        held: Jobs = {}
        left_s: dict[str, float] = {}
        for job in jobs:
            self.jobs[job.id] = job
            held.setdefault(job.node, []).append(job.id)
            if job.lease_s is not None:
                left_s[job.id] = job.lease_s
        with self._lock:
            self._leases.add(held, time.monotonic(), left_s)
        self._start()
        return held

    # After a crash.

    def recover(self, jobs: Jobs) -> None:
        """Read the jobs of an earlier process. Raises `LostJobsError` if some may be lost."""
        sought = {
            node: missing
            for node, ids in jobs.items()
            if (missing := [job for job in ids if job not in self.jobs])
        }
        if not sought:
            return
        with self._lock:
            self._leases.adopt(sought, time.monotonic())
        self._start()
        missing = self._find(sought)
        if not missing:
            return
        with self._lock:
            self._leases.drop(missing)
        down = self.nodes.down()
        if down and self.options.fails_on_loss:
            raise LostJobsError(
                f"no node that answers has {counted(len(missing), 'job')} of a batch that is to "
                f"run again, such as {missing[0]}. They may be on {', '.join(down)}, which "
                "does not answer: start the query again when it does, have it forgotten (CLUSTER "
                'FORGET), or omit the jobs with option("failOnDataLoss", "false")'
            )
        self._skipped.update(missing)
        _log.warning(
            "a batch is repeated without %s that expired or were acknowledged by others, such as "
            "%s",
            counted(len(missing), "job"),
            missing[0],
        )

    def _find(self, sought: Jobs) -> list[str]:
        """Ask the nodes that gave them, then all others. Returns those that nobody has."""
        open_jobs = dict.fromkeys(flat(sought))
        live = self.nodes.live()
        rounds = [(node, ids) for node, ids in sought.items() if node in live]
        rounds += [(node, []) for node in live]
        for node, ids in rounds:
            wanted = [job for job in ids or open_jobs if job in open_jobs]
            for job in self._show(node, wanted):
                self.jobs[job.id] = job
                open_jobs.pop(job.id, None)
        return list(open_jobs)

    def _show(self, node: str, ids: list[str]) -> list[Job]:
        try:
            shown = self.nodes.ask(node, [commands.show(job) for job in ids])
        except NodeGoneError as error:
            _log.warning("a node is skipped: %s", error)
            return []
        return [
            _from(node, job.queue or "", job.body, job)
            for job in shown
            if isinstance(job, JobDetails) and job.state != "acked" and job.body is not None
        ]

    # The end.

    def acknowledge(self, jobs: Jobs) -> bool:
        """Acknowledge committed jobs. False if no node took it, so that it must be repeated."""
        pending = {
            node: rest
            for node, ids in jobs.items()
            if (rest := [job for job in ids if job not in self._done and job not in self._skipped])
        }
        for node, ids in pending.items():
            if not self.nodes.acknowledge(node, ids):
                return False
            self._forget(ids)
        return True

    def _forget(self, ids: Iterable[str]) -> None:
        for job in ids:
            self.jobs.pop(job, None)
            self._done[job] = None
        while len(self._done) > _REMEMBERED:
            self._done.popitem(last=False)
        with self._lock:
            self._leases.drop(ids)

    def backlog(self) -> int:
        """The length of the queue, over all nodes that answer."""
        asked = commands.qlen(self.options.queue)
        total = 0
        for name in self.nodes.live():
            try:
                total += number(self.nodes.ask(name, [asked])[0])
            except NodeGoneError:
                continue
        return total

    def close(self) -> None:
        """Close. The jobs stay delivered; `recover` can read them by their ids."""
        self._is_closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.nodes.close()

    # Leases.

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="disque-leases", daemon=True)
            self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        with Nodes(self.link) as nodes:
            while not self._is_closed:
                with self._lock:
                    wait = self._leases.next_due() - time.monotonic()
                if wait > 0:
                    self._wake.wait(None if wait == math.inf else wait)
                    self._wake.clear()
                    continue
                try:
                    self._renew(nodes)
                except PipelineError as error:
                    _log.warning("leases of jobs are not renewed: %s", error)
                    self._wake.wait(1.0)
                except Exception:  # a thread that ends would lose all leases
                    _log.exception("leases of jobs are not renewed")
                    self._wake.wait(1.0)

    def _renew(self, nodes: Nodes) -> None:
        """Send WORKING for all jobs that are due."""
        with self._lock:
            due = self._leases.due(time.monotonic())
        for node, ids in due.items():
            try:
                answers = nodes.ask(node, [commands.working(job) for job in ids])
            except NodeGoneError:
                live = nodes.live()
                with self._lock:
                    for job in ids:
                        self._leases.gone(job, node, live, time.monotonic())
                continue
            live = nodes.names()
            now = time.monotonic()
            with self._lock:
                for job, answer in zip(ids, answers, strict=True):
                    self._leases.answered(job, node, answer, live, now)


def _from(node: str, queue: str, body: bytes, job: Delivery | JobDetails) -> Job:
    lease_s = None
    if isinstance(job, JobDetails):
        made: int | None = created(job)
    elif job.meta is None:
        made = None
    else:
        lease_s, meta = job.meta.lease, job.meta
        # A node of an earlier release reports the age alone.
        at = time.time() - meta.age if meta.created is None else meta.created
        made = round(at * 1_000) * 1_000
    return Job(job.id, queue, body, job.nacks, job.additional_deliveries, node, lease_s, made)


def created(job: JobDetails) -> int:
    """When it was added, in Unix microseconds. The stamp has milliseconds and a counter of six
    digits; a delivery has the milliseconds alone."""
    return job.ctime // 1_000_000 * 1_000
