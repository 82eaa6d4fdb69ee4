import pytest

from disque_trio.statemachine import limiting
from disque_trio.statemachine.base import FAIL, OK, PFAIL, Failure, Map, Reply
from tests.rig import ME, N2, Rig
from tests.statemachine.commands.informed import fields_of


def info(rig: Rig, name: str = "q") -> dict[bytes, Reply]:
    reply = rig.ask("QUEUE", "INFO", name)
    assert isinstance(reply, list)
    named = iter(reply)
    return {
        name: value for name, value in zip(named, named, strict=True) if isinstance(name, bytes)
    }


def test_the_limits_of_a_queue_are_shown() -> None:
    rig = Rig(peers=1)

    assert (
        rig.ask("queue", "limit", "q", "CONCURRENCY", 5, "rate", 7, "per", "0.5", "Burst", 3) == OK
    )

    found = info(rig)
    assert found | {b"concurrency": 5, b"rate": 7, b"period-ms": 500, b"burst": 3} == found
    assert (found[b"keeper"], found[b"leased"], found[b"may-deliver"]) == (ME, 0, 0)
    assert (found[b"waits"], found[b"parts"], found[b"unlimited-nodes"]) == (0, 0, [N2])


def test_loose_limits_are_shown() -> None:
    rig = Rig()
    rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 5)
    assert info(rig)[b"loose"] == 0

    rig.ask("QUEUE", "LIMIT", "q", "loose", "CONCURRENCY", 5)

    assert info(rig)[b"loose"] == 1


def test_a_queue_without_limits_has_none_to_show() -> None:
    rig = Rig()

    assert info(rig)[b"concurrency"] == 0
    rig.ask("QUEUE", "LIMIT", "q", "RATE", 5)
    rig.ask("QUEUE", "LIMIT", "q", "NONE")
    assert b"keeper" not in info(rig)


def test_a_rate_is_per_second_unless_told_otherwise() -> None:
    rig = Rig()

    rig.ask("QUEUE", "LIMIT", "q", "RATE", 7)

    assert info(rig)[b"period-ms"] == 1000


def test_limits_replace_those_before() -> None:
    rig = Rig()
    rig.ask("QUEUE", "LIMIT", "q", "RATE", 7)

    rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 1)

    assert (info(rig)[b"concurrency"], info(rig)[b"rate"]) == (1, 0)


def test_a_map_for_clients_that_know_it() -> None:
    rig = Rig()
    rig.client.protocol = 3

    assert isinstance(rig.ask("QUEUE", "INFO", "q"), Map)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["LIMIT", "q"],
            b"QUEUE LIMIT needs CONCURRENCY, RATE, GROUP-CONCURRENCY, GROUP-RATE or NONE",
        ),
        (["LIMIT", "q", "PER", "1"], b"PER needs RATE"),
        (["LIMIT", "q", "LOOSE"], b"QUEUE LIMIT needs CONCURRENCY, RATE, GROUP-CONCURRENCY"),
        (["LIMIT", "q", "GROUP-RATE", "1", "PER", "0"], b"GROUP-PER must be seconds from 0.001"),
        (["LIMIT", "q", "PER", "2", "GROUP-RATE", "1"], b"PER needs RATE"),
        (["LIMIT", "q", "CONCURRENCY", "1", "GROUP-BURST", "1"], b"GROUP-BURST needs GROUP-RATE"),
        (["LIMIT", "q", "CONCURRENCY", "1", "BURST", "1"], b"BURST needs RATE"),
        (["LIMIT", "q", "CONCURRENCY", "0"], b"CONCURRENCY must be a whole number from 1"),
        (["LIMIT", "q", "RATE", "1", "PER", "0"], b"PER must be seconds from 0.001"),
        (["LIMIT", "q", "RAET", "1"], b"RAET"),
        (["LIMIT"], b"ERR Unknown QUEUE subcommand"),
        (["INFO", "q", "r"], b"ERR Unknown QUEUE subcommand"),
        (["LIMITS", "q", "NONE"], b"ERR Unknown QUEUE subcommand"),
    ],
)
def test_mistakes_are_named(words: list[str], error: bytes) -> None:
    rig = Rig()

    reply = rig.ask("QUEUE", *words)

    assert isinstance(reply, Failure)
    assert error in reply.text
    assert rig.node.limits == {}


def test_info_counts_queues_with_limits_and_nodes_that_do_not_know_them() -> None:
    rig = Rig(peers=1)
    assert fields_of(rig, "queues").keys() == {"registered_queues"}
    rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 1)
    rig.ask("QUEUE", "LIMIT", "idle", "RATE", 1)
    for _ in range(2):
        rig.add("REPLICATE", 1)
        rig.request("GETJOB", "FROM", "q", client=rig.connect())

    found = fields_of(rig, "queues")

    assert found | {
        "limited_queues": "2", "limited_queues_waiting": "1", "nodes_without_limits": "1"
    } == found  # fmt: skip


@pytest.mark.parametrize("flag", [PFAIL, FAIL])
def test_a_lost_node_is_none_that_does_not_know_limits(flag: int) -> None:
    rig = Rig(peers=1)
    rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 1)
    [peer] = [each for each in rig.node.cluster.nodes.values() if each.link]
    assert limiting.unlimited_nodes(rig.node) == [peer.id]

    peer.flags |= flag

    assert limiting.unlimited_nodes(rig.node) == []


def test_qstat_says_that_a_queue_waits_for_its_limits() -> None:
    rig = Rig()
    rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 1)
    for _ in range(2):
        rig.add()
        rig.request("GETJOB", "FROM", "q", client=rig.connect())

    reply = rig.ask("QSTAT", "q")

    assert isinstance(reply, list)
    assert reply[-20:] == [
        b"concurrency", 1, b"rate", 0, b"period-ms", 0, b"burst", 0, b"limited", 1, b"loose", 0,
        b"group-concurrency", 0, b"group-rate", 0, b"group-period-ms", 0, b"group-burst", 0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        "GROUP-CONCURRENCY 2 GROUP-RATE 3 PER 0.5 BURST 4 RATE 7",
        "RATE 7 PER 1 GROUP-RATE 3 burst 4 per 0.5 GROUP-CONCURRENCY 2",
        "GROUP-BURST 4 GROUP-PER 0.5 RATE 7 GROUP-RATE 3 GROUP-CONCURRENCY 2",
    ],
)
def test_limits_of_groups_are_shown(words: str) -> None:
    rig = Rig()

    assert rig.ask("QUEUE", "LIMIT", "q", *words.split()) == OK

    found = info(rig)
    of_groups = {b"group-concurrency": 2, b"group-rate": 3}
    assert found | of_groups | {b"group-period-ms": 500, b"group-burst": 4} == found
    assert (found[b"rate"], found[b"period-ms"], found[b"burst"]) == (7, 1000, 0)


def test_groups_in_use_and_those_that_wait_are_shown() -> None:
    rig = Rig()
    rig.ask("QUEUE", "LIMIT", "q", "GROUP-CONCURRENCY", 1)
    for group in "xxy":
        rig.ask("ADDJOB", "q", "body", 0, "GROUP", group)

    rig.ask("GETJOB", "COUNT", 5, "FROM", "q")

    assert (info(rig)[b"groups-in-use"], info(rig)[b"groups-that-wait"]) == (2, 1)
