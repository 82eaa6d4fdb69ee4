"""The driver and nodes that fail, are silent, or refuse it."""

from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream

from disque_trio.client.address import Address, Cluster
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import Done, Outcome, Queue, Settings
from disque_trio.worker.protocol import Run
from disque_trio.worker.statuses import CLEAN, REFUSED
from tests.client.fakenode import Answers, fake_node
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, Doing, play

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_if_a_node_fails_the_next_one_is_asked(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    first, second = PlayedNode(7711), PlayedNode(7712)

    async def story(worker: Worker) -> None:
        await first.is_told(b"GETJOB")
        first.is_down = True
        first.hang_up()
        second.give(job(1))
        await second.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, first, second) == CLEAN
    assert "127.0.0.1:7711" in caplog.text


def test_a_node_that_does_not_answer_the_dial_is_not_waited_for(kind: str) -> None:
    second = PlayedNode(7712)

    async def connect(address: Address, _: float) -> ByteStream:
        if address.port == 7711:
            await anyio.sleep_forever()
        return second.connected()

    async def story(worker: Worker) -> None:
        second.give(job(1))
        await second.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, PlayedNode(7711), second, connect=connect) == CLEAN


def test_nodes_that_hello_names_are_used(kind: str) -> None:
    hello: Reply = [
        1,
        b"1" * 40,
        [b"1" * 40, b"127.0.0.1", b"7711", b"1"],
        [b"2" * 40, b"127.0.0.1", b"7712", b"1"],
    ]
    first, second = PlayedNode(7711, answers={b"HELLO": hello}), PlayedNode(7712)

    async def story(worker: Worker) -> None:
        await first.is_told(b"GETJOB")
        first.is_down = True
        first.hang_up()
        second.give(job(1))
        await second.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, first, second, seeds=1) == CLEAN


def test_the_password_is_asked_for_by_each_connection(kind: str) -> None:
    node = PlayedNode()
    passwords = iter([b"one", b"two"])

    async def story(worker: Worker) -> None:
        node.give(job(1))
        await node.is_told(b"ACKJOB")
        worker.stop()

    assert play(kind, story, node, password=lambda: next(passwords)) == CLEAN
    firsts = [stream.writes[0][:2] for stream in node.streams]
    assert firsts == [[[b"AUTH", b"one"], [b"HELLO"]], [[b"AUTH", b"two"], [b"HELLO"]]]


@pytest.mark.parametrize(
    "answers",
    [
        {b"AUTH": Failure(b"WRONGPASS invalid password")},
        {b"HELLO": Failure(b"NOAUTH Authentication required"), b"INFO": Failure(b"NOAUTH no")},
    ],
    ids=["wrong", "missing"],
)
def test_a_worker_that_no_node_lets_in_ends_with_a_status_of_its_own(
    kind: str, answers: dict[bytes, Failure], caplog: pytest.LogCaptureFixture
) -> None:
    password = b"x" if b"AUTH" in answers else None

    async def story(_: Worker) -> None:
        """It ends by itself."""

    assert play(kind, story, PlayedNode(answers=answers), password=password) == REFUSED
    assert "password" in caplog.text


def test_a_node_that_is_no_address_of_the_cluster_is_refused(kind: str) -> None:
    settings = Settings(nodes=("n1",), queues=(Queue(name=b"q"),))

    with pytest.raises(ValueError, match="'n1' is not an address of the cluster"):
        Worker(settings=settings, handler=Doing(), cluster=Cluster([Address()]))
    assert kind in KINDS


@pytest.mark.parametrize("is_local", [True, False], ids=["unix", "tcp"])
def test_it_works_over_sockets(kind: str, is_local: bool, tmp_path: Path) -> None:
    first = iter([True])

    def given() -> list[Reply]:
        return [[job(1)]] if next(first, False) else [NULL_ARRAY]

    answers: Answers = {b"HELLO": [[1, b"1" * 40]], b"GETJOB": given, b"ACKJOB": [1]}
    path = str(tmp_path / "socket") if is_local else None
    with fake_node(answers, features=(b"withmeta",), path=path) as node:
        address = Address(path=path) if path else Address(port=node.port)

        async def body(_: Run) -> Outcome:
            worker.stop()
            return Done()

        worker = Worker(
            settings=Settings(nodes=(str(address),), queues=(Queue(name=b"q"),)),
            handler=Doing(body),
            cluster=Cluster([address]),
        )
        assert anyio.run(worker.run, backend=kind) == CLEAN
    assert [b"ACKJOB", id_of(1)] in node.requests
