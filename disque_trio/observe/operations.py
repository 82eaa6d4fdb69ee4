"""Everything that people can change in a cluster: one table, from which the console has its
buttons, the command line its subcommands, and `App.admin` its methods.

An operation is planned first, which changes nothing, so that a person reads what will happen. To
run the plan is another step; it reports node by node.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeVar

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import QueueStats
from disque_trio.observe.cluster import lines_of, node_name
from disque_trio.observe.queues import is_delayed
from disque_trio.observe.values import (
    Json,
    given_name,
    name_fields,
    readable,
    word,
)
from disque_trio.worker.operating.admin import Admin, KnownWorker
from disque_trio.worker.operating.asking import Found, at_each, given
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.notes import OrderName
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Run, Tell
from disque_trio.worker.operating.states import Copy

MANY: Final = 100
"""To redrive or drop more dead jobs the queue's name must be typed."""
RATE: Final = 50
"""Jobs a second that are redriven if no rate is given."""
MOST: Final = 1_000_000
"""The largest number of an argument: of jobs, of jobs a second, or of seconds."""
_LOOKED_AT: Final = 1000
"""Dead jobs of each node that are looked at, if no limit is given."""
_DIGITS: Final = 8
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Argument:
    """What an operation has to know."""

    name: str
    about: str
    kind: Literal["text", "number", "seconds"] = "text"
    choices: tuple[str, ...] = ()
    default: str | float | None = None
    """Of the console's form and of the command line."""
    is_required: bool = False
    is_placed: bool = False
    """Is it given by its place on the command line, though it is not required?"""
    is_asked: bool = False
    """Has the console to ask for it, where its page does not know it?"""


@attrs.frozen(kw_only=True)
class Operation:
    """One of them. `NAME` of the command line is `family name`: `disque-trio queues pause`."""

    family: str
    """`queues`, `jobs`, `workers` or `nodes`."""
    name: str
    letter: str
    """The key of the console."""
    label: str
    about: str
    """For help, a sentence."""
    arguments: tuple[Argument, ...]
    """Those that are required come first."""
    plan: Callable[[Client, Json], Awaitable[Plan]]
    """Raises `MistakeError` for what cannot be done, and `DisqueError`."""
    when: tuple[str, ...] = ()
    """States in which the console offers it; always, if there are none."""
    is_grave: bool = False
    """Can it not be undone?"""

    @property
    def key(self) -> str:
        """Such as `queues pause`."""
        return f"{self.family} {self.name}"

    def as_json(self) -> Json:
        """For the browser."""
        facts = attrs.asdict(self, filter=lambda field, _: field.name != "plan")
        return {"key": self.key, **facts}

    async def planned(self, client: Client, args: Json) -> Plan:
        """What it will do with these arguments. Raises `MistakeError` and `DisqueError`."""
        for each in self.arguments:
            value = args.get(each.name)
            if value is None or each.is_required:
                continue
            if each.kind == "text":
                if not isinstance(value, str):
                    raise MistakeError(f"'{each.name}' is no text")
                if each.choices and value not in each.choices:
                    choices = ", ".join(each.choices)
                    raise MistakeError(f"{each.name} '{value}' is not one of {choices}")
            elif not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise MistakeError(f"'{each.name}' is not a number above 0")  # nor is NaN
            elif value > MOST or (each.kind == "number" and value != int(value)):
                raise MistakeError(f"'{each.name}' is not a number from 1 to {MOST:,}")
        return await self.plan(client, args)


# What plans have in common.


def at(count: int) -> str:
    """Such as `2 nodes`."""
    return "1 node" if count == 1 else f"{count} nodes"


def jobs_of(count: int, kind: str = "") -> str:
    """Such as `2 dead jobs`."""
    return f"1 {kind}job" if count == 1 else f"{count:,} {kind}jobs"


def _silent(found: Found[Any]) -> list[str]:
    return [f"{node} is not asked: {why}" for node, why in found.unreached.items()]


async def _nodes(client: Client) -> Found[Address]:
    """Those that answer."""

    async def ask(node: Address) -> list[Address]:
        given(*await client.ask(node, [commands.ping()]))
        return [node]

    return await at_each(client, ask)


