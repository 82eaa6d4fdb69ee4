"""Real nodes with journals, all killed at once under load: what comes back from their disks.

A few times with the other tests; `make soak` does it fifty times, or as often as `KILL_ROUNDS`
says, and prints its figures.
"""

import os
import resource
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.processes import (
    DISQUE_TRIO,
    SOON_S,
    Fleet,
    Server,
    becomes,
    eventually,
    free_port,
)
from tests.cluster.soak.storm import judge, storm
from tests.cluster.talk import LOOPBACK, RefusedError

KEEPING: Final = ("--appendonly", "yes")
ALWAYS: Final = (*KEEPING, "--appendfsync", "always")
ROUNDS: Final = int(os.environ.get("KILL_ROUNDS", "50"))


@pytest.mark.sample(2)
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


def test_after_a_kill_queues_are_as_they_were_and_a_worker_keeps_its_job(fleet: Fleet) -> None:
    server = fleet.server(*KEEPING)
    taken = server.client.add("q", "body", "RETRY", 600)
    assert server.client.get("q", timeout=10_000)[0].id == taken
    queued = [server.client.add("q", "body", "RETRY", 600) for _ in range(3)]

    server.kill()
    server.start().wait()

    assert [server.client.get("q", timeout=10_000)[0].id for _ in queued] == queued
    assert server.client.state(taken) == b"active"
    assert server.client.call("QLEN", "q") == 0


def test_without_records_of_queues_a_job_waits_for_its_retry_time_after_a_kill(
    fleet: Fleet,
) -> None:
    server = fleet.server(*ALWAYS, "--aof-queues", "no")
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
    assert server.client.state(job) == b"queued"


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
