import pytest

from disque_trio.statemachine.base import OK
from disque_trio.statemachine.commands import latency
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.config import Config
from tests.rig import WALL, Rig
from tests.statemachine.commands.refused import Refused

WALL_S = WALL // 1000


def watching(threshold: int = 10) -> Rig:
    return Rig(config=Config(latency_monitor_threshold=threshold))


def text_of(rig: Rig, *words: str) -> str:
    reply = rig.ask("LATENCY", *words)
    assert isinstance(reply, bytes)
    return reply.decode()


def test_nothing_is_remembered_while_the_threshold_is_zero() -> None:
    rig = watching(0)

    latency.record(rig.node, b"command", 1_000_000)

    assert rig.ask("LATENCY", "LATEST") == []


def test_a_pause_below_the_threshold_is_not_remembered() -> None:
    rig = watching(10)

    latency.record(rig.node, b"command", 9)
    latency.record(rig.node, b"command", 10)

    assert rig.ask("LATENCY", "HISTORY", "command") == [[WALL_S, 10]]


def test_one_second_keeps_its_worst_pause() -> None:
    rig = watching()

    for pause in (20, 50, 30):
        latency.record(rig.node, b"command", pause)
    rig.advance(1000)
    latency.record(rig.node, b"command", 40)

    assert rig.ask("LATENCY", "HISTORY", "command") == [[WALL_S, 50], [WALL_S + 1, 40]]


def test_latest_shows_the_last_and_the_worst_of_every_event() -> None:
    rig = watching()
    latency.record(rig.node, b"command", 50)
    latency.record(rig.node, b"fast-command", 15)
    rig.advance(2000)
    latency.record(rig.node, b"command", 20)

    assert rig.ask("LATENCY", "LATEST") == [
        [b"command", WALL_S + 2, 20, 50],
        [b"fast-command", WALL_S, 15, 15],
    ]


def test_history_keeps_the_last_160_seconds_that_had_a_pause() -> None:
    rig = watching()
    for pause in range(100, 261):
        latency.record(rig.node, b"command", pause)
        rig.advance(1000)

    history = rig.ask("LATENCY", "HISTORY", "command")

    assert isinstance(history, list)
    assert (len(history), history[0], history[-1]) == (160, [WALL_S + 1, 101], [WALL_S + 160, 260])


def test_an_event_that_never_was_has_an_empty_history() -> None:
    assert watching().ask("LATENCY", "HISTORY", "command") == []


def test_reset_forgets_the_events_named() -> None:
    rig = watching()
    for event in (b"command", b"fast-command", b"jobs-processing"):
        latency.record(rig.node, event, 10)

    assert rig.ask("LATENCY", "RESET", "command", "command", "unheard-of") == 1
    assert rig.ask("LATENCY", "RESET") == 2
    assert rig.ask("LATENCY", "LATEST") == []


def test_a_graph_has_a_column_for_each_sample() -> None:
    rig = watching()
    for pause in (100, 10, 55, 100):
        latency.record(rig.node, b"command", pause)
        rig.advance(60_000)
    rig.ask("LATENCY", "RESET", "unheard-of")

    assert text_of(rig, "GRAPH", "command") == (
        "command: 4 samples from 4m to 1m ago, worst ever 100 ms\n"
        "100 |#  #\n"
        "    |#  #\n"
        "    |#  #\n"
        "    |# ##\n"
        "    |# ##\n"
        " 10 |####\n"
        "    +----\n"
    )


def test_a_graph_of_equal_samples_is_one_row_high() -> None:
    rig = watching()
    latency.record(rig.node, b"command", 10)

    assert text_of(rig, "GRAPH", "command") == (
        "command: 1 sample from 0s to 0s ago, worst ever 10 ms\n10 |#\n   +-\n"
    )


def test_a_graph_shows_the_newest_samples() -> None:
    rig = watching()
    for pause in [90, *[10] * 72]:
        latency.record(rig.node, b"command", pause)
        rig.advance(1000)

    graph = text_of(rig, "GRAPH", "command").splitlines()

    assert graph[0] == "command: 72 samples from 1m to 1s ago, worst ever 90 ms"
    assert graph[1:] == ["10 |" + "#" * 72, "   +" + "-" * 72]


def test_an_event_that_never_was_has_no_graph() -> None:
    text = b"ERR No samples available for event 'x'"

    assert watching().ask("LATENCY", "GRAPH", "x") == Refused(text)


@pytest.mark.parametrize(
    ("wait_s", "age"), [(59, "59s"), (3599, "59m"), (86_399, "23h"), (200_000, "2d")]
)
def test_ages_are_told_in_their_largest_unit(wait_s: int, age: str) -> None:
    rig = watching()
    latency.record(rig.node, b"command", 10)
    rig.now.wall += wait_s * 1000

    assert f"last {age} ago" in text_of(rig, "DOCTOR")


def test_a_wall_clock_that_was_put_back_makes_no_negative_age() -> None:
    rig = watching()
    latency.record(rig.node, b"command", 10)
    rig.now.wall -= 5000

    assert "last 0s ago" in text_of(rig, "DOCTOR")


def test_the_doctor_says_how_to_switch_the_monitor_on() -> None:
    assert "CONFIG SET latency-monitor-threshold" in text_of(watching(0), "DOCTOR")


def test_the_doctor_finds_nothing_where_nothing_is() -> None:
    assert text_of(watching(25), "DOCTOR") == "No pause of 25 ms or more was seen.\n"


@pytest.mark.parametrize("event", list(latency.ADVICE))
def test_the_doctor_has_advice_for_every_event(event: bytes) -> None:
    rig = watching()
    latency.record(rig.node, event, 20)
    rig.advance(1000)
    latency.record(rig.node, event, 31)

    text = text_of(rig, "DOCTOR")

    assert text.startswith(f"{event.decode()}: 2 samples, mean 26 ms, worst ever 31 ms, last 0s")
    assert latency.ADVICE[event] in text


def test_the_doctor_admits_what_it_does_not_know() -> None:
    rig = watching()
    latency.record(rig.node, b"\xff", 20)

    assert "\\xff: 1 sample," in text_of(rig, "DOCTOR")
    assert "Nothing is known about this event." in text_of(rig, "DOCTOR")


def test_slow_commands_are_events_by_whether_they_should_be_fast() -> None:
    rig = watching()

    rig.machine.timed(BY_NAME["ping"], [b"PING"], 12_999_000)
    rig.machine.timed(BY_NAME["jscan"], [b"JSCAN"], 25_000_000)
    rig.machine.timed(BY_NAME["jscan"], [b"JSCAN"], 9_999_000)

    assert rig.ask("LATENCY", "LATEST") == [
        [b"fast-command", WALL_S, 12, 12],
        [b"command", WALL_S, 25, 25],
    ]


@pytest.mark.parametrize(
    "words",
    [("LATEST", "x"), ("HISTORY",), ("GRAPH",), ("GRAPH", "a", "b"), ("DOCTOR", "x"), ("HEAL",)],
    ids=" ".join,
)
def test_other_subcommands_are_refused(words: tuple[str, ...]) -> None:
    assert watching().ask("LATENCY", *words) == Refused(b"ERR syntax error")


def test_a_threshold_set_at_runtime_counts_at_once() -> None:
    rig = watching(0)

    assert rig.ask("CONFIG", "SET", "latency-monitor-threshold", 5) == OK
    rig.machine.observe(b"jobs-processing", 7, rig.now)

    assert rig.ask("LATENCY", "HISTORY", "jobs-processing") == [[WALL_S, 7]]
