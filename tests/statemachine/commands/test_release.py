"""RELEASE with DELAY: what is asked, and the errors."""

import pytest

from disque_trio.statemachine.base import ACTIVE, QUEUED, Failure
from tests.rig import CALM, Rig
from tests.statemachine.commands.test_nack import delivered, wait_of


@pytest.mark.parametrize(("word", "millis"), [("1", 1000), ("0.001", 1), ("2.5", 2500)])
def test_the_job_waits_and_is_counted_as_a_snooze_only(word: str, millis: int) -> None:
    rig = Rig()
    job = delivered(rig, "LIMIT", 1, "BACKOFF", 100)

    assert rig.ask("RELEASE", job.id, "delay", word) == 1

    assert (wait_of(rig, job), job.state) == (millis, ACTIVE)
    assert (job.nacks, job.deliveries, job.snoozes) == (0, 0, 1)


def test_delay_0_queues_at_once_and_counts_nothing() -> None:
    rig = Rig()
    job = delivered(rig)

    assert rig.ask("RELEASE", job.id, "DELAY", 0) == 1
    assert (job.state, job.snoozes) == (QUEUED, 0)


def test_each_counts_and_the_next_consumer_is_told() -> None:
    rig = Rig(config=CALM)
    job = rig.add()
    for snoozes in range(3):
        reply = rig.ask("GETJOB", "WITHMETA", "FROM", "q")
        assert isinstance(reply, list)
        assert isinstance(reply[0], list)
        told = dict(zip(reply[0][3::2], reply[0][4::2], strict=True))
        assert told.get(b"snoozes", 0) == snoozes
        assert told[b"attempt"] == 1
        rig.ask("RELEASE", job.id, "DELAY", 1)
        rig.advance(1010)

    shown = rig.ask("SHOW", job.id)
    assert isinstance(shown, list)
    assert shown[-2:] == [b"snoozes", 3]


def test_a_snoozed_job_weighs_what_it_has_more_until_it_ends() -> None:
    rig = Rig(config=CALM)
    before = rig.node.memory.held
    job = rig.add("REPLICATE", 1)
    plain = rig.node.memory.held
    rig.ask("GETJOB", "FROM", "q")

    rig.ask("RELEASE", job.id, "DELAY", 1)
    assert rig.node.memory.held > plain

    rig.ask("ACKJOB", job.id)
    assert rig.node.memory.held - before < plain - before


def test_who_has_lost_the_job_cannot_postpone_it() -> None:
    rig = Rig()
    job = rig.add()
    taken = rig.ask("GETJOB", "WITHMETA", "FROM", "q")
    assert isinstance(taken, list)
    assert isinstance(taken[0], list)
    token = taken[0][-1]
    assert isinstance(token, bytes)
    rig.ask("RELEASE", job.id)
    rig.ask("GETJOB", "WITHMETA", "FROM", "q")

    assert rig.ask("RELEASE", job.id + b"@" + token, "DELAY", 5) == 0
    assert job.snoozes == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["DELAY"], b"ERR syntax error: DELAY has no value behind it"),
        (["DELAY", 1, "DELAY", 1], b"ERR syntax error: DELAY is given twice"),
        (
            ["DELAY", 1, "DEAD"],
            b"ERR syntax error: 'DEAD' is not an option of RELEASE (did you mean 'DELAY'?)",
        ),
        *[
            (
                ["DELAY", word],
                b"ERR DELAY must be seconds from 0 to 316224000, with up to three decimals: '%b'"
                % word.encode(),
            )
            for word in ("", "-1", "x", "1.2345", "316224001")
        ],
    ],
)
def test_what_is_wrong_with_a_delay_is_told_and_changes_nothing(
    words: list[str | int], error: bytes
) -> None:
    rig = Rig()
    job = delivered(rig)

    assert rig.ask("RELEASE", job.id, *words) == Failure(error)
    assert (job.snoozes, job.requeue_at > rig.now.mono + 5000) == (0, True)


def test_a_delay_without_a_job_is_refused() -> None:
    error = b"ERR syntax error: DELAY has no job ids before it: RELEASE id [DELAY sec]"
    assert Rig().ask("RELEASE", "DELAY", 5) == Failure(error)


def test_a_delay_beyond_the_life_of_one_job_is_refused_for_all() -> None:
    rig = Rig()
    long, short = delivered(rig), delivered(rig, "TTL", 60)

    assert rig.ask("RELEASE", long.id, short.id, "DELAY", 60) == Failure(
        b"ERR DELAY is longer than the life of %b, which would expire before it is queued again:"
        b" DELAY is 60000 ms, its TTL ends in 60000 ms" % short.id
    )
    assert (long.snoozes, short.snoozes) == (0, 0)


def test_only_what_a_worker_has_is_postponed() -> None:
    rig = Rig()
    once = delivered(rig, "RETRY", 0, "REPLICATE", 1)
    waits = delivered(rig)
    rig.ask("NACK", waits.id, "DELAY", 5)
    new, delayed = rig.add(), rig.add("DELAY", 5)

    ids = [each.id for each in (once, waits, new, delayed)]
    assert rig.ask("RELEASE", *ids, "DELAY", 60) == 0
    assert [each.snoozes for each in (once, waits, new, delayed)] == [0] * 4
    assert wait_of(rig, waits) == wait_of(rig, delayed) == 5000


def test_a_redriven_job_is_as_new() -> None:
    rig = Rig(config=CALM)
    job = delivered(rig)
    rig.ask("RELEASE", job.id, "DELAY", 1)
    rig.ask("NACK", job.id, "DEAD", "why")
    assert job.snoozes == 1

    rig.ask("REDRIVE", job.id)

    assert (job.state, job.snoozes) == (QUEUED, 0)
