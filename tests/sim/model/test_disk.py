"""The simulated disk, and what a node does with its journal."""

import random

import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.store import WRITE, DiskStore, SimFile, SimThread
from disque_trio.sim.model.disk import BROKEN, FULL, Disk
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan, Span
from disque_trio.sim.steering import Simulation
from disque_trio.sim.workload.operators import Pending
from disque_trio.statemachine.base import Failure, Status
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire.journal import DamagedFileError, Reader
from tests.sim.runs import of
from tests.sim.scenarios.test_shipped import ROOT

SECOND = 1_000_000


def disk(seed: int = 1) -> Disk:
    return Disk(random.Random(seed), (1_000, 1_000))


def opened(one: Disk) -> SimFile:
    return DiskStore(Engine(), one).open()


# The disk.


def test_power_takes_single_writes_from_some_point_on_and_maybe_half_of_one() -> None:
    left = set()
    for seed in range(400):
        one = disk(seed)
        file = opened(one)
        file.append(b"synced ")
        file.sync()
        file.append(b"ab")
        file.append(b"cd")
        one.lose_power()
        left.add(bytes(one.file.data))

    parts = (b"", b"a", b"ab", b"\0", b"\0\0"), (b"ab", b"abc", b"abcd", b"ab\0", b"ab\0\0")
    assert left == {b"synced " + part for some in parts for part in some}


def test_what_is_written_over_itself_is_never_less_than_it_was() -> None:
    for seed in range(50):
        one = disk(seed)
        file = opened(one)
        file.append(b"0123456789")
        file.sync()
        file.rewind(4)
        file.append(b"456789")
        one.lose_power()
        assert one.file.data[:4] == b"0123"
        assert len(one.file.data) == 10


def test_what_is_written_during_a_sync_may_be_missed_by_it() -> None:
    engine, one = Engine(), disk()
    store = DiskStore(engine, one)
    file = store.open()
    store.thread.beside(file.append, (b"before",), lambda _outcome: None, sync=file.sync)
    engine.run(WRITE)
    file.append(b"during")

    engine.run(2_000)

    assert one.file.durable == b"before"


def test_a_kill_within_a_sync_keeps_what_was_written_and_a_loss_of_power_may_not() -> None:
    left = set()
    for seed in range(20):
        engine, one = Engine(), disk(seed)
        store = DiskStore(engine, one)
        file = store.open()
        store.thread.start(file.append, (b"ab",), lambda _error: None, sync=file.sync)

        engine.run(WRITE)
        store.thread.end()
        engine.run(2_000)

        assert one.file.data == b"ab"
        one.lose_power()
        left.add(bytes(one.file.data))

    assert {b"", b"ab"} < left


@pytest.mark.parametrize(("name", "text"), [("is_full", FULL), ("is_broken", BROKEN)])
def test_what_cannot_be_written_is_not_synced(name: str, text: str) -> None:
    engine, one = Engine(), disk()
    store = DiskStore(engine, one)
    file, errors, syncs = store.open(), list[str](), list[str]()
    store.thread.wake = store.thread.collect
    setattr(one, name, True)

    store.thread.start(
        file.append, (b"x",), lambda error: errors.append(str(error)), sync=lambda: syncs.append("")
    )
    engine.run(2_000)

    assert text in errors[0]
    assert not syncs


def test_a_file_that_has_taken_anothers_place_may_not_have_done_so() -> None:
    left = set()
    for seed in range(30):
        one = disk(seed)
        store = DiskStore(Engine(), one)
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
        opened(one).append(b"x")
    assert not one.has_content()


def test_a_file_that_is_no_journal_is_taken_away() -> None:
    one = disk()
    opened(one).append(b"this is no journal")

    assert one.load().how == "damaged"
    assert not one.has_content()


# The journal.


def cluster(
    fsync: str = "always",
    *,
    sync: Span = (5_000, 5_000),
    nodes: int = 1,
    config: tuple[tuple[str, str], ...] = (),
) -> Simulation:
    kept = (("appendonly", "yes"), ("appendfsync", fsync), ("cluster-node-timeout", "2000"))
    return Simulation(Plan(scenario="", seed=1, nodes=nodes, config=kept + config, sync=sync))


def added(sim: Simulation, node: str = "n1", body: str = "hello") -> Pending:
    return sim.client(node).addjob("q", body, 1000, replicate=1, retry=1)


def test_under_always_nothing_is_said_before_it_is_synced() -> None:
    sim = cluster(sync=(300_000, 300_000))

    pending = added(sim)
    sim.run(250_000)
    assert not pending.is_done
    sim.run(100_000)

    assert isinstance(pending.reply, Status)


def test_one_sync_serves_all_that_was_written_before_it() -> None:
    sim = cluster(sync=(300_000, 300_000))

    first = added(sim)
    sim.run(100_000)
    others = [added(sim) for _ in range(10)]
    sim.run(250_000)
    assert first.is_done
    assert not any(each.is_done for each in others)
    sim.run(300_000)

    assert all(each.is_done for each in others)


