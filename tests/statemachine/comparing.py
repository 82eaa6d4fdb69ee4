"""Two nodes that take different ways to the same state."""

import random
from collections.abc import Iterable

import attrs

from disque_trio.statemachine.base import TRACED, NodeId
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Message
from disque_trio.statemachine.tally import Tally

_PLACES = {"slot", "earlier", "later", "before", "after", "pending_add"}


class Even(random.Random):
    """The random spread of times is always the same, however often it is drawn."""

    def random(self) -> float:
        return 0.5


def shown(job: Job) -> dict[str, object]:
    """The job's fields, without its places among others, and whether it is traced."""
    fields = [field.name for field in attrs.fields(Job) if field.name not in _PLACES]
    return {name: getattr(job, name) for name in fields} | {"flags": job.flags & ~TRACED}


def by_job(sent: Iterable[tuple[NodeId, Message]]) -> dict[tuple[NodeId, object], list[Message]]:
    """What was said of each job to each node, in order. Between jobs the order does not matter."""
    told: dict[tuple[NodeId, object], list[Message]] = {}
    for to, message in sent:
        told.setdefault((to, getattr(message, "id", type(message))), []).append(message)
    return told


def totals(tally: Tally) -> dict[str, object]:
    """What was counted, whichever way it took."""
    both = {**attrs.asdict(tally), "added": tally.all_added(), "queued": tally.all_queued()}
    del both["at_once"]
    return both
