"""Traces of single jobs: which are chosen, and what is written of them, on whichever path."""

import attrs
import pytest

from disque_trio.statemachine import jobtraces
from disque_trio.statemachine.base import OK, Failure, JobId, Reply
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import (
    GotJob,
    Many,
    Queued,
    ReplJob,
    SetAck,
    Working,
    YourJobs,
    one_of,
)
from tests.rig import JOB, N2, Rig, copy_of

ALL = Config(trace_sample=1, cluster_node_timeout=1_000_000_000)
NONE = attrs.evolve(ALL, trace_sample=0)


def told(rig: Rig, id: JobId) -> dict[bytes, Reply]:
    """What TRACE GET says, by name."""
    reply = rig.ask("TRACE", "GET", id)
    assert isinstance(reply, list), reply
    return dict(zip(reply[::2], reply[1::2], strict=True))  # type: ignore[arg-type]


def rows(rig: Rig, id: JobId) -> list[str]:
    """Kind and cause of each row."""
    found = told(rig, id)[b"rows"]
    assert isinstance(found, list)
    return [f"{row[3].decode()} {row[6].decode()}" for row in found]  # type: ignore[index,union-attr]


LIFE = [
    "hold add",
    "queue first",
    "unqueue served",
    "serve served",
    "acked ackjob",
    "drop collected",
]


@pytest.mark.parametrize("words", [(), ("PRIORITY", 1)], ids=["fast path", "slow path"])
def test_the_life_of_a_job_is_written_down_on_both_paths(words: tuple[str | int, ...]) -> None:
    rig = Rig(config=ALL)
    job = rig.add("RETRY", 10, *words)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("ACKJOB", job.id)

    assert rows(rig, job.id) == LIFE
    assert told(rig, job.id)[b"here"] == 0


def test_a_job_that_is_not_chosen_has_no_trace() -> None:
    rig = Rig(config=NONE)
    job = rig.add()
    rig.ask("NACK", job.id)

    assert rig.ask("TRACE", "GET", job.id) is None
    assert rig.ask("TRACE", "LIST") == []


@pytest.mark.slow
def test_all_nodes_choose_the_same_jobs_and_those_that_choose_more_choose_them_too() -> None:
    rig = Rig(config=NONE)
    ids = [rig.add().id for _ in range(2000)]

    few, many = (
        [id for id in ids if jobtraces.sampling(sample).choice(id, b"q")] for sample in (64, 8)
    )

    assert 10 < len(few) < 60
    assert 180 < len(many) < 330
    assert set(few) < set(many)
    assert all(jobtraces.sampling(64).first[id[11]] for id in few)


def test_the_size_of_the_sample_can_be_changed() -> None:
    rig = Rig(config=NONE)
    rig.ask("CONFIG", "SET", "trace-sample", 1)
    job = rig.add()

    assert rows(rig, job.id) == LIFE[:2]


def test_messages_about_a_traced_job_are_in_its_trace() -> None:
    rig = Rig(peers=1, config=ALL)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, "RETRY", 10)
    rig.sent()
    [job] = rig.node.jobs.values()
    rig.message(N2, GotJob(job.id))
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("ACKJOB", job.id)
    rig.sent()

    assert rows(rig, job.id) == [
        "hold add",
        "send repljob",
        "recv gotjob",
        "queue first",
        "unqueue served",
        "serve served",
        "send working",
        "acked ackjob",
        "send setack",
    ]


def test_of_a_message_about_several_jobs_each_traced_one_has_a_row_of_its_own() -> None:
    rig = Rig(peers=1, config=NONE)
    other = b"D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"
    rig.ask("TRACE", "JOB", JOB)
    rig.message(N2, YourJobs((copy_of(), attrs.evolve(copy_of(), id=other))))

    assert rows(rig, JOB)[:2] == ["recv yourjobs", "hold yourjobs"]
    [first, *_] = told(rig, JOB)[b"rows"]  # type: ignore[misc]
    assert other not in first[7]  # type: ignore[index,operator]
    assert rig.ask("TRACE", "GET", other) is None


