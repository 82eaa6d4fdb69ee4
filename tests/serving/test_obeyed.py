"""Directives that no other test would miss: each does what its line of the file says.

`disque_trio.sim.checkers.promises` names them, and `tests.sim.promises` ignores them.
"""

import stat
import syslog
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from disque_trio.net import clients
from disque_trio.net.listeners import listen, share
from disque_trio.serving.logs import Sink
from disque_trio.serving.processes.plan import WorkersError, refuse_strays
from disque_trio.serving.secret_files import SecretFileError, with_secrets
from disque_trio.statemachine.config import Config
from disque_trio.web.auth import Authenticator
from disque_trio.web.users import accounts, hashed, token
from tests.net.live import ended, live
from tests.node.world import World, until
from tests.storage.journals import add
from tests.storage.journals import started as with_journal


def test_the_socket_file_has_a_mode(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listen(Config(port=0, unixsocket=str(path), unixsocketperm=0o600)).close()
    sockets = listen(Config(port=0, unixsocket=str(path), unixsocketperm=0o620))

    assert stat.S_IMODE(path.stat().st_mode) == 0o620
    sockets.close()


def test_so_many_connections_may_wait() -> None:
    assert share(Config(port=0, tcp_backlog=77)).backlog == 77


def test_lines_of_the_log_go_to_a_file(tmp_path: Path) -> None:
    stream = StringIO()
    Sink(Config(logfile=str(tmp_path / "log")), stream).write("notice", "hello")

    assert (tmp_path / "log").read_text() == "hello\n"
    assert not stream.getvalue()


def test_syslog_gets_them_by_name_and_facility(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    told: list[Any] = []
    monkeypatch.setattr(syslog, "openlog", lambda *args: opened.append(args))
    monkeypatch.setattr(syslog, "syslog", lambda *args: told.append(args))
    config = Config(syslog_enabled=True, syslog_ident="mine", syslog_facility="local3")

    Sink(config, StringIO()).write("notice", "hello")

    [(ident, _, facility)] = opened
    assert (ident, facility) == ("mine", syslog.LOG_LOCAL3)
    assert [line for _, line in told] == ["hello"]


def test_each_web_port_has_cookies_of_its_own() -> None:
    _, cookie = Authenticator(lambda: Config(web_port=7713), print).end_session()

    assert cookie.startswith(b"disque-7713=")


def test_a_journal_of_any_name_is_not_left_behind(tmp_path: Path) -> None:
    (tmp_path / "mine.aof").write_text("jobs")

    with pytest.raises(WorkersError, match=r"mine\.aof"):
        refuse_strays(Config(workers=2, dir=str(tmp_path), appendfilename="mine.aof"))


async def test_clients_are_probed_after_so_many_seconds(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(clients, "keep_alive", lambda _sock, seconds: asked.append(seconds))
    await (await live(nursery, Config(tcp_keepalive_s=33))).client()

    await until(lambda: asked == [33])


def test_cookies_of_a_web_port_with_tls_are_for_tls_alone() -> None:
    _, cookie = Authenticator(lambda: Config(web_tls=True), print).end_session()

    assert b"; Secure" in cookie


def test_a_readers_password_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"hush")
    path.chmod(0o600)

    config = with_secrets(Config(web_reader_password_file=str(path)), pytest.fail)

    assert config.web_reader_password == b"hush"


def test_users_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    text = b"# people\n\nann:operator:%b\n" % hashed(b"open sesame")
    path.write_bytes(text + b"bot:client:%b\n" % token()[1] + b"#" * 5000)
    path.chmod(0o600)

    config = with_secrets(Config(web_users_file=str(path)), pytest.fail)

    assert {each.name: each.role for each in accounts(config).values()} == {
        "ann": "operator", "bot": "client",
    }  # fmt: skip
    for wrong in (b"ann:king:sha256$" + b"0" * 64, b"ann:reader:secret", text + text):
        path.write_bytes(wrong)
        with pytest.raises(SecretFileError, match="line") as caught:
            with_secrets(Config(web_users_file=str(path)), pytest.fail)
        assert "secret" not in str(caught.value).partition(": ")[2]


async def test_a_bulk_may_have_so_many_bytes(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World(Config(proto_max_bulk_len=5000))
    await nursery.start(world.node.run)
    client = world.client()

    client.send(b"*1\r\n$5001\r\n")

    await until(lambda: client.is_over)
    assert b"invalid bulk length" in client.read


async def test_an_unauthenticated_client_has_so_many_seconds(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    node = await live(nursery, Config(requirepass=b"hush", auth_timeout_s=3))
    client = await node.client()

    assert await ended(client)

    assert 3 <= trio.current_time() < 7


async def test_a_journal_that_has_grown_little_is_not_rewritten(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(
        appendonly=True, auto_aof_rewrite_min_size=2000, auto_aof_rewrite_percentage=100_000
    )
    world = await with_journal(nursery, config)
    client = world.client()
    for _ in range(20):
        await client.ask("ACKJOB", (await add(client)).decode())
    await trio.sleep(60)

    assert "the journal has grown: rewriting" not in world.log.events()
