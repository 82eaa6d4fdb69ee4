"""Chains: what the first job carries, and what a worker adds before it acknowledges a step."""

import json
from typing import Any

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.worker import (
    App,
    Dead,
    Enqueued,
    Fixed,
    NotEncodableError,
    NotEnqueuedError,
    continuations,
)
from disque_trio.worker.codec import Form
from disque_trio.worker.engine import records
from tests.client.fakenode import FakeNode, fake_node
from tests.client.running import url
from tests.worker.runs import Driver, body, outcome
from tests.worker.test_enqueue import ADDED, HELLO, ID, added, node_that_adds


def tasks(node: FakeNode, form: Form = "json") -> tuple[App[None], Any, Any, Any]:
    app = App(url(node), form=form)

    @app.task(name="fetch", queue="web", retry=Fixed([10]))
    async def fetch(url: str) -> bytes:
        if not url:
            raise Dead("no address")
        return url.encode()

    @app.task(name="parse", queue="cpu", lease=60)
    async def parse(page: bytes, depth: int = 1) -> int:
        return len(page) * depth

    @app.task(name="store", queue="db")
    async def store(db: str) -> None: ...

    return app, fetch, parse, store


def add(app: App[None], call: Any) -> Enqueued[Any]:
    (found,) = app.blocking.enqueue_many([call])
    app.blocking.client.close()
    if isinstance(found, NotEnqueuedError) and found.__cause__ is not None:
        raise found.__cause__
    if isinstance(found, Exception):
        raise found
    return found


def test_the_first_job_carries_the_others() -> None:
    with node_that_adds() as node:
        app, fetch, parse, store = tasks(node)

        job = add(app, fetch.call("a") | parse.using(delay=5).partial(depth=2) | store.call("b"))

        [(queue, what, _)] = added(node)
        assert (queue, what["task"], what["args"], what["key"]) == ("web", "fetch", ["a"], job.key)
        second, third = what["headers"]["then"]
        assert {name: second[name] for name in second.keys() - {"key"}} == {
            "task": "parse",
            "args": [2],
            "options": {"queue": "cpu", "lease": 60, "delay": 5},
            "is_open": True,
        }
        assert {name: third[name] for name in third.keys() - {"key"}} == {
            "task": "store",
            "args": ["b"],
            "options": {"queue": "db"},
        }
        assert len({what["key"], second["key"], third["key"]}) == 3


STEPS: list[dict[str, Any]] = [
    {"task": "parse", "key": "k2", "args": [2], "is_open": True}
    | {"options": {"queue": "cpu", "lease": 60}},
    {"task": "elsewhere", "key": "k3", "args": ["b"], "options": {"queue": "db"}},
]


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_a_step_that_is_done_adds_the_next_one_with_its_result(backend: str) -> None:
    with node_that_adds() as node:
        app, *_ = tasks(node)
        headers = {"then": STEPS, "traceparent": "00-1", "tries": 3, "reply_key": "k3"}

        found = outcome(app, body("fetch", "a", key="k1", headers=headers), backend)

        assert found == records.Done()
        [(queue, what, options)] = added(node)
        assert queue == "cpu"
        assert what == {
            "task": "parse",
            "args": ["YQ==", 2],
            "key": "k2",
            "headers": {"traceparent": "00-1", "lease": 60, "reply_key": "k3", "then": STEPS[1:]},
        }
        assert (options["UNIQUE"], options["KEEP"], options["RETRY"]) == ("parse:k2", "3600", "60")


def test_nodes_keep_which_step_has_the_result_for_as_long_as_its_key() -> None:
    with node_that_adds() as node:
        app, *_ = tasks(node)
        headers = {"then": STEPS, "result_ttl": 60, "reply_codecs": ["mark"]}

        found = outcome(app, body("fetch", "a", key="k1", headers=headers))

        assert isinstance(found, records.Done)
        told = json.loads(found.result or b"")
        assert told == {"key": "k1", "task": "fetch", "next": ID}
        assert found.keep_s == 3600
        [(_, following, _)] = added(node)
        assert following["headers"]["result_ttl"] == 60
        assert following["headers"]["reply_codecs"] == ["mark"], "or it would be plain text"


