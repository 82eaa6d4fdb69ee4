"""Periodic survey of the nodes of a cluster: the state that each reports of itself and of the
others."""

import contextlib
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.greeting import Introduction
from disque_trio.client.streams import cause_of
from disque_trio.explain.zones import Place
from disque_trio.observe.client import DeadlineClient, query, silence_of
from disque_trio.observe.cluster import (
    NodeFacts,
    NodeView,
    PeerLine,
    bus_place,
    counted_total,
    label_of,
    lines_of,
    node_name,
    number_of,
    pairs,
    view_of,
)
from disque_trio.statemachine.base import Reply
from disque_trio.terminal.escapes import printable

FRESH_S: Final = 0.4
"""The maximum age of a look that is used again."""
CONFIGURED_S: Final = 30.0
"""The maximum age of directives that are used again."""
_SEARCHES: Final = 100
"""The maximum number of long searches that are kept."""
_ADVICE: Final = "see whether the node runs, and what its log says"
_LOG: Final = "see what its log says"
_FIRST: Final = ("first", "import")
"""Causes of queueing that are not a further delivery of a job."""
_PORTS: Final = 65536
Json = dict[str, Any]


@attrs.define
class KnownNode:
    """The last answers of a node."""

    address: Address
    id: str = ""
    named: str = ""
    """Its `node-name`, as the node itself or another one reports it."""
    has_namesake: bool = False
    """Does another node have the same name?"""
    view: NodeView | None = None
    info: Mapping[str, str] = attrs.Factory(dict)
    is_leaving: bool = False
    clock_ms: int | None = None
    """How far its clock is ahead of this machine's, in milliseconds."""
    lines: tuple[PeerLine, ...] = ()
    """The other nodes in its CLUSTER NODES."""
    config: Mapping[str, str] = attrs.Factory(dict)
    """Its directives, at most half a minute old; empty if it does not report them."""
    configured: float | None = None
    """When they were requested, by anyio's clock."""
    bus_error: str = ""
    uncertainty_ms: float = 0.0
    now_s: float = 0.0
    has_password: bool = False
    again: int | None = None
    """How often jobs were queued here again."""
    again_s: float | None = None
    answered_at: float | None = None
    why: str = ""
    """Why it does not answer now; empty if it does."""
    reason: str = ""
    """The same without the duration of the silence."""
    advice: str = ""
    """What to do about it."""
    silent_since: float | None = None
    """In Unix seconds."""
    is_there: bool = False
    """Does the node run, and refuse to answer?"""

    @property
    def name(self) -> str:
        """The name of the node; it is the same in all consoles."""
        more = f"-{self.id[:4]}" if self.has_namesake else ""
        return node_name(self.id, self.named, self.where) + more

    @property
    def where(self) -> str:
        """Its address as text."""
        return str(self.address)

    @property
    def shares_port(self) -> bool:
        """Is it one of several processes that share a port, at which any of them may answer?"""
        return number_of(self.config, "workers") > 1

    @property
    def own_address(self) -> Address:
        """The address at which no other process answers."""
        own = number_of(self.config, "cluster-announce-port")
        own = own or number_of(self.config, "port" if self.address.tls is None else "tls-port")
        if not self.shares_port or self.address.path is not None or not own:
            return self.address
        return attrs.evolve(self.address, port=own)

    @property
    def state(self) -> str:
        """`silent`, `loading`, `leaving` or `up`."""
        if self.why or self.view is None:
            return "silent"
        if self.info.get("loading", "0") != "0":
            return "loading"
        return "leaving" if self.is_leaving else "up"

    @property
    def peers(self) -> dict[str, str]:
        """By id, the states of the other nodes in its view: `up`, `suspect` or `failed`."""
        return {
            each.id: "failed"
            if "fail" in each.flags
            else ("suspect" if "fail?" in each.flags else "up")
            for each in self.lines
            if "handshake" not in each.flags
        }

    @property
    def replicate(self) -> int:
        """Its default-replicate; 0 if it does not report it."""
        return number_of(self.config, "default-replicate")

    @property
    def facts(self) -> NodeFacts:
        """The facts for the checks."""
        return NodeFacts(
            where=str(self.own_address),
            name="" if self.name == self.where else self.name,
            error=(self.reason or self.why) if self.why else "",
            error_since=self.silent_since,
            advice=self._mend if self.why else "",
            is_there=bool(self.why and self.is_there),
            id=self.id,
            info=dict(self.info),
            config=dict(self.config),
            peers=self.lines,
            has_password=self.has_password,
            skew_ms=self.clock_ms or 0.0,
            uncertainty_ms=self.uncertainty_ms,
            now_s=self.now_s,
            bus_error=self.bus_error,
        )

    @property
    def _mend(self) -> str:
        """What to do if it does not answer. The client's advice is only for a node that has never
        answered or refuses to."""
        if self.is_there:
            return self.advice or _LOG
        return _ADVICE if self.id else self.advice or _ADVICE

    @property
    def zone(self) -> str:
        """Its `replica-zone`; empty if it has none."""
        return self.info.get("replica_zone", "")

    @property
    def place(self) -> Place:
        """The facts for the check of zones."""
        return Place(
            where=label_of(self.name, self.where),
            id=self.id,
            host=self.address.host,
            zone=self.zone,
            replicate=self.replicate,
        )

    @property
    def journal(self) -> str:
        """`off`, `ok` or `broken`; empty if the node has not answered."""
        if not self.info:
            return ""
        if self.info.get("aof_enabled", "0") == "0":
            return "off"
        return "ok" if self.info.get("aof_last_write_status", "ok") == "ok" else "broken"

    def rate(self, name: str) -> float | None:
        """Return one of `RATES`, per second."""
        return None if self.view is None else _rounded(self.view.rates.get(name))


