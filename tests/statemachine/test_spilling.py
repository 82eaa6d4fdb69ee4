from collections.abc import Sequence

import attrs
import pytest

from disque_trio.statemachine import pressure, spilling
from disque_trio.statemachine.base import ACTIVE, DELIVERED, QUEUED, Spilled, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.endings import HEAD
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.memory import JOB_BYTES, SPILLED_BYTES, of_job, of_queue
from disque_trio.statemachine.messages import JobCopy, NeedJobs, YourJobs
from disque_trio.statemachine.records import DeleteJob, LoadJob
from tests.rig import N2, WALL, Rig, copy_of

KB = "b" * 1024
ROOMY = Config(spill_directory="/somewhere")


def spill(rig: Rig) -> list[Job]:
    """What a driver does, as far as the machine asks for it; whose bodies have gone."""
    if rig.node.memory.held <= rig.node.memory.spill_above:
        return []
    jobs = rig.machine.overflow()
    rig.machine.spilled(jobs, [Spilled(len(job.body or b"")) for job in jobs])
    rig.take()
    return jobs


def filled(count: int = 40, *, config: Config = ROOMY, peers: int = 0) -> tuple[Rig, list[Job]]:
    """A node with a long queue, and so little memory that bodies must go."""
    rig = Rig(config=config, peers=peers)
    jobs = [rig.add("REPLICATE", 1, body=KB) for _ in range(count)]
    squeeze(rig)
    return rig, jobs


def squeeze(rig: Rig, percent: int = 66) -> None:
    """Set the limit so that so much of it is used."""
    pressure.review(rig.node)
    limit = pressure.used(rig.node) * 100 // percent
    rig.request("CONFIG", "SET", "maxmemory", limit)
    rig.replies()


def spilled_of(jobs: Sequence[Job]) -> list[int]:
    return [number for number, job in enumerate(jobs) if isinstance(job.body, Spilled)]


def test_bodies_from_the_tail_of_the_queue_go_first() -> None:
    rig, jobs = filled()

    gone = spill(rig)

    assert gone == jobs[: -len(gone) - 1 : -1]
    assert spilled_of(jobs) == list(range(40 - len(gone), 40))
    assert rig.node.memory.held < rig.node.memory.spill_above


def test_the_account_counts_what_stands_for_a_body() -> None:
    rig, _ = filled()
    before = rig.node.memory.held

    gone = spill(rig)

    assert all(of_job(job) == JOB_BYTES + SPILLED_BYTES for job in gone)
    assert rig.node.memory.held == before - len(gone) * (1024 - SPILLED_BYTES)


def test_the_first_of_a_queue_stay() -> None:
    rig, jobs = filled()
    squeeze(rig, percent=5000)

    while spill(rig):
        pass

    assert spilled_of(jobs) == list(range(DEFAULTS.spill_ahead, 40))


def test_short_bodies_stay() -> None:
    rig = Rig(config=ROOMY)
    for _ in range(40):
        rig.add(body="b" * (spilling.MIN_BYTES - 1))
    squeeze(rig)

    assert not spill(rig)


def test_below_the_brim_everything_stays() -> None:
    rig, _ = filled()

    squeeze(rig, percent=64)

    assert not spill(rig)


def test_without_a_directory_everything_stays() -> None:
    rig, _ = filled(config=Config())

    assert not spill(rig)
    assert rig.machine.overflow() == []


@pytest.mark.pure
def test_so_much_goes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "BATCH_BYTES", 2000)
    rig, _ = filled()

    assert len(spill(rig)) == 2


def test_copies_for_others_and_delayed_jobs_go() -> None:
    rig = Rig(config=ROOMY, peers=1)
    copy = copy_of()
    copy.body = KB.encode()
    held = rig.hold(copy)
    delayed = rig.add("REPLICATE", 1, "DELAY", 60, body=KB)
    squeeze(rig)

    assert spill(rig) == [delayed]
    squeeze(rig, percent=5000)
    assert spill(rig) == [held]


def test_delivered_and_acknowledged_jobs_stay() -> None:
    rig = Rig(config=ROOMY, peers=1)
    jobs = [rig.add("REPLICATE", 1, body=KB) for _ in range(40)]
    for _ in jobs:
        rig.request("GETJOB", "FROM", "q")
    rig.replies()
    assert {job.state for job in jobs} == {ACTIVE}
    copy = copy_of()
    copy.body = KB.encode()
    rig.request("ACKJOB", rig.hold(copy).id)
    squeeze(rig)

    assert not spill(rig)


def test_a_job_that_was_delivered_goes_once_it_is_queued_again() -> None:
    rig, jobs = filled()
    for _ in jobs:
        rig.request("GETJOB", "FROM", "q")
    squeeze(rig)
    assert not spill(rig)

    rig.request("NACK", *[job.id for job in jobs])
    squeeze(rig)

    assert spill(rig)


def test_a_job_that_has_gone_is_not_asked_for() -> None:
    rig, jobs = filled()

    rig.request("DELJOB", *[job.id for job in jobs[20:]])
    squeeze(rig)

    assert not spill(rig)


