"""The simulated disk, and what a node does with its journal."""

import random

import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.heap.journal import Journal
from disque_trio.sim.model.disk import FULL, Disk, DiskError, JournalError
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Plan, Span
from disque_trio.sim.steering import Simulation
from disque_trio.sim.workload.operators import Pending
from disque_trio.statemachine.base import Failure, JobId, Status
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from tests.rig import JOB, copy_of
from tests.sim.runs import of
from tests.sim.scenarios.test_shipped import ROOT

SECOND = 1_000_000


def disk(seed: int = 1) -> Disk:
    return Disk(random.Random(seed), (1_000, 1_000))


def _job(number: int) -> JobId:
    return b"%b%02d%b" % (JOB[:30], number, JOB[32:])


def records(count: int) -> list[Record]:
    return [LoadJob(copy_of(_job(number))) for number in range(count)]


# The disk.


def test_what_was_written_comes_back_as_it_was() -> None:
    one = disk()
    one.write(records(5))

    for _ in range(8):
        found = one.load()
        assert (found.how, found.records) == ("kept", records(5))


def test_a_job_that_was_deleted_is_read_with_its_end_and_then_no_more() -> None:
    one = disk()
    first, second = records(2)
    assert isinstance(first, LoadJob)
    one.write([first, second, DeleteJob(first.copy.id)])

    assert one.load().records == [first, second, DeleteJob(first.copy.id)]
    assert one.load().records == [second]


def test_power_takes_what_was_not_synced_from_some_point_on() -> None:
    lengths = set()
    hows = set()
    for seed in range(60):
        one = disk(seed)
        one.write(records(5))
        one.sync(2)
        one.lose_power()
        found = one.load()
        assert found.records == records(5)[: len(found.records)]
        lengths.add(len(found.records))
        hows.add(found.how)
        assert one.load().how == "kept"

    assert lengths == {2, 3, 4, 5}
    assert hows == {"kept", "torn"}


def test_every_flipped_bit_is_found() -> None:
    for seed in range(40):
        one = disk(seed)
        one.write(records(3))
        one.flip()

        assert one.load().how == "damaged"
        assert one.load().records == []


def test_a_full_disk_takes_nothing() -> None:
    one = disk()
    one.is_full = True

    with pytest.raises(DiskError, match=FULL):
        one.write(records(1))
    assert one.records == []


def test_a_sync_that_fails_puts_everything_in_doubt_that_was_not_synced_before() -> None:
    one = disk()
    one.write(records(3))
    one.sync(1)
    one.is_broken = True

    with pytest.raises(DiskError, match="Input/output error"):
        one.sync(3)
    assert one.records == records(3)
    assert one.durable == 1


def test_a_file_that_comes_back_otherwise_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    one = disk()
    one.write(records(3))
    for _ in range(3):  # only the fourth goes through bytes
        one.load()
    monkeypatch.setattr("disque_trio.sim.model.disk._read", lambda _data, _rng: records(2))

    with pytest.raises(JournalError, match="3 records, and 2 come back"):
        one.load()


# The journal.


def cluster(fsync: str = "always", *, sync: Span = (5_000, 5_000), nodes: int = 1) -> Simulation:
    config = (("appendonly", "yes"), ("appendfsync", fsync), ("cluster-node-timeout", "2000"))
    return Simulation(Plan(scenario="", seed=1, nodes=nodes, config=config, sync=sync))


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
    assert len(host.disk.records) == 2


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
    assert host.disk.durable == len(host.disk.records) == 2


def test_a_node_whose_disk_hangs_is_not_taken_for_dead() -> None:
    sim = cluster(nodes=3)
    sim.world.hosts[1].disk.stall(is_stalled=True)

    pending = added(sim)
    sim.run(10 * SECOND)

    assert not pending.is_done
    assert not of(sim.rows, "send", cause="fail")


def test_a_disk_that_hangs_holds_replies_back_until_it_goes_on() -> None:
    sim = cluster("everysec")
    host = sim.world.hosts[1]
    host.disk.stall(is_stalled=True)

    pending = added(sim)
    sim.run(3 * SECOND)
    assert not pending.is_done
    host.disk.stall(is_stalled=False)
    sim.run(1_000)

    assert pending.is_done


def test_a_damaged_journal_is_taken_away() -> None:
    sim = cluster()
    pending = added(sim)
    sim.run_until(lambda: pending.is_done)
    sim.world.hosts[1].disk.flip()

    sim.restart("n1")

    assert sim.state("n1").jobs == {}
    assert [row.cause for row in of(sim.rows, "start")] == ["fresh", "empty"]
    assert [row.cause for row in of(sim.rows, "loaded")] == ["damaged"]


# The checkers find it.


def test_a_node_that_talks_before_its_disk_has_synced_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Journal, "_safe", lambda journal: journal._handed)
    scenario = load(ROOT / "scenarios" / "torn-aof.toml")

    found: set[str] = set()
    for seed in range(40):
        found.update(each.property for each in execute(expand(scenario, seed)).result.findings)
        if "S15" in found:
            break

    assert "S15" in found