def test_a_job_that_is_asked_for_before_it_comes_is_traced_when_it_comes() -> None:
    rig = Rig(peers=1, config=NONE)

    assert rig.ask("TRACE", "JOB", JOB) == 0
    rig.message(N2, ReplJob((copy_of(),)))

    assert rows(rig, JOB) == ["recv repljob", "hold repljob", "send gotjob"]


def test_the_trace_of_a_job_that_is_here_begins_with_what_is_known_of_it() -> None:
    rig = Rig(config=NONE)
    job = rig.add("RETRY", 10)

    assert rig.ask("TRACE", "JOB", job.id) == 1
    rig.ask("GETJOB", "FROM", "q")

    assert rows(rig, job.id) == ["hold traced", "queue traced", *LIFE[2:4]]
    assert told(rig, job.id)[b"why"] == b"asked"


def test_a_trace_that_was_asked_for_ends_in_time() -> None:
    rig = Rig(config=NONE)
    job = rig.add("RETRY", 10)
    rig.ask("TRACE", "JOB", job.id, "SECONDS", 5)
    rig.advance(5_000)
    rig.ask("GETJOB", "FROM", "q")

    assert rows(rig, job.id) == ["hold traced", "queue traced"]
    assert told(rig, job.id)[b"on"] == 0


def test_zero_seconds_end_it_at_once() -> None:
    rig = Rig(config=ALL)
    job = rig.add("RETRY", 10)
    rig.ask("TRACE", "JOB", job.id, "SECONDS", 0)
    rig.ask("GETJOB", "FROM", "q")

    assert rows(rig, job.id) == LIFE[:2]


RARE = attrs.evolve(ALL, trace_sample=jobtraces.MOST)


def test_a_job_that_is_given_back_is_traced_from_then_on() -> None:
    rig = Rig(config=RARE)
    job = rig.add("RETRY", 10)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id)

    assert rows(rig, job.id) == ["hold traced", "queue nack"]
    assert told(rig, job.id)[b"why"] == b"trouble"


def test_a_node_with_a_trace_file_traces_jobs_in_trouble_too() -> None:
    rig = Rig(config=RARE)
    rig.node.trace = []
    job = rig.add("RETRY", 10)
    for _ in range(2):
        rig.ask("GETJOB", "FROM", "q")
        rig.ask("NACK", job.id)

    assert rows(rig, job.id) == ["hold traced", "queue nack", *LIFE[2:4], "queue nack"]
    assert told(rig, job.id)[b"why"] == b"trouble"


def test_with_a_trace_file_trouble_goes_on_with_a_trace_that_was_over() -> None:
    rig = Rig(config=RARE)
    rig.node.trace = []
    job = rig.add("RETRY", 10)
    rig.ask("TRACE", "JOB", job.id, "SECONDS", 1)
    rig.advance(2_000)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id)

    assert rows(rig, job.id)[-2:] == ["hold traced", "queue nack"]


def test_a_job_that_another_node_has_queued_again_is_traced_from_then_on() -> None:
    rig = Rig(peers=1, config=RARE)
    id = b"D-bbbbbbbb-zzzzzzzzzzzzzzzzzzzzzzzz-05a1"
    rig.hold(attrs.evolve(copy_of(), id=id))
    rig.message(N2, Queued(id, redelivery=True))
    rig.message(N2, Working(id))

    assert rows(rig, id) == ["hold traced", "recv working"]


def test_of_many_jobs_in_trouble_some_are_traced_each_second() -> None:
    rig = Rig(config=RARE)
    ids = [rig.add("RETRY", 10).id for _ in range(40)]
    rig.ask("GETJOB", "COUNT", 40, "FROM", "q")
    rig.ask("NACK", *ids[:30])
    rig.advance(1000)
    rig.ask("NACK", *ids[30:])

    traced = rig.ask("TRACE", "LIST")
    assert isinstance(traced, list)
    assert len(traced) == jobtraces.TROUBLES_A_SECOND + 10


