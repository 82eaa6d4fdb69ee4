"""Makes jobs visible that wait for the commit, or removes them.

ENQUEUE ends the wait. If it is sent twice, and a worker has the job by then, the job is queued once
more: so of jobs with keys, the nodes are asked for the state before anything is sent again.
"""

import logging
import time
from collections.abc import Sequence
from typing import Final

from disque_trio.client import commands
from disque_trio.client.leases import Jobs
from disque_trio.client.records import KeyHolder
from disque_trio.client.refusals import RefusedError
from disque_trio.pipeline.connector.adding import Added, Name
from disque_trio.pipeline.connector.nodes import NodeGoneError, Nodes, number
from disque_trio.pipeline.connector.notes import PATIENCE_S, PAUSE_S
from disque_trio.pipeline.connector.windows import of_ids
from disque_trio.pipeline.errors import PipelineError
from disque_trio.terminal.counting import counted

_log: Final = logging.getLogger(__name__)


def release(nodes: Nodes, jobs: Jobs) -> None:
    """Make jobs visible. Those on nodes that do not answer become visible when the hold ends."""
    for node, ids in jobs.items():
        rest = _enqueue(nodes, node, ids)
        for other in nodes.names():
            if rest and other != node:
                rest = _enqueue_each(nodes, other, rest)
        if rest:
            _log.warning(
                "no node that answers has %s, such as %s; jobs at the others are enqueued later",
                counted(len(rest), "job"),
                rest[0],
            )


def release_keyed(nodes: Nodes, added: Added) -> None:
    """Make jobs with keys visible, each once. Raises `PipelineError` if that is not certain."""
    doubtful = list(added.found)
    for node, ids in added.held.items():
        parts = list(of_ids(ids))
        try:
            counts = nodes.ask(node, [commands.enqueue(*part) for part in parts])
        except NodeGoneError:
            # It may have queued them: only it can tell.
            _wait_for(nodes, node)
            counts = [0] * len(parts)
        short = [part for part, n in zip(parts, counts, strict=True) if number(n) < len(part)]
        doubtful += [added.names[job] for part in short for job in part]
    _release_waiting(nodes, doubtful)


def _wait_for(nodes: Nodes, node: str) -> None:
    """Until it answers, or so long that it is given up."""
    deadline = time.monotonic() + PATIENCE_S
    while node in nodes.down() and time.monotonic() < deadline:
        time.sleep(PAUSE_S)


def _release_waiting(nodes: Nodes, names: Sequence[Name]) -> None:
    """Of jobs that may be visible already, or over, those that still wait."""
    if not names:
        return
    node = nodes.live()[0]
    shown = nodes.ask(node, [commands.show_key(queue, key) for queue, key in names])
    if refusal := next((each for each in shown if isinstance(each, RefusedError)), None):
        raise PipelineError(f"{node} refuses {refusal}")
    found = [each for each in shown if isinstance(each, KeyHolder)]
    if waiting := [each.id for each in found if each.state == "waiting"]:
        release(nodes, {node: waiting})
    if len(found) < len(names):
        raise PipelineError(
            f"no node that answers has {counted(len(names) - len(found), 'job')} of this batch: "
            "run the batch again: it adds the missing jobs"
        )


def _enqueue(nodes: Nodes, node: str, ids: Sequence[str]) -> list[str]:
    """At the node that added them, many at once. Returns those that it does not have."""
    parts = list(of_ids(ids))
    try:
        counts = nodes.ask(node, [commands.enqueue(*part) for part in parts])
        short = [part for part, n in zip(parts, counts, strict=True) if number(n) < len(part)]
        doubtful = [job for part in short for job in part]
        shown = nodes.ask(node, [commands.show(job) for job in doubtful])
    except NodeGoneError as error:
        _log.warning("a node is skipped: %s", error)
        return list(ids)
    return [job for job, found in zip(doubtful, shown, strict=True) if found is None]


def _enqueue_each(nodes: Nodes, node: str, ids: Sequence[str]) -> list[str]:
    """At another node, one at a time: two holders that were asked would both queue the job.

    Returns those that it does not have.
    """
    try:
        counts = nodes.ask(node, [commands.enqueue(job) for job in ids])
    except NodeGoneError:
        return list(ids)
    return [job for job, count in zip(ids, counts, strict=True) if count != 1]


def undo(nodes: Nodes, added: Added) -> None:
    """Remove jobs everywhere.

    By ACKJOB: DELJOB removes the copy of one node only, and the other copies would be queued.
    """
    for node, ids in (*added.held.items(), *added.free.items()):
        if not nodes.acknowledge(node, ids):
            _log.warning("could not undo %s, such as %s", counted(len(ids), "job"), ids[0])
