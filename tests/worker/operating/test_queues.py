"""The figures of a queue, out of those of its nodes."""

import pytest

from disque_trio.observe.queue_stats import NOTHING
from disque_trio.worker.operating.queues import dead_of, is_most, restored_of


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([], (None, False)),
        ([None, None], (None, False)),
        ([0, 0, 0], (0, False)),
        ([0, 7, None], (7, False)),
        ([7, 7, 7], (7, False)),
        ([5, 7, 7], (7, True)),
        ([3, 3, 3, 3], (3, True)),
    ],
)
def test_dead_jobs_that_different_nodes_hold_are_counted_as_at_least_the_most(
    counts: list[int | None], found: tuple[int | None, bool]
) -> None:
    assert dead_of(counts) == found


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ([(None, 5)], (None, False)),
        ([(20, 50)], (20, False)),
        ([(20, 0), (0, 0), (0, 0)], (20, False)),
        ([(200, 0), (190, 0), (210, 0)], (210, True)),
        ([(0, 300), (200, 0), (200, 0)], (0, True)),
        ([(0, 10), (30, 0)], (20, True)),
    ],
)
def test_a_replica_of_a_job_that_is_queued_elsewhere_does_not_wait_for_its_retry(
    nodes: list[tuple[int | None, int]], found: tuple[int | None, bool]
) -> None:
    stats = [NOTHING._replace(restored=restored, length=length) for restored, length in nodes]

    assert restored_of(stats) == found


def test_jobs_that_several_nodes_count_may_be_counted_twice() -> None:
    assert [is_most(each) for each in ([], [7, 0, None], [3, 1])] == [False, False, True]
