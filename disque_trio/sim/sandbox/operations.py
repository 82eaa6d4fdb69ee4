"""The operations on the cluster, by name. An operation checks its arguments before it has any
effect, and returns a description of the effect."""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from disque_trio.sim.fault_controls import fault_at, number_of
from disque_trio.sim.picture.plan_words import duration
from disque_trio.sim.sandbox.args import Args, OperationError, in_order
from disque_trio.sim.sandbox.context import Context
from disque_trio.sim.sandbox.manual_client import ANSWERS, AddedWorker
from disque_trio.sim.scenarios.plan import Add, Fault
from disque_trio.sim.workload.operators import Word
from disque_trio.terminal.counting import counted

NAME: Final = 100
"""The longest name of a queue, in characters."""
BODY: Final = 1000
JOBS: Final = 100
"""The most jobs of one operation."""
MOST_WORKERS: Final = 20
"""The most workers at the same time."""
_HOUR_MS: Final = 3_600_000
_DAY_S: Final = 86_400

# Links.


def _cut(context: Context, args: Args) -> str:
    """Cut all links between groups of nodes, or one link in one direction."""
    if not args.has("sides"):
        source, target = args.node("source"), args.node("target")
        if source == target:
            raise OperationError(f"{source} has no link to itself")
        fault = Fault(kind="cut", links=((number_of(source), number_of(target)),))
        return context.begin(f"{source} → {target} is cut, one way", fault)
    sides = args.sides("sides")
    groups = tuple(tuple(number_of(node) for node in side) for side in sides)
    words = " | ".join(" ".join(in_order(side)) for side in sides)
    return context.begin(f"cut: {words}", Fault(kind="partition", groups=groups))


def _heal(context: Context, args: Args) -> str:
    """End one fault by its number, or all faults."""
    going_on = context.going_on()
    number = args.optional("fault", 1, len(context.begun) or 1)
    ending = [each for each in going_on if number in {None, each.number}]
    if not ending:
        raise OperationError(
            "there is nothing to heal" if number is None else "it has already ended"
        )
    if number is not None and ending[0].fault.kind == "leave":
        [of] = ending[0].fault.nodes
        _check_up(context, f"n{of}")
    context.end(*ending)
    return f"healed: {'; '.join(each.words for each in ending)}"


# Processes.


def _kill(context: Context, args: Args) -> str:
    node = _running(context, args)
    _end_all(context, "pause", node)
    return context.begin(f"{node} is killed", _killed(node, "crash"))


def _restart(context: Context, args: Args) -> str:
    """Start the node if it is down; otherwise kill it and start it again."""
    node = args.node()
    if _end_all(context, "crash", node):
        return f"{node} is started again"
    _end_all(context, "pause", node)
    context.sim.restart(node)
    return context.note(f"{node} is killed and started again", _killed(node, "restart"))


def _killed(node: str, kind: str) -> Fault:
    return attrs.evolve(fault_at(node, kind), mode="kill")


def _pause(context: Context, args: Args) -> str:
    node = _running(context, args)
    if context.is_paused(node):
        raise OperationError(f"{node} is already paused")
    return context.begin(f"{node} is paused", fault_at(node, "pause"))


def _resume(context: Context, args: Args) -> str:
    node = args.node()
    if not _end_all(context, "pause", node):
        raise OperationError(f"{node} is not paused")
    return f"{node} resumes"


def _slow(context: Context, args: Args) -> str:
    """Make each batch of inputs take this long; 0 restores the normal speed."""
    node, ms = args.node(), args.number("ms", 0, 10_000)
    was_slow = _end_all(context, "slow", node)
    if not ms:
        if not was_slow:
            raise OperationError(f"{node} is not slow")
        return f"{node} has its normal speed again"
    return context.begin(f"{node} takes {ms} ms for each batch", fault_at(node, "slow", ms))


def _clock(context: Context, args: Args) -> str:
    """Make the wall clock jump."""
    node, ms = args.node(), args.number("ms", -_HOUR_MS, _HOUR_MS)
    context.sim.step_clock(node, ms)
    way = "forward" if ms >= 0 else "back"
    words = f"{node}'s wall clock jumps {duration(abs(ms) * 1000)} {way}"
    return context.note(words, fault_at(node, "clock-step", ms))


def _leave(context: Context, args: Args) -> str:
    node = _running(context, args)
    if context.of("leave", node):
        raise OperationError(f"{node} is already leaving")
    return context.begin(f"{node} announces that it leaves", fault_at(node, "leave"))


def _running(context: Context, args: Args) -> str:
    node = args.node()
    _check_up(context, node)
    return node


def _check_up(context: Context, node: str) -> None:
    if not context.is_up(node):
        raise OperationError(f"{node} is down: restart it first")


