from zlib import crc32

import attrs

from disque_trio.statemachine.events import Cause, Event, Kind
from disque_trio.statemachine.extensions import DeadState, Extensions
from disque_trio.statemachine.messages import GotAck, GotJob, JobState, NeedJobs, ReplJob
from tests.rig import JOB, N2, Rig, copy_of


def traced(peers: int = 0) -> tuple[Rig, list[Event]]:
    rig = Rig(peers=peers)
    events: list[Event] = []
    rig.node.trace = events
    return rig, events


def test_a_node_that_is_not_traced_writes_no_events() -> None:
    rig = Rig()

    rig.add()

    assert rig.node.trace is None


def test_the_life_of_a_job_is_written_down() -> None:
    rig, events = traced()
    job = rig.add("RETRY", 10)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id)
    rig.ask("ACKJOB", job.id)

    assert [(event.kind, event.cause) for event in events] == [
        (Kind.HOLD, Cause.ADD),
        (Kind.QUEUE, Cause.FIRST),
        (Kind.UNQUEUE, Cause.SERVED),
        (Kind.SERVE, Cause.SERVED),
        (Kind.QUEUE, Cause.NACK),
        (Kind.UNQUEUE, Cause.ACKED),
        (Kind.ACKED, Cause.ACKJOB),
        (Kind.DROP, Cause.COLLECTED),
    ]
    assert {(event.job, event.queue) for event in events} == {(job.id, b"q")}


def test_the_client_or_node_that_got_the_job_is_in_the_event() -> None:
    rig, events = traced(peers=1)
    rig.add("REPLICATE", 1)
    rig.ask("GETJOB", "FROM", "q")
    rig.add("REPLICATE", 1)
    rig.message(N2, NeedJobs(b"q", 1))

    takers = {event.kind: event.client or event.peer for event in events}
    assert (takers[Kind.SERVE], takers[Kind.GIVE]) == (rig.client.id, N2)


def test_an_ack_without_a_job_has_no_queue() -> None:
    rig, events = traced(peers=1)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, GotAck(JOB, known=True))

    assert events == [
        Event(Kind.HOLD, JOB, b"", Cause.DUMMY),
        Event(Kind.DROP, JOB, b"", Cause.DISMISSED),
    ]


def test_a_copy_is_written_down_as_what_brought_it() -> None:
    rig, events = traced(peers=1)
    rig.hold(copy_of())

    assert [(event.kind, event.cause) for event in events] == [(Kind.HOLD, Cause.REPLJOB)]


def test_a_death_that_is_known_before_the_copies_are_made_is_written_down_twice() -> None:
    rig, events = traced(peers=1)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    [job] = rig.node.jobs.values()

    rig.message(N2, JobState(job.id, 5000, DeadState(0, True, b"why", 86_400_000)))
    rig.message(N2, GotJob(job.id))

    deaths = [(event.cause, event.detail) for event in events if event.kind is Kind.DEAD]
    assert deaths == [
        (Cause.JOBSTATE, "redriven=0 left=5000 wait-repl"),
        (Cause.JOBSTATE, "redriven=0 left=5000"),
    ]


def test_of_a_record_that_begins_it_is_written_down_what_it_says() -> None:
    rig, events = traced(peers=1)
    rig.ask("ADDJOB", "q", "hello", 0, "REPLICATE", 1, "RETRY", 5, "DELAY", 7, "TTL", 60)
    job = next(iter(rig.node.jobs.values()))

    assert events[0].detail == (
        f"replicate=1 retry=5000 delay=7000 made={job.ctime} body={crc32(b'hello')} "
        f"left=60000 due=7000"
    )


def test_its_extensions_are_written_down_with_the_checksum_of_what_is_no_number() -> None:
    rig, events = traced(peers=1)
    extensions = Extensions(priority=-3, unknown=((9000, b"later"),))
    rig.hold(attrs.evolve(copy_of(), extensions=extensions))

    assert f" priority=-3 extension-9000={crc32(b'later')} left=" in events[0].detail


def test_a_record_that_is_never_queued_and_a_body_on_disk_have_nothing_to_say() -> None:
    rig, events = traced(peers=1)
    rig.hold(copy_of(retry=0))

    assert events[0].detail.endswith(" due=0")


def test_a_copy_that_is_dead_when_it_comes_says_so() -> None:
    rig, events = traced(peers=1)
    dead = DeadState(2, True, b"why", 86_400_000)

    rig.message(N2, ReplJob((attrs.evolve(copy_of(), extensions=Extensions(dead=dead)),)))

    (state,) = [event for event in events if event.kind is Kind.DEAD]
    assert (state.job, state.cause) == (JOB, Cause.REPLJOB)
    assert state.detail.startswith("redriven=2 left=")
