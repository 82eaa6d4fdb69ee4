"""The links between nodes in network namespaces: a switch in user space, which gets every packet.

Each node has a namespace with a TUN device, and so have the clients. What the kernel's TCP sends
there, the switch carries to the device of the other end. It may lose, repeat, delay, reorder, hold
back and narrow it, so connections suffer as they do between machines. The process must be root of
its user namespace, and the only one in its network namespace (`__main__.py`).
"""

import fcntl
import heapq
import itertools
import os
import random
import selectors
import struct
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs

from disque_trio.sim.scenarios.plan import Micros
from tests.chaos.links import Way
from tests.chaos.machine import Machine, Shims
from tests.cluster.nat import enter

CLIENTS: Final = 254
"""The number of the clients' end, whose namespace is that of this process."""
PORT: Final = 7711
ENTER: Final = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c")
PREPARE: Final = "mount -t tmpfs none /run && ip link set lo up"
"""What a namespace needs before a switch can be in it."""
_NETWORK: Final = bytes((10, 99, 0))
_DEVICE: Final = "tun0"
_SET_INTERFACE: Final = 0x400454CA
_AS_THEY_ARE: Final = 0x1001
"""A TUN device whose packets have no header of its own."""
_LARGEST: Final = 1 << 16
_AT_ONCE: Final = 64
_BUFFER: Final = 256 << 10
"""A narrow path loses what it would have to keep beyond this."""
_SECOND: Final[Micros] = 1_000_000


def is_possible() -> bool:
    """May this user make namespaces and devices, and are the tools there?"""
    script = (
        f"{PREPARE} && ip netns add n && ip -n n tuntap add t mode tun && exec nsenter --version"
    )
    with suppress(OSError):
        return subprocess.run([*ENTER, script], capture_output=True, check=False).returncode == 0
    return False


