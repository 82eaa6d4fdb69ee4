"""Real nodes with addresses and names of their own, as in containers: namespaces of Linux.

A `World` is a network of its own: a bridge, to which each pod has a cable, and a file of hosts in
place of /etc/hosts. No rights are needed where the system lets users make namespaces. The tests
talk to a pod through the Unix socket of its node, which no network namespace hides.
"""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from disque_trio.wire.resp import ReplyParser
from tests.cluster.processes import Server
from tests.cluster.talk import PATIENCE_S, Client
from tests.trees import HOME

NETWORK: Final = "10.99.0"
_SETUP: Final = """
set -e
mount --bind "$0" /etc/hosts
mount -t tmpfs none /run
ip link set lo up
ip link add name outside type bridge
ip addr add 10.99.0.254/24 dev outside
ip link set outside up
echo ready
exec cat
"""
"""Ends with its standard input, and the world with it."""
_UNSHARE: Final = ("unshare", "--user", "--map-root-user", "--net", "--mount")


def is_possible() -> bool:
    """May this user make namespaces, and are the tools there?"""
    if not all(map(shutil.which, ("unshare", "nsenter", "ip", "mount"))):
        return False
    script = "ip link add name outside type bridge && mount -t tmpfs none /run && ip netns add n"
    done = subprocess.run([*_UNSHARE, "sh", "-c", script], capture_output=True, check=False)
    return done.returncode == 0


class World:
    """A network with names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._hosts = directory / "hosts"
        self._hosts.write_text("127.0.0.1 localhost\n")
        self._holder = subprocess.Popen(
            [*_UNSHARE, "sh", "-c", _SETUP, str(self._hosts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"

    def close(self) -> None:
        """End it. Its processes are to have ended."""
        self._holder.communicate("")

    def inside(self, pod: str = "") -> list[str]:
        """The words before a command that is to run in a pod, or between all of them."""
        holder = str(self._holder.pid)
        flags = ["--user", "--net", "--mount", "--preserve-credentials", f"--wd={HOME}"]
        enter = ["nsenter", "--target", holder, *flags]
        return [*enter, "nsenter", f"--net=/run/netns/{pod}"] if pod else enter

    def run(self, *words: str, pod: str = "") -> str:
        """What a program prints."""
        done = subprocess.run(
            [*self.inside(pod), *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def python(self, script: str, *words: str, pod: str = "") -> str:
        """What a script of Python prints."""
        return self.run(sys.executable, "-c", script, *words, pod=pod)

    def network(self, name: str, ip: str, *, bridge: str = "outside") -> None:
        """A pod's network, with a cable to the bridge."""
        self.run("ip", "netns", "add", name)
        self.run("ip", "-n", name, "link", "set", "lo", "up")
        self.plug(name, ip, bridge)

    def plug(self, name: str, ip: str, bridge: str = "outside", end: str = "eth0") -> None:
        """One more cable of a pod."""
        cable = f"{name}-{bridge}"[:15]
        self.run("ip", "link", "add", cable, "type", "veth", "peer", "name", end, "netns", name)
        self.run("ip", "link", "set", cable, "master", bridge, "up")
        self.run("ip", "-n", name, "link", "set", end, "up")
        self.move(name, ip, end)

    def move(self, name: str, ip: str, end: str = "eth0") -> None:
        """From now on the pod has this address alone."""
        self.run("ip", "-n", name, "addr", "flush", "dev", end)
        self.run("ip", "-n", name, "addr", "add", f"{ip}/24", "dev", end)

    def names(self, hosts: Mapping[str, Sequence[str]]) -> None:
        """From now on names lead to these addresses, and nowhere else."""
        lines = [f"{ip} {name}\n" for name, addresses in hosts.items() for ip in addresses]
        self._hosts.write_text("".join(["127.0.0.1 localhost\n", *lines]))


class SocketClient(Client):
    """A connection over a Unix socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._parser = ReplyParser()
        self._replies = []
        self.is_usable = True


@attrs.define(eq=False, kw_only=True)
class Pod(Server):
    """A node in a pod. Its options are all that it gets."""

    world: World
    name: str

    def words(self) -> list[str]:
        here = ("--dir", str(self.directory), "--unixsocket", str(self.path))
        return [*self.world.inside(self.name), *self.command, *self.options, *here]

    @property
    def path(self) -> Path:
        """Of its Unix socket."""
        return self.directory / "s"

    @property
    def client(self) -> Client:
        if self._client is not None and not self._client.is_usable:
            self.hang_up()
        if self._client is None:
            self._client = SocketClient(self.path)
        return self._client


@contextmanager
def world(directory: Path) -> Iterator[tuple[World, list[Pod]]]:
    """A network, and its pods, which end with it."""
    found, pods = World(directory), list[Pod]()
    try:
        yield found, pods
        assert [complaint for pod in pods for complaint in pod.close()] == []
    finally:
        for pod in pods:
            pod.close()
        found.close()
