"""The facts of a running cluster and the options of its jobs, as reported by its nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from disque_trio.client.records import JobDetails
from disque_trio.explain.facts import DEFAULTS, JOURNALS, NO_JOURNAL, Facts
from disque_trio.explain.job_request import JobRequest
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.joboptions import CARRIED


@attrs.frozen
class NodeReply:
    """A node that answers."""

    config: Mapping[str, str]
    """The directives that it reports."""
    is_ours: bool = True
    """Is it a node of disque_trio, not an original server?"""


def request_of(details: JobDetails) -> JobRequest:
    """Return the options of a job as of now: without its DELAY, with the rest of its TTL."""
    shown = {name.replace("-", "_"): value for name, value in details.more.items()}
    request: dict[str, Any] = {
        each.extension: shown[each.extension] for each in CARRIED if each.extension in shown
    }
    if "key" in request:
        request["key"] = b""  # each job has its own
    return JobRequest(
        queue=details.queue or "",
        copies=details.repl,
        retry=details.retry,
        ttl=max(details.ttl, 1),
        extensions=Extensions(**request),
    )


def facts_of(nodes: Sequence[NodeReply], silent: int) -> Facts:
    """Return the facts of a cluster. Each setting is that of the node with the weakest one."""
    ours = [node.config for node in nodes if node.is_ours]
    return Facts(
        nodes=len(nodes),
        silent=silent,
        originals=len(nodes) - len([config for config in ours if _keeps_extensions(config)]),
        journal=min((_journal(node.config) for node in nodes), key=JOURNALS.index),
        default_replicate=min(_numbers(ours, "default-replicate", DEFAULTS.default_replicate)),
        default_sync=min(
            filter(None, _numbers(ours, "default-sync", DEFAULTS.default_sync)), default=0
        ),
        has_lease=len(ours) == len(nodes)
        and all(config.get("delivery-lease", "yes") == "yes" for config in ours),
        repair_s=_repair_s(ours),
        node_timeout_ms=max(
            int(node.config.get("cluster-node-timeout", "15000")) for node in nodes
        ),
        zones=_zones([node.config.get("replica-zone", "") for node in nodes]),
    )


def _zones(named: Sequence[str]) -> tuple[str, ...]:
    return tuple(named) if any(named) else ()


def _numbers(ours: Sequence[Mapping[str, str]], name: str, default: int) -> list[int]:
    """The values of a directive; the default if no node has any."""
    return [int(config.get(name, default)) for config in ours] or [default]


def _keeps_extensions(config: Mapping[str, str]) -> bool:
    return config.get("aof-format", "framed") == "framed" or config.get("appendonly") != "yes"


def _journal(config: Mapping[str, str]) -> str:
    if config.get("appendonly") != "yes":
        return NO_JOURNAL
    return config.get("appendfsync", DEFAULTS.appendfsync)


def _repair_s(ours: Sequence[Mapping[str, str]]) -> int:
    """The longest, or 0 if any node does not repair."""
    default = str(DEFAULTS.replica_repair_after_s)
    spans = [int(config.get("replica-repair-after", default)) for config in ours]
    return max(spans, default=0) if all(spans) else 0