async def _stats(client: Client, queue: str) -> Found[tuple[Address, QueueStats | None]]:
    """What the nodes that answer have of a queue."""

    async def ask(node: Address) -> list[tuple[Address, QueueStats | None]]:
        return [(node, given(*await client.ask(node, [commands.qstat(queue)])))]

    return await at_each(client, ask)


def _at_each(
    client: Client,
    nodes: Sequence[Address],
    asked: Command[T],
    told: Callable[[T], tuple[str, int]],
) -> Run:
    """Ask one node after the other."""

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for node in nodes:
            try:
                text, count = told(given(*await client.ask(node, [asked])))
            except DisqueError as error:
                outcome.failed.append(f"{node}: {error}")
            else:
                outcome.says.append(f"{node}: {text}")
                outcome.count += count

    return run


def _counted(done: str) -> Callable[[int], tuple[str, int]]:
    return lambda count: (f"{done} {jobs_of(count)}", count)


# Queues.

_STOPS: Final[Mapping[str, tuple[str, str]]] = {
    "in": ('new jobs of queue "{}" are refused', "new jobs are refused"),
    "out": ('deliveries of queue "{}" stop', "deliveries are stopped"),
    "all": ('queue "{}" takes no jobs and delivers none', "stopped both ways"),
    "none": ('queue "{}" takes and delivers jobs again', "takes and delivers jobs"),
}


async def _pause(client: Client, args: Json) -> Plan:
    """PAUSE at each node."""
    name, side = given_name(args, "queue"), args.get("side") or "all"
    nodes = await _nodes(client)
    asked, (says, done) = commands.pause(name, side), _STOPS[side]
    forgets = [] if side == "none" else ["a node that is started again forgets it"]
    return Plan(
        target=f"{readable(name)} {side}",
        says=[
            f"{says.format(readable(name))} at {at(len(nodes.items))}",
            *forgets,
            *_silent(nodes),
        ],
        run=_at_each(client, nodes.items, asked, lambda _: (done, 1)),
    )


async def _resume(client: Client, args: Json) -> Plan:
    return await _pause(client, {**args, "side": "none"})


async def _purge(client: Client, args: Json) -> Plan:
    """PURGE at each node."""
    name = given_name(args, "queue")
    found = await _stats(client, name)
    jobs = sum(stats.length for _, stats in found.items if stats)
    ends = f'{jobs_of(jobs)} queued in "{readable(name)}" end, and are never delivered'
    says = [ends, "jobs that workers have, and delayed ones, stay", *_silent(found)]
    nodes = [node for node, _ in found.items]
    run = _at_each(client, nodes, commands.purge(name), _counted("ended"))
    return Plan(target=readable(name), says=says, run=run, confirm=readable(name))


async def _requeue_queue(client: Client, args: Json) -> Plan:
    """ENQUEUE QUEUE: all that waits for the end of its RETRY and for nothing else."""
    name, count = given_name(args, "queue"), args.get("count")
    found = await _stats(client, name)
    waiting = sum(stats.restored or 0 for _, stats in found.items if stats)
    which = f'the jobs of "{readable(name)}" that wait for the end of their RETRY'
    most = f", at most {count:,} at each" if count else ""
    says = [
        f"{which} are queued now, at {at(len(found.items))}{most}; after a restart: {waiting:,}",
        "jobs with a delay, and those that workers have as far as the nodes know, stay",
        "a worker that has had a job since before a restart may still have it: then it runs twice",
        *_silent(found),
    ]
    nodes = [node for node, _ in found.items]
    asked = commands.enqueue_queue(name, int(count) if count else None)
    return Plan(
        target=readable(name),
        says=says,
        run=_at_each(client, nodes, asked, _counted("queued")),
    )


async def _cancel(client: Client, args: Json) -> Plan:
    """CANCEL KEY at any node."""
    queue, key = given_name(args, "queue"), word(args, "key")
    which = f'the job of queue "{readable(queue)}" with the key "{readable(key)}"'

    async def run(outcome: Outcome, _tell: Tell) -> None:
        outcome.count = await client.run(commands.cancel_key(queue, key))
        (outcome.says if outcome.count else outcome.failed).append(
            "the job has ended" if outcome.count else "no job has this key"
        )

    says = [f"{which} ends wherever it is, and the key is free", "a worker that runs it cancels it"]
    return Plan(target=f"{readable(queue)} {readable(key)}", says=says, run=run)


# Dead jobs of a queue, or with a reason.


