import pytest

from disque_trio.statemachine.base import OK, Failure, Status
from disque_trio.statemachine.chores import Connection, ReadVitals, Vitals
from disque_trio.statemachine.client import Blocked, Client
from tests.rig import Rig
from tests.statemachine.commands.chores import asked, done
from tests.statemachine.commands.refused import Refused

SYNTAX_ERROR = Refused(b"ERR syntax error")
USAGE = b"ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name): "
PONG = Status(b"PONG")


def connect(rig: Rig, address: bytes, *, is_unix: bool = False) -> Client:
    client = rig.machine.connect(address, rig.now, is_unix=is_unix)
    assert client is not None
    return client


def listed(rig: Rig, vitals: Vitals | None = None) -> list[str]:
    rig.request("CLIENT", "LIST")
    assert asked(rig) == ReadVitals()
    done(rig, vitals or Vitals())
    reply = rig.reply()
    assert isinstance(reply, bytes)
    assert reply.endswith(b"\n")
    return reply.decode().splitlines()


def flags(rig: Rig) -> list[str]:
    return [line.split(" flags=")[1].split()[0] for line in listed(rig)]


# LIST.


def test_list_shows_what_machine_and_driver_know_of_each_client() -> None:
    rig = Rig()
    other = connect(rig, b"unix:/run/disque.sock", is_unix=True)
    rig.advance(5000)
    rig.ask("CLIENT", "SETNAME", "worker-7", client=other)
    rig.advance(2999)
    connection = Connection(
        fd=9,
        input_bytes=11,
        input_free=22,
        output_bytes=33,
        output_chunks=2,
        events=b"rw",
    )

    connections = {1: Connection(), 2: connection}

    assert listed(rig, Vitals(connection_of=connections.__getitem__)) == [
        (
            "id=1 addr=127.0.0.1:50000 fd=-1 name= age=7 idle=0 flags=N qbuf=0 qbuf-free=0"
            " obl=0 oll=0 omem=0 events=r cmd=client resp=2 lib-name= lib-ver= jobs=0"
        ),
        (
            "id=2 addr=unix:/run/disque.sock fd=9 name=worker-7 age=7 idle=2 flags=U qbuf=11"
            " qbuf-free=22 obl=0 oll=2 omem=33 events=rw cmd=client resp=2 lib-name= lib-ver="
            " jobs=0"
        ),
    ]


def test_a_client_that_has_not_asked_anything_has_no_last_command() -> None:
    rig = Rig()
    rig.connect()

    assert listed(rig)[1].endswith(" cmd=NULL resp=2 lib-name= lib-ver= jobs=0")


def test_flags_tell_what_a_client_is_at() -> None:
    rig = Rig(peers=1)
    watcher, waiter, adder, leaver, all_at_once = [rig.connect() for _ in range(5)]
    rig.ask("MONITOR", client=watcher)
    rig.request("GETJOB", "FROM", "q", client=waiter)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=adder)
    rig.request("QUIT", client=leaver)
    rig.ask("MONITOR", client=all_at_once)
    rig.request("GETJOB", "FROM", "q", client=all_at_once)

    assert flags(rig) == ["N", "O", "b", "b", "c", "Ob"]


# Names.


def test_a_client_has_no_name_until_it_takes_one() -> None:
    rig = Rig()

    assert rig.ask("CLIENT", "GETNAME") is None
    assert rig.ask("CLIENT", "SETNAME", "worker!~7") == OK
    assert rig.ask("CLIENT", "getname") == b"worker!~7"


def test_an_empty_name_takes_the_name_away() -> None:
    rig = Rig()
    rig.ask("CLIENT", "SETNAME", "worker")

    assert rig.ask("CLIENT", "SETNAME", "") == OK
    assert rig.ask("CLIENT", "GETNAME") is None


@pytest.mark.parametrize("name", [b"a b", b"a\n", b"\x7f", "größe"])
def test_a_name_is_one_plain_word(name: bytes | str) -> None:
    rig = Rig()

    assert rig.ask("CLIENT", "SETNAME", name) == Refused(
        b"ERR Client names cannot contain spaces, newlines or special characters."
    )
    assert rig.ask("CLIENT", "GETNAME") is None


# KILL.


def three() -> tuple[Rig, Client, Client]:
    rig = Rig()
    return rig, connect(rig, b"10.0.0.1:1"), connect(rig, b"10.0.0.2:2")


def killed(rig: Rig) -> list[int]:
    return [client.id for client in rig.outboxes[-1].closes]