@attrs.define(eq=False)
class Survey:
    """The last look at each node."""

    client: DeadlineClient
    nodes: dict[str, KnownNode] = attrs.Factory(dict)
    """By address, in the order of their names."""
    looked: float | None = None
    """When, by anyio's clock."""
    long_searches: dict[str, None] = attrs.Factory(dict)
    """Searches for which the usual time was too short; the latest is last."""
    _looking: anyio.Lock = attrs.Factory(anyio.Lock)

    def note_long(self, search: str) -> None:
        """Give this search more time when it is repeated."""
        self.long_searches.pop(search, None)
        self.long_searches[search] = None
        while len(self.long_searches) > _SEARCHES:
            del self.long_searches[next(iter(self.long_searches))]

    @property
    def unreached(self) -> dict[str, str]:
        """Nodes that do not answer, with the reason."""
        return {each.where: each.why for each in self.nodes.values() if each.why}

    @property
    def cluster_name(self) -> str:
        """The name that the first node with one reports; empty if there is none."""
        names = (each.info.get("cluster_name", "") for each in self.nodes.values())
        return printable(next(filter(None, names), ""))

    async def look(self, fresh_s: float = FRESH_S) -> None:
        """Ask all nodes, unless the last look is at most `fresh_s` old. A silent node delays it by
        at most `answer_s` of the client."""
        async with self._looking:
            now = anyio.current_time()
            if self.looked is not None and now - self.looked < fresh_s:
                return
            looked_at: set[str] = set()
            while new := [each for each in self._known(now) if each.where not in looked_at]:
                async with anyio.create_task_group() as tasks:
                    for node in new:
                        tasks.start_soon(self._look_at, node)
                looked_at |= {each.where for each in new}  # they may have reported other nodes
            self._known(now)
            self.looked = anyio.current_time()

    def sum_rate(self, name: str) -> float | None:
        """Return the sum of one of `RATES` over the nodes that answer."""
        rates = [each.rate(name) for each in self.nodes.values() if not each.why]
        known = [rate for rate in rates if rate is not None]
        return _rounded(sum(known)) if known else None

    @property
    def clock_ms(self) -> int:
        """The median of how far the nodes' clocks are ahead of this machine's; 0 if unknown."""
        known = [each.clock_ms for each in self.nodes.values() if each.clock_ms is not None]
        return round(statistics.median(known)) if known else 0

    def figures(self, field: str) -> list[int]:
        """Return a number of INFO from each node that answers and has it."""
        values = (each.info.get(field, "") for each in self.nodes.values() if not each.why)
        return [int(each) for each in values if each.isdecimal()]

    def _known(self, now: float) -> Sequence[KnownNode]:
        """Update and return the nodes of the client, in the order of their names."""
        before = self.nodes
        addresses = {str(each): each for each in self.client.nodes.order(now)}
        known = {where: before.get(where) or KnownNode(addresses[where]) for where in addresses}
        self._learn_from_others(list(known.values()))
        self.nodes = dict(sorted(known.items(), key=lambda each: (each[1].name, each[0])))
        return list(self.nodes.values())

    def _learn_from_others(self, nodes: Sequence[KnownNode]) -> None:
        """Take ids and names of silent nodes from the reports of others, and mark nodes with the
        same name."""
        lines = {line.address: line for node in nodes for line in node.lines}
        for node in nodes:
            line = lines.get(node.where)
            if line is not None and (not node.id or (line.id == node.id and node.why)):
                node.id, node.named = line.id, line.name or node.named
        names = Counter(node.named for node in nodes if node.named)
        for node in nodes:
            node.has_namesake = names[node.named] > 1

    async def _look_at(self, node: KnownNode) -> None:
        asked: list[Command[Any]] = [
            commands.time(),
            commands.info(),
            commands.hello(),
            query("CLUSTER", "NODES"),
            query("CLUSTER", "LEAVING"),
        ]
        before = time.time()
        try:
            clock, info, hello, peers, leaving = await self.client.ask(node.address, asked)
        except DisqueError as error:
            self._note_silence(node, error)
            return
        answers = (clock, info, hello, peers, leaving)
        if isinstance(info, DisqueError) and all(isinstance(each, DisqueError) for each in answers):
            self._note_silence(node, info)
            return
        _note_clock(node, clock, before, time.time())
        if isinstance(info, dict):
            self._note(node, info)
        if isinstance(hello, list):
            self.client.nodes.introduced(
                node.address, Introduction(hello, self.client.nodes.features(node.address))
            )
        _note_peers(node, peers)
        node.is_leaving = getattr(leaving, "text", b"") == b"yes"
        if node.state != "loading":  # while it loads, it answers only INFO and has no links
            await self._configure(node)
            self._follow(node)

    def _note_silence(self, node: KnownNode, error: DisqueError) -> None:
        now = anyio.current_time()
        known = self.client.silent.get(node.where)
        silence = known or silence_of(error, now)
        node.why, node.reason, node.advice = silence.describe(now), silence.reason, silence.advice
        node.is_there = silence.is_there
        # Its own silence began before the first request, so only other nodes can date it.
        is_known = known is not None and node.answered_at is not None
        time_s = time.time() + self.clock_ms / 1000
        node.silent_since = time_s - (now - silence.since) if is_known else None

    def _follow(self, node: KnownNode) -> None:
        """Under TLS, add the nodes that this one reports to the client."""
        if not self.client.follows_tls or node.address.tls is None:
            return
        plain = number_of(node.config, "cluster-announce-port") or number_of(node.config, "port")
        # The port of the request may be the one that processes share.
        own = number_of(node.config, "tls-port") if node.shares_port else node.address.port
        shift = own - plain if plain else 0
        node.lines = tuple(
            attrs.evolve(each, port=each.port + shift)
            if each.port and 0 < each.port + shift < _PORTS
            else each
            for each in node.lines
        )
        others = {
            each.id.encode(): attrs.evolve(node.address, host=each.host, port=each.port)
            for each in node.lines
            if each.port and not each.flags & {"handshake", "noaddr"}
        }
        self.client.nodes.learned(node.address, node.id.encode(), others)

    async def _configure(self, node: KnownNode) -> None:
        """Request its directives and check its bus port, at most every `CONFIGURED_S`."""
        now = anyio.current_time()
        if node.configured is not None and now - node.configured < CONFIGURED_S:
            return
        node.configured = now
        node.has_password = self.client.has_password
        with contextlib.suppress(DisqueError):
            asked: Command[Reply] = query("CONFIG", "GET", "*")
            [reply] = await self.client.ask(node.address, [asked])
            node.config = {} if isinstance(reply, DisqueError) else pairs(reply)
        node.bus_error = await _bus_error(node, self.client.answer_s)

    def _note(self, node: KnownNode, info: Mapping[str, str]) -> None:
        now = anyio.current_time()
        seconds = now - node.answered_at if node.answered_at is not None else 0.0
        before = node.view.totals if node.view is not None else {}
        node.view = view_of(node.where, info, before, seconds)
        causes = counted_total(info, "jobs_queued", _FIRST)
        if causes is not None and node.again is not None and seconds:
            node.again_s = _rounded(max(causes - node.again, 0) / seconds)
        node.again, node.answered_at, node.info, node.why = causes, now, info, ""
        node.silent_since, node.named = None, printable(info.get("node_name", ""))


