"""Asks nodes for their state: INFO, CONFIG, CLUSTER NODES, and whether their ports can be
reached."""

import contextlib
import select
import socket
import time
from collections.abc import Mapping
from typing import Final

import attrs

from disque_trio.client.address import Address
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import VERSION_SIZE, Failure, Reply, Status

_LINE_WORDS: Final = 6
_ZONE: Final = "zone="


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

    @property
    def address(self) -> str:
        """Its address for clients, as the other node knows it."""
        return str(Address(host=self.host, port=self.port))


@attrs.frozen(kw_only=True)
class NodeFacts:
    """The answers of one node. `error` is why there are none; then all else is empty."""

    where: str
    error: str = ""
    advice: str = ""
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
    def is_ours(self) -> bool:
        """Is it no original server?"""
        return "python_version" in self.info

    @property
    def is_loading(self) -> bool:
        """Does it still load its append-only file? Then it refuses most commands and has no
        links."""
        return self.info.get("loading", "0") != "0"

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


class _RefusedError(Exception):
    """The node has answered with an error."""


@attrs.define
class _Examined:
    """A connection to an examined node, with a timeout for each answer."""

    connection: Connection
    timeout_s: float

    def ask(self, *words: str) -> Reply:
        """The reply to one command."""
        self.connection.send([word.encode() for word in words])
        replies: list[Reply] = []
        deadline = time.monotonic() + self.timeout_s
        while not replies:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.connection], [], [], left)[0]:
                raise ConnectionFailedError(
                    f"it does not answer {words[0]} within {self.timeout_s:g} s",
                    "See whether it is overloaded or stopped, and what its log says.",
                )
            replies = self.connection.received()
        if isinstance(replies[0], Failure):
            raise _RefusedError(replies[0].text.decode(errors="replace"))
        return replies[0]

    def text(self, *words: str) -> str:
        """The same for a string; empty if the node does not know the command."""
        with contextlib.suppress(_RefusedError):
            reply = self.ask(*words)
            text = reply.text if isinstance(reply, Status) else reply
            if isinstance(text, bytes):
                return text.decode(errors="replace")
        return ""


def examine(address: Address, password: bytes | None, timeout_s: float) -> NodeFacts:
    """Ask one node everything."""
    where = str(address)
    connection = Connection(address, password, timeout_s)
    try:
        refusal = connection.ready()
        if refusal is not None:
            text = refusal.text.decode(errors="replace")
            return NodeFacts(where=where, error=text, advice=_ADVICE_ON_PASSWORD)
        facts = _examined(address, _Examined(connection, timeout_s))
        return attrs.evolve(facts, has_password=password is not None)
    except _RefusedError as error:
        needs_password = str(error).startswith("NOAUTH")
        advice = _ADVICE_ON_PASSWORD if needs_password else "see what the error says"
        return NodeFacts(where=where, error=str(error), advice=advice)
    except ConnectionFailedError as error:
        return NodeFacts(
            where=where,
            error=error.reason,
            advice=error.advice or "See whether the node runs, and what its log says.",
        )
    finally:
        connection.close()


_ADVICE_ON_PASSWORD: Final = "give the password with --password-file or in $DISQUE_AUTH"


def _examined(address: Address, patient: _Examined) -> NodeFacts:
    _ping(patient)
    info = _fields(patient.text("INFO"))
    if info.get("loading", "0") != "0":
        return NodeFacts(where=str(address), info=info)  # it refuses all other commands
    config = _pairs(patient)
    before = time.time()
    answer = patient.ask("TIME")
    after = time.time()
    return NodeFacts(
        where=_own_place(address, config),
        id=patient.text("CLUSTER", "MYID"),
        info=info,
        config=config,
        peers=_peers(patient.text("CLUSTER", "NODES"), address.host),
        now_s=_seconds(answer),
        skew_ms=(_seconds(answer) - (before + after) / 2) * 1000,
        uncertainty_ms=(after - before) * 500,
        bus_error=_bus_error(address, config, patient.timeout_s),
    )


def _ping(patient: _Examined) -> None:
    """A node that loads, or cannot write to its disk, refuses even PING; INFO has the details."""
    try:
        patient.ask("PING")
    except _RefusedError as error:
        if not str(error).startswith(("MISCONF", "LOADING", "DUPLICATEID")):
            raise


