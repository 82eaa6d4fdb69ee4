"""A flow, asked about by other processes, with and without an event loop."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import pytest

from disque_trio.testing.server.kit import Server
from disque_trio.worker import App, Codec, Dead, EnqueuedFlow, FlowFailedError, Task, Zlib, tokens
from disque_trio.worker.copies import NO_COPIES
from disque_trio.worker.flows.handles import FAILED
from disque_trio.worker.tokens import OVER

KINDS: Final = ("trio", "asyncio", "blocking")
Value = TypeVar("Value")
mended: Final[list[str]] = []


def app_of(server: Server) -> tuple[App[None], Task[..., None]]:
    app = App[None](server.url, codec=Zlib(above=10))

    @app.task(name="work", queue="flows")
    async def work(what: str) -> None:
        if what not in ("", *mended):
            raise Dead(what)

    return app, work


async def in_thread(app: App[None], call: Callable[..., Value], *given: object) -> Value:
    """What the call returns in a thread, whose client is closed then."""

    def called() -> Value:
        try:
            return call(*given)
        finally:
            app.blocking.client.close()

    return await anyio.to_thread.run_sync(called)


async def enqueued(app: App[None], work: Task[..., None], what: str) -> EnqueuedFlow:
    flow = app.flow()
    first = flow.add(work.call(""))
    flow.add(work.call(""), after=[flow.add(work.call(what), after=[first])])
    if what == "blocking":
        return await in_thread(app, flow.blocking.enqueue)
    return await flow.enqueue()


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_retries_a_flow_and_waits_for_it(kind: str, disque_server: Server) -> None:
    app, work = app_of(disque_server)
    asks, _ = app_of(disque_server)

    def retry(id: str) -> str:
        found = asks.blocking.find_flow(id)
        assert found is not None
        with pytest.raises(FlowFailedError, match="1 done, 1 dead, 1 pending"):
            found.wait(60)
        mended.append(kind)
        assert (found.id, found.retry()) == (id, 1)
        state = found.wait(60).state
        assert not found.cancel()
        return state

    async def retry_awaited(id: str) -> str:
        found = await asks.find_flow(id)
        assert found is not None
        with pytest.raises(FlowFailedError):
            await found.wait(60)
        mended.append(kind)
        assert await found.retry() == 1
        return (await found.wait(60)).state

    async def story() -> None:
        async with app, asks, disque_server.worker(app):
            flow = await enqueued(app, work, kind)
            if kind == "blocking":
                assert await in_thread(asks, retry, flow.id) == "done"
            else:
                assert await retry_awaited(flow.id) == "done"
            assert (await flow.status()).counts == {"done": 3}

    anyio.run(story, backend="asyncio" if kind == "asyncio" else "trio")


class Picky(Codec):
    """Refuses the body of one job."""

    name = "picky"

    def encode(self, body: bytes) -> bytes:
        if body.startswith(b'{"task":"work"') and b"refused" in body:
            raise ValueError("not this one")
        return body

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002
        return body


async def test_what_follows_a_member_that_cannot_be_added_is_skipped(disque_server: Server) -> None:
    app = App[None](disque_server.url, codec=Picky())

    @app.task(name="work", queue="flows")
    async def work(what: str) -> None: ...

    flow = app.flow()
    flow.add(work.call("b"), after=[flow.add(work.call("refused"))])
    flow.add(work.call("c"))
    async with app, disque_server.worker(app):
        with pytest.raises(FlowFailedError, match="is failed: 2 skipped, 1 done"):
            await (await flow.enqueue()).wait(60)


@pytest.mark.parametrize(
    ("marks", "state", "counts"),
    [((OVER,), "done", {"done": 1}), ((OVER, FAILED), "failed", {"leased": 1})],
)
async def test_a_flow_is_done_though_the_acknowledgement_of_its_last_member_is_on_its_way(
    marks: tuple[str, ...], state: str, counts: dict[str, int], disque_server: Server
) -> None:
    app, work = app_of(disque_server)
    flow = app.flow()
    flow.add(work.call(""))
    async with app:
        added = await flow.enqueue()
        [[(queue, key)]] = [each.places for each in added.members]
        await app.client.addjob(queue, b"", unique=key)
        assert len(await app.client.getjob(queue, count=2)) == 2
        for mark in marks:
            await app.client.run(tokens.add_mark(added.tokens, 60, NO_COPIES, mark))

        found = await added.status()

    assert (found.state, found.counts) == (state, counts)


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_ends_in_time(kind: str, disque_server: Server) -> None:
    app, work = app_of(disque_server)

    async def story() -> None:
        async with app:
            flow = await enqueued(app, work, "")
            assert (await flow.status()).counts == {"pending": 3}
            assert (await flow.status()).state == "running"
            wait = partial(in_thread, app, flow.blocking.wait)
            with pytest.raises(TimeoutError):
                await (wait if kind == "blocking" else flow.wait)(0.3)
            assert await flow.cancel()

    anyio.run(story, backend="asyncio" if kind == "asyncio" else "trio")
