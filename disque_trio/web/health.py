"""Liveness and readiness of a node, for systems that restart it or route clients to it."""

from collections.abc import Iterator

import attrs

from disque_trio.node import Node
from disque_trio.statemachine import pressure
from disque_trio.statemachine.state import NodeState
from disque_trio.terminal.counting import counted

LEVELS = ("ok", "short: new jobs are left to other nodes", "none is left for new jobs")
"""`pressure.level` in words."""


@attrs.frozen
class Check:
    """A condition for serving clients."""

    name: str
    is_met: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok ' if self.is_met else 'BAD'} {self.name}: {self.detail}"


def checks(node: Node) -> Iterator[Check]:
    """Yield the conditions for routing clients to this node. A node that is partitioned or short of
    memory still serves its jobs, and workers must reach it, so these are reported as met."""
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
    """Are all conditions met?"""
    return all(check.is_met for check in checks(node))
