"""What a node tells of itself, of the others and of the cluster: one record and one parser for the
console, the doctor, `explain` and the operations.
"""

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
"""Of the id of a node that has no name; ids of jobs begin with the same."""


def node_name(id: str, named: str, where: str = "") -> str:
    """How people call a node: by its `node-name`, else by the start of its id. `where` is for one
    of which even that is unknown."""
    return named or id[:_DIGITS] or where


def label_of(name: str, where: str) -> str:
    """The name of a node with its address as a detail; the address alone for a node without any
    other name."""
    return f"{name} ({where})" if name and name != where else where


@attrs.frozen
class PeerLine:
    """A line of CLUSTER NODES: how one node sees another."""

    id: str
    host: str
    port: int
    flags: frozenset[str]
    is_connected: bool
    zone: str = ""
    """Empty if it names none."""
    bus_port: int = 0
    """Where other nodes reach it; 0 if the line does not tell."""
    name: str = ""
    """Its `node-name`."""
    pong_s: float = 0.0
    """When its last PONG came, in Unix seconds; 0 if the line does not tell."""

    @property
    def address(self) -> str:
        """Its address for clients, as the other node knows it."""
        return str(Address(host=self.host, port=self.port))


@attrs.frozen(kw_only=True)
class NodeFacts:
    """The answers of one node. `error` is why there are none; then all else is empty."""

    where: str
    name: str = ""
    """How people call it (`KnownNode.name`); empty if nothing but its address is known."""
    error: str = ""
    error_since: float | None = None
    """In Unix seconds."""
    advice: str = ""
    is_there: bool = False
    """Does it run, and refuse to answer?"""
    id: str = ""
    info: dict[str, str] = attrs.Factory(dict)
    """All fields of INFO."""
    config: dict[str, str] = attrs.Factory(dict)
    """All directives of CONFIG GET."""
    peers: tuple[PeerLine, ...] = ()
    """The other nodes that it knows."""
    has_password: bool = False
    """It requires one."""
    skew_ms: float = 0.0
    """How far its wall clock is ahead of this machine's."""
    uncertainty_ms: float = 0.0
    """Half of the time that its answer took."""
    now_s: float = 0.0
    """The node's clock, in Unix seconds."""
    bus_error: str = ""
    """Why its bus port cannot be reached from here; empty if it can, or if its address is
    unknown."""

    @property
    def label(self) -> str:
        """Its name, and where it is."""
        return label_of(self.name, self.where)

    @property
    def is_ours(self) -> bool:
        """Is it no original server?"""
        return "python_version" in self.info

    @property
    def is_loading(self) -> bool:
        """Does it still load its append-only file? Then it refuses most commands and has no
        links."""
        return self.info.get("loading", "0") != "0"

    @property
    def can_record(self) -> bool:
        """Can it write its append-only file, or has none? Otherwise it refuses most commands."""
        states = (self.info.get("aof_file_status"), self.info.get("aof_last_write_status"))
        return all(state in (None, "ok") for state in states)

    @property
    def version(self) -> str:
        """Its version, and the number of its formats, as far as it announces one."""
        name = self.info.get("disque_version", "?")[:VERSION_SIZE]
        number = self.info.get("format")
        return f"{name}/{number}" if number else name

    def counts(self, field: str) -> dict[str, int]:
        """A field of INFO that counts by reason."""
        pairs = [pair.rpartition("=") for pair in self.info.get(field, "").split(",")]
        return {reason: int(count) for reason, _, count in pairs if count.isdigit()}

    def number(self, field: str) -> int:
        """A field of INFO; 0 when it is missing."""
        value = self.info.get(field, "")
        return int(value) if value.lstrip("-").isdigit() else 0


def lines_of(text: str, own_host: str) -> list[PeerLine]:
    """All lines of CLUSTER NODES."""
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
    """The directives of CONFIG GET, by name."""
    words = reply if isinstance(reply, list) else []
    texts = [each.decode(errors="replace") for each in words if isinstance(each, bytes)]
    return dict(zip(texts[::2], texts[1::2], strict=False))


def number_of(config: Mapping[str, str], name: str) -> int:
    """A directive; 0 without it."""
    value = config.get(name, "")
    return int(value) if value.isdecimal() else 0


def bus_place(address: Address, config: Mapping[str, str]) -> tuple[str, int] | None:
    """Where the node tells others that its bus port is: 10000 above the plain port, or above the
    TLS port if there is no plain one, unless it announces another address or port. None for one
    that is reached by a socket of its machine."""
    if address.path is not None:
        return None
    plain = number_of(config, "cluster-announce-port") or number_of(config, "port") or address.port
    port = number_of(config, "cluster-announce-bus-port") or plain + BUS_OFFSET
    return config.get("cluster-announce-ip") or address.host, port


# Figures.

RATES: Final = ("jobs_added", "jobs_delivered", "jobs_acked", "total_commands_processed")
"""The totals of a node of which rates are shown. Original nodes have the last one alone."""
_REPORTED_BY_OTHERS: Final = ("setack",)
"""An acknowledgement is counted at each holder, by this cause but at one."""


@attrs.frozen
class NodeView:
    """One node. Numbers that it does not tell are None."""

    node: str
    name: str
    jobs: int | None
    memory: int | None
    maxmemory: int | None
    clients: int | None
    blocked: int | None
    under_replicated: int | None
    totals: dict[str, int]
    """Those of `RATES` that it tells."""
    rates: dict[str, float]
    """A second; empty at the first look."""


def view_of(
    node: str, info: Mapping[str, str], before: Mapping[str, int], seconds: float
) -> NodeView:
    """A node by its INFO. `before` are the totals of so many `seconds` ago; 0 is of no look."""
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
    """A second. None is negative: a node that was started again counts from 0."""
    return max(after - before, 0) / seconds


def _number(info: Mapping[str, str], field: str) -> int | None:
    value = info.get(field, "")
    return int(value) if value.isdecimal() else None


def counted_total(info: Mapping[str, str], field: str, without: Collection[str] = ()) -> int | None:
    """A number, or the sum of `ackjob=3,setack=1` `without` some of these."""
    value = info.get(field)
    if value is None or value.isdecimal():
        return _number(info, field)
    parts = [part.rpartition("=") for part in value.split(",")]
    return sum(int(count) for name, _, count in parts if count.isdecimal() and name not in without)
