"""A server that is started from a copy of another one's directory, while that runs."""

import shutil

import pytest

from tests.cluster.processes import CALM, SOON_S, Fleet, Server, eventually
from tests.cluster.talk import RefusedError

JOBS = 40


def refusal(server: Server) -> str:
    """What it answers PING with, if that is an error."""
    try:
        server.client.call("PING")
    except RefusedError as error:
        return str(error)
    return ""


def copied(fleet: Fleet, original: Server) -> Server:
    """A server with a copy of the directory, at a port of its own."""
    copy = fleet.unstarted("--appendonly", "yes", *CALM)
    shutil.copytree(original.directory, copy.directory)
    (copy.directory / "server.log").unlink()
    copy.start()
    return copy


@pytest.mark.slow
def test_the_copy_refuses_to_serve_jobs_that_the_original_has(fleet: Fleet) -> None:
    cluster = fleet.cluster(3, "--appendonly", "yes", *CALM)
    first, second, third = cluster.servers
    ids = [first.client.add("q", f"job {n}", "REPLICATE", 2, "RETRY", 2) for n in range(JOBS)]
    copy = copied(fleet, first)

    eventually(lambda: refusal(copy).startswith("DUPLICATEID"), SOON_S, "the copy refuses to serve")
    taken = [job.id for server in (third, second, first) for job in server.client.get("q", 99, 500)]
    while len(set(taken)) < JOBS:
        taken += [job.id for job in third.client.get("q", 99, 5000)]
    third.client.call("ACKJOB", *ids)
    cluster.wait_empty(SOON_S)

    assert refusal(copy).startswith("DUPLICATEID Another process with the node ID of this one runs")
    assert f"127.0.0.1:{first.port}" in refusal(copy)
    assert "give it its own directory without nodes.conf" in copy.log()
    assert f"127.0.0.1:{copy.port}" in first.log()
    assert first.client.info("cluster")["duplicate_node_id_address"] == f"127.0.0.1:{copy.port}"
    assert refusal(first) == ""
