from collections.abc import Callable

import pytest

from disque_trio.pipeline.connector.releasing import release, undo
from disque_trio.pipeline.connector.rows import Row, Terms
from disque_trio.pipeline.errors import PipelineError
from tests.cluster.processes import SOON_S, Cluster, Fleet, becomes
from tests.pipeline.connector.desk import Desk, drain, lengths, name_of

HELD = Terms((b"DELAY", b"60", b"REPLICATE", b"2", b"RETRY", b"2"), 60)
FREE = Terms((b"REPLICATE", b"2"), None)


def rows(queue: str, count: int, terms: Terms = HELD) -> list[Row]:
    return [Row(queue.encode(), b"body %d" % n, terms) for n in range(count)]


def nothing_is_left(cluster: Cluster, jobs: dict[str, list[str]]) -> Callable[[], bool]:
    ids = [job.encode() for part in jobs.values() for job in part]
    return lambda: not any(cluster.holders(job) for job in ids)


def test_held_jobs_are_seen_once_they_are_released(desk: Desk, cluster: Cluster) -> None:
    task = desk.adder(cluster)

    task.add(rows("held", 700))
    assert sum(map(len, task.added.held.values())) == 700
    assert lengths(cluster, "held") == 0
    release(task.nodes, task.added.held)

    assert lengths(cluster, "held") == 700
    bodies = {job.body for job in drain(cluster, "held", 700)}
    assert bodies == {b"body %d" % n for n in range(700)}


def test_what_is_released_twice_is_queued_once(desk: Desk, cluster: Cluster) -> None:
    task = desk.adder(cluster)
    task.add(rows("twice", 20))

    release(task.nodes, task.added.held)
    release(task.nodes, task.added.held)

    assert lengths(cluster, "twice") == 20


def test_what_is_undone_leaves_nothing_on_any_node(desk: Desk, cluster: Cluster) -> None:
    task = desk.adder(cluster)
    task.add([*rows("undone", 20), *rows("undone", 20, FREE)])
    assert lengths(cluster, "undone") == 20

    undo(task.nodes, task.added)

    becomes(nothing_is_left(cluster, {**task.added.held}), True, SOON_S, "the held jobs are gone")
    becomes(nothing_is_left(cluster, {**task.added.free}), True, SOON_S, "the others are gone")
    assert lengths(cluster, "undone") == 0


def test_tasks_spread_over_the_nodes(desk: Desk, cluster: Cluster) -> None:
    tasks = [desk.adder(cluster, first) for first in range(3)]

    for task in tasks:
        task.add(rows("spread", 1))

    assert len({node for task in tasks for node in task.added.held}) == 3
    for task in tasks:
        undo(task.nodes, task.added)


def test_a_node_that_will_not_have_it_is_passed_over(desk: Desk, cluster: Cluster) -> None:
    cluster[0].client.call("PAUSE", "fussy", "in")
    task = desk.adder(cluster)

    task.add(rows("fussy", 10))

    assert sum(map(len, task.added.held.values())) == 10
    assert name_of(cluster[0]) not in task.added.held
    for server in cluster.servers:
        server.client.call("PAUSE", "fussy", "in")
    with pytest.raises(PipelineError, match=r"no node accepts the job: .* refuses a job: PAUSED"):
        task.add(rows("fussy", 10))


def test_what_no_node_would_do_is_an_error_at_once(desk: Desk, cluster: Cluster) -> None:
    with pytest.raises(PipelineError, match="refuses a job: ERR With RETRY"):
        desk.adder(cluster).add(rows("never", 1, Terms((b"RETRY", b"0", b"REPLICATE", b"2"), None)))


def test_what_was_added_beside_a_refused_job_is_known(desk: Desk, cluster: Cluster) -> None:
    task = desk.adder(cluster)
    refused = Row(b"beside", b"", Terms((b"RETRY", b"0", b"REPLICATE", b"2"), None))

    with pytest.raises(PipelineError, match="ERR With RETRY"):
        task.add([*rows("beside", 5), refused, *rows("beside", 5)])

    assert sum(map(len, task.added.held.values())) == 10
    undo(task.nodes, task.added)


def test_a_node_that_dies_loses_nothing(desk: Desk, fleet: Fleet) -> None:
    cluster = fleet.cluster(3)
    task = desk.adder(cluster, timeout=2)
    task.add(rows("deadly", 100))
    (used,) = task.added.held
    dead = next(server for server in cluster.servers if name_of(server) == used)

    dead.kill()
    task.add(rows("deadly", 50))
    release(desk.nodes(cluster, timeout=2), task.added.held)

    becomes(lambda: lengths(cluster, "deadly"), 150, SOON_S, "all are queued")
    assert task.unsure <= 50


def test_at_most_once_jobs_can_be_held(desk: Desk, cluster: Cluster) -> None:
    task = desk.adder(cluster)
    once = Terms((b"DELAY", b"60", b"RETRY", b"0", b"REPLICATE", b"1"), 60)

    task.add(rows("once", 5, once))
    assert lengths(cluster, "once") == 0
    release(task.nodes, task.added.held)

    assert len(drain(cluster, "once", 5)) == 5
