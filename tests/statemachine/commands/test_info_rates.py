"""INFO's rates, and what it counts from."""

import attrs

from disque_trio.statemachine.base import OK
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.stats import Traffic
from tests.rig import Rig
from tests.statemachine.commands.informed import fields_of

# Rates.


def rates(rig: Rig) -> tuple[str, str, str]:
    stats = fields_of(rig, "stats")
    return (
        stats["instantaneous_ops_per_sec"],
        stats["instantaneous_input_kbps"],
        stats["instantaneous_output_kbps"],
    )


def burst(rig: Rig, commands: int = 160) -> None:
    for _ in range(commands):
        rig.request("PING")
    rig.node.facts.traffic.received += 1_638_400
    rig.node.facts.traffic.sent += 16_384
    rig.take()
    rig.replies()


def test_what_has_just_come_counts_when_its_tenth_of_a_second_is_over() -> None:
    rig = Rig()

    burst(rig, commands=158)
    assert rates(rig) == ("0", "0.00", "0.00")

    rig.now.mono += 100
    assert rates(rig) == ("100", "1000.00", "10.00")


def test_a_burst_is_forgotten_after_sixteen_tenths() -> None:
    rig = Rig()
    burst(rig)

    rig.now.mono += 1600
    assert rates(rig) == ("100", "1000.00", "10.00")

    rig.now.mono += 100
    assert rates(rig)[1:] == ("0.00", "0.00")


def test_a_steady_rate_is_shown_as_it_is() -> None:
    rig = Rig()
    for _ in range(20):
        burst(rig, commands=16)
        rig.now.mono += 100

    assert rates(rig) == ("160", "16000.00", "160.00")


def test_a_long_silence_leaves_nothing_but_zeros() -> None:
    rig = Rig()
    burst(rig)
    rig.now.mono += 3_600_000
    rig.take()
    burst(rig, commands=32)
    rig.now.mono += 150

    assert rates(rig) == ("20", "1000.00", "10.00")


def test_resetstat_counts_from_zero_but_not_the_uptime() -> None:
    rig = Rig()
    rig.machine.timed(BY_NAME["ping"], [b"PING"], 3)
    burst(rig)
    rig.advance(10_000)

    assert rig.ask("CONFIG", "RESETSTAT") == OK

    stats = fields_of(rig, "stats")
    assert stats["total_net_input_bytes"] == stats["total_net_output_bytes"] == "0"
    assert stats["total_commands_processed"] == "1"
    assert stats["total_connections_received"] == "0"
    assert fields_of(rig, "commandstats") == {}
    assert fields_of(rig, "server")["uptime_in_seconds"] == "10"
    rig.now.mono += 100
    assert rates(rig)[1:] == ("0.00", "0.00")


def test_the_driver_counts_traffic_in_the_facts_it_gave() -> None:
    traffic = Traffic()
    rig = Rig()
    rig.node.facts = attrs.evolve(rig.node.facts, traffic=traffic)

    traffic.received += 5
    traffic.sent += 7

    stats = fields_of(rig, "stats")
    assert (stats["total_net_input_bytes"], stats["total_net_output_bytes"]) == ("5", "7")
