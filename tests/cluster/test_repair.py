"""What becomes of jobs when their holders go one by one and do not come back."""

import pytest

from tests.cluster.processes import Cluster, Fleet, Server, becomes, eventually

REPAIR_S = 60.0
"""A loss is noticed within a second; the rest is patience with a busy machine."""


def lose(cluster: Cluster, gone: Server) -> None:
    """Kill a node for good, and have the others forget it."""
    name = gone.id
    gone.kill()
    for server in cluster.servers:
        if server.is_running():
            server.client.call("CLUSTER", "FORGET", name)


def under_replicated(cluster: Cluster) -> list[str]:
    return [
        server.client.info("jobs")["under_replicated_jobs"]
        for server in cluster.servers
        if server.is_running()
    ]


@pytest.mark.slow
def test_a_job_outlives_all_the_nodes_that_first_held_it(fleet: Fleet) -> None:
    cluster = fleet.cluster(4)
    job = cluster[0].client.add("q", "body", "REPLICATE", 2, "RETRY", 3)
    first = cluster.holders(job)
    assert len(first) == 2

    for lost in first:
        lose(cluster, lost)
        eventually(
            lambda: len(cluster.holders(job)) == 2, REPAIR_S, "two running nodes hold the job"
        )

    survivors = [server for server in cluster.servers if server.is_running()]
    delivered = survivors[0].client.get("q", timeout=50_000)
    assert [each.body for each in delivered] == [b"body"]
    survivors[0].client.call("ACKJOB", job)
    becomes(
        lambda: [server.client.registered_jobs() for server in survivors],
        [0, 0],
        REPAIR_S,
        "the acknowledgement has reached the new holders, and no node waits for the lost ones",
    )
    assert under_replicated(cluster) == ["0", "0"]


def test_too_few_nodes_show_in_info_until_one_joins(fleet: Fleet) -> None:
    cluster = fleet.cluster(2)
    job = cluster[0].client.add("q", "body", "REPLICATE", 2, "RETRY", 600)
    lose(cluster, cluster[1])
    becomes(lambda: under_replicated(cluster), ["1"], REPAIR_S, "the loss is noticed")

    newcomer = fleet.server("--cluster-node-timeout", "2000")
    cluster.servers.append(newcomer)
    cluster[0].client.call("CLUSTER", "MEET", "127.0.0.1", newcomer.port)

    becomes(lambda: newcomer.client.state(job), b"active", REPAIR_S, "the newcomer has a copy")
    becomes(lambda: under_replicated(cluster), ["0", "0"], REPAIR_S, "nothing is amiss")
