"""What a node reports of itself, of the others and of the cluster: one record and one parser for
the console, the doctor, `explain` and the operations."""

from collections.abc import Collection, Mapping
from typing import Final

import attrs

from disque_trio.client.address import Address
from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import VERSION_SIZE, Reply
from disque_trio.terminal.escapes import printable

_LINE_WORDS: Final = 6
_ZONE: Final = "zone="
_NAME: Final = "name="
_DIGITS: Final = 8
"""The digits of an id that stand for a node without a name. Ids of jobs begin with the same
digits."""


def node_name(id: str, named: str, where: str = "") -> str:
    """Return the name of a node for people: its `node-name`, else the start of its id, else
    `where`."""
    return named or id[:_DIGITS] or where


def label_of(name: str, where: str) -> str:
    """Return the name of a node with its address in parentheses; only the address if it has no
    other name."""
    return f"{name} ({where})" if name and name != where else where


@attrs.frozen
class PeerLine:
    """A line of CLUSTER NODES: the state of a node in the view of another one."""

    id: str
    host: str
    port: int
    flags: frozenset[str]
    is_connected: bool
    zone: str = ""
    """Empty if the node has no zone."""
    bus_port: int = 0
    """The port for other nodes; 0 if the line does not contain it."""
    name: str = ""
    """Its `node-name`."""
    pong_s: float = 0.0
    """When its last PONG was received, in Unix seconds; 0 if the line does not contain it."""

    @property
    def address(self) -> str:
        """Its address for clients, as the other node reports it."""
        return str(Address(host=self.host, port=self.port))


@attrs.frozen(kw_only=True)
class NodeFacts:
    """The answers of one node. If `error` is set, it has not answered, and INFO, CONFIG and so on
    are empty or old."""

    where: str
    name: str = ""
    """Its name for people (`KnownNode.name`); empty if only its address is known."""
    error: str = ""
    error_since: float | None = None
    """In Unix seconds."""
    advice: str = ""
    is_there: bool = False
    """Does the node run, and refuse to answer?"""
    id: str = ""
    info: dict[str, str] = attrs.Factory(dict)
    """All fields of INFO."""
    config: dict[str, str] = attrs.Factory(dict)
    """All directives of CONFIG GET."""
    peers: tuple[PeerLine, ...] = ()
    """The other nodes that it reports."""
    has_password: bool = False
    """Does the node require a password?"""
    skew_ms: float = 0.0
    """How far its wall clock is ahead of this machine's, in milliseconds."""
    uncertainty_ms: float = 0.0
    """Half of the duration of the request."""
    now_s: float = 0.0
    """The time by the node's clock, in Unix seconds."""
    bus_error: str = ""
    """Why its bus port cannot be reached from this machine; empty if it can, or if its address is
    unknown."""

    @property
    def label(self) -> str:
        """Its name and its address."""
        return label_of(self.name, self.where)

    @property
    def is_ours(self) -> bool:
        """Is it a node of this project, not an original server?"""
        return "python_version" in self.info

    @property
    def is_loading(self) -> bool:
        """Is it loading its append-only file? Then it refuses most commands and has no links."""
        return self.info.get("loading", "0") != "0"

    @property
    def can_record(self) -> bool:
        """Can it write its append-only file, or does it have none? If not, it refuses most
        commands."""
        states = (self.info.get("aof_file_status"), self.info.get("aof_last_write_status"))
        return all(state in (None, "ok") for state in states)

    @property
    def version(self) -> str:
        """Its version, and the number of its formats if it announces one."""
        name = self.info.get("disque_version", "?")[:VERSION_SIZE]
        number = self.info.get("format")
        return f"{name}/{number}" if number else name

    def counts(self, field: str) -> dict[str, int]:
        """Return the counts by reason that a field of INFO contains."""
        pairs = [pair.rpartition("=") for pair in self.info.get(field, "").split(",")]
        return {reason: int(count) for reason, _, count in pairs if count.isdigit()}

    def number(self, field: str) -> int:
        """Return a number of INFO; 0 if it is missing."""
        value = self.info.get(field, "")
        return int(value) if value.lstrip("-").isdigit() else 0


