"""How a worker joins its siblings, and when it opens the shared port.

Jobs need copies on other nodes from the first one on, so the port opens once the siblings are
connected; but after `_JOIN_S` at the latest, since a sibling may be down or have much to load. Each
worker meets all others: so one that has lost its nodes.conf, and knows no node, is found again.
"""

import socket
from collections.abc import Callable
from typing import Final

import trio

from disque_trio.net.admission import is_barred
from disque_trio.node import Node
from disque_trio.ports import Log
from disque_trio.serving.processes.plan import Order
from disque_trio.serving.server import is_loading
from disque_trio.statemachine.base import HANDSHAKE, MYSELF
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config

_JOIN_S: Final = 5.0
"""How long clients wait for the siblings."""
_LOOK_EVERY_S: Final = 0.03
_LOOK_AGAIN_S: Final = 1.0
_ELSEWHERE: Final = ("192.0.2.1", 9)
"""An address for documentation, to find the local address of the route to others."""
_LOOPBACK: Final = "127.0.0.1"


class Joining:
    """Joins one worker with the others."""

    def __init__(self, node: Node, order: Order, log: Log, open_doors: Callable[[], None]) -> None:
        self._node = node
        self._order = order
        self._log = log
        self._open_doors = open_doors
        self._ip = own_ip(order.shared)
        self._is_open = False

    def is_going_on(self) -> bool:
        """Do clients of the shared port still wait?"""
        return not self._is_open

    async def run(self) -> None:
        """Open the port once the siblings are connected or their time is up; meet late ones."""
        while is_loading(self._node):
            await trio.sleep(_LOOK_EVERY_S)
        with trio.move_on_after(_JOIN_S):
            while missing := self._meet(lambda peer: peer.is_connected):
                await trio.sleep(_LOOK_EVERY_S)
        if missing:
            self._log.warning("workers are missing", ports=",".join(map(str, missing)))
        self._open_doors()
        self._is_open = True
        while self._meet(lambda _: True):
            await trio.sleep(_LOOK_AGAIN_S)

    def _meet(self, is_there: Callable[[Peer], bool]) -> list[int]:
        """Meet siblings that are not known. The ports of those that are not there yet."""
        cluster, shared = self._node.state.cluster, self._order.shared
        ip = cluster.announced_ip or self._ip
        announced = shared.cluster_announce_port or shared.known_port
        known = {
            peer.port - announced + shared.known_port: peer
            for peer in cluster.nodes.values()
            if peer.ip == ip and not peer.flags & (HANDSHAKE | MYSELF)
        }
        siblings = self._order.siblings
        for port in siblings:
            if port not in known:
                self._node.meet(self._ip, port)
        return [port for port in siblings if port not in known or not is_there(known[port])]


def own_ip(config: Config) -> str:
    """Return the address that the workers use, and announce to clients and nodes."""
    if config.bind:
        found = socket.getaddrinfo(config.bind[0], 0, type=socket.SOCK_STREAM)
        ip = str(found[0][4][0])
        if ip not in ("0.0.0.0", "::"):
            return ip
    outward = _outward_ip()
    # Where protected mode bars other machines, it bars connections by that address too.
    return _LOOPBACK if is_barred(outward, config) else outward


def _outward_ip() -> str:
    """The local address of the route to other machines; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(_ELSEWHERE)
        except OSError:
            return _LOOPBACK
        return str(sock.getsockname()[0])
