import pytest

from disque_trio.statemachine.base import Failure, Status
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.commands.table import BY_NAME, ROWS, renamed
from disque_trio.statemachine.config import Config
from tests.rig import Rig

REFERENCE = """
    auth -2 readonly loading fast
    ping -1 readonly fast
    info -1 readonly loading
    shutdown -1 readonly admin loading
    monitor 1 readonly admin
    debug -2 admin
    config -2 readonly admin
    cluster -2 readonly admin
    client -2 readonly admin
    slowlog -2 readonly
    time 1 readonly fast
    command 0 readonly loading
    latency -2 readonly admin loading
    hello -1 readonly fast
    getjob -2 write fast
    fastack -1 write fast
    show -2 readonly fast
    cancel 4 write
    loadjob 2 write
    bgrewriteaof 1 readonly admin
    qlen 2 readonly fast
    qpeek 3 readonly
    qstat -2 readonly fast
    qscan -1 readonly
    jscan -1 readonly
    enqueue -1 write denyoom fast
    nack -1 write denyoom fast
    dequeue -1 write fast
    working -2 write fast
    release -2 write fast
    begin -2 write fast
    redrive -2 write denyoom
    pause -3 readonly fast
    waitjob -2 readonly
    purge -2 write
    queue -2 write
    trace -2 readonly admin
    addjob -4 write denyoom fast
    ackjob -1 write fast
    deljob -1 write fast
    echo 2 readonly fast
    select 2 readonly loading fast
    reset 1 readonly loading fast
"""
"""The original's, where HELLO and AUTH take one word at most, QSTAT one; ours; three of Redis."""


def wrong_number(row: Command) -> Failure:
    line = f"{row.name.upper()} {row.usage}".rstrip()
    return Failure(f"ERR wrong number of arguments for '{row.name}' command: {line}".encode())


def by_name(row: Command) -> str:
    return row.name


def test_the_table_is_that_of_the_original_and_what_clients_of_redis_need() -> None:
    rows = {line.split()[0]: line.split()[1:] for line in REFERENCE.strip().splitlines()}

    for name, (arity, *flags) in rows.items():
        reply = Rig().ask("COMMAND", "INFO", name.upper())
        shown = [Status(flag.encode()) for flag in flags]
        assert reply == [[name.encode(), int(arity), shown, 0, 0, 0]]
    assert sorted(rows) == sorted(BY_NAME)
    assert Rig().ask("COMMAND", "COUNT") == len(ROWS) == 43


@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_a_row_has_a_handler_and_says_what_it_does(row: Command) -> None:
    assert row.summary.endswith(".")
    assert row.summary[0].isupper()
    assert "\n" not in row.usage
    least = 1 if row.arity == 0 else abs(row.arity)
    assert least == 1 or len(row.usage.split("|")[0].split()) >= least - 1


@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_too_few_words_are_refused_under_the_command_s_own_name(row: Command) -> None:
    rig = Rig()
    for count in range(1, abs(row.arity)):
        reply = rig.ask(row.name.upper(), *["0"] * (count - 1))
        assert reply == wrong_number(row)
        assert rig.client.command == ""


@pytest.mark.parametrize("row", [row for row in ROWS if row.arity > 0], ids=by_name)
def test_too_many_words_are_refused_where_the_number_is_fixed(row: Command) -> None:
    reply = Rig().ask(row.name, *["0"] * row.arity)

    assert reply == wrong_number(row)


def test_names_are_found_in_any_case() -> None:
    for name in ("ping", "PING", "PiNg"):
        assert Rig().ask(name) == Status(b"PONG")


# rename-command.


def test_a_renamed_command_answers_to_its_new_name_only() -> None:
    rig = Rig(config=Config(renamed_commands=(("ping", "Are-You-There"),)))

    assert rig.ask("ARE-YOU-THERE") == Status(b"PONG")
    assert rig.ask("are-you-there", 1, 2) == Failure(
        b"ERR wrong number of arguments for 'ping' command: PING [message]"
    )
    assert rig.ask("PING") == Failure(b"ERR unknown command 'PING'")


def test_a_command_without_a_name_is_gone() -> None:
    rig = Rig(config=Config(renamed_commands=(("DEBUG", ""),)))

    assert rig.ask("debug", "flushall") == Failure(b"ERR unknown command 'debug'")


def test_renaming_what_does_not_exist_changes_nothing() -> None:
    assert renamed((("nothing", "something"),)) == renamed(())


def test_every_command_is_found_in_lower_and_upper_case() -> None:
    assert len(renamed(())) == 2 * len(ROWS)
