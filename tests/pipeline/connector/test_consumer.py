import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from disque_trio.client import Command, Meta
from disque_trio.client.leases import Jobs
from disque_trio.client.records import Job as Delivery
from disque_trio.client.refusals import refused
from disque_trio.pipeline.connector import consumer
from disque_trio.pipeline.connector.consumer import Consumer, Job
from disque_trio.pipeline.connector.nodes import Nodes
from disque_trio.pipeline.connector.offsets import LostJobsError
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine.base import Failure
from tests.cluster.processes import SOON_S, Cluster, Fleet, Server, eventually
from tests.pipeline.connector.desk import Desk, lengths, name_of


def ids(jobs: Jobs) -> list[str]:
    return [job for part in jobs.values() for job in part]


def add(server: Server, queue: str, count: int, *terms: str | int) -> list[str]:
    return [server.client.add(queue, f"body {n}", *terms).decode() for n in range(count)]


def test_a_node_that_reports_no_time_of_creation_reports_the_age() -> None:
    meta = Meta(attempt=1, priority=0, age=60.0, lease=9.0, ttl=60.0, token="t")

    job = consumer._from("a:1", "q", b"b", Delivery("D-1", "q", b"b", meta=meta))

    assert job.created is not None
    assert abs(job.created / 1e6 - (time.time() - 60)) < 30
    assert consumer._from("a:1", "q", b"b", Delivery("D-1", "q", b"b")).created is None


@contextmanager
def without(server: Server) -> Iterator[None]:
    """While a server stands still."""
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


def test_jobs_are_taken_from_all_nodes(desk: Desk, cluster: Cluster) -> None:
    added = [job for server in cluster.servers for job in add(server, "all", 10, "REPLICATE", 1)]
    consumer = desk.consumer(cluster, "all")

    taken: list[str] = []

    def all_are_here() -> bool:  # some may be on their way between two nodes
        jobs = consumer.take(100, waits=False)
        taken.extend(ids(jobs))
        assert consumer.acknowledge(jobs)
        return len(taken) == 30

    eventually(all_are_here, SOON_S, "all 30 jobs are taken")

    assert sorted(taken) == sorted(added)
    assert not consumer.jobs


def test_no_more_is_taken_than_is_asked_for(desk: Desk, cluster: Cluster) -> None:
    add(cluster[0], "some", 30)
    consumer = desk.consumer(cluster, "some")

    taken = consumer.take(20, waits=False)

    assert len(ids(taken)) == 20
    assert consumer.backlog() == 10


def test_no_more_is_taken_once_there_are_bytes_enough(desk: Desk, cluster: Cluster) -> None:
    for _ in range(4):
        cluster[0].client.add("long", b"x" * 1000)
    consumer = desk.consumer(cluster, "long", maxBytesPerTrigger=1500)

    taken = consumer.take(1, waits=False)
    assert len(ids(taken)) == 1
    # Within one request there is no telling how long they are.
    assert len(ids(consumer.take(10, waits=False))) == 3


def test_a_job_that_comes_while_it_waits_is_taken(desk: Desk, cluster: Cluster) -> None:
    consumer = desk.consumer(cluster, "later", wait=2000)
    assert not consumer.take(10, waits=False)
    cluster[1].client.add("later", "late", "DELAY", 1)

    eventually(lambda: consumer.take(10, waits=True), SOON_S, "the job is taken")


def test_a_binary_body_is_itself(desk: Desk, cluster: Cluster) -> None:
    body = bytes(range(256))
    cluster[0].client.add("binary", body)
    consumer = desk.consumer(cluster, "binary")

    (job,) = ids(consumer.take(1, waits=False))

    assert consumer.jobs[job].body == body


def test_a_job_that_is_held_is_not_taken_again(desk: Desk, cluster: Cluster) -> None:
    (job,) = add(cluster[0], "again", 1)
    consumer = desk.consumer(cluster, "again")
    assert ids(consumer.take(1, waits=False)) == [job]

    cluster[0].client.call("NACK", job)

    assert not consumer.take(1, waits=False)
    assert consumer.duplicates == 1


