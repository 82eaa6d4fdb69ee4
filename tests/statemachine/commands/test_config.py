from collections.abc import Sequence

import attrs
import pytest

from disque_trio.statemachine.base import OK
from disque_trio.statemachine.chores import (
    ChangeDirectory,
    Chore,
    RaiseFileLimit,
    ReloadTls,
    RewriteConfig,
    StartJournal,
    StopJournal,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.config import Config
from tests.rig import Rig
from tests.statemachine.commands.refused import Refused


def chores(rig: Rig) -> Sequence[tuple[Client, Chore]]:
    return rig.outboxes[-1].chores


def finish(rig: Rig, outcome: str | int | None) -> None:
    rig.machine.done(rig.client, outcome, rig.now)
    rig.take()


def test_get_answers_names_and_values_by_turns() -> None:
    rig = Rig()

    assert rig.ask("CONFIG", "GET", "p[io]*") == [
        b"pidfile",
        b"/var/run/disque.pid",
        b"port",
        b"7711",
    ]


def test_get_of_nothing_known_is_empty() -> None:
    assert Rig().ask("config", "get", "nonsense") == []


def test_set_takes_effect_at_once() -> None:
    rig = Rig()

    assert rig.ask("CONFIG", "SET", "LogLevel", "debug") == OK
    assert rig.node.config.loglevel == "debug"


@pytest.mark.parametrize("value", ["1", "43mb", "100gb"])
def test_maxmemory_takes_every_value_whatever_the_process_takes(value: str) -> None:
    rig = Rig()
    rig.node.facts.process_bytes = 41_500_000

    assert rig.ask("CONFIG", "SET", "maxmemory", value) == OK


def test_with_a_maxmemory_of_one_byte_jobs_are_refused_until_it_is_raised() -> None:
    rig = Rig()
    rig.node.facts.process_bytes = 41_500_000
    rig.ask("CONFIG", "SET", "maxmemory", 1)

    assert rig.ask("ADDJOB", "q", "body", 0) == Refused(b"OOM")

    rig.ask("CONFIG", "SET", "maxmemory", "44mb")
    rig.request("ADDJOB", "q", "body", 0)
    assert len(rig.node.jobs) == 1


def test_set_leaves_the_configuration_alone_when_it_refuses() -> None:
    rig = Rig()
    before = rig.node.config

    assert rig.ask("CONFIG", "SET", "maxmemory", "0") == Refused(
        b"ERR Invalid argument '0' for CONFIG SET 'maxmemory'"
    )
    assert rig.node.config is before
    assert rig.ask("CONFIG", "SET", "Port", "1") == Refused(
        b"ERR Unsupported CONFIG parameter: Port"
    )
    assert rig.ask("CONFIG", "SET", "appendonly", "maybe") == Refused(
        b"ERR Invalid argument 'maybe' for CONFIG SET 'appendonly'"
    )
    assert rig.node.config is before


def test_a_journal_is_kept_once_the_driver_has_opened_it() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "appendonly", "yes")
    assert chores(rig) == [(rig.client, StartJournal())]

    rig.machine.done(rig.client, None, rig.now)
    rig.take()

    assert rig.reply() == OK
    assert rig.node.config.appendonly
    assert rig.ask("CONFIG", "SET", "appendonly", "yes") == OK


def test_a_journal_that_cannot_be_opened_is_not_kept() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "appendonly", "yes")

    rig.machine.done(rig.client, "Permission denied", rig.now)
    rig.take()

    assert rig.reply() == Refused(b"ERR Unable to turn on AOF. Check server logs.")
    assert not rig.node.config.appendonly


def test_a_journal_is_kept_until_the_driver_has_closed_it() -> None:
    rig = Rig(config=Config(appendonly=True))
    rig.request("CONFIG", "SET", "appendonly", "no")
    assert chores(rig) == [(rig.client, StopJournal())]

    rig.machine.done(rig.client, None, rig.now)
    rig.take()

    assert rig.reply() == OK
    assert not rig.node.config.appendonly


def test_certificates_count_once_they_have_been_read() -> None:
    rig = Rig()
    before = rig.node.config
    rig.request("CONFIG", "SET", "tls-cert-file", "new.pem")
    assert chores(rig) == [(rig.client, ReloadTls(attrs.evolve(before, tls_cert_file="new.pem")))]
    assert rig.node.config.tls_cert_file == ""

    rig.machine.done(rig.client, None, rig.now)
    rig.take()

    assert rig.reply() == OK
    assert rig.node.config.tls_cert_file == "new.pem"


def test_certificates_that_do_not_do_change_nothing() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "TLS-auth-clients", "no")

    rig.machine.done(rig.client, "no certificate", rig.now)
    rig.take()

    assert rig.reply() == Refused(b"ERR TLS stays as it was: no certificate")
    assert rig.node.config.tls_auth_clients == "yes"


def test_what_was_read_anew_counts_at_once() -> None:
    rig = Rig()

    rig.machine.adopt(Config(requirepass=b"hush"), rig.now)

    assert rig.ask("PING") == Refused(b"NOAUTH Authentication required.")


