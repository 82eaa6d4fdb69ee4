"""Messages between workers and operators: bodies of jobs in reserved queues."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, get_args

import attrs

from disque_trio.worker.codec import body_reader
from disque_trio.worker.reporting import Report

RESERVED: Final = "disque-trio."
"""The prefix of queues that are reserved for this library."""
WORKERS: Final = RESERVED + "workers"
"""The queue of workers' heartbeats. They are never taken, and expire."""
CONTROL: Final = RESERVED + "control."
"""The prefix of the queue of a worker's orders; the worker's name and key follow."""
ANSWERS: Final = RESERVED + "answers."
"""The prefix of the queue of an answer; the key of the request follows."""
EVERY_S: Final = 10.0
"""The interval between heartbeats of a worker."""
SILENT_S: Final = 15.0
"""A worker is silent if its last heartbeat is older than this."""
NOTE_TTL_S: Final = 30
ORDER_TTL_S: Final = 60

OrderName = Literal["quiet", "resume", "stop", "dump"]
ORDERS: Final[tuple[OrderName, ...]] = get_args(OrderName)


@attrs.frozen(kw_only=True)
class Due:
    """A schedule that a worker keeps."""

    name: str
    """The name of the task."""
    when: str
    """`30 2 * * * Europe/Berlin`, or `every 60 s`."""
    next: int
    """The next tick, in Unix seconds on the worker's clock."""
    schedule: str = ""
    """The name of the schedule, if it was added at run time."""


@attrs.frozen(kw_only=True)
class Note:
    """A worker's heartbeat."""

    control: str
    """The queue of its orders."""
    report: Report
    schedules: Sequence[Due] = ()
    attempts: Mapping[str, int] = attrs.Factory(dict)
    """By task: the number of attempts after which a job is dead."""


@attrs.frozen(kw_only=True)
class Order:
    """An order to one worker."""

    order: OrderName
    reply_to: str
    """The queue for the answer."""


@attrs.frozen(kw_only=True)
class Answer:
    """The answer of a worker that has carried out an order."""

    report: Report
    stacks: str = ""
    """The stacks of all tasks and threads, for `dump`."""


read_note: Final[Callable[[bytes], Note]] = body_reader(Note)
read_order: Final[Callable[[bytes], Order]] = body_reader(Order)
read_answer: Final[Callable[[bytes], Answer]] = body_reader(Answer)
"""These raise one of `codec.BAD_INPUT`."""
