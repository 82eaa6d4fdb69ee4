"""The short ways lead where the long ones lead: a node that is traced takes those."""

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from disque_trio.statemachine import federation, invariants
from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.federation import Why
from disque_trio.statemachine.messages import YourJobs
from tests.rig import JOB, N2, N3, Rig, copy_of
from tests.statemachine.comparing import Even, by_job, shown, totals


def everything(rig: Rig) -> dict[str, object]:
    """What the node holds, and what it has said."""
    node = rig.node
    rig.take()
    return {
        "jobs": [shown(job) for job in node.jobs.values()],
        "queues": [
            (queue.name, queue.length, queue.jobs_in, queue.jobs_out, queue.accessed)
            for queue in node.queues.values()
        ],
        "lines": [[job.id for job in queue.peek(99)] for queue in node.queues.values()],
        "memory": (node.memory.held, list(node.memory.evictable), list(node.memory.dummies)),
        "tally": totals(node.tally),
        "rng": node.rng.getstate(),
        "replies": rig.replies(),
        "sent": by_job(rig.sent()),
        "next": node.timers.deadline(),
    }


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.sampled_from([(), ("RETRY", 0), ("TTL", 1), ("RETRY", 3), ("DELAY", 1, "TTL", 9)]),
        ),
        st.tuples(st.just("get"), st.integers(1, 5)),
        st.tuples(st.just("ack"), st.lists(st.integers(0, 9), min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["nack", "dequeue", "enqueue"]), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from([1, 400, 2000, 400_000])),
        st.tuples(st.just("pause"), st.sampled_from(["out", "none"])),
        st.tuples(st.just("hold"), st.just(0)),
    ),
    max_size=25,
)


@pytest.mark.large
@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([0, 2]), st.booleans(), st.sampled_from([0, 1, 1024]))
def test_the_short_ways_lead_where_the_long_ones_lead(
    steps: list[tuple[str, object]], peers: int, lease: bool, sample: int
) -> None:
    config = Config(delivery_lease=lease, trace_sample=sample)
    short, long = (Rig(peers, config) for _ in range(2))
    short.node.rng, long.node.rng = Even(0), Even(0)
    long.node.trace = []

    for step in steps:
        for rig in (short, long):
            take(rig, *step)
        assert everything(short) == everything(long)

    invariants.check(short.node)
    if sample == 1:
        assert kept(short) == written(long)


def kept(rig: Rig) -> dict[JobId, list[tuple[str, str]]]:
    """The rows of each job, but for messages."""
    jobs = rig.node.traces.jobs.items()
    rows = {
        id: [(row.kind, row.cause) for row in kept.rows if row.kind not in ("send", "recv")]
        for id, kept in jobs
    }
    return {id: events for id, events in rows.items() if events}


def written(rig: Rig) -> dict[JobId, list[tuple[str, str]]]:
    """The events of each job in a whole trace."""
    found: dict[JobId, list[tuple[str, str]]] = {}
    for event in rig.node.trace or ():
        found.setdefault(event.job, []).append((event.kind.value, event.cause.value))
    return found


def take(rig: Rig, verb: str, what: object) -> None:
    """One step. Numbers stand for jobs that are there, or for none."""
    ids = [*rig.node.jobs, JOB]
    match verb, what:
        case "add", tuple(options):
            rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1, *options)
        case "get", count:
            assert isinstance(count, int)
            rig.request("GETJOB", "NOHANG", "COUNT", count, "FROM", "q")
        case "ack", list(numbers):
            rig.request("ACKJOB", *[ids[number % len(ids)] for number in numbers])
        case "wait", duration:
            assert isinstance(duration, int)
            rig.advance(duration)
        case "pause", way:
            assert isinstance(way, str)
            rig.request("PAUSE", "q", way)
        case "hold", _:
            if len(rig.node.cluster.nodes) > 1 and JOB not in rig.node.jobs:
                rig.hold(copy_of(JOB, holders=(N2, N3), queue=b"q"))
                rig.request("ENQUEUE", JOB)
        case verb, int(number):
            rig.request(verb, ids[number % len(ids)])


def test_an_id_that_is_malformed_spoils_all_that_are_given_with_it() -> None:
    rig = Rig()
    job = rig.add()

    rig.request("ACKJOB", job.id, "no id")

    assert job.id in rig.node.jobs


def test_a_job_before_one_that_is_out_of_date_was_not_the_last() -> None:
    short, long = Rig(2), Rig(2)
    long.node.trace = []
    for rig in (short, long):
        rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1, "TTL", 1)
        rig.advance(990)
        rig.message(N2, YourJobs((copy_of(JOB, holders=(N2,), queue=b"q"),)))
        federation.need_jobs(rig.node, rig.node.queues[b"q"], Why.CLIENTS_WAIT)
        rig.take()
        rig.sent()
        rig.now = attrs.evolve(rig.now, mono=rig.now.mono + 11)  # and no tick yet
        rig.request("GETJOB", "NOHANG", "COUNT", 2, "FROM", "q")

    assert short.sent() == long.sent()
