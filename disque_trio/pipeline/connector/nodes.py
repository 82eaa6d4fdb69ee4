"""The cluster as a client sees it: its nodes, which of them answer, and connections to them.

Blocking, as Spark's readers and writers are. A request waits for a node no longer than the option
`timeout`; a node that has not answered is not asked again for a while.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from disque_trio.client.address import Address
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.pipeline.connector.options import Link
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status

Request = Sequence[bytes]

_WINDOW: Final = 256
"""Requests that are sent before replies are read: few enough for the sockets' buffers."""
_REST_S: Final = 2.0
_LONGEST_REST_S: Final = 60.0
"""How long a node that did not answer is not asked again; doubles with each failure."""
_SCANNED: Final = b"500"
"""Jobs in one reply of JSCAN."""
_LOOK_S: Final = 5.0
"""How long an answer to HELLO counts."""


class NodeGoneError(PipelineError):
    """A node did not answer; it may have carried the request out."""


class UnreachableError(PipelineError):
    """No node answers."""


@attrs.define(eq=False)
class Nodes:
    """A cluster's nodes by name, which is `host:port`."""

    link: Link
    clock: Callable[[], float] = time.monotonic
    _addresses: dict[str, Address] = attrs.field(init=False, factory=dict)
    _connections: dict[str, Connection] = attrs.field(init=False, factory=dict)
    _rests_until: dict[str, float] = attrs.field(init=False, factory=dict)
    _failures: dict[str, int] = attrs.field(init=False, factory=dict)
    _looks_at: float = attrs.field(init=False, default=0.0)
    _reasons: dict[str, str] = attrs.field(init=False, factory=dict)

    def names(self) -> list[str]:
        """All known nodes, those that answer first."""
        self._discover()
        return sorted(self._addresses, key=self._is_resting)

    def live(self) -> list[str]:
        """The nodes that answer. Raises `UnreachableError` if there are none."""
        found = [name for name in self.names() if self._answers(name)]
        if not found:
            raise UnreachableError(self._no_answer())
        return found

    def down(self) -> list[str]:
        """The known nodes that do not answer."""
        return [name for name in self.names() if not self._answers(name)]

    def ask(self, name: str, requests: Sequence[Request]) -> list[Reply]:
        """The replies to the requests. Raises `NodeGoneError`."""
        connection = self._connection(name)
        replies: list[Reply] = []
        try:
            for start in range(0, len(requests), _WINDOW):
                window = requests[start : start + _WINDOW]
                connection.send_all(window)
                replies += [connection.receive() for _ in window]
        except ConnectionFailedError as error:
            connection.close()
            raise self._gone(name, error.reason) from error
        self._failures.pop(name, None)
        for reply in replies:
            self._check(name, reply)
        return replies

    def open(self, name: str) -> Connection:
        """A new connection for the caller alone. Raises `NodeGoneError`."""
        self._discover()
        if name not in self._addresses:  # such as a name from an old offset
            host, _, port = name.rpartition(":")
            self._addresses[name] = self.link.address(host.strip("[]"), int(port))
        connection = Connection(
            self._addresses[name],
            self.link.secret(),
            connect_timeout_s=self.link.timeout_s,
            patience_s=self.link.timeout_s,
        )
        self._make_ready(name, connection)
        return connection

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the next request opens one again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connection(self, name: str) -> Connection:
        self._discover()  # may open the connection
        connection = self._connections.get(name)
        if connection is None:
            connection = self._connections[name] = self.open(name)
        elif self._is_resting(name):
            raise NodeGoneError(self._reasons[name])
        else:
            self._make_ready(name, connection)
        return connection

    def _make_ready(self, name: str, connection: Connection) -> None:
        if self._is_resting(name):
            raise NodeGoneError(self._reasons[name])
        try:
            refusal = connection.ready()
        except ConnectionFailedError as error:
            raise self._gone(name, error.reason) from error
        if refusal is not None:
            connection.close()
            raise PipelineError(
                f"{name} refuses the password: {_text(refusal)}; "
                "see the options password and passwordFile"
            )

    def _gone(self, name: str, reason: str) -> NodeGoneError:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        self._rests_until[name] = self.clock() + min(_REST_S * 2 ** (failures - 1), _LONGEST_REST_S)
        self._reasons[name] = reason
        return NodeGoneError(reason)

    def _is_resting(self, name: str) -> bool:
        return self._rests_until.get(name, 0.0) > self.clock()

    def _answers(self, name: str) -> bool:
        try:
            self._connection(name)
        except NodeGoneError:
            return False
        return True

    def _check(self, name: str, reply: Reply) -> None:
        if isinstance(reply, Failure) and reply.text.startswith((b"NOAUTH", b"DENIED")):
            raise PipelineError(
                f"{name} lets nobody in without a password: {_text(reply)}; "
                "give the option password or passwordFile"
            )

    def _no_answer(self) -> str:
        reasons = "; ".join(dict.fromkeys(self._reasons.values()))
        return f"no node answers ({', '.join(self._addresses)}): {reasons}"

    # Discovery.

    def _discover(self) -> None:
        """Ask for the nodes, now and then. A node has one name, even with several addresses."""
        if self._addresses and self.clock() < self._looks_at:
            return
        self._looks_at = self.clock() + _LOOK_S
        for host, port in self.link.seeds:
            address = self.link.address(host, port)
            self._addresses.setdefault(str(address), address)
        found: dict[bytes, Address] = {}
        told: dict[bytes, Address] = {}
        for name in list(self._addresses):
            self._ask_hello(name, found, told)
        if self.link.discovers:
            found = told | found
        silent = {
            name: address
            for name, address in self._addresses.items()
            if address not in found.values() and self._is_resting(name)
        }
        if found:
            self._addresses = silent | {str(address): address for address in found.values()}

    def _ask_hello(
        self, name: str, found: dict[bytes, Address], told: dict[bytes, Address]
    ) -> None:
        try:
            (reply,) = self.ask(name, [(b"HELLO",)])
        except NodeGoneError:
            return
        if not isinstance(reply, list) or len(reply) < 3 or not isinstance(reply[1], bytes):
            raise PipelineError(f"{name} is no node of Disque: it answers HELLO with {reply!r:.80}")
        found.setdefault(reply[1], self._addresses[name])
        for row in reply[2:]:
            match row:
                case [bytes(node), bytes(ip), bytes(port), *_] if ip:
                    told.setdefault(node, self.link.address(ip.decode(), int(port)))


