"""Pollers: all three tell the same of a pair of sockets."""

import contextlib
import select
import socket
from collections.abc import AsyncIterator, Iterator

import pytest
import trio
import trio.testing

from disque_trio.net.multiplexing import (
    ERR,
    HUP,
    IN,
    OUT,
    RDHUP,
    MultiplexingError,
    Poller,
    available,
    resolve,
)
from disque_trio.net.pollers import TaskPoller, open_poller
from tests.net import kqueue

pytestmark = pytest.mark.usefixtures("multiplexing")
DEAD = ERR | HUP


@pytest.fixture
async def poller(multiplexing: str) -> AsyncIterator[Poller]:
    found = open_poller(multiplexing)
    async with found.running():
        yield found
    found.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setblocking(False)
    with near, far:
        yield near, far


Pair = tuple[socket.socket, socket.socket]


async def told(poller: Poller) -> list[tuple[int, int]]:
    """The next that is ready."""
    with trio.fail_after(30):
        while True:
            await poller.wait()
            if ready := poller.poll(0, 100):
                return ready


async def silent(poller: Poller) -> bool:
    """Does nothing come, not even after a while?"""
    with trio.move_on_after(0.15):
        await told(poller)
        return False
    return True


async def test_input_comes_up_until_it_is_read(poller: Poller, pair: Pair) -> None:
    near, far = pair
    poller.register(near.fileno(), IN | RDHUP)
    assert await silent(poller)

    far.send(b"hello")

    assert await told(poller) == [(near.fileno(), IN)]
    assert await told(poller) == [(near.fileno(), IN)]
    near.recv(100)
    assert await silent(poller)
    far.send(b"again")
    assert await told(poller) == [(near.fileno(), IN)]


async def test_room_for_output_comes_up_while_it_is_asked_for(poller: Poller, pair: Pair) -> None:
    near, far = pair
    poller.register(near.fileno(), IN)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += near.send(b"x" * 100_000)

    poller.modify(near.fileno(), IN | OUT)
    assert await silent(poller)
    while sent:
        sent -= len(far.recv(1 << 20))
    assert await told(poller) == [(near.fileno(), OUT)]

    poller.modify(near.fileno(), IN)
    assert await silent(poller)


async def test_both_directions_come_up(poller: Poller, pair: Pair) -> None:
    near, far = pair
    far.send(b"x")
    poller.register(near.fileno(), IN | OUT)
    mask = 0
    while mask != IN | OUT:
        ((fd, found),) = await told(poller)
        assert fd == near.fileno()
        mask |= found


async def test_input_that_is_not_wanted_does_not_come_up(poller: Poller, pair: Pair) -> None:
    near, far = pair
    poller.register(near.fileno(), IN | RDHUP)
    far.send(b"x")
    await told(poller)

    poller.modify(near.fileno(), RDHUP)
    far.send(b"more")

    assert await silent(poller)
    poller.modify(near.fileno(), IN | RDHUP)
    assert await told(poller) == [(near.fileno(), IN)]


async def test_the_end_comes_up_though_there_is_input_that_is_not_wanted(
    poller: Poller, pair: Pair
) -> None:
    near, far = pair
    poller.register(near.fileno(), RDHUP)
    far.send(b"x")
    assert await silent(poller)

    far.shutdown(socket.SHUT_WR)

    assert await told(poller) == [(near.fileno(), RDHUP)]
    poller.modify(near.fileno(), 0)
    assert await silent(poller)


async def test_an_end_that_was_there_before_comes_up(poller: Poller, pair: Pair) -> None:
    near, far = pair
    far.shutdown(socket.SHUT_WR)
    poller.register(near.fileno(), IN)
    assert await told(poller) == [(near.fileno(), IN)]

    poller.modify(near.fileno(), RDHUP)

    assert await told(poller) == [(near.fileno(), RDHUP)]


async def test_a_broken_connection_comes_up_though_nothing_is_wanted(
    poller: Poller, pair: Pair
) -> None:
    near, far = pair
    poller.register(near.fileno(), IN)
    poller.modify(near.fileno(), 0)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    far.close()

    ((fd, mask),) = await told(poller)
    assert fd == near.fileno()
    assert mask & DEAD
    assert not mask & ~DEAD


