"""What the console can do with a queue."""

from collections.abc import Mapping
from typing import Final, get_args

import anyio

from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.observe.observer import Observer
from disque_trio.observe.plans import Outcome, Plan, Run, Tell, answering, at
from disque_trio.observe.survey import KnownNode
from disque_trio.observe.values import Json, MistakeError, given_name, readable
from disque_trio.worker.operating.asking import given
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.queues import Queues, Stopped

MANY: Final = 100
"""To redrive more dead jobs the queue's name must be typed."""
RATE: Final = 50
"""Jobs a second that are redriven if no rate is given."""


_MODES: Final[tuple[Stopped, ...]] = get_args(Stopped)
_STOPS: Final[Mapping[str, str]] = {
    "in": 'new jobs of queue "{}" are refused',
    "out": 'deliveries of queue "{}" stop',
    "all": 'queue "{}" takes no jobs and delivers none',
    "none": 'queue "{}" takes and delivers jobs again',
}


async def pause(observer: Observer, args: Json) -> Plan:
    """PAUSE at each node."""
    name, given_mode = given_name(args, "queue"), args.get("mode")
    mode = next((each for each in _MODES if each == given_mode), None)
    if mode is None:
        raise MistakeError(f"'{given_mode}' is not one of in, out, all and none")
    nodes, silent = await answering(observer)

    async def run(outcome: Outcome, _tell: Tell) -> None:
        found = await Queues(observer.client).pause(name, mode)
        outcome.says += [f"{node}: {mode}" for node in found.items]
        outcome.failed += [f"{node}: {why}" for node, why in found.unreached.items()]

    forgets = [] if mode == "none" else ["a node that is started again forgets it"]
    says = [f"{_STOPS[mode].format(readable(name))} at {at(len(nodes))}", *forgets, *silent]
    return Plan(target=f"{readable(name)} {mode}", says=says, run=run)


async def purge(observer: Observer, args: Json) -> Plan:
    """PURGE at each node."""
    name = given_name(args, "queue")
    nodes, silent = await answering(observer)
    await observer.counts.renew([name])
    parts = observer.counts.parts.get(name, {})
    jobs = sum(part.stats.length for part in parts.values())

    ends = f'the {jobs:,} jobs that are queued in "{readable(name)}" end, and are never delivered'
    says = [ends, "jobs that workers have, and delayed ones, stay", *silent]
    run = _at_each(observer, nodes, commands.purge(name), "ended")
    return Plan(target=readable(name), says=says, run=run, confirm=readable(name))


async def enqueue(observer: Observer, args: Json) -> Plan:
    """ENQUEUE QUEUE: all that waits for the end of its RETRY and for nothing else."""
    name = given_name(args, "queue")
    nodes, silent = await answering(observer)
    await observer.counts.renew([name])
    parts = observer.counts.parts.get(name, {}).values()
    waiting = sum(part.stats.restored or 0 for part in parts)

    which = f'the jobs of "{readable(name)}" that wait for the end of their RETRY'
    says = [
        f"{which} are queued now, at {at(len(nodes))}; after a restart: {waiting:,}",
        "jobs with a delay, and those that workers have as far as the nodes know, stay",
        "a worker that has had a job since before a restart may still have it: then it runs twice",
        *silent,
    ]
    run = _at_each(observer, nodes, commands.enqueue_queue(name), "queued")
    return Plan(target=readable(name), says=says, run=run)


def _at_each(observer: Observer, nodes: list[KnownNode], asked: Command[int], done: str) -> Run:
    """Ask each node, and report how many jobs it has `done`."""

    async def run(outcome: Outcome, _tell: Tell) -> None:
        for node in nodes:
            try:
                [told] = await observer.client.ask(node.address, [asked])
                outcome.says.append(f"{node.where}: {done} {given(told):,}")
            except DisqueError as error:
                outcome.failed.append(f"{node.where}: {error}")

    return run


async def redrive(observer: Observer, args: Json) -> Plan:
    """REDRIVE at one node after the other, at most so many a second."""
    name = given_name(args, "queue")
    rate, limit = _count(args, "rate") or RATE, _count(args, "limit")
    nodes, silent = await answering(observer)
    found = await Jobs(observer.client).dead(name, limit=limit or 1000)
    count = len(found.items)
    if not count:
        raise MistakeError(f'queue "{readable(name)}" has no dead jobs')
    most = f"up to {limit:,}" if limit else ("all" if count < 1000 else "all (1,000 or more)")
    says = [
        f'{most} dead jobs of "{readable(name)}" are queued again as if new, {rate} a second',
        f"found: {count:,}",
        *silent,
    ]

    async def run(outcome: Outcome, tell: Tell) -> None:
        left, done = limit, 0
        for node in nodes:
            while left is None or left > 0:
                asked = commands.redrive_queue(name, min(rate, left or rate))
                try:
                    some = given(*await observer.client.ask(node.address, [asked]))
                except DisqueError as error:
                    outcome.failed.append(f"{node.where}: {error}")
                    break
                done += some
                left = None if left is None else left - some
                outcome.says[:] = [f"queued again: {done:,}"]
                if some < rate:
                    break
                tell(f"redriven {done:,} of {count:,}")
                await anyio.sleep(1.0)
        outcome.says[:] = [f"queued again: {done:,}"]

    confirm = readable(name) if count > MANY else None
    return Plan(target=readable(name), says=says, run=run, confirm=confirm)


def _count(args: Json, field: str) -> int | None:
    value = args.get(field)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1_000_000:
        raise MistakeError(f"'{field}' is not a number from 1 to 1,000,000")
    return value
