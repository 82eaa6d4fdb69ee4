"""What the console can change. Each verb says what it will do, and then does it, node by node.

A plan changes nothing. To carry it out is another step, so that a person reads it first.
"""

from collections.abc import Callable, Mapping
from typing import Final

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.observe import queue_deeds
from disque_trio.observe.observer import Observer
from disque_trio.observe.plans import Outcome, Plan, Run, Tell, Verb, answering, at
from disque_trio.observe.queues import is_delayed
from disque_trio.observe.survey import KnownNode
from disque_trio.observe.values import Json, MistakeError, word
from disque_trio.observe.workers import found_worker
from disque_trio.statemachine.base import Reply
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import given
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.notes import OrderName
from disque_trio.worker.operating.states import Copy

_DIGITS: Final = 8


# Jobs.


async def _live(observer: Observer, args: Json) -> tuple[str, list[Copy]]:
    """The copies of a job that has not ended. Raises `MistakeError` if there is none."""
    id = word(args, "id")
    found = await Jobs(observer.client).find(id)
    copies = [copy for copy in found.items if copy.job.state != "acked"]
    if not copies:
        raise MistakeError(f"no node that answers has {id}: it has ended, or was never added")
    return id, copies


def _one(observer: Observer, id: str, node: Address, make: Callable[..., Command[int]]) -> Run:
    """Tell one node of a job."""

    async def run(outcome: Outcome, _tell: Tell) -> None:
        done = given(*await observer.client.ask(node, [make(id)]))
        if done:
            outcome.says.append(f"{node}: done")
        else:
            outcome.failed.append(f"{node}: the job has changed meanwhile, so nothing was done")

    return run


async def _enqueue(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)
    if any(copy.job.state == "queued" for copy in copies):
        raise MistakeError(f"{id} is queued already")
    if any(copy.job.state == "dead" for copy in copies):
        raise MistakeError(f"{id} is dead: redrive its queue")
    copy = copies[0]
    says = [f"{copy.node} queues it now, which counts as a further delivery"]
    left = copy.job.next_requeue_within
    if not is_delayed(copy.job) and copy.job.backing_off is None and left is not None:
        says.append(f"a worker may have it for {left:.0f} s more: then it runs twice")
    return Plan(target=id, says=says, run=_one(observer, id, copy.node, commands.enqueue))


async def _ack(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)
    says = [f"the job ends at all {at(len(copies))} that have it, and is never delivered again"]
    return Plan(target=id, says=says, run=_one(observer, id, copies[0].node, commands.ackjob))


async def _nack(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)
    active = [copy for copy in copies if copy.job.state == "active"]
    if not active:
        raise MistakeError(f"{id} is {copies[0].job.state}: no worker has it")
    says = [f"{active[0].node} queues it again as if its worker had given it back"]
    return Plan(target=id, says=says, run=_one(observer, id, active[0].node, commands.nack))


async def _deljob(observer: Observer, args: Json) -> Plan:
    id, copies = await _live(observer, args)

    async def run(outcome: Outcome, tell: Tell) -> None:
        for copy in copies:
            try:
                await _one(observer, id, copy.node, commands.deljob)(outcome, tell)
            except DisqueError as error:
                outcome.failed.append(f"{copy.node}: {error}")

    where = ", ".join(str(copy.node) for copy in copies)
    says = [f"the copies at {where} are dropped", "a node that is silent keeps its copy"]
    return Plan(target=id, says=says, run=run)


async def _trace(observer: Observer, args: Json) -> Plan:
    id = word(args, "id")
    asked = commands.call("TRACE", "JOB", id)
    nodes, silent = await answering(observer)

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for node in nodes:
            try:
                here = given(*await observer.client.ask(node.address, [asked]))
                outcome.says.append(f"{node.where}: {'traced' if here else 'traced if it comes'}")
            except DisqueError as error:
                outcome.failed.append(f"{node.where}: {error}")

    says = [f"{at(len(nodes))} write down what happens to the job, for an hour", *silent]
    return Plan(target=id, says=says, run=run)


# Who is connected.


