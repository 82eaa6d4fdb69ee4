"""Certificates and keys: valid, invalid, reloaded; and a TLS socket in trouble."""

import ssl
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from cryptography.hazmat.primitives import serialization

from disque_trio.net.tls import RECORD, TlsError, TlsSocket, load
from disque_trio.statemachine.config import Config
from tests.certificates import Authority, Signed, tls_config
from tests.net.live import expect, live
from tests.net.tls import client, read

# Settings.


async def test_certificates_are_read_anew(
    nursery: trio.Nursery, authority: Authority, foreign_authority: Authority
) -> None:
    config = tls_config(authority)
    node = await live(nursery, config)
    plain = await node.client()
    old = await client(node, authority, authority.sign())
    await old.send_all(b"PING\r\n")
    assert await read(old, 7) == b"+PONG\r\n"

    await plain.send_all(b"CONFIG SET tls-ca-cert-file %b\r\n" % foreign_authority.file.encode())
    await expect(plain, b"+OK\r\n")

    new = await client(node, authority, foreign_authority.sign())
    for stream in (old, new):
        await stream.send_all(b"PING\r\n")
        assert await read(stream, 7) == b"+PONG\r\n"
    assert node.node.state.config.tls_ca_cert_file == foreign_authority.file


async def test_certificates_that_do_not_do_change_nothing(
    nursery: trio.Nursery, authority: Authority
) -> None:
    node = await live(nursery, tls_config(authority))
    plain = await node.client()

    await plain.send_all(b"CONFIG SET tls-cert-file /nowhere\r\n")
    answer = await plain.receive_some()

    assert (
        answer == b"-ERR TLS stays as it was: tls-cert-file /nowhere: No such file or directory\r\n"
    )
    assert node.node.state.config.tls_cert_file != "/nowhere"
    stream = await client(node, authority, authority.sign())
    await stream.send_all(b"PING\r\n")
    assert await read(stream, 7) == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tls_cert_file": ""}, "TLS needs a certificate: set 'tls-cert-file'"),
        ({"tls_cert_file": "nowhere"}, "tls-cert-file nowhere: No such file"),
        ({"tls_key_file": "nowhere"}, "tls-key-file nowhere: No such file"),
        (
            {"tls_ca_cert_file": ""},
            "tls-auth-clients requires client certificates: set 'tls-ca-cert",
        ),
        ({"tls_ca_cert_file": "nowhere"}, "tls-ca-cert-file nowhere: No such file"),
        ({"tls_ca_cert_file": __file__}, "has no certificates"),
        ({"tls_cert_file": __file__}, "both must be PEM, belong together"),
        ({"tls_ca_cert_file": "", "tls_port": 0, "tls_cluster": True}, "tls-cluster requires"),
    ],
)
def test_settings_that_do_not_do_are_explained(
    authority: Authority, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TlsError) as caught:
        load(tls_config(authority, **change))

    assert reason in str(caught.value)


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    with pytest.raises(TlsError, match="key values mismatch"):
        load(tls_config(authority, tls_key_file=authority.sign().key))


@pytest.mark.parametrize("password", [b"", b"another"])
def test_a_locked_key_needs_its_password(
    authority: Authority, tmp_path: Path, password: bytes
) -> None:
    signed = authority.sign()
    key = serialization.load_pem_private_key(Path(signed.key).read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"open sesame"),
        )
    )
    config = tls_config(authority, Signed(signed.cert, str(locked)))

    assert load(attrs.evolve(config, tls_key_file_pass=b"open sesame")).clients is not None
    with pytest.raises(TlsError, match="the right 'tls-key-file-pass'"):
        load(attrs.evolve(config, tls_key_file_pass=password))


def test_without_tls_nothing_is_read() -> None:
    contexts = load(Config(tls_cert_file="nowhere"))

    assert set(attrs.astuple(contexts, recurse=False)) == {None}


def test_a_certificate_and_its_key_may_share_a_file(authority: Authority, tmp_path: Path) -> None:
    signed = authority.sign()
    both = tmp_path / "both.pem"
    both.write_text(Path(signed.key).read_text() + Path(signed.cert).read_text())

    assert load(tls_config(authority, Signed(str(both), ""))).clients is not None


# The socket, where the network is in the way.


class Reluctant:
    """A TLS connection that says what it is told to."""

    def __init__(self, *script: bytes | int | Exception) -> None:
        self.script = list(script)

    def wrap_socket(self, *_: object, **__: object) -> "Reluctant":
        return self

    def recv(self, _: int) -> bytes:
        return self._next()  # type: ignore[return-value]

    def send(self, _: bytes) -> int:
        return self._next()  # type: ignore[return-value]

    def _next(self) -> object:
        said = self.script.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


def tls_socket(*script: bytes | int | Exception) -> TlsSocket:
    return TlsSocket(None, Reluctant(*script), is_server=True)  # type: ignore[arg-type]


FULL = b"x" * RECORD


def test_full_records_are_joined_until_there_are_no_more() -> None:
    tls = tls_socket(FULL, b"one", FULL, ssl.SSLWantReadError(), b"two", FULL, b"", b"")

    read = [tls.recv(1 << 16) for _ in range(5)]

    assert read == [FULL + b"one", FULL, b"two", FULL, b""]


def test_no_more_records_are_read_than_was_asked_for() -> None:
    tls = tls_socket(FULL, FULL, FULL)

    assert tls.recv(2 * RECORD) == FULL * 2


def test_one_that_must_write_before_it_reads_says_so() -> None:
    tls = tls_socket(ssl.SSLWantWriteError())

    with pytest.raises(BlockingIOError):
        tls.recv(1 << 16)

    assert tls.wants_out


def test_what_came_before_trouble_is_not_lost() -> None:
    tls = tls_socket(FULL, ssl.SSLError(), ssl.SSLError())

    assert tls.recv(1 << 16) == FULL
    with pytest.raises(ssl.SSLError):
        tls.recv(1 << 16)


def test_what_could_not_be_sent_is_told() -> None:
    tls = tls_socket(1 << 14, 100, ssl.SSLWantWriteError(), ssl.SSLWantWriteError())

    assert tls.send(b"x" * 40_000) == (1 << 14) + 100
    with pytest.raises(BlockingIOError):
        tls.send(b"x" * 40_000)
