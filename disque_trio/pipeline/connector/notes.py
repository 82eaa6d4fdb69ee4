"""Notes: jobs of a queue that nobody takes from, which are as safe as the jobs that they are about.

They are read by their ids, and dropped by acknowledging them.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.client.records import JobDetails
from disque_trio.pipeline.connector.nodes import NodeGoneError, Nodes, UnreachableError
from disque_trio.pipeline.errors import PipelineError

PATIENCE_S: Final = 30.0
"""How long to try when all nodes refuse a job or none answers: they may be partitioned."""
PAUSE_S: Final = 0.5
TTL_S: Final = 7 * 86_400
Place = tuple[str, str]
"""A node that has the note, and its id."""


def keep(nodes: Nodes, adds: Callable[[], Command[str]], node: str | None = None) -> Place:
    """Add the note at that node or another. `adds` is asked before each round. Raises
    `PipelineError`: `UnreachableError` if none answers."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        why: object = ""
        asked = adds()
        for name in sorted(nodes.names(), key=lambda name: name != node):
            try:
                (job,) = nodes.ask(name, [asked])
            except NodeGoneError as error:
                why = error
                continue
            if isinstance(job, str):
                return name, job
            why = job
        if time.monotonic() > deadline:
            kind = UnreachableError if isinstance(why, NodeGoneError) else PipelineError
            raise kind(f"no node stores a note: {why}")
        time.sleep(PAUSE_S)


def read(nodes: Nodes, note: Place) -> bytes | None:
    """Its text; None if no node that answers has it. Raises `UnreachableError`."""
    node, job = note
    for name in sorted(nodes.live(), key=lambda name: name != node):
        try:
            (shown,) = nodes.ask(name, [commands.show(job)])
        except NodeGoneError:
            continue
        if isinstance(shown, JobDetails) and shown.body is not None:
            return shown.body
    return None


def drop(nodes: Nodes, notes: Iterable[Place]) -> None:
    """Drop these notes; without a node that answers they stay until their TTL is over."""
    by_node: dict[str, list[str]] = {}
    for node, job in notes:
        by_node.setdefault(node, []).append(job)
    for node, ids in by_node.items():
        nodes.acknowledge(node, ids)
