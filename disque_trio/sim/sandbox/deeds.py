"""What a person can do to the cluster, by name. A deed checks its arguments before it does
anything, and says in words what it has done."""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from disque_trio.sim.picture.plan_words import duration
from disque_trio.sim.sandbox.args import Args, DeedError, in_order
from disque_trio.sim.sandbox.hands import ANSWERS, Hired
from disque_trio.sim.sandbox.stage import Stage
from disque_trio.sim.scenarios.plan import Add, Fault
from disque_trio.sim.verbs import fault_at, number_of
from disque_trio.sim.workload.operators import Word

NAME: Final = 100
"""Letters of a queue's name."""
BODY: Final = 1000
JOBS: Final = 100
"""Jobs of one deed."""
HIRED: Final = 20
"""Workers at the same time."""
_HOUR_MS: Final = 3_600_000
_DAY_S: Final = 86_400

# Links.


def _cut(stage: Stage, args: Args) -> str:
    """All links between groups of nodes, or one link in one direction."""
    if not args.has("sides"):
        source, target = args.node("source"), args.node("target")
        if source == target:
            raise DeedError(f"{source} has no link to itself")
        fault = Fault(kind="cut", links=((number_of(source), number_of(target)),))
        return stage.begin(f"{source} → {target} is cut, one way", fault)
    sides = args.sides("sides")
    groups = tuple(tuple(number_of(node) for node in side) for side in sides)
    words = " | ".join(" ".join(in_order(side)) for side in sides)
    return stage.begin(f"cut: {words}", Fault(kind="partition", groups=groups))


def _heal(stage: Stage, args: Args) -> str:
    """One fault by its number, or all."""
    going_on = stage.going_on()
    number = args.optional("fault", 1, len(stage.begun) or 1)
    ending = [each for each in going_on if number in {None, each.number}]
    if not ending:
        raise DeedError("nothing is to be healed" if number is None else "it has ended already")
    if number is not None and ending[0].fault.kind == "leave":
        [of] = ending[0].fault.nodes
        _check_up(stage, f"n{of}")
    stage.end(*ending)
    return f"healed: {'; '.join(each.words for each in ending)}"


# Processes.


def _kill(stage: Stage, args: Args) -> str:
    node = _running(stage, args)
    _end_all(stage, "pause", node)
    return stage.begin(f"{node} is killed", _killed(node, "crash"))


def _restart(stage: Stage, args: Args) -> str:
    """Start it if it is down; else kill it and start it."""
    node = args.node()
    if _end_all(stage, "crash", node):
        return f"{node} is started again"
    _end_all(stage, "pause", node)
    stage.sim.restart(node)
    return stage.note(f"{node} is killed and started again", _killed(node, "restart"))


def _killed(node: str, kind: str) -> Fault:
    return attrs.evolve(fault_at(node, kind), mode="kill")


def _pause(stage: Stage, args: Args) -> str:
    node = _running(stage, args)
    if stage.is_paused(node):
        raise DeedError(f"{node} is paused already")
    return stage.begin(f"{node} is paused", fault_at(node, "pause"))


def _resume(stage: Stage, args: Args) -> str:
    node = args.node()
    if not _end_all(stage, "pause", node):
        raise DeedError(f"{node} is not paused")
    return f"{node} goes on"


def _slow(stage: Stage, args: Args) -> str:
    """Each batch of inputs takes so long; 0 is as fast as ever."""
    node, ms = args.node(), args.number("ms", 0, 10_000)
    was_slow = _end_all(stage, "slow", node)
    if not ms:
        if not was_slow:
            raise DeedError(f"{node} is not slow")
        return f"{node} is fast again"
    return stage.begin(f"{node} takes {ms} ms for each batch", fault_at(node, "slow", ms))


def _clock(stage: Stage, args: Args) -> str:
    """The wall clock jumps."""
    node, ms = args.node(), args.number("ms", -_HOUR_MS, _HOUR_MS)
    stage.sim.step_clock(node, ms)
    way = "forward" if ms >= 0 else "back"
    words = f"{node}'s wall clock jumps {duration(abs(ms) * 1000)} {way}"
    return stage.note(words, fault_at(node, "clock-step", ms))


def _leave(stage: Stage, args: Args) -> str:
    node = _running(stage, args)
    if stage.of("leave", node):
        raise DeedError(f"{node} leaves already")
    return stage.begin(f"{node} announces that it leaves", fault_at(node, "leave"))


