"""Many clients that wait for jobs cost as much as they are, whatever they do at the same time."""

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from disque_trio.statemachine.base import MYSELF, Now
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine

FEW = 60


def now(mono: int) -> Now:
    return Now(mono, 1_800_000_000_000 + mono, 0)


class Crowd:
    """Clients of a node whose cluster has three other ones."""

    def __init__(self, clients: int, queues: int) -> None:
        others = [Peer(b"%040d" % number, f"10.0.0.{number}", 7711) for number in range(1, 4)]
        myself = Peer(b"a" * 40, flags=MYSELF)
        self.machine = Machine(Config(), myself, random.Random(0), now(0), nodes=others)
        for number, peer in enumerate(others, 1):
            peer.link = number
        self.queues = [b"q%d" % number for number in range(queues)]
        self.clients = [self._client() for _ in range(clients)]

    def _client(self) -> Client:
        client = self.machine.connect(b"127.0.0.1:50000", now(0))
        assert client is not None
        return client

    def wait(self, at: int, *options: bytes) -> None:
        for client in self.clients:
            self.machine.request(client, [b"GETJOB", *options, b"FROM", *self.queues], now(at))
        self.machine.take()

    def time_out(self) -> None:
        self.machine.tick(now(2000))
        self.machine.take()

    def get(self) -> None:
        producer = self._client()
        add = [b"ADDJOB", self.queues[-1], b"body", b"0", b"REPLICATE", b"1"]
        for _ in self.clients:
            self.machine.request(producer, add, now(3000))
            self.machine.take()

    def leave(self) -> None:
        for client in self.clients:
            self.machine.disconnect(client, now(4000))
        self.machine.take()


def costs(clients: int, queues: int) -> list[int]:
    """Lines that are executed while all begin to wait, time out, wait again, are given a job each,
    wait again, and leave."""
    crowd = Crowd(clients, queues)
    return [
        lines_of(lambda: crowd.wait(1000, b"TIMEOUT", b"500")),
        lines_of(crowd.time_out),
        lines_of(lambda: crowd.wait(2500)),
        lines_of(crowd.get),
        lines_of(lambda: crowd.wait(3500)),
        lines_of(crowd.leave),
    ]


def lines_of(do: Callable[[], object]) -> int:
    count = 0

    def trace(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.pure
@pytest.mark.parametrize("queues", [1, 50])
def test_twice_as_many_clients_that_wait_cost_twice_as_much(queues: int) -> None:
    few, many = costs(FEW, queues), costs(2 * FEW, queues)

    assert all(count > FEW for count in few)
    assert [more for one, more in zip(few, many, strict=True) if more > 2.2 * one] == []
