"""A node whose disk fails or hangs at a bad moment: nothing is lost, and nobody is left waiting."""

import pytest
import trio
from trio.testing import MockClock

from disque_trio import journal as journal_module
from tests.node.test_journal import ALWAYS, NO_SPACE, started


async def test_in_trouble_everybody_is_answered_however_much_waits(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MAX_WAITING", 100)
    world = await started(nursery, ALWAYS)
    client = world.client()
    world.disk.room = len(world.disk.content)
    assert await client.ask("ADDJOB", "q", "x" * 500, "0", "REPLICATE", "1") == NO_SPACE
    assert world.node._journal is not None
    assert world.node._journal.end.waiting > 100

    assert await client.ask("PING") == NO_SPACE
    assert await client.ask("QLEN", "q") == b":1\r\n"
