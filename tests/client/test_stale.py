"""Connections that have ended while nobody looked, and clients in a wrong loop or thread."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import pytest
import trio

from disque_trio.client import blocking, commands, link
from disque_trio.client.blocking import BlockingClient
from disque_trio.client.client import Client
from disque_trio.client.errors import BusyError, LostError, OtherLoopError
from disque_trio.statemachine.base import NULL_ARRAY, Reply, Status
from tests.client.fakenode import Answers, FakeNode, fake_node
from tests.client.running import KINDS, talk, url

ID: Final = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
ANSWERS: Final[dict[bytes, list[Reply]]] = {
    b"HELLO": [[1, b"a" * 40]],
    b"ADDJOB": [Status(ID.encode())],
    b"GETJOB": [NULL_ARRAY],
    b"ACKJOB": [1],
    b"NACK": [1],
    b"QLEN": [7],
    b"PURGE": [1],
}
Command = Callable[[Any], Awaitable[object]]
COMMANDS: Final[dict[str, Command]] = {
    "addjob": lambda client: client.addjob("q", b"body"),
    "getjob": lambda client: client.getjob("q", timeout=0),
    "waiting getjob": lambda client: client.getjob("q", timeout=1),
    "ackjob": lambda client: client.ackjob(ID),
    "nack": lambda client: client.nack(ID),
    "qlen": lambda client: client.qlen("q"),
    "purge": lambda client: client.purge("q"),
    "pipeline": lambda client: client.run_all([commands.qlen("q")] * 3),
}


async def use(client: Any) -> None:
    """Open a connection of each kind, and use it."""
    for command in COMMANDS.values():
        await command(client)


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_restart_of_the_node_each_command_works_at_once(kind: str, what: str) -> None:
    with fake_node(ANSWERS) as node:

        async def conversation(client: Any) -> None:
            await use(client)
            node.stop()
            node.start()
            await COMMANDS[what](client)
            node.hang_up()
            await COMMANDS[what](client)

        talk(kind, url(node), conversation)


def resetting(node: FakeNode, name: bytes) -> Callable[[], Any]:
    """An answer to this command that ends the connection, once."""
    left = [ANSWERS[name], None]
    return lambda: left.pop(0) if len(left) > 0 else ANSWERS[name]


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_be_repeated_is_sent_by_a_new_connection_if_an_old_one_ends(kind: str) -> None:
    with fake_node(ANSWERS) as node:

        async def conversation(client: Any) -> None:
            await client.qlen("q")
            assert await client.qlen("q") == 7
            assert await client.qlen("q") == 7

        node.answers = {**ANSWERS, b"QLEN": resetting(node, b"QLEN")}
        talk(kind, url(node), conversation)
        assert node.requests.count([b"QLEN", b"q"]) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_what_must_not_be_repeated_is_not(kind: str) -> None:
    with fake_node(ANSWERS) as node:

        async def conversation(client: Any) -> None:
            await client.nack(ID)
            with pytest.raises(LostError):
                await client.nack(ID)
            assert await client.nack(ID) == 1

        node.answers = {**ANSWERS, b"NACK": resetting(node, b"NACK")}
        talk(kind, url(node), conversation)
        assert node.requests.count([b"NACK", ID.encode()]) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_before_that_an_idle_connection_is_tried(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (blocking, link):
        monkeypatch.setattr(module, "PROBE_S", -1.0)
    answers: Answers = {**ANSWERS, b"PING": None}  # whoever probes an old connection is hung up on
    with fake_node(answers) as node:

        async def conversation(client: Any) -> None:
            assert await client.nack(ID) == 1
            assert await client.nack(ID) == 1

        talk(kind, url(node), conversation)
        assert [each[0] for each in node.requests].count(b"NACK") == 2


# One event loop.


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_client_in_a_second_event_loop_says_what_to_do(backend: str) -> None:
    with fake_node(ANSWERS) as node:
        client = Client(url(node))

        def elsewhere() -> None:
            with pytest.raises(OtherLoopError, match="a client for each event loop"):
                anyio.run(client.qlen, "q", backend=backend)

        async def here() -> None:
            await client.qlen("q")
            await anyio.to_thread.run_sync(elsewhere)
            assert await client.qlen("q") == 7
            await client.close()

        anyio.run(here, backend=backend)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # asyncio misses the end of a transport
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_goes_on_in_the_next_event_loop() -> None:
    with fake_node(ANSWERS) as node:
        client = Client(url(node))
        for _ in range(2):
            assert asyncio.run(client.qlen("q")) == 7
            assert trio.run(client.qlen, "q") == 7
        client.abandon()
        gc.collect()


def test_a_blocking_client_that_two_threads_use_says_what_to_do() -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def answer() -> Any:
        asked.set()
        may_answer.wait(60)
        return [7]

    with fake_node({**ANSWERS, b"QLEN": answer}) as node, BlockingClient(url(node)) as client:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(client.qlen("q")))
        thread.start()
        assert asked.wait(60)
        with pytest.raises(BusyError, match="one for each thread"):
            client.qlen("q")
        may_answer.set()
        thread.join()
        assert found == [7]
