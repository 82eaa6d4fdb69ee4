"""Plans in which what is promised of single options and commands makes a difference."""

from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Administrator, Consumer, Expect, Fault, Plan
from tests.sim.mutants.plans import keys
from tests.sim.mutants.plans.conditions import SECOND, TROUBLED, jobs, plan, squeezed, workers
from tests.sim.promises import plans

_ASKED: Final = Expect(duplicates=("D0", "D1", "D5"))


def redriven(seed: int) -> Plan:
    """Workers bury jobs, and operators redrive them, again and again."""
    redriving = Administrator(
        name="a1", every=(SECOND, 2 * SECOND), queues=("q",), mix=(("redrive", 1.0),)
    )
    return plan(
        "redriven",
        seed,
        30,
        adds=jobs(30, retry_s=5, ttl_s=40),
        consumers=workers((1, 2, 3), mix=(("bury", 2.0), ("ackjob", 1.0)), work=(5_000, 300_000)),
        administrators=(redriving,),
        expect=_ASKED,
    )


def followed_apart(seed: int) -> Plan:
    """On both sides of a cut workers take jobs with the same keys, and others follow these."""
    parted = keys.parted(seed)
    adds = (
        attrs.evolve(add, if_exists="again" if number % 4 > 1 else None)
        for number, add in enumerate(parted.adds)
    )
    busy = tuple(
        Consumer(name=f"c{node}/{n}", node=node, queues=("q",), work=(30 * SECOND, 45 * SECOND))
        for node in (1, 4)
        for n in range(12)
    )
    return attrs.evolve(parted, scenario="followed-apart", adds=tuple(adds), consumers=busy)


def replaced(seed: int) -> Plan:
    """Of the jobs with a key one is with a worker, one follows it, and some replace that one."""
    made = keys.keyed(seed)
    ways = ("again", "replace", "again", None, "replace", "again", "replace")
    adds = (
        attrs.evolve(add, if_exists=ways[number % 7], delay_s=1 if number % 5 == 1 else 0)
        for number, add in enumerate(made.adds)
    )
    consumers = workers((1, 2, 3, 4, 5), work=(300_000, 900_000))
    return attrs.evolve(made, scenario="replaced", adds=tuple(adds), consumers=consumers)


def crowded(seed: int) -> Plan:
    """Nobody takes the jobs of nodes that are short of memory."""
    return attrs.evolve(squeezed(seed), scenario="crowded", consumers=(), drain=SECOND)


def waited(seed: int) -> Plan:
    """Workers wait half a second for jobs that do not come."""
    return attrs.evolve(plans.waited(poll_ms=500), seed=seed)


def down(seed: int) -> Plan:
    """A node is down for long, and nothing else is wrong."""
    return attrs.evolve(plans.added(faults=(plans.DOWN,)), seed=seed)


def kept_after_fastack(seed: int) -> Plan:
    """Jobs whose keys are kept end by FASTACK."""
    mix = (("fastack", 1.0), ("fastack-elsewhere", 1.0))
    consumers = workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, 60_000))
    return attrs.evolve(keys.keeping(seed), scenario="kept-after-fastack", consumers=consumers)


def given_back_late(seed: int) -> Plan:
    """Slow workers give jobs back that others have put off meanwhile."""
    slow = workers((1, 2, 3), work=(2 * SECOND, 3 * SECOND), mix=(("release", 1.0), ("nack", 1.0)))
    quick = tuple(
        Consumer(
            name=f"d{node}",
            node=node,
            queues=("q",),
            delay_ms=(3_000, 6_000),
            mix=(("nack-delay", 2.0), ("release-delay", 2.0), ("ackjob", 2.0)),
        )
        for node in (1, 2, 3)
    )
    adds = jobs(40, retry_s=2)
    return plan("given-back-late", seed, 30, adds=adds, consumers=(*slow, *quick), expect=_ASKED)


def plain(seed: int) -> Plan:
    """Workers that use nothing but what the original has: they keep delays themselves, and have no
    tokens. Some stop."""
    delaying = workers(
        (1, 2, 3, 4, 5),
        kind="engine",
        count=3,
        prefetch=2,
        work=(5_000, 300_000),
        visit=(8 * SECOND, 15 * SECOND),
        away=(SECOND, 2 * SECOND),
        delay_ms=(500, 4_000),
        mix=(("nack-delay", 2.0), ("nack", 2.0), ("release", 1.0), ("ackjob", 2.0)),
    )
    adds = jobs(60, every=SECOND // 4, retry_s=6)
    return plan("plain", seed, 30, adds=adds, consumers=delaying, expect=_ASKED)


def plain_and_killed(seed: int) -> Plan:
    """The same, and nodes are killed while workers give jobs back."""
    killed = Fault(kind="crash", mode="kill", when="nack.invoke", target="event.node", hold=SECOND)
    made = plain(seed)
    return attrs.evolve(
        made,
        scenario="plain-and-killed",
        config=(*made.config, ("appendonly", "yes"), ("appendfsync", "always")),
        sync=(20_000, 80_000),
        adds=jobs(150, every=SECOND // 10, retry_s=6),
        faults=tuple(attrs.evolve(killed, nth=nth) for nth in range(10, 120, 12)),
        expect=Expect(duplicates=(*TROUBLED, "D8")),
    )


def once_held(seed: int) -> Plan:
    """Workers that hold jobs with RETRY 0 stop, and others come."""
    stopping = workers(
        (1, 2, 3),
        kind="engine",
        count=2,
        prefetch=6,
        meta=True,
        work=(100_000, 600_000),
        visit=(3 * SECOND, 6 * SECOND),
        away=(SECOND, 2 * SECOND),
    )
    adds = jobs(100, every=SECOND // 8, replicate=1, retry_s=0, ttl_s=60)
    return plan("once-held", seed, 20, adds=adds, consumers=stopping)


def _tokens_elsewhere(name: str, seed: int, way: str) -> Plan:
    mix, work = ((way, 2.0), ("ackjob", 1.0)), (1_500_000, 3_500_000)
    several = tuple(
        attrs.evolve(each, name=f"{each.name}/{number}")
        for each in workers((1, 2, 3, 4, 5), meta=True, mix=mix, work=work)
        for number in range(4)
    )
    adds = jobs(100, every=SECOND // 6, replicate=5)
    return plan(name, seed, 25, adds=adds, consumers=several, expect=_ASKED)


def renewed_elsewhere(seed: int) -> Plan:
    """Workers ask other nodes than the giver for more time, often when their leases are over."""
    return _tokens_elsewhere("renewed-elsewhere", seed, "working-elsewhere")


def refused_elsewhere(seed: int) -> Plan:
    """Workers give jobs back at other nodes than the giver, often when their leases are over."""
    return _tokens_elsewhere("refused-elsewhere", seed, "nack-elsewhere")
