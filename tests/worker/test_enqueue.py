"""Jobs of tasks into queues, on Trio, on asyncio and blocking, against nodes that do what a test
says."""

import json
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from disque_trio.client import (
    DisqueError,
    NoNodeError,
)
from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.worker import (
    Adding,
    App,
    Call,
    Enqueued,
    EnqueueUnknownError,
    NotEncodableError,
    NotOpenError,
    TooLargeError,
)
from disque_trio.worker.codec import Form
from tests.client.fakenode import Answer, FakeNode, fake_node
from tests.client.running import KINDS, url

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
HELLO: list[Reply] = [[1, b"a" * 40]]
ADDED: Answer = [Status(ID.encode())]
Talk = Callable[[App[None], Any], Awaitable[None]]

pytestmark = pytest.mark.parametrize("kind", KINDS)


class Adder:
    """Adds jobs in the way of a kind."""

    def __init__(self, app: App[None], kind: str) -> None:
        self.app, self.kind = app, kind

    async def add(self, task: Any, *args: Any, **kwargs: Any) -> Enqueued[Any]:
        if self.kind == "blocking":
            found: Enqueued[Any] = task.blocking.enqueue(*args, **kwargs)
        else:
            found = await task.enqueue(*args, **kwargs)
        return found

    async def add_many(self, calls: Iterable[Call[Any]]) -> list[Enqueued[Any] | DisqueError]:
        if self.kind == "blocking":
            return self.app.blocking.enqueue_many(calls)
        return await self.app.enqueue_many(calls)


def talk(kind: str, app: App[None], conversation: Callable[[Adder], Awaitable[None]]) -> None:
    async def held() -> None:
        with anyio.fail_after(60):
            async with app:
                await conversation(Adder(app, kind))
        if kind == "blocking":
            app.blocking.client.close()

    anyio.run(held, backend="asyncio" if kind == "asyncio" else "trio")


def node_that_adds(*answers: Answer) -> Any:
    """It answers ADDJOBs so, one after the other; the last for ever."""
    left = list(answers or [ADDED])
    return fake_node(
        {b"HELLO": HELLO, b"ADDJOB": lambda: left.pop(0) if len(left) > 1 else left[0]},
        features=(b"priority", b"unique"),
    )


def app_with(node: FakeNode, form: Form = "json", **options: Any) -> tuple[App[None], Any]:
    app = App(url(node), form=form, max_body=2000)

    def send(to: str, n: int = 1) -> None: ...

    return app, app.task(**{"name": "mail.send", "queue": "mail", **options})(send)