async def test_a_dial_that_fails_comes_up(poller: Poller) -> None:
    with socket.socket() as near, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        near.setblocking(False)
        poller.register(near.fileno(), OUT)
        with contextlib.suppress(BlockingIOError):
            near.connect(unused.getsockname())

        ((fd, mask),) = await told(poller)

        assert fd == near.fileno()
        assert mask & OUT
        assert near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


async def test_a_listener_comes_up_and_may_rest(poller: Poller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        poller.register(listener.fileno(), IN)
        with socket.create_connection(listener.getsockname()):
            assert await told(poller) == [(listener.fileno(), IN)]
            poller.modify(listener.fileno(), 0)
            assert await silent(poller)
            poller.modify(listener.fileno(), IN)
            assert await told(poller) == [(listener.fileno(), IN)]


async def test_the_next_descriptor_of_the_same_number_is_another(poller: Poller) -> None:
    first, first_far = socket.socketpair()
    poller.register(first.fileno(), IN | OUT)
    first_far.send(b"x")
    await told(poller)
    number = first.fileno()
    poller.unregister(number)
    first.close()

    second, second_far = socket.socketpair()
    assert second.fileno() == number
    poller.register(number, IN)

    assert await silent(poller)
    second_far.send(b"x")
    assert await told(poller) == [(number, IN)]
    poller.unregister(number)
    for sock in (first_far, second, second_far):
        sock.close()


async def test_a_descriptor_that_was_closed_unseen_does_not_hinder_the_next(
    poller: Poller,
) -> None:
    first, first_far = socket.socketpair()
    poller.register(first.fileno(), IN)
    await trio.testing.wait_all_tasks_blocked()
    number = first.fileno()
    first.close()

    second, second_far = socket.socketpair()
    assert second.fileno() == number
    poller.register(number, IN | RDHUP)
    second_far.send(b"x")

    assert await told(poller) == [(number, IN)]
    poller.unregister(number)
    for sock in (first_far, second, second_far):
        sock.close()


async def test_what_was_found_before_it_was_forgotten_is_not_told(
    poller: Poller, pair: Pair
) -> None:
    near, far = pair
    poller.register(near.fileno(), IN)
    far.send(b"x")
    await poller.wait()

    poller.unregister(near.fileno())
    number = near.fileno()
    near.close()

    assert number not in dict(poller.poll(0, 100))


async def test_waiting_can_be_given_up(poller: Poller, pair: Pair) -> None:
    near, far = pair
    poller.register(near.fileno(), IN)
    with trio.move_on_after(0.05) as patience:
        await poller.wait()
    assert patience.cancelled_caught

    far.send(b"x")

    assert await told(poller) == [(near.fileno(), IN)]


async def test_without_pollrdhup_a_broken_connection_is_still_noticed(
    monkeypatch: pytest.MonkeyPatch, pair: Pair
) -> None:
    monkeypatch.delattr(select, "POLLRDHUP")
    near, far = pair
    poller = TaskPoller()
    async with poller.running():
        poller.register(near.fileno(), RDHUP)
        far.shutdown(socket.SHUT_WR)
        assert await silent(poller)
        near.shutdown(socket.SHUT_WR)
        assert await told(poller) == [(near.fileno(), HUP)]


def test_the_best_way_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    kqueue.install(monkeypatch)
    assert resolve("auto") == "epoll"
    monkeypatch.delattr(select, "epoll")
    assert resolve("auto") == "kqueue"
    monkeypatch.delattr(select, "kqueue")
    assert resolve("auto") == "tasks"
    assert available() == ["tasks"]


def test_a_way_that_the_system_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "kqueue", raising=False)
    with pytest.raises(MultiplexingError) as caught:
        resolve("kqueue")
    assert str(caught.value) == (
        "multiplexing-api kqueue: this system has no kqueue; it has epoll and tasks: name one of "
        "these, or leave the choice to 'auto'"
    )
