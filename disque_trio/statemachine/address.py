"""Names and addresses of nodes: which may stand in the node table.

Both come from frames that any process can send. They are written to nodes.conf and dialled, so a
name must be one word, and an address must be one that can be dialled.
"""

import ipaddress
import random
import re
from typing import Final

from disque_trio.statemachine.base import LAST_PORT, NODE_ID_LENGTH, NodeId

BUS_OFFSET: Final = 10_000
"""The bus listens this far above the client port (original 1.1)."""
MAX_PORT: Final = LAST_PORT - BUS_OFFSET
"""The last client port whose bus port is at the usual place."""
_HOST_NAME: Final = re.compile(
    r"([0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?\.)*(?!0[xX])[0-9_-]*[A-Za-z][0-9A-Za-z_-]*\.?"
)
_LONGEST_NAME: Final = 253
_PLACE: Final = re.compile(r"(\[[^]]+\]|[^]@[]+):([0-9]{1,5})(?:@([0-9]{1,5}))?")
_NODE_ID: Final = re.compile(rb"[\x21-\x7e]{%d}" % NODE_ID_LENGTH)


def new_node_id(rng: random.Random) -> NodeId:
    """A random name, unique in practice."""
    return b"%040x" % rng.getrandbits(160)


def is_node_id(word: bytes) -> bool:
    """May it be a node's name? Original nodes write hexadecimal digits; any word of 40 will do."""
    return _NODE_ID.fullmatch(word) is not None


def literal_ip(text: str) -> str:
    """The address in its usual spelling; empty if it is no IPv4 or IPv6 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return ""
        # One node, one spelling: an IPv6 socket shows IPv4 peers as ::ffff:a.b.c.d.
        return str(address.ipv4_mapped or address)
    return str(address)


def is_host_name(text: str) -> bool:
    """May it be the name of a host? Words that resolvers take for numbers are none."""
    return len(text) <= _LONGEST_NAME and _HOST_NAME.fullmatch(text) is not None


def parse_place(text: str) -> tuple[str, int, int] | None:
    """Host or address, port, and port for nodes (0 is the usual one), from `host:port` or
    `host:port@bus-port`; an IPv6 address may stand in brackets. None if it is none of that."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    host, port, bus_port = found[1].strip("[]"), int(found[2]), int(found[3] or 0)
    if not is_port(port, bus_port) or not (literal_ip(host) or is_host_name(host)):
        return None
    return literal_ip(host) or host, port, 0 if bus_port == port + BUS_OFFSET else bus_port


def is_port(port: int, bus_port: int = 0) -> bool:
    """Can a node have this client port, and this port for nodes? 0 is the usual one."""
    return 0 < port <= (LAST_PORT if bus_port else MAX_PORT) and 0 <= bus_port <= LAST_PORT