@attrs.frozen
class _Dead:
    """Those that an operation is for."""

    queue: str | None
    reason: str
    limit: int | None
    found: Found[Copy]

    @property
    def which(self) -> str:
        """In words."""
        of = f' of "{readable(self.queue)}"' if self.queue is not None else ""
        why = f' with "{self.reason}" in their reason' if self.reason else ""
        count = len(self.found.items)
        more = " or more" if self.limit is None and count >= _LOOKED_AT else ""
        return f"{count:,}{more} dead {'job' if count == 1 else 'jobs'}{of}{why}"

    @property
    def is_whole_queue(self) -> bool:
        """Are they all dead jobs of a queue?"""
        return self.queue is not None and not self.reason and self.limit is None

    @property
    def confirm(self) -> str | None:
        """For many of them, what a person must type."""
        word = readable(self.queue) if self.queue is not None else self.reason
        return word if len(self.found.items) > MANY else None


async def _dead(client: Client, args: Json) -> _Dead:
    has_queue = any(args.get(field) for field in ("queue", "queue_b64"))
    queue = given_name(args, "queue") if has_queue else None
    reason, limit = args.get("reason") or "", args.get("limit")
    if queue is None and not reason:
        raise MistakeError("name a queue, or words of the reason")
    limit = int(limit) if limit else None
    found = await Jobs(client).dead(queue, reason=reason, limit=limit or _LOOKED_AT)
    if not found.items:
        where = f' queue "{readable(queue)}"' if queue is not None else " the cluster"
        why = f' with "{reason}" in its reason' if reason else ""
        raise MistakeError(f"{where.strip()} has no dead job{why}")
    return _Dead(queue, reason, limit, found)


async def _redrive_queue(client: Client, args: Json) -> Plan:
    """REDRIVE, so many a second. The jobs that were added last come first."""
    dead, rate = await _dead(client, args), int(args.get("rate") or RATE)
    says = [f"{dead.which} are queued again as if new, {rate} a second"]

    async def steps() -> Any:
        """How many were queued, step by step."""
        queue = dead.queue
        if dead.is_whole_queue and queue is not None:
            for node in (await _nodes(client)).items:
                some = rate
                while some == rate:
                    asked = commands.redrive_queue(queue, rate)
                    yield (some := given(*await client.ask(node, [asked])))
            return
        for start in range(0, len(dead.found.items), rate):
            yield await Jobs(client).of_each(
                dead.found.items[start : start + rate], commands.redrive
            )

    async def run(outcome: Outcome, tell: Tell) -> None:
        async for some in steps():
            outcome.count += some
            outcome.says[:] = [f"queued again: {jobs_of(outcome.count)}"]
            if some >= rate:
                tell(f"redriven {outcome.count:,} of {len(dead.found.items):,}")
                await anyio.sleep(1.0)

    says += _silent(dead.found)
    return Plan(target=dead.which, says=says, run=run, confirm=dead.confirm)


async def _drop_queue(client: Client, args: Json) -> Plan:
    """End dead jobs for good: PURGE DEAD, or ACKJOB of each."""
    dead = await _dead(client, args)

    async def run(outcome: Outcome, _tell: Tell) -> None:
        if dead.is_whole_queue and dead.queue is not None:
            asked = commands.purge(dead.queue, is_dead=True)
            counts: list[int] = []

            def told(count: int) -> tuple[str, int]:
                counts.append(count)
                return f"ended {jobs_of(count)}", 0

            nodes = (await _nodes(client)).items
            await _at_each(client, nodes, asked, told)(outcome, _tell)
            outcome.count = max(counts, default=0)  # each holder of a dead job counts it
        else:
            outcome.count = await Jobs(client).of_each(dead.found.items, commands.ackjob)
            outcome.says.append(f"ended: {jobs_of(outcome.count)}")

    says = [f"{dead.which} end for good", *_silent(dead.found)]
    return Plan(target=dead.which, says=says, run=run, confirm=dead.confirm)


# Jobs.


async def _live(client: Client, args: Json) -> tuple[str, list[Copy]]:
    """The copies of a job that has not ended. Raises `MistakeError` if there is none."""
    id = word(args, "id")
    found = await Jobs(client).find(id)
    copies = [copy for copy in found.items if copy.job.state != "acked"]
    if not copies:
        raise MistakeError(f"no node that answers has {id}: it has ended, or was never added")
    return id, copies


