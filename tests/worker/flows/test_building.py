"""What a producer may say of a flow, and what it adds: one job."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App, Flow, NotEncodableError, TooLargeError
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.test_enqueue import added, node_that_adds


def app_of(node: FakeNode | None = None, **options: Any) -> App[None]:
    app = App[None](**options) if node is None else App[None](url(node), **options)

    @app.task(name="t", queue="q")
    async def t(n: int, text: str = "") -> int:
        return n + len(text)

    @app.task(name="u", queue="other", result_ttl=60)
    async def u(n: int) -> int:
        return n

    return app


async def test_a_flow_is_one_job_with_all_members() -> None:
    with node_that_adds() as node:
        app = app_of(node, replicate=2)
        app.on_enqueue(lambda adding: adding.headers.update(trace=adding.task))
        t, u = app.tasks["t"], app.tasks["u"]
        flow = app.flow(deadline=600)
        one = flow.add(t.using(headers={"own": 1}, priority=3).call(1))
        other = flow.add(u.call(2) | t.partial())
        flow.add(t.call(3), after=[one, other, one], parents=True)
        async with app:
            found = await flow.enqueue()

        [(queue, body, options)] = added(node)
        assert (queue, body["task"], options["TTL"]) == ("q", "disque-trio.flow", f"{600 + 86_400}")
        assert (options["REPLICATE"], options["KEEP"], options["RETRY"]) == ("2", "3600", "20")
        assert body["key"] == body["kwargs"]["flow"]
        first, second, third = body["kwargs"]["members"]
        assert first["headers"] == {"own": 1, "trace": "t"}
        assert first["steps"][0] == {
            "task": "t", "key": first["steps"][0]["key"], "args": [1],
            "options": {"queue": "q", "priority": 3, "replicate": 2},
        }  # fmt: skip
        assert [each["task"] for each in second["steps"]] == ["u", "t"]
        assert second["headers"] == {"trace": "u"}
        assert (third["after"], third["has_parents"]) == ([0, 1], True)
        assert found.members[2].after == (0, 1)


def test_a_member_keeps_the_result_as_its_task_says() -> None:
    with node_that_adds() as node:
        app = app_of(node)
        flow = app.flow(queue="flows")
        flow.add(app.tasks["u"].call(2))
        flow.blocking.enqueue()
        app.blocking.client.close()

        [(queue, body, _)] = added(node)
        assert queue == "flows"
        assert body["kwargs"]["members"][0]["headers"] == {"result_ttl": 60}


def of_another(app: App[None], flow: Flow) -> object:
    return flow.add(app.tasks["t"].call(1), after=[app.flow().add(app.tasks["t"].call(2))])


def too_many(app: App[None], flow: Flow) -> None:
    for n in range(1001):
        flow.add(app.tasks["t"].call(n))


def too_many_parents(app: App[None], flow: Flow) -> None:
    members = [flow.add(app.tasks["t"].call(n)) for n in range(101)]
    flow.add(app.tasks["t"].call(0), after=members)
    flow.add(app.tasks["t"].call(0), after=members, parents=True)


@pytest.mark.parametrize(
    ("add", "why"),
    [
        (of_another, "t: after has FlowMember.*, which is not a member of this flow"),
        (lambda app, flow: flow.add(app.tasks["t"].call(1), after=[0]), "after has 0, which is no"),
        (too_many, "a flow has at most 1000 members"),
        (too_many_parents, "parents=True with 101 members in after.*room for 100"),
        (lambda app, flow: flow.add(app.tasks["t"].partial()), "`partial` is for later steps"),
        (lambda app, flow: flow.add(app.tasks["t"]), "is not a call: write task.call"),
        (
            lambda app, flow: flow.add(app.tasks["t"].call(1), flow.add(app.tasks["t"].call(1))),
            r"t: after=FlowMember\(place=0, task='t'\) must be a list of members",
        ),
        (lambda app, _: app.flow(deadline=0), "deadline=0 must be a whole number"),
        (lambda app, _: app.flow(queue=""), "queue is empty"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_said(
    add: Callable[[App[None], Flow], object], why: str
) -> None:
    app = app_of()
    with pytest.raises(ValueError, match=why):
        add(app, app.flow())


@pytest.mark.parametrize(
    ("add", "error", "why"),
    [
        (lambda app, flow: flow.add(app.tasks["t"].call("x")), NotEncodableError, "t: argument n"),
        (
            lambda app, flow: flow.add(app.tasks["t"].call(1, 2_000_000 * "x")),
            TooLargeError,
            "body has",
        ),
        (
            lambda app, flow: flow.add(app.tasks["t"].using(headers={"a": 8100 * "x"}).call(1)),
            TooLargeError,
            "headers have",
        ),
        (
            lambda app, flow: flow.add(app.tasks["t"].using(unique="k").call(1)),
            ValueError,
            "a member of a flow, has neither at nor unique",
        ),
        (
            lambda app, flow: flow.add(app.tasks["t"].using(at=datetime.now(UTC)).call(1)),
            ValueError,
            "a member of a flow, has neither at nor unique",
        ),
    ],
)
async def test_nothing_is_added_of_a_flow_that_cannot_be(
    add: Callable[[App[None], Flow], object], error: type[Exception], why: str
) -> None:
    with node_that_adds() as node:
        app = app_of(node)
        flow = app.flow()
        flow.add(app.tasks["t"].call(1))
        add(app, flow)
        async with app:
            with pytest.raises(error, match=why):
                await flow.enqueue()
        assert added(node) == []


def test_a_flow_without_members_is_refused(disque_inline: Inline) -> None:
    with pytest.raises(ValueError, match="the flow is empty"):
        app_of().flow().blocking.enqueue()
    assert disque_inline.jobs() == []


def test_a_flow_can_be_enqueued_twice(disque_inline: Inline) -> None:
    app = app_of()
    flow = app.flow()
    flow.add(app.tasks["t"].call(1))
    assert flow.blocking.enqueue().id != flow.blocking.enqueue().id