def test_jobs_of_a_queue_can_be_traced() -> None:
    rig = Rig(config=NONE)
    rig.ask("TRACE", "QUEUE", "m*", "RATE", 1)
    rig.ask("ADDJOB", "mail", "body", 0)
    rig.ask("ADDJOB", "other", "body", 0)
    rig.ask("TRACE", "QUEUE", "m*", "RATE", 0)
    rig.ask("ADDJOB", "mail", "body", 0)

    assert [list_row[3] for list_row in rig.ask("TRACE", "LIST")] == [b"mail"]  # type: ignore[union-attr,index]
    assert not rig.node.traces.queues


def test_traces_are_listed_by_queue() -> None:
    rig = Rig(config=ALL)
    for queue in ("mail", "sms", "mail"):
        rig.ask("ADDJOB", queue, "body", 0)
    rig.ask("ADDJOB", "mail", "last", 0)
    found = rig.ask("TRACE", "LIST", "QUEUE", "mail", "COUNT", 2)

    assert isinstance(found, list)
    assert [row[3] for row in found] == [b"mail", b"mail"]  # type: ignore[index]


def test_so_many_patterns_are_traced_and_no_more() -> None:
    rig = Rig(config=NONE)
    for number in range(16):
        rig.ask("TRACE", "QUEUE", f"q{number}", "RATE", 8)
    reply = rig.ask("TRACE", "QUEUE", "one more", "RATE", 8)

    assert isinstance(reply, Failure)
    assert "16 patterns are traced, which is the most. RATE 0 ends one: 'q0'" in str(reply.text)
    assert rig.ask("TRACE", "QUEUE", "q3", "RATE", 2) == OK


def test_an_id_of_another_form_is_not_chosen() -> None:
    traces = jobtraces.sampling(0)
    traces.set_queue(b"q", 1)

    assert traces.choice(JOB, b"q") is jobtraces.Reason.QUEUE
    assert traces.choice(b"D-11111111-!!!", b"q") is None


def test_of_so_many_ids_one_is_chosen() -> None:
    ids = [
        b"%b%b%b" % (JOB[:11], bytes([first, second]), JOB[13:])
        for first in b"ABCD"
        for second in b"ABCD"
    ]

    assert [jobtraces.is_chosen(id, 1) for id in ids] == [True] * 16
    assert [jobtraces.is_chosen(id, 64) for id in ids] == [True] * 4 + [False] * 12
    assert not jobtraces.is_chosen(b"D-11111111", 1)


def test_a_message_about_a_job_is_not_written_if_its_beginning_alone_is_that_of_a_chosen_one() -> (
    None
):
    rig = Rig(peers=1, config=attrs.evolve(ALL, trace_sample=128))
    chosen, other = (b"D-11111111-A%bAAAAAAAAAAAAAAAAAAAAAA-05a1" % each for each in (b"A", b"/"))

    for id in (chosen, other):
        rig.message(N2, Queued(id))

    assert told(rig, chosen)[b"here"] == 0
    assert rig.ask("TRACE", "GET", other) is None


def test_of_a_message_about_several_jobs_each_has_its_part() -> None:
    other = JOB[:-1] + b"2"
    copies = tuple(attrs.evolve(copy_of(), id=id) for id in (JOB, other))

    assert one_of(Many(SetAck(JOB, 2), (JOB, other)), other) == SetAck(other, 2)
    assert one_of(YourJobs(copies), other) == YourJobs(copies[1:])
    assert one_of(Working(JOB), JOB) == Working(JOB)


def test_of_a_job_with_many_rows_the_first_and_the_newest_are_kept() -> None:
    rig = Rig(config=ALL)
    job = rig.add("RETRY", 10)
    for _ in range(300):
        rig.ask("DEQUEUE", job.id)
        rig.ask("ENQUEUE", job.id)

    found = told(rig, job.id)
    numbers = [row[0] for row in found[b"rows"]]  # type: ignore[union-attr,index]
    assert len(numbers) == jobtraces.ROWS_MOST
    assert numbers[:100] == list(range(1, 101))
    assert numbers[-1] == found[b"last"] == found[b"omitted"] + jobtraces.ROWS_MOST  # type: ignore[operator]


