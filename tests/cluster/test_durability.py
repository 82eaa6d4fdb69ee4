"""Real nodes with journals, all killed at once under load: what comes back from their disks.

A few times with the other tests; `make soak` does it fifty times, or as often as `KILL_ROUNDS`
says, and prints its figures.
"""

import os
import random
import resource
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Final

import attrs
import pytest
import trio
from rich.console import Console

from disque_trio.statemachine.base import JobId
from tests.cluster.processes import (
    DISQUE_TRIO,
    SOON_S,
    Cluster,
    Fleet,
    Server,
    becomes,
    eventually,
    free_port,
)
from tests.cluster.soak.ledger import Ledger
from tests.cluster.soak.load import Line, LostError, Rig
from tests.cluster.talk import LOOPBACK, RefusedError, as_items, as_text, deliveries

KEEPING: Final = ("--appendonly", "yes")
ALWAYS: Final = (*KEEPING, "--appendfsync", "always")
ROUNDS: Final = int(os.environ.get("KILL_ROUNDS", "50"))
SEED: Final = int(os.environ.get("SOAK_SEED", "1"))
MOST_WAITING: Final = 2000
BETWEEN_KILLS: Final = 20
"""At least so many jobs are added, and acknowledged, however long that takes."""
LATEST_S: Final = 200
"""A job that has not been delivered by then is lost."""


@attrs.define(eq=False)
class Book:
    """What clients were told."""

    added: dict[JobId, int] = attrs.Factory(dict)
    """Jobs that a producer has the id of, and their RETRY."""
    delivered: Counter[JobId] = attrs.Factory(Counter)
    acked: dict[JobId, float] = attrs.Factory(dict)
    """When the answer to ACKJOB came."""
    back: list[JobId] = attrs.Factory(list)
    """Jobs that were delivered after that."""
    moved: set[JobId] = attrs.Factory(set)
    """Jobs that a node has given out which is not their first."""
    kills: int = 0

    def waiting(self) -> list[JobId]:
        """Jobs with a retry time that have not been delivered yet."""
        return [job for job, retry in self.added.items() if retry and job not in self.delivered]

    def lost_once(self) -> int:
        """At-most-once jobs that were not delivered."""
        return sum(not retry and job not in self.delivered for job, retry in self.added.items())

    def twice(self) -> list[JobId]:
        """At-most-once jobs that were given out twice."""
        return [job for job, n in self.delivered.items() if n > 1 and not self.added.get(job, 1)]


async def produce(rig: Rig, book: Book) -> None:
    """Add jobs with one copy."""
    line = Line(rig)
    while rig.is_producing:
        if len(book.added) - len(book.delivered) > MOST_WAITING:
            await trio.sleep(0.02)
            continue
        retry = 0 if rig.rng.random() < 0.1 else rig.rng.randint(2, 4)
        options = ("REPLICATE", 1, "RETRY", retry, "TTL", 600)
        try:
            reply = await line.call("ADDJOB", "q", "x" * rig.rng.randint(1, 500), 0, *options)
        except (LostError, RefusedError):
            continue
        book.added[as_text(reply)] = retry
    await line.hang_up()


async def consume(rig: Rig, book: Book, names: dict[int, bytes]) -> None:
    """Take jobs and acknowledge most of them, at the node that gave them."""
    line = Line(rig)
    while rig.is_consuming:
        asked = time.monotonic()
        try:
            jobs = deliveries(
                as_items(await line.call("GETJOB", "TIMEOUT", 200, "COUNT", 5, "FROM", "q"))
            )
            for job in jobs:
                book.delivered[job.id] += 1
                if names[line.port] != job.id[2:10]:
                    book.moved.add(job.id)
                if book.acked.get(job.id, asked) < asked:
                    book.back.append(job.id)
            done = [job.id for job in jobs if rig.rng.random() < 0.9]
            if done:
                await line.call("ACKJOB", *done)
                book.acked.update((job, time.monotonic()) for job in done)
        except (LostError, RefusedError):
            continue
    await line.hang_up()


async def under_load(book: Book) -> None:
    """Wait until clients have got on with their work."""
    added, acked = (len(jobs) + BETWEEN_KILLS for jobs in (book.added, book.acked))
    while len(book.added) < added or len(book.acked) < acked:
        await trio.sleep(0.02)


async def storm(cluster: Cluster, rounds: int) -> Book:
    """Load, and again and again everything is killed at some moment and comes back."""
    book = Book()
    rig = Rig(cluster.servers, Ledger(), random.Random(SEED))
    names = {server.port: server.id[:8].encode() for server in rig.servers}
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(produce, rig, book)
            nursery.start_soon(consume, rig, book, names)
        for _ in range(rounds):
            await under_load(book)
            await trio.sleep(rig.rng.uniform(0.3, 2.0))
            for server in cluster.servers:
                server.kill()
            book.kills += 1
            for server in cluster.servers:
                server.start()
            await trio.to_thread.run_sync(cluster.heal)
        rig.is_producing = False
        with trio.move_on_after(LATEST_S):
            while book.waiting():
                await trio.sleep(0.1)
        await trio.sleep(5)
        rig.is_consuming = False
    summary = (
        f"{book.kills} kills of {len(cluster.servers)} nodes: {len(book.added)} jobs added, "
        f"{len(book.acked)} acknowledged, {sum(book.delivered.values())} deliveries, "
        f"{len(book.waiting())} lost, {len(book.back)} back "
        f"({len(book.moved.intersection(book.back))} of {len(book.moved)} that had moved), "
        f"{book.lost_once()} at-most-once jobs not delivered, {len(book.twice())} twice"
    )
    Console().print(summary)
    return book


