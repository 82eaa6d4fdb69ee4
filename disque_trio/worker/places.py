"""Where nodes find a step of a chain: its queue, and its key there."""

from disque_trio.worker.codec import Step
from disque_trio.worker.options import Options, unique_key

Place = tuple[str, str]
"""The queue and the key by which nodes find a job."""


def place_of(step: Step) -> Place:
    """The queue of a step, and its key for nodes."""
    queue = step.options.get("queue", Options().queue)
    return queue, unique_key(step.task, step.once or step.key, b"")
