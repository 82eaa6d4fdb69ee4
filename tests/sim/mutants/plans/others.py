"""Plans of two queues, of waits, of moments at which limits are reached."""

from typing import Final

import attrs

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Administrator, Expect, Fault, Plan
from tests.sim.mutants.plans.conditions import SCENARIOS, SECOND, jobs, plan, workers

EVERYWHERE: Final = (1, 2, 3, 4, 5)


def full(seed: int) -> Plan:
    """Queues that may have three jobs are full until consumers come."""
    adds = jobs(60, every=SECOND // 20, replicate=1, maxlen=3)
    return plan("full", seed, 10, adds=adds, consumers=workers((1, 2), start=5 * SECOND))


def defaults(seed: int) -> Plan:
    """RETRY is what TTL makes of it, and workers forget jobs."""
    adds = jobs(20, every=SECOND // 5, retry_s=None, ttl_s=50)
    mix = (("none", 1.0), ("ackjob", 1.0))
    consumers = workers(EVERYWHERE, mix=mix)
    expect = Expect(duplicates=("D1", "D5"))
    return plan("defaults", seed, 30, adds=adds, consumers=consumers, expect=expect)


def two_queues(seed: int) -> Plan:
    """Everybody waits for jobs of two queues, which have few."""
    adds = tuple(
        attrs.evolve(add, queue="qr"[number % 2])
        for number, add in enumerate(jobs(24, every=SECOND // 3, retry_s=8))
    )
    consumers = tuple(
        attrs.evolve(each, queues=("q", "r"), count=1)
        for each in workers(EVERYWHERE, work=(SECOND // 2, SECOND))
    )
    return plan("two queues", seed, 12, adds=adds, consumers=consumers)


def two_backlogs(seed: int) -> Plan:
    """Two queues have many jobs when their consumers come."""
    before = two_queues(seed)
    consumers = tuple(attrs.evolve(each, start=9 * SECOND) for each in before.consumers[:2])
    return attrs.evolve(before, scenario="two backlogs", chaos=14 * SECOND, consumers=consumers)


def at_once(seed: int) -> Plan:
    """Many jobs come in the same millisecond, wait for longer than RETRY, and go one by one."""
    adds = tuple(
        attrs.evolve(add, at=SECOND * (1 + number // 20))
        for number, add in enumerate(jobs(60, nodes=(1, 2), replicate=1, retry_s=1))
    )
    mix = (("nack", 1.0), ("none", 1.0), ("ackjob", 2.0))
    consumers = workers((1, 2), start=6 * SECOND, mix=mix)
    expect = Expect(duplicates=("D0", "D1", "D5"))
    return plan("at once", seed, 20, adds=adds, consumers=consumers, expect=expect)


def grouped(seed: int) -> Plan:
    """Jobs of a noisy group, of quiet ones and of none have come when the workers start."""
    groups, priorities = (None, "noisy", "noisy", "noisy", "quiet"), (None, 1, None, -1)
    adds = tuple(
        attrs.evolve(
            add,
            at=SECOND * (1 + number // 20),
            group=groups[(number + seed) % 5],
            priority=priorities[number // 7 % 4],
        )
        for number, add in enumerate(jobs(90, nodes=(1, 2), replicate=1, retry_s=60))
    )
    consumers = workers((1, 2), start=7 * SECOND, count=2)
    return plan("grouped", seed, 15, adds=adds, consumers=consumers)


def hurried(seed: int) -> Plan:
    """Workers take longer than RETRY, and then acknowledge what has been queued again, or ask for
    more time."""
    work, mix = (SECOND, 3 * SECOND), (("ackjob", 2.0), ("working", 1.0))
    adds = jobs(20, every=SECOND // 4, retry_s=1)
    expect = Expect(duplicates=("D1", "D2", "D5"))
    consumers = workers((1, 2, 3), work=work, mix=mix)
    return plan("hurried", seed, 15, adds=adds, consumers=consumers, expect=expect)


def persistent(seed: int) -> Plan:
    """Workers ask for more time before RETRY is over, and then need most of another."""
    mix = (("ackjob", 1.0), ("working", 1.0))
    consumers = workers(EVERYWHERE, work=(2 * SECOND, 2_500_000), mix=mix)
    adds = jobs(20, every=SECOND // 2, retry_s=3)
    return plan("persistent", seed, 20, adds=adds, consumers=consumers)


def overdue(seed: int) -> Plan:
    """Workers ask for more time when most of TTL is over."""
    mix = (("ackjob", 1.0), ("working", 2.0))
    consumers = workers(EVERYWHERE, start=62 * SECOND, work=(SECOND // 10, SECOND // 5), mix=mix)
    adds = jobs(20, every=SECOND // 10, retry_s=8, ttl_s=80)
    return plan("overdue", seed, 68, adds=adds, consumers=consumers)


def reopened(seed: int) -> Plan:
    """Consumers of a lone node wait at a queue that is paused while jobs come, and afterwards."""
    pause = Fault(kind="pause-queue", at=SECOND, hold=4 * SECOND, nodes=(1,), queue="q", mode="out")
    adds = jobs(10, nodes=(1,), replicate=1, retry_s=60)
    consumers = workers((1,), poll_ms=60_000)
    return plan("reopened", seed, 15, nodes=1, adds=adds, consumers=consumers, faults=(pause,))


def once_without_power(seed: int) -> Plan:
    """Power fails at all nodes while jobs with RETRY 0 are served, and disks lag by a second."""
    journal = (("appendonly", "yes"), ("appendfsync", "everysec"))
    faults = tuple(
        Fault(kind="crash", mode="power", at=at * SECOND, hold=SECOND, nodes=EVERYWHERE)
        for at in (3, 7, 11)
    )
    return plan(
        "once without power",
        seed,
        15,
        adds=jobs(100, every=SECOND // 8, replicate=1, retry_s=0),
        consumers=workers(EVERYWHERE, mix=(("ackjob", 1.0),)),
        config=(("cluster-node-timeout", "1000"), *journal),
        faults=faults,
        expect=Expect(duplicates=("D8",)),
    )


def outspoken(seed: int) -> Plan:
    """Every other message is written and read again, and workers give jobs back in all ways."""
    mix = (("ackjob", 2.0), ("nack", 1.0), ("enqueue", 1.0), ("working", 1.0))
    expect = Expect(duplicates=("D0", "D1", "D5"))
    return plan(
        "outspoken",
        seed,
        10,
        adds=jobs(30),
        consumers=workers(EVERYWHERE, mix=mix),
        codec_every=2,
        expect=expect,
    )


def recorded_waits(seed: int) -> Plan:
    """Nodes with journals are killed and start again while jobs wait of which no other has a
    copy."""
    plan = expand(load(SCENARIOS / "backoff.toml"), seed)
    kills = [
        Fault(kind="restart", at=at * SECOND, nodes=(1 + at % plan.nodes,), mode="kill")
        for at in range(5, 55, 3)
    ]
    config = (("appendonly", "yes"), ("appendfsync", "always"))
    lonely = [
        attrs.evolve(add, replicate=1, retry_s=1, delay_s=None)
        for add in plan.adds
        if add.retry_s != 0
    ]
    workers = [
        attrs.evolve(worker, delay_ms=(4000, 9000), mix=(("nack-delay", 1.0),))
        for worker in plan.consumers
    ]
    return attrs.evolve(
        plan,
        config=config,
        clocks=(),
        faults=tuple(kills),
        adds=tuple(lonely),
        consumers=tuple(workers),
    )


def snoozed_and_killed(seed: int) -> Plan:
    """Nodes with journals are killed and start again while workers let jobs wait by RELEASE, of
    which no other node has a copy."""
    plan = recorded_waits(seed)
    workers = [attrs.evolve(worker, mix=(("release-delay", 1.0),)) for worker in plan.consumers]
    return attrs.evolve(plan, consumers=tuple(workers))


def snoozed_in_secret(seed: int) -> Plan:
    """Workers at one node let jobs wait by RELEASE, of which the other holders do not hear, and
    then workers of other nodes take them."""
    drop = Fault(
        kind="drop", hold=19 * SECOND, nodes=EVERYWHERE, mode="postponed", amount=1_000_000
    )
    at = 6 * SECOND
    snoozers = workers((1,), mix=(("release-delay", 1.0),), meta=True, count=5, stop=at)
    takers = workers((2, 3, 4, 5), meta=True, start=at)
    return plan(
        "snoozed in secret",
        seed,
        20,
        adds=jobs(20, every=SECOND // 5, retry_s=8),
        consumers=(*snoozers, *takers),
        faults=(drop,),
        expect=Expect(duplicates=("D0", "D1", "D5")),
    )


def snoozed_and_redriven(seed: int) -> Plan:
    """Workers let jobs wait by RELEASE, and bury them; an operator redrives them."""
    mix = (("release-delay", 2.0), ("bury", 1.0), ("ackjob", 1.0))
    redriving = Administrator(
        name="a1", every=(SECOND // 4, SECOND), queues=("q",), mix=(("redrive", 1.0),)
    )
    return plan(
        "snoozed and redriven",
        seed,
        20,
        adds=jobs(20),
        consumers=workers(EVERYWHERE, mix=mix, meta=True, delay_ms=(200, 1500)),
        administrators=(redriving,),
        expect=Expect(duplicates=("D0", "D1", "D5")),
    )


def holding(seed: int) -> Plan:
    """Workers take several jobs and begin one after the other, for longer than RETRY, or die."""
    mix = (("ackjob", 2.0), ("die", 1.0), ("working", 1.0))
    work = (SECOND // 5, SECOND)
    consumers = workers(EVERYWHERE, mix=mix, meta=True, tied=True, held=True, count=6, work=work)
    adds = jobs(60, every=SECOND // 10, retry_s=3)
    expect = Expect(duplicates=("D0", "D1", "D2", "D5"))
    return plan("holding", seed, 20, adds=adds, consumers=consumers, expect=expect)


def in_sync(seed: int) -> Plan:
    """Two of three copies are waited for, and for a while many are lost on their way."""
    drop = Fault(kind="drop", hold=5 * SECOND, nodes=EVERYWHERE, mode="repljob", amount=400_000)
    adds = jobs(60, every=SECOND // 20, retry_s=600, sync=2, timeout_ms=2000)
    return plan("in sync", seed, 10, adds=adds, faults=(drop,))


def cancelled(seed: int) -> Plan:
    """Jobs are cancelled in the middle of a queue, from which workers take several at a time."""
    cancelling = Administrator(
        name="a1", every=(SECOND // 20, SECOND // 5), queues=("q",), mix=(("cancel", 1.0),)
    )
    work = (SECOND // 5, SECOND // 2)
    return plan(
        "cancelled",
        seed,
        12,
        adds=jobs(80, every=SECOND // 20, nodes=(1, 2), retry_s=60),
        consumers=workers((1, 2), count=4, work=work, mix=(("together", 1.0),)),
        administrators=(cancelling,),
    )
