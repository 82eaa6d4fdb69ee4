"""One node of a scope: a production machine with its disk, which is copied from state to state.

A state of a node is kept as an image (`Local`). Two images are equal exactly if they behave alike
at the same time. The result of an input at a time is computed once (`Machines.step`): most
interleavings differ only in the events at other nodes.
"""

import io
import pickle
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final

import attrs

from disque_trio.sim.explore.canonical import FAR, Canonical, Writer, frozen, numbers_of
from disque_trio.statemachine import key_cancel, key_ordering, limiting
from disque_trio.statemachine.base import (
    CAPABILITIES,
    FAIL,
    FOREVER,
    FORMAT,
    HANDSHAKE,
    LEAVING,
    MYSELF,
    NOADDR,
    PENDING,
    PFAIL,
    JobId,
    LinkId,
    Millis,
    NodeId,
    Now,
    Reply,
)
from disque_trio.statemachine.chores import AwaitNodes
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Event
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.keys import Rule
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, GossipMessage, Message, singles
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.records import DeleteJob, LoadJob, Record
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.timers import Timed, Timers
from disque_trio.statemachine.watchers import ABOUT_NODES

START: Final[Millis] = 80_000
WALL: Final[Millis] = 1_800_000_000_000
PORT: Final = 7711
INSTANT: Final = ABOUT_NODES
"""Messages that arrive at once: heartbeat messages about nodes are not explored."""
_EMPTY: Final[Mapping[JobId, Record]] = MappingProxyType({})
_DRAWS: Final = (0.5, 0.9, 0.1, 0.7, 0.3)
_SHARED: Final = (
    "config", "rng", "facts", "stats", "knobs", "tally", "slowlog", "latency", "traces", "trace",
    "out", "endings",
)  # fmt: skip
"""The parts of a node's state that all its images share: they have no effect that a scope can
observe."""


class Fixed(random.Random):
    """Returns the same numbers in every step, starting in the middle, and the identity that the
    scope gives to the next job."""

    bits = 0
    drawn = 0

    def random(self) -> float:
        """Return the first number, neither early nor late, and then others."""
        self.drawn += 1
        return _DRAWS[(self.drawn - 1) % len(_DRAWS)]

    def getrandbits(self, k: int, /) -> int:
        """Return the identity in `k` bits."""
        return self.bits & (1 << k) - 1


@attrs.frozen(eq=False)
class Letter:
    """A message in a link, with the parts of its frame that matter. Equal messages are one
    object."""

    message: Message
    leaving: bool
    forms: tuple[int, ...]
    """By order of the exchangeable nodes: the number of the form."""

    @property
    def is_instant(self) -> bool:
        """Does the message arrive at once?"""
        return isinstance(self.message, INSTANT)


@attrs.frozen
class Input:
    """An input to a node: a method of `Running`, and its arguments."""

    kind: str
    arguments: tuple[Any, ...] = ()


@attrs.frozen
class Fate:
    """A node's record of one job."""

    state: int
    key: tuple[bytes, bytes] | None
    is_dummy: bool
    was_taken: bool


@attrs.frozen(eq=False)
class Local:
    """A state of one node. Images of states that behave alike are one object."""

    number: int
    image: bytes
    at: Millis
    """The time by the node's own clock."""
    forms: tuple[tuple[int, Canonical], ...]
    """By order of the exchangeable nodes: the number of the form, and the form."""
    due: Millis
    """The time until its next timer, the heartbeat excluded."""
    beat: Millis
    """The time until its heartbeat; `FOREVER` while the heartbeat has nothing to do."""
    fates: dict[JobId, Fate]
    blocked: tuple[int, ...]
    """The clients of the scope that wait for a reply."""


