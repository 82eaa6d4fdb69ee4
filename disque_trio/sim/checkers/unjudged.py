"""Properties that are not judged in a run, or are judged by weaker rules, and why."""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.properties import NEEDS, PROPERTIES

_OF_NODES: Final = (
    "S1", "S2", "S6", "S7", "S8", "S9", "S10", "S11", "S13", "S22", "L3", "L4", "L7", "L10",
)  # fmt: skip
_ON_STREAMS: Final = ("S5", "S10", "S11", "S14", "L9")


def not_judged(case: Case, findings: Findings) -> dict[str, str]:
    """Return, by property, why it was not judged, or not in all cases."""
    reasons = {
        name: "nothing put it to the test" for name in PROPERTIES if not case.checks.get(name)
    }
    reasons.pop("S12", None)
    if case.is_live:
        reasons["S12"] = "live nodes do not trace their exceptions"
    if case.plan.faults:
        reasons["S13"] = "promised only where no faults are planned"
    if not case.obligations.is_stream:
        reasons.update(dict.fromkeys(_ON_STREAMS, "not promised on hostile links"))
    if not case.has_node_rows:
        reasons.update(dict.fromkeys(_OF_NODES, "the trace has no rows of nodes"))
    if case.is_live and not case.seen.get("gossip"):
        reasons["L6"] = "the trace has no gossip"
    if case.world.healed is None:
        reasons.update(
            dict.fromkeys(("L1", "L2", "L3", "L6", "L7", "L10"), "the trace has no end of the heal")
        )
    for name, needed in NEEDS.items():
        if needed & ~case.obligations.capabilities:
            reasons[name] = "not promised with nodes of earlier versions"
    for name, counts in findings.open.items():
        reasons[name] = "; ".join(f"of {count} {why}" for why, count in counts.items())
    return reasons


def notes(case: Case) -> list[str]:
    """Return the weaker rules that were applied."""
    found = []
    if not case.plan.vector_clocks or case.is_live:
        found.append("no vector clocks: S9 in calm and dominated duplicates are not found")
    if not case.has_messages:
        found.append(
            "no messages: S2 takes confirmations and DELJOB on trust, S7 sees only the jobs of "
            "their own origin, and duplicates get their causes from times and cuts alone"
        )
    if case.is_live:
        found.append("live nodes: a job counts as delivered once it is served")
    return found
