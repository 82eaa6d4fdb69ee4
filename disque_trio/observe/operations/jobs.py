"""Operations on single jobs: their plans."""

from collections.abc import Callable
from typing import Any

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.observe.operations.members import Names, names_of
from disque_trio.observe.operations.operation import answering, one_by_one, silent
from disque_trio.observe.queues import is_delayed
from disque_trio.observe.values import Json, word
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import unwrap
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report, Run
from disque_trio.worker.operating.states import Copy


async def live(client: Client, args: Json) -> tuple[str, list[Copy], Names]:
    """The copies of a job that has not ended. Raises `MistakeError` if there is none."""
    id = word(args, "id")
    found = await Jobs(client).find(id)
    copies = [copy for copy in found.items if copy.job.state != "acked"]
    if not copies:
        raise MistakeError(f"no node that answers has {id}: it has ended, or was never added")
    return id, copies, await names_of(client)


def _one(
    client: Client,
    id: str,
    node: Address,
    names: Names,
    make: Callable[..., Command[int]],
    done: str,
) -> Run:
    """Tell one node of a job, which is then `done`, in a word."""

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
    """ENQUEUE at one node."""
    id, copies, names = await live(client, args)
    states = {copy.job.state for copy in copies}
    if "queued" in states:
        raise MistakeError(f"{id} is queued already")
    if "dead" in states:
        raise MistakeError(f"{id} is dead", "redrive it")
    waiting = [c for c in copies if is_delayed(c.job) or c.job.backing_off is not None]
    copy = (waiting or copies)[0]
    lines, risk = [f"{names(copy.node)} queues it now, which counts as a further delivery"], ""
    if not waiting:
        left = copy.job.next_requeue_within or 0.0
        risk = f"a worker may have {id} for {left:.0f} s more: then it runs twice"
        lines.append(risk)
    run = _one(client, id, copy.node, names, commands.enqueue, "queued again")
    return Plan(target=id, says=lines, run=run, risk=risk)


async def acknowledge(client: Client, args: Json) -> Plan:
    """ACKJOB."""
    id, copies, names = await live(client, args)
    holders = counted(len(copies), "node that has", "nodes that have")
    lines = [f"the job ends at the {holders} it, and is never delivered again"]
    if any(copy.job.state == "active" for copy in copies):
        lines.append("a worker that runs it cancels its handler when it renews the lease")
    run = _one(client, id, copies[0].node, names, commands.ackjob, "ended")
    return Plan(target=id, says=lines, run=run)


async def nack(client: Client, args: Json) -> Plan:
    """NACK at a node where a worker may have it."""
    id, copies, names = await live(client, args)
    active = [copy for copy in copies if copy.job.state == "active"]
    if not active:
        raise MistakeError(f"{id} is {copies[0].job.state}: no worker has it")
    lines = [f"{names(active[0].node)} queues it again as if its worker had given it back"]
    run = _one(client, id, active[0].node, names, commands.nack, "given back")
    return Plan(target=id, says=lines, run=run)


def of_dead(
    make: Callable[..., Command[int]], effect: str, done: str
) -> Callable[[Client, Json], Any]:
    """Of an operation on a dead job: `make` is the command."""

    async def plan(client: Client, args: Json) -> Plan:
        id, copies, names = await live(client, args)
        dead = [copy for copy in copies if copy.job.state == "dead"]
        if not dead:
            raise MistakeError(f"{id} is not dead: it is {copies[0].job.state}")
        why = f"it is dead: {dead[0].reason or 'no reason given'}"
        run = _one(client, id, dead[0].node, names, make, done)
        return Plan(target=id, says=[effect, why], run=run)

    return plan


async def delete(client: Client, args: Json) -> Plan:
    """DELJOB at each node that has it."""
    id, copies, names = await live(client, args)
    nodes = [copy.node for copy in copies]
    where = ", ".join(map(names, nodes))
    lines = [f"the copies at {where} are dropped", "a node that is silent keeps its copy"]
    run = one_by_one(
        client, nodes, names, commands.deljob(id), lambda n: ("dropped" if n else "gone", n)
    )
    return Plan(target=id, says=lines, run=run)


async def trace(client: Client, args: Json) -> Plan:
    """TRACE JOB at each node."""
    id, nodes, names = word(args, "id"), await answering(client), await names_of(client)
    asked: Command[Any] = commands.call("TRACE", "JOB", id)
    traced = counted(len(nodes.items), "node records", "nodes record")
    lines = [f"{traced} what happens to the job, for an hour"]
    run = one_by_one(
        client,
        nodes.items,
        names,
        asked,
        lambda here: ("traced" if here else "traced if it comes", 1),
    )
    unasked = silent(nodes, names)
    return Plan(target=id, says=[*lines, *unasked], run=run, unasked=unasked)
