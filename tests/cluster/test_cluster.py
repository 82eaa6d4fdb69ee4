"""What a cluster of real processes guarantees: jobs survive, acks arrive, nodes come and go."""

import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from disque_trio.statemachine.base import JobId, Reply
from tests.cluster.processes import (
    CALM,
    SOON_S,
    Cluster,
    Fleet,
    Server,
    becomes,
    eventually,
    flags_of,
    node_lines,
)
from tests.cluster.talk import Client, as_items, as_text, connection

COLLECT_S = 60.0
"""Acks are repeated after 1, 4 and 8 s: by then they have reached a node that is back."""


@pytest.fixture(scope="module", params=["epoll", "tasks"])
def multiplexing(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def seven(shared_fleet: Fleet, multiplexing: str) -> Cluster:
    """Seven nodes that joined by one MEET each. No test kills them."""
    return shared_fleet.cluster(7, *CALM, "--multiplexing-api", multiplexing)


@pytest.fixture(scope="module")
def _four(shared_fleet: Fleet, multiplexing: str) -> Cluster:
    return shared_fleet.cluster(4, "--multiplexing-api", multiplexing)


@pytest.fixture
def four(_four: Cluster) -> Iterator[Cluster]:
    """Four nodes that a test may kill: they are started again afterwards, and empty."""
    yield _four
    _four.heal()
    for server in _four.servers:
        server.client.call("DEBUG", "FLUSHALL")


def drain(client: Client, queue: str, wanted: int) -> Counter[JobId]:
    """Take and acknowledge jobs until so many different ones have come. How often each came."""
    taken: Counter[JobId] = Counter()
    while len(taken) < wanted:
        jobs = client.get(queue, count=100, timeout=30_000)
        assert jobs, f"{wanted - len(taken)} of {wanted} jobs have not come within 30 s"
        client.call("ACKJOB", *(job.id for job in jobs))
        taken.update(job.id for job in jobs)
    return taken


# Joining.


@pytest.mark.slow
def test_seven_nodes_find_each_other_through_one_meet_each(seven: Cluster) -> None:
    everyone = sorted(server.id for server in seven.servers)

    assert [sorted(line.id for line in node_lines(server)) for server in seven.servers] == [
        everyone
    ] * 7
    seven.wait()


def test_hello_names_every_node_with_its_port(seven: Cluster) -> None:
    def hello() -> list[Reply]:
        version, myself, *nodes = seven[3].client.items("HELLO")
        return [version, myself, *sorted(nodes, key=str)]

    nodes: list[Reply] = [
        [server.id.encode(), b"127.0.0.1", b"%d" % server.port, b"1"] for server in seven.servers
    ]
    wanted: list[Reply] = [1, seven[3].id.encode(), *sorted(nodes, key=str)]
    becomes(hello, wanted, SOON_S, "the nodes that it tells of")


# Copies and deliveries.


def test_a_job_with_three_copies_is_on_exactly_three_nodes(seven: Cluster) -> None:
    jobs = [seven[i].client.add("three", i, "REPLICATE", 3) for i in range(7)]

    held = [seven.holders(job) for job in jobs]

    # A node that is slow to confirm, on a busy machine, costs a job a fourth copy.
    counts = Counter(len(holders) for holders in held)
    assert min(counts) == 3
    assert counts.most_common(1)[0][0] == 3
    for i, (job, holders) in enumerate(zip(jobs, held, strict=True)):
        assert seven[i] in holders
        for server in holders:
            named = as_items(server.client.show(job)["nodes-delivered"])
            assert {as_text(node).decode() for node in named} == {other.id for other in holders}


def queued_at_once(cluster: Cluster, queue: str) -> set[int]:
    """How many holders of a job have it in the queue, over two retry times."""
    servers = cluster.servers
    jobs = [server.client.add(queue, "b", "REPLICATE", 3, "RETRY", 3) for server in servers]
    copies = [(job, cluster.holders(job)) for job in jobs]
    two_retries = time.monotonic() + 6.5
    counts = set()
    while time.monotonic() < two_retries:
        for job, holders in copies:
            counts.add(sum(server.client.state(job) == b"queued" for server in holders))
    for server in servers:
        server.client.call("DEBUG", "FLUSHALL")
    return counts


@pytest.mark.slow
def test_while_all_nodes_are_up_one_copy_alone_is_queued(seven: Cluster) -> None:
    # A node that has to wait half a second for a processor, on a busy machine, says it too late.
    seen = (queued_at_once(seven, f"one-queued-{number}") for number in range(5))

    assert {1} in seen


@pytest.mark.slow
def test_a_job_outlives_its_origin_and_one_more_holder(four: Cluster) -> None:
    origin = four[0]
    job = origin.client.add("survivor", "body", "REPLICATE", 3, "RETRY", 1)
    # On a busy machine a copy that is confirmed late is followed by one more.
    second, *others = [server for server in four.holders(job) if server is not origin]

    origin.kill()
    second.kill()

    (delivery,) = others[0].client.get("survivor", timeout=30_000)
    assert (delivery.id, delivery.body) == (job, b"body")


def test_a_job_outlives_a_worker_that_dies(four: Cluster) -> None:
    job = four[0].client.add("dying", "body", "REPLICATE", 2, "RETRY", 1)
    with connection(four[0].port) as worker:
        assert [taken.id for taken in worker.get("dying")] == [job]

    (again,) = four[0].client.get("dying", timeout=30_000)

    assert again.id == job
    # On a busy machine the next RETRY may pass before SHOW.
    assert four[0].client.show(job)["additional-deliveries"] not in (0, None)


# Acknowledgements.


def test_an_ack_reaches_every_copy_wherever_it_is_given(seven: Cluster) -> None:
    for server in seven.servers:
        server.client.call("DEBUG", "FLUSHALL")
    jobs = [
        server.client.add("acks", n, "REPLICATE", 3, "RETRY", 60)
        for n in range(5)
        for server in seven.servers
    ]

    for i, job in enumerate(jobs):
        holders = seven.holders(job)
        others = seven.without(*holders)
        (holders if i % 2 else others)[i % 3].client.call("ACKJOB", job)

    seven.wait_empty(COLLECT_S)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("down", "up"),
    [
        pytest.param(Server.freeze, Server.thaw, id="frozen, with its copy"),
        pytest.param(Server.kill, lambda server: server.start().wait(), id="killed"),
    ],
)
def test_acks_are_collected_when_a_holder_that_was_down_is_back(
    four: Cluster, down: Callable[[Server], object], up: Callable[[Server], object]
) -> None:
    victim = four[3]
    living = four.servers[:3]
    options = ("REPLICATE", 3, "RETRY", 60)
    jobs = [living[n % 3].client.add("down", n, *options) for n in range(12)]
    copies = [(job, four.holders(job)) for job in jobs]
    assert any(victim in holders for _, holders in copies)
    down(victim)

    for job, holders in copies:
        # On a busy machine a job may have gone to all four.
        others = [server for server in four.without(*holders) if server is not victim]
        (others or living)[0].client.call("ACKJOB", job)
    eventually(
        lambda: all(
            server.client.state(job) in {b"", b"acked"} for job in jobs for server in living
        ),
        SOON_S,
        "the ack of each job has reached its living holders",
    )

    up(victim)
    four.wait_empty(COLLECT_S)