def test_what_was_taken_before_a_node_refuses_is_handed_out_first(
    desk: Desk, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs with RETRY 0 would be lost with it."""
    consumer = desk.consumer(cluster, "refused")
    *_, last = consumer.nodes.live()
    giver = next(server for server in cluster.servers if name_of(server) != last)
    added = add(giver, "refused", 3, "RETRY", 0, "REPLICATE", 1)
    ask = Nodes.ask

    def refuse(nodes: Nodes, name: str, asked: Sequence[Command[Any]]) -> list[Any]:
        if name == last and asked[0].name == "GETJOB":
            return [refused(Failure(b"ERR not today"), "GETJOB")]
        return ask(nodes, name, asked)

    monkeypatch.setattr(Nodes, "ask", refuse)
    taken = consumer.take(10, waits=False)

    assert ids(taken) == added
    assert consumer.acknowledge(taken)
    with pytest.raises(PipelineError, match=f"{last} refuses GETJOB: ERR not today"):
        consumer.take(0, waits=False)


def test_a_job_that_two_nodes_give_is_taken_once(
    desk: Desk, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = add(cluster[0], "twice", 1)
    consumer = desk.consumer(cluster, "twice")
    get = Consumer._get
    given: list[Job] = []

    def get_again(consumer: Consumer, name: str, count: int) -> list[Job]:
        given.extend(get(consumer, name, count))
        return list(given)

    monkeypatch.setattr(Consumer, "_get", get_again)

    eventually(lambda: ids(consumer.take(10, waits=False)) == [job], SOON_S, "it is taken once")
    assert consumer.duplicates >= 1


def test_an_acknowledged_job_that_comes_again_is_acknowledged_again(
    desk: Desk, cluster: Cluster
) -> None:
    """As when a node dies between an acknowledgement and telling the others."""
    consumer = desk.consumer(cluster, "over")
    (job,) = add(cluster[0], "over", 1)
    gone = {name_of(cluster[0]): [job]}
    cluster[0].client.call("DEQUEUE", job)
    consumer._done[job] = None

    assert consumer.acknowledge(gone)  # nothing is said: it was before
    cluster[0].client.call("ENQUEUE", job)

    assert not consumer.take(1, waits=False)
    eventually(lambda: not cluster.holders(job.encode()), SOON_S, "it is over everywhere")


def test_a_long_batch_keeps_its_jobs(desk: Desk, cluster: Cluster) -> None:
    """With RETRY 3 they would be queued again after three seconds."""
    jobs = add(cluster[0], "kept", 5, "RETRY", 3, "REPLICATE", 2)
    consumer = desk.consumer(cluster, "kept")
    taken = consumer.take(5, waits=False)

    def signs() -> int:
        found = cluster[0].client.info("commandstats").get("cmdstat_working", "calls=0")
        return int(found.split(",")[0].removeprefix("calls="))

    before = signs()
    eventually(lambda: signs() >= before + 20, SOON_S, "four signs of life for each")

    assert lengths(cluster, "kept") == 0
    shown = [cluster[0].client.show(job.encode()) for job in jobs]
    assert [each["additional-deliveries"] for each in shown] == [0] * 5
    assert consumer.acknowledge(taken)


def test_signs_of_life_come_as_late_as_retry_allows(desk: Desk, cluster: Cluster) -> None:
    add(cluster[0], "calm", 1, "RETRY", 300)
    add(cluster[0], "calm", 1, "RETRY", 0, "REPLICATE", 1)
    consumer = desk.consumer(cluster, "calm")
    began = time.monotonic()

    assert len(ids(consumer.take(2, waits=False))) == 2

    assert began + 90 < consumer._leases.next_due() < began + 120


def test_a_batch_is_had_again_by_its_ids(desk: Desk, cluster: Cluster) -> None:
    jobs = add(cluster[0], "replay", 5, "REPLICATE", 2)
    first = desk.consumer(cluster, "replay")
    taken = first.take(5, waits=False)

    second = desk.consumer(cluster, "replay")
    second.recover(taken)

    assert sorted(second.jobs) == sorted(jobs)
    assert second.jobs[jobs[3]].body == b"body 3"
    assert second.acknowledge(taken)


def test_of_a_batch_that_runs_again_only_what_is_over_is_left_out(
    desk: Desk, cluster: Cluster
) -> None:
    jobs = add(cluster[0], "partly", 3)
    taken = desk.consumer(cluster, "partly").take(3, waits=False)
    cluster[1].client.call("ACKJOB", jobs[0])
    eventually(lambda: not cluster.holders(jobs[0].encode()), SOON_S, "it is over everywhere")

    second = desk.consumer(cluster, "partly")
    second.recover(taken)

    assert sorted(second.jobs) == sorted(jobs[1:])


def test_jobs_of_a_node_that_is_down_are_had_from_the_others(desk: Desk, fleet: Fleet) -> None:
    cluster = fleet.cluster(3)
    jobs = add(cluster[0], "survive", 20, "REPLICATE", 2, "RETRY", 300)
    consumer = desk.consumer(cluster, "survive")
    taken = consumer.take(20, waits=False)
    single = add(cluster[0], "survive", 1, "REPLICATE", 1)
    alone = consumer.take(1, waits=False)

    cluster[0].kill()

    second = desk.consumer(cluster, "survive")
    second.recover(taken)
    assert sorted(second.jobs) == sorted(jobs)
    with pytest.raises(LostJobsError, match=r"1 job of a batch.*failOnDataLoss") as error:
        second.recover(alone)
    assert name_of(cluster[0]) in str(error.value)
    assert single[0] in str(error.value)

    # Whoever can do without it says so. All the others are acknowledged at another node.
    third = desk.consumer(cluster, "survive", failOnDataLoss="false")
    third.recover({**taken, **alone})
    assert third.acknowledge(taken)
    survivors = cluster.without(cluster[0])
    eventually(
        lambda: all(s.client.state(jobs[0].encode()) in (b"", b"acked") for s in survivors),
        SOON_S,
        "the survivors know that it is over",
    )


def test_a_node_that_stands_still_is_done_without(desk: Desk, cluster: Cluster) -> None:
    jobs = add(cluster[1], "slow", 5)
    consumer = desk.consumer(cluster, "slow", timeout=3, wait=0)
    taken: list[str] = []

    def all_are_here() -> bool:  # on a busy machine others are slow too
        taken.extend(ids(consumer.take(5, waits=False)))
        return len(taken) == 5

    with without(cluster[0]):
        eventually(all_are_here, SOON_S, "the others have given all jobs")

    assert sorted(taken) == sorted(jobs)


def test_whatever_goes_wrong_signs_of_life_go_on(
    desk: Desk, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(cluster[0], "odd", 1, "RETRY", 6)
    consumer = desk.consumer(cluster, "odd", lease=1)
    renew, calls = consumer._renew, iter([AssertionError("an odd reply")])

    def fail_once(nodes: Nodes) -> None:
        if error := next(calls, None):
            raise error
        renew(nodes)

    monkeypatch.setattr(Consumer, "_renew", lambda _, nodes: fail_once(nodes))
    (job,) = ids(consumer.take(1, waits=False))
    due = consumer._leases.next_due()

    eventually(lambda: consumer._leases.next_due() > due + 1, SOON_S, "WORKING was said of the job")
    assert job in consumer.jobs
