"""What is said of a node's memory."""

import attrs
import pytest

from disque_trio.observe.finding import Level
from disque_trio.observe.node_checks import judge
from tests.observe.clusters import cluster, said, the_one


def test_memory_is_told_of_as_the_node_counts_it() -> None:
    """What the process itself takes is not to be had for jobs (statemachine.pressure)."""
    used = {"used_memory": str(800 << 20), "used_memory_process": str(24 << 20)}

    assert said(cluster(info={**used, "memory_level": "0"})) == []

    finding = the_one(cluster(info={**used, "memory_level": "1"}))

    assert "776 of the 1000 MiB that maxmemory leaves for jobs are used (78%)" in finding.what


@pytest.mark.parametrize(
    ("memory_level", "level", "doing"),
    [
        ("1", Level.WARNING, ": it leaves new jobs to other nodes"),
        ("2", Level.PROBLEM, ": it refuses new jobs"),
    ],
)
def test_memory_that_earlier_backlogs_pin_is_told(
    memory_level: str, level: Level, doing: str
) -> None:
    info = {
        "used_memory": str(400 << 20),
        "used_memory_rss": str(1180 << 20),
        "memory_level": memory_level,
        "memory_limited_by": "resident-size",
    }

    finding = the_one(cluster(info=info))

    assert finding.level is level
    assert finding.what == (
        "the resident size is 1180 MiB, 115% of maxmemory; jobs left from earlier backlogs keep "
        f"780 MiB from being released{doing}"
    )
    assert "SHUTDOWN REWRITE-AOF" in finding.advice


def test_a_resident_size_beyond_what_is_promised_is_told() -> None:
    info = {"used_memory": str(400 << 20), "used_memory_rss": str(1281 << 20), "memory_level": "0"}

    finding = the_one(cluster(info=info))

    assert finding.level is Level.WARNING
    assert "the resident size is 1281 MiB, 125% of maxmemory" in finding.what


def test_memory_below_that_of_the_process_is_told() -> None:
    config = {"maxmemory": str(16 << 20), "bind": "127.0.0.1"}
    info = {"used_memory_process": str(30 << 20), "used_memory": str(30 << 20), "memory_level": "0"}

    finding = the_one(cluster(config=config, info=info))

    assert finding.level is Level.PROBLEM
    assert finding.what.startswith("maxmemory is 16 MiB, and the process itself uses 30 MiB")
    assert "61 MiB" in finding.advice


def test_memory_that_leaves_little_beside_the_process_is_told() -> None:
    config = {"maxmemory": str(33 << 20), "bind": "127.0.0.1"}
    info = {"used_memory_process": str(30 << 20), "used_memory": str(30 << 20), "memory_level": "0"}

    finding = the_one(cluster(config=config, info=info))

    assert finding.level is Level.WARNING
    assert finding.what == "maxmemory leaves only 3072 KiB for jobs"


@pytest.mark.parametrize(
    ("used_mib", "level"), [(700, None), (800, Level.WARNING), (1000, Level.PROBLEM)]
)
def test_memory_of_an_original_server_is_judged_by_its_levels(
    used_mib: int, level: Level | None
) -> None:
    nodes = cluster()
    info = {"disque_version": "1.0-rc1", "aof_enabled": "1", "used_memory": str(used_mib << 20)}
    nodes[1] = attrs.evolve(nodes[1], info=info)

    found = [finding.level for finding in judge(nodes) if "maxmemory" in finding.what]

    assert found == ([] if level is None else [level])


@pytest.mark.parametrize(("maxmemory", "level"), [(90, Level.WARNING), (101, Level.PROBLEM)])
def test_a_maxmemory_near_what_the_system_allows_is_told(maxmemory: int, level: Level) -> None:
    info = {
        "used_memory_process": str(30 << 20),
        "used_memory": str(30 << 20),
        "memory_level": "0",
        "memory_limit": str(100 << 20),
        "memory_limit_of": "container",
    }
    config = {"maxmemory": str(maxmemory << 20), "bind": "127.0.0.1"}

    finding = the_one(cluster(config=config, info=info))

    assert finding.level is level
    assert finding.what.startswith(f"maxmemory is {maxmemory} MiB, and the container allows 100")
    assert finding.advice == "lower maxmemory to 75mb, or leave it out"
