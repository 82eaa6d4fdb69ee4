from disque_trio.statemachine.base import NULL_ARRAY
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.job import Job
from tests.rig import Rig


def filled(*queues: str, each: int = 3) -> Rig:
    """Queues with jobs named after them: a0, a1, ..."""
    rig = Rig()
    for number in range(each):
        for queue in queues:
            rig.add(queue=queue, body=f"{queue}{number}")
    return rig


def bodies(rig: Rig, *words: str | int) -> list[object]:
    reply = rig.ask("GETJOB", *words)
    assert isinstance(reply, list)
    return [job[2] for job in reply if isinstance(job, list)]


def test_every_queue_gives_one_job_a_round() -> None:
    rig = filled("a", "b", "c")

    assert bodies(rig, "COUNT", 5, "FROM", "a", "b", "c") == [b"a0", b"b0", b"c0", b"a1", b"b1"]


def test_rounds_go_on_until_all_queues_are_empty() -> None:
    rig = filled("a", "b", each=2)
    rig.add(queue="b", body="b2")

    assert bodies(rig, "COUNT", 50, "FROM", "a", "b") == [b"a0", b"b0", b"a1", b"b1", b"b2"]


def test_a_queue_that_is_named_twice_gives_two_a_round() -> None:
    rig = filled("a", "b")

    assert bodies(rig, "COUNT", 4, "FROM", "a", "a", "b") == [b"a0", b"a1", b"b0", b"a2"]


def test_only_one_job_is_taken_unless_more_are_asked_for() -> None:
    rig = filled("a", "b")

    assert bodies(rig, "FROM", "a", "b") == [b"a0"]


def test_a_queue_whose_turn_does_not_come_is_not_created() -> None:
    rig = filled("a")

    assert bodies(rig, "COUNT", 2, "FROM", "a", "x", "y") == [b"a0", b"a1"]
    assert set(rig.node.queues) == {b"a", b"x", b"y"}
    assert bodies(rig, "FROM", "a", "z") == [b"a2"]
    assert b"z" not in rig.node.queues


def test_a_queue_paused_in_output_is_as_good_as_empty() -> None:
    rig = filled("a", "b")
    rig.ask("PAUSE", "a", "out")

    assert bodies(rig, "COUNT", 2, "FROM", "a", "b") == [b"b0", b"b1"]
    assert rig.ask("GETJOB", "NOHANG", "FROM", "a") == NULL_ARRAY


def test_a_client_that_waited_gets_one_job_however_many_it_asked_for() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "COUNT", 10, "WITHCOUNTERS", "FROM", "q", client=worker)
    first = rig.add()
    rig.add()

    assert rig.reply(worker) == [
        [b"q", first.id, b"body", b"nacks", 0, b"additional-deliveries", 0]
    ]
    assert rig.ask("QLEN", "q") == 1


def test_clients_are_served_before_the_next_request_is_looked_at() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)

    rig.add()

    assert rig.ask("QLEN", "q") == 0
    assert worker.blocked is Blocked.NO


def test_a_job_that_comes_back_by_the_timer_serves_too() -> None:
    rig = Rig()
    job: Job = rig.add("DELAY", 5)
    rig.request("GETJOB", "FROM", "q")

    rig.advance(5_008)

    assert rig.reply() == [[b"q", job.id, b"body"]]
