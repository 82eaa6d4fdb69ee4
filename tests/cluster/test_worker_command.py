"""`disque-trio worker`: real processes on a real node."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from disque_trio.worker.statuses import CLEAN, REFUSED, RESTART
from tests.cluster.processes import (
    SOON_S,
    Fleet,
    Server,
    eventually,
    free_port,
)
from tests.cluster.test_python_clients import url
from tests.cluster.workers.shop import SHOP, Shop, opened

SLOW_IN_CHILDREN: Final = """\
app = App()
import time
if os.getpid() == os.getsid(0) and os.getppid() != int(open("parent").read()):
    with open("said", "a") as file:
        file.write("child\\n")
    time.sleep(600)
"""
"""Only a process that is no child of the test's is one."""


@pytest.fixture
def shop(server: Server, tmp_path: Path) -> Iterator[Shop]:
    with opened(server, tmp_path) as found:
        yield found


def has_ended(pid: int) -> bool:
    """Also if nobody has asked for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.sample(2)
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_job_that_runs_when_the_worker_is_told_to_stop_ends(shop: Shop, loop: str) -> None:
    worker = shop.start("shop", "--loop", loop)
    shop.add("letter", 1)
    shop.says("begin letter")
    worker.terminate()

    assert shop.ends(worker) == CLEAN
    assert shop.said() == ["begin letter", "end letter"]
    nodes = f"127.0.0.1:{shop.server.port}"
    assert f"shop started: 10 jobs at a time, queues {shop.queue}, nodes {nodes}" in shop.log()


def test_a_burst_runs_what_is_there_and_ends(shop: Shop) -> None:
    for number in range(20):
        shop.add(f"{number}", 0.05)

    assert shop.ends(shop.start("shop:app", "--burst", "-c", "3")) == CLEAN
    assert sum(line.startswith("end") for line in shop.said()) == 20


def test_a_worker_ends_after_so_many_jobs_and_asks_to_be_started_again(shop: Shop) -> None:
    for number in range(3):
        shop.add(f"{number}")

    assert shop.ends(shop.start("shop", "--max-jobs", "2", "-c", "1")) == RESTART
    assert sum(line.startswith("end") for line in shop.said()) == 2


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_in_order(shop: Shop) -> None:
    parent = shop.start("shop", "--processes", "2")
    shop.pids(2)
    shop.add("letter", 1)
    shop.says("begin letter")
    os.killpg(parent.pid, signal.SIGINT)

    assert shop.ends(parent) == CLEAN
    assert shop.said() == ["begin letter", "end letter"]
    assert shop.log().count("SIGINT: taking no more jobs") == 2
    assert "again" not in shop.log()


def test_a_process_that_is_killed_is_replaced_and_all_end_with_their_parent(shop: Shop) -> None:
    parent = shop.start("shop", "-p", "2")
    first, *_ = shop.pids(2)
    os.kill(first, signal.SIGKILL)
    pids = shop.pids(3)
    assert "was killed by SIGKILL; it restarts at once" in shop.log()

    parent.kill()

    assert len(set(pids)) == 3
    eventually(lambda: all(map(has_ended, pids)), SOON_S, f"all end; log: {shop.log()}")
    assert shop.log().count("the parent process has ended") == 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_whose_password_is_wrong_ends_with_77(
    fleet: Fleet, tmp_path: Path, processes: str
) -> None:
    server = fleet.server()
    server.client.call("CONFIG", "SET", "requirepass", "secret")
    (tmp_path / "shop.py").write_text(SHOP)
    shop = Shop(server, tmp_path)
    wrong = url(server).replace("//", "//:guess@")

    assert shop.ends(shop.start("shop", "--url", wrong, "-p", processes)) == REFUSED
    assert "The password of the URL is wrong" in shop.log()
    assert "guess" not in shop.log()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["sho"], "there is no module sho"),
        (["shop", "--url", "redis://here"], "'redis://here' is not the address of a cluster"),
        (["unfit"], "unfit: "),
    ],
)
def test_what_no_process_could_run_is_told_once(shop: Shop, options: list[str], said: str) -> None:
    unfit = SHOP + "@app.task(name='unfit')\nasync def unfit(what: type(print)): ...\n"
    (shop.directory / "unfit.py").write_text(unfit)

    assert shop.ends(shop.start(*options, "-p", "2")) == 2
    assert shop.log().count("disque-trio worker: ") == 1
    assert f"disque-trio worker: {said}" in shop.log()


def test_workers_that_are_told_to_stop_before_they_began_end_in_order(shop: Shop) -> None:
    source = SHOP.replace("app = App()", SLOW_IN_CHILDREN)
    (shop.directory / "shop.py").write_text(source)
    (shop.directory / "parent").write_text(str(os.getpid()))
    parent = shop.start("shop", "-p", "2")
    eventually(lambda: shop.said() == ["child", "child"], SOON_S, "the children import")
    parent.terminate()

    assert shop.ends(parent) == CLEAN


def test_a_job_cannot_read_from_the_parent(shop: Shop) -> None:
    source = SHOP.replace("{text}", "{text} {sys.stdin.read()!r}").replace(
        "import os", "import os, sys"
    )
    (shop.directory / "shop.py").write_text(source)
    shop.start("shop", "-p", "2")
    shop.add("letter")
    shop.says("end letter ''")


@pytest.mark.slow
def test_a_worker_tells_its_name_and_its_health(shop: Shop) -> None:
    port = free_port(1)
    health = f"127.0.0.1:{port}"
    worker = shop.start("shop", "-p", "2", "--name", "ada", "--health", health, "--drain", "0")
    shop.pids(2)
    shop.add("letter", 600)
    shop.says("begin letter")
    eventually(lambda: check(shop, health, "-p", "2").returncode == 0, SOON_S, shop.log())

    told = [json.loads(line) for line in check(shop, health, "-p", "2").stdout.splitlines()]
    assert [each["name"] for each in told] == ["ada-1", "ada-2"]
    [job] = told[0]["jobs"] + told[1]["jobs"]
    assert (job["task"], job["queue"]) == ("note", shop.queue)
    listed = shop.server.client.call("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    names = re.findall(rb"name=(\S+)", listed)
    assert {b"ada-1", b"ada-2"} <= set(names)

    worker.kill()
    eventually(lambda: check(shop, health).returncode == 1, SOON_S, "nobody answers")
    assert b"no worker answers at 127.0.0.1:" in check(shop, health).stdout


def check(shop: Shop, health: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "disque_trio", "worker", "--check", "--health", health]
    return subprocess.run([*command, *options], capture_output=True, check=False)


def test_a_health_port_that_is_taken_is_named(shop: Shop) -> None:
    port = shop.server.port

    assert shop.ends(shop.start("shop", "--health", f"127.0.0.1:{port}")) == 2
    assert f"--health 127.0.0.1:{port}: " in shop.log()
    assert "Traceback" not in shop.log()


IS_FIRST: Final = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def can_be_first() -> bool:
    try:
        return subprocess.run([*IS_FIRST, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("is_first", [False, True])
def test_a_signal_during_the_import_ends_the_worker(shop: Shop, is_first: bool) -> None:
    if is_first and not can_be_first():
        pytest.skip("no process namespaces here")
    (shop.directory / "slow.py").write_text(
        "import time\nopen('said', 'w').write('imports')\ntime.sleep(600)\n"
    )
    command = [sys.executable, "-m", "disque_trio", "worker", "slow"]
    worker = shop.run([*IS_FIRST, *command] if is_first else command)
    eventually(shop.said, SOON_S, "the import")
    os.kill(child_of(worker.pid) if is_first else worker.pid, signal.SIGTERM)

    assert shop.ends(worker) == CLEAN
    assert "SIGTERM: stopped before any job started" in shop.log()


def child_of(pid: int) -> int:
    """The only one."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
