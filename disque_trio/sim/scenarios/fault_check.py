"""Finds faults of a plan that cannot be carried out: a run without them would prove nothing."""

from collections.abc import Iterator, Sequence
from typing import Final

from disque_trio.sim.scenarios import fault_kinds, vocabulary
from disque_trio.sim.scenarios.plan import Fault, Plan

_KINDS: Final = {kind.name: kind for kind in fault_kinds.IN_PLANS}
_TARGETS: Final = ("", "event.node", "event.peer")


def impossible(plan: Plan) -> Iterator[tuple[int, str]]:
    """Yield the faults that no engine can carry out: the index in `plan.faults`, and a sentence."""
    joined = sum(len(fault.nodes) * fault.count for fault in plan.faults if fault.kind == "join")
    nodes = range(1, plan.nodes + joined + 1)
    has_journals = dict(plan.config).get("appendonly") == "yes"
    for number, fault in enumerate(plan.faults):
        why = _unknown_word(fault) or _nowhere(fault, nodes)
        if not why and _KINDS[fault.kind].part == "disk" and not has_journals:
            why = "the nodes keep no journal: add appendonly yes to config"
        if why:
            yield number, f"{fault.kind}: {why}"


def _unknown_word(fault: Fault) -> str:
    """Return an error about an unknown word of the fault; empty if all are known."""
    kind = _KINDS.get(fault.kind)
    if kind is None:
        return f"there is no fault of this kind; known are {', '.join(_KINDS)}"
    if kind.takes_message:
        if fault.mode and fault.mode not in vocabulary.MESSAGES:
            return _no_message(fault.mode)
    elif fault.mode and fault.mode not in kind.modes:
        known = ", ".join(kind.modes) or "none"
        return f"there is no mode '{fault.mode}'; known are {known}"
    if kind.takes_queue and not fault.queue:
        return "queue is missing: which queue to pause"
    return _unknown_event(fault)


def _unknown_event(fault: Fault) -> str:
    kind, _, cause = fault.when.partition(".")
    if kind in {"send", "recv", "lost"} and cause:
        if cause not in vocabulary.MESSAGES:
            return _no_message(cause)
    elif fault.when and fault.when not in vocabulary.EVENTS and kind not in vocabulary.EVENTS:
        return f"there is no event '{fault.when}'"
    if fault.target not in _TARGETS:
        return f"there is no target '{fault.target}'; known are event.node and event.peer"
    if fault.target and not fault.when:
        return f"target {fault.target} needs an event in 'when'"
    return ""


def _no_message(name: str) -> str:
    return f"there is no message '{name}'; known are {', '.join(vocabulary.MESSAGES)}"


def _nowhere(fault: Fault, nodes: Sequence[int]) -> str:
    """Return why the fault affects no node or link; empty if it does."""
    named = [*fault.nodes, *(node for group in fault.groups for node in group)]
    named += [node for link in fault.links for node in link]
    for node in named:
        if node not in nodes:
            return f"there is no node {node} among {len(nodes)}"
    if fault.target or fault.nodes:
        return ""
    if not _KINDS[fault.kind].is_of_links:
        return "nodes is empty: it meets no node"
    is_linked = len(fault.groups) > 1 or any(source != target for source, target in fault.links)
    return "" if is_linked else "it meets no link: give links, two groups, or nodes"
