"""The event loop: one Trio task that owns every busy socket of a node.

With a Trio task and a stream per connection, a node processed 51,000 ADDJOB/s; this design
processes as many as the original (decision 32). The sockets are in an epoll of the event loop, or
its equivalent on other systems (`multiplexing`); Trio waits for that one descriptor. While there is
work, other Trio tasks run at a checkpoint every `turns.BREATH_S`; only an idle event loop pays for
a wait with a deadline.
"""

import errno
import math
import os
import socket
from collections.abc import Sequence
from typing import Final

import trio

from disque_trio.bus import Bus, BusListener
from disque_trio.driver.sessions import LinkSession
from disque_trio.net.clients import ClientListener, Clients
from disque_trio.net.listeners import Listeners, open_doors
from disque_trio.net.multiplexing import IN, resolve
from disque_trio.net.pollers import open_poller
from disque_trio.net.readiness import Listener, Readiness
from disque_trio.net.tls import Keeper
from disque_trio.net.tls_clients import TlsClientListener
from disque_trio.net.turns import Turns
from disque_trio.node import Node
from disque_trio.ports import LinkPort
from disque_trio.statemachine.config import Config

LINGER_S: Final = 0.001
"""How long an event loop that is alone in its process polls for more work before it sleeps."""
SWEEP_S: Final = 1.0
"""How often slow readers and starved listeners are checked."""
STANDSTILL_S: Final = 0.5
"""A pass of the loop that starts or lasts this late is a standstill: of the process, of its
machine, of another task, or of a batch."""


class SocketEventLoop:
    """The sockets of one node: the `EventLoop` of a server.

    It owns the listening sockets and closes them when `run` ends.
    """

    def __init__(
        self,
        client_sockets: list[socket.socket],
        bus_sockets: list[socket.socket],
        *,
        source_ip: str = "",
        tls_sockets: Sequence[socket.socket] = (),
        tls: Keeper | None = None,
        shared: Listeners | None = None,
        multiplexing: str = "auto",
    ) -> None:
        """`tls_sockets` are for clients with TLS, with the contexts of `tls`; the sockets of
        `shared` do not listen before `open_doors`. `multiplexing` is the directive
        `multiplexing-api`; MultiplexingError if this system does not support it."""
        self._client_sockets = client_sockets
        self._bus_sockets = bus_sockets
        self._source_ip = source_ip
        self._tls_sockets = tls_sockets
        self._shared = shared or Listeners()
        self._tls = tls or Keeper(Config())
        self._readiness = Readiness(open_poller(resolve(multiplexing)))
        self._listeners: list[Listener] = []
        self._clients: Clients
        self._has_clients = False
        """May clients connect?"""
        self._bus: Bus
        self._nap: trio.CancelScope | None = None
        self._turns = Turns(self._readiness)
        self._sweep_at = -math.inf

    def linger(self, seconds: float = LINGER_S) -> None:
        """Let this event loop keep Trio waiting for up to `seconds`, because it is alone in its
        process."""
        self._turns.linger_s = seconds

    def dial(self, session: LinkSession, ip: str, port: int) -> LinkPort | None:
        """Dial a bus connection; return None if that fails at once."""
        return self._bus.dial(session, ip, port)

    def connect_inside(self) -> socket.socket:
        """Connect a client in this process, which needs no port and no certificate; return its end
        of the connection. Raise ConnectionRefusedError while clients are not accepted."""
        if not self._has_clients:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        return self._clients.connect_inside()

    def open_bus(self) -> None:
        """Start to listen for peers."""
        for listener in [BusListener(self._bus, sock) for sock in self._bus_sockets]:
            self._listeners.append(listener)
            self._readiness.add(listener, IN)

    def open_doors(self) -> None:
        """Start to accept clients at the shared ports."""
        open_doors(self._shared)
        self._let_in(self._shared.clients, self._shared.tls)

    def wake(self) -> None:
        """Start a turn soon."""
        self._turns.is_woken = True
        if self._nap is not None:
            self._nap.cancel()

    def wake_from_thread(self) -> None:
        """Start a turn soon, from any thread."""
        self._readiness.alarm.ring()

    def stop_listening(self) -> None:
        """Accept no new connections, and read nothing more from clients."""
        self._has_clients = False
        self._clients.stop_reading()
        for listener in self._listeners:
            self._readiness.end(listener)

    def has_unsent(self) -> bool:
        """Are there unsent bytes for a client?"""
        return bool(self._clients.owing)

    async def run(
        self, node: Node, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run the node until it has ended, and then close everything. The task has started when the
        node is ready to serve."""
        self._clients = Clients(self._readiness, node)
        self._bus = Bus(self._readiness, node, self._source_ip, self._tls)
        try:
            async with self._readiness.poller.running():
                node.start()
                life = node.life
                while not (life.is_ready or life.is_over):
                    await self._take_turns(node)
                if life.is_ready:
                    task_status.started()
                while not life.is_over:
                    await self._take_turns(node)
        finally:
            node.end()
            self._readiness.close()

    def courier(self) -> None:
        """Return None: sockets carry bytes."""

    def open_clients(self) -> None:
        """Start to accept clients, unless they are accepted already."""
        self._has_clients = True
        plain, self._client_sockets = self._client_sockets, []
        tls, self._tls_sockets = self._tls_sockets, ()
        self._let_in(plain, tls)

    def _let_in(self, plain: Sequence[socket.socket], tls: Sequence[socket.socket]) -> None:
        listeners: list[Listener] = [ClientListener(self._clients, sock) for sock in plain]
        listeners += [TlsClientListener(self._clients, sock, self._tls) for sock in tls]
        self._listeners += listeners
        for listener in listeners:
            self._readiness.add(listener, IN)

    async def _take_turns(self, node: Node) -> None:
        """Let other tasks run, and then run turns until they must run again."""
        turns = self._turns
        due = trio.current_time() + await self._rest(node, is_busy=turns.is_busy)
        began = trio.current_time()
        turns.run(node)
        now = trio.current_time()
        stood = max(began - due, now - began)
        if stood >= STANDSTILL_S:
            node.stood_still(stood)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self._clients.sweep()
            self._bus.sweep()
            self._readiness.retry_starved()
            turns.is_busy = turns.must_turn = True

    async def _rest(self, node: Node, *, is_busy: bool) -> float:
        """Let other Trio tasks run; an idle event loop sleeps until there is work. Return the
        longest planned sleep in seconds."""
        if node.is_napping:
            left = node.seconds_left()
            await trio.sleep(left)
        elif is_busy or self._turns.is_woken or not self._readiness.alarm.arm():
            left = 0.0
            await trio.lowlevel.checkpoint()
        else:
            left = min(node.seconds_left(), SWEEP_S)
            with trio.move_on_after(left) as self._nap:
                await self._readiness.poller.wait()
            self._nap = None
        return left
