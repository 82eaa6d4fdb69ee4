"""Steps of an exploration as a readable file, and as rows for pictures."""

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
"""Actions whose arguments are numbers in the scope, not nodes."""


@attrs.frozen(kw_only=True)
class Steps:
    """A path through a scope, and the violation that it shows."""

    scope: Scope
    text: str
    """The text of the scope."""
    what: str
    path: tuple[Action, ...]


@attrs.frozen(kw_only=True)
class PlayedStep:
    """One step, when it is played."""

    time: int
    """Milliseconds since the start of the scope."""
    line: str
    rows: tuple[Row, ...]


def dump(steps: Steps) -> str:
    """Return the file, with each step in a form for `read` and one for people."""
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
    """Return the steps in a file of `dump`. Raise `ScopeError`."""
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
    """Play the steps. Raise `ScopeError` if one of them is not possible any more."""
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
    """Return the action of this world that the step names, or None."""
    wanted = action.where[:1] if action.kind in _NUMBERS else action.where
    for each in rules.actions(world):
        where = each.where[:1] if each.kind in _NUMBERS else each.where
        if (each.kind, where) == (action.kind, wanted):
            return each
    return None


def plan_of(scope: Scope) -> Plan:
    """Return a plan for pictures."""
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
    """Return the name of the job with this id in the scope."""
    rules = Rules(scope)
    number = rules.numbers.get(id.encode("latin-1"))
    return id if number is None else scope.jobs[number].name
