import sys

import pytest

from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import QUEUED, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.memory import CLIENT_BYTES
from disque_trio.statemachine.messages import Enqueue, GotJob, ReplJob
from disque_trio.statemachine.pressure import OOM, QUEUES_PER_REVIEW, WANT, level
from tests.rig import CALM, ME, N2, N3, ONCE, Rig, copy_of
from tests.statemachine.squeezing import MB, set_level, squeezed

# The levels.


@pytest.mark.parametrize(("percent", "expected"), [(74, 0), (76, 1), (94, 1), (96, 2), (150, 2)])
def test_the_level_is_that_of_the_reference(percent: int, expected: int) -> None:
    rig = Rig()
    rig.add(body="b" * MB)
    pressure.review(rig.node)

    rig.request("CONFIG", "SET", "maxmemory", pressure.used(rig.node) * 100 // percent)

    assert level(rig.node) == expected


def test_the_percentages_are_of_what_the_process_leaves() -> None:
    rig = Rig(config=Config(maxmemory=50 * MB))
    rig.node.facts.process_bytes = 40 * MB
    rig.add(body="b" * 7 * MB)

    rig.advance(pressure.REVIEW_EVERY)
    rig.request("PING")
    rig.replies()
    assert level(rig.node) == 0

    rig.add(body="b" * MB)
    assert level(rig.node) == 1


def test_with_less_than_the_process_takes_nothing_is_accepted() -> None:
    rig = Rig(config=Config(maxmemory=10 * MB))
    rig.node.facts.process_bytes = 40 * MB
    pressure.review(rig.node)

    assert rig.ask("ADDJOB", "q", "b", 0) == OOM


def test_what_clients_are_owed_counts() -> None:
    rig = Rig(config=Config(maxmemory=100 * MB))
    rig.add()
    rig.node.facts.traffic.unsent = 96 * MB

    rig.advance(pressure.REVIEW_EVERY)
    rig.request("PING")

    assert level(rig.node) == WANT


# Beyond 75 %.


def test_under_pressure_new_jobs_go_to_others() -> None:
    rig = squeezed(1, peers=2)

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    (first, message), (second, _) = rig.sent()
    assert {first, second} == {N2, N3}
    assert isinstance(message, ReplJob)
    assert ME not in message.copies[0].holders
    job_id = message.copies[0].id
    rig.message(N2, GotJob(job_id))
    rig.message(N3, GotJob(job_id))
    assert rig.reply() == Status(job_id)
    assert job_id not in rig.node.jobs
    assert any(isinstance(message, Enqueue) for _, message in rig.sent())


def test_under_pressure_a_job_that_others_do_not_take_stays_after_all() -> None:
    rig = squeezed(1, peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1)
    assert rig.replies() == []
    ((asked, _),) = rig.sent()

    rig.advance(60)

    (told, message), *_ = rig.sent()
    assert told == asked
    assert isinstance(message, ReplJob)
    assert message.copies[0].holders == (asked, ME)
    reply = rig.reply()
    assert isinstance(reply, Status)
    job = rig.node.jobs[reply.text]
    assert job.state == QUEUED
    assert ME in job.holders
    assert len(job.holders) == 2


def test_under_pressure_its_own_copy_counts_after_a_while() -> None:
    rig = squeezed(1, peers=2)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)
    rig.advance(60)
    assert rig.replies() == []
    job_id = next(iter(rig.node.adding))

    rig.message(N2, GotJob(job_id))

    assert rig.reply() == Status(job_id)
    assert rig.node.jobs[job_id].state == QUEUED


def test_a_leaving_node_keeps_nothing_however_long_it_takes() -> None:
    rig = Rig(peers=2)
    rig.request("CLUSTER", "LEAVING", "yes")
    rig.replies()

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 1)
    rig.advance(60)

    assert rig.replies() == []


def test_under_pressure_a_job_stays_here_where_too_few_others_are_reachable() -> None:
    rig = squeezed(1, peers=1)

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    ((receiver, message),) = rig.sent()
    assert receiver == N2
    assert isinstance(message, ReplJob)
    assert ME in message.copies[0].holders


def test_under_pressure_a_node_alone_goes_on() -> None:
    rig = squeezed(1)

    assert rig.add().holders == (ME,)


def test_under_pressure_a_job_whose_copies_are_not_confirmed_stays_here_too() -> None:
    rig = squeezed(1, peers=2)

    job = rig.add("ASYNC", "REPLICATE", 2)

    assert ME in job.holders


