"""What the clients send to nodes that know more than an original one, and to those that do not."""

from collections.abc import Iterator
from typing import Any

import pytest

from disque_trio.client import commands
from disque_trio.client.refusals import LeaseLostError, UnknownJobError
from disque_trio.statemachine.base import Failure, Reply
from tests.client.fakenode import Answer, fake_node
from tests.client.running import KINDS, talk, url

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
OTHER = "D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"
HELLO: list[Reply] = [[1, b"a" * 40]]
ROW: Reply = [b"q", ID.encode(), b"body", b"nacks", 0, b"additional-deliveries", 0]
META: Reply = [
    b"q", ID.encode(), b"body", b"attempt", 3, b"nacks", 1, b"additional-deliveries", 1,
    b"priority", 5, b"created-ms", 1_700_000_000_123, b"age-ms", 1500, b"lease-ms", 30000,
    b"ttl-ms", 60000,
    b"token", b"0123456789abcdef0123", b"key", b"today",
]  # fmt: skip

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_a_job_that_is_late_is_lost_by_its_token(kind: str) -> None:
    async def conversation(client: Any) -> None:
        (job,) = await client.getjob("q", timeout=0, with_meta=True, is_tied=True)
        assert (job.meta.attempt, job.meta.lease, job.meta.key) == (3, 30.0, "today")
        assert job.meta.created == 1_700_000_000.123
        with pytest.raises(LeaseLostError, match="WORKING: LOST somebody"):
            await client.working(job)
        assert await client.nack(job) == await client.release(job) == 0
        assert await client.ackjob(job) == 1

    answers: dict[bytes, Answer] = {
        b"HELLO": HELLO,
        b"GETJOB": [[META]],
        b"WORKING": [Failure(b"LOST somebody else")],
        b"NACK": [0],
        b"RELEASE": [0],
        b"ACKJOB": [1],
    }
    features = [b"withmeta", b"tied", b"tokens", b"release"]
    with fake_node(answers, features=features) as node:
        talk(kind, url(node), conversation)

    with_token = ID.encode() + b"@0123456789abcdef0123"
    assert node.requests[2][1:5] == [b"NOHANG", b"WITHCOUNTERS", b"WITHMETA", b"TIED"]
    assert node.requests[3:] == [
        [b"WORKING", with_token],
        [b"NACK", with_token],
        [b"RELEASE", with_token],
        [b"ACKJOB", ID.encode()],
    ]


def test_an_original_node_is_sent_what_it_understands(kind: str) -> None:
    async def conversation(client: Any) -> None:
        (job,) = await client.getjob("q", timeout=0, with_meta=True, is_tied=True)
        assert job.meta is None
        token = f"{job.id}@0123456789abcdef0123"
        assert await client.working(token) == await client.nack(token) == 1
        assert await client.release(token) == 1

    answers: dict[bytes, Answer] = {
        b"HELLO": HELLO,
        b"GETJOB": [[ROW]],
        b"WORKING": [1],
        b"NACK": [1],
        b"ENQUEUE": [1],
    }
    with fake_node(answers) as node:
        talk(kind, url(node), conversation)

    assert node.requests[2] == [
        b"GETJOB",
        b"NOHANG",
        b"WITHCOUNTERS",
        b"COUNT",
        b"1",
        b"FROM",
        b"q",
    ]
    assert [words[1:] for words in node.requests[3:]] == [[ID.encode()]] * 3


def test_a_job_is_sought_at_the_node_that_holds_it(kind: str) -> None:
    async def conversation(client: Any) -> None:
        assert await client.working(ID) == 300
        assert await client.waitjob(ID) == "dead"
        with pytest.raises(UnknownJobError):
            await client.working(OTHER)

    no_job: Answer = [Failure(b"NOJOB Job not known")]
    second_answers: Iterator[Answer] = iter([[300], no_job])
    with (
        fake_node({b"HELLO": HELLO, b"WORKING": no_job, b"WAITJOB": no_job}) as first,
        fake_node(
            {
                b"HELLO": [[1, b"b" * 40]],
                b"WORKING": lambda: next(second_answers),
                b"WAITJOB": [b"dead"],
            }
        ) as second,
    ):
        talk(kind, url(first, second), conversation)

    assert [words[0] for words in first.requests].count(b"WORKING") == 2


def test_one_node_alone_may_be_asked(kind: str) -> None:
    async def conversation(client: Any) -> None:
        address = client.nodes.order(0)[1]
        found = await client.ask(address, [commands.qlen("a"), commands.qlen("b")])
        assert (found[0], str(found[1])) == (7, "QLEN: ERR no")

    replies: Iterator[Answer] = iter([[7], [Failure(b"ERR no")]])
    with (
        fake_node({b"HELLO": HELLO}) as first,
        fake_node({b"HELLO": HELLO, b"QLEN": lambda: next(replies)}) as second,
    ):
        talk(kind, url(first, second), conversation)

    assert not first.requests