def test_a_password_counts_at_once_also_for_the_client_that_set_it() -> None:
    rig = Rig()

    assert rig.ask("CONFIG", "SET", "requirepass", "secret") == OK
    assert rig.ask("PING") == Refused(b"NOAUTH Authentication required.")


@pytest.mark.parametrize(
    "words",
    ["GET", "GET a b", "SET timeout", "SET timeout 1 2", "RESETSTAT now", "rewrite now"],
)
def test_each_subcommand_counts_its_arguments(words: str) -> None:
    sub = words.split(maxsplit=1)[0].encode()

    assert Rig().ask("CONFIG", *words.split()) == Refused(
        b"ERR Wrong number of arguments for CONFIG " + sub
    )


def test_an_unknown_subcommand_is_refused() -> None:
    assert Rig().ask("CONFIG", "HELP") == Refused(
        b"ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE"
    )


def test_resetstat_forgets_counters_but_not_the_start() -> None:
    rig = Rig()
    started = rig.node.stats.started
    rig.ask("PING")

    assert rig.ask("CONFIG", "RESETSTAT") == OK
    assert rig.node.stats.started == started
    assert rig.node.stats.connections_received == 0
    assert "ping" not in rig.node.stats.commands


def test_the_directory_changes_once_the_process_has_gone_there() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "dir", "/srv")

    assert chores(rig) == [(rig.client, ChangeDirectory("/srv"))]
    assert rig.node.config.dir == ""

    finish(rig, None)
    assert rig.reply() == OK
    assert rig.node.config.dir == "/srv"


def test_a_relative_directory_counts_from_the_present_one() -> None:
    rig = Rig(config=Config(dir="/srv"))

    rig.request("CONFIG", "SET", "dir", "queue")

    assert chores(rig) == [(rig.client, ChangeDirectory("/srv/queue"))]


def test_a_directory_that_the_system_refuses_is_not_taken() -> None:
    rig = Rig(config=Config(dir="/srv"))
    rig.request("CONFIG", "SET", "dir", "")
    assert chores(rig) == [(rig.client, ChangeDirectory(""))]

    finish(rig, "No such file or directory")

    assert rig.reply() == Refused(b"ERR Changing directory: No such file or directory")
    assert rig.node.config.dir == "/srv"


def test_fewer_clients_need_no_permission() -> None:
    rig = Rig()

    assert rig.ask("CONFIG", "SET", "maxclients", "10") == OK
    assert rig.node.config.maxclients == 10


def test_more_clients_wait_for_the_file_limit() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "maxclients", "20000")

    assert chores(rig) == [(rig.client, RaiseFileLimit(20000))]
    assert rig.node.config.maxclients == 10000

    finish(rig, 20000)
    assert rig.reply() == OK
    assert rig.node.config.maxclients == 20000


def test_more_clients_than_the_system_can_handle_are_refused() -> None:
    rig = Rig()
    rig.request("CONFIG", "SET", "maxclients", "20000")

    finish(rig, 12345)

    assert rig.reply() == Refused(
        b"ERR The operating system is not able to handle the specified number of clients,"
        b" try with 12345"
    )
    assert rig.node.config.maxclients == 10000


def test_a_timeout_counts_for_clients_that_are_already_idle() -> None:
    rig = Rig()
    idle, asking = rig.connect(), rig.client
    rig.advance(4000)

    rig.ask("CONFIG", "SET", "timeout", "5", client=asking)
    rig.advance(1100)

    assert idle.is_closing
    assert not asking.is_closing


def test_a_shorter_timeout_does_not_wait_for_the_longer_one() -> None:
    rig = Rig(config=Config(timeout_s=3600))
    idle = rig.connect()

    rig.ask("CONFIG", "SET", "timeout", "5")
    rig.advance(5100)

    assert idle.is_closing


def test_a_new_timeout_leaves_waiting_clients_alone() -> None:
    rig = Rig()
    waiting = rig.connect()
    rig.request("GETJOB", "TIMEOUT", 2000, "FROM", "q", client=waiting)

    rig.ask("CONFIG", "SET", "timeout", "1")
    rig.advance(1900)
    assert not waiting.is_closing
    assert rig.replies(waiting) == []

    rig.advance(200)
    assert len(rig.replies(waiting)) == 1


def test_rewrite_needs_a_file() -> None:
    assert Rig().ask("CONFIG", "REWRITE") == Refused(
        b"ERR The server is running without a config file"
    )


def test_rewrite_answers_once_the_file_is_written() -> None:
    rig = Rig()
    rig.node.facts.config_file = "/etc/disque.conf"
    rig.request("CONFIG", "REWRITE")
    assert chores(rig) == [(rig.client, RewriteConfig())]

    finish(rig, None)

    assert rig.reply() == OK


def test_rewrite_says_what_went_wrong() -> None:
    rig = Rig()
    rig.node.facts.config_file = "/etc/disque.conf"
    rig.request("CONFIG", "REWRITE")

    finish(rig, "Permission denied")

    assert rig.reply() == Refused(b"ERR Rewriting config file: Permission denied")