def test_under_pressure_no_new_copies_are_taken() -> None:
    rig = Rig(peers=1)
    known = rig.hold(copy_of())
    set_level(rig, 1)
    rig.sent()

    rig.message(N2, ReplJob((copy_of(ONCE),), no_reply=False))
    rig.message(N2, ReplJob((copy_of(known.id),), no_reply=False))

    assert ONCE not in rig.node.jobs
    assert rig.sent() == [(N2, GotJob(known.id))]


@pytest.mark.parametrize(("wanted", "limit"), [(1, 10_000), (2, 2000)])
def test_under_pressure_idle_queues_go_sooner(wanted: int, limit: int) -> None:
    rig = squeezed(1)
    rig.request("GETJOB", "NOHANG", "FROM", "idle")
    set_level(rig, wanted)

    rig.advance(limit - 200)
    assert b"idle" in rig.node.queues

    rig.advance(500)
    assert b"idle" not in rig.node.queues
    assert b"large" in rig.node.queues


@pytest.mark.slow
def test_many_idle_queues_go_a_few_at_a_time() -> None:
    rig = squeezed(1)
    rig.node.facts.traffic.unsent = 50 * MB
    names = [f"idle{n}" for n in range(2 * QUEUES_PER_REVIEW)]
    rig.request("GETJOB", "NOHANG", "FROM", *names)
    set_level(rig, 1)

    rig.advance(10_000 + 150)
    assert QUEUES_PER_REVIEW / 2 < len(rig.node.queues) <= QUEUES_PER_REVIEW + 1

    rig.advance(500)
    assert list(rig.node.queues) == [b"large"]


def test_idle_queues_of_an_earlier_round_may_be_gone() -> None:
    rig = squeezed(1)
    rig.request("GETJOB", "NOHANG", "FROM", *[f"idle{n}" for n in range(2 * QUEUES_PER_REVIEW)])
    set_level(rig, 1)
    rig.advance(150)

    rig.request("DEBUG", "FLUSHALL")
    rig.advance(300)

    assert not rig.node.queues
    assert level(rig.node) == 0


def test_once_there_is_room_again_the_node_rests() -> None:
    rig = squeezed(1)

    rig.request("CONFIG", "SET", "maxmemory", "1gb")
    rig.advance(2 * pressure.REVIEW_EVERY)

    assert not rig.node.memory.slot


def test_a_backlog_that_has_gone_leaves_neither_empty_slots_nor_a_large_table() -> None:
    rig = Rig(config=CALM)
    body = b"x" * 20_000
    for _ in range(1000):
        rig.request("ADDJOB", "q", body, 0, "RETRY", 100)
        rig.advance(20)
    size, slots = sys.getsizeof(rig.node.jobs), len(rig.node.timers)
    assert slots > 500
    ids = list(rig.node.jobs)
    rig.ask("GETJOB", "COUNT", 1000, "FROM", "q")

    rig.request("ACKJOB", *ids[:500])
    rig.advance(200)
    rig.ask("PING")
    assert len(rig.node.timers) > slots / 4
    rig.request("ACKJOB", *ids[500:])
    rig.advance(200)
    rig.ask("PING")

    assert len(rig.node.timers) < 20
    assert sys.getsizeof(rig.node.jobs) < size / 10
    rig.request("ADDJOB", "q", body, 0)
    assert len(rig.node.jobs) == 1


def test_of_a_backlog_that_has_gone_but_for_some_jobs_these_stay_as_they_are() -> None:
    rig = Rig(config=CALM)
    for _ in range(1000):
        rig.request("ADDJOB", "q", b"x" * 20_000, 0, "RETRY", 1)
    ids = list(rig.node.jobs)[:990]
    rig.ask("GETJOB", "COUNT", 990, "FROM", "q")

    rig.request("ACKJOB", *ids)
    rig.advance(200)
    rig.ask("PING")

    assert len(rig.node.jobs) == 10
    rig.ask("GETJOB", "COUNT", 10, "FROM", "q")
    assert rig.queue().length == 0
    rig.advance(3000)
    assert rig.queue().length == 10


def test_what_a_node_weighs_is_known_between_two_reviews() -> None:
    rig = Rig()
    before = pressure.weighed(rig.node)

    rig.connect()

    assert pressure.weighed(rig.node) == before + CLIENT_BYTES
