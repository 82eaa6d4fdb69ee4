"""docs/deploying.md, "Updating disque_trio": node by node, under load, with TLS and a password."""

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from disque_trio.__main__ import main
from disque_trio.client.address import Address, Tls
from disque_trio.client.connection import Connection
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.statemachine.base import Failure, Reply
from tests.certificates import Authority
from tests.cluster.processes import Server, eventually
from tests.cluster.talk import RefusedError
from tests.rolling.__main__ import _checked_out

WITHIN_S = 60.0
TLS_SHIFT = 1
"""The doctor expects it to be the same everywhere."""


@attrs.define(eq=False)
class Load:
    """Producers and workers, with TLS and a password, at any node that answers."""

    ports: list[int]
    password: bytes
    tls: Tls
    added: dict[bytes, None] = attrs.Factory(dict)
    delivered: dict[bytes, int] = attrs.Factory(dict)
    acknowledged: dict[bytes, None] = attrs.Factory(dict)
    is_over: threading.Event = attrs.Factory(threading.Event)
    is_drained: threading.Event = attrs.Factory(threading.Event)

    def produce(self, seed: int) -> None:
        """Add jobs until it is over."""
        rng, number = random.Random(seed), 0
        while not self.is_over.is_set():
            body = b"%d-%d" % (seed, number)
            number += 1
            options = [b"REPLICATE", b"2", b"RETRY", b"5"]
            reply = self._ask(rng, [b"ADDJOB", b"q", body, b"5000", *options])
            if isinstance(reply, Failure) or reply is None:
                time.sleep(0.05)
            else:
                self.added[_text(reply)] = None

    def consume(self, seed: int) -> None:
        """Take jobs and acknowledge them until there are no more."""
        rng = random.Random(seed)
        while not self.is_drained.is_set():
            reply = self._ask(rng, b"GETJOB TIMEOUT 500 COUNT 20 FROM q".split())
            if not isinstance(reply, list):
                time.sleep(0.05)
                continue
            ids = [_text(job[1]) for job in reply if isinstance(job, list)]
            for each in ids:
                self.delivered[each] = self.delivered.get(each, 0) + 1
            if isinstance(self._ask(rng, [b"ACKJOB", *ids]), int):
                self.acknowledged.update(dict.fromkeys(ids))

    def _ask(self, rng: random.Random, words: list[bytes]) -> Reply:
        """One request on a connection of its own, as of a process that comes and goes."""
        address = Address(port=rng.choice(self.ports), tls=self.tls)
        connection = Connection(address, self.password, connect_timeout_s=5)
        try:
            if connection.ready() is not None or not connection.send(words):
                return None
            return connection.receive()
        except ConnectionFailedError:
            return None
        finally:
            connection.close()


def _text(reply: Reply) -> bytes:
    text = getattr(reply, "text", reply)
    assert isinstance(text, bytes)
    return text


@attrs.frozen
class Place:
    """What all nodes have in common."""

    secrets: tuple[str, ...]
    client: tuple[str, ...]
    load: Load


@pytest.fixture
def place(tmp_path: Path) -> Place:
    nodes, clients = Authority(tmp_path, "nodes"), Authority(tmp_path, "clients")
    me = clients.sign()
    for name, text in (("password", "open sesame\n"), ("cluster", "what only these nodes know\n")):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(text)
    secrets = (
        *("--requirepass-file", f"{tmp_path}/password"),
        *("--cluster-secret-file", f"{tmp_path}/cluster"),
        *("--tls-ca-cert-file", clients.file, "--tls-cluster-ca-cert-file", nodes.file),
        *("--tls-cluster", "yes", "--appendonly", "yes", "--appendfsync", "everysec"),
        *("--tls-cert-file", (node := nodes.sign()).cert, "--tls-key-file", node.key),
    )
    client = (
        *("--tls", "--cacert", nodes.file, "--cert", me.cert, "--key", me.key),
        *("--password-file", f"{tmp_path}/password"),
    )
    tls = Tls(cacert=nodes.file, cert=me.cert, key=me.key)
    return Place(secrets, client, Load([], b"open sesame", tls))


class Guarded(Server):
    """A node that asks for a password, also when asked whether it has started."""

    def _has_started(self) -> bool:
        assert self.is_running(), f"the server has ended: {self.log()}"
        with pytest.raises(RefusedError) as refusal:
            self.client.text("PING")
        return str(refusal.value).startswith("NOAUTH")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    found: list[Server] = []
    yield found
    complaints = [server.close() for server in found]
    assert complaints == [[]] * len(found)


def is_well(place: Place, port: int, nodes: int, capsys: pytest.CaptureFixture[str]) -> bool:
    """Does the doctor see all nodes, and nothing worse than what a restart leaves behind?"""
    capsys.readouterr()
    main(["doctor", "--json", "-p", str(port), "-t", "20", *place.client])
    told = json.loads(capsys.readouterr().out)
    problems = [each["what"] for each in told["findings"] if each["level"] == "problem"]
    wrong = [what for what in problems if "refused with NOREPL" not in what]  # it names the last
    links = [each for each in told["findings"] if "no link to" in each["what"]]
    return len(told["nodes"]) == nodes and not wrong and not links


@pytest.mark.slow
def test_a_rolling_restart_under_load_loses_nothing(
    servers: list[Server], place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = place.load
    for _ in range(3):
        node = Guarded(tmp_path / f"node-{len(servers)}", place.secrets)
        node.options = (*place.secrets, "--tls-port", str(node.port + TLS_SHIFT))
        load.ports.append(node.port + TLS_SHIFT)
        servers.append(node)
        node.start().wait(WITHIN_S)
    for port, server in zip(load.ports[1:], servers[1:], strict=True):
        assert main(["cli", "-p", str(load.ports[0]), *place.client,
                     "CLUSTER", "MEET", "127.0.0.1", str(server.port)]) == 0, port  # fmt: skip
    first = load.ports[0]
    eventually(lambda: is_well(place, first, 3, capsys), WITHIN_S, "the cluster is well")
    producers = [threading.Thread(target=load.produce, args=[seed]) for seed in range(2)]
    consumers = [threading.Thread(target=load.consume, args=[seed]) for seed in range(2)]
    for thread in producers + consumers:
        thread.start()

    for server in servers:
        before = len(load.added)
        eventually(lambda n=before: len(load.added) > n + 50, WITHIN_S, "jobs are added")  # type: ignore[misc]
        assert server.terminate() == 0
        server.start().wait(WITHIN_S)
        eventually(lambda: is_well(place, first, 3, capsys), WITHIN_S, "the cluster is well again")

    load.is_over.set()
    for thread in producers:
        thread.join()
    eventually(lambda: not load.added.keys() - load.delivered.keys(), WITHIN_S, "none is lost")
    load.is_drained.set()
    for thread in consumers:
        thread.join()
    assert len(load.added) > 150


def test_a_commit_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="invalid reference: nonexistent"):
        _checked_out("nonexistent", tmp_path / "old")
