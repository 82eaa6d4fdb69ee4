"""A node that is lost for good in calm: after all faults have ended, and long before the heal.

At the heal an operator makes the other nodes forget it, after which any node detects missing
copies. Until then a majority must agree that it has failed, and one of the holders of each job must
re-create its copies. The faults of a swarm do not leave enough time for this.
"""

import random
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Add, Fault, Micros, Plan

_SECOND: Final = 1_000_000
_SETTLES: Final = 20 * _SECOND
"""The time from the other faults to the new jobs, and from these to the loss of the node."""
_REPAIR: Final = 150 * _SECOND
_REPAIR_OF_EACH: Final = 15 * _SECOND
"""The longest time of repair, and the additional time for each node (L7)."""
_JOBS: Final = 12


def with_calm_loss(plan: Plan, rng: random.Random) -> Plan:
    """Return the plan, extended after its faults; unchanged if too few nodes are left."""
    removed = [node for fault in plan.faults if fault.kind == "remove" for node in fault.nodes]
    left = [node for node in range(1, plan.nodes + 1) if node not in removed]
    if len(left) < 3 or 2 * (len(left) - 1) <= plan.nodes:
        return plan
    lost_at = plan.chaos + 2 * _SETTLES
    loss = Fault(kind="remove", at=lost_at, nodes=(rng.choice(left),))
    # Nodes that are short of memory accept no copies.
    config = {**dict(plan.config), "maxmemory": "1gb"}
    if config.get("replica-repair-after", "0") == "0":
        config["replica-repair-after"] = "2"
    return attrs.evolve(
        plan,
        config=tuple(config.items()),
        # With slow messages or narrow links, late repair would be no violation.
        link=attrs.evolve(
            plan.link, latency=attrs.evolve(plan.link.latency, p_slow=0.0), bytes_per_second=0
        ),
        adds=plan.adds + tuple(_stock(left, plan.chaos + _SETTLES, rng)),
        faults=(*(_ended(fault, plan.chaos) for fault in plan.faults), loss),
        chaos=lost_at + _REPAIR + plan.nodes * _REPAIR_OF_EACH,
    )


def _ended(fault: Fault, chaos: Micros) -> Fault:
    """Return the fault, ended with the others. A node that is lost for good stays so."""
    if fault.hold or fault.when or fault.kind == "remove":
        return fault
    return attrs.evolve(fault, hold=max(chaos - fault.at, 1))


def _stock(nodes: list[int], since: Micros, rng: random.Random) -> list[Add]:
    """Yield jobs that no worker takes: they show which nodes have copies."""
    return [
        Add(
            at=since + number * _SECOND // 4,
            node=rng.choice(nodes),
            producer="stock",
            queue="stock",
            body=f"stock-{number}",
            size=0,
            timeout_ms=2000,
            replicate=rng.randint(2, 3),
            retry_s=rng.randint(20, 60),
        )
        for number in range(1, _JOBS + 1)
    ]
