"""Results: what a worker adds before it acknowledges, and how tasks of a client wait for it."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from disque_trio.client.command import Command
from disque_trio.client.nodes import Nodes, NoNodeError
from disque_trio.client.records import Job
from disque_trio.client.refusals import UnknownJobError
from disque_trio.statemachine.base import Failure
from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import (
    App,
    Cancel,
    Dead,
    Fixed,
    NotOpenError,
    UnfitTypeError,
    Zlib,
    continuations,
)
from disque_trio.worker.codec import Part
from disque_trio.worker.codecs import encoded
from disque_trio.worker.ends import Found, Watched
from disque_trio.worker.engine import records
from disque_trio.worker.exceptions import JobFailedError, NoResultError
from disque_trio.worker.results import Results
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.runs import body, outcome
from tests.worker.test_enqueue import added, node_that_adds

HEADERS = {"reply_to": "disque-trio.reply.me", "result_ttl": 30}

# The worker.


def app_that(node: FakeNode, does: Callable[[], object]) -> App[None]:
    app = App(url(node), max_body=2000)

    @app.task(name="t", retry=Fixed([10]))
    async def t() -> object:
        return does()

    return app


def ends(does: Callable[[], object], **more: Any) -> tuple[records.Outcome, list[Any]]:
    """The outcome of a run, and what was added before."""
    with node_that_adds() as node:
        what = body("t", key="k", headers={**HEADERS, **more.pop("headers", {})})
        return outcome(app_that(node, does), what, **more), added(node)


def failing(error: BaseException) -> Callable[[], object]:
    def fails() -> object:
        raise error

    return fails


def test_a_result_is_added_to_the_queue_of_the_client() -> None:
    found, results = ends(lambda: {"pages": 3})

    assert found == records.Done()
    assert results == [
        (
            "disque-trio.reply.me",
            {"key": "k", "value": {"pages": 3}},
            {"RETRY": "29", "TTL": "30"},
        )
    ]


@pytest.mark.parametrize("error", [Dead("no such page"), Cancel("no such page")])
def test_a_failure_for_good_is_told_with_its_traceback(error: Exception) -> None:
    _, [(_, told, _)] = ends(failing(error))

    assert told["key"] == "k"
    assert (told["error"]["type"], told["error"]["text"]) == (type(error).__name__, "no such page")
    assert "in fails" in told["error"]["traceback"]


def test_the_last_attempt_is_told_and_no_other() -> None:
    assert ends(failing(ValueError("x")))[1] == []
    assert ends(failing(ValueError("x")), nacks=1)[1][0][1]["error"]["type"] == "ValueError"


@pytest.mark.parametrize(
    ("value", "kind"), [("x" * 3000, "TooLargeError"), (object(), "TypeError")]
)
def test_a_result_that_no_body_holds_fails_the_result_and_not_the_job(
    value: object, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    found, [(_, told, _)] = ends(lambda: value)

    assert found == records.Done()
    assert told["error"]["type"] == kind
    [warning] = [each for each in caplog.messages if "the waiting client gets an error" in each]
    assert ("cannot be encoded" in warning) == (kind == "TypeError")


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (b"\xff", "bytes arrives as str"),
        ({1: "a"}, "a key of type int arrives as another"),
        ({"a": [1, None]}, None),
    ],
)
async def test_the_first_result_that_arrives_changed_is_logged(
    value: object, change: str | None, caplog: pytest.LogCaptureFixture, disque_inline: Inline
) -> None:
    app = App(form="msgpack")

    @app.task(name="returns", queue="q", result_ttl=60)
    def returns() -> Any:
        return value

    @app.task(name="annotated", queue="q", result_ttl=60)
    def annotated() -> bytes | dict[int, str]:
        return value  # type: ignore[return-value]

    for task in (returns, returns, annotated):
        task.blocking.enqueue()
    await disque_inline.run_all(app)

    found = [each for each in caplog.messages if "change when they are encoded" in each]
    assert len(found) == (change is not None)
    assert all(change in each for each in found if change)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "JSON cannot encode nan: send None or text"),
        ({(1, 2): 3}, "JSON cannot have keys of type tuple"),
        (object(), "a value of type object cannot be encoded"),
    ],
)
def test_why_a_result_cannot_be_encoded_is_no_advice_about_arguments(
    value: object, why: str
) -> None:
    _, [(_, told, _)] = ends(lambda: value)

    assert told["error"]["text"] == why


def test_a_result_that_no_node_takes_fails_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuations, "PATIENCE_S", 0.0)
    with node_that_adds([Failure(b"NOREPL too few nodes")]) as node:
        found = outcome(app_that(node, lambda: 1), body("t", key="k", headers=HEADERS))

    assert found == records.Retry(10_000_000)


def test_a_failure_that_no_node_takes_changes_nothing() -> None:
    with node_that_adds([Failure(b"NOREPL too few nodes")]) as node:
        what = body("t", key="k", headers=HEADERS)
        found = outcome(app_that(node, failing(Dead("gone"))), what)

    assert found == records.Dead(b"gone")


def kept(found: records.Outcome) -> tuple[Any, int]:
    """What nodes are to keep, and for how many seconds."""
    assert isinstance(found, records.Done)
    assert found.result is not None
    return json.loads(found.result), found.keep_s


def test_nodes_keep_the_result_under_the_name_of_its_task_also_if_nobody_waits() -> None:
    told = {"key": "k", "value": {"pages": 3}, "task": "t"}
    for awaited in (HEADERS["reply_to"], None):
        found, results = ends(lambda: {"pages": 3}, headers={"reply_to": awaited})
        assert kept(found) == (told, 30)
        assert len(results) == (awaited is not None)


def test_a_job_whose_producer_wants_no_result_leaves_none() -> None:
    with node_that_adds() as node:
        app = app_that(node, lambda: 1)
        for headers in ({}, {"traceparent": "00-1"}, {"reply_to": HEADERS["reply_to"]}):
            found = outcome(app, body("t", key="k", headers=headers))
            assert isinstance(found, records.Done)
            assert found.result is None


def test_the_reason_why_a_job_was_cancelled_is_kept_as_its_result() -> None:
    told, _ = kept(ends(failing(Cancel("no such page")))[0])

    assert (told["task"], told["error"]["text"]) == ("t", "no such page")


@pytest.mark.parametrize(
    ("value", "kind"), [("x" * 3000, "TooLargeError"), (object(), "TypeError")]
)
def test_why_there_is_no_result_is_kept_in_its_place(value: object, kind: str) -> None:
    told, _ = kept(ends(lambda: value)[0])

    assert (told["task"], told["error"]["type"]) == ("t", kind)


@pytest.mark.parametrize("queue", ["mail", 7, None])
def test_only_queues_of_clients_are_written_to(queue: object) -> None:
    assert ends(lambda: 1, headers={"reply_to": queue}) == (records.Done(), [])


# The client.


class Node:
    """Delivers results, to one reader at a time."""

    def __init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[bytes](math.inf)
        self.acked: list[str] = []
        self.nodes = Nodes([])
        self.end: object = None
        self.is_down = self.is_silent = False
        self.takes_acks = True

    def tell(self, key: str, value: object = None, **more: object) -> None:
        self.send.send_nowait(json.dumps({"key": key, "value": value, **more}).encode())

    async def getjob(self, queue: str, *, count: int, timeout: float) -> list[Job]:
        assert (queue[:18], count) == ("disque-trio.reply.", 100)
        if self.is_down:
            raise NoNodeError("no node could run the command")
        assert self.receive.statistics().tasks_waiting_receive == 0
        jobs: list[Job] = []
        with trio.move_on_after(timeout):
            jobs.append(Job("D-1", queue, await self.receive.receive()))
        return jobs

    async def ackjob(self, *jobs: Job) -> int:
        if not self.takes_acks:
            raise NoNodeError("no node could run the command")
        self.acked += [job.id for job in jobs]
        return len(jobs)

    async def run(self, command: Command[Any]) -> object:
        """What nodes keep is asked for; here there are none."""
        if command.name == "GETJOB":
            queue, count = command.words[-1].decode(), int(command.words[-3])
            return await self.getjob(queue, count=count, timeout=command.wait_s)
        raise NoNodeError(f"no node could run the command: {command}")

    async def waitjob(self, job: str, *, timeout: float) -> object:
        assert (job, timeout) == ("D-1", 0)
        if self.is_silent:
            await trio.sleep_forever()
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def results(node: Node) -> Results:
    return Results(node)  # type: ignore[arg-type]


def read(part: Part) -> Any:
    return json.loads(bytes(part))


async def test_each_task_gets_the_result_of_its_job(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    results.ask(600)
    got: dict[str, object] = {}

    async def wait(key: str) -> None:
        got[key] = await results.wait(key, read, "D-1", 10)

    async with trio.open_nursery() as tasks:
        for key in ("a", "b", "c"):
            tasks.start_soon(wait, key)
        await trio.testing.wait_all_tasks_blocked()
        for key in ("c", "a", "b"):
            node.tell(key, key.upper())

    assert got == {"a": "A", "b": "B", "c": "C"}
    assert len(node.acked) == 3


async def test_when_the_task_that_reads_gives_up_another_one_reads(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    results.ask(600)
    async with trio.open_nursery() as tasks:

        async def gives_up() -> None:
            with pytest.raises(NoResultError, match="it has not ended"):
                await results.wait("a", read, "D-1", 5)
            node.tell("b", 2)

        tasks.start_soon(gives_up)
        await trio.testing.wait_all_tasks_blocked()
        assert await results.wait("b", read, "D-1", None) == 2


async def test_a_result_that_came_before_it_was_asked_for_is_kept_for_its_time(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    results.ask(60)
    node.tell("a", 1)
    node.tell("b", 2)
    assert await results.wait("b", read, "D-1", 5) == 2
    assert await results.wait("a", read, "D-1", 5) == 1

    await trio.sleep(61)
    node.tell("c", 3)
    assert await results.wait("c", read, "D-1", 5) == 3
    with pytest.raises(NoResultError):
        await results.wait("a", read, "D-1", 5)


async def test_a_failure_is_raised_with_what_the_worker_said(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    node.tell("a", error={"type": "BadPage", "text": "page 9", "traceback": "line 1\nline 2"})

    with pytest.raises(JobFailedError, match="BadPage: page 9") as raised:
        await results.wait("a", read, "D-1", 5)

    assert (raised.value.kind, raised.value.text) == ("BadPage", "page 9")
    assert raised.value.__notes__ == ["On the worker:\nline 1\nline 2"]


async def test_what_a_worker_tells_of_a_failure_commands_no_terminal(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    red = "\x1b[31mpage\r 9\nof \u202e9"
    node.tell("a", error={"type": "Bad\x07Page", "text": red, "traceback": red})

    with pytest.raises(JobFailedError) as raised:
        await results.wait("a", read, "D-1", 5)

    shown = "\\x1b[31mpage\\r 9\nof \\u202e9"
    assert str(raised.value) == f"Bad\\aPage: {shown}"
    assert (raised.value.text, raised.value.traceback) == (shown, shown)
    assert raised.value.__notes__ == [f"On the worker:\n{shown}"]


async def test_a_result_that_cannot_be_decoded_is_told_when_the_job_has_ended(
    node: Node,
    results: Results,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def look(_: object, watched: list[Watched]) -> None:
        for each in watched:
            each.end = "acked"

    async def jobs_in(*_: object) -> Found:
        return Found(count=0, up_s=1e6, refused_at=0)

    monkeypatch.setattr("disque_trio.worker.results.look", look)
    monkeypatch.setattr("disque_trio.worker.results.jobs_in", jobs_in)
    node.send.send_nowait(
        encoded([Zlib(above=0)], "", "a", b'{"key": "a", "value": "xxxxxxxx"}' * 9)
    )

    with pytest.raises(JobFailedError, match="its result cannot be read: codec zlib is unknown"):
        await results.wait("a", read, "D-1", 30)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("dead", "it is dead"),
        ("acked", "it was cancelled, or acknowledged without a result"),
        ("expired", "its ttl has passed"),
        (UnknownJobError("NOJOB", "no job", "WAITJOB"), "no node has it any more"),
        (NoNodeError("no node could run the command"), "no node could run the command"),
        (NoNodeError("no node has \x1b[31mcolours"), r"no node has \\x1b\[31mcolours"),
    ],
)
async def test_without_a_result_it_is_told_how_the_job_ended(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock, end: object, text: str
) -> None:
    node.end = end

    with pytest.raises(NoResultError, match=f"no result of job D-1: .*{text}") as raised:
        await results.wait("a", read, "D-1", 5)

    assert raised.value.end == (end if isinstance(end, str) else None)


async def test_nodes_that_do_not_answer_hold_a_timeout_up_for_two_seconds(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    node.is_silent = True
    began = trio.current_time()

    with pytest.raises(
        NoResultError, match="no node has answered for 2 s, so it may have ended or not"
    ):
        await results.wait("a", read, "D-1", 5)

    assert trio.current_time() - began == 7


async def test_nodes_that_do_not_answer_are_asked_again(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    node.is_down = True
    node.tell("a", 1)
    async with trio.open_nursery() as tasks:

        async def comes_up() -> None:
            await trio.sleep(7)
            node.is_down = False

        tasks.start_soon(comes_up)
        assert await results.wait("a", read, "D-1", 30) == 1


async def test_a_result_whose_acknowledgement_reaches_no_node_is_told_at_once_and_acked_later(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    node.takes_acks = False
    node.tell("a", 1)
    began = trio.current_time()
    assert await results.wait("a", read, "D-1", 30) == 1
    assert (trio.current_time() - began, node.acked) == (0, [])

    node.takes_acks = True
    node.tell("b", 2)
    assert await results.wait("b", read, "D-1", 30) == 2
    assert len(node.acked) == 2


async def test_whether_a_result_is_on_its_way_is_asked_again_before_the_next_look(
    node: Node,
    results: Results,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    async def look(_: object, watched: list[Watched]) -> None:
        for each in watched:
            each.end = "gone"

    async def jobs_in(*_: object) -> Found:
        asked.append(round(trio.current_time() - began, 3))
        return Found(count=asked[-1] < 0.7, up_s=1e6, refused_at=0)

    monkeypatch.setattr("disque_trio.worker.results.look", look)
    monkeypatch.setattr("disque_trio.worker.results.jobs_in", jobs_in)
    began = trio.current_time()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(results.wait, "b", read, "D-2", 10)  # it looks for both, until
        await trio.testing.wait_all_tasks_blocked()
        tasks.start_soon(told_after, 0.55, node)
        with pytest.raises(NoResultError):
            await results.wait("a", read, "D-1", 10)

    assert asked == [0.5, 0.6, 0.7, 0.8]


async def told_after(seconds: float, node: Node) -> None:
    await trio.sleep(seconds)
    node.tell("b", 1)


async def test_what_is_no_result_is_thrown_away(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    node.send.send_nowait(b"[]")
    node.tell("a", 1)
    results.ask(60)

    assert await results.wait("a", read, "D-1", 5) == 1
    assert len(node.acked) == 2


# Between them.


async def test_a_job_asks_for_a_result_by_its_headers() -> None:
    with node_that_adds() as node:
        app = app_that(node, lambda: 1)
        async with app:
            job = await app.tasks["t"].using(result_ttl=90).enqueue()
            plain = await app.tasks["t"].enqueue()
            with pytest.raises(NotOpenError, match="sends no result"):
                await plain.result()

        (_, asking, _), (_, other, _) = added(node)
        assert asking["headers"]["result_ttl"] == 90
        assert asking["headers"]["reply_to"].startswith("disque-trio.reply.")
        assert "headers" not in other
        assert job.key == asking["key"]


async def test_a_result_of_a_type_that_no_body_holds_is_refused() -> None:
    app = App()

    @app.task(name="t", result_ttl=90)
    async def t() -> App[None]:
        return app

    async with app:
        with pytest.raises(UnfitTypeError, match="t: result: a body cannot hold"):
            await t.enqueue()


def test_a_result_is_kept_for_a_second_at_least() -> None:
    with pytest.raises(ValueError, match="result_ttl=0 must be"):
        App().task(name="t", result_ttl=0)(print)
