"""Looks at the nodes of a cluster: what each tells of itself, and how it sees the others."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.greeting import Introduction
from disque_trio.explain.zones import Place
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.sampling import NodeView, counted_total, view_of
from disque_trio.statemachine.base import Reply

FRESH_S: Final = 0.4
"""A look that is not older serves all who ask."""
_FIRST: Final = ("first", "import")
"""Causes for which a job enters a queue that are no further delivery of it."""
Json = dict[str, Any]


@attrs.define
class KnownNode:
    """What is known of a node: its last answers."""

    address: Address
    name: str
    """Short, for tables: n1, n2 and so on."""
    id: str = ""
    view: NodeView | None = None
    info: Mapping[str, str] = attrs.Factory(dict)
    is_leaving: bool = False
    clock_ms: int | None = None
    """How far its clock is ahead of this machine's."""
    replicate: int = 0
    """Its default-replicate; 0 if it does not tell."""
    peers: Mapping[str, str] = attrs.Factory(dict)
    """By id, how it sees the others: `up`, `suspect` or `failed`."""
    again: int | None = None
    """How often a job was queued here after the first time."""
    again_s: float | None = None
    heard: float | None = None
    why: str = ""
    """Why it does not answer now; empty if it does."""

    @property
    def where(self) -> str:
        """Its address as text."""
        return str(self.address)

    @property
    def state(self) -> str:
        """In a word."""
        if self.info.get("loading", "0") != "0" or "LOADING" in self.why:
            return "loading"
        if self.why or self.view is None:
            return "silent"
        return "leaving" if self.is_leaving else "up"

    @property
    def zone(self) -> str:
        """Its `replica-zone`; empty if it names none."""
        return self.info.get("replica_zone", "")

    @property
    def place(self) -> Place:
        """What its zone is judged by."""
        return Place(
            where=f"{self.name} {self.where}",
            id=self.id,
            host=self.address.host,
            zone=self.zone,
            replicate=self.replicate,
        )

    @property
    def journal(self) -> str:
        """`off`, `ok` or `broken`."""
        if self.info.get("aof_enabled", "0") == "0":
            return "off"
        return "ok" if self.info.get("aof_last_write_status", "ok") == "ok" else "broken"

    def rate(self, name: str) -> float | None:
        """One of `RATES`."""
        return None if self.view is None else _rounded(self.view.rates.get(name))


@attrs.define(eq=False)
class Survey:
    """Remembers the last look at each node."""

    client: DeadlineClient
    nodes: dict[str, KnownNode] = attrs.Factory(dict)
    """By address, in the order of their names."""
    looked: float | None = None
    """When, by anyio's clock."""
    _looking: anyio.Lock = attrs.Factory(anyio.Lock)
    _names: dict[str, str] = attrs.Factory(dict)

    @property
    def unreached(self) -> dict[str, str]:
        """Nodes that do not answer, and why."""
        return {each.where: each.why for each in self.nodes.values() if each.why}

    async def look(self) -> None:
        """Ask all nodes, unless somebody has just done so. None delays it for more than
        `watching.ANSWER_S`."""
        async with self._looking:
            now = anyio.current_time()
            if self.looked is not None and now - self.looked < FRESH_S:
                return
            looked_at: set[str] = set()
            while new := [each for each in self._known(now) if each.where not in looked_at]:
                async with anyio.create_task_group() as tasks:
                    for node in new:
                        tasks.start_soon(self._look_at, node)
                looked_at |= {each.where for each in new}  # they may know others
            self.looked = anyio.current_time()

    def sum_rate(self, name: str) -> float | None:
        """Of one of `RATES`, over the nodes that answer."""
        rates = [each.rate(name) for each in self.nodes.values() if not each.why]
        known = [rate for rate in rates if rate is not None]
        return _rounded(sum(known)) if known else None

    def figures(self, field: str) -> list[int]:
        """A number of INFO, of each node that answers and has it."""
        told = (each.info.get(field, "") for each in self.nodes.values() if not each.why)
        return [int(each) for each in told if each.isdecimal()]

    def _known(self, now: float) -> Sequence[KnownNode]:
        """The nodes that the client knows. Those that join get the next name."""
        addresses = {str(each): each for each in self.client.nodes.order(now)}
        for where in sorted(addresses.keys() - self._names.keys()):
            self._names[where] = f"n{len(self._names) + 1}"
        before = self.nodes
        ordered = sorted(addresses, key=lambda where: int(self._names[where][1:]))
        self.nodes = {
            where: before.get(where) or KnownNode(addresses[where], self._names[where])
            for where in ordered
        }
        return list(self.nodes.values())

    async def _look_at(self, node: KnownNode) -> None:
        asked: list[Command[Any]] = [
            commands.call("TIME"),
            commands.info(),
            commands.hello(),
            commands.call("CLUSTER", "NODES"),
            commands.call("CLUSTER", "LEAVING"),
            commands.call("CONFIG", "GET", "default-replicate"),
        ]
        before = time.time()
        try:
            clock, info, hello, peers, leaving, config = await self.client.ask(node.address, asked)
        except DisqueError as error:
            silence = self.client.silent.get(node.where)
            node.why = silence.told(anyio.current_time()) if silence else str(error)
            return
        node.clock_ms = _offset_ms(clock, before, time.time())
        if isinstance(info, dict):
            self._note(node, info)
        if isinstance(hello, list):
            self.client.nodes.introduced(
                node.address, Introduction(hello, self.client.nodes.features(node.address))
            )
        _note_peers(node, peers)
        node.is_leaving = getattr(leaving, "text", b"") == b"yes"
        node.replicate = _number(config)

    def _note(self, node: KnownNode, info: Mapping[str, str]) -> None:
        now = anyio.current_time()
        seconds = now - node.heard if node.heard is not None else 0.0
        before = node.view.totals if node.view is not None else {}
        node.view = view_of(node.where, info, before, seconds)
        causes = counted_total(info, "jobs_queued", _FIRST)
        if causes is not None and node.again is not None and seconds:
            node.again_s = _rounded(max(causes - node.again, 0) / seconds)
        node.again, node.heard, node.info, node.why = causes, now, info, ""


