"""Requests about queues, and queries, whose replies the judge awaits."""

import attrs

from disque_trio.sim.checkers.records import FOREVER
from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Query:
    """A client's query, or the pages of a scan, until the last reply (S22)."""

    time: Micros
    before: dict[str, str]
    """By job of the node: its state at the query."""
    words: list[str] = attrs.Factory(list)
    changes: list[tuple[str, str]] = attrs.Factory(list)
    """The changes since then, in order: a job and its new state."""
    collected: list[str] = attrs.Factory(list)
    """The items of the pages so far."""
    listed: dict[str, None] = attrs.Factory(dict)
    """The holders of the job in question that the node had listed."""


@attrs.define(eq=False)
class Purge:
    """A client's PURGE."""

    time: Micros
    answered_at: Micros = FOREVER
    """When the node replied."""
