"""Minutes of mixed load on three nodes, one of which is killed and started again all the time.

`make soak`. SOAK_SECONDS sets how long, SOAK_SEED what the load does (not when: that is the
machine's). The figures are printed as a table.
"""

import os
import random
import time
from typing import Final

import attrs
import pytest
import trio
from rich.console import Console
from rich.table import Table

from tests.cluster.processes import NODE_TIMEOUT, Cluster, Fleet, Server
from tests.cluster.soak.ledger import EXPLAINED, Guarantee, Ledger
from tests.cluster.soak.load import TTL_S, Rig, consume, look_on, pause_and_resume, produce, resume

SECONDS: Final = float(os.environ.get("SOAK_SECONDS", "600"))
SEED: Final = int(os.environ.get("SOAK_SEED", "1"))
KILL_EVERY_S: Final = 20.0
DOWN_S: Final = 1.5 * NODE_TIMEOUT / 1000
"""How long a killed node stays away: the others notice."""
OVERDUE_S: Final = 40.0
"""By then a job has been delivered: its delay, its retries and the pauses come to less."""
DRAIN_S: Final = TTL_S + 90.0
"""By then nothing is left: an undeliverable ack is kept as long as its job, in whole minutes."""
PRODUCERS: Final = 3
CONSUMERS: Final = 6


@attrs.define(eq=False)
class Watch:
    """What the nodes did."""

    kills: int = 0
    back_at: float = 0.0
    """When the node that was killed last was well again."""
    peak_rss: dict[int, float] = attrs.Factory(dict)
    """MiB, by the number of the node."""
    end_rss: dict[int, float] = attrs.Factory(dict)
    drained_s: float = 0.0
    loaded_s: float = 0.0


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + OVERDUE_S + DRAIN_S + 120)
async def test_a_cluster_keeps_its_guarantees_while_its_nodes_die_in_turn(fleet: Fleet) -> None:
    cluster = fleet.cluster(3)
    rig = Rig(cluster.servers, Ledger(), random.Random(SEED))
    watch = Watch()

    await _load(rig, cluster, watch)

    _print(rig.ledger, watch)
    assert not rig.ledger.lost(Guarantee.COPIES)
    assert not rig.ledger.lost_since(watch.back_at)
    assert not rig.ledger.delivered_twice()
    assert rig.ledger.jobs
    assert max(watch.peak_rss.values()) < 300


async def _load(rig: Rig, cluster: Cluster, watch: Watch) -> None:
    started = time.monotonic()
    async with trio.open_nursery() as nursery:
        for task in [produce] * PRODUCERS + [consume] * CONSUMERS + [look_on, pause_and_resume]:
            nursery.start_soon(task, rig)
        nursery.start_soon(_measure, rig, watch)
        await _kill_in_turn(rig, cluster, watch, until=started + SECONDS)
        rig.is_producing = False
        watch.loaded_s = time.monotonic() - started
        await _drain(rig, cluster, watch)
        rig.is_consuming = False
    for number, server in enumerate(rig.servers):
        watch.end_rss[number] = server.rss_mib()


async def _kill_in_turn(rig: Rig, cluster: Cluster, watch: Watch, until: float) -> None:
    last_kill = time.monotonic()
    while (next_kill := last_kill + KILL_EVERY_S) < until:
        await trio.sleep(next_kill - time.monotonic())
        await _until_delivered(rig.ledger, last_kill)
        victim = cluster[watch.kills % len(cluster.servers)]
        last_kill = time.monotonic()
        victim.kill()
        watch.kills += 1
        await trio.sleep(DOWN_S)
        await trio.to_thread.run_sync(_bring_back, victim, cluster)
        watch.back_at = time.monotonic()
    await trio.sleep(max(0, until - time.monotonic()))


def _bring_back(server: Server, cluster: Cluster) -> None:
    server.start().wait()
    cluster.wait()


async def _until_delivered(ledger: Ledger, moment: float) -> None:
    """Wait until every job from before that moment has been delivered: it may have one copy."""
    deadline = time.monotonic() + OVERDUE_S
    while ledger.has_waiting_from_before(moment):
        overdue = list(ledger.waiting)[:5]
        assert time.monotonic() < deadline, f"jobs that are not delivered: {overdue}"
        await trio.sleep(0.1)


async def _drain(rig: Rig, cluster: Cluster, watch: Watch) -> None:
    """Nothing new comes: wait until no node remembers any job."""
    started = time.monotonic()
    await resume(rig)
    counts = [1]
    while any(counts):
        await trio.sleep(0.2)
        counts = [server.client.registered_jobs() for server in cluster.servers]
        assert time.monotonic() - started < DRAIN_S, f"records left on the nodes: {counts}"
    watch.drained_s = time.monotonic() - started


async def _measure(rig: Rig, watch: Watch) -> None:
    """Every second: which nodes live, and what they use."""
    while rig.is_consuming:
        for number, server in enumerate(rig.servers):
            if server.is_meant_to_run:
                assert server.is_running(), f"ended by itself: {server.log()[-4000:]}"
                watch.peak_rss[number] = max(watch.peak_rss.get(number, 0), server.rss_mib())
        await trio.sleep(1)


# The figures.


def _print(ledger: Ledger, watch: Watch) -> None:
    console = Console()
    commands = sum(ledger.commands.values())
    figures = Table(title=f"soak: {watch.loaded_s:.0f} s of load, seed {SEED}")
    figures.add_column("figure")
    figures.add_column("value", justify="right")
    for name, value in (
        ("commands", f"{commands:,}"),
        ("ops/s", f"{commands / watch.loaded_s:,.0f}"),
        ("jobs added", f"{len(ledger.jobs):,}"),
        ("ADDJOBs without an answer", f"{ledger.adds_unsure:,}"),
        ("deliveries", f"{sum(ledger.deliveries.values()):,}"),
        ("repeated deliveries", f"{ledger.repeated():,}"),
        ("of these not provoked by a worker", f"{ledger.repeated_unasked():,}"),
        ("workers that died", f"{ledger.workers_died:,}"),
        ("kills", f"{watch.kills}"),
        ("connections lost", f"{ledger.connections_lost:,}"),
        ("connections refused", f"{ledger.connections_refused:,}"),
        ("drained in", f"{watch.drained_s:.1f} s"),
    ):
        figures.add_row(name, value)
    console.print(figures)
    console.print(_guarantees(ledger))
    console.print(_nodes(watch))
    console.print("refusals:", dict(ledger.refusals.most_common()))


def _guarantees(ledger: Ledger) -> Table:
    table = Table("guarantee", title="jobs by what ADDJOB's answer guarantees")
    for column in ("added", "lost"):
        table.add_column(column, justify="right")
    table.add_column("what may become of them")
    for guarantee in Guarantee:
        added = sum(1 for _ in ledger.of(guarantee))
        lost = len(ledger.lost(guarantee))
        table.add_row(guarantee.value, f"{added:,}", f"{lost:,}", EXPLAINED[guarantee])
    return table


def _nodes(watch: Watch) -> Table:
    table = Table("node", title="resident memory, MiB")
    for column in ("peak", "at the end"):
        table.add_column(column, justify="right")
    for number, peak in sorted(watch.peak_rss.items()):
        table.add_row(str(number), f"{peak:.0f}", f"{watch.end_rss[number]:.0f}")
    return table
