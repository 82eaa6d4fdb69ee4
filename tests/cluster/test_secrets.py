"""Clusters that refuse unknown nodes: real processes with a secret, with TLS, with both."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.cluster.processes import JOIN_S, Fleet, Server, eventually, node_lines
from tests.cluster.talk import LOOPBACK

SECRET = "what only these nodes know"


def tls(authority: Authority) -> tuple[str, ...]:
    """A node with a certificate of its own."""
    signed = authority.sign()
    files = ("--tls-cert-file", signed.cert, "--tls-key-file", signed.key)
    return (*files, "--tls-ca-cert-file", authority.file, "--tls-cluster", "yes")


def options(tmp_path: Path, kind: str) -> tuple[str, ...]:
    secret = ("--cluster-secret", SECRET)
    encrypted = tls(Authority(tmp_path, "nodes-ca"))
    return {"secret": secret, "tls": encrypted, "both": (*encrypted, *secret)}[kind]


def does_not_get_in(outsider: Server, members: Sequence[Server], said: str) -> None:
    """It asks to join, and a member asks it to; the member logs why it is refused."""
    size = len(members)
    outsider.client.call("CLUSTER", "MEET", LOOPBACK, members[0].port)
    members[0].client.call("CLUSTER", "MEET", LOOPBACK, outsider.port)

    eventually(lambda: said in members[0].log(), JOIN_S, f"the node logs {said!r}")

    for server in members:
        members_seen = [line for line in node_lines(server) if "handshake" not in line.flags]
        assert len(members_seen) == size
        assert outsider.id not in {line.id for line in node_lines(server)}


def test_a_cluster_works_and_heals_behind_closed_doors(fleet: Fleet, tmp_path: Path) -> None:
    cluster = fleet.cluster(3, *options(tmp_path, "both"))
    job = cluster[0].client.add("q", b"body" * 100_000, "REPLICATE", 3)
    assert cluster.holders(job) == cluster.servers

    cluster[1].kill()
    cluster.heal()
    (delivery,) = cluster[2].client.get("q", timeout=20_000)
    assert delivery.id == job
    assert cluster[2].client.number("ACKJOB", job) == 1
    cluster.wait_empty(JOIN_S)

    assert "bus link refused" not in "".join(server.log() for server in cluster.servers)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("kind", "outsiders", "said"),
    [
        ("secret", "another secret", "its cluster secret differs"),
        ("tls", "another authority", "its certificate is not accepted"),
    ],
)
def test_an_unknown_node_does_not_get_in(
    fleet: Fleet, tmp_path: Path, kind: str, outsiders: str, said: str
) -> None:
    ours = options(tmp_path, kind)
    cluster = fleet.cluster(2, *ours)
    theirs: dict[str, tuple[str, ...]] = {
        "another secret": ("--cluster-secret", SECRET[::-1]),
        "another authority": tls(Authority(tmp_path, "foreign-ca")),
    }
    outsider = fleet.server(*theirs[outsiders])

    does_not_get_in(outsider, cluster.servers, said)
