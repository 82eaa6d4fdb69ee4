"""The canonical form of a node's state: nodes with equal forms behave alike.

Every field of every record is part of the form unless it is listed here. Moments of the monotonic
clock are kept apart from the rest, so that forms can be compared at any time; names of nodes are
replaced by numbers, so that nodes can be exchanged (docs/exploring.md, "States").
"""

import enum
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import FOREVER, Millis, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Cluster, Link, Peer
from disque_trio.statemachine.federation import (
    ANSWER_WITHIN,
    MAX_ADHOC_DELAY,
    MAX_BROADCAST_DELAY,
)
from disque_trio.statemachine.job import Job, PendingAdd
from disque_trio.statemachine.jobtable import Walk
from disque_trio.statemachine.keys import Claim, Kept, Reconciliation, Rule, Search
from disque_trio.statemachine.limit import Limit, Setting, Share
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.queue import Queue, Supply
from disque_trio.statemachine.records import Record
from disque_trio.statemachine.state import (
    Asker,
    Cron,
    Demand,
    KeptResult,
    NodeState,
    QueueAnnouncements,
    Repair,
)
from disque_trio.statemachine.timers import Timed, Timers
from disque_trio.statemachine.tombstones import Tombstones
from disque_trio.statemachine.transfer import RATE_WINDOW

FAR: Final[Millis] = 3_600_000
"""No path reaches a moment that is further away than this; all such moments are equal."""
OLD: Final[Millis] = 60_000
"""Moments further in the past are equal: longer ago than any period that the protocol measures."""

AGES: Final[dict[str, Millis]] = {
    "until": 0,
    "credit_until": 0,
    "polled_until": 0,
    "asked_at": ANSWER_WITHIN,
    "broadcast_at": MAX_BROADCAST_DELAY,
    "adhoc_at": MAX_ADHOC_DELAY,
    "import_started": RATE_WINDOW,
    "import_previous_started": RATE_WINDOW,
}
"""By name of a moment: its greatest age. Older moments are equal: nothing is measured from them."""

MOMENTS: Final[dict[type, str]] = {
    Timed: "due",
    Asker: "until credit_until",
    Claim: "made began again_at last_answers",
    Client: "deadline",
    Cluster: "blacklist",
    Demand: "again_at",
    Job: "expires requeue_at gc_at",
    Kept: "until",
    KeptResult: "until",
    Limit: "awaited wanted_until known_at slots_until tokens_until asked_at promised_until"
    " gained_at level_at polled_at woken_at",
    NodeState: "paused_until",
    Peer: "reports",
    PendingAdd: "deadline widen_at",
    Queue: "responders import_started import_previous_started broadcast_at adhoc_at polled_until",
    QueueAnnouncements: "again since",
    Reconciliation: "until",
    Repair: "failing changed_at again awaited silent trailing",
    Search: "began last_answers",
    Share: "until reported_at voted_until",
    Supply: "asked_at",
}
"""Fields that are moments of the monotonic clock, or dictionaries of them."""

DURATIONS: Final[dict[type, str]] = {
    Demand: "pause",
    Job: "made delay retry",
    Limit: "retry",
    Setting: "epoch period group_period",
}
"""Milliseconds that are compared as they are. The scope fixes when a job was created; its steps
`before` all others, such as limits, always happen at the same time."""

LEFT_OUT: Final[dict[type, str]] = {
    # Links that connect records, and fields that follow from others.
    Timed: "slot earlier later",
    Job: "before after",
    NodeState: "mono wall micros config rng facts knobs stats tally table jobs queues clients"
    " timers"
    " delayed leased restored due_seconds unqueued adding adding_bytes awaited monitors paused"
    " memory out trace traces slowlog latency scans job_scans last_scan begun pause_timer cluster"
    " drawn_at drawn last_client last_made last_number dead recovered recovering expired endings",
    # Fields for people only, and times that have no effect in a scope.
    Client: "id address created active name library library_version protocol command most_pending"
    " is_unix wrong_passwords awaits authenticated",
    KeptResult: "at",
    Peer: "ip port bus_port zone name created ping_sent pong_received link link_created processes"
    " used_at reported_at doubted_at voted_at resent_on holding id_start version"
    " format",
    Cluster: "nodes links last_link reachable duplicate own_addresses probe_at hosts"
    " is_own_ip_learned announced_ip messages_sent messages_received incarnation refusal",
    Queue: "created accessed jobs_in jobs_out transferred acks _in_order _late _late_adds length",
    QueueAnnouncements: "began",
    Cron: "runs",
    Repair: "listed",
}
"""Fields that are not part of a form."""

