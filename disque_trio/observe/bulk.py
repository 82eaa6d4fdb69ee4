"""One operation for all jobs that match a filter: one plan, one outcome."""

from collections import Counter
from typing import Final

from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.observe.operations.members import names_of
from disque_trio.observe.operations.operation import (
    MANY,
    Operation,
    each_once,
    silent,
    unanswered,
)
from disque_trio.observe.values import Json
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report

_EVERY: Final = 50
"""The number of jobs between two progress reports."""
_KINDS: Final = 5
"""The maximum number of kinds of outcomes that are listed."""


async def planned(operation: Operation, client: Client, jobs: Found[str], args: Json) -> Plan:
    """Return the plan of the operation for the jobs with these ids. Raise `MistakeError` if the
    operation applies to none of them."""
    if operation.family != "jobs":
        raise MistakeError(
            f"'{operation.key}' cannot run for jobs that match a filter: it is not an operation on "
            "a job"
        )
    plans, refused, lines = [], Counter[str](), Counter[str]()
    names = await names_of(client)
    unasked = silent(jobs.unreached, names, "jobs that only it has are left out")
    for id in jobs.items:
        try:
            plan = await operation.planned(client, {**args, "id": id})
        except (MistakeError, DisqueError) as error:
            refused[str(error).replace(id, "the job")] += 1
        else:
            plans.append(plan)
            effects = [each for each in plan.says if each not in plan.unasked]
            lines.update(each.replace(id, "the job") for each in effects)
            unasked += plan.unasked
    if not plans:
        why = "; ".join(_counted(refused)) or "no job matches the filter"
        raise MistakeError(why + unanswered(jobs.unreached, names))

    async def run(outcome: Outcome, report: Report) -> None:
        done, failed = Counter[str](), Counter[str]()
        for number, plan in enumerate(plans, 1):
            one = Outcome()
            try:
                await plan.run(one, lambda _: None)
            except DisqueError as error:
                one.failed.append(str(error))
            outcome.count += one.count
            done.update({_effect(line) for line in one.says})
            failed.update(each.replace(plan.target, "the job") for each in one.failed)
            outcome.says[:] = [f"{counted(n, 'job')} {text}" for text, n in done.most_common()]
            outcome.failed[:] = _counted(failed)
            if number % _EVERY == 0:
                report(f"{number:,} of {counted(len(plans), 'job')}")

    count, unasked = len(plans), each_once(unasked)
    return Plan(
        target=counted(count, "matching job"),
        says=[
            f"{operation.label}: {counted(count, 'job')}",
            *_counted(lines),
            *(f"skipped: {each}" for each in _counted(refused)),
            *(["there may be more matching jobs: repeat the operation for them"] * jobs.is_cut),
            *unasked,
        ],
        run=run,
        unasked=unasked,
        confirm=str(count) if count > MANY or operation.is_grave else None,
    )


def _effect(line: str) -> str:
    """Return the line without the name of the node, so that a job is counted once."""
    return line.partition(": ")[2] or line


def _counted(lines: Counter[str]) -> list[str]:
    """Return each line once, with how often it occurred; if there are many, the most frequent
    ones."""
    texts = [f"{times:,} × {text}" if times > 1 else text for text, times in lines.most_common()]
    more = len(texts) - _KINDS
    return [*texts[:_KINDS], f"and {counted(more, 'more kind')}"] if more > 0 else texts
