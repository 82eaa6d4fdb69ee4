import attrs
import pytest

from disque_trio.statemachine.base import NULL_ARRAY, OK, Status
from disque_trio.statemachine.chores import (
    ReadJournal,
    RewriteConfig,
    RewriteJournal,
    Shutdown,
    Sleep,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands import server
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.records import LoadJob
from tests.rig import JOB, WALL, Rig, copy_of
from tests.statemachine.commands.chores import asked, done
from tests.statemachine.commands.refused import Refused

NOAUTH = Refused(b"NOAUTH Authentication required.")
SYNTAX_ERROR = Refused(b"ERR syntax error")


def with_file() -> Rig:
    rig = Rig()
    rig.node.facts = attrs.evolve(rig.node.facts, config_file="/etc/disque.conf")
    return rig


# PING, ECHO, TIME; AUTH and SELECT are in `test_connecting`.


def test_ping_answers_pong_or_its_argument() -> None:
    rig = Rig()

    assert rig.ask("PING") == Status(b"PONG")
    assert rig.ask("PING", "hello") == b"hello"
    assert rig.ask("PING", "") == b""
    assert rig.ask("PING", "a", "b") == Refused(b"ERR wrong number of arguments for 'ping' command")


def test_echo_answers_the_message() -> None:
    assert Rig().ask("ECHO", b"a\r\nb") == b"a\r\nb"


def test_time_is_the_wall_clock() -> None:
    rig = Rig()
    rig.now.wall = 1_800_000_000_042
    rig.now.micros = 7

    assert rig.ask("TIME") == [b"1800000000", b"42007"]


# SHUTDOWN.


def test_shutdown_is_answered_by_the_end() -> None:
    rig = Rig()

    rig.request("SHUTDOWN")

    assert rig.replies() == []
    assert asked(rig) == Shutdown(restart=False, graceful=True, delay=0)


def test_a_shutdown_that_fails_is_an_error() -> None:
    rig = Rig()
    rig.request("SHUTDOWN")

    done(rig, "no way")

    assert rig.reply() == Refused(b"ERR Errors trying to SHUTDOWN. Check logs.")


def test_a_shutdown_may_write_the_journal_anew() -> None:
    rig = Rig()
    rig.request("SHUTDOWN", "rewrite-aof")

    assert asked(rig) == Shutdown(rewrite_journal=True)


def test_a_shutdown_while_loading_leaves_the_journal_as_it_is() -> None:
    rig = Rig()
    rig.machine.load([], rig.now)
    rig.request("SHUTDOWN", "REWRITE-AOF")

    assert asked(rig) == Shutdown()


@pytest.mark.parametrize("words", [("NOW",), ("REWRITE-AOF", "NOW")])
def test_shutdown_takes_no_other_words(words: tuple[str, ...]) -> None:
    assert Rig().ask("SHUTDOWN", *words) == SYNTAX_ERROR


# MONITOR.


def monitored() -> tuple[Rig, Client]:
    rig = Rig()
    watcher = rig.connect()
    assert rig.ask("MONITOR", client=watcher) == OK
    return rig, watcher


def test_a_monitor_sees_what_others_ask() -> None:
    rig, watcher = monitored()
    rig.now.wall = 1_800_000_000_042
    rig.now.micros = 7

    rig.request("ping", "hello")

    assert rig.replies(watcher) == [Status(b'1800000000.042007 [127.0.0.1:50000] "ping" "hello"')]


def test_a_monitor_sees_nothing_of_requests_that_are_refused() -> None:
    rig, watcher = monitored()

    rig.request("NOSUCHTHING")
    rig.request("AUTH")

    assert rig.replies(watcher) == []


def test_a_second_monitor_is_not_answered() -> None:
    rig, watcher = monitored()

    rig.request("MONITOR", client=watcher)

    assert OK not in rig.replies(watcher)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        (b"", rb'""'),
        (b'say "hi"\\', rb'"say \"hi\"\\"'),
        (b"\n\r\t\a\b", rb'"\n\r\t\a\b"'),
        (b"\x00\x1f\x7f\x80\xff", rb'"\x00\x1f\x7f\x80\xff"'),
        (b" !~'", b'" !~\'"'),
    ],
)
def test_arguments_are_quoted_for_monitors(argument: bytes, shown: bytes) -> None:
    rig = Rig()

    line = server.monitor_line(rig.node, rig.client, [argument])

    assert line == b"%d.000000 [127.0.0.1:50000] %b" % (WALL // 1000, shown)


# DEBUG.


def test_flushall_leaves_no_job_and_no_queue() -> None:
    rig = Rig()
    rig.add(queue="one")
    rig.ask("PAUSE", "two", "all")

    assert rig.ask("DEBUG", "flushall") == OK
    assert (rig.node.jobs, rig.node.queues) == ({}, {})


def test_flushall_answers_clients_that_wait_for_jobs() -> None:
    rig = Rig()
    waiting = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=waiting)

    rig.request("DEBUG", "FLUSHALL")

    assert rig.reply(waiting) is NULL_ARRAY