async def _bus_error(node: KnownNode, answer_s: float) -> str:
    place = bus_place(node.address, node.config)
    if place is None:
        return ""
    try:
        with anyio.fail_after(answer_s):
            stream = await anyio.connect_tcp(*place)
    except TimeoutError:
        return "no answer in time"
    except OSError as error:
        cause = cause_of(error)
        return cause.strerror or str(cause)
    await stream.aclose()
    return ""


def _note_clock(node: KnownNode, clock: int | DisqueError, before: float, after: float) -> None:
    node.clock_ms = None
    if isinstance(clock, int):
        node.now_s = clock / 1e6
        node.clock_ms = round((node.now_s - (before + after) / 2) * 1000)
        node.uncertainty_ms = (after - before) * 500


def _note_peers(node: KnownNode, lines: Reply | DisqueError) -> None:
    """Note the id of the node and its view of the others, from CLUSTER NODES."""
    if not isinstance(lines, bytes):
        return
    found = lines_of(lines.decode(errors="replace"), node.address.host)
    node.id = next((each.id for each in found if "myself" in each.flags), node.id)
    node.lines = tuple(each for each in found if "myself" not in each.flags)


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 2)


def node_row(node: KnownNode, queued: int | None) -> Json:
    """Return the row of a node. `queued` is the number of jobs queued there."""
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
    """Return the state of each node in the view of each other one; unknown for the view of a silent
    node."""
    found = []
    for one in nodes:
        for other in nodes:
            if one is not other:
                state = one.peers.get(other.id, "unknown") if not one.why else "unknown"
                found.append([one.where, other.where, state])
    return found