def test_acks_without_jobs_vanish_when_the_only_other_node_is_forgotten(fleet: Fleet) -> None:
    pair = fleet.cluster(2)
    survivor, dead = pair.servers
    dead_id = dead.id
    dead.kill()
    unknown = [f"D-abcdabcd-{'A' * 22}{i:02}-05a1" for i in range(5)]
    assert survivor.client.number("ACKJOB", *unknown) == 0
    assert survivor.client.registered_jobs() == 5

    survivor.client.call("CLUSTER", "FORGET", dead_id)

    becomes(survivor.client.registered_jobs, 0, COLLECT_S, "the survivor's records")
    assert survivor.is_running()
    assert survivor.client.text("PING") == b"PONG"


# Federation.


@pytest.mark.slow
def test_a_thousand_jobs_spread_over_all_nodes_are_drained_from_one(seven: Cluster) -> None:
    for server in seven.servers:
        server.client.call("DEBUG", "FLUSHALL")
    options = ("REPLICATE", 2, "RETRY", 60)
    jobs = {seven[n % 7].client.add("spread", n, *options) for n in range(1000)}

    taken = drain(seven[0].client, "spread", wanted=1000)

    assert taken == Counter(dict.fromkeys(jobs, 1))
    seven.wait_empty(COLLECT_S)


