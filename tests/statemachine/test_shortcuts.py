"""The short ways lead where the long ones lead, traced or not."""

import attrs
import hypothesis.strategies as st
from hypothesis import given, settings

from disque_trio.statemachine import acks, delivery, federation, invariants, lifecycle, send
from disque_trio.statemachine.base import NULL_ARRAY, JobId
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.federation import Reason
from disque_trio.statemachine.job import Job
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
            st.sampled_from(
                [
                    (),
                    ("RETRY", 0),
                    ("TTL", 1),
                    ("RETRY", 3),
                    ("DELAY", 1, "TTL", 9),
                    ("PRIORITY", 1),
                    ("GROUP", "one"),
                    ("GROUP", "other", "BACKOFF", 1),
                    ("LIMIT", 2, "RETRY", 3),
                ]
            ),
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


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([0, 2]), st.booleans(), st.sampled_from([0, 1, 1024]), st.booleans())
def test_the_short_ways_lead_where_the_long_ones_lead(
    steps: list[tuple[str, object]], peers: int, lease: bool, sample: int, is_traced: bool
) -> None:
    config = Config(delivery_lease=lease, trace_sample=sample)
    short, long = (Rig(peers, config) for _ in range(2))
    for rig in (short, long):
        rig.node.rng = Even(0)
        rig.node.trace = [] if is_traced else None

    for step in steps:
        take(short, *step)
        take_long(long, *step)
        assert everything(short) == everything(long)

    invariants.check(short.node)
    assert kept(short) == kept(long)
    assert written(short) == written(long)


def take_long(rig: Rig, verb: str, what: object) -> None:
    """The step, job by job."""
    node, client = rig.node, rig.client
    ids = [*node.jobs, JOB]
    match verb, what:
        case "add", _:
            node.memory.spillable = {}
            take(rig, verb, what)
            node.memory.spillable = None
        case "get", int(count):
            jobs: list[Job] = []
            queue = lifecycle.queue_for(node, b"q")
            while len(jobs) < count and (job := delivery.take(node, queue, client)) is not None:
                jobs.append(job)
            if len(jobs) < count:
                federation.need_jobs(node, queue, Reason.CLIENTS_WAIT)
            send.answer(node, client, delivery.give(node, client, jobs, 0) if jobs else NULL_ARRAY)
            rig.take()
        case "ack", list(numbers):
            acked = [acks.ack(node, ids[number % len(ids)]) for number in numbers]
            send.answer(node, client, sum(acked))
            rig.take()
        case _:
            take(rig, verb, what)


def kept(rig: Rig) -> dict[JobId, list[tuple[str, str]]]:
    """The rows of each job, but for messages."""
    jobs = rig.node.traces.jobs.items()
    rows = {
        id: [(row.kind, row.cause) for row in kept.rows if row.kind not in ("send", "recv")]
        for id, kept in jobs
    }
    return {id: events for id, events in rows.items() if events}


def written(rig: Rig) -> dict[JobId, list[tuple[str, str]]]:
    """The events of each job in a whole trace; none if there is no trace."""
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
    for rig, get in ((short, take), (long, take_long)):
        rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1, "TTL", 1)
        rig.advance(990)
        rig.message(N2, YourJobs((copy_of(JOB, holders=(N2,), queue=b"q"),)))
        federation.need_jobs(rig.node, rig.node.queues[b"q"], Reason.CLIENTS_WAIT)
        rig.take()
        rig.sent()
        rig.now = attrs.evolve(rig.now, mono=rig.now.mono + 11)  # and no tick yet
        rig.request("PING")
        get(rig, "get", 2)

    assert short.sent() == long.sent()


def test_leases_that_are_longer_than_the_lives_of_their_jobs_end_with_them() -> None:
    rig = Rig(2)
    ids = [JOB, JOB[:-1] + b"2"]
    copies = tuple(copy_of(id, holders=(N2,), retry=60, ttl=2) for id in ids)
    rig.message(N2, YourJobs(copies))
    reply = rig.ask("GETJOB", "COUNT", 2, "FROM", "q")
    assert isinstance(reply, list)
    assert len(reply) == 2

    rig.advance(3000)

    assert not rig.node.jobs.keys() & set(ids)