def test_a_disk_that_fails_is_tried_again_after_a_while() -> None:
    rig, jobs = filled()
    chosen = rig.machine.overflow()
    rig.machine.spilled(chosen, ())
    assert not spilled_of(jobs)
    assert rig.machine.overflow() == []

    rig.advance(spilling.RETRY_EVERY)

    assert spill(rig) == chosen


# Spilled jobs are jobs.


def test_a_spilled_job_is_delivered_in_its_turn() -> None:
    rig, jobs = filled()
    spill(rig)

    for job in jobs:
        assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, job.body]]
        assert rig.ask("ACKJOB", job.id) == 1
    assert rig.node.memory.held == of_queue(rig.queue())


def test_a_spilled_job_can_be_looked_at() -> None:
    rig, jobs = filled()
    spill(rig)
    last = jobs[-1]

    shown = rig.ask("SHOW", last.id)
    assert isinstance(shown, list)
    assert shown[-1] is last.body
    assert rig.ask("QPEEK", "q", -1) == [[b"q", last.id, last.body]]


def test_a_spilled_job_is_given_to_others() -> None:
    rig, jobs = filled(peers=1)
    spill(rig)
    while jobs[-1].state == QUEUED and len(rig.queue()) > 1:
        rig.request("GETJOB", "FROM", "q")
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 1))

    messages = [message for _, message in rig.sent() if isinstance(message, YourJobs)]
    assert messages[0].copies[0].body is jobs[-1].body


def test_a_queue_s_stale_entry_does_not_keep_the_body() -> None:
    rig = Rig()
    jobs = [rig.add(body=KB) for _ in range(3)]

    rig.request("DELJOB", jobs[1].id)

    assert jobs[1].in_line
    assert jobs[1].body == KB[:HEAD].encode()


def test_a_full_node_still_spills_what_comes() -> None:
    rig, _ = filled()

    for _ in range(20):
        spill(rig)
        assert isinstance(rig.ask("ADDJOB", "q", KB, 0), Status)

    assert len(rig.queue()) == 60


def test_only_the_driver_s_kind_of_body_can_be_read() -> None:
    with pytest.raises(NotImplementedError):
        bytes(Spilled(4))


# While the journal is loaded.


def loading(count: int = 40) -> tuple[Rig, list[JobCopy]]:
    """A node that has read so many jobs, and has too little memory for them."""
    rig = Rig(config=attrs.evolve(ROOMY, appendonly=True))
    copies = [
        attrs.evolve(
            copy_of(b"D-bbbbbbbb-%024d-05a1" % number),
            body=KB.encode(),
            state=QUEUED,
            etime=WALL // 1000 + 600,
        )
        for number in range(count)
    ]
    rig.machine.load([LoadJob(copy) for copy in copies], rig.now)
    memory = rig.node.memory
    memory.spill_above = memory.held * 66 // 100
    return rig, copies


def put_aside(rig: Rig) -> list[bytes]:
    """What a driver does between two portions; whose bodies have gone."""
    jobs = rig.machine.overflow()
    rig.machine.spilled(jobs, [Spilled(len(job.body or b"")) for job in jobs])
    return [job.id for job in jobs]


def test_bodies_go_while_the_journal_is_loaded_the_last_ones_first() -> None:
    rig, copies = loading()
    before = rig.node.memory.held

    gone = put_aside(rig)

    ids = [copy.id for copy in copies]
    assert gone == ids[: -len(gone) - 1 : -1]
    assert rig.node.memory.held == before - len(gone) * (len(KB) - SPILLED_BYTES)
    check(rig.node)

    assert not rig.machine.loaded(rig.now, 30)
    check(rig.node)
    assert rig.machine.loaded(rig.now)
    check(rig.node)
    assert [id for id in ids if isinstance(rig.node.jobs[id].body, Spilled)] == gone[::-1]


def test_a_job_in_hand_goes_too_while_the_journal_is_loaded() -> None:
    rig, copies = loading()
    copies[-1].state, copies[-1].flags = ACTIVE, DELIVERED
    rig.machine.load([LoadJob(copies[-1])], rig.now)
    rig.node.memory.spill_above = rig.node.memory.held // 2

    assert copies[-1].id in put_aside(rig)


def test_what_later_records_replace_or_delete_is_let_off() -> None:
    rig, copies = loading(4)
    before = rig.node.memory.held

    rig.machine.load([LoadJob(copies[0]), DeleteJob(copies[1].id)], rig.now)
    copies[2].etime = 1
    rig.machine.load([LoadJob(copies[2]), DeleteJob(copies[2].id)], rig.now)

    assert rig.node.memory.held == before // 2
    check(rig.node)
    assert not {copies[1].id, copies[2].id} & set(rig.node.memory.spillable or ())
    assert list(rig.node.recovered) == [copies[0].id, copies[3].id], "in the old order"


def test_the_brim_is_kept_up_to_date_while_the_journal_is_loaded() -> None:
    rig, _ = loading()
    brim = rig.node.memory.spill_above
    rig.node.facts.traffic.unread = 1_000_000

    rig.machine.load((), rig.now)

    assert rig.node.memory.spill_above > brim
    assert rig.node.memory.rest > 1_000_000
