"""HELLO as the Redis protocol's greeting; Disque's own is in `test_cluster`."""

from disque_trio.statemachine.base import Failure, Map, Status
from disque_trio.statemachine.config import Config
from tests.rig import Rig

NO_SUCH_USER = Failure(
    b"WRONGPASS invalid username-password pair or user is disabled: the only user is 'default';"
    b" give that name or none"
)


def test_a_client_of_version_2_gets_a_flat_list() -> None:
    reply = Rig().ask("HELLO", 2)

    assert isinstance(reply, list)
    assert reply[:2] == [b"server", b"disque"]
    assert reply[4:6] == [b"proto", 2]


def test_a_client_of_version_3_gets_a_map() -> None:
    reply = Rig().ask("HELLO", 3)

    assert isinstance(reply, Map)
    assert reply.items[b"proto"] == 3


def test_other_versions_do_not_exist() -> None:
    rig = Rig()

    assert rig.ask("HELLO", 4) == Failure(
        b"NOPROTO unsupported protocol version: there are 2 and 3, not 4"
    )
    assert rig.ask("HELLO", "x") == Failure(
        b"ERR Protocol version is not an integer or out of range: 'x' is no whole number"
    )


def test_the_greeting_authenticates_and_names_the_client() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    rig.request("HELLO", 3, "AUTH", "default", "secret", "SETNAME", "worker")

    assert isinstance(rig.reply(), Map)
    assert rig.client.authenticated
    assert rig.client.name == b"worker"


def test_the_greeting_tells_unauthenticated_clients_nothing() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    refused = Failure(b"NOAUTH Authentication required.")
    assert rig.ask("HELLO") == refused
    assert rig.ask("HELLO", 3) == refused
    assert rig.ask("HELLO", 3, "AUTH", "default", "wrong") == Failure(b"ERR invalid password")


def test_unknown_options_of_the_greeting_are_refused() -> None:
    assert Rig().ask("HELLO", 3, "NOSUCH") == Failure(
        b"ERR syntax error: HELLO [version] [AUTH user password] [SETNAME name]"
    )


def test_the_only_user_is_the_default_one() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))
    rig.ask("AUTH", "secret")

    for password in ("secret", "wrong"):
        assert rig.ask("HELLO", 3, "AUTH", "bob", password) == NO_SUCH_USER
        assert not rig.client.authenticated
    assert rig.client.protocol == 2


# RESET.


def test_a_reset_connection_is_as_a_new_one() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))
    rig.ask("HELLO", 3, "AUTH", "default", "secret", "SETNAME", "worker")
    rig.ask("MONITOR")
    rig.request("CLIENT", "REPLY", "OFF")
    rig.replies()

    assert rig.ask("RESET") == Status(b"RESET")

    client = rig.client
    assert (client.protocol, client.name, client.authenticated) == (2, b"", False)
    assert not client.is_monitor
    assert not rig.node.monitors
    assert rig.ask("PING") == Failure(b"NOAUTH Authentication required.")


def test_config_get_is_a_map_for_clients_of_version_3() -> None:
    rig = Rig()
    rig.ask("HELLO", 3)

    assert rig.client.protocol == 3
    assert rig.ask("CONFIG", "GET", "port") == Map({b"port": b"7711"})
