"""What belongs together among rows: lanes, the job of an invocation, and the ends of an arrow.

A row stands in a lane: that of its agent where a client wrote it, else that of its node. Its mate
is the earlier row that it answers: the send of a recv, the invocation of an outcome, the serve of a
delivery.
"""

from collections.abc import Sequence

import attrs

from disque_trio.sim.picture.plan_words import by_number
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row

CLIENT_KINDS = frozenset(
    {"add", "get", "ack", "fastack", "nack", "working", "deljob", "enqueue", "dequeue"}
)
"""What stands before the dot in rows that clients write."""

MESSAGES = frozenset({"send", "recv", "lost"})
NO_MATE = -1


def is_client(row: Row) -> bool:
    """Did an agent write this row, not a node?"""
    command, dot, _ = row.kind.partition(".")
    return bool(dot) and command in CLIENT_KINDS


def lane(row: Row) -> str:
    """Whose lane the row stands in; empty for what happens to the world as a whole."""
    return row.client if is_client(row) else row.node


def other(row: Row) -> str:
    """The lane at the other end, if there is one."""
    return row.node if is_client(row) else row.peer or row.client


def node_names(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """The nodes of the plan, and those that came later. Live nodes have names of their own."""
    planned = dict.fromkeys(f"n{number}" for number in range(1, plan.nodes + 1))
    seen = dict.fromkeys(row.node for row in rows if row.node)
    seen.update(dict.fromkeys(row.peer for row in rows if row.kind in MESSAGES and row.peer))
    is_planned = not seen or any(name in planned for name in seen)
    return list({**planned, **seen} if is_planned else seen)


def agent_names(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """Producers, then consumers, then whoever else was a client."""
    names = dict.fromkeys(sorted({add.producer: None for add in plan.adds}, key=by_number))
    names.update(dict.fromkeys(consumer.name for consumer in plan.consumers))
    names.update(dict.fromkeys(row.client for row in rows if row.client))
    return list(names)


@attrs.define
class Links:
    """By row: the job it is about, and its mate."""

    jobs: list[str]
    mates: list[int]
    shared: list[tuple[int, str]] = attrs.Factory(list)
    """Rows about several jobs, with each of them."""


def numbers(links: Links) -> dict[str, int]:
    """Short names for jobs: they are numbered in the order in which they appear."""
    jobs = dict.fromkeys(job for job in links.jobs if job)
    jobs.update(dict.fromkeys(job for _, job in links.shared))
    return {job: number for number, job in enumerate(jobs)}


def link(rows: Sequence[Row]) -> Links:
    """Find the job and the mate of each row."""
    links = Links([row.job for row in rows], [NO_MATE] * len(rows))
    latest: dict[tuple[object, ...], int] = {}
    for index, row in enumerate(rows):
        if row.cause == "yourjobs" and not row.job:
            links.shared += [(index, job) for job in _listed(row.detail)]
        key = _key(row)
        if row.kind in {"send", "serve"} or row.kind.endswith(".invoke"):
            latest[key] = index
        elif key:
            links.mates[index] = latest.get(key, NO_MATE)
    for index, mate in enumerate(links.mates):
        if mate != NO_MATE and not links.jobs[mate]:
            links.jobs[mate] = links.jobs[index]
    _claim(rows, links)
    return links


def _key(row: Row) -> tuple[object, ...]:
    """What a row and its mate have in common. Live nodes do not number their messages."""
    if row.kind in MESSAGES:
        ends = (row.peer, row.node) if row.kind == "recv" else (row.node, row.peer)
        return (row.ref,) if row.ref else (*ends, row.cause, row.job)
    if row.kind in {"serve", "get.deliver"}:
        return (row.job, row.node, row.client)
    if is_client(row):
        return (row.node, row.client, row.ref, "" if row.kind.startswith("add.") else row.job)
    return ()


def _claim(rows: Sequence[Row], links: Links) -> None:
    """Of an ADDJOB whose outcome nobody knows, the body of what comes out tells the job."""
    nameless = {
        (row.queue, _body(row)): index
        for index, row in enumerate(rows)
        if row.kind == "add.invoke" and not links.jobs[index] and _body(row)
    }
    outcomes = {mate: index for index, mate in enumerate(links.mates) if mate != NO_MATE}
    for row in rows:
        if row.kind == "get.deliver" and (row.queue, _body(row)) in nameless:
            invocation = nameless.pop((row.queue, _body(row)))
            links.jobs[invocation] = row.job
            if invocation in outcomes:
                links.jobs[outcomes[invocation]] = row.job


def _body(row: Row) -> str:
    return row.detail.partition("body=")[2]


def _listed(detail: str) -> list[str]:
    """The jobs of a message that has several: ``jobs=…,… holders=…``."""
    said = dict(word.partition("=")[::2] for word in detail.split())
    return [job for job in said.get("jobs", "").split(",") if job]