def _one(client: Client, id: str, node: Address, make: Callable[..., Command[int]]) -> Run:
    """Tell one node of a job."""

    async def run(outcome: Outcome, _tell: Tell) -> None:
        if given(*await client.ask(node, [make(id)])):
            outcome.says.append(f"{node}: done")
            outcome.count += 1
        else:
            outcome.failed.append(f"{node}: the job has changed meanwhile, so nothing was done")

    return run


async def _requeue(client: Client, args: Json) -> Plan:
    id, copies = await _live(client, args)
    states = {copy.job.state for copy in copies}
    if "queued" in states:
        raise MistakeError(f"{id} is queued already")
    if "dead" in states:
        raise MistakeError(f"{id} is dead: redrive it")
    waiting = [c for c in copies if is_delayed(c.job) or c.job.backing_off is not None]
    copy = (waiting or copies)[0]
    says, risk = [f"{copy.node} queues it now, which counts as a further delivery"], ""
    if not waiting:
        left = copy.job.next_requeue_within or 0.0
        risk = f"a worker may have {id} for {left:.0f} s more: then it runs twice"
        says.append(risk)
    run = _one(client, id, copy.node, commands.enqueue)
    return Plan(target=id, says=says, run=run, risk=risk)


async def _acknowledge(client: Client, args: Json) -> Plan:
    id, copies = await _live(client, args)
    says = [f"the job ends at all {at(len(copies))} that have it, and is never delivered again"]
    if any(copy.job.state == "active" for copy in copies):
        says.append("a worker that runs it cancels its handler when it renews the lease")
    return Plan(target=id, says=says, run=_one(client, id, copies[0].node, commands.ackjob))


async def _nack(client: Client, args: Json) -> Plan:
    id, copies = await _live(client, args)
    active = [copy for copy in copies if copy.job.state == "active"]
    if not active:
        raise MistakeError(f"{id} is {copies[0].job.state}: no worker has it")
    says = [f"{active[0].node} queues it again as if its worker had given it back"]
    return Plan(target=id, says=says, run=_one(client, id, active[0].node, commands.nack))


def _of_dead(make: Callable[..., Command[int]], says: str) -> Callable[[Client, Json], Any]:
    async def plan(client: Client, args: Json) -> Plan:
        id, copies = await _live(client, args)
        dead = [copy for copy in copies if copy.job.state == "dead"]
        if not dead:
            raise MistakeError(f"{id} is not dead: it is {copies[0].job.state}")
        why = f"it is dead: {dead[0].reason or 'no reason given'}"
        return Plan(target=id, says=[says, why], run=_one(client, id, dead[0].node, make))

    return plan


async def _delete(client: Client, args: Json) -> Plan:
    id, copies = await _live(client, args)
    nodes = [copy.node for copy in copies]
    where = ", ".join(map(str, nodes))
    says = [f"the copies at {where} are dropped", "a node that is silent keeps its copy"]
    run = _at_each(client, nodes, commands.deljob(id), lambda n: ("dropped" if n else "gone", n))
    return Plan(target=id, says=says, run=run)


async def _trace(client: Client, args: Json) -> Plan:
    id, nodes = word(args, "id"), await _nodes(client)
    asked: Command[Any] = commands.call("TRACE", "JOB", id)
    says = [f"{at(len(nodes.items))} write down what happens to the job, for an hour"]
    run = _at_each(
        client, nodes.items, asked, lambda here: ("traced" if here else "traced if it comes", 1)
    )
    return Plan(target=id, says=[*says, *_silent(nodes)], run=run)


# Workers.


def fitting(name: str, workers: Sequence[KnownWorker]) -> list[KnownWorker]:
    """The one with this control queue, or all whose names fit the pattern."""
    by_control = [each for each in workers if each.control == name]
    return by_control or [each for each in workers if each.has_name(name)]


