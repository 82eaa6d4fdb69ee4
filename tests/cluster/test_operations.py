"""What docs/removing.md, docs/upgrading.md and docs/doctor.md tell operators to do, done."""

import json

import pytest

from disque_trio.__main__ import main
from tests.cluster.processes import SOON_S, Cluster, Fleet, Server, becomes, eventually


def consult(server: Server, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """What the doctor finds wrong with a cluster, but for the machine that the test runs on."""
    capsys.readouterr()
    main(["doctor", "--json", "-p", str(server.port), "-t", "20"])
    findings: list[dict[str, str]] = json.loads(capsys.readouterr().out)["findings"]
    return [
        each for each in findings if each["level"] != "note" and each["where"] != "this machine"
    ]


def run_in(server: Server, *command: str) -> int:
    """A command as the pages write it."""
    return main(["cli", "-p", str(server.port), *command])


@pytest.mark.slow
def test_the_doctor_sees_a_node_die_and_the_cluster_get_over_it(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = fleet.cluster(3)
    first, _, gone = cluster.servers
    eventually(lambda: not consult(first, capsys), SOON_S, "the doctor has no complaint")
    for _ in range(5):
        first.client.add("q", "body", "REPLICATE", 3)
    name = gone.id
    gone.kill()

    def advice() -> list[str]:
        return [each["advice"] for each in consult(first, capsys) if each["level"] == "problem"]

    eventually(lambda: any(name in each for each in advice()), SOON_S, "it is held for failed")
    for server in cluster.without(gone):
        assert run_in(server, "CLUSTER", "FORGET", name) == 0

    def complaints() -> list[str]:
        found = consult(first, capsys)
        return [each["what"] for each in found if each["kind"] != "unattended"]

    becomes(
        complaints,
        ["5 jobs have fewer holders than REPLICATE asks for"],
        SOON_S,
        "two nodes cannot hold three copies, and say so",
    )


def empty(server: Server) -> bool:
    return server.client.registered_jobs() == 0


def work(cluster: Cluster, server: Server, jobs: int) -> None:
    """Take and acknowledge jobs at a node."""
    while jobs:
        taken = server.client.get("q", count=10, timeout=30_000)
        server.client.call("ACKJOB", *(job.id for job in taken))
        jobs -= len(taken)


def test_a_node_is_emptied_changed_and_taken_back_as_it_was(fleet: Fleet) -> None:
    """docs/upgrading.md, node by node; docs/removing.md begins alike."""
    cluster = fleet.cluster(3)
    first, second, leaver = cluster.servers
    name = leaver.id
    for number in range(20):
        leaver.client.add("q", f"body {number}", "REPLICATE", 2, "RETRY", 60)

    assert run_in(leaver, "CLUSTER", "LEAVING", "yes") == 0
    work(cluster, first, 20)
    eventually(lambda: empty(leaver), SOON_S, "registered_jobs:0")
    assert leaver.terminate() == 0
    leaver.start().wait()

    assert leaver.id == name
    assert leaver.client.text("CLUSTER", "LEAVING") == b"yes"
    assert run_in(leaver, "CLUSTER", "LEAVING", "no") == 0
    cluster.wait()

    assert leaver.terminate() == 0
    for server in (first, second):
        assert run_in(server, "CLUSTER", "FORGET", name) == 0
        assert name not in server.client.text("CLUSTER", "NODES").decode()
