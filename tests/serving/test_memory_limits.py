"""What a node takes from the limits of its machine, container and shell."""

import subprocess
import sys
from pathlib import Path

import pytest

from disque_trio.net.file_limits import FileLimitError, check_file_limit
from disque_trio.serving import memory_limits
from disque_trio.serving.memory_limits import MOST, default_maxmemory
from disque_trio.system import MemoryLimit
from tests.cluster.processes import free_port
from tests.cluster.talk import connection
from tests.serving.process import server

MIB = 1 << 20


@pytest.mark.parametrize(
    ("limit", "default"),
    [
        (MemoryLimit(64 << 30, "machine"), MOST),
        (MemoryLimit(1000 * MIB, "machine"), 500 * MIB),
        (MemoryLimit(1000 * MIB, "container"), 750 * MIB),
        (MemoryLimit(1000 * MIB, "ulimit"), 750 * MIB),
        (MemoryLimit(1, "container"), MIB),
    ],
)
def test_the_default_of_maxmemory_follows_the_limit(limit: MemoryLimit, default: int) -> None:
    assert default_maxmemory(limit) == default


def test_it_is_one_gigabyte_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "memory_limit", lambda: None)

    assert default_maxmemory() == MOST


def limited(limit: str, directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`disque-trio` with these options under this limit of the shell."""
    command = (
        "sh",
        "-c",
        f'ulimit {limit} && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "disque_trio",
    )
    return subprocess.run(
        [*command, *options],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_too_few_descriptors_are_refused_with_advice(tmp_path: Path) -> None:
    place = ("--bind", "127.0.0.1", "--port", str(free_port()))

    ended = limited("-n 128", tmp_path, "server", *place)

    assert ended.returncode == 1
    assert "this process may open 128 files, and a node needs at least 288" in ended.stderr
    assert "LimitNOFILE" in ended.stderr


def test_few_clients_need_few_descriptors() -> None:
    check_file_limit(10, 10)
    with pytest.raises(FileLimitError):
        check_file_limit(1000, 31)
    check_file_limit(1000, 32)


def test_a_set_maxmemory_above_the_limit_is_warned_of(tmp_path: Path) -> None:
    with server(tmp_path, "--maxmemory", "900gb") as (process, port), connection(port) as client:
        process.says("maxmemory is more than 75 % of what the ")
        memory = client.info("memory")
        assert 0 < int(memory["memory_limit"]) < 900 << 30
        assert memory["memory_limit_of"] in ("machine", "container", "ulimit")


def test_the_limit_of_the_shell_sets_the_default(tmp_path: Path) -> None:
    script = "from disque_trio.serving.memory_limits import default_maxmemory as d; print(d())"
    size = 600 * MIB

    ended = subprocess.run(
        ["sh", "-c", f'ulimit -v {size >> 10} && exec "$@"', "sh", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert int(ended.stdout) == size // 100 * 75 // MIB * MIB
