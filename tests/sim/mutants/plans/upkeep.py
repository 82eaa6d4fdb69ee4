"""Plans in which operators have their say: queues are paused, nodes forgotten, left and renamed, or
killed with their journals."""

from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import ClockPlan, Expect, Fault, Observer, Plan
from tests.sim.mutants.plans.conditions import SECOND, TROUBLED, jobs, plan, workers

_EVERYSEC: Final = (
    ("cluster-node-timeout", "1000"),
    ("appendonly", "yes"),
    ("appendfsync", "everysec"),
)


def paused_once(seed: int) -> Plan:
    """A queue with jobs of at most one delivery is paused at their nodes and at the workers'."""
    faults = tuple(
        Fault(
            kind="pause-queue", at=3 * SECOND, hold=5 * SECOND, nodes=(node,), queue="q", mode="out"
        )
        for node in (2, 3)
    )
    return plan(
        "paused-once",
        seed,
        12,
        adds=jobs(40, nodes=(2, 3, 4), replicate=1, retry_s=0, ttl_s=30),
        consumers=workers((1, 2)),
        faults=faults,
    )


def forgotten(seed: int) -> Plan:
    """An operator lets all nodes forget one that is alive, and meet it again later; one of them is
    down meanwhile, and does not receive the command."""
    victim = 1 + seed % 5
    absent = victim % 5 + 1
    return plan(
        "forgotten",
        seed,
        40,
        adds=jobs(10),
        consumers=workers((1, 2, 3)),
        faults=(
            Fault(kind="crash", at=4 * SECOND, hold=3 * SECOND, nodes=(absent,)),
            Fault(kind="forget", at=5 * SECOND, hold=30 * SECOND, nodes=(victim,)),
        ),
        expect=Expect(duplicates=(*TROUBLED, "D3c", "D6")),
    )


def newcomer(seed: int) -> Plan:
    """One node leaves for a while, and one comes back under another name."""
    leaver = 1 + seed % 5
    return plan(
        "newcomer",
        seed,
        20,
        adds=jobs(10),
        consumers=workers((1, 2, 3)),
        faults=(
            Fault(kind="leave", at=5 * SECOND, hold=5 * SECOND, nodes=(leaver,)),
            Fault(kind="wipe", at=12 * SECOND, nodes=(leaver % 5 + 1,)),
        ),
        expect=Expect(duplicates=TROUBLED),
    )


