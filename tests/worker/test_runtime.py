"""The world of an app can be another one, for the process or for some tasks."""

import anyio
import pytest

from disque_trio.client import Client
from disque_trio.worker import App, NotOpenError
from disque_trio.worker.runtime import Runtime, for_process, for_task, runtime


def test_the_world_of_a_task_is_that_of_what_it_starts_and_no_other() -> None:
    found = []

    async def look() -> None:
        found.append(runtime())

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            with for_task(one):
                tasks.start_soon(look)
            tasks.start_soon(look)

    one, two = Runtime(), Runtime()
    with for_process(two):
        anyio.run(main, backend="trio")

    assert {*found} == {one, two}
    assert runtime() not in found


def test_an_app_has_a_client_for_each_world() -> None:
    app, made = App(), list[Client]()

    def client(url: object) -> Client:
        made.append(Client())
        return made[-1]

    async def main() -> None:
        async with app:
            with for_task(Runtime(client=client)):
                with pytest.raises(NotOpenError):
                    app.client  # noqa: B018
                async with app, app:
                    assert app.client is made[0]
            assert app.client is not made[0]

    anyio.run(main, backend="trio")
    assert len(made) == 1
