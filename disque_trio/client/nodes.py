"""The order in which the known nodes of a cluster are tried. No I/O.

A node that did not answer rests: other nodes are tried first, for a time that doubles with each
failure. If a node accepted a request and did not reply, it must answer PING before it receives
another request, and no request waits for it while another node answers.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final

import attrs

from disque_trio.client.address import Address
from disque_trio.client.errors import ConnectionFailedError, DisqueError, LostError
from disque_trio.client.greeting import Introduction
from disque_trio.client.refusals import (
    AuthenticationError,
    UnavailableError,
    UnknownJobError,
    UnsupportedError,
)
from disque_trio.statemachine.base import NodeId, Reply

REST_S: Final = 2.0
LONGEST_REST_S: Final = 60.0
_DENIED: Final = "DENIED"
"""The error code of a node in protected mode: another node may serve remote clients."""
SILENT_S: Final = 1.0
"""A node is silent if it has not replied this many seconds after the requested waiting time when
its request ends. A silent node must answer PING within this time."""


class NoNodeError(DisqueError):
    """No node of the cluster could run the command; the text has the reason for each node."""


@attrs.define(eq=False)
class _Known:
    """The state of one node."""

    address: Address
    failures: int = 0
    rests_until: float = 0.0
    silent_at: float = -math.inf
    """When it was last detected as silent, unless it has answered since."""
    reason: str = ""
    features: frozenset[str] = frozenset()
    has_answered: bool = False

    @property
    def is_well(self) -> bool:
        """Has it not failed lately?"""
        return not self.failures and self.silent_at == -math.inf


@attrs.define(eq=False)
class Nodes:
    """The nodes of a cluster by name, which is `host:port`, in order of preference."""

    seeds: Sequence[Address]
    discovers: bool = True
    """Add the nodes in replies to HELLO?"""
    _known: dict[str, _Known] = attrs.field(init=False, factory=dict)
    _names: dict[NodeId, str] = attrs.field(init=False, factory=dict)
    """The name under which each node has answered; it may have several addresses."""

    def __attrs_post_init__(self) -> None:
        for address in self.seeds:
            self._known.setdefault(str(address), _Known(address))

    def features(self, address: Address) -> frozenset[str]:
        """The features that the node has announced."""
        known = self._known.get(str(address))
        return frozenset() if known is None else known.features

    def order(self, now: float) -> list[Address]:
        """All nodes: first those that do not rest, then the resting ones by the end of their
        rest."""
        awake = [each for each in self._known.values() if each.rests_until <= now]
        resting = [each for each in self._known.values() if each.rests_until > now]
        resting.sort(key=lambda each: each.rests_until)
        return [each.address for each in (*awake, *resting)]

    def is_resting(self, address: Address, now: float) -> bool:
        """Did the node fail lately?"""
        known = self._known.get(str(address))
        return known is not None and known.rests_until > now

    def reason(self, address: Address) -> str:
        """Why the node failed last; empty if it never did."""
        known = self._known.get(str(address))
        return "" if known is None else known.reason

    def failed(self, address: Address, reason: str, now: float) -> None:
        """The node did not answer, or cannot serve requests."""
        known = self._known.setdefault(str(address), _Known(address))
        rest = min(REST_S * 2.0**known.failures, LONGEST_REST_S)
        known.failures = min(known.failures + 1, 10)
        known.rests_until = max(now, known.silent_at) + rest  # the request may be old
        known.reason = reason

    def answered(self, address: Address) -> None:
        """The node serves requests."""
        known = self._known.get(str(address))
        if known is not None:
            known.failures = 0
            known.rests_until = 0.0
            known.silent_at = -math.inf

    def was_silent(self, address: Address, now: float) -> None:
        """A request has ended without a reply (`SILENT_S`)."""
        known = self._known.setdefault(str(address), _Known(address))
        known.silent_at = now
        known.rests_until = max(known.rests_until, now + REST_S)
        known.reason = f"{address} does not answer"

    def spoke(self, address: Address) -> None:
        """The node has answered a request, possibly with an error."""
        known = self._known.get(str(address))
        if known is not None and known.silent_at > -math.inf:
            self.answered(address)

    def is_replaceable(self, address: Address) -> bool:
        """Is there another node that has not failed lately?"""
        name = str(address)
        return any(each.is_well for other, each in self._known.items() if other != name)

    def must_be_tried(self, address: Address, now: float) -> bool:
        """Is the node silent, while another one answers? Then it must answer a PING first. Raises
        `ConnectionFailedError` if it was tried just now."""
        known = self._known.get(str(address))
        if known is None or known.silent_at == -math.inf:
            return False
        if not self.is_replaceable(address):
            return False  # a slow node is better than none
        if now < known.silent_at + REST_S:
            raise ConnectionFailedError(known.reason)
        known.silent_at = now  # prevents other tries at the same time
        return True

    def introduced(self, address: Address, introduction: Introduction) -> None:
        """The node has introduced itself. Resting nodes that it does not name are removed."""
        known = self._known.setdefault(str(address), _Known(address))
        known.features, known.has_answered = introduction.features, True
        match introduction.hello:
            case [_, bytes(myself), *rows] if self.discovers:
                self.learned(address, myself, _others(rows, address))

    def learned(self, address: Address, myself: NodeId, others: Mapping[NodeId, Address]) -> None:
        """A node that has answered has this id, and reports these nodes."""
        named = {myself: address, **others}
        for node, other in named.items():
            name = self._names.setdefault(node, str(other))
            if node != myself and name != str(other) and self._has_failed(name):
                self._names[node] = name = str(other)  # it has a new address
            if node == myself and name != str(address):  # one node, under two names
                earlier = self._known.get(name)
                if earlier is not None and earlier.has_answered and not earlier.failures:
                    del self._known[str(address)]
                else:
                    self._known.pop(name, None)
                    self._names[node] = name = str(address)
            self._known.setdefault(name, _Known(other))
        self._forget({self._names[node] for node in named})

    def _has_failed(self, name: str) -> bool:
        known = self._known.get(name)
        return known is None or known.failures > 0

    def _forget(self, named: set[str]) -> None:
        seeds = set(map(str, self.seeds))
        for name, known in list(self._known.items()):
            if name not in named and name not in seeds and known.failures:
                del self._known[name]

    def attempts(
        self,
        now: float,
        *,
        is_repeatable: bool,
        is_sought: bool = False,
        first: Address | None = None,
        giver: str = "",
    ) -> "Attempts":
        """A loop over nodes until one answers, beginning with `first`, or with the node whose id
        begins with `giver`. With `is_sought` it continues until a node has the job."""
        return Attempts(self, now, is_repeatable, is_sought, first or self._giver(giver, now))

    def _giver(self, beginning: str, now: float) -> Address | None:
        """The node whose id begins this way, unless it rests."""
        if not beginning:
            return None
        names = (name for node, name in self._names.items() if node.startswith(beginning.encode()))
        known = self._known.get(next(names, ""))
        return None if known is None or known.rests_until > now else known.address


def _others(rows: Sequence[Reply], via: Address) -> dict[NodeId, Address]:
    found = {}
    for row in rows:
        match row:
            case [bytes(node), bytes(host), bytes(port), *_] if host and port.isdigit():
                found[node] = attrs.evolve(via, host=host.decode(), port=int(port), path=None)
    return found


@attrs.define(eq=False)
class Attempts:
    """A loop over nodes. Use `with attempts:` around its body: the loop continues with the next
    node after an error that concerns only this node; other errors are raised."""

    nodes: Nodes
    now: float
    is_repeatable: bool
    is_sought: bool = False
    first: Address | None = None
    _address: Address | None = attrs.field(init=False, default=None)
    _reasons: dict[str, str] = attrs.field(init=False, factory=dict)
    _last: DisqueError | None = attrs.field(init=False, default=None)
    _refusal: DisqueError | None = attrs.field(init=False, default=None)
    """The error to raise at the end: the most informative one of nodes that answered."""

    def __iter__(self) -> Iterator[Address]:
        order = self.nodes.order(self.now)
        if self.first is not None:
            order = [self.first, *(each for each in order if each != self.first)]
        for address in order:
            self._address = address
            yield address
        if self._refusal is not None:
            raise self._refusal
        reasons = "; ".join(self._reasons.values())
        raise NoNodeError(f"no node could run the command: {reasons}") from self._last

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        assert self._address is not None, "inside the loop"
        if error is None:
            self.nodes.answered(self._address)
            return False
        if isinstance(error, UnknownJobError) and self.is_sought:
            self._refusal = error
            return True
        if isinstance(error, UnsupportedError):
            self.nodes.answered(self._address)
            if not isinstance(self._refusal, UnknownJobError):
                self._refusal = error
            return True
        if isinstance(error, AuthenticationError) and error.code == _DENIED:
            self.nodes.failed(self._address, str(error), self.now)
            self._refusal = self._refusal or error
            return True
        if not isinstance(error, ConnectionFailedError | UnavailableError):
            return False
        if isinstance(error, ConnectionFailedError):
            reason = error.reason
        else:
            reason = f"{self._address} replied {error}"
        self.nodes.failed(self._address, reason, self.now)
        self._reasons[str(self._address)] = reason
        self._last = error
        return self.is_repeatable or not isinstance(error, LostError)