SORTED: Final = frozenset(
    {"known", "asked", "responders", "reports", "answers", "last_answers", "silent", "failing",
     "awaited", "since", "blacklist", "index", "kept", "holders", "confirmed", "members", "targets",
     "down", "lost", "shares"}
)  # fmt: skip
"""Dictionaries, and tuples of nodes, whose order has no meaning."""

Form = tuple[Any, ...]
Fields = tuple[tuple[str, Millis | None, bool], ...]
"""For each field: its name, the age after which its moments are equal (None if it is no moment),
and whether it is sorted."""

_fields: dict[type, Fields] = {}


def listed(table: dict[type, str], kind: type) -> list[str]:
    """Return the names of a record's fields in one of the tables, including those of its bases."""
    return [name for base in kind.__mro__ for name in table.get(base, "").split()]


def fields_of(kind: type) -> Fields:
    """Return the fields of a record that are part of its form."""
    found = _fields.get(kind)
    if found is None:
        moments, left_out = listed(MOMENTS, kind), listed(LEFT_OUT, kind)
        found = _fields[kind] = tuple(
            [
                (
                    field.name,
                    AGES.get(field.name, OLD) if field.name in moments else None,
                    field.name in SORTED,
                )
                for field in attrs.fields(kind)
                if field.name not in left_out
            ]
        )
    return found


@attrs.frozen
class Canonical:
    """A form, with its moments in the order of their occurrence."""

    form: Form
    moments: tuple[tuple[Millis, Millis], ...]
    """Moments with their greatest ages."""

    def at(self, now: Millis) -> tuple[Millis, ...]:
        """Return the moments relative to this time."""
        return tuple([_seen(moment - now, age) if moment else FOREVER
                      for moment, age in self.moments])  # fmt: skip


def _seen(left: Millis, age: Millis) -> Millis:
    return FAR if left > FAR else -age if left < -age else left


