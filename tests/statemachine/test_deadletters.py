"""Dead jobs on one node: when a job dies, what can be done with it, how it lives again."""

import pytest

from disque_trio.statemachine.base import (
    ACTIVE,
    DEAD,
    QUEUED,
    Failure,
    Spilled,
    Status,
)
from disque_trio.statemachine.events import Cause, Kind
from disque_trio.statemachine.extensions import Extensions
from tests.rig import Rig
from tests.statemachine.burying import (
    DAY,
    WEEK,
    got,
    several,
    shown,
    with_dead,
)
from tests.statemachine.commands.informed import fields_of

# When a job dies.


def test_a_job_is_delivered_as_often_as_its_limit_says() -> None:
    rig = Rig()
    job = rig.add("LIMIT", 3, "RETRY", 10)
    assert got(rig) == job.id
    rig.ask("NACK", job.id)
    assert got(rig) == job.id
    rig.advance(11_000)
    assert got(rig) == job.id

    rig.advance(11_000)

    assert job.state == DEAD
    assert got(rig) is None
    assert shown(rig, job)[b"reason"] == b"LIMIT 3: delivered 3 times"
    assert (job.nacks, job.deliveries) == (1, 2)


def test_a_nack_may_be_the_last() -> None:
    rig = Rig()
    job = rig.add("LIMIT", 1)
    got(rig)

    assert rig.ask("NACK", job.id) == 1

    assert job.state == DEAD


def test_what_is_not_counted_does_not_kill() -> None:
    rig = Rig()
    job = rig.add("LIMIT", 1)

    for _ in range(3):
        assert got(rig) == job.id
        assert rig.ask("RELEASE", job.id) == 1

    assert job.state == QUEUED
    got(rig)
    assert rig.ask("ENQUEUE", job.id) == 1
    assert job.state == DEAD


def test_a_job_that_waits_in_its_queue_stays_alive() -> None:
    rig = Rig()
    job = rig.add("LIMIT", 1, "RETRY", 1)

    rig.advance(60_000)

    assert job.state == QUEUED


def test_while_the_queue_is_paused_it_does_not_die() -> None:
    rig = Rig()
    job = rig.add("LIMIT", 1, "RETRY", 10)
    got(rig)
    rig.ask("PAUSE", "q", "in")

    rig.advance(15_000)

    assert job.state == ACTIVE
    rig.ask("PAUSE", "q", "none")
    rig.advance(15_000)
    assert job.state == DEAD


@pytest.mark.parametrize("is_taken", [True, False])
def test_nack_dead_buries_at_once(is_taken: bool) -> None:
    rig = Rig()
    job = rig.add()
    if is_taken:
        got(rig)

    assert rig.ask("NACK", job.id, "dead", "no such user") == 1

    assert (job.state, job.nacks) == (DEAD, 1)
    assert shown(rig, job)[b"reason"] == b"no such user"
    assert shown(rig, job)[b"state"] == b"dead"
    assert rig.ask("NACK", job.id, "DEAD", "again") == 0
    assert got(rig) is None


def test_a_reason_is_not_needed() -> None:
    _, job = with_dead(reason="")
    assert job.dead_state.reason == b""


def test_who_has_lost_a_job_cannot_bury_it() -> None:
    rig = Rig()
    job = rig.add("RETRY", 1)
    reply = rig.ask("GETJOB", "WITHMETA", "FROM", "q")
    assert isinstance(reply, list)
    [fields] = reply
    assert isinstance(fields, list)
    token = fields[fields.index(b"token") + 1]
    assert isinstance(token, bytes)
    rig.advance(2000)
    rig.ask("GETJOB", "WITHMETA", "FROM", "q")

    assert rig.ask("NACK", job.id + b"@" + token, "DEAD") == 0

    assert job.state == ACTIVE


def test_an_at_most_once_job_may_be_buried_and_is_kept_when_memory_is_short() -> None:
    rig = Rig()
    job = rig.add("RETRY", 0, "REPLICATE", 1)
    got(rig)

    assert rig.ask("NACK", job.id, "DEAD") == 1

    assert (job.state, list(rig.node.memory.evictable)) == (DEAD, [])
    assert rig.ask("REDRIVE", job.id) == 1
    assert got(rig) == job.id
    assert rig.ask("NACK", job.id) == 0
    assert list(rig.node.memory.evictable) == [job.id]


# What can be done with it.


def test_a_dead_job_is_not_queued_by_any_other_command() -> None:
    rig, job = with_dead()

    for command in ("NACK", "ENQUEUE", "DEQUEUE", "RELEASE"):
        assert rig.ask(command, job.id) == 0
    assert rig.ask("WORKING", job.id) == Failure(
        b"DEAD The job is dead: it is not delivered until REDRIVE queues it again."
    )
    rig.advance(DAY)
    assert job.state == DEAD


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB"])
def test_it_can_be_ended(command: str) -> None:
    rig, job = with_dead()

    assert rig.ask(command, job.id) == 1

    assert (rig.node.jobs, rig.node.dead) == ({}, {})


def test_it_lives_on_for_dead_letter_ttl_from_its_death() -> None:
    rig, job = with_dead("TTL", 60)
    rig.advance(WEEK - 10)
    assert job.state == DEAD

    rig.advance(20)

    assert not rig.node.jobs


