"""Looks through the jobs of all nodes for some that fit, for a limited time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.records import JobDetails
from disque_trio.worker.operating.asking import Found, at_each, given

SECONDS: Final = 0.5
"""How long one look through the jobs of a node takes at most. What comes later is not seen."""
_FILTERS: Final = "jscan-filters"
MOST: Final = 1000
"""Jobs of each node."""


async def scan(
    client: Client,
    *,
    queue: str | None = None,
    states: Sequence[str],
    fits: Callable[[JobDetails], bool] = lambda _job: True,
    phases: Sequence[str] = (),
    filters: Mapping[str, Any] | None = None,
    most: int = MOST,
    is_once: bool = True,
) -> Found[JobDetails]:
    """Jobs that fit, each once, or without `is_once` each copy. Of more than `most` at a node, or
    than can be seen in `SECONDS`, some. Nodes that have filters take `phases` in place of `states`,
    and `filters`, words of JSCAN: `fits` has to check the same."""

    async def ask(node: Address) -> list[JobDetails]:
        found: list[JobDetails] = []
        if "ended" in states and "ended-jobs" not in client.nodes.features(node):
            return found
        wanted: dict[str, Any] = {"queue": queue, "states": states}
        if _FILTERS in client.nodes.features(node):
            wanted |= {"states": phases or states, "is_full": True, **(filters or {})}
        cursor, end = 0, anyio.current_time() + SECONDS
        while len(found) < most:
            [page] = await client.ask(node, [commands.jscan(cursor, **wanted)])
            told = given(page)
            found += filter(fits, told.items)
            cursor = told.cursor
            if not cursor or anyio.current_time() > end:
                break
        return found

    found = await at_each(client, ask)
    if not is_once:
        return found
    return Found(list({job.id: job for job in found.items}.values()), found.unreached)
