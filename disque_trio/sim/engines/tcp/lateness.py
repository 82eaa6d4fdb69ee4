"""What real time does to a plan's expectations."""

from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.value_types import SECOND

CAUSES: Final = ("D1", "D2", "D4", "D5", "D6")
"""Duplicates that a busy machine may cause without any fault: workers, nodes and messages are late,
and nodes that are late are taken for failing, whereupon links to them are given up."""

NO_PROCESSOR: Final = SECOND
"""For so long a node on a busy machine may hear nothing, and say nothing."""


def forgiving(plan: Plan) -> Plan:
    """The plan as runs in real time are judged: that things were late proves nothing."""
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