def test_a_blocked_client_is_given_a_job_that_is_added_elsewhere(seven: Cluster) -> None:
    with connection(seven[1].port) as consumer:
        consumer.send("GETJOB", "TIMEOUT", 50_000, "FROM", "elsewhere")
        eventually(
            lambda: seven[1].client.info("clients")["blocked_clients"] == "1",
            SOON_S,
            "it is blocked",
        )
        job = seven[5].client.add("elsewhere", "b", "REPLICATE", 1, "RETRY", 60)

        ((queue, given, body),) = consumer.receive()  # type: ignore[misc]

    assert (queue, given, body) == (b"elsewhere", job, b"b")


# Pausing.


def test_a_broadcast_pause_reaches_every_node(seven: Cluster) -> None:
    states = [b"in"] * 7

    assert seven[2].client.text("PAUSE", "paused", "in", "bcast") == b"in"

    becomes(lambda: _pauses(seven, "paused"), states, SOON_S, "the pause state of the queue")
    seven[6].client.call("PAUSE", "paused", "none", "bcast")
    becomes(lambda: _pauses(seven, "paused"), [b"none"] * 7, SOON_S, "the pause state of the queue")


def _pauses(cluster: Cluster, queue: str) -> list[bytes]:
    return [server.client.text("PAUSE", queue, "state") for server in cluster.servers]


# Failures.


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("down", "up"),
    [
        pytest.param(Server.kill, lambda server: server.start().wait(), id="killed"),
        pytest.param(Server.freeze, Server.thaw, id="frozen"),
    ],
)
def test_a_node_that_is_down_is_marked_as_failed_until_it_is_back(
    four: Cluster, down: Callable[[Server], object], up: Callable[[Server], object]
) -> None:
    victim = four[3]
    victim_id = victim.id
    others = four.without(victim)

    down(victim)
    eventually(
        lambda: all("fail" in flags_of(server, victim_id) for server in others),
        SOON_S,
        "all others say that it has failed",
    )
    up(victim)

    four.wait()


@pytest.mark.sample(2)
def test_a_node_that_has_failed_gets_no_copies(four: Cluster) -> None:
    four[3].kill()
    eventually(
        lambda: four[0].client.text("CLUSTER", "INFO").count(b"cluster_reachable_nodes:2"),
        SOON_S,
        "two other nodes are reachable",
    )

    job = four[0].client.add("failed", "b", "REPLICATE", 3)

    assert four.holders(job) == four.servers[:3]


# Leaving.


@pytest.mark.slow
def test_a_leaving_node_is_drained_and_then_forgotten(fleet: Fleet) -> None:
    cluster = fleet.cluster(4, *CALM)
    leaving, *others = cluster.servers
    leaving_id = leaving.id
    old = {leaving.client.add("leave", n, "REPLICATE", 2, "RETRY", 2) for n in range(20)}

    leaving.client.call("CLUSTER", "LEAVING", "yes")
    eventually(
        lambda: all("leaving" in flags_of(server, leaving_id) for server in others),
        SOON_S,
        "the others know that it leaves",
    )
    new = {leaving.client.add("leave", n, "REPLICATE", 2, "RETRY", 2) for n in range(20)}

    assert not any(leaving in cluster.holders(job) for job in new)
    assert set(drain(others[0].client, "leave", wanted=40)) == old | new
    becomes(leaving.client.registered_jobs, 0, COLLECT_S, "the leaving node's records")
    assert leaving.terminate() == 0
    for server in others:
        server.client.call("CLUSTER", "FORGET", leaving_id)
    Cluster(others).wait()


@pytest.mark.sample(2)
def test_a_forgotten_node_stays_forgotten_until_it_is_met_again(four: Cluster) -> None:
    forgotten = four[3]
    others = Cluster(four.servers[:3])
    forgotten_id = forgotten.id

    for server in others.servers:
        server.client.call("CLUSTER", "FORGET", forgotten_id)

    # It goes on to gossip about itself and to ping the others, which must not take it back.
    several_pings = time.monotonic() + 2
    while time.monotonic() < several_pings:
        assert [len(node_lines(server)) for server in others.servers] == [3] * 3
    others[0].client.call("CLUSTER", "MEET", "127.0.0.1", forgotten.port)
    eventually(
        lambda: flags_of(others[0], forgotten_id),
        SOON_S,
        "the node that was told to meet it knows it",
    )
    for server in others.servers[1:]:
        server.client.call("CLUSTER", "MEET", "127.0.0.1", forgotten.port)
    four.wait()