def _order(order: OrderName, says: str) -> Callable[[Client, Json], Any]:
    async def plan(client: Client, args: Json) -> Plan:
        admin, name = Admin(client), word(args, "worker")
        found = (await admin.workers()).items
        workers = fitting(name, found)
        if not workers:
            names = ", ".join(sorted({each.report.name for each in found}))
            raise MistakeError(f"no worker is called {name}; there are {names or 'none'}")

        async def run(outcome: Outcome, _tell: Tell) -> None:
            timeout = float(args.get("timeout") or 10.0)
            for each in await admin.order(order, *workers, timeout=timeout):
                report, answer = each.worker.report, each.answer
                told: Json = {"name": report.name, "pid": report.pid, "error": each.error}
                if answer is None:
                    outcome.failed.append(f"{report.name}: {each.error}")
                else:
                    outcome.count += 1
                    outcome.says += [
                        f"{report.name}: {order}; {jobs_of(answer.report.busy)} running",
                        *answer.stacks.splitlines(),
                    ]
                    state, busy = answer.report.state, answer.report.busy
                    told |= {"state": state, "busy": busy, "stacks": answer.stacks}
                outcome.details.append(told)

        lines = [f"{worker.report.name} {says}" for worker in workers]
        return Plan(target=name, says=lines, run=run)

    return plan


# Nodes.


@attrs.frozen
class Member:
    """A node, as the nodes that answer know it."""

    id: str
    name: str
    where: str
    node: Address | None
    """Where it answers; None if it does not."""
    flags: frozenset[str]

    @property
    def state(self) -> str:
        """In a word."""
        if self.node is not None:
            return "leaving" if "leaving" in self.flags else "up"
        return "failed" if "fail" in self.flags else "silent"


async def members(client: Client) -> list[Member]:
    """All nodes."""

    async def ask(node: Address) -> list[tuple[Address, bytes]]:
        told = given(*await client.ask(node, [commands.call("CLUSTER", "NODES")]))
        return [(node, told)] if isinstance(told, bytes) else []

    found: dict[str, Member] = {}
    for node, told in (await at_each(client, ask)).items:
        for line in lines_of(told.decode(errors="replace"), node.host):
            if "myself" in line.flags:
                found[line.id] = Member(line.id, line.name, str(node), node, line.flags)
            elif "handshake" not in line.flags:
                silent = Member(line.id, line.name, line.address, None, line.flags)
                found.setdefault(line.id, silent)
    return list(found.values())


async def _member(client: Client, args: Json) -> tuple[Member, list[Address]]:
    """The node with this name, address, id or first eight digits of that; and the others that
    answer. Raises `MistakeError`."""
    name, known = word(args, "node"), await members(client)
    fit = [each for each in known if name in (each.id, each.where)]
    fit = fit or [
        each
        for each in known
        if each.name == name or (len(name) >= _DIGITS and each.id.startswith(name))
    ]
    if len(fit) == 1:
        [one] = fit
        return one, [each.node for each in known if each.node and each is not one]
    nodes = ", ".join(f"{node_name(each.id, each.name)} {each.where}" for each in fit or known)
    which = f"{len(fit)} nodes are called" if fit else "there is no node"
    raise MistakeError(f"{which} '{name}'; there are {nodes}")


async def _reached(client: Client, args: Json) -> tuple[str, Address, list[Address]]:
    member, others = await _member(client, args)
    if member.node is None:
        raise MistakeError(f"{member.where} does not answer")
    return member.id, member.node, others


def _text(reply: Any) -> tuple[str, int]:
    text = getattr(reply, "text", reply)
    return (text.decode(errors="replace") if isinstance(text, bytes) else str(text)), 1


async def _leave(client: Client, args: Json) -> Plan:
    id, node, others = await _reached(client, args)
    says = [
        f"{node} takes no new jobs and gives its own to {at(len(others))}",
        "it can be stopped when it has no jobs left; until then, nodes stay takes it back",
    ]
    run = _at_each(client, [node], commands.call("CLUSTER", "LEAVING", "yes"), _text)
    return Plan(target=str(node), says=says, run=run, confirm=id[:_DIGITS])


async def _stay(client: Client, args: Json) -> Plan:
    _, node, _ = await _reached(client, args)
    run = _at_each(client, [node], commands.call("CLUSTER", "LEAVING", "no"), _text)
    return Plan(target=str(node), says=[f"{node} takes new jobs again and stays"], run=run)


async def _forget(client: Client, args: Json) -> Plan:
    member, others = await _member(client, args)
    says = [
        f"{at(len(others))} forget {member.where}; do this only if it is gone for good",
        "jobs of which it has the only copy are lost with it",
    ]
    run = _at_each(client, others, commands.call("CLUSTER", "FORGET", member.id), _text)
    return Plan(target=member.where, says=says, run=run, confirm=member.id[:_DIGITS])


