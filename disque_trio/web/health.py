"""Is the node alive, and can it serve? For systems that restart it, or send it clients."""

from collections.abc import Iterator

import attrs

from disque_trio.node import Node
from disque_trio.statemachine import pressure
from disque_trio.statemachine.state import NodeState
from disque_trio.terminal.counting import counted

LEVELS = ("ok", "short: new jobs are left to other nodes", "none is left for new jobs")
"""In words, `pressure.level`."""


@attrs.frozen
class Check:
    """One thing that clients need of the node."""

    name: str
    is_met: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok ' if self.is_met else 'BAD'} {self.name}: {self.detail}"


def checks(node: Node) -> Iterator[Check]:
    """Whether clients should be sent here. A node that is cut off, or short of memory, serves what
    it has, and workers must reach it: that is told, and no failure."""
    state = node.state
    refusal = "" if state.refusal is None else state.refusal.text.decode(errors="replace")
    yield Check("commands", not refusal, refusal or "accepted")
    yield Check("running", node.life.shutdown is None, "stopping" if node.life.shutdown else "yes")
    leaving = state.cluster.is_leaving
    yield Check("member", not leaving, "leaving the cluster" if leaving else "yes")
    yield Check("memory", True, LEVELS[pressure.level(state)])
    yield Check("cluster", True, _reachability(state))


def _reachability(state: NodeState) -> str:
    cluster = state.cluster
    others, reachable = cluster.size - 1, len(cluster.reachable)
    if others and not reachable:
        return f"cut off from {counted(others, 'other node')}"
    return f"{reachable} of {counted(others, 'other node')} can be reached"


def is_ready(node: Node) -> bool:
    """Are all checks met?"""
    return all(check.is_met for check in checks(node))
