"""What only Linux has, and what is done without it."""

import errno
import fcntl
import os
import resource
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from disque_trio import system
from disque_trio.__main__ import main
from disque_trio.net.file_limits import raise_file_limit
from disque_trio.net.pollers import open_poller
from disque_trio.net.readiness import Listener, Readiness
from disque_trio.serving.process import SystemHost, facts
from disque_trio.statemachine.config import Config
from disque_trio.system import MemoryLimit, memory_limit

# Disks.


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to sync."""
    made: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda _: made.append("fdatasync"))
    monkeypatch.setattr(os, "fsync", lambda _: made.append("fsync"))
    return made


def test_linux_syncs_the_data_alone(calls: list[str]) -> None:
    system.sync_data(0)
    assert calls == ["fdatasync"]


def test_without_fdatasync_all_is_synced(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fdatasync")
    system.sync_data(0)
    assert calls == ["fsync"]


def test_macos_syncs_the_cache_of_the_drive_as_well(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "_SYNC_WHOLE", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda _, command: calls.append(f"fcntl {command}"))
    system.sync_data(0)
    assert calls == ["fcntl 51"]


def test_a_file_system_that_cannot_do_that_is_synced_as_usual(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, command: int) -> None:
        raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")

    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(system, "_SYNC_WHOLE", 51)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    system.sync_data(0)
    assert calls == ["fsync"]


def test_a_sync_that_fails_is_not_tried_in_another_way(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int, command: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(system, "_SYNC_WHOLE", 51)
    monkeypatch.setattr(fcntl, "fcntl", fail)
    with pytest.raises(OSError, match="Input/output error"):
        system.sync_data(0)
    assert not calls


# Memory.


def test_without_proc_the_memory_is_the_most_that_it_has_been(tmp_path: Path) -> None:
    assert 1 << 20 < system.rss_bytes() <= 2 * system.peak_rss_bytes()
    assert system.rss_bytes(str(tmp_path / "statm")) == system.peak_rss_bytes()


def test_macos_counts_the_peak_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    on_linux = system.peak_rss_bytes()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert system.peak_rss_bytes() * 1024 >= on_linux
    assert system.peak_rss_bytes() < on_linux


def test_info_has_memory_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_proc(path: str, *rest: Any) -> Any:
        assert path.startswith("/proc")
        raise FileNotFoundError

    monkeypatch.setattr(system, "open", no_proc, raising=False)
    assert SystemHost().vitals().rss_bytes == system.peak_rss_bytes()
    assert facts(Config()).process_bytes == system.peak_rss_bytes()


# Sockets.


def test_silent_peers_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as sock:
        system.keep_alive(sock, 0)
        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        system.keep_alive(sock, 60)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 20
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3


def test_silent_peers_are_probed_at_the_systems_own_times_if_need_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_IDLE", "_INTERVAL", "_COUNT"):
        monkeypatch.setattr(system, name, None)
    with socket.socket() as sock:
        system.keep_alive(sock, 60)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) != 60


class Gone:
    """A listening socket of macOS, on which a client has come and gone."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.accepted: list[socket.socket] = []

    def fileno(self) -> int:
        return self.sock.fileno()

    def accept(self) -> tuple[socket.socket, None]:
        if self.accepted:
            raise BlockingIOError
        self.accepted.append(socket.socket())
        return self.accepted[0], None


def test_a_connection_without_an_address_has_gone() -> None:
    with socket.socket() as sock:
        gone: Any = Gone(sock)
        listener = Listener(Readiness(open_poller("tasks")), gone)
        listener.ready(1)
    assert gone.accepted[0].fileno() == -1


def test_the_file_limit_of_macos_is_taken_where_the_wanted_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = [256, (1 << 63) - 1]
    most = 10_240

    def take(_: int, wanted: tuple[int, int]) -> None:
        if wanted[0] > most:
            raise ValueError("current limit exceeds maximum limit")
        limits[:] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", take)

    assert raise_file_limit(10_000) == most - 256
    assert limits == [most, (1 << 63) - 1]


# Systems.


def test_windows_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    assert main(["server"]) == 1
    assert capsys.readouterr().err == (
        "disque-trio: Windows is not supported; run it on Linux or macOS, or on Windows in WSL 2 "
        "or a container\n"
    )


def test_files_of_a_node_are_closed_to_other_users(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open(tmp_path / "log", "w", opener=system.private):
            pass
    finally:
        os.umask(before)

    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o640), (0o666, 0o640), (0o600, 0o600)])
def test_a_file_of_an_earlier_version_is_closed_to_them(
    tmp_path: Path, before: int, after: int
) -> None:
    path = tmp_path / "disque.aof"
    path.touch()
    path.chmod(before)
    with open(path) as file:
        system.tighten(file.fileno())

    assert path.stat().st_mode & 0o777 == after


# Limits of memory.


def _tree(root: Path, **files: str) -> str:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_the_limit_of_a_container_is_the_lowest_around_the_process(tmp_path: Path) -> None:
    root = _tree(
        tmp_path,
        proc__self__cgroup="0::/pods/one\n",
        sys__fs__cgroup__pods__memory_DOT_max="104857600\n",
        sys__fs__cgroup__pods__one__memory_DOT_max="max\n",
    )

    assert memory_limit(root) == MemoryLimit(100 << 20, "container")


def test_so_is_one_of_version_1_which_a_container_sees_at_the_top(tmp_path: Path) -> None:
    root = _tree(
        tmp_path,
        proc__self__cgroup="5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n1:name=systemd:/x\n",
        sys__fs__cgroup__memory__memory_DOT_limit_in_bytes="209715200\n",
    )

    assert memory_limit(root) == MemoryLimit(200 << 20, "container")


def test_without_a_container_the_machine_is_the_limit(tmp_path: Path) -> None:
    limit = memory_limit(str(tmp_path))

    assert limit is not None
    assert limit.size <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("kind", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_ulimit_is_one_too(kind: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    limits = {kind: (1 << 20, 1 << 20)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits.get(which, infinite))

    assert memory_limit(str(tmp_path)) == MemoryLimit(1 << 20, "ulimit")


def test_a_system_that_tells_nothing_has_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_name: str) -> int:
        raise ValueError

    monkeypatch.setattr(os, "sysconf", unknown)

    assert memory_limit(str(tmp_path)) is None
