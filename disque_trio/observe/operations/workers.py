"""Plans of orders to workers."""

from collections.abc import Callable, Sequence
from typing import Any

from disque_trio.client.client import Client
from disque_trio.observe.operations.members import names_of
from disque_trio.observe.operations.operation import silent, unanswered
from disque_trio.observe.values import Json, word
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.admin import Admin, KnownWorker
from disque_trio.worker.operating.notes import OrderName
from disque_trio.worker.operating.plans import (
    MistakeError,
    Outcome,
    Plan,
    Report,
    SilentNodeError,
)


def fitting(name: str, workers: Sequence[KnownWorker]) -> list[KnownWorker]:
    """Return the worker with this control queue, or all whose names match the pattern."""
    by_control = [each for each in workers if each.control == name]
    return by_control or [each for each in workers if each.has_name(name)]


def ordered(order: OrderName, effect: str) -> Callable[[Client, Json], Any]:
    """Return a plan function for an operation. `effect` describes what the worker does."""

    async def plan(client: Client, args: Json) -> Plan:
        admin, name = Admin(client), word(args, "worker")
        found, nodes = await admin.workers(), await names_of(client)
        workers = fitting(name, found.items)
        if not workers:
            names = ", ".join(sorted({each.report.name for each in found.items}))
            why = f"no worker has the name {name}; there are {names or 'none'}"
            error = SilentNodeError if found.unreached else MistakeError
            raise error(why + unanswered(found.unreached, nodes))
        is_one = any(each.control == name for each in workers)
        then = "workers that only it knows are left out"
        unasked = [] if is_one else silent(found.unreached, nodes, then)

        async def run(outcome: Outcome, _report: Report) -> None:
            timeout = float(args.get("timeout") or 10.0)
            for each in await admin.order(order, *workers, timeout=timeout):
                report, answer = each.worker.report, each.answer
                row: Json = {"name": report.name, "pid": report.pid, "error": each.error}
                if answer is None:
                    outcome.failed.append(f"{report.name}: {each.error}")
                else:
                    outcome.count += 1
                    running = counted(answer.report.busy, "job")
                    outcome.says.append(f"{report.name}: {order}; {running} running")
                    outcome.says.extend(answer.stacks.splitlines())
                    state, busy = answer.report.state, answer.report.busy
                    row |= {"state": state, "busy": busy, "stacks": answer.stacks}
                outcome.details.append(row)

        lines = [f"{worker.report.name} {effect}" for worker in workers]
        return Plan(target=name, says=[*lines, *unasked], run=run, unasked=unasked)

    return plan
