from zlib import crc32

import pytest

from disque_trio.statemachine import replication
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status
from disque_trio.statemachine.joboptions import OPTIONS, Option
from disque_trio.tracing.client_rows import Note, answered, invoked, lost

JOB = "D-11111111-222222222222222222222222-05a1"
OTHER = "D-33333333-222222222222222222222222-05a1"
ADD = [b"ADDJOB", b"mail", b"hello world", b"100", b"REPLICATE", b"3", b"ASYNC", b"RETRY", b"1"]


def test_an_add_tells_its_options_and_its_body_last() -> None:
    detail = "timeout=100 replicate=3 async retry=1 body=hello world"

    assert invoked(ADD) == [Note("add.invoke", queue="mail", detail=detail)]


@pytest.mark.parametrize("option", [each for each in OPTIONS if each.is_text], ids=lambda o: o.name)
def test_of_a_text_an_add_tells_the_checksum(option: Option) -> None:
    [note] = invoked([*ADD[:4], option.word, b"a text"])

    assert note.detail.split()[1] == f"{option.text.lower()}={crc32(b'a text')}"


def test_an_added_job_has_a_name() -> None:
    assert answered(ADD, Status(JOB.encode())) == [Note("add.ok", JOB, "mail")]


@pytest.mark.parametrize(
    "error",
    [
        b"PAUSED Queue paused in input, try later",
        b"MAXLEN too long",
        replication.NOT_ENOUGH_NODES,
    ],
)
def test_a_refusal_before_any_copy_is_a_definite_no(error: bytes) -> None:
    (note,) = answered(ADD, Failure(error))

    assert note.kind == "add.refused"
    assert note.cause == error.split()[0].decode()
    assert note.detail == error.decode()


@pytest.mark.parametrize(
    "error", [replication.TIMED_OUT, replication.OUT_OF_REACH, replication.JOB_REMOVED]
)
def test_a_refusal_after_copies_were_sent_leaves_doubt(error: bytes) -> None:
    (note,) = answered(ADD, Failure(error))

    assert (note.kind, note.cause) == ("add.unknown", "NOREPL")


@pytest.mark.parametrize("cause", ["disconnect", "timeout"])
def test_without_a_reply_the_outcome_is_unknown(cause: str) -> None:
    assert lost(ADD, cause) == [Note("add.unknown", queue="mail", cause=cause)]


def test_a_reply_that_is_none_leaves_doubt() -> None:
    (note,) = answered(ADD, 5)

    assert (note.kind, note.detail) == ("add.unknown", "5")


def test_each_job_in_hand_is_a_delivery() -> None:
    counters = [b"nacks", 1, b"additional-deliveries", 2]
    reply = [[b"mail", JOB.encode(), b"hello", *counters], [b"news", JOB.encode(), b"x"]]

    assert answered([b"GETJOB", b"FROM", b"mail", b"news"], reply) == [  # type: ignore[arg-type]
        Note("get.deliver", JOB, "mail", detail="nacks=1 additional=2 body=hello"),
        Note("get.deliver", JOB, "news", detail="body=x"),
    ]


def test_no_job_is_no_delivery() -> None:
    getjob = [b"GETJOB", b"FROM", b"mail"]

    assert invoked(getjob) == answered(getjob, NULL_ARRAY) == lost(getjob, "disconnect") == []


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        (b"ACKJOB", "ack"),
        (b"FASTACK", "fastack"),
        (b"NACK", "nack"),
        (b"WORKING", "working"),
        (b"DELJOB", "deljob"),
        (b"ENQUEUE", "enqueue"),
        (b"dequeue", "dequeue"),
    ],
)
def test_commands_about_jobs_are_noted_for_each_job(command: bytes, verb: str) -> None:
    words = [command, JOB.encode(), b"other"]

    assert invoked(words) == [Note(f"{verb}.invoke", JOB), Note(f"{verb}.invoke", "other")]
    assert answered(words, 1) == [
        Note(f"{verb}.ok", JOB, detail="1"),
        Note(f"{verb}.ok", "other", detail="1"),
    ]
    assert lost(words, "timeout")[0] == Note(f"{verb}.unknown", JOB, cause="timeout")


def test_an_error_refuses() -> None:
    notes = answered([b"WORKING", JOB.encode()], Failure(b"NOJOB Job not known"))

    assert notes == [Note("working.refused", JOB, cause="NOJOB", detail="NOJOB Job not known")]