def test_flushall_answers_clients_that_wait_for_copies() -> None:
    rig = Rig(peers=1)
    waiting = rig.connect()
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=waiting)

    rig.request("DEBUG", "FLUSHALL")

    assert rig.reply(waiting) == Refused(
        b"NOREPL job removed (expired?) before the requested replication level was achieved"
    )


@pytest.mark.parametrize(
    ("word", "seconds"), [("0.25", 0.25), ("3", 3.0), ("0", 0.0), ("1e308", 1 << 30)]
)
def test_debug_sleep_is_answered_after_the_sleep(word: str, seconds: float) -> None:
    rig = Rig()

    rig.request("DEBUG", "SLEEP", word)
    assert rig.replies() == []
    assert asked(rig) == Sleep(seconds)

    done(rig, None)
    assert rig.reply() == OK


def test_a_sleep_counts_as_a_slow_command() -> None:
    rig = Rig(config=Config(latency_monitor_threshold=100))
    rig.request("DEBUG", "SLEEP", "0.3")

    rig.advance(300)
    done(rig, None)

    [entry] = rig.node.slowlog.entries
    assert (entry.usec, entry.args) == (300_000, [b"DEBUG", b"SLEEP", b"0.3"])
    assert rig.node.latency.events[b"command"].worst == 300


@pytest.mark.parametrize("word", ["x", "", "-1", "nan", "inf", "\xff"])
def test_debug_sleep_wants_a_time_that_passes(word: str) -> None:
    assert Rig().ask("DEBUG", "SLEEP", word) == Refused(b"ERR value is not a valid float")


def test_debug_error_answers_the_text_on_one_line() -> None:
    assert Rig().ask("DEBUG", "ERROR", "MINE a\r\nb") == Refused(b"MINE a  b")


def test_structsize_tells_the_size_of_the_records() -> None:
    reply = Rig().ask("DEBUG", "STRUCTSIZE")

    assert isinstance(reply, bytes)
    sizes = dict(field.split(":") for field in reply.decode().split())
    assert list(sizes) == ["job", "queue", "client", "peer", "link"]
    assert 100 < int(sizes["job"]) < 400


def test_restart_saves_the_configuration_first() -> None:
    rig = with_file()

    rig.request("DEBUG", "RESTART", 50)
    assert asked(rig) == RewriteConfig()

    done(rig, None)
    assert asked(rig) == Shutdown(restart=True, graceful=True, delay=50)
    assert rig.replies() == []


def test_a_restart_waits_no_longer_than_a_process_can_sleep() -> None:
    rig = Rig()

    rig.request("DEBUG", "RESTART", (1 << 63) - 1)

    assert asked(rig) == Shutdown(restart=True, graceful=True, delay=1000 << 30)


