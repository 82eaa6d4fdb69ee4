"""What must happen from every settled world if there are no further faults or requests.

Faults are undone, clients disconnect, and a worker at every node takes and acknowledges every job.
Then every job that was not lost must be delivered, and no node may keep a record.
"""

from typing import Final

import attrs

from disque_trio.sim.explore import judge
from disque_trio.sim.explore.scope import NAMES
from disque_trio.sim.explore.world import Change, Rules, World
from disque_trio.statemachine.base import ACKED, DEAD, Millis
from disque_trio.terminal.counting import counted

QUIET: Final[Millis] = 15_000
"""How long nodes have to agree before workers start."""
REPAIR: Final[Millis] = 30_000
"""The additional time for the repair of copies."""
LIMIT: Final[Millis] = 1_200_000
"""The longest time for everything: several of the longest pauses between attempts to collect."""
_WORKERS: Final = 100


class Fairness:
    """Judges the future of settled worlds. Each future is judged once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[tuple[object, ...], str] = {}
        self.judged = 0
        """The number of different worlds that were judged."""

    def fault_of(self, world: World) -> str:
        """Return what does not happen; empty if everything does."""
        key = (*self._rules.key(world), world.up)
        found = self._known.get(key)
        if found is None:
            self.judged += 1
            found = self._known[key] = _Future(self._rules, world, self._known).run()
        return found


class _Future:
    """The future of one world."""

    def __init__(self, rules: Rules, world: World, known: dict[tuple[object, ...], str]) -> None:
        self._rules = rules
        self._world = attrs.evolve(world, late=0)
        self._known = known
        self._queues = sorted({words[1] for client in rules.scope.clients
                               for words in client.does if words[0] == "ADDJOB"})  # fmt: skip

    def run(self) -> str:
        """Return what does not happen."""
        self._undo()
        scope, gone = self._rules.scope, any(self._world.gone)
        if gone or any(job.key for job in scope.jobs):
            self._pass(QUIET + REPAIR if gone else QUIET)
        is_repaired = gone and scope.timeout_s
        if fault := self._world.broken or self._shared_key() or (is_repaired and self._thin()):
            return fault
        self._forget()
        self._redrive()
        for place, is_up in enumerate(self._world.up):
            if is_up:
                self._work(place)
        return self._await_end()

    def _undo(self) -> None:
        """Disconnect the clients, and end the faults."""
        rules = self._rules
        change = Change(rules, self._world)
        for number, script in enumerate(self._world.scripts):
            client = rules.scope.clients[number]
            if self._world.up[client.node]:
                change.give(client.node, "leave", number)
            change.scripts[number] = attrs.evolve(script, ended=True, waits=False)
        self._world = change.world()
        while after := [*rules.starts(self._world), *rules.links(self._world)]:
            self._world = rules.apply(self._world, after[0])

    def _pass(self, duration: Millis) -> None:
        """Advance the time by the duration; events happen in their order."""
        end = self._world.now + duration
        while self._step(end):
            pass
        self._world = attrs.evolve(self._world, now=max(self._world.now, end))

    def _step(self, end: Millis) -> bool:
        """Process one event. Return False if there is none before the end."""
        rules, world = self._rules, self._world
        if world.broken:
            return False
        for action in (*rules.deliveries(world), *rules.links(world)):
            self._become(rules.change(world, action))
            return True
        due = rules.next_due(world)
        if due > end:
            return False
        place = rules.due_at(world, due)[0]
        change = Change(rules, world)
        change.tick(place, is_late=False)
        self._become(change)
        return True

    def _become(self, change: Change) -> None:
        got = list(change.got)
        self._world = change.world()
        for worker, id in got:
            if not id:
                continue
            place = worker - _WORKERS
            change = Change(self._rules, self._world)
            judge.asked(self._rules, change, place, (b"ACKJOB", id))
            change.give(place, "ask", worker + 50, 0, (b"ACKJOB", id))
            self._world = change.world()
            self._work(place)

    def _work(self, place: int) -> None:
        change = Change(self._rules, self._world)
        queues = [queue.encode() for queue in self._queues]
        words = (b"GETJOB", b"FROM", *queues)
        change.give(place, "ask", _WORKERS + place, 0, words)
        self._become(change)

    def _forget(self) -> None:
        """Make an operator remove the nodes that are lost for good."""
        gone = [place for place, is_gone in enumerate(self._world.gone) if is_gone]
        for place, is_up in enumerate(self._world.up):
            for lost in gone if is_up else ():
                words = (b"CLUSTER", b"FORGET", self._rules.machines.ids[lost])
                self._ask(place, words)

    def _ask(self, place: int, words: tuple[bytes, ...]) -> None:
        change = Change(self._rules, self._world)
        change.give(place, "ask", _WORKERS + 50 + place, 0, words)
        self._world = change.world()

    def _thin(self) -> str:
        """Return a description of a job with too few copies after a repair; empty if there is
        none."""
        world, rules = self._world, self._rules
        for number, job in enumerate(rules.scope.jobs):
            life, id = world.lives[number], rules.ids[number]
            holders = [local.fates.get(id) for local, is_up
                       in zip(world.nodes, world.up, strict=True) if is_up]  # fmt: skip
            copies = sum(fate is not None and fate.state != ACKED for fate in holders)
            must_be = life.added and job.retry_s and not life.done and life.lost < job.replicate
            if must_be and copies < min(job.replicate, sum(world.up)):
                return f"{job.name} has {copies} copies, and is not repaired"
        return ""

    def _redrive(self) -> None:
        for place, is_up in enumerate(self._world.up):
            states = [fate.state for fate in self._world.nodes[place].fates.values()]
            if is_up and DEAD in states:
                for queue in self._queues:
                    self._ask(place, (b"REDRIVE", queue.encode()))
        self._pass(1_000)

    def _await_end(self) -> str:
        """Wait until nothing is left."""
        end = self._world.now + LIMIT
        path = []
        while left := self._left():
            key = ("works", *self._rules.key(self._world), self._world.up)
            known = self._known.get(key)
            if known is not None:
                left = known
                break
            path.append(key)
            if not self._step(end) or self._world.now >= end:
                break
        left = self._world.broken or left
        for key in path:
            self._known[key] = left
        return left

    def _left(self) -> str:
        """Return what has not happened yet."""
        world, rules = self._world, self._rules
        if world.broken:
            return world.broken
        for number, life in enumerate(world.lives):
            job, id = rules.scope.jobs[number], rules.ids[number]
            must_be = life.added and job.retry_s and life.lost < job.replicate
            is_kept = [place for place, local in enumerate(world.nodes)
                       if world.up[place] and id in local.fates]  # fmt: skip
            if must_be and not life.done and is_kept:
                return f"{job.name} is never delivered; {_named(is_kept)} has it"
            if life.done and is_kept:
                states = [world.nodes[place].fates[id].state for place in is_kept]
                what = "its acknowledgement" if set(states) == {ACKED} else "the job"
                return f"{job.name} has ended, and {_named(is_kept)} keeps {what}"
        return ""

    def _shared_key(self) -> str:
        """Return a description of two jobs with one key that no worker has had; empty if there is
        none."""
        if any(
            "IFEXISTS" in words for client in self._rules.scope.clients for words in client.does
        ):
            return ""
        owners: dict[tuple[bytes, bytes], dict[bytes, bool]] = {}
        for place, local in enumerate(self._world.nodes):
            for id, fate in local.fates.items() if self._world.up[place] else ():
                if fate.key is not None and fate.state != ACKED:
                    jobs = owners.setdefault(fate.key, {})
                    jobs[id] = jobs.get(id, False) or fate.was_taken
        for name, jobs in owners.items():
            if sum(not taken for taken in jobs.values()) > 1:
                return f"{counted(len(jobs), 'job keeps', 'jobs keep')} the key {name[1].decode()}"
        return ""


def _named(places: list[int]) -> str:
    return " and ".join([NAMES[place] for place in places])
