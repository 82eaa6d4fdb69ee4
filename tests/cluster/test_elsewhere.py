"""Real clusters on a system that has neither epoll nor /proc nor whatever else only Linux has."""

import subprocess
import sys
from pathlib import Path

import pytest

from disque_trio.statemachine.base import JobId
from tests.cluster import elsewhere
from tests.cluster.processes import SOON_S, Cluster, Fleet, Server, becomes, free_port

KERNELS = ("kqueue", "tasks")


def command(kernel: str) -> tuple[str, ...]:
    return (sys.executable, elsewhere.__file__, kernel, "server")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_cluster_keeps_its_guarantees(tmp_path: Path, kernel: str) -> None:
    fleet = Fleet(tmp_path, command(kernel))
    try:
        cluster = fleet.cluster(3, "--appendonly", "yes", "--appendfsync", "always")
        _check_facts(cluster[0], kernel)
        _check_jobs(cluster)
    finally:
        fleet.close()


def _check_facts(server: Server, kernel: str) -> None:
    assert f"multiplexing_api={kernel}" in server.log()
    assert server.client.info("server")["multiplexing_api"] == kernel
    assert int(server.client.info("memory")["used_memory_rss"]) > 0


def _check_jobs(cluster: Cluster) -> None:
    first, second, third = cluster.servers
    added = {
        first.client.add("q", body, "REPLICATE", 3, "RETRY", 1): body
        for body in [b"body %d" % number for number in range(100)]
    }
    taken: dict[JobId, bytes] = {}
    _take([third], taken)
    assert taken

    first.kill()
    becomes(
        lambda: _take([second, third], taken), added, SOON_S, "the jobs of the node that died come"
    )
    first.start().wait()
    cluster.wait()

    assert first.client.get("q", count=100) == []


def _take(servers: list[Server], taken: dict[JobId, bytes]) -> dict[JobId, bytes]:
    """Some more jobs are taken and acknowledged. All so far."""
    for server in servers:
        jobs = server.client.get("q", count=100, timeout=500)
        if jobs:
            server.client.call("ACKJOB", *(job.id for job in jobs))
        taken.update((job.id, job.body) for job in jobs)
    return taken


def test_workers_are_refused(tmp_path: Path) -> None:
    words = [
        *command("tasks"),
        "--port",
        str(free_port(2)),
        "--dir",
        str(tmp_path),
        "--workers",
        "2",
    ]

    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SOON_S)

    assert done.returncode == 1
    assert done.stderr.startswith("disque-trio: 2 workers cannot share a port on ")
