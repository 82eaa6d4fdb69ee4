"""The nodes of a cluster, as the answering nodes report them, and their names for people."""

from collections import Counter
from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

import anyio
import attrs

from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.observe.client import query
from disque_trio.observe.cluster import lines_of, node_name
from disque_trio.worker.operating.asking import at_each, unwrap

_FRESH_S: Final = 5.0
"""The maximum age of cached names."""


@attrs.frozen
class Member:
    """A node, as the nodes that answer report it."""

    id: str
    name: str
    where: str
    node: Address | None
    """Its address; None if it does not answer."""
    flags: frozenset[str]

    @property
    def state(self) -> str:
        """`up`, `leaving`, `failed` or `silent`."""
        if self.node is not None:
            return "leaving" if "leaving" in self.flags else "up"
        return "failed" if "fail" in self.flags else "silent"


async def members(client: Client) -> list[Member]:
    """Return all nodes."""

    async def ask(node: Address) -> list[tuple[Address, bytes]]:
        reply = unwrap(*await client.ask(node, [query("CLUSTER", "NODES")]))
        return [(node, reply)] if isinstance(reply, bytes) else []

    found: dict[str, Member] = {}
    for node, reply in (await at_each(client, ask)).items:
        for line in lines_of(reply.decode(errors="replace"), node.host):
            if "myself" in line.flags:
                found[line.id] = Member(line.id, line.name, str(node), node, line.flags)
            elif "handshake" not in line.flags:
                silent = Member(line.id, line.name, line.address, None, line.flags)
                found.setdefault(line.id, silent)
    return list(found.values())


@attrs.frozen
class Names:
    """The names of the nodes for people."""

    known: Mapping[str, str]
    """Names by address."""
    ids: Mapping[str, str] = attrs.Factory(dict)
    """Ids by address."""

    def __call__(self, node: Address | str) -> str:
        """Return the name of a node; its address if it is unknown."""
        return self.known.get(str(node), str(node))


_NAMES: Final[WeakKeyDictionary[Client, tuple[float, Names]]] = WeakKeyDictionary()
"""A cache: an operation on many jobs has many plans, each with the same names."""


async def names_of(client: Client) -> Names:
    """Return the names of all nodes. Raise `NoNodeError` if none answers."""
    known, now = _NAMES.get(client), anyio.current_time()
    if known is None or now - known[0] > _FRESH_S:
        found = await members(client)
        often = Counter(each.name for each in found)
        by = {
            each.where: node_name(each.id, each.name)
            + (f"-{each.id[:4]}" if each.name and often[each.name] > 1 else "")
            for each in found
        }
        known = _NAMES[client] = now, Names(by, {each.where: each.id for each in found})
    return known[1]
