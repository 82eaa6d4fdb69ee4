"""The disk of the trio engine: files of bytes, as the real journal uses them."""

import random
from pathlib import Path

import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.trio.store import ByteDisk, SimStore
from disque_trio.sim.model.disk import BROKEN, FULL
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from tests.sim.scenarios.test_shipped import ROOT


def disk(seed: int = 1) -> ByteDisk:
    return ByteDisk(random.Random(seed), (1_000, 1_000))


def test_power_takes_single_writes_from_some_point_on_and_maybe_half_of_one() -> None:
    left = set()
    for seed in range(200):
        one = disk(seed)
        file = SimStore(Engine(), one).open()
        file.append(b"synced ")
        file.sync()
        file.append(b"ab")
        file.append(b"cd")
        one.lose_power()
        left.add(bytes(one.file.data))

    assert left == {b"synced " + b"abcd"[:count] for count in range(5)}


def test_what_is_written_over_itself_is_never_less_than_it_was() -> None:
    for seed in range(50):
        one = disk(seed)
        file = SimStore(Engine(), one).open()
        file.append(b"0123456789")
        file.sync()
        file.rewind(4)
        file.append(b"456789")
        one.lose_power()
        assert one.file.data == b"0123456789"


def test_a_file_that_has_taken_anothers_place_may_not_have_done_so() -> None:
    left = set()
    for seed in range(30):
        one = disk(seed)
        store = SimStore(Engine(), one)
        old, new = store.open(), store.begin()
        for file, data in ((old, b"old"), (new, b"new")):
            file.append(data)
            file.sync()
        store.replace(new)
        if seed % 2:
            store.settle()
        one.lose_power()
        left.add((seed % 2, bytes(one.file.data)))

    assert left == {(0, b"old"), (0, b"new"), (1, b"new")}


@pytest.mark.parametrize(("name", "text"), [("is_full", FULL), ("is_broken", BROKEN)])
def test_a_disk_that_takes_nothing_says_why(name: str, text: str) -> None:
    one = disk()
    setattr(one, name, True)

    with pytest.raises(OSError, match=text):
        SimStore(Engine(), one).open().append(b"x")
    assert not one.has_content()


def test_a_file_that_is_no_journal_is_taken_away() -> None:
    one = disk()
    file = SimStore(Engine(), one).open()
    file.append(b"this is no journal")

    assert one.load().how == "damaged"
    assert not one.has_content()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["torn-aof", "kill-restart-aof"])
def test_whole_nodes_lose_no_job_that_they_have_confirmed(name: str) -> None:
    result = execute(expand(load(Path(ROOT, "scenarios", f"{name}.toml")), 0), "trio").result

    assert result.findings == ()
    assert result.marks["copy.loaded"] > 0
