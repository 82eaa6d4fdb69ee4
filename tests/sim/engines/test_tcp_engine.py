"""The tcp engine: real processes, in real time."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import UnplayableError
from disque_trio.sim.engines.tcp import addresses
from disque_trio.sim.engines.tcp import run as tcp_run
from disque_trio.sim.engines.tcp.processes import NodeProcess
from disque_trio.sim.engines.tcp.proxies import Splitter
from disque_trio.sim.engines.tcp.slack import NO_PROCESSOR, with_slack
from disque_trio.sim.model.vector_clocks import precedes
from disque_trio.sim.scenarios.plan import ClockPlan, Expect, Fault, LinkPlan, Plan
from disque_trio.statemachine.messages import GotJob, Ping
from disque_trio.tracing.rows import Row
from disque_trio.wire.frames import encode
from tests.rig import JOB, ME
from tests.sim.plans import DUPLICATES, SECOND, jepsen, jobs, workers

BUSY_S: Final = 0.03
"""A machine that lets a thread wait for so long is busy."""
ATTEMPTS: Final = 4
LATE: Final = {"L13"}
"""What is found where clients get no processor: they give up by their own clock."""


def played(plan: Plan) -> tuple[Verdict, list[Row]]:
    """On a busy machine clients may be late by more than any bound. If nothing else is found, that
    is no verdict, and the plan is played again."""
    for _ in range(ATTEMPTS):
        with Wakes() as wakes:
            verdict, rows = played_once(plan)
        found = {each.property for each in verdict.violations}
        if not found or found - LATE or wakes.latest < BUSY_S:
            break
    return verdict, rows


class Wakes:
    """How late the machine wakes a thread that sleeps."""

    EVERY_S: Final = 0.01

    def __init__(self) -> None:
        self.latest = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Wakes":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        asleep = time.monotonic()
        while not self._is_over.wait(self.EVERY_S):
            now = time.monotonic()
            self.latest = max(self.latest, now - asleep - self.EVERY_S)
            asleep = now


def played_once(plan: Plan) -> tuple[Verdict, list[Row]]:
    checkers, rows = judge(with_slack(plan), no_processor=NO_PROCESSOR), list[Row]()

    def observe(row: Row) -> None:
        checkers.see(row)
        rows.append(row)

    tcp_run.simulate(plan, observe)
    return checkers.finish(), rows


def servers() -> list[str]:
    """Command lines of our processes' children that are servers."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            words = stat.with_name("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == os.getpid() and b"server" in words:
            found.append(b" ".join(words).decode())
    return found


# Runs.


