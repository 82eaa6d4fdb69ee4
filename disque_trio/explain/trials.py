"""Trials: a plan of a run for each family and seed, played and judged by the simulator.

Half of the jobs wait while the fault is there: their workers come afterwards. The others are added
and worked on meanwhile. After the fault nothing fails, and workers take what comes until none is
left.
"""

from typing import Any, Final

import attrs

from disque_trio.explain.facts import NO_JOURNAL, Facts
from disque_trio.explain.families import BY_NAME, REPAIR_S, SECOND, Family, Setting, size, zones_of
from disque_trio.explain.job_request import JobRequest
from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Add, Consumer, Expect, Micros, Plan
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.joboptions import CARRIED, Option
from disque_trio.tracing.rows import Row

WAITING: Final = "waiting"
WORKED: Final = "worked"
MOST_S: Final = 600
"""DELAY and RETRY together; longer ones are shortened, and TTL with them."""
_JOBS: Final = 20
"""Of each half."""
_BEFORE: Final = 4 * SECOND
"""How long before the fault."""


@attrs.frozen(kw_only=True)
class Trial:
    """What became of the jobs of one run."""

    family: str
    seed: int
    added: int
    """How many were answered with an id."""
    refused: int
    """How many ADDJOBs were not."""
    waiting: int
    """How many of those added waited while the fault was there."""
    gone: int
    """How many of those added were never done, and are not dead either."""
    waiting_gone: int
    dead: int
    twice: int
    """How many came more than once."""
    causes: tuple[str, ...]
    """Of duplicates."""
    longest_ms: int
    """How long a job waited for its first delivery, once it was due and workers were there."""
    violations: tuple[str, ...]
    """Promises that were broken: a bug."""


@attrs.define
class _Tally:
    """What happened to each job, of rows."""

    ready: Micros
    delay: Micros
    added: dict[str, tuple[str, Micros]] = attrs.Factory(dict)
    refused: int = 0
    came: dict[str, Micros] = attrs.Factory(dict)
    twice: dict[str, None] = attrs.Factory(dict)
    done: dict[str, None] = attrs.Factory(dict)
    dead: dict[str, None] = attrs.Factory(dict)

    def see(self, row: Row) -> None:
        """The next row."""
        match row.kind:
            case "add.ok":
                self.added.setdefault(row.job, (row.queue, row.time))
            case "add.refused" | "add.unknown":
                self.refused += 1
            case "get.deliver":
                if row.job in self.came:
                    self.twice[row.job] = None
                self.came.setdefault(row.job, row.time)
            case "ack.invoke":
                self.done[row.job] = None
            case "dead":
                self.dead[row.job] = None
            case "redrive":
                self.dead.pop(row.job, None)

    def longest(self) -> Micros:
        """How long a waiting job took to come."""
        return max(
            (
                self.came[job] - max(self.ready, at + self.delay)
                for job, (queue, at) in self.added.items()
                if queue == WAITING and job in self.came
            ),
            default=0,
        )