def stopped(seed: int) -> Plan:
    """A node with workers is stopped again and again, and others have workers that wait as well."""
    pauses = tuple(
        Fault(kind="pause", at=at * SECOND, hold=5 * SECOND, nodes=(1,)) for at in (2, 9)
    )
    return plan(
        "stopped",
        seed,
        16,
        adds=jobs(30, nodes=(3, 4, 5), replicate=1, every=SECOND // 2),
        consumers=workers((1, 2)),
        faults=pauses,
        expect=Expect(duplicates=TROUBLED),
    )


def restarted(seed: int) -> Plan:
    """Nodes without workers are restarted, and have jobs a few seconds later."""
    restarts = tuple(
        Fault(kind="restart", at=at * SECOND, nodes=(node,))
        for at, node in ((6, 3), (13, 4), (20, 5))
    )
    return plan(
        "restarted",
        seed,
        30,
        adds=jobs(14, nodes=(3, 4, 5), replicate=2, every=2 * SECOND),
        consumers=workers((1, 2)),
        faults=restarts,
        expect=Expect(duplicates=TROUBLED),
    )


def killings(seed: int) -> Plan:
    """Nodes with journals are killed, two at a time; workers ack where they are, and elsewhere."""
    faults = tuple(
        Fault(kind="crash", at=at * SECOND, hold=5 * SECOND // 2, nodes=((at + seed) % 5 + 1,))
        for at in range(2, 16)
    )
    return plan(
        "killings",
        seed,
        20,
        config=_EVERYSEC,
        adds=jobs(60, every=SECOND // 4),
        consumers=workers((1, 2, 3), mix=(("ackjob", 1.0), ("elsewhere", 2.0), ("fastack", 0.5))),
        faults=faults,
        expect=Expect(duplicates=(*TROUBLED, "D9")),
    )


def delayed_killings(seed: int) -> Plan:
    """The same with jobs that wait for a delay, and wall clocks that differ by ten seconds."""
    clocks = tuple(ClockPlan(wall_offset_ms=10_000 * (node % 3 - 1)) for node in range(5))
    adds = jobs(60, every=SECOND // 4, delay_s=5)
    return attrs.evolve(killings(seed), scenario="delayed-killings", adds=adds, clocks=clocks)


def ranked_killings(seed: int) -> Plan:
    """The same with priorities."""
    adds = tuple(attrs.evolve(add, priority=1 + at % 3) for at, add in enumerate(jobs(60)))
    return attrs.evolve(killings(seed), scenario="ranked-killings", adds=adds)


def stoppings(seed: int) -> Plan:
    """Nodes with journals are stopped in order, and started, and now and then one is killed soon
    afterwards. Most jobs wait in queues; workers are slow, and forget some of what they have."""
    stops = tuple(
        Fault(
            kind="restart", at=at * SECOND, nodes=((at + seed) % 3 + 1,),
            mode="kill" if at % 4 == 3 else "stop",
        )
        for at in range(3, 24)
    )  # fmt: skip
    mix = (("ackjob", 1.0), ("none", 1.0))
    return plan(
        "stoppings",
        seed,
        26,
        nodes=3,
        config=(
            ("cluster-node-timeout", "1000"),
            ("appendonly", "yes"),
            ("aof-queues", "no"),
            ("appendfsync", "everysec"),
        ),
        adds=jobs(60, nodes=(1, 2, 3), replicate=1, retry_s=20, every=SECOND // 5)
        + jobs(30, nodes=(1, 2, 3), replicate=2, retry_s=20, every=SECOND // 3)
        + jobs(20, nodes=(1, 2, 3), replicate=1, retry_s=0, every=SECOND // 3),
        consumers=workers((1, 2, 3), mix=mix, work=(SECOND // 4, SECOND)),
        faults=stops,
        expect=Expect(duplicates=TROUBLED),
    )


def kept_stoppings(seed: int) -> Plan:
    """The same, and journals have the queues at any time (`aof-queues`): kills are as good."""
    plan = stoppings(seed)
    config = tuple(dict(plan.config, **{"aof-queues": "yes"}).items())
    return attrs.evolve(plan, scenario="kept-stoppings", config=config)


def killed_again(seed: int) -> Plan:
    """A node with queued jobs is down for so long that workers get them from other holders. It is
    told so when it starts, is killed again, and starts while it can reach nobody."""
    queues, others = 1 + seed % 3, [node for node in (1, 2, 3) if node != 1 + seed % 3]
    told, again = 14 * SECOND, 17 * SECOND + seed % 7 * SECOND // 4
    return plan(
        "killed-again",
        seed,
        26,
        nodes=3,
        config=_EVERYSEC,
        adds=jobs(40, nodes=(queues,), replicate=2, retry_s=8, every=SECOND // 20),
        consumers=workers(others, start=13 * SECOND, count=10, work=(4 * SECOND, 6 * SECOND)),
        faults=(
            Fault(
                kind="crash", mode="kill", at=4 * SECOND, hold=told - 4 * SECOND, nodes=(queues,)
            ),
            Fault(
                kind="partition",
                at=again - SECOND // 10,
                hold=6 * SECOND,
                groups=((queues,), tuple(others)),
            ),
            Fault(kind="restart", mode="kill", at=again, nodes=(queues,)),
        ),
        expect=Expect(duplicates=TROUBLED),
    )


def stopped_again(seed: int) -> Plan:
    """A node with queued jobs starts, and is stopped again before it has heard of their other
    holders, which a cut keeps from it."""
    queues, others = 1 + seed % 3, [node for node in (1, 2, 3) if node != 1 + seed % 3]
    again = 6 * SECOND + SECOND // 5 + seed % 5 * SECOND // 5
    stop = Fault(kind="crash", mode="stop", at=4 * SECOND, hold=2 * SECOND, nodes=(queues,))
    cut = Fault(kind="partition", at=3 * SECOND, hold=9 * SECOND, groups=((queues,), tuple(others)))
    return plan(
        "stopped-again",
        seed,
        14,
        nodes=3,
        config=(*_EVERYSEC, ("aof-queues", "no")),
        adds=jobs(20, nodes=(queues,), replicate=2, retry_s=60, every=SECOND // 20),
        consumers=workers(others, start=13 * SECOND),
        faults=(stop, attrs.evolve(stop, at=again, hold=SECOND), cut),
        expect=Expect(duplicates=TROUBLED),
    )


def killings_of_unknown_jobs(seed: int) -> Plan:
    """The same with workers that acknowledge elsewhere, mostly where the job is unknown."""
    return attrs.evolve(
        killings(seed),
        scenario="killings-of-unknown-jobs",
        adds=jobs(200, replicate=1, every=SECOND // 12),
        consumers=workers((1, 2, 3), mix=(("elsewhere", 1.0),)),
    )


def killings_once(seed: int) -> Plan:
    """The same with jobs of at most one delivery, and workers that come late."""
    faults = tuple(
        Fault(kind="crash", at=at * SECOND, hold=SECOND // 2, nodes=((at + seed) % 3 + 1,))
        for at in range(2, 9)
    )
    return plan(
        "killings-once",
        seed,
        20,
        config=(
            ("cluster-node-timeout", "1000"),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
        ),
        adds=jobs(30, nodes=(1, 2, 3), replicate=1, retry_s=0, ttl_s=60),
        consumers=workers((1, 2, 3), start=7 * SECOND),
        faults=faults,
    )


def several_queues(seed: int) -> Plan:
    """Jobs wait in two queues until workers come that ask for several from both."""
    first = jobs(20, nodes=(1, 2))
    adds = first + tuple(attrs.evolve(add, queue="r", body=f"r {add.body}") for add in first)
    mix = (("ackjob", 1.0), ("elsewhere", 1.0), ("nack", 1.0))
    each = workers((1, 2), start=5 * SECOND, count=4, mix=mix)
    return plan(
        "several-queues",
        seed,
        12,
        adds=adds,
        consumers=tuple(attrs.evolve(worker, queues=("q", "r")) for worker in each),
        expect=Expect(duplicates=TROUBLED),
    )


def observed(seed: int) -> Plan:
    """Two queues fill and are emptied, workers forget jobs and give them back, and clients look at
    the queues and jobs of all nodes all the time."""
    mix = (("ackjob", 2.0), ("none", 1.0), ("nack", 1.0), ("dequeue", 1.0))
    late = workers((1, 2, 3), start=3 * SECOND, mix=mix, work=(SECOND // 10, 3 * SECOND))
    return plan(
        "observed",
        seed,
        12,
        adds=tuple(
            attrs.evolve(add, queue="qr"[number % 2])
            for number, add in enumerate(jobs(40, every=SECOND // 10, retry_s=2))
        ),
        consumers=tuple(attrs.evolve(each, queues=("q", "r")) for each in late),
        observers=(Observer(name="o1", every=(SECOND // 100, SECOND // 20), queues=("q", "r")),),
        expect=Expect(duplicates=TROUBLED),
    )


def resulting(seed: int) -> Plan:
    """Workers acknowledge jobs with results, clients look at all jobs, and a node with a journal
    is killed."""
    mix = (("result", 1.0), ("result-elsewhere", 1.0))
    return plan(
        "resulting",
        seed,
        14,
        adds=jobs(24, every=SECOND // 4, retry_s=3),
        consumers=workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, SECOND // 2)),
        observers=tuple(
            Observer(name=name, every=(SECOND // 100, SECOND // 25), queues=("q",))
            for name in ("o1", "o2")
        ),
        faults=(Fault(kind="crash", mode="kill", at=7 * SECOND, hold=SECOND, nodes=(2,)),),
        config=(("cluster-node-timeout", "1000"), ("appendonly", "yes")),
        expect=Expect(duplicates=TROUBLED),
    )


def lost_creator(seed: int) -> Plan:
    """A node sends copies that never come, gets others elsewhere, and is gone for good."""
    return plan(
        "lost-creator",
        seed,
        30,
        nodes=3,
        adds=jobs(10, nodes=(1,), replicate=2, retry_s=900),
        faults=(
            Fault(kind="cut", hold=20 * SECOND, links=((1, 3), (3, 1))),
            Fault(kind="remove", at=4 * SECOND, nodes=(1,)),
        ),
        config=(("cluster-node-timeout", "1000"), ("replica-repair-after", "2")),
        drain=150 * SECOND,
    )


def late_copies(seed: int) -> Plan:
    """A node that is down when jobs are added comes back when their creator has started anew."""
    return plan(
        "late-copies",
        seed,
        30,
        nodes=3,
        adds=tuple(
            attrs.evolve(add, at=add.at + 3 * SECOND)
            for add in jobs(10, nodes=(1,), sync=2, retry_s=900)
        ),
        faults=(
            Fault(kind="crash", at=SECOND, hold=18 * SECOND, nodes=(3,)),
            Fault(kind="crash", at=8 * SECOND, hold=SECOND, nodes=(1,)),
        ),
        config=(
            ("cluster-node-timeout", "1000"), ("replica-repair-after", "0"),
            ("appendonly", "yes"), ("appendfsync", "always"),
        ),
        drain=150 * SECOND,
    )  # fmt: skip


def lost_for_good(seed: int) -> Plan:
    """A node with copies of jobs that wait is lost for good. Nothing else happens until the others
    must have made its copies again, and only then they are told to forget it."""
    return plan(
        "lost-for-good",
        seed,
        190,
        nodes=4,
        adds=jobs(12, nodes=(1, 2, 3, 4), replicate=2, retry_s=900),
        faults=(Fault(kind="remove", at=5 * SECOND, nodes=(1 + seed % 4,)),),
        config=(("cluster-node-timeout", "1000"), ("replica-repair-after", "2")),
        drain=30 * SECOND,
    )


def zone_lost_in_part(seed: int) -> Plan:
    """One of the two nodes of a zone is lost for good, in calm as well."""
    lost = Fault(kind="remove", at=5 * SECOND, nodes=(1 + seed % 6,))
    return attrs.evolve(
        lost_for_good(seed),
        scenario="zone-lost-in-part",
        nodes=6,
        zones=("a", "b", "c"),
        adds=jobs(18, nodes=(1, 2, 3, 4, 5, 6), replicate=3, retry_s=900),
        faults=(lost,),
    )
