"""A plan says what a verb of the console will do; its run does it, node by node."""

from collections.abc import Awaitable, Callable

import attrs

from disque_trio.observe.observer import Observer
from disque_trio.observe.survey import KnownNode
from disque_trio.observe.values import Json


@attrs.define
class Outcome:
    """What has become of it, node by node."""

    says: list[str] = attrs.Factory(list)
    failed: list[str] = attrs.Factory(list)


Tell = Callable[[str], None]
"""Tells how far it is."""
Run = Callable[[Outcome, Tell], Awaitable[None]]
"""Does it; the outcome has what is done even if it is stopped."""


@attrs.frozen(kw_only=True)
class Plan:
    """What will be done."""

    target: str
    """For the log."""
    says: list[str]
    run: Run
    confirm: str | None = None
    """What a person must type first."""


Verb = Callable[[Observer, Json], Awaitable[Plan]]


async def answering(observer: Observer) -> tuple[list[KnownNode], list[str]]:
    """The nodes that answer, and a line for each other one."""
    nodes = await observer.look()
    silent = [f"{each.name} {each.where} is not told: {each.why}" for each in nodes if each.why]
    return [each for each in nodes if not each.why], silent


def at(count: int) -> str:
    """Such as `2 nodes`."""
    return "1 node" if count == 1 else f"{count} nodes"
