"""docs/tutorial-worker.md, followed word by word, with shorter waits."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.processes import SOON_S, Fleet, eventually
from tests.cluster.workers.shop import Shop, opened
from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "tutorial-worker.md").read_text("utf-8")
FILES: Final = dict(
    re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)
URL: Final = "disque://127.0.0.1:7711,127.0.0.1:7712,127.0.0.1:7713"
SHORTER: Final = {"base=2": "base=0.1", "lease=5": "lease=3", "sleep(10)": "sleep(2)"}
ADD: Final = ["python add.py send ada", "python add.py report may", "python add.py newsletter 1"]


@pytest.fixture
def shop(fleet: Fleet, tmp_path: Path) -> Iterator[Shop]:
    """The reader's directory, and a cluster as of `make up`."""
    servers = fleet.cluster(3).servers
    text = FILES["mailer.py"].replace(
        URL, "disque://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)
    )
    for long, short in SHORTER.items():
        assert text.count(long) == 1
        text = text.replace(long, short)
    (tmp_path / "mailer.py").write_text(text)
    (tmp_path / "add.py").write_text(FILES["add.py"])
    with opened(servers[0], tmp_path) as found:
        yield found


def added(shop: Shop, command: str) -> str:
    """What add.py prints."""
    _, *words = command.split()
    done = subprocess.run(
        (sys.executable, *words), cwd=shop.directory, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def logged(shop: Shop, text: str) -> None:
    """Wait for it."""
    eventually(lambda: text in shop.log(), SOON_S, f"{text!r}; log: {shop.log()}")


def test_these_are_the_commands_of_the_page() -> None:
    commands = re.findall(r"^    \$ (.*)$", PAGE, re.MULTILINE)

    assert [each for each in commands if "add.py" in each] == ADD
    assert commands.count("disque-trio worker mailer:app") == 2
    assert commands[0] == "make up"


@pytest.mark.slow
def test_a_job_waits_one_fails_and_one_outlives_its_worker(shop: Shop) -> None:
    send, report, newsletter = ADD
    assert re.fullmatch(r"D-[0-9a-f]{8}-.{24}-[0-9a-f]{4}", added(shop, send))
    first = shop.start("mailer:app")
    logged(shop, "to ada: hello")

    job = added(shop, report)
    logged(shop, "report of may: sent at attempt 3")
    assert shop.log().count(f"WARNING mail.report {job}: failed, retry in ") == 2

    added(shop, newsletter)
    logged(shop, f"newsletter 1: process {first.pid} begins")
    first.kill()
    second = shop.start("mailer:app")
    logged(shop, f"newsletter 1: process {second.pid} is done")
    assert f"process {first.pid} is done" not in shop.log()
