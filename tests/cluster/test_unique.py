"""UNIQUE over real sockets: many producers at all nodes want the same keys at the same time."""

import contextlib
import itertools
import random
from collections import defaultdict

import pytest

from tests.cluster.processes import CALM, SOON_S, Cluster, Fleet, becomes
from tests.cluster.talk import Client, as_text, connection

KEYS = 40
EACH = 10


@pytest.fixture(scope="module")
def three(shared_fleet: Fleet) -> Cluster:
    return shared_fleet.cluster(3, *CALM)


def ids_of_keys(producers: list[Client], queue: str, copies: int) -> dict[str, set[bytes]]:
    """Each key is added EACH times in mixed order, by whichever producer's turn it is."""
    keys = [f"key-{number}" for number in range(KEYS)] * EACH
    random.Random(7).shuffle(keys)
    for key, producer in zip(keys, itertools.cycle(producers), strict=False):
        producer.send("ADDJOB", queue, key, 0, "REPLICATE", copies, "UNIQUE", key)
    ids: defaultdict[str, set[bytes]] = defaultdict(set)
    for key, producer in zip(keys, itertools.cycle(producers), strict=False):
        ids[key].add(as_text(producer.receive()))
    return ids


@pytest.mark.parametrize("copies", [1, 3])
def test_each_key_has_one_job_and_every_producer_its_id(three: Cluster, copies: int) -> None:
    queue = f"storm-{copies}"
    with contextlib.ExitStack() as stack:
        ports = [server.port for server in three.servers] * 3
        producers = [stack.enter_context(connection(port)) for port in ports]

        ids = ids_of_keys(producers, queue, copies)

    assert [len(found) for found in ids.values()] == [1] * KEYS
    becomes(
        lambda: sum(server.client.number("QLEN", queue) for server in three.servers),
        KEYS,
        SOON_S,
        "as many jobs as keys",
    )


def test_a_key_is_free_for_all_once_its_job_is_done_and_not_while_it_is_kept(
    three: Cluster,
) -> None:
    here, there = three[0].client, three[2].client
    kept = here.add("kept", "a", "UNIQUE", "k", "KEEP", 600)
    freed = here.add("freed", "a", "UNIQUE", "k")
    here.number("ACKJOB", kept, freed)

    assert there.add("kept", "b", "UNIQUE", "k") == kept
    becomes(
        lambda: there.add("freed", "b", "UNIQUE", "k") != freed,
        True,
        SOON_S,
        "the key of a finished job is free",
    )
