"""The nodes of a scope and the messages between them: possible events, and the state after each."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from disque_trio.sim.explore import judge
from disque_trio.sim.explore.judge import Life
from disque_trio.sim.explore.machines import START, Done, Input, Letter, Local, Machines
from disque_trio.sim.explore.scope import NAMES, Fault, Scope
from disque_trio.statemachine.base import FOREVER, JobId, Millis, Reply
from disque_trio.statemachine.messages import name_of

NO_LINK: Final = 0
DIALLED: Final = 1
UP: Final = 2
_DOWN: Final = (-1, ())
_BEGIN: Final[Millis] = 5_000
"""How long nodes have to discover each other."""


@attrs.frozen
class Action:
    """A possible event."""

    kind: str
    where: tuple[int, ...]

    @property
    def place(self) -> int:
        """The only node that the event concerns; -1 if there are several."""
        if self.kind == "deliver":
            return self.where[1]
        return self.where[1] if self.kind == "ask" else -1


@attrs.frozen
class Script:
    """The progress of a client through its script."""

    step: int = 0
    waits: bool = False
    ended: bool = False
    got: JobId = b""


@attrs.frozen(eq=False)
class World:
    """One state of all nodes, clients and links. Immutable."""

    now: Millis
    nodes: tuple[Local, ...]
    since: tuple[Millis, ...]
    """When each node entered its state."""
    up: tuple[bool, ...]
    gone: tuple[bool, ...]
    """Nodes that are lost permanently."""
    links: tuple[int, ...]
    """By pair of nodes: the state of the link."""
    cut: tuple[bool, ...]
    letters: tuple[tuple[Letter, ...], ...]
    """By pair of nodes: the messages in transit."""
    scripts: tuple[Script, ...]
    lives: tuple[Life, ...]
    late: int = 0
    """The number of timers that fired although other events were possible."""
    faults: tuple[bool, ...] = ()
    """By fault: has it happened?"""
    broken: str = ""
    """The first violation; empty if there is none."""

    def wants_tick(self, place: int) -> Millis:
        """Return when the next timer of a node is due, its heartbeat included."""
        local = self.nodes[place]
        return max(self.since[place] + min(local.due, local.beat), self.now)

    @property
    def faulty(self) -> int:
        """The number of faults that have happened."""
        return sum(self.faults)


class Rules:
    """The possible events in the worlds of a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.machines = Machines(scope.nodes, scope.config, scope.exchangeable)
        self.ids = tuple([job.id_at(self.machines.ids[job.node]) for job in scope.jobs])
        self.numbers = {id: number for number, id in enumerate(self.ids)}
        self._seen: dict[Any, int] = {}
        self._words = _Words(scope, self)

    # The beginning.

    def begin(self) -> World:
        """Return the first world: all nodes are up, linked and quiet."""
        count = self.scope.nodes
        made = [self.machines.begin(place) for place in range(count)]
        nothing: tuple[tuple[Letter, ...], ...] = ((),) * (count * count)
        world = World(
            START,
            tuple([done.local for done in made]),
            (START,) * count,
            (True,) * count,
            (False,) * count,
            (NO_LINK,) * (count * count),
            (False,) * (count * count),
            nothing,
            (Script(),) * len(self.scope.clients),
            (Life(),) * len(self.scope.jobs),
            faults=(False,) * len(self.scope.faults),
        )
        change = Change(self, world)
        for place, done in enumerate(made):
            change.take(place, done)
        for one in range(count):
            for other in range(count):
                if one != other:
                    change.link(one, other)
        world = change.world()
        while deliveries := list(self.deliveries(world)):
            world = self.apply(world, deliveries[0])
        change = Change(self, world)
        for words in self.scope.before:
            asked = tuple([word.encode() for word in words])
            change.give(0, "ask", len(self.scope.clients), 0, asked)
        world = change.world()
        end = START + _BEGIN
        while (due := self.next_due(world)) < end:
            world = self.apply(world, Action("tick", (self.due_at(world, due)[0],)))
            while deliveries := list(self.deliveries(world)):
                world = self.apply(world, deliveries[0])
        return attrs.evolve(world, now=end, late=0)

    def next_due(self, world: World) -> Millis:
        """Return when the next timer is due, heartbeats included."""
        running = [place for place, is_up in enumerate(world.up) if is_up]
        return min([world.wants_tick(place) for place in running], default=FOREVER)

    def due_at(self, world: World, due: Millis) -> list[int]:
        """Return the nodes with timers that are due at this time."""
        running = [place for place, is_up in enumerate(world.up) if is_up]
        return [place for place in running if world.wants_tick(place) <= due]

    # Possible events.

    def actions(self, world: World) -> list[Action]:
        """Return all possible events, in a fixed order: messages and requests first."""
        local = [*self.deliveries(world), *self.asks(world)]
        found = [*local, *self.links(world), *self.starts(world)]
        found += self.ticks(world, is_late=bool(local))
        return [*found, *self.faults(world)]

    def deliveries(self, world: World) -> Iterator[Action]:
        """Yield the messages that may arrive."""
        count = self.scope.nodes
        for at, letters in enumerate(world.letters):
            if letters and world.links[at] == UP:
                yield Action("deliver", divmod(at, count))

    def asks(self, world: World) -> Iterator[Action]:
        """Yield the requests that clients may send."""
        for number, script in enumerate(world.scripts):
            client = self.scope.clients[number]
            if (
                not script.ended
                and not script.waits
                and script.step < len(client.does)
                and world.up[client.node]
                and self._words.of(world, number) is not None
            ):
                yield Action("ask", (number, client.node))

    def has_waiting_script(self, world: World, place: int) -> bool:
        """Does a client of the node wait for an event elsewhere before its next request?"""
        return any(
            client.node == place
            and not script.ended
            and not script.waits
            and script.step < len(client.does)
            and self._words.of(world, number) is None
            for number, (client, script) in enumerate(
                zip(self.scope.clients, world.scripts, strict=True)
            )
        )

    def links(self, world: World) -> Iterator[Action]:
        """Yield the dials that may succeed, and the cuts that may be undone."""
        count = self.scope.nodes
        for at, state in enumerate(world.links):
            one, other = divmod(at, count)
            if world.cut[at] and one < other:
                yield Action("heal", (one, other))
            elif state == DIALLED and world.up[other] and not world.cut[at]:
                yield Action("link", (one, other))

    def starts(self, world: World) -> Iterator[Action]:
        """Yield the nodes that may start again."""
        for place, is_up in enumerate(world.up):
            if not is_up and not world.gone[place]:
                yield Action("start", (place,))

    def ticks(self, world: World, *, is_late: bool) -> Iterator[Action]:
        """Yield the timers that are due first. If several nodes have timers due at the same time,
        they may fire in any order."""
        if is_late and world.late >= self.scope.late:
            return
        due = self.next_due(world)
        if due <= START + _BEGIN + self.scope.horizon_s * 1000:
            for place in self.due_at(world, due):
                yield Action("tick", (place,))

    def faults(self, world: World) -> Iterator[Action]:
        """Yield the faults that may happen."""
        if world.faulty >= self.scope.most_faults:
            return
        for number, fault in enumerate(self.scope.faults):
            if not world.faults[number] and self._is_possible(world, fault):
                yield Action("fault", (number,))

    def _is_possible(self, world: World, fault: Fault) -> bool:
        where, count = fault.where, self.scope.nodes
        match fault.kind:
            case "crash" | "lose":
                return world.up[where[0]]
            case "leave":
                client = self.scope.clients[where[0]]
                return world.up[client.node] and not world.scripts[where[0]].ended
            case "drop":
                return bool(world.letters[where[0] * count + where[1]])
            case "break":
                return world.links[where[0] * count + where[1]] == UP
            case _:
                return world.up[where[0]] and world.up[where[1]]

    # Successors.

    def apply(self, world: World, action: Action) -> World:
        """Return the world after an event."""
        return self.change(world, action).world()

    def change(self, world: World, action: Action) -> "Change":
        """Return the change by an event, with its effects."""
        change = Change(self, world)
        where = action.where
        match action.kind:
            case "deliver":
                change.deliver(*where)
            case "ask":
                words = self._words.of(world, where[0])
                assert words is not None
                change.ask(where[0], words)
            case "link":
                change.link(*where)
            case "heal":
                change.heal(*where)
            case "start":
                change.start(where[0])
            case "tick":
                is_late = any(self.deliveries(world)) or any(self.asks(world))
                change.tick(where[0], is_late=is_late)
            case _:
                change.fault(where[0])
        return change

    def key(self, world: World) -> tuple[int, ...]:
        """Return the identity of the world, independent of its path: it is equal for worlds that
        differ only in the numbering of nodes. It excludes budgets and the time."""
        orders = self.machines.orders
        if len(orders) == 1:
            return self._key(world, 0)
        return min([self._key(world, order) for order in range(len(orders))])

    def _key(self, world: World, number: int) -> tuple[int, ...]:
        order = self.machines.orders[number]
        count = self.scope.nodes
        at = [0] * count
        for place, to in enumerate(order):
            at[to] = place
        pairs = [one * count + other for one in at for other in at]
        parts: list[Any] = [
            self.machines.form(world.nodes[place], number, world.now - world.since[place])
            if world.up[place]
            else self._down(world, place, number)
            for place in at
        ]
        parts.append(tuple([tuple([each.forms[number] for each in world.letters[pair]])
                            for pair in pairs]))  # fmt: skip
        parts.append(tuple([(world.links[pair], world.cut[pair]) for pair in pairs]))
        parts.append((world.scripts, tuple([life.exchanged(order) for life in world.lives])))
        faults = [
            (
                fault.kind,
                fault.where if fault.kind == "leave" else tuple(order[w] for w in fault.where),
            )
            for fault, happened in zip(self.scope.faults, world.faults, strict=True)
            if happened
        ]
        parts.append(tuple(sorted(faults)))
        seen = self._seen
        return tuple([seen.setdefault(part, len(seen)) for part in parts])

    def _down(self, world: World, place: int, number: int) -> tuple[Any, ...]:
        if world.gone[place] or not self.scope.journal:
            return (*_DOWN, world.gone[place])
        return (
            "down",
            *self.machines.form(world.nodes[place], number, world.now - world.since[place]),
        )

    def is_settled(self, world: World) -> bool:
        """Is no message in transit, and no client about to send a request?"""
        return not any(self.deliveries(world)) and not any(self.asks(world))

    # Text.

    def text(self, world: World, action: Action) -> str:
        """Return the description of an event, in one line."""
        where = action.where
        match action.kind:
            case "deliver":
                letter = world.letters[where[0] * self.scope.nodes + where[1]][0]
                name = name_of(type(letter.message))
                job = self.numbers.get(getattr(letter.message, "id", b""))
                about = "" if job is None else f" {self.scope.jobs[job].name}"
                return f"{NAMES[where[0]]} > {NAMES[where[1]]}  {name}{about}"
            case "ask":
                client = self.scope.clients[where[0]]
                words = client.does[world.scripts[where[0]].step]
                return f"{NAMES[client.node]}  client {where[0]}: {' '.join(words)}"
            case "fault":
                fault = self.scope.faults[where[0]]
                return f"{fault.kind} {self._named(fault)}"
            case _:
                return f"{action.kind} {' '.join([NAMES[each] for each in where])}"

    def _named(self, fault: Fault) -> str:
        if fault.kind == "leave":
            return f"client {fault.where[0]}"
        return " ".join([NAMES[each] for each in fault.where])


