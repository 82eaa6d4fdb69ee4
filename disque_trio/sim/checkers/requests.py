"""Requests about queues, and queries, of which the judge waits for the replies."""

import attrs

from disque_trio.sim.checkers.records import FOREVER
from disque_trio.sim.scenarios.plan import Micros


@attrs.define(eq=False)
class Query:
    """What a client has asked a node, or the pages of a scan, until the last reply (S22)."""

    time: Micros
    before: dict[str, str]
    """By job that the node had: how it stood when the query was made."""
    words: list[str] = attrs.Factory(list)
    changes: list[tuple[str, str]] = attrs.Factory(list)
    """Since then, in order: a job, and how it stands now."""
    collected: list[str] = attrs.Factory(list)
    """By the pages so far."""
    listed: dict[str, None] = attrs.Factory(dict)
    """Who has copies of the job that it is about, as far as the node had been told."""


@attrs.define(eq=False)
class Purge:
    """A client's PURGE."""

    time: Micros
    answered_at: Micros = FOREVER
    """When it was answered."""