def test_kill_by_address_disconnects_that_client() -> None:
    rig, first, _ = three()

    assert rig.ask("CLIENT", "KILL", "10.0.0.1:1") == OK
    assert killed(rig) == [first.id]
    assert not rig.machine.accepts(first)


def test_kill_by_address_may_end_the_caller_after_its_answer() -> None:
    rig, _, _ = three()

    assert rig.ask("CLIENT", "KILL", "127.0.0.1:50000") == OK
    assert killed(rig) == [rig.client.id]


def test_kill_of_an_unknown_address_is_an_error() -> None:
    rig, _, _ = three()

    assert rig.ask("CLIENT", "KILL", "10.0.0.9:9") == Refused(b"ERR No such client")


@pytest.mark.parametrize(
    ("filters", "victims"),
    [
        (("ID", "3"), [3]),
        (("ID", "0"), []),
        (("ID", "1"), []),
        (("ID", "1", "SKIPME", "no"), [1]),
        (("ADDR", "10.0.0.1:1"), [2]),
        (("addr", "10.0.0.1:1", "id", "3"), []),
        (("TYPE", "Normal"), [2, 3]),
        (("TYPE", "normal", "SKIPME", "YES"), [2, 3]),
        (("TYPE", "normal", "SKIPME", "No"), [1, 2, 3]),
        (("ID", "2", "ID", "3"), [3]),
    ],
    ids=str,
)
def test_kill_disconnects_those_for_whom_every_filter_holds(
    filters: tuple[str, ...], victims: list[int]
) -> None:
    rig, _, _ = three()

    assert rig.ask("CLIENT", "KILL", *filters) == len(victims)
    assert killed(rig) == victims


@pytest.mark.parametrize(
    ("filters", "reply"),
    [
        ((), SYNTAX_ERROR),
        (("ID", "2", "SKIPME"), SYNTAX_ERROR),
        (("SKIPME", "maybe"), SYNTAX_ERROR),
        (("NAME", "x"), SYNTAX_ERROR),
        (("ID", "x"), Refused(b"ERR value is not an integer or out of range")),
        (("TYPE", "slave"), Refused(b"ERR Unknown client type 'slave'")),
    ],
    ids=str,
)
def test_kill_with_unknown_filters_ends_no_connection(
    filters: tuple[str, ...], reply: Failure
) -> None:
    rig, _, _ = three()

    assert rig.ask("CLIENT", "KILL", *filters) == reply
    assert killed(rig) == []


def test_a_killed_client_waits_for_jobs_no_more() -> None:
    rig, waiter, _ = three()
    rig.request("GETJOB", "FROM", "q", client=waiter)

    rig.ask("CLIENT", "KILL", "ID", waiter.id)
    rig.add()

    assert rig.replies(waiter) == []
    assert rig.ask("QLEN", "q") == 1


def test_the_job_of_a_killed_client_is_given_up() -> None:
    rig = Rig(peers=1)
    adder = rig.connect()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=adder)

    rig.ask("CLIENT", "KILL", "ID", adder.id)

    assert rig.node.jobs == {}


def test_the_driver_may_report_a_killed_client_as_gone() -> None:
    rig, first, _ = three()
    rig.ask("CLIENT", "KILL", "ID", first.id)

    rig.machine.disconnect(first, rig.now)
    rig.take()

    assert list(rig.node.clients) == [1, 3]


# PAUSE.


def test_pause_holds_all_clients_back_for_a_while() -> None:
    rig = Rig()

    assert rig.ask("CLIENT", "PAUSE", 500) == OK
    assert not rig.machine.accepts(rig.client)

    rig.advance(508)

    assert rig.machine.accepts(rig.client)
    assert rig.client in rig.outboxes[-1].resumed or rig.client in rig.outboxes[-2].resumed


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("x", b"ERR timeout is not an integer or out of range"),
        ("-1", b"ERR timeout is negative"),
    ],
)
def test_pause_wants_a_time(word: str, text: bytes) -> None:
    assert Rig().ask("CLIENT", "PAUSE", word) == Refused(text)


# REPLY.


def test_reply_off_silences_everything_until_on() -> None:
    rig = Rig()

    for words in (("CLIENT", "REPLY", "OFF"), ("PING",), ("CLIENT", "REPLY", "SKIP"), ("PING",)):
        rig.request(*words)
    assert rig.replies() == []

    assert rig.ask("CLIENT", "REPLY", "on") == OK
    assert rig.ask("PING") == PONG


def test_reply_skip_silences_itself_and_the_next_command() -> None:
    rig = Rig()

    for words in (("CLIENT", "REPLY", "SKIP"), ("PING", "1"), ("PING", "2"), ("PING", "3")):
        rig.request(*words)

    assert rig.replies() == [b"2", b"3"]


