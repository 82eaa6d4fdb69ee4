"""Plans of the operations on flows."""

from collections import Counter

from disque_trio.client.client import Client
from disque_trio.observe.flows import reader
from disque_trio.observe.operations.members import names_of
from disque_trio.observe.operations.operation import answering, silent, unanswered
from disque_trio.observe.values import Json, readable, word
from disque_trio.terminal.counting import counted
from disque_trio.worker.flows import asking
from disque_trio.worker.flows.handles import EnqueuedFlow, FlowStatus
from disque_trio.worker.operating.plans import (
    MistakeError,
    Outcome,
    Plan,
    Report,
    SilentNodeError,
)

_OVER = ("done", "cancelled", "unknown")


async def _found(client: Client, args: Json) -> tuple[EnqueuedFlow, FlowStatus, list[str]]:
    """Return a flow, its status, and lines about nodes that did not answer. Raise `MistakeError` if
    no node has the flow, or `SilentNodeError` if one that does not answer may have it."""
    id = word(args, "id")
    flow = await asking.find(reader(), client, id)
    unreached, names = (await answering(client)).unreached, await names_of(client)
    if flow is None:
        why = f"no node that answers has flow {id}: it has ended, or was never added"
        error = SilentNodeError if unreached else MistakeError
        raise error(why + unanswered(unreached, names))
    left_out = silent(unreached, names, "members that only it has are left out")
    return flow, await asking.status(flow, client), left_out


def _tasks(status: FlowStatus, *states: str) -> str:
    """Return the number of members in these states, by task."""
    tasks = Counter(each.task for each in status.members if each.state in states)
    return ", ".join(f"{count} {readable(task)}" for task, count in tasks.most_common())


async def cancel(client: Client, args: Json) -> Plan:
    """Plan to add the mark that cancels the flow; the coordinator reads it."""
    flow, status, unasked = await _found(client, args)
    if status.state in _OVER:
        raise MistakeError(f"flow {flow.id} has ended: {status.state}")
    live = ("waiting", "leased", "backing-off")
    ending = _tasks(status, *live)
    lines = [
        f"not added: {_tasks(status, 'pending') or 'none, because all members have been'}",
        f"cancelled, because they wait or run: {ending or 'none'}",
        f'this takes up to 15 s if a worker serves queue "{readable(flow.place[0])}"',
    ]
    if status.dead:
        lines.append(f"dead members stay: {_tasks(status, 'dead')}")

    async def run(outcome: Outcome, _report: Report) -> None:
        if await asking.cancel(flow, client):
            outcome.says.append("the flow is cancelled")
            outcome.count = 1
        else:
            outcome.failed.append("the flow has ended meanwhile")

    return Plan(target=flow.id, says=[*lines, *unasked], run=run, unasked=unasked)


async def retry(client: Client, args: Json) -> Plan:
    """Plan a REDRIVE of each dead member."""
    flow, status, unasked = await _found(client, args)
    if not status.dead:
        raise MistakeError(f"no member of flow {flow.id} is dead")
    lines = [
        f"enqueued with all their attempts: {_tasks(status, 'dead')}",
        "the members that follow are added when these are done",
    ]

    async def run(outcome: Outcome, _report: Report) -> None:
        outcome.count = await asking.retry(flow, client)
        outcome.says.append(f"redriven: {counted(outcome.count, 'job')}")

    return Plan(target=flow.id, says=[*lines, *unasked], run=run, unasked=unasked)
