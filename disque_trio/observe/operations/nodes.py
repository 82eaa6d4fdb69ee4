"""Plans of the operations on nodes."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.url import parse_node
from disque_trio.observe.cluster import node_name
from disque_trio.observe.operations.members import Member, members, names_of
from disque_trio.observe.operations.operation import answering, one_by_one, silent
from disque_trio.observe.values import Json, word
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import unwrap
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report, SilentNodeError

_DIGITS: Final = 8
"""The digits of an id that suffice to name a node; a person types them before a grave operation."""


async def _member(client: Client, args: Json) -> tuple[Member, list[Member]]:
    """Return the node with this name, address, id or start of an id (eight digits or more), and the
    other nodes. Raise `MistakeError`."""
    name, known = word(args, "node"), await members(client)
    fit = [each for each in known if name in (each.id, each.where)]
    fit = fit or [
        each
        for each in known
        if each.name == name or (len(name) >= _DIGITS and each.id.startswith(name))
    ]
    if len(fit) == 1:
        [one] = fit
        return one, [each for each in known if each is not one]
    nodes = ", ".join(f"{node_name(each.id, each.name)} {each.where}" for each in fit or known)
    which = counted(len(fit), "node has", "nodes have") + " the name" if fit else "there is no node"
    raise MistakeError(f"{which} '{name}'; there are {nodes}")


async def _reached(client: Client, args: Json) -> tuple[Member, Address, list[Member]]:
    member, others = await _member(client, args)
    if member.node is None:
        raise SilentNodeError(f"{_called(member)} does not answer")
    return member, member.node, others


def _called(member: Member) -> str:
    """Return its name and its address."""
    return f"{node_name(member.id, member.name)} ({member.where})"


def _answering(others: Sequence[Member]) -> str:
    """Return the number of those that answer."""
    return counted(sum(each.node is not None for each in others), "node")


def _always(text: str) -> Callable[[Any], tuple[str, int]]:
    """Return `describe` of `one_by_one` for a command that replies OK."""
    return lambda _: (text, 1)


async def leave(client: Client, args: Json) -> Plan:
    """Plan CLUSTER LEAVING yes."""
    member, node, others = await _reached(client, args)
    names = await names_of(client)
    lines = [
        f"{_called(member)} accepts no new jobs, and gives its jobs to {_answering(others)}",
        "stop it when it has no jobs left; until then, nodes stay cancels this",
    ]
    asked = commands.call("CLUSTER", "LEAVING", "yes")
    announce = one_by_one(client, [node], names, asked, _always("accepts no new jobs"))

    async def run(outcome: Outcome, report: Report) -> None:
        await announce(outcome, report)
        if outcome.count:
            outcome.says.append(f"{names(node)}: {await _left(client, node)}")

    return Plan(target=str(node), says=lines, run=run, confirm=member.id[:_DIGITS])


async def _left(client: Client, node: Address) -> str:
    """Return how many jobs a leaving node has."""
    try:
        info = unwrap(*await client.ask(node, [commands.info("jobs")]))
        left = int(info["registered_jobs"])
    except (DisqueError, KeyError, ValueError):  # INFO may be renamed or restricted
        return "stop it when INFO jobs shows registered_jobs:0"
    if not left:
        return "no jobs left; it can be stopped"
    return f"{counted(left, 'job')} left; stop it when INFO jobs shows registered_jobs:0"


async def stay(client: Client, args: Json) -> Plan:
    """Plan CLUSTER LEAVING no."""
    member, node, _ = await _reached(client, args)
    names = await names_of(client)
    asked = commands.call("CLUSTER", "LEAVING", "no")
    run = one_by_one(client, [node], names, asked, _always("stays, and accepts new jobs"))
    lines = [f"{_called(member)} stays, and accepts new jobs again"]
    return Plan(target=str(node), says=lines, run=run)


async def forget(client: Client, args: Json) -> Plan:
    """Plan CLUSTER FORGET at the other nodes."""
    member, others = await _member(client, args)
    names, nodes = await names_of(client), [each.node for each in others if each.node]
    left_out = {each.where: "it does not answer" for each in others if not each.node}
    unasked = silent(left_out, names, "when it returns, it makes the others add the node again")
    forget = counted(len(nodes), "node forgets", "nodes forget")
    lines = [
        f"{forget} {_called(member)}; do this only if it is gone for good",
        *(["it answers, and would join the others again: stop it first"] * bool(member.node)),
        "jobs of which it has the only copy are lost",
        *unasked,
    ]
    asked, done = commands.call("CLUSTER", "FORGET", member.id), _always("forgot it")
    run = one_by_one(client, nodes, names, asked, done)
    return Plan(
        target=member.where, says=lines, run=run, unasked=unasked, confirm=member.id[:_DIGITS]
    )


async def meet(client: Client, args: Json) -> Plan:
    """Plan CLUSTER MEET at one node."""
    try:
        other = parse_node(word(args, "address"))
    except ValueError as error:
        raise MistakeError(str(error)) from None
    first, names = (await answering(client)).items[0], await names_of(client)
    asked = commands.call("CLUSTER", "MEET", other.host, str(other.port))
    lines = [f"{names(first)} joins {other}: their clusters become one"]
    run = one_by_one(client, [first], names, asked, _always(f"connects to {other}"))
    return Plan(target=str(other), says=lines, run=run, confirm=str(other))


async def kick(client: Client, args: Json) -> Plan:
    """Plan CLIENT KILL."""
    member, node, _ = await _reached(client, args)
    connection = str(args.get("client", ""))
    if not connection.isdecimal():
        raise MistakeError(f"'{connection}' is not the id of a connection")
    name = node_name(member.id, member.name)

    async def run(outcome: Outcome, _report: Report) -> None:
        asked = commands.call("CLIENT", "KILL", "ID", connection)
        outcome.count = int(bool(unwrap(*await client.ask(node, [asked]))))
        (outcome.says if outcome.count else outcome.failed).append(
            f"{name}: {'closed' if outcome.count else 'the connection was already closed'}"
        )

    lines = [
        f"{_called(member)} closes connection {connection}",
        "jobs of its client are requeued when their leases end; the client may reconnect",
    ]
    return Plan(target=f"{node} {connection}", says=lines, run=run)
