"""Visits every world of a scope once, or reports how far it came (docs/exploring.md, "The search").

Worlds are visited by lateness, then by time, then by depth. So the first violation has little of
each, and a world that is reached again seldom has a larger budget left. Two events at different
nodes commute; sleep sets ensure that one of their orders is visited. When neither a timer nor a
fault is possible, and no other node can interfere, the events of one node suffice: a persistent
set.
"""

import heapq
import time
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from disque_trio.sim.explore.fairness import Fairness
from disque_trio.sim.explore.scope import Scope
from disque_trio.sim.explore.world import Action, Rules, World
from disque_trio.statemachine.base import Millis
from disque_trio.terminal.counting import counted

_LOOK_EVERY: Final = 256


@attrs.frozen(kw_only=True)
class Violation:
    """A violation, and the path to it."""

    what: str
    path: tuple[Action, ...]


@attrs.frozen(kw_only=True)
class Outcome:
    """The result of an exploration."""

    scope: str
    stopped: str
    """Why it ended before everything was visited; empty if it is complete."""
    worlds: int
    steps: int
    depth: int
    settled: int
    """The number of worlds whose fair future was judged."""
    images: int
    """The number of different states of single nodes."""
    seconds: float
    violation: Violation | None

    @property
    def is_complete(self) -> bool:
        """Has every world been visited, without a violation?"""
        return not self.stopped and self.violation is None


@attrs.define(eq=False)
class _Entry:
    """A world to be visited."""

    world: World
    parent: "_Entry | None"
    action: Action | None
    depth: int
    sleep: frozenset[Action]


@attrs.frozen
class _Visit:
    """The budget that a world had left when it was visited."""

    late: int
    now: Millis
    depth: int
    sleep: frozenset[Action]

    def covers(self, entry: _Entry) -> bool:
        """Would another visit find nothing new?"""
        world = entry.world
        return self.late <= world.late and self.now <= world.now and self.sleep <= entry.sleep


@attrs.frozen(kw_only=True)
class Reduction:
    """The reductions that are applied: events that are left out because others are equivalent."""

    sleep: bool = True
    persistent: bool = True


Progress = Callable[[int, int, int], None]
"""Called with the number of visited worlds, of waiting worlds, and the depth."""


class Search:
    """One exploration."""

    def __init__(
        self,
        scope: Scope,
        *,
        reduction: Reduction = Reduction(),
        progress: Progress = lambda _worlds, _waiting, _depth: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.scope = scope
        self.rules = Rules(scope)
        self.fairness = Fairness(self.rules)
        self._reduction = reduction
        self._progress = progress
        self._clock = clock
        self._visits: dict[tuple[int, ...], list[_Visit]] = {}
        self._heap: list[tuple[int, Millis, int, int, _Entry]] = []
        self._pushed = 0
        self._steps = 0
        self._depth = 0
        self._cut_off = False

    def run(self) -> Outcome:
        """Explore until every world is visited, a property is violated, or a bound is reached."""
        began = self._clock()
        self._push(_Entry(self.rules.begin(), None, None, 0, frozenset()))
        stopped, violation = "", None
        while self._heap and violation is None:
            if len(self._visits) >= self.scope.states:
                stopped = counted(self.scope.states, "state")
                break
            if self._pushed % _LOOK_EVERY == 0 or self._steps % _LOOK_EVERY == 0:
                self._progress(len(self._visits), len(self._heap), self._depth)
                if self._clock() - began > self.scope.seconds:
                    stopped = counted(self.scope.seconds, "second")
                    break
            violation = self._visit(heapq.heappop(self._heap)[-1])
        if not stopped and self._cut_off:
            stopped = f"depth {self.scope.depth}"
        return Outcome(
            scope=self.scope.name,
            stopped=stopped,
            worlds=len(self._visits),
            steps=self._steps,
            depth=self._depth,
            settled=self.fairness.judged,
            images=self.rules.machines.images,
            seconds=self._clock() - began,
            violation=violation,
        )

    def _push(self, entry: _Entry) -> None:
        self._pushed += 1
        world = entry.world
        heapq.heappush(self._heap, (world.late, world.now, entry.depth, self._pushed, entry))

    def _visit(self, entry: _Entry) -> Violation | None:
        world, rules = entry.world, self.rules
        if world.broken:
            return _violation(entry, world.broken)
        key = rules.key(world)
        visits = self._visits.setdefault(key, [])
        if any(visit.covers(entry) for visit in visits):
            return None
        sleep = entry.sleep
        for visit in visits:
            if visit.late <= world.late and visit.now <= world.now:
                sleep &= visit.sleep
        entry.sleep = sleep
        visits.append(_Visit(world.late, world.now, entry.depth, sleep))
        self._depth = max(self._depth, entry.depth)
        if self._is_judged(entry) and (fault := self.fairness.fault_of(world)):
            return _violation(entry, fault)
        if entry.depth >= self.scope.depth:
            self._cut_off = True
            return None
        self._expand(entry)
        return None

    def _is_judged(self, entry: _Entry) -> bool:
        """Is the future of this world judged? If it lies between two timers, the next world is
        judged instead."""
        world, rules = entry.world, self.rules
        if not rules.is_settled(world):
            return False
        is_between = entry.action is not None and entry.action.kind == "tick"
        return not is_between or not any(rules.ticks(world, is_late=False))

    def _expand(self, entry: _Entry) -> None:
        rules, world = self.rules, entry.world
        actions = rules.actions(world)
        if self._reduction.persistent:
            actions = persistent(rules, world, actions)
        slept = set(entry.sleep)
        for action in actions:
            if action in slept:
                continue
            change = rules.change(world, action)
            after = change.world()
            self._steps += 1
            keeps = frozenset() if change.is_wide else _independent(slept, action)
            self._push(_Entry(after, entry, action, entry.depth + 1, keeps))
            if self._reduction.sleep and not change.is_wide:
                slept.add(action)


def _independent(slept: Iterable[Action], action: Action) -> frozenset[Action]:
    """Return the actions that commute with this one: those at other nodes."""
    return frozenset([each for each in slept if each.place != action.place])


def persistent(rules: Rules, world: World, actions: list[Action]) -> list[Action]:
    """Return the events of one node if no event elsewhere can interfere; otherwise all."""
    if any(action.place < 0 for action in actions):
        return actions
    places = sorted({action.place for action in actions})
    if len(places) < 2:
        return actions
    count = rules.scope.nodes
    for place in places:
        others = [
            other
            for other in range(count)
            if other != place and world.up[other] and not world.letters[other * count + place]
        ]
        if not others and not rules.has_waiting_script(world, place):
            return [action for action in actions if action.place == place]
    return actions


def _violation(entry: _Entry, what: str) -> Violation:
    path = []
    at: _Entry | None = entry
    while at is not None and at.action is not None:
        path.append(at.action)
        at = at.parent
    return Violation(what=what, path=tuple(reversed(path)))
