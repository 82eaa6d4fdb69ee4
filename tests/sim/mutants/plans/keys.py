"""Plans of jobs with unique keys."""

import attrs

from disque_trio.sim.scenarios.plan import Add, ClockPlan, Expect, Fault, Latency, LinkPlan, Plan
from tests.sim.mutants.plans.conditions import SECOND, jobs, plan, workers


def keyed(seed: int) -> Plan:
    """Many ADDJOBs at once want one of three keys, over slow links; many acks come to a node that
    does not hold the job."""
    adds = jobs(600, every=SECOND // 40, replicate=2, keep_s=None)
    mix = (("ackjob", 1.0), ("elsewhere", 3.0))
    return plan(
        "keyed",
        seed,
        20,
        link=LinkPlan(latency=Latency(fast=(2_000, 60_000))),
        clocks=tuple(ClockPlan(wall_offset_ms=400 * number) for number in range(5)),
        adds=tuple(_with_key(add, number % 3) for number, add in enumerate(adds)),
        consumers=workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, 60_000)),
    )


def acked_afar(seed: int) -> Plan:
    """The same with longer work, and with some slow messages: an ADDJOB may find a job of whose
    acknowledgement its holder has not heard."""
    made = keyed(seed)
    link = LinkPlan(latency=Latency(fast=(500, 2_000), slow=(50_000, 200_000), p_slow=0.1))
    mix = (("elsewhere", 1.0),)
    return attrs.evolve(
        made,
        link=link,
        adds=tuple(attrs.evolve(add, replicate=1) for add in made.adds),
        consumers=workers((1, 2, 3, 4, 5), mix=mix, work=(200_000, 400_000)),
    )


def keeping(seed: int) -> Plan:
    """The same, with KEEP."""
    made = keyed(seed)
    return attrs.evolve(made, adds=tuple(attrs.evolve(add, keep_s=2) for add in made.adds))


def followed(seed: int) -> Plan:
    """The same with slower workers; every second ADDJOB replaces, and every fourth one asks for one
    job more. Some jobs have a delay."""
    made = keyed(seed)
    ways = ("again", "replace", None, "replace")
    adds = (
        attrs.evolve(add, if_exists=ways[number % 4], delay_s=1 if number % 5 == 1 else 0)
        for number, add in enumerate(made.adds)
    )
    consumers = workers((1, 2, 3, 4, 5), work=(100_000, 400_000))
    return attrs.evolve(made, adds=tuple(adds), consumers=consumers)


def debounced(seed: int) -> Plan:
    """Each job has a delay of six seconds, and is replaced in the first of them."""
    adds = jobs(40, every=SECOND // 4, replicate=2)
    return plan(
        "debounced",
        seed,
        20,
        adds=tuple(
            attrs.evolve(_with_key(add, number // 2), if_exists="replace", delay_s=6)
            for number, add in enumerate(adds)
        ),
        consumers=workers((1, 2, 3, 4, 5)),
    )


def orphaned(seed: int) -> Plan:
    """Producers at node 1 ask for one more job while workers have the first ones, and it ends.

    The work takes longer than the lease, so jobs are delivered twice.
    """
    adds = [
        attrs.evolve(
            _with_key(add, number // 2),
            at=SECOND + number % 2 * 3 * SECOND,
            node=2 - number % 2,
            if_exists="again",
            delay_s=0,
        )
        for number, add in enumerate(jobs(20, every=SECOND // 10, replicate=3, retry_s=4))
    ]
    return plan(
        "orphaned",
        seed,
        20,
        adds=tuple(adds),
        consumers=workers((2, 3, 4, 5), work=(6 * SECOND, 8 * SECOND), mix=(("working", 1.0),)),
        faults=(Fault(kind="crash", at=5 * SECOND, hold=2 * SECOND, nodes=(1,), mode="kill"),),
        drain=120 * SECOND,
        expect=Expect(duplicates=("D1",)),
    )


def handed_over(seed: int) -> Plan:
    """Producers at a node that is leaving ask for one more job while workers have the first ones.

    The node keeps no copy, and says for a moment that the job has gone elsewhere.
    """
    adds = [
        attrs.evolve(
            _with_key(add, number // 2),
            at=SECOND + number % 2 * SECOND,
            node=1 + number % 2 * 2,
            if_exists="again",
            delay_s=number % 4 // 3,
        )
        for number, add in enumerate(jobs(8, replicate=2, retry_s=300))
    ]
    return plan(
        "handed-over",
        seed,
        5,
        adds=tuple(adds),
        consumers=workers((1, 2, 4, 5), work=(60 * SECOND, 70 * SECOND)),
        faults=(Fault(kind="leave", at=SECOND // 2, hold=3 * SECOND, nodes=(3,)),),
        drain=120 * SECOND,
    )


def failing(seed: int) -> Plan:
    """Eight ADDJOBs in a row want the same key, and the first of them often fails for want of time,
    so that its copies are removed again."""
    made = keeping(seed)
    adds = [_with_key(add, number // 8) for number, add in enumerate(made.adds)]
    hasty = [attrs.evolve(add, timeout_ms=120, replicate=3) for add in adds]
    chosen = (hasty[n] if n % 8 < 4 else adds[n] for n in range(len(adds)))
    return attrs.evolve(made, adds=tuple(chosen))


def restarted(seed: int) -> Plan:
    """All nodes are killed and come back with their journals, and nobody takes the jobs."""
    adds = [add for add in jobs(60, every=SECOND, replicate=2) if not 1 <= add.at // SECOND < 40]
    kills = tuple(
        Fault(kind="crash", at=5 * SECOND, hold=SECOND, nodes=(node,), mode="kill")
        for node in range(1, 6)
    )
    return plan(
        "restarted",
        seed,
        65,
        config=(
            ("cluster-node-timeout", "1000"),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
        ),
        adds=tuple(_with_key(add, 0) for add in adds),
        faults=kills,
        drain=SECOND,
    )


def parted(seed: int) -> Plan:
    """Two sides of a cut add jobs with the same keys, and workers come long after it."""
    adds = [
        attrs.evolve(_with_key(add, number // 4), at=5 * SECOND + number * SECOND // 10)
        for number, add in enumerate(jobs(40, nodes=(1, 4, 2, 5), replicate=2, retry_s=300))
    ]
    late = tuple(attrs.evolve(each, start=50 * SECOND) for each in workers((1, 2)))
    cut = Fault(kind="partition", at=SECOND, hold=10 * SECOND, groups=((1, 2, 3), (4, 5)))
    return plan(
        "parted",
        seed,
        60,
        link=LinkPlan(latency=Latency(fast=(20_000, 200_000))),
        adds=tuple(adds),
        consumers=late,
        faults=(cut,),
    )


def _with_key(add: Add, number: int) -> Add:
    return attrs.evolve(add, unique=f"k{number}", timeout_ms=5000)
