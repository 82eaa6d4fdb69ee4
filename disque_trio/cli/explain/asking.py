"""Asks a running cluster for the facts and the jobs of which a report is made."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from disque_trio.cli.doctor.nodes import NodeFacts, survey
from disque_trio.cli.explain.options import Options
from disque_trio.cli.frame import UsageError
from disque_trio.client import commands
from disque_trio.client.address import Cluster
from disque_trio.client.blocking import BlockingClient
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import JobDetails
from disque_trio.explain.asked import Asked
from disque_trio.explain.facts import DEFAULTS, JOURNALS, NO_JOURNAL, Facts

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

    def job(self, id: str) -> Asked:
        """The options of a job. Raises UsageError if no node has it."""
        for found in self._answers(commands.show(id)):
            if found is not None:
                return asked_by(found)
        raise UsageError(f"no node has job {id}: it has ended, or was never added")

    def queue(self, name: str) -> tuple[Asked, str]:
        """What most jobs of a queue ask for, and how many that are. Raises UsageError if it has
        none."""
        found: dict[str, Asked] = {}
        for scanned in self._answers(commands.jscan(queue=name, count=_MOST_JOBS)):
            found |= {each.id: asked_by(each) for each in scanned.items if each.state != "acked"}
        if not found:
            raise UsageError(f"no node has a job of queue {name}")
        # The rest of the TTL differs, although the options are the same.
        counts = Counter(attrs.evolve(each, ttl=1) for each in found.values())
        [(most, count)] = counts.most_common(1)
        ttl = max(each.ttl for each in found.values() if attrs.evolve(each, ttl=1) == most)
        heading = f"{count:,} of {len(found):,} jobs of {name} that were looked at ask for this"
        return attrs.evolve(most, ttl=ttl), heading

    def _answers(self, command: Command[Any]) -> Iterator[Any]:
        """From each node that answers."""
        with BlockingClient(Cluster([self.options.address], self.options.password)) as client:
            for node in self.nodes:
                if node.error or node.is_loading:
                    continue
                host, _, port = node.where.rpartition(":")
                address = self.options.address
                address = attrs.evolve(address, host=host.strip("[]"), port=int(port))
                [answer] = client.ask(address, [command])
                if isinstance(answer, DisqueError):
                    raise UsageError(f"{node.where}: {answer}")
                yield answer


def ask(options: Options) -> Asking:
    """Ask every node of the cluster. Raises UsageError if the first one does not answer."""
    nodes = survey(options.address, options.password, _TIMEOUT_S)
    if nodes[0].error:
        raise UsageError(f"{nodes[0].where}: {nodes[0].error} ({nodes[0].advice})")
    if nodes[0].is_loading:
        raise UsageError(f"{nodes[0].where} still loads its append-only file: ask it later")
    return Asking(options, nodes)


def asked_by(details: JobDetails) -> Asked:
    """The options of a job, as from now: without its DELAY, with what is left of its TTL."""
    more = details.more
    numbers = {name: value for name, value in more.items() if isinstance(value, int)}
    return Asked(
        queue=details.queue or "",
        copies=details.repl,
        retry=details.retry,
        ttl=max(details.ttl, 1),
        priority=numbers.get("priority"),
        limit=numbers.get("limit"),
        unique="key" in more,
        keep=numbers.get("keep"),
        backoff=numbers.get("backoff"),
        max_backoff=numbers.get("max-backoff"),
    )


def from_nodes(nodes: Sequence[NodeFacts]) -> Facts:
    """The facts of a cluster: of what its nodes keep, that of the weakest."""
    well = [node for node in nodes if not node.error and not node.is_loading]
    ours = [node for node in well if node.is_ours]
    return Facts(
        nodes=len(well),
        silent=len(nodes) - len(well),
        originals=len(well) - len([node for node in ours if _keeps_extensions(node)]),
        journal=min((_journal(node) for node in well), key=JOURNALS.index),
        has_lease=len(ours) == len(well)
        and all(node.config.get("delivery-lease", "yes") == "yes" for node in ours),
        repair_s=_repair_s(ours),
        node_timeout_ms=max(int(node.config.get("cluster-node-timeout", "15000")) for node in well),
    )


def _keeps_extensions(node: NodeFacts) -> bool:
    is_framed = node.config.get("aof-format", "framed") == "framed"
    return is_framed or node.config.get("appendonly") != "yes"


def _journal(node: NodeFacts) -> str:
    if node.config.get("appendonly") != "yes":
        return NO_JOURNAL
    return node.config.get("appendfsync", DEFAULTS.appendfsync)


def _repair_s(ours: list[NodeFacts]) -> int:
    """The longest, or 0 if any node does not repair."""
    default = str(DEFAULTS.replica_repair_after_s)
    spans = [int(node.config.get("replica-repair-after", default)) for node in ours]
    return max(spans, default=0) if all(spans) else 0
