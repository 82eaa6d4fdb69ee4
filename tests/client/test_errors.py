"""What is said of a connection that fails: what was wrong, and what to do."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest
import trustme

from disque_trio.client.address import Address, Tls
from disque_trio.client.connection import Connection
from disque_trio.client.errors import (
    OPTION_TERMS,
    URL_TERMS,
    ConnectionFailedError,
    LostError,
    lost,
    not_connected,
)
from tests.client.fakenode import fake_node


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a listener that accepts connections and does nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def said(port: int, tls: Tls | None) -> str:
    connection = Connection(Address(port=port, tls=tls), connect_timeout_s=5.0)
    with pytest.raises(ConnectionFailedError) as caught:
        connection.ready()
    return str(caught.value)


TERMS: Final = {"a URL": URL_TERMS, "options": OPTION_TERMS}
OF_URL: Final = {"cacert": "tls_ca_file", "cert": "tls_cert_file", "key": "tls_key_file"}


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("field", OF_URL)
def test_a_file_that_is_not_there_is_named_as_it_was_given(
    field: str, terms: str, silent: int, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.pem")
    (tmp_path / "there.pem").touch()
    tls = Tls(cert=str(tmp_path / "there.pem"), terms=TERMS[terms])

    text = said(silent, attrs.evolve(tls, **{field: missing}))  # type: ignore[arg-type]

    option = OF_URL[field]
    name = {
        "a URL": f"{option} of the URL",
        "options": f"--{field}",
    }[terms]
    assert text == f"Cannot read {missing}, given as {name}: No such file or directory."


def test_a_file_without_certificates_is_named(silent: int, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate\n")

    text = said(silent, Tls(cacert=str(file)))
    assert f"{file}, given as tls_ca_file of the URL, has no certificates" in text


def test_a_key_that_does_not_belong_to_its_certificate_is_named(
    silent: int, tmp_path: Path
) -> None:
    cert, key = tmp_path / "me.crt", tmp_path / "me.key"
    authority = trustme.CA()
    authority.issue_cert("localhost").cert_chain_pems[0].write_to_path(str(cert))
    authority.issue_cert("localhost").private_key_pem.write_to_path(str(key))

    text = said(silent, Tls(cert=str(cert), key=str(key), terms=OPTION_TERMS))

    given = f"{cert}, given as --cert, and {key}, given as --key,"
    assert f"{given} cannot be used (key values mismatch)" in text
    assert "Give the key file as tls_key_file of" in said(silent, Tls(cert=str(cert)))


@pytest.mark.parametrize("reason", ["WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"])
def test_a_port_without_tls_is_told_of(reason: str) -> None:
    error = ssl.SSLError(1, "something")
    error.reason = reason

    told = not_connected("there", error, None, has_tls=True)

    assert told.reason.endswith("the port does not use TLS")
    assert "tls-port" in told.advice


def test_a_plain_port_may_wait_for_the_end_of_what_tls_says(silent: int) -> None:
    connection = Connection(Address(port=silent, tls=Tls()), connect_timeout_s=0.05)

    with pytest.raises(ConnectionFailedError, match="no answer in time") as caught:
        connection.ready()

    assert "tls-port" in caught.value.advice


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("unable to get local issuer certificate", "--cacert"),
        ("self-signed certificate", "--cacert"),
        ("Hostname mismatch, certificate is not valid for '10.0.0.1'.", "--sni"),
        ("IP address mismatch, certificate is not valid for '10.0.0.1'.", "--sni"),
        ("certificate has expired", "renew"),
        ("certificate is not yet valid", "clocks"),
    ],
)
def test_what_is_wrong_with_a_certificate_has_its_remedy(message: str, advice: str) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = message

    told = not_connected("10.0.0.1:7711", error, None, has_tls=True)

    assert message.rstrip(".").lower() in told.reason
    assert advice in told.advice


def test_nobody_there_is_no_matter_of_certificates() -> None:
    error = ConnectionRefusedError(111, "Connection refused")

    assert "a node is running there" in not_connected("there", error, None, has_tls=True).advice


def test_a_program_is_told_of_its_url_and_not_of_options_of_a_command_line() -> None:
    error = ConnectionRefusedError(111, "Connection refused")
    text = str(not_connected("there", error, None, has_tls=False))

    assert "the URL selects another" in text
    assert "-p" not in text


def test_silence_may_be_a_firewalls() -> None:
    told = not_connected("there", TimeoutError(), None, has_tls=False)

    assert "no answer in time" in told.reason
    assert "firewall" in told.advice


@pytest.mark.parametrize(("has_tls", "advice"), [(True, "--cert and --key"), (False, "--tls")])
def test_a_connection_that_ends_before_it_has_said_anything_may_be_the_wrong_one(
    has_tls: bool, advice: str
) -> None:
    told = lost("there", None, has_answered=False, has_tls=has_tls)

    assert advice in told.advice
    assert "it is unknown whether" in str(told)


def test_a_node_that_hangs_has_not_the_wrong_port() -> None:
    told = lost("there", TimeoutError(), has_answered=False, has_tls=False)

    assert "its process is paused" in told.advice
    assert "TLS" not in told.advice


def test_a_node_that_has_answered_is_the_right_one() -> None:
    with fake_node({b"X": None}) as node:
        connection = Connection(Address(port=node.port))
        connection.ready()
        connection.send([b"PING"])
        connection.receive()
        connection.send([b"X"])
        with pytest.raises(LostError) as caught:
            connection.receive()

    assert caught.value.advice == ""
    assert str(caught.value).endswith(
        "before the reply arrived: it is unknown whether the command was carried out."
    )


def test_a_new_connection_may_be_the_wrong_one_again() -> None:
    with fake_node({b"X": None}) as node:
        connection = Connection(Address(port=node.port))
        for _ in range(2):
            connection.ready()
            connection.send([b"X"])
            with pytest.raises(LostError) as caught:
                connection.receive()

    assert "tls-port" in caught.value.advice
