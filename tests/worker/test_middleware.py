"""Layers around each run."""

from typing import Any

import pytest

from disque_trio.worker import App, Fixed, Job
from disque_trio.worker.engine import records
from tests.worker.runs import body, outcome


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_layers_are_around_each_run_in_their_order(backend: str) -> None:
    app, seen = App(), []

    def layer(name: str) -> None:
        @app.middleware
        async def around(job: Job[Any], run: Any) -> object:
            seen.append(f"{name} before {job.task}")
            try:
                return await run()
            finally:
                seen.append(f"{name} after")

    layer("outer")
    layer("inner")

    @app.task(name="t", retry=Fixed([10]))
    def t() -> None:
        seen.append("t")
        raise ValueError

    assert outcome(app, body("t"), backend) == records.Retry(10_000_000)
    assert seen == ["outer before t", "inner before t", "t", "inner after", "outer after"]