def added(node: FakeNode) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Queue, body and options of each ADDJOB."""
    found = []
    for request in node.requests:
        if request[0] == b"ADDJOB":
            words = [word.decode() for word in request[4:]]
            options = dict(zip(words[::2], words[1::2], strict=True))
            found.append((request[1].decode(), json.loads(request[2]), options))
    return found


def test_a_call_becomes_a_job(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        job = await adder.add(task, "ada", n=3)

        assert (job.id, job.task, job.queue) == (ID, "mail.send", "mail")
        assert added(node) == [
            (
                "mail",
                {"task": "mail.send", "args": ["ada", 3], "key": job.key},
                {"RETRY": "300", "TTL": "604800"},
            )
        ]

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_options_of_the_task_and_of_the_job(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        job = await adder.add(
            task.using(delay=600, priority=5, ttl=7200, key="mine", queue="slow").using(
                replicate=2, maxlen=9, headers={"traceparent": "00-1"}
            ),
            "ada",
        )

        [(queue, body, options)] = added(node)
        assert (queue, job.queue, job.key, body["key"]) == ("slow", "slow", "mine", "mine")
        assert body["headers"] == {
            "priority": 5,
            "replicate": 2,
            "traceparent": "00-1",
            "ttl": 7200,
        }
        assert options == {
            "REPLICATE": "2", "DELAY": "600", "RETRY": "60", "TTL": "7200", "MAXLEN": "9",
            "PRIORITY": "5",
        }  # fmt: skip

    with node_that_adds() as node:
        app, task = app_with(node, lease=60, priority=1)
        talk(kind, app, conversation)


def test_a_time_is_a_delay(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        await adder.add(task.using(at=datetime.now(UTC) + timedelta(hours=1)), "ada")
        await adder.add(task.using(at=datetime.now(UTC) - timedelta(hours=1)), "ada")

        soon, now = (options for _, _, options in added(node))
        assert 3500 < int(soon["DELAY"]) <= 3601
        assert "DELAY" not in now

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_a_job_that_is_delivered_once_at_most_has_one_copy(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        await adder.add(task, "ada")

        assert added(node)[0][2] == {"REPLICATE": "1", "RETRY": "0", "TTL": "604800"}

    with node_that_adds() as node:
        app, task = app_with(node, lease=0)
        talk(kind, app, conversation)


def test_a_unique_job_has_the_key_of_its_task(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        await adder.add(task.using(unique="today", unique_for=60, on_conflict="again"), "ada")
        for args in [("ada",), ("ada",), ("bob",)]:
            await adder.add(task.using(unique=True), *args)

        first, *others = added(node)
        assert (
            first[2].items()
            >= {"UNIQUE": "mail.send:today", "KEEP": "60", "IFEXISTS": "again"}.items()
        )
        assert first[1]["headers"] == {"unique": "mail.send:today", "keep": 60}
        one, two, three = (options["UNIQUE"] for _, _, options in others)
        assert one == two != three

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_equal_arguments_have_one_unique_key_in_whatever_order(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        unique = anything.using(unique=True)
        await adder.add(unique, a={1: "x", 2: {"p", "q", "r"}}, b=None)
        await adder.add(unique, b=None, a={2: {"r", "q", "p"}, 1: "x"})
        await adder.add(unique, b=None, a={2: {"r", "q"}, 1: "x"})

        one, two, three = (options["UNIQUE"] for _, _, options in added(node))
        assert one == two != three

    with node_that_adds() as node:
        app, _ = app_with(node)

        @app.task(name="anything")
        def anything(**values: dict[int, str | set[str]] | None) -> None: ...

        talk(kind, app, conversation)


def test_hooks_see_each_job_and_add_headers(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        seen: list[tuple[str, str, str]] = []

        @adder.app.on_enqueue
        def trace(adding: Adding) -> None:
            seen.append((adding.task, adding.queue, adding.key))
            adding.headers["traceparent"] = "00-1"

        job = await adder.add(task.using(headers={"a": 1}), "ada")

        assert seen == [("mail.send", "mail", job.key)]
        assert added(node)[0][1]["headers"] == {"a": 1, "traceparent": "00-1"}

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_what_does_not_fit_is_not_sent(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        with pytest.raises(NotEncodableError, match=r"argument n: Expected `int`, got `str`"):
            await adder.add(task, "ada", "x")
        with pytest.raises(TooLargeError, match="the limit is 2,000"):
            await adder.add(task, "x" * 2000)
        assert added(node) == []

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_without_a_node_nothing_was_added(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        node.stop()
        with pytest.raises(NoNodeError):
            await adder.add(task, "ada")
        assert [type(each) for each in await adder.add_many([task.call("ada")])] == [NoNodeError]
        node.start()

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


# Many jobs.


def test_many_jobs_are_answered_in_their_order(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        calls = [task.call(f"to {n}") if n != 130 else task.call(n) for n in range(300)]

        results = await adder.add_many(each for each in calls)

        assert len(results) == 300
        assert isinstance(results[130], NotEncodableError)
        keys = [each.key for each in results if isinstance(each, Enqueued)]
        assert len(set(keys)) == 299
        assert keys == [body["key"] for _, body, _ in added(node)]

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_of_many_jobs_those_without_an_answer_are_added_again(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        calls = [task.call("a"), task.using(repeat=False).call("b"), task.call("c")]

        one, two, three = await adder.add_many(calls)

        assert isinstance(one, Enqueued)
        assert isinstance(two, EnqueueUnknownError)
        assert isinstance(three, Enqueued)
        again = [(body["args"][0], body["key"]) for _, body, _ in added(node)][-2:]
        assert again == [("a", one.key), ("c", three.key)]

    with node_that_adds(None, ADDED) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_of_many_jobs_a_refused_one_has_its_error(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        results = await adder.add_many([task.call("a"), task.call("b"), task.call("c")])

        assert [isinstance(each, Enqueued) for each in results] == [True, False, True]
        assert str(results[1]) == "ADDJOB: MAXLEN too many"

    with node_that_adds(ADDED, [Failure(b"MAXLEN too many")], ADDED) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


# Clients.


def test_bodies_are_in_msgpack_if_the_app_says_so(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        await adder.add(task, "ada")

        [request] = [each for each in node.requests if each[0] == b"ADDJOB"]
        assert request[2].startswith(b"\x83\xa4task\xa9mail.send\xa4args\x91\xa3ada\xa3key")

    with node_that_adds() as node:
        app, task = app_with(node, form="msgpack")
        talk(kind, app, conversation)


def test_an_app_that_is_not_open_says_what_to_do(kind: str) -> None:
    app = App()

    @app.task(name="t")
    async def t() -> None: ...

    async def closed() -> None:
        async with app, app:
            pass
        with pytest.raises(NotOpenError, match="`async with app:`"):
            await t.enqueue()

    anyio.run(closed, backend="asyncio" if kind == "asyncio" else "trio")


def test_the_headers_have_what_gave_way_to_an_option_of_the_job(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        await adder.add(task.using(ttl=60), "ada")
        await adder.add(task.using(delay=10), "ada")
        await adder.add(task.using(delay=700_000), "ada")

        [(_, short, options), (_, plain, _), (_, late, _)] = added(node)
        assert (options["RETRY"], options["TTL"]) == ("30", "60")
        assert short["headers"] == {"lease": 30, "ttl": 60}
        assert plain.get("headers", {}) == {}
        assert late["headers"] == {"ttl": 1_400_000}

    with node_that_adds() as node:
        app, task = app_with(node)
        talk(kind, app, conversation)