def test_what_is_kept_is_bounded_and_jobs_that_have_ended_go_first() -> None:
    traces = jobtraces.JobTraces()
    row = jobtraces.Entry(1, 0, 0, "hold", "", "", "add", "x" * 4_000_000)
    for id in (b"live", b"gone", b"new"):
        traces.put(traces.open(id, jobtraces.Reason.ASKED), row)
    traces.end(b"gone")
    for number in range(2):
        id = b"more%d" % number
        traces.put(traces.open(id, jobtraces.Reason.ASKED), row)

    assert list(traces.jobs) == [b"live", b"new", b"more0", b"more1"]
    assert traces.size <= jobtraces.BYTES_MOST


@pytest.mark.pure  # a constant is changed
def test_jobs_that_never_come_are_not_remembered_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobtraces, "BYTES_MOST", 10 * jobtraces.ROW_BYTES)
    rig = Rig(config=NONE)
    for number in range(100):
        assert rig.ask("TRACE", "JOB", b"%b%020d%b" % (JOB[:15], number, JOB[35:])) == 0

    assert len(rig.node.traces.jobs) == len(rig.node.traces.ended) == 10


@pytest.mark.pure  # a constant is changed
def test_a_trace_may_be_forgotten_with_its_own_last_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(config=ALL)
    job = rig.add("RETRY", 10)
    rig.ask("DEQUEUE", job.id)
    monkeypatch.setattr(jobtraces, "BYTES_MOST", rig.node.traces.size)
    rig.ask("DELJOB", job.id)

    assert rig.ask("TRACE", "GET", job.id) is None


def test_a_job_whose_trace_was_forgotten_costs_no_more_than_others() -> None:
    rig = Rig(config=ALL)
    job = rig.add("RETRY", 10)
    rig.node.traces.jobs.clear()
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("ACKJOB", job.id)

    assert rig.ask("TRACE", "GET", job.id) is None


def test_only_newer_rows_can_be_asked_for() -> None:
    rig = Rig(config=ALL)
    job = rig.add("RETRY", 10)
    found = rig.ask("TRACE", "GET", job.id, "AFTER", 1)

    assert isinstance(found, list)
    [row] = found[-1]  # type: ignore[misc]
    assert row[:4] == [2, rig.now.wall * 1000 + rig.now.micros, rig.now.mono, b"queue"]  # type: ignore[index]


def test_a_message_about_a_chosen_job_that_is_not_here_is_in_its_trace() -> None:
    rig = Rig(peers=1, config=ALL)
    rig.message(N2, SetAck(JOB, 2))
    rig.sent()

    assert rows(rig, JOB) == ["recv setack", "send gotack"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("NO", "there is no TRACE 'NO'; there are JOB, GET, LIST, QUEUE"),
        ("JOB", "it is TRACE JOB id [SECONDS n]"),
        ("JOB mail", "BADID Invalid Job ID format. 'mail' is not the id"),
        (f"JOB {JOB.decode()} SECONDS x", "'x' is no whole number for SECONDS"),
        (f"JOB {JOB.decode()} SECONDS 99999999", "SECONDS must be at most 31622400: 99999999"),
        (f"GET {JOB.decode()} BEFORE 3", "'BEFORE' is not AFTER"),
        ("LIST COUNT 0", "'0' is less than 1 for COUNT"),
        ("LIST JOBS", "'JOBS' is not QUEUE or COUNT"),
        ("QUEUE q", "it is TRACE QUEUE pattern RATE n"),
        ("QUEUE q RATE -1", "'-1' is less than 0 for RATE"),
    ],
)
def test_mistakes_are_named(words: str, says: str) -> None:
    reply = Rig().ask("TRACE", *words.split())

    assert isinstance(reply, Failure)
    assert says in reply.text.decode()
