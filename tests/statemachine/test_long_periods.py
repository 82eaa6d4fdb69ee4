"""DELAY and RETRY of more than 24.8 days, which original nodes would misread."""

import pytest

from disque_trio.statemachine.base import ACTIVE, LONGEST_PERIOD_S, ORIGINAL_PERIOD_S, Failure
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import GotJob, NeedJobs, ReplJob, YourJobs
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire.commandlog import NoPlaceError, encode
from tests.rig import N2, Rig
from tests.statemachine.restoring import restarted

LONG = ORIGINAL_PERIOD_S + 1
TTL = LONGEST_PERIOD_S + 86_400
OURS = [("PRIORITY", 0), ("LIMIT", 3), ("SYNC", 1), ("UNIQUE", "key"), ("BACKOFF", 1)]


def refused(rig: Rig, *options: str | int) -> str:
    reply = rig.ask("ADDJOB", "q", "body", 10, *options)
    assert isinstance(reply, Failure), reply
    return reply.text.decode()


@pytest.mark.parametrize("ours", OURS)
def test_beside_an_option_of_ours_periods_are_up_to_ten_years(ours: tuple[str, str | int]) -> None:
    rig = Rig()

    job = rig.add("RETRY", LONGEST_PERIOD_S, "DELAY", LONGEST_PERIOD_S, "TTL", TTL, *ours)

    assert (job.retry, job.delay) == (LONGEST_PERIOD_S * 1000, LONGEST_PERIOD_S * 1000)
    assert job.requeue_at - rig.now.mono >= LONGEST_PERIOD_S * 1000


def test_longer_ones_are_refused() -> None:
    rig = Rig()

    assert "RETRY must be at most 316224000" in refused(
        rig, "RETRY", LONGEST_PERIOD_S + 1, "PRIORITY", 0
    )
    assert "DELAY must be at most 316224000" in refused(
        rig, "DELAY", LONGEST_PERIOD_S + 1, "TTL", TTL, "PRIORITY", 0
    )


def test_without_one_they_are_answered_as_by_the_original() -> None:
    rig = Rig()

    assert rig.add("RETRY", LONG).retry == ORIGINAL_PERIOD_S * 1000
    said = refused(rig, "DELAY", LONG, "TTL", TTL)
    assert "at most 2147483 seconds, or 316224000 beside an option" in said


@pytest.mark.parametrize("option", ["RETRY", "DELAY"])
def test_original_nodes_are_given_no_copy(option: str) -> None:
    rig = Rig(peers=2)

    said = refused(rig, option, LONG, "TTL", TTL, "REPLICATE", 2, "PRIORITY", 0)

    assert said.startswith("NOREPL")
    assert "DELAY or RETRY of more than 2147483 seconds" in said
    assert not rig.sent()
    rig.ask("ADDJOB", "q", "body", 10, option, LONG, "TTL", TTL, "REPLICATE", 1, "PRIORITY", 0)
    [job] = rig.node.jobs.values()
    rig.ask("ENQUEUE", job.id)
    rig.message(N2, NeedJobs(b"q", 5))
    assert not [m for _, m in rig.sent() if isinstance(m, YourJobs)]


def test_copies_go_to_the_nodes_that_can_count_them() -> None:
    rig = Rig(peers=2)
    rig.node.cluster.nodes[N2].capabilities = 511

    rig.request("ADDJOB", "q", "body", 0, "RETRY", LONG, "REPLICATE", 2, "PRIORITY", 0)

    [(link, message)] = [(link, m) for link, m in rig.sent() if isinstance(m, ReplJob)]
    assert link == N2
    [copy] = message.copies
    assert copy.retry == LONG
    rig.message(N2, GotJob(copy.id))
    assert rig.reply() is not None


def test_a_file_of_the_original_s_format_has_no_place_for_them() -> None:
    rig = Rig(config=Config(appendonly=True, aof_format="disque"))

    said = refused(rig, "RETRY", LONG, "SYNC", 1)
    assert said.startswith("ERR aof-format disque has no place")

    framed = Rig(config=Config(appendonly=True, trace_sample=0))
    framed.add("RETRY", LONG, "PRIORITY", 0)
    [record] = [each for box in framed.outboxes for each in box.records]
    with pytest.raises(NoPlaceError):
        encode(record)


def test_they_go_on_after_a_restart() -> None:
    rig = Rig(config=Config(appendonly=True, trace_sample=0))
    job = rig.add("DELAY", LONGEST_PERIOD_S, "TTL", TTL, "RETRY", LONG, "PRIORITY", 0)
    [record] = [each for box in rig.outboxes for each in box.records]
    assert isinstance(record, LoadJob)

    again = restarted(record, late=5000).node.jobs[job.id]

    assert (again.state, again.delay, again.retry) == (ACTIVE, job.delay, job.retry)
    assert again.requeue_at - 15_000 == LONGEST_PERIOD_S * 1000 - 5000