async def _kick(observer: Observer, args: Json) -> Plan:
    node, client = await _node(observer, args), word(args, "client")
    if not client.isdecimal():
        raise MistakeError(f"'{client}' is no number of a connection")

    async def run(outcome: Outcome, _tell: Tell) -> None:
        asked = commands.call("CLIENT", "KILL", "ID", client)
        killed = given(*await observer.client.ask(node.address, [asked]))
        (outcome.says if killed else outcome.failed).append(
            f"{node.where}: {'ended' if killed else 'the connection has gone already'}"
        )

    says = [
        f"{node.where} ends connection {client}",
        "jobs that its client has come back when their lease is over; a client may connect again",
    ]
    return Plan(target=f"{node.where} {client}", says=says, run=run)


def _order(order: OrderName, says: str) -> Verb:
    async def plan(observer: Observer, args: Json) -> Plan:
        name, admin = word(args, "worker"), Admin(observer.client)
        worker = found_worker(name, (await admin.workers()).items)
        if worker is None:
            raise MistakeError(f"there is no worker '{name}', or several")

        async def run(outcome: Outcome, _tell: Tell) -> None:
            [obeyed] = await admin.order(order, worker)
            told = f"{worker.report.name}: {obeyed.error or 'has obeyed'}"
            (outcome.failed if obeyed.error else outcome.says).append(told)

        return Plan(target=name, says=[f"{worker.report.name} {says}"], run=run)

    return plan


# Members.


async def _node(observer: Observer, args: Json) -> KnownNode:
    """The node with this address or id. Raises `MistakeError`."""
    name = word(args, "node")
    for node in await observer.look():
        if name in (node.where, node.id):
            return node
    raise MistakeError(f"there is no node '{name}'")


async def _told(observer: Observer, node: KnownNode, outcome: Outcome, *words: str) -> None:
    try:
        asked = commands.call("CLUSTER", *words)
        reply: Reply = given(*await observer.client.ask(node.address, [asked]))
        outcome.says.append(f"{node.where}: {_text(reply)}")
    except DisqueError as error:
        outcome.failed.append(f"{node.where}: {error}")


def _text(reply: Reply) -> str:
    text = getattr(reply, "text", reply)
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


async def _leave(observer: Observer, args: Json) -> Plan:
    node = await _node(observer, args)
    others = len([each for each in observer.survey.nodes.values() if not each.why]) - 1

    async def run(outcome: Outcome, _tell: Tell) -> None:
        await _told(observer, node, outcome, "LEAVING", "yes")

    says = [
        f"{node.name} {node.where} takes no new jobs and gives its own to {at(others)}",
        "it can be stopped when it has no jobs left; CLUSTER LEAVING no takes it back",
    ]
    return Plan(target=node.where, says=says, run=run, confirm=node.id[:_DIGITS])


async def _forget(observer: Observer, args: Json) -> Plan:
    node = await _node(observer, args)
    nodes, silent = await answering(observer)
    others = [each for each in nodes if each is not node]

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for other in others:
            await _told(observer, other, outcome, "FORGET", node.id)

    says = [
        f"{at(len(others))} forget {node.name} {node.where}; do this only if it is gone for good",
        "jobs of which it has the only copy are lost with it",
        *silent,
    ]
    return Plan(target=node.where, says=says, run=run, confirm=node.id[:_DIGITS])


async def _meet(observer: Observer, args: Json) -> Plan:
    address = word(args, "address")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise MistakeError(f"'{address}' is no address: give 10.0.0.1:7711")
    nodes, _ = await answering(observer)
    if not nodes:
        raise MistakeError("no node answers")

    async def run(outcome: Outcome, _tell: Tell) -> None:
        await _told(observer, nodes[0], outcome, "MEET", host.strip("[]"), port)

    says = [f"the cluster of {nodes[0].where} and that of {address} become one"]
    return Plan(target=address, says=says, run=run, confirm=address)


VERBS: Final[Mapping[str, Verb]] = {
    "pause": queue_deeds.pause,
    "enqueue": _enqueue,
    "enqueue-queue": queue_deeds.enqueue,
    "ack": _ack,
    "nack": _nack,
    "deljob": _deljob,
    "trace": _trace,
    "purge": queue_deeds.purge,
    "redrive": queue_deeds.redrive,
    "kick": _kick,
    "quiet": _order("quiet", "takes no more jobs; those that it has go on"),
    "resume": _order("resume", "takes jobs again"),
    "leave": _leave,
    "forget": _forget,
    "meet": _meet,
}
"""By name. Each raises `MistakeError` for what cannot be done, and `DisqueError`."""