class Writer:
    """Writes the form of one node, with `numbers` in place of the names of nodes."""

    def __init__(self, numbers: dict[NodeId, int], clients: dict[int, int]) -> None:
        self._numbers = numbers
        self._clients = clients
        """By number of a client in the machine: its number in the scope."""
        self.moments: list[tuple[Millis, Millis]] = []

    def node(
        self, node: NodeState, journal: dict[bytes, Record], callers: Iterable[int], wall: Millis
    ) -> Canonical:
        """Return the form of a node, of the content of its disk, and of the nodes with links to
        it."""
        cluster = node.cluster
        form = (
            self._record(node),
            self._all(node.jobs),
            self._all(node.queues),
            [self._client(node.clients[id]) for id in sorted(node.clients, key=self._number)],
            sorted([self._peer(peer) for peer in cluster.nodes.values()], key=repr),
            self._record(cluster),
            [(name, list(jobs)) for name, jobs in node.dead.items()],
            self._order(node.timers),
            sorted(callers),
            [queue.broadcast_at < node.announcements.began for queue in node.queues.values()],
            [self._written(record, node.mono - wall) for record in journal.values()],
        )
        return Canonical(frozen(form), tuple(self.moments))

    def _number(self, client: int) -> int:
        return self._clients.get(client, client)

    def _all(self, records: dict[bytes, Any]) -> list[Any]:
        return [self._whole(records[name]) for name in sorted(records)]

    def _whole(self, record: Any) -> Any:
        if isinstance(record, Queue):
            entries = [job.id for job in record.peek(len(record))]
            return (self._record(record), entries)
        return self._record(record)

    def _client(self, client: Client) -> Any:
        return (self._number(client.id), self._record(client))

    def _peer(self, peer: Peer) -> Any:
        is_resent = peer.resent_on == peer.link
        return (self.value(peer.id), bool(peer.link), is_resent, self._record(peer))

    def _record(self, record: Any) -> Any:
        found: list[Any] = [type(record).__name__]
        for name, age, is_sorted in fields_of(type(record)):
            value = getattr(record, name)
            if age is not None:
                found.append(self._moments(value, age, is_sorted=is_sorted))
            elif is_sorted and isinstance(value, dict):
                found.append(sorted([self._pair(each) for each in value.items()], key=repr))
            elif is_sorted and isinstance(value, tuple):
                found.append(sorted(self.items(value), key=repr))
            else:
                found.append(self.value(value))
        return found

    def _moments(self, value: Any, age: Millis, *, is_sorted: bool) -> Any:
        if not isinstance(value, dict):
            self.moments.append((0 if value <= -FOREVER else value, age))
            return "at"
        pairs = [(self.value(key), moment) for key, moment in value.items()]
        if is_sorted:
            pairs.sort(key=repr)
        self.moments.extend([(moment, age) for _, moment in pairs])
        return [key for key, _ in pairs]

    def _pair(self, pair: tuple[Any, Any]) -> Any:
        return (self.value(pair[0]), self.value(pair[1]))

    def value(self, value: Any) -> Any:
        """Return the form of a value. An object that is part of the form elsewhere is replaced by
        its name."""
        if value is None or isinstance(value, int | str | float):
            return value
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, bytes):
            number = self._numbers.get(value)
            return value if number is None else ("node", number)
        write = _WRITERS.get(type(value))
        if write is not None:
            return write(self, value)
        if attrs.has(type(value)):
            return self._record(value)
        assert callable(value), f"{type(value)} has no canonical form"
        return getattr(value, "__qualname__", "callable")

    def items(self, values: Iterable[Any]) -> list[Any]:
        """Return the forms of the items of a list or tuple."""
        return [self.value(each) for each in values]

    def pairs(self, values: dict[Any, Any]) -> list[Any]:
        """Return the forms of the items of a dictionary, in its order."""
        return [self._pair(each) for each in values.items()]

    def tombstones(self, tombstones: Tombstones) -> Any:
        """Return the ids, without their ages."""
        return sorted([(id, tombstones.is_acked(id)) for id in tombstones.ids()])

    def client_number(self, client: Client) -> Any:
        """Return the form of a reference to a client."""
        return ("client", self._number(client.id))

    def _order(self, timers: Timers) -> Any:
        """Return the order in which timers due at the same time are handled."""
        return [
            [type(owner).__name__ for owner in owners]
            for _, owners in timers.armed()
            if len(owners) > 1
        ]

    def _written(self, record: Record, shift: Millis) -> Any:
        copy = getattr(record, "copy", None)
        if not isinstance(copy, JobCopy):
            return self.value(record)
        self.moments.append((copy.etime * 1000 + shift, OLD))
        self.moments.append((copy.due + shift if copy.due else 0, OLD))
        return self.value(attrs.evolve(copy, etime=0, due=0))


def _walk(_writer: Writer, walk: Walk) -> Any:
    return ("walk", walk.is_over, walk.next and walk.next.id, walk.last and walk.last.id)


def _link(writer: Writer, link: Link) -> Any:
    return ("link", link.peer and writer.value(link.peer.id))


_WRITERS: Final[dict[type, Callable[[Writer, Any], Any]]] = {
    list: Writer.items,
    tuple: Writer.items,
    deque: Writer.items,
    dict: Writer.pairs,
    OrderedDict: Writer.pairs,
    Job: lambda _writer, job: ("job", job.id),
    Queue: lambda _writer, queue: ("queue", queue.name),
    Client: Writer.client_number,
    Peer: lambda writer, peer: writer.value(peer.id),
    Rule: lambda _writer, rule: rule.decide.__qualname__,
    Tombstones: Writer.tombstones,
    Walk: _walk,
    Link: _link,
}


def frozen(value: Any) -> Any:
    """Return the value with tuples in place of lists, so that it can be a key."""
    return tuple([frozen(each) for each in value]) if isinstance(value, list | tuple) else value


def numbers_of(ids: Sequence[NodeId], order: Sequence[int]) -> dict[NodeId, int]:
    """Return the number of each node if the nodes are in this order."""
    return {id: order[place] for place, id in enumerate(ids)}
