"""Validation of names and addresses of nodes for the node table.

Any process can send frames that contain them. Names are written to nodes.conf, so they must be one
word. Addresses are also dialled, so they must be valid.
"""

import ipaddress
import random
import re
from typing import Final

from disque_trio.statemachine.base import LAST_PORT, NODE_ID_LENGTH, NodeId

BUS_OFFSET: Final = 10_000
"""The bus listens this far above the client port (original 1.1)."""
MAX_PORT: Final = LAST_PORT - BUS_OFFSET
"""The last client port with a valid default bus port."""
_HOST_NAME: Final = re.compile(
    r"([0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?\.)*(?!0[xX])[0-9_-]*[A-Za-z][0-9A-Za-z_-]*\.?"
)
_LONGEST_NAME: Final = 253
_PLACE: Final = re.compile(r"(\[[^]]+\]|[^]@[]+):([0-9]{1,5})(?:@([0-9]{1,5}))?")
_NODE_ID: Final = re.compile(rb"[\x21-\x7e]{%d}" % NODE_ID_LENGTH)


def new_node_id(rng: random.Random) -> NodeId:
    """A random ID, unique in practice."""
    return b"%040x" % rng.getrandbits(160)


def is_node_id(word: bytes) -> bool:
    """Is it a valid node ID: 40 printable characters without spaces? Original nodes use hexadecimal
    digits."""
    return _NODE_ID.fullmatch(word) is not None


def literal_ip(text: str) -> str:
    """The address in canonical form; empty if it is not an IPv4 or IPv6 address, or has a scope
    ID."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return ""
        # An IPv6 socket reports IPv4 peers as ::ffff:a.b.c.d.
        return str(address.ipv4_mapped or address)
    return str(address)


def is_host_name(text: str) -> bool:
    """Is it a valid host name? Names that resolvers parse as numeric addresses are not."""
    return len(text) <= _LONGEST_NAME and _HOST_NAME.fullmatch(text) is not None


def parse_place(text: str) -> tuple[str, int, int] | None:
    """Parse `host:port` or `host:port@bus-port` into host or address, port and bus port (0 is the
    default). An IPv6 address may be in brackets. None if the text is invalid."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    host, port, bus_port = found[1].strip("[]"), int(found[2]), int(found[3] or 0)
    if not is_port(port, bus_port) or not (literal_ip(host) or is_host_name(host)):
        return None
    return literal_ip(host) or host, port, 0 if bus_port == port + BUS_OFFSET else bus_port


def is_port(port: int, bus_port: int = 0) -> bool:
    """Are these a valid client port and bus port? Bus port 0 is the default."""
    return 0 < port <= (LAST_PORT if bus_port else MAX_PORT) and 0 <= bus_port <= LAST_PORT
