"""Asks nodes for their state: INFO, CONFIG, CLUSTER NODES, and whether their ports can be
reached."""

import contextlib
import select
import socket
import time
from collections.abc import Mapping
from typing import Final, TypeVar

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.observe.cluster import NodeFacts, bus_place, number_of, pairs, peer_lines
from disque_trio.statemachine.base import Failure, Reply, Status

T = TypeVar("T")


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

    def of(self, command: Command[T], *, default: T) -> T:
        """What the reply means; the default for one that the command cannot have."""
        reply = self.ask(*[word.decode() for word in command.words])
        with contextlib.suppress(TypeError, ValueError):
            return command.meaning(reply)
        return default


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
    info: dict[str, str] = {}
    with contextlib.suppress(_RefusedError):
        info = patient.of(commands.info(), default=info)
    if info.get("loading", "0") != "0":
        return NodeFacts(where=str(address), info=info)  # it refuses all other commands
    config = _pairs(patient)
    before = time.time()
    clock = commands.time()
    now_s = patient.of(clock, default=round(before * 1e6)) / 1e6
    after = time.time()
    return NodeFacts(
        where=_own_place(address, config),
        id=patient.text("CLUSTER", "MYID"),
        info=info,
        config=config,
        peers=peer_lines(patient.text("CLUSTER", "NODES"), address.host),
        now_s=now_s,
        skew_ms=(now_s - (before + after) / 2) * 1000,
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


def _pairs(patient: _Examined) -> dict[str, str]:
    try:
        return pairs(patient.ask("CONFIG", "GET", "*"))
    except _RefusedError:  # renamed, or taken away
        return {}


def _bus_error(address: Address, config: Mapping[str, str], timeout_s: float) -> str:
    """Try the bus port where the node tells others that it is."""
    place = bus_place(address, config)
    if place is None:
        return ""
    try:
        socket.create_connection(place, timeout_s).close()
    except TimeoutError:
        return "no answer in time"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _is_worker(config: Mapping[str, str]) -> bool:
    return int(config.get("workers", "1") or 1) > 1


def _own_place(address: Address, config: Mapping[str, str]) -> str:
    """The node's own address: at the port that workers share, any of them may have answered."""
    own = number_of(config, "cluster-announce-port")
    own = own or number_of(config, "port" if address.tls is None else "tls-port")
    if not _is_worker(config) or address.path is not None or not own:
        return str(address)
    return str(attrs.evolve(address, port=own))


def _shift(address: Address, node: NodeFacts) -> int:
    plain = number_of(node.config, "cluster-announce-port") or number_of(node.config, "port")
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
