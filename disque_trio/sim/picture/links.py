"""Connections between rows: by lifeline, by job, and as the two ends of an arrow.

The lifeline of a row is its client if a client wrote it, else its node. Its mate is the earlier row
that it answers: the send of a recv, the invocation of an outcome, the serve of a delivery.
"""

from collections.abc import Sequence

import attrs

from disque_trio.sim.picture.plan_words import by_number
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing import client_rows
from disque_trio.tracing.details import body, jobs_in
from disque_trio.tracing.rows import Row

CLIENT_KINDS = client_rows.KINDS | {"query"}
"""The part before the dot in kinds of rows that clients write."""

MESSAGES = frozenset({"send", "recv", "lost"})
NO_MATE = -1


def is_client(row: Row) -> bool:
    """Did a client write this row, not a node?"""
    command, dot, _ = row.kind.partition(".")
    return bool(dot) and command in CLIENT_KINDS


def lifeline(row: Row) -> str:
    """Return the client or node of the row; empty for rows about the whole cluster."""
    return row.client if is_client(row) else row.node


def other(row: Row) -> str:
    """Return the client or node at the other end, if there is one."""
    return row.node if is_client(row) else row.peer or row.client


def node_names(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """Return the nodes of the plan, and those that joined. Live nodes have other names than a
    plan's."""
    planned = dict.fromkeys(f"n{number}" for number in range(1, plan.nodes + 1))
    seen = dict.fromkeys(row.node for row in rows if row.node)
    seen.update(dict.fromkeys(row.peer for row in rows if row.kind in MESSAGES and row.peer))
    is_planned = not seen or any(name in planned for name in seen)
    return list({**planned, **seen} if is_planned else seen)


def agent_names(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """Return producers, then consumers, then other clients."""
    names = dict.fromkeys(sorted({add.producer: None for add in plan.adds}, key=by_number))
    names.update(dict.fromkeys(consumer.name for consumer in plan.consumers))
    names.update(dict.fromkeys(row.client for row in rows if row.client))
    return list(names)


@attrs.define
class Links:
    """For each row so far: its job, and its mate. `extend` adds further rows."""

    jobs: list[str] = attrs.Factory(list)
    mates: list[int] = attrs.Factory(list)
    shared: list[tuple[int, str]] = attrs.Factory(list)
    """Rows about several jobs: row and job, for each of the jobs."""
    _latest: dict[tuple[object, ...], int] = attrs.Factory(dict)
    _nameless: dict[tuple[str, str], int] = attrs.Factory(dict)
    """By queue and body: invocations of ADDJOB whose job is unknown."""
    _outcomes: dict[int, int] = attrs.Factory(dict)
    """By invocation of ADDJOB: its outcome."""

    def extend(self, rows: Sequence[Row]) -> list[int]:
        """Link further rows. Return the earlier rows whose job has become known."""
        first = len(self.jobs)
        self.jobs += [row.job for row in rows]
        self.mates += [NO_MATE] * len(rows)
        named: list[int] = []
        for index, row in enumerate(rows, first):
            self._link(index, row)
            named += self._name_mate(index, row)
        for index, row in enumerate(rows, first):
            if row.kind == "add.invoke" and not self.jobs[index] and (text := body(row.detail)):
                self._nameless[row.queue, text] = index
        for row in rows:
            if row.kind == "get.deliver":
                named += self._claim(row)
        return [index for index in named if index < first]

    def _link(self, index: int, row: Row) -> None:
        if row.cause == "yourjobs" and not row.job:
            self.shared += [(index, job) for job in jobs_in(row)]
        key = _key(row)
        if row.kind in {"send", "serve"} or row.kind.endswith(".invoke"):
            self._latest[key] = index
        elif key:
            self.mates[index] = self._latest.get(key, NO_MATE)
            if row.kind.startswith("add."):
                self._outcomes[self.mates[index]] = index

    def _name_mate(self, index: int, row: Row) -> list[int]:
        """Set the job of the invocation to the one in the node's reply, which overrides a guess by
        body."""
        mate, job = self.mates[index], self.jobs[index]
        if mate == NO_MATE or not job or self.jobs[mate] == job:
            return []
        if self.jobs[mate] and row.kind != "add.ok":
            return []
        self.jobs[mate] = job
        return [mate]

    def _claim(self, row: Row) -> list[int]:
        """Find the job of an ADDJOB with an unknown outcome by the body of a delivery."""
        invocation = self._nameless.pop((row.queue, body(row.detail) or ""), None)
        if invocation is None or self.jobs[invocation]:
            return []
        outcome = self._outcomes.get(invocation)
        claimed = [invocation] if outcome is None else [invocation, outcome]
        for index in claimed:
            self.jobs[index] = row.job
        return claimed


def numbers(links: Links) -> dict[str, int]:
    """Return numbers for jobs, in the order of their appearance."""
    jobs = dict.fromkeys(job for job in links.jobs if job)
    jobs.update(dict.fromkeys(job for _, job in links.shared))
    return {job: number for number, job in enumerate(jobs)}


def link(rows: Sequence[Row]) -> Links:
    """Find the job and the mate of each row."""
    links = Links()
    links.extend(rows)
    return links


def _key(row: Row) -> tuple[object, ...]:
    """Return a key that a row shares with its mate. Live nodes do not number their messages."""
    if row.kind in MESSAGES:
        ends = (row.peer, row.node) if row.kind == "recv" else (row.node, row.peer)
        return (row.ref,) if row.ref else (*ends, row.cause, row.job)
    if row.kind in {"serve", "get.deliver"}:
        return (row.job, row.node, row.client)
    if is_client(row):
        return (row.node, row.client, row.ref, "" if row.kind.startswith("add.") else row.job)
    return ()
