"""Small plans, played, and a look at their rows."""

from collections.abc import Sequence
from typing import Any

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, Consumer, Fault, Plan
from disque_trio.tracing.rows import Row

SECOND = 1_000_000
FAST_DETECTION = (("cluster-node-timeout", "2000"),)


def plan(
    *faults: Fault,
    nodes: int = 3,
    jobs: int = 20,
    seconds: int = 20,
    workers: Sequence[int] = (1, 2, 3),
    **rest: Any,
) -> Plan:
    """Some jobs a second apart from all nodes, each with three copies, and faults."""
    adds = tuple(
        Add(
            at=number * SECOND // 2,
            node=number % nodes + 1,
            producer=f"p{number % nodes + 1}",
            queue="q",
            body=f"b{number}",
            replicate=min(3, nodes),
            retry_s=2,
            ttl_s=3600,
        )
        for number in range(jobs)
    )
    consumers = tuple(
        Consumer(name=f"c{node}", node=node, queues=("q",)) for node in workers if node <= nodes
    )
    base: dict[str, Any] = {
        "scenario": "test",
        "seed": 1,
        "nodes": nodes,
        "adds": adds,
        "consumers": consumers,
        "faults": faults,
        "chaos": seconds * SECOND,
        "config": FAST_DETECTION,
        "codec_every": 1,
    }
    return Plan(**(base | rest))


def play(what: Plan) -> list[Row]:
    """All rows."""
    rows: list[Row] = []
    simulate(what, rows.append)
    return rows


def of(rows: Sequence[Row], *kinds: str, **fields: Any) -> list[Row]:
    """The rows of these kinds that have these fields."""
    return [
        row
        for row in rows
        if row.kind in kinds and all(getattr(row, name) == value for name, value in fields.items())
    ]


def times(rows: Sequence[Row], *kinds: str, **fields: Any) -> list[int]:
    """When."""
    return [row.time for row in of(rows, *kinds, **fields)]


def between(rows: Sequence[Row], begin: float, end: float) -> list[Row]:
    """The rows of a time, in seconds."""
    return [row for row in rows if begin * SECOND <= row.time < end * SECOND]