def _running(stage: Stage, args: Args) -> str:
    node = args.node()
    _check_up(stage, node)
    return node


def _check_up(stage: Stage, node: str) -> None:
    if not stage.is_up(node):
        raise DeedError(f"{node} is down: restart it first")


def _end_all(stage: Stage, kind: str, node: str) -> bool:
    """Undo the faults of this kind at the node. Were there any?"""
    found = stage.of(kind, node)
    stage.end(*found)
    return bool(found)


# Clients.


def _add(stage: Stage, args: Args) -> str:
    node, queue = args.node(), args.text("queue", "mail", NAME)
    body, count = args.text("body", "hello", BODY), args.number("count", 1, JOBS, 1)
    names = ("replicate", "retry", "delay", "ttl")
    bounds = {"replicate": (1, len(stage.nodes)), "ttl": (1, _DAY_S)}
    options = {name: args.optional(name, *bounds.get(name, (0, _DAY_S))) for name in names}
    is_async = args.flag("is_async", default=False)
    words: list[Word] = [
        word for name, value in options.items() if value is not None for word in (name, value)
    ]
    said = " ".join(str(word).upper() for word in words) + (" ASYNC" if is_async else "")
    for _ in range(count):
        # Of jobs with the same body nobody can tell which is which.
        each = f"{body} {len(stage.added) + 1}"
        rest = [*words, "ASYNC"] if is_async else words
        says = f"ADDJOB {queue} {said}".rstrip()
        stage.hands.ask(node, "ADDJOB", queue, each, 1000, *rest, says=says)
        stage.added.append(_as_planned(stage, node, queue, each, options, is_async=is_async))
    many = "a job" if count == 1 else f"{count} jobs"
    return f"{many} to {node}, queue {queue} {said}".rstrip()


def _as_planned(
    stage: Stage,
    node: str,
    queue: str,
    body: str,
    options: Mapping[str, int | None],
    *,
    is_async: bool,
) -> Add:
    return Add(
        at=stage.sim.now,
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


def _take(stage: Stage, args: Args) -> str:
    node, queue = args.node(), args.text("queue", "mail", NAME)
    count = args.number("count", 1, JOBS, 1)
    wait = args.number("wait", 0, _HOUR_MS, 10_000)
    stage.hands.take(node, queue, count, wait)
    until = f", waiting for {duration(wait * 1000)} at most" if wait else ""
    return f"a job of queue {queue} is taken at {node}{until}"


def _answer(stage: Stage, args: Args) -> str:
    """Acknowledge a job in hand, give it back, ask for more time, or forget it."""
    node, job, how = args.node(), args.text("job", "", NAME), args.text("how", "ack", NAME)
    if not any((each.job, each.node) == (job, node) for each in stage.hands.in_hand()):
        raise DeedError(f"the job is not in your hands at {node}")
    if how == "drop":
        stage.hands.drop(job, node)
        return f"{_short(job)} is forgotten, as by a worker that dies"
    if how not in ANSWERS:
        raise DeedError(f"'{how}' is not one of {', '.join([*ANSWERS, 'drop'])}")
    stage.hands.answer(how, job, node)
    return f"{ANSWERS[how]} {_short(job)} at {node}"


def _hire(stage: Stage, args: Args) -> str:
    node, queue = args.node(), args.text("queue", "mail", NAME)
    work, acks = args.number("work", 1, _HOUR_MS, 200), args.flag("acks", default=True)
    if len([each for each in stage.hands.hired if each.until is None]) >= HIRED:
        raise DeedError(f"{HIRED} workers are the most: dismiss one")
    name = stage.hands.hire(node, queue, work * 1000, acks=acks)
    ending = "then acknowledges it" if acks else "and never acknowledges it"
    return f"{name} at {node} works {duration(work * 1000)} on each job of {queue}, {ending}"


def _dismiss(stage: Stage, args: Args) -> str:
    worker = args.text("worker", "", NAME)
    found = [each for each in stage.hands.hired if _is(each, worker)]
    if not found:
        raise DeedError(f"there is no worker {worker!r}")
    stage.hands.dismiss(found[0])
    return f"{worker} goes, and forgets the job that it works on"


def _is(hired: Hired, name: str) -> bool:
    return hired.plan.name == name and hired.until is None


def _short(job: str) -> str:
    return job[:17]


Deed = Callable[[Stage, Args], str]

DEEDS: Final[Mapping[str, Deed]] = {
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
    "hire": _hire,
    "dismiss": _dismiss,
}
"""By name."""
