"""Names and addresses of nodes: which may stand in the node table.

Both come from frames that any process can send. They are written to nodes.conf and dialled, so a
name must be one word, and an address must be one that can be dialled.
"""

import ipaddress
import random
import re
from typing import Final

from disque_trio.statemachine.base import NODE_ID_LENGTH, NodeId

BUS_OFFSET: Final = 10_000
"""The bus listens this far above the client port (original 1.1)."""
LAST_PORT: Final = 65_535
MAX_PORT: Final = LAST_PORT - BUS_OFFSET
"""The last client port whose bus port is at the usual place."""
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


def is_port(port: int, bus_port: int = 0) -> bool:
    """Can a node have this client port, and this port for nodes? 0 is the usual one."""
    return 0 < port <= (LAST_PORT if bus_port else MAX_PORT) and 0 <= bus_port <= LAST_PORT
