import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from disque_trio.serving.systemd import Supervisor
from tests.cluster.processes import free_port
from tests.serving.process import running

PATIENCE_S = 60.0


class Listener:
    """The socket of systemd."""

    def __init__(self, address: str | bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(PATIENCE_S)

    def receives(self) -> list[str]:
        """The lines of the next datagram."""
        return self.socket.recv(4096).decode().split("\n")

    def receives_nothing(self) -> bool:
        """Is there none?"""
        self.socket.setblocking(False)
        try:
            return not self.socket.recv(4096)
        except BlockingIOError:
            return True


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Listener]:
    listener = Listener(str(tmp_path / "notify"))
    yield listener
    listener.socket.close()


def environment(listener: Listener, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": listener.socket.getsockname(), **more}


def not_loading() -> bool:
    return False


def test_a_service_says_when_it_is_ready_that_it_lives_and_when_it_stops(
    systemd: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.socket.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    port = str(free_port())

    with running(tmp_path, "server", "--port", port, "--bind", "127.0.0.1") as process:
        assert systemd.receives() == ["READY=1", "STATUS=serving clients"]
        assert systemd.receives() == ["WATCHDOG=1"]
        assert systemd.receives() == ["WATCHDOG=1"]
        process.signal(signal.SIGTERM)
        sent = systemd.receives()
        while sent == ["WATCHDOG=1"]:
            sent = systemd.receives()
        assert sent == ["STOPPING=1"]
        assert process.ends() == 0


async def test_while_it_loads_it_asks_for_time(
    systemd: Listener, autojump_clock: trio.testing.MockClock
) -> None:
    looks = iter([True, True, False])
    supervisor = Supervisor(environment(systemd))

    await supervisor.attend(lambda: next(looks), "serving")

    assert systemd.receives() == ["STATUS=loading jobs", "EXTEND_TIMEOUT_USEC=30000000"]
    assert systemd.receives()[0] == "STATUS=loading jobs"
    assert systemd.receives() == ["READY=1", "STATUS=serving"]
    assert systemd.receives_nothing(), "no watchdog was asked for"


def test_a_sign_of_life_comes_three_times_as_often_as_it_must(systemd: Listener) -> None:
    mine = str(os.getpid())

    assert Supervisor(environment(systemd, WATCHDOG_USEC="3000000")).interval_s == 1.0
    assert Supervisor(
        environment(systemd, WATCHDOG_USEC="3000000", WATCHDOG_PID=mine)
    ).interval_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    "more", [{"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {}]
)
def test_a_watchdog_of_another_process_is_left_alone(
    systemd: Listener, more: dict[str, str]
) -> None:
    assert Supervisor(environment(systemd, **more)).interval_s == 0.0


def test_an_abstract_socket_will_do() -> None:
    name = f"disque-trio-test-{os.getpid()}"
    listener = Listener(b"\0" + name.encode())

    Supervisor({"NOTIFY_SOCKET": f"@{name}"}).notify("READY=1")

    assert listener.receives() == ["READY=1"]
    listener.socket.close()


async def test_where_no_manager_listens_nothing_is_sent() -> None:
    await Supervisor({"WATCHDOG_USEC": "1000000"}).attend(not_loading, "serving")


def test_a_manager_that_is_gone_does_no_harm(systemd: Listener) -> None:
    supervisor = Supervisor(environment(systemd))
    systemd.socket.close()

    supervisor.notify("READY=1")
