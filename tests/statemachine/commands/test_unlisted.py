"""What no row of the table answers: transactions, QUIT, commands of Redis, slips."""

import pytest

from disque_trio.statemachine.base import OK, Failure, Reply, Status
from disque_trio.statemachine.config import Config
from tests.rig import Rig

NO_MULTI = Failure(
    b"ERR unknown command 'MULTI': there are no transactions here, and nothing up to EXEC is"
    b" executed; use a plain pipeline (redis-py: pipeline(transaction=False))"
)
NOT_EXECUTED = Failure(
    b"ERR not executed: the MULTI before it was refused; send EXEC, DISCARD or RESET to go on, and"
    b" use a plain pipeline (redis-py: pipeline(transaction=False))"
)
ABORTED = Failure(
    b"EXECABORT Transaction discarded because of previous errors: MULTI was refused, and nothing"
    b" since then was executed; use a plain pipeline (redis-py: pipeline(transaction=False))"
)
DISCARDED = Failure(
    b"ERR DISCARD without MULTI: it was refused, and nothing since then was executed"
)
PONG = Status(b"PONG")
ADD = ("ADDJOB", "q", "body", 0)


def say(rig: Rig, *requests: tuple[str | int, ...]) -> list[Reply]:
    rig.replies()
    for words in requests:
        rig.request(*words)
    return rig.replies()


# Transactions.


def test_what_follows_a_refused_multi_is_not_executed() -> None:
    rig = Rig()

    assert say(rig, ("MULTI",), ADD, ("NOSUCH",), ("EXEC",), ("PING",)) == [
        NO_MULTI, NOT_EXECUTED, NOT_EXECUTED, ABORTED, PONG
    ]  # fmt: skip
    assert not rig.node.jobs
    assert rig.node.stats.commands_processed == 1


def test_a_pipeline_is_refused_as_requests_one_by_one_are() -> None:
    rig = Rig()
    requests = [[b"PING"], [b"MULTI"], [b"ADDJOB", b"q", b"b", b"0"], [b"EXEC"], [b"PING"]]
    taken = []

    while requests:
        count = rig.machine.requests(rig.client, requests, rig.now, lambda: 0)
        taken.append(count)
        if not count:
            rig.machine.request(rig.client, requests[0], rig.now)
        requests = requests[count or 1 :]
    rig.take()

    assert taken == [1, 0, 0, 0, 1]
    assert rig.replies() == [PONG, NO_MULTI, NOT_EXECUTED, ABORTED, PONG]
    assert not rig.node.jobs


def test_discard_ends_it_too() -> None:
    assert say(Rig(), ("MULTI",), ADD, ("DISCARD",), ("PING",)) == [
        NO_MULTI, NOT_EXECUTED, DISCARDED, PONG
    ]  # fmt: skip


def test_it_lasts_however_late_the_rest_comes() -> None:
    rig = Rig()
    rig.ask("MULTI")

    rig.advance(3_600_000)

    assert say(rig, ADD, ("EXEC",)) == [NOT_EXECUTED, ABORTED]


def test_it_concerns_no_other_connection_and_ends_with_its_own() -> None:
    rig = Rig()
    rig.ask("MULTI")
    other = rig.connect()

    assert rig.ask("PING", client=other) == PONG
    rig.disconnect(rig.client)
    assert rig.ask("PING", client=rig.connect()) == PONG


def test_a_second_multi_changes_nothing() -> None:
    assert say(Rig(), ("MULTI",), ("MULTI",), ("EXEC",), ("PING",)) == [
        NO_MULTI, NOT_EXECUTED, ABORTED, PONG
    ]  # fmt: skip


def test_reset_ends_it() -> None:
    assert say(Rig(), ("MULTI",), ("RESET",), ("PING",)) == [NO_MULTI, Status(b"RESET"), PONG]


