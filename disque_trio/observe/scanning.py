"""Searches the jobs of all nodes for those that match, for a limited time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.records import JobDetails
from disque_trio.worker.operating.asking import Found, at_each, unwrap

SECONDS: Final = 1.5
"""The maximum duration of the search at a node, in seconds. Jobs after it are not seen."""
PATIENT_S: Final = 15.0
"""The same for a caller that waits for all jobs."""
_STRIDE: Final = 1000
"""The number of jobs requested at once when few match: the node scans ten times as many."""
_FILTERS: Final = "jscan-filters"
MOST: Final = 1000
"""The maximum number of jobs of each node."""


@attrs.frozen
class Scanned(Found[JobDetails]):
    """The jobs found. `is_cut` if a node had `most` jobs or the time was over before all were
    seen."""

    is_late: bool = False
    """Was the time over?"""


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
    seconds: float | None = None,
) -> Scanned:
    """Return jobs that match, each once; without `is_once`, each copy. The result is incomplete if
    a node has more than `most`, or if the time (`seconds`, by default `SECONDS`) is over. A node
    that supports filters gets `phases` in place of `states`, and `filters`, words of JSCAN: `fits`
    must check the same for other nodes."""

    unseen: list[Address] = []
    late: list[Address] = []

    async def ask(node: Address) -> list[JobDetails]:
        found: list[JobDetails] = []
        if "ended" in states and "ended-jobs" not in client.nodes.features(node):
            return found
        wanted: dict[str, Any] = {"queue": queue, "states": states}
        if _FILTERS in client.nodes.features(node):
            wanted |= {"states": phases or states, "is_full": True, **(filters or {})}
        cursor, count = 0, None
        end = anyio.current_time() + (SECONDS if seconds is None else seconds)
        while len(found) < most:
            [reply] = await client.ask(node, [commands.jscan(cursor, count=count, **wanted)])
            page = unwrap(reply)
            found += filter(fits, page.items)
            cursor = page.cursor
            if not cursor:
                break
            if anyio.current_time() > end:
                late.append(node)
                break
            count = None if page.items else _STRIDE
        if cursor:
            unseen.append(node)
        return found

    found = await at_each(client, ask)
    items = list({job.id: job for job in found.items}.values()) if is_once else found.items
    return Scanned(items, found.unreached, bool(unseen), bool(late))