def _end_all(context: Context, kind: str, node: str) -> bool:
    """Undo the faults of this kind at the node. Return whether there were any."""
    found = context.of(kind, node)
    context.end(*found)
    return bool(found)


# Clients.


def _add(context: Context, args: Args) -> str:
    node, queue = args.node(), args.text("queue", "mail", NAME)
    body, count = args.text("body", "hello", BODY), args.number("count", 1, JOBS, 1)
    names = ("replicate", "retry", "delay", "ttl")
    bounds = {"replicate": (1, len(context.nodes)), "ttl": (1, _DAY_S)}
    options = {name: args.optional(name, *bounds.get(name, (0, _DAY_S))) for name in names}
    is_async = args.flag("is_async", default=False)
    words: list[Word] = [
        word for name, value in options.items() if value is not None for word in (name, value)
    ]
    arguments = " ".join(str(word).upper() for word in words) + (" ASYNC" if is_async else "")
    for _ in range(count):
        # Each job gets another body, because jobs with the same body cannot be distinguished.
        each = f"{body} {len(context.added) + 1}"
        rest = [*words, "ASYNC"] if is_async else words
        text = f"ADDJOB {queue} {arguments}".rstrip()
        context.client.ask(node, "ADDJOB", queue, each, 1000, *rest, text=text)
        context.added.append(_as_planned(context, node, queue, each, options, is_async=is_async))
    many = "a job" if count == 1 else counted(count, "job")
    return f"{many} to {node}, queue {queue} {arguments}".rstrip()


def _as_planned(
    context: Context,
    node: str,
    queue: str,
    body: str,
    options: Mapping[str, int | None],
    *,
    is_async: bool,
) -> Add:
    return Add(
        at=context.sim.now,
        node=number_of(node),
        producer=f"hand-{node}",
        queue=queue,
        body=body,
        replicate=options["replicate"],
        retry_s=options["retry"],
        delay_s=options["delay"],
        ttl_s=options["ttl"],
        is_async=is_async,
    )


def _take(context: Context, args: Args) -> str:
    node, queue = args.node(), args.text("queue", "mail", NAME)
    count = args.number("count", 1, JOBS, 1)
    wait = args.number("wait", 0, _HOUR_MS, 10_000)
    context.client.take(node, queue, count, wait)
    until = f", waiting for {duration(wait * 1000)} at most" if wait else ""
    return f"a job of queue {queue} is taken at {node}{until}"


def _answer(context: Context, args: Args) -> str:
    """Acknowledge a job in hand, return it, ask for a renewal, or forget it."""
    node, job, how = args.node(), args.text("job", "", NAME), args.text("how", "ack", NAME)
    if not any((each.job, each.node) == (job, node) for each in context.client.held_jobs()):
        raise OperationError(f"you do not hold the job at {node}")
    if how == "drop":
        context.client.drop(job, node)
        return f"{_short(job)} is forgotten, as by a worker that dies"
    if how not in ANSWERS:
        raise OperationError(f"'{how}' is not one of {', '.join([*ANSWERS, 'drop'])}")
    context.client.answer(how, job, node)
    return f"{ANSWERS[how]} {_short(job)} at {node}"


def _add_worker(context: Context, args: Args) -> str:
    node, queue = args.node(), args.text("queue", "mail", NAME)
    work, acks = args.number("work", 1, _HOUR_MS, 200), args.flag("acks", default=True)
    if len([each for each in context.client.workers if each.until is None]) >= MOST_WORKERS:
        raise OperationError(f"{MOST_WORKERS} workers are the most: remove one")
    name = context.client.add_worker(node, queue, work * 1000, acks=acks)
    ending = "then acknowledges it" if acks else "and never acknowledges it"
    return f"{name} at {node} works {duration(work * 1000)} on each job of {queue}, {ending}"


def _remove_worker(context: Context, args: Args) -> str:
    worker = args.text("worker", "", NAME)
    found = [each for each in context.client.workers if _is(each, worker)]
    if not found:
        raise OperationError(f"there is no worker {worker!r}")
    context.client.remove_worker(found[0])
    return f"{worker} exits, and drops the job that it runs"


def _is(workers: AddedWorker, name: str) -> bool:
    return workers.plan.name == name and workers.until is None


def _short(job: str) -> str:
    return job[:17]


Operation = Callable[[Context, Args], str]

OPERATIONS: Final[Mapping[str, Operation]] = {
    "cut": _cut,
    "heal": _heal,
    "kill": _kill,
    "restart": _restart,
    "pause": _pause,
    "resume": _resume,
    "slow": _slow,
    "clock": _clock,
    "leave": _leave,
    "add": _add,
    "take": _take,
    "answer": _answer,
    "add-worker": _add_worker,
    "remove-worker": _remove_worker,
}
"""By name."""
