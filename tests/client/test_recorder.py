"""A recorder keeps what a client asks and is answered, as a history that can be judged."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from disque_trio.client import Recorder
from disque_trio.client.errors import DisqueError
from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import Call, Limits
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status
from tests.client.fakenode import Answer, fake_node
from tests.client.running import KINDS, talk, url

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
HELLO: list[Reply] = [[1, b"a" * 40]]
JOB: Reply = [b"q", ID.encode(), b"x" * 100, b"nacks", 0, b"additional-deliveries", 0]

pytestmark = pytest.mark.parametrize("kind", KINDS)


def calls(path: Path) -> list[Call]:
    reader = Reader()
    reader.read(str(path))
    return list(reader.history(Limits()).calls)


def test_calls_about_jobs_are_recorded_with_their_replies(kind: str, tmp_path: Path) -> None:
    async def conversation(client: Any) -> None:
        await client.addjob("q", b"x" * 100)
        await client.getjob("q", timeout=2)
        await client.ackjob(ID)
        await client.qlen("q")

    answers: dict[bytes, list[Reply]] = {
        b"HELLO": HELLO,
        b"ADDJOB": [Status(ID.encode())],
        b"GETJOB": [[JOB]],
        b"ACKJOB": [1],
        b"QLEN": [0],
    }
    recorder = Recorder(tmp_path / "h.jsonl")
    with fake_node(answers) as node:
        talk(kind, url(node), conversation, recorder=recorder)
    recorder.close()

    add, get, ack = calls(recorder.path)
    assert [add.command, get.command, ack.command] == ["ADDJOB", "GETJOB", "ACKJOB"]
    assert add.reply == ID
    assert add.node == f"127.0.0.1:{node.port}"
    assert get.reply[0][:2] == ["q", ID]
    assert add.request[2] == get.reply[0][2], "the digest of a long body"
    assert add.request[2].startswith("sha256:")
    assert ack.reply == 1
    assert add.begin <= add.end <= get.begin


def test_errors_and_empty_replies_are_recorded(kind: str, tmp_path: Path) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(DisqueError):
            await client.addjob("q", b"\xff")
        assert await client.getjob("q", timeout=1) == []

    answers: dict[bytes, list[Reply]] = {
        b"HELLO": HELLO,
        b"ADDJOB": [Failure(b"PAUSED no")],
        b"GETJOB": [NULL_ARRAY],
    }
    recorder = Recorder(tmp_path / "h.jsonl")
    with fake_node(answers) as node:
        talk(kind, url(node), conversation, recorder=recorder)

    add, get = calls(recorder.path)
    assert add.error == "PAUSED no"
    assert add.request[2] == "\udcff"
    assert get.is_ok
    assert get.reply is None


def test_a_call_whose_connection_breaks_has_no_outcome(kind: str, tmp_path: Path) -> None:
    async def conversation(client: Any) -> None:
        with pytest.raises(DisqueError):
            await client.addjob("q", b"body")

    answers: dict[bytes, Answer] = {b"HELLO": HELLO, b"ADDJOB": None}
    recorder = Recorder(tmp_path / "h.jsonl")
    with fake_node(answers) as node:
        talk(kind, url(node), conversation, recorder=recorder)

    found = calls(recorder.path)
    assert found
    assert all(call.lost_at >= call.begin and not call.is_ok for call in found)


def test_passwords_are_not_recorded(kind: str, tmp_path: Path) -> None:
    async def conversation(client: Any) -> None:
        await client.ackjob(ID)

    answers: dict[bytes, list[Reply]] = {b"AUTH": [Status(b"OK")], b"HELLO": HELLO, b"ACKJOB": [1]}
    recorder = Recorder(tmp_path / "h.jsonl")
    with fake_node(answers) as node:
        address = url(node).replace("disque://", "disque://:secret@")
        talk(kind, address, conversation, recorder=recorder)

    assert "secret" not in recorder.path.read_text()
    assert len(calls(recorder.path)) == 1


def test_several_recorders_and_processes_may_share_a_file(kind: str, tmp_path: Path) -> None:
    async def conversation(client: Any) -> None:
        await client.ackjob(ID)

    path = tmp_path / "h.jsonl"
    with fake_node({b"HELLO": HELLO, b"ACKJOB": [1]}) as node:
        for recorder in (Recorder(path), Recorder(path)):
            talk(kind, url(node), conversation, recorder=recorder)

    assert len({call.client for call in calls(path)}) == 2
    assert sum("history" in json.loads(line) for line in path.read_text().splitlines()) == 1


def test_a_forked_process_has_a_name_of_its_own(kind: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "h.jsonl")
    first = recorder.begin("n", [b"ACKJOB", ID.encode()])
    child = os.fork()
    if not child:
        try:
            recorder.begin("n", [b"ACKJOB", ID.encode()])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    second = recorder.begin("n", [b"ACKJOB", ID.encode()])

    assert len(calls(recorder.path)) == 3
    assert (first[0], second[1]) == (second[0], 2)
    assert len({call.client for call in calls(recorder.path)}) == 2


def test_a_cancelled_getjob_has_the_reply_that_came(kind: str, tmp_path: Path) -> None:
    if kind == "blocking":
        pytest.skip("it has no cancellation")

    async def conversation(client: Any) -> None:
        with anyio.move_on_after(0.05):
            await client.getjob("q", timeout=60)
        await client.ackjob(ID)

    recorder = Recorder(tmp_path / "h.jsonl")
    answers: dict[bytes, Answer] = {b"HELLO": HELLO, b"GETJOB": [], b"ACKJOB": [1]}
    with fake_node(answers) as node:
        talk(kind, url(node), conversation, recorder=recorder)

    get, ack = sorted(calls(recorder.path), key=lambda call: call.begin)
    assert not get.is_ok
    assert ack.reply == 1