@pytest.mark.parametrize("words", [[b"PING"], [b"CLUSTER", b"MEET"], [b"ADDJOB", b"q"]])
def test_other_commands_leave_no_rows(words: list[bytes]) -> None:
    assert invoked(words) == answered(words, Status(b"OK")) == lost(words, "timeout") == []


def test_a_delivery_tells_its_token_and_whether_it_is_tied() -> None:
    meta: list[Reply] = [b"attempt", 2, b"nacks", 1, b"additional-deliveries", 0, b"token", b"abc"]
    words = [b"GETJOB", b"WITHMETA", b"TIED", b"FROM", b"q"]

    [note] = answered(words, [[b"q", JOB.encode(), b"body", *meta]])

    assert note.detail == "nacks=1 additional=0 token=abc tied body=body"


def test_each_of_several_jobs_has_its_own_outcome() -> None:
    words = [b"WORKING", JOB.encode() + b"@abc", JOB.encode()]

    assert [(note.job, note.detail) for note in invoked(words)] == [(JOB, "abc"), (JOB, "")]
    lost_it, renewed = answered(words, [Failure(b"LOST The job"), 60])
    assert (lost_it.kind, lost_it.cause) == ("working.refused", "LOST")
    assert (renewed.kind, renewed.detail) == ("working.ok", "60")


def test_a_wait_names_one_job_and_a_purge_a_queue() -> None:
    wait = [b"WAITJOB", JOB.encode(), b"TIMEOUT", b"5"]
    purge = [b"PURGE", b"q", b"BCAST"]

    assert invoked(wait) == [Note("wait.invoke", JOB)]
    assert answered(wait, b"acked") == [Note("wait.ok", JOB, detail="b'acked'")]
    assert invoked(purge) == [Note("purge.invoke", queue="q", cause="bcast")]
    assert answered(purge, 3) == [Note("purge.ok", queue="q", detail="3")]
    assert lost(purge, "quit") == [Note("purge.unknown", queue="q", cause="quit")]


def test_words_behind_the_jobs_are_no_jobs() -> None:
    words = [b"NACK", JOB.encode(), b"DEAD", b"why"]

    assert invoked(words) == [Note("nack.invoke", JOB, cause="dead")]
    assert answered(words, 1) == [Note("nack.ok", JOB, detail="1")]


def test_a_delay_behind_the_jobs_is_no_job() -> None:
    for command in ("nack", "release"):
        words = [command.encode(), JOB.encode(), b"delay", b"5"]

        assert invoked(words) == [Note(f"{command}.invoke", JOB, cause="delay")]


def test_a_delivery_tells_how_often_the_job_was_snoozed() -> None:
    told: list[Reply] = [b"nacks", 0, b"additional-deliveries", 0, b"token", b"abc", b"snoozes", 2]

    [note] = answered([b"GETJOB"], [[b"q", JOB.encode(), b"body", *told]])

    assert note.detail == "nacks=0 additional=0 snoozes=2 token=abc body=body"


def test_orders_of_some_jobs_have_their_count() -> None:
    words = [b"REDRIVE", b"q", b"COUNT", b"3"]

    assert invoked(words) == [Note("redrive.invoke", queue="q", detail="count=3")]
    assert answered(words, 2) == [Note("redrive.ok", queue="q", detail="2")]


def test_orders_about_dead_jobs_have_rows() -> None:
    assert invoked([b"PURGE", b"q", b"BCAST"]) == [Note("purge.invoke", queue="q", cause="bcast")]
    assert invoked([b"PURGE", b"q", b"dead"]) == [Note("purge-dead.invoke", queue="q")]
    assert answered([b"REDRIVE", b"q"], 2) == [Note("redrive.ok", queue="q", detail="2")]
    assert lost([b"REDRIVE", b"q"], "quit") == [Note("redrive.unknown", queue="q", cause="quit")]
    ids = [JOB.encode(), OTHER.encode()]
    assert invoked([b"REDRIVE", *ids]) == [
        Note("redrive.invoke", JOB),
        Note("redrive.invoke", OTHER),
    ]
    assert answered([b"REDRIVE", ids[0]], 1) == [Note("redrive.ok", JOB, detail="1")]


def test_an_order_to_queue_all_jobs_of_a_queue_names_the_queue() -> None:
    words = [b"ENQUEUE", b"queue", b"mail", b"COUNT", b"2"]

    assert [(note.kind, note.job, note.queue) for note in invoked(words)] == [
        ("enqueue-queue.invoke", "", "mail")
    ]
    assert [note.kind for note in answered(words, 2)] == ["enqueue-queue.ok"]
    assert [note.kind for note in lost(words, "timeout")] == ["enqueue-queue.unknown"]
