"""Plans of the operations on single jobs."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.observe.operations.members import Names, names_of
from disque_trio.observe.operations.operation import (
    LATER,
    answering,
    one_by_one,
    silent,
    unanswered,
)
from disque_trio.observe.queues import is_delayed
from disque_trio.observe.values import Json, word
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import unwrap
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.plans import (
    MistakeError,
    Outcome,
    Plan,
    Report,
    Run,
    SilentNodeError,
)
from disque_trio.worker.operating.states import Copy


@attrs.frozen
class Live:
    """A job that has not ended."""

    id: str
    copies: list[Copy]
    """The copies of the nodes that answer."""
    unreached: Mapping[str, str]
    names: Names

    @property
    def silent_holders(self) -> dict[str, str]:
        """The nodes that may have a copy and do not answer, with the reason."""
        holders = {id for copy in self.copies for id in copy.job.nodes_delivered}
        ids = self.names.ids
        return {w: why for w, why in self.unreached.items() if ids.get(w) in {None, *holders}}

    def doubts(self) -> list[str]:
        """Return lines about silent holders, for a plan that one node runs."""
        return [
            f"{self.names(node)} may also have it, but does not answer: {why}"
            for node, why in self.silent_holders.items()
        ]


async def live(client: Client, args: Json) -> Live:
    """Return the copies of a job that has not ended. Raise `MistakeError` if there is none, or
    `SilentNodeError` if a node that does not answer may have one."""
    id = word(args, "id")
    found, names = await Jobs(client).find(id), await names_of(client)
    copies = [copy for copy in found.items if copy.job.state != "acked"]
    if not copies:
        why = f"no node that answers has {id}: it has ended, or was never added"
        error = SilentNodeError if found.unreached else MistakeError
        raise error(why + unanswered(found.unreached, names))
    return Live(id, copies, found.unreached, names)


def _one(
    client: Client,
    id: str,
    node: Address,
    names: Names,
    make: Callable[..., Command[int]],
    done: str,
) -> Run:
    """Return a run that sends the command to one node. `done` is the job's state afterwards, in
    words."""

    async def run(outcome: Outcome, _report: Report) -> None:
        if unwrap(*await client.ask(node, [make(id)])):
            outcome.says.append(f"{names(node)}: {done}")
            outcome.count += 1
        else:
            outcome.failed.append(
                f"{names(node)}: the job has changed meanwhile, so nothing was done"
            )

    return run


async def requeue(client: Client, args: Json) -> Plan:
    """Plan ENQUEUE at one node."""
    job = await live(client, args)
    id, copies = job.id, job.copies
    states = {copy.job.state for copy in copies}
    if "queued" in states:
        raise MistakeError(f"{id} is already queued")
    if "dead" in states:
        raise MistakeError(f"{id} is dead", "redrive it")
    waiting = [c for c in copies if is_delayed(c.job) or c.job.backing_off is not None]
    copy = (waiting or copies)[0]
    lines, risk = [f"{job.names(copy.node)} enqueues it now, which counts as a delivery"], ""
    if not waiting:
        left = copy.job.next_requeue_within or 0.0
        risk = f"a worker may have {id} for another {left:.0f} s; the job may then run twice"
        lines.append(risk)
    run = _one(client, id, copy.node, job.names, commands.enqueue, "enqueued")
    return Plan(target=id, says=[*lines, *job.doubts()], run=run, risk=risk)


async def acknowledge(client: Client, args: Json) -> Plan:
    """Plan ACKJOB."""
    job = await live(client, args)
    holders = counted(len(job.copies), "node that has", "nodes that have")
    unasked = silent(job.silent_holders, job.names, f"it may deliver the job, and {LATER}")
    never = "" if unasked else ", and is never delivered again"
    lines = [f"the job is acknowledged at the {holders} it{never}"]
    if any(copy.job.state == "active" for copy in job.copies):
        lines.append("a worker that runs it cancels its handler when it renews the lease")
    run = _one(client, job.id, job.copies[0].node, job.names, commands.ackjob, "acknowledged")
    return Plan(target=job.id, says=[*lines, *unasked], run=run, unasked=unasked)


async def nack(client: Client, args: Json) -> Plan:
    """Plan NACK at a node where the job is active."""
    job = await live(client, args)
    active = [copy for copy in job.copies if copy.job.state == "active"]
    if not active:
        raise MistakeError(f"{job.id} is {job.copies[0].job.state}: no worker has it")
    lines = [f"{job.names(active[0].node)} requeues it as if its worker had failed"]
    run = _one(client, job.id, active[0].node, job.names, commands.nack, "requeued")
    return Plan(target=job.id, says=[*lines, *job.doubts()], run=run)


def of_dead(
    make: Callable[..., Command[int]], effect: str, done: str, *, ends: bool
) -> Callable[[Client, Json], Any]:
    """Return a plan function for dead jobs: `make` returns the command. If it `ends` the job, the
    node informs the other holders."""

    async def plan(client: Client, args: Json) -> Plan:
        job = await live(client, args)
        dead = [copy for copy in job.copies if copy.job.state == "dead"]
        if not dead:
            raise MistakeError(f"{job.id} is not dead: it is {job.copies[0].job.state}")
        why = f"it is dead: {dead[0].reason or 'no reason given'}"
        run = _one(client, job.id, dead[0].node, job.names, make, done)
        unasked = silent(job.silent_holders, job.names, LATER) if ends else []
        doubts = unasked or job.doubts()
        return Plan(target=job.id, says=[effect, why, *doubts], run=run, unasked=unasked)

    return plan


async def delete(client: Client, args: Json) -> Plan:
    """Plan DELJOB at each node that has the job."""
    job = await live(client, args)
    nodes, names = [copy.node for copy in job.copies], job.names
    unasked = silent(job.unreached, names, "it keeps its copy, if it has one")
    lines = [f"the copies at {', '.join(map(names, nodes))} are deleted", *unasked]
    run = one_by_one(
        client, nodes, names, commands.deljob(job.id), lambda n: ("deleted" if n else "gone", n)
    )
    return Plan(target=job.id, says=lines, run=run, unasked=unasked)


async def trace(client: Client, args: Json) -> Plan:
    """Plan TRACE JOB at each node."""
    id, nodes, names = word(args, "id"), await answering(client), await names_of(client)
    asked: Command[Any] = commands.call("TRACE", "JOB", id)
    traced = counted(len(nodes.items), "node records", "nodes record")
    lines = [f"{traced} the events of the job, for one hour"]
    run = one_by_one(
        client,
        nodes.items,
        names,
        asked,
        lambda here: ("traced" if here else "traced when it arrives", 1),
    )
    unasked = silent(nodes.unreached, names)
    return Plan(target=id, says=[*lines, *unasked], run=run, unasked=unasked)