def _number(config: Any) -> int:
    """Of the answer of CONFIG GET; 0 if there is none."""
    match config:
        case [_, bytes(value)] if value.isdigit():
            return int(value)
        case _:
            return 0


def _offset_ms(clock: Any, before: float, after: float) -> int | None:
    match clock:
        case [bytes(seconds), bytes(micros)]:
            told = int(seconds) + int(micros) / 1_000_000
            return round((told - (before + after) / 2) * 1000)
        case _:
            return None


def _note_peers(node: KnownNode, lines: Reply | DisqueError) -> None:
    """Of lines such as `id 127.0.0.1:7711 noflags 0 1795455843243 connected`."""
    if not isinstance(lines, bytes):
        return
    peers = {}
    for line in lines.decode(errors="replace").splitlines():
        id, _, flags, *_ = [*line.split(), "", "", ""]
        words = flags.split(",")
        if "myself" in words:
            node.id = id
        elif "handshake" not in words:
            suspicion = "suspect" if "fail?" in words else "up"
            peers[id] = "failed" if "fail" in words else suspicion
    node.peers = peers


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 2)


def node_row(node: KnownNode, queued: int | None) -> Json:
    """A node, with how many jobs it has queued."""
    view = node.view
    uptime = node.info.get("uptime_in_seconds", "")
    return {
        "node": node.where,
        "id": node.id,
        "name": node.name,
        "zone": node.zone,
        "state": node.state,
        "why": node.why,
        "jobs": view and view.jobs,
        "queued": queued,
        "memory": view and view.memory,
        "maxmemory": view and view.maxmemory,
        "clients": view and view.clients,
        "waiting": view and view.blocked,
        "under_replicated": view and view.under_replicated,
        "added_s": node.rate("jobs_added"),
        "delivered_s": node.rate("jobs_delivered"),
        "acked_s": node.rate("jobs_acked"),
        "commands_s": node.rate("total_commands_processed"),
        "version": node.info.get("disque_version", ""),
        "uptime_s": int(uptime) if uptime.isdecimal() else None,
        "journal": node.journal,
        "clock_ms": node.clock_ms,
    }


def sees(nodes: Sequence[KnownNode]) -> list[list[str]]:
    """Who sees whom, and how. What a silent node sees is not known."""
    found = []
    for one in nodes:
        for other in nodes:
            if one is not other:
                told = one.peers.get(other.id, "unknown") if not one.why else "unknown"
                found.append([one.where, other.where, told])
    return found