async def _meet(client: Client, args: Json) -> Plan:
    address = word(args, "address")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise MistakeError(f"'{address}' is no address: give 10.0.0.1:7711")
    answering = (await _nodes(client)).items
    if not answering:
        raise MistakeError("no node answers")
    first = answering[0]
    asked = commands.call("CLUSTER", "MEET", host.strip("[]"), port)
    says = [f"the cluster of {first} and that of {address} become one"]
    run = _at_each(client, [first], asked, _text)
    return Plan(target=address, says=says, run=run, confirm=address)


async def _kick(client: Client, args: Json) -> Plan:
    _, node, _ = await _reached(client, args)
    connection = str(args.get("client", ""))
    if not connection.isdecimal():
        raise MistakeError(f"'{connection}' is no number of a connection")

    async def run(outcome: Outcome, _tell: Tell) -> None:
        asked = commands.call("CLIENT", "KILL", "ID", connection)
        outcome.count = int(bool(given(*await client.ask(node, [asked]))))
        (outcome.says if outcome.count else outcome.failed).append(
            f"{node}: {'ended' if outcome.count else 'the connection has gone already'}"
        )

    says = [
        f"{node} ends connection {connection}",
        "jobs that its client has come back when their lease is over; a client may connect again",
    ]
    return Plan(target=f"{node} {connection}", says=says, run=run)


# The table.

_QUEUE: Final = Argument(name="queue", about="name of the queue", is_required=True)
_REASON: Final = Argument(name="reason", about="with these words in their reason")
_LIMIT: Final = Argument(
    name="limit", about="at most so many, those added last first", kind="number", is_asked=True
)
_RATE: Final = Argument(
    name="rate", about="jobs a second", kind="number", default=RATE, is_asked=True
)
_ANY_QUEUE: Final = attrs.evolve(_QUEUE, is_required=False, is_placed=True)
_ID: Final = Argument(name="id", about="id of the job", is_required=True)
_WORKER: Final = Argument(
    name="worker", about="a worker's name, or a pattern: 'shop-*'", is_required=True
)
_TIMEOUT: Final = Argument(
    name="timeout", about="seconds to wait for answers", kind="seconds", default=10
)
_NODE: Final = Argument(
    name="node", about="name or address of the node, or the start of its id", is_required=True
)
_queues: Final = partial(Operation, family="queues")
_jobs: Final = partial(Operation, family="jobs", arguments=(_ID,))
_workers: Final = partial(Operation, family="workers", arguments=(_WORKER, _TIMEOUT))
_nodes_: Final = partial(Operation, family="nodes", arguments=(_NODE,))
_ALIVE: Final = ("queued", "active")


