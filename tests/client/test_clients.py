"""The clients, on Trio, on asyncio and blocking, against nodes that do what a test says."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from disque_trio.client import commands
from disque_trio.client.address import Address, Cluster
from disque_trio.client.client import Client
from disque_trio.client.errors import LostError
from disque_trio.client.naming import process_name
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.records import Job, Scanned
from disque_trio.client.refusals import (
    AuthenticationError,
    BadReplyError,
    NotReplicatedError,
    RefusedError,
)
from disque_trio.statemachine.base import NULL_ARRAY, OK, Failure, Reply, Status
from tests.client.fakenode import Answer, Answers, FakeNode, fake_node
from tests.client.running import KINDS, talk, url

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
OTHER = "D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"
HELLO: list[Reply] = [[1, b"a" * 40]]
ROW: Reply = [b"q", ID.encode(), b"body", b"nacks", 0, b"additional-deliveries", 0]

pytestmark = pytest.mark.parametrize("kind", KINDS)


def names(node: FakeNode) -> list[bytes]:
    return [request[0] for request in node.requests]


def test_a_job_is_added_taken_and_acknowledged(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.addjob("q", b"body", retry=5) == ID
        assert await client.getjob("q", timeout=0) == [Job(ID, "q", b"body")]
        assert await client.getjob("q", timeout=2) == [Job(ID, "q", b"body")]
        assert await client.ackjob(ID, OTHER) == 1

    answers: dict[bytes, list[Reply]] = {
        b"HELLO": HELLO,
        b"ADDJOB": [Status(ID.encode())],
        b"GETJOB": [[ROW]],
        b"ACKJOB": [1],
    }
    with fake_node(answers) as node:
        talk(kind, url(node), conversation)

    assert [b"ACKJOB", ID.encode(), OTHER.encode()] in node.requests


def test_every_command_has_its_reply(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.fastack(ID) == 1
        assert await client.nack(ID) == 2
        assert await client.working(ID) == 300
        assert await client.enqueue(ID) == 3
        assert await client.dequeue(ID) == 4
        assert await client.deljob(ID) == 5
        assert await client.show(ID) is None
        assert await client.qlen("q") == 6
        assert await client.qpeek("q") == [Job(ID, "q", b"body")]
        assert await client.qstat("q") is None
        assert await client.pause("q", "in") == "in"
        assert await client.purge("q", is_dead=True, is_bcast=True) == 7
        assert await client.waitjob(ID, timeout=60) == "acked"
        assert await client.release(ID) == 8
        assert await client.redrive(ID) == await client.redrive_queue("q") == 9
        assert await client.cancel_key("q", "k") == 1
        assert await client.unblock(5) == 1
        assert await client.qscan() == Scanned(0, ["q"])
        assert await client.jscan(queue="q", states=["dead"]) == Scanned(0, [])
        assert [str(each) for each in await client.working_all(ID)] == ["300"]
        assert (await client.info())["a"] == "1"
        assert await client.call("ECHO", "hi") == b"hi"
        with pytest.raises(RefusedError, match="NONSENSE: ERR unknown command"):
            await client.call("NONSENSE")

    answers: dict[bytes, list[Reply]] = {
        b"HELLO": HELLO,
        b"FASTACK": [1],
        b"NACK": [2],
        b"WORKING": [300],
        b"ENQUEUE": [3],
        b"DEQUEUE": [4],
        b"DELJOB": [5],
        b"SHOW": [None],
        b"QLEN": [6],
        b"QPEEK": [[[b"q", ID.encode(), b"body"]]],
        b"QSTAT": [NULL_ARRAY],
        b"PAUSE": [b"in"],
        b"PURGE": [7],
        b"WAITJOB": [b"acked"],
        b"RELEASE": [8],
        b"REDRIVE": [9],
        b"CANCEL": [1],
        b"CLIENT": [1],
        b"QSCAN": [[b"0", [b"q"]]],
        b"JSCAN": [[b"0", []]],
        b"INFO": [b"# A\r\na:1\r\nfeatures:release,tokens\r\n"],
        b"ECHO": [b"hi"],
    }
    with fake_node(answers) as node:
        talk(kind, url(node), conversation)


def test_a_password_comes_first(kind: str) -> None:
    async def conversation(client: Any) -> None:
        await client.qlen("q")

    with fake_node({b"HELLO": HELLO, b"AUTH": [OK], b"QLEN": [0]}) as node:
        talk(kind, url(node).replace("://", "://:secret@"), conversation)

    assert node.requests[:2] == [[b"AUTH", b"secret"], [b"HELLO"]]


@pytest.mark.parametrize(
    ("name", "sent"), [("shop", b"shop"), ("my shop", b"my_shop"), (None, None), ("", b"")]
)
def test_a_connection_is_named_with_the_greeting(
    kind: str, name: str | None, sent: bytes | None
) -> None:
    async def conversation(client: Any) -> None:
        assert await client.qlen("q") == 7

    with fake_node({b"HELLO": HELLO, b"CLIENT": [OK], b"QLEN": [7]}) as node:
        talk(kind, url(node), conversation, name=name)

    expected = process_name().encode() if sent is None else sent
    assert node.names == ([expected] if expected else [])


def test_a_node_may_refuse_the_name(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.qlen("q") == 7

    with fake_node({b"HELLO": HELLO, b"CLIENT": [Failure(b"ERR no")], b"QLEN": [7]}) as node:
        talk(kind, url(node), conversation)


def test_a_password_may_be_replaced(kind: str) -> None:
    passwords = iter([b"old", b"new"])

    async def conversation(client: Any) -> None:
        await client.qlen("q")
        node.hang_up()
        await client.qlen("q")

    with fake_node({b"HELLO": HELLO, b"AUTH": [OK], b"QLEN": [0]}) as node:
        cluster = Cluster([Address(port=node.port)], lambda: next(passwords))
        talk(kind, cluster, conversation)

    assert [words[1] for words in node.requests if words[0] == b"AUTH"] == [b"old", b"new"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            {b"AUTH": [Failure(b"ERR invalid password")]},
            r":\d+: ERR invalid password. The password",
        ),
        (
            {b"HELLO": [Failure(b"NOAUTH Authentication required.")]},
            r":\d+: NOAUTH .* required. Put the password into the URL",
        ),
        ({b"HELLO": [Failure(b"DENIED set a password")]}, r":\d+: DENIED set a password$"),
        (
            {b"AUTH": [Failure(b"ERR Client sent AUTH, but no password is set")]},
            r"no password is set. Leave the password out",
        ),
    ],
)
def test_a_password_that_is_refused_is_told_at_once(
    kind: str, answers: dict[bytes, list[Reply]], said: str
) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(AuthenticationError, match=said):
            await client.qlen("q")

    with fake_node({b"HELLO": HELLO, b"AUTH": [OK], **answers}) as node:
        talk(kind, url(node).replace("://", "://:secret@"), conversation)

    assert b"QLEN" not in names(node)


def test_what_a_node_says_before_it_hangs_up_is_told(kind: str) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(AuthenticationError, match=r":\d+: DENIED set a password$"):
            await client.qlen("q")

    with fake_node({}, refusal=b"-DENIED set a password\r\n") as node:
        talk(kind, url(node), conversation)


def test_a_node_in_protected_mode_is_passed_over_for_one_that_serves_clients(kind: str) -> None:
    async def conversation(client: Any) -> None:
        for _ in range(2):
            assert await client.qlen("q") == 7

    denied = fake_node({}, refusal=b"-DENIED set a password\r\n")
    with denied as protected, fake_node({b"HELLO": HELLO, b"QLEN": [7]}) as other:
        talk(kind, url(protected, other), conversation)


def test_a_node_that_hangs_in_its_greeting_is_not_one_that_ends_it(kind: str) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(NoNodeError, match="no answer"):
            await client.qlen("q")

    answers: Answers = {b"AUTH": [Failure(b"ERR no password is set")], b"HELLO": b""}
    with fake_node(answers) as node:
        address = url(node).replace("://", "://:secret@")
        talk(kind, address, conversation, patience_s=0.2)


def test_a_node_that_has_no_place_is_passed_over(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.qlen("q") == 7

    async def alone(client: Any) -> None:
        with pytest.raises(NoNodeError, match="closed the connection: ERR max number of clients"):
            await client.qlen("q")

    full = fake_node({}, refusal=b"-ERR max number of clients reached\r\n")
    with full as crowded, fake_node({b"HELLO": HELLO, b"QLEN": [7]}) as other:
        talk(kind, url(crowded, other), conversation)
        talk(kind, url(crowded).replace("://", "://:secret@"), alone)


def test_a_node_that_is_gone_is_passed_over(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.qlen("q") == 7

    with fake_node({}) as gone, fake_node({b"HELLO": HELLO, b"QLEN": [7]}) as other:
        gone.stop()
        talk(kind, url(gone, other), conversation)
        gone.start()


def test_a_reply_that_was_lost_is_asked_for_elsewhere(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.ackjob(ID) == 1

    with (
        fake_node({b"HELLO": HELLO, b"ACKJOB": None}) as first,
        fake_node({b"HELLO": [[1, b"b" * 40]], b"ACKJOB": [1]}) as second,
    ):
        talk(kind, url(first, second), conversation)

    assert names(first) == [b"HELLO", b"INFO", b"ACKJOB"]


def test_a_job_is_not_added_twice_behind_the_users_back(kind: str) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(LostError, match="is unknown"):
            await client.addjob("q", b"body")

    with (
        fake_node({b"HELLO": HELLO, b"ADDJOB": None}) as first,
        fake_node({b"HELLO": [[1, b"b" * 40]], b"ADDJOB": [Status(ID.encode())]}) as second,
    ):
        talk(kind, url(first, second), conversation)

    assert b"ADDJOB" not in names(second)


@pytest.mark.parametrize("code", [b"LOADING", b"OOM", b"MISCONF", b"LEAVING"])
def test_a_node_that_cannot_now_sends_the_client_to_the_next(kind: str, code: bytes) -> None:
    async def conversation(client: Any) -> None:
        assert await client.addjob("q", b"body") == ID

    with (
        fake_node({b"HELLO": HELLO, b"ADDJOB": [Failure(code + b" not now")]}) as first,
        fake_node({b"HELLO": [[1, b"b" * 40]], b"ADDJOB": [Status(ID.encode())]}) as second,
    ):
        talk(kind, url(first, second), conversation)

    assert b"ADDJOB" in names(first)


def test_a_refusal_is_not_taken_elsewhere(kind: str) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(NotReplicatedError):
            await client.addjob("q", b"body", replicate=9)

    with (
        fake_node({b"HELLO": HELLO, b"ADDJOB": [Failure(b"NOREPL Not enough")]}) as first,
        fake_node({}) as second,
    ):
        talk(kind, url(first, second), conversation)

    assert not second.requests


def test_if_no_node_answers_all_reasons_are_told(kind: str) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(NoNodeError, match=r"Connection refused.*Connection refused"):
            await client.qlen("q")

    with fake_node({}) as first, fake_node({}) as second:
        first.stop()
        second.stop()
        talk(kind, url(first, second), conversation)
        first.start()
        second.start()


def test_what_is_no_node_is_named(kind: str) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises((NoNodeError, BadReplyError), match=r"HELLO|protocol"):
            await client.qlen("q")

    answers: list[Answer] = [[7], b"HTTP/1.1 400 Bad Request\r\n\r\n"]
    for answer in answers:
        with fake_node({b"HELLO": answer}) as node:
            talk(kind, url(node), conversation)


def test_a_node_that_is_silent_is_given_up(kind: str) -> None:
    async def conversation(client: Any) -> None:
        began = time.monotonic()
        with pytest.raises(NoNodeError, match="no answer in time"):
            await client.qlen("q")
        assert time.monotonic() - began < 60

    with fake_node({b"HELLO": HELLO, b"QLEN": b""}) as node:
        talk(kind, url(node), conversation, patience_s=0.1)


def test_a_wait_that_the_client_asked_for_is_not_silence(kind: str) -> None:
    def late() -> Answer:
        time.sleep(0.5)
        return [[ROW]]

    async def conversation(client: Any) -> None:
        assert await client.getjob("q", timeout=60) == [Job(ID, "q", b"body")]
        assert await client.getjob("q") == [Job(ID, "q", b"body")], "for ever"

    with fake_node({b"HELLO": HELLO, b"GETJOB": late}) as node:
        talk(kind, url(node), conversation, patience_s=0.2)


def test_a_connection_that_ended_meanwhile_is_opened_again(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.qlen("q") == 7
        node.hang_up()
        assert await client.qlen("q") == 7

    with fake_node({b"HELLO": HELLO, b"QLEN": [7]}) as node:
        talk(kind, url(node), conversation)


def test_many_commands_go_together_and_each_has_its_result(kind: str) -> None:
    added: list[Answer] = [[Status(b"id-%d" % number)] for number in range(4)]
    added.append([Failure(b"PAUSED later")])
    replies = iter(added)

    async def conversation(client: Any) -> None:
        results = await client.run_all([commands.addjob("q", b"%d" % each) for each in range(5)], 2)
        assert results[:4] == ["id-0", "id-1", "id-2", "id-3"]
        assert isinstance(results[4], RefusedError)

    with fake_node({b"HELLO": HELLO, b"ADDJOB": lambda: next(replies)}) as node:
        talk(kind, url(node), conversation)


def test_of_many_commands_those_that_were_lost_are_told(kind: str) -> None:
    replies: Iterator[Answer] = iter([[Status(b"id-0")], [Status(b"id-1")], None])

    async def conversation(client: Any) -> None:
        asked = [commands.addjob("q", b"%d" % each) for each in range(6)]
        results = await client.run_all(asked, 2)
        assert results[:2] == ["id-0", "id-1"]
        assert [type(each) for each in results[2:4]] == [LostError, LostError]
        assert results[4:] == ["other", "other"]

    with (
        fake_node({b"HELLO": HELLO, b"ADDJOB": lambda: next(replies)}) as first,
        fake_node({b"HELLO": [[1, b"b" * 40]], b"ADDJOB": [Status(b"other")]}) as second,
    ):
        talk(kind, url(first, second), conversation)


def test_a_unix_socket_will_do(kind: str, tmp_path: Path) -> None:
    async def conversation(client: Any) -> None:
        assert await client.qlen("q") == 7

    path = str(tmp_path / "node.sock")
    with fake_node({b"HELLO": HELLO, b"QLEN": [7]}, path=path):
        talk(kind, f"disque+unix://{path}", conversation)


async def test_tasks_share_a_connection_and_get_their_own_replies(kind: str) -> None:
    counter = iter(range(1000))
    with fake_node({b"HELLO": HELLO, b"QLEN": lambda: [next(counter)]}) as node:
        found: list[int] = []

        async def ask(client: Client) -> None:
            found.append(await client.qlen("q"))

        async with Client(url(node)) as client, anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(ask, client)

    assert sorted(found) == list(range(100))
    assert len(node.connections) == 1


def test_a_job_that_was_never_sent_goes_to_the_next_node(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.addjob("q", b"body") == ID

    with (
        fake_node({b"HELLO": None}) as first,
        fake_node({b"HELLO": HELLO, b"ADDJOB": [Status(ID.encode())]}) as second,
    ):
        talk(kind, url(first, second), conversation)
