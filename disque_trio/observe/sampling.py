"""Periodic looks at a cluster, for `top`: the nodes of the survey, the counted queues, the
findings, and the rates between two looks."""

from collections.abc import Mapping

import anyio
import attrs

from disque_trio.client.nodes import NoNodeError
from disque_trio.observe.cluster import NodeFacts, NodeView, rate
from disque_trio.observe.finding import Finding
from disque_trio.observe.observer import Observer
from disque_trio.observe.queue_counts import (
    Parts,
    age_of,
    count_of,
    limits_of,
    until_delayed,
    until_restored,
)
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.queues import QueueTotals, dead_of, is_most, restored_of


@attrs.frozen
class QueueView:
    """One queue of the cluster."""

    totals: QueueTotals
    in_rate: float | None
    """Jobs per second that entered it; a job that moves between nodes counts twice. None at the
    first look."""
    out_rate: float | None


@attrs.frozen
class View:
    """The cluster at one moment."""

    seconds: float
    """Seconds since the previous look; 0 at the first one."""
    nodes: list[NodeView]
    queues: list[QueueView]
    unreached: dict[str, str]
    """Nodes that have not answered, with the reason."""
    names: Mapping[str, str] = attrs.Factory(dict)
    """Names of the nodes, by address."""
    findings: list[Finding] = attrs.Factory(list)
    """The worst first."""


@attrs.define
class Sampler:
    """Keeps the last look, for rates."""

    observer: Observer
    _at: float | None = None
    _queues: dict[str, QueueTotals] = attrs.Factory(dict)

    async def look(self) -> View:
        """Ask all nodes. Raise `NoNodeError` if none answers."""
        observer, survey = self.observer, self.observer.survey
        await observer.client.retry()
        await survey.look(fresh_s=0.0)
        if survey.nodes and len(survey.unreached) == len(survey.nodes):
            raise NoNodeError("; ".join(_reason(each.facts) for each in survey.nodes.values()))
        await observer.counts.once()
        now = anyio.current_time()
        seconds = now - self._at if self._at is not None else 0.0
        nodes = list(survey.nodes.values())
        counted = {
            name: _totals(name, parts, observer.counts.now_ms)
            for name, parts in sorted(observer.counts.parts.items())
            if not name.startswith(RESERVED)
        }
        view = View(
            seconds,
            [node.view for node in nodes if node.view is not None and not node.why],
            [self._queue(each, seconds) for each in counted.values()],
            survey.unreached,
            {each.where: each.name for each in nodes},
            await observer.findings(nodes),
        )
        self._at, self._queues = now, counted
        return view

    def _queue(self, queue: QueueTotals, seconds: float) -> QueueView:
        before = self._queues.get(queue.name)
        if before is None or not seconds:
            return QueueView(queue, None, None)
        return QueueView(
            queue,
            rate(before.jobs_in, queue.jobs_in, seconds),
            rate(before.jobs_out, queue.jobs_out, seconds),
        )


def _totals(name: str, parts: Parts, now_ms: float) -> QueueTotals:
    each = parts.values()
    stats = [one.stats for one in each]
    restored, is_restored_least = restored_of(stats)
    return QueueTotals(
        name=name,
        length=sum(one.stats.length for one in each),
        delayed=count_of(each, "delayed"),
        leased=count_of(each, "leased"),
        dead=count_of(each, "dead"),
        is_dead_least=dead_of([one.dead for one in stats])[1],
        restored=restored,
        is_restored_least=is_restored_least,
        is_delayed_most=is_most([one.delayed for one in stats]),
        restored_due_s=until_restored(each, now_ms),
        delayed_due_s=until_delayed(each, now_ms),
        next_age_s=age_of(parts, now_ms),
        blocked=sum(one.stats.blocked for one in each),
        jobs_in=sum(one.stats.jobs_in for one in each),
        jobs_out=sum(one.stats.jobs_out for one in each),
        paused={node: one.stats.pause for node, one in parts.items() if one.stats.pause != "none"},
        limits=limits_of(each),
        is_limited=any(one.stats.is_limited for one in each),
    )


def _reason(node: NodeFacts) -> str:
    error = node.error if node.where in node.error else f"{node.where}: {node.error}"
    return f"{error.rstrip('.')}: {node.advice}" if node.advice else error