def judge(book: Book) -> None:
    assert len(book.added) > 10
    assert not book.waiting()
    assert book.moved.issuperset(book.back), "only where two nodes hold it"
    assert not book.twice()


@pytest.mark.parametrize(("policy", "rounds"), [("always", 2), ("everysec", 1)])
async def test_nothing_is_lost_and_nothing_comes_back_when_all_nodes_are_killed(
    fleet: Fleet, policy: str, rounds: int
) -> None:
    judge(await storm(fleet.cluster(3, *KEEPING, "--appendfsync", policy), rounds))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", ["always", "everysec"])
async def test_nor_after_many_kills(fleet: Fleet, policy: str) -> None:
    judge(await storm(fleet.cluster(3, *KEEPING, "--appendfsync", policy), ROUNDS))


def test_a_job_comes_back_after_a_kill_and_waits_for_its_retry_time(fleet: Fleet) -> None:
    server = fleet.server(*ALWAYS)
    soon = server.client.add("soon", "body", "RETRY", 1)
    later = server.client.add("q", "body", "RETRY", 600)
    once = server.client.add("q", "body", "RETRY", 0)
    gone = server.client.add("q", "body")
    server.client.call("ACKJOB", gone)

    server.kill()
    server.start().wait()

    assert server.client.get("q", timeout=10_000)[0].id == once
    assert server.client.state(later) == b"active"
    assert server.client.state(gone) == b""
    assert server.client.get("soon", timeout=30_000)[0].id == soon


def test_an_acknowledgement_outlives_its_node(fleet: Fleet) -> None:
    cluster = fleet.cluster(2, *ALWAYS)
    first, second = cluster.servers
    job = first.client.add("q", "body", "RETRY", 1, "REPLICATE", 2)
    second.kill()
    first.client.call("ACKJOB", job)
    first.kill()

    cluster.heal()

    cluster.wait_empty(SOON_S)


def test_a_controlled_restart_queues_what_was_queued(fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "disque.conf"
    file.write_text("appendonly no\n")
    command = (*DISQUE_TRIO, str(file))
    server = Server(tmp_path / "node", command=command).start().wait()
    jobs = [server.client.add("q", "body", "RETRY", retry) for retry in (60, 0)]
    server.client.add("q", "body", "DELAY", 100)
    server.client.call("CONFIG", "SET", "aof-enqueue-jobs-once", "yes")
    server.client.call("CONFIG", "REWRITE")
    server.client.send("SHUTDOWN", "REWRITE-AOF")
    eventually(lambda: not server.is_running(), SOON_S, "it ends")
    server._process = None
    server.hang_up()

    server.start().wait()

    try:
        assert [job.id for job in server.client.get("q", 5)] == jobs
        assert server.client.registered_jobs() == 3
        assert "aof-enqueue-jobs-once yes" not in file.read_text()
    finally:
        assert not server.close()


def test_after_a_sigterm_and_a_start_the_queue_is_whole(fleet: Fleet) -> None:
    server = fleet.server(*KEEPING)
    jobs = [server.client.add("q", "body", "RETRY", retry) for retry in (300, 300, 0)]
    (given,) = server.client.get("q")

    assert server.terminate() == 0
    server.start().wait()

    assert given.id == jobs[0]
    assert server.client.state(jobs[0]) == b"active"
    assert [job.id for job in server.client.get("q", 5)] == jobs[1:]
    server.kill()
    server.start().wait()
    assert [server.client.state(job) for job in jobs] == [b"active", b"active", b""]


def test_a_limit_of_the_file_size_is_a_full_disk(fleet: Fleet) -> None:
    server = fleet.server(*ALWAYS)
    size = Path(server.directory / "disque.aof").stat().st_size
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size + 50, resource.RLIM_INFINITY))

    with pytest.raises(RefusedError, match=r"^MISCONF Errors writing to the AOF file: File too"):
        server.client.add("q", "body")
    assert server.client.info("persistence")["aof_last_write_status"] == "err"
    resource.prlimit(
        server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    becomes(
        lambda: server.client.info("persistence")["aof_last_write_status"],
        "ok",
        SOON_S,
        "it is mended",
    )

    job = server.client.add("q", "body")
    server.kill()
    server.start().wait()
    assert server.client.state(job) == b"active"


def test_two_nodes_do_not_share_a_journal(fleet: Fleet) -> None:
    server = fleet.server(*KEEPING)
    other = subprocess.run(
        [*DISQUE_TRIO, "--port", str(free_port()), "--bind", LOOPBACK,
         "--dir", str(server.directory), *KEEPING,
         "--cluster-config-file", "other.conf"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert other.returncode == 1
    assert "disque.aof is in use by another node" in other.stderr


def test_a_damaged_journal_ends_the_node_with_advice(fleet: Fleet, tmp_path: Path) -> None:
    server = fleet.server(*KEEPING)
    for _ in range(10):
        server.client.add("q", "body")
    server.terminate()
    path = server.directory / "disque.aof"
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)

    run = subprocess.run(
        [*DISQUE_TRIO, "--port", str(server.port), "--bind", LOOPBACK,
         "--dir", str(server.directory), *KEEPING],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert run.returncode == 1
    assert "disque.aof is damaged: " in run.stderr
    assert f"disque-trio aof check {path}" in run.stderr
    assert path.read_bytes() == data