_SIDE: Final = Argument(
    name="side", about="input, output or both", choices=("all", "out", "in"), default="all",
    is_placed=True, is_asked=True,
)  # fmt: skip
_COUNT: Final = Argument(name="count", about="at most so many at each node", kind="number")
_KEY: Final = Argument(name="key", about="its UNIQUE key", is_required=True, is_asked=True)
_CLIENT: Final = Argument(name="client", about="number of its connection", is_required=True)
_ADDRESS: Final = Argument(
    name="address", about="address and port: 10.0.0.7:7711", is_required=True, is_asked=True
)
_TABLE: Final = (
    _queues(
        name="pause", letter="P", label="Pause", plan=_pause, arguments=(_QUEUE, _SIDE),
        about="Stop a queue's input and output, or one of them, at all nodes.",
    ),
    _queues(
        name="resume", letter="S", label="Resume", plan=_resume, arguments=(_QUEUE,),
        about="End a pause.", when=("paused",),
    ),
    _queues(
        name="requeue", letter="Q", label="Requeue", plan=_requeue_queue,
        arguments=(_QUEUE, _COUNT), about="Queue now what waits for its RETRY after a restart.",
    ),
    _queues(
        name="redrive", letter="R", label="Redrive dead jobs", plan=_redrive_queue,
        arguments=(_ANY_QUEUE, _REASON, _LIMIT, _RATE), when=("dead",),
        about="Queue dead jobs of a queue, or with a reason, again as if they were new.",
    ),
    _queues(
        name="drop", letter="X", label="Drop dead jobs", plan=_drop_queue,
        arguments=(_ANY_QUEUE, _REASON, _LIMIT), when=("dead",), is_grave=True,
        about="End dead jobs of a queue, or with a reason, for good.",
    ),
    _queues(
        name="purge", letter="D", label="Purge", plan=_purge, arguments=(_QUEUE,), is_grave=True,
        about="End all jobs that are queued in a queue.",
    ),
    _queues(
        name="cancel", letter="K", label="Cancel by key", plan=_cancel, arguments=(_QUEUE, _KEY),
        about="End the job that has a UNIQUE key, wherever it is.",
    ),
    _jobs(
        name="requeue", letter="Q", label="Requeue", plan=_requeue, when=("active",),
        about="Queue a job now that waits after a failure or for its delay.",
    ),
    _jobs(
        name="nack", letter="N", label="Give back", plan=_nack, when=("running",),
        about="Queue a job again as if its worker had given it back.",
    ),
    _jobs(
        name="acknowledge", letter="A", label="Acknowledge", plan=_acknowledge, when=_ALIVE,
        about="End a job, also while it runs.",
    ),
    _jobs(
        name="redrive", letter="R", label="Redrive", when=("dead",),
        plan=_of_dead(commands.redrive, "the job is queued again as if it were new"),
        about="Queue a dead job again as if it were new.",
    ),
    _jobs(
        name="drop", letter="X", label="Drop", when=("dead",), is_grave=True,
        plan=_of_dead(commands.ackjob, "the job ends for good"), about="End a dead job for good.",
    ),
    _jobs(
        name="delete", letter="D", label="Delete copies", plan=_delete, is_grave=True,
        about="Drop the copies of a job, without a word to nodes that are silent.",
    ),
    _jobs(
        name="trace", letter="T", label="Trace on", plan=_trace,
        about="Let all nodes write down what happens to a job, for an hour.",
    ),
    _workers(
        name="quiet", letter="Q", label="Take no more jobs", when=("running",),
        plan=_order("quiet", "takes no more jobs; those that it has go on"),
        about="Let workers take no more jobs, until resume.",
    ),
    _workers(
        name="resume", letter="S", label="Take jobs again", when=("quiet",),
        plan=_order("resume", "takes jobs again"),
        about="Let workers take jobs again, after quiet.",
    ),
    _workers(
        name="stop", letter="E", label="Stop", is_grave=True,
        plan=_order("stop", "ends when the jobs that run have ended"),
        about="End workers when the jobs that run have ended.",
    ),
    _workers(
        name="dump", letter="T", label="Dump stacks",
        plan=_order("dump", "tells where all its tasks and threads are"),
        about="Show where all tasks and threads of workers are.",
    ),
    _nodes_(
        name="leave", letter="L", label="Let it leave", plan=_leave, when=("up",), is_grave=True,
        about="Let a node give its jobs to the others, so that it can be stopped.",
    ),
    _nodes_(
        name="stay", letter="S", label="Stay", plan=_stay, when=("leaving",),
        about="Let a node that leaves stay.",
    ),
    _nodes_(
        name="forget", letter="F", label="Forget", plan=_forget, is_grave=True,
        about="Let the others forget a node that is gone for good.",
    ),
    _nodes_(
        name="kick", letter="K", label="Kick", plan=_kick, arguments=(_NODE, _CLIENT),
        about="End a client's connection to a node.",
    ),
    _nodes_(
        name="meet", letter="M", label="Meet a node", plan=_meet, arguments=(_ADDRESS,),
        is_grave=True, about="Join another node, and its cluster.",
    ),
)  # fmt: skip
OPERATIONS: Final[Mapping[str, Operation]] = {each.key: each for each in _TABLE}
"""By key."""


def found(key: object) -> Operation:
    """The operation with this key. Raises `MistakeError`."""
    if not isinstance(key, str) or key not in OPERATIONS:
        raise MistakeError(f"there is no operation '{key}': {', '.join(OPERATIONS)}")
    return OPERATIONS[key]


def fields_of(args: Mapping[str, object]) -> Json:
    """Arguments of a program or of a command line, as a browser would give them."""
    told: Json = {}
    for name, value in args.items():
        told |= name_fields(value, name) if isinstance(value, str) else {name: value}
    return told
