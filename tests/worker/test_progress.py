"""Progress: what a handler tells on its way, and how the client that waits reads it."""

import json

import pytest
import trio.testing

from disque_trio.statemachine.base import Failure
from disque_trio.worker import App, Dead, NoResultError, NotOpenError, Update, current_job
from disque_trio.worker.engine.records import Done, Outcome
from disque_trio.worker.results import Results
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.runs import body, outcome
from tests.worker.test_enqueue import added, node_that_adds
from tests.worker.test_results import HEADERS, Node, read

# The worker.


def app_at(node: FakeNode, percent: float = 40, text: str = "page 4 of 10") -> App[None]:
    app = App(url(node))

    @app.task(name="t")
    async def t() -> int:
        try:
            await current_job().progress(percent, text)
        except ValueError as error:
            raise Dead(str(error)) from error
        return 7

    return app


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_progress_is_told_before_the_result(backend: str) -> None:
    with node_that_adds() as node:
        assert outcome(app_at(node), body("t", key="k", headers=HEADERS), backend) == Done()

        assert [(queue, told) for queue, told, _ in added(node)] == [
            (HEADERS["reply_to"], {"key": "k", "progress": [40.0, "page 4 of 10"]}),
            (HEADERS["reply_to"], {"key": "k", "value": 7}),
        ]


def test_a_step_of_a_chain_tells_progress_under_the_key_of_the_chain() -> None:
    with node_that_adds() as node:
        outcome(app_at(node), body("t", key="k", headers={**HEADERS, "reply_key": "last"}))

        assert added(node)[0][1]["key"] == "last"


def test_progress_of_a_job_that_nobody_waits_for_is_not_told() -> None:
    with node_that_adds() as node:
        assert outcome(app_at(node), body("t", key="k")) == Done()

        assert added(node) == []


def test_progress_that_no_node_takes_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with node_that_adds([Failure(b"NOREPL too few nodes")], [b"D-1"]) as node:
        assert outcome(app_at(node), body("t", key="k", headers=HEADERS)) == Done()

    assert "cannot report its progress" in caplog.text


def test_a_long_text_is_cut() -> None:
    with node_that_adds() as node:
        outcome(app_at(node, text="x" * 5000), body("t", key="k", headers=HEADERS))

        assert added(node)[0][1]["progress"][1] == "x" * 1000


@pytest.mark.parametrize("percent", [-1, 101, float("nan")])
def test_progress_is_from_0_to_100(percent: float) -> None:
    with node_that_adds() as node:
        found: Outcome = outcome(app_at(node, percent), body("t", headers=HEADERS))

    assert b"it must be from 0 to 100" in getattr(found, "reason", b"")


# The client.


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def results(node: Node) -> Results:
    found = Results(node)  # type: ignore[arg-type]
    found.ask(600)
    return found


def progress(node: Node, key: str, percent: float) -> None:
    node.send.send_nowait(
        json.dumps({"key": key, "progress": [percent, f"{key} {percent}"]}).encode()
    )


async def follow(results: Results, timeout: float | None, seen: list[Update]) -> None:
    async for update in results.updates("a", "D-1", timeout):
        seen.append(update)  # noqa: PERF401  # what comes before an error, too


async def updates(results: Results, key: str, timeout: float | None = None) -> list[float]:
    return [each.percent async for each in results.updates(key, "D-1", timeout)]


async def test_updates_are_told_until_the_result_is_here(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    progress(node, "a", 40)
    progress(node, "b", 10)
    progress(node, "a", 80)
    node.tell("a", 7)

    assert await updates(results, "a") == [40, 80]
    assert await results.wait("a", read, "D-1", 0) == 7
    assert len(node.acked) == 4


async def test_an_update_comes_with_its_text_while_the_job_runs(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[Update] = []

    async with trio.open_nursery() as tasks:
        tasks.start_soon(follow, results, None, seen)
        await trio.sleep(100)
        progress(node, "a", 40)
        await trio.sleep(1)
        assert seen == [Update(40, "a 40")]
        node.tell("a", error={"type": "ValueError", "text": "x"})


async def test_without_a_result_in_time_following_ends_by_an_error(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    progress(node, "a", 40)
    seen: list[Update] = []
    began = trio.current_time()

    with pytest.raises(NoResultError, match="it has not ended"):
        await follow(results, 5, seen)

    assert seen == [Update(40, "a 40")]
    assert trio.current_time() - began == pytest.approx(5)


async def test_the_last_updates_are_kept_for_who_asks_late(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    for n in range(150):
        progress(node, "a", n / 2)
    node.tell("b", 1)
    await results.wait("b", read, "D-1", 5)
    node.tell("a", 1)

    assert await updates(results, "a", 5) == [n / 2 for n in range(50, 150)]


async def test_updates_that_nobody_reads_are_forgotten(
    node: Node, results: Results, autojump_clock: trio.testing.MockClock
) -> None:
    progress(node, "a", 40)
    node.tell("b", 1)
    await results.wait("b", read, "D-1", 5)
    await trio.sleep(601)
    node.tell("c", 1)
    await results.wait("c", read, "D-1", 5)
    node.tell("a", 1)

    assert await updates(results, "a", 5) == []


async def test_a_job_that_sends_no_result_has_no_updates() -> None:
    with node_that_adds() as node:
        app = app_at(node)
        async with app:
            job = await app.tasks["t"].enqueue()
            with pytest.raises(NotOpenError, match="sends no updates"):
                job.updates()


def test_progress_with_a_lone_surrogate_is_told_with_an_escape() -> None:
    with node_that_adds() as node:
        assert outcome(app_at(node, text="\ud800"), body("t", headers=HEADERS)) == Done()
        assert added(node)[0][1]["progress"][1] == "\\ud800"