class _Words:
    """The requests of the scripts, in the form in which they are sent."""

    def __init__(self, scope: Scope, rules: Rules) -> None:
        self._scope = scope
        self._rules = rules
        self._names = {f"${job.name}": number for number, job in enumerate(scope.jobs)}

    def of(self, world: World, number: int) -> tuple[bytes, ...] | None:
        """Return the next request of a client; None if it needs a reply that has not arrived."""
        script = world.scripts[number]
        found = []
        for word in self._scope.clients[number].does[script.step]:
            if word == "$got":
                if not script.got:
                    return None
                found.append(script.got)
            elif word in self._names:
                job = self._names[word]
                if not world.lives[job].added:
                    return None
                found.append(self._rules.ids[job])
            elif word.startswith("$lost-"):
                place = NAMES.index(word[6:])
                if not world.gone[place]:
                    return None
                found.append(self._rules.machines.ids[place])
            else:
                found.append(word.encode())
        return tuple(found)


class Change:
    """The successor of a world, under construction."""

    def __init__(self, rules: Rules, before: World) -> None:
        self._rules = rules
        self._scope = rules.scope
        self._count = rules.scope.nodes
        self._before = before
        self.now = before.now
        self.nodes = list(before.nodes)
        self.since = list(before.since)
        self.up = list(before.up)
        self.gone = list(before.gone)
        self.links = list(before.links)
        self.cut = list(before.cut)
        self.letters = list(before.letters)
        self.scripts = list(before.scripts)
        self.lives = list(before.lives)
        self.faults = list(before.faults)
        self.late = before.late
        self.broken = before.broken
        self.is_wide = False
        """Did the event concern more than one node?"""
        self.got: list[tuple[int, JobId]] = []
        """Replies to clients outside the scope: the client, and the last job delivered with the
        reply."""
        self.inputs: list[tuple[int, Input]] = []
        """The inputs of the nodes, in order."""

    def world(self) -> World:
        """Return the finished successor."""
        self.lives = judge.follow(self._rules, self)
        return World(
            now=self.now,
            nodes=tuple(self.nodes),
            since=tuple(self.since),
            up=tuple(self.up),
            gone=tuple(self.gone),
            links=tuple(self.links),
            cut=tuple(self.cut),
            letters=tuple(self.letters),
            scripts=tuple(self.scripts),
            lives=tuple(self.lives),
            late=self.late,
            faults=tuple(self.faults),
            broken=self.broken,
        )

    # Nodes.

    def give(self, place: int, kind: str, *arguments: Any) -> None:
        """Pass an input to a node, and carry out its output."""
        node_input = Input(kind, arguments)
        self.inputs.append((place, node_input))
        elapsed = self.now - self.since[place]
        done = self._rules.machines.step(place, self.nodes[place], elapsed, node_input)
        if done.error:
            self.broken = self.broken or f"{NAMES[place]}: {done.error}"
            return
        self.take(place, done)

    def take(self, place: int, done: Done) -> None:
        """Carry out the output of a node."""
        self.nodes[place], self.since[place] = done.local, self.now
        for to in done.dials:
            at = place * self._count + to
            self.links[at], self.letters[at] = DIALLED, ()
        instant = []
        for to, back, letter in done.letters:
            at = place * self._count + to
            if letter.is_instant and (back or self.links[at] == UP):
                instant.append((to, back, letter))
            elif self.links[at] != NO_LINK:
                self.letters[at] += (letter,)
        for number, reply in done.replies:
            self._answered(number, reply, place)
        for to, back in done.hangups:
            self._hung_up(place, to, back=back)
        for to, back, letter in instant:
            self.is_wide = True
            if self.up[to]:
                self.give(to, "receive", place, back, letter)

    def _hung_up(self, place: int, other: int, *, back: bool) -> None:
        self.is_wide = True
        one, to = (other, place) if back else (place, other)
        at = one * self._count + to
        if self.links[at] == UP:
            self.links[at], self.letters[at] = NO_LINK, ()
            self.give(other, "unlinked", place, not back)

    # Events.

    def deliver(self, one: int, other: int) -> None:
        """The first message on the link arrives."""
        at = one * self._count + other
        letter, *rest = self.letters[at]
        self.letters[at] = tuple(rest)
        self.give(other, "receive", one, False, letter)

    def ask(self, number: int, words: tuple[bytes, ...]) -> None:
        """A client sends its request."""
        client = self._scope.clients[number]
        job = self._scope.job(words[2].decode("latin-1")) if words[0] == b"ADDJOB" else None
        script = self.scripts[number]
        self.scripts[number] = attrs.evolve(script, waits=True)
        judge.asked(self._rules, self, client.node, words)
        self.give(client.node, "ask", number, job.bits if job else 0, words)

    def _answered(self, number: int, reply: Reply, place: int) -> None:
        if number >= len(self.scripts):
            self.got.append((number, judge.served(self._rules, self, place, reply)))
            return
        script = self.scripts[number]
        words = self._scope.clients[number].does[script.step]
        got = judge.served(self._rules, self, place, reply) or script.got
        judge.taken(self._rules, self)
        if words[0] == "ADDJOB":
            job = self._scope.job(words[2])
            assert job is not None
            judge.added(self._rules, self, job, reply)
        self.scripts[number] = Script(script.step + 1, False, script.ended, got)

    def link(self, one: int, other: int) -> None:
        """A dial succeeds; messages about nodes that were sent before arrive at once."""
        self.is_wide = True
        at = one * self._count + other
        self.links[at] = UP
        self.give(other, "accept", one)
        self.give(one, "linked", other)
        waiting, self.letters[at] = self.letters[at], ()
        for letter in waiting:
            if letter.is_instant:
                self.give(other, "receive", one, False, letter)
        kept = tuple([letter for letter in waiting if not letter.is_instant])
        self.letters[at] = kept + self.letters[at]

    def heal(self, one: int, other: int) -> None:
        """Dials succeed again."""
        self.is_wide = True
        for at in (one * self._count + other, other * self._count + one):
            self.cut[at] = False

    def start(self, place: int) -> None:
        """A node starts from its disk."""
        self.is_wide = True
        machines = self._rules.machines
        journal = machines.journal_of(self.nodes[place], place) if self._scope.journal else {}
        self.up[place] = True
        self.inputs.append((place, Input("start")))
        mono = self.nodes[place].at + self.now - self.since[place]
        settings = machines.limits_of(self.nodes[place], place)
        self.take(place, machines.begin(place, journal, mono, settings))

    def tick(self, place: int, *, is_late: bool) -> None:
        """The next timer of a node fires."""
        self.is_wide = True
        self.late += is_late
        self.now = self._rules.next_due(self._before)
        self.give(place, "tick")

    def fault(self, number: int) -> None:
        """A fault happens."""
        self.is_wide = True
        self.faults[number] = True
        fault = self._scope.faults[number]
        one, other = fault.where[0], fault.where[-1]
        match fault.kind:
            case "crash":
                self._crash(one)
            case "lose":
                self.gone[one] = True
                self._crash(one)
            case "cut":
                for this, that in ((one, other), (other, one)):
                    self.cut[this * self._count + that] = True
                    self._break(this, that)
            case "break":
                self._break(one, other)
            case "drop":
                at = one * self._count + other
                self.letters[at] = self.letters[at][1:]
            case _:
                self.scripts[one] = attrs.evolve(self.scripts[one], ended=True)
                self.give(self._scope.clients[one].node, "leave", one)

    def _break(self, one: int, other: int) -> None:
        at = one * self._count + other
        was_up = self.links[at] == UP
        if was_up:
            self.links[at], self.letters[at] = NO_LINK, ()
            self.give(other, "unlinked", one, True)
            self.give(one, "unlinked", other, False)

    def _crash(self, place: int) -> None:
        judge.crashed(self._rules, self, place)
        self.up[place] = False
        self.inputs.append((place, Input("crash")))
        for number, script in enumerate(self.scripts):
            if self._scope.clients[number].node == place and script.waits:
                self.scripts[number] = attrs.evolve(script, waits=False, ended=True)
        for other in range(self._count):
            at, back = place * self._count + other, other * self._count + place
            was_up = self.links[at] == UP
            self.links[at], self.letters[at] = NO_LINK, ()
            if was_up and self.up[other]:
                self.give(other, "unlinked", place, True)
            if self.links[back] != NO_LINK:
                is_up = self.links[back] == UP
                self.letters[back] = ()
                if is_up and self.up[other]:
                    self.links[back] = NO_LINK
                    self.give(other, "unlinked", place, False)
