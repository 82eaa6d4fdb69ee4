"""Checks of single values."""

import math
from collections.abc import Callable
from typing import Any, Final

import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App
from disque_trio.worker.checks import seconds_of

TIMEOUT: Final = r"timeout=.* must be a number of seconds, or None"
LIST: Final = r"=.* must be a list, or another iterable"


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(None, math.inf), (math.inf, math.inf), (0, 0), (2.5, 2.5), (-3, 0)]
)
def test_a_timeout_is_a_number_of_seconds_or_none(timeout: float | None, seconds: float) -> None:
    assert seconds_of(timeout) == seconds


app: App[None] = App()


@app.task(name="add", queue="q", result_ttl=60)
async def add(n: int) -> int:
    return n


@app.task(name="sweep")
async def sweep() -> None: ...


@pytest.mark.parametrize("timeout", ["5", b"5", math.nan, True, [], object()])
async def test_a_timeout_of_another_kind_is_named(disque_inline: Inline, timeout: Any) -> None:
    async with app:
        job = await add.enqueue(1)
        flow = app.flow()
        flow.add(add.call(1))
        film = await flow.enqueue()
        batch = await app.batch([add.call(1)])
        waits: list[Callable[..., Any]] = [
            job.result,
            app.job(job.id).result,
            film.wait,
            batch.wait,
        ]
        waits.append(lambda timeout: anext(aiter(job.updates(timeout))))
        for wait in waits:
            with pytest.raises(ValueError, match=TIMEOUT):
                await wait(timeout)
        for blocking in (job.blocking.result, film.blocking.wait):
            with pytest.raises(ValueError, match=TIMEOUT):
                blocking(timeout)


async def test_a_flow_that_is_not_done_in_time_is_named(disque_inline: Inline) -> None:
    flow = app.flow()
    flow.add(add.using(delay=60).call(1))
    async with app:
        film = await flow.enqueue()
        with pytest.raises(TimeoutError, match=r"flow D-.* was not done within 0[.]01 s"):
            await film.wait(0.01)


@pytest.mark.parametrize("value", [0, None, True, object()])
@pytest.mark.parametrize(
    "give",
    [
        lambda value: app.flow().add(add.call(1), after=value),
        app.blocking.enqueue_many,
    ],
)
def test_what_is_no_list_is_named(
    disque_inline: Inline, give: Callable[[Any], Any], value: object
) -> None:
    with pytest.raises(TypeError, match=LIST):
        give(value)


@pytest.mark.parametrize("value", [0, None])
async def test_a_batch_of_no_list_is_named(disque_inline: Inline, value: Any) -> None:
    async with app:
        for give in (app.batch, app.enqueue_many):
            with pytest.raises(TypeError, match=f"calls{LIST}"):
                await give(value)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"missed": []}, "missed=.* must be one of skip, latest, all"),
        ({"within": True}, "within=True must be a whole number of seconds, from 1 to"),
        ({"within": 10**9}, "within=1000000000 must be a whole number of seconds, from 1 to"),
        ({"partition": 0}, "partition=0 must be a whole number of seconds, from 1 to"),
        ({"backfill": "no"}, "backfill='no' must be True or False"),
    ],
)
def test_options_of_schedules_are_checked(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        App[None]().cron(every=5, **options)(sweep)
