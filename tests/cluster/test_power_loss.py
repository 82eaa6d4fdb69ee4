"""Real nodes whose power fails: their disks have what their system calls made durable.

A round or two with the other tests; `make soak` cuts the power as often as `POWER_ROUNDS` says.
"""

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.power.disk import Disk, UnrecordedError
from tests.cluster.power.library import RECORDER, compiled, is_possible, recording
from tests.cluster.processes import DISQUE_TRIO, Fleet, Server
from tests.cluster.soak.storm import SEED, judge, storm

ROUNDS: Final = int(os.environ.get("POWER_ROUNDS", "10"))
UNSYNCED_S: Final = {"always": 0.0, "everysec": 3.0}
"""What `everysec` may lose: the last second, and what a sync and a busy machine add."""
REWRITING: Final = ("--auto-aof-rewrite-min-size", "100kb", "--auto-aof-rewrite-percentage", "20")

pytestmark = pytest.mark.skipif(not is_possible(), reason="the recorder needs a C compiler")


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that records system calls."""
    return compiled(RECORDER, tmp_path_factory.mktemp("recorder"))


@pytest.fixture
def recorded(tmp_path: Path, recorder: Path) -> Iterator[Fleet]:
    """Servers whose system calls are recorded."""
    words = (f"{name}={value}" for name, value in recording(recorder).items())
    fleet = Fleet(tmp_path, ("env", *words, *DISQUE_TRIO))
    try:
        yield fleet
    finally:
        fleet.close()


class Power:
    """The power of all servers, which fails for all at once."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._rng = random.Random(SEED)
        self._disks = [Disk(server.directory, server.log_path.name) for server in servers]

    def cut(self) -> None:
        """The processes have been killed: leave on each disk what may be left."""
        for disk in self._disks:
            disk.cut_power(self._rng)


async def stormed(fleet: Fleet, policy: str, rounds: int) -> None:
    cluster = fleet.cluster(3, "--appendonly", "yes", "--appendfsync", policy, *REWRITING)
    power = Power(cluster.servers)
    judge(await storm(cluster, rounds, power.cut, UNSYNCED_S[policy]))


@pytest.mark.slow
async def test_nothing_that_was_synced_is_lost_when_the_power_fails(recorded: Fleet) -> None:
    await stormed(recorded, "always", 2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", UNSYNCED_S)
async def test_nor_when_it_fails_again_and_again(recorded: Fleet, policy: str) -> None:
    await stormed(recorded, policy, ROUNDS)


def test_what_was_not_synced_is_lost_when_the_power_fails(recorded: Fleet) -> None:
    server = recorded.server("--appendonly", "yes", "--appendfsync", "no")
    power = Power([server])
    jobs = [server.client.add("q", "body") for _ in range(20)]
    server.kill()
    power.cut()

    server.start().wait()

    left = [job for job in jobs if server.client.show(job)]
    assert left == jobs[: len(left)]
    assert len(left) < len(jobs)


def test_a_kill_keeps_what_was_written_and_a_later_power_cut_what_was_synced(
    recorded: Fleet,
) -> None:
    server = recorded.server("--appendonly", "yes", "--appendfsync", "always")
    disk = Disk(server.directory, server.log_path.name)
    before = server.client.add("q", "body")
    server.kill()
    disk.keep()
    server.start().wait()
    after = server.client.add("q", "body")
    server.kill()
    disk.cut_power(random.Random(SEED))

    server.start().wait()

    assert server.client.show(before)
    assert server.client.show(after)


def test_a_new_node_has_the_same_name_after_a_power_cut(recorded: Fleet) -> None:
    server = recorded.server("--appendonly", "yes", "--appendfsync", "always")
    power = Power([server])
    name = server.id
    job = server.client.add("q", "body")
    server.kill()
    power.cut()

    server.start().wait()

    assert server.id == name
    assert server.client.show(job)


def test_an_orderly_stop_is_durable(recorded: Fleet) -> None:
    server = recorded.server("--appendonly", "yes")
    power = Power([server])
    jobs = [server.client.add("q", "body", "RETRY", retry) for retry in (60, 0, 60)]
    assert server.terminate() == 0
    power.cut()

    server.start().wait()

    assert [job.id for job in server.client.get("q", 5)] == jobs


def test_a_write_that_is_not_recorded_is_noticed(recorded: Fleet) -> None:
    server = recorded.server("--appendonly", "yes")
    power = Power([server])
    server.client.add("q", "body")
    server.kill()
    with open(server.directory / "disque.aof", "ab") as file:
        file.write(b"x")

    with pytest.raises(UnrecordedError, match=r"disque\.aof"):
        power.cut()
