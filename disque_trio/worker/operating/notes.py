"""What workers and those who look after them tell each other: bodies of jobs in reserved queues."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, get_args

import attrs

from disque_trio.worker.codec import body_reader
from disque_trio.worker.reporting import Report

RESERVED: Final = "disque-trio."
"""Names of queues that begin so are the library's."""
WORKERS: Final = RESERVED + "workers"
"""Notes of workers. Nobody takes them; they end by themselves."""
CONTROL: Final = RESERVED + "control."
"""Before the name of a worker and its key: its orders."""
ANSWERS: Final = RESERVED + "answers."
"""Before the key of a request: its answers."""
EVERY_S: Final = 10.0
"""How often a worker makes a new note."""
SILENT_S: Final = 15.0
"""A worker whose note is older is silent."""
NOTE_TTL_S: Final = 30
ORDER_TTL_S: Final = 60

OrderName = Literal["quiet", "resume", "stop", "dump"]
ORDERS: Final[tuple[OrderName, ...]] = get_args(OrderName)


@attrs.frozen(kw_only=True)
class Due:
    """A schedule that a worker keeps."""

    name: str
    """Of the task."""
    when: str
    """`30 2 * * * Europe/Berlin`, or `every 60 s`."""
    next: int
    """Unix seconds by the worker's clock."""
    schedule: str = ""
    """Its name, if it was added at run time."""


@attrs.frozen(kw_only=True)
class Note:
    """A worker's heartbeat."""

    control: str
    """The queue of its orders."""
    report: Report
    schedules: Sequence[Due] = ()
    attempts: Mapping[str, int] = attrs.Factory(dict)
    """By task: after how many attempts a job is dead."""


@attrs.frozen(kw_only=True)
class Order:
    """An order to one worker."""

    order: OrderName
    reply_to: str
    """The queue for its answer."""


@attrs.frozen(kw_only=True)
class Answer:
    """A worker has obeyed."""

    report: Report
    stacks: str = ""
    """Of all tasks and threads, for `dump`."""


read_note: Final[Callable[[bytes], Note]] = body_reader(Note)
read_order: Final[Callable[[bytes], Order]] = body_reader(Order)
read_answer: Final[Callable[[bytes], Answer]] = body_reader(Answer)
"""They raise one of `codec.BAD_INPUT`."""
