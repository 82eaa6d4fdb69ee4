"""What a hook makes of a job."""

from typing import Any

import pytest

from disque_trio.client import DisqueError
from disque_trio.worker import Adding
from tests.client.running import KINDS
from tests.worker.test_enqueue import Adder, added, app_with, node_that_adds, talk


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"key": 5}, "key=5: it must be text"),
        ({"headers": None}, "headers=None"),
        ({"headers": {1: 2}}, "headers="),
        ({"headers": {"tries": 99, "unique": "x"}}, "header tries, unique: the library sets it"),
    ],
)
def test_what_a_hook_writes_that_no_job_can_have_is_refused(
    kind: str, changes: dict[str, Any], why: str
) -> None:
    async def conversation(adder: Adder) -> None:
        with pytest.raises(ValueError, match=f"a hook has set {why}"):
            await adder.add(task, "ada")
        [found] = await adder.add_many([task.call("ada")])
        assert isinstance(found, DisqueError)

    def hook(adding: Adding) -> None:
        for name, value in changes.items():
            setattr(adding, name, value)

    with node_that_adds() as node:
        app, task = app_with(node)
        app.on_enqueue(hook)
        talk(kind, app, conversation)
        assert added(node) == []