def test_reply_wants_one_of_three_words() -> None:
    assert Rig().ask("CLIENT", "REPLY", "MAYBE") == SYNTAX_ERROR


@pytest.mark.parametrize(
    "words", ["GETNAME x", "SETNAME", "PAUSE", "REPLY", "ID 1", "INFO x", "SETINFO LIB-NAME",
    "NO-EVICT", "NO-TOUCH maybe"],
)  # fmt: skip
def test_wrong_words_behind_a_subcommand_are_refused(words: str) -> None:
    name = words.split(maxsplit=1)[0]

    reply = Rig().ask("CLIENT", *words.split())

    assert isinstance(reply, Failure)
    assert reply.text.startswith(USAGE + f"it is CLIENT {name}".encode())


def test_other_subcommands_are_refused() -> None:
    rig = Rig()

    assert rig.ask("CLIENT", "TRACKING", "on") == Refused(
        USAGE + b"there is no CLIENT 'TRACKING'; there are LIST, INFO, ID, GETNAME, SETNAME,"
        b" SETINFO, KILL, UNBLOCK, PAUSE, REPLY, NO-EVICT, NO-TOUCH"
    )
    assert rig.ask("CLIENT", "setnam", "x") == Refused(
        USAGE + b"there is no CLIENT 'setnam' (did you mean 'SETNAME'?)"
    )


# What clients of today say and ask when they connect.


def test_a_client_is_told_its_number() -> None:
    rig = Rig()

    assert rig.ask("CLIENT", "ID") == 1
    assert rig.ask("CLIENT", "ID", client=rig.connect()) == 2


def test_a_library_says_what_it_is() -> None:
    rig = Rig()
    rig.ask("HELLO", 3)

    assert rig.ask("CLIENT", "SETINFO", "LIB-NAME", "redis-py(x)") == OK
    assert rig.ask("CLIENT", "SETINFO", "lib-ver", "8.1.0") == OK

    assert listed(rig)[0].endswith(" cmd=client resp=3 lib-name=redis-py(x) lib-ver=8.1.0 jobs=0")


def test_what_a_library_says_is_one_short_word() -> None:
    rig = Rig()

    for value in ("a b", "x" * 129):
        assert rig.ask("CLIENT", "SETINFO", "LIB-NAME", value) == Refused(
            b"ERR lib-name cannot contain spaces, newlines or special characters, and has at most"
            b" 128 bytes"
        )
    assert rig.ask("CLIENT", "SETINFO", "LIB-NAME", "x" * 128) == OK
    assert rig.ask("CLIENT", "SETINFO", "LIB-COLOR", "red") == Refused(
        b"ERR Unrecognized option 'LIB-COLOR': there are LIB-NAME and LIB-VER"
    )


def test_no_client_is_evicted_and_nothing_grows_old() -> None:
    for words in ("NO-EVICT on", "NO-EVICT OFF", "NO-TOUCH ON", "no-touch off"):
        assert Rig().ask("CLIENT", *words.split()) == OK


def lines(rig: Rig, *words: str) -> list[str]:
    rig.request("CLIENT", *words)
    done(rig, Vitals())
    reply = rig.reply()
    assert isinstance(reply, bytes)
    return [line.split(" ")[0] for line in reply.decode().splitlines()]


def test_a_client_may_ask_about_itself_or_a_few() -> None:
    rig, _, _ = three()

    assert lines(rig, "INFO") == ["id=1"]
    assert lines(rig, "LIST", "ID", "3", "99", "1") == ["id=3", "id=1"]
    assert lines(rig, "LIST", "TYPE", "normal") == ["id=1", "id=2", "id=3"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("x", "ERR syntax error: CLIENT LIST [TYPE normal] [ID id ...]"),
        ("ID", "ERR syntax error: CLIENT LIST [TYPE normal] [ID id ...]"),
        ("ID x", "ERR Invalid client ID"),
        ("TYPE pubsub", "ERR Unknown client type 'pubsub'"),
    ],
)
def test_a_list_of_a_few_says_which(words: str, text: str) -> None:
    assert Rig().ask("CLIENT", "LIST", *words.split()) == Refused(text.encode())


def test_a_client_that_asks_for_a_chore_does_not_count_as_waiting() -> None:
    rig = Rig()
    rig.request("CLIENT", "LIST", client=rig.connect())

    assert list(rig.node.clients.values())[1].blocked is Blocked.CHORE
    assert flags(rig) == ["N", "N"]
