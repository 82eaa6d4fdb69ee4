"""Nodes that accept connections and requests, and answer none."""

import time
from typing import Any, Final

import anyio
import pytest

from disque_trio.client import commands
from disque_trio.client.command import LongWait
from disque_trio.client.errors import ConnectionFailedError, DisqueError, LostError
from disque_trio.client.nodes import NoNodeError
from disque_trio.statemachine.base import Status
from disque_trio.worker import App, NoResultError
from tests.client.fakenode import Answers, FakeNode, fake_node
from tests.client.running import KINDS, talk, url

ID: Final = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
SILENT: Final = b""
PATIENCE_S: Final = 0.3
REST_S: Final = 0.2


def hung(id: bytes = b"a") -> dict[bytes, Any]:
    """A node that has answered the greeting, and nothing after that but PING."""
    names = (b"QLEN", b"ADDJOB", b"GETJOB", b"WAITJOB")
    return {b"HELLO": [[1, 40 * id]], **dict.fromkeys(names, SILENT)}


WELL: Final[Answers] = {
    b"HELLO": [[1, 40 * b"b"]],
    b"QLEN": [7],
    b"ADDJOB": [Status(ID.encode())],
    b"GETJOB": [[[b"q", ID.encode(), b"body", b"nacks", 0, b"additional-deliveries", 0]]],
    b"WAITJOB": [None],
}


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter than the patience, as the real ones are."""
    monkeypatch.setattr("disque_trio.client.nodes.REST_S", REST_S)
    for module in ("base", "client", "blocking"):
        monkeypatch.setattr(f"disque_trio.client.{module}.SILENT_S", 0.1)


def names(node: FakeNode) -> list[bytes]:
    """What the node was asked, besides the greeting."""
    return [each[0] for each in node.requests if each[0] not in (b"HELLO", b"INFO")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_node_costs_one_call_its_patience(kind: str) -> None:
    with fake_node(hung()) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            for _ in range(3):
                assert await client.qlen("q") == 7
            assert names(silent) == [b"QLEN"]

        talk(kind, url(silent, well), conversation, patience_s=PATIENCE_S)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_not_asked_for_its_part_until_its_rest_is_over(kind: str) -> None:
    with fake_node(hung()) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            node, _ = client.nodes.order(0.0)
            with pytest.raises(LostError):
                await client.ask(node, [commands.qlen("q")])
            with pytest.raises(ConnectionFailedError, match="does not answer") as raised:
                await client.ask(node, [commands.qlen("q")])
            assert not isinstance(raised.value, LostError), "nothing was sent"
            assert names(silent) == [b"QLEN"]

        talk(kind, url(silent, well), conversation, patience_s=PATIENCE_S)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_after_its_rest_it_must_answer_ping_before_it_gets_a_request(kind: str) -> None:
    answers = {**hung(), b"PING": SILENT}
    with fake_node(answers) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            assert await client.qlen("q") == 7
            await anyio.sleep(2 * REST_S)

            assert await client.addjob("q", "body") == ID, "it was not sent to the silent one"
            assert names(silent) == [b"QLEN", b"PING"]

            answers.update({b"PING": [Status(b"PONG")], b"QLEN": [8]})
            await anyio.sleep(4 * REST_S)
            silent.hang_up()  # replies are in order, and that to QLEN never comes
            await anyio.sleep(0.05)
            assert await client.qlen("q") == 8

        talk(kind, url(silent, well), conversation, patience_s=PATIENCE_S)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_connection_gets_no_more_time_for_that(kind: str) -> None:
    answers = hung()
    with fake_node(answers) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            assert await client.qlen("q") == 7
            answers.update({b"HELLO": SILENT})
            silent.hang_up()
            await anyio.sleep(2 * REST_S)
            began = time.monotonic()
            assert await client.qlen("q") == 7
            assert time.monotonic() - began < 1

        talk(kind, url(silent, well), conversation, patience_s=1.5, connect_timeout_s=60)


@pytest.mark.parametrize("kind", KINDS)
def test_the_only_node_is_asked_with_the_whole_patience(kind: str) -> None:
    with fake_node(hung()) as silent:

        async def conversation(client: Any) -> None:
            for _ in range(2):
                with pytest.raises(NoNodeError):
                    await client.qlen("q")
            assert names(silent) == [b"QLEN", b"QLEN"]

        talk(kind, url(silent), conversation, patience_s=PATIENCE_S)


@pytest.mark.parametrize("kind", ["trio", "asyncio"])
def test_a_caller_that_gives_up_has_found_it_silent(kind: str) -> None:
    with fake_node(hung()) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            await client.ask(client.nodes.order(0.0)[0], [commands.ping()])
            with anyio.move_on_after(0.3):
                await client.qlen("q")
            assert await client.qlen("q") == 7
            assert names(silent) == [b"PING", b"QLEN"]

        talk(kind, url(silent, well), conversation, patience_s=60)


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_does_not_greet_is_given_up_after_the_time_of_a_connection(kind: str) -> None:
    with fake_node({b"HELLO": SILENT}) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            assert await client.addjob("q", "body") == ID

        talk(kind, url(silent, well), conversation, connect_timeout_s=0.2, patience_s=600)


@pytest.mark.parametrize("answers", [hung(), {b"HELLO": SILENT}], ids=["hung", "new"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_timeout_of_a_result_bounds_the_wait(
    kind: str, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.worker.kept._SPARE_S", 0.2)
    monkeypatch.setattr("disque_trio.worker.kept.SILENT_S", 0.1)
    with fake_node(answers) as silent, fake_node(WELL, features=[b"results"]) as well:
        app: App[None] = App(url(silent, well))

        async def asynchronous() -> None:
            async with app:
                began = anyio.current_time()
                with pytest.raises(NoResultError):
                    await app.result(ID, timeout=0.3)
                assert anyio.current_time() - began < 1

        if kind != "blocking":
            anyio.run(asynchronous, backend=kind)
            return
        began = time.monotonic()
        with app.blocking.client, pytest.raises(NoResultError):
            app.blocking.result(ID, timeout=0.3)
        assert time.monotonic() - began < 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("timeout", [None, 100])
def test_a_wait_for_jobs_without_a_limit_leaves_a_silent_node(
    kind: str, timeout: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("command", "commands"):
        monkeypatch.setattr(f"disque_trio.client.{module}.PART_S", 0.1)
    with fake_node(hung()) as silent, fake_node(WELL) as well:

        async def conversation(client: Any) -> None:
            [job] = await client.getjob("q", timeout=timeout)
            assert job.id == ID
            assert names(silent) == [b"GETJOB"]

        talk(kind, url(silent, well), conversation, patience_s=PATIENCE_S)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_wait_at_a_node_goes_on_part_by_part(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("command", "commands"):
        monkeypatch.setattr(f"disque_trio.client.{module}.PART_S", 0.1)
    answers = iter([[None], [None], WELL[b"GETJOB"]])

    def in_time() -> Any:
        time.sleep(0.1)
        return next(answers)

    with fake_node({**WELL, b"GETJOB": in_time}) as well:

        async def conversation(client: Any) -> None:
            [job] = await client.getjob("q")
            assert job.id == ID

        talk(kind, url(well), conversation)
        waits = [each[each.index(b"TIMEOUT") + 1] for each in well.requests if b"TIMEOUT" in each]
        assert waits == [b"100", b"100", b"100"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["waitjob", "waitresult", "getjob", "addjob"])
def test_a_node_that_hangs_takes_little_more_than_the_timeout(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.client.base.LATE_S", 0.2)
    words = ("q", "body") if name == "addjob" else (ID,)
    more = {"unique": "k"} if name == "addjob" else {}
    keeps = [b"results"]
    with fake_node(hung(), features=keeps) as silent, fake_node(WELL, features=keeps) as well:

        async def conversation(client: Any) -> None:
            began = time.monotonic()
            await getattr(client, name)(*words, timeout=0.3, **more)
            assert time.monotonic() - began < 2
            assert len(names(silent)) == len(names(well)) == 1

        talk(kind, url(silent, well), conversation, patience_s=60)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["waitjob", "waitresult", "getjob", "addjob"])
def test_the_only_node_has_more_time_and_is_named_in_the_error(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.client.base.LATE_ALONE_S", 0.3)
    words = ("q", "body") if name == "addjob" else (ID,)
    with fake_node(hung(), features=[b"results"]) as silent:

        async def conversation(client: Any) -> None:
            began = time.monotonic()
            with pytest.raises(DisqueError, match=f":{silent.port} .no answer in time"):
                await getattr(client, name)(*words, timeout=0.3)
            assert time.monotonic() - began < 2

        talk(kind, url(silent), conversation, patience_s=60)


def test_the_next_node_is_asked_for_what_is_left_of_a_wait() -> None:
    for whole in (commands.waitjob(ID, timeout=8), commands.getjob("q", timeout=8)):
        assert [whole.after(waited).wait_s for waited in (0, 3, 10)] == [8, 5, 0.1]
    forever = commands.waitjob(ID)
    assert forever.after(3) is forever
    for at_once in (commands.getjob("q", timeout=0), commands.waitjob("D-1", timeout=0)):
        assert at_once.after(3) is at_once


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_that_an_operator_ends_has_ended(kind: str) -> None:
    with fake_node({**WELL, b"GETJOB": [None]}) as well:

        async def conversation(client: Any) -> None:
            assert await client.getjob("q") == []
            assert names(well) == [b"GETJOB"]

        talk(kind, url(well), conversation)


def test_the_parts_of_a_wait_are_as_long_as_the_wait() -> None:
    getjob = commands.getjob("q", timeout=75)
    assert isinstance(getjob, LongWait)
    assert [getjob.part(waited).wait_s for waited in (0, 30, 60)] == [30, 30, 15]
    for whole in (
        commands.getjob("q", timeout=20),
        commands.addjob("q", "body", timeout=75),
        commands.waitjob(ID, timeout=75),
    ):
        assert not isinstance(whole, LongWait)
