"""AUTH and SELECT: what clients say before they ask for anything."""

from disque_trio.statemachine.base import OK, Failure, Status
from disque_trio.statemachine.config import Config
from tests.rig import Rig

NOAUTH = Failure(b"NOAUTH Authentication required.")


def test_there_is_one_database() -> None:
    rig = Rig()

    assert rig.ask("SELECT", 0) == OK
    for index in ("1", "-1", "15"):
        assert rig.ask("SELECT", index) == Failure(
            b"ERR DB index is out of range: there is database 0 alone, not '%b'; keep applications"
            b" apart by the names of their queues" % index.encode()
        )
    assert rig.ask("SELECT", "first") == Failure(
        b"ERR invalid DB index: 'first' is no whole number for SELECT"
    )


def test_auth_may_name_the_default_user() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    assert rig.ask("AUTH", "default", "wrong") == Failure(b"ERR invalid password")
    assert rig.ask("AUTH", "default", "secret") == OK
    assert rig.ask("PING") == Status(b"PONG")


def test_auth_for_another_user_is_refused_whatever_the_password() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))
    rig.ask("AUTH", "secret")

    for password in ("secret", "wrong"):
        reply = rig.ask("AUTH", "bob", password)
        assert isinstance(reply, Failure)
        assert reply.text.startswith(b"WRONGPASS ")
        assert rig.ask("PING") == NOAUTH
    assert rig.node.stats.wrong_passwords == 1


def test_auth_takes_two_words_at_most() -> None:
    assert Rig().ask("AUTH", "default", "secret", "x") == Failure(
        b"ERR wrong number of arguments for 'auth' command: AUTH [user] password"
    )


def test_auth_without_a_password_is_an_error() -> None:
    assert Rig().ask("AUTH", "x") == Failure(b"ERR Client sent AUTH, but no password is set")


def test_the_right_password_lets_requests_in() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    assert rig.ask("PING") == NOAUTH
    assert rig.ask("AUTH", "secret") == OK
    assert rig.ask("PING") == Status(b"PONG")


def test_a_wrong_password_takes_the_right_away() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))
    rig.ask("AUTH", "secret")

    assert rig.ask("AUTH", "secret ") == Failure(b"ERR invalid password")
    assert rig.node.stats.wrong_passwords == 1
    assert rig.ask("PING") == NOAUTH


def test_a_password_set_at_runtime_counts_for_all_clients_at_once() -> None:
    rig = Rig()

    assert rig.ask("CONFIG", "SET", "requirepass", "secret") == OK
    assert rig.ask("PING") == NOAUTH
