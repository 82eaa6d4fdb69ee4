"""A plan with a bit of everything, for tests that compare runs. Run it to print its digest."""

import sys

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Fault, Latency, LinkPlan, Plan

SECOND = 1_000_000
MIX = tuple(
    (way, 1.0)
    for way in (
        "ackjob", "fastack", "nack", "none", "die", "elsewhere", "working", "deljob", "dequeue",
    )
)  # fmt: skip


def storm(seed: int, *, model: str = "hostile") -> Plan:
    """Half a minute of it."""
    adds = tuple(
        Add(
            at=number * SECOND // 5,
            node=number % 5 + 1,
            producer=f"p{number % 3}",
            queue=f"q{number % 2}",
            body=f"b{number}",
            timeout_ms=300,
            replicate=1 + number % 3,
            retry_s=1 + number % 4,
            delay_s=number % 2 or None,
            is_async=number % 7 == 0,
            ttl_s=300,
        )
        for number in range(100)
    )
    consumers = tuple(
        Consumer(name=f"c{node}", node=node, queues=("q0", "q1"), count=node, mix=MIX)
        for node in (1, 2, 3)
    )
    faults = (
        Fault(kind="partition", at=3 * SECOND, hold=4 * SECOND, groups=((1, 2), (3, 4, 5))),
        Fault(kind="clog", at=8 * SECOND, hold=2 * SECOND, nodes=(3,)),
        Fault(kind="crash", at=9 * SECOND, hold=3 * SECOND, nodes=(4,)),
        Fault(kind="crash", when="send.gotjob", nth=50, target="event.node", hold=SECOND),
        Fault(kind="pause", at=14 * SECOND, hold=2 * SECOND, nodes=(1,)),
        Fault(kind="slow", at=15 * SECOND, hold=3 * SECOND, nodes=(2,), amount=20),
        Fault(kind="clock-step", at=16 * SECOND, nodes=(5,), amount=-3_600_000),
        Fault(kind="clock-rate", at=16 * SECOND, nodes=(2,), amount=50_000),
        Fault(kind="drop", at=17 * SECOND, hold=5 * SECOND, nodes=(5,), amount=300_000),
        Fault(kind="join", at=18 * SECOND, nodes=(1,)),
        Fault(kind="wipe", at=19 * SECOND, nodes=(3,)),
        Fault(kind="leave", at=20 * SECOND, hold=5 * SECOND, nodes=(2,)),
        Fault(kind="forget", at=21 * SECOND, hold=5 * SECOND, nodes=(4,)),
    )
    return Plan(
        scenario="storm",
        seed=seed,
        nodes=5,
        link=LinkPlan(
            model=model,
            latency=Latency(p_slow=0.01),
            drop=0.02,
            duplicate=0.02,
            reorder=0.05,
            bytes_per_second=1_000_000,
        ),
        clocks=(ClockPlan(drift_ppm=150), ClockPlan(drift_ppm=-150, wall_offset_ms=4_000)),
        config=(("cluster-node-timeout", "1500"),),
        adds=adds,
        consumers=consumers,
        faults=faults,
        chaos=30 * SECOND,
        forming="meet",
    )


if __name__ == "__main__":
    sys.stdout.write(simulate(storm(int(sys.argv[1]), model=sys.argv[2])).digest)