@attrs.define(eq=False)
class Direction:
    """One direction between two ends."""

    rng: random.Random
    cuts: int = 0
    clogs: int = 0
    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Up to so much more, for each packet anew: one may overtake another."""
    loss: float = 0.0
    repeats: float = 0.0
    """How many packets are lost, and how many come twice."""
    kept: list[bytes] = attrs.Factory(list)
    _is_free_at: float = 0.0

    def arrivals(self, packet: bytes, now: float, bytes_per_second: int) -> list[float]:
        """When the packet arrives: not at all, once, or twice."""
        if self.cuts or self.rng.random() < self.loss:
            return []
        if self.clogs:
            self.kept.append(packet)
            return []
        if bytes_per_second:
            begin = max(now, self._is_free_at)
            if (begin - now) * bytes_per_second > _BUFFER:
                return []
            now = self._is_free_at = begin + len(packet) / bytes_per_second
        copies = 2 if self.rng.random() < self.repeats else 1
        return [now + self.delay_s + self.jitter_s * self.rng.random() for _ in range(copies)]

    @property
    def state(self) -> str:
        """What is wrong; nothing if nothing is."""
        facts = {
            "cut": self.cuts,
            "clogged": self.clogs,
            "late": self.delay_s,
            "uneven": self.jitter_s,
            "lossy": self.loss,
            "repeating": self.repeats,
        }
        return " ".join(name for name, value in facts.items() if value)


@attrs.define(eq=False)
class Switch:
    """All links among some nodes and their clients. Enter it before the nodes are started."""

    nodes: int
    shims: Shims
    seed: int = 0
    _bytes_per_second: int = 0
    _devices: dict[int, int] = attrs.Factory(dict)
    _directions: dict[Way, Direction] = attrs.Factory(dict)
    _due: list[tuple[float, int, int, bytes]] = attrs.Factory(list)
    """Packets under way: when and where each arrives."""
    _order: Iterator[int] = attrs.Factory(itertools.count)
    _lock: threading.Lock = attrs.Factory(threading.Lock)
    _thread: threading.Thread = attrs.field(init=False)
    _wake: tuple[int, int] | None = None
    _is_over: bool = False

    def __attrs_post_init__(self) -> None:
        for way in itertools.permutations(self.ends, 2):
            self._directions[way] = Direction(random.Random(f"{self.seed}/{way}"))

    def __enter__(self) -> Self:
        self._wake = os.pipe()
        for number in self.ends:
            if number != CLIENTS:
                _ip("netns", "add", _namespace(number))
            opener = threading.Thread(target=self._open, args=(number,))
            opener.start()  # a thread of its own enters the namespace, and ends there
            opener.join()
            into = () if number == CLIENTS else ("-n", _namespace(number))
            _ip(*into, "link", "set", "lo", "up")
            _ip(*into, "addr", "add", f"{_address(number)}/24", "dev", _DEVICE)
            _ip(*into, "link", "set", _DEVICE, "up")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._rouse()
        self._thread.join()
        for handle in (*self._devices.values(), *(self._wake or ())):
            os.close(handle)

    @property
    def ends(self) -> Sequence[int]:
        """Nodes and clients."""
        return (*range(1, self.nodes + 1), CLIENTS)

    def server(self, number: int, directory: Path, options: Sequence[str]) -> Machine:
        """A node that has not been started. A power cut takes nothing that it has answered."""
        return Machine(
            directory,
            (*options, "--appendfsync", "always", "--protected-mode", "no"),
            port=PORT,
            host=_address(number),
            namespace=_namespace(number),
            shims=self.shims,
        )

    def seen(self, number: int) -> tuple[str, int]:
        """Where others reach this node."""
        return _address(number), PORT

    # Faults.

    def direction(self, way: Way) -> Direction:
        """What happens from one end to another."""
        return self._directions[way]

    def cut(self, ways: Iterable[Way]) -> None:
        """Let nothing through; TCP sends it again for a while."""
        for way in ways:
            self.direction(way).cuts += 1

    def mend(self, ways: Iterable[Way]) -> None:
        """Undo `cut`."""
        for way in ways:
            self.direction(way).cuts -= 1

    def clog(self, ways: Iterable[Way]) -> None:
        """Keep everything back."""
        for way in ways:
            self.direction(way).clogs += 1

    def release(self, ways: Iterable[Way]) -> None:
        """Undo `clog`: what was kept back arrives."""
        with self._lock:
            for way in ways:
                direction = self.direction(way)
                direction.clogs -= 1
                if not direction.clogs:
                    for packet in direction.kept:
                        heapq.heappush(self._due, (0.0, next(self._order), way[1], packet))
                    direction.kept.clear()
        self._rouse()

    def delay(self, ways: Iterable[Way], more: Micros) -> None:
        """Add to the latency; a negative number undoes it."""
        for way in ways:
            direction = self.direction(way)
            direction.delay_s = round(direction.delay_s + more / _SECOND, 6)

    def limit(self, bytes_per_second: int) -> None:
        """Of each link in each direction; 0 is no limit."""
        self._bytes_per_second = bytes_per_second

    def lose(self, ways: Iterable[Way], share: float) -> None:
        """Lose so many packets more; a negative number undoes it."""
        for way in ways:
            direction = self.direction(way)
            direction.loss = round(direction.loss + share, 6)

    def repeat(self, ways: Iterable[Way], share: float) -> None:
        """Let so many packets more come twice; a negative number undoes it."""
        for way in ways:
            direction = self.direction(way)
            direction.repeats = round(direction.repeats + share, 6)

    def scatter(self, ways: Iterable[Way], more: Micros) -> None:
        """Delay each packet by up to so much more; a negative number undoes it."""
        for way in ways:
            direction = self.direction(way)
            direction.jitter_s = round(direction.jitter_s + more / _SECOND, 6)

    def state(self, way: Way) -> str:
        """What is wrong with this direction of a link; nothing if nothing is."""
        return self.direction(way).state

    # Packets.

    def _open(self, number: int) -> None:
        if number != CLIENTS:
            enter(_namespace(number))
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("16sH22x", _DEVICE.encode(), _AS_THEY_ARE)
        fcntl.ioctl(device, _SET_INTERFACE, request)
        self._devices[number] = device

    def _rouse(self) -> None:
        if self._wake is not None:
            os.write(self._wake[1], b"x")

    def _run(self) -> None:
        assert self._wake is not None
        with selectors.DefaultSelector() as selector:
            for number, device in self._devices.items():
                selector.register(device, selectors.EVENT_READ, number)
            selector.register(self._wake[0], selectors.EVENT_READ, 0)
            while not self._is_over:
                wait_s = max(self._due[0][0] - time.monotonic(), 0) if self._due else None
                for key, _ in selector.select(wait_s):
                    if key.data:
                        self._receive(key.data)
                    else:
                        os.read(self._wake[0], _LARGEST)
                self._deliver()

    def _receive(self, number: int) -> None:
        with self._lock, suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                packet = os.read(self._devices[number], _LARGEST)
                target = packet[19] if packet[0] >> 4 == 4 and packet[16:19] == _NETWORK else 0
                if target in self._devices:
                    direction, now = self.direction((number, target)), time.monotonic()
                    for at in direction.arrivals(packet, now, self._bytes_per_second):
                        heapq.heappush(self._due, (at, next(self._order), target, packet))

    def _deliver(self) -> None:
        with self._lock:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                *_, target, packet = heapq.heappop(self._due)
                with suppress(OSError):  # its buffer is full: lost, as in any switch
                    os.write(self._devices[target], packet)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _namespace(number: int) -> str:
    return f"disque-{number}"


def _address(number: int) -> str:
    return ".".join(map(str, (*_NETWORK, number)))