def lines_of(text: str, own_host: str) -> list[PeerLine]:
    """Parse all lines of CLUSTER NODES."""
    found = (line.split() for line in text.splitlines())
    return [_line(words, own_host) for words in found if len(words) >= _LINE_WORDS]


def _line(words: list[str], own_host: str) -> PeerLine:
    place, _, bus_port = words[1].partition("@")
    host, _, port = place.rpartition(":")
    more = words[_LINE_WORDS:]
    zones = [word for word in more if word.startswith(_ZONE)]
    names = [word for word in more if word.startswith(_NAME)]
    return PeerLine(
        words[0],
        host or own_host,
        int(port) if port.isdigit() else 0,
        frozenset(words[2].split(",")),
        words[5] == "connected",
        zone=zones[0].removeprefix(_ZONE) if zones else "",
        bus_port=int(bus_port) if bus_port.isdigit() else 0,
        name=printable(names[0].removeprefix(_NAME)) if names else "",
        pong_s=int(words[4]) / 1000 if words[4].isdigit() else 0.0,
    )


def pairs(reply: Reply) -> dict[str, str]:
    """Return the directives of CONFIG GET, by name."""
    words = reply if isinstance(reply, list) else []
    texts = [each.decode(errors="replace") for each in words if isinstance(each, bytes)]
    return dict(zip(texts[::2], texts[1::2], strict=False))


def number_of(config: Mapping[str, str], name: str) -> int:
    """Return the number of a directive; 0 without it."""
    value = config.get(name, "")
    return int(value) if value.isdecimal() else 0


def bus_place(address: Address, config: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the bus address that the node announces to others: by default 10000 above the plain
    port, or above the TLS port if there is no plain one. None for a node that is reached by a Unix
    socket."""
    if address.path is not None:
        return None
    plain = number_of(config, "cluster-announce-port") or number_of(config, "port") or address.port
    port = number_of(config, "cluster-announce-bus-port") or plain + BUS_OFFSET
    return config.get("cluster-announce-ip") or address.host, port


# Figures.

RATES: Final = ("jobs_added", "jobs_delivered", "jobs_acked", "total_commands_processed")
"""The counters of a node of which rates are shown. Original servers have only the last one."""
_REPORTED_BY_OTHERS: Final = ("setack",)
"""Each holder counts an acknowledgement; all but one of them under this cause."""


@attrs.frozen
class NodeView:
    """One node. Numbers that it does not report are None."""

    node: str
    name: str
    jobs: int | None
    memory: int | None
    maxmemory: int | None
    clients: int | None
    blocked: int | None
    under_replicated: int | None
    totals: dict[str, int]
    """The counters of `RATES` that it reports."""
    rates: dict[str, float]
    """Per second; empty at the first look."""


def view_of(
    node: str, info: Mapping[str, str], before: Mapping[str, int], seconds: float
) -> NodeView:
    """Return the view of a node from its INFO. `before` are its counters `seconds` ago; `seconds`
    is 0 at the first look."""
    counts = {name: counted_total(info, name, _REPORTED_BY_OTHERS) for name in RATES}
    totals = {name: count for name, count in counts.items() if count is not None}
    return NodeView(
        node,
        node_name(info.get("node_id", ""), printable(info.get("node_name", "")), node),
        _number(info, "registered_jobs"),
        _number(info, "used_memory"),
        _number(info, "maxmemory"),
        _number(info, "connected_clients"),
        _number(info, "blocked_clients"),
        _number(info, "under_replicated_jobs"),
        totals,
        {
            name: rate(before[name], count, seconds)
            for name, count in totals.items()
            if name in before and seconds
        },
    )


def rate(before: int, after: int, seconds: float) -> float:
    """Return the rate per second; 0 if the counter has decreased, because a restarted node counts
    from 0."""
    return max(after - before, 0) / seconds


def _number(info: Mapping[str, str], field: str) -> int | None:
    value = info.get(field, "")
    return int(value) if value.isdecimal() else None


def counted_total(info: Mapping[str, str], field: str, without: Collection[str] = ()) -> int | None:
    """Return a number, or the sum of `ackjob=3,setack=1` except for the names in `without`."""
    value = info.get(field)
    if value is None or value.isdecimal():
        return _number(info, field)
    parts = [part.rpartition("=") for part in value.split(",")]
    return sum(int(count) for name, _, count in parts if count.isdecimal() and name not in without)
