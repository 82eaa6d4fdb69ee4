"""How the waiting of several ADDJOBs of one client ends, and what others see of it."""

from disque_trio.statemachine.base import ACTIVE, QUEUED, WAIT_REPL, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import DelJob, SetAck
from tests.rig import N2, Rig
from tests.statemachine.adding import TIMED_OUT, add, confirm, ids
from tests.statemachine.replicating import GRAIN, REMOVED

# Time.


def test_each_has_its_own_time() -> None:
    rig = Rig(peers=1)
    slow, quick = add(rig, timeout=300), add(rig, timeout=100)

    rig.advance(100 + GRAIN)
    assert rig.replies() == []
    assert quick.id not in rig.node.jobs
    assert slow.state == WAIT_REPL

    rig.advance(200)
    assert rig.replies() == [TIMED_OUT, TIMED_OUT]
    assert rig.node.jobs == {}
    assert rig.machine.accepts(rig.client)


def test_one_whose_time_is_up_leaves_the_others_waiting() -> None:
    rig = Rig(peers=1)
    add(rig, timeout=30)
    second = add(rig)

    rig.advance(30 + GRAIN)
    assert rig.replies() == [TIMED_OUT]
    confirm(rig, second)

    assert rig.replies() == ids(second)
    assert list(rig.node.jobs) == [second.id]


def test_each_is_given_to_one_more_node_in_its_own_time() -> None:
    rig = Rig(peers=2)
    first = add(rig)
    rig.advance(30)
    second = add(rig)
    rig.sent()

    rig.advance(20 + GRAIN)
    assert (len(first.holders), len(second.holders)) == (3, 2)
    rig.advance(30)
    assert len(second.holders) == 3


def test_one_that_expires_is_answered_in_its_turn() -> None:
    rig = Rig(peers=1)
    first = add(rig)
    add(rig, "TTL", 1)

    rig.advance(1000 + GRAIN)
    assert rig.replies() == []
    confirm(rig, first)

    assert rig.replies() == [Status(first.id), REMOVED]


def test_idle_clients_are_closed_counting_from_the_last_answer() -> None:
    rig = Rig(peers=1, config=Config(timeout_s=10))
    first, second = add(rig), add(rig)
    rig.advance(9_000)
    confirm(rig, first)
    confirm(rig, second)

    rig.advance(9_000)
    assert rig.closed() == []
    rig.advance(2_000)
    assert rig.closed() == [rig.client]


# The end of jobs and clients.


def test_a_client_that_goes_leaves_none_of_them_behind() -> None:
    rig = Rig(peers=1)
    jobs = [add(rig) for _ in range(3)]
    confirm(rig, jobs[1])
    rig.sent()

    rig.disconnect(rig.client)

    assert rig.sent() == [(N2, DelJob(jobs[0].id)), (N2, DelJob(jobs[2].id))]
    assert list(rig.node.jobs) == [jobs[1].id]
    assert rig.client.pending_adds == []


def test_a_killed_client_gets_no_more_answers() -> None:
    rig = Rig(peers=1)
    jobs = [add(rig), add(rig)]

    rig.ask("CLIENT", "KILL", "ID", rig.client.id, client=rig.connect())

    assert rig.replies() == []
    assert not any(job.id in rig.node.jobs for job in jobs)
    assert not rig.offer("ADDJOB", "q", "body", 0)


def test_a_flush_answers_all_of_them() -> None:
    rig = Rig(peers=1)
    add(rig)
    add(rig)

    rig.ask("DEBUG", "FLUSHALL", client=rig.connect())

    assert rig.replies() == [REMOVED, REMOVED]


def test_one_that_is_acknowledged_elsewhere_has_succeeded_and_waits_for_its_turn() -> None:
    rig = Rig(peers=1)
    first, second = add(rig), add(rig)

    rig.message(N2, SetAck(second.id, 2))
    assert rig.replies() == []
    confirm(rig, first)

    assert rig.replies() == ids(first, second)


# What others see.


def test_a_monitor_sees_each_when_it_is_taken() -> None:
    rig = Rig(peers=1)
    monitor = rig.connect()
    rig.ask("MONITOR", client=monitor)

    add(rig)
    add(rig)

    assert len(rig.replies(monitor)) == 2


def test_client_reply_skip_suppresses_that_answer() -> None:
    rig = Rig(peers=1)
    rig.request("CLIENT", "REPLY", "SKIP")
    first, second = add(rig), add(rig)

    confirm(rig, second)
    confirm(rig, first)

    assert rig.replies() == ids(second)


def test_in_reply_mode_off_there_are_no_answers() -> None:
    rig = Rig(peers=1)
    rig.request("CLIENT", "REPLY", "OFF")
    first, second = add(rig), add(rig)
    assert rig.offer("ADDJOB", "q", "body", 0, "REPLICATE", 9)

    confirm(rig, second)
    confirm(rig, first)

    assert rig.replies() == []
    assert rig.machine.accepts(rig.client)


def test_they_are_counted_like_other_requests() -> None:
    rig = Rig(peers=1)
    before = rig.node.stats.commands_processed

    add(rig)
    add(rig)

    assert rig.node.stats.commands_processed == before + 2


def test_a_delayed_job_among_them_waits_for_its_time() -> None:
    rig = Rig(peers=1)
    first, second = add(rig), add(rig, "DELAY", 10)

    confirm(rig, second)
    confirm(rig, first)

    assert (first.state, second.state) == (QUEUED, ACTIVE)