def test_the_last_step_adds_nothing_but_its_result() -> None:
    with node_that_adds() as node:
        app, *_ = tasks(node)
        headers = {"reply_to": "disque-trio.reply.me", "reply_key": "k3"}

        outcome(app, body("parse", "YQ==", 2, key="k2", headers=headers))

        assert [what for _, what, _ in added(node)] == [{"key": "k3", "value": 2}]


def test_a_step_that_fails_ends_the_chain_and_tells_who_waits() -> None:
    with node_that_adds() as node:
        app, *_ = tasks(node)
        headers = {"then": STEPS, "reply_to": "disque-trio.reply.me", "reply_key": "k3"}

        found = outcome(app, body("fetch", "", key="k1", headers=headers))

        assert found == records.Dead(b"no address")
        assert [what["key"] for _, what, _ in added(node)] == ["k3"]


def test_a_next_step_that_no_node_takes_is_tried_again_without_the_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = Driver()
    with node_that_adds([Failure(b"NOREPL few nodes")], [Failure(b"PAUSED q")], ADDED) as node:
        app, *_ = tasks(node)

        found = outcome(app, body("fetch", "a", key="k1", headers={"then": STEPS}), driver=driver)

        assert [what["key"] for _, what, _ in added(node)] == ["k2"] * 3
    assert found == records.Done()
    assert driver.limits == [continuations.PATIENCE_S] * 2, (
        "in place of what is left for the handler"
    )
    assert "cannot be added" in caplog.text
    assert "retrying for up to 50 s: ADDJOB: NOREPL few nodes" in caplog.text


@pytest.mark.parametrize(
    ("patience", "is_stopping"), [(0.0, False), (continuations.PATIENCE_S, True)]
)
def test_the_attempt_fails_after_a_minute_or_when_the_worker_stops(
    patience: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_stopping: bool,
) -> None:
    monkeypatch.setattr(continuations, "PATIENCE_S", patience)
    driver = Driver(is_stopping=is_stopping)
    with node_that_adds([Failure(b"NOREPL too few nodes")]) as node:
        app, *_ = tasks(node)

        found = outcome(app, body("fetch", "a", key="k1", headers={"then": STEPS}), driver=driver)

        assert len(added(node)) == 1
    assert found == records.Retry(10_000_000)
    assert "the handler has returned, but its continuation cannot be added" in caplog.text


@pytest.mark.parametrize("then", [7, [7], [{"task": "parse"}], [STEPS[1] | {"options": {"x": 1}}]])
def test_steps_that_nothing_can_read_fail_the_attempt(then: object) -> None:
    with node_that_adds() as node:
        app, *_ = tasks(node)

        found = outcome(app, body("fetch", "a", key="k1", headers={"then": then}))

        assert (found, added(node)) == (records.Retry(10_000_000), [])


def test_a_node_of_the_original_is_sent_no_key() -> None:
    with fake_node({b"HELLO": HELLO, b"ADDJOB": ADDED}) as node:
        app, *_ = tasks(node)

        outcome(app, body("fetch", "a", key="k1", headers={"then": STEPS}))

        assert [set(options) for _, _, options in added(node)] == [{"RETRY", "TTL"}]


def test_a_body_of_msgpack_has_its_chain_in_msgpack() -> None:
    with node_that_adds() as node:
        app, fetch, parse, _ = tasks(node, "msgpack")
        add(app, fetch.call("a") | parse.partial())
        [first] = [request[2] for request in node.requests if request[0] == b"ADDJOB"]

        outcome(app, first)

        second = [request[2] for request in node.requests if request[0] == b"ADDJOB"][1]
        assert second[0] >> 4 == 8
        assert outcome(app, second) == records.Done()


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda s: s[1].partial(), ValueError, "is for later steps"),
        (lambda s: s[0].call("a") | s[2].using(unique=True).call("b"), ValueError, "neither at"),
        (
            lambda s: s[0].call("a") | s[2].using(headers={"own": 2}).call("b"),
            ValueError,
            "has the headers of the first step",
        ),
        (lambda s: s[0].call("a") | s[2].call(7), NotEncodableError, "argument db"),
        (lambda s: s[0].call("a") | s[2].partial("b"), NotEncodableError, "too many"),
    ],
)
def test_a_wrong_chain_is_refused(wrong: Any, error: type[Exception], text: str) -> None:
    with node_that_adds() as node:
        app, *steps = tasks(node)

        with pytest.raises(error, match=text):
            add(app, wrong(steps))
