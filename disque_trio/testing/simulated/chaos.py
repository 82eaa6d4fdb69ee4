"""Random faults, one after another, drawn from the seed."""

import random
from collections.abc import Callable
from typing import Final

import trio

from disque_trio.sim.fault_controls import ActiveFault
from disque_trio.sim.random_streams import stream
from disque_trio.testing.simulated.cluster import Cluster

LONGEST_S: Final = 20.0
"""The maximum duration of a fault, in seconds."""
GAP_S: Final = 5.0
"""The maximum pause between two faults, in seconds."""


async def chaos(cluster: Cluster, seconds: float) -> None:
    """Cause random faults for this many seconds, then undo all. Only one of the nodes crashes,
    because a job is lost if all its holders crash one after another."""
    rng = stream(cluster.plan.seed, "chaos", round(cluster.time * 1000))
    victim = f"n{rng.randint(1, cluster.plan.nodes)}"
    with trio.move_on_after(seconds):
        while True:
            with _fault(cluster, rng, victim):
                await trio.sleep(rng.uniform(0, LONGEST_S))
            await trio.sleep(rng.uniform(0, GAP_S))


def _fault(cluster: Cluster, rng: random.Random, victim: str) -> ActiveFault:
    nodes = [f"n{number}" for number in range(1, cluster.plan.nodes + 1)]
    workers = list(cluster.workers)
    node, worker = rng.choice(nodes), rng.choice(workers or ["story"])
    faults: list[Callable[[], ActiveFault]] = [
        lambda: cluster.crash(victim),
        lambda: cluster.pause(node),
        lambda: cluster.isolate(worker),
    ]
    if len(nodes) > 1:
        faults += [lambda: cluster.isolate(node), lambda: _split(cluster, rng, [*nodes, *workers])]
    if workers:
        faults += [lambda: cluster.crash(worker), lambda: cluster.pause(worker)]
    return rng.choice(faults)()


def _split(cluster: Cluster, rng: random.Random, names: list[str]) -> ActiveFault:
    """A partition into two random groups of nodes and workers."""
    one = [name for name in names if rng.random() < 0.5]
    return cluster.partition(one, [name for name in names if name not in one])
