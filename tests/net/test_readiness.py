"""Turns: which channels are served, and in which order."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.net.pollers import open_poller
from disque_trio.net.readiness import Channel, Readiness


class Eater(Channel):
    """Counts how often its turn has come."""

    __slots__ = ("name", "plate")

    def __init__(self, at: Readiness, name: str, plate: list[str]) -> None:
        super().__init__(at, socket.socket())
        self.name = name
        self.plate = plate
        at.add(self, 0)

    def ready(self, mask: int) -> None:
        assert not mask
        self.readiness.defer(self)

    def read_much(self) -> None:
        self.plate.append(self.name)


@pytest.fixture
def table() -> Iterator[Readiness]:
    """Where there is time for one of the greedy in each turn."""
    table = Readiness(open_poller("epoll"), greed_s=0.0)
    yield table
    table.close()


def test_connections_that_send_much_are_served_in_turn(table: Readiness) -> None:
    plate: list[str] = []
    eaters = [Eater(table, name, plate) for name in "abc"]

    for _ in range(7):
        for eater in eaters:
            eater.ready(0)
        table.serve_greedy()

    assert "".join(plate) == "abcabca"


def test_while_there_is_time_all_are_served(table: Readiness) -> None:
    table.greed_s = 3600.0
    plate: list[str] = []
    for name in "abc":
        Eater(table, name, plate).ready(0)

    table.serve_greedy()

    assert "".join(plate) == "abc"
    assert not table.greedy


def test_a_connection_that_has_ended_is_not_served_any_more(table: Readiness) -> None:
    plate: list[str] = []
    eaters = [Eater(table, name, plate) for name in "abc"]
    for eater in eaters:
        eater.ready(0)

    table.end(eaters[0])
    table.serve_greedy()
    table.end(eaters[1])
    table.close_ended()
    table.serve_greedy()

    assert "".join(plate) == "c"


def test_a_descriptor_that_tls_has_closed_belongs_to_its_next_channel(
    table: Readiness,
) -> None:
    leaver = Eater(table, "leaver", [])
    leaver.sock.close()
    table.end(leaver)
    newcomer = Eater(table, "newcomer", [])
    assert newcomer.fd == leaver.fd

    table.close_ended()

    assert table.handlers[newcomer.fd] == newcomer.ready


def test_a_ring_from_a_thread_ends_the_sleep_or_forbids_it(table: Readiness) -> None:
    alarm = table.alarm
    assert alarm.arm()
    alarm.ring()
    events = table.poll(60)
    assert [fd for fd, _ in events] == [alarm.fd]
    for fd, mask in events:
        table.handlers[fd](mask)
    assert alarm.is_rung

    assert table.poll(60) == []
    assert not alarm.arm()
    alarm.is_rung = False
    assert alarm.arm()


def test_a_ring_that_is_under_way_when_the_loop_ends_writes_to_no_other_file(
    table: Readiness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    really_write = os.write

    def write(descriptor: int, data: bytes) -> int:
        table.alarm.close()
        others = [os.open(other, os.O_RDWR | os.O_CREAT) for _ in range(2)]
        try:
            return really_write(descriptor, data)
        finally:
            for each in others:
                os.close(each)

    monkeypatch.setattr("disque_trio.net.readiness.os.write", write)
    assert table.alarm.arm()
    table.alarm.ring()

    assert other.read_bytes() == b""


def test_a_loop_that_does_not_sleep_is_rung_without_a_system_call(table: Readiness) -> None:
    table.alarm.ring()

    assert table.alarm.is_rung
    assert table.poll() == []