@attrs.frozen
class Done:
    """The result of an input at a node."""

    local: Local
    letters: tuple[tuple[int, bool, Letter], ...] = ()
    """The target node, whether it is sent back on a link that the target has dialled, and the
    message."""
    replies: tuple[tuple[int, Reply], ...] = ()
    dials: tuple[int, ...] = ()
    hangups: tuple[tuple[int, bool], ...] = ()
    """The other node, and whether the link was dialled by it."""
    error: str = ""
    """The violated invariant, or the exception."""


@attrs.define(eq=False)
class Running:
    """A node that runs, as opposed to an image."""

    machine: Machine
    place: int
    ids: Sequence[NodeId]
    journal: dict[JobId, Record]
    clients: dict[int, Client]
    incoming: dict[int, LinkId]

    @property
    def node(self) -> NodeState:
        """The state of the node."""
        return self.machine.state

    # Inputs.

    def tick(self, now: Now) -> None:
        """Its timer fires."""
        self.machine.tick(now)

    def ask(self, now: Now, client: int, bits: int, words: tuple[bytes, ...]) -> None:
        """A client sends a request; if it adds a job, these bits are the job's identity."""
        rng = self.node.rng
        assert isinstance(rng, Fixed)
        rng.bits = bits
        if client not in self.clients:
            found = self.machine.connect(b"127.0.0.1:%d" % (50_000 + client), now)
            assert found is not None
            self.clients[client] = found
        self.machine.request(self.clients[client], list(words), now)

    def leave(self, now: Now, client: int) -> None:
        """A client disconnects."""
        found = self.clients.pop(client, None)
        if found is not None:
            self.machine.disconnect(found, now)

    def receive(self, now: Now, sender: int, back: bool, letter: Letter) -> None:
        """A message of another node arrives, on the link that this one has dialled (`back`) or
        not."""
        peer = self.node.cluster.nodes.get(self.ids[sender])
        link = (peer.link if peer else 0) if back else self.incoming.get(sender, 0)
        self.machine.message(link, self._frame(sender, letter), now)

    def _frame(self, sender: int, letter: Letter) -> Frame:
        flags = MYSELF | (LEAVING if letter.leaving else 0)
        if isinstance(letter.message, GossipMessage):
            return Frame(self.ids[sender], PORT, flags, letter.message, CAPABILITIES, format=FORMAT)
        return Frame(self.ids[sender], PORT, flags, letter.message)

    def accept(self, now: Now, sender: int) -> None:
        """Another node has dialled this one."""
        self.incoming[sender] = self.machine.accepted(address(self.place), address(sender), now)

    def linked(self, now: Now, to: int) -> None:
        """A dial has succeeded."""
        peer = self.node.cluster.nodes[self.ids[to]]
        self.machine.linked(peer.link, address(self.place), address(to), now)

    def unlinked(self, now: Now, other: int, back: bool) -> None:
        """A link has ended: the node's own (unless `back`), or one from the other node. The
        heartbeat dials at once."""
        if back:
            self.machine.unlinked(self.incoming.pop(other, 0), now)
            return
        peer = self.node.cluster.nodes.get(self.ids[other])
        if peer is not None and peer.link:
            self.machine.unlinked(peer.link, now)
            self.node.timers.arm(self.node.cron, now.mono)
            self.machine.tick(now)

    # Outputs.

    def take(self, now: Now) -> Outbox:
        """Return the outbox, after its records are on disk."""
        out = self.machine.take()
        for record in out.records:
            if isinstance(record, LoadJob):
                self.journal[record.copy.id] = record
            elif isinstance(record, DeleteJob):
                self.journal.pop(record.id, None)
        for client, chore in out.chores:
            assert isinstance(chore, AwaitNodes), f"{chore} needs a driver"
            self.machine.done(client, None, now)
            out.replies += self.machine.take().replies
        return out

    def settle(self) -> None:
        """Set each timer to its present deadline, as if it had never moved, and disarm the
        heartbeat if it is at rest."""
        timers = self.node.timers
        for due, owners in timers.armed():
            for owner in owners:
                when = owner.due
                if when > due:
                    timers.disarm(owner)
                    timers.arm(owner, when)
        if is_at_rest(self.node):
            timers.disarm(self.node.cron)
        timers.drop_stale()


