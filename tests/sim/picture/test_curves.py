from disque_trio.sim.picture.curves import POINTS_MOST, Curves, is_at_least_once, thinned
from disque_trio.sim.picture.job_states import JobStates
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples

JOB = examples.job_id(1)


def drawn(rows: list[Row]) -> Curves:
    curves, states = Curves(), JobStates()
    for row in rows:
        curves.see(row, states.see(row))
    return curves


def test_a_job_is_unseen_until_it_is_delivered() -> None:
    curves = drawn(examples.calm())

    assert [count for _, count in curves.unseen] == [0, 1, 0]
    assert curves.unseen[1][0] < curves.unseen[2][0]


def test_a_job_is_unacked_until_somebody_acknowledges_it() -> None:
    curves = drawn(examples.calm())

    assert [count for _, count in curves.unacked] == [0, 1, 0]


def test_a_lost_job_stays_unseen_and_unacked() -> None:
    curves = drawn(examples.crash())

    assert curves.unseen[-1][1] == 1
    assert curves.unacked[-1][1] == 1
    assert curves.copies[-1][1:] == (0, 0, 0)


def test_an_expired_job_is_over() -> None:
    curves = drawn([
        Row(0, "hold", "n1", JOB, cause="add"),
        Row(1, "add.ok", "n1", JOB, client="p1"),
        Row(2, "drop", "n1", JOB, cause="expired"),
    ])  # fmt: skip

    assert curves.unseen == [(0, 0), (1, 1), (2, 0)]


def test_a_delivery_before_the_add_succeeds_counts() -> None:
    curves = drawn([
        Row(0, "hold", "n1", JOB, cause="add"),
        Row(1, "get.deliver", "n1", JOB, client="c1"),
        Row(2, "add.ok", "n1", JOB, client="p1"),
    ])  # fmt: skip

    assert curves.unseen == [(0, 0)]
    assert curves.unacked == [(0, 0), (2, 1)]


def test_jobs_of_at_most_one_delivery_are_left_out() -> None:
    once = examples.job_id(1, ttl=0x05A0)

    assert not is_at_least_once(once)
    assert drawn([Row(1, "add.ok", "n1", once, client="p1")]).unseen == [(0, 0)]


def test_copies_are_those_of_open_jobs() -> None:
    curves = drawn([
        Row(0, "hold", "n1", JOB, cause="add"),
        Row(1, "hold", "n2", JOB, cause="repljob"),
        Row(2, "add.ok", "n1", JOB, client="p1"),
        Row(3, "add.ok", "n1", examples.job_id(2), client="p1"),
        Row(4, "hold", "n3", JOB, cause="dummy"),
        Row(5, "acked", "n3", JOB, cause="ackjob"),
        Row(6, "crash", "n1", cause="kill"),
    ])  # fmt: skip

    assert curves.copies == [(0, -1, -1, -1), (2, 2, 2, 2), (3, 0, 2, 2), (5, 0, 0, 0)]


def test_few_points_are_kept_as_they_are() -> None:
    points = [(0, 0), (5, 1), (9, 0)]

    assert thinned(points, 10, worst=lambda point: point[1]) == points


def test_of_many_points_the_worst_and_the_last_are_kept() -> None:
    points = [(time, 99 if time == 5_003 else time % 2) for time in range(10_000)]

    kept = thinned(points, 10_000, worst=lambda point: point[1])

    assert len(kept) <= POINTS_MOST + 2
    assert (5_003, 99) in kept
    assert kept[-1] == (9_999, 1)
    assert kept == sorted(kept)
