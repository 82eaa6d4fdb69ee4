"""Sandboxes of a console for tests."""

from collections.abc import Callable
from typing import Any

import trio
import trio.testing

from disque_trio.web.sandbox import SandboxRoom

SECOND = 1_000_000
Logged = list[tuple[str, dict[str, Any]]]


def room(**given: Any) -> SandboxRoom:
    """One whose slices never end early, however busy the machine is."""
    return SandboxRoom(clock=lambda: 0.0, **given)


async def opened(nursery: trio.Nursery, logged: Logged | None = None, **given: Any) -> SandboxRoom:
    found, log = room(**given), [] if logged is None else logged
    nursery.start_soon(found.run, lambda event, facts: log.append((event, facts)))
    await trio.testing.wait_all_tasks_blocked()
    return found


async def until(there: SandboxRoom, condition: Callable[[], bool]) -> None:
    with trio.fail_after(3600):
        while not condition():
            there.state()
            await trio.sleep(0.1)