ENOUGH: Final = 10
"""Jobs that must have come out."""
CYCLES: Final = (1, 2, 4, 8)
"""On a busy machine nodes take longer to find each other again after a partition, and refuse more
jobs for want of nodes: then more partitions, with more jobs."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_jepsens_partitions_lose_nothing_among_real_processes() -> None:
    delivered = 0
    for cycles in CYCLES:
        delivered += _delivered_in_partitions(cycles)
        if delivered >= ENOUGH:
            break

    assert delivered >= ENOUGH
    assert servers() == []


def _delivered_in_partitions(cycles: int) -> int:
    verdict, rows = played(jepsen(cycles=cycles, on=2 * SECOND, off=SECOND))

    kinds = Counter(row.kind for row in rows)
    assert verdict.violations == ()
    assert verdict.lost == 0
    assert jobs_of(rows, "add.ok") <= jobs_of(rows, "get.deliver")
    assert kinds["cut"] == kinds["heal"] == 12 * cycles
    assert kinds["lost"] > 0
    assert not set(verdict.not_judged) & {"S1", "S2", "S3", "S4", "L3", "L6"}
    _assert_messages_come_after_they_left(rows)
    return verdict.distinct


def jobs_of(rows: list[Row], kind: str) -> set[str]:
    return {row.job for row in rows if row.kind == kind}


@pytest.mark.timeout(300)
def test_processes_are_killed_stopped_and_wiped() -> None:
    faults = (
        Fault(kind="crash", at=300_000, hold=300_000, nodes=(2,)),
        Fault(kind="pause", at=900_000, hold=600_000, nodes=(1,)),
        Fault(kind="wipe", at=2_400_000, nodes=(3,)),
        Fault(kind="crash", when="send.setack", target="event.peer", at=1_800_000, hold=SECOND),
    )
    plan = Plan(
        scenario="storm",
        seed=3,
        nodes=3,
        adds=jobs(25, 120_000, 3, replicate=2),
        consumers=workers(3),
        faults=faults,
        chaos=3 * SECOND,
        config=(("cluster-node-timeout", "1000"),),
        expect=Expect(duplicates=("D3a", *DUPLICATES)),
    )

    verdict, rows = played(plan)

    assert verdict.violations == ()
    assert verdict.lost == 0
    told = {(row.kind, row.node) for row in rows if row.kind in {"pause", "resume", "wipe"}}
    assert told == {("pause", "n1"), ("resume", "n1"), ("wipe", "n3")}
    starts = [(row.node, row.cause) for row in rows if row.kind == "start"]
    assert ("n2", "empty") in starts
    assert starts.count(("n3", "fresh")) == 2
    # A triggered fault may have struck who was down already.
    assert Counter(row.kind for row in rows)["crash"] >= 2
    _assert_messages_come_after_they_left(rows)
    _assert_that_dead_processes_do_nothing(rows)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_process_that_is_stopped_in_order_gets_sigterm_and_may_start_again() -> None:
    plan = Plan(
        scenario="stop",
        seed=3,
        nodes=3,
        adds=jobs(10, 120_000, 3, replicate=2),
        consumers=workers(3),
        faults=(
            Fault(kind="crash", at=300_000, hold=SECOND, nodes=(2,), mode="stop"),
            Fault(kind="restart", at=500_000, nodes=(3,), mode="stop"),
        ),
        chaos=2 * SECOND,
        config=(("cluster-node-timeout", "1000"),),
        expect=Expect(duplicates=("D3a", *DUPLICATES)),
    )

    verdict, rows = played(plan)

    assert verdict.violations == ()
    assert verdict.lost == 0
    ends = sorted((row.node, row.cause) for row in rows if row.kind == "crash")
    assert ends == [("n2", "stop"), ("n3", "stop")]
    starts = [row.node for row in rows if (row.kind, row.cause) == ("start", "empty")]
    assert sorted(starts) == ["n2", "n3"]


def test_sigterm_is_what_ends_a_process_that_is_stopped(tmp_path: Path) -> None:
    where = addresses.find(1)
    process = NodeProcess(tmp_path, where, 1, ())
    process.start()
    try:
        _until(lambda: "node started" in process.log)
        process.terminate()
        _until(lambda: process.has_ended_by_itself)
        assert "reason=SIGTERM" in process.log
    finally:
        process.kill()


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def _assert_messages_come_after_they_left(rows: list[Row]) -> None:
    sent = {row.ref: row for row in rows if row.kind == "send"}
    came = [row for row in rows if row.kind == "recv"]
    assert came
    for row in came:
        assert sent[row.ref].time <= row.time
        assert (sent[row.ref].node, sent[row.ref].job) == (row.peer, row.job)
        assert precedes(sent[row.ref].clock, row.clock)


def _assert_that_dead_processes_do_nothing(rows: list[Row]) -> None:
    dead = set()
    for row in rows:
        if row.kind == "crash":
            dead.add(row.node)
        elif row.kind == "start":
            dead.discard(row.node)
        elif row.kind in {"hold", "drop", "queue", "unqueue", "serve", "give", "acked"}:
            assert row.node not in dead


# What it cannot do.


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (Plan(scenario="", seed=1, nodes=3, link=LinkPlan(model="hostile")), "hostile links"),
        (Plan(scenario="", seed=1, nodes=3, config=(("appendonly", "yes"),)), "journals"),
        (Plan(scenario="", seed=1, nodes=3, clocks=(ClockPlan(drift_ppm=5),)), "drift"),
        (Plan(scenario="", seed=1, nodes=251), "250 nodes"),
        (Plan(scenario="", seed=1, nodes=3, versions=(("0",),)), "earlier versions"),
        *[
            (Plan(scenario="", seed=1, nodes=3, faults=(Fault(kind=kind),)), kind)
            for kind in ("clock-step", "clock-rate", "wall-freeze", "slow", "disk-full")
        ],
        (Plan(scenario="", seed=1, nodes=3, faults=(Fault(kind="crash", mode="power"),)), "power"),
    ],
)
def test_what_cannot_be_done_to_processes_is_refused(plan: Plan, reason: str) -> None:
    with pytest.raises(UnplayableError, match=reason) as caught:
        tcp_run.simulate(plan)

    assert "take the heap or the trio engine" in str(caught.value)


def test_a_node_that_cannot_start_ends_the_run_with_its_words() -> None:
    plan = Plan(scenario="", seed=1, nodes=1, config=(("unixsocket", "/nowhere/at/all"),))

    with pytest.raises(MachineError, match=r"n1 has ended by itself: .*cannot listen on"):
        tcp_run.simulate(plan)

    assert servers() == []


# Places and frames.


def test_places_tell_nodes_by_their_own_addresses() -> None:
    found = addresses.find(3)

    assert [found.node_at(found.own(node)) for node in (1, 2, 3)] == [1, 2, 3]
    assert found.node_at(found.seen(1)) == 0
    assert found.node_at("127.0.0.1") == 0


def test_a_stream_is_split_into_frames_wherever_it_is_cut() -> None:
    frames = [encode(ME, 7711, 0, message) for message in (Ping(), GotJob(JOB), Ping())]
    stream = b"".join(frames)

    for cut in range(len(stream)):
        splitter = Splitter()
        assert splitter.feed(stream[:cut]) + splitter.feed(stream[cut:]) == frames
