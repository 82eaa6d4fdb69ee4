"""The log for operators: nodes that join, fail, recover and leave, changed settings, errors.

The machine does not log. At most every `LOOK_EVERY`, this module compares the node table and the
configuration with their previous state. A repeated error is logged once per `QUIET`.
"""

from typing import Final

import attrs

from disque_trio.ports import Log
from disque_trio.statemachine import pressure
from disque_trio.statemachine.base import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    NOADDR,
    PFAIL,
    LinkId,
    Millis,
    NodeId,
    Now,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.directives import BY_NAME, SECRETS
from disque_trio.statemachine.foreign_protocols import HTTP, OTHER, PROXY
from disque_trio.statemachine.hostnames import Unanswered, unanswered
from disque_trio.statemachine.pressure import LEAST_ROOM
from disque_trio.statemachine.state import NodeState

QUIET: Final[Millis] = 10_000
"""How long the same error is only counted after it was logged."""
LOOK_EVERY: Final[Millis] = 100
_LONGEST_WORD: Final = 32
"""How many characters of untrusted input are logged."""
_EXPELLED: Final = {
    HTTP: "possible attack: HTTP at the client port, which a web page can cause; disconnected",
    PROXY: "PROXY protocol at the client port; disconnected: turn it off at the load balancer",
    OTHER: "possible attack: another protocol at the client port; disconnected",
}
_SECRETS: Final = {BY_NAME[name].field for name in SECRETS}


@attrs.define
class Seen:
    """The state of a node when it was last logged."""

    ip: str
    port: int
    flags: int
    is_connected: bool

    @property
    def address(self) -> str:
        """The address as logged."""
        return f"{self.ip}:{self.port}"


@attrs.define
class Repeats:
    """A repeated error: when it was last logged, and how often it has occurred since."""

    reported: Millis
    count: int = 0


