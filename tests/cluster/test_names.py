"""Nodes that find each other by names, while their addresses change: as pods of Kubernetes do."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.pods import NETWORK, Pod, World, is_possible, world
from tests.cluster.processes import SOON_S, Cluster, becomes, eventually, node_lines
from tests.cluster.talk import RefusedError

pytestmark = pytest.mark.skipif(not is_possible(), reason="needs namespaces, unshare and ip")

OPTIONS = (
    "--port", "7711", "--protected-mode", "no", "--cluster-node-timeout", "2000",
    "--appendonly", "yes",
)  # fmt: skip
SERVICE = "disque.svc"


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[list[Pod]]:
    """Three pods that are not running, at addresses 1 to 3."""
    with world(tmp_path) as (net, found):
        for number in (1, 2, 3):
            net.network(f"disque-{number}", f"{NETWORK}.{number}")
            directory = tmp_path / f"p{number}"
            found.append(Pod(directory, OPTIONS, world=net, name=f"disque-{number}"))
        yield found


def name_all(net: World, addresses: dict[str, int]) -> None:
    """Each pod has its name, and all have that of the service."""
    places = {name: [f"{NETWORK}.{last}"] for name, last in addresses.items()}
    net.names({**places, SERVICE: [ip for (ip,) in places.values()]})


def start(pods: list[Pod], *options: str) -> Cluster:
    for pod in pods:
        pod.options = (*OPTIONS, *options)
        pod.start()
    for pod in pods:
        pod.wait()
    return Cluster(list(pods))


def addresses(pod: Pod) -> set[str]:
    return {line.address.partition(":")[0].rpartition(".")[2] for line in node_lines(pod)}


@pytest.mark.slow
def test_nodes_join_their_seeds_and_find_each_other_after_all_have_moved(pods: list[Pod]) -> None:
    net = pods[0].world
    name_all(net, {"disque-1": 1, "disque-2": 2, "disque-3": 3})
    cluster = start(pods, "--cluster-seeds", f"{SERVICE}:7711").wait()
    job = pods[0].client.add("q", "body", "REPLICATE", 3)

    for pod in pods:
        pod.terminate()
    for number, pod in enumerate(pods, 11):
        net.move(pod.name, f"{NETWORK}.{number}")
    name_all(net, {"disque-1": 11, "disque-2": 12, "disque-3": 13})
    for pod in pods:
        pod.start()
    for pod in pods:
        pod.wait()
    cluster.wait()

    for pod in pods:
        becomes(partial(addresses, pod), {"11", "12", "13"}, SOON_S, "all have moved")
    assert [each.id for each in pods[2].client.get("q", timeout=60_000)] == [job]


@pytest.mark.slow
def test_a_name_that_was_met_leads_to_its_node_wherever_that_goes(pods: list[Pod]) -> None:
    net = pods[0].world
    name_all(net, {"disque-1": 1, "disque-2": 2})
    one, two, _ = pods
    pair = start([one, two])
    one.client.call("CLUSTER", "MEET", "disque-2", 7711)
    pair.wait()
    before = two.id

    one.terminate()
    two.terminate()
    net.move("disque-1", f"{NETWORK}.21")
    net.move("disque-2", f"{NETWORK}.22")
    name_all(net, {"disque-1": 21, "disque-2": 22})
    one.start().wait()
    two.start().wait()
    pair.wait()

    assert addresses(one) == addresses(two) == {"21", "22"}
    assert two.id == before
    hello = two.client.call("HELLO")
    assert isinstance(hello, list)
    row = next(row for row in hello[2:] if isinstance(row, list) and row[0] == before.encode())
    assert row[1] == f"{NETWORK}.22".encode(), "it does not tell clients its old address"


@pytest.mark.slow
def test_a_name_that_nobody_knows_is_an_error_and_a_seed_is_tried_again(pods: list[Pod]) -> None:
    one, two, _ = pods
    start([one, two], "--cluster-seeds", "disque-2:7711")

    with pytest.raises(RefusedError, match="Cannot resolve the host name 'nowhere"):
        one.client.call("CLUSTER", "MEET", "nowhere.example", 7711)
    eventually(
        lambda: one.client.info("cluster").get("unanswered_meet_error"), SOON_S, "INFO says why"
    )
    said = "cannot resolve the host name of a node, retrying"
    eventually(lambda: said in one.log(), SOON_S, "the log says it")

    name_all(one.world, {"disque-2": 2})
    Cluster([one, two]).wait()
