"""Plans by hand, for tests of engines."""

from typing import Final

from disque_trio.sim.scenarios.plan import Add, Consumer, Expect, Fault, Micros, Plan

SECOND: Final[Micros] = 1_000_000
DUPLICATES: Final = ("D1", "D2", "D3c", "D4", "D5", "D7", "D12")
"""What partitions, and the copies that come after them, may cause."""


def jobs(count: int, every: Micros, nodes: int, *, replicate: int | None = None) -> tuple[Add, ...]:
    """RETRY 1, at all nodes in turn, one producer for each."""
    return tuple(
        Add(
            at=number * every,
            node=1 + number % nodes,
            producer=f"p{1 + number % nodes}",
            queue="q",
            body=f"job {number}",
            replicate=replicate or min(3, nodes),
            retry_s=1,
        )
        for number in range(count)
    )


def workers(nodes: int) -> tuple[Consumer, ...]:
    """One consumer at each node, which acks what it gets."""
    return tuple(
        Consumer(name=f"c{node}", node=node, queues=("q",)) for node in range(1, nodes + 1)
    )


def jepsen(
    seed: int = 1, *, cycles: int = 2, on: Micros = 5 * SECOND, off: Micros = 5 * SECOND
) -> Plan:
    """Jepsen's partitions of 2015: random halves, on and off, and adds, gets, acks everywhere."""
    halves = (((1, 2), (3, 4, 5)), ((1, 3, 5), (2, 4)), ((2, 3), (1, 4, 5)))
    faults = tuple(
        Fault(
            kind="partition",
            at=off // 2 + number * (on + off),
            hold=on,
            groups=halves[(seed + number) % 3],
        )
        for number in range(cycles)
    )
    chaos = cycles * (on + off)
    return Plan(
        scenario="jepsen-2015",
        seed=seed,
        nodes=5,
        adds=jobs(chaos // 200_000, 200_000, 5),
        consumers=workers(5),
        faults=faults,
        chaos=chaos,
        config=(("cluster-node-timeout", "1000"),),
        expect=Expect(duplicates=DUPLICATES),
    )
