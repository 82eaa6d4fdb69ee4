"""Results that nodes keep, as another process reads them than the one that has added the job."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import anyio.to_thread
import attrs
import pytest

from disque_trio.client import UnsupportedError
from disque_trio.client.nodes import NoNodeError
from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.inline.node import InlineError
from disque_trio.testing.server.kit import Server
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import (
    App,
    Cancel,
    Codec,
    Dead,
    JobFailedError,
    NewerBodyError,
    NoResultError,
    NotOpenError,
    Zlib,
)
from tests.client.running import url
from tests.worker.test_enqueue import node_that_adds

KINDS: Final = ("trio", "asyncio", "blocking")
LONG: Final = "word " * 1000
NOBODY: Final = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


@pytest.fixture(scope="module")
def disque_nodes() -> int:
    """Of this module."""
    return 3


@attrs.frozen
class Page:
    """A result with a type."""

    words: int
    tags: set[str]


def app_at(url: str) -> App[None]:
    """What producers, workers and readers import."""
    app: App[None] = App(url, codec=Zlib(above=100))

    @app.task(name="count", queue="jobs", result_ttl=60)
    async def count(text: str) -> Page:
        if text == "dead":
            raise Dead("no page")
        if text == "cancel":
            raise Cancel("not needed")
        return Page(len(text.split()), {"a"})

    @app.task(name="double", queue="jobs", result_ttl=60, aliases=("twice",))
    async def double(page: Page) -> int:
        if not page.words:
            raise ValueError("nothing to double")
        return 2 * page.words

    @app.task(name="echo", queue="jobs", result_ttl=60)
    async def echo(text: str) -> str:
        return text

    @app.task(name="plain", queue="jobs")
    async def plain() -> int:
        return 1

    return app


@attrs.frozen
class Processes:
    """A producer that is gone, a worker that is gone, and one that asks, in the way of a kind."""

    server: Server
    kind: str
    asks: App[None]

    async def done(self, call: Callable[[App[None]], Any], *, runs: bool = True) -> str:
        """The id of a job that was added, and maybe run, by apps that are closed."""
        adds, works = app_at(self.server.url), app_at(self.server.url)
        async with adds:
            job = await call(adds).enqueue()
        while runs and not (await self.asks.job(job.id).status()).is_over:
            await self.server.run_all(works)
        return str(job.id)

    async def result(self, id: str, timeout: float | None = 30) -> Any:
        def blocking() -> Any:
            try:
                return self.asks.blocking.result(id, timeout)
            finally:
                self.asks.blocking.client.close()

        if self.kind == "blocking":
            return await anyio.to_thread.run_sync(blocking)
        return await self.asks.result(id, timeout)


Story = Callable[[Processes], Awaitable[None]]


def story_of(story: Story) -> Callable[[str, Server], None]:
    """A test that tells it, for each kind of client."""

    @pytest.mark.parametrize("kind", KINDS)
    @functools.wraps(story)
    def test(kind: str, disque_server: Server) -> None:
        async def held() -> None:
            asks = app_at(disque_server.url)
            with anyio.fail_after(120):
                async with asks:
                    await story(Processes(disque_server, kind, asks))

        anyio.run(held, backend="asyncio" if kind == "asyncio" else "trio")

    del test.__wrapped__  # pytest looks at its arguments
    return test


@story_of
async def test_a_result_has_the_type_of_its_task_when_producer_and_worker_are_gone(
    they: Processes,
) -> None:
    id = await they.done(lambda app: app.tasks["count"].call("to be or"))

    assert await they.result(id) == Page(3, {"a"})
    assert await they.result(id) == Page(3, {"a"}), "also the second time"


@story_of
async def test_without_the_task_it_is_plain_data(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["count"].call("to be or"))
    del they.asks.tasks["count"]

    assert await they.result(id) == {"words": 3, "tags": ["a"]}


@story_of
async def test_the_result_of_a_chain_is_that_of_its_last_step(they: Processes) -> None:
    id = await they.done(
        lambda app: app.tasks["count"].call("to be or not") | app.tasks["double"].partial()
    )

    assert await they.result(id) == 8


@story_of
async def test_a_chain_that_has_failed_has_the_reason_of_its_step(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["echo"].call("dead") | app.tasks["count"].partial())
    while not (await they.asks.admin.jobs.dead("jobs")).items:
        await they.server.run_all(app_at(they.server.url))

    with pytest.raises(JobFailedError, match="Dead: no page"):
        await they.result(id)


@story_of
async def test_a_dead_job_has_the_error_that_show_has(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["count"].call("dead"))

    with pytest.raises(JobFailedError) as raised:
        await they.result(id)

    assert (raised.value.kind, raised.value.text) == ("Dead", "no page")
    assert "in count" in raised.value.traceback


@story_of
async def test_a_job_that_its_handler_cancelled_has_the_reason(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["count"].call("cancel"))

    with pytest.raises(JobFailedError, match="Cancel: not needed"):
        await they.result(id)


@story_of
async def test_results_that_codecs_have_changed_are_read(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["echo"].call(LONG))

    assert await they.result(id) == LONG


@story_of
async def test_a_job_without_result_ttl_leaves_none(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["plain"].call())

    with pytest.raises(NoResultError, match="acknowledged without a result") as raised:
        await they.result(id)
    assert raised.value.end == "acked"


@story_of
async def test_of_a_result_that_was_kept_long_enough_nodes_know_how_the_job_ended(
    they: Processes,
) -> None:
    id = await they.done(lambda app: app.tasks["echo"].using(result_ttl=1).call("x"))
    while (await they.asks.job(id).status()).has_result:
        await anyio.sleep(0.1)

    with pytest.raises(NoResultError, match="or its result_ttl has passed") as raised:
        await they.result(id)
    assert raised.value.end == "acked"


class Locked(Codec):
    """Locks bodies by the first one of its keys."""

    name = "locked"

    def __init__(self, keys: bytes) -> None:
        self.keys = keys

    def encode(self, body: bytes) -> bytes:
        return self.keys[:1] + body[::-1]

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002
        if body[0] == ord("?"):
            raise OSError("no answer")
        if body[0] not in self.keys:
            raise NewerBodyError(f"key {body[0]:c} is not known")
        return body[:0:-1]


def locked_app(url: str, keys: bytes) -> App[None]:
    app: App[None] = App(url, codec=Locked(keys))

    @app.task(name="echo", queue="jobs", result_ttl=60)
    async def echo(text: str) -> str:
        return text

    return app


@pytest.mark.parametrize("is_its_producer", [True, False])
@pytest.mark.parametrize(
    ("lock", "raised"),
    [
        (b"2", (JobFailedError, "its result cannot be read: key 2 is not known")),
        (b"?", (NoResultError, "its result cannot be read now: OSError: no answer")),
    ],
)
async def test_a_result_that_this_process_cannot_decode_says_so(
    disque_server: Server, lock: bytes, raised: tuple[type[Exception], str], is_its_producer: bool
) -> None:
    kind, text = raised
    app = locked_app(disque_server.url, b"1")
    async with app:
        job = await app.tasks["echo"].enqueue("x")
        while not (await job.status()).is_over:
            await disque_server.run_all(locked_app(disque_server.url, lock + b"1"))

        with pytest.raises(kind, match=text):
            await (job.result(30) if is_its_producer else app.result(job.id, 30))


@story_of
async def test_what_has_not_ended_within_the_timeout_has_no_result(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["echo"].call("x"), runs=False)

    for timeout in (0, 0.2):
        with pytest.raises(NoResultError, match="it has not ended") as raised:
            await they.result(id, timeout)
        assert raised.value.end is None


@story_of
async def test_what_no_node_knows_has_no_result(they: Processes) -> None:
    for id in (NOBODY, "no id", "", "D-\n"):
        with pytest.raises(NoResultError):
            await they.result(id)


@story_of
async def test_a_job_of_a_blocking_client_has_a_result_too(they: Processes) -> None:
    job = they.asks.tasks["count"].blocking.enqueue("to be")
    async with they.server.worker(app_at(they.server.url)):
        if they.kind == "blocking":
            while not job.blocking.status().is_over:
                await anyio.sleep(0.01)
            assert job.blocking.result(30) == Page(2, {"a"})
        else:
            assert await job.result(30) == Page(2, {"a"})
    they.asks.blocking.client.close()


@story_of
async def test_who_waits_before_the_job_runs_is_told_when_it_has_ended(they: Processes) -> None:
    id = await they.done(lambda app: app.tasks["echo"].call("x"), runs=False)

    async with they.server.worker(app_at(they.server.url)):
        assert await they.result(id) == "x"


@story_of
async def test_a_job_of_another_producer_under_the_same_key_has_its_result_here(
    they: Processes,
) -> None:
    id = await they.done(lambda app: app.tasks["echo"].using(unique="k").call("x"), runs=False)
    other = app_at(they.server.url)
    async with other:
        mine = await other.tasks["echo"].using(unique="k").enqueue("x")
        assert mine.id == id
        async with they.server.worker(app_at(they.server.url)):
            assert await mine.result(30) == "x"


async def test_an_app_that_is_not_open_says_so() -> None:
    with pytest.raises(NotOpenError):
        await App().result(NOBODY)


async def test_nodes_that_keep_no_results_are_named() -> None:
    with node_that_adds() as node:
        app = App(url(node), form="json")
        async with app:
            with pytest.raises(UnsupportedError, match="the node does not keep results"):
                await app.result(NOBODY)


async def test_a_test_without_a_server_reads_results_and_never_waits(
    disque_inline: Inline,
) -> None:
    app = app_at("disque://none")
    async with app:
        first = await app.tasks["count"].enqueue("to be")
        with pytest.raises(InlineError, match="let `disque_inline` run the job first"):
            await app.result(first.id)
        await disque_inline.run_all(app)
        assert await app.result(first.id) == Page(2, {"a"})
        second = await app.tasks["count"].enqueue("to be")
        with pytest.raises(NoResultError, match="it has not ended"):
            await app.result(second.id, 0)


waits: Final = App[None]("disque://n1")


@waits.task(name="late", queue="jobs", result_ttl=60)
async def late() -> int:
    await anyio.sleep(5)
    return 7


def test_a_wait_goes_on_while_no_node_answers(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await late.enqueue()
        trouble = cluster.isolate("story")
        cluster.later(20, trouble.undo)
        assert await waits.result(job.id, 60) == 7

    disque_sim.run(story, waits, seeds=1)


def test_a_wait_that_ends_while_no_node_answers_is_an_error(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        job = await late.enqueue()
        with cluster.isolate("story"), pytest.raises((NoNodeError, NoResultError)):
            await waits.result(job.id, 3)

    disque_sim.run(story, waits, seeds=1)