def test_dead_letter_ttl_can_be_set() -> None:
    rig = Rig()
    assert rig.ask("CONFIG", "SET", "dead-letter-ttl", 5) == Status(b"OK")
    job = rig.add()
    rig.ask("NACK", job.id, "DEAD")

    assert shown(rig, job)[b"ttl"] == 5
    assert rig.ask("CONFIG", "GET", "dead-letter-ttl") == [b"dead-letter-ttl", b"5"]
    assert isinstance(rig.ask("CONFIG", "SET", "dead-letter-ttl", 0), Failure)


def test_waitjob_says_that_it_is_dead() -> None:
    rig = Rig()
    job = rig.add()
    waiting = rig.connect()
    rig.request("WAITJOB", job.id, client=waiting)

    rig.ask("NACK", job.id, "DEAD")

    assert rig.reply(waiting) == b"dead"
    assert rig.ask("WAITJOB", job.id) == b"dead"


def test_it_keeps_its_key_until_it_has_ended() -> None:
    rig, job = with_dead("UNIQUE", "k", "KEEP", 5)
    again = ("ADDJOB", "q", "other", 0, "UNIQUE", "k", "IFEXISTS", "reject")

    assert rig.ask(*again) == Failure(b"DUPLICATE %b dead" % job.id)
    rig.ask("ACKJOB", job.id)
    assert rig.ask(*again) == Failure(b"DUPLICATE %b done-kept" % job.id)
    rig.advance(6000)
    assert isinstance(rig.ask(*again), Status)


def test_the_key_of_one_that_expires_is_kept_as_of_any() -> None:
    rig, job = with_dead("UNIQUE", "k", "KEEP", 5)
    rig.advance(WEEK)
    again = ("ADDJOB", "q", "other", 0, "UNIQUE", "k", "IFEXISTS", "reject")

    assert rig.ask(*again) == Failure(b"DUPLICATE %b done-kept" % job.id)


def test_its_body_may_be_spilled() -> None:
    rig = Rig()
    rig.node.memory.spillable = {}
    job = rig.add(body="x" * 600)
    rig.ask("NACK", job.id, "DEAD")
    assert list(rig.node.memory.spillable) == [job.id]
    rig.node.memory.spill_above = 0

    assert rig.machine.overflow() == [job]

    rig.machine.spilled([job], [Spilled(600)])
    rig.node.memory.spill_above = 1 << 60
    rig.node.memory.spillable = None
    assert rig.ask("REDRIVE", job.id) == 1


# What is told.


def test_qstat_and_info_count_the_dead() -> None:
    rig, _ = several(2)

    stat = rig.ask("QSTAT", "q")
    assert isinstance(stat, list)
    assert stat[stat.index(b"dead") + 1] == 2
    info = rig.ask("INFO", "jobs")
    assert isinstance(info, bytes)
    assert b"dead_jobs:2\r\n" in info
    assert b"dead_jobs_by_queue:" in info


def test_info_names_the_queues_with_most_dead_jobs_in_plain_letters() -> None:
    rig = Rig()
    names = [b"mails", b"mails", b"a b,c=\xff", *(b"q%d" % number for number in range(12))]
    for name in names:
        reply = rig.ask("ADDJOB", name, "body", 0)
        assert isinstance(reply, Status)
        rig.ask("NACK", reply.text, "DEAD")

    fields = fields_of(rig, "jobs")

    assert fields["dead_jobs"] == "15"
    named = fields["dead_jobs_by_queue"].split(",")
    assert named[:3] == ["mails=2", "a?b?c??=1", "q0=1"]
    assert len(named) == 10


def test_a_queue_that_has_nothing_but_dead_jobs_has_figures() -> None:
    rig, _ = with_dead()
    rig.advance(DAY)
    assert not rig.node.queues

    stat = rig.ask("QSTAT", "q")

    assert isinstance(stat, list)
    assert stat[stat.index(b"dead") + 1] == 1
    assert stat[stat.index(b"len") + 1] == 0


def test_jscan_finds_the_dead() -> None:
    rig, job = with_dead()
    rig.add()

    assert rig.ask("JSCAN", "STATE", "dead") == [b"0", [Status(job.id)]]


def test_a_trace_tells_of_death_and_redrive() -> None:
    rig = Rig()
    rig.node.trace = []
    job = rig.add("LIMIT", 1)
    got(rig)
    rig.ask("NACK", job.id)
    rig.ask("REDRIVE", job.id)
    rig.ask("NACK", job.id, "DEAD")

    seen = [(each.kind, each.cause) for each in rig.node.trace]

    assert seen == [
        (Kind.HOLD, Cause.ADD),
        (Kind.QUEUE, Cause.FIRST),
        (Kind.UNQUEUE, Cause.SERVED),
        (Kind.SERVE, Cause.SERVED),
        (Kind.DEAD, Cause.NACK),
        (Kind.REDRIVE, Cause.REDRIVEN),
        (Kind.QUEUE, Cause.REDRIVEN),
        (Kind.UNQUEUE, Cause.BURIED),
        (Kind.DEAD, Cause.NACK_DEAD),
    ]


def test_the_account_has_what_a_dead_job_weighs() -> None:
    plain = Rig()
    before = plain.add()
    alive = plain.node.memory.held
    plain.ask("NACK", before.id, "DEAD", "x" * 100)

    assert plain.node.memory.held - alive > 600
    assert before.extensions is not None
    assert before.extensions.weight == plain.node.memory.held - alive


def test_jobs_with_the_same_options_do_not_die_together() -> None:
    rig = Rig()
    one, other = rig.add("LIMIT", 1), rig.add("LIMIT", 1)
    assert one.extensions is other.extensions

    rig.ask("NACK", one.id, "DEAD")

    assert other.extensions == Extensions(limit=1)
    assert other.state == QUEUED
