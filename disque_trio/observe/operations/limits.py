"""Plans of the operations on the limits of queues (decision 136).

A setting is sent to one node and spreads to the others: the latest setting is valid in the cluster.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import QueueInfo, QueueLimits
from disque_trio.observe.operations.members import Names, members, names_of
from disque_trio.observe.operations.operation import LATER, Argument, silent
from disque_trio.observe.values import Json, given_name, readable
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.statemachine.commandoptions import MOST_LIMIT
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import Found, unwrap
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report
from disque_trio.worker.operating.queues import Queues

KNOWN_S: Final = 2.0
"""The maximum time to wait until all nodes that answer have a setting."""
_AGAIN_S: Final = 0.05
_number: Final = partial(Argument, kind="number", least=1, most=MOST_LIMIT, is_asked=True)
ARGUMENTS: Final = (
    _number(name="concurrency", about="maximum number of leased jobs"),
    _number(name="rate", about="maximum number of deliveries per period"),
    Argument(
        name="per", about="length of the period in seconds; 1 by default",
        kind="seconds", least=0.001, most=LONGEST_PERIOD_S, is_asked=True,
    ),
    _number(name="burst", about="maximum number of deliveries at once after a pause"),
    Argument(
        name="is_loose", about="each side of a partition uses the whole limits", kind="flag",
        is_asked=True,
    ),
    _number(name="group_concurrency", about="maximum number of leased jobs of each group"),
    _number(name="group_rate", about="maximum number of deliveries of each group per period"),
    Argument(
        name="group_per", about="length of the period in seconds; 1 by default",
        kind="seconds", least=0.001, most=LONGEST_PERIOD_S, is_asked=True,
    ),
    _number(name="group_burst", about="maximum number of them at once after a pause"),
)  # fmt: skip
"""The arguments of new limits."""


@attrs.frozen
class _Now:
    """The limits that nodes report before the operation."""

    found: Found[tuple[Address, QueueInfo | None]]
    names: Names
    unlimited: list[str]
    """The names of nodes that do not support limits."""

    @property
    def knowing(self) -> list[Address]:
        """The nodes that support limits."""
        return [node for node, info in self.found.items if info is not None]

    @property
    def infos(self) -> list[QueueInfo]:
        """The reports of these nodes."""
        return [info for _, info in self.found.items if info is not None]

    @property
    def before(self) -> list[QueueLimits]:
        """The limits that nodes have now: several while a change spreads, or in a partition."""
        return list(dict.fromkeys([each.limits for each in self.infos if each.limits]))

    @property
    def leased(self) -> int:
        """The number of leased jobs of the queue, if it has limits."""
        return sum(each.leased for each in self.infos)

    @property
    def missing(self) -> list[str]:
        """Lines about nodes that will enforce the setting later, or never."""
        silent_ = silent(self.found.unreached, self.names, LATER)
        without = "does not support limits, and delivers without them"
        return [*silent_, *(f"{name} {without}" for name in self.unlimited)]


async def _now(client: Client, queue: str) -> _Now:
    found, names = await Queues(client).limits(queue), await names_of(client)
    unlimited = [names(node) for node, info in found.items if info is None]
    unreached = {names(node) for node in found.unreached}  # the others cannot know their features
    known = {each.id: names(each.where) for each in await members(client)}
    for _, info in found.items:
        ids = () if info is None else info.unlimited_nodes
        unlimited += [known.get(id, id[:8]) for id in ids]
    known_to_lack = [name for name in dict.fromkeys(unlimited) if name not in unreached]
    now = _Now(found, names, known_to_lack)
    if not now.knowing:
        raise MistakeError("no node that answers supports limits", "upgrade the nodes")
    return now


def _wanted(args: Json) -> QueueLimits:
    """Return the limits. Raise `MistakeError` for invalid ones."""
    of_queue, of_group = _counts(args, ""), _counts(args, "group_")
    limits = QueueLimits(*of_queue, bool(args.get("is_loose")), *of_group)
    if not limits.is_set:
        raise MistakeError(
            "give concurrency or rate, of the queue or of its groups; queues unlimit removes limits"
        )
    return limits


def _counts(args: Json, of: str) -> tuple[int, int, float, int]:
    """Return the limits of the queue, or of each group (`of` is a prefix)."""
    concurrency, rate, per, burst = (
        args.get(of + name) for name in ("concurrency", "rate", "per", "burst")
    )
    if (per or burst) and not rate:
        raise MistakeError(f"{of}{'burst' if burst else 'per'} needs {of}rate")
    seconds = round(float(per or 1.0), 3) if rate else 0.0
    return int(concurrency or 0), int(rate or 0), seconds, int(burst or 0)


async def limit(client: Client, args: Json) -> Plan:
    """Plan QUEUE LIMIT, which replaces the whole setting."""
    name, wanted = given_name(args, "queue"), _wanted(args)
    now = await _now(client, name)
    lines = [f'queue "{readable(name)}" has these limits in the whole cluster: {wanted}']
    lines += [f"its current limits end: {each}" for each in now.before if each != wanted]
    if now.before == [wanted]:
        lines.append("it already has these limits")
    if wanted.is_loose:
        lines.append("in a partition, each side uses the whole limits")
    if wanted.concurrency and now.leased > wanted.concurrency:
        lines.append(
            f"{counted(now.leased, 'job is', 'jobs are')} leased: "
            f"none is delivered until fewer than {wanted.concurrency} are"
        )
    lines += [
        "jobs beyond the limits wait in the queue; none is refused",
        "a worker that starts sets the limits that its app declares (app.limit)",
        *now.missing,
    ]
    asked = commands.limit_queue(
        name,
        concurrency=wanted.concurrency or None,
        rate=wanted.rate or None,
        per=wanted.rate_per or None,
        burst=wanted.burst or None,
        is_loose=wanted.is_loose,
        group_concurrency=wanted.group_concurrency or None,
        group_rate=wanted.group_rate or None,
        group_per=wanted.group_rate_per or None,
        group_burst=wanted.group_burst or None,
    )
    run = _run(client, now, asked, name, wanted)
    target = f"{readable(name)}: {wanted}"
    return Plan(target=target, says=lines, run=run, unasked=now.missing)


async def unlimit(client: Client, args: Json) -> Plan:
    """Plan QUEUE LIMIT queue NONE."""
    name = given_name(args, "queue")
    now = await _now(client, name)
    if not now.before:
        raise MistakeError(f'queue "{readable(name)}" has no limits')
    lines = [
        *(f'queue "{readable(name)}" loses these limits: {each}' for each in now.before),
        "jobs that wait because of them are delivered to waiting clients at once",
        "a worker that starts sets the limits that its app declares (app.limit)",
        *now.missing,
    ]
    run = _run(client, now, commands.limit_queue(name), name, None)
    return Plan(target=readable(name), says=lines, run=run, unasked=now.missing)


def _run(client: Client, now: _Now, asked: Any, queue: str, wanted: QueueLimits | None) -> Any:
    async def run(outcome: Outcome, _report: Report) -> None:
        await _send(client, now.knowing, asked)
        outcome.count = 1
        late = await _wait(client, queue, wanted)
        done = "set" if wanted else "removed"
        outcome.says.append(
            f"the limits are {done} at {counted(len(now.knowing) - len(late), 'node')}"
        )
        for node in late:
            outcome.says.append(f"{now.names(node)} has not applied the change yet")

    return run


async def _send(client: Client, nodes: Sequence[Address], asked: Any) -> None:
    """Send the command to the first node that supports limits and answers."""
    for node in nodes[:-1]:
        try:
            unwrap(*await client.ask(node, [asked]))
        except DisqueError:
            continue
        return
    unwrap(*await client.ask(nodes[-1], [asked]))


async def _wait(client: Client, queue: str, wanted: QueueLimits | None) -> list[Address]:
    """Wait until all nodes that answer and support limits have the setting; return those that do
    not."""
    late: list[Address] = []
    with anyio.move_on_after(KNOWN_S):
        while True:
            found = await Queues(client).limits(queue)
            late = [node for node, info in found.items if info and info.limits != wanted]
            if not late:
                break
            await anyio.sleep(_AGAIN_S)
    return late
