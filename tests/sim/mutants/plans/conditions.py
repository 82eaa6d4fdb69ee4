"""Plans in which safeguards are put to the test, each with its own kind of conditions."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.sim.scenarios.plan import (
    Add,
    Consumer,
    Expect,
    Fault,
    Latency,
    LinkPlan,
    Micros,
    Plan,
)

SECOND: Final[Micros] = 1_000_000
MILLION: Final = 1_000_000
SCENARIOS: Final = Path(__file__).parents[4] / "scenarios"
TROUBLED: Final = ("D0", "D1", "D2", "D3a", "D4", "D5", "D7", "D12")
"""Causes of duplicates that faults may have. What the intact node never does is not among them."""


def jobs(
    count: int, *, every: Micros = SECOND // 5, nodes: Sequence[int] = (1, 2, 3, 4, 5), **rest: Any
) -> tuple[Add, ...]:
    """From all these nodes in turn, at three nodes each and with RETRY 2 unless told otherwise."""
    options = {"replicate": 3, "retry_s": 2, "ttl_s": 3600} | rest
    return tuple(
        Add(
            at=number * every,
            node=nodes[number % len(nodes)],
            producer=f"p{nodes[number % len(nodes)]}",
            queue="q",
            body=f"job {number}",
            **options,
        )
        for number in range(count)
    )


def workers(nodes: Sequence[int], **rest: Any) -> tuple[Consumer, ...]:
    """One at each of these nodes."""
    return tuple(Consumer(name=f"c{node}", node=node, queues=("q",), **rest) for node in nodes)


def plan(name: str, seed: int, seconds: int, **rest: Any) -> Plan:
    """Five nodes with a short node timeout."""
    base: dict[str, Any] = {
        "scenario": name,
        "seed": seed,
        "nodes": 5,
        "chaos": seconds * SECOND,
        "config": (("cluster-node-timeout", "1000"),),
    }
    return Plan(**(base | rest))


def one_of_five(seed: int) -> tuple[int, tuple[int, ...]]:
    """A node, another one for each seed, and the other four."""
    chosen = 1 + seed % 5
    return chosen, tuple(node for node in (1, 2, 3, 4, 5) if node != chosen)


def cut_off(seed: int, hold: Micros) -> tuple[int, tuple[int, ...], Fault]:
    """A node, the other four, and the partition between them."""
    node, others = one_of_five(seed)
    cut = Fault(kind="partition", at=2 * SECOND, hold=hold, groups=((node,), others))
    return node, others, cut


def calm(seed: int) -> Plan:
    """No faults, consumers at two nodes only, and no duplicate is expected."""
    return plan("calm", seed, 10, adds=jobs(40), consumers=workers((1, 2), mix=(("ackjob", 1.0),)))


def crowd(seed: int) -> Plan:
    """The same, with consumers that acknowledge at nodes that may not know the job."""
    mix = (("elsewhere", 1.0),)
    return plan("crowd", seed, 10, adds=jobs(40), consumers=workers((1, 2, 3), mix=mix))


def backlog(seed: int) -> Plan:
    """Jobs wait in queues for longer than RETRY until consumers come."""
    adds = jobs(30, retry_s=1)
    late = workers((1, 2, 3, 4, 5), start=9 * SECOND)
    return plan("backlog", seed, 15, adds=adds, consumers=late)


def careless(seed: int) -> Plan:
    """Workers forget jobs, give them back, ask for more time, and die."""
    mix = (("ackjob", 2.0), ("none", 1.0), ("nack", 1.0), ("working", 1.0), ("die", 0.5))
    work = (SECOND // 10, SECOND)
    return plan(
        "careless",
        seed,
        20,
        adds=jobs(40, retry_s=3),
        consumers=workers((1, 2, 3), mix=mix, work=work),
        expect=Expect(duplicates=("D0", "D1", "D5")),
    )


def queue_and_work(seed: int) -> Plan:
    """Jobs are served when most of RETRY is over, and the work takes most of another RETRY."""
    adds = jobs(20, every=SECOND // 2, retry_s=3)
    slow = workers((1, 2, 3, 4, 5), start=2_200_000, work=(2 * SECOND, 2_500_000))
    return plan("queue-and-work", seed, 30, adds=adds, consumers=slow)


def island(seed: int) -> Plan:
    """A node is cut off for long, with copies of jobs that are acknowledged elsewhere."""
    lonely, others, cut = cut_off(seed, 40 * SECOND)
    return plan(
        "island",
        seed,
        50,
        adds=jobs(20, every=SECOND // 10, retry_s=5),
        consumers=(
            *workers(others[:2], start=3 * SECOND, mix=(("elsewhere", 1.0),)),
            *workers((lonely,), start=45 * SECOND),
        ),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )


def large_cluster(seed: int) -> Plan:
    """A node of a large cluster hangs."""
    hangs = Fault(kind="pause", at=5 * SECOND, hold=10 * SECOND, nodes=(2,))
    return plan("large-cluster", seed, 20, nodes=40, faults=(hangs,))


def refusals(seed: int) -> Plan:
    """Jobs ask for more copies than nodes can be reached."""
    _, _, cut = cut_off(seed, 3 * SECOND)
    return plan(
        "refusals",
        seed,
        10,
        adds=jobs(40, replicate=5, timeout_ms=300),
        consumers=workers((1, 2, 3, 4, 5)),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )


def unsure(seed: int) -> Plan:
    """REPLJOB to a node is lost, but the node still counts as reachable."""
    node, _ = one_of_five(seed)
    drop = Fault(kind="drop", nodes=(node,), mode="repljob", amount=MILLION)
    return plan(
        "unsure", seed, 8, adds=jobs(40, timeout_ms=500), consumers=workers((1, 2)), faults=(drop,)
    )


def once(seed: int) -> Plan:
    """Jobs of at most one delivery, added at nodes without consumers."""
    return plan(
        "once",
        seed,
        12,
        adds=jobs(40, nodes=(3, 4, 5), replicate=1, retry_s=0, ttl_s=30),
        consumers=workers((1, 2), mix=(("ackjob", 2.0), ("none", 1.0))),
    )


def short_lives(seed: int) -> Plan:
    """Jobs expire before they are delivered, or after a worker has forgotten them."""
    adds = jobs(30, retry_s=1, ttl_s=4)
    return plan(
        "short-lives",
        seed,
        20,
        adds=adds,
        consumers=workers((1, 2), start=6 * SECOND, mix=(("none", 1.0), ("ackjob", 1.0))),
        expect=Expect(duplicates=("D1", "D5")),
    )


def jumps(seed: int) -> Plan:
    """Wall clocks jump by an hour while workers are slow."""
    rng = random.Random(f"{seed}/jumps")
    faults = tuple(
        Fault(
            kind="clock-step",
            at=rng.randrange(2 * SECOND, 10 * SECOND),
            nodes=(node,),
            amount=rng.choice((-3_000_000, 3_000_000)),
        )
        for node in (1, 2, 3)
    )
    return plan(
        "jumps",
        seed,
        15,
        adds=jobs(24, every=SECOND // 2, retry_s=5),
        consumers=workers((1, 2, 3, 4, 5), work=(SECOND, 2 * SECOND)),
        faults=faults,
    )


def delays(seed: int) -> Plan:
    """Jobs with a delay that is no whole number of seconds."""
    return plan("delays", seed, 10, adds=jobs(20, delay_s=2.75), consumers=workers((1, 2, 3)))


def pauses(seed: int) -> Plan:
    """Queues are paused at some nodes, in or out, while workers forget jobs."""
    faults = tuple(
        Fault(
            kind="pause-queue",
            at=4 * SECOND,
            hold=9 * SECOND,
            nodes=(node,),
            queue="q",
            mode=mode,
        )
        for node, mode in ((1, "in"), (2, "out"), (3, "all"))
    )
    return plan(
        "pauses",
        seed,
        20,
        adds=jobs(40),
        consumers=workers((1, 2, 3, 4, 5), mix=(("ackjob", 1.0), ("none", 1.0))),
        faults=faults,
        expect=Expect(duplicates=("D1", "D5")),
    )


def lost_setacks(seed: int) -> Plan:
    """SETACK is lost for a while, which ends before the jobs are queued again."""
    drop = Fault(kind="drop", hold=4_700_000, nodes=(1, 2, 3, 4, 5), mode="setack", amount=MILLION)
    return plan(
        "lost-setacks",
        seed,
        15,
        adds=jobs(30, every=SECOND // 100, retry_s=6),
        consumers=workers((1, 2, 3, 4, 5), mix=(("ackjob", 1.0),)),
        faults=(drop,),
    )


def orphans(seed: int) -> Plan:
    """The node where jobs were added dies before they are delivered."""
    dead, others = one_of_five(seed)
    return plan(
        "orphans",
        seed,
        8,
        adds=jobs(10, nodes=(dead,)),
        consumers=workers(others, start=4 * SECOND),
        faults=(Fault(kind="crash", at=3 * SECOND, hold=2 * SECOND, nodes=(dead,)),),
        expect=Expect(duplicates=TROUBLED),
    )


def alone(seed: int) -> Plan:
    """A node that is cut off goes on taking jobs that need no other node."""
    lonely, _, cut = cut_off(seed, 30 * SECOND)
    return plan(
        "alone",
        seed,
        40,
        adds=jobs(60, every=SECOND // 2, nodes=(lonely,), replicate=1),
        consumers=workers((lonely,)),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )


def movers(seed: int) -> Plan:
    """Jobs move to slow workers, more at a time than they finish within RETRY."""
    return plan(
        "movers",
        seed,
        20,
        adds=jobs(40, every=SECOND // 10, nodes=(3, 4, 5), replicate=2),
        consumers=workers((1, 2), work=(SECOND // 2, 3 * SECOND), mix=(("ackjob", 1.0),)),
        expect=Expect(duplicates=("D1", "D5")),
    )


def nobody(seed: int) -> Plan:
    """Jobs without consumers."""
    return plan("nobody", seed, 10, adds=jobs(20, ttl_s=4), consumers=())


def far_acks(seed: int) -> Plan:
    """A node with jobs is cut off, and its workers acknowledge them elsewhere, twice."""
    lonely, _, cut = cut_off(seed, 10 * SECOND)
    work = (1_500_000, 3_500_000)
    return plan(
        "far-acks",
        seed,
        15,
        adds=jobs(15, every=SECOND // 10, nodes=(lonely,), replicate=1, retry_s=1),
        consumers=workers((lonely,), work=work, count=20, mix=(("elsewhere", 1.0),)),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )


def distant(seed: int) -> Plan:
    """Messages are so slow that two nodes often queue the same job at once."""
    return plan(
        "distant",
        seed,
        24,
        link=LinkPlan(latency=Latency(fast=(200_000, 400_000))),
        config=(("cluster-node-timeout", "8000"),),
        adds=jobs(40, retry_s=3),
        consumers=workers((1, 2, 3, 4, 5), start=18 * SECOND, mix=(("ackjob", 1.0),)),
        expect=Expect(duplicates=("D1", "D5")),
    )


def blackouts(seed: int) -> Plan:
    """All nodes lose power at once, with a synced journal."""
    durable = (("appendonly", "yes"), ("appendfsync", "always"))
    faults = tuple(
        Fault(kind="crash", mode="power", at=at * SECOND, hold=SECOND, nodes=(1, 2, 3, 4, 5))
        for at in (3, 6, 9)
    )
    return plan(
        "blackouts",
        seed,
        12,
        adds=jobs(100, every=SECOND // 10, replicate=2),
        consumers=workers((1, 2), start=10 * SECOND),
        config=(("cluster-node-timeout", "1000"), *durable),
        sync=(50_000, 200_000),
        faults=faults,
        expect=Expect(duplicates=(*TROUBLED, "D8")),
    )


def squeezed(seed: int) -> Plan:
    """Nodes are short of memory while one that may hold copies of all jobs is cut off."""
    _, others, cut = cut_off(seed, 8 * SECOND)
    adds = jobs(150, every=SECOND // 15, retry_s=5)
    return plan(
        "squeezed",
        seed,
        15,
        adds=tuple(attrs.evolve(add, body=f"{add.body:.<1000}") for add in adds),
        consumers=workers(others[:2], start=3 * SECOND),
        config=(("cluster-node-timeout", "1000"), ("maxmemory", "60kb")),
        faults=(cut,),
        expect=Expect(duplicates=(*TROUBLED, "D3b")),
    )


def returners(seed: int) -> Plan:
    """A node is cut off while others work on its jobs, and comes back between two attempts to tell
    it of the acks."""
    lonely, others, cut = cut_off(seed, 30 * SECOND)
    return plan(
        "returners",
        seed,
        32,
        adds=jobs(15, every=SECOND // 10, nodes=(lonely,), retry_s=120),
        consumers=workers(others, work=(SECOND, 3 * SECOND), mix=(("ackjob", 1.0),)),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )


def back_offs(seed: int) -> Plan:
    """Workers give jobs back again and again, and each wait is longer than the one before."""
    adds = jobs(30, every=SECOND // 3, retry_s=30, ttl_s=600, backoff_s=1, max_backoff_s=4)
    mix = (("nack", 3.0), ("ackjob", 1.0))
    consumers = workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, SECOND // 3))
    expect = Expect(duplicates=("D0", "D1", "D5"))
    return plan("back-offs", seed, 40, adds=adds, consumers=consumers, expect=expect)
