from disque_trio.statemachine.base import NULL_ARRAY, Failure, Status
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import YourJobs
from tests.rig import JOB, N2, Rig, copy_of

GRAIN = 8
LEAVING = Failure(b"LEAVING This node is leaving the cluster, please connect to a different one")


def test_a_waiting_client_is_held_back_until_it_is_answered() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)
    assert worker.blocked is Blocked.JOBS
    assert not rig.machine.accepts(worker)

    job = rig.add()

    assert rig.replies(worker) == [[[b"q", job.id, b"body"]]]
    assert rig.machine.accepts(worker)
    assert rig.outboxes[-1].resumed == [worker]


def test_waiting_clients_are_served_in_order_of_arrival() -> None:
    rig = Rig()
    first, second = rig.connect(), rig.connect()
    rig.request("GETJOB", "FROM", "q", client=first)
    rig.request("GETJOB", "FROM", "q", client=second)

    job = rig.add()
    assert rig.replies(first) == [[[b"q", job.id, b"body"]]]
    assert rig.replies(second) == []

    job = rig.add()
    assert rig.replies(second) == [[[b"q", job.id, b"body"]]]


def test_a_served_client_waits_on_none_of_its_queues() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", "r", "q", client=worker)
    assert [rig.queue(name).waiting for name in (b"q", b"r")] == [{worker.id: worker}] * 2

    rig.add(queue="r")

    assert worker.queues == ()
    assert [rig.queue(name).waiting for name in (b"q", b"r")] == [{}, {}]


def test_a_wait_ends_with_a_null_array_when_nothing_came_in_time() -> None:
    rig = Rig()
    rig.request("GETJOB", "TIMEOUT", 500, "FROM", "q")

    rig.advance(499)
    assert rig.replies() == []
    rig.advance(GRAIN)
    assert rig.reply() == NULL_ARRAY
    assert rig.queue().waiting == {}


def test_a_wait_without_a_timeout_has_no_end() -> None:
    rig = Rig()
    rig.request("GETJOB", "TIMEOUT", 0, "FROM", "q")

    rig.advance(1_000_000)

    assert rig.replies() == []


def test_a_later_wait_is_not_cut_short_by_an_earlier_one() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "TIMEOUT", 1000, "FROM", "q", client=worker)
    rig.add()
    rig.request("GETJOB", "FROM", "q", client=worker)
    rig.replies(worker)

    rig.advance(10_000)
    assert rig.replies(worker) == []

    rig.add()
    rig.request("GETJOB", "TIMEOUT", 5000, "FROM", "q", client=worker)
    rig.replies(worker)
    rig.advance(4999)
    assert rig.replies(worker) == []
    rig.advance(GRAIN)
    assert rig.reply(worker) == NULL_ARRAY


def test_a_client_that_goes_waits_no_more() -> None:
    rig = Rig()
    gone, next_one = rig.connect(), rig.connect()
    rig.request("GETJOB", "FROM", "q", client=gone)
    rig.request("GETJOB", "FROM", "q", client=next_one)
    rig.disconnect(gone)

    rig.add()

    assert rig.replies(gone) == []
    assert len(rig.replies(next_one)) == 1


def test_a_leaving_node_answers_clients_that_wait_for_jobs() -> None:
    rig = Rig(peers=1)
    worker, producer = rig.connect(), rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)
    rig.request("ADDJOB", "q", "body", 0, client=producer)

    rig.request("CLUSTER", "LEAVING", "yes")

    assert rig.reply(worker) == LEAVING
    assert rig.replies(producer) == []
    assert producer.blocked is Blocked.COPIES


def test_a_flush_answers_all_waiting_clients() -> None:
    rig = Rig(peers=1)
    worker, producer = rig.connect(), rig.connect()
    rig.request("GETJOB", "FROM", "r", client=worker)
    rig.request("ADDJOB", "q", "body", 0, client=producer)

    assert rig.ask("DEBUG", "FLUSHALL") == Status(b"OK")

    assert rig.reply(worker) == NULL_ARRAY
    assert rig.reply(producer) == Failure(
        b"NOREPL job removed (expired?) before the requested replication level was achieved"
    )


def test_a_blocked_client_is_never_idle() -> None:
    rig = Rig(config=Config(timeout_s=10))
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)

    rig.advance(60_000)

    assert rig.closed() == [rig.client]


def test_idleness_begins_anew_after_a_wait() -> None:
    rig = Rig(config=Config(timeout_s=10))
    served, late = rig.connect(), rig.connect()
    rig.request("GETJOB", "FROM", "q", client=served)
    rig.request("GETJOB", "TIMEOUT", 60_000, "FROM", "r", client=late)
    rig.advance(60_000 + GRAIN)
    rig.client = rig.connect()
    rig.add()
    assert len(rig.replies(served)) == len(rig.replies(late)) == 1

    rig.advance(9_000)
    assert served not in rig.closed()
    assert late not in rig.closed()
    rig.advance(2_000)
    assert served in rig.closed()
    assert late in rig.closed()


def test_one_import_of_many_jobs_serves_many() -> None:
    rig = Rig(peers=1)
    workers = [rig.connect() for _ in range(3)]
    for worker in workers:
        rig.request("GETJOB", "COUNT", 5, "FROM", "q", client=worker)
    ids = [JOB[:11] + b"%024d" % n + JOB[35:] for n in range(2)]

    rig.message(N2, YourJobs(tuple(copy_of(each) for each in ids)))

    assert [rig.replies(worker) for worker in workers] == [
        [[[b"q", ids[0], b"body"]]],
        [[[b"q", ids[1], b"body"]]],
        [],
    ]
