"""What QSTAT says of a queue."""

from disque_trio.statemachine.base import Reply
from tests.rig import Rig


def stat(rig: Rig, queue: str = "q") -> dict[bytes, Reply]:
    reply = rig.ask("QSTAT", queue)
    assert isinstance(reply, list)
    pairs = {}
    for name, value in zip(reply[::2], reply[1::2], strict=True):
        assert isinstance(name, bytes)
        pairs[name] = value
    return pairs


def counts(rig: Rig) -> tuple[Reply, ...]:
    """Delayed jobs, leased ones, deliveries and acknowledgements of the queue q."""
    said = stat(rig)
    return said[b"delayed"], said[b"leased"], said[b"deliveries"], said[b"acks"]