def test_restart_without_a_configuration_file_saves_nothing() -> None:
    rig = Rig()

    rig.request("DEBUG", "RESTART")

    assert asked(rig) == Shutdown(restart=True, graceful=True, delay=0)


def test_a_configuration_that_cannot_be_saved_prevents_the_restart() -> None:
    rig = with_file()
    rig.request("DEBUG", "RESTART")

    done(rig, "No space left on device")

    assert rig.reply() == Refused(b"ERR The server could not be restarted: No space left on device")
    assert rig.outboxes[-1].chores == []


def test_crash_and_recover_saves_nothing() -> None:
    rig = with_file()

    rig.request("DEBUG", "CRASH-AND-RECOVER", -5)

    assert asked(rig) == Shutdown(restart=True, graceful=False, delay=0)


def test_a_restart_that_fails_is_an_error() -> None:
    rig = Rig()
    rig.request("DEBUG", "CRASH-AND-RECOVER")

    done(rig, "cannot execute")

    assert rig.reply() == Refused(b"ERR The server could not be restarted: cannot execute")


def test_the_delay_of_a_restart_is_a_number() -> None:
    text = b"ERR value is not an integer or out of range"

    assert Rig().ask("DEBUG", "RESTART", "soon") == Refused(text)


@pytest.mark.parametrize("word", ["SEGFAULT", "assert", "OOM"])
def test_crashing_on_purpose_is_not_offered(word: str) -> None:
    text = b"ERR This server offers no command that crashes it on purpose"

    assert Rig().ask("DEBUG", word) == Refused(text)


@pytest.mark.parametrize(
    "words",
    [
        ("SLEEP",),
        ("FLUSHALL", "now"),
        ("LOADAOF", "x"),
        ("RESTART", "1", "2"),
        ("SEGFAULT", "1"),
        ("ERROR",),
        ("OBJECT", "x"),
    ],
    ids=" ".join,
)
def test_other_debug_subcommands_are_refused(words: tuple[str, ...]) -> None:
    text = b"ERR Unknown DEBUG subcommand or wrong number of arguments for '%b'"

    assert Rig().ask("DEBUG", *words) == Refused(text % words[0].encode())


# The append-only file.


def test_a_record_of_the_file_is_no_request() -> None:
    assert Rig().ask("LOADJOB", "x") == Refused(
        b"ERR LOADJOB is a special command only processed from AOF"
    )


def test_bgrewriteaof_is_the_drivers_work() -> None:
    rig = Rig()
    rig.request("BGREWRITEAOF")
    assert asked(rig) == RewriteJournal()

    done(rig, None)

    assert rig.reply() == Status(b"Background append only file rewriting started")


def test_bgrewriteaof_tells_why_it_cannot() -> None:
    rig = Rig()
    rig.request("BGREWRITEAOF")

    done(rig, "Background append only file rewriting already in progress")

    assert rig.reply() == Refused(b"ERR Background append only file rewriting already in progress")


def test_debug_loadaof_replaces_what_there_is_and_writes_no_record() -> None:
    rig = Rig(config=Config(appendonly=True))
    rig.add("RETRY", 60)
    rig.take()
    rig.request("DEBUG", "LOADAOF")
    assert asked(rig) == ReadJournal()

    done(rig, [LoadJob(copy_of(ttl=WALL // 1000 + 60))])

    assert rig.reply() == OK
    assert list(rig.node.jobs) == [JOB]
    assert not rig.outboxes[-1].records


def test_debug_loadaof_tells_why_it_cannot() -> None:
    rig = Rig(config=Config(appendonly=True))
    rig.request("DEBUG", "LOADAOF")

    done(rig, "No such file or directory")

    assert rig.reply() == Refused(b"ERR No such file or directory")


def test_debug_loadaof_needs_a_file() -> None:
    assert Rig().ask("DEBUG", "LOADAOF") == Refused(
        b"ERR There is no append-only file: appendonly is no"
    )
