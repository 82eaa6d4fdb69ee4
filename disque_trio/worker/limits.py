"""Limits of queues that an app declares; a worker sets them when it starts (decision 136)."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import anyio
import attrs
from attrs.validators import optional

from disque_trio.client import commands
from disque_trio.client.errors import DisqueError
from disque_trio.client.refusals import RefusedError, UnavailableError
from disque_trio.client.replies import facts
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.statemachine.commandoptions import MOST_LIMIT
from disque_trio.terminal.escapes import printable
from disque_trio.worker.checks import is_number, is_whole, shown, whole
from disque_trio.worker.enqueue import Enqueuer

AGAIN_S: Final = 5.0
"""The pause after an error."""
_SHORTEST_S: Final = 0.001
_log: Final = logging.getLogger(__name__)
_NUMBER: Final = optional(whole(1, MOST_LIMIT))


def _rate(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Accept a pair of a number of jobs and a number of seconds."""
    match value:
        case (jobs, per) if is_whole(jobs) and 1 <= jobs <= MOST_LIMIT and is_number(per):
            if _SHORTEST_S <= per <= LONGEST_PERIOD_S:
                return
    raise ValueError(
        f"{field.name}={shown(value)} must be a number of jobs, from 1 to {MOST_LIMIT}, and of "
        f"seconds, from {_SHORTEST_S} to {LONGEST_PERIOD_S}, such as (100, 1)"
    )


@attrs.frozen
class QueueLimit:
    """The limits of a queue in the whole cluster."""

    queue: str
    concurrency: int | None = attrs.field(default=None, validator=_NUMBER)
    """How many jobs of the queue may be leased at the same time."""
    rate: tuple[int, float] | None = attrs.field(default=None, validator=optional(_rate))
    """How many jobs may be delivered, and in how many seconds."""
    burst: int | None = attrs.field(default=None, validator=_NUMBER)
    """How many of them may be delivered at once, after a pause."""
    is_loose: bool = attrs.field(default=False)
    """May each side of a partition use the whole limit?"""
    group_concurrency: int | None = attrs.field(default=None, validator=_NUMBER)
    """The same limits for each group of the queue."""
    group_rate: tuple[int, float] | None = attrs.field(default=None, validator=optional(_rate))
    group_burst: int | None = attrs.field(default=None, validator=_NUMBER)

    @is_loose.validator
    def _check_loose(self, _: object, loose: object) -> None:
        if not isinstance(loose, bool):
            raise ValueError(f"loose={shown(loose)} must be True or False")

    def __attrs_post_init__(self) -> None:
        where = f"limit of queue {printable(self.queue)}"
        limits = self.concurrency, self.rate, self.group_concurrency, self.group_rate
        if all(each is None for each in limits):
            raise ValueError(f"{where}: give concurrency or rate, of the queue or of its groups")
        if self.burst is not None and self.rate is None:
            raise ValueError(f"{where}: burst needs rate")
        if self.group_burst is not None and self.group_rate is None:
            raise ValueError(f"{where}: group_burst needs group_rate")

    @property
    def words(self) -> dict[str, Any]:
        """The arguments of `limit_queue`."""
        rate, per = self.rate or (None, None)
        group_rate, group_per = self.group_rate or (None, None)
        return {
            "concurrency": self.concurrency, "rate": rate, "per": per, "burst": self.burst,
            "is_loose": self.is_loose, "group_concurrency": self.group_concurrency,
            "group_rate": group_rate, "group_per": group_per, "group_burst": self.group_burst,
        }  # fmt: skip

    @property
    def settings(self) -> dict[str, int]:
        """The limits as QUEUE INFO reports them."""
        rate, per = self.rate or (0, 0)
        group_rate, group_per = self.group_rate or (0, 0)
        return {
            "concurrency": self.concurrency or 0,
            "rate": rate,
            "period-ms": round(per * 1000),
            "burst": self.burst or 0,
            "loose": int(self.is_loose),
            "group-concurrency": self.group_concurrency or 0,
            "group-rate": group_rate,
            "group-period-ms": round(group_per * 1000),
            "group-burst": self.group_burst or 0,
        }


async def _apply(enqueuer: Enqueuer, limit: QueueLimit) -> None:
    """Set the limits, unless they are already set. Raises `DisqueError`."""
    client = enqueuer.client
    known = facts(await client.call("QUEUE", "INFO", limit.queue))
    if {name: known.get(name) for name in limit.settings} != limit.settings:
        await client.run(commands.limit_queue(limit.queue, **limit.words))


async def _apply_all(enqueuer: Enqueuer, limits: Sequence[QueueLimit]) -> None:
    for limit in limits:
        while True:
            try:
                await _apply(enqueuer, limit)
                break
            except DisqueError as error:
                if isinstance(error, RefusedError) and not isinstance(error, UnavailableError):
                    _log.error(
                        "a node refuses the limit of queue %s: %s", printable(limit.queue), error
                    )
                    break
                _log.warning(
                    "cannot set the limit of queue %s yet: %s", printable(limit.queue), error
                )
                await anyio.sleep(AGAIN_S)


def applying(
    enqueuer: Enqueuer,
    limits: Sequence[QueueLimit],
    beside: Callable[[], Coroutine[Any, Any, None]] | None,
) -> Callable[[], Coroutine[Any, Any, None]]:
    """A coroutine function that sets the limits, and runs the worker's other background tasks."""

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_apply_all, enqueuer, limits)
            if beside is not None:
                tasks.start_soon(beside)

    return run
