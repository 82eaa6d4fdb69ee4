import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest

from disque_trio.cli.doctor import machine
from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import Finding, Level
from tests.cluster.processes import free_port

Usage = namedtuple("Usage", "total used free")


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_settings_of_the_kernel_that_hurt_are_told(tmp_path: Path) -> None:
    put(tmp_path, "proc/sys/vm/overcommit_memory", "2\n")
    put(tmp_path, "proc/sys/net/core/somaxconn", "128\n")
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")

    found = list(machine.judge(tmp_path / "proc", tmp_path / "sys"))

    assert [finding.level for finding in found] == [Level.WARNING, Level.NOTE, Level.NOTE]
    assert all(finding.advice for finding in found)


def test_a_kernel_that_says_nothing_is_well(tmp_path: Path) -> None:
    assert list(machine.judge(tmp_path, tmp_path)) == []


def node(where: str = "127.0.0.1:7711") -> NodeFacts:
    return NodeFacts(where=where, info={"process_id": "42"}, config={"maxclients": "10000"})


def test_a_node_here_may_open_as_many_files_as_it_wants(tmp_path: Path) -> None:
    put(tmp_path, "42/limits", "Limit  Soft Hard Units\nMax open files   1024   4096   files\n")
    (tmp_path / "42/cwd").symlink_to(tmp_path)

    (finding,) = machine.judge_node(node(), tmp_path)

    assert "may open 1024 files" in finding.what


def test_without_proc_the_disk_is_still_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 0, 10 << 20))
    here = NodeFacts(where="127.0.0.1:7711", info={}, config={"dir": str(tmp_path)})
    in_a_container = NodeFacts(where="127.0.0.1:7711", info={}, config={"dir": "/not/here"})

    (finding,) = machine.judge_node(here, tmp_path / "no-proc")

    assert finding.what == f"only 10 MiB are free in {tmp_path}"
    assert list(machine.judge_node(in_a_container, tmp_path / "no-proc")) == []


def test_a_node_elsewhere_has_limits_that_cannot_be_seen_from_here(tmp_path: Path) -> None:
    put(tmp_path, "42/limits", "Max open files   1024   4096   files\n")

    assert list(machine.judge_node(node("10.0.0.1:7711"), tmp_path)) == []


@pytest.mark.parametrize(
    ("free_mib", "level"), [(10, Level.PROBLEM), (500, Level.WARNING), (5000, None)]
)
def test_a_disk_that_is_nearly_full_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_mib: int, level: Level | None
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, free_mib << 20))

    found = list(machine.judge_disk("here", str(tmp_path)))

    assert [finding.level for finding in found] == ([] if level is None else [level])


def test_a_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    (finding,) = machine.judge_disk("here", str(tmp_path / "missing"))

    assert finding.level is Level.PROBLEM


def about(file: Path, *, is_running: bool = False) -> list[Finding]:
    found = list(machine.judge_file(str(file), is_running=is_running))
    return [
        finding for finding in found if finding.level > Level.NOTE and "free" not in finding.what
    ]


def test_a_file_that_a_node_can_start_with_is_well(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
    file = tmp_path / "disque.conf"
    file.write_text(f"port {port % 50_000 + 1024}\nbind 127.0.0.1\ndir {tmp_path}\n")

    assert about(file, is_running=True) == []


def test_a_line_that_makes_no_sense_is_told_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "disque.conf"
    file.write_text("port 7711\nmaxmemry 1gb\n")

    (finding,) = about(file)

    assert finding.level is Level.PROBLEM
    assert "line 2" in finding.what
    assert "did you mean 'maxmemory'" in finding.what


def test_every_line_that_makes_no_sense_is_told(tmp_path: Path) -> None:
    more = tmp_path / "more.conf"
    more.write_text("hz often\n")
    file = tmp_path / "disque.conf"
    file.write_text(f"port seven\ninclude {more}\nmaxmemry 1gb\ndir {tmp_path}/missing\n")

    found = about(file)

    assert [(finding.where, finding.what.partition(":")[0]) for finding in found] == [
        (str(file), "line 1"),
        (str(more), "line 1"),
        (str(file), "line 3"),
        (str(file), "line 4"),
    ]
    assert all(finding.level is Level.PROBLEM for finding in found)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    file = tmp_path / "disque.conf"
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        while port > 55_535:
            port -= 10_000
        file.write_text(f"port {used.getsockname()[1]}\nbind 127.0.0.1\ndir {tmp_path}\n")

        assert [finding.level for finding in about(file)] == [Level.PROBLEM]


def test_a_secret_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "disque.conf"
    file.write_text(f"dir {tmp_path}\nrequirepass-file {tmp_path / 'missing'}\n")

    (finding,) = about(file, is_running=True)

    assert finding.level is Level.PROBLEM


def test_files_with_secrets_that_others_can_read_are_told_with_one_advice(tmp_path: Path) -> None:
    file, secret = tmp_path / "disque.conf", tmp_path / "secret"
    file.write_text(f"dir {tmp_path}\nrequirepass {'x' * 40}\ncluster-secret-file {secret}\n")
    secret.write_text("y" * 40)
    file.chmod(0o644)
    secret.chmod(0o644)

    found = [each for each in about(file, is_running=True) if "other users" in each.what]

    assert len(found) == 2
    for finding, path in zip(found, (file, secret), strict=True):
        assert finding.level is Level.WARNING
        assert "chmod" not in finding.what
        assert finding.advice == f"chmod 600 {path}, and make the node's user its owner"


def test_a_port_of_a_worker_that_is_taken_is_told(tmp_path: Path) -> None:
    file = tmp_path / "disque.conf"
    port = free_port(2)
    file.write_text(f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\nworkers 2\n")
    with socket.create_server(("127.0.0.1", port + 2)):
        found = list(machine.judge_file(str(file), is_running=False))

    assert any(f"port {port + 2}: Address already in use" in finding.what for finding in found)


def test_workers_that_cannot_be_are_told(tmp_path: Path) -> None:
    file = tmp_path / "disque.conf"
    file.write_text(f"bind 127.0.0.1\ndir {tmp_path}\nworkers 2\ntrace-file /tmp/rows\n")

    found = list(machine.judge_file(str(file), is_running=False))

    assert any("the same file for all workers" in finding.what for finding in found)
