import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.cli.doctor import machine, startup
from disque_trio.observe.finding import Finding, Level
from tests.cluster.processes import free_port


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory with a short path, as Unix sockets need."""
    with tempfile.TemporaryDirectory(prefix="doctor-") as directory:
        yield Path(directory)


def about(home: Path, *lines: str, is_running: bool = False) -> list[Finding]:
    """What is found about a file with these lines, but for how much of the disk is free."""
    file = home / "disque.conf"
    first = "" if any(line.startswith("port") for line in lines) else f"port {free_port()}\n"
    file.write_text(f"{first}bind 127.0.0.1\ndir {home}\n" + "\n".join(lines) + "\n")
    found = list(machine.judge_file(str(file), is_running=is_running))
    return [each for each in found if each.level > Level.NOTE and "are free in" not in each.what]


def the_one(home: Path, *lines: str, is_running: bool = False) -> Finding:
    found = about(home, *lines, is_running=is_running)
    assert len(found) == 1, found
    assert found[0].advice
    return found[0]


def test_of_a_file_that_a_server_can_start_with_nothing_is_said(home: Path) -> None:
    lines = ["logfile disque.log", "appendonly yes", "unixsocket disque.sock", "maxmemory 4gb"]
    assert about(home, *lines) == []


def test_nothing_is_made_or_changed(home: Path) -> None:
    about(home, "logfile disque.log", "appendonly yes", "unixsocket disque.sock", "daemonize yes")

    assert [path.name for path in home.iterdir()] == ["disque.conf"]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["tls-port {port}"], "tls-port {port}: TLS needs a certificate"),
        (["tls-cluster yes"], "tls-cluster yes: TLS needs a certificate"),
        (
            ["tls-port {port}", "tls-cert-file missing.pem"],
            "tls-port {port}: tls-cert-file missing.pem: No such file",
        ),
        (
            ["logfile missing/disque.log"],
            "logfile missing/disque.log: the directory missing does not",
        ),
        (["logfile {home}"], "logfile {home}: it is a directory"),
        (
            ["appendonly yes", "appendfilename folder"],
            "appendfilename folder: it is a directory",
        ),
        (["cluster-config-file no/nodes.conf"], "cluster-config-file no/nodes.conf: the directory"),
        (["daemonize yes", "pidfile no/disque.pid"], "pidfile no/disque.pid: the directory"),
        (["trace-file no/rows"], "trace-file no/rows: the directory"),
        (["spill-directory missing"], "spill-directory missing: it does not exist"),
        (["spill-directory disque.conf"], "spill-directory disque.conf: it is not a directory"),
        (["unixsocket missing/disque.sock"], "unixsocket missing/disque.sock: the directory"),
        (["unixsocket disque.conf"], "unixsocket disque.conf: a file of this name exists"),
        (["unixsocket " + "x" * 120], "the path is longer than 107 bytes"),
        (["cluster-config-file torn.conf"], "cluster-config-file torn.conf: "),
        (["maxmemory 1mb"], "maxmemory 1048576 (1 MiB): the process itself uses about"),
    ],
)
def test_what_keeps_a_server_from_starting_is_told(
    home: Path, lines: list[str], named: str
) -> None:
    (home / "folder").mkdir()
    (home / "torn.conf").write_text("what is this\n")
    port = str(free_port())
    filled = [line.format(port=port, home=home) for line in lines]

    found = the_one(home, *filled)

    assert found.level is Level.PROBLEM
    assert named.format(port=port, home=home) in found.what


def test_of_a_bounded_sample_nothing_is_said(home: Path) -> None:
    assert about(home, "trace-file rows.jsonl", "trace-file-sample 100") == []


@pytest.mark.parametrize(
    ("lines", "what", "advice"),
    [
        (["trace-file-sample 1"], "every job is traced", "trace-file-sample 100"),
        (
            ["trace-file-sample 9", "trace-file-max-bytes 0"],
            "its size is not limited",
            "trace-file-max-bytes 1gb",
        ),
    ],
)
def test_a_trace_that_takes_much_of_the_disk_is_told(
    home: Path, lines: list[str], what: str, advice: str
) -> None:
    found = the_one(home, "trace-file rows.jsonl", *lines)

    assert found.level is Level.WARNING
    assert what in found.what
    assert advice in found.advice


def test_a_trace_that_cannot_be_rotated_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "rows.jsonl").touch()
    monkeypatch.setattr(os, "access", lambda path, _: str(path).endswith("rows.jsonl"))

    found = about(home, "trace-file rows.jsonl", "trace-file-sample 9")

    assert any("cannot be rotated, and would grow" in each.what for each in found)


def test_a_file_that_this_user_may_not_write_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "disque.log").touch()
    (home / "bodies").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)

    told = [
        finding.what
        for finding in about(
            home, "logfile disque.log", "spill-directory bodies", "unixsocket disque.sock"
        )
    ]

    assert "logfile disque.log: this user may not write to it" in told
    assert "cluster-config-file nodes.conf: this user may not write to ." in told
    assert "spill-directory bodies: this user may not write to it" in told
    assert "unixsocket disque.sock: this user may not write to ." in told


def test_little_memory_is_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "rss_bytes", lambda: 40 << 20)

    found = the_one(home, "maxmemory 60mb")

    assert found.level is Level.WARNING
    assert "which leaves 20 MiB for jobs" in found.what
    assert "raise maxmemory: with 81mb" in found.advice


def test_a_socket_of_a_server_that_has_died_is_no_hindrance(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home / "disque.sock"))

    assert about(home, "unixsocket disque.sock") == []


def test_a_socket_at_which_another_process_listens_is_told_unless_it_is_the_server(
    home: Path,
) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(home / "disque.sock"))
        living.listen()

        assert "another process listens on it" in the_one(home, "unixsocket disque.sock").what
        assert about(home, "unixsocket disque.sock", is_running=True) == []


def test_a_server_may_have_a_unix_socket_alone(home: Path) -> None:
    assert about(home, "port 0", "unixsocket disque.sock") == []


def test_several_findings_are_told_together(home: Path) -> None:
    found = about(home, "logfile no/log", "unixsocket no/socket", "maxmemory 1mb")

    assert len(found) == 3