def _seconds(answer: Reply) -> float:
    if not isinstance(answer, list) or len(answer) != 2:
        return time.time()
    seconds, micros = (int(part) if isinstance(part, bytes | int) else 0 for part in answer)
    return seconds + micros / 1_000_000


def _fields(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if ":" in line and not line.startswith("#")]
    return dict(line.split(":", 1) for line in lines)


def _pairs(patient: _Examined) -> dict[str, str]:
    try:
        reply = patient.ask("CONFIG", "GET", "*")
    except _RefusedError:  # renamed, or taken away
        return {}
    words = [each.decode(errors="replace") for each in _items(reply) if isinstance(each, bytes)]
    return dict(zip(words[::2], words[1::2], strict=False))


def _items(reply: Reply) -> list[Reply]:
    return reply if isinstance(reply, list) else []


def _peers(text: str, own_host: str) -> tuple[PeerLine, ...]:
    """The peers. A node that does not know its own address leaves it empty."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < _LINE_WORDS or "myself" in words[2].split(","):
            continue
        found.append(_peer(words, own_host))
    return tuple(found)


def _peer(words: list[str], own_host: str) -> PeerLine:
    place, _, bus_port = words[1].partition("@")
    host, _, port = place.rpartition(":")
    zones = [word for word in words[_LINE_WORDS:] if word.startswith(_ZONE)]
    return PeerLine(
        words[0],
        host or own_host,
        int(port) if port.isdigit() else 0,
        frozenset(words[2].split(",")),
        words[5] == "connected",
        zone=zones[0].removeprefix(_ZONE) if zones else "",
        bus_port=int(bus_port) if bus_port.isdigit() else 0,
    )


def _bus_error(address: Address, config: Mapping[str, str], timeout_s: float) -> str:
    """Try the bus port where the node tells others that it is: 10000 above the plain port, or above
    the TLS port if there is no plain one, unless it announces another address or port."""
    if address.path is not None:
        return ""
    plain = _number(config, "cluster-announce-port") or _number(config, "port") or address.port
    port = _number(config, "cluster-announce-bus-port") or plain + BUS_OFFSET
    host = config.get("cluster-announce-ip") or address.host
    try:
        socket.create_connection((host, port), timeout_s).close()
    except TimeoutError:
        return "no answer in time"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _number(config: Mapping[str, str], name: str) -> int:
    """A directive; 0 without it."""
    value = config.get(name, "")
    return int(value) if value.isdecimal() else 0


def _is_worker(config: Mapping[str, str]) -> bool:
    return int(config.get("workers", "1") or 1) > 1


def _own_place(address: Address, config: Mapping[str, str]) -> str:
    """The node's own address: at the port that workers share, any of them may have answered."""
    own = _number(config, "cluster-announce-port")
    own = own or _number(config, "port" if address.tls is None else "tls-port")
    if not _is_worker(config) or address.path is not None or not own:
        return str(address)
    return str(attrs.evolve(address, port=own))


def _shift(address: Address, node: NodeFacts) -> int:
    plain = _number(node.config, "cluster-announce-port") or _number(node.config, "port")
    if address.tls is None or not plain:
        return 0
    # The port that was asked may be the one that workers share.
    return (int(node.config["tls-port"]) if _is_worker(node.config) else address.port) - plain


def survey(address: Address, password: bytes | None, timeout_s: float) -> list[NodeFacts]:
    """The node at an address, and every other that any of them knows.

    Nodes know each other's plain ports only, if they have one. Under TLS the others are asked at
    the port with the same distance from it as at the first node.
    """
    found = [examine(address, password, timeout_s)]
    shift = _shift(address, found[0])
    asked = {found[0].id: None}
    waiting = list(found[0].peers)
    while waiting:
        peer = waiting.pop(0)
        if peer.id in asked or not peer.port or peer.flags & {"handshake", "noaddr"}:
            continue
        asked[peer.id] = None
        port = peer.port + shift if 0 < peer.port + shift < 65536 else peer.port
        facts = examine(attrs.evolve(address, host=peer.host, port=port), password, timeout_s)
        found.append(facts if facts.id else attrs.evolve(facts, id=peer.id))
        waiting += facts.peers
    return found
