"""A view as rows of text, and as JSON."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from disque_trio.cli.frame import duration
from disque_trio.observe.cluster import RATES, NodeView, label_of
from disque_trio.observe.finding import Level
from disque_trio.observe.sampling import QueueView, View
from disque_trio.terminal.counting import counted
from disque_trio.terminal.output import lines_of

Row = tuple[str, ...]

QUEUE_HEADS: Final = (
    "QUEUE", "JOBS", "OLDEST", "IN/s", "OUT/s", "DELAYED", "LEASED", "DEAD", "RESTORED",
    "WAITERS", "PAUSED",
)  # fmt: skip
NODE_HEADS: Final = (
    "NODE", "ADDRESS", "JOBS", "MEMORY", "CLIENTS", "WAITERS", "LACKING", "ADDED/s",
    "DELIVERED/s", "ACKED/s", "COMMANDS/s",
)  # fmt: skip
_Key = Callable[[QueueView], Any]
_KEYS: Final[Mapping[str, _Key]] = MappingProxyType(
    {
        "jobs": lambda each: (-each.totals.length, each.totals.name),
        "age": lambda each: (-each.totals.next_age_s, each.totals.name),
        "in": lambda each: (-(each.in_rate or 0), each.totals.name),
        "out": lambda each: (-(each.out_rate or 0), each.totals.name),
        "name": lambda each: each.totals.name,
    }
)
SORTS: Final = tuple(_KEYS)


def in_order(view: View, by: str) -> list[QueueView]:
    """The queues; what is most comes first."""
    return sorted(view.queues, key=_KEYS[by])


def queue_row(queue: QueueView, names: Mapping[str, str]) -> Row:
    """One queue, under `QUEUE_HEADS`. `names` has the nodes by address."""
    totals = queue.totals
    return (
        totals.name,
        _count(totals.length),
        duration(totals.next_age_s) if totals.length else "-",
        _rate(queue.in_rate),
        _rate(queue.out_rate) + " limited" * totals.is_limited,
        "≤" * totals.is_delayed_most + _count(totals.delayed),
        _count(totals.leased),
        "≥" * totals.is_dead_least + _count(totals.dead),
        "≥" * totals.is_restored_least + _count(totals.restored),
        _count(totals.blocked),
        ", ".join(f"{side} at {names.get(node, node)}" for node, side in totals.paused.items())
        or "-",
    )


def node_row(node: NodeView) -> Row:
    """One node, under `NODE_HEADS`."""
    return (
        node.name,
        node.node,
        _count(node.jobs),
        _memory(node),
        _count(node.clients),
        _count(node.blocked),
        _count(node.under_replicated),
        *[_rate(node.rates.get(name)) for name in RATES],
    )


def _memory(node: NodeView) -> str:
    if node.memory is None:
        return "?"
    text = f"{node.memory / (1 << 20):,.0f} MB"
    return f"{text} {100 * node.memory // node.maxmemory} %" if node.maxmemory else text


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "?"
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def summary(view: View) -> str:
    """The cluster in a line."""
    jobs = sum(each.totals.length for each in view.queues)
    parts = (len(view.nodes), "node"), (len(view.queues), "queue"), (jobs, "queued job")
    return ", ".join(counted(*part) for part in parts) + "".join(
        f"; {label_of(view.names.get(node, node), node)}: {why}"
        for node, why in view.unreached.items()
    )


def wrong(view: View) -> str:
    """The worst finding that needs attention, and how many others there are; empty without any."""
    found = [each for each in view.findings if each.level is not Level.NOTE]
    if not found:
        return ""
    more = f" (and {len(found) - 1} more: disque-trio doctor)" if len(found) > 1 else ""
    return f"{found[0].level.name.lower()}: {found[0].where}: {found[0].what}{more}"


def as_text(view: View, by: str, width: int | None = None) -> str:
    """Everything, for `--once`, in lines of at most `width`."""
    nodes = lines_of(NODE_HEADS, [node_row(node) for node in view.nodes], width)
    queues = lines_of(
        QUEUE_HEADS, [queue_row(each, view.names) for each in in_order(view, by)], width
    )
    return "\n".join([*filter(None, (summary(view), wrong(view))), "", *nodes, "", *queues, ""])


def as_json(view: View, by: str) -> dict[str, Any]:
    """Everything, for `--json`."""
    return {
        "seconds": round(view.seconds, 3),
        "nodes": [attrs.asdict(node) for node in view.nodes],
        "queues": [
            {**attrs.asdict(each.totals), "in_rate": each.in_rate, "out_rate": each.out_rate}
            for each in in_order(view, by)
        ],
        "unreached": view.unreached,
        "findings": [each.as_dict() for each in view.findings],
    }