@pytest.mark.parametrize("cause", ["kill", "power"])
def test_under_always_what_was_confirmed_comes_back(cause: str) -> None:
    sim = cluster()
    pending = added(sim)
    sim.run_until(lambda: pending.is_done)

    with sim.crash("n1", cause):
        sim.run(SECOND)
    asked = sim.client("n1").getjob("q", timeout_ms=5_000)
    sim.run_until(lambda: asked.is_done)

    assert isinstance(asked.reply, list)
    assert [row.cause for row in of(sim.rows, "start")] == ["fresh", "loaded"]


def test_under_everysec_a_kill_takes_nothing_and_power_at_most_the_last_second() -> None:
    sim = cluster("everysec")
    early = added(sim)
    sim.run(3 * SECOND)
    late = added(sim)
    sim.run_until(lambda: late.is_done)
    assert early.is_done

    with sim.crash("n1"):
        sim.run(SECOND)
    sim.run(SECOND // 10)
    assert len(sim.state("n1").jobs) == 2

    assert [row.cause for row in of(sim.rows, "loaded")] == ["kept"]


def test_a_full_disk_refuses_writes_until_there_is_space() -> None:
    sim = cluster("everysec")
    host = sim.world.hosts[1]
    host.disk.is_full = True

    first = added(sim)
    sim.run(50_000)
    second, info = added(sim), sim.client("n1").ask("INFO")
    sim.run(50_000)
    assert [_refusal(each) for each in (first, second)] == [b"MISCONF", b"MISCONF"]
    assert isinstance(info.reply, bytes)
    host.disk.is_full = False
    sim.run(2 * SECOND)
    third = added(sim)
    sim.run(SECOND)

    assert isinstance(third.reply, Status)
    # The first had been made when the disk refused it.
    assert len(jobs_on(host.disk)) == 2


def jobs_on(disk: Disk) -> set[bytes]:
    return {each.copy.id for each in disk.load().records if isinstance(each, LoadJob)}


def _refusal(pending: Pending) -> bytes:
    assert isinstance(pending.reply, Failure)
    return pending.reply.text.partition(b" ")[0]


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_a_failing_sync_refuses_writes_until_one_succeeds(fsync: str) -> None:
    sim = cluster(fsync)
    host = sim.world.hosts[1]
    first = added(sim)
    sim.run(2_000)
    host.disk.is_broken = True
    sim.run(2 * SECOND)
    second = added(sim)
    sim.run(SECOND)
    assert _refusal(second) == b"MISCONF"

    host.disk.is_broken = False
    sim.run(2 * SECOND)

    third = added(sim)
    sim.run(2 * SECOND)
    assert isinstance(first.reply, Status) == (fsync == "everysec")
    assert isinstance(third.reply, Status)
    assert host.disk.file.durable == host.disk.file.data
    assert len(jobs_on(host.disk)) == 2


def test_a_node_whose_disk_hangs_is_not_taken_for_dead() -> None:
    sim = cluster(nodes=3)
    sim.world.hosts[1].disk.is_stalled = True

    pending = added(sim)
    sim.run(10 * SECOND)

    assert _refusal(pending) == b"MISCONF"
    assert not of(sim.rows, "send", cause="fail")


def test_a_disk_that_hangs_holds_replies_back_until_it_goes_on() -> None:
    sim = cluster("everysec")
    host = sim.world.hosts[1]
    host.disk.is_stalled = True

    pending = added(sim)
    sim.run(3 * SECOND)
    assert not pending.is_done
    host.disk.is_stalled = False
    sim.run(20_000)

    assert pending.is_done


def test_a_damaged_journal_is_taken_away() -> None:
    sim = cluster()
    pending = added(sim)
    sim.run_until(lambda: pending.is_done)
    sim.world.hosts[1].disk.flip()

    sim.restart("n1")
    sim.run(SECOND // 10)

    assert sim.state("n1").jobs == {}
    assert [row.cause for row in of(sim.rows, "start")] == ["fresh", "empty"]
    assert [row.cause for row in of(sim.rows, "loaded")] == ["damaged"]


def is_damaged(data: bytes) -> bool:
    reader = Reader()
    try:
        reader.feed(data)
        reader.finish()
    except DamagedFileError:
        return True
    return False


def test_of_a_file_without_checksums_any_bit_is_flipped_that_is_noticed() -> None:
    sim = cluster(config=(("aof-format", "disque"),))
    for _ in range(3):
        added(sim)
        sim.run(SECOND)
    one = sim.world.hosts[1].disk
    data, is_all_noticed = bytes(one.file.data), True
    places: set[int] = set()
    for _ in range(60):
        one.flip()
        places.update(at for at, byte in enumerate(one.file.data) if byte != data[at])
        is_all_noticed &= is_damaged(bytes(one.file.data))
        one.file.data[:] = data

    assert is_all_noticed
    assert any(data[at : at + 1] != b"*" for at in places)
    assert len(places) > 20


# The checkers find it.


def test_a_node_that_talks_before_its_disk_has_synced_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = SimThread.start
    monkeypatch.setattr(
        SimThread, "start", lambda *given, **others: start(*given, **others | {"sync": None})
    )
    scenario = load(ROOT / "scenarios" / "torn-aof.toml")

    found: set[str] = set()
    for seed in range(40):
        found.update(each.property for each in execute(expand(scenario, seed)).result.findings)
        if "S15" in found:
            break

    assert "S15" in found
