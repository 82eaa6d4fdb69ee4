"""Tasks that yield checkpoints, in simulated clusters: which steps of a job are done again."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.kit import Sim
from disque_trio.worker import App, Codec, Fixed, Job
from disque_trio.worker.iterating import SAVE_EVERY_S
from disque_trio.worker.options import NOTES

app = App("disque://127.0.0.1:1", retry=Fixed((1, 1, 1)))
DONE: list[int] = []
"""The steps, as they were done."""
BEGUN: list[Any] = []
"""With which checkpoint each run began."""
FAILS: list[int] = []
"""Steps that fail the first time."""
STEPS = 40


@pytest.fixture(autouse=True)
def _anew() -> None:
    for each in (DONE, BEGUN, FAILS):
        each.clear()


@app.task(name="walk", queue="walks", bind=True, lease=20)
async def walk(job: Job[Any], seconds: float) -> AsyncIterator[int]:
    BEGUN.append(job.checkpoint)
    for step in range(job.checkpoint or 0, STEPS):
        await anyio.sleep(seconds)
        if step in FAILS:
            FAILS.remove(step)
            raise ValueError(f"step {step}")
        DONE.append(step)
        yield step + 1


async def half(cluster: Cluster) -> str:
    """A job is in the midst of its work; the worker that runs it."""
    DONE.clear()
    BEGUN.clear()
    await walk.enqueue(1.0)
    await cluster.until(lambda: len(DONE) >= STEPS // 2)
    [name] = cluster.running()
    return name


def test_a_worker_that_stops_gives_a_job_back_with_its_last_checkpoint(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.stop(await half(cluster))
        await cluster.drained()

        assert list(range(STEPS)) == DONE
        assert BEGUN == [None, STEPS // 2 + 1]

    disque_sim.run(story, app, seeds=3, workers=2)


def test_a_worker_that_is_killed_costs_a_few_seconds_of_work(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        with cluster.crash(await half(cluster)):
            await cluster.drained()

        assert set(DONE) == set(range(STEPS))
        assert len(DONE) - STEPS <= SAVE_EVERY_S + 2
        assert len(BEGUN) == 2
        assert BEGUN[1] >= STEPS // 2 - SAVE_EVERY_S - 1

    disque_sim.run(story, app, seeds=3, workers=2)


def test_the_checkpoint_survives_the_node_that_was_asked(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        name = await half(cluster)
        with cluster.crash(cluster.node_of(name)), cluster.crash(name):
            await cluster.drained()

        assert set(DONE) == set(range(STEPS))
        assert BEGUN[-1] is not None

    disque_sim.run(story, app, seeds=3, workers=2)


def test_an_attempt_that_fails_goes_on_where_it_failed(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        BEGUN.clear()
        DONE.clear()
        FAILS[:] = [3, 30]
        await walk.enqueue(0.1)
        await cluster.drained()

        assert list(range(STEPS)) == DONE
        assert BEGUN == [None, 3, 30]

    disque_sim.run(story, app, seeds=2, workers=1)


def test_a_partition_may_repeat_work_and_loses_none(disque_sim: Sim) -> None:
    async def story(cluster: Cluster) -> None:
        with cluster.isolate(await half(cluster)):
            await cluster.sleep(40)
        await cluster.drained()

        assert set(DONE) == set(range(STEPS))
        assert len(DONE) < 2 * STEPS

    disque_sim.run(story, app, seeds=3, workers=2)


def test_a_job_that_never_was_interrupted_leaves_its_checkpoint_for_ten_minutes(
    disque_sim: Sim,
) -> None:
    async def story(cluster: Cluster) -> None:
        await walk.enqueue(1.0)
        await cluster.drained()
        kept = (await app.client.jscan(queue=NOTES)).items
        assert len([each for each in kept if each.state != "acked"]) == 1
        await cluster.sleep(700)
        assert list((await app.client.jscan(queue=NOTES)).items) == []

    disque_sim.run(story, app, seeds=1, workers=1, nodes=1)


async def test_a_job_that_is_short_keeps_no_checkpoint(disque_inline: Inline) -> None:
    walk.blocking.enqueue(0.0)
    await disque_inline.run_all(app)

    assert list(range(STEPS)) == DONE
    assert BEGUN == [None]
    async with app:
        assert list((await app.client.jscan(queue=NOTES)).items) == []


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        (object(), "TypeError: a value of type object cannot be encoded"),
        (float("nan"), "NotInJSONError: JSON cannot encode nan: send None or text"),
        ({(1, 2): 3}, "NotInJSONError: JSON cannot have keys of type tuple"),
    ],
)
async def test_a_job_whose_checkpoint_cannot_be_encoded_is_dead_at_once(
    disque_inline: Inline, checkpoint: object, why: str
) -> None:
    own = App(form="msgpack")

    @own.task(name="yields", queue="q")
    async def yields() -> AsyncIterator[object]:
        yield checkpoint

    yields.blocking.enqueue()
    [ran] = await disque_inline.run_all(own, may_die=True)
    assert (ran.end, ran.reason) == ("dead", f"a checkpoint cannot be encoded: {why}")


async def test_a_checkpoint_is_small(disque_inline: Inline) -> None:
    own = App("disque://127.0.0.1:1")

    @own.task(name="large")
    async def large() -> AsyncIterator[str]:
        yield "x" * 5000

    large.blocking.enqueue()
    [ran] = await disque_inline.run_all(own, may_die=True)
    assert ran.end == "dead"
    assert "a checkpoint has 5,002 bytes as JSON, and the limit is 4,096" in str(ran)


class Reversed(Codec):
    """Nobody reads what it has written."""

    name = "reversed"

    def encode(self, body: bytes) -> bytes:
        return body[::-1]

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002
        return body[::-1]


class WaitingReversed(Reversed):
    """The same, in threads."""

    blocks = True


@pytest.mark.parametrize("written", [Reversed(), WaitingReversed()])
def test_codecs_change_checkpoints_as_bodies(disque_sim: Sim, written: Codec) -> None:
    own = App("disque://127.0.0.1:1", retry=Fixed((1,)), codec=written)

    @own.task(name="copy", bind=True)
    async def copy(job: Job[Any]) -> AsyncIterator[str]:
        BEGUN.append(job.checkpoint)
        yield "the last customer"
        if job.checkpoint not in BEGUN:
            raise ValueError("once")

    async def story(cluster: Cluster) -> None:
        BEGUN.clear()
        await copy.enqueue()
        await cluster.drained()

        assert BEGUN == [None, "the last customer"]
        [kept] = (await own.client.jscan(queue=NOTES)).items
        assert b"the last customer" not in (kept.body or b"")

    disque_sim.run(story, own, seeds=1, workers=1)


async def test_it_runs_to_its_end_without_a_job() -> None:
    @app.task(name="free")
    async def free(count: int) -> AsyncIterator[int]:
        for step in range(count):
            DONE.append(step)
            yield step

    await free(3)

    assert DONE == [0, 1, 2]