class OperatorLog:
    """Logs changes and errors of a node."""

    def __init__(self, state: NodeState, log: Log) -> None:
        self._state = state
        self._log = log
        self._config = state.config
        self._seen: dict[NodeId, Seen] = {}
        self._repeats: dict[str, Repeats] = {}
        self._refused = dict(state.stats.frames_refused)
        self._wrong_passwords = state.stats.wrong_passwords
        self.look_at: Millis = 0
        """When `look` must be called next."""
        myself = state.cluster.myself
        self._id = myself.id
        self._address = myself.ip
        self._is_leaving = bool(myself.flags & LEAVING)
        self._unanswered: dict[Unanswered, None] = {}
        """The unanswered MEETs of an operator that have been logged."""
        self._duplicate = (False, False)
        """Whether there is another process with this node's ID, and whether this one yields."""
        for peer in self._members():
            self._seen[peer.id] = _seen(peer)

    def look(self, now: Now) -> None:
        """Log what has changed."""
        self.look_at = now.mono + LOOK_EVERY
        if self._state.config is not self._config:
            self._config_changed()
        if len(self._state.cluster.nodes) > 1 or self._seen:
            self._look_at_nodes()
        self._look_at_myself()
        self._look_at_meets()
        if self._state.stats.frames_refused != self._refused:
            before, self._refused = self._refused, dict(self._state.stats.frames_refused)
            for reason, count in self._refused.items():
                if count > before.get(reason, 0):
                    self.repeat(f"bus frames refused: {reason}", now)
        wrong = self._state.stats.wrong_passwords
        if wrong > self._wrong_passwords:
            self.repeat("clients sent wrong passwords", now, in_all=wrong)
        self._wrong_passwords = wrong
        if self._repeats:
            self._report_repeats(now)

    def _members(self) -> list[Peer]:
        cluster = self._state.cluster
        return [
            peer
            for peer in cluster.nodes.values()
            if peer is not cluster.myself and not peer.flags & HANDSHAKE
        ]

    def _look_at_nodes(self) -> None:
        if not self._has_changed():
            return
        members = {peer.id: peer for peer in self._members()}
        for gone in [id for id in self._seen if id not in members]:
            seen = self._seen.pop(gone)
            self._log.notice("node removed", node=gone.decode("latin-1"), address=seen.address)
        for peer in members.values():
            before = self._seen.get(peer.id)
            after = self._seen[peer.id] = _seen(peer)
            if before is None:
                self._say("notice", "node joined", peer)
            elif before != after:
                self._compare(peer, before, after)

    def _has_changed(self) -> bool:
        """Has any node changed since it was last logged? Creates no object per node, because it
        runs ten times per second."""
        seen, cluster = self._seen, self._state.cluster
        left = len(seen)
        for peer in cluster.nodes.values():
            if peer is cluster.myself or peer.flags & HANDSHAKE:
                continue
            left -= 1
            before = seen.get(peer.id)
            if (
                before is None
                or before.flags != peer.flags
                or before.is_connected != peer.is_connected
                or before.ip != peer.ip
                or before.port != peer.port
            ):
                return True
        return left != 0

    def _compare(self, peer: Peer, before: Seen, after: Seen) -> None:
        if before.address != after.address and not after.flags & NOADDR:
            self._say("notice", "node moved", peer, was=before.address)
        came = after.flags & ~before.flags
        went = before.flags & ~after.flags
        if came & FAIL:
            self._say("warning", "node failed", peer)
        elif came & PFAIL:
            self._say("verbose", "node does not answer", peer)
        elif went & (FAIL | PFAIL) and not after.flags & (FAIL | PFAIL):
            self._say("notice" if went & FAIL else "verbose", "node recovered", peer)
        if came & LEAVING:
            self._say("notice", "node is leaving", peer)
        elif went & LEAVING:
            self._say("notice", "node stays", peer)
        if came & NOADDR:
            self._say("warning", "address of a node is unknown", peer, was=before.address)
        if after.is_connected != before.is_connected:
            event = "link up" if after.is_connected else "link lost"
            self._say("verbose", event, peer)

    def _say(self, level: str, event: str, peer: Peer, **facts: object) -> None:
        say = getattr(self._log, level)
        say(event, node=peer.id.decode("latin-1"), address=_address(peer), **facts)

    def _look_at_myself(self) -> None:
        myself = self._state.cluster.myself
        if myself.ip != self._address:
            self._address = myself.ip
            self._log.notice("address of this node detected", ip=myself.ip)
        if myself.id != self._id:
            self._id = myself.id
            self._log.notice("new identity", node=myself.id.decode())
        self._look_at_duplicate()
        if bool(myself.flags & LEAVING) != self._is_leaving:
            self._is_leaving = not self._is_leaving
            event = (
                "this node is leaving the cluster"
                if self._is_leaving
                else "this node stays in the cluster"
            )
            self._log.notice(event)

    def _look_at_meets(self) -> None:
        silent = dict.fromkeys(unanswered(self._state))
        for each in [each for each in silent if each not in self._unanswered]:
            if each.error:
                self._log.warning(
                    "cannot resolve the host name of a node, retrying",
                    address=each.address,
                    error=each.error,
                )
            else:
                self._log.warning(
                    "no answer to CLUSTER MEET, retrying: check that the bus port is open",
                    address=each.address,
                    bus_port=each.bus,
                )
        self._unanswered = silent

    def _look_at_duplicate(self) -> None:
        cluster = self._state.cluster
        other = cluster.duplicate
        before, self._duplicate = self._duplicate, (other is not None, cluster.refusal is not None)
        if other is None:
            if before[0]:
                self._log.notice("the other process with the node ID of this one has stopped")
        elif self._duplicate != before:
            yields = "yields and refuses writes" if cluster.refusal else "continues"
            self._log.warning(
                f"another process has the node ID of this one, and this one {yields}: stop the "
                "copy, give it its own directory without nodes.conf, and start it again",
                node=cluster.myself.id.decode("latin-1"),
                address=f"{cluster.myself.ip}:{cluster.myself.port}",
                other=other.address.decode(),
            )

    def _config_changed(self) -> None:
        before, self._config = self._config, self._state.config
        for field in attrs.fields(Config):
            was, value = getattr(before, field.name), getattr(self._config, field.name)
            if was != value:
                change = {} if field.name in _SECRETS else {"was": was, "value": value}
                self._log.notice("setting changed", name=field.name, **change)
        if before.maxmemory != self._config.maxmemory:
            warn_of_little_memory(self._state, self._log)
        self._log.set_level(self._config.loglevel)

    # Repeated errors.

    def protocol_error(self, client: Client, text: bytes, now: Now) -> None:
        """Log a protocol error of a client."""
        self.repeat(
            "client sent invalid data",
            now,
            client=client.address.decode("latin-1"),
            error=text.decode("latin-1"),
        )

    def expelled(self, client: Client, protocol: str, word: bytes, now: Now) -> None:
        """Log that a client was disconnected because it uses another protocol."""
        self.repeat(
            _EXPELLED[protocol],
            now,
            client=client.address.decode("latin-1"),
            word=word[:_LONGEST_WORD].decode("latin-1"),
        )

    def gone(self, client: Client, now: Now) -> None:
        """Log the end of a client's connection, if the client has sent wrong passwords."""
        if client.wrong_passwords:
            self.repeat(
                "a client that sent wrong passwords has disconnected",
                now,
                client=client.address.decode("latin-1"),
                wrong_passwords=client.wrong_passwords,
            )

    def damaged_link(self, link: LinkId, reason: str, now: Now) -> None:
        """Log that a bus link was closed because of invalid frames, or for lack of memory."""
        peer = self._peer_ip(link)
        self.repeat("bus link closed: invalid frame", now, peer=peer, error=reason)

    def link_full(self, link: LinkId, dropped: int, now: Now) -> None:
        """Log that frames to a peer were dropped because it does not read."""
        peer = self._peer_ip(link)
        self.repeat("frames dropped: a peer reads too slowly", now, peer=peer, frames=dropped)

    def _peer_ip(self, number: LinkId) -> str:
        link = self._state.cluster.links.get(number)
        return link.remote_ip if link is not None else ""

    def repeat(self, event: str, now: Now, **facts: object) -> None:
        """Log an event once, and then its number of repetitions once per `QUIET`."""
        repeats = self._repeats.get(event)
        if repeats is None:
            self._repeats[event] = Repeats(now.mono)
            self._log.warning(event, **facts)
        else:
            repeats.count += 1

    def _report_repeats(self, now: Now) -> None:
        for event, repeats in list(self._repeats.items()):
            if now.mono - repeats.reported < QUIET:
                continue
            if repeats.count:
                self._log.warning(event, times=repeats.count, seconds=QUIET // 1000)
                self._repeats[event] = Repeats(now.mono)
            else:
                del self._repeats[event]


def warn_of_little_memory(state: NodeState, log: Log) -> None:
    """Warn about a `maxmemory` that leaves no or little room for jobs beside the process, or that
    is too close to the limit of the system to protect the process."""
    limit, own, allowed = (
        state.config.maxmemory,
        state.facts.process_bytes,
        state.facts.memory_limit,
    )
    if allowed and limit > allowed // 100 * pressure.SAFE_PERCENT:
        log.warning(
            f"maxmemory is more than {pressure.SAFE_PERCENT} % of what the "
            f"{state.facts.memory_limit_of} allows: lower it, or the node may be killed before it "
            "refuses jobs",
            maxmemory=limit,
            allowed=allowed,
        )
    if limit <= own:
        log.warning(
            "maxmemory is less than the process itself uses: raise it, or new jobs are refused",
            maxmemory=limit,
            process=own,
        )
    elif limit < own + LEAST_ROOM:
        log.warning(
            "maxmemory is little more than the process itself uses: raise it, or few jobs fit",
            maxmemory=limit,
            process=own,
        )


def _seen(peer: Peer) -> Seen:
    return Seen(peer.ip, peer.port, peer.flags, peer.is_connected)


def _address(peer: Peer) -> str:
    return f"{peer.ip}:{peer.port}"