def test_quit_is_heeded_all_the_same() -> None:
    rig = Rig()

    assert say(rig, ("MULTI",), ("QUIT",)) == [NO_MULTI, OK]
    assert rig.closed() == [rig.client]


def test_a_client_in_reply_mode_off_is_told_nothing_and_nothing_is_executed() -> None:
    rig = Rig()

    silent = ("CLIENT", "REPLY", "OFF"), ("MULTI",), ADD, ("EXEC",), ("PING",)
    assert say(rig, *silent) == []
    assert not rig.node.jobs
    assert say(rig, ("CLIENT", "REPLY", "ON"), ("PING",)) == [OK, PONG]


def test_a_skipped_multi_is_refused_without_a_word() -> None:
    rig = Rig()

    assert say(rig, ("CLIENT", "REPLY", "SKIP"), ("MULTI",), ADD, ("EXEC",)) == [
        NOT_EXECUTED, ABORTED
    ]  # fmt: skip


def test_an_unauthenticated_client_is_told_that_there_are_no_transactions() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    assert say(rig, ("MULTI",), ("AUTH", "secret"), ("EXEC",)) == [NO_MULTI, NOT_EXECUTED, ABORTED]
    assert not rig.client.authenticated


def test_a_watcher_in_a_transaction_still_watches() -> None:
    rig = Rig()
    rig.ask("MONITOR")
    rig.ask("MULTI")

    rig.request("PING", client=rig.connect())

    line = rig.reply()
    assert isinstance(line, Status)
    assert line.text.endswith(b'"PING"')


def test_the_end_of_none_is_an_error() -> None:
    for word in ("EXEC", "discard"):
        text = f"ERR {word.upper()} without MULTI: there are no transactions here"
        assert say(Rig(), (word,), ("PING",)) == [Failure(text.encode()), PONG]


def test_there_is_nothing_to_watch() -> None:
    for word in ("WATCH", "UNWATCH"):
        text = (
            f"ERR unknown command '{word}': there are no transactions here; use a plain pipeline"
            " (redis-py: pipeline(transaction=False))"
        )
        assert say(Rig(), (word, "q"), ("PING",)) == [Failure(text.encode()), PONG]


def test_a_command_that_was_renamed_to_multi_is_that_command() -> None:
    rig = Rig(config=Config(renamed_commands=(("ping", "multi"),)))

    assert say(rig, ("MULTI",), ("MULTI",)) == [PONG, PONG]


# Slips.


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("GETJBO", " (did you mean 'GETJOB'?)"),
        ("addjobs", " (did you mean 'ADDJOB'?)"),
        ("ACK", " (did you mean 'ACKJOB'?)"),
        ("QLENGTH", " (did you mean 'QLEN'?)"),
        ("LPUSH", ": this is a job queue without keys; ADDJOB, GETJOB and ACKJOB are its commands"),
        ("subscribe", ": there are no channels here; wait for jobs with GETJOB"),
        ("EVAL", ": there are no scripts here"),
        (
            "SCAN",
            ": there are no keys here; QSCAN goes through the queues, JSCAN through the jobs",
        ),
        ("XYZZY", ""),
        ("", ""),
    ],
)
def test_an_unknown_command_is_answered_with_what_may_have_been_meant(
    typed: str, hint: str
) -> None:
    assert Rig().ask(typed) == Failure(f"ERR unknown command '{typed}'{hint}".encode())


def test_a_long_name_is_not_echoed_whole() -> None:
    reply = Rig().ask("X" * 10_000)

    assert reply == Failure(b"ERR unknown command '" + b"X" * 64 + b"...'")


def test_a_command_under_another_name_is_suggested_under_that() -> None:
    rig = Rig(config=Config(renamed_commands=(("getjob", "fetchjob"),)))

    assert rig.ask("FETCHJOBS") == Failure(
        b"ERR unknown command 'FETCHJOBS' (did you mean 'FETCHJOB'?)"
    )
