"""The text of nodes.conf and of CLUSTER NODES: one line for each node (original 5.10).

Both directions are pure; the driver reads and writes the file. A file with an error is rejected
completely, because a node must not start with a wrong ID or without its cluster.
"""

import re
from typing import Final

import attrs

from disque_trio.statemachine.address import is_node_id, is_port, literal_ip, parse_place
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, MYSELF, NOADDR, PFAIL, NodeId
from disque_trio.statemachine.cluster import HostName, Peer
from disque_trio.statemachine.gossip import wall_time
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.state import NodeState

_FLAG_WORDS: Final = {
    b"myself": MYSELF,
    b"fail?": PFAIL,
    b"fail": FAIL,
    b"handshake": HANDSHAKE,
    b"noaddr": NOADDR,
    b"leaving": LEAVING,
}
_NO_FLAGS: Final = b"noflags"
_WORDS: Final = 6
"""The minimum number of words: a later version may append others."""
_ZONE: Final = b"zone="
_NAME: Final = b"name="
_MET: Final = b"met"
_LIMIT: Final = b"limit"
_LIMIT_LINE: Final = re.compile(rb"vars limit ((?:[0-9a-f]{2})*)" + rb":([0-9]{1,19})" * 10)
_HOST_WORDS: Final = 3
_MAX_DIGITS: Final = 20


class NodesFileError(ValueError):
    """A nodes.conf that is invalid: the line (0 is the whole file), and the reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.line = line
        self.reason = reason


def nodes_text(node: NodeState, *, handshakes: bool) -> bytes:
    """The node table as text.

    nodes.conf omits handshakes, which have no ids yet. It also omits zones and names, for which
    earlier versions have no field: nodes announce them again. It adds lines for host names and
    limits.
    """
    return b"".join(
        _line(node, peer, has_names=handshakes)
        for peer in node.cluster.nodes.values()
        if handshakes or not peer.flags & HANDSHAKE
    ) + (b"" if handshakes else b"".join([*map(_host_line, node.cluster.hosts), *_limits(node)]))


def _limits(node: NodeState) -> list[bytes]:
    """Lines with the limits of queues, which earlier versions and originals skip."""
    return [
        b"vars %b %b:%d:%d:%d:%d:%d:%d:%d:%d:%d:%d\n"
        % (_LIMIT, limit.name.hex().encode(), *attrs.astuple(limit.setting))
        for limit in node.limits.values()
    ]


def parse_limits(text: bytes) -> list[tuple[bytes, Setting]]:
    """The limits of queues in a nodes.conf. Skips other lines."""
    found = [_LIMIT_LINE.fullmatch(line) for line in text.split(b"\n")]
    return [(bytes.fromhex(match[1].decode()), _setting(match)) for match in found if match]


def _setting(match: re.Match[bytes]) -> Setting:
    epoch, concurrency, rate, period, burst, is_loose, *of_group = map(int, match.groups()[1:])
    return Setting(epoch, concurrency, rate, period, burst, bool(is_loose), *of_group)


def _host_line(host: HostName) -> bytes:
    """A line with a name of CLUSTER MEET, which earlier versions and originals skip; empty for
    names of the configuration."""
    if host.is_seed or host.is_own:
        return b""
    bus_port = b"@%d" % host.bus_port if host.bus_port else b""
    return b"vars %b %b:%d%b\n" % (_MET, host.name.encode(), host.port, bus_port)


def parse_hosts(text: bytes) -> list[HostName]:
    """The names of CLUSTER MEET in a nodes.conf."""
    found = [line.split() for line in text.split(b"\n")]
    places = [
        parse_place(words[2].decode("ascii", "replace"))
        for words in found
        if len(words) == _HOST_WORDS and words[:2] == [b"vars", _MET]
    ]
    return [HostName(*place) for place in places if place]


def _line(node: NodeState, peer: Peer, *, has_names: bool) -> bytes:
    optional = ((_ZONE, peer.zone), (_NAME, peer.name)) if has_names else ()
    words = [word for word, flag in _FLAG_WORDS.items() if peer.flags & flag]
    is_up = peer.is_connected or peer is node.cluster.myself
    bus_port = b"@%d" % peer.bus_port if peer.bus_port else b""
    return b"%b %b:%d%b %b %d %d %b%b\n" % (
        peer.id,
        peer.ip.encode(),
        peer.port,
        bus_port,
        b",".join(words) or _NO_FLAGS,
        wall_time(node, peer.ping_sent),
        wall_time(node, peer.pong_received),
        b"connected" if is_up else b"disconnected",
        b"".join([b" " + field + text for field, text in optional if text]),
    )


def parse_nodes(text: bytes) -> tuple[Peer, list[Peer]]:
    """Parse a nodes.conf: this node, and the others for `membership.restore`.

    Times are 1 or 0: whether there was one. The caller must set this node's current port. Raises
    `NodesFileError`.
    """
    peers: dict[NodeId, Peer] = {}
    for number, line in enumerate(text.split(b"\n"), 1):
        words = line.split()
        # Original nodes may have written a line of cluster-wide variables, which has no meaning
        # here.
        if words and words[0] != b"vars":
            peer = _parse_line(number, words)
            if peer.id in peers:
                raise NodesFileError(number, "this node ID is there twice")
            peers[peer.id] = peer
    own = [peer for peer in peers.values() if peer.flags & MYSELF]
    if len(own) != 1:
        raise NodesFileError(0, f"one line must be flagged myself, not {len(own)}")
    return own[0], [peer for peer in peers.values() if peer is not own[0]]


def _parse_line(number: int, words: list[bytes]) -> Peer:
    if len(words) < _WORDS:
        raise NodesFileError(number, f"{_WORDS} words are expected, not {len(words)}")
    name, address, flags, ping_sent, pong_received, link_state, *_ = words
    if not is_node_id(name):
        raise NodesFileError(number, "a node ID has 40 printable characters")
    if link_state not in (b"connected", b"disconnected"):
        raise NodesFileError(number, f"unknown link state {_shown(link_state)}")
    ip, port, bus_port = _parse_address(number, address)
    return Peer(
        name,
        ip,
        port,
        _parse_flags(number, flags),
        ping_sent=int(_parse_number(number, ping_sent) > 0),
        pong_received=int(_parse_number(number, pong_received) > 0),
        bus_port=bus_port,
    )


def _parse_address(number: int, address: bytes) -> tuple[str, int, int]:
    """The address is empty for a node without one, and for this node until it learns its own."""
    ip, _, ports = address.rpartition(b":")
    port, mark, bus_port = ports.partition(b"@")
    literal = literal_ip(ip.decode("ascii", "replace"))
    if ip and not literal:
        raise NodesFileError(number, f"{_shown(ip)} is no IP address")
    parsed = _parse_number(number, port)
    bus = _parse_number(number, bus_port) if mark else 0
    if parsed and not is_port(parsed, bus):
        raise NodesFileError(number, f"{ports.decode('latin-1')} is no port")
    return literal, parsed, bus


def _parse_flags(number: int, words: bytes) -> int:
    flags = 0
    for word in words.split(b","):
        if word not in _FLAG_WORDS and word != _NO_FLAGS:
            raise NodesFileError(number, f"unknown flag {_shown(word)}")
        flags |= _FLAG_WORDS.get(word, 0)
    return flags


def _parse_number(number: int, word: bytes) -> int:
    if not word.isdigit() or len(word) > _MAX_DIGITS:
        raise NodesFileError(number, f"{_shown(word)} is no number")
    return int(word)


def _shown(word: bytes) -> str:
    return repr(word.decode("latin-1"))
