import pytest

from disque_trio.statemachine.base import Status
from disque_trio.statemachine.messages import GotJob, Pause, ReplJob, YourJobs
from tests.rig import JOB, N2, Rig, copy_of


@pytest.mark.parametrize(("bits", "name"), [(1, b"in"), (2, b"out"), (3, b"all"), (7, b"all")])
def test_another_node_pauses_a_queue_that_is_created_for_it(bits: int, name: bytes) -> None:
    rig = Rig(peers=1)

    rig.message(N2, Pause(b"q", bits))

    assert rig.ask("PAUSE", "q", "state") == Status(name)
    assert rig.sent() == []


@pytest.mark.parametrize("bits", [0, 4])
def test_a_queue_is_not_created_to_be_unpaused(bits: int) -> None:
    rig = Rig(peers=1)

    rig.message(N2, Pause(b"q", bits))

    assert rig.node.queues == {}


def test_a_pause_replaces_the_one_before() -> None:
    rig = Rig(peers=1)
    rig.ask("PAUSE", "q", "in")

    rig.message(N2, Pause(b"q", 2))
    assert rig.ask("PAUSE", "q", "state") == Status(b"out")
    rig.message(N2, Pause(b"q", 0))
    assert rig.ask("PAUSE", "q", "state") == Status(b"none")


def test_clients_are_served_as_soon_as_deliveries_go_on() -> None:
    rig = Rig(peers=1)
    workers = [rig.connect() for _ in range(3)]
    rig.ask("PAUSE", "q", "out")
    for worker in workers:
        rig.request("GETJOB", "FROM", "q", client=worker)
    jobs = [rig.add("REPLICATE", 1) for _ in range(2)]
    assert [rig.replies(worker) for worker in workers] == [[], [], []]

    rig.message(N2, Pause(b"q", 0))

    assert [rig.replies(worker) for worker in workers] == [
        [[[b"q", jobs[0].id, b"body"]]],
        [[[b"q", jobs[1].id, b"body"]]],
        [],
    ]


def test_a_change_that_leaves_deliveries_paused_serves_no_client() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.ask("PAUSE", "q", "out")
    rig.request("GETJOB", "FROM", "q", client=worker)
    rig.add()

    rig.ask("PAUSE", "q", "all")
    assert rig.replies(worker) == []
    rig.ask("PAUSE", "q", "in")
    assert len(rig.replies(worker)) == 1


# The table of original 6.8, as far as other files do not have it.


def test_a_pause_of_input_does_not_keep_jobs_from_going_out() -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("PAUSE", "q", "in")

    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]


def test_a_pause_of_input_does_not_keep_clients_from_giving_jobs_back() -> None:
    rig = Rig()
    first, second = rig.add(), rig.add()
    rig.ask("GETJOB", "COUNT", 2, "FROM", "q")
    rig.ask("PAUSE", "q", "in")

    assert rig.ask("NACK", first.id) == 1
    assert rig.ask("ENQUEUE", second.id) == 1


def test_a_pause_of_output_does_not_keep_jobs_from_coming_in() -> None:
    rig = Rig(peers=1)
    rig.ask("PAUSE", "q", "out")

    rig.add("REPLICATE", 1)
    rig.message(N2, ReplJob((copy_of(),)))
    assert rig.sent() == [(N2, GotJob(JOB))]
    rig.message(N2, YourJobs((copy_of(),)))

    assert rig.ask("QLEN", "q") == 2
