"""`disque-trio server` under TLS as a process, with the clients that people have."""

import io
import signal
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from disque_trio import cli
from tests.certificates import Authority
from tests.cluster.processes import free_port
from tests.serving.process import Process, Talk, run, running


class Place:
    """A server with a certificate, and a client's."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory, "ca")
        self.own, self.clients = self.authority.sign(), self.authority.sign()
        self.port = free_port()

    def options(self) -> tuple[str, ...]:
        place = ("--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1")
        files = ("--tls-cert-file", self.own.cert, "--tls-key-file", self.own.key)
        return (*place, *files, "--tls-ca-cert-file", self.authority.file)

    def client_options(self) -> tuple[str, ...]:
        files = ("--cacert", self.authority.file, "--cert", self.clients.cert)
        return ("--tls", "-p", str(self.port), *files, "--key", self.clients.key)

    def served_certificate(self) -> str:
        """What the server shows, in PEM."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=30)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def process(place: Place, tmp_path: Path) -> Iterator[Process]:
    """A node that listens for TLS alone."""
    with running(tmp_path, "server", *place.options(), "--tls-auth-clients", "optional") as process:
        process.says("node started")
        yield process


def test_the_client_speaks_tls(
    place: Place, process: Process, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cli.main([*place.client_options(), "ADDJOB", "q", "x" * 100_000, "0"]) == 0
    assert cli.main([*place.client_options(), "QLEN", "q"]) == 0
    assert cli.main([*place.client_options(), "INFO", "server"]) == 0

    out = capfdbinary.readouterr().out
    assert out.startswith(b"D-")
    assert b"\n1\n" in out
    assert b"tcp_port:%d\r\n" % place.port in out


def test_the_client_pipes_under_tls(
    place: Place,
    process: Process,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "requests"
    source.write_text("PING\n" * 50_000)

    with open(source) as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert cli.main([*place.client_options(), "--pipe"]) == 0

    assert "errors: 0, replies: 50000" in capfd.readouterr().err


def test_the_client_reads_commands_under_tls(
    place: Place,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PING\n" * 3)))

    assert cli.main([*place.client_options()]) == 0

    assert capfdbinary.readouterr().out == b"PONG\n" * 3


def test_the_client_trusts_no_authority_that_it_was_not_told_to(
    place: Place, process: Process, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["--tls", "-p", str(place.port), "PING"]) == 1

    error = capfd.readouterr().err
    assert "self-signed certificate" in error
    assert "authority that signed the node's certificate with --cacert" in error
    assert cli.main(["--tls", "--insecure", "-p", str(place.port), "PING"]) == 0


def test_the_client_says_what_to_do_where_a_certificate_is_asked_for(
    place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, "server", *place.options()) as process:
        process.says("node started")
        where = ("-p", str(place.port))

        assert cli.main(["--tls", "--cacert", place.authority.file, *where, "PING"]) == 1
        assert "give --cert and --key" in capfd.readouterr().err
        assert cli.main([*where, "PING"]) == 1
        assert "its tls-port with --tls" in capfd.readouterr().err
        assert cli.main([*place.client_options(), "PING"]) == 0


def test_other_clients_speak_it_too(place: Place, process: Process) -> None:
    with redis.Redis(
        port=place.port,
        ssl=True,
        ssl_ca_certs=place.authority.file,
        ssl_certfile=place.clients.cert,
        ssl_keyfile=place.clients.key,
    ) as client:
        assert client.ping()
        assert client.execute_command("ADDJOB", "q", b"x" * 5_000_000, 0)
        [[_, _, body]] = client.execute_command("GETJOB", "FROM", "q")
        assert body == b"x" * 5_000_000


def test_a_hangup_has_certificates_and_secrets_read_anew(
    place: Place, process: Process, tmp_path: Path
) -> None:
    before = place.served_certificate()
    Path(place.own.key).write_text("no key")
    process.signal(signal.SIGHUP)
    process.says("certificates not reloaded")
    assert place.served_certificate() == before

    renewed = place.authority.sign()
    Path(place.own.cert).write_text(Path(renewed.cert).read_text())
    Path(place.own.key).write_text(Path(renewed.key).read_text())
    process.signal(signal.SIGHUP)
    process.says("secrets and certificates reloaded")

    assert place.served_certificate() == Path(renewed.cert).read_text()


def test_a_password_is_read_anew(tmp_path: Path) -> None:
    port, path = free_port(), tmp_path / "password"
    path.write_text("old")
    path.chmod(0o600)
    place = ("--port", str(port), "--bind", "127.0.0.1", "--requirepass-file", str(path))
    with running(tmp_path, "server", *place) as process:
        process.says("node started")
        path.write_text("")
        process.signal(signal.SIGHUP)
        process.says("secrets not reloaded")
        path.write_text("new")
        process.signal(signal.SIGHUP)
        process.says("setting changed")
        with Talk(port) as talk:
            assert talk.ask("AUTH old").startswith(b"-ERR")
            assert talk.ask("AUTH new") == b"+OK\r\n"
        assert "password is open" not in process.text()


def test_settings_of_tls_that_do_not_do_are_named(place: Place, tmp_path: Path) -> None:
    status, output = run(tmp_path, "server", "--tls-port", str(place.port))

    assert status == 1
    assert "TLS needs a certificate" in output
    assert "Traceback" not in output