def scaled(request: JobRequest) -> tuple[JobRequest, int]:
    """The job with shorter times, if it would take too long, and by how much they were divided."""
    longest = -(-request.delay // 1000) + request.retry
    factor = -(-longest // MOST_S)
    if factor <= 1:
        return request, 1
    return attrs.evolve(
        request,
        delay=request.delay // factor,
        retry=max(request.retry // factor, 1) if request.retry else 0,
        ttl=max(request.ttl // factor, request.delay // factor // 1000 + 1),
    ), factor


def plan_of(family: Family, whole: JobRequest, facts: Facts, seed: int) -> Plan:
    """The plan of one trial."""
    request, _ = scaled(whole)
    nodes = size(facts)
    is_cut = family.name in {"halves", "cut-off"}
    at = _BEFORE + (request.delay * 1000 if is_cut else 0)
    setting = Setting(request, facts, nodes, at, stream(seed, "explain", family.name))
    end = at + family.lasts(nodes) * SECOND
    return Plan(
        scenario=f"explain {family.name}",
        seed=seed,
        nodes=nodes,
        zones=zones_of(facts),
        config=_config(facts),
        adds=_adds(request, nodes, end, is_few=family.name == "worker-slow"),
        consumers=_consumers(family, request, nodes, end),
        faults=family.faults(setting),
        chaos=end + request.retry * 2 * SECOND * family.ends_leases + 2 * SECOND,
        vector_clocks=False,
        expect=Expect(duplicates=tuple(CAUSES)),
    )


def _config(facts: Facts) -> tuple[tuple[str, str], ...]:
    found = [
        ("cluster-node-timeout", str(facts.node_timeout_ms)),
        ("delivery-lease", "yes" if facts.has_lease else "no"),
        ("replica-repair-after", str(min(facts.repair_s, REPAIR_S))),
    ]
    if facts.journal != NO_JOURNAL:
        found += [("appendonly", "yes"), ("appendfsync", facts.journal)]
    return tuple(found)


def _adds(request: JobRequest, nodes: int, end: Micros, *, is_few: bool) -> tuple[Add, ...]:
    count = 2 * nodes if is_few else _JOBS
    spans = {WAITING: _BEFORE - SECOND // 2, WORKED: end}
    return tuple(
        Add(
            at=number * span // count + 1000,
            node=1 + number % nodes,
            producer=f"p{1 + number % nodes}",
            queue=queue,
            body=f"{queue} {number}",
            **_options(request, f"{queue} {number}"),
        )
        for queue, span in spans.items()
        for number in range(count)
    )


def _options(request: JobRequest, key: str) -> dict[str, Any]:
    """MAXLEN is left out: it would refuse the other jobs of the trial. Each job has its own key."""
    return {
        "replicate": request.copies,
        "sync": request.sync or None,
        "delay_s": request.delay / 1000 if request.delay else None,
        "retry_s": request.retry,
        "ttl_s": request.ttl,
        "is_async": request.is_async,
        **{each.planned: _planned(each, request.extensions) for each in CARRIED if each.is_number},
        **(
            {}
            if request.extensions.key is None
            else {"unique": key, "if_exists": request.if_exists}
        ),
    }


def _planned(option: Option, extensions: Extensions) -> int | None:
    value: int = getattr(extensions, option.extension) or 0
    return (-(-value // 1000) if option.is_time else value) or None


def _consumers(
    family: Family, request: JobRequest, nodes: int, end: Micros
) -> tuple[Consumer, ...]:
    retry = request.retry * SECOND
    work = (retry * 12 // 10, retry * 15 // 10) if family.name == "worker-slow" else _WORK
    mix = (("ackjob", 0.7), ("die", 0.3)) if family.name == "worker-dies" else (("ackjob", 1.0),)
    return tuple(
        consumer
        for node in range(1, nodes + 1)
        for consumer in (
            Consumer(name=f"w{node}", node=node, queues=(WORKED,), work=work, mix=mix),
            Consumer(name=f"c{node}", node=node, queues=(WAITING,), start=end),
        )
    )


_WORK: Final = (10_000, 100_000)


def run(family: str, request: JobRequest, facts: Facts, seed: int) -> Trial:
    """Play and judge one trial."""
    plan = plan_of(BY_NAME[family], request, facts, seed)
    tally = _Tally(max(each.start for each in plan.consumers), scaled(request)[0].delay * 1000)
    judging = judge(plan)

    def observe(row: Row) -> None:
        judging.see(row)
        tally.see(row)

    simulate(plan, observe)
    verdict = judging.finish()
    gone = [job for job in tally.added if job not in tally.done and job not in tally.dead]
    waiting = [job for job, (queue, _) in tally.added.items() if queue == WAITING]
    return Trial(
        family=family,
        seed=seed,
        added=len(tally.added),
        refused=tally.refused,
        waiting=len(waiting),
        gone=len(gone),
        waiting_gone=len([job for job in gone if job in waiting]),
        dead=len(tally.dead),
        twice=len(tally.twice),
        causes=tuple(verdict.duplicates),
        longest_ms=tally.longest() // 1000,
        violations=tuple(f"{each.property}: {each.detail}" for each in verdict.violations),
    )
