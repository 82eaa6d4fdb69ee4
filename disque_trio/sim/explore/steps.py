"""Steps of an exploration as a file that people can read, and as rows that pictures draw."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_trio.sim.explore.machines import START, Letter
from disque_trio.sim.explore.scope import NAMES, Scope, ScopeError, parse
from disque_trio.sim.explore.world import Action, Change, Rules, World
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.events import Event
from disque_trio.statemachine.messages import name_of
from disque_trio.tracing.rows import Row

_NUMBERS: Final = ("ask", "fault")
"""Actions whose arguments are numbers of the scope, not nodes."""


@attrs.frozen(kw_only=True)
class Steps:
    """A way through a scope, and what it shows."""

    scope: Scope
    text: str
    """The scope as it is written."""
    what: str
    path: tuple[Action, ...]


@attrs.frozen(kw_only=True)
class PlayedStep:
    """One step, when it is played."""

    time: int
    """Milliseconds since the scope began."""
    line: str
    rows: tuple[Row, ...]


def dump(steps: Steps) -> str:
    """The file: each step as it is read, and as people read it."""
    rules = Rules(steps.scope)
    world, lines = rules.begin(), []
    for action in steps.path:
        lines.append(f"{_word(action):<14} # {rules.text(world, action)}")
        world = rules.apply(world, action)
    bounds = {name: getattr(steps.scope, name) for name in ("late", "most_faults")}
    return json.dumps(
        {"scope": steps.scope.name, "violates": steps.what, "bounds": bounds,
         "steps": lines, "text": steps.text.splitlines()},
        indent=1,
    ) + "\n"  # fmt: skip


def read(text: str) -> Steps:
    """What `dump` has written. Raises `ScopeError`."""
    try:
        facts = json.loads(text)
        written = "\n".join(facts["text"])
        scope = attrs.evolve(parse(written, facts["scope"]), **facts["bounds"])
        path = tuple(map(_action, facts["steps"]))
        return Steps(scope=scope, text=written, what=facts["violates"], path=path)
    except (KeyError, TypeError, ValueError) as error:
        raise ScopeError(f"these are no steps of an exploration: {error}") from None


def _word(action: Action) -> str:
    if action.kind in _NUMBERS:
        return f"{action.kind} {action.where[0]}"
    return " ".join([action.kind, *[NAMES[place] for place in action.where]])


def _action(line: str) -> Action:
    kind, *words = line.partition("#")[0].split()
    numbers = kind in _NUMBERS
    return Action(kind, tuple([int(word) if numbers else NAMES.index(word) for word in words]))


def play(steps: Steps) -> Iterator[PlayedStep]:
    """Play the steps. Raises `ScopeError` if one of them cannot happen any more."""
    rules = Rules(steps.scope)
    world = rules.begin()
    began = world.now
    for number, action in enumerate(steps.path):
        found = _whole(rules, world, action)
        if found is None:
            raise ScopeError(f"step {number + 1}, {_word(action)}, cannot happen any more")
        line = rules.text(world, found)
        change = rules.change(world, found)
        after = change.world()
        time = (after.now - began) * 1000 + number
        yield PlayedStep(
            time=after.now - began, line=line, rows=tuple(_rows(rules, world, change, found, time))
        )
        world = after
    if world.broken:
        yield PlayedStep(time=world.now - began, line=f"violated: {world.broken}", rows=())


def _whole(rules: Rules, world: World, action: Action) -> Action | None:
    """The action of this world that the step names."""
    wanted = action.where[:1] if action.kind in _NUMBERS else action.where
    for each in rules.actions(world):
        where = each.where[:1] if each.kind in _NUMBERS else each.where
        if (each.kind, where) == (action.kind, wanted):
            return each
    return None


def plan_of(scope: Scope) -> Plan:
    """What pictures have as the plan."""
    return Plan(scenario=f"explore {scope.name}", seed=0, nodes=scope.nodes)


def _rows(rules: Rules, before: World, change: Change, action: Action, time: int) -> Iterator[Row]:
    if action.kind == "deliver":
        one, other = action.where
        letter = before.letters[one * rules.scope.nodes + other][0]
        yield _received(rules, letter, one, other, time)
    nodes = list(before.nodes)
    since = list(before.since)
    for place, node_input in change.inputs:
        name = f"n{place + 1}"
        if node_input.kind in ("start", "crash"):
            cause = "loaded" if node_input.kind == "start" else "kill"
            yield Row(time, node_input.kind, name, cause=cause)
            continue
        running = rules.machines.revive(nodes[place], place)
        events: list[Event] = []
        mono = nodes[place].at + change.now - since[place]
        done = rules.machines.carry_out(running, mono, node_input, events)
        nodes[place], since[place] = done.local, change.now
        for event in events:
            yield _row(rules.machines.ids, event, name, time, change.now)


def _received(rules: Rules, letter: Letter, one: int, other: int, time: int) -> Row:
    job = getattr(letter.message, "id", b"")
    names = {id: f"n{place + 1}" for place, id in enumerate(rules.machines.ids)}
    detail = letter.message.detail(names) if hasattr(letter.message, "detail") else ""
    return Row(
        time, "recv", f"n{other + 1}", job.decode("latin-1"), peer=f"n{one + 1}",
        cause=name_of(type(letter.message)), detail=detail,
    )  # fmt: skip


def _row(ids: Sequence[NodeId], event: Event, name: str, time: int, now: int) -> Row:
    peer = f"n{ids.index(event.peer) + 1}" if event.peer in ids else ""
    client = f"c{event.client}" if event.client else ""
    return Row(
        time, event.kind.value, name, event.job.decode("latin-1"),
        event.queue.decode("latin-1"), client, peer, event.cause.value, event.detail,
        mono=now - START,
    )  # fmt: skip


def name_of_job(scope: Scope, id: str) -> str:
    """What the scope calls the job with this id."""
    rules = Rules(scope)
    number = rules.numbers.get(id.encode("latin-1"))
    return id if number is None else scope.jobs[number].name