def address(place: int) -> str:
    """Return the address of a node."""
    return f"10.0.0.{place + 1}"


def is_at_rest(node: NodeState) -> bool:
    """Does the heartbeat only have to ping nodes that answer?"""
    if node.repair.failing or node.repair.has_changes or node.repair.lacking:
        return False
    myself = node.cluster.myself
    failing = HANDSHAKE | PFAIL | FAIL | NOADDR
    may_fail = node.config.cluster_node_timeout < FAR
    return all(
        peer is myself
        or (not peer.flags & failing and (peer.is_connected if may_fail else peer.link))
        for peer in node.cluster.nodes.values()
    )


class Machines:
    """The nodes of one scope: starts them, and computes the results of inputs."""

    def __init__(self, count: int, config: Config, exchangeable: Sequence[int]) -> None:
        self.ids = tuple([b"abcdefgh"[place : place + 1] * 40 for place in range(count)])
        self.config = config
        self.orders = _orders(count, exchangeable)
        self._locals: dict[Any, Local] = {}
        self._forms: dict[Any, int] = {}
        self._letters: dict[str, Letter] = {}
        self._done: dict[Any, Done] = {}
        self.computed = 0
        """The number of steps that were computed, not looked up."""
        self._shared = [self._make(place, Now(START, WALL)).machine for place in range(count)]

    # Time.

    def now(self, mono: Millis) -> Now:
        """Return the clocks of all nodes at this time."""
        return Now(mono, WALL + mono - START)

    def time_of(self, mono: Millis, words: Sequence[bytes], bits: int) -> Now:
        """Return the clocks for a request. The scope fixes the creation stamp of a job, whenever
        its ADDJOB arrives."""
        is_add = words[:1] == (b"ADDJOB",)
        return Now(mono, WALL - 1_000 + (bits & 0xFF)) if is_add else self.now(mono)

    # Nodes.

    def _make(self, place: int, now: Now) -> Running:
        myself = Peer(self.ids[place], address(place), PORT, MYSELF)
        nodes = [
            Peer(id, address(other), PORT) for other, id in enumerate(self.ids) if other != place
        ]
        machine = Machine(self.config, myself, Fixed(), now, nodes=nodes)
        return Running(machine, place, self.ids, {}, {}, {})

    def begin(
        self,
        place: int,
        journal: Mapping[JobId, Record] = _EMPTY,
        mono: Millis = START,
        settings: Sequence[tuple[bytes, Setting]] = (),
    ) -> Done:
        """Start a node with the content of its disk, at this time by its own clock."""
        now = self.now(mono)
        running = self._make(place, now)
        limiting.restore(running.node, settings)
        running.machine.load(journal.values(), now)
        running.journal.update(journal)
        assert running.machine.loaded(now)
        running.node.timers.arm(running.node.cron, mono)
        running.machine.tick(now)
        return self._finish(running, now, running.take(now))

    def journal_of(self, local: Local, place: int) -> dict[JobId, Record]:
        """Return the content of a node's disk."""
        return self.revive(local, place).journal

    def limits_of(self, local: Local, place: int) -> list[tuple[bytes, Setting]]:
        """Return the limits in the nodes.conf of a node."""
        limits = self.revive(local, place).node.limits
        return [(name, limit.setting) for name, limit in limits.items()]

    def revive(self, local: Local, place: int) -> Running:
        """Return the node of an image."""
        fields, journal, clients, incoming = pickle.loads(local.image)
        state = NodeState.__new__(NodeState)
        shared = self._shared[place]
        for name in _SHARED:
            setattr(state, name, getattr(shared.state, name))
        for name, value in fields.items():
            setattr(state, name, value)
        state.out = Outbox()
        state.trace = None
        machine = Machine.__new__(Machine)
        vars(machine).update(vars(shared))
        machine.state = state
        known = {number: state.clients[id] for number, id in clients.items() if id in state.clients}
        return Running(machine, place, self.ids, journal, known, incoming)

    def step(self, place: int, local: Local, elapsed: Millis, node_input: Input) -> Done:
        """Return the result of an input to a node after this time."""
        key = (place, local.number, elapsed, node_input)
        done = self._done.get(key)
        if done is None:
            running = self.revive(local, place)
            done = self._done[key] = self.carry_out(running, local.at + elapsed, node_input)
        return done

    def carry_out(
        self, running: Running, mono: Millis, node_input: Input, trace: list[Event] | None = None
    ) -> Done:
        """Return the result of an input to a running node."""
        self.computed += 1
        now = self.now(mono)
        if node_input.kind == "ask":
            now = self.time_of(mono, node_input.arguments[2], node_input.arguments[1])
        running.node.trace = trace
        assert isinstance(running.node.rng, Fixed)
        running.node.rng.drawn = 0
        act: Callable[..., None] = getattr(running, node_input.kind)
        try:
            act(now, *node_input.arguments)
            out = running.take(now)
            check(running.node)
        except (AssertionError, LookupError, TypeError, ValueError, AttributeError) as error:
            return Done(local=NOWHERE, error=f"{type(error).__name__}: {error}")
        return self._finish(running, now, out)

    def _finish(self, running: Running, now: Now, out: Outbox) -> Done:
        letters, hangups = self._letters_of(running, out), self._hangups_of(running, out)
        dials = tuple([self._place(ip) for _, ip, _ in out.dials])
        numbers = {client.id: number for number, client in running.clients.items()}
        replies = tuple(
            [
                (numbers[client.id], reply)
                for client, reply in out.replies
                if reply is not PENDING and client.id in numbers
            ]
        )
        running.settle()
        return Done(self.image(running, now), letters, replies, dials, hangups)

    def _letters_of(self, running: Running, out: Outbox) -> tuple[tuple[int, bool, Letter], ...]:
        links = running.node.cluster.links
        callers = {link: place for place, link in running.incoming.items()}
        leaving = running.node.cluster.is_leaving
        found = []
        for targets, message in out.messages:
            for each in singles(message):
                letter = self._letter(each, leaving)
                for target in targets:
                    link = links.get(target)
                    if link is not None and link.peer is not None:
                        found.append((self._number(link.peer), False, letter))
                    elif target in callers:
                        found.append((callers[target], True, letter))
        return tuple(found)

    def _hangups_of(self, running: Running, out: Outbox) -> tuple[tuple[int, bool], ...]:
        callers = {link: place for place, link in running.incoming.items()}
        found: list[tuple[int, bool]] = [
            (callers[link], True) for link in out.hangups if link in callers
        ]
        for place, _ in found:
            del running.incoming[place]
        peers = {id for id, peer in running.node.cluster.nodes.items() if peer.link}
        ended = len(out.hangups) - len(found)
        if ended:
            mine = running.place
            found += [
                (place, False)
                for place, id in enumerate(self.ids)
                if place != mine and id not in peers
            ]
        return tuple(found)

    def _number(self, peer: Peer) -> int:
        return self._place(peer.ip)

    def _place(self, ip: str) -> int:
        return int(ip.rpartition(".")[2]) - 1

    def _letter(self, message: Message, leaving: bool) -> Letter:
        text = f"{message!r}{leaving:d}"
        letter = self._letters.get(text)
        if letter is None:
            found = [
                frozen((leaving, Writer(numbers_of(self.ids, order), {}).value(message)))
                for order in self.orders
            ]
            forms = tuple([self._forms.setdefault(form, len(self._forms)) for form in found])
            letter = self._letters[text] = Letter(message, leaving, forms)
        return letter

    # Images.

    def image(self, running: Running, now: Now) -> Local:
        """Return the image of a node; equal nodes share one image."""
        node = running.node
        numbers = {client.id: number for number, client in running.clients.items()}
        wall = self.now(now.mono).wall
        forms = []
        for order in self.orders:
            writer = Writer(numbers_of(self.ids, order), numbers)
            callers = [order[place] for place in running.incoming]
            found = writer.node(node, running.journal, callers, wall)
            forms.append((self._forms.setdefault(found.form, len(self._forms)), found))
        number, first = forms[0]
        key = (running.place, number, first.at(now.mono))
        known = self._locals.get(key)
        if known is None:
            due, beat = _deadlines(node.timers, node.cron, now.mono)
            known = self._locals[key] = Local(
                len(self._locals), self._dump(running), now.mono, tuple(forms), due, beat,
                _fates(node), _blocked(running),
            )  # fmt: skip
        return known

    def _dump(self, running: Running) -> bytes:
        node = running.node
        fields = {
            field.name: getattr(node, field.name)
            for field in attrs.fields(NodeState)
            if field.name not in _SHARED
        }
        clients = {number: client.id for number, client in running.clients.items()}
        stream = io.BytesIO()
        _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(
            (fields, running.journal, clients, running.incoming)
        )
        return stream.getvalue()

    def form(self, local: Local, order: int, elapsed: Millis) -> tuple[int, tuple[Millis, ...]]:
        """Return the form of a node after this time, with the nodes in one of the orders."""
        number, canonical = local.forms[order]
        return number, canonical.at(local.at + elapsed)

    @property
    def images(self) -> int:
        """The number of different states of nodes."""
        return len(self._locals)


