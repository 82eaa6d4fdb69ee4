"""Relaxes a plan's expectations for runs in real time."""

from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.value_types import SECOND

CAUSES: Final = ("D1", "D2", "D4", "D5", "D6")
"""Causes of duplicates on a busy machine without any fault: workers, nodes and messages are late,
and the failure detector suspects late nodes and closes links to them."""

NO_PROCESSOR: Final = SECOND
"""How long a process on a busy machine may wait for the processor."""


def with_slack(plan: Plan) -> Plan:
    """Return the plan by which a run in real time is judged: lateness is no violation there."""
    duplicates = tuple(dict.fromkeys((*plan.expect.duplicates, *CAUSES)))
    latency = plan.link.latency
    late = attrs.evolve(
        latency,
        fast=(latency.fast[0], latency.fast[1] + NO_PROCESSOR),
        slow=(latency.slow[0], latency.slow[1] + NO_PROCESSOR),
    )
    return attrs.evolve(
        plan,
        expect=attrs.evolve(plan.expect, duplicates=duplicates),
        link=attrs.evolve(plan.link, latency=late),
    )
