"""The topic `history`: the last hour or day of all nodes, from the samples that each node keeps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.errors import DisqueError
from disque_trio.observe.survey import Survey
from disque_trio.observe.values import Json
from disque_trio.terminal.escapes import printable
from disque_trio.worker.operating.asking import at_each, unwrap
from disque_trio.worker.operating.plans import MistakeError

SPANS: Final[Mapping[str, tuple[str, int]]] = {
    "hour": ("history_10s", 10),
    "day": ("history_300s", 300),
}
"""By span: the field of INFO, and the interval of its samples in seconds."""
_RATES: Final = ("added", "delivered", "acked", "again", "refused")
_SUMS: Final = (*_RATES, "queued", "delayed")


@attrs.frozen
class NodeHistory:
    """The samples and events of one node."""

    node: str
    since: float
    """When the node started to keep samples, in Unix seconds."""
    samples: Mapping[int, Mapping[str, float]]
    """By the number of the period: the fields that the node reports."""
    marks: Sequence[tuple[float, str, str]] = ()
    """Time in Unix seconds, kind and subject of each event."""

    def sample(self, number: int) -> Mapping[str, float]:
        """Return the sample of a period; empty if there is none. The time of samples drifts, so a
        period between two samples may have none: the sample before it is used."""
        before, after = self.samples.get(number - 1), self.samples.get(number + 1)
        return self.samples.get(number) or (before if before and after else {})


async def history(survey: Survey, args: Json) -> tuple[Json, dict[str, str]]:
    """Return series over all nodes, with gaps where no node has a sample, and the events."""
    span = args.get("span", "hour")
    if span not in SPANS:
        raise MistakeError(f"there is no span '{span}': {', '.join(SPANS)}")
    field, period = SPANS[span]
    await survey.look()

    async def ask(node: Address) -> list[NodeHistory]:
        fields = unwrap(*await survey.client.ask(node, [commands.info("history")]))
        return list(_read(str(node), fields, field, period))

    try:
        found = await at_each(survey.client, ask)
    except DisqueError:
        return _series([], period), survey.unreached
    return _series(found.items, period), found.unreached


def _read(node: str, fields: Mapping[str, str], field: str, period: int) -> Iterable[NodeHistory]:
    """Yield the history of a node; nothing if the node keeps none."""
    names = fields.get("history_fields", "").split(",")
    samples: dict[int, dict[str, float]] = {}
    for words in filter(None, fields.get(field, "").split(";")):
        known = {n: float(w) for n, w in zip(names, words.split(","), strict=False) if w}
        if "at" in known:
            samples[round(known["at"] / period)] = known
    if "history_since" in fields:
        marks = [each.split(",", 2) for each in fields.get("history_marks", "").split(";") if each]
        events = [(float(at), kind, printable(what)) for at, kind, what in marks]
        yield NodeHistory(node, float(fields["history_since"]), samples, events)


def _series(nodes: list[NodeHistory], period: int) -> Json:
    periods = sorted({each for node in nodes for each in node.samples})
    columns: dict[str, list[float | None]] = {name: [] for name in (*_SUMS, "wait_ms")}
    at: list[int] = []
    for number in range(periods[0], periods[-1] + 1) if periods else ():
        here = [each for node in nodes if (each := node.sample(number))]
        at.append(number * period)
        for name in _SUMS:
            known = [each[name] for each in here if name in each]
            columns[name].append(round(sum(known), 2) if known else None)
        waits = [each["wait_ms"] for each in here if "wait_ms" in each]
        columns["wait_ms"].append(max(waits, default=None))
    return {
        "period": period,
        "at": at,
        **{f"{name}_s" if name in _RATES else name: each for name, each in columns.items()},
        "marks": _marks(nodes),
    }


def _marks(nodes: list[NodeHistory]) -> list[Json]:
    """Return the events in order of time. An event that several nodes report within `_SAME_S` is
    listed once, with the first node, unless its kind concerns the node itself."""
    found = [{"at": each.since, "node": each.node, "kind": "start", "what": ""} for each in nodes]
    seen: dict[tuple[str, ...], float] = {}
    for at, kind, what, node in sorted((*mark, each.node) for each in nodes for mark in each.marks):
        key = (kind, what, node) if kind in _OF_ONE else (kind, what)
        if at - seen.get(key, -math.inf) > _SAME_S:
            found.append({"at": at, "node": node, "kind": kind, "what": what})
        seen[key] = at
    return sorted(found, key=lambda mark: mark["at"])


_SAME_S: Final = 30.0
"""Nodes check every ten seconds, and have clocks of their own."""
_OF_ONE: Final = ("late", "leaving")
"""Kinds of events that concern the node that reports them."""