def _orders(count: int, exchangeable: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return all orders of the nodes that permute the exchangeable ones."""
    found = []
    for some in permutations(exchangeable):
        order = list(range(count))
        for place, number in zip(exchangeable, some, strict=True):
            order[place] = number
        found.append(tuple(order))
    return tuple(found)


def _deadlines(timers: Timers, cron: Timed, now: Millis) -> tuple[Millis, Millis]:
    due = beat = FOREVER
    for when, owners in timers.armed():
        for owner in owners:
            if owner is cron:
                beat = min(beat, when - now)
            else:
                due = min(due, when - now)
    return due, beat


def _fates(node: NodeState) -> dict[JobId, Fate]:
    found = {}
    for id, job in node.jobs.items():
        key = None if job.extensions is None else job.extensions.key
        name = None if key is None or job.queue is None else (job.queue, key)
        found[id] = Fate(job.state, name, job.is_dummy, bool(job.flags & 4))
    return found


def _blocked(running: Running) -> tuple[int, ...]:
    clients: Iterable[tuple[int, Client]] = running.clients.items()
    return tuple([number for number, client in clients if client.blocked is not Blocked.NO])


class _Pickler(pickle.Pickler):
    """Leaves out what is the same everywhere, and caches."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Rule:
            return _rule, (obj.decide, obj.is_cancelled, obj.before_asking)
        if type(obj) is Timers:
            return Timers, (), (obj._slots, obj._order), None, None, _restore
        return NotImplemented


def _restore(timers: Timers, parts: tuple[Any, Any]) -> None:
    timers._slots, timers._order = parts


_RULES: Final[dict[Any, Rule]] = {
    (rule.decide, rule.is_cancelled, rule.before_asking): rule
    for module in (key_cancel, key_ordering)
    for rule in vars(module).values()
    if isinstance(rule, Rule)
}


def _rule(decide: Any, is_cancelled: Any, before_asking: Any) -> Rule:
    """Return the rule with these functions: modules compare rules by identity."""
    return _RULES[decide, is_cancelled, before_asking]


NOWHERE: Final = Local(-1, b"", 0, (), FOREVER, FOREVER, {}, ())
"""Stands for a node that has failed."""
