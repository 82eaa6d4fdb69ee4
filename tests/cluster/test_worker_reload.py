"""`disque-trio worker --reload`: a changed file starts the worker anew, in order."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.worker.statuses import CLEAN
from tests.cluster.processes import SOON_S, Server, eventually
from tests.cluster.test_worker_command import has_ended
from tests.cluster.workers.shop import SHOP, Shop, opened

pytest.importorskip("watchfiles")


@pytest.fixture
def shop(server: Server, tmp_path: Path) -> Iterator[Shop]:
    with opened(server, tmp_path) as found:
        yield found


def change(shop: Shop, text: str) -> None:
    (shop.directory / "shop.py").write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_changed_file_starts_the_worker_anew_after_its_jobs(shop: Shop, processes: str) -> None:
    worker = shop.start("shop", "--reload", "-p", processes)
    shop.pids(int(processes))
    shop.add("old", 2)
    shop.says("begin old")

    change(shop, SHOP.replace("begin", "starts"))
    shop.says("end old")
    shop.pids(2 * int(processes))
    shop.add("new", 0)
    shop.says("starts new")

    assert "shop.py changed: restarting" in shop.log()
    worker.send_signal(signal.SIGINT)
    assert shop.ends(worker) == CLEAN


@pytest.mark.slow
def test_an_app_that_cannot_be_imported_is_waited_for(shop: Shop) -> None:
    change(shop, SHOP + "\n1 / 0\n")
    worker = shop.start("shop", "--reload")
    eventually(lambda: "restarts after a change" in shop.log(), SOON_S, "it waits")
    assert "ZeroDivisionError" in shop.log()

    change(shop, SHOP)
    shop.pids(1)
    change(shop, "def broken(")
    eventually(lambda: "SyntaxError" in shop.log(), SOON_S, "the error is shown")
    eventually(lambda: shop.log().count("restarts after") == 2, SOON_S, "it waits again")

    worker.terminate()
    assert shop.ends(worker) == 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_worker_ends_with_a_parent_that_is_killed(shop: Shop, processes: str) -> None:
    worker = shop.start("shop", "--reload", "-p", processes)
    pids = shop.pids(int(processes))

    worker.kill()

    eventually(lambda: all(map(has_ended, pids)), SOON_S, "its workers end")


@pytest.mark.slow
def test_other_files_change_nothing(shop: Shop) -> None:
    worker = shop.start("shop", "--reload")
    shop.pids(1)
    (shop.directory / "notes.txt").write_text("x")
    shop.add("a", 0)
    shop.says("end a")

    worker.terminate()
    assert shop.ends(worker) == CLEAN
    assert len(re.findall(r" process (\d+) of ", shop.log())) == 1
