"""Asks a running cluster for the facts and the jobs of which a report is made."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import anyio
import attrs

from disque_trio.cli.explain.options import Options
from disque_trio.client import commands
from disque_trio.client.address import Cluster
from disque_trio.client.blocking import BlockingClient
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.explain.clusters import NodeReply, facts_of, request_of
from disque_trio.explain.facts import Facts
from disque_trio.explain.holders import Holder, holders_of
from disque_trio.explain.job_request import JobRequest
from disque_trio.explain.zones import Place
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.queue_counts import Part, waits_for
from disque_trio.observe.queue_stats import of_stats
from disque_trio.observe.survey import Survey
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.states import JobStatus

_TIMEOUT_S: Final = 3.0
_MOST_JOBS: Final = 1_000
"""How many jobs of a queue each node tells of."""


@attrs.frozen
class Asking:
    """A running cluster that has answered."""

    options: Options
    nodes: Sequence[NodeFacts]

    @property
    def facts(self) -> Facts:
        """The facts."""
        return from_nodes(self.nodes)

    def job(self, id: str) -> tuple[JobRequest, tuple[Holder, ...]]:
        """The options of a job, and who holds it. Raises UsageError if no node has it."""
        answers = list(self._answers(commands.show(id)))
        details = {node.id: found for node, found in answers if found is not None}
        if not details:
            raise UsageError(self._ending(id))
        silent = {node.id for node in self.nodes} - {node.id for node, _ in answers}
        places = [_place(node, self._zone(node)) for node in self.nodes]
        return request_of(next(iter(details.values()))), holders_of(id, details, places, silent)

    def _ending(self, id: str) -> str:
        """Why nobody has the job."""
        status = anyio.run(_status, self.options.cluster, id)
        if status.ended_at is None:
            return f"no node has job {id}: it has ended, or was never added"
        at = datetime.fromtimestamp(status.ended_at, UTC).isoformat(timespec="seconds")
        return f"job {id} has ended: {status.outcome} at {at}; `disque-trio jobs show` shows more"

    def _zone(self, node: NodeFacts) -> str:
        """Of one that does not answer, as the others tell it."""
        if not node.error and not node.is_loading:
            return node.info.get("replica_zone", "")
        lines = (peer for each in self.nodes for peer in each.peers)
        return next((peer.zone for peer in lines if peer.id == node.id and peer.zone), "")

    def waiting(self, queue: str) -> str:
        """That the jobs of a queue wait for its limits; empty if they do not."""
        parts = {
            node.where: Part(of_stats(stats, time.time() * 1000), 0.0, 0, 0)
            for node, stats in self._answers(commands.qstat(queue))
            if stats is not None
        }
        limits = waits_for(parts)
        jobs = sum(part.stats.length for part in parts.values())
        if limits is None or not jobs:
            return ""
        which = counted(jobs, "job waits", "jobs wait")
        return f"queue {queue} has reached its limits, {limits}: {which}"

    def queue(self, name: str) -> tuple[JobRequest, str]:
        """What most jobs of a queue ask for, and how many that are. Raises UsageError if it has
        none."""
        found: dict[str, JobRequest] = {}
        for _, scanned in self._answers(commands.jscan(queue=name, count=_MOST_JOBS)):
            found |= {each.id: request_of(each) for each in scanned.items if each.state != "acked"}
        if not found:
            raise UsageError(f"no node has a job of queue {name}")
        # The rest of the TTL differs, although the options are the same.
        counts = Counter(attrs.evolve(each, ttl=1) for each in found.values())
        [(most, count)] = counts.most_common(1)
        ttl = max(each.ttl for each in found.values() if attrs.evolve(each, ttl=1) == most)
        heading = f"{count:,} of {counted(len(found), 'job')} read from {name} have these options"
        return attrs.evolve(most, ttl=ttl), heading

    def _answers(self, command: Command[Any]) -> Iterator[tuple[NodeFacts, Any]]:
        """From each node that answers."""
        cluster = self.options.cluster
        first = cluster.seeds[0]
        with BlockingClient(cluster) as client:
            for node in self.nodes:
                if node.error or node.is_loading:
                    continue
                host, _, port = node.where.rpartition(":")
                address = attrs.evolve(first, host=host.strip("[]"), port=int(port), path=None)
                [answer] = client.ask(address, [command])
                if isinstance(answer, DisqueError):
                    raise UsageError(f"{node.where}: {answer}")
                yield node, answer


def _place(node: NodeFacts, zone: str) -> Place:
    host = node.where.rpartition(":")[0]
    return Place(where=node.where, id=node.id, host=host, zone=zone)


def ask(options: Options) -> Asking:
    """Ask every node of the cluster. Raises UsageError if none of those that are named answers."""
    cluster = options.cluster
    nodes = anyio.run(_nodes, cluster)
    named = set(map(str, cluster.seeds))  # a process that shares its port is named by its own
    firsts = [each for each in nodes if each.where in named]
    if not firsts or any(not each.error and not each.is_loading for each in firsts):
        return Asking(options, nodes)
    first = firsts[0]
    if first.error:
        raise UsageError(f"{first.where}: {first.error} ({first.advice})")
    raise UsageError(f"{first.where} is still loading its append-only file: try again later")


async def _status(cluster: Cluster, id: str) -> JobStatus:
    async with DeadlineClient(cluster, answer_s=_TIMEOUT_S, follows_tls=True) as client:
        return await Jobs(client).status(id)


async def _nodes(cluster: Cluster) -> list[NodeFacts]:
    async with DeadlineClient(cluster, answer_s=_TIMEOUT_S, follows_tls=True) as client:
        survey = Survey(client)
        await survey.look()
        return [each.facts for each in survey.nodes.values()]


def from_nodes(nodes: Sequence[NodeFacts]) -> Facts:
    """The facts of a cluster: of what its nodes keep, that of the weakest."""
    well = [node for node in nodes if not node.error and not node.is_loading]
    replies = [NodeReply(node.config, node.is_ours) for node in well]
    return facts_of(replies, silent=len(nodes) - len(well))