def copies(nodes: Nodes, name: str, filters: Sequence[bytes]) -> Iterator[dict[bytes, Any]]:
    """The facts about each job of a node, by JSCAN. Raises `NodeGoneError`."""
    cursor = b"0"
    while True:
        request = [b"JSCAN", cursor, b"COUNT", _SCANNED, b"REPLY", b"all", *filters]
        (reply,) = nodes.ask(name, [request])
        match reply:
            case [bytes(cursor), list(found)]:
                for item in found:
                    facts = items(item)
                    pairs: Any = zip(facts[::2], facts[1::2], strict=True)
                    yield dict(pairs)
            case _:
                raise PipelineError(f"{name} refuses JSCAN: {_text(reply)}")
        if cursor == b"0":
            return


def words(texts: Iterable[str]) -> list[bytes]:
    """Arguments of a command."""
    return [text.encode() for text in texts]


def items(reply: Reply) -> list[Reply]:
    """An array's items; of a null array none. Raises `PipelineError` for anything else."""
    if reply is NULL_ARRAY:
        return []
    if not isinstance(reply, list):
        raise PipelineError(f"a node answers {_text(reply)} where a list is due")
    return reply


def number(reply: Reply) -> int:
    """An integer; 0 for an error, because nothing was done."""
    return reply if isinstance(reply, int) else 0


def explained(reply: Reply) -> str:
    """A reply for an error's text."""
    return _text(reply)


def _text(reply: Reply) -> str:
    if isinstance(reply, Failure | Status):
        return reply.text.decode(errors="backslashreplace")
    return repr(reply)[:100]
