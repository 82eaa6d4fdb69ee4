import pytest

from disque_trio.statemachine.base import OK, Reply
from disque_trio.statemachine.commands import slowlog
from disque_trio.statemachine.config import Config
from tests.rig import WALL, Rig
from tests.statemachine.commands.refused import Refused

WALL_S = WALL // 1000


def ids(reply: Reply) -> list[Reply]:
    assert isinstance(reply, list)
    return [entry[0] for entry in reply if isinstance(entry, list)]


def test_a_slow_command_is_remembered_with_its_time_and_arguments() -> None:
    rig = Rig()

    slowlog.record(rig.node, [b"GETJOB", b"FROM", b"q"], 10_000)

    assert rig.ask("SLOWLOG", "GET") == [[0, WALL_S, 10_000, [b"GETJOB", b"FROM", b"q"]]]


def test_a_quick_command_is_not_remembered() -> None:
    rig = Rig()

    slowlog.record(rig.node, [b"PING"], 9_999)

    assert rig.ask("SLOWLOG", "LEN") == 0


def test_a_threshold_of_zero_remembers_everything() -> None:
    rig = Rig(config=Config(slowlog_log_slower_than_us=0))

    slowlog.record(rig.node, [b"PING"], 0)

    assert rig.ask("SLOWLOG", "LEN") == 1


def test_a_negative_threshold_remembers_nothing() -> None:
    rig = Rig(config=Config(slowlog_log_slower_than_us=-1))

    slowlog.record(rig.node, [b"PING"], 1 << 40)

    assert rig.ask("SLOWLOG", "LEN") == 0


def test_the_newest_entries_come_first_and_the_oldest_go() -> None:
    rig = Rig(config=Config(slowlog_max_len=2))

    for number in range(3):
        slowlog.record(rig.node, [b"PING", b"%d" % number], 20_000)

    assert rig.ask("SLOWLOG", "GET", 10) == [
        [2, WALL_S, 20_000, [b"PING", b"2"]],
        [1, WALL_S, 20_000, [b"PING", b"1"]],
    ]


def test_a_shorter_log_forgets_with_the_next_entry() -> None:
    rig = Rig()
    for _ in range(3):
        slowlog.record(rig.node, [b"PING"], 20_000)

    rig.ask("CONFIG", "SET", "slowlog-max-len", 1)
    slowlog.record(rig.node, [b"PING"], 20_000)

    assert ids(rig.ask("SLOWLOG", "GET")) == [3]


@pytest.mark.parametrize(
    ("count", "expected"),
    [((), 10), ((3,), 3), ((0,), 0), ((-1,), 12), ((100,), 12), (("",), 0)],
)
def test_get_answers_as_many_as_asked_for(count: tuple[int | str, ...], expected: int) -> None:
    rig = Rig()
    for _ in range(12):
        slowlog.record(rig.node, [b"PING"], 20_000)

    assert ids(rig.ask("SLOWLOG", "GET", *count)) == list(range(11, 11 - expected, -1))


def test_a_reset_log_is_empty_and_counts_on() -> None:
    rig = Rig()
    slowlog.record(rig.node, [b"PING"], 20_000)

    assert rig.ask("SLOWLOG", "RESET") == OK
    assert rig.ask("SLOWLOG", "LEN") == 0

    slowlog.record(rig.node, [b"PING"], 20_000)

    assert ids(rig.ask("SLOWLOG", "GET")) == [1]


def test_thirty_two_arguments_are_kept_whole() -> None:
    rig = Rig()

    slowlog.record(rig.node, [b"x"] * 32, 20_000)

    assert rig.ask("SLOWLOG", "GET") == [[0, WALL_S, 20_000, [b"x"] * 32]]


def test_of_more_arguments_the_rest_is_counted() -> None:
    rig = Rig()

    slowlog.record(rig.node, [b"x"] * 33, 20_000)

    kept = [*[b"x"] * 31, b"... (2 more arguments)"]
    assert rig.ask("SLOWLOG", "GET") == [[0, WALL_S, 20_000, kept]]


def test_a_long_argument_is_cut() -> None:
    rig = Rig()

    slowlog.record(rig.node, [b"x" * 128, b"y" * 131], 20_000)

    kept = [b"x" * 128, b"y" * 128 + b"... (3 more bytes)"]
    assert rig.ask("SLOWLOG", "GET") == [[0, WALL_S, 20_000, kept]]


@pytest.mark.parametrize(
    "words", [("RESIZE",), ("GET", "1", "2"), ("LEN", "1"), ("RESET", "1")], ids=" ".join
)
def test_other_subcommands_are_refused(words: tuple[str, ...]) -> None:
    text = b"ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN."

    assert Rig().ask("SLOWLOG", *words) == Refused(text)


def test_a_count_must_be_a_number() -> None:
    text = b"ERR value is not an integer or out of range"

    assert Rig().ask("SLOWLOG", "GET", "x") == Refused(text)
